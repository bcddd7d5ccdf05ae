"""What is kept of one step of one repeat: points, verdicts and what the hosts used.

`steps.jsonl` has what was measured, and the verdicts made then. Verdicts that need a complete
window, or what the hosts used, are made here, and so again whenever results are derived: whether
the step was steady, and whether the NIC of the driver's host may have been the bottleneck. An
unreadable histogram spoils only its own step: none of its figures is ranked, and a note says so.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Final

from pydantic import NonNegativeFloat, NonNegativeInt

from weighbridge.common.errors import InvalidMeasurement, UsageError
from weighbridge.common.record import Record
from weighbridge.results.figures.metric import (
    BACK,
    OF_ANY,
    SERVES,
    SPAN_S,
    MetricFigure,
    OutageFigures,
    percentile,
)
from weighbridge.results.figures.metrics import METRICS, Figures
from weighbridge.results.figures.statistics import binomial_quantile
from weighbridge.results.figures.steadiness import (
    Steadiness,
    steadiness,
    window_grain,
    window_move,
    window_shape,
)
from weighbridge.results.figures.use import StepUse, full_nics, step_use
from weighbridge.results.figures.validity import (
    DRIVER_CPU_SHARE,
    enough_samples,
)
from weighbridge.results.run import (
    Histogram,
    Measurement,
    ResolvedPlan,
    RunStore,
    Second,
    StepKey,
    StepResult,
    Tally,
    rank_of,
)
from weighbridge.results.run.durability import Outage, read_outages
from weighbridge.results.run.histogram import low_us
from weighbridge.suites import TRAITS, Fault, Operation, Workload

# Percentiles of latencies if some requests were not seen to end, or if samples are few.
#
# A request that is outstanding when the window closes, or given up after its timeout, has a
# latency of at least its age. Leaving it out would make a gateway that stalls before the end look
# faster than one that does not; counting its age as its latency would make it look nearly as
# good. Such latencies are right-censored. Their distribution is estimated by the product-limit
# (E. L. Kaplan and P. Meier, Journal of the American Statistical Association 53, 1958): at each
# observed latency, the share that takes longer falls by the share that ended there among all
# known to have got so far. A percentile that it does not fall to is unknown: it is at least the
# oldest of all. Without censoring the estimate is the percentile by rank.
#
# Latencies and ages are given as the tops of their buckets (at most 0.1 % too high).


CLOSE: Final = 1e-9
"""Rounding error allowed in a product of thousands of factors."""


def bounded(
    latency: Histogram | None, in_flight: Histogram | None, percent: float
) -> tuple[float, float | None] | None:
    """A percentile in ms as (low, high): equal if known; high is None if it is at least `low`.

    `latency` are latencies of requests that ended, `in_flight` ages of those that were not seen to
    end. None without either. At 100 it is the maximum up to the width of buckets (see
    `highest_ms`). Raises ValueError outside 0 < percent <= 100.
    """
    if not 0 < percent <= 100:
        raise ValueError(f"{percent} is not a percentage above 0 and up to 100")
    if in_flight is None or not in_flight.count:
        if latency is None or not latency.count:
            return None
        at_ms = latency.percentile_us(percent) / 1000
        return at_ms, at_ms
    seen = latency.buckets() if latency is not None else ()
    cut = in_flight.buckets()
    for top_us, longer in product_limit(seen, cut):
        if longer <= 1 - percent / 100 + CLOSE:
            return top_us / 1000, top_us / 1000
    return max(*(top_us for top_us, _ in (*seen[-1:], *cut[-1:])), 0) / 1000, None


def product_limit(
    seen: Iterable[tuple[int, int]], cut: Iterable[tuple[int, int]]
) -> Iterator[tuple[int, float]]:
    """By latency the share that takes longer: `seen` are (latency in us, count) of requests that
    ended, `cut` (age, count) of those that were not seen to end, both ascending.
    """
    seen, ages, longer = tuple(seen), deque(cut), 1.0
    # At risk at a time: all that ended then or later, and all whose age is at least that (a request
    # cut at a time was present at it).
    at_risk = sum(count for _, count in (*seen, *ages))
    for top_us, ended in seen:
        while ages and ages[0][0] < top_us:
            at_risk -= ages.popleft()[1]
        longer *= 1 - ended / at_risk
        yield top_us, longer
        at_risk -= ended


def highest_ms(
    max_us: int | None, in_flight_max_us: int | None
) -> tuple[float, float | None] | None:
    """The maximum in ms as (low, high): of what ended, or with high None the oldest age."""
    if in_flight_max_us is not None and (max_us is None or in_flight_max_us > max_us):
        return in_flight_max_us / 1000, None
    return None if max_us is None else (max_us / 1000, max_us / 1000)


def order_statistic_interval(
    histogram: Histogram,
    percent: float,
    confidence: float = 0.95,
    in_flight: Histogram | None = None,
) -> tuple[float, float | None]:
    """The interval in ms that holds a percentile with `confidence` for any distribution: two of the
    ordered samples.

    The number of samples below it is binomial, so its ends are the ranks l and u with P(B < l) and
    P(B >= u) of at most half the rest each (H. A. David and H. N. Nagaraja, Order Statistics, 2003,
    section 7.1). High is None if u is beyond the largest sample, low is 0 if l is below the
    smallest. `in_flight` are ages of requests not seen to end: their latencies are at least that,
    so they count for the lower end, and nothing above the largest latency is known for the upper.
    Raises ValueError outside 0 < percent < 100 and 0 < confidence < 1, and without samples.
    """
    if not 0 < percent < 100 or not 0 < confidence < 1:
        raise ValueError(
            f"no interval of the {percent:g}th percentile with a confidence of {confidence:g}"
        )
    at_least = histogram if in_flight is None else Histogram.merged((histogram, in_flight))
    if not at_least.count:
        raise ValueError("no samples have no interval")
    tail = (1 - confidence) / 2
    low = binomial_quantile(at_least.count, percent / 100, tail)
    high = binomial_quantile(at_least.count, percent / 100, 1 - tail) + 1
    low_ms = at_least.at_rank_us(low) / 1000 if low else 0.0
    return low_ms, histogram.at_rank_us(high) / 1000 if high <= histogram.count else None


# What a fault did to one operation of a step, from its series of seconds.
#
# A fault falls into a second, and only complete seconds count: the first one after it begins up
# to a second later. Rates over SPAN_S seconds decide whether service is back, since single
# seconds of a small rate differ by chance.


class OutageSecond(Record):
    """One complete second of a window."""

    second: NonNegativeInt
    count: NonNegativeInt
    errors: NonNegativeInt
    p99_ms: NonNegativeFloat | None
    """At most; bands are 19 to 25 % wide. None: nothing succeeded, or the driver has no bands."""
    in_flight: NonNegativeInt | None
    """When it began."""


class Times(Record):
    """Seconds of the window at which fault and return really were; `back_s` None: not in it."""

    fault_s: float
    back_s: float | None


def times_of(fault: Fault, outage: Outage | None) -> Times:
    """As recorded, else as planned."""
    if outage is None:
        return Times(fault_s=fault.at, back_s=fault.back)
    back_s = None if outage.back is None else outage.back.begun_s
    return Times(fault_s=outage.fault.begun_s, back_s=back_s)


def before_fault(measurement: Measurement, fault: Fault, outage: Outage | None) -> Measurement:
    """Its per-second figures as if the window had ended when the fault came."""
    fault_s = min(measurement.window_s, max(0.0, times_of(fault, outage).fault_s))
    seconds = tuple(one for one in measurement.seconds if one.second + 1 <= fault_s)
    return measurement.model_copy(update={"seconds": seconds, "window_s": fault_s})


def series(
    seconds: Sequence[Second], window_s: float, operations: Sequence[Operation]
) -> tuple[OutageSecond, ...]:
    """The complete seconds of a window, of these operations together."""
    found: dict[int, list[Second]] = {}
    for one in seconds:
        if one.operation in operations:
            found.setdefault(one.second, []).append(one)
    return tuple(_second(number, found.get(number, ())) for number in range(int(window_s)))


def _second(number: int, same: Sequence[Second]) -> OutageSecond:
    known = [one.in_flight for one in same if one.in_flight is not None]
    return OutageSecond(
        second=number,
        count=sum(one.count for one in same),
        errors=sum(one.errors for one in same),
        p99_ms=_p99_ms(same),
        in_flight=sum(known) if known else None,
    )


def _p99_ms(same: Sequence[Second]) -> float | None:
    """The upper edge of the band of the 99th percentile; never more than the longest."""
    bands: Counter[int] = Counter()
    for one in same:
        bands.update(dict(one.bands))
    if not bands:
        return None
    rank, seen = math.ceil(0.99 * bands.total()), 0
    longest_ms = max(one.max_us for one in same) / 1000
    for band in sorted(bands):
        seen += bands[band]
        if seen >= rank:
            return min(low_us(band + 1) / 1000, longest_ms)
    return longest_ms


def figures(
    seconds: Sequence[Second],
    window_s: float,
    operation: Operation,
    times: Times,
) -> OutageFigures | None:
    """The figures of one operation; None where no rate before the fault is known."""
    every = series(seconds, window_s, (operation,))
    before = [one.count for one in every if one.second + 1 <= times.fault_s]
    if not before or not median(before):
        return None
    rate = float(median(before))
    end_s = float(len(every))
    first = math.floor(times.fault_s) + 1
    after = every[first:]
    away_end_s = end_s if times.back_s is None else times.back_s
    spans = [after[start : start + SPAN_S] for start in range(max(0, len(after) - SPAN_S + 1))]
    detected = next(
        (
            some[0].second
            for some in spans
            if some[-1].second + 1 <= away_end_s
            and not any(one.errors for one in some)
            and _mean(some) >= SERVES * rate
        ),
        None,
    )
    recovered = next((some[0].second for some in spans if _mean(some) >= BACK * rate), None)
    returned = (
        []
        if times.back_s is None
        else [_mean(some) for some in spans if some[0].second >= times.back_s]
    )
    own = [one for one in seconds if one.operation == operation]
    away = [one for one in own if first <= one.second < away_end_s]
    errors: Counter[str] = Counter()
    for one in own:
        if one.second >= math.floor(times.fault_s):
            errors.update(one.failures or ({"unknown": one.errors} if one.errors else {}))
    missed = rate * (end_s - first) - sum(one.count for one in after)
    return OutageFigures(
        before_ops_s=rate,
        detect_s=None if detected is None else detected - times.fault_s,
        detect_within_s=max(0.0, away_end_s - times.fault_s),
        recover_s=None if recovered is None else recovered - times.fault_s,
        recover_within_s=end_s - times.fault_s,
        unanswered_s=sum(not one.count for one in after),
        missed_s=max(0.0, missed / rate),
        away_p99_ms=_p99_ms(away),
        away_max_ms=max((one.max_us / 1000 for one in away if one.count), default=None),
        lowest_back=min((one / rate for one in returned), default=None),
        errors=dict(errors),
    )


def _mean(some: Sequence[OutageSecond]) -> float:
    return sum(one.count for one in some) / len(some)


MOVED: Final = 1.05
"""From this factor on, what requests in flight could do to the time to first byte is a doubt. A
closed loop always has some in flight, and with large bodies nearly all of those have had their
first byte: smaller effects are in every step.
"""


class Point(Figures):
    """One operation in one repeat of one step."""

    repeat: NonNegativeInt
    valid: bool
    steady: bool | None = None
    """None: unknown."""
    steady_before: bool | None = None
    """The same until something died in it; None: unknown, or nothing did."""
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


def read_visits(store: RunStore, plan: ResolvedPlan) -> dict[StepKey, JudgedStep]:
    """All steps of a run folder with what the hosts used, read one by one; the last result of each.

    Unreadable telemetry is a gap of its step. Raises InvalidMeasurement with file:line on an
    unreadable line of `steps.jsonl`, and UsageError if the file is unreadable.
    """
    workloads, outages = workloads_of(plan), read_outages(store.folder)
    found: dict[StepKey, JudgedStep] = {}
    for number, step in enumerate(store.each_step(), start=1):
        found[step.key] = read_visit(
            store,
            step,
            workloads,
            place=f"steps.jsonl:{number}",
            outage=outages.get(step.key),
        )
    return found


def read_visit(
    store: RunStore,
    step: StepResult,
    workloads: Mapping[str, Workload],
    *,
    closed_loop: bool | None = None,
    place: str = "steps.jsonl",
    outage: Outage | None = None,
) -> JudgedStep:
    """One step with what the hosts used. `workloads` are the suite's by name; they say whether it
    is a closed loop, unless the caller knows. `outage` is what died in it.
    """
    use, gaps = _read_use(store, step)
    return visit(
        step,
        use,
        closed_loop=is_closed_loop(step, workloads) if closed_loop is None else closed_loop,
        workload=workloads.get(step.key.workload),
        place=place,
        gaps=gaps,
        outage=outage,
    )


def workloads_of(plan: ResolvedPlan) -> dict[str, Workload]:
    """The suite's workloads by name."""
    return {workload.name: workload for workload in plan.suite.workloads}


def is_closed_loop(step: StepResult, workloads: Mapping[str, Workload]) -> bool:
    """Whether a step's workload is one of the suite's, and has no rate."""
    workload = workloads.get(step.key.workload)
    return workload is not None and workload.rate_per_s is None


def _read_use(store: RunStore, step: StepResult) -> tuple[StepUse | None, tuple[str, ...]]:
    """What the hosts used in a step, None if unknown, and why it is unknown."""
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
    workload: Workload | None = None,
    place: str = "steps.jsonl",
    gaps: tuple[str, ...] = (),
    outage: Outage | None = None,
) -> JudgedStep:
    """What is kept of a step. `closed_loop`: its workload has no rate (a step of a search has).

    `workload`: the suite's; without one nothing is known of goodput.
    `place`: where the step was read from, for notes. `gaps`: what could not be read with it.
    `outage`: what died in it, if its workload has a fault; its rate is then not expected to be
    steady, and is not judged.
    """
    measurement = step.measurement
    closed_loop = closed_loop and step.key.rate_per_s is None
    if measurement is None:
        return JudgedStep(key=step.key, valid=False, notes=step.notes, use=use, points={})
    done = measurement.done
    readers = [
        _Reader(tally, measurement, done, use, workload, outage) for tally in measurement.tallies
    ]
    faults = [
        f"{place}: latencies of {one.tally.operation}: {one.fault}" for one in readers if one.fault
    ]
    full = () if use is None else full_nics(use.resources)
    faults += [one.words for one in full]
    load = measurement.load
    driver_full = bool(full) or (load is not None and load.share >= DRIVER_CPU_SHARE)
    fault = None if workload is None else workload.fault
    broken, before = fault is not None, None
    if fault is not None:
        found = Steadiness(steady=True)
        until = before_fault(measurement, fault, outage)
        before = None if faults else steadiness(until, closed_loop=closed_loop).steady
    elif faults or not step.valid:
        found = Steadiness(steady=None)
    else:
        found = steadiness(measurement, closed_loop=closed_loop)
    move = None if faults or broken else window_move(measurement, closed_loop=closed_loop)
    grain = window_grain(measurement) if closed_loop and move is not None else 0.0
    shape = () if move is None else window_shape(measurement, closed_loop=closed_loop)
    valid = step.valid and not faults
    notes = (*faults, *found.notes, *step.notes, *gaps)
    points = {
        one.tally.operation: Point(
            repeat=step.key.repeat,
            valid=valid,
            steady=found.steady,
            steady_before=before,
            move=move,
            grain=grain,
            shape=shape,
            warmup_s=found.warmup_s,
            driver_full=driver_full,
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
        drifts=found.drifts,
        notes=notes,
        remarks=measurement.notes,
        use=use,
        dead=tuple(one.name for one in measurement.endpoints if one.left_out),
        points=points,
    )


def _figures(reader: _Reader) -> dict[str, MetricFigure]:
    found: dict[str, MetricFigure] = {}
    for metric in METRICS.values():
        if reader.broken and not (metric.of_outage or metric.key in OF_ANY):
            continue
        read = metric.read(reader)
        one = read if isinstance(read, MetricFigure) or read is None else MetricFigure(value=read)
        if one is not None and one.known:
            found[metric.key] = one
    return found


def _from_disk(measurement: Measurement, use: StepUse) -> float | None:
    """Bytes read from disks for each byte answered; None if not only reads made disks read."""
    if not all(TRAITS[one.operation].answers_bodies for one in measurement.tallies):
        return None
    answered = sum(one.bytes for one in measurement.tallies)
    read = use.disk_read_bytes
    return read / answered if answered and read is not None else None


class _Reader:
    """One operation of a step as metrics read it (`OperationReader`); `fault` says why only the
    exact maximum is known, if histograms are unreadable.
    """

    def __init__(
        self,
        tally: Tally,
        measurement: Measurement,
        done: int,
        use: StepUse | None,
        workload: Workload | None,
        outage: Outage | None,
    ) -> None:
        self.tally = tally
        self.window_s = measurement.window_s
        self.done = done
        self.gateway_cpu_s = None if use is None else use.gateway_cpu_s
        self.storage_cpu_s = None if use is None else use.storage_cpu_s
        self.from_disk = None if use is None else _from_disk(measurement, use)
        self.stall_us = measurement.stall_us
        self.outage: OutageFigures | None = None
        self.broken = workload is not None and workload.fault is not None
        if workload is not None and workload.fault is not None:
            times = times_of(workload.fault, outage)
            self.outage = figures(measurement.seconds, measurement.window_s, tally.operation, times)
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
        self.offered: float | None = None
        self.sent_share: float | None = None
        self.good: int | None = None
        if workload is None or workload.overload is None or workload.rate_per_s is None:
            return
        due = workload.rate_per_s * self.window_s
        weights = workload.operations
        self.offered = due * weights.get(tally.operation, 0.0) / sum(weights.values())
        if measurement.begun is not None:
            self.sent_share = min(1.0, measurement.begun / due)
        self.good = self._good(workload.overload.within)

    def _good(self, within_s: float | None) -> int | None:
        """Successes within a time; None if the histogram does not say."""
        if within_s is None or not self.tally.count:
            return self.tally.count
        if self._latency is None:
            return None
        return sum(count for top_us, count in self._latency.buckets() if top_us <= within_s * 1e6)

    def latency(self, percent: float) -> MetricFigure | None:
        """A percentile in ms (100: maximum), with its interval by order statistics; None of too few
        samples. Never above the exact maximum.
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
        if self._latency is None or not enough_samples(self.tally.count, percent):
            return None
        known = bounded(self._latency, self._in_flight, percent)
        if known is None:
            return None
        low, high = order_statistic_interval(self._latency, percent, in_flight=self._in_flight)
        return MetricFigure(
            value=min(known[0], longest[0]), at_least=known[1] is None, low=low, high=high
        )

    def first_byte(self, percent: float) -> MetricFigure | None:
        """A percentile of the time to first byte in ms, and whether it is a lower bound; None if
        uncertain.

        Whether requests not seen to end had their first byte is unknown. If none had, the
        percentile is that of `bounded`; if that exceeds MOVED times that of requests that ended, or
        has no upper end, only a lower bound is certain: the percentile if all had had theirs at
        once.
        """
        first, in_flight = self._first, self._in_flight
        if first is None or not enough_samples(first.count, percent):
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
