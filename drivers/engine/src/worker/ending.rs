//! What follows from the end of a request: it is recorded, and the next one is chosen.

use super::{LONGEST_PAUSE_NS, NextStep, PAUSE_NS, Phase, Worker};
use crate::answer::Outcome;
use crate::picker::{Part, Request};
use crate::reactor::Context;
use crate::recorder::{Failure, Sample};
use crate::shared::Moment;
use crate::source::AfterFailure;
use crate::sys::now_ns;
use crate::workload::Operation;
use std::sync::atomic::Ordering;

impl Worker {
    /// Goes on after a request that succeeded at `now`: with the next one of its operation, or
    /// with the next operation.
    pub(super) fn proceed(
        &mut self,
        context: &mut Context<'_>,
        request: &Request,
        outcome: Outcome,
        now: u64,
    ) -> NextStep {
        let outcome = match (request.part, outcome, self.source.crew()) {
            (Part::Piece { number, .. }, Outcome::Etag(etag), Some(crew)) => {
                self.part_succeeded(context, request, now);
                self.failures = 0;
                let is_last = crew.took(number, etag);
                return self.go_on(context, &crew, is_last);
            }
            (_, outcome, _) => outcome,
        };
        if self.flow.started_ns.is_none() {
            return self.succeed(context, request, now);
        }
        match self.flow.next(request, outcome, &context.shared.config) {
            Err((class, what)) => self.fail(context, class, &what),
            Ok(following) => {
                self.part_succeeded(context, request, now);
                let Some(following) = following else {
                    return self.succeed(context, request, now);
                };
                if self.leaving && request.operation.turns_pages() {
                    // The rest may take minutes, and what is listed stays as it is without it.
                    self.phase = Phase::Idle;
                    return NextStep::End;
                }
                self.request = Some(following);
                self.failures = 0;
                self.phase = Phase::Idle;
                self.begin(context)
            }
        }
    }

    /// Records one request of an operation of several.
    fn part_succeeded(&mut self, context: &mut Context<'_>, request: &Request, now: u64) {
        let bytes = match request.part {
            Part::Piece { length, .. } => length,
            Part::Page(_) => self.answer.received(),
            _ => 0,
        };
        self.flow.bytes += bytes;
        context.shared.threads[context.thread].bytes.fetch_add(bytes, Ordering::Relaxed);
        let Some(Moment { second, opened_ns }) = self.moment(context, now) else { return };
        let since_ns = |at_ns: u64| at_ns.saturating_sub(self.started_ns);
        self.served(context, since_ns(now));
        let Some(operation) = counted_part(request) else { return };
        let sample = Sample {
            latency_ns: since_ns(now),
            first_byte_ns: operation.has_body().then(|| since_ns(self.first_byte_ns)),
            bytes,
            before_ns: opened_ns.saturating_sub(self.started_ns),
        };
        context.recorder.success(operation, second, &sample);
    }

    /// Counts a request that succeeded at its endpoint. Endpoints count requests: those of one
    /// operation may go to different ones.
    fn served(&self, context: &mut Context<'_>, latency_ns: u64) {
        if context.shared.endpoints.several() {
            context.recorder.endpoint(self.server).success(latency_ns);
        }
    }

    fn succeed(&mut self, context: &mut Context<'_>, request: &Request, now: u64) -> NextStep {
        let bytes = match request.operation {
            operation if operation.turns_pages() => self.flow.bytes,
            Operation::List => self.answer.received(),
            operation if operation.reads() => self.answer.received(),
            Operation::Write
            | Operation::WriteIfNoneMatch
            | Operation::WriteMultipart
            | Operation::Overwrite => request.size,
            _ => 0,
        };
        let thread = &context.shared.threads[context.thread];
        thread.done.fetch_add(1, Ordering::Relaxed);
        let is_single = self.flow.started_ns.is_none();
        if is_single {
            thread.bytes.fetch_add(bytes, Ordering::Relaxed); // of several, each was counted
        }
        self.failures = 0;
        self.request = None;
        self.source.succeeded();
        self.started_ns = self.flow.started_ns.unwrap_or(self.started_ns);
        if let Some(moment) = self.moment(context, now) {
            let Moment { second, opened_ns } = moment;
            context.recorder.in_flight(request.operation, moment.begun_since(self.started_ns));
            self.waited(context.recorder, opened_ns, now);
            let since_ns = |at_ns: u64| at_ns.saturating_sub(self.started_ns);
            let first_byte_ns = request.operation.has_body().then(|| since_ns(self.first_byte_ns));
            let before_ns = opened_ns.saturating_sub(self.started_ns);
            let sample = Sample { latency_ns: since_ns(now), first_byte_ns, bytes, before_ns };
            context.recorder.success(request.operation, second, &sample);
            if is_single {
                self.served(context, sample.latency_ns);
            }
        } else {
            self.late(context, request.operation);
        }
        self.waits_since_ns = None;
        self.flow.reset();
        self.finished(context);
        self.phase = Phase::Idle;
        self.begin(context)
    }

    pub(super) fn fail(
        &mut self,
        context: &mut Context<'_>,
        class: Failure,
        what: &str,
    ) -> NextStep {
        // First of all: who sees it counted may close the window, and it ended before that.
        let now = now_ns();
        let Some(request) = self.request else { return NextStep::End };
        context.shared.threads[context.thread].failed.fetch_add(1, Ordering::Relaxed);
        context.shared.count_error(
            class,
            format!(
                "{} of {}: {what}",
                request.operation.word(),
                context.shared.dialers[self.server].address()
            ),
        );
        if class == Failure::Connect {
            context.shared.endpoints.refused(self.server);
        }
        if !matches!(class, Failure::Http(_)) {
            self.link = None; // anything it would still receive belongs to no request
        }
        let moment = self.moment(context, now);
        if moment.is_some() && context.shared.endpoints.several() {
            context.recorder.endpoint(self.server).failure(class);
        }
        match (request.part, self.source.crew()) {
            (Part::Piece { .. }, Some(crew)) => {
                self.part_failed(context, &crew, &request, class, (now, moment))
            }
            _ => self.fail_operation(context, &request, class, (now, moment)),
        }
    }

    /// Records that an operation failed at `now`, a `moment` of the window, and pauses.
    pub(super) fn fail_operation(
        &mut self,
        context: &mut Context<'_>,
        request: &Request,
        class: Failure,
        (now, moment): (u64, Option<Moment>),
    ) -> NextStep {
        self.phase = Phase::Idle;
        self.failures += 1;
        if let Some(moment) = moment {
            let Moment { second, opened_ns } = moment;
            if let Some(operation) = counted_part(request) {
                let cut = self.cut(self.started_ns, opened_ns, now);
                context.recorder.failure(operation, second, class, cut);
            }
            let started_ns = self.flow.started_ns.unwrap_or(self.started_ns);
            let cut = self.cut(started_ns, opened_ns, now);
            context.recorder.failure(request.operation, second, class, cut);
            context.recorder.in_flight(request.operation, moment.begun_since(started_ns));
        } else {
            self.started_ns = self.flow.started_ns.unwrap_or(self.started_ns);
            self.late(context, request.operation);
        }
        self.flow.reset();
        self.pause = self.number().map(|_| (now, request.operation));
        let doubled = match self.source.failed(request, class) {
            AfterFailure::GiveUp => return NextStep::End,
            AfterFailure::GoOn => 0,
            AfterFailure::BackOff => self.failures.saturating_sub(1).min(7),
        };
        self.request = None; // a job begins the same object again
        self.finished(context);
        if self.leaving {
            return NextStep::End;
        }
        NextStep::Pause(now + (PAUSE_NS << doubled).min(LONGEST_PAUSE_NS))
    }
}

/// The operation that counts a request of an operation of several: parts and pages are counted,
/// the beginning and the end of an upload are not.
pub(super) fn counted_part(request: &Request) -> Option<Operation> {
    match request.part {
        Part::Piece { .. } | Part::Page(_) => request.operation.part(),
        _ => None,
    }
}
