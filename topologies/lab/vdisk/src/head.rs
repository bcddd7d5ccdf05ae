//! The head of a spinning disk: which request it serves next, and how long that takes.

use crate::dirty::{BLOCK, Dirty, Extent};
use crate::drive::{Link, MOST_STAGED, Op, Request};
use crate::model::{Nanos, Spinning, nanos};
use crate::platter::Platter;

/// What the head does next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// The request with this index.
    Request(usize),
    /// Write blocks of the cache.
    Destage(Extent),
}

/// Where the disk has read on after a read: the place, and when the head was there.
#[derive(Clone, Copy)]
struct ReadOn {
    place: u64,
    at: Nanos,
}

/// One head: one request at a time.
pub(crate) struct Head {
    platter: Platter,
    /// Behind the last byte that it served, as the disk counts.
    place: u64,
    /// The same place on the platters.
    above: u64,
    free: Nanos,
    working: bool,
    read_on: Option<ReadOn>,
    read_ahead: u64,
    longest_wait: Nanos,
    /// How long it has worked.
    pub(crate) busy: Nanos,
}

impl Head {
    /// A head at the first byte.
    pub fn new(model: &Spinning, size: u64) -> Self {
        Self {
            platter: Platter::new(model, size),
            place: 0,
            above: 0,
            free: 0,
            working: false,
            read_on: None,
            read_ahead: model.read_ahead,
            longest_wait: nanos(model.longest_wait),
            busy: 0,
        }
    }

    /// Whether it is at work.
    pub(crate) fn is_busy(&self) -> bool {
        self.working
    }

    /// Its work is done.
    pub(crate) fn rest(&mut self) {
        self.working = false;
    }

    /// Choose what has the shortest way, as drives with native command queueing do: shortest
    /// positioning time first (Jacobson and Wilkes, "Disk scheduling algorithms based on rotational
    /// position", HP Laboratories 1991; Worthington, Ganger and Patt, SIGMETRICS 1994), but what
    /// has waited for `longest_wait` at once. The cache is written when nothing else is known, and
    /// on a par with requests while a flush or a write waits for it.
    #[allow(clippy::too_many_arguments)] // all are parts of the one drive that calls it
    pub(crate) fn choose(
        &self,
        at: Nanos,
        command: Nanos,
        known: &[Request],
        dirty: &Dirty,
        urgent: bool,
        flush: Option<Nanos>,
        depth: usize,
    ) -> Option<Work> {
        let at = at.max(self.free);
        let late = |since: Nanos| since + self.longest_wait <= at;
        let destages = !dirty.is_empty() && (urgent || known.is_empty());
        let overdue = destages && flush.is_some_and(late);
        if !overdue {
            if let Some(first) = known.first().filter(|request| late(request.arrived)) {
                debug_assert!(first.arrived <= at);
                return Some(Work::Request(0));
            }
        }
        let requests = known.iter().enumerate().take(if overdue { 0 } else { usize::MAX });
        let best = requests
            .map(|(index, request)| (self.way(at, command, request), Work::Request(index)))
            .min_by_key(|(way, _)| *way);
        if !destages {
            return best.map(|(_, work)| work);
        }
        let here = self.place / BLOCK;
        let run = dirty.runs(here, MOST_STAGED, 1)[0];
        let runs = if run.block == here { vec![run] } else { dirty.runs(here, MOST_STAGED, depth) };
        let cached = runs
            .into_iter()
            .map(|run| (self.reach(at, run.block * BLOCK), Work::Destage(run)))
            .min_by_key(|(way, _)| *way);
        best.into_iter().chain(cached).min_by_key(|(way, _)| *way).map(|(_, work)| work)
    }

    /// Time until the head is where a request begins.
    fn way(&self, at: Nanos, command: Nanos, request: &Request) -> Nanos {
        let begin = at.max(request.arrived + command);
        if self.follows(request) {
            return begin - at;
        }
        begin - at + self.reach(begin, request.start)
    }

    /// How long from `at` until it is above a place of the disk.
    fn reach(&self, at: Nanos, place: u64) -> Nanos {
        self.platter.position(at, self.above, self.platter.on_platter(place))
    }

    fn moved(&mut self, end: u64) {
        self.place = end;
        self.above = self.platter.on_platter(end.saturating_sub(1)) + 1;
    }

    fn follows(&self, request: &Request) -> bool {
        request.op == Op::Read
            && self.read_on.is_some_and(|on| on.place == request.start)
            && self.platter.continues(request.start)
    }

    /// Serve a request from `at` on; returns the end.
    ///
    /// What follows the last read has been read on meanwhile, up to `read_ahead` bytes: it is
    /// there at the rate of the platters, and no sooner than the link carries it.
    pub fn serve(&mut self, at: Nanos, command: Nanos, request: &Request, link: &Link) -> Nanos {
        let begin = at.max(self.free).max(request.arrived + command);
        let sent = begin + link.time(request.bytes);
        let read = match self.read_on {
            Some(on) if self.follows(request) => {
                let place = self.platter.on_platter(request.start);
                let ahead = self.platter.transfer(place, self.read_ahead);
                let there = on.at.max(begin.saturating_sub(ahead));
                there + self.platter.pass(there, request.start, request.bytes)
            }
            _ => {
                let there = begin + self.reach(begin, request.start);
                there + self.platter.pass(there, request.start, request.bytes)
            }
        };
        let end = read.max(sent);
        self.moved(request.start + request.bytes);
        self.read_on = (request.op == Op::Read).then_some(ReadOn { place: self.place, at: read });
        self.occupy(begin, end);
        end
    }

    /// Write blocks of the cache from `at` on; returns the end.
    pub fn write(&mut self, at: Nanos, extent: Extent) -> Nanos {
        let (begin, start) = (at.max(self.free), extent.block * BLOCK);
        let there = begin + self.reach(begin, start);
        let end = there + self.platter.pass(there, start, extent.bytes());
        self.moved(start + extent.bytes());
        self.read_on = None;
        self.occupy(begin, end);
        end
    }

    fn occupy(&mut self, begin: Nanos, end: Nanos) {
        self.working = true;
        self.busy += end - begin;
        self.free = end;
    }
}
