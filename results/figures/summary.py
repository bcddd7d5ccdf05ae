"""Each step judged, and the table of a run: throughput, percentiles and errors by layout, API,
workload, operation and worker count.

Over repeats: throughput, bandwidth and percentiles are the geometric mean of the repeats' figures,
as in comparisons and sentences (percentiles are never taken from a mixture of repeats); max is the
largest; mean is the total of latencies over the total of samples; samples are a total. All repeats
that are valid and not unsteady count; if there are none, the valid ones do and the row has `steady
= no`; if there are none of those either, all do and the row has `valid = no`. Errors are those of
every repeat: leaving a repeat out hides none. Unknown figures are None, an empty cell, never a
number. What the hosts used is of complete steps: all operations of a step have the same figures. If
a driver counts latencies in bins, percentiles and max are intervals in separate fields and columns;
the figure itself is then None.

`steps.jsonl` has what was measured, and the verdicts made then. Verdicts that need a complete
window, or what the hosts used, are made here, and so again whenever results are derived: whether
the step was steady, and whether the NIC of the driver's host may have been the bottleneck. An
unreadable histogram spoils only its own step: none of its figures is ranked, and a note says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

from pydantic import NonNegativeFloat, NonNegativeInt

from weighbridge.common.errors import InvalidMeasurement, UsageError
from weighbridge.common.record import Record
from weighbridge.results.figures.doubt import Doubt, Grade, PowerMark, beside, graves
from weighbridge.results.figures.metrics import METRICS, Figures, Metric, MetricKey, compared
from weighbridge.results.figures.reading import (
    OF_ANY,
    MetricFigure,
    Reading,
    before_fault,
    geometric_mean,
)
from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM, one_sample
from weighbridge.results.figures.steadiness import (
    NOT_STEADY,
    UNKNOWN_STEADINESS,
    Steadiness,
    steadiness,
    steady_over_repeats,
    window_grain,
    window_move,
    window_shape,
)
from weighbridge.results.figures.use import (
    Resource,
    StepUse,
    What,
    aside_words,
    daemon_words,
    full_nics,
    limit_words,
    limited_by,
    others,
    over_repeats,
    quota_touches,
    step_use,
)
from weighbridge.results.figures.validity import DRIVER_CPU_SHARE
from weighbridge.results.numbers import UNKNOWN, ranged, show_figure, without_numbers
from weighbridge.results.run import ResolvedPlan, RunStore, StepKey, StepResult
from weighbridge.results.run.durability import Outage, read_outages
from weighbridge.suites import (
    DEFAULT_DRIVER,
    Api,
    DriverName,
    Fault,
    Layer,
    Operation,
    Workload,
    parts_of,
)


class Point(Figures):
    """One operation in one repeat of one step."""

    repeat: NonNegativeInt
    valid: bool
    steady: bool | None = None
    """None: unknown."""
    steady_before: bool | None = None
    """Whether it was steady until something died in it; None: unknown, or nothing did."""
    others: float | None = None
    """The share of the machine's CPUs that other programs used; None: unknown."""
    move: float | None = None
    """The change of its step over the window, relative to the mean (`window_move`); None: unknown.
    """
    grain: NonNegativeFloat = 0.0
    """The move that its window cannot resolve (`window_grain`)."""
    shape: tuple[float, ...] = ()
    """The fifths of its window (`window_shape`)."""
    warmup_s: NonNegativeFloat | None = None
    """The warm-up that would have sufficed, if it was still warming up."""
    driver_full: bool = False
    """Whether the load generator's CPU or network was at its bound."""
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    """What the driver noted with its figures: never why a repeat is not valid."""

    @property
    def ops_s(self) -> float:
        """Its throughput; 0 if unknown."""
        return self.value("throughput") or 0.0

    @property
    def ranked(self) -> bool:
        """Whether it counts in compared figures: valid and not known to be unsteady."""
        return self.valid and self.steady is not False


class JudgedStep(Record):
    """One step of one repeat; `notes` are its own and those made here, gravest first."""

    key: StepKey
    valid: bool
    steady: bool | None = None
    drifts: bool = False
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    use: StepUse | None = None
    dead: tuple[str, ...] = ()
    points: dict[Operation, Point]

    @property
    def ranked(self) -> bool:
        return self.valid and self.steady is not False


def read_visits(
    store: RunStore, plan: ResolvedPlan, steps: Iterable[StepResult]
) -> dict[StepKey, JudgedStep]:
    """The steps of a run folder with what the hosts used; the last result of each."""
    workloads, outages = workloads_of(plan), read_outages(store.folder)
    return {
        step.key: read_visit(store, step, workloads, outage=outages.get(step.key)) for step in steps
    }


def read_visit(
    store: RunStore,
    step: StepResult,
    workloads: Mapping[str, Workload],
    outage: Outage | None = None,
) -> JudgedStep:
    """One step with what the hosts used; unreadable telemetry is a gap of it. `workloads` are the
    suite's by name. `outage` is what died in it.
    """
    use, gaps = None, []
    try:
        telemetry = None if step.measurement is None else store.telemetry(step.key, step.time)
        if telemetry is not None and step.measurement is not None:
            use = step_use(telemetry, step.measurement.window_s)
    except (InvalidMeasurement, UsageError) as error:
        gaps.append(f"what the hosts used is not known: {error}")
    workload = workloads.get(step.key.workload)
    return visit(step, use, workload=workload, gaps=gaps, outage=outage)


def workloads_of(plan: ResolvedPlan) -> dict[str, Workload]:
    """The suite's workloads by name."""
    return {workload.name: workload for workload in plan.suite.workloads}


def visit(
    step: StepResult,
    use: StepUse | None = None,
    *,
    workload: Workload | None = None,
    gaps: Sequence[str] = (),
    outage: Outage | None = None,
) -> JudgedStep:
    """What is kept of a step.

    `workload`: the suite's; without one nothing is known of goodput, and only the rate of a search.
    `gaps`: what could not be read with it.
    `outage`: what died in it, if its workload has a fault; its rate is then not expected to be
    steady, and is not judged.
    """
    measurement = step.measurement
    closed_loop = step.key.rate_per_s is None
    if workload is not None and workload.rate_per_s is not None:
        # Beyond what a gateway serves its latencies rise by design: what is done counts.
        closed_loop = workload.overload is not None
    if measurement is None:
        return JudgedStep(key=step.key, valid=False, notes=step.notes, use=use, points={})
    readings = [Reading(tally, measurement, use, workload, outage) for tally in measurement.tallies]
    full = () if use is None else full_nics(use.resources)
    faults = [
        *(
            f"latencies of {reading.tally.operation}: {reading.fault}"
            for reading in readings
            if reading.fault
        ),
        *(nic.words for nic in full),
    ]
    fault = None if workload is None else workload.fault
    verdict = Steadiness(steady=None)
    before: bool | None = None
    move: float | None = None
    grain, shape = 0.0, tuple[float, ...]()
    if fault is not None:
        verdict = Steadiness(steady=True)
        until = before_fault(measurement, fault, outage)
        before = None if faults else steadiness(until, closed_loop=closed_loop).steady
    elif not faults:
        move = window_move(measurement, closed_loop=closed_loop)
        verdict = steadiness(measurement, closed_loop=closed_loop) if step.valid else verdict
    if move is not None:
        grain = window_grain(measurement) if closed_loop else 0.0
        shape = window_shape(measurement, closed_loop=closed_loop)
    load = measurement.load
    judged: dict[str, Any] = {
        "valid": step.valid and not faults,
        "steady": verdict.steady,
        "notes": (*faults, *verdict.notes, *step.notes, *gaps),
        "remarks": measurement.notes,
    }
    points = {
        reading.tally.operation: Point(
            **judged,
            repeat=step.key.repeat,
            steady_before=before,
            others=None if use is None else use.others,
            move=move,
            grain=grain,
            shape=shape,
            warmup_s=verdict.warmup_s,
            driver_full=bool(full) or (load is not None and load.share >= DRIVER_CPU_SHARE),
            figures=_read(reading),
        )
        for reading in readings
    }
    return JudgedStep(
        **judged,
        key=step.key,
        drifts=verdict.drifts,
        use=use,
        dead=tuple(endpoint.name for endpoint in measurement.endpoints if endpoint.left_out),
        points=points,
    )


def _read(reading: Reading) -> dict[str, MetricFigure]:
    """All that is known of an operation, by metric."""
    known: dict[str, MetricFigure] = {}
    for metric in METRICS.values():
        if reading.broken and not (metric.of_outage or metric.key in OF_ANY):
            continue
        figure = metric.read(reading)
        if figure is not None and not isinstance(figure, MetricFigure):
            figure = MetricFigure(value=figure)
        if figure is not None and figure.known:
            known[metric.key] = figure
    return known


NOT_VALID: Final = "not valid"
"""First note of a row without valid repeats, before the reasons, as NOT_STEADY."""
BY_ITSELF: Final = f"by itself {NOT_STEADY}"
"""How notes begin of a window that moved, if its repeats decide together."""


class Row(Figures):
    """One line of the table; `points` are its repeats, including those left out as not valid."""

    layout: str
    api: Api
    driver: DriverName = DEFAULT_DRIVER
    layer: Layer | None = None
    """None: the gateway as its clients see it."""
    workload: str
    operation: Operation
    object_size_bytes: NonNegativeFloat | None
    """The size of an object, or of the part that a request is about, or its expected mean."""
    fault: Fault | None = None
    """What died in each of its steps; None: nothing."""
    sent: str = ""
    """What the engine sends over the API, in words; empty for other drivers."""
    workers: int
    repeats: NonNegativeInt
    lost: NonNegativeInt = 0
    """How many repeats that were begun have no point, as their step failed."""
    resources: tuple[Resource, ...] = ()
    """Medians over the repeats; empty without telemetry."""
    reached: tuple[What, ...] = ()
    """Resources whose measured ceiling its throughput came close to."""
    aside: str = ""
    """Where requests queued, and what else ran on the hosts' machine, in words."""
    daemon_words: str = ""
    """What the gateway's daemons reported about themselves, in words."""
    valid: bool
    steady: bool | None = None
    """Whether the repeats that count were steady; None if unknown for one of them."""
    doubts: tuple[Doubt, ...] = ()
    """Reasons not to rank it, or to call it provisional."""
    power: PowerMark | None = None
    """What power cuts did to its layout; None for reads, and if no layout of the run was tried."""
    notes: tuple[str, ...] = ()
    points: tuple[Point, ...] = ()

    @property
    def ranked(self) -> bool:
        """Whether conclusions may be drawn; rows that are not ranked are shown and marked."""
        return self.valid and self.steady is not False and not self.condemned

    @property
    def condemned(self) -> tuple[Doubt, ...]:
        """The grave doubts about all of its figures."""
        return tuple(doubt for doubt in graves(self.doubts) if not doubt.metrics)

    @property
    def provisional(self) -> bool:
        """Whether it is ranked with a mild doubt, so that no lead is based on it."""
        return self.ranked and bool(self.doubts)

    @property
    def saturated(self) -> str | None:
        """The bottleneck, in words; None if unknown."""
        words = limit_words(self.resources)
        return f"{words}; {self.aside}" if words and self.aside else words

    @property
    def limited_by(self) -> str | None:
        """What limited it, by kind of resource; None if unknown."""
        return limited_by(self.resources, self.reached)

    @property
    def used(self) -> tuple[Point, ...]:
        """The repeats that the figures come from."""
        return used(self.points)


def used(points: Sequence[Point]) -> tuple[Point, ...]:
    """The points that a row's figures come from: the best kind available."""
    valid = tuple(point for point in points if point.valid)
    return tuple(point for point in valid if point.ranked) or valid or tuple(points)


def rows_of(
    plan: ResolvedPlan, steps: Mapping[StepKey, JudgedStep], *, layers: bool = False
) -> tuple[Row, ...]:
    """The table of judged steps, a row for all that was planned at the gateways; with `layers` of
    what was measured below and beside them.
    """
    steps = judged_together(steps)
    places = {workload.name: number for number, workload in enumerate(plan.suite.workloads)}
    ways: dict[tuple[Api, DriverName, Layer | None], int] = {}
    cells: list[tuple[tuple[int, ...], StepKey, Operation]] = []
    for place, layout in enumerate(plan.layouts):
        for one_pass in plan.passes_of(layout.name):
            if (one_pass.layer is not None) != layers:
                continue
            way = (one_pass.api, one_pass.driver, one_pass.layer)
            number = ways.setdefault(way, len(ways))
            for workload in one_pass.workloads:
                for part, operation in enumerate(parts_of(workload.operations)):
                    for workers in workload.workers:
                        key = StepKey(
                            layout=layout.name,
                            api=one_pass.api,
                            workload=workload.name,
                            workers=workers,
                            repeat=0,
                            driver=one_pass.driver,
                            layer=one_pass.layer,
                        )
                        order = (places[workload.name], part, number, workers, place)
                        cells.append((order, key, operation))
    workloads = workloads_of(plan)
    rows = []
    for _, first, operation in sorted(cells, key=itemgetter(0)):
        keys = [first.model_copy(update={"repeat": n}) for n in range(plan.suite.repeats)]
        repeats = [steps[key] for key in keys if key in steps]
        rows.append(_row(first, operation, workloads[first.workload], len(keys), repeats))
    return tuple(rows)


def _row(
    key: StepKey,
    operation: Operation,
    workload: Workload,
    planned: int,
    steps: Sequence[JudgedStep],
) -> Row:
    """The row of `steps`, of so many `planned` repeats."""
    points = tuple(step.points[operation] for step in steps if operation in step.points)
    shown = used(points)
    notes = [*_missing(steps, planned), *_notes(steps)]
    about = {
        "layout": key.layout,
        "api": key.api,
        "driver": key.driver,
        "layer": key.layer,
        "workload": key.workload,
        "operation": operation,
        "object_size_bytes": workload.request_bytes(operation),
        "sent": workload.sent(operation, key.api) if key.driver == DEFAULT_DRIVER else "",
        "fault": workload.fault,
        "workers": key.workers,
        "repeats": len(shown),
        "lost": len(steps) - len(points),
        "points": points,
    }
    if not shown:
        return Row(**about, notes=tuple(notes), valid=False)
    counted = {point.repeat for point in shown}
    uses = [step.use for step in steps if step.use is not None and step.key.repeat in counted]
    verdict = verdict_on(shown)
    if verdict.steady is not None or verdict.notes:
        # What no repeat can decide alone is not worth a note if all of them decide it together.
        notes = [note for note in notes if UNKNOWN_STEADINESS not in note]
    moved = [note for note in notes if BY_ITSELF in note]
    notes = [*(note for note in notes if note not in moved), *verdict.notes, *moved]
    return Row(
        **about,
        notes=tuple(dict.fromkeys(notes)),
        figures=_figures(shown, points),
        doubts=tuple(_doubts(steps, points, shown)),
        resources=over_repeats(uses),
        aside=aside_words(uses),
        daemon_words=daemon_words(uses),
        valid=any(point.valid for point in points),
        steady=verdict.steady,
    )


def _missing(steps: Sequence[JudgedStep], planned: int) -> Iterator[str]:
    if not steps:
        yield "not measured"
        return
    if len(steps) < planned:
        yield f"{len(steps)} of {planned} repeats measured"
    for left, rest, what in (
        (_invalid(steps), len(steps), NOT_VALID),
        (_unsteady(steps), len(steps) - _invalid(steps), NOT_STEADY),
    ):
        if left:
            some = f"{left} of {len(steps)} repeats left out as {what}"
            yield what if left == rest else some


def _invalid(steps: Sequence[JudgedStep]) -> int:
    return sum(not step.valid for step in steps)


def _unsteady(steps: Sequence[JudgedStep]) -> int:
    return sum(step.valid and not step.ranked for step in steps)


def _notes(steps: Sequence[JudgedStep]) -> Iterator[str]:
    """The repeats' notes, each once, with the repeats that have it unless all do."""
    groups: dict[str, list[tuple[str, int]]] = {}
    for step in steps:
        for note in (*step.notes, *step.remarks):
            key = note if note in step.remarks else without_numbers(note)
            groups.setdefault(key, []).append((note, step.key.repeat + 1))
    for alike in groups.values():
        which = sorted({repeat for _, repeat in alike})
        some = f"repeat{'s' * (len(which) > 1)} {', '.join(map(str, which))}: "
        yield f"{some * (len(which) < len(steps))}{ranged([note for note, _ in alike])}"


def _figures(shown: Sequence[Point], every: Sequence[Point]) -> dict[str, MetricFigure]:
    merged: dict[str, MetricFigure] = {}
    for metric in METRICS.values():
        figures = [point.figure(metric.key) for point in (every if metric.also_left_out else shown)]
        low, high = _interval(metric, figures)
        at_least = any(figure.at_least for figure in figures)
        ends = {"low": low, "high": high, "at_least": at_least, "parts": None}
        figure = metric.merge(figures).model_copy(update=ends)
        if figure.known:
            merged[metric.key] = figure
    return merged


def _interval(metric: Metric, figures: Sequence[MetricFigure]) -> tuple[float | None, float | None]:
    """The 95 % interval of a compared metric, over repeats or by order statistics."""
    if len(figures) == 1:
        return figures[0].low, figures[0].high
    values = [figure.value for figure in figures if figure.value is not None and figure.value > 0]
    if not metric.better or len(values) < len(figures) or len(values) < 2:
        return None, None
    ratio = one_sample([math.log(value) for value in values]).ratio
    # A lower bound has no upper end.
    return ratio.low, None if any(figure.at_least for figure in figures) else ratio.high


def _doubts(
    steps: Sequence[JudgedStep], points: Sequence[Point], shown: Sequence[Point]
) -> Iterator[Doubt]:
    """The doubts about a row: `steps` are its repeats, `points` theirs of its operation, `shown`
    those that count.
    """
    if any(point.valid for point in points):
        for what, does, left in (
            (NOT_STEADY, "stalls", _unsteady(steps)),
            (NOT_VALID, "fails", _invalid(steps)),
        ):
            if left and any(point.ranked for point in points):
                favoured = f"leaving them out favours a layout that {does}"
                words = f"{left} of {len(steps)} repeats were {what}; {favoured}"
                yield Doubt(what="repeats left out", grade="mild", words=words)
    of = {point.repeat: point for point in shown}
    counted = [step for step in steps if step.key.repeat in of]
    yield from beside(others([step.use for step in counted]))
    dead = [step.dead for step in counted if step.dead]
    if dead:
        names = ", ".join(dict.fromkeys(name for endpoints in dead for name in endpoints))
        words = f"in {len(dead)} of {len(shown)} repeats {names} was dead, and others took its load"
        yield Doubt(what="endpoint left out", grade="mild", words=words)
    uses = [(step.use, of[step.key.repeat]) for step in counted if step.use is not None]
    for metric in compared():
        about = (metric.key,)
        low = sum(point.figure(metric.key).at_least for point in shown)
        if low:
            ends = f"in {low} of {len(shown)} repeats " if len(shown) > 1 else ""
            words = f"{ends}requests not seen to end took at least as long, so it may be higher"
            yield Doubt(what="lower bound", grade="mild", words=words, metrics=about)
        held = [limit for use, point in uses if (limit := _limited(metric, use, point))]
        if held:
            grade: Grade = "grave" if 2 * len(held) > len(uses) else "mild"
            words = held[len(held) // 2]
            yield Doubt(what="set by the CPU limit", grade=grade, words=words, metrics=about)


def _limited(metric: Metric, use: StepUse, point: Point) -> str | None:
    """The CPU limit that may have set a percentile, in words; of a bin its upper edge."""
    bin_ms = point.within(metric.key)
    value = point.value(metric.key)
    if bin_ms is not None:
        value = bin_ms.low_ms if bin_ms.high_ms is None else bin_ms.high_ms
    if value is None or metric.percent is None:
        return None
    return quota_touches(use, metric.percent, value)


# Repeats of one step judged together: a window that moves by itself is not yet a step that does.
#
# On a machine whose speed varies, single windows rise or fall although the step is in a steady
# state. Leaving those out would keep the repeats of one level of the machine's speed. So where
# enough repeats are known, a window's own drift makes none of them unsteady: what all of them do
# decides (`steady_over_repeats`), and the rest is part of their spread, which
# the intervals show. A stall, or a recurring dip, is judged in its own window.


def judged_together(steps: Mapping[StepKey, JudgedStep]) -> dict[StepKey, JudgedStep]:
    """The same steps; of those with enough repeats, none is unsteady for its own drift alone."""
    cells: dict[StepKey, list[JudgedStep]] = {}
    for key, step in steps.items():
        moves = [point.move for point in step.points.values()][:1]
        stalls = step.steady is False and not step.drifts
        if step.valid and moves not in ([], [None]) and not stalls:
            cells.setdefault(key.model_copy(update={"repeat": 0}), []).append(step)
    judged = dict(steps)
    for repeats in cells.values():
        if len(repeats) < REPEATS_FOR_A_CLAIM:
            continue
        warming = sum(any(point.warmup_s for point in step.points.values()) for step in repeats)
        for step in repeats:
            if step.drifts:
                judged[step.key] = _left_open(step, warms=2 * warming > len(repeats))
    return judged


def verdict_on(shown: Sequence[Point]) -> Steadiness:
    """The verdict on repeats that count."""
    verdicts = {point.steady for point in shown}
    if False in verdicts or verdicts == {True}:
        return Steadiness(steady=False not in verdicts)
    if len(shown) < REPEATS_FOR_A_CLAIM:
        # The notes of each say why it is unknown.
        return Steadiness(steady=None)
    # Drift from repeat to repeat is part of the intervals and affects all layouts, since blocks are
    # balanced: it does not make a step unsteady.
    return steady_over_repeats(
        [point.move for point in shown],
        grain=max(point.grain for point in shown),
        shapes=[point.shape for point in shown],
    )


def _left_open(step: JudgedStep, *, warms: bool) -> JudgedStep:
    """The step with its own verdict open. `warms`: most of its repeats were still warming up."""
    start = f"{NOT_STEADY}: "
    notes = tuple(
        f"{BY_ITSELF}: {note.removeprefix(start)}" if note.startswith(start) else note
        for note in step.notes
    )
    verdict: dict[str, Any] = {"steady": None, "notes": notes}
    points = {
        operation: point.model_copy(
            update={**verdict, "warmup_s": point.warmup_s if warms else None}
        )
        for operation, point in step.points.items()
    }
    return step.model_copy(update={**verdict, "points": points})


ALIKE: Final = 1.25
"""The interval of a geometric mean runs from the figure divided by a factor to the figure times it.
Up to this factor the two sides differ by less than a tenth, and `±` describes both.
"""


def shown(row: Row, key: MetricKey, *, spread: bool = True) -> str:
    """A metric of a row as text: its bin if the driver counts in bins; `≥ 2,000` for a lower bound;
    else with the spread of its repeats, or for one repeat with few samples `87 [61-140]` or
    `87 [≥ 61]`.

    `spread`: whether there is room for that.
    """
    metric, figure = METRICS[key], row.figure(key)
    if figure.within is not None:
        return str(figure.within)
    if figure.value is None:
        return UNKNOWN
    if metric.is_integer:
        return f"{figure.value:,.0f}"
    least = "≥ " * figure.at_least
    # The interval is of a geometric mean; figures such as the highest maximum have none.
    if metric.merge is not geometric_mean or not spread:
        return f"{least}{show_figure(figure.value)}"
    if figure.low is not None and row.repeats == 1:
        return f"{least}{show_figure(figure.value)} [{_ends(figure)}]"
    return f"{least}{show_spread(figure)}"


def show_spread(figure: MetricFigure) -> str:
    """`594 ±3 %`: half the 95 % interval over repeats, or its ends if lopsided; the figure alone
    without an interval.
    """
    value, low, high = figure.value, figure.low, figure.high
    text = show_figure(value)
    if not value or low is None:
        return text
    if high is not None and high <= value * ALIKE and low * ALIKE >= value:
        half = (high - low) / 2 / value * 100
        return f"{text} ±{f'{half:.0f}' if half >= 1 else '<1'} %"
    return f"{text} ({_ends(figure)})"


def _ends(figure: MetricFigure) -> str:
    low = show_figure(figure.low)
    return f"≥ {low}" if figure.high is None else f"{low}–{show_figure(figure.high)}"
