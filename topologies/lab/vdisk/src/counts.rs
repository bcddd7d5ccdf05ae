//! What a disk counts of itself, as a second witness beside the kernel.

use crate::dirty::Extent;
use crate::drive::Op;
use crate::model::Nanos;
use serde::Serialize;

/// What a disk has done since it was made. Times in seconds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Counts {
    /// Its name.
    pub name: String,
    /// Requests that were answered.
    pub reads: u64,
    /// See `reads`.
    pub writes: u64,
    /// Their bytes.
    pub read_bytes: u64,
    /// See `read_bytes`.
    pub(crate) written_bytes: u64,
    /// Flushes that were answered.
    pub flushes: u64,
    /// Runs of blocks that went from the cache to the media.
    pub(crate) destages: u64,
    /// Their bytes.
    pub(crate) destaged_bytes: u64,
    /// How long the head, or a channel on average, worked.
    pub(crate) busy_s: f64,
    /// The time of all requests together: per second, the mean number in flight.
    pub(crate) waited_s: f64,
    /// How much later than the model says answers were sent, in sum: what this machine adds.
    pub(crate) late_s: f64,
    /// Bytes in the volatile cache now.
    pub cached_bytes: u64,
}

/// Nanoseconds as seconds.
pub(crate) fn seconds(time: Nanos) -> f64 {
    time as f64 / 1e9
}

impl Counts {
    /// Count a run of blocks that went to the media.
    pub(crate) fn destaged(&mut self, extent: Extent) {
        self.destages += 1;
        self.destaged_bytes += extent.bytes();
    }

    /// Count a request that was answered.
    pub fn answered(&mut self, op: Op, bytes: u64, waited: Nanos) {
        match op {
            Op::Read => {
                self.reads += 1;
                self.read_bytes += bytes;
            }
            Op::Write => {
                self.writes += 1;
                self.written_bytes += bytes;
            }
            Op::Flush => self.flushes += 1,
        }
        self.waited_s += seconds(waited);
    }
}
