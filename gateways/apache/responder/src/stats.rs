//! What the responder counts of itself, and how it says what went wrong.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

/// Lines about failures in a second at most; a dead origin would fill a disk otherwise.
const LINES_PER_S: u64 = 20;

/// Counters; those of what is there now go down again.
#[derive(Debug, Default)]
pub struct Stats {
    /// Requests begun.
    pub requests: AtomicU64,
    /// Requests being answered now.
    pub active: AtomicU64,
    /// Connections of the web server now.
    pub connections: AtomicU64,
    /// Connections to origins now, kept ones included.
    pub origin_connections: AtomicU64,
    /// Connections to origins made.
    pub origin_opened: AtomicU64,
    /// Requests asked over a kept connection.
    pub origin_reused: AtomicU64,
    /// Requests asked again, since a kept connection was gone.
    pub retried: AtomicU64,
    /// Requests that the origin did not answer whole, or not at all.
    pub origin_failed: AtomicU64,
    /// Requests that the web server gave up.
    pub aborted: AtomicU64,
    /// Requests refused as malformed, and connections with something else than FastCGI.
    pub malformed: AtomicU64,
    lines: AtomicU64,
}

impl Stats {
    /// All counters as a line of JSON.
    #[must_use]
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

    /// Say on stderr what went wrong; of more than 20 lines in a second the rest is left to the
    /// counters.
    pub fn say(&self, what: &str) {
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

/// Counts one more of what is there now until it is dropped.
#[derive(Debug)]
pub struct Held<'a>(&'a AtomicU64);

impl<'a> Held<'a> {
    /// One more.
    #[must_use]
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
