//! An I/O thread: waits for its connections, its timer and its commands, and drives its workers.

use crate::recorder::Recorder;
use crate::request::HeadWriter;
use crate::shared::{Command, Shared, lock};
use crate::source::Source;
use crate::sys::{Epoll, Ready, Timer, now_ns};
use crate::worker::{NextStep, Worker};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const BATCH: usize = 128;
const SCRATCH_BYTES: usize = 64 * 1024;
const WAKER: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;

/// What a worker needs from its thread while it is driven.
#[derive(Debug)]
pub struct Context<'a> {
    /// State of all threads.
    pub shared: &'a Shared,
    /// Number of this thread.
    pub thread: usize,
    /// Where new connections are registered.
    pub epoll: &'a Epoll,
    /// Writes heads.
    pub head_writer: &'a mut HeadWriter,
    /// Buffer for received bytes.
    pub scratch: &'a mut [u8],
    /// Recorder of this thread.
    pub recorder: &'a mut Recorder,
    /// Time since 1970 of this batch of events.
    pub now: Duration,
    /// How long a request may take.
    pub timeout_ns: u64,
    /// When the window was opened whose outstanding requests this thread has recorded.
    pub counted_ns: u64,
    /// Slots of workers that are resumed next.
    pub again: &'a mut Vec<usize>,
    slot: usize,
}

impl Context<'_> {
    /// The slot of the driven worker.
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// The epoll token of the connection number `serial` of the driven worker.
    pub fn token(&self, serial: u32) -> u64 {
        (u64::from(serial) << 32) | self.slot as u64
    }
}

/// The state of one I/O thread.
#[derive(Debug)]
pub struct Reactor {
    shared: Arc<Shared>,
    thread: usize,
    epoll: Epoll,
    timer: Timer,
    head_writer: HeadWriter,
    scratch: Vec<u8>,
    workers: Vec<Option<Box<Worker>>>,
    free: Vec<usize>,
    /// Ends of pauses: time, slot, and number of the pause in that slot.
    pauses: BinaryHeap<Reverse<(u64, usize, u64)>>,
    /// Number of the latest pause of each slot; earlier ones are stale.
    pause_numbers: Vec<u64>,
    /// Workers that have more to do now.
    again: Vec<usize>,
    timeout_ns: u64,
    counted_ns: u64,
    sweep_ns: u64,
    next_sweep_ns: u64,
}

impl Reactor {
    /// Makes I/O thread number `thread`.
    /// Errors: Of the system calls that make its descriptors.
    pub fn new(shared: Arc<Shared>, thread: usize) -> io::Result<Self> {
        let epoll = Epoll::new(BATCH)?;
        let timer = Timer::new()?;
        epoll.add_source(shared.threads[thread].waker.as_raw_fd(), WAKER)?;
        epoll.add_source(timer.as_raw_fd(), TIMER)?;
        let timeout_ns = (shared.config.request_timeout_s * 1e9) as u64;
        Ok(Self {
            head_writer: HeadWriter::new(&shared.config, &shared.hosts, &shared.servers),
            thread,
            epoll,
            timer,
            scratch: vec![0; SCRATCH_BYTES],
            workers: Vec::new(),
            free: Vec::new(),
            pauses: BinaryHeap::new(),
            pause_numbers: Vec::new(),
            again: Vec::new(),
            timeout_ns,
            counted_ns: 0,
            sweep_ns: (timeout_ns / 50).clamp(1_000_000, 100_000_000),
            next_sweep_ns: 0,
            shared,
        })
    }

    /// Runs until `Quit`.
    /// Errors: Of `epoll_wait` or `timerfd_settime`, which do not fail on valid descriptors.
    pub fn run(mut self) -> io::Result<()> {
        loop {
            let busy = self.workers.len() > self.free.len();
            let timeout_ms = match (self.again.is_empty(), busy) {
                (false, _) => 0,
                (true, true) => (self.sweep_ns / 1_000_000) as i32,
                (true, false) => -1,
            };
            self.timer.arm(self.pauses.peek().map_or(u64::MAX, |Reverse((at, ..))| *at))?;
            let count = self.epoll.wait(timeout_ms)?;
            let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let shared = Arc::clone(&self.shared);
            let mut recorder = lock(&shared.threads[self.thread].recorder);
            let mut woken = false;
            for index in 0..count {
                let ready = self.epoll.ready(index);
                match ready.token {
                    WAKER => woken = true,
                    TIMER => self.timer.fired(),
                    token => self.connection(&mut recorder, time, token, ready),
                }
            }
            for slot in std::mem::take(&mut self.again) {
                self.drive(&mut recorder, time, slot, Worker::resume);
            }
            self.wake(&mut recorder, time);
            if woken && !self.handle_commands(&mut recorder, time) {
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
            self.drive(recorder, time, slot, |worker, context| worker.ready(context, ready));
        }
    }

    fn drive(
        &mut self,
        recorder: &mut Recorder,
        time: Duration,
        slot: usize,
        act: impl FnOnce(&mut Worker, &mut Context<'_>) -> NextStep,
    ) {
        let Some(mut worker) = self.workers.get_mut(slot).and_then(Option::take) else { return };
        let mut context = Context {
            shared: &self.shared,
            thread: self.thread,
            epoll: &self.epoll,
            head_writer: &mut self.head_writer,
            scratch: &mut self.scratch,
            recorder,
            now: time,
            timeout_ns: self.timeout_ns,
            counted_ns: self.counted_ns,
            again: &mut self.again,
            slot,
        };
        match act(&mut worker, &mut context) {
            NextStep::Wait => {}
            NextStep::Again => self.again.push(slot),
            NextStep::Pause(at_ns) => {
                self.pause_numbers[slot] += 1;
                self.pauses.push(Reverse((at_ns, slot, self.pause_numbers[slot])));
            }
            NextStep::End => {
                if worker.left_after_start() && worker.number().is_some() {
                    self.shared.started.fetch_sub(1, Ordering::SeqCst);
                }
                worker.settle(&mut context);
                self.pause_numbers[slot] += 1;
                self.free.push(slot);
                self.shared.ended();
                return;
            }
        }
        self.workers[slot] = Some(worker);
    }

    /// Resumes workers whose pause is over, and ends requests that time out.
    fn wake(&mut self, recorder: &mut Recorder, time: Duration) {
        let now = now_ns();
        while let Some(&Reverse((at, slot, number))) = self.pauses.peek() {
            if at > now {
                break;
            }
            self.pauses.pop();
            if self.pause_numbers[slot] == number {
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

    /// Executes the queued commands; false: quit.
    fn handle_commands(&mut self, recorder: &mut Recorder, time: Duration) -> bool {
        self.shared.threads[self.thread].waker.clear();
        let commands = std::mem::take(&mut *lock(&self.shared.threads[self.thread].commands));
        for command in commands {
            match command {
                Command::Add(source) => {
                    for helper in self.helpers(&source) {
                        *lock(&self.shared.running) += 1;
                        self.add(recorder, time, helper);
                    }
                    self.add(recorder, time, *source);
                }
                Command::Remove(number) => {
                    let found = self.workers.iter().position(|worker| {
                        worker.as_ref().is_some_and(|w| w.number() == Some(number))
                    });
                    if let Some(slot) = found {
                        self.drive(recorder, time, slot, |worker, _| worker.leave());
                    }
                }
                Command::LeaveAll => self.each(recorder, time, Worker::leave),
                Command::CutAll => {
                    let shared = Arc::clone(&self.shared);
                    self.each(recorder, time, |worker| {
                        worker.leave();
                        shared.cut.fetch_add(u64::from(worker.is_busy()), Ordering::SeqCst);
                        NextStep::End
                    });
                }
                Command::Census => {
                    if let Some((opened_ns, closed_ns)) = self.shared.window.closed() {
                        for worker in self.workers.iter().flatten() {
                            worker.census(recorder, opened_ns, closed_ns);
                        }
                        self.counted_ns = opened_ns;
                    }
                    self.shared.took_census();
                }
                Command::Renew(keys) => self.head_writer.renew(&keys),
                Command::Quit => return false,
            }
        }
        true
    }

    fn add(&mut self, recorder: &mut Recorder, time: Duration, source: Source) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.workers.push(None);
            self.pause_numbers.push(0);
            self.workers.len() - 1
        });
        self.workers[slot] = Some(Box::new(Worker::new(source)));
        self.drive(recorder, time, slot, Worker::resume);
    }

    /// Those that help a worker of a step.
    fn helpers(&self, source: &Source) -> Vec<Source> {
        let at_once =
            self.shared.config.workload.multipart.map_or(1, |multipart| multipart.at_once);
        let crew = source.crew();
        let helper = |_| Some(Source::Helper { crew: crew.clone()?, id: source.id() });
        (1..at_once).filter_map(helper).collect()
    }

    fn each(
        &mut self,
        recorder: &mut Recorder,
        time: Duration,
        act: impl Fn(&mut Worker) -> NextStep,
    ) {
        for slot in 0..self.workers.len() {
            self.drive(recorder, time, slot, |worker, _| act(worker));
        }
    }
}
