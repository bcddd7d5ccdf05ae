//! Blocking and non-blocking operations on sockets.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// The result of an operation that may block.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Now {
    /// So many bytes; 0: the peer has closed.
    Bytes(usize),
    /// The operation would block.
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

/// Receive what is available without waiting.
/// Errors: When the connection has failed.
pub(crate) fn receive_now(socket: impl AsFd, into: &mut [u8]) -> io::Result<Now> {
    receive(socket, into, RecvFlags::DONTWAIT)
}

/// Receive, waiting up to the socket's own timeout; `Later` after that.
/// Errors: When the connection has failed.
pub(crate) fn receive_waiting(socket: impl AsFd, into: &mut [u8]) -> io::Result<Now> {
    receive(socket, into, RecvFlags::empty())
}

/// Whether an idle connection is open and has received nothing.
pub(crate) fn is_silent(socket: impl AsFd) -> bool {
    matches!(receive(socket, &mut [0], RecvFlags::DONTWAIT | RecvFlags::PEEK), Ok(Now::Later))
}

/// Send what can be sent without waiting.
/// Errors: When the connection has failed.
pub(crate) fn send_now(socket: impl AsFd, bytes: &[u8]) -> io::Result<Now> {
    loop {
        if let Some(now) =
            done(send(socket.as_fd(), bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL))?
        {
            return Ok(now);
        }
    }
}

/// Send everything, waiting up to the socket's own timeout each time.
/// Errors: When the connection has failed or timed out.
pub(crate) fn send_all(socket: impl AsFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match done(send(socket.as_fd(), bytes, SendFlags::NOSIGNAL))? {
            Some(Now::Bytes(sent)) => bytes = &bytes[sent..],
            Some(Now::Later) => return Err(io::ErrorKind::TimedOut.into()),
            None => {}
        }
    }
    Ok(())
}

/// What to wait for on a socket.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// Data to receive.
    pub(crate) receive: bool,
    /// Space to send.
    pub send: bool,
}

/// Wait until one of the sockets is ready or has failed; false at the timeout.
/// Errors: When polling fails.
pub fn wait(sockets: [(BorrowedFd<'_>, Wanted); 2], within: Duration) -> io::Result<bool> {
    // A socket with nothing wanted must be left out: its hang-up would be reported again and again.
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
