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

pub mod answer;
pub mod body;
pub mod checksum;
pub mod config;
pub mod connections;
pub mod content;
pub mod crew;
pub mod dates;
pub mod digests;
pub mod encryption;
pub mod endpoints;
pub mod engine;
pub mod flow;
pub mod histograms;
pub mod http;
pub mod job;
pub mod link;
pub mod list;
pub mod list_versions;
pub mod null;
pub mod operation;
pub mod options;
pub mod picker;
pub mod random;
pub mod reactor;
pub mod recorder;
pub mod records;
pub mod request;
pub mod results;
pub mod ring;
pub mod shared;
pub mod sign;
pub mod signing;
pub mod source;
pub mod sys;
pub mod versions;
pub mod worker;
pub mod workload;
pub mod xml;

#[cfg(feature = "python")]
mod python;
