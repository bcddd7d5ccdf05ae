//! What the I/O threads of one engine and its Python door share.

use crate::config::Config;
use crate::content::Content;
use crate::digests::Digests;
use crate::link::Dialer;
use crate::recorder::{Failure, Recorder};
use crate::source::Source;
use crate::sys::{Bell, now_ns};
use crate::workload::Whose;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Locks, also when another thread panicked while it held the lock: counters are whole at any
/// point.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The measured window: what completes between its two times is recorded, and of what is
/// outstanding at its end how long it has been.
#[derive(Debug)]
pub struct Window {
    opened_ns: AtomicU64,
    closed_ns: AtomicU64,
}

impl Window {
    fn new() -> Self {
        Self { opened_ns: AtomicU64::new(u64::MAX), closed_ns: AtomicU64::new(u64::MAX) }
    }

    /// Opens it now.
    pub fn open(&self) {
        self.closed_ns.store(u64::MAX, Ordering::SeqCst);
        self.opened_ns.store(now_ns(), Ordering::SeqCst);
    }

    /// Closes it now; whether it was open.
    pub fn close(&self) -> bool {
        let open = self.opened_ns.load(Ordering::SeqCst) != u64::MAX;
        open && self
            .closed_ns
            .compare_exchange(u64::MAX, now_ns(), Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    }

    /// When it was opened and closed; `None` unless it was both.
    #[must_use]
    pub fn closed(&self) -> Option<(u64, u64)> {
        let (opened, closed) =
            (self.opened_ns.load(Ordering::SeqCst), self.closed_ns.load(Ordering::SeqCst));
        (opened != u64::MAX && closed != u64::MAX).then_some((opened, closed))
    }

    /// Forgets it: nothing is recorded until it is opened again.
    pub fn forget(&self) {
        self.opened_ns.store(u64::MAX, Ordering::SeqCst);
    }

    /// Its length so far, in seconds; 0 when it was never opened.
    #[must_use]
    pub fn length_s(&self) -> f64 {
        let opened = self.opened_ns.load(Ordering::SeqCst);
        let closed = self.closed_ns.load(Ordering::SeqCst).min(now_ns());
        if opened == u64::MAX { 0.0 } else { closed.saturating_sub(opened) as f64 / 1e9 }
    }

    /// Where in it a time lies, if it does.
    #[must_use]
    pub fn moment(&self, at_ns: u64) -> Option<Moment> {
        let opened_ns = self.opened_ns.load(Ordering::Relaxed);
        let inside = at_ns >= opened_ns && at_ns < self.closed_ns.load(Ordering::Relaxed);
        inside.then(|| Moment { second: ((at_ns - opened_ns) / 1_000_000_000) as usize, opened_ns })
    }
}

/// A time inside the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// In which of its seconds.
    pub second: usize,
    /// When the window was opened.
    pub opened_ns: u64,
}

/// What one I/O thread counts, in memory of its own so that threads do not disturb each other.
#[derive(Debug)]
#[repr(align(128))]
pub struct Desk {
    /// Counts inside the window. The thread holds the lock while it handles a batch of events;
    /// others only swap.
    pub recorder: Mutex<Recorder>,
    /// Requests that succeeded since the engine was made.
    pub done: AtomicU64,
    /// Requests that failed.
    pub failed: AtomicU64,
    /// Bytes of objects moved by those that succeeded.
    pub bytes: AtomicU64,
    /// Orders not taken yet.
    pub orders: Mutex<Vec<Order>>,
    /// Rung when there are orders.
    pub bell: Bell,
}

/// What an I/O thread is told.
#[derive(Debug)]
pub enum Order {
    /// Start a worker.
    Add(Box<Source>),
    /// Let step worker number `0` finish and end.
    Remove(u64),
    /// Let all workers finish and end.
    LeaveAll,
    /// End all workers at once.
    CutAll,
    /// The window has closed: record how long what is outstanding has been so.
    Census,
    /// Send this token of Swift's with every request from now on.
    Renew(String),
    /// End the thread.
    Quit,
}

/// Objects that were written and not deleted, for `delete("written")`.
pub type Ledger = Mutex<Vec<(Whose, u64)>>;

/// All that is shared.
#[derive(Debug)]
pub struct Shared {
    /// What the engine was told.
    pub config: Config,
    /// Value of the `Host` header.
    pub host: String,
    /// How to connect: to the one target, or to each of the object servers.
    pub dialers: Vec<Dialer>,
    /// Which of the object servers has each disk of the ring; empty without one.
    pub servers: Vec<usize>,
    /// What objects hold.
    pub content: Content,
    /// What their MD5s are.
    pub digests: Digests,
    /// What is recorded.
    pub window: Window,
    /// One for each I/O thread.
    pub desks: Vec<Desk>,
    /// Workers not ended.
    pub running: Mutex<u64>,
    /// Told when `running` falls to 0.
    pub idle: Condvar,
    /// Threads that have not yet taken the census of a closed window.
    pub uncounted: Mutex<usize>,
    /// Told when `uncounted` falls to 0.
    pub counted: Condvar,
    /// Workers that finished their first request.
    pub started: AtomicU64,
    /// Workers that ran out of objects to delete.
    pub exhausted: AtomicU64,
    /// Requests cut off in hand.
    pub cut: AtomicU64,
    /// Failures by class, and the last one in words.
    pub errors: Mutex<(BTreeMap<Failure, u64>, Option<String>)>,
    /// What was written and not deleted.
    pub ledger: Ledger,
}

impl Shared {
    /// The shared part of an engine of `config`.
    ///
    /// # Errors
    /// What of the config cannot be used, in words.
    pub fn new(config: Config) -> Result<Self, String> {
        let (dialers, servers) = if let Some(ring) = &config.ring {
            let (addresses, servers) = ring.servers()?;
            (addresses.into_iter().map(Dialer::plain).collect(), servers)
        } else if config.tls {
            (
                vec![Dialer::tls(config.address()?, &config.peer(), config.ca_file.as_deref())?],
                Vec::new(),
            )
        } else {
            (vec![Dialer::plain(config.address()?)], Vec::new())
        };
        let desk = || {
            Ok(Desk {
                recorder: Mutex::new(Recorder::new(config.workload.operations.keys().copied())),
                done: AtomicU64::new(0),
                failed: AtomicU64::new(0),
                bytes: AtomicU64::new(0),
                orders: Mutex::new(Vec::new()),
                bell: Bell::new().map_err(|error| format!("eventfd: {error}"))?,
            })
        };
        let content = Content::new(config.seed);
        let desks = (0..config.threads).map(|_| desk()).collect::<Result<_, String>>()?;
        Ok(Self {
            host: config.host_header(),
            dialers,
            servers,
            digests: Digests::new(&config.workload, &content),
            content,
            window: Window::new(),
            desks,
            running: Mutex::new(0),
            idle: Condvar::new(),
            uncounted: Mutex::new(0),
            counted: Condvar::new(),
            started: AtomicU64::new(0),
            exhausted: AtomicU64::new(0),
            cut: AtomicU64::new(0),
            errors: Mutex::new((BTreeMap::new(), None)),
            ledger: Mutex::new(Vec::new()),
            config,
        })
    }

    /// Gives an order to thread number `desk`.
    pub fn order(&self, desk: usize, order: Order) {
        lock(&self.desks[desk].orders).push(order);
        self.desks[desk].bell.ring();
    }

    /// Counts a failed request. `what` is for people.
    pub fn note(&self, class: Failure, what: String) {
        let mut errors = lock(&self.errors);
        *errors.0.entry(class).or_default() += 1;
        errors.1 = Some(what);
    }

    /// A worker has ended.
    pub fn ended(&self) {
        let mut running = lock(&self.running);
        *running -= 1;
        if *running == 0 {
            self.idle.notify_all();
        }
    }

    /// A thread has taken the census.
    pub fn took_census(&self) {
        let mut uncounted = lock(&self.uncounted);
        *uncounted = uncounted.saturating_sub(1);
        if *uncounted == 0 {
            self.counted.notify_all();
        }
    }

    /// Waits until all threads have taken the census, up to `timeout`; whether that is so.
    #[must_use]
    pub fn wait_counted(&self, timeout: Duration) -> bool {
        let (uncounted, _) = self
            .counted
            .wait_timeout_while(lock(&self.uncounted), timeout, |uncounted| *uncounted > 0)
            .unwrap_or_else(PoisonError::into_inner);
        *uncounted == 0
    }

    /// Waits until no worker runs, up to `timeout`; whether that is so.
    #[must_use]
    pub fn wait_idle(&self, timeout: Duration) -> bool {
        let (running, _) = self
            .idle
            .wait_timeout_while(lock(&self.running), timeout, |running| *running > 0)
            .unwrap_or_else(PoisonError::into_inner);
        *running == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_between_opening_and_closing_is_in_the_window() {
        let window = Window::new();
        let before = now_ns();
        assert_eq!((window.moment(before), window.closed(), window.close()), (None, None, false));
        window.open();
        let opened_ns = window.opened_ns.load(Ordering::SeqCst);
        assert_eq!(window.moment(opened_ns), Some(Moment { second: 0, opened_ns }));
        assert_eq!(window.moment(opened_ns + 2_500_000_000), Some(Moment { second: 2, opened_ns }));
        assert_eq!((window.moment(opened_ns - 1), window.closed()), (None, None));
        assert!(window.close());
        let (_, closed) = window.closed().expect("it is closed");
        assert_eq!(window.moment(closed), None);
        assert_eq!(window.moment(u64::MAX), None);
        assert_eq!(window.moment(closed - 1).is_some(), closed > opened_ns);
        assert!(!window.close(), "a window closes once");
        assert_eq!(window.closed(), Some((opened_ns, closed)));
        window.forget();
        assert_eq!(
            (window.moment(opened_ns), window.closed(), window.close()),
            (None, None, false)
        );
    }
}
