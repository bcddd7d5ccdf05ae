"""A budget: how many repeats fit into a time, with which windows, and what such a run can then
claim.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from weighbridge.common.errors import UsageError
from weighbridge.common.record import Record
from weighbridge.conductor.pace import REPORTING_S, Pace, show_duration
from weighbridge.conductor.plan import NO_TWINS, Plan, make_plan
from weighbridge.results.metrics import compared
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM, next_level, smallest_ratio
from weighbridge.spread import RepeatScatter
from weighbridge.suites import Suite
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import Planned

SHORTEST_WINDOW_S: Final = 10.0
"""No window is made shorter than this to save time: warm-up and drift are told by its seconds, and
ten of them are few.
"""
CHECKING_S: Final = 3.0
"""Having the programs of one layout check its configuration, before a run."""
MOST: Final = 1000
"""Repeats that a suite may have."""


class Budgeted(Record):
    """A plan that fits into a time, as far as can be told before."""

    plan: Plan
    seconds: float
    """What all of it probably takes."""
    claim_s: float
    """What as many repeats as a claim needs would take."""
    shortened: tuple[str, ...] = ()
    """Windows that were made shorter, in words."""


def fit(
    suite: Suite,
    hardware: Hardware,
    planned: Sequence[Planned],
    budget_s: float,
    *,
    twins: Mapping[str, str] = NO_TWINS,
    attest: bool = False,
    order_seed: int | None = None,
) -> Budgeted:
    """The plan with the most repeats that fit; windows are shortened where fewer than a claim needs
    would fit, and that helps.

    Raises UsageError when not even one repeat fits.
    """

    def planned_for(one: Suite, repeats: int) -> Plan:
        plan = make_plan(
            one.changed(repeats=repeats), hardware, planned, twins=twins, order_seed=order_seed
        )
        return plan.model_copy(update={"attest": attest, "budget_s": budget_s})

    def repeat_s(one: Suite) -> float:
        return Pace.of(planned_for(one, 1)).left_s()

    beside_s = CHECKING_S * len(planned) * hardware.of.measurable + REPORTING_S
    room_s = budget_s - beside_s
    shown, repeats = suite, _times(room_s, repeat_s(suite))
    if repeats < REPEATS_FOR_A_CLAIM:
        shortest = _shortened(suite, 0.0)
        fewest = _times(room_s, repeat_s(shortest))
        if fewest < 1:
            needed_s = beside_s + repeat_s(shortest)
            what = (
                f"a budget of {show_duration(budget_s)} holds no repeat: one takes about "
                f"{show_duration(needed_s)} in all"
            )
            if shortest != suite:
                what += f" even with windows of {SHORTEST_WINDOW_S:g} s"
            raise UsageError(
                what, advice="Give more time, fewer layouts, or a suite with fewer steps."
            )
        if fewest >= REPEATS_FOR_A_CLAIM:
            shown, repeats = (
                _longest(suite, lambda one: _times(room_s, repeat_s(one)) >= REPEATS_FOR_A_CLAIM),
                REPEATS_FOR_A_CLAIM,
            )
        elif repeats < 1:
            # No claim can be made either way: the windows stay as long as one repeat of them
            # allows.
            shown, repeats = _longest(suite, lambda one: _times(room_s, repeat_s(one)) >= 1), 1
    plan = planned_for(shown, repeats)
    claim_s = beside_s + REPEATS_FOR_A_CLAIM * repeat_s(shown)
    return Budgeted(
        plan=plan,
        seconds=beside_s + Pace.of(plan).left_s(),
        claim_s=claim_s,
        shortened=_told(suite, shown),
    )


def sentences(budgeted: Budgeted, budget_s: float, spread: RepeatScatter) -> tuple[str, ...]:
    """What is going to be done in the time, and what can be claimed of it then, in plain words."""
    plan, repeats = budgeted.plan, budgeted.plan.suite.repeats
    much = "1 repeat" if repeats == 1 else f"{repeats} repeats"
    whole, all_of_it = show_duration(budget_s), show_duration(budgeted.seconds)
    found = [
        (
            f"a budget of {whole} holds {much} of {plan.steps // repeats} steps: about {all_of_it} in "
            "all, as far as can be told now"
        ),
        "a repeat that turns out not to fit is not begun; what was measured counts",
    ]
    if plan.suite.age is not None:
        found.append(
            "how long aging the stores takes is not known before it was done once, and is not "
            "counted in this"
        )
    if budgeted.shortened:
        found.append(f"windows are shortened to make room: {'; '.join(budgeted.shortened)}")
        found.append(
            "whether a p90 still has the 200 requests that it needs is not known before they are "
            "made: the table tells"
        )
    if repeats < REPEATS_FOR_A_CLAIM:
        return (*found, f"{claim(plan, spread)}: about {show_duration(budgeted.claim_s)}")
    return (*found, claim(plan, spread))


def claim(plan: Plan, spread: RepeatScatter, repeats: int | None = None) -> str:
    """What a plan can show in so many repeats (its own, where none are given) of such a spread, in
    one sentence.

    By the level that the first claim among all of the plan's tests has to reach: Benjamini and
    Hochberg's least favourable.
    """
    repeats = plan.suite.repeats if repeats is None else repeats
    if repeats < REPEATS_FOR_A_CLAIM:
        return (
            f"n = {repeats}: nothing can be claimed of a difference, which takes "
            f"{REPEATS_FOR_A_CLAIM} repeats"
        )
    tests = comparisons_of(plan)
    if not tests:
        return f"n = {repeats} of one layout: nothing is compared"
    bounds = plan.suite.bounds
    least = smallest_ratio(
        spread.share,
        repeats,
        level=next_level(tests),
        bound=max(bounds.throughput_ratio, bounds.p90_ratio),
    )
    shown = f"differences of about {math.ceil((least - 1) * 100)} % would be claimed 8 times in 10"
    return f"n = {repeats}: {spread.words}, {shown} in each of {tests} tests"


def comparisons_of(plan: Plan) -> int:
    """How many cells a plan compares at the most: of each metric each layout but the first and its
    twins with the first.
    """
    others = len(plan.layouts) - len(plan.twins) - 1
    ways = plan.passes[plan.layouts[0].name]
    cells = sum(
        len(one.workers) * len(one.operations)
        for way in ways
        if way.layer is None
        for one in way.workloads
    )
    return others * cells * len(compared())


def _times(room_s: float, one_s: float) -> int:
    return max(0, min(MOST, math.floor(room_s / one_s)))


def _shortened(suite: Suite, share: float) -> Suite:
    """The suite with windows of this share of their length, in whole seconds, none below the
    shortest that is sensible.
    """
    workloads = []
    for one in suite.workloads:
        floor_s = min(one.runtime, SHORTEST_WINDOW_S)
        workloads.append(
            one.model_copy(update={"runtime": max(floor_s, float(math.floor(one.runtime * share)))})
        )
    return suite.model_copy(update={"workloads": tuple(workloads)})


def _longest(suite: Suite, fits: Callable[[Suite], bool]) -> Suite:
    """The suite with the longest windows that fit, all shortened alike, to 1 in 64; the shortest
    are known to fit.
    """
    shares = [step / 64 for step in range(64, 0, -1)]
    return next(
        (one for share in shares if fits(one := _shortened(suite, share))), _shortened(suite, 0.0)
    )


def _told(before: Suite, after: Suite) -> tuple[str, ...]:
    pairs = zip(before.workloads, after.workloads, strict=True)
    return tuple(
        f"{old.name} from {old.runtime:g} s to {new.runtime:g} s"
        for old, new in pairs
        if old.runtime != new.runtime
    )
