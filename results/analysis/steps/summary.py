"""The study's table: throughput, percentiles and errors by layout, API, workload, operation and
worker count.

Over repeats: throughput, bandwidth and percentiles are the geometric mean of the repeats' own
figures, the same estimate that is compared and stands in sentences (percentiles are never taken of
a mixture of repeats); max is the largest; mean is the total of latencies over the total of samples;
samples are a total. Only repeats that are valid and not unsteady go in, and all of them; where
there is none, the valid ones go in and the row says `steady = no`; where none is valid either,
those that there are go in and it says `valid = no`. Errors alone are of every repeat: none is
hidden by leaving its repeat out. What is unknown is None, an empty cell, never a number. What the
hosts used is of whole steps: of a step with several operations each has the same figures. Of a
driver that tells latencies in bins each percentile and the max is the interval that it lies in, in
fields and columns of their own; the figure beside it is then None.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType
from typing import Final

from pydantic import NonNegativeFloat, NonNegativeInt

from weighbridge.results.analysis.steps.daemons import figure_words
from weighbridge.results.analysis.steps.steadiness import UNTOLD, Steadiness
from weighbridge.results.analysis.steps.steady_repeats import steady_over_repeats
from weighbridge.results.analysis.steps.use import (
    Resource,
    StepUse,
    beside_words,
    limit_words,
    others,
    over_repeats,
    queue_words,
    quota_touches,
)
from weighbridge.results.analysis.steps.validity import outlier_words
from weighbridge.results.analysis.steps.visit import JudgedStep, Point, closed_loops, visit
from weighbridge.results.doubt import Doubt, Grade, beside, graves
from weighbridge.results.metric_figure import MetricFigure
from weighbridge.results.metrics import METRICS, WITH_BODIES, Figures, Metric, compared
from weighbridge.results.record import ResolvedPlan, StepKey, StepResult
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM, one_sample
from weighbridge.suites import DEFAULT_DRIVER, Api, DriverName, Layer, Operation

__all__ = [
    "NOT_STEADY",
    "NOT_VALID",
    "WITH_BODIES",
    "Point",
    "Row",
    "rows_of",
    "summarize",
    "summarize_layers",
    "visits",
]

NOT_VALID: Final = "not valid"
NOT_STEADY: Final = "not steady"
"""What notes say of a row of which no repeat is; why is in those that follow."""

DRIFT_MOST: Final = 0.5
"""A drift of more than this that is not ruled out makes a row provisional, however far apart two
are.
"""


class Row(Figures):
    """One line of the table; `points` are the repeats it was made of and those that were left out
    as not valid.
    """

    layout: str
    api: Api
    driver: DriverName = DEFAULT_DRIVER
    layer: Layer | None = None
    """None: the gateway as its clients find it."""
    workload: str
    operation: Operation
    object_size_bytes: NonNegativeFloat | None
    """The size of an object, or the expected mean of its distribution."""
    workers: int
    repeats: NonNegativeInt
    """How many repeats the figures are made of."""
    resources: tuple[Resource, ...] = ()
    """Medians over the repeats; empty where no telemetry was recorded."""
    aside: str = ""
    """Where requests waited in a queue, and that much else ran on the hosts' machine, in words."""
    told: str = ""
    """What the gateway's daemons told of themselves, in words."""
    valid: bool
    steady: bool | None = None
    """Whether the repeats that the figures are made of were steady; None where it cannot be told of
    one of them.
    """
    drift: NonNegativeFloat | None = None
    """Where it cannot be told whether the repeats were steady: the largest drift from start to end
    of the window that they do not rule out, as a share of the mean. A comparison has to be beyond
    what it could have done."""
    doubts: tuple[Doubt, ...] = ()
    """Reasons not to rank it, or to call it provisional."""
    notes: tuple[str, ...] = ()
    points: tuple[Point, ...] = ()

    @property
    def ranked(self) -> bool:
        """Whether anything may be concluded from it.

        Rows that are not ranked are shown and marked.
        """
        return self.valid and self.steady is not False and not self.condemned

    @property
    def condemned(self) -> tuple[Doubt, ...]:
        """The grave doubts that touch every figure of it."""
        return tuple(one for one in graves(self.doubts) if not one.metrics)

    @property
    def provisional(self) -> bool:
        """Whether it is ranked, but a mild doubt touches it: it is shown and marked, and nothing
        leads by it.
        """
        return self.ranked and bool(self.doubts)

    @property
    def saturated(self) -> str | None:
        """What was the limit, in words; None where nothing is known."""
        words = limit_words(self.resources)
        return f"{words}; {self.aside}" if words and self.aside else words

    @property
    def used(self) -> tuple[Point, ...]:
        """The repeats that the figures are made of."""
        return used(self.points)


def used(points: Sequence[Point]) -> tuple[Point, ...]:
    """Of a row's points those that its figures are made of: the best kind of which there are
    any.
    """
    valid = tuple(point for point in points if point.valid)
    return tuple(point for point in valid if point.ranked) or valid or tuple(points)


def summarize(
    plan: ResolvedPlan,
    steps: Iterable[StepResult],
    uses: Mapping[StepKey, StepUse] = MappingProxyType({}),
) -> tuple[Row, ...]:
    """The table of a run: a row for everything planned, measured or not, in the order of the plan;
    without its layers.

    `uses` is what the hosts used in each step, of those that have telemetry. Of a step that was
    measured more than once the last result counts.
    """
    return rows_of(plan, visits(plan, steps, uses))


def summarize_layers(
    plan: ResolvedPlan,
    steps: Iterable[StepResult],
    uses: Mapping[StepKey, StepUse] = MappingProxyType({}),
) -> tuple[Row, ...]:
    """The same of what was measured below and beside the gateways."""
    return rows_of(plan, visits(plan, steps, uses), layers=True)


def visits(
    plan: ResolvedPlan,
    steps: Iterable[StepResult],
    uses: Mapping[StepKey, StepUse] = MappingProxyType({}),
) -> dict[StepKey, JudgedStep]:
    """What is kept of each step when it has been read; the steps themselves are let go one by one,
    for runs of many.
    """
    closed = closed_loops(plan)
    return {
        step.key: visit(step, uses.get(step.key), closed_loop=step.key.workload in closed)
        for step in steps
    }


def rows_of(
    plan: ResolvedPlan, found: Mapping[StepKey, JudgedStep], *, layers: bool = False
) -> tuple[Row, ...]:
    """The table, as `summarize` (or, of `layers`, `summarize_layers`) gives it, of what `visits`
    gives.
    """
    places = {workload.name: number for number, workload in enumerate(plan.suite.workloads)}
    sizes = {workload.name: workload.objects.mean_bytes for workload in plan.suite.workloads}
    ways: dict[tuple[Api, DriverName, Layer | None], int] = {}
    cells = []
    for standing, layout in enumerate(plan.layouts):
        for one in plan.passes_of(layout.name):
            if (one.layer is not None) != layers:
                continue
            way = ways.setdefault((one.api, one.driver, one.layer), len(ways))
            for workload in one.workloads:
                for number, operation in enumerate(workload.operations):
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
                                (places[workload.name], number, way, workers, standing),
                                key,
                                operation,
                            )
                        )
    repeats = plan.suite.repeats
    moves: dict[str, dict[StepKey, float | None]] = {}
    for key, step in found.items():
        moves.setdefault(key.layout, {})[key] = next(
            (point.move for point in step.points.values() if point.valid), None
        )
    return tuple(
        _row(key, operation, sizes[key.workload], repeats, found, moves.get(key.layout, {}))
        for _, key, operation in sorted(cells, key=itemgetter(0))
    )


def _row(
    first: StepKey,
    operation: Operation,
    size: float,
    repeats: int,
    visited: Mapping[StepKey, JudgedStep],
    moves: Mapping[StepKey, float | None],
) -> Row:
    """`moves` are those of all steps of the layout, by which few repeats of short windows are
    judged.
    """
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
        "object_size_bytes": size,
        "workers": first.workers,
        "repeats": len(shown),
        "notes": notes,
        "points": points,
    }
    if not shown:
        return Row(**head, valid=False)
    of = {point.repeat for point in shown}
    known = [one.use for one in found if one.use is not None and one.key.repeat in of]
    beside = [move for key, move in moves.items() if key not in keys]
    told = _steady(shown, beside)
    steady = told.steady
    far = outlier_words([(point.repeat, point.value("throughput") or 0.0) for point in shown])
    # What no repeat tells by itself is not worth a word where all of them tell it together.
    own = (
        tuple(note for note in notes if UNTOLD not in note)
        if steady is not None or told.notes
        else notes
    )
    head["notes"] = tuple(dict.fromkeys((*own, *told.notes, *far)))
    return Row(
        **head,
        figures=_figures(shown, points),
        doubts=tuple(
            _doubts(found, points, shown, [one.use for one in found if one.key.repeat in of], told)
        ),
        drift=told.most if steady is None else None,
        resources=over_repeats(known),
        aside="; ".join(words for words in (queue_words(known), beside_words(known)) if words),
        told=figure_words([use.told for use in known]),
        valid=any(point.valid for point in points),
        steady=steady,
    )


def _steady(shown: Sequence[Point], beside: Sequence[float | None]) -> Steadiness:
    """Of the repeats that figures are made of: no where one was not steady, for then all were not;
    of repeats too short to tell one by one, what they tell together.
    """
    told = {point.steady for point in shown}
    if False in told or told == {True}:
        return Steadiness(steady=False not in told)
    # What drifts from repeat to repeat is in the intervals, and falls on all layouts: blocks are
    # balanced. It is no unsteady step.
    found = steady_over_repeats(
        [point.move for point in shown],
        beside,
        grain=max((point.grain for point in shown), default=0.0),
    )
    # Why each of few repeats cannot be told is in its own notes.
    return found if len(shown) >= REPEATS_FOR_A_CLAIM else Steadiness(steady=None)


def _missing(found: Sequence[JudgedStep], repeats: int) -> Iterator[str]:
    """What is said first of a row: that repeats were not measured or were left out."""
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
    """What the repeats say, each thing once, with the repeats that say it where not all do."""
    sayers: dict[str, list[str]] = {}
    for one in found:
        for note in dict.fromkeys((*one.notes, *one.remarks)):
            sayers.setdefault(note, []).append(str(one.key.repeat + 1))
    for note, repeats in sayers.items():
        label = (
            ""
            if len(repeats) == len(found)
            else f"repeat{'s' * (len(repeats) > 1)} {', '.join(repeats)}: "
        )
        yield f"{label}{note}"


def _figures(shown: Sequence[Point], every: Sequence[Point]) -> dict[str, MetricFigure]:
    """What the repeats' figures come to, by metric.

    A lower bound of one makes a lower bound of all.
    """
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
    """The 95 % interval of a metric that is compared: Student's, of the logarithms of the repeats'
    own figures; of a single repeat with few samples that of order statistics.
    """
    if len(figures) == 1:
        return figures[0].low, figures[0].high
    known = [one.value for one in figures if one.value is not None and one.value > 0]
    if not metric.is_compared or len(known) < len(figures) or len(known) < 2:
        return None, None
    found = one_sample([math.log(value) for value in known]).ratio
    # What took as long or longer has no upper end.
    return found.low, None if any(one.at_least for one in figures) else found.high


def _doubts(
    found: Sequence[JudgedStep],
    points: Sequence[Point],
    shown: Sequence[Point],
    known: Sequence[StepUse | None],
    told: Steadiness,
) -> Iterator[Doubt]:
    """What there is to doubt of the figures of a row, by what was measured beside them and by what
    was left out.
    """
    if any(point.valid for point in points):
        kinds = (
            ("not steady", "who stalls", sum(one.valid and not one.ranked for one in found)),
            ("not valid", "who fails", sum(not one.valid for one in found)),
        )
        for what, who, left in kinds:
            if left and any(point.ranked for point in points):
                words = (
                    f"{left} of {len(found)} repeats were {what}, and those that are left "
                    f"favour {who}"
                )
                yield Doubt(what="repeats left out", grade="mild", words=words)
        if told.steady is None and (told.most is None or told.most > DRIFT_MOST):
            said = (
                *told.notes,
                *(note for point in points for note in point.notes if note.startswith(UNTOLD)),
            )
            words = next((note.removeprefix(f"{UNTOLD}: ") for note in said), "it was not judged")
            yield Doubt(what="steadiness not known", grade="mild", words=words)
    yield from beside(others(known))
    of = {point.repeat: point for point in shown}
    uses = [
        (one.use, of[one.key.repeat])
        for one in found
        if one.use is not None and one.key.repeat in of
    ]
    for metric in compared():
        low = sum(point.figure(metric.key).at_least for point in shown)
        if low:
            ends = f"in {low} of {len(shown)} repeats" if len(shown) > 1 else "in it"
            words = (
                f"{ends} requests that were not seen to end took as long or longer: it is a "
                "lower bound"
            )
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
    """Which CPU limit may have made a percentile or the maximum of a repeat, in words; None where
    none has.

    Of one that is told in a bin its upper end is judged, and of the last bin, which has none, its
    lower.
    """
    within = point.within(metric.key)
    value = (
        point.value(metric.key)
        if within is None
        else within.low_ms
        if within.high_ms is None
        else within.high_ms
    )
    return (
        None
        if value is None or metric.percent is None
        else quota_touches(use, metric.percent, value)
    )
