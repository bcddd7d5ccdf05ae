"""Further blocks: whether a run goes on after all repeats of its suite to settle a difference.

Looking at the data after every block and stopping at will would find differences that do not exist
in more than 5 of 100 cases. So the looks before the last are strict, by the rule of Haybittle and
Peto (J. L. Haybittle, Br. J. Radiol. 44, 1971; R. Peto et al., Br. J. Cancer 34, 1976): a run ends
early only if every cell of throughput and p90 is significant at `STRICT` after correction, and only
the last look claims at the usual level. The time limit, which does not depend on the results, may
end a run after any block. The resulting error rate: benchmarks/first_run_claims.py, table in
docs/first-run.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weighbridge.conductor.plan import Plan
from weighbridge.conductor.time_estimate import TimeEstimate, show_duration, units
from weighbridge.results.analysis.comparison import Comparison, Effect
from weighbridge.results.analysis.contrast import ALWAYS
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.record.store import RunStore
from weighbridge.results.record.trial import TuningStore

STRICT: Final = 0.001
"""The largest corrected p-value of a cell with which a run ends before its last look."""


@dataclass(frozen=True)
class NextBlock:
    """The result of a look: the plan with another block, or None, and why."""

    plan: Plan | None
    why: str


def next_block(
    plan: Plan, store: RunStore, estimate: TimeEstimate, left_s: float
) -> NextBlock | None:
    """Whether another block follows a plan that is done, with `left_s` seconds left.

    The plan with that block is then written to the run folder, and added to the estimate. None if
    none may follow: the suite allows none, or nothing is compared.
    """
    grown = plan.grown()
    if grown is None or len(plan.layouts) - len(plan.twins) < 2:
        return None
    repeat = grown.suite.repeats
    estimate.add([unit for unit in units(grown) if unit.visit.repeat == repeat - 1])
    needed_s = estimate.repeat_s(repeat - 1)
    if needed_s > left_s:
        estimate.drop(repeat - 1)
        needed, left = show_duration(needed_s), show_duration(max(0.0, left_s))
        return NextBlock(
            None, f"no time for repeat {repeat}: it would take about {needed}, and {left} is left"
        )
    found = RunData(store.folder).comparison
    if clear(found):
        estimate.drop(repeat - 1)
        return NextBlock(
            None,
            "every comparable difference of throughput and p90 is clear after "
            f"{repeat - 1} repeats",
        )
    TuningStore(store.folder).replan(grown)
    count = len(unclear(found))
    cells = (
        "1 cell of throughput and p90 is"
        if count == 1
        else f"{count} cells of throughput and p90 are"
    )
    return NextBlock(
        grown, f"{cells} not clear after {repeat - 1} repeats: repeat {repeat} follows"
    )


def unclear(comparison: Comparison) -> tuple[Effect, ...]:
    """The comparable cells of throughput and p90, at one worker count each, that are not clear."""
    cells = (one for one in comparison.effects if one.workers is not None and one.metric in ALWAYS)
    return tuple(one for one in cells if one.ratio is not None and not _clear(one))


def _clear(one: Effect) -> bool:
    return one.verdict in ("better", "worse") and one.q is not None and one.q <= STRICT


def clear(comparison: Comparison) -> bool:
    """Whether a run may end before its last look: something is compared, and all of it is clear."""
    tested = any(one.workers is not None and one.q is not None for one in comparison.effects)
    return tested and not unclear(comparison)
