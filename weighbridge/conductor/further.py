"""Further blocks: whether a run that has made all repeats of its suite goes on, since a difference
is not clear yet.

Looking at the data after every block and ending where they please would claim more than 5 in 100 of
what is not there. So the looks before the last are strict, by the rule of Haybittle and Peto (J. L.
Haybittle, Br. J. Radiol. 44, 1971; R. Peto et al., Br. J. Cancer 34, 1976): a run ends early only
where every cell of throughput and p90 is shown at `STRICT` after correction, and only the claims of
the last look are made at the usual level. Time, which knows nothing of the figures, may end a run
after any block. What this does to the error rate: benchmarks/first_run_claims.py, table in
docs/first-run.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weighbridge.conductor.pace import Pace, show_duration, units
from weighbridge.conductor.plan import Plan
from weighbridge.results.analysis.comparison import Comparison, Effect
from weighbridge.results.analysis.contrast import ALWAYS
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.record.store import RunStore
from weighbridge.results.record.trial import TrialBook

STRICT: Final = 0.001
"""How small the corrected p-value of every cell must be for a run to end before its last look."""


@dataclass(frozen=True)
class Next:
    """What a look came to: the plan with another block, or None, and why."""

    plan: Plan | None
    why: str


def next_block(plan: Plan, store: RunStore, pace: Pace, left_s: float) -> Next | None:
    """Whether another block follows a plan that is done, with `left_s` seconds left. The plan with
    that block is then written to the run folder, and the pace knows it. None where none may follow:
    the suite has none, or nothing is compared.
    """
    grown = plan.grown()
    if grown is None or len(plan.layouts) - len(plan.twins) < 2:
        return None
    repeat = grown.suite.repeats
    pace.add([unit for unit in units(grown) if unit.visit.repeat == repeat - 1])
    needed_s = pace.repeat_s(repeat - 1)
    if needed_s > left_s:
        pace.drop(repeat - 1)
        needed, left = show_duration(needed_s), show_duration(max(0.0, left_s))
        return Next(
            None, f"no time for repeat {repeat}: it would take about {needed}, and {left} is left"
        )
    found = RunData(store.folder).comparison
    if clear(found):
        pace.drop(repeat - 1)
        return Next(
            None,
            "every difference of throughput and p90 that can be compared is clear after "
            f"{repeat - 1} repeats",
        )
    TrialBook(store.folder).replan(grown)
    count = len(unclear(found))
    told = (
        f"{count} cell{'s' * (count != 1)} of throughput and p90 "
        f"{'is' if count == 1 else 'are'} not clear"
    )
    return Next(grown, f"{told} after {repeat - 1} repeats: repeat {repeat} follows")


def unclear(comparison: Comparison) -> tuple[Effect, ...]:
    """The cells of throughput and p90 that can be compared and are not clear: at one worker count
    each.
    """
    cells = (one for one in comparison.effects if one.workers is not None and one.metric in ALWAYS)
    return tuple(
        one
        for one in cells
        if one.ratio is not None and not (one.verdict in ("better", "worse") and _strict(one))
    )


def _strict(one: Effect) -> bool:
    return one.q is not None and one.q <= STRICT


def clear(comparison: Comparison) -> bool:
    """Whether a run may end before its last look: there is something to compare, and all of it is
    clear.
    """
    told = any(one.workers is not None and one.q is not None for one in comparison.effects)
    return told and not unclear(comparison)
