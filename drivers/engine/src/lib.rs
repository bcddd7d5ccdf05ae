//! The native part of the Locust driver, and the null target that calibrates it.
//!
//! ```text
//! python                       what _native.pyi declares; nothing else here knows Python
//!   engine                     workers on I/O threads, window, snapshot
//!     reactor -> worker        epoll thread -> one connection with one request outstanding
//!       request, ring, sign, signing, encryption, dates, body, checksum,
//!       answer, list, list_versions, versions, http, link, content, digests, picker, job, source,
//!       endpoints, recorder -> records, histograms
//!   null                       a small S3 and Swift server that stores no bodies
//! sys                          the system calls, all of the unsafe code
//! ```

#![cfg_attr(not(feature = "python"), allow(dead_code))] // what Python alone uses

pub mod answer;
mod body;
mod checksum;
pub mod config;
mod connections;
pub mod content;
mod crew;
mod dates;
mod digests;
mod encryption;
mod endpoints;
pub mod engine;
mod flow;
mod histograms;
pub mod http;
mod job;
pub mod link;
pub mod list;
pub mod list_versions;
mod null;
mod operation;
mod options;
pub mod picker;
mod random;
mod reactor;
pub mod recorder;
mod records;
mod request;
pub mod results;
pub mod ring;
mod shared;
mod sign;
mod signing;
mod source;
mod sys;
mod versions;
mod worker;
pub mod workload;
mod xml;

#[cfg(feature = "python")]
mod python;
