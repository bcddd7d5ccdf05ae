//! One connection of the web server, with one request after the other.

use crate::link::{Now, Wanted, receive_now, receive_waiting, send_all, wait};
use crate::origin::Origins;
use crate::record::{
    END_BYTES, HEADER_BYTES, LARGEST_CONTENT_BYTES, Piece, Records, push_end, push_unknown_role,
    push_unknown_type, push_values, stdout_header,
};
use crate::relay::Relayed;
use crate::request::Request;
use crate::stats::{Held, Stats};
use crate::upload::{Stage, Upload};
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;

const BUFFER_BYTES: usize = 64 * 1024;

/// The largest parameters of a request; Apache's own limits allow 100 fields of 8 KiB.
const LARGEST_PARAMS_BYTES: usize = 1024 * 1024;

/// Why a connection cannot be used any more.
#[derive(Debug)]
pub enum Broken {
    /// The web server aborted the request or closed the connection.
    Aborted(&'static str),
    /// The origin's answer ended early, after its head was passed on.
    Origin(String),
    /// The data is not valid FastCGI.
    Malformed(&'static str),
    /// The connection to the web server failed.
    Failed(io::Error),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<crate::record::Malformed> for Broken {
    fn from(error: crate::record::Malformed) -> Self {
        Self::Malformed(error.0)
    }
}

/// A connection of the web server.
#[derive(Debug)]
pub struct Session<'a, Socket: AsFd> {
    pub socket: Socket,
    pub origins: &'a Origins<'a>,
    pub stats: &'a Stats,
    pub records: Records,
    /// Received from the origin and not yet passed on.
    pub(crate) received: Box<[u8]>,
    pub(crate) received_from: usize,
    pub(crate) received_to: usize,
    /// Data for the web server: space for one full record and the end of a request.
    pub out: Box<[u8]>,
    pub(crate) out_from: usize,
    pub(crate) out_to: usize,
}

impl<'a, Socket: AsFd> Session<'a, Socket> {
    /// For a socket with a timeout for sending.
    pub fn new(socket: Socket, origins: &'a Origins<'a>, stats: &'a Stats) -> Self {
        let buffer = || vec![0; BUFFER_BYTES].into_boxed_slice();
        let out = vec![0; HEADER_BYTES + LARGEST_CONTENT_BYTES + END_BYTES].into_boxed_slice();
        Self {
            socket,
            origins,
            stats,
            records: Records::new(BUFFER_BYTES),
            received: buffer(),
            received_from: 0,
            received_to: 0,
            out,
            out_from: 0,
            out_to: 0,
        }
    }

    /// Serve requests until the web server closes the connection or an error occurs.
    pub fn serve(&mut self) {
        loop {
            match self.one() {
                Ok(true) => {}
                Ok(false) => return,
                Err((broken, what)) => {
                    let (counter, why) = match broken {
                        Broken::Aborted(why) => (&self.stats.aborted, why.to_owned()),
                        Broken::Origin(why) => (&self.stats.origin_failed, why),
                        Broken::Malformed(why) => (&self.stats.malformed, why.to_owned()),
                        Broken::Failed(error) => {
                            (&self.stats.aborted, format!("connection of the web server: {error}"))
                        }
                    };
                    counter.fetch_add(1, Relaxed);
                    self.stats.log(&format!("{what}: {why}"));
                    return;
                }
            }
        }
    }

    /// Receive and answer one request; false to close the connection. An error has a description of
    /// the request.
    fn one(&mut self) -> Result<bool, (Broken, String)> {
        let started =
            self.receive_request().map_err(|broken| (broken, "before a request".to_owned()))?;
        let Some((id, keep, params)) = started else { return Ok(false) };
        self.stats.requests.fetch_add(1, Relaxed);
        let _held = Held::new(&self.stats.active);
        match Request::parse(&params) {
            Ok(request) => {
                drop(params);
                let about = |broken| {
                    (
                        broken,
                        format!("{} {}", String::from_utf8_lossy(&request.method), request.path),
                    )
                };
                self.answer(id, &request).map_err(about)?;
            }
            Err(malformed) => {
                self.stats.malformed.fetch_add(1, Relaxed);
                self.stats.log(&format!("refused: {}", malformed.0));
                self.refuse(id).map_err(|broken| (broken, "a refused request".to_owned()))?;
            }
        }
        Ok(keep)
    }

    /// The id of the next request, whether the connection stays open after it, and its parameters;
    /// `None` when there are no more.
    fn receive_request(&mut self) -> Result<Option<(u16, bool, Vec<u8>)>, Broken> {
        let mut current: Option<(u16, bool)> = None;
        let mut params = Vec::new();
        let mut reply = Vec::new();
        loop {
            while let Some(piece) = self.records.next(BUFFER_BYTES)? {
                match piece {
                    Piece::Begin { .. } if current.is_some() => {
                        return Err(Broken::Malformed("two requests at once"));
                    }
                    Piece::Begin { id, responder: true, keep } => current = Some((id, keep)),
                    Piece::Begin { id, .. } => push_unknown_role(&mut reply, id),
                    Piece::GetValues(asked) => push_values(&mut reply, asked)?,
                    Piece::Unknown(kind) => push_unknown_type(&mut reply, kind),
                    Piece::Params(id, piece) if current.is_some_and(|(begun, _)| begun == id) => {
                        if params.len() + piece.len() > LARGEST_PARAMS_BYTES {
                            return Err(Broken::Malformed("parameters of more than 1 MiB"));
                        }
                        params.extend(piece);
                    }
                    Piece::ParamsEnd(id) if current.is_some_and(|(begun, _)| begun == id) => {
                        let (id, keep) = current.expect("just seen");
                        return Ok(Some((id, keep, params)));
                    }
                    Piece::Abort(id) if current.is_some_and(|(begun, _)| begun == id) => {
                        return Err(Broken::Aborted("aborted before its parameters were complete"));
                    }
                    // Of requests that were answered or refused for their role.
                    _ => {}
                }
            }
            if !reply.is_empty() {
                send_all(&self.socket, &reply)?;
                reply.clear();
            }
            // An idle connection may be silent as long as the web server likes, but not during a
            // request.
            if current.is_some() || self.records.amid() {
                if !self.receive_record()? {
                    return Err(Broken::Aborted(
                        "the web server closed the connection before all parameters",
                    ));
                }
            } else {
                match receive_waiting(&self.socket, self.records.space()) {
                    Ok(Now::Bytes(0)) | Err(_) => return Ok(None),
                    Ok(Now::Bytes(bytes)) => self.records.filled(bytes),
                    Ok(Now::Later) => {}
                }
            }
        }
    }

    /// Wait for more data of the web server; false when it has closed.
    fn receive_record(&mut self) -> Result<bool, Broken> {
        loop {
            match receive_now(&self.socket, self.records.space())? {
                Now::Bytes(bytes) => {
                    self.records.filled(bytes);
                    return Ok(bytes > 0);
                }
                Now::Later => {
                    let wanted = Wanted { receive: true, send: false };
                    let nothing = (self.socket.as_fd(), Wanted::default());
                    if !wait([(self.socket.as_fd(), wanted), nothing], self.origins.timeout())? {
                        return Err(Broken::Aborted("the web server sent nothing for too long"));
                    }
                }
            }
        }
    }

    /// Process received data of the body; false when more must be received.
    pub(crate) fn pull(&mut self, id: u16, upload: &mut Upload) -> Result<bool, Broken> {
        let Some(piece) = self.records.next(BUFFER_BYTES)? else { return Ok(false) };
        match piece {
            Piece::Stdin(of, piece) if of == id && upload.stage == Stage::Sending => {
                upload.push(piece)?;
            }
            Piece::StdinEnd(of) if of == id && upload.stage == Stage::Sending => upload.end()?,
            Piece::StdinEnd(of) if of == id => upload.stage = Stage::Read,
            Piece::Abort(of) if of == id => {
                return Err(Broken::Aborted("aborted by the web server"));
            }
            Piece::Begin { .. } => return Err(Broken::Malformed("two requests at once")),
            _ => {}
        }
        Ok(true)
    }

    /// Receive and discard the body.
    fn drain(&mut self, id: u16, upload: &mut Upload) -> Result<(), Broken> {
        while upload.stage != Stage::Read {
            if !self.pull(id, upload)? && !self.receive_record()? {
                return Err(Broken::Aborted(
                    "the web server closed the connection within the body",
                ));
            }
        }
        Ok(())
    }

    /// Send the request to an origin and pass its answer on.
    fn answer(&mut self, id: u16, request: &Request) -> Result<(), Broken> {
        let mut upload = Upload::new(request.length);
        if request.length.is_none() {
            // Only the first record shows whether there is a body.
            while upload.stage == Stage::Sending && !upload.body {
                if !self.pull(id, &mut upload)? && !self.receive_record()? {
                    return Err(Broken::Aborted(
                        "the web server closed the connection before the body",
                    ));
                }
            }
        } else {
            // Data that is already there goes with the head.
            self.pull(id, &mut upload)?;
        }
        let head = request.head(upload.body);
        upload.pending.splice(0..0, head.iter().copied());
        let mut link = match self.origins.link() {
            Ok(link) => link,
            Err(error) => {
                return self.fail(id, request, &mut upload, 502, &format!("origin {error}"));
            }
        };
        loop {
            match self.relay(id, request, &mut upload, &link)? {
                Relayed::Complete { reusable } => {
                    if reusable {
                        self.origins.keep(link);
                    }
                    return Ok(());
                }
                Relayed::Stale
                    if link.reused
                        && upload.stage == Stage::Read
                        && !upload.body
                        && request.is_safe() =>
                {
                    self.stats.retried.fetch_add(1, Relaxed);
                    upload.pending.clone_from(&head);
                    upload.sent = 0;
                    match self.origins.connect(link.place) {
                        Ok(fresh) => link = fresh,
                        Err(error) => {
                            return self.fail(
                                id,
                                request,
                                &mut upload,
                                502,
                                &format!("origin {error}"),
                            );
                        }
                    }
                }
                Relayed::Stale => {
                    let why = format!(
                        "origin {} closed the connection without an answer",
                        self.origins.address(link.place)
                    );
                    drop(link);
                    return self.fail(id, request, &mut upload, 502, &why);
                }
                Relayed::Failed(status, why) => {
                    let why = format!("origin {}: {why}", self.origins.address(link.place));
                    drop(link);
                    return self.fail(id, request, &mut upload, status, &why);
                }
            }
        }
    }

    /// Answer in the origin's place.
    fn fail(
        &mut self,
        id: u16,
        request: &Request,
        upload: &mut Upload,
        status: u16,
        why: &str,
    ) -> Result<(), Broken> {
        self.stats.origin_failed.fetch_add(1, Relaxed);
        self.stats.log(&format!(
            "{} {}: {why}",
            String::from_utf8_lossy(&request.method),
            request.path
        ));
        let words = if status == 504 { "Gateway Timeout" } else { "Bad Gateway" };
        self.close_with(
            id,
            upload,
            &format!("Status: {status} {words}\r\nContent-Length: 0\r\n\r\n"),
        )
    }

    /// Answer an invalid request.
    fn refuse(&mut self, id: u16) -> Result<(), Broken> {
        let mut upload = Upload::new(None);
        self.close_with(id, &mut upload, "Status: 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    }

    fn close_with(&mut self, id: u16, upload: &mut Upload, head: &str) -> Result<(), Broken> {
        upload.discard();
        let mut bytes = stdout_header(id, head.len()).to_vec();
        bytes.extend(head.bytes());
        send_all(&self.socket, &bytes)?;
        self.drain(id, upload)?;
        bytes.clear();
        push_end(&mut bytes, id);
        send_all(&self.socket, &bytes)?;
        Ok(())
    }
}
