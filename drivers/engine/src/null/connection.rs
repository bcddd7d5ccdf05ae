//! A connection of the null target: reads a request, waits for the configured delay, answers.

use super::api::{Answer, Api, RequestHead, decode};
use super::store::Object;
use crate::content::SINGLE_PIECE_BYTES;
use crate::http::{Chunked, LARGEST_HEAD_BYTES, decimal, has_word};
use crate::sys;
use socket2::Socket;
use std::io::ErrorKind;
use std::os::fd::AsRawFd as _;

const PIECE_BYTES: usize = 256 * 1024;
const TURN_BYTES: u64 = 1 << 20;

#[derive(Debug)]
enum Framing {
    Length(u64),
    Chunked(Chunked),
}

/// A request being read.
#[derive(Debug)]
struct Incoming {
    head: RequestHead,
    framing: Framing,
    /// `aws-chunked` inside of the framing.
    inner: Option<Chunked>,
    size: u64,
    close: bool,
}

/// What a connection does next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Wait for more of a request, or for room to write.
    Wait,
    /// Yield: it moved a lot of data.
    Again,
    /// A request is complete; `reply` answers it when its delay has passed.
    Complete,
    /// Close.
    End,
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    socket: Socket,
    /// Bytes received and not parsed yet.
    input: Vec<u8>,
    incoming: Option<Incoming>,
    /// First bytes of the body being received: of content they show what it is.
    first: Vec<u8>,
    is_complete: bool,
    readable: bool,
    hung_up: bool,
    out: Vec<u8>,
    sent: u64,
    to_send: u64,
    object: Option<Object>,
    close: bool,
}

impl Connection {
    /// Wraps an accepted, non-blocking socket.
    pub fn new(socket: Socket) -> Self {
        Self {
            socket,
            input: Vec::new(),
            incoming: None,
            first: Vec::new(),
            is_complete: false,
            readable: true,
            hung_up: false,
            out: Vec::new(),
            sent: 0,
            to_send: 0,
            object: None,
            close: false,
        }
    }

    /// Proceeds as far as it can.
    pub fn go(&mut self, api: &Api, scratch: &mut [u8]) -> Step {
        if self.is_complete {
            return Step::Wait;
        }
        if self.sent < self.to_send {
            let step = self.write(api);
            if step != Step::Complete {
                return step;
            }
        }
        self.read(scratch)
    }

    /// Answers the complete request; `failing`: with this error status.
    pub fn reply(&mut self, api: &Api, failing: Option<u16>, scratch: &mut [u8]) -> Step {
        let Some(incoming) = self.incoming.take() else { return Step::End };
        self.is_complete = false;
        let answer = match failing {
            Some(status) => Answer::error(&incoming.head, status, "InjectedFailure"),
            None => api.answer(&incoming.head, incoming.size, &self.first),
        };
        self.close = incoming.close;
        self.compose(answer, incoming.head.method == "HEAD");
        self.go(api, scratch)
    }

    /// Records readiness of its socket.
    pub fn ready(&mut self, ready: sys::Ready) {
        self.readable |= ready.readable;
        self.hung_up |= ready.hung_up;
    }

    /// The head of the current request.
    pub fn head(&self) -> Option<&RequestHead> {
        self.incoming.as_ref().map(|incoming| &incoming.head)
    }

    fn compose(&mut self, answer: Answer, to_head: bool) {
        let length = answer.object.as_ref().map_or(answer.text.len() as u64, |object| object.size);
        let reason = if answer.status < 300 { "OK" } else { "Error" };
        self.out.clear();
        self.out.extend_from_slice(b"HTTP/1.1 ");
        crate::workload::put_number(&mut self.out, u64::from(answer.status), 3);
        self.out.push(b' ');
        self.out.extend_from_slice(reason.as_bytes());
        self.out.extend_from_slice(b"\r\n");
        self.out.extend_from_slice(answer.headers.as_bytes());
        if answer.status != 204 {
            self.out.extend_from_slice(b"Content-Length: ");
            crate::workload::put_number(&mut self.out, length, 1);
            self.out.extend_from_slice(b"\r\n");
        }
        if self.close {
            self.out.extend_from_slice(b"Connection: close\r\n");
        }
        self.out.extend_from_slice(b"\r\n");
        if !to_head {
            self.out.extend_from_slice(answer.text.as_bytes());
        }
        self.object = answer.object.filter(|_| !to_head);
        self.sent = 0;
        self.to_send = self.out.len() as u64 + self.object.as_ref().map_or(0, |_| length);
    }

    /// Writes the answer; `Complete` when it is sent and the next request may be read.
    fn write(&mut self, api: &Api) -> Step {
        let head = self.out.len() as u64;
        let turn_ends = self.sent + TURN_BYTES;
        while self.sent < self.to_send {
            if self.sent >= turn_ends {
                return Step::Again;
            }
            let unsent = &self.out[self.sent.min(head) as usize..];
            let body = self.object.as_ref().map_or(&[][..], |object| {
                let at = self.sent.saturating_sub(head);
                let most = (self.to_send - head - at).min(PIECE_BYTES as u64) as usize;
                api.store.piece(object, at, most)
            });
            let fd = self.socket.as_raw_fd();
            let sent = if unsent.is_empty() {
                sys::send(fd, [body, &[], &[]])
            } else {
                sys::send(fd, [unsent, body, &[]])
            };
            match sent {
                Ok(count) => self.sent += count as u64,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Step::Wait,
                Err(_) => return Step::End,
            }
        }
        self.object = None;
        if self.close { Step::End } else { Step::Complete }
    }

    fn read(&mut self, scratch: &mut [u8]) -> Step {
        if !self.input.is_empty() {
            let input = std::mem::take(&mut self.input);
            match self.digest(&input) {
                Ok(true) => return self.complete(),
                Ok(false) => {}
                Err(()) => return Step::End,
            }
        }
        let mut turn = 0;
        while self.readable {
            if turn >= TURN_BYTES {
                return Step::Again;
            }
            let to_discard = self.to_discard();
            let fd = self.socket.as_raw_fd();
            let wanted = if to_discard > 0 { to_discard as usize } else { scratch.len() };
            let received =
                if to_discard > 0 { sys::discard(fd, wanted) } else { sys::recv(fd, scratch) };
            let count = match received {
                Ok(0) => return Step::End,
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.readable = false;
                    return Step::Wait;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Step::End,
            };
            turn += count as u64;
            // Fewer bytes than requested: the socket is empty, and epoll reports what comes next;
            // unless the end of the stream was part of this event.
            self.readable = count == wanted || self.hung_up;
            let complete = if to_discard > 0 {
                Ok(self.discarded(count as u64))
            } else {
                self.feed(&scratch[..count])
            };
            match complete {
                Ok(true) => return self.complete(),
                Ok(false) => {}
                Err(()) => return Step::End,
            }
        }
        Step::Wait
    }

    fn complete(&mut self) -> Step {
        self.is_complete = true;
        Step::Complete
    }

    /// How many bytes of the body can be discarded.
    fn to_discard(&self) -> u64 {
        match &self.incoming {
            Some(Incoming { framing: Framing::Length(left), inner: None, .. })
                if self.first.len() >= SINGLE_PIECE_BYTES =>
            {
                *left
            }
            _ => 0,
        }
    }

    fn discarded(&mut self, count: u64) -> bool {
        let Some(Incoming { framing: Framing::Length(left), size, .. }) = &mut self.incoming else {
            return false;
        };
        *left -= count;
        *size += count;
        *left == 0
    }

    /// Parses bytes; returns whether a request is complete. Bytes after it stay in `input`. An
    /// error: not HTTP.
    fn feed(&mut self, bytes: &[u8]) -> Result<bool, ()> {
        if self.input.is_empty() {
            return self.digest(bytes);
        }
        let mut input = std::mem::take(&mut self.input);
        input.extend_from_slice(bytes);
        self.digest(&input)
    }

    fn digest(&mut self, bytes: &[u8]) -> Result<bool, ()> {
        let mut used = 0;
        if self.incoming.is_none() {
            let Some((incoming, length, expects)) = parse(bytes)? else {
                self.input.extend_from_slice(bytes);
                return if bytes.len() > LARGEST_HEAD_BYTES { Err(()) } else { Ok(false) };
            };
            used = length;
            self.first.clear();
            if expects && used == bytes.len() {
                // Small enough for any socket's buffer: it is sent completely or not at all.
                sys::send(self.socket.as_raw_fd(), [b"HTTP/1.1 100 Continue\r\n\r\n", &[], &[]])
                    .map_err(|_| ())?;
            }
            self.incoming = Some(incoming);
        }
        let Some(incoming) = &mut self.incoming else { return Ok(false) };
        let (taken, complete) = incoming.take(&bytes[used..], &mut self.first)?;
        self.input.extend_from_slice(&bytes[used + taken..]);
        Ok(complete)
    }
}

impl Incoming {
    /// Parses bytes of the body: how many were used, and whether it is complete.
    fn take(&mut self, bytes: &[u8], first: &mut Vec<u8>) -> Result<(usize, bool), ()> {
        let mut keep = |part: &[u8]| {
            self.size += part.len() as u64;
            first.extend_from_slice(&part[..part.len().min(SINGLE_PIECE_BYTES - first.len())]);
        };
        let mut broken = false;
        let inner = &mut self.inner;
        let mut sink = |part: &[u8]| match inner {
            Some(inner) => broken |= inner.take(part, &mut keep).is_err(),
            None => keep(part),
        };
        let (used, complete) = match &mut self.framing {
            Framing::Length(left) => {
                let part = bytes.len().min((*left).min(usize::MAX as u64) as usize);
                sink(&bytes[..part]);
                *left -= part as u64;
                (part, *left == 0)
            }
            Framing::Chunked(chunked) => {
                let used = chunked.take(bytes, sink).map_err(|_| ())?;
                (used, chunked.is_done())
            }
        };
        if broken { Err(()) } else { Ok((used, complete)) }
    }
}

/// Parses the head of a request; returns it, its length, and whether the client waits for
/// `100 Continue`, or `None` when more is needed.
fn parse(bytes: &[u8]) -> Result<Option<(Incoming, usize, bool)>, ()> {
    let mut headers = [const { std::mem::MaybeUninit::uninit() }; 100];
    let mut request = httparse::Request::new(&mut []);
    let length = match request.parse_with_uninit_headers(bytes, &mut headers) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(()),
    };
    let target = request.path.unwrap_or("/");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut head = RequestHead {
        method: request.method.unwrap_or("").into(),
        path: decode(path),
        query: query.into(),
        ..RequestHead::default()
    };
    let (mut body, mut chunked, mut inner, mut expects) = (0, false, false, false);
    let mut close = request.version == Some(0);
    for header in request.headers.iter() {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        let text = || String::from_utf8_lossy(header.value).into_owned();
        // By length first: most headers are none of these.
        match header.name.len() {
            4 if is("host") => head.host = text(),
            6 if is("expect") => expects = has_word(header.value, "100-continue"),
            10 if is("connection") => {
                close = has_word(header.value, "close")
                    || (close && !has_word(header.value, "keep-alive"));
            }
            10 if is("x-auth-key") => head.login.1 = text(),
            11 if is("x-auth-user") => head.login.0 = text(),
            11 if is("x-copy-from") => head.copies = true,
            12 if is("x-auth-token") => head.token = text(),
            14 if is("content-length") => body = decimal(header.value).ok_or(())?,
            17 if is("transfer-encoding") => chunked = has_word(header.value, "chunked"),
            17 if is("x-amz-copy-source") => head.copies = true,
            20 if is("x-amz-content-sha256") => inner = header.value.starts_with(b"STREAMING-"),
            _ => {}
        }
    }
    head.unfold_virtual_host();
    let framing =
        if chunked { Framing::Chunked(Chunked::default()) } else { Framing::Length(body) };
    let inner = inner.then(Chunked::default);
    Ok(Some((Incoming { head, framing, inner, size: 0, close }, length, expects)))
}
