"""What is kept of one step of one repeat when its histograms and series have been read: points, verdicts and what the hosts used.

`steps.jsonl` keeps what was measured and what was said of it then. Verdicts that need a whole window, or what the hosts used, are
made here, so that they are made anew whenever the rest is: whether the step was steady, and whether the NIC of the driver's host
may have been the limit. A histogram that cannot be read spoils its own step alone: no figure of it is ranked, and a note says so.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from pydantic import NonNegativeFloat, NonNegativeInt

from weighbridge.common.errors import InvalidMeasurement, UsageError
from weighbridge.common.record import Record
from weighbridge.results.analysis.steps.censoring import bounded, highest_ms, order_statistic_interval
from weighbridge.results.analysis.steps.interval import Interval, percentile
from weighbridge.results.analysis.steps.steadiness import Steadiness, steadiness
from weighbridge.results.analysis.steps.steady_repeats import window_grain, window_move
from weighbridge.results.analysis.steps.use import StepUse, full_nics, step_use
from weighbridge.results.analysis.steps.validity import enough_samples, least_samples
from weighbridge.results.metrics import Spread
from weighbridge.results.record.histogram import Histogram, rank_of
from weighbridge.results.record.measurement import Tally
from weighbridge.results.record.resolved import ResolvedPlan
from weighbridge.results.record.step import StepKey, StepResult
from weighbridge.results.record.store import RunStore
from weighbridge.suites import Operation

WITH_BODIES: Final = ("read", "write")

MOVED: Final = 1.05
"""What requests in flight could do to the time to first byte is a doubt from here on. A closed loop has always some in flight, and
of large bodies nearly all of those have had their first byte: less than this is in every step."""


class Point(Record):
    """One operation in one repeat of one step. Bandwidth is in MB/s of 10^6 bytes, of complete bodies of reads and writes."""

    repeat: NonNegativeInt
    valid: bool
    steady: bool | None = None
    """None: it cannot be told."""
    move: float | None = None
    """By how much its step moved from the start of the window to the end, as a share of its mean; None: not known."""
    grain: NonNegativeFloat = 0.0
    """The move that its window cannot resolve."""
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    """What the driver said beside its figures: never why a repeat is not valid."""
    throughput_ops_s: NonNegativeFloat
    bandwidth_mb_s: NonNegativeFloat | None = None
    p50_ms: NonNegativeFloat | None = None
    p90_ms: NonNegativeFloat | None = None
    p99_ms: NonNegativeFloat | None = None
    max_ms: NonNegativeFloat | None = None
    first_byte_ms: NonNegativeFloat | None = None
    """p90 of the time to first byte, of reads; None where the driver does not tell it."""
    p50_in: Interval | None = None
    p90_in: Interval | None = None
    p99_in: Interval | None = None
    max_in: Interval | None = None
    at_least: tuple[str, ...] = ()
    """Keys of metrics of which the figure is a lower bound: requests in flight at the end, or given up, took as long or longer."""
    ranges: tuple[Spread, ...] = ()
    """95 % intervals of percentiles of few samples."""
    total_ms: NonNegativeFloat | None
    """Sum of all latencies; None where the driver tells none."""
    samples: NonNegativeInt
    errors: NonNegativeInt
    gateway_cpu_s_per_1000_ops: NonNegativeFloat | None = None
    storage_cpu_s_per_1000_ops: NonNegativeFloat | None = None
    """CPU seconds of all hosts of the tier by all operations of the step that succeeded, whatever their kind."""

    @property
    def ranked(self) -> bool:
        """Whether it goes into figures that are compared: it is valid, and not known to be unsteady. Of what is not known to be
        steady either the row says that it is provisional.
        """
        return self.valid and self.steady is not False


class JudgedStep(Record):
    """One step of one repeat. `notes` are its own and those that were made here, the gravest first."""

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
    """All steps of a run folder with what the hosts used in them, read one by one; of a step that was measured again the last.

    Telemetry that cannot be read is a gap of its step. Raises InvalidMeasurement with file:line about a line of `steps.jsonl`
    that is no step, and UsageError when the file cannot be read.
    """
    closed = closed_loops(plan)
    found: dict[StepKey, JudgedStep] = {}
    for number, step in enumerate(store.each_step(), start=1):
        found[step.key] = read_visit(store, step, closed, place=f"steps.jsonl:{number}")
    return found


def read_visit(store: RunStore, step: StepResult, closed: Collection[str], *, place: str = "steps.jsonl") -> JudgedStep:
    """One step with what the hosts used in it; `closed` are the workloads that name no rate."""
    use, gaps = _read_use(store, step)
    return visit(step, use, closed_loop=step.key.workload in closed, place=place, gaps=gaps)


def closed_loops(plan: ResolvedPlan) -> frozenset[str]:
    """The workloads that name no rate."""
    return frozenset(workload.name for workload in plan.suite.workloads if workload.rate_per_s is None)


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
    """What is kept of a step. `closed_loop`: its workload names no rate. `place`: where it is read from, for what is said of it.

    `gaps` are what could not be read beside it.
    """
    measurement = step.measurement
    if measurement is None:
        return JudgedStep(key=step.key, valid=False, notes=step.notes, use=use, points={})
    latencies: dict[Operation, _Latencies] = {}
    faults: list[str] = []
    for tally in measurement.tallies:
        try:
            latencies[tally.operation] = _latencies(tally)
        except InvalidMeasurement as error:
            latencies[tally.operation] = _Latencies(max_ms=None if tally.max_us is None else tally.max_us / 1000)
            faults.append(f"{place}: latencies of {tally.operation}: {error}")
    if use is not None:
        faults += [one.words for one in full_nics(use.resources)]
    found = Steadiness(steady=None) if faults or not step.valid else steadiness(measurement, closed_loop=closed_loop)
    move = None if faults else window_move(measurement, closed_loop=closed_loop)
    grain = window_grain(measurement) if closed_loop and move is not None else 0.0
    valid = step.valid and not faults
    notes = (*faults, *found.notes, *step.notes, *gaps)
    done = sum(tally.count for tally in measurement.tallies)
    points = {
        tally.operation: Point(
            repeat=step.key.repeat,
            valid=valid,
            steady=found.steady,
            move=move,
            grain=grain,
            notes=notes,
            remarks=measurement.notes,
            throughput_ops_s=tally.count / measurement.window_s,
            bandwidth_mb_s=tally.bytes / 1e6 / measurement.window_s if tally.operation in WITH_BODIES else None,
            max_in=percentile(tally.bins, 100) if tally.max_us is None and tally.bins is not None else None,
            total_ms=None if tally.sum_us is None else tally.sum_us / 1000,
            samples=tally.count,
            errors=tally.failed,
            gateway_cpu_s_per_1000_ops=None if use is None else _per_1000(use.gateway_cpu_s, done),
            storage_cpu_s_per_1000_ops=None if use is None else _per_1000(use.storage_cpu_s, done),
            **dict(latencies[tally.operation]),
            **{f"p{percent}_in": within for percent, within in _percentiles_in(tally).items()},
        )
        for tally in measurement.tallies
    }
    return JudgedStep(
        key=step.key, valid=valid, steady=found.steady, notes=notes, remarks=measurement.notes, use=use, points=points
    )


def _per_1000(value: float | None, done: int) -> float | None:
    return value / done * 1000 if value is not None and done else None


class _Latencies(Record):
    """What is known of the latencies of one operation. `at_least` are keys of metrics that are lower bounds."""

    p50_ms: float | None = None
    p90_ms: float | None = None
    p99_ms: float | None = None
    max_ms: float | None = None
    first_byte_ms: float | None = None
    at_least: tuple[str, ...] = ()
    ranges: tuple[Spread, ...] = ()


def _latencies(tally: Tally) -> _Latencies:
    """Percentiles and the maximum in ms, requests that were not seen to end with them (`results.analysis.steps.censoring`).

    None where too few samples lie beyond; with the interval of order statistics where they are few. A bucket's top is never above
    the exact maximum. Raises InvalidMeasurement when a histogram cannot be read.
    """
    latency, in_flight = (None if text is None else Histogram.decode(text) for text in (tally.latency, tally.in_flight))
    found: dict[str, float | None] = {}
    at_least, ranges = [], []
    longest = highest_ms(tally.max_us, tally.in_flight_max_us)
    if longest is not None:
        found["max_ms"] = longest[0]
        at_least += ["max"] * (longest[1] is None)
    for percent in (50, 90, 99):
        if latency is None or longest is None or tally.count < least_samples(percent):
            continue
        known = bounded(latency, in_flight, percent)
        if known is None:
            continue
        found[f"p{percent}_ms"] = min(known[0], longest[0])
        at_least += [f"p{percent}"] * (known[1] is None)
        if not enough_samples(tally.count, percent):
            low, high = order_statistic_interval(latency, percent, in_flight=in_flight)
            ranges.append(Spread(metric=f"p{percent}", low=low, high=high))
    if tally.first_byte is not None:
        first = Histogram.decode(tally.first_byte)
        if first.count >= least_samples(90):
            found["first_byte_ms"], moved = _first_byte(first, in_flight)
            at_least += ["first-byte"] * moved
    return _Latencies(**found, at_least=tuple(at_least), ranges=tuple(ranges))


def _first_byte(first: Histogram, in_flight: Histogram | None) -> tuple[float | None, bool]:
    """p90 of the time to first byte in ms, and whether that is a lower bound; None where nothing is certain.

    Whether a request that was not seen to end had had its first byte is not known. If none had, the percentile is what `bounded`
    makes of it; where that is more than MOVED of what those have that ended, or has no end, all that is certain is told: the
    percentile there would be if all had had theirs at once.
    """
    seen_ms = first.percentile_us(90) / 1000
    most = bounded(first, in_flight, 90)
    if in_flight is None or most is None or (most[1] is not None and most[1] <= MOVED * seen_ms):
        return seen_ms, False
    rank = rank_of(first.count + in_flight.count, 90) - in_flight.count
    return (first.at_rank_us(rank) / 1000, True) if rank > 0 else (None, False)


def _percentiles_in(tally: Tally) -> dict[int, Interval | None]:
    """The same of a tally with bins and without a histogram: what each lies in."""
    wanted: dict[int, Interval | None] = dict.fromkeys((50, 90, 99))
    if tally.latency is None and tally.bins is not None:
        for percent in wanted:
            if enough_samples(tally.bins.count, percent):
                wanted[percent] = percentile(tally.bins, percent)
    return wanted
