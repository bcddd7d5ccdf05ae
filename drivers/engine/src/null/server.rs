//! The threads of the null target, and the delays of its answers.

use super::Config;
use super::api::Api;
use super::connection::{Connection, Step};
use super::store::Store;
use crate::random::{Random, hash};
use crate::sys::{Epoll, Timer, Waker, now_ns};
use socket2::Socket;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs as _};
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::SystemTime;

const BATCH: usize = 128;
const SCRATCH_BYTES: usize = 64 * 1024;
const WAKER: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;
/// How long before an answer is due the thread stops sleeping: waking an idle core can take so
/// long.
const AWAKE_NS: u64 = 100_000;
const LISTENER: u64 = u64::MAX - 2;

/// How long answers are delayed: uniformly drawn from within `spread` times the mean on either
/// side.
#[derive(Clone, Copy, Debug)]
struct Delay {
    mean_ns: u64,
    spread: f64,
}

impl Delay {
    fn of_turn_ns(self, seed: u64, turn: impl FnOnce() -> u64) -> u64 {
        if self.spread <= 0.0 {
            return self.mean_ns;
        }
        let drawn = Random::new(hash(&[seed, 6, turn()])).unit();
        (self.mean_ns as f64 * (1.0 + self.spread * (2.0 * drawn - 1.0))) as u64
    }
}

/// State shared by all threads.
#[derive(Debug)]
struct Common {
    api: Api,
    delay: Delay,
    fail_share: f64,
    fail_status: u16,
    stall: Option<(u64, u64)>,
    seed: u64,
    /// Requests on objects so far: whether the n-th fails does not depend on the thread.
    object_requests: AtomicU64,
    /// Delays drawn so far: the n-th is the same in every run.
    held: AtomicU64,
    /// When the first request came; 0: none yet.
    began_ns: AtomicU64,
    wakers: Vec<Waker>,
}

impl Common {
    /// When a request that is complete now is to be answered.
    fn due_ns(&self, now: u64) -> u64 {
        let began = match self.began_ns.compare_exchange(0, now, Ordering::SeqCst, Ordering::SeqCst)
        {
            Ok(_) => now,
            Err(began) => began,
        };
        let due =
            now + self.delay.of_turn_ns(self.seed, || self.held.fetch_add(1, Ordering::SeqCst));
        match self.stall {
            Some((after, length)) if (began + after..began + after + length).contains(&due) => {
                began + after + length
            }
            _ => due,
        }
    }

    fn failing(&self, connection: &Connection) -> Option<u16> {
        if self.fail_share <= 0.0 || !connection.head().is_some_and(Api::is_of_object) {
            return None;
        }
        let turn = self.object_requests.fetch_add(1, Ordering::SeqCst);
        let drawn = Random::new(hash(&[self.seed, 4, turn])).unit();
        (drawn < self.fail_share).then_some(self.fail_status)
    }
}

/// A running null target. Dropping it ends its threads and closes its connections.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    common: Arc<Common>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Starts a null target.
    /// Errors: The system refused a resource.
    pub fn start(config: &Config) -> Result<Self, String> {
        let named = |error: io::Error| format!("{}:{}: {error}", config.host, config.port);
        let wanted = (config.host.as_str(), config.port)
            .to_socket_addrs()
            .map_err(named)?
            .next()
            .ok_or_else(|| format!("{}: the name has no address", config.host))?;
        let listener = listen(wanted).map_err(named)?;
        let address = listener.local_addr().map_err(named)?;
        let refused = |error: io::Error| format!("null target thread: {error}");
        let now = SystemTime::now();
        let ns = |ms: f64| (ms * 1e6) as u64;
        let common = Arc::new(Common {
            api: Api {
                store: Store::new(config.seed),
                login: (config.user.clone(), config.key.clone()),
                token: format!("AUTH_tk{:016x}", hash(&[config.seed, 5])),
                http_time: httpdate::fmt_http_date(now),
                iso_time: crate::dates::iso_time(now),
            },
            delay: Delay { mean_ns: ns(config.delay_ms), spread: config.delay_spread },
            fail_share: config.fail_share,
            fail_status: config.fail_status,
            stall: config.stall_after_s.map(|after| (ns(after * 1e3), ns(config.stall_s * 1e3))),
            seed: config.seed,
            object_requests: AtomicU64::new(0),
            held: AtomicU64::new(0),
            began_ns: AtomicU64::new(0),
            wakers: (0..config.threads)
                .map(|_| Waker::new())
                .collect::<io::Result<_>>()
                .map_err(refused)?,
        });
        let mut server = Self { address, common, threads: Vec::new() };
        for number in 0..config.threads {
            let listener = listener.try_clone().map_err(refused)?;
            let thread =
                Thread::new(Arc::clone(&server.common), number, listener).map_err(refused)?;
            let handle = std::thread::Builder::new()
                .name(format!("null-io-{number}"))
                .spawn(move || {
                    thread.run().expect("epoll_wait and timerfd_settime on our descriptors");
                })
                .map_err(refused)?;
            server.threads.push(handle);
        }
        Ok(server)
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.common.wakers.iter().for_each(Waker::wake);
        for thread in self.threads.drain(..) {
            // A thread that panicked has written why to stderr.
            let _ = thread.join();
        }
    }
}

/// Listens with room for the connections of 512 workers that start at once.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(
        socket2::Domain::for_address(address),
        socket2::Type::STREAM.nonblocking().cloexec(),
        None,
    )?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(4096)?;
    Ok(socket.into())
}

#[derive(Debug)]
struct Thread {
    common: Arc<Common>,
    epoll: Epoll,
    timer: Timer,
    listener: TcpListener,
    connections: Vec<Option<Box<Connection>>>,
    serials: Vec<u32>,
    free: Vec<usize>,
    /// Pending answers: time, slot, serial number of the connection.
    due: BinaryHeap<Reverse<(u64, usize, u32)>>,
    again: Vec<usize>,
    scratch: Vec<u8>,
}

impl Thread {
    fn new(common: Arc<Common>, number: usize, listener: TcpListener) -> io::Result<Self> {
        let epoll = Epoll::new(BATCH)?;
        let timer = Timer::new()?;
        epoll.add_source(common.wakers[number].as_raw_fd(), WAKER)?;
        epoll.add_source(timer.as_raw_fd(), TIMER)?;
        epoll.add_listener(listener.as_raw_fd(), LISTENER)?;
        Ok(Self {
            common,
            epoll,
            timer,
            listener,
            connections: Vec::new(),
            serials: Vec::new(),
            free: Vec::new(),
            due: BinaryHeap::new(),
            again: Vec::new(),
            scratch: vec![0; SCRATCH_BYTES],
        })
    }

    fn run(mut self) -> io::Result<()> {
        loop {
            let next =
                self.due.peek().map_or(u64::MAX, |Reverse((at, ..))| at.saturating_sub(AWAKE_NS));
            let awake = !self.again.is_empty() || (!self.due.is_empty() && next <= now_ns());
            if !awake {
                self.timer.arm(next)?;
            }
            let count = self.epoll.wait(if awake { 0 } else { -1 })?;
            for index in 0..count {
                let ready = self.epoll.ready(index);
                match ready.token {
                    WAKER => return Ok(()),
                    TIMER => self.timer.fired(),
                    LISTENER => self.accept(),
                    token => {
                        let slot = (token & 0xffff_ffff) as usize;
                        if self.serials.get(slot) == Some(&((token >> 32) as u32)) {
                            self.drive(slot, |connection, common, scratch| {
                                connection.ready(ready);
                                connection.go(&common.api, scratch)
                            });
                        }
                    }
                }
            }
            for slot in std::mem::take(&mut self.again) {
                self.drive(slot, |connection, common, scratch| connection.go(&common.api, scratch));
            }
            self.answer();
        }
    }

    fn accept(&mut self) {
        // After any error (none left, or out of descriptors) try again at the next event.
        while let Ok((stream, _)) = self.listener.accept() {
            let socket = Socket::from(stream);
            if socket.set_nonblocking(true).and_then(|()| socket.set_tcp_nodelay(true)).is_err() {
                continue; // closed already
            }
            let slot = self.free.pop().unwrap_or_else(|| {
                self.connections.push(None);
                self.serials.push(0);
                self.connections.len() - 1
            });
            self.serials[slot] = self.serials[slot].wrapping_add(1);
            let token = (u64::from(self.serials[slot]) << 32) | slot as u64;
            if self.epoll.add(socket.as_raw_fd(), token).is_err() {
                self.free.push(slot);
                continue;
            }
            self.connections[slot] = Some(Box::new(Connection::new(socket)));
        }
    }

    fn answer(&mut self) {
        while let Some(&Reverse((at, slot, serial))) = self.due.peek() {
            if at > now_ns() {
                break;
            }
            self.due.pop();
            if self.serials[slot] == serial {
                self.drive(slot, |connection, common, scratch| {
                    let failing = common.failing(connection);
                    connection.reply(&common.api, failing, scratch)
                });
            }
        }
    }

    fn drive(
        &mut self,
        slot: usize,
        act: impl FnOnce(&mut Connection, &Common, &mut [u8]) -> Step,
    ) {
        let Some(mut connection) = self.connections.get_mut(slot).and_then(Option::take) else {
            return;
        };
        let mut step = act(&mut connection, &self.common, &mut self.scratch);
        while step == Step::Complete {
            let now = now_ns();
            let due = self.common.due_ns(now);
            if due > now {
                self.due.push(Reverse((due, slot, self.serials[slot])));
                step = Step::Wait;
            } else {
                let failing = self.common.failing(&connection);
                step = connection.reply(&self.common.api, failing, &mut self.scratch);
            }
        }
        match step {
            Step::End => {
                // The serial number identifies late events and answers of this connection.
                self.serials[slot] = self.serials[slot].wrapping_add(1);
                self.free.push(slot);
                return;
            }
            Step::Again => self.again.push(slot),
            Step::Wait | Step::Complete => {}
        }
        self.connections[slot] = Some(connection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_1000(delay: Delay, seed: u64) -> Vec<u64> {
        (0..1000).map(|turn| delay.of_turn_ns(seed, || turn)).collect()
    }

    #[test]
    fn without_a_spread_all_delays_are_equal() {
        assert!(
            of_1000(Delay { mean_ns: 7_000_001, spread: 0.0 }, 3)
                .iter()
                .all(|&one| one == 7_000_001)
        );
    }

    #[test]
    fn drawn_delays_fill_the_spread_evenly_and_follow_from_the_seed() {
        let delay = Delay { mean_ns: 10_000_000, spread: 0.5 };
        let waits = of_1000(delay, 3);
        assert!(waits.iter().all(|one| (5_000_000..=15_000_000).contains(one)));
        for quarter in 0..4u64 {
            let from = 5_000_000 + quarter * 2_500_000;
            let count =
                waits.iter().filter(|&&one| (from..from + 2_500_000).contains(&one)).count();
            assert!((200..=300).contains(&count), "{quarter}: {count}"); // 250 +- 14
        }
        assert_eq!(waits, of_1000(delay, 3));
        assert_ne!(waits, of_1000(delay, 4));
    }
}
