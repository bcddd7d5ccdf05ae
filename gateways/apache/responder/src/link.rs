//! Sockets, waited for or not.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// What a socket gave or took at once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Now {
    /// So many bytes; none: the peer has closed.
    Bytes(usize),
    /// It would have to be waited for.
    Later,
}

fn done(result: Result<usize, Errno>) -> io::Result<Option<Now>> {
    match result {
        Ok(bytes) => Ok(Some(Now::Bytes(bytes))),
        Err(Errno::AGAIN) => Ok(Some(Now::Later)),
        Err(Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn receive(socket: impl AsFd, into: &mut [u8], flags: RecvFlags) -> io::Result<Now> {
    loop {
        if let Some(now) = done(recv(socket.as_fd(), &mut *into, flags).map(|(bytes, _)| bytes))? {
            return Ok(now);
        }
    }
}

/// What is there to be received.
///
/// # Errors
/// When the connection has failed.
pub fn receive_now(socket: impl AsFd, into: &mut [u8]) -> io::Result<Now> {
    receive(socket, into, RecvFlags::DONTWAIT)
}

/// What is received next, waited for as long as the socket's own timeout says; `Later` when that
/// was too short.
///
/// # Errors
/// When the connection has failed.
pub fn receive_waiting(socket: impl AsFd, into: &mut [u8]) -> io::Result<Now> {
    receive(socket, into, RecvFlags::empty())
}

/// Whether an idle connection is one: open, and nothing was said on it.
#[must_use]
pub fn is_silent(socket: impl AsFd) -> bool {
    matches!(receive(socket, &mut [0], RecvFlags::DONTWAIT | RecvFlags::PEEK), Ok(Now::Later))
}

/// Send what can be sent at once.
///
/// # Errors
/// When the connection has failed.
pub fn send_now(socket: impl AsFd, bytes: &[u8]) -> io::Result<Now> {
    loop {
        if let Some(now) =
            done(send(socket.as_fd(), bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL))?
        {
            return Ok(now);
        }
    }
}

/// Send all of it, waiting as long as the socket's own timeout says.
///
/// # Errors
/// When the connection has failed, or nothing was taken for too long.
pub fn send_all(socket: impl AsFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match done(send(socket.as_fd(), bytes, SendFlags::NOSIGNAL))? {
            Some(Now::Bytes(sent)) => bytes = &bytes[sent..],
            Some(Now::Later) => return Err(io::ErrorKind::TimedOut.into()),
            None => {}
        }
    }
    Ok(())
}

/// What is waited for of a socket.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// That something can be received.
    pub receive: bool,
    /// That something can be sent.
    pub send: bool,
}

/// Wait until one of the sockets is ready for what is wanted of it, or has failed; false when none
/// was within the time.
///
/// # Errors
/// When waiting is refused.
pub fn wait(sockets: [(BorrowedFd<'_>, Wanted); 2], within: Duration) -> io::Result<bool> {
    // A socket of which nothing is wanted must not be asked: its end would be told again and again.
    let mut asked: Vec<PollFd<'_>> = Vec::with_capacity(2);
    for (socket, wanted) in &sockets {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, wanted.receive);
        flags.set(PollFlags::OUT, wanted.send);
        if !flags.is_empty() {
            asked.push(PollFd::from_borrowed_fd(*socket, flags));
        }
    }
    let within =
        Timespec::try_from(within).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    loop {
        match poll(&mut asked, Some(&within)) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
