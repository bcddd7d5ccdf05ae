//! Sending the parts of an upload over several connections: a worker and its helpers.

use super::ending::counted_part;
use super::{NextStep, Phase, Worker};
use crate::crew::{Crew, Drained};
use crate::picker::{Part, Request};
use crate::reactor::Context;
use crate::recorder::Failure;
use crate::shared::Moment;
use crate::source::Source;
use crate::sys::now_ns;

impl Worker {
    /// Whether it only sends parts of another worker's uploads.
    pub(super) fn is_helper(&self) -> bool {
        matches!(self.source, Source::Helper { .. })
    }

    /// Takes the next part of an upload, or its end, as `request`; returns what else to do. `None`
    /// without a `request`: an operation is to be drawn.
    pub(super) fn join(&mut self, context: &mut Context<'_>) -> Option<NextStep> {
        let crew = self.source.crew()?;
        if self.is_helper() {
            if crew.has_ended() {
                return Some(NextStep::End);
            }
        } else {
            self.flow.started_ns?;
        }
        if let Some(handed) = crew.take(&context.shared.config) {
            self.request = Some(handed.request);
            self.flow.upload = handed.upload;
            self.checks = handed.checks;
            return None;
        }
        if self.is_helper() {
            crew.wait(context.slot());
            return Some(NextStep::Wait);
        }
        let Some(Drained { request, failed, etags }) = crew.drained() else {
            crew.wait(context.slot());
            return Some(NextStep::Wait);
        };
        let request = Request { part: Part::Finish, ..request };
        self.request = Some(request);
        self.flow.etags = etags;
        failed.map(|class| {
            let now = now_ns();
            let moment = self.moment(context, now);
            self.fail_operation(context, &request, class, (now, moment))
        })
    }

    /// Begins an upload with its first part, and wakes the helpers.
    pub(super) fn open(&self, context: &mut Context<'_>, request: &Request) {
        if let (Part::Piece { number: 1, .. }, Some(crew)) = (request.part, self.source.crew()) {
            crew.open(request, &self.flow.upload, self.checks, &context.shared.config);
            context.again.extend(crew.wake());
        }
    }

    /// Goes on after a part that ended; `is_last`: no other of its upload is outstanding.
    pub(super) fn go_on(
        &mut self,
        context: &mut Context<'_>,
        crew: &Crew,
        is_last: bool,
    ) -> NextStep {
        self.request = None;
        self.phase = Phase::Idle;
        if is_last {
            context.again.extend(crew.wake());
        }
        self.begin(context)
    }

    /// Records that a part failed at `now`, a `moment` of the window. Its upload fails when no
    /// other part is outstanding.
    pub(super) fn part_failed(
        &mut self,
        context: &mut Context<'_>,
        crew: &Crew,
        request: &Request,
        class: Failure,
        (now, moment): (u64, Option<Moment>),
    ) -> NextStep {
        if let (Some(moment), Some(part)) = (moment, counted_part(request)) {
            let cut = self.cut(self.started_ns, moment.opened_ns, now);
            context.recorder.failure(part, moment.second, class, cut);
        }
        let is_last = crew.failed(class);
        self.go_on(context, crew, is_last)
    }
}
