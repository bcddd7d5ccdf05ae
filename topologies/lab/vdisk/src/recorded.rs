//! A disk of a journal, as the file system serves it: it takes no time.

use crate::counts::Counts;
use crate::drive::Op;
use crate::journal::Journal;
use crate::mount::Device;
use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// One disk.
pub struct RecordedDisk {
    name: String,
    size: u64,
    /// Its number in the journal.
    number: usize,
    journal: Arc<Journal>,
    counts: Mutex<Counts>,
}

impl RecordedDisk {
    /// The disk of a number, with its size in bytes.
    pub fn new(name: String, size: u64, number: usize, journal: Arc<Journal>) -> Self {
        let counts = Mutex::new(Counts { name: name.clone(), ..Counts::default() });
        Self { name, size, number, journal, counts }
    }

    fn answered(&self, op: Op, bytes: usize, since: Instant) {
        let waited = since.elapsed().as_nanos() as u64;
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.answered(op, bytes as u64, waited);
    }
}

impl Device for RecordedDisk {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn counts(&self) -> Counts {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn pace(&self, _: bool) {}

    fn read(&self, start: u64, bytes: u32, reply: ReplyData) {
        let since = Instant::now();
        let Ok(data) = self.journal.read(self.number, start, bytes as usize) else {
            return reply.error(Errno::EIO);
        };
        self.answered(Op::Read, data.len(), since);
        reply.data(&data);
    }

    fn write(&self, start: u64, data: &[u8], reply: ReplyWrite) {
        let since = Instant::now();
        if self.journal.write(self.number, start, data).is_err() {
            return reply.error(Errno::EIO);
        }
        self.answered(Op::Write, data.len(), since);
        reply.written(data.len() as u32);
    }

    fn flush(&self, reply: ReplyEmpty) {
        let since = Instant::now();
        if self.journal.flush(self.number).is_err() {
            return reply.error(Errno::EIO);
        }
        self.answered(Op::Flush, 0, since);
        reply.ok();
    }

    fn discard(&self, start: u64, bytes: u64, reply: ReplyEmpty) {
        match self.journal.discard(self.number, start, bytes) {
            Ok(true) => reply.ok(),
            // The kernel writes zeros instead where it has to.
            Ok(false) => reply.error(Errno::EOPNOTSUPP),
            Err(_) => reply.error(Errno::EIO),
        }
    }
}
