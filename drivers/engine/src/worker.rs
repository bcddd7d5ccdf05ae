//! A worker: one connection with one request outstanding, as a state machine that an I/O thread
//! drives. Where there are several servers to ask, it keeps a connection to each and asks one after
//! the other.
//!
//! A failed request is no latency: it is counted, and its time is summed up. After one the worker
//! rests: 10 ms, and after each further failure to connect (or any further failure of a prepare or
//! delete job) twice as long, up to 1 s, so that a dead target is not hammered. Nothing is sent
//! twice behind the measurement's back: a connection that ends under a request is a `reset`.

use crate::answer::Answer;
use crate::link::Link;
use crate::picker::Request;
use crate::reactor::Bench;
use crate::recorder::{Failed, Failure, Sample};
use crate::shared::Moment;
use crate::source::{Setback, Source, Step};
use crate::sys::{Ready, now_ns};
use crate::workload::Operation;
use std::io::ErrorKind;
use std::sync::atomic::Ordering;

mod census;
mod receiving;

/// Bytes one worker moves before others get their turn.
const TURN_BYTES: u64 = 1 << 20;

/// Largest piece of a body handed to the kernel at once.
const PIECE_BYTES: usize = 256 * 1024;

const REST_NS: u64 = 10_000_000;
const LONGEST_REST_NS: u64 = 1_000_000_000;

/// What the thread does with a worker next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Nothing until its connection is ready.
    Wait,
    /// Call it again after the others.
    Again,
    /// Call it again at this time.
    Rest(u64),
    /// Drop it.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// No request in hand.
    Resting,
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
    /// Connections to other servers, by their numbers, with their serial numbers: where several are
    /// asked, all are kept.
    parked: Vec<Option<(Link, u32)>>,
    phase: Phase,
    leaving: bool,
    finished_one: bool,
    /// Serial number of the connection, so that a late event of another one is told apart.
    serial: u32,
    /// The latest serial number.
    serials: u32,
    /// Whether the peer has closed its side: what it sent before is still read, but nothing more is
    /// asked of it.
    hung_up: bool,
    request: Option<Request>,
    out: Vec<u8>,
    sent: u64,
    to_send: u64,
    answer: Answer,
    /// Whether the content of what is in hand is checked.
    checks: bool,
    started_ns: u64,
    first_byte_ns: u64,
    deadline_ns: u64,
    failures: u32,
    /// Since when it rests after a failure, and of what.
    rest: Option<(u64, Operation)>,
}

impl Worker {
    /// A worker that has done nothing yet.
    #[must_use]
    pub fn new(source: Source) -> Self {
        Self {
            source,
            link: None,
            server: 0,
            parked: Vec::new(),
            phase: Phase::Resting,
            leaving: false,
            finished_one: false,
            serial: 0,
            serials: 0,
            hung_up: false,
            request: None,
            out: Vec::with_capacity(1024),
            sent: 0,
            to_send: 0,
            answer: Answer::default(),
            checks: false,
            started_ns: 0,
            first_byte_ns: 0,
            deadline_ns: u64::MAX,
            failures: 0,
            rest: None,
        }
    }

    /// Number of the step worker; `None` for one of a job.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        self.source.number()
    }

    /// Serial number of its connection.
    #[must_use]
    pub fn serial(&self) -> u32 {
        self.serial
    }

    /// When the request in hand has taken too long; `u64::MAX` without one.
    #[must_use]
    pub fn deadline_ns(&self) -> u64 {
        if self.phase == Phase::Resting { u64::MAX } else { self.deadline_ns }
    }

    /// Whether a request is in hand.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.phase != Phase::Resting
    }

    /// From now on nothing is recorded, and the worker ends after the request in hand.
    pub fn leave(&mut self) -> Verdict {
        self.leaving = true;
        if self.is_busy() { Verdict::Wait } else { Verdict::End }
    }

    /// Whether it was told to leave before it ended by itself, having finished a request.
    #[must_use]
    pub fn left_after_start(&self) -> bool {
        self.leaving && self.finished_one
    }

    /// It has ended: notes what it wrote and did not delete.
    pub fn settle(self, bench: &mut Bench<'_>) {
        self.source.settle(self.request.as_ref(), &bench.shared.ledger);
    }

    /// Goes on with whatever comes next: after a rest, or as the first thing it does.
    pub fn resume(&mut self, bench: &mut Bench<'_>) -> Verdict {
        match self.phase {
            Phase::Resting => self.begin(bench),
            Phase::Connecting => Verdict::Wait,
            Phase::Sending => self.send(bench),
            Phase::Receiving => self.receive(bench),
        }
    }

    /// Its connection is ready for something.
    pub fn ready(&mut self, bench: &mut Bench<'_>, ready: Ready) -> Verdict {
        self.hung_up |= ready.hung_up;
        match self.phase {
            Phase::Resting => {
                if ready.hung_up {
                    // Closed while idle: a new one is made for the next request.
                    self.link = None;
                }
                Verdict::Wait
            }
            Phase::Connecting if ready.writable || ready.hung_up => {
                let Some(link) = &self.link else { return Verdict::Wait };
                match link.connected() {
                    Ok(()) => {
                        self.phase = Phase::Sending;
                        self.send(bench)
                    }
                    Err(error) => self.fail(bench, Failure::Connect, &error.to_string()),
                }
            }
            Phase::Connecting => Verdict::Wait,
            Phase::Sending => {
                if ready.readable {
                    // An answer before the body is out (an error, as a rule), or a step of TLS's
                    // handshake.
                    let verdict = self.receive(bench);
                    if self.phase != Phase::Sending {
                        return verdict;
                    }
                }
                self.send(bench)
            }
            Phase::Receiving => {
                if let Some(link) = self.link.as_mut().filter(|_| ready.writable) {
                    // TLS may hold the end of the request; what ended the connection is seen by
                    // receiving.
                    let _ = link.flush();
                }
                if ready.readable { self.receive(bench) } else { Verdict::Wait }
            }
        }
    }

    /// The request in hand has taken too long.
    pub fn expire(&mut self, bench: &mut Bench<'_>) -> Verdict {
        let class =
            if self.phase == Phase::Connecting { Failure::Connect } else { Failure::Timeout };
        let seconds = bench.shared.config.request_timeout_s;
        self.fail(bench, class, &format!("no whole answer within {seconds} s"))
    }

    fn begin(&mut self, bench: &mut Bench<'_>) -> Verdict {
        if self.leaving {
            return Verdict::End;
        }
        if let Some((since_ns, operation)) = self.rest.take() {
            let now = now_ns();
            if let Some(moment) = self.moment(bench, now) {
                bench.recorder.rested(operation, now - since_ns.max(moment.opened_ns));
            }
        }
        if self.request.is_none() {
            self.request = self.next(bench);
        }
        let Some(request) = self.request else { return Verdict::End };
        if let Source::Step(Step { pace: Some((next_ns, apart_ns)), .. }) = &mut self.source {
            let intended = *next_ns as u64;
            if intended > now_ns() {
                return Verdict::Rest(intended);
            }
            *next_ns += *apart_ns;
            self.started_ns = intended;
        } else {
            self.started_ns = u64::MAX; // set when it is about to be sent
        }
        let whose = self.source.whose();
        let replica = self.source.replica(&bench.shared.config, &request);
        let server = bench.scribe.write(&mut self.out, &request, &whose, replica, bench.now);
        self.turn_to(server);
        let body = if request.operation == Operation::Write { request.size } else { 0 };
        self.to_send = self.out.len() as u64 + body;
        self.sent = 0;
        self.answer.reset();
        let start = now_ns();
        if self.started_ns != u64::MAX && self.moment(bench, start).is_some() {
            bench.recorder.begun();
        }
        self.started_ns = self.started_ns.min(start);
        self.first_byte_ns = 0;
        self.deadline_ns = start + bench.timeout_ns;
        if self.link.is_some() {
            self.phase = Phase::Sending;
            return self.send(bench);
        }
        self.phase = Phase::Connecting;
        self.hung_up = false;
        self.serials = self.serials.wrapping_add(1);
        self.serial = self.serials;
        let dialed = bench.shared.dialers[self.server].dial().and_then(|link| {
            bench.epoll.add(link.fd(), bench.token(self.serial))?;
            Ok(link)
        });
        match dialed {
            Ok(link) => {
                self.link = Some(link);
                Verdict::Wait
            }
            Err(error) => self.fail(bench, Failure::Connect, &error.to_string()),
        }
    }

    /// Takes up the connection to a server, if there is one that can be used.
    fn turn_to(&mut self, server: usize) {
        if server == self.server {
            return;
        }
        let most = self.server.max(server);
        if self.parked.len() <= most {
            self.parked.resize_with(most + 1, || None);
        }
        self.parked[self.server] = self.link.take().map(|link| (link, self.serial));
        self.server = server;
        // What happened to it meanwhile was told to nobody: one that the server closed, or that
        // said something, is of no use.
        if let Some((link, serial)) = self.parked[server].take().filter(|(link, _)| link.is_quiet())
        {
            (self.link, self.serial, self.hung_up) = (Some(link), serial, false);
        }
    }

    fn next(&mut self, bench: &Bench<'_>) -> Option<Request> {
        let next = self.source.next(&bench.shared.config);
        self.checks = self.source.checks(&bench.shared.config);
        if next.is_none() && self.number().is_some() {
            bench.shared.exhausted.fetch_add(1, Ordering::SeqCst);
            if !self.finished_one {
                // Nothing to delete at all: it must not keep the others waiting for its first
                // request.
                bench.shared.started.fetch_add(1, Ordering::SeqCst);
            }
        }
        next
    }

    fn send(&mut self, bench: &mut Bench<'_>) -> Verdict {
        let (Some(link), Some(request)) = (&mut self.link, &self.request) else {
            return Verdict::Wait;
        };
        let turn_ends = self.sent + TURN_BYTES;
        let head = self.out.len() as u64;
        while self.sent < self.to_send {
            if self.sent >= turn_ends {
                return Verdict::Again;
            }
            let rest = &self.out[self.sent.min(head) as usize..];
            let body = if self.to_send > head {
                bench.shared.content.piece(
                    request.size,
                    self.sent.saturating_sub(head),
                    PIECE_BYTES,
                )
            } else {
                &[]
            };
            let result = if rest.is_empty() { link.send(body, &[]) } else { link.send(rest, body) };
            match result {
                Ok(count) => self.sent += count as u64,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Verdict::Wait,
                // The target may have answered before it closed: that answer says more than the
                // broken pipe.
                Err(error) => return self.last_words(bench, &error.to_string()),
            }
        }
        self.phase = Phase::Receiving;
        Verdict::Wait
    }

    /// The connection broke while sending: takes an answer if one is there.
    fn last_words(&mut self, bench: &mut Bench<'_>, error: &str) -> Verdict {
        let verdict = self.receive(bench);
        match self.phase {
            Phase::Sending => self.fail(bench, Failure::Reset, &format!("while sending: {error}")),
            _ => verdict,
        }
    }

    fn succeed(&mut self, bench: &mut Bench<'_>, request: &Request, now: u64) -> Verdict {
        let bytes = match request.operation {
            Operation::Read | Operation::List => self.answer.received(),
            Operation::Write => request.size,
            Operation::Delete | Operation::Head => 0,
        };
        let desk = &bench.shared.desks[bench.desk];
        desk.done.fetch_add(1, Ordering::Relaxed);
        desk.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.failures = 0;
        self.request = None;
        self.source.succeeded();
        if let Some(Moment { second, opened_ns }) = self.moment(bench, now) {
            let since_ns = |at_ns: u64| at_ns.saturating_sub(self.started_ns);
            let first_byte_ns =
                (request.operation == Operation::Read).then(|| since_ns(self.first_byte_ns));
            let before_ns = opened_ns.saturating_sub(self.started_ns);
            let sample = Sample { latency_ns: since_ns(now), first_byte_ns, bytes, before_ns };
            bench.recorder.success(request.operation, second, &sample);
        } else {
            self.late(bench, request.operation);
        }
        self.finished(bench);
        self.phase = Phase::Resting;
        self.begin(bench)
    }

    fn fail(&mut self, bench: &mut Bench<'_>, class: Failure, what: &str) -> Verdict {
        let now = now_ns();
        let Some(request) = self.request else { return Verdict::End };
        bench.shared.desks[bench.desk].failed.fetch_add(1, Ordering::Relaxed);
        bench.shared.note(
            class,
            format!(
                "{} of {}: {what}",
                request.operation.word(),
                bench.shared.dialers[self.server].address()
            ),
        );
        if !matches!(class, Failure::Http(_)) {
            self.link = None; // what it would still bring belongs to no request
        }
        self.phase = Phase::Resting;
        self.failures += 1;
        if let Some(Moment { second, opened_ns }) = self.moment(bench, now) {
            let (age_ns, before_ns) =
                (now.saturating_sub(self.started_ns), opened_ns.saturating_sub(self.started_ns));
            bench.recorder.failure(request.operation, second, &Failed { class, age_ns, before_ns });
        } else {
            self.late(bench, request.operation);
        }
        self.rest = self.number().map(|_| (now, request.operation));
        let doubled = match self.source.failed(&request, class) {
            Setback::GiveUp => return Verdict::End,
            Setback::GoOn => 0,
            Setback::BackOff => self.failures.saturating_sub(1).min(7),
        };
        if self.number().is_some() {
            self.request = None;
        }
        self.finished(bench);
        if self.leaving {
            return Verdict::End;
        }
        Verdict::Rest(now + (REST_NS << doubled).min(LONGEST_REST_NS))
    }

    fn finished(&mut self, bench: &Bench<'_>) {
        if !self.finished_one && self.number().is_some() {
            bench.shared.started.fetch_add(1, Ordering::SeqCst);
        }
        self.finished_one = true;
    }
}
