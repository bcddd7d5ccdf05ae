"""A time budget: how many repeats fit, with which windows, and what such a run can claim."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, PositiveInt

from weighbridge.common.errors import UsageError, WeighbridgeError
from weighbridge.common.record import Record
from weighbridge.conductor.facts import facts_of_machine
from weighbridge.conductor.plan import NO_CONTROLS, Plan, make_plan
from weighbridge.conductor.time_estimate import REPORTING_S, TimeEstimate, show_duration
from weighbridge.results.features.open_run import open_run
from weighbridge.results.figures.metrics import compared
from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM, next_level, smallest_ratio
from weighbridge.results.figures.summary import Row
from weighbridge.results.figures.validity import least_samples
from weighbridge.results.run import LatencyBound
from weighbridge.results.run.machine import SAME
from weighbridge.suites import Suite, parts_of
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import Planned

# How far repeats scatter on this machine, as earlier runs show: what a planned run could find
# depends on it.


ASSUMED: Final = 0.15
"""A repeat's logarithm scatters so if no run shows it: `quick` by 5 to 25 % on two cores."""
FEWEST: Final = 3
"""Repeats of a cell that a scatter needs."""
LOOKED_AT: Final = 5
"""How many runs, the newest, are searched."""


class RepeatScatter(Record):
    """The median over cells of the standard deviation of logarithms: 0.15 is about 15 %."""

    share: Annotated[float, Field(ge=0)]
    cells: PositiveInt | None = None
    """None: it is assumed."""
    run: str = ""
    """The run that it was measured in."""

    @property
    def words(self) -> str:
        """`if repeats scatter by 14 % as in RUN (median of 24 cells)`."""
        percent = f"if repeats scatter by {self.share * 100:.0f} %"
        if self.cells is None:
            return f"{percent} (assumed: no earlier run on this machine)"
        return f"{percent} as in {self.run} (median of {self.cells} cells)"


def spread_of(rows: Sequence[Row], run: str) -> RepeatScatter | None:
    """The scatter of a table's throughputs and p90s; None if no cell has enough repeats."""
    found = []
    for row in rows:
        points = [point for point in row.used if point.valid]
        for metric in ("throughput", "p90"):
            figures = (point.value(metric) for point in points)
            known = [math.log(one) for one in figures if one is not None and one > 0]
            if len(known) >= FEWEST:
                found.append(statistics.stdev(known))
    if not found:
        return None
    return RepeatScatter(share=statistics.median(found), cells=len(found), run=run)


def spread_here(runs: Path, hardware: Hardware) -> RepeatScatter:
    """The scatter in the newest run below a folder that was made on this machine with this
    hardware, else the assumed one. Folders that cannot be read as runs are skipped.
    """
    now = facts_of_machine(hardware)
    folders = sorted((one.parent for one in runs.glob("*/manifest.json")), reverse=True)
    for folder in folders[:LOOKED_AT]:
        try:
            data = open_run(folder)
            facts = next(
                (sheet.facts for sheet in data.manifest.sheets if sheet.title == "machine"), {}
            )
            if data.tuning is None and all(facts.get(name) == now.get(name) for name in SAME):
                found = spread_of(data.rows, folder.name)
                if found is not None:
                    return found
        except WeighbridgeError:
            continue
    return RepeatScatter(share=ASSUMED)


SHORTEST_WINDOW_S: Final = 10.0
"""The shortest window to save time: warm-up and drift are judged by its seconds."""
CHECKING_S: Final = 3.0
"""Time for the programs of one layout to check its configuration, before a run."""
MOST: Final = 1000
"""Repeats that a suite may have."""


class Budgeted(Record):
    """A plan that fits into a time, by the estimate before it starts."""

    plan: Plan
    seconds: float
    """Estimated time for all of it."""
    claim_s: float
    """Estimated time for as many repeats as a claim needs."""
    shortened: tuple[str, ...] = ()
    """Windows that were shortened, in words."""


def fit(
    suite: Suite,
    hardware: Hardware,
    planned: Sequence[Planned],
    budget_s: float,
    *,
    controls: Mapping[str, str] = NO_CONTROLS,
    attest: bool = False,
    order_seed: int | None = None,
    find: LatencyBound | None = None,
) -> Budgeted:
    """The plan with the most repeats that fit, with shorter windows if a claim needs that. Raises
    UsageError if not even one fits.
    """

    def planned_for(one: Suite, repeats: int) -> Plan:
        plan = make_plan(
            one.changed(repeats=repeats),
            hardware,
            planned,
            controls=controls,
            order_seed=order_seed,
            find=find,
        )
        return plan.model_copy(update={"attest": attest, "budget_s": budget_s})

    def repeat_s(one: Suite) -> float:
        return TimeEstimate.of(planned_for(one, 1)).left_s()

    beside_s = CHECKING_S * len(planned) * hardware.of.measurable + REPORTING_S
    room_s = budget_s - beside_s

    def repeats_of(one: Suite) -> int:
        return max(0, min(MOST, math.floor(room_s / repeat_s(one))))

    chosen, repeats = suite, repeats_of(suite)
    if repeats < REPEATS_FOR_A_CLAIM:
        shortest = _shortened(suite, 0.0)
        most = repeats_of(shortest)
        if most < 1:
            least = f" even with windows of {SHORTEST_WINDOW_S:g} s" if shortest != suite else ""
            raise UsageError(
                f"a budget of {show_duration(budget_s)} is too short for one repeat, which takes "
                f"about {show_duration(beside_s + repeat_s(shortest))} in all{least}",
                advice="Give more time, fewer layouts, or a suite with fewer steps.",
            )
        if most >= REPEATS_FOR_A_CLAIM or repeats < 1:
            # Without any chance of a claim, the windows are as long as one repeat allows.
            repeats = REPEATS_FOR_A_CLAIM if most >= REPEATS_FOR_A_CLAIM else 1
            chosen = _longest(suite, lambda one: repeats_of(one) >= repeats)
    plan = planned_for(chosen, repeats)
    pairs = zip(suite.workloads, chosen.workloads, strict=True)
    return Budgeted(
        plan=plan,
        seconds=beside_s + TimeEstimate.of(plan).left_s(),
        claim_s=beside_s + REPEATS_FOR_A_CLAIM * repeat_s(chosen),
        shortened=tuple(
            f"{old.name} from {old.runtime:g} s to {new.runtime:g} s"
            for old, new in pairs
            if old.runtime != new.runtime
        ),
    )


def sentences(budgeted: Budgeted, budget_s: float, spread: RepeatScatter) -> tuple[str, ...]:
    """What will be done in the time, and what can then be claimed, in plain words."""
    plan, repeats = budgeted.plan, budgeted.plan.suite.repeats
    many = "1 repeat" if repeats == 1 else f"{repeats} repeats"
    each, total = plan.steps // repeats, show_duration(budgeted.seconds)
    found = [
        f"{show_duration(budget_s)} is enough for {many} of {each} steps: about {total} in all",
        "a repeat that turns out not to fit is not started; what was measured counts",
    ]
    if plan.suite.age is not None:
        found.append(
            "the time to age the stores is not known before the first time, and is not included"
        )
    if budgeted.shortened:
        found.append(f"windows are shortened to fit: {'; '.join(budgeted.shortened)}")
        found.append(
            f"whether a p90 still has the {least_samples(90)} requests that it needs is not known "
            "beforehand: see the table"
        )
    can_claim = claim(plan, spread)
    if repeats < REPEATS_FOR_A_CLAIM:
        return (*found, f"{can_claim}: about {show_duration(budgeted.claim_s)}")
    return (*found, can_claim)


def claim(plan: Plan, spread: RepeatScatter, repeats: int | None = None) -> str:
    """What so many repeats (default: the plan's) with such scatter can show, by the level that the
    plan's first claim must reach: Benjamini and Hochberg's least favourable.
    """
    repeats = plan.suite.repeats if repeats is None else repeats
    if repeats < REPEATS_FOR_A_CLAIM:
        return (
            f"n = {repeats}: no difference can be claimed, which needs {REPEATS_FOR_A_CLAIM} "
            "repeats"
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
    found = f"differences of about {math.ceil((least - 1) * 100)} % would be found 8 times in 10"
    return f"n = {repeats}: {spread.words}, {found} in each of {tests} tests"


def comparisons_of(plan: Plan) -> int:
    """Cells that a plan compares at most: each layout but the first and its control, per metric."""
    others = len(plan.layouts) - len(plan.twins) - 1
    ways = plan.passes[plan.layouts[0].name]
    cells = sum(
        len(one.workers)
        * len(parts_of(one.operations))
        * sum(metric.is_of(one) for metric in compared())
        for way in ways
        if way.layer is None
        for one in way.workloads
    )
    return others * cells


def _shortened(suite: Suite, share: float) -> Suite:
    workloads = []
    for one in suite.workloads:
        least_s = min(one.runtime, SHORTEST_WINDOW_S)
        runtime_s = max(least_s, float(math.floor(one.runtime * share)))
        workloads.append(one.model_copy(update={"runtime": runtime_s}))
    return suite.model_copy(update={"workloads": tuple(workloads)})


def _longest(suite: Suite, fits: Callable[[Suite], bool]) -> Suite:
    """The suite with the longest windows that fit, to 1 in 64; the shortest are known to fit."""
    shares = (step / 64 for step in range(64, 0, -1))
    shortened = (_shortened(suite, share) for share in shares)
    return next((one for one in shortened if fits(one)), _shortened(suite, 0.0))
