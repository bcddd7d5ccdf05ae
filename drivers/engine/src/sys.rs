//! System calls that the standard library does not have, and all unsafe code of the crate.

use std::io::{self, Error};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(result) }
}

fn counted(result: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| Error::last_os_error())
}

/// Nanoseconds of the monotonic clock.
pub fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec that lives here; CLOCK_MONOTONIC always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Readiness of a descriptor.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// The token it was registered with.
    pub token: u64,
    /// There is something to read, or the end of the stream or an error.
    pub readable: bool,
    /// There is room to write.
    pub writable: bool,
    /// The peer closed its side, or the connection failed.
    pub hung_up: bool,
}

/// An epoll instance; descriptors are registered once, edge triggered, for all events.
#[derive(Debug)]
pub struct Epoll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
}

impl Epoll {
    /// Makes an epoll that returns up to `batch` events at once.
    /// Errors: Of `epoll_create1`.
    pub fn new(batch: usize) -> io::Result<Self> {
        // SAFETY: a plain system call; nothing else owns the new descriptor.
        let fd =
            unsafe { OwnedFd::from_raw_fd(checked(libc::epoll_create1(libc::EPOLL_CLOEXEC))?) };
        Ok(Self { fd, events: vec![libc::epoll_event { events: 0, u64: 0 }; batch] })
    }

    /// Registers a connection until it is closed.
    /// Errors: Of `epoll_ctl`.
    pub fn add(&self, fd: RawFd, token: u64) -> io::Result<()> {
        let events = (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET) as u32;
        self.register(fd, token, events)
    }

    /// Registers a waker or a timer until it is closed, edge triggered.
    /// Errors: Of `epoll_ctl`.
    pub fn add_source(&self, fd: RawFd, token: u64) -> io::Result<()> {
        self.register(fd, token, (libc::EPOLLIN | libc::EPOLLET) as u32)
    }

    /// Registers a listener, level triggered, since it is not drained at every event.
    /// Errors: Of `epoll_ctl`.
    pub fn add_listener(&self, fd: RawFd, token: u64) -> io::Result<()> {
        self.register(fd, token, (libc::EPOLLIN | libc::EPOLLEXCLUSIVE) as u32)
    }

    fn register(&self, fd: RawFd, token: u64, events: u32) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: token };
        // SAFETY: the event lives during the call, which copies it.
        checked(unsafe {
            libc::epoll_ctl(self.fd.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &raw mut event)
        })?;
        Ok(())
    }

    /// Waits up to `timeout_ms` (-1: for ever); returns the number of events, 0 after a signal.
    /// Errors: Of `epoll_wait`, but never EINTR.
    pub fn wait(&mut self, timeout_ms: i32) -> io::Result<usize> {
        let most = self.events.len() as i32;
        // SAFETY: the kernel writes at most `most` events into the vector, which is that long.
        match counted(unsafe {
            libc::epoll_wait(self.fd.as_raw_fd(), self.events.as_mut_ptr(), most, timeout_ms)
        } as isize)
        {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            other => other,
        }
    }

    /// Event number `index` of the last wait.
    pub fn ready(&self, index: usize) -> Ready {
        let event = self.events[index];
        let has = |flags: libc::c_int| event.events & flags as u32 != 0;
        Ready {
            token: event.u64,
            readable: has(libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR),
            writable: has(libc::EPOLLOUT),
            hung_up: has(libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR),
        }
    }
}

/// Wakes a thread that waits in epoll.
#[derive(Debug)]
pub struct Waker(OwnedFd);

impl Waker {
    /// Makes a waker.
    /// Errors: Of `eventfd`.
    pub fn new() -> io::Result<Self> {
        // SAFETY: a plain system call; nothing else owns the new descriptor.
        Ok(Self(unsafe {
            OwnedFd::from_raw_fd(checked(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?)
        }))
    }

    /// Wakes the thread; edge triggered, every call is an event.
    pub fn wake(&self) {
        let one = 1u64;
        // SAFETY: eight bytes are read from a u64 that lives here. EAGAIN: it is awake already.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// Clears earlier wake-ups.
    pub fn clear(&self) {
        let mut count = 0u64;
        // SAFETY: eight bytes are written to a u64 that lives here. EAGAIN: nothing woke it.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), 8) };
    }
}

impl AsRawFd for Waker {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// A timer of the monotonic clock. Unlike epoll's timeout it is not limited to milliseconds and the
/// timer slack of the thread.
#[derive(Debug)]
pub struct Timer {
    fd: OwnedFd,
    armed_ns: u64,
}

impl Timer {
    /// Makes a timer that is not armed.
    /// Errors: Of `timerfd_create`.
    pub fn new() -> io::Result<Self> {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: a plain system call; nothing else owns the new descriptor.
        let fd = unsafe {
            OwnedFd::from_raw_fd(checked(libc::timerfd_create(libc::CLOCK_MONOTONIC, flags))?)
        };
        Ok(Self { fd, armed_ns: u64::MAX })
    }

    /// Makes it fire at a time of `now_ns`; `u64::MAX`: never. A past time fires at once.
    /// Errors: Of `timerfd_settime`.
    pub fn arm(&mut self, at_ns: u64) -> io::Result<()> {
        if at_ns == self.armed_ns {
            return Ok(());
        }
        let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let value = if at_ns == u64::MAX {
            none
        } else {
            let at_ns = at_ns.max(1); // zero would disarm it
            libc::timespec {
                tv_sec: (at_ns / 1_000_000_000) as i64,
                tv_nsec: (at_ns % 1_000_000_000) as i64,
            }
        };
        let when = libc::itimerspec { it_interval: none, it_value: value };
        let flags = libc::TFD_TIMER_ABSTIME;
        // SAFETY: `when` lives during the call; the old value is not requested.
        checked(unsafe {
            libc::timerfd_settime(self.fd.as_raw_fd(), flags, &raw const when, std::ptr::null_mut())
        })?;
        self.armed_ns = at_ns;
        Ok(())
    }

    /// Notes that it fired: the next `arm` sets it even for the same time.
    pub fn fired(&mut self) {
        self.armed_ns = u64::MAX - 1;
    }
}

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// A TCP socket with the options of every connection.
fn client_socket(domain: socket2::Domain) -> io::Result<socket2::Socket> {
    let kind = socket2::Type::STREAM.nonblocking().cloexec();
    let socket = socket2::Socket::new(domain, kind, Some(socket2::Protocol::TCP))?;
    socket.set_tcp_nodelay(true)?;
    Ok(socket)
}

/// Options of the sockets that `connect` makes, as getsockopt(2) returns them: name and value.
/// Buffers are those that the kernel begins with, in bytes.
/// Errors: Of `socket` and `getsockopt`.
pub fn socket_options() -> io::Result<Vec<(&'static str, String)>> {
    let socket = client_socket(socket2::Domain::IPV4)?;
    let algorithm = socket.tcp_congestion()?;
    let algorithm = algorithm.split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(vec![
        ("TCP_NODELAY", u8::from(socket.tcp_nodelay()?).to_string()),
        ("SO_KEEPALIVE", u8::from(socket.keepalive()?).to_string()),
        ("SO_SNDBUF", socket.send_buffer_size()?.to_string()),
        ("SO_RCVBUF", socket.recv_buffer_size()?.to_string()),
        ("TCP_CONGESTION", String::from_utf8_lossy(algorithm).into_owned()),
    ])
}

/// Begins a TCP connection without waiting; it is established when it gets writable and
/// `take_error` finds none.
/// Errors: Of `socket` and of a `connect` that fails at once.
pub fn connect(address: &SocketAddr) -> io::Result<socket2::Socket> {
    let socket = client_socket(socket2::Domain::for_address(*address))?;
    match socket.connect(&(*address).into()) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(socket),
    }
}

/// Receives into `into`; 0 bytes: the peer closed the connection.
/// Errors: Of `recv`.
pub fn recv(fd: RawFd, into: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes at most `into.len()` bytes into a slice that is that long.
    counted(unsafe { libc::recv(fd, into.as_mut_ptr().cast(), into.len(), 0) })
}

/// Whether a non-blocking socket is open and has nothing to be received.
pub fn is_quiet(fd: RawFd) -> bool {
    let mut byte = 0u8;
    // SAFETY: the kernel writes at most one byte into a u8 that lives here; MSG_PEEK does not
    // consume it.
    let seen = counted(unsafe {
        libc::recv(fd, (&raw mut byte).cast(), 1, libc::MSG_PEEK | libc::MSG_DONTWAIT)
    });
    seen.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

/// Discards up to `most` received bytes of a TCP socket without copying them (`MSG_TRUNC`, see
/// tcp(7)).
/// Errors: Of `recv`.
pub fn discard(fd: RawFd, most: usize) -> io::Result<usize> {
    // SAFETY: with MSG_TRUNC a TCP socket writes nothing, so a null buffer is never touched.
    counted(unsafe { libc::recv(fd, std::ptr::null_mut(), most.min(1 << 30), libc::MSG_TRUNC) })
}

/// Sends two pieces with one call; returns how many bytes were sent. A broken connection is an
/// error, never a signal.
/// Errors: Of `sendmsg`.
pub fn send(fd: RawFd, parts: [&[u8]; 3]) -> io::Result<usize> {
    let [first, second, third] = parts;
    if second.is_empty() && third.is_empty() {
        // SAFETY: the kernel reads at most `first.len()` bytes of a slice that is that long.
        return counted(unsafe {
            libc::send(fd, first.as_ptr().cast(), first.len(), libc::MSG_NOSIGNAL)
        });
    }
    let mut pieces = parts.map(|piece| libc::iovec {
        iov_base: piece.as_ptr().cast_mut().cast(),
        iov_len: piece.len(),
    });
    // SAFETY: msghdr is plain data, for which zeros are valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = pieces.as_mut_ptr();
    message.msg_iovlen = if third.is_empty() { 2 } else { 3 };
    // SAFETY: the header points to pieces that live during the call and are only read.
    counted(unsafe { libc::sendmsg(fd, &raw const message, libc::MSG_NOSIGNAL) })
}

/// SIGINT and SIGTERM, blocked in this thread and those it starts until this is dropped.
#[derive(Debug)]
pub struct TerminationSignals {
    set: libc::sigset_t,
    before: libc::sigset_t,
}

impl TerminationSignals {
    /// Blocks them from now on.
    /// Errors: Of `pthread_sigmask`.
    pub fn block() -> io::Result<Self> {
        // SAFETY: sigset_t is plain data; sigemptyset initialises it before it is used.
        let mut set = unsafe { std::mem::zeroed() };
        let mut before = set;
        // SAFETY: all pointers are to sets that live here.
        let code = unsafe {
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGINT);
            libc::sigaddset(&raw mut set, libc::SIGTERM);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut before)
        };
        if code == 0 { Ok(Self { set, before }) } else { Err(Error::from_raw_os_error(code)) }
    }

    /// Waits for the next signal.
    /// Errors: Of `sigwait`.
    pub fn wait(&self) -> io::Result<()> {
        let mut signal = 0;
        // SAFETY: both pointers are to values that live here.
        match unsafe { libc::sigwait(&raw const self.set, &raw mut signal) } {
            0 => Ok(()),
            code => Err(Error::from_raw_os_error(code)),
        }
    }
}

impl Drop for TerminationSignals {
    fn drop(&mut self) {
        // SAFETY: the set is the one that pthread_sigmask returned; the old one is not requested.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut())
        };
    }
}
