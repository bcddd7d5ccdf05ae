//! An I/O thread: waits for its connections, its timer and its orders, and drives its workers.

use crate::recorder::Recorder;
use crate::request::Scribe;
use crate::shared::{Order, Shared, lock};
use crate::sys::{Epoll, Ready, Timer, now_ns};
use crate::worker::{Verdict, Worker};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const BATCH: usize = 128;
const SCRATCH_BYTES: usize = 64 * 1024;
const BELL: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;

/// What a worker needs of its thread while it is driven.
#[derive(Debug)]
pub struct Bench<'a> {
    /// What all threads share.
    pub shared: &'a Shared,
    /// Number of this thread.
    pub desk: usize,
    /// Where new connections are registered.
    pub epoll: &'a Epoll,
    /// Writes heads.
    pub scribe: &'a mut Scribe,
    /// Received bytes.
    pub scratch: &'a mut [u8],
    /// Counts of this thread.
    pub recorder: &'a mut Recorder,
    /// The time of day since 1970, of this batch of events.
    pub now: Duration,
    /// How long a request may take.
    pub timeout_ns: u64,
    /// When the window was opened whose census this thread took last.
    pub counted_ns: u64,
    slot: usize,
}

impl Bench<'_> {
    /// What the connection number `serial` of the worker being driven is registered with.
    #[must_use]
    pub fn token(&self, serial: u32) -> u64 {
        (u64::from(serial) << 32) | self.slot as u64
    }
}

/// The state of one I/O thread.
#[derive(Debug)]
pub struct Reactor {
    shared: Arc<Shared>,
    desk: usize,
    epoll: Epoll,
    timer: Timer,
    scribe: Scribe,
    scratch: Vec<u8>,
    workers: Vec<Option<Box<Worker>>>,
    free: Vec<usize>,
    /// When resting workers go on: time, slot, and which rest of that slot it is.
    rests: BinaryHeap<Reverse<(u64, usize, u64)>>,
    /// Which rest of each slot counts; a worker that ended leaves stale ones behind.
    rest_numbers: Vec<u64>,
    /// Workers that used up their turn.
    again: Vec<usize>,
    timeout_ns: u64,
    counted_ns: u64,
    sweep_ns: u64,
    next_sweep_ns: u64,
}

impl Reactor {
    /// The I/O thread number `desk`, not running yet.
    ///
    /// # Errors
    /// Of the system calls that make its descriptors.
    pub fn new(shared: Arc<Shared>, desk: usize) -> io::Result<Self> {
        let epoll = Epoll::new(BATCH)?;
        let timer = Timer::new()?;
        epoll.add_source(shared.desks[desk].bell.as_raw_fd(), BELL)?;
        epoll.add_source(timer.as_raw_fd(), TIMER)?;
        let timeout_ns = (shared.config.request_timeout_s * 1e9) as u64;
        Ok(Self {
            scribe: Scribe::new(&shared.config, &shared.host, &shared.servers),
            desk,
            epoll,
            timer,
            scratch: vec![0; SCRATCH_BYTES],
            workers: Vec::new(),
            free: Vec::new(),
            rests: BinaryHeap::new(),
            rest_numbers: Vec::new(),
            again: Vec::new(),
            timeout_ns,
            counted_ns: 0,
            sweep_ns: (timeout_ns / 50).clamp(1_000_000, 100_000_000),
            next_sweep_ns: 0,
            shared,
        })
    }

    /// Runs until told to quit.
    ///
    /// # Errors
    /// Of `epoll_wait` or `timerfd_settime`, which do not fail unless the process is out of its
    /// mind.
    pub fn run(mut self) -> io::Result<()> {
        loop {
            let busy = self.workers.len() > self.free.len();
            let timeout_ms = match (self.again.is_empty(), busy) {
                (false, _) => 0,
                (true, true) => (self.sweep_ns / 1_000_000) as i32,
                (true, false) => -1,
            };
            self.timer.arm(self.rests.peek().map_or(u64::MAX, |Reverse((at, ..))| *at))?;
            let count = self.epoll.wait(timeout_ms)?;
            let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let shared = Arc::clone(&self.shared);
            let mut recorder = lock(&shared.desks[self.desk].recorder);
            let mut rung = false;
            for index in 0..count {
                let ready = self.epoll.ready(index);
                match ready.token {
                    BELL => rung = true,
                    TIMER => self.timer.fired(),
                    token => self.connection(&mut recorder, time, token, ready),
                }
            }
            for slot in std::mem::take(&mut self.again) {
                self.drive(&mut recorder, time, slot, Worker::resume);
            }
            self.wake(&mut recorder, time);
            if rung && !self.obey(&mut recorder, time) {
                return Ok(());
            }
        }
    }

    fn connection(&mut self, recorder: &mut Recorder, time: Duration, token: u64, ready: Ready) {
        let slot = (token & 0xffff_ffff) as usize;
        let current = self
            .workers
            .get(slot)
            .and_then(Option::as_ref)
            .is_some_and(|w| w.serial() == (token >> 32) as u32);
        if current {
            self.drive(recorder, time, slot, |worker, bench| worker.ready(bench, ready));
        }
    }

    fn drive(
        &mut self,
        recorder: &mut Recorder,
        time: Duration,
        slot: usize,
        act: impl FnOnce(&mut Worker, &mut Bench<'_>) -> Verdict,
    ) {
        let Some(mut worker) = self.workers.get_mut(slot).and_then(Option::take) else { return };
        let mut bench = Bench {
            shared: &self.shared,
            desk: self.desk,
            epoll: &self.epoll,
            scribe: &mut self.scribe,
            scratch: &mut self.scratch,
            recorder,
            now: time,
            timeout_ns: self.timeout_ns,
            counted_ns: self.counted_ns,
            slot,
        };
        match act(&mut worker, &mut bench) {
            Verdict::Wait => {}
            Verdict::Again => self.again.push(slot),
            Verdict::Rest(at_ns) => {
                self.rest_numbers[slot] += 1;
                self.rests.push(Reverse((at_ns, slot, self.rest_numbers[slot])));
            }
            Verdict::End => {
                if worker.left_after_start() && worker.number().is_some() {
                    self.shared.started.fetch_sub(1, Ordering::SeqCst);
                }
                worker.settle(&mut bench);
                self.rest_numbers[slot] += 1;
                self.free.push(slot);
                self.shared.ended();
                return;
            }
        }
        self.workers[slot] = Some(worker);
    }

    /// Resumes who has rested, and ends requests that take too long.
    fn wake(&mut self, recorder: &mut Recorder, time: Duration) {
        let now = now_ns();
        while let Some(&Reverse((at, slot, number))) = self.rests.peek() {
            if at > now {
                break;
            }
            self.rests.pop();
            if self.rest_numbers[slot] == number {
                self.drive(recorder, time, slot, Worker::resume);
            }
        }
        if now < self.next_sweep_ns {
            return;
        }
        self.next_sweep_ns = now + self.sweep_ns;
        for slot in 0..self.workers.len() {
            if self.workers[slot].as_ref().is_some_and(|worker| worker.deadline_ns() <= now) {
                self.drive(recorder, time, slot, Worker::expire);
            }
        }
    }

    /// Does what was ordered; false: quit.
    fn obey(&mut self, recorder: &mut Recorder, time: Duration) -> bool {
        self.shared.desks[self.desk].bell.silence();
        let orders = std::mem::take(&mut *lock(&self.shared.desks[self.desk].orders));
        for order in orders {
            match order {
                Order::Add(source) => {
                    let slot = self.free.pop().unwrap_or_else(|| {
                        self.workers.push(None);
                        self.rest_numbers.push(0);
                        self.workers.len() - 1
                    });
                    self.workers[slot] = Some(Box::new(Worker::new(*source)));
                    self.drive(recorder, time, slot, Worker::resume);
                }
                Order::Remove(number) => {
                    let found = self.workers.iter().position(|worker| {
                        worker.as_ref().is_some_and(|w| w.number() == Some(number))
                    });
                    if let Some(slot) = found {
                        self.drive(recorder, time, slot, |worker, _| worker.leave());
                    }
                }
                Order::LeaveAll => self.each(recorder, time, Worker::leave),
                Order::CutAll => {
                    let shared = Arc::clone(&self.shared);
                    self.each(recorder, time, |worker| {
                        worker.leave();
                        shared.cut.fetch_add(u64::from(worker.is_busy()), Ordering::SeqCst);
                        Verdict::End
                    });
                }
                Order::Census => {
                    if let Some((opened_ns, closed_ns)) = self.shared.window.closed() {
                        for worker in self.workers.iter().flatten() {
                            worker.census(recorder, opened_ns, closed_ns);
                        }
                        self.counted_ns = opened_ns;
                    }
                    self.shared.took_census();
                }
                Order::Renew(token) => self.scribe.renew(&token),
                Order::Quit => return false,
            }
        }
        true
    }

    fn each(
        &mut self,
        recorder: &mut Recorder,
        time: Duration,
        act: impl Fn(&mut Worker) -> Verdict,
    ) {
        for slot in 0..self.workers.len() {
            self.drive(recorder, time, slot, |worker, _| act(worker));
        }
    }
}
