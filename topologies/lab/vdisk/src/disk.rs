//! A disk in real time: requests are answered when its drive says so.
//!
//! A request goes to the drive as soon as it arrives, and its data are read or written meanwhile;
//! one thread of each disk waits for the drive's events and answers, another writes what is
//! destaged to the durable file. The way through kernel and FUSE takes `overhead`, half before a
//! request is seen here and half after its answer: arrivals are dated back and answers sent early
//! by that, so that it is a part of the service time.

use crate::counts::{Counts, seconds};
use crate::dirty::Extent;
use crate::drive::{Drive, Event, Op, Request};
use crate::model::{Model, Nanos, nanos};
use crate::mount::Device;
use crate::store::Store;
use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Destages under way to the file at most, each up to 1 MiB: the memory they keep.
const MOST_DESTAGES: usize = 64;
/// Bytes of all requests of a disk in flight at most. A loop device has 128 requests of up to some
/// MiB.
const MOST_HELD_BYTES: u64 = 512 << 20;
/// How late the kernel ends a wait is learnt, but no more than this.
const MOST_LATE: Nanos = 100_000;
/// The rest of a wait that is spent looking at the clock.
const SPIN: Nanos = 5_000;

enum Answer {
    Data(ReplyData, Vec<u8>),
    Written(ReplyWrite, u32),
    Flushed(ReplyEmpty),
}

impl Answer {
    fn send(self, failed: bool) {
        match (self, failed) {
            (Answer::Data(reply, data), false) => reply.data(&data),
            (Answer::Written(reply, bytes), false) => reply.written(bytes),
            (Answer::Flushed(reply), false) => reply.ok(),
            (Answer::Data(reply, _), true) => reply.error(Errno::EIO),
            (Answer::Written(reply, _), true) => reply.error(Errno::EIO),
            (Answer::Flushed(reply), true) => reply.error(Errno::EIO),
        }
    }
}

/// A request that has not been answered: that needs its data, and its time.
struct Pending {
    op: Op,
    bytes: u64,
    since: Nanos,
    answer: Option<Answer>,
    due: Option<Nanos>,
}

struct State {
    drive: Drive,
    paced: bool,
    pending: HashMap<u64, Pending>,
    held_bytes: u64,
    ids: u64,
    counts: Counts,
    /// What the thread of events waits for; 0 while it is at work.
    armed: Nanos,
}

enum Job {
    Persist(Extent),
    Flushed(u64),
}

/// One disk.
pub struct Disk {
    name: String,
    size: u64,
    store: Store,
    lead: Nanos,
    /// Whether its model takes any time at all.
    limits: bool,
    zero: Instant,
    state: Mutex<State>,
    changed: Condvar,
    jobs: SyncSender<Job>,
    queued: AtomicU64,
    failed: AtomicBool,
}

impl Disk {
    /// A disk over a store, which serves without delay until it is paced.
    /// Errors: When its threads cannot be started.
    pub fn start(name: String, size: u64, model: &Model, store: Store) -> io::Result<Arc<Self>> {
        let (jobs, destages) = sync_channel(MOST_DESTAGES);
        let disk = Arc::new(Self {
            name: name.clone(),
            size,
            store,
            lead: nanos(model.overhead() / 2.0),
            limits: model.limits(),
            zero: Instant::now(),
            state: Mutex::new(State {
                drive: Drive::new(model, size),
                paced: false,
                pending: HashMap::new(),
                held_bytes: 0,
                ids: 0,
                counts: Counts { name, ..Counts::default() },
                armed: 0,
            }),
            changed: Condvar::new(),
            jobs,
            queued: AtomicU64::new(0),
            failed: AtomicBool::new(false),
        });
        let (events, writer) = (disk.clone(), disk.clone());
        std::thread::Builder::new().name("events".to_owned()).spawn(move || events.run())?;
        std::thread::Builder::new()
            .name("destage".to_owned())
            .spawn(move || writer.persist(&destages))?;
        Ok(disk)
    }

    fn now(&self) -> Nanos {
        // Answers are looked for `lead` ahead: times never fall below 0.
        self.zero.elapsed().as_nanos() as Nanos + self.lead
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remember a failure of the file: from then on the disk answers errors.
    fn keep(&self, done: io::Result<()>) {
        if let Err(error) = done {
            if !self.failed.swap(true, Ordering::SeqCst) {
                eprintln!("vdisk: {}: its file: {error}; the disk fails from now on", self.name);
            }
        }
    }

    /// Give a request to the drive.
    fn begin(&self, op: Op, start: u64, bytes: u64) -> Result<Began, Full> {
        let mut state = self.state();
        let since = self.now();
        if !state.paced {
            return Ok(Began { id: None, op, bytes, since });
        }
        if state.held_bytes + bytes > MOST_HELD_BYTES {
            eprintln!("vdisk: {}: more than {MOST_HELD_BYTES} bytes in flight", self.name);
            return Err(Full);
        }
        state.held_bytes += bytes;
        state.ids += 1;
        let id = state.ids;
        state.pending.insert(id, Pending { op, bytes, since, answer: None, due: None });
        let arrived = since - self.lead;
        state.drive.arrive(Request { id, op, start, bytes, arrived });
        if state.drive.next().is_some_and(|next| next < state.armed) {
            state.armed = 0;
            self.changed.notify_one();
        }
        Ok(Began { id: Some(id), op, bytes, since })
    }

    /// The data of a request are there: answer, if its time has come.
    fn ready(&self, began: &Began, answer: Answer) {
        let mut state = self.state();
        let Some(id) = began.id else {
            let now = self.now();
            state.counts.answered(began.op, began.bytes, now - began.since);
            drop(state);
            return answer.send(self.failed.load(Ordering::SeqCst));
        };
        let pending = state.pending.get_mut(&id).expect("only its answer removes it");
        pending.answer = Some(answer);
        if pending.due.is_none() {
            return;
        }
        let answers = self.answered(&mut state, id);
        drop(state);
        self.send(&mut answers.into_iter().collect());
    }

    /// Remove a request that has its data and whose time has come.
    fn answered(&self, state: &mut State, id: u64) -> Option<Answer> {
        let pending = state.pending.remove(&id).expect("only its answer removes it");
        let now = self.now();
        let due = pending.due.expect("its time has come");
        state.held_bytes -= pending.bytes;
        state.counts.late_s += seconds(now.saturating_sub(due - self.lead));
        state.counts.answered(pending.op, pending.bytes, now - pending.since);
        pending.answer
    }

    /// Whether a request is a flush of blocks that are not in the file yet.
    fn waits_for_file(&self, state: &State, id: u64) -> bool {
        state.pending[&id].op == Op::Flush && self.queued.load(Ordering::SeqCst) > 0
    }

    fn send(&self, answers: &mut Vec<Answer>) {
        let failed = self.failed.load(Ordering::SeqCst);
        for answer in answers.drain(..) {
            answer.send(failed);
        }
    }

    /// The time of a request has come: its answer, if its data are there.
    fn due(&self, state: &mut State, id: u64, at: Nanos) -> Option<Answer> {
        let pending = state.pending.get_mut(&id).expect("only its answer removes it");
        pending.due = Some(at);
        if pending.answer.is_some() { self.answered(state, id) } else { None }
    }

    /// The thread of events.
    fn run(&self) {
        let (mut events, mut answers, mut jobs) = (Vec::new(), Vec::new(), Vec::new());
        // How late the kernel ends a wait at least: it is asked to end that much earlier.
        let mut late: Nanos = 0;
        let mut state = self.state();
        loop {
            let now = self.now();
            state.drive.advance(now + self.lead, &mut events);
            if !events.is_empty() {
                for event in events.drain(..) {
                    match event {
                        Event::Durable { extent, .. } => {
                            state.counts.destaged(extent);
                            self.queued.fetch_add(1, Ordering::SeqCst);
                            jobs.push(Job::Persist(extent));
                        }
                        Event::Done { id, .. } if self.waits_for_file(&state, id) => {
                            jobs.push(Job::Flushed(id));
                        }
                        Event::Done { id, at } => answers.extend(self.due(&mut state, id, at)),
                    }
                }
                drop(state);
                self.send(&mut answers);
                for job in jobs.drain(..) {
                    // Waits while the file is far behind.
                    self.jobs.send(job).expect("its thread never ends");
                }
                state = self.state();
                continue;
            }
            let Some(due) = state.drive.next() else {
                state.armed = Nanos::MAX;
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.armed = 0;
                continue;
            };
            let wait = (due - self.lead).saturating_sub(now);
            if wait <= SPIN {
                drop(state);
                while self.now() + self.lead < due {
                    std::hint::spin_loop();
                }
                state = self.state();
                continue;
            }
            let asked = wait.saturating_sub(late).max(1);
            state.armed = due;
            let limit = Duration::from_nanos(asked);
            let (held, ended) =
                self.changed.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner);
            state = held;
            state.armed = 0;
            if ended.timed_out() {
                // Waking too early costs more than waking a little late: the estimate follows a
                // shorter delay at once, and a longer one slowly.
                let by = self.now().saturating_sub(now + asked).min(MOST_LATE);
                late = if by < late { by } else { late + (by - late) / 64 };
            }
        }
    }

    /// The thread that writes to the file.
    fn persist(&self, jobs: &Receiver<Job>) {
        for job in jobs {
            match job {
                Job::Persist(extent) => {
                    self.keep(self.store.persist(extent));
                    self.queued.fetch_sub(1, Ordering::SeqCst);
                }
                Job::Flushed(id) => {
                    let mut state = self.state();
                    let answer = self.due(&mut state, id, self.now() + self.lead);
                    drop(state);
                    self.send(&mut answer.into_iter().collect());
                }
            }
        }
    }
}

impl Device for Disk {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn pace(&self, on: bool) {
        let on = on && self.limits;
        let mut state = self.state();
        if state.paced == on {
            return;
        }
        let now = self.now();
        let (mut events, mut answers) = (Vec::new(), Vec::new());
        state.drive.drain(now, &mut events);
        self.keep(self.store.persist_all());
        state.paced = on;
        for event in events {
            match event {
                Event::Durable { extent, .. } => state.counts.destaged(extent),
                Event::Done { id, .. } => answers.extend(self.due(&mut state, id, now + self.lead)),
            }
        }
        drop(state);
        self.send(&mut answers);
    }

    fn counts(&self) -> Counts {
        let state = self.state();
        Counts {
            busy_s: seconds(state.drive.busy()),
            cached_bytes: state.drive.cached_bytes(),
            ..state.counts.clone()
        }
    }

    fn read(&self, start: u64, bytes: u32, reply: ReplyData) {
        let began = self.begin(Op::Read, start, u64::from(bytes));
        let Ok(began) = began else { return reply.error(Errno::ENOMEM) };
        match self.store.read(start, bytes as usize) {
            Ok(data) => self.ready(&began, Answer::Data(reply, data)),
            Err(error) => {
                self.keep(Err(error));
                self.ready(&began, Answer::Data(reply, Vec::new()));
            }
        }
    }

    fn write(&self, start: u64, data: &[u8], reply: ReplyWrite) {
        // Data that the drive caches are there before it can destage them.
        let state = self.state();
        let cached = state.paced && state.drive.caches();
        drop(state);
        if cached {
            self.keep(self.store.cache(start, data));
        }
        let began = self.begin(Op::Write, start, data.len() as u64);
        let Ok(began) = began else { return reply.error(Errno::ENOMEM) };
        if !cached {
            self.keep(self.store.write(start, data));
        } else if began.id.is_none() {
            // The delay was switched off meanwhile, and with it the cache.
            self.keep(self.store.persist(Extent::of(start, data.len() as u64)));
        }
        self.ready(&began, Answer::Written(reply, data.len() as u32));
    }

    fn flush(&self, reply: ReplyEmpty) {
        let Ok(began) = self.begin(Op::Flush, 0, 0) else { return reply.error(Errno::ENOMEM) };
        self.ready(&began, Answer::Flushed(reply));
    }

    fn discard(&self, start: u64, bytes: u64, reply: ReplyEmpty) {
        let mut state = self.state();
        state.drive.discard(start, bytes);
        match self.store.discard(start, bytes) {
            Ok(()) => reply.ok(),
            Err(error) => {
                eprintln!("vdisk: {}: a discard failed: {error}", self.name);
                reply.error(Errno::EIO);
            }
        }
    }
}

/// A request on its way; `id`: None where no drive is asked.
struct Began {
    id: Option<u64>,
    op: Op,
    bytes: u64,
    since: Nanos,
}

/// Too much is in flight.
struct Full;
