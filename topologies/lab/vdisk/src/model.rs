//! The figures of a disk's model, as the suite passes them: times in seconds, rates in bytes a
//! second. `topologies/disk_models.py` declares the models, their defaults and sources.

use serde::Deserialize;

/// Nanoseconds, of a disk's own clock or of a length of time.
pub type Nanos = u64;

/// What a disk is made of.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Model {
    /// One head over turning platters.
    Spinning(Spinning),
    /// Flash memory on parallel channels.
    Flash(Flash),
}

/// A spinning disk.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spinning {
    /// The name of the model that this one is made from.
    pub base: String,
    /// Decides where the platters are at the start.
    pub seed: u64,
    /// Requests that the disk knows of and chooses among.
    pub queue_depth: usize,
    /// Volatile cache for writes, in bytes; 0: writes go to the platters.
    pub write_cache: u64,
    /// Separate places that the cache can keep: its segments.
    pub write_cache_runs: usize,
    /// Rate of the interface.
    pub link_rate: Option<f64>,
    /// Time of the electronics for each request.
    pub command: f64,
    /// What the way through the kernel takes, and is part of each service time.
    pub overhead: f64,
    /// Revolutions a minute.
    pub rpm: f64,
    /// Seek to the next track.
    pub seek_track: f64,
    /// Mean seek between two random places.
    pub seek_avg: f64,
    /// Seek over all tracks.
    pub seek_full: f64,
    /// Sustained rate at the first byte, on the outermost track.
    pub transfer_rate: f64,
    /// Sustained rate at the last byte.
    pub transfer_rate_inner: f64,
    /// How far the disk reads on when nothing else is asked.
    pub read_ahead: u64,
    /// Consecutive bytes that lie together; the next ones are elsewhere. None: all lie together.
    pub scatter: Option<u64>,
    /// A request that has waited this long is served next.
    pub longest_wait: f64,
}

/// A flash disk.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flash {
    /// The name of the model that this one is made from.
    pub base: String,
    /// Decides how the latency of each page differs from the mean.
    pub seed: u64,
    /// Requests that the disk works on at once.
    pub queue_depth: usize,
    /// Volatile cache for writes, in bytes; 0: writes go to the flash.
    pub write_cache: u64,
    /// Rate of the interface.
    pub link_rate: Option<f64>,
    /// Time of the electronics for each read and flush.
    pub command: f64,
    /// Time of a write into the cache, without the interface's.
    pub write_latency: f64,
    /// What the way through the kernel takes, and is part of each service time.
    pub overhead: f64,
    /// Dies that work in parallel.
    pub channels: usize,
    /// Mean time to read a page.
    pub read_latency: f64,
    /// Bytes of a page: larger reads take several, on several channels.
    pub read_bytes: u64,
    /// Mean time that a channel is busy with a program, the cleaning up it causes included.
    pub program_latency: f64,
    /// Consecutive bytes that one program writes.
    pub program_bytes: u64,
    /// Latencies differ evenly by up to this share of the mean.
    pub variation: f64,
}

/// Whether a figure is in its range; the message names it.
fn within(name: &str, value: f64, least: f64, most: f64) -> Result<(), String> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(format!("{name} is {value}, not from {least} to {most}"))
}

impl Model {
    /// Check what the disk is built on; the suite has checked the same with better messages.
    /// Errors: The figure that is out of range.
    pub fn check(&self) -> Result<(), String> {
        within("queue_depth", self.queue_depth() as f64, 1.0, 65536.0)?;
        within("write_cache", self.write_cache() as f64, 0.0, 4_294_967_296.0)?;
        within("command", self.command(), 0.0, 1.0)?;
        within("overhead", self.overhead(), 0.0, 0.01)?;
        if let Some(rate) = self.link_rate() {
            within("link_rate", rate, 1e5, 1e12)?;
        }
        match self {
            Model::Spinning(one) => {
                within("write_cache_runs", one.write_cache_runs as f64, 1.0, 1e9)?;
                within("rpm", one.rpm, 600.0, 60_000.0)?;
                within("seek_full", one.seek_full, 0.0, 1.0)?;
                within("seek_avg", one.seek_avg, 0.0, one.seek_full)?;
                within("seek_track", one.seek_track, 0.0, one.seek_avg)?;
                within("transfer_rate", one.transfer_rate, 1e5, 1e12)?;
                within("transfer_rate_inner", one.transfer_rate_inner, 1e5, one.transfer_rate)?;
                within("read_ahead", one.read_ahead as f64, 0.0, 1_073_741_824.0)?;
                if let Some(piece) = one.scatter {
                    within("scatter", piece as f64, 65_536.0, 1e13)?;
                }
                within("longest_wait", one.longest_wait, 0.001, 3600.0)
            }
            Model::Flash(one) => {
                within("channels", one.channels as f64, 1.0, 1024.0)?;
                within("write_latency", one.write_latency, 0.0, 1.0)?;
                within("read_latency", one.read_latency, 0.0, 1.0)?;
                within("read_bytes", one.read_bytes as f64, 512.0, 16_777_216.0)?;
                within("program_latency", one.program_latency, 0.0, 1.0)?;
                within("program_bytes", one.program_bytes as f64, 512.0, 16_777_216.0)?;
                within("variation", one.variation, 0.0, 1.0)
            }
        }
    }

    /// Whether anything takes time or is cached: an ideal disk answers at once.
    pub(crate) fn limits(&self) -> bool {
        let Model::Flash(one) = self else { return true };
        let times = one.read_latency + one.program_latency + one.command + one.write_latency;
        times > 0.0 || one.link_rate.is_some() || one.write_cache > 0
    }

    /// See the kinds.
    pub fn queue_depth(&self) -> usize {
        match self {
            Model::Spinning(one) => one.queue_depth,
            Model::Flash(one) => one.queue_depth,
        }
    }

    /// See the kinds.
    pub fn write_cache(&self) -> u64 {
        match self {
            Model::Spinning(one) => one.write_cache,
            Model::Flash(one) => one.write_cache,
        }
    }

    /// See the kinds.
    pub fn link_rate(&self) -> Option<f64> {
        match self {
            Model::Spinning(one) => one.link_rate,
            Model::Flash(one) => one.link_rate,
        }
    }

    /// Seconds; see the kinds.
    pub fn command(&self) -> f64 {
        match self {
            Model::Spinning(one) => one.command,
            Model::Flash(one) => one.command,
        }
    }

    /// Time of the electronics for a write into the cache, in seconds.
    pub fn write_latency(&self) -> f64 {
        match self {
            Model::Spinning(one) => one.command,
            Model::Flash(one) => one.write_latency,
        }
    }

    /// Separate places that the cache can keep.
    pub fn write_cache_runs(&self) -> usize {
        match self {
            Model::Spinning(one) => one.write_cache_runs,
            Model::Flash(_) => usize::MAX,
        }
    }

    /// Seconds; see the kinds.
    pub fn overhead(&self) -> f64 {
        match self {
            Model::Spinning(one) => one.overhead,
            Model::Flash(one) => one.overhead,
        }
    }
}

/// Seconds as nanoseconds.
pub(crate) fn nanos(seconds: f64) -> Nanos {
    (seconds * 1e9).round() as Nanos
}
