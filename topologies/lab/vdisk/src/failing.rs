//! A disk that can fail: while it does, all I/O to it is an error.

use crate::counts::Counts;
use crate::mount::Device;
use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A disk, and whether it fails.
pub struct FailingDisk {
    disk: Arc<dyn Device>,
    failed: AtomicBool,
}

impl FailingDisk {
    /// The disk, which does not fail.
    pub fn new(disk: Arc<dyn Device>) -> Self {
        Self { disk, failed: AtomicBool::new(false) }
    }

    /// Fail from now on, or answer again, with all that was answered before.
    pub fn fail(&self, on: bool) {
        self.failed.store(on, Ordering::SeqCst);
    }

    fn fails(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }
}

impl Device for FailingDisk {
    fn name(&self) -> &str {
        self.disk.name()
    }

    fn size(&self) -> u64 {
        self.disk.size()
    }

    fn counts(&self) -> Counts {
        self.disk.counts()
    }

    fn pace(&self, on: bool) {
        self.disk.pace(on);
    }

    fn read(&self, start: u64, bytes: u32, reply: ReplyData) {
        if self.fails() { reply.error(Errno::EIO) } else { self.disk.read(start, bytes, reply) }
    }

    fn write(&self, start: u64, data: &[u8], reply: ReplyWrite) {
        if self.fails() { reply.error(Errno::EIO) } else { self.disk.write(start, data, reply) }
    }

    fn flush(&self, reply: ReplyEmpty) {
        if self.fails() { reply.error(Errno::EIO) } else { self.disk.flush(reply) }
    }

    fn discard(&self, start: u64, bytes: u64, reply: ReplyEmpty) {
        if self.fails() { reply.error(Errno::EIO) } else { self.disk.discard(start, bytes, reply) }
    }
}
