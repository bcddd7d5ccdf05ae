//! A worker takes in the answer to what it asked, and judges it.

use super::{TURN_BYTES, Verdict, Worker};
use crate::answer::{Asked, Due, Progress};
use crate::config::Api;
use crate::picker::Request;
use crate::reactor::Bench;
use crate::recorder::Failure;
use crate::shared::Shared;
use crate::sys::now_ns;
use crate::workload::Operation;
use std::io::ErrorKind;

impl Worker {
    pub(super) fn receive(&mut self, bench: &mut Bench<'_>) -> Verdict {
        let mut turn = 0;
        loop {
            let (Some(link), Some(request)) = (&mut self.link, &self.request) else {
                return Verdict::Wait;
            };
            if turn >= TURN_BYTES {
                return Verdict::Again;
            }
            let asked = Asked { request, content: &bench.shared.content, verify: self.checks };
            let thrown = if link.discards() { self.answer.unseen(&asked) } else { 0 };
            let wanted = if thrown > 0 { thrown } else { bench.scratch.len() as u64 };
            let result =
                if thrown > 0 { link.discard(thrown as usize) } else { link.recv(bench.scratch) };
            let count = match result {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Verdict::Wait,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    // TLS broken in its handshake is a connection that was never there.
                    let class =
                        if self.first_byte_ns == 0 { Failure::Connect } else { Failure::Protocol };
                    return self.fail(bench, class, &error.to_string());
                }
                Err(error) => return self.fail(bench, Failure::Reset, &error.to_string()),
            };
            // One look at the clock serves both ends of an answer that comes in one piece.
            let mut received_ns = None;
            if self.first_byte_ns == 0 {
                self.first_byte_ns = now_ns();
                received_ns = Some(self.first_byte_ns);
            }
            let progress = match count {
                0 => self.answer.end(),
                _ if thrown > 0 => self.answer.skip(count as u64),
                _ => self.answer.take(&bench.scratch[..count], &asked),
            };
            // Fewer bytes than asked for: the socket is empty, and what comes next is a new event;
            // unless the end of the stream was part of this one.
            let drained = (count as u64) < wanted && !self.hung_up && link.discards();
            match progress {
                Progress::Whole => return self.answered(bench, received_ns.unwrap_or_else(now_ns)),
                Progress::Failed(class, what) => return self.fail(bench, class, what),
                Progress::More if drained => return Verdict::Wait,
                Progress::More => turn += count as u64,
            }
        }
    }

    /// The answer is whole since `now`.
    fn answered(&mut self, bench: &mut Bench<'_>, now: u64) -> Verdict {
        let Some(request) = self.request else { return Verdict::Wait };
        let early = self.sent < self.to_send;
        if self.answer.closes() || early || self.hung_up {
            self.link = None;
        }
        let deleting = self.number().is_none() && request.operation == Operation::Delete;
        match self.answer.judge(&request, &self.due(bench, &request), deleting) {
            Err((class, what)) => self.fail(bench, class, &what),
            Ok(()) if early => {
                self.fail(bench, Failure::Protocol, "a success before the whole body was sent")
            }
            Ok(()) => self.succeed(bench, &request, now),
        }
    }

    fn due(&self, bench: &Bench<'_>, request: &Request) -> Due {
        let Shared { config, content, digests, .. } = bench.shared;
        match request.operation {
            Operation::Write => {
                Due { md5: digests.of(content, request.size, self.checks), ..Due::default() }
            }
            Operation::List => Due {
                xml: config.api == Api::S3,
                least_listed: config.workload.least_listed(),
                ..Due::default()
            },
            _ => Due::default(),
        }
    }
}
