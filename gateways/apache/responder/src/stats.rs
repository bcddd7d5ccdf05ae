//! The responder's counters and its log on stderr.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

/// Log lines a second at most; a dead origin would otherwise fill the disk.
const LINES_PER_S: u64 = 20;

/// Counters; `active` and the two numbers of connections also go down.
#[derive(Debug, Default)]
pub struct Stats {
    /// Requests started.
    pub requests: AtomicU64,
    /// Requests in progress.
    pub(crate) active: AtomicU64,
    /// Current connections of the web server.
    pub connections: AtomicU64,
    /// Current connections to origins, including kept ones.
    pub(crate) origin_connections: AtomicU64,
    /// Connections opened to origins.
    pub origin_opened: AtomicU64,
    /// Requests sent over a kept connection.
    pub origin_reused: AtomicU64,
    /// Requests sent again because a kept connection was closed.
    pub retried: AtomicU64,
    /// Requests that the origin answered incompletely or not at all.
    pub origin_failed: AtomicU64,
    /// Requests that the web server aborted.
    pub aborted: AtomicU64,
    /// Malformed requests, and connections with something other than FastCGI.
    pub malformed: AtomicU64,
    lines: AtomicU64,
}

impl Stats {
    /// All counters as a line of JSON.
    pub fn line(&self) -> String {
        let counters = [
            ("requests", &self.requests),
            ("active", &self.active),
            ("connections", &self.connections),
            ("origin_connections", &self.origin_connections),
            ("origin_opened", &self.origin_opened),
            ("origin_reused", &self.origin_reused),
            ("retried", &self.retried),
            ("origin_failed", &self.origin_failed),
            ("aborted", &self.aborted),
            ("malformed", &self.malformed),
        ];
        let fields: Vec<String> = counters
            .iter()
            .map(|(name, counter)| format!("\"{name}\": {}", counter.load(Relaxed)))
            .collect();
        format!("{{{}}}\n", fields.join(", "))
    }

    /// Log a failure on stderr, up to 20 lines a second; the counters count the rest.
    pub(crate) fn log(&self, what: &str) {
        let second =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let (epoch, lines) = (second & 0xffff_ffff, LINES_PER_S);
        let counted = self.lines.fetch_update(Relaxed, Relaxed, |last| {
            if last >> 32 != epoch {
                Some(epoch << 32 | 1)
            } else if last & 0xffff_ffff < lines {
                Some(last + 1)
            } else {
                None
            }
        });
        if counted.is_ok() {
            eprintln!("{what}");
        }
    }
}

/// Keeps a counter one higher until it is dropped.
#[derive(Debug)]
pub(crate) struct Held<'a>(&'a AtomicU64);

impl<'a> Held<'a> {
    /// Increment the counter.
    pub fn new(counter: &'a AtomicU64) -> Self {
        counter.fetch_add(1, Relaxed);
        Self(counter)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
