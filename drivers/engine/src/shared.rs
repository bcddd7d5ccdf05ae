//! State shared by the I/O threads of an engine and its callers.

use crate::config::{Config, Endpoint};
use crate::content::Content;
use crate::digests::Digests;
use crate::endpoints::Endpoints;
use crate::link::Dialer;
use crate::picker::Request;
use crate::recorder::{Failure, Recorder};
use crate::source::Source;
use crate::sys::{Waker, now_ns};
use crate::versions::VersionIds;
use crate::workload::WorkerId;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Locks, ignoring poison: counters are consistent at any point.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The measured window: requests that complete inside it are recorded, and the ages of those that
/// are outstanding at its end.
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

    /// Closes it now; returns whether it was open.
    pub fn close(&self) -> bool {
        let open = self.opened_ns.load(Ordering::SeqCst) != u64::MAX;
        open && self
            .closed_ns
            .compare_exchange(u64::MAX, now_ns(), Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    }

    /// When it was opened and closed; `None` if it is not closed.
    pub fn closed(&self) -> Option<(u64, u64)> {
        let (opened, closed) =
            (self.opened_ns.load(Ordering::SeqCst), self.closed_ns.load(Ordering::SeqCst));
        (opened != u64::MAX && closed != u64::MAX).then_some((opened, closed))
    }

    /// Resets it: nothing is recorded until it is opened again.
    pub fn reset(&self) {
        self.opened_ns.store(u64::MAX, Ordering::SeqCst);
    }

    /// Its length so far, in seconds; 0 if it was never opened.
    pub fn length_s(&self) -> f64 {
        let opened = self.opened_ns.load(Ordering::SeqCst);
        let closed = self.closed_ns.load(Ordering::SeqCst).min(now_ns());
        if opened == u64::MAX { 0.0 } else { closed.saturating_sub(opened) as f64 / 1e9 }
    }

    /// The position of a time in it, if inside.
    pub fn moment(&self, at_ns: u64) -> Option<Moment> {
        let opened_ns = self.opened_ns.load(Ordering::Relaxed);
        let inside = at_ns >= opened_ns && at_ns < self.closed_ns.load(Ordering::Relaxed);
        inside.then(|| Moment::of(at_ns, opened_ns))
    }
}

/// A time inside the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// The second of the window it is in.
    pub second: usize,
    /// When the window was opened.
    pub opened_ns: u64,
}

impl Moment {
    /// The moment of a time in or at the end of a window.
    pub fn of(at_ns: u64, opened_ns: u64) -> Self {
        Self { second: (at_ns.saturating_sub(opened_ns) / 1_000_000_000) as usize, opened_ns }
    }

    /// The seconds of the window that began between a time before and this moment.
    pub fn begun_since(&self, started_ns: u64) -> Range<usize> {
        let first = match started_ns.checked_sub(self.opened_ns) {
            None | Some(0) => 0,
            Some(into_ns) => ((into_ns - 1) / 1_000_000_000) as usize + 1,
        };
        Range { start: first, end: self.second + 1 }
    }
}

/// State of one I/O thread, aligned to avoid false sharing.
#[derive(Debug)]
#[repr(align(128))]
pub struct ThreadState {
    /// Counts inside the window. The thread holds the lock while it handles a batch of events;
    /// others only swap the recorder.
    pub recorder: Mutex<Recorder>,
    /// Requests that succeeded since the engine was made.
    pub done: AtomicU64,
    /// Requests that failed.
    pub failed: AtomicU64,
    /// Bytes of objects transferred by those that succeeded.
    pub bytes: AtomicU64,
    /// Commands not taken yet.
    pub commands: Mutex<Vec<Command>>,
    /// Woken when there are commands.
    pub waker: Waker,
}

/// A command to an I/O thread.
#[derive(Debug)]
pub enum Command {
    /// Start a worker.
    Add(Box<Source>),
    /// Let step worker number `0` finish and end.
    Remove(u64),
    /// Let all workers finish and end.
    LeaveAll,
    /// Abort all workers.
    CutAll,
    /// The window has closed: record the ages of outstanding requests.
    Census,
    /// Use these keys for every request from now on.
    Renew(crate::sign::keys::Keys),
    /// End the thread.
    Quit,
}

/// Objects that were written and not deleted, for `delete("written")`.
pub type WrittenObjects = Mutex<Vec<(WorkerId, u64)>>;

/// All shared state.
#[derive(Debug)]
pub struct Shared {
    /// The engine's configuration.
    pub config: Config,
    /// Values of the `Host` header, by endpoint.
    pub hosts: Vec<String>,
    /// The endpoints, if there are several.
    pub endpoints: Endpoints,
    /// How to connect: to each endpoint of the target, or to each object server.
    pub dialers: Vec<Dialer>,
    /// Number of the object server of each disk of the ring; empty without one.
    pub servers: Vec<usize>,
    /// Content of objects.
    contents: Vec<Content>,
    /// IDs of the versions of prepared objects, once they are known.
    pub version_ids: VersionIds,
    /// MD5s of the content.
    pub digests: Digests,
    /// The measured window.
    pub window: Window,
    /// One for each I/O thread.
    pub threads: Vec<ThreadState>,
    /// Workers not ended.
    pub running: Mutex<u64>,
    /// Notified when `running` falls to 0.
    pub idle: Condvar,
    /// Threads that have not yet taken the census of a closed window.
    pub uncounted: Mutex<usize>,
    /// Notified when `uncounted` falls to 0.
    pub counted: Condvar,
    /// Workers that completed their first request.
    pub started: AtomicU64,
    /// Workers that ran out of objects to delete.
    pub exhausted: AtomicU64,
    /// Requests aborted.
    pub cut: AtomicU64,
    /// Failures by class, and the text of the last one.
    pub errors: Mutex<(BTreeMap<Failure, u64>, Option<String>)>,
    /// What no text for people may repeat, though a target's answer does: the keys' secret, and all
    /// tokens so far.
    secrets: Mutex<Vec<String>>,
    /// Written objects that were not deleted.
    pub written: WrittenObjects,
}

impl Shared {
    /// Makes the shared state of an engine.
    /// Errors: The config cannot be used.
    pub fn new(config: Config) -> Result<Self, String> {
        let (dialers, servers) = if let Some(ring) = &config.ring {
            let (addresses, servers) = ring.servers()?;
            (addresses.into_iter().map(Dialer::plain).collect(), servers)
        } else {
            let dialer = |place: &Endpoint| {
                let address = config.address(place)?;
                if config.tls {
                    Dialer::tls(address, &config.peer(place), config.ca_file.as_deref())
                } else {
                    Ok(Dialer::plain(address))
                }
            };
            let dialers: Result<_, String> = config.places().iter().map(dialer).collect();
            (dialers?, Vec::new())
        };
        let thread = || {
            Ok(ThreadState {
                recorder: Mutex::new(Recorder::new(config.workload.operations.keys().copied())),
                done: AtomicU64::new(0),
                failed: AtomicU64::new(0),
                bytes: AtomicU64::new(0),
                commands: Mutex::new(Vec::new()),
                waker: Waker::new().map_err(|error| format!("eventfd: {error}"))?,
            })
        };
        let content = Content::with_share(config.seed, config.workload.objects.compressible);
        let threads = (0..config.threads).map(|_| thread()).collect::<Result<_, String>>()?;
        Ok(Self {
            hosts: config.host_headers(),
            endpoints: Endpoints::new(&config),
            dialers,
            servers,
            digests: Digests::new(&config.workload, &content),
            contents: (0..config.workload.versions().max(1))
                .map(|version| content.of_version(version))
                .collect(),
            version_ids: VersionIds::of(&config.workload),
            window: Window::new(),
            threads,
            running: Mutex::new(0),
            idle: Condvar::new(),
            uncounted: Mutex::new(0),
            counted: Condvar::new(),
            started: AtomicU64::new(0),
            exhausted: AtomicU64::new(0),
            cut: AtomicU64::new(0),
            errors: Mutex::new((BTreeMap::new(), None)),
            secrets: Mutex::new(vec![config.secret_key.clone(), config.token.clone()]),
            written: Mutex::new(Vec::new()),
            config,
        })
    }

    /// What the object of a request holds, in the version that it is about.
    pub fn content_of(&self, request: &Request) -> &Content {
        &self.contents[request.version(self.config.workload.versions()) as usize]
    }

    /// Sends a command to thread number `thread`.
    pub fn send(&self, thread: usize, command: Command) {
        lock(&self.threads[thread].commands).push(command);
        self.threads[thread].waker.wake();
    }

    /// Counts a failed request; `what` is for people.
    pub fn count_error(&self, class: Failure, mut what: String) {
        for secret in &*lock(&self.secrets) {
            redact(&mut what, secret);
        }
        let mut errors = lock(&self.errors);
        *errors.0.entry(class).or_default() += 1;
        errors.1 = Some(what);
    }

    /// Keeps a new secret out of texts, besides the earlier ones.
    pub fn add_secret(&self, secret: &str) {
        lock(&self.secrets).push(secret.into());
    }

    /// Counts a worker that ended.
    pub fn ended(&self) {
        let mut running = lock(&self.running);
        *running -= 1;
        if *running == 0 {
            self.idle.notify_all();
        }
    }

    /// Counts a thread that took the census.
    pub fn took_census(&self) {
        let mut uncounted = lock(&self.uncounted);
        *uncounted = uncounted.saturating_sub(1);
        if *uncounted == 0 {
            self.counted.notify_all();
        }
    }

    /// Waits until all threads have taken the census; returns whether they did within `timeout`.
    pub fn wait_counted(&self, timeout: Duration) -> bool {
        let (uncounted, _) = self
            .counted
            .wait_timeout_while(lock(&self.uncounted), timeout, |uncounted| *uncounted > 0)
            .unwrap_or_else(PoisonError::into_inner);
        *uncounted == 0
    }

    /// Waits until no worker is running; returns whether that was so within `timeout`.
    pub fn wait_idle(&self, timeout: Duration) -> bool {
        let (running, _) = self
            .idle
            .wait_timeout_while(lock(&self.running), timeout, |running| *running > 0)
            .unwrap_or_else(PoisonError::into_inner);
        *running == 0
    }
}

/// Replaces a secret in a text, also where the text was cut off within it.
fn redact(text: &mut String, secret: &str) {
    const HIDDEN: &str = "***";
    const SHORTEST: usize = 6;
    if secret.len() < SHORTEST {
        return; // words of the text have its letters, too
    }
    if text.contains(secret) {
        *text = text.replace(secret, HIDDEN);
    }
    let cut = (SHORTEST..secret.len())
        .rev()
        .find(|&n| secret.is_char_boundary(n) && text.ends_with(&secret[..n]));
    if let Some(length) = cut {
        text.truncate(text.len() - length);
        text.push_str(HIDDEN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_in_no_text_also_where_the_text_was_cut_within_it() {
        for (given, shown) in [
            ("you sent AUTH_tk0123456789, AUTH_tk0123456789!", "you sent ***, ***!"),
            ("you sent AUTH_tk01234", "you sent ***"),
            ("AUTH_tk0123456789AUTH_tk0", "******"),
            ("nothing of it: AUTH", "nothing of it: AUTH"),
        ] {
            let mut text = given.to_string();
            redact(&mut text, "AUTH_tk0123456789");
            assert_eq!(text, shown);
            redact(&mut text, "s");
            assert_eq!(text, shown);
        }
    }

    #[test]
    fn only_times_between_opening_and_closing_are_in_the_window() {
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
        window.reset();
        assert_eq!(
            (window.moment(opened_ns), window.closed(), window.close()),
            (None, None, false)
        );
    }

    #[test]
    fn a_request_was_outstanding_at_the_seconds_that_began_meanwhile() {
        const S: u64 = 1_000_000_000;
        let opened_ns = 7 * S;
        for (started_ns, ended_ns, seconds) in [
            (5 * S, 7 * S + 1, 0..1),
            (7 * S, 7 * S + 1, 0..1),
            (7 * S + S / 2, 9 * S + 1, 1..3),
            (8 * S, 8 * S + 1, 1..2),
            (8 * S + 1, 8 * S + 2, 2..2),
        ] {
            let moment = Moment::of(ended_ns, opened_ns);
            assert_eq!(moment.begun_since(started_ns), seconds, "{started_ns} to {ended_ns}");
        }
    }
}
