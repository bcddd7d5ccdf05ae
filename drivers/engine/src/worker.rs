//! A worker: one connection with one request outstanding, as a state machine that an I/O thread
//! drives. If there are several servers, it keeps a connection to each and uses one at a time. If
//! parts of an upload are sent at once, it has helpers that send some of them (`helping`).
//!
//! A failed request has no latency: it is counted, and its time is summed up. After a failure the
//! worker pauses: 10 ms, and after each further failure to connect (or any further failure of a
//! prepare or delete job) twice as long, up to 1 s, so that a dead target is not hammered. No
//! request is retried without being counted: a connection that ends during one is a `reset`.

use crate::answer::Answer;
use crate::body::{Body, sent_length};
use crate::flow::Flow;
use crate::link::Link;
use crate::picker::{Part, Request};
use crate::reactor::Context;
use crate::recorder::Failure;
use crate::request::put_close;
use crate::source::{Source, Step};
use crate::sys::{Ready, now_ns};
use crate::workload::Operation;
use std::sync::atomic::Ordering;

mod census;
mod choosing;
mod ending;
mod helping;
mod receiving;
mod sending;

/// Bytes a worker transfers before others get their turn.
const TURN_BYTES: u64 = 1 << 20;

const PAUSE_NS: u64 = 10_000_000;
const LONGEST_PAUSE_NS: u64 = 1_000_000_000;

/// What the thread does with a worker next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NextStep {
    /// Wait until its connection is ready.
    Wait,
    /// Resume it after the others.
    Again,
    /// Resume it at this time.
    Pause(u64),
    /// Drop it.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// No request outstanding.
    Idle,
    Connecting,
    Sending,
    Receiving,
}

/// One worker.
#[derive(Debug)]
pub struct Worker {
    source: Source,
    link: Option<Link>,
    /// Number of the server that `link` is to, or would be.
    server: usize,
    /// A connection after its last request, closed when the next one ends: the server has closed
    /// its side by then, and the side that closes first keeps the port in `TIME_WAIT`.
    closing: Option<Link>,
    /// Requests that were begun.
    asked: u64,
    /// Whether the current request is the last one of its connection.
    is_last: bool,
    /// Connections to the other servers, by number, with their serial numbers.
    parked: Vec<Option<(Link, u32)>>,
    phase: Phase,
    leaving: bool,
    finished_one: bool,
    /// Serial number of the connection, which identifies late events of another one.
    serial: u32,
    /// The latest serial number.
    serials: u32,
    /// Whether the peer has closed its side: what it sent is still read, but no request is sent.
    hung_up: bool,
    request: Option<Request>,
    out: Vec<u8>,
    body: Body,
    sent: u64,
    to_send: u64,
    answer: Answer,
    /// What the requests of an operation need of those before them.
    flow: Flow,
    /// Whether the content of the current request is checked.
    checks: bool,
    started_ns: u64,
    first_byte_ns: u64,
    deadline_ns: u64,
    failures: u32,
    /// The (intended) start of the first try since its last success; `None` before there is one.
    waits_since_ns: Option<u64>,
    /// Start and operation of a pause after a failure.
    pause: Option<(u64, Operation)>,
}

impl Worker {
    /// Makes an idle worker.
    pub fn new(source: Source) -> Self {
        Self {
            source,
            link: None,
            closing: None,
            asked: 0,
            is_last: false,
            server: 0,
            parked: Vec::new(),
            phase: Phase::Idle,
            leaving: false,
            finished_one: false,
            serial: 0,
            serials: 0,
            hung_up: false,
            request: None,
            out: Vec::with_capacity(1024),
            body: Body::default(),
            sent: 0,
            to_send: 0,
            answer: Answer::default(),
            flow: Flow::default(),
            checks: false,
            started_ns: 0,
            first_byte_ns: 0,
            deadline_ns: u64::MAX,
            failures: 0,
            waits_since_ns: None,
            pause: None,
        }
    }

    /// Number of the step worker; `None` for one of a job.
    pub fn number(&self) -> Option<u64> {
        self.source.number()
    }

    /// Serial number of its connection.
    pub fn serial(&self) -> u32 {
        self.serial
    }

    /// When the current request times out; `u64::MAX` without one.
    pub fn deadline_ns(&self) -> u64 {
        if self.phase == Phase::Idle { u64::MAX } else { self.deadline_ns }
    }

    /// Whether a request is outstanding.
    pub fn is_busy(&self) -> bool {
        self.phase != Phase::Idle
    }

    /// Records nothing from now on, and ends after the current request.
    pub fn leave(&mut self) -> NextStep {
        self.leaving = true;
        let crew = self.source.crew().filter(|_| !self.is_helper());
        // Between its parts an upload goes on, although this worker may wait for those of others.
        let waits = crew.is_some() && self.flow.started_ns.is_some();
        if let Some(crew) = crew {
            crew.leave();
        }
        if self.is_busy() || waits { NextStep::Wait } else { NextStep::End }
    }

    /// Whether it was asked to leave, having completed a request.
    pub fn left_after_start(&self) -> bool {
        self.leaving && self.finished_one
    }

    /// Ends the worker; notes what it wrote and did not delete.
    pub fn settle(self, context: &mut Context<'_>) {
        if let Some(crew) = self.source.crew().filter(|_| !self.is_helper()) {
            crew.end();
            context.again.extend(crew.wake());
        }
        self.source.settle(self.request.as_ref(), &context.shared.written);
    }

    /// Continues, or starts.
    pub fn resume(&mut self, context: &mut Context<'_>) -> NextStep {
        match self.phase {
            Phase::Idle => self.begin(context),
            Phase::Connecting => NextStep::Wait,
            Phase::Sending => self.send(context),
            Phase::Receiving => self.receive(context),
        }
    }

    /// Handles readiness of its connection.
    pub fn ready(&mut self, context: &mut Context<'_>, ready: Ready) -> NextStep {
        self.hung_up |= ready.hung_up;
        match self.phase {
            Phase::Idle => {
                if ready.hung_up {
                    // Closed while idle: the next request makes a new one.
                    self.link = None;
                }
                NextStep::Wait
            }
            Phase::Connecting if ready.writable || ready.hung_up => {
                let Some(link) = &self.link else { return NextStep::Wait };
                match link.connected() {
                    Ok(()) => {
                        context.shared.endpoints.connected(self.server);
                        if self.moment(context, now_ns()).is_some() {
                            context.recorder.connected();
                        }
                        self.phase = Phase::Sending;
                        self.send(context)
                    }
                    Err(error) => self.fail(context, Failure::Connect, &error.to_string()),
                }
            }
            Phase::Connecting => NextStep::Wait,
            Phase::Sending => {
                if ready.readable {
                    // An answer before the body is sent (usually an error), or a step of the TLS
                    // handshake.
                    let next_step = self.receive(context);
                    if self.phase != Phase::Sending {
                        return next_step;
                    }
                }
                self.send(context)
            }
            Phase::Receiving => {
                if let Some(link) = self.link.as_mut().filter(|_| ready.writable) {
                    // TLS may have buffered the end of the request. Errors are reported by
                    // receiving.
                    let _ = link.flush();
                }
                if ready.readable { self.receive(context) } else { NextStep::Wait }
            }
        }
    }

    /// Ends the current request, which timed out.
    pub fn expire(&mut self, context: &mut Context<'_>) -> NextStep {
        let class =
            if self.phase == Phase::Connecting { Failure::Connect } else { Failure::Timeout };
        let seconds = context.shared.config.request_timeout_s;
        self.fail(context, class, &format!("no complete answer within {seconds} s"))
    }

    fn begin(&mut self, context: &mut Context<'_>) -> NextStep {
        if self.leaving && self.flow.started_ns.is_none() {
            return NextStep::End;
        }
        if let Some((since_ns, operation)) = self.pause.take() {
            let now = now_ns();
            if let Some(moment) = self.moment(context, now) {
                context.recorder.paused(operation, now - since_ns.max(moment.opened_ns));
            }
        }
        if let Some(next_step) = self.request.is_none().then(|| self.join(context)).flatten() {
            return next_step;
        }
        if self.request.is_none() {
            self.request = self.next(context);
        }
        let Some(request) = self.request else { return NextStep::End };
        if self.flow.started_ns.is_some() {
            self.started_ns = u64::MAX; // only the first request of an operation has its turn
        } else if let Source::Step(Step { pace: Some((next_ns, apart_ns)), .. }) = &mut self.source
        {
            let intended = *next_ns as u64;
            if intended > now_ns() {
                return NextStep::Pause(intended);
            }
            *next_ns += *apart_ns;
            self.started_ns = intended;
        } else {
            self.started_ns = u64::MAX; // set when it is about to be sent
        }
        self.open(context, &request);
        let id = self.source.id();
        let place = self.place(context, &request);
        if request.operation.names_content() {
            let bytes = context.shared.content_of(&request);
            self.flow.known = context.shared.digests.of(bytes, request.size, true);
        }
        if let (Operation::ReadVersion, Part::Version(version)) = (request.operation, request.part)
        {
            let id = context.shared.version_ids.of_request(&request, version);
            self.flow.version.clear();
            self.flow.version.extend_from_slice(id);
        }
        let signing = &context.shared.config.workload.signing;
        // Bodies are hashed within the latency, but by default signing comes before it.
        let hashing_ns = signing.reads_bodies().then(now_ns);
        let (out, now) = (&mut self.out, context.now);
        let server = context.head_writer.write(out, &request, &id, place, now, &self.flow);
        self.select_server(server);
        let before = self.link.as_ref().map_or(0, |link| link.requests);
        self.is_last = context.shared.config.workload.connections.ends_after(before);
        if self.is_last {
            put_close(&mut self.out);
        }
        self.out.extend_from_slice(context.head_writer.body());
        self.to_send = self.out.len() as u64;
        let (mut span, mut framing) = (0..0, None);
        if request.operation.puts() {
            (span, framing) = (0..request.size, context.head_writer.framing());
            self.to_send += sent_length(*signing, request.size);
        } else if request.body_bytes() > 0 {
            let (offset, length) = request.span();
            span = offset..offset + length;
            self.to_send += length;
        }
        let bytes = context.shared.content_of(&request);
        self.body.begin(&mut self.out, request.size, span, framing, bytes);
        self.sent = 0;
        self.answer.reset();
        let start = hashing_ns.unwrap_or_else(now_ns);
        if self.started_ns != u64::MAX && self.moment(context, start).is_some() {
            context.recorder.begun();
        }
        self.started_ns = self.started_ns.min(start);
        let begins = self.flow.started_ns.is_none() && !self.is_helper();
        if begins {
            self.waits_since_ns.get_or_insert(self.started_ns);
        }
        if begins && request.operation.part().is_some() {
            self.flow.started_ns = Some(self.started_ns);
        }
        self.first_byte_ns = 0;
        self.deadline_ns = start + context.timeout_ns;
        if let Some(link) = &mut self.link {
            link.requests += 1;
            self.phase = Phase::Sending;
            return self.send(context);
        }
        self.dial(context)
    }

    fn next(&mut self, context: &Context<'_>) -> Option<Request> {
        let config = &context.shared.config;
        let next = self.source.next(config).map(|request| Flow::first(request, config));
        self.checks = self.source.checks(&context.shared.config);
        if next.is_none() && self.number().is_some() {
            context.shared.exhausted.fetch_add(1, Ordering::SeqCst);
            if !self.finished_one {
                // Nothing to delete at all: do not let others wait for its first request.
                context.shared.started.fetch_add(1, Ordering::SeqCst);
            }
        }
        next
    }

    fn finished(&mut self, context: &Context<'_>) {
        if !self.finished_one && self.number().is_some() {
            context.shared.started.fetch_add(1, Ordering::SeqCst);
        }
        self.finished_one = true;
    }
}
