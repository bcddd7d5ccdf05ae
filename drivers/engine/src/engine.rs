//! The engine: one target, one workload, some workers on a few I/O threads.

use crate::config::Config;
use crate::endpoints::EndpointRecord;
use crate::job::{Items, Job};
use crate::picker::Picker;
use crate::reactor::Reactor;
use crate::recorder::Recorder;
use crate::records::{SecondRecord, TallyRecord};
use crate::shared::{Command, Shared, lock};
use crate::sign::keys::Keys;
use crate::source::{Source, Step};
use crate::sys::now_ns;
use crate::workload::{Operation, WorkerId};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Result of `progress`.
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

/// Result of `snapshot`.
#[derive(Debug, Serialize)]
pub struct Snapshot {
    tallies: Vec<TallyRecord>,
    seconds: Vec<SecondRecord>,
    window_s: f64,
    begun: Option<u64>,
    behind_us: Option<u64>,
    connections: u64,
    stall_us: u64,
    endpoints: Vec<EndpointRecord>,
}

/// An engine. Dropping it aborts its workers and ends its threads.
#[derive(Debug)]
pub struct Engine {
    shared: Arc<Shared>,
    workload: Arc<crate::workload::Workload>,
    threads: Vec<JoinHandle<()>>,
    next_thread: AtomicUsize,
    /// The I/O thread of each step worker.
    placement: Mutex<BTreeMap<u64, usize>>,
    /// When the first worker of a step was added: time 0 of a constant rate.
    origin_ns: Mutex<Option<u64>>,
    total: Mutex<Recorder>,
}

impl Engine {
    /// Starts the threads of an engine.
    /// Errors: The config cannot be used, or the system refused a resource.
    pub fn new(config: Config) -> Result<Self, String> {
        let workload = Arc::new(config.workload.clone());
        let shared = Arc::new(Shared::new(config)?);
        let total = Mutex::new(Recorder::new(workload.operations.keys().copied()));
        let mut engine = Self {
            shared,
            workload,
            threads: Vec::new(),
            next_thread: AtomicUsize::new(0),
            placement: Mutex::new(BTreeMap::new()),
            origin_ns: Mutex::new(None),
            total,
        };
        for index in 0..engine.shared.threads.len() {
            let reactor = Reactor::new(Arc::clone(&engine.shared), index)
                .map_err(|error| format!("I/O thread: {error}"))?;
            let thread = std::thread::Builder::new()
                .name(format!("engine-io-{index}"))
                .spawn(move || {
                    reactor.run().expect("epoll_wait and timerfd_settime on our descriptors");
                })
                .map_err(|error| format!("I/O thread: {error}"))?;
            engine.threads.push(thread);
        }
        Ok(engine)
    }

    fn add(&self, source: Source) -> usize {
        let thread = self.next_thread.fetch_add(1, Ordering::SeqCst) % self.shared.threads.len();
        *lock(&self.shared.running) += 1;
        self.shared.send(thread, Command::Add(Box::new(source)));
        thread
    }

    fn start(&self, operation: Operation, items: Items, parallel: u64) {
        let job = Arc::new(Job::new(operation, items, Arc::clone(&self.shared)));
        for worker in 0..parallel {
            self.add(Source::Job { job: Arc::clone(&job), item: None, worker });
        }
    }

    /// Starts writing prepared objects `first`, `first + stride`, ... (`count` of them), or one
    /// version of each.
    /// Errors: The workload has no such objects.
    pub fn prepare(
        &self,
        first: u64,
        count: u64,
        stride: u64,
        parallel: u64,
        version: Option<u64>,
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
        if version.is_some_and(|version| version >= self.workload.versions()) {
            return Err(format!("no such version among {}", self.workload.versions()));
        }
        let items = Items::Prepared { first, stride, count, version };
        self.start(Operation::Write, items, parallel.min(count));
        Ok(())
    }

    /// Starts deleting `written` or prepared (`objects`) objects.
    /// Errors: `what` is neither.
    pub fn delete(&self, what: &str, parallel: u64) -> Result<(), String> {
        let items = match what {
            "objects" => {
                Items::Prepared { first: 0, stride: 1, count: self.workload.count(), version: None }
            }
            "written" => Items::Written(std::mem::take(&mut *lock(&self.shared.written))),
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
    /// Errors: The workload has no such objects.
    pub fn delete_listed(&self, numbers: Vec<u64>, parallel: u64) -> Result<(), String> {
        let count = self.workload.count();
        if let Some(unknown) = numbers.iter().find(|&&number| number >= count) {
            return Err(format!("no object {unknown} among {count}"));
        }
        let parallel = parallel.clamp(1, 4096).min(numbers.len() as u64);
        self.start(Operation::Delete, Items::Listed(numbers), parallel);
        Ok(())
    }

    /// Starts worker `index` of `of`.
    /// Errors: There is no such number, or it is running already.
    pub fn add_worker(&self, index: u64, of: u64, repeat: u64) -> Result<(), String> {
        if index >= of {
            return Err(format!("worker {index} of {of}: numbers begin at 0"));
        }
        if self.workload.has(Operation::ReadVersion) && !self.shared.version_ids.are_known() {
            return Err("read-version needs the IDs of versions first".into());
        }
        let mut placement = lock(&self.placement);
        if placement.contains_key(&index) {
            return Err(format!("worker {index} was added twice"));
        }
        let id = WorkerId { workers: of, repeat, worker: index };
        let picker = Picker::new(Arc::clone(&self.workload), self.shared.config.seed, id);
        let pace = self.workload.rate_per_s.map(|rate| {
            let now = now_ns();
            let origin = *lock(&self.origin_ns).get_or_insert(now) as f64;
            let apart = of as f64 / rate * 1e9;
            let first = origin + index as f64 / rate * 1e9;
            // A worker that is added late skips the turns it missed.
            let missed = ((now as f64 - first) / apart).ceil().max(0.0);
            (first + missed * apart, apart)
        });
        placement
            .insert(index, self.add(Source::Step(Step::new(picker, pace, &self.shared.config))));
        Ok(())
    }

    /// Lets a worker finish its request and end; does nothing if it is not running.
    pub fn remove_worker(&self, index: u64) {
        if let Some(thread) = lock(&self.placement).remove(&index) {
            self.shared.send(thread, Command::Remove(index));
        }
    }

    /// How many workers have completed their first request.
    pub fn started(&self) -> u64 {
        self.shared.started.load(Ordering::SeqCst)
    }

    /// Gives it the IDs of the versions of prepared objects: of number 0 from the oldest on, of
    /// number 1, ...
    /// Errors: They are not as many as there are versions, or cannot be sent.
    pub fn know_versions(&self, ids: Vec<String>) -> Result<(), String> {
        let wanted = self.workload.count() * self.workload.versions();
        if ids.len() as u64 != wanted {
            return Err(format!("{} IDs of {wanted} versions", ids.len()));
        }
        self.shared.version_ids.set(ids)
    }

    /// Uses new keys for every request from now on; of Swift the token alone.
    /// Errors: They are not valid in a header.
    pub fn renew_keys(&self, keys: &Keys) -> Result<(), String> {
        if keys.access.contains(char::is_control) || keys.token.contains(char::is_control) {
            return Err("an access key and a token may not hold control characters".into());
        }
        for secret in [&keys.secret, &keys.token] {
            self.shared.add_secret(secret);
        }
        for thread in 0..self.shared.threads.len() {
            self.shared.send(thread, Command::Renew(keys.clone()));
        }
        Ok(())
    }

    /// Opens the window and clears what was recorded.
    pub fn open_window(&self) {
        self.shared.window.reset();
        self.collect();
        *lock(&self.total) = self.fresh();
        self.shared.window.open();
    }

    /// Closes the window, and has each thread record its outstanding requests within one batch of
    /// events.
    pub fn close_window(&self) {
        if !self.shared.window.close() {
            return;
        }
        *lock(&self.shared.uncounted) = self.shared.threads.len();
        (0..self.shared.threads.len()).for_each(|thread| self.shared.send(thread, Command::Census));
        // A thread that died counts nothing more: the next call of `progress` reports it.
        while !self.shared.wait_counted(Duration::from_millis(100)) && self.alive().is_ok() {}
    }

    fn fresh(&self) -> Recorder {
        Recorder::new(self.workload.operations.keys().copied())
    }

    /// Adds the recorders of the threads to the total. Threads wait only for a pointer swap.
    fn collect(&self) {
        let mut total = lock(&self.total);
        for thread in &self.shared.threads {
            let mut counted = self.fresh();
            std::mem::swap(&mut *lock(&thread.recorder), &mut counted);
            total.merge(&counted);
        }
    }

    /// The measurement of the window so far.
    pub fn snapshot(&self) -> Snapshot {
        let window_s = self.shared.window.length_s();
        self.collect();
        let total = lock(&self.total);
        let (tallies, seconds) = total.records();
        let pace = self.workload.rate_per_s.map(|_| total.pace());
        let (begun, behind_us) =
            (pace.map(|(begun, _)| begun), pace.map(|(_, behind_us)| behind_us));
        Snapshot {
            tallies,
            seconds,
            window_s,
            begun,
            behind_us,
            connections: total.connections(),
            stall_us: total.stall_us(),
            endpoints: self.shared.endpoints.records(total.endpoints()),
        }
    }

    /// Fails if an I/O thread ended: it panicked, and wrote why to stderr.
    fn alive(&self) -> Result<(), String> {
        if self.threads.iter().any(JoinHandle::is_finished) {
            return Err("an I/O thread of the engine died: see stderr".into());
        }
        Ok(())
    }

    /// Counts since the engine was made.
    /// Errors: An I/O thread died.
    pub fn progress(&self) -> Result<Progress, String> {
        self.alive()?;
        let running = *lock(&self.shared.running);
        let errors = lock(&self.shared.errors);
        let sum = |pick: fn(&crate::shared::ThreadState) -> u64| {
            self.shared.threads.iter().map(pick).sum()
        };
        Ok(Progress {
            running,
            exhausted: self.shared.exhausted.load(Ordering::SeqCst),
            done: sum(|thread| thread.done.load(Ordering::Relaxed)),
            failed: sum(|thread| thread.failed.load(Ordering::Relaxed)),
            bytes: sum(|thread| thread.bytes.load(Ordering::Relaxed)),
            errors: errors.0.iter().map(|(class, count)| (class.to_string(), *count)).collect(),
            last_error: errors.1.clone(),
        })
    }

    /// Ends all workers; returns how many had to be aborted during a request after `timeout`.
    /// Errors: An I/O thread died.
    pub fn stop(&self, timeout: Duration) -> Result<u64, String> {
        let all = |command: fn() -> Command| {
            (0..self.shared.threads.len()).for_each(|thread| self.shared.send(thread, command()));
        };
        all(|| Command::LeaveAll);
        let before = self.shared.cut.load(Ordering::SeqCst);
        if !self.shared.wait_idle(timeout) {
            all(|| Command::CutAll);
            // Every thread handles it within one batch of events.
            while !self.shared.wait_idle(Duration::from_millis(100)) {
                self.alive()?;
            }
        }
        lock(&self.placement).clear();
        *lock(&self.origin_ns) = None;
        self.shared.started.store(0, Ordering::SeqCst);
        Ok(self.shared.cut.load(Ordering::SeqCst) - before)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        for thread in 0..self.threads.len() {
            self.shared.send(thread, Command::CutAll);
            self.shared.send(thread, Command::Quit);
        }
        for thread in self.threads.drain(..) {
            // A thread that panicked has written why to stderr.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
