//! The engine: one target, one workload, some workers on a few I/O threads.

use crate::config::Config;
use crate::job::{Items, Job};
use crate::picker::Picker;
use crate::reactor::Reactor;
use crate::recorder::Recorder;
use crate::shared::{Order, Shared, lock};
use crate::shown::{ShownSecond, ShownTally};
use crate::source::{Source, Step};
use crate::sys::now_ns;
use crate::workload::{Operation, Whose};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// What `progress` says.
#[derive(Debug, Serialize)]
pub struct Progress {
    running: u64,
    exhausted: u64,
    done: u64,
    failed: u64,
    bytes: u64,
    errors: BTreeMap<String, u64>,
    last_error: Option<String>,
}

/// What `snapshot` says.
#[derive(Debug, Serialize)]
pub struct Snapshot {
    tallies: Vec<ShownTally>,
    seconds: Vec<ShownSecond>,
    window_s: f64,
    begun: Option<u64>,
    behind_us: Option<u64>,
}

/// An engine. Dropping it cuts off its workers and ends its threads.
#[derive(Debug)]
pub struct Engine {
    shared: Arc<Shared>,
    workload: Arc<crate::workload::Workload>,
    threads: Vec<JoinHandle<()>>,
    next_desk: AtomicUsize,
    /// On which desk each step worker is.
    desks: Mutex<BTreeMap<u64, usize>>,
    /// When the first worker of a step was added: time 0 of a constant rate.
    origin_ns: Mutex<Option<u64>>,
    total: Mutex<Recorder>,
}

impl Engine {
    /// An engine of a config; its threads run, and wait.
    ///
    /// # Errors
    /// What of the config cannot be used, or what the system refused, in words.
    pub fn new(config: Config) -> Result<Self, String> {
        let workload = Arc::new(config.workload.clone());
        let shared = Arc::new(Shared::new(config)?);
        let total = Mutex::new(Recorder::new(workload.operations.keys().copied()));
        let mut engine = Self {
            shared,
            workload,
            threads: Vec::new(),
            next_desk: AtomicUsize::new(0),
            desks: Mutex::new(BTreeMap::new()),
            origin_ns: Mutex::new(None),
            total,
        };
        for desk in 0..engine.shared.desks.len() {
            let reactor = Reactor::new(Arc::clone(&engine.shared), desk)
                .map_err(|error| format!("I/O thread: {error}"))?;
            let thread = std::thread::Builder::new()
                .name(format!("engine-io-{desk}"))
                .spawn(move || {
                    reactor.run().expect("epoll_wait and timerfd_settime of own descriptors")
                })
                .map_err(|error| format!("I/O thread: {error}"))?;
            engine.threads.push(thread);
        }
        Ok(engine)
    }

    fn add(&self, source: Source) -> usize {
        let desk = self.next_desk.fetch_add(1, Ordering::SeqCst) % self.shared.desks.len();
        *lock(&self.shared.running) += 1;
        self.shared.order(desk, Order::Add(Box::new(source)));
        desk
    }

    fn start(&self, operation: Operation, items: Items, parallel: u64) {
        let job = Arc::new(Job::new(operation, items, Arc::clone(&self.shared)));
        for _ in 0..parallel {
            self.add(Source::Job { job: Arc::clone(&job), item: None });
        }
    }

    /// Starts writing prepared objects `first`, `first + stride`, ... (`count` of them).
    ///
    /// # Errors
    /// That the workload has no such objects.
    pub fn prepare(
        &self,
        first: u64,
        count: u64,
        stride: u64,
        parallel: u64,
    ) -> Result<(), String> {
        if count == 0 {
            return Ok(());
        }
        let last = (count - 1).checked_mul(stride).and_then(|span| span.checked_add(first));
        if stride == 0 || parallel == 0 || last.is_none_or(|last| last >= self.workload.count()) {
            return Err(format!(
                "no {count} objects from {first} by {stride} with {parallel} workers among {}",
                self.workload.count()
            ));
        }
        self.start(Operation::Write, Items::Prepared { first, stride, count }, parallel.min(count));
        Ok(())
    }

    /// Starts deleting `written` or `objects`.
    ///
    /// # Errors
    /// That `what` is neither.
    pub fn delete(&self, what: &str, parallel: u64) -> Result<(), String> {
        let items = match what {
            "objects" => Items::Prepared { first: 0, stride: 1, count: self.workload.count() },
            "written" => Items::Written(std::mem::take(&mut *lock(&self.shared.ledger))),
            _ => return Err(format!("delete: {what:?} is neither \"written\" nor \"objects\"")),
        };
        let count = match &items {
            Items::Prepared { count, .. } => *count,
            Items::Listed(numbers) => numbers.len() as u64,
            Items::Written(written) => written.len() as u64,
        };
        self.start(Operation::Delete, items, parallel.clamp(1, 4096).min(count));
        Ok(())
    }

    /// Starts deleting prepared objects by their numbers.
    ///
    /// # Errors
    /// That the workload has no such objects.
    pub fn delete_listed(&self, numbers: Vec<u64>, parallel: u64) -> Result<(), String> {
        let count = self.workload.count();
        if let Some(strange) = numbers.iter().find(|&&number| number >= count) {
            return Err(format!("no object {strange} among {count}"));
        }
        let parallel = parallel.clamp(1, 4096).min(numbers.len() as u64);
        self.start(Operation::Delete, Items::Listed(numbers), parallel);
        Ok(())
    }

    /// Starts worker number `index` of `of`.
    ///
    /// # Errors
    /// That there is no such number, or that it runs already.
    pub fn add_worker(&self, index: u64, of: u64, repeat: u64) -> Result<(), String> {
        if index >= of {
            return Err(format!("worker {index} of {of}: numbers begin at 0"));
        }
        let mut desks = lock(&self.desks);
        if desks.contains_key(&index) {
            return Err(format!("worker {index} was added twice"));
        }
        let whose = Whose { workers: of, repeat, worker: index };
        let picker = Picker::new(Arc::clone(&self.workload), self.shared.config.seed, whose);
        let pace = self.workload.rate_per_s.map(|rate| {
            let now = now_ns();
            let origin = *lock(&self.origin_ns).get_or_insert(now) as f64;
            let apart = of as f64 / rate * 1e9;
            let first = origin + index as f64 / rate * 1e9;
            // A worker that is added late begins with its next turn, not with those it missed.
            let missed = ((now as f64 - first) / apart).ceil().max(0.0);
            (first + missed * apart, apart)
        });
        desks.insert(index, self.add(Source::Step(Step::new(picker, pace, &self.shared.config))));
        Ok(())
    }

    /// Lets a worker finish and end; nothing happens when it is not there.
    pub fn remove_worker(&self, index: u64) {
        if let Some(desk) = lock(&self.desks).remove(&index) {
            self.shared.order(desk, Order::Remove(index));
        }
    }

    /// How many workers have finished their first request.
    #[must_use]
    pub fn started(&self) -> u64 {
        self.shared.started.load(Ordering::SeqCst)
    }

    /// Sends another token of Swift's with every request from now on; those in hand have the one
    /// before.
    ///
    /// # Errors
    /// That it cannot stand in a header.
    pub fn renew_token(&self, token: &str) -> Result<(), String> {
        if token.contains(char::is_control) {
            return Err("a token may not hold control characters".into());
        }
        for desk in 0..self.shared.desks.len() {
            self.shared.order(desk, Order::Renew(token.into()));
        }
        Ok(())
    }

    /// Opens the window, empty.
    pub fn open_window(&self) {
        self.shared.window.forget();
        self.collect();
        *lock(&self.total) = self.fresh();
        self.shared.window.open();
    }

    /// Closes the window, and has each thread record what is outstanding: they obey within one
    /// batch of events.
    pub fn close_window(&self) {
        if !self.shared.window.close() {
            return;
        }
        *lock(&self.shared.uncounted) = self.shared.desks.len();
        (0..self.shared.desks.len()).for_each(|desk| self.shared.order(desk, Order::Census));
        // One that died counts nothing more: whoever asks for progress next hears of it.
        while !self.shared.wait_counted(Duration::from_millis(100)) && self.alive().is_ok() {}
    }

    fn fresh(&self) -> Recorder {
        Recorder::new(self.workload.operations.keys().copied())
    }

    /// Adds what the threads have counted to the total. They only wait for a pointer to be swapped.
    fn collect(&self) {
        let mut total = lock(&self.total);
        for desk in &self.shared.desks {
            let mut counted = self.fresh();
            std::mem::swap(&mut *lock(&desk.recorder), &mut counted);
            total.merge(&counted);
        }
    }

    /// What was recorded in the window so far.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let window_s = self.shared.window.length_s();
        self.collect();
        let total = lock(&self.total);
        let (tallies, seconds) = total.show();
        let pace = self.workload.rate_per_s.map(|_| total.pace());
        let (begun, behind_us) =
            (pace.map(|(begun, _)| begun), pace.map(|(_, behind_us)| behind_us));
        Snapshot { tallies, seconds, window_s, begun, behind_us }
    }

    /// An I/O thread ends before its engine only when it panicked, and said so on stderr.
    fn alive(&self) -> Result<(), String> {
        if self.threads.iter().any(JoinHandle::is_finished) {
            return Err("an I/O thread of the engine died: see stderr".into());
        }
        Ok(())
    }

    /// What was done since the engine was made.
    ///
    /// # Errors
    /// That an I/O thread died.
    pub fn progress(&self) -> Result<Progress, String> {
        self.alive()?;
        let running = *lock(&self.shared.running);
        let errors = lock(&self.shared.errors);
        let sum = |pick: fn(&crate::shared::Desk) -> u64| self.shared.desks.iter().map(pick).sum();
        Ok(Progress {
            running,
            exhausted: self.shared.exhausted.load(Ordering::SeqCst),
            done: sum(|desk| desk.done.load(Ordering::Relaxed)),
            failed: sum(|desk| desk.failed.load(Ordering::Relaxed)),
            bytes: sum(|desk| desk.bytes.load(Ordering::Relaxed)),
            errors: errors.0.iter().map(|(class, count)| (class.to_string(), *count)).collect(),
            last_error: errors.1.clone(),
        })
    }

    /// Ends all workers; gives how many had to be cut off with a request in hand after `timeout`.
    ///
    /// # Errors
    /// That an I/O thread died.
    pub fn stop(&self, timeout: Duration) -> Result<u64, String> {
        let all = |order: fn() -> Order| {
            (0..self.shared.desks.len()).for_each(|desk| self.shared.order(desk, order()))
        };
        all(|| Order::LeaveAll);
        let before = self.shared.cut.load(Ordering::SeqCst);
        if !self.shared.wait_idle(timeout) {
            all(|| Order::CutAll);
            // Every thread obeys within one batch of events.
            while !self.shared.wait_idle(Duration::from_millis(100)) {
                self.alive()?;
            }
        }
        lock(&self.desks).clear();
        *lock(&self.origin_ns) = None;
        self.shared.started.store(0, Ordering::SeqCst);
        Ok(self.shared.cut.load(Ordering::SeqCst) - before)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        for desk in 0..self.threads.len() {
            self.shared.order(desk, Order::CutAll);
            self.shared.order(desk, Order::Quit);
        }
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so on stderr; there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
