//! One request on one connection to an origin.
//!
//! While a body is being sent, both sides are polled without waiting, so that an early answer is
//! passed on at once. Once the request has been sent, for most at once, the relay waits for one side
//! at a time.

use crate::link::{Now, Wanted, receive_now, receive_waiting, send_all, send_now, wait};
use crate::origin::Link;
use crate::record::{END_BYTES, HEADER_BYTES, LARGEST_CONTENT_BYTES, push_end, stdout_header};
use crate::reply::{Chunks, Framing, Head};
use crate::request::Request;
use crate::session::{Broken, Session};
use crate::upload::{Stage, Upload};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// The result of a request on one connection to an origin.
pub(crate) enum Relayed {
    /// It was answered.
    Complete {
        /// Whether the connection may be kept.
        reusable: bool,
    },
    /// The connection was closed before any answer.
    Stale,
    /// Nothing was passed on: the client gets this status.
    Failed(u16, String),
}

/// An answer on its way to the web server.
#[derive(Debug)]
struct Download {
    /// `None` before the head.
    framing: Option<Framing>,
    over: bool,
    /// Whether the connection can be used for another request.
    reusable: bool,
}

/// The result of receiving from the origin.
enum Received {
    Something,
    Later,
    /// The connection ended before any answer.
    Nothing(String),
}

impl<Socket: AsFd> Session<'_, Socket> {
    /// Send the request and pass the answer on, concurrently where both have data.
    pub(crate) fn relay(
        &mut self,
        id: u16,
        request: &Request,
        upload: &mut Upload,
        link: &Link<'_>,
    ) -> Result<Relayed, Broken> {
        (self.received_from, self.received_to, self.out_from, self.out_to) = (0, 0, 0, 0);
        let mut download = Download { framing: None, over: false, reusable: false };
        let mut cut = false;
        loop {
            if download.over && upload.is_over() {
                let mut end = Vec::with_capacity(END_BYTES);
                push_end(&mut end, id);
                self.out[self.out_to..self.out_to + END_BYTES].copy_from_slice(&end);
                self.out_to += END_BYTES;
                send_all(&self.socket, &self.out[self.out_from..self.out_to])?;
                return Ok(Relayed::Complete { reusable: download.reusable && !cut });
            }
            if upload.is_over() {
                if self.out_from < self.out_to {
                    send_all(&self.socket, &self.out[self.out_from..self.out_to])?;
                    (self.out_from, self.out_to) = (0, 0);
                }
                match self.receive(id, request, &mut download, link, |socket, room| {
                    receive_waiting(socket, room)
                })? {
                    Received::Something => {}
                    Received::Later if download.framing.is_none() => {
                        return Ok(Relayed::Failed(504, self.no_answer()));
                    }
                    Received::Later => return Err(Broken::Origin(self.no_answer())),
                    Received::Nothing(_) if self.received_to == 0 => return Ok(Relayed::Stale),
                    Received::Nothing(why) => return Ok(Relayed::Failed(502, why)),
                }
                continue;
            }
            if download.over && upload.stage == Stage::Sending {
                // It was answered before the body was complete: the rest is discarded, and the
                // connection cannot be used again.
                cut = true;
                upload.discard();
            }
            let mut moved = false;
            if !download.over && self.out_from == self.out_to {
                match self.receive(id, request, &mut download, link, |socket, room| {
                    receive_now(socket, room)
                })? {
                    Received::Something => moved = true,
                    Received::Later => {}
                    Received::Nothing(why) => return Ok(Relayed::Failed(502, why)),
                }
            }
            if self.out_from < self.out_to {
                if let Now::Bytes(sent) =
                    send_now(&self.socket, &self.out[self.out_from..self.out_to])?
                {
                    self.out_from += sent;
                    moved = true;
                }
                if self.out_from == self.out_to {
                    (self.out_from, self.out_to) = (0, 0);
                }
            }
            moved |= self.send_on(id, upload, link, &mut cut)?;
            if !moved {
                let wanted = [
                    Wanted {
                        receive: upload.pending().is_empty() && upload.stage != Stage::Read,
                        send: self.out_from < self.out_to,
                    },
                    Wanted {
                        receive: !download.over && self.out_from == self.out_to,
                        send: !upload.pending().is_empty(),
                    },
                ];
                let sockets: [BorrowedFd<'_>; 2] = [self.socket.as_fd(), link.stream.as_fd()];
                if !wait(
                    [(sockets[0], wanted[0]), (sockets[1], wanted[1])],
                    self.origins.timeout(),
                )? {
                    return if download.framing.is_none() && !upload.pending().is_empty() {
                        Ok(Relayed::Failed(
                            504,
                            "it accepted nothing of the request for too long".to_owned(),
                        ))
                    } else {
                        Err(Broken::Aborted("neither side moved for too long"))
                    };
                }
            }
        }
    }

    /// Send pending data of the request, or read more of it; returns whether anything was done.
    fn send_on(
        &mut self,
        id: u16,
        upload: &mut Upload,
        link: &Link<'_>,
        cut: &mut bool,
    ) -> Result<bool, Broken> {
        if upload.pending().is_empty() {
            if upload.stage == Stage::Read {
                return Ok(false);
            }
            if self.pull(id, upload)? {
                return Ok(true);
            }
            return match receive_now(&self.socket, self.records.space())? {
                Now::Bytes(0) => {
                    Err(Broken::Aborted("the web server closed the connection within the body"))
                }
                Now::Bytes(bytes) => {
                    self.records.filled(bytes);
                    Ok(true)
                }
                Now::Later => Ok(false),
            };
        }
        match send_now(&link.stream, upload.pending()) {
            Ok(Now::Bytes(sent)) => {
                upload.sent += sent;
                Ok(true)
            }
            Ok(Now::Later) => Ok(false),
            // It accepts no more; an answer may have arrived before that, and is received next.
            Err(_) => {
                *cut = true;
                upload.discard();
                Ok(true)
            }
        }
    }

    /// Receive from the origin and build a record, empty when there is nothing to pass on.
    fn receive(
        &mut self,
        id: u16,
        request: &Request,
        download: &mut Download,
        link: &Link<'_>,
        by: fn(BorrowedFd<'_>, &mut [u8]) -> io::Result<Now>,
    ) -> Result<Received, Broken> {
        if download.framing.is_some() && self.received_from < self.received_to {
            // Data that came with the head or other chunks and did not fit into the last record.
            let content = self.take_body(download, 0)?;
            if content > 0 || download.over {
                self.seal(id, content);
                return Ok(Received::Something);
            }
        }
        let socket = link.stream.as_fd();
        let direct = match download.framing {
            // All received data has been passed on: the body is received directly into the record.
            Some(Framing::Length(left)) => {
                usize::try_from(left).unwrap_or(usize::MAX).min(LARGEST_CONTENT_BYTES)
            }
            Some(Framing::UntilClose) => LARGEST_CONTENT_BYTES,
            Some(Framing::Chunked(_)) | None => 0,
        };
        let got = if direct > 0 {
            by(socket, &mut self.out[HEADER_BYTES..HEADER_BYTES + direct])
        } else {
            self.received.copy_within(self.received_from..self.received_to, 0);
            (self.received_from, self.received_to) = (0, self.received_to - self.received_from);
            by(socket, &mut self.received[self.received_to..])
        };
        let bytes = match got {
            Ok(Now::Later) => return Ok(Received::Later),
            Ok(Now::Bytes(0)) if download.framing == Some(Framing::UntilClose) => {
                download.over = true;
                return Ok(Received::Something);
            }
            Ok(Now::Bytes(0)) => return interrupted(download, "closed the connection"),
            Err(error) => return interrupted(download, &error.to_string()),
            Ok(Now::Bytes(bytes)) => bytes,
        };
        if direct > 0 {
            if let Some(Framing::Length(left)) = &mut download.framing {
                *left -= bytes as u64;
                download.over = *left == 0;
            }
            self.seal(id, bytes);
            return Ok(Received::Something);
        }
        self.received_to += bytes;
        let mut content = 0;
        if download.framing.is_none() {
            let head = match Head::parse(&self.received[..self.received_to], request.is_head()) {
                Ok(None) => return Ok(Received::Something),
                Ok(Some((head, length))) => {
                    self.received_from = length;
                    head
                }
                Err(malformed) => return Ok(Received::Nothing(malformed.0.to_owned())),
            };
            if head.text.len() > LARGEST_CONTENT_BYTES {
                return Ok(Received::Nothing("a head that does not fit into a record".to_owned()));
            }
            content = head.text.len();
            self.out[HEADER_BYTES..HEADER_BYTES + content].copy_from_slice(&head.text);
            download.framing = Some(head.framing);
            download.reusable = !head.close;
        }
        let content = self.take_body(download, content)?;
        self.seal(id, content);
        Ok(Received::Something)
    }

    /// Put received data of the body after the first `at` bytes of the record's content; returns
    /// the length of the content.
    fn take_body(&mut self, download: &mut Download, mut at: usize) -> Result<usize, Broken> {
        let Some(framing) = &mut download.framing else { return Ok(at) };
        loop {
            let here = &self.received[self.received_from..self.received_to];
            let space = LARGEST_CONTENT_BYTES - at;
            let (before, length) = match framing {
                Framing::Length(left) => {
                    (0, usize::try_from(*left).unwrap_or(usize::MAX).min(here.len()))
                }
                Framing::UntilClose => (0, here.len()),
                Framing::Chunked(chunks) => {
                    chunks.next(here).map_err(|malformed| Broken::Origin(malformed.0.to_owned()))?
                }
            };
            let taken = length.min(space);
            let to = HEADER_BYTES + at;
            self.out[to..to + taken].copy_from_slice(&here[before..before + taken]);
            at += taken;
            self.received_from += before + taken;
            match framing {
                Framing::Length(left) => *left -= taken as u64,
                Framing::Chunked(chunks) => chunks.took(taken),
                Framing::UntilClose => {}
            }
            if taken == 0 || at == LARGEST_CONTENT_BYTES {
                break;
            }
        }
        download.over = matches!(framing, Framing::Length(0) | Framing::Chunked(Chunks::Done));
        // Data after the answer belongs to no request.
        download.reusable &= !download.over || self.received_from == self.received_to;
        Ok(at)
    }

    /// Build a record from the buffer.
    fn seal(&mut self, id: u16, content: usize) {
        (self.out_from, self.out_to) = (0, 0);
        if content > 0 {
            self.out[..HEADER_BYTES].copy_from_slice(&stdout_header(id, content));
            self.out_to = HEADER_BYTES + content;
        }
    }

    fn no_answer(&self) -> String {
        format!("no answer for {} s", self.origins.timeout().as_secs())
    }
}

fn interrupted(download: &Download, why: &str) -> Result<Received, Broken> {
    if download.framing.is_some() {
        return Err(Broken::Origin(format!("origin: {why} within its answer")));
    }
    Ok(Received::Nothing(why.to_owned()))
}
