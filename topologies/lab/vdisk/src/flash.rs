//! The channels of a flash disk: which is free when.

use crate::chance::Chance;
use crate::dirty::{BLOCK, Dirty, Extent};
use crate::drive::{Link, Op, Request};
use crate::model::{Flash, Nanos, nanos};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Channels that work in parallel; pages go to the channel that is free first.
pub(crate) struct Channels {
    free: BinaryHeap<Reverse<Nanos>>,
    chance: Chance,
    read: f64,
    read_bytes: u64,
    program: f64,
    program_bytes: u64,
    variation: f64,
    cursor: u64,
    spent: Nanos,
}

impl Channels {
    /// Idle channels.
    pub fn new(model: &Flash) -> Self {
        Self {
            free: (0..model.channels).map(|_| Reverse(0)).collect(),
            chance: Chance::new(model.seed),
            read: model.read_latency,
            read_bytes: model.read_bytes,
            program: model.program_latency,
            program_bytes: model.program_bytes,
            variation: model.variation,
            cursor: 0,
            spent: 0,
        }
    }

    /// How long a channel has worked, on average.
    pub(crate) fn busy(&self) -> Nanos {
        self.spent / self.free.len() as u64
    }

    /// Occupy the channel that is free first, from `at` at the earliest; returns begin and end.
    fn occupy(&mut self, at: Nanos, mean: f64) -> (Nanos, Nanos) {
        let Reverse(free) = self.free.pop().expect("there is a channel");
        let share = 1.0 + self.variation * (2.0 * self.chance.share() - 1.0);
        let took = nanos(mean * share);
        let begin = free.max(at);
        self.free.push(Reverse(begin + took));
        self.spent += took;
        (begin, begin + took)
    }

    /// Read or, where there is no cache, write pages from `begin` on; returns the end.
    ///
    /// Pages of a read cross the link one after the other as they are read.
    pub fn serve(&mut self, begin: Nanos, request: &Request, link: &mut Link) -> Nanos {
        let writes = request.op == Op::Write;
        let (mean, page) =
            if writes { (self.program, self.program_bytes) } else { (self.read, self.read_bytes) };
        let begin = if writes { link.send(begin, request.bytes) } else { begin };
        let mut ends = (0..request.bytes.div_ceil(page).max(1)).map(|_| self.occupy(begin, mean).1);
        let first = ends.next().expect("at least one page");
        let (first, last) = ends.fold((first, first), |(a, b), end| (a.min(end), b.max(end)));
        if writes {
            return last;
        }
        let rest = request.bytes.min(page);
        link.send(first, request.bytes).max(last + link.time(rest))
    }

    /// Begin to program blocks of the cache, where a channel is free at `at`, or first in turn for
    /// one if a flush or a write waits for it. None: there is nothing to do, or no channel.
    pub(crate) fn destage(
        &mut self,
        at: Nanos,
        dirty: &Dirty,
        urgent: bool,
    ) -> Option<(Extent, Nanos)> {
        let &Reverse(free) = self.free.peek().expect("there is a channel");
        // One program a channel at most is in turn: `free` is then no later than one program.
        let soon = if urgent { at + nanos(self.program) / 2 } else { at };
        if dirty.is_empty() || free > soon {
            return None;
        }
        let extent = dirty.runs(self.cursor, (self.program_bytes / BLOCK).max(1), 1)[0];
        self.cursor = extent.block + extent.count;
        let (_, end) = self.occupy(at, self.program);
        Some((extent, end))
    }
}
