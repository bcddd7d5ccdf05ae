//! Origins and kept connections to them.

use crate::link::is_silent;
use crate::stats::{Held, Stats};
use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Timeout for a new connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Kept connections are reused within this time; radosgw closes those that were silent for 65 s.
const KEEP_FOR: Duration = Duration::from_secs(30);

/// A connection to an origin; closed on drop.
#[derive(Debug)]
pub struct Link<'a> {
    /// Its socket, with the responder's timeout for sending and receiving.
    pub stream: TcpStream,
    /// The index of the origin.
    pub place: usize,
    /// Whether it has served a request before.
    pub(crate) reused: bool,
    _held: Held<'a>,
}

/// All origins. Requests go to each in turn.
#[derive(Debug)]
pub struct Origins<'a> {
    places: Vec<SocketAddr>,
    kept: Vec<Mutex<VecDeque<(Link<'a>, Instant)>>>,
    most_kept: usize,
    timeout: Duration,
    next: AtomicUsize,
    stats: &'a Stats,
}

impl<'a> Origins<'a> {
    /// Keeps up to `most_kept` connections to each of `places`; `timeout` is for each send or
    /// receive.
    pub fn new(
        places: Vec<SocketAddr>,
        most_kept: usize,
        timeout: Duration,
        stats: &'a Stats,
    ) -> Self {
        let kept = places.iter().map(|_| Mutex::default()).collect();
        Self { places, kept, most_kept, timeout, next: AtomicUsize::new(0), stats }
    }

    /// Timeout for an answer, or for space to send a request.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// A kept or new connection to the next origin; if it cannot be reached, to the one after it.
    /// Errors: When none can be reached: the last one's error, with its address.
    pub(crate) fn link(&self) -> io::Result<Link<'a>> {
        let first = self.next.fetch_add(1, Relaxed);
        let mut failure = io::Error::from(io::ErrorKind::NotFound);
        for place in (0..self.places.len()).map(|step| first.wrapping_add(step) % self.places.len())
        {
            if let Some(link) = self.take(place) {
                self.stats.origin_reused.fetch_add(1, Relaxed);
                return Ok(link);
            }
            match self.connect(place) {
                Ok(link) => return Ok(link),
                Err(error) => {
                    failure =
                        io::Error::new(error.kind(), format!("{}: {error}", self.places[place]));
                }
            }
        }
        Err(failure)
    }

    /// A new connection to one origin.
    /// Errors: When it cannot be reached.
    pub(crate) fn connect(&self, place: usize) -> io::Result<Link<'a>> {
        let stream = TcpStream::connect_timeout(&self.places[place], CONNECT_WITHIN)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(self.timeout))?;
        stream.set_write_timeout(Some(self.timeout))?;
        self.stats.origin_opened.fetch_add(1, Relaxed);
        Ok(Link { stream, place, reused: false, _held: Held::new(&self.stats.origin_connections) })
    }

    /// Keep a connection whose last answer was complete.
    pub fn keep(&self, mut link: Link<'a>) {
        link.reused = true;
        let now = Instant::now();
        let mut kept = self.kept(link.place);
        while kept.len() >= self.most_kept.max(1)
            || kept.front().is_some_and(|(_, since)| now - *since > KEEP_FOR)
        {
            kept.pop_front();
        }
        if self.most_kept > 0 {
            kept.push_back((link, now));
        }
    }

    /// The address of an origin.
    pub fn address(&self, place: usize) -> SocketAddr {
        self.places[place]
    }

    fn take(&self, place: usize) -> Option<Link<'a>> {
        loop {
            // The origin closes the most recently used one last.
            let (link, since) = self.kept(place).pop_back()?;
            if since.elapsed() <= KEEP_FOR && is_silent(&link.stream) {
                return Some(link);
            }
        }
    }

    fn kept(&self, place: usize) -> MutexGuard<'_, VecDeque<(Link<'a>, Instant)>> {
        self.kept[place].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
