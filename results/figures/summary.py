"""The table of a run: throughput, percentiles and errors by layout, API, workload, operation and
worker count.

Over repeats: throughput, bandwidth and percentiles are the geometric mean of the repeats' figures,
as in comparisons and sentences (percentiles are never taken from a mixture of repeats); max is the
largest; mean is the total of latencies over the total of samples; samples are a total. All repeats
that are valid and not unsteady count; if there are none, the valid ones do and the row has `steady
= no`; if there are none of those either, all do and the row has `valid = no`. Errors are those of
every repeat: leaving a repeat out hides none. Unknown figures are None, an empty cell, never a
number. What the hosts used is of complete steps: all operations of a step have the same figures. If
a driver counts latencies in bins, percentiles and max are intervals in separate fields and columns;
the figure itself is then None.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType
from typing import Final

from pydantic import NonNegativeFloat, NonNegativeInt

from weighbridge.results.figures.doubt import Doubt, Grade, beside, graves
from weighbridge.results.figures.metric import Metric, MetricFigure, geometric_mean
from weighbridge.results.figures.metrics import METRICS, Figures, MetricKey, compared
from weighbridge.results.figures.power_mark import PowerMark
from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM, one_sample
from weighbridge.results.figures.steadiness import (
    NOT_STEADY,
    UNKNOWN_STEADINESS,
    Steadiness,
    steady_over_repeats,
)
from weighbridge.results.figures.use import (
    Resource,
    StepUse,
    What,
    beside_words,
    figure_words,
    limit_words,
    limited_by,
    others,
    over_repeats,
    queue_words,
    quota_touches,
)
from weighbridge.results.figures.visit import (
    JudgedStep,
    Point,
    is_closed_loop,
    visit,
    workloads_of,
)
from weighbridge.results.numbers import UNKNOWN, ranged, show_figure, without_numbers
from weighbridge.results.run import ResolvedPlan, StepKey, StepResult
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

DRIFT_MOST: Final = 0.5
"""If a larger drift than this is not ruled out, a row is provisional whatever the ratio."""


def row_doubts(
    found: Sequence[JudgedStep],
    points: Sequence[Point],
    shown: Sequence[Point],
    known: Sequence[StepUse | None],
    verdict: Steadiness,
) -> Iterator[Doubt]:
    """The doubts about a row: `found` are its repeats, `points` theirs of its operation, `shown`
    those that count, `known` what hosts used, `verdict` that on their steadiness.
    """
    if any(point.valid for point in points):
        kinds = (
            ("not steady", "stalls", sum(one.valid and not one.ranked for one in found)),
            ("not valid", "fails", sum(not one.valid for one in found)),
        )
        for what, does, left in kinds:
            if left and any(point.ranked for point in points):
                favoured = f"leaving them out favours a layout that {does}"
                words = f"{left} of {len(found)} repeats were {what}; {favoured}"
                yield Doubt(what="repeats left out", grade="mild", words=words)
        if verdict.steady is None and (verdict.most is None or verdict.most > DRIFT_MOST):
            notes = (
                *verdict.notes,
                *(
                    note
                    for point in points
                    for note in point.notes
                    if note.startswith(UNKNOWN_STEADINESS)
                ),
            )
            words = next(
                (note.removeprefix(f"{UNKNOWN_STEADINESS}: ") for note in notes),
                "it was not judged",
            )
            yield Doubt(what="steadiness not known", grade="mild", words=words)
    yield from beside(others(known))
    of = {point.repeat: point for point in shown}
    uses = [
        (one.use, of[one.key.repeat])
        for one in found
        if one.use is not None and one.key.repeat in of
    ]
    dead = [one.dead for one in found if one.dead and one.key.repeat in of]
    if dead:
        names = ", ".join(dict.fromkeys(name for some in dead for name in some))
        words = f"in {len(dead)} of {len(shown)} repeats {names} was dead, and others took its load"
        yield Doubt(what="endpoint left out", grade="mild", words=words)
    for metric in compared():
        low = sum(point.figure(metric.key).at_least for point in shown)
        if low:
            ends = f"in {low} of {len(shown)} repeats " if len(shown) > 1 else ""
            words = f"{ends}requests not seen to end took at least as long, so it may be higher"
            yield Doubt(what="lower bound", grade="mild", words=words, metrics=(metric.key,))
        if metric.percent is not None:
            held = [limit for use, point in uses if (limit := _limited(metric, use, point))]
            if held:
                grade: Grade = "grave" if 2 * len(held) > len(uses) else "mild"
                yield Doubt(
                    what="set by the CPU limit",
                    grade=grade,
                    words=held[len(held) // 2],
                    metrics=(metric.key,),
                )


def _limited(metric: Metric, use: StepUse, point: Point) -> str | None:
    """The CPU limit that may have set a percentile, in words; of a bin its upper edge."""
    within = point.within(metric.key)
    value = point.value(metric.key)
    if within is not None:
        value = within.low_ms if within.high_ms is None else within.high_ms
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


BY_ITSELF: Final = f"by itself {NOT_STEADY}"
"""How notes begin of a window that moved, if its repeats decide together."""


def judged_together(found: Mapping[StepKey, JudgedStep]) -> dict[StepKey, JudgedStep]:
    """The same steps; of those with enough repeats, none is unsteady for its own drift alone."""
    cells: dict[StepKey, list[JudgedStep]] = {}
    for key, one in found.items():
        cells.setdefault(key.model_copy(update={"repeat": 0}), []).append(one)
    judged = dict(found)
    for repeats in cells.values():
        fit = [one for one in repeats if one.valid and _move(one) is not None and not _stalls(one)]
        if len(fit) < REPEATS_FOR_A_CLAIM or not any(one.drifts for one in fit):
            continue
        warming = sum(any(point.warmup_s for point in one.points.values()) for one in fit)
        for one in fit:
            if one.drifts:
                judged[one.key] = _left_open(one, warms=2 * warming > len(fit))
    return judged


def verdict_on(shown: Sequence[Point], beside: Sequence[float | None]) -> Steadiness:
    """The verdict on repeats that count. `beside` are the moves of the layout's other steps."""
    verdicts = {point.steady for point in shown}
    if False in verdicts or verdicts == {True}:
        return Steadiness(steady=False not in verdicts)
    # Drift from repeat to repeat is part of the intervals and affects all layouts, since blocks are
    # balanced: it does not make a step unsteady.
    found = steady_over_repeats(
        [point.move for point in shown],
        beside,
        grain=max((point.grain for point in shown), default=0.0),
        shapes=[point.shape for point in shown],
    )
    # With few repeats, the notes of each say why it is unknown.
    return found if len(shown) >= REPEATS_FOR_A_CLAIM else Steadiness(steady=None)


def _move(one: JudgedStep) -> float | None:
    return next((point.move for point in one.points.values()), None)


def _stalls(one: JudgedStep) -> bool:
    return one.steady is False and not one.drifts


def _left_open(one: JudgedStep, *, warms: bool) -> JudgedStep:
    """The step with its own verdict open. `warms`: most of its repeats were still warming up."""

    def notes(of: Sequence[str]) -> tuple[str, ...]:
        start = f"{NOT_STEADY}: "
        return tuple(
            f"{BY_ITSELF}: {note.removeprefix(start)}" if note.startswith(start) else note
            for note in of
        )

    points = {
        operation: point.model_copy(
            update={
                "steady": None,
                "notes": notes(point.notes),
                "warmup_s": point.warmup_s if warms else None,
            }
        )
        for operation, point in one.points.items()
    }
    return one.model_copy(update={"steady": None, "notes": notes(one.notes), "points": points})


NOT_VALID: Final = "not valid"
"""First note of a row without valid repeats, before the reasons, as NOT_STEADY."""


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
    drift: NonNegativeFloat | None = None
    """If steadiness is unknown, the largest drift not ruled out: a comparison must be beyond it."""
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
        return tuple(one for one in graves(self.doubts) if not one.metrics)

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


def summarize(
    plan: ResolvedPlan,
    steps: Iterable[StepResult],
    uses: Mapping[StepKey, StepUse] = MappingProxyType({}),
) -> tuple[Row, ...]:
    """The table without layers, a row for all that was planned. The last result of a step counts;
    `uses`: what hosts used, if known.
    """
    return rows_of(plan, visits(plan, steps, uses))


def summarize_layers(
    plan: ResolvedPlan,
    steps: Iterable[StepResult],
    uses: Mapping[StepKey, StepUse] = MappingProxyType({}),
) -> tuple[Row, ...]:
    """The table of what was measured below and beside the gateways."""
    return rows_of(plan, visits(plan, steps, uses), layers=True)


def visits(
    plan: ResolvedPlan,
    steps: Iterable[StepResult],
    uses: Mapping[StepKey, StepUse] = MappingProxyType({}),
) -> dict[StepKey, JudgedStep]:
    """Each step reduced to what is kept; consumed one by one, as runs may have many."""
    workloads = workloads_of(plan)
    return {
        step.key: visit(
            step,
            uses.get(step.key),
            closed_loop=is_closed_loop(step, workloads),
            workload=workloads.get(step.key.workload),
        )
        for step in steps
    }


def rows_of(
    plan: ResolvedPlan, found: Mapping[StepKey, JudgedStep], *, layers: bool = False
) -> tuple[Row, ...]:
    """The table (with `layers` that of `summarize_layers`) of what `visits` returned."""
    found = judged_together(found)
    places = {workload.name: number for number, workload in enumerate(plan.suite.workloads)}
    workloads = {workload.name: workload for workload in plan.suite.workloads}
    ways: dict[tuple[Api, DriverName, Layer | None], int] = {}
    cells = []
    for place, layout in enumerate(plan.layouts):
        for one in plan.passes_of(layout.name):
            if (one.layer is not None) != layers:
                continue
            way = ways.setdefault((one.api, one.driver, one.layer), len(ways))
            for workload in one.workloads:
                for number, operation in enumerate(parts_of(workload.operations)):
                    for workers in workload.workers:
                        key = StepKey(
                            layout=layout.name,
                            api=one.api,
                            workload=workload.name,
                            workers=workers,
                            repeat=0,
                            driver=one.driver,
                            layer=one.layer,
                        )
                        cells.append(
                            (
                                (places[workload.name], number, way, workers, place),
                                key,
                                operation,
                            )
                        )
    repeats = plan.suite.repeats
    moves: dict[str, dict[StepKey, float | None]] = {}
    for key, step in found.items():
        if key.rate_per_s is None:
            moves.setdefault(key.layout, {})[key] = next(
                (point.move for point in step.points.values() if point.valid), None
            )
    return tuple(
        _row(key, operation, workloads[key.workload], repeats, found, moves.get(key.layout, {}))
        for _, key, operation in sorted(cells, key=itemgetter(0))
    )


def _row(
    first: StepKey,
    operation: Operation,
    workload: Workload,
    repeats: int,
    visited: Mapping[StepKey, JudgedStep],
    moves: Mapping[StepKey, float | None],
) -> Row:
    keys = [first.model_copy(update={"repeat": repeat}) for repeat in range(repeats)]
    found = [visited[key] for key in keys if key in visited]
    points = tuple(one.points[operation] for one in found if operation in one.points)
    shown = used(points)
    notes = (*_missing(found, repeats), *_notes(found))
    head = {
        "layout": first.layout,
        "api": first.api,
        "driver": first.driver,
        "layer": first.layer,
        "workload": first.workload,
        "operation": operation,
        "object_size_bytes": workload.request_bytes(operation),
        "sent": workload.sent(operation, first.api) if first.driver == DEFAULT_DRIVER else "",
        "fault": workload.fault,
        "workers": first.workers,
        "repeats": len(shown),
        "lost": len(found) - len(points),
        "notes": notes,
        "points": points,
    }
    if not shown:
        return Row(**head, valid=False)
    of = {point.repeat for point in shown}
    known = [one.use for one in found if one.use is not None and one.key.repeat in of]
    beside = [move for key, move in moves.items() if key not in keys]
    verdict = verdict_on(shown, beside)
    steady = verdict.steady
    # What no repeat can decide alone is not worth a note if all of them decide it together.
    own = (
        tuple(note for note in notes if UNKNOWN_STEADINESS not in note)
        if steady is not None or verdict.notes
        else notes
    )
    moved = [note for note in own if BY_ITSELF in note]
    own = tuple(note for note in own if note not in moved)
    head["notes"] = tuple(dict.fromkeys((*own, *verdict.notes, *moved)))
    return Row(
        **head,
        figures=_figures(shown, points),
        doubts=tuple(
            row_doubts(
                found, points, shown, [one.use for one in found if one.key.repeat in of], verdict
            )
        ),
        drift=verdict.most if steady is None else None,
        resources=over_repeats(known),
        aside="; ".join(
            words
            for words in (
                queue_words([one.queues for one in known]),
                beside_words([one.beside for one in known]),
            )
            if words
        ),
        daemon_words=figure_words([use.daemons for use in known]),
        valid=any(point.valid for point in points),
        steady=steady,
    )


def _missing(found: Sequence[JudgedStep], repeats: int) -> Iterator[str]:
    if not found:
        yield "not measured"
        return
    if len(found) < repeats:
        yield f"{len(found)} of {repeats} repeats measured"
    spoilt = sum(not one.valid for one in found)
    if spoilt:
        yield (
            NOT_VALID
            if spoilt == len(found)
            else f"{spoilt} of {len(found)} repeats left out as not valid"
        )
    moving = sum(one.valid and not one.ranked for one in found)
    if moving:
        yield (
            NOT_STEADY
            if moving == len(found) - spoilt
            else f"{moving} of {len(found)} repeats left out as not steady"
        )


def _notes(found: Sequence[JudgedStep]) -> Iterator[str]:
    """The repeats' notes, each once, with the repeats that have it unless all do."""
    groups: dict[str, list[tuple[str, int]]] = {}
    for one in found:
        for note in (*one.notes, *one.remarks):
            key = note if note in one.remarks else without_numbers(note)
            groups.setdefault(key, []).append((note, one.key.repeat + 1))
    for alike in groups.values():
        which = sorted({repeat for _, repeat in alike})
        some = f"repeat{'s' * (len(which) > 1)} {', '.join(map(str, which))}: "
        yield f"{some * (len(which) < len(found))}{ranged([note for note, _ in alike])}"


def _figures(shown: Sequence[Point], every: Sequence[Point]) -> dict[str, MetricFigure]:
    found: dict[str, MetricFigure] = {}
    for metric in METRICS.values():
        figures = [point.figure(metric.key) for point in (every if metric.also_left_out else shown)]
        low, high = _interval(metric, figures)
        at_least = any(one.at_least for one in figures)
        one = metric.merge(figures).model_copy(
            update={"low": low, "high": high, "at_least": at_least, "parts": None}
        )
        if one.known:
            found[metric.key] = one
    return found


def _interval(metric: Metric, figures: Sequence[MetricFigure]) -> tuple[float | None, float | None]:
    """The 95 % interval of a compared metric, over repeats or by order statistics."""
    if len(figures) == 1:
        return figures[0].low, figures[0].high
    known = [one.value for one in figures if one.value is not None and one.value > 0]
    if not metric.is_compared or len(known) < len(figures) or len(known) < 2:
        return None, None
    found = one_sample([math.log(value) for value in known]).ratio
    # A lower bound has no upper end.
    return found.low, None if any(one.at_least for one in figures) else found.high


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
        return f"{least}{show_figure(figure.value, metric.digits)}"
    if figure.low is not None and row.repeats == 1:
        low, high = figure.low, figure.high
        ends = (
            f"{show_figure(low)}–{show_figure(high)}"
            if high is not None
            else f"≥ {show_figure(low)}"
        )
        return f"{least}{show_figure(figure.value)} [{ends}]"
    return f"{least}{show_spread(figure, metric.digits)}"


def show_spread(figure: MetricFigure, digits: int = 3) -> str:
    """`594 ±3 %`: half the 95 % interval over repeats, or its ends if lopsided; the figure alone
    without an interval.
    """
    value, low, high = figure.value, figure.low, figure.high
    text = show_figure(value, digits)
    if not value or low is None:
        return text
    if high is None:
        return f"{text} (≥ {show_figure(low)})"
    if high <= value * ALIKE and low * ALIKE >= value:
        half = (high - low) / 2 / value * 100
        return f"{text} ±{f'{half:.0f}' if half >= 1 else '<1'} %"
    return f"{text} ({show_figure(low)}–{show_figure(high)})"
