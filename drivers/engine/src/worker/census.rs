//! Which requests of a worker are recorded, also those outstanding at the end of a window.

use super::Worker;
use super::ending::counted_part;
use crate::reactor::Context;
use crate::recorder::{Cut, Recorder};
use crate::shared::Moment;
use crate::source::Source;
use crate::workload::Operation;

impl Worker {
    /// Records the age of the outstanding request, and at a constant rate those of requests not
    /// sent, in the window from `opened_ns` to `closed_ns`.
    pub fn census(&self, recorder: &mut Recorder, opened_ns: u64, closed_ns: u64) {
        if !self.is_recorded() {
            return;
        }
        let (busy, end) = (self.is_busy(), Moment::of(closed_ns, opened_ns));
        self.waited(recorder, opened_ns, closed_ns);
        let outstanding = |recorder: &mut Recorder, operation, started_ns: u64| {
            if started_ns < closed_ns {
                recorder.outstanding(operation, self.cut(started_ns, opened_ns, closed_ns));
            }
        };
        if let Some(part) = self.request.as_ref().filter(|_| busy).and_then(counted_part) {
            outstanding(recorder, part, self.started_ns);
        }
        let mut complete = |operation, started_ns: u64| {
            outstanding(recorder, operation, started_ns);
            recorder.in_flight(operation, end.begun_since(started_ns));
        };
        let Source::Step(step) = &self.source else { return };
        match (&self.request, self.pause) {
            (Some(request), _) if busy => {
                complete(request.operation, self.flow.started_ns.unwrap_or(self.started_ns));
            }
            (None, None) if self.flow.started_ns.is_some() => {
                // It waits for parts of its upload that its helpers send.
                complete(Operation::WriteMultipart, self.flow.started_ns.unwrap_or(closed_ns));
            }
            (_, Some((since_ns, operation))) if !busy => {
                recorder.paused(operation, closed_ns.saturating_sub(since_ns.max(opened_ns)));
            }
            _ => {}
        }
        let drawn = self.request.filter(|_| !busy).map(|request| request.operation);
        for (operation, age_ns) in step.waiting(drawn, closed_ns) {
            recorder.waiting(operation, age_ns);
        }
    }

    /// Its request, or operation, since `started_ns` when it is cut, in a window since `opened_ns`.
    pub(super) fn cut(&self, started_ns: u64, opened_ns: u64, now: u64) -> Cut {
        Cut {
            age_ns: now.saturating_sub(started_ns),
            before_ns: opened_ns.saturating_sub(started_ns),
            first_byte_ns: self.first_byte_ns.checked_sub(started_ns),
        }
    }

    /// The position in the window of an event of this worker; `None` if it is not recorded.
    pub(super) fn moment(&self, context: &Context<'_>, now: u64) -> Option<Moment> {
        self.is_recorded().then(|| context.shared.window.moment(now)).flatten()
    }

    /// Whether it counts: in a step, and not after it was asked to leave.
    fn is_recorded(&self) -> bool {
        match &self.source {
            Source::Step(_) => !self.leaving,
            Source::Job { .. } => false,
            Source::Helper { crew, .. } => !self.leaving && !crew.is_leaving(),
        }
    }

    /// Records how long it had waited for a success by a time of a window.
    pub(super) fn waited(&self, recorder: &mut Recorder, opened_ns: u64, until_ns: u64) {
        if let Some(since_ns) = self.waits_since_ns {
            recorder.stalled(until_ns.saturating_sub(since_ns.max(opened_ns)));
        }
    }

    /// Records a request that ended outside of the window: between its closing and the census it
    /// counts as outstanding.
    pub(super) fn late(&self, context: &mut Context<'_>, operation: Operation) {
        let Some((opened_ns, closed_ns)) = context.shared.window.closed() else { return };
        if opened_ns != context.counted_ns
            && self.started_ns < closed_ns
            && self.number().is_some()
            && !self.leaving
        {
            let cut = self.cut(self.started_ns, opened_ns, closed_ns);
            context.recorder.outstanding(operation, cut);
            self.waited(context.recorder, opened_ns, closed_ns);
            let end = Moment::of(closed_ns, opened_ns);
            context.recorder.in_flight(operation, end.begun_since(self.started_ns));
        }
    }
}
