//! Receiving and checking the answer to a request.

use super::{NextStep, TURN_BYTES, Worker};
use crate::answer::{Expected, Progress, Required};
use crate::config::Api;
use crate::digests::{LARGEST_DRAWN_BYTES, Sum, part_sum};
use crate::encryption::Encryption;
use crate::picker::{Part, Request};
use crate::reactor::Context;
use crate::recorder::Failure;
use crate::shared::Shared;
use crate::sys::now_ns;
use crate::workload::{LIST_MOST, Operation};
use std::io::ErrorKind;

impl Worker {
    pub(super) fn receive(&mut self, context: &mut Context<'_>) -> NextStep {
        let mut turn = 0;
        loop {
            let (Some(link), Some(request)) = (&mut self.link, &self.request) else {
                return NextStep::Wait;
            };
            if turn >= TURN_BYTES {
                return NextStep::Again;
            }
            let expected = Expected {
                request,
                content: context.shared.content_of(request),
                verify: self.checks,
            };
            let discardable = if link.discards() { self.answer.discardable(&expected) } else { 0 };
            let wanted = if discardable > 0 { discardable } else { context.scratch.len() as u64 };
            let result = if discardable > 0 {
                link.discard(discardable as usize)
            } else {
                link.recv(context.scratch)
            };
            let count = match result {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return NextStep::Wait,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    // Failing in the TLS handshake, no connection was made.
                    let class =
                        if self.first_byte_ns == 0 { Failure::Connect } else { Failure::Protocol };
                    return self.fail(context, class, &error.to_string());
                }
                Err(error) => return self.fail(context, Failure::Reset, &error.to_string()),
            };
            // One reading of the clock serves both ends of an answer that arrives in one piece.
            let mut received_ns = None;
            if self.first_byte_ns == 0 {
                self.first_byte_ns = now_ns();
                received_ns = Some(self.first_byte_ns);
            }
            let progress = match count {
                0 => self.answer.end(),
                _ if discardable > 0 => self.answer.skip(count as u64),
                _ => self.answer.take(&context.scratch[..count], &expected),
            };
            // Fewer bytes than requested: the socket is empty, and epoll reports what comes next;
            // unless the end of the stream was part of this event.
            let drained = (count as u64) < wanted && !self.hung_up && link.discards();
            match progress {
                Progress::Complete => {
                    return self.answered(context, received_ns.unwrap_or_else(now_ns));
                }
                Progress::Failed(class, what) => return self.fail(context, class, what),
                Progress::More if drained => return NextStep::Wait,
                Progress::More => turn += count as u64,
            }
        }
    }

    /// Handles the answer, complete since `now`.
    fn answered(&mut self, context: &mut Context<'_>, now: u64) -> NextStep {
        let Some(request) = self.request else { return NextStep::Wait };
        let early = self.sent < self.to_send;
        if self.is_last && !early {
            self.closing = self.link.take();
        } else if self.answer.closes() || early || self.hung_up {
            self.link = None;
        }
        let deleting = self.number().is_none() && request.operation == Operation::Delete;
        match self.answer.check(&request, &self.required(context, &request), deleting) {
            Err((class, what)) => self.fail(context, class, &what),
            // What is refused without a look at the body need not be sent completely.
            Ok(_) if early && request.operation != Operation::RewriteIfNoneMatch => {
                self.fail(context, Failure::Protocol, "a success before the complete body was sent")
            }
            Ok(outcome) => self.proceed(context, &request, outcome, now),
        }
    }

    fn required<'a>(&'a self, context: &'a Context<'_>, request: &Request) -> Required<'a> {
        let Shared { config, digests, .. } = context.shared;
        let bytes = context.shared.content_of(request);
        let required = Required { xml: config.api == Api::S3, ..Required::default() };
        match request.operation {
            Operation::Write
            | Operation::WriteIfNoneMatch
            | Operation::Overwrite
            | Operation::Copy
            | Operation::UpdateMetadata => {
                // With a customer's key an ETag need not be the MD5 of the body.
                let plain = config.workload.encryption != Encryption::SseC;
                let md5 = plain.then(|| digests.of(bytes, request.size, self.checks)).flatten();
                Required { md5, versioned: config.workload.versions.is_some(), ..required }
            }
            Operation::List => Required {
                least_listed: config.workload.least_listed(),
                most_listed: LIST_MOST,
                ..required
            },
            Operation::ReadVersion => Required { version: Some(&self.flow.version), ..required },
            Operation::ListAll | Operation::ListVersions => {
                let listing = config.workload.listing.as_ref();
                Required {
                    most_listed: listing.map_or(LIST_MOST, |one| one.page),
                    prefix: listing.map_or(b"", |one| one.prefix.as_bytes()),
                    ..required
                }
            }
            Operation::WriteMultipart => Required {
                md5: self.part_md5(context, request),
                parts: self.flow.etags.len(),
                ..required
            },
            Operation::Delete => {
                Required { segments: config.segmented().has(request.object), ..required }
            }
            _ => required,
        }
    }

    /// MD5 of the part that was sent: if it was hashed before the step, and of small parts of those
    /// uploads that are checked.
    fn part_md5(&self, context: &Context<'_>, request: &Request) -> Option<Sum> {
        let Shared { config, digests, .. } = context.shared;
        let bytes = context.shared.content_of(request);
        let (offset, length) = request.span();
        let is_piece = matches!(request.part, Part::Piece { .. });
        if !is_piece || config.workload.encryption != Encryption::None {
            return None;
        }
        digests.of_part(request.size, offset).or_else(|| {
            (self.checks && length <= LARGEST_DRAWN_BYTES)
                .then(|| part_sum(bytes, request.size, offset, length))
        })
    }
}
