//! A disk in its own time: requests arrive, and events say when each is done and which cached
//! blocks have reached the media. It does no I/O and reads no clock, so that the same requests at
//! the same times always take the same time.

use crate::dirty::{Dirty, Extent, Staged};
use crate::flash::Channels;
use crate::head::Head;
use crate::model::{Model, Nanos, nanos};
use std::collections::{BTreeMap, VecDeque};

/// What is asked of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Read bytes.
    Read,
    /// Write bytes: into the cache, if the disk has one.
    Write,
    /// Empty the cache of everything that was written before.
    Flush,
}

/// A request; places and lengths in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// What its event is known by.
    pub id: u64,
    /// What is asked.
    pub op: Op,
    /// The first byte.
    pub start: u64,
    /// How many bytes.
    pub bytes: u64,
    /// When it reached the disk.
    pub arrived: Nanos,
}

/// Something that has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The disk answers a request.
    Done {
        /// The request.
        id: u64,
        /// When.
        at: Nanos,
    },
    /// Blocks of the cache are on the media.
    Durable {
        /// The blocks.
        extent: Extent,
        /// When.
        at: Nanos,
    },
}

enum Timer {
    Reply { id: u64, media: bool },
    Staged(Staged),
    HeadFree,
}

/// Timers in the order of their times.
#[derive(Default)]
pub(crate) struct Timers {
    due: BTreeMap<(Nanos, u64), Timer>,
    count: u64,
}

impl Timers {
    fn add(&mut self, at: Nanos, timer: Timer) {
        self.count += 1;
        self.due.insert((at, self.count), timer);
    }
}

/// The way between host and disk, one transfer at a time.
pub(crate) struct Link {
    rate: Option<f64>,
    free: Nanos,
}

impl Link {
    /// The time that so many bytes take.
    pub fn time(&self, bytes: u64) -> Nanos {
        self.rate.map_or(0, |rate| nanos(bytes as f64 / rate))
    }

    /// Send bytes from `at` on; returns the end.
    pub(crate) fn send(&mut self, at: Nanos, bytes: u64) -> Nanos {
        self.free = self.free.max(at) + self.time(bytes);
        self.free
    }
}

enum Media {
    Head(Head),
    Flash(Channels),
}

struct Flush {
    id: u64,
    epoch: u64,
    arrived: Nanos,
}

/// A disk.
pub struct Drive {
    media: Media,
    link: Link,
    command: Nanos,
    write_latency: Nanos,
    cache: u64,
    runs: usize,
    depth: usize,
    dirty: Dirty,
    timers: Timers,
    /// Requests for the media that the disk knows of, in the order of their arrival ...
    known: Vec<Request>,
    /// ... and those that wait for one of its places.
    host: VecDeque<Request>,
    /// How many are known or in service.
    active: usize,
    /// Writes that wait for room in the cache.
    waiting: VecDeque<Request>,
    flushes: Vec<Flush>,
}

impl Drive {
    /// A disk of `size` bytes at time 0.
    pub fn new(model: &Model, size: u64) -> Self {
        let media = match model {
            Model::Spinning(one) => Media::Head(Head::new(one, size)),
            Model::Flash(one) => Media::Flash(Channels::new(one)),
        };
        Self {
            media,
            link: Link { rate: model.link_rate(), free: 0 },
            command: nanos(model.command()),
            write_latency: nanos(model.write_latency()),
            cache: model.write_cache(),
            runs: model.write_cache_runs(),
            depth: model.queue_depth(),
            dirty: Dirty::default(),
            timers: Timers::default(),
            known: Vec::new(),
            host: VecDeque::new(),
            active: 0,
            waiting: VecDeque::new(),
            flushes: Vec::new(),
        }
    }

    /// Whether writes go into a volatile cache.
    pub(crate) fn caches(&self) -> bool {
        self.cache > 0
    }

    /// Bytes in its cache.
    pub fn cached_bytes(&self) -> u64 {
        self.dirty.bytes()
    }

    /// How long the media have worked: the head, or the mean of all channels.
    pub(crate) fn busy(&self) -> Nanos {
        match &self.media {
            Media::Head(head) => head.busy,
            Media::Flash(channels) => channels.busy(),
        }
    }

    /// When something happens next, if nothing arrives.
    pub fn next(&self) -> Option<Nanos> {
        self.timers.due.first_key_value().map(|(&(at, _), _)| at)
    }

    /// Take a request; `advance` tells what becomes of it.
    pub fn arrive(&mut self, request: Request) {
        let at = request.arrived;
        match request.op {
            Op::Flush => {
                let epoch = self.dirty.flush();
                self.flushes.push(Flush { id: request.id, epoch, arrived: at });
                self.answer_flushes(at);
                self.kick(at);
            }
            Op::Write if self.caches() => {
                self.waiting.push_back(request);
                self.admit(at);
                self.kick(at);
            }
            Op::Read if self.dirty.has(Extent::of(request.start, request.bytes)) => {
                let end = self.link.send(at + self.command, request.bytes);
                self.timers.add(end, Timer::Reply { id: request.id, media: false });
            }
            Op::Read | Op::Write => {
                self.host.push_back(request);
                self.know(at);
            }
        }
    }

    /// Forget cached blocks that were discarded.
    pub fn discard(&mut self, start: u64, bytes: u64) {
        // Blocks that are touched in part keep the rest.
        let first = start.div_ceil(crate::dirty::BLOCK);
        let end = (start + bytes) / crate::dirty::BLOCK;
        if end > first {
            self.dirty.discard(Extent { block: first, count: end - first });
        }
    }

    /// All that happens up to `now`, in order.
    pub fn advance(&mut self, now: Nanos, events: &mut Vec<Event>) {
        while let Some(entry) = self.timers.due.first_entry() {
            let (at, _) = *entry.key();
            if at > now {
                break;
            }
            match entry.remove() {
                Timer::Reply { id, media } => {
                    events.push(Event::Done { id, at });
                    if media {
                        self.active -= 1;
                        self.know(at);
                    }
                }
                Timer::HeadFree => {
                    if let Media::Head(head) = &mut self.media {
                        head.rest();
                    }
                    self.kick(at);
                }
                Timer::Staged(staged) => {
                    if let Media::Head(head) = &mut self.media {
                        head.rest();
                    }
                    self.dirty.done(&staged);
                    events.push(Event::Durable { extent: staged.extent, at });
                    self.answer_flushes(at);
                    self.admit(at);
                    self.kick(at);
                }
            }
        }
    }

    /// Answer all requests and empty the cache at once: the disk is idle afterwards.
    pub fn drain(&mut self, now: Nanos, events: &mut Vec<Event>) {
        for flush in self.flushes.drain(..) {
            self.timers.add(Nanos::MAX, Timer::Reply { id: flush.id, media: false });
        }
        for request in self.waiting.drain(..) {
            self.timers.add(Nanos::MAX, Timer::Reply { id: request.id, media: false });
        }
        for request in self.known.drain(..).chain(self.host.drain(..)) {
            self.timers.add(Nanos::MAX, Timer::Reply { id: request.id, media: false });
        }
        let mut answered = Vec::new();
        for timer in std::mem::take(&mut self.timers.due).into_values() {
            match timer {
                Timer::Reply { id, .. } => answered.push(id),
                Timer::Staged(staged) => {
                    self.dirty.done(&staged);
                    events.push(Event::Durable { extent: staged.extent, at: now });
                }
                Timer::HeadFree => {}
            }
        }
        self.active = 0;
        if let Media::Head(head) = &mut self.media {
            head.rest();
        }
        for extent in self.dirty.runs(0, MOST_STAGED, usize::MAX) {
            let staged = self.dirty.stage(extent);
            self.dirty.done(&staged);
            events.push(Event::Durable { extent, at: now });
        }
        // Flushes are among them: what they wait for is durable by now.
        events.extend(answered.into_iter().map(|id| Event::Done { id, at: now }));
    }

    /// Move requests for the media to the disk, as many as it has places for.
    fn know(&mut self, at: Nanos) {
        while self.active < self.depth {
            let Some(request) = self.host.pop_front() else { break };
            self.active += 1;
            self.known.push(request);
        }
        self.kick(at);
    }

    /// Take writes into the cache, in their order, while it has room.
    fn admit(&mut self, at: Nanos) {
        while let Some(&request) = self.waiting.front() {
            let extent = Extent::of(request.start, request.bytes);
            let room = self.dirty.room(extent);
            let full = self.dirty.bytes() + room > self.cache || self.dirty.places() >= self.runs;
            if full && room > 0 && self.dirty.bytes() > 0 {
                break;
            }
            self.waiting.pop_front();
            self.dirty.add(extent);
            let begin = (request.arrived + self.write_latency).max(at);
            let end = self.link.send(begin, request.bytes);
            self.timers.add(end, Timer::Reply { id: request.id, media: false });
        }
    }

    fn answer_flushes(&mut self, at: Nanos) {
        let (dirty, timers, command) = (&self.dirty, &mut self.timers, self.command);
        self.flushes.retain(|flush| {
            let durable = dirty.is_durable(flush.epoch);
            if durable {
                let end = at.max(flush.arrived) + command;
                timers.add(end, Timer::Reply { id: flush.id, media: false });
            }
            !durable
        });
    }

    /// Give the media work, if they can take some.
    fn kick(&mut self, at: Nanos) {
        let urgent = !self.waiting.is_empty() || !self.flushes.is_empty();
        let command = self.command;
        match &mut self.media {
            Media::Head(head) => {
                if head.is_busy() {
                    return;
                }
                let waits = self.flushes.first().map(|flush| flush.arrived);
                let Some(work) =
                    head.choose(at, command, &self.known, &self.dirty, urgent, waits, self.depth)
                else {
                    return;
                };
                match work {
                    crate::head::Work::Request(index) => {
                        let request = self.known.remove(index);
                        let end = head.serve(at, command, &request, &self.link);
                        self.timers.add(end, Timer::Reply { id: request.id, media: true });
                        self.timers.add(end, Timer::HeadFree);
                    }
                    crate::head::Work::Destage(extent) => {
                        let staged = self.dirty.stage(extent);
                        let end = head.write(at, extent);
                        self.timers.add(end, Timer::Staged(staged));
                    }
                }
            }
            Media::Flash(channels) => {
                for request in self.known.drain(..) {
                    let begin = at.max(request.arrived + command);
                    let end = channels.serve(begin, &request, &mut self.link);
                    self.timers.add(end, Timer::Reply { id: request.id, media: true });
                }
                while let Some((extent, end)) = channels.destage(at, &self.dirty, urgent) {
                    let staged = self.dirty.stage(extent);
                    self.timers.add(end, Timer::Staged(staged));
                }
            }
        }
    }
}

/// Blocks that are destaged at once at most: 1 MiB, which a head takes some 8 ms for.
pub(crate) const MOST_STAGED: u64 = 256;
