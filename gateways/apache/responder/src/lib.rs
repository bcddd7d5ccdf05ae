//! A FastCGI responder that asks an HTTP origin: what stands between Apache's `mod_proxy_fcgi` and
//! a radosgw that speaks HTTP only.
//!
//! A thread serves one connection of the web server, with one request at a time; bodies stream both
//! ways through buffers of fixed size. Connections to origins are shared and kept. What fails is
//! seen as a failure by the client: an upload that the client gave up is cut at the origin, and an
//! answer that the origin cut is cut towards the web server.

pub mod link;
pub mod origin;
pub mod record;
mod relay;
pub mod reply;
pub mod request;
pub mod server;
pub mod session;
pub mod stats;
pub mod upload;
