"""What is kept of one step of one repeat when its histograms and series have been read: points,
verdicts and what the hosts used.

`steps.jsonl` keeps what was measured and what was said of it then. Verdicts that need a whole
window, or what the hosts used, are made here, so that they are made anew whenever the rest is:
whether the step was steady, and whether the NIC of the driver's host may have been the limit. A
histogram that cannot be read spoils its own step alone: no figure of it is ranked, and a note says
so.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from pydantic import NonNegativeFloat, NonNegativeInt

from weighbridge.common.errors import InvalidMeasurement, UsageError
from weighbridge.common.record import Record
from weighbridge.results.analysis.steps.censoring import (
    bounded,
    highest_ms,
    order_statistic_interval,
)
from weighbridge.results.analysis.steps.steadiness import Steadiness, steadiness
from weighbridge.results.analysis.steps.steady_repeats import window_grain, window_move
from weighbridge.results.analysis.steps.use import StepUse, full_nics, step_use
from weighbridge.results.analysis.steps.validity import enough_samples, least_samples
from weighbridge.results.interval import percentile
from weighbridge.results.metric_figure import MetricFigure
from weighbridge.results.metrics import METRICS, Figures
from weighbridge.results.record import (
    Histogram,
    ResolvedPlan,
    RunStore,
    StepKey,
    StepResult,
    Tally,
    rank_of,
)
from weighbridge.suites import Operation

MOVED: Final = 1.05
"""What requests in flight could do to the time to first byte is a doubt from here on. A closed loop
has always some in flight, and of large bodies nearly all of those have had their first byte: less
than this is in every step."""


class Point(Figures):
    """One operation in one repeat of one step."""

    repeat: NonNegativeInt
    valid: bool
    steady: bool | None = None
    """None: it cannot be told."""
    move: float | None = None
    """By how much its step moved from the start of the window to the end, as a share of its mean;
    None: not known.
    """
    grain: NonNegativeFloat = 0.0
    """The move that its window cannot resolve."""
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    """What the driver said beside its figures: never why a repeat is not valid."""

    @property
    def ops_s(self) -> float:
        """Its throughput; 0 where nothing is known."""
        return self.value("throughput") or 0.0

    @property
    def ranked(self) -> bool:
        """Whether it goes into figures that are compared: it is valid, and not known to be
        unsteady. Of what is not known to be steady either the row says that it is provisional.
        """
        return self.valid and self.steady is not False


class JudgedStep(Record):
    """One step of one repeat.

    `notes` are its own and those that were made here, the gravest first.
    """

    key: StepKey
    valid: bool
    steady: bool | None = None
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    """What the driver said beside its figures."""
    use: StepUse | None = None
    points: dict[Operation, Point]

    @property
    def ranked(self) -> bool:
        """Whether anything may be concluded from it."""
        return self.valid and self.steady is not False


def read_visits(store: RunStore, plan: ResolvedPlan) -> dict[StepKey, JudgedStep]:
    """All steps of a run folder with what the hosts used in them, read one by one; of a step that
    was measured again the last.

    Telemetry that cannot be read is a gap of its step. Raises InvalidMeasurement with file:line
    about a line of `steps.jsonl` that is no step, and UsageError when the file cannot be read.
    """
    closed = closed_loops(plan)
    found: dict[StepKey, JudgedStep] = {}
    for number, step in enumerate(store.each_step(), start=1):
        found[step.key] = read_visit(store, step, closed, place=f"steps.jsonl:{number}")
    return found


def read_visit(
    store: RunStore, step: StepResult, closed: Collection[str], *, place: str = "steps.jsonl"
) -> JudgedStep:
    """One step with what the hosts used in it; `closed` are the workloads that name no rate."""
    use, gaps = _read_use(store, step)
    return visit(step, use, closed_loop=step.key.workload in closed, place=place, gaps=gaps)


def closed_loops(plan: ResolvedPlan) -> frozenset[str]:
    """The workloads that name no rate."""
    return frozenset(
        workload.name for workload in plan.suite.workloads if workload.rate_per_s is None
    )


def _read_use(store: RunStore, step: StepResult) -> tuple[StepUse | None, tuple[str, ...]]:
    """What the hosts used in a step, None where that is not known, and why it cannot be told."""
    if step.measurement is None:
        return None, ()
    try:
        telemetry = store.telemetry(step.key)
    except (InvalidMeasurement, UsageError) as error:
        return None, (f"what the hosts used is not known: {error}",)
    return None if telemetry is None else step_use(telemetry, step.measurement.window_s), ()


def visit(
    step: StepResult,
    use: StepUse | None = None,
    *,
    closed_loop: bool = True,
    place: str = "steps.jsonl",
    gaps: tuple[str, ...] = (),
) -> JudgedStep:
    """What is kept of a step. `closed_loop`: its workload names no rate. `place`: where it is read
    from, for what is said of it.

    `gaps` are what could not be read beside it.
    """
    measurement = step.measurement
    if measurement is None:
        return JudgedStep(key=step.key, valid=False, notes=step.notes, use=use, points={})
    done = sum(tally.count for tally in measurement.tallies)
    readers = [_Reader(tally, measurement.window_s, done, use) for tally in measurement.tallies]
    faults = [
        f"{place}: latencies of {one.tally.operation}: {one.fault}" for one in readers if one.fault
    ]
    if use is not None:
        faults += [one.words for one in full_nics(use.resources)]
    found = (
        Steadiness(steady=None)
        if faults or not step.valid
        else steadiness(measurement, closed_loop=closed_loop)
    )
    move = None if faults else window_move(measurement, closed_loop=closed_loop)
    grain = window_grain(measurement) if closed_loop and move is not None else 0.0
    valid = step.valid and not faults
    notes = (*faults, *found.notes, *step.notes, *gaps)
    points = {
        one.tally.operation: Point(
            repeat=step.key.repeat,
            valid=valid,
            steady=found.steady,
            move=move,
            grain=grain,
            notes=notes,
            remarks=measurement.notes,
            figures=_figures(one),
        )
        for one in readers
    }
    return JudgedStep(
        key=step.key,
        valid=valid,
        steady=found.steady,
        notes=notes,
        remarks=measurement.notes,
        use=use,
        points=points,
    )


def _figures(reader: _Reader) -> dict[str, MetricFigure]:
    """All that is known of each metric."""
    found: dict[str, MetricFigure] = {}
    for metric in METRICS.values():
        read = metric.read(reader)
        one = read if isinstance(read, MetricFigure) or read is None else MetricFigure(value=read)
        if one is not None and one.known:
            found[metric.key] = one
    return found


class _Reader:
    """One operation of a step as metrics read it (`OperationReader`); requests that were not seen
    to end are in its latencies (`results.analysis.steps.censoring`).

    `fault` says why its histograms cannot be read: then of its latencies the exact maximum alone is
    known.
    """

    def __init__(self, tally: Tally, window_s: float, done: int, use: StepUse | None) -> None:
        self.tally = tally
        self.window_s = window_s
        self.done = done
        self.gateway_cpu_s = None if use is None else use.gateway_cpu_s
        self.storage_cpu_s = None if use is None else use.storage_cpu_s
        self.fault = ""
        self._latency: Histogram | None = None
        self._in_flight: Histogram | None = None
        self._first: Histogram | None = None
        try:
            self._latency, self._in_flight, self._first = (
                None if text is None else Histogram.decode(text)
                for text in (tally.latency, tally.in_flight, tally.first_byte)
            )
        except InvalidMeasurement as error:
            self.fault = str(error)

    def latency(self, percent: float) -> MetricFigure | None:
        """A percentile in ms with the interval of order statistics where samples beyond it are few;
        100 is the maximum.

        None where none lies beyond. A bucket's top is never above the exact maximum.
        """
        longest = highest_ms(self.tally.max_us, None if self.fault else self.tally.in_flight_max_us)
        if (
            self.tally.latency is None
            and self.tally.bins is not None
            and (percent < 100 or self.tally.max_us is None)
        ):
            enough = percent == 100 or enough_samples(self.tally.bins.count, percent)
            return MetricFigure(within=percentile(self.tally.bins, percent)) if enough else None
        if longest is None:
            return None
        if percent == 100:
            return MetricFigure(value=longest[0], at_least=longest[1] is None)
        if self._latency is None or self.tally.count < least_samples(percent):
            return None
        known = bounded(self._latency, self._in_flight, percent)
        if known is None:
            return None
        low: float | None = None
        high: float | None = None
        if not enough_samples(self.tally.count, percent):
            low, high = order_statistic_interval(self._latency, percent, in_flight=self._in_flight)
        return MetricFigure(
            value=min(known[0], longest[0]), at_least=known[1] is None, low=low, high=high
        )

    def first_byte(self, percent: float) -> MetricFigure | None:
        """A percentile of the time to first byte in ms, and whether that is a lower bound; None
        where nothing is certain.

        Whether a request that was not seen to end had had its first byte is not known. If none had,
        the percentile is what `bounded` makes of it; where that is more than MOVED of what those
        have that ended, or has no end, all that is certain is told: the percentile there would be
        if all had had theirs at once.
        """
        first, in_flight = self._first, self._in_flight
        if first is None or first.count < least_samples(percent):
            return None
        seen_ms = first.percentile_us(percent) / 1000
        most = bounded(first, in_flight, percent)
        if (
            in_flight is None
            or most is None
            or (most[1] is not None and most[1] <= MOVED * seen_ms)
        ):
            return MetricFigure(value=seen_ms)
        rank = rank_of(first.count + in_flight.count, percent) - in_flight.count
        return (
            MetricFigure(value=first.at_rank_us(rank) / 1000, at_least=True) if rank > 0 else None
        )
