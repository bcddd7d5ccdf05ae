//! A FastCGI responder that forwards to an HTTP origin: it connects Apache's `mod_proxy_fcgi` to a
//! radosgw that speaks only HTTP.
//!
//! Each connection of the web server has a thread and one request at a time; bodies stream both
//! ways through buffers of fixed size. Connections to origins are shared and kept. The client sees
//! every failure: an upload that it aborted is cut at the origin, and an answer that the origin cut
//! is cut towards the web server.

pub(crate) mod link;
pub mod origin;
pub mod record;
mod relay;
pub mod reply;
pub mod request;
pub mod server;
pub mod session;
pub mod stats;
pub(crate) mod upload;
