//! What of a worker is recorded, and what it has in hand at the end of a window.

use super::Worker;
use crate::reactor::Bench;
use crate::recorder::Recorder;
use crate::shared::Moment;
use crate::source::Source;
use crate::workload::Operation;

impl Worker {
    /// The window was open from `opened_ns` to `closed_ns`: records how long what it has in hand,
    /// and at a rate what it has not come to, had been waited for when it closed.
    pub fn census(&self, recorder: &mut Recorder, opened_ns: u64, closed_ns: u64) {
        let Source::Step(step) = &self.source else { return };
        if self.leaving {
            return;
        }
        let busy = self.is_busy();
        match (&self.request, self.rest) {
            (Some(request), _) if busy && self.started_ns < closed_ns => {
                let before_ns = opened_ns.saturating_sub(self.started_ns);
                recorder.outstanding(request.operation, closed_ns - self.started_ns, before_ns);
            }
            (_, Some((since_ns, operation))) if !busy => {
                recorder.rested(operation, closed_ns.saturating_sub(since_ns.max(opened_ns)));
            }
            _ => {}
        }
        let drawn = self.request.filter(|_| !busy).map(|request| request.operation);
        for (operation, age_ns) in step.waiting(drawn, closed_ns) {
            recorder.waiting(operation, age_ns);
        }
    }

    /// Where in the window something of this worker that ended at `now` is recorded, if at all.
    pub(super) fn moment(&self, bench: &Bench<'_>, now: u64) -> Option<Moment> {
        let counts = self.number().is_some() && !self.leaving;
        counts.then(|| bench.shared.window.moment(now)).flatten()
    }

    /// A request ended outside of the window: where that was between its closing and the census, it
    /// was outstanding.
    pub(super) fn late(&self, bench: &mut Bench<'_>, operation: Operation) {
        let Some((opened_ns, closed_ns)) = bench.shared.window.closed() else { return };
        if opened_ns != bench.counted_ns
            && self.started_ns < closed_ns
            && self.number().is_some()
            && !self.leaving
        {
            bench.recorder.outstanding(
                operation,
                closed_ns - self.started_ns,
                opened_ns.saturating_sub(self.started_ns),
            );
        }
    }
}
