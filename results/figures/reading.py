"""One operation of a measured step: what a metric reads of it, and how figures of repeats become
one.

A figure is a value, a bin or a lower bound. Percentiles take requests into account that were not
seen to end, and intervals of few samples; of a step in which something died there are times until
it was dealt with. An unreadable histogram leaves the exact maximum.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any, Final

from pydantic import NonNegativeFloat, NonNegativeInt, model_validator

from weighbridge.common.errors import InvalidMeasurement
from weighbridge.common.record import Record
from weighbridge.results.figures import statistics
from weighbridge.results.figures.statistics import CONFIDENCE, binomial_quantile
from weighbridge.results.figures.use import StepUse
from weighbridge.results.figures.validity import enough_samples
from weighbridge.results.numbers import show_ms
from weighbridge.results.run import Bins, Histogram, Measurement, Second, Tally, rank_of
from weighbridge.results.run.durability import Outage
from weighbridge.results.run.histogram import low_us
from weighbridge.suites import TRAITS, Fault, Operation, Workload


class Interval(Record):
    """From above `low_ms` up to and including `high_ms`; None: a last bin has no upper edge."""

    low_ms: NonNegativeFloat
    high_ms: NonNegativeFloat | None

    @model_validator(mode="after")
    def _ordered(self) -> Interval:
        if self.high_ms is not None and self.high_ms <= self.low_ms:
            raise ValueError(f"an interval from {self.low_ms} to {self.high_ms} ms is empty")
        return self

    @property
    def top_ms(self) -> float:
        """The upper edge for comparing and sorting; infinite if there is none."""
        return math.inf if self.high_ms is None else self.high_ms

    def holds(self, value_ms: float) -> bool:
        return self.low_ms < value_ms <= self.top_ms

    def touches(self, other: Interval) -> bool:
        """Whether the two overlap or share an edge: neither can then be called higher."""
        return self.low_ms <= other.top_ms and other.low_ms <= self.top_ms

    def bins_off(self, value_ms: float) -> int | None:
        """How many bin widths a latency lies below (negative) or above; None without a width."""
        if self.holds(value_ms):
            return 0
        if self.high_ms is None:
            return None
        width_ms = self.high_ms - self.low_ms
        if value_ms > self.high_ms:
            return math.ceil((value_ms - self.high_ms) / width_ms)
        return -(math.floor((self.low_ms - value_ms) / width_ms) + 1)

    def __str__(self) -> str:
        high = "∞)" if self.high_ms is None else f"{_plain(self.high_ms)}]"
        return f"({_plain(self.low_ms)}, {high}"


def percentile(bins: Bins, percent: float) -> Interval:
    """The bin of the latency at rank ceil(n * percent / 100), as for histograms.

    Raises InvalidMeasurement if nothing was counted, and ValueError outside 0 < percent <= 100.
    """
    if not bins.count:
        raise InvalidMeasurement("empty bins have no percentiles")
    rank, seen = rank_of(bins.count, percent), 0
    for number, count in bins.counts:
        seen += count
        if seen >= rank:
            return Interval(
                low_ms=number * bins.width_us / 1000, high_ms=(number + 1) * bins.width_us / 1000
            )
    return Interval(low_ms=bins.beyond_us / 1000, high_ms=None)


def summed(found: Sequence[Bins]) -> Bins:
    """The sum of the counts. Raises InvalidMeasurement if widths or ends differ."""
    first, *others = found
    if any((one.width_us, one.beyond_us) != (first.width_us, first.beyond_us) for one in others):
        raise InvalidMeasurement("bins of different widths cannot be added")
    counts: Counter[int] = Counter()
    for one in found:
        counts.update(dict(one.counts))
    beyond = sum(one.beyond for one in found)
    return Bins(
        width_us=first.width_us,
        counts=tuple(sorted(counts.items())),
        beyond_us=first.beyond_us,
        beyond=beyond,
    )


def _of_edges(pick: Callable[[Iterable[float]], float], bins: Sequence[Interval]) -> Interval:
    """The interval of the median, or of the maximum, of latencies in these bins."""
    high_ms = pick(each.top_ms for each in bins)
    low_ms = pick(each.low_ms for each in bins)
    return Interval(low_ms=low_ms, high_ms=None if math.isinf(high_ms) else high_ms)


def show_latency(value_ms: float | None, within: Interval | None) -> str:
    """A latency as far as known: its figure, its interval, or UNKNOWN."""
    return show_ms(value_ms) if within is None else str(within)


def _plain(value: float) -> str:
    """Without thousands separators: the comma of an interval separates its ends."""
    return f"{value:.3f}".rstrip("0").rstrip(".")


class MetricFigure(Record):
    """What is known of one metric of a repeat, or of a row, in the metric's unit."""

    value: NonNegativeInt | NonNegativeFloat | None = None
    within: Interval | None = None
    """The bin that it lies in, if the driver counts in bins; there is then no value."""
    low: NonNegativeFloat | None = None
    high: NonNegativeFloat | None = None
    """The 95 % interval over repeats, or by order statistics. None: unknown; `high` alone: no end.
    """
    at_least: bool = False
    """Whether it is a lower bound: requests not seen to end took at least as long."""
    parts: tuple[NonNegativeFloat, NonNegativeInt] | None = None
    """For a mean: the total and its count, so that the mean over repeats can be computed."""

    @model_validator(mode="before")
    @classmethod
    def _number(cls, given: Any) -> Any:
        return {"value": given} if isinstance(given, int | float) else given

    @model_validator(mode="after")
    def _consistent(self) -> MetricFigure:
        if self.value is not None and self.within is not None:
            raise ValueError("a figure has either a value or a bin")
        if self.high is not None and (self.low is None or self.low > self.high):
            raise ValueError(f"an interval from {self.low} to {self.high} is empty")
        return self

    @property
    def known(self) -> bool:
        """Whether it says anything."""
        return self != NOTHING


NOTHING: Final = MetricFigure()

Merge = Callable[[Sequence[MetricFigure]], MetricFigure]
"""How the figures of repeats become one; NOTHING if one is unknown, as the rest is another set."""


def _merged(
    figures: Sequence[MetricFigure],
    of_values: Callable[[Sequence[float]], float],
    of_edges: Callable[[Iterable[float]], float] | None = None,
    *,
    of_some: bool = False,
) -> MetricFigure:
    """`of_some`: also of those that are known alone."""
    values = [figure.value for figure in figures if figure.value is not None]
    bins = [figure.within for figure in figures if figure.within is not None]
    if values and (of_some or len(values) == len(figures)):
        return MetricFigure(value=of_values(values))
    if of_edges is not None and bins and (of_some or len(bins) == len(figures)):
        return MetricFigure(within=_of_edges(of_edges, bins))
    return NOTHING


def geometric_mean(figures: Sequence[MetricFigure]) -> MetricFigure:
    """0 if a value is 0; for bins that of the median."""
    return _merged(
        figures,
        lambda values: statistics.geometric_mean(values) if min(values) > 0 else 0.0,
        median,
    )


def average(figures: Sequence[MetricFigure]) -> MetricFigure:
    """The arithmetic mean, for shares that may be 0."""
    return _merged(figures, lambda values: sum(values) / len(values))


def largest(figures: Sequence[MetricFigure]) -> MetricFigure:
    """The largest known value, or its bin."""
    return _merged(figures, max, max, of_some=True)


def total(figures: Sequence[MetricFigure]) -> MetricFigure:
    """The sum."""
    return _merged(figures, sum)


def mean_of_all(figures: Sequence[MetricFigure]) -> MetricFigure:
    """The sum of totals over the sum of counts (`parts`)."""
    parts = [figure.parts for figure in figures if figure.parts is not None]
    count = sum(part[1] for part in parts)
    if not count or len(parts) < len(figures):
        return NOTHING
    return MetricFigure(value=sum(part[0] for part in parts) / count)


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
    end. None without either. At 100 it is the maximum up to the width of buckets. Raises ValueError
    outside 0 < percent <= 100.
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


def order_statistic_interval(
    histogram: Histogram, percent: float, in_flight: Histogram | None = None
) -> tuple[float, float | None]:
    """The 95 % interval in ms of a percentile for any distribution: two of the ordered samples.

    The number of samples below it is binomial, so its ends are the ranks l and u with P(B < l) and
    P(B >= u) of at most half the rest each (H. A. David and H. N. Nagaraja, Order Statistics, 2003,
    section 7.1). High is None if u is beyond the largest sample, low is 0 if l is below the
    smallest. `in_flight` are ages of requests not seen to end: their latencies are at least that,
    so they count for the lower end, and nothing above the largest latency is known for the upper.
    Raises ValueError outside 0 < percent < 100, and without samples.
    """
    if not 0 < percent < 100:
        raise ValueError(f"no interval of the {percent:g}th percentile")
    at_least = histogram if in_flight is None else Histogram.merged((histogram, in_flight))
    if not at_least.count:
        raise ValueError("no samples have no interval")
    tail = (1 - CONFIDENCE) / 2
    low = binomial_quantile(at_least.count, percent / 100, tail)
    high = binomial_quantile(at_least.count, percent / 100, 1 - tail) + 1
    low_ms = at_least.at_rank_us(low) / 1000 if low else 0.0
    return low_ms, histogram.at_rank_us(high) / 1000 if high <= histogram.count else None


# What a fault did to one operation of a step, from its series of seconds.
#
# A fault falls into a second, and only complete seconds count: the first one after it begins up
# to a second later. Rates over SPAN_S seconds decide whether service is back, since single
# seconds of a small rate differ by chance.


SPAN_S: Final = 5
"""Rates are means of so many seconds."""
SERVES: Final = 0.5
"""A rate of this share of the one before, without an error, shows that the fault was dealt with."""
BACK: Final = 0.9
"""A rate of this share of the one before is as before."""


class OutageFigures(Record):
    """What a fault did to one operation. Times are seconds since it, read from complete seconds of
    the window: at most 1 s means that no complete second was below.
    """

    by_metric: Mapping[str, MetricFigure]
    """In the units of metrics, which say what each is; unknown ones are absent."""
    errors: dict[str, NonNegativeInt]
    """From the fault on, by class; `unknown` where the driver does not say."""


OF_ANY: Final = ("samples", "errors")
"""Metrics that also workloads with `fault` have."""


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
    complete = []
    for number in range(int(window_s)):
        same = found.get(number, ())
        in_flight = [second.in_flight for second in same if second.in_flight is not None]
        complete.append(
            OutageSecond(
                second=number,
                count=sum(second.count for second in same),
                errors=sum(second.errors for second in same),
                p99_ms=_p99_ms(same),
                in_flight=sum(in_flight) if in_flight else None,
            )
        )
    return tuple(complete)


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


def figures(measurement: Measurement, operation: Operation, times: Times) -> OutageFigures | None:
    """The figures of one operation; None where no rate before the fault is known."""
    every = series(measurement.seconds, measurement.window_s, (operation,))
    before = [second.count for second in every if second.second + 1 <= times.fault_s]
    if not before or not median(before):
        return None
    rate, end_s = float(median(before)), float(len(every))
    first = math.floor(times.fault_s) + 1
    after = every[first:]
    away_end_s = end_s if times.back_s is None else times.back_s
    detected, recovered, returned = None, None, []
    for start in range(max(0, len(after) - SPAN_S + 1)):
        span = after[start : start + SPAN_S]
        begin, mean = span[0].second, sum(second.count for second in span) / SPAN_S
        faultless = not any(second.errors for second in span)
        if span[-1].second + 1 <= away_end_s and faultless and mean >= SERVES * rate:
            detected = begin if detected is None else detected
        if mean >= BACK * rate:
            recovered = begin if recovered is None else recovered
        if times.back_s is not None and begin >= times.back_s:
            returned.append(mean / rate)
    own = [second for second in measurement.seconds if second.operation == operation]
    away = [second for second in own if first <= second.second < away_end_s]
    errors: Counter[str] = Counter()
    for second in own:
        if second.second >= math.floor(times.fault_s):
            errors.update(second.failures or ({"unknown": second.errors} if second.errors else {}))
    missed = rate * (end_s - first) - sum(second.count for second in after)
    known = {
        "rate-before": rate,
        "detect": _until(detected, times.fault_s, away_end_s),
        "recover": _until(recovered, times.fault_s, end_s),
        "stall": None if measurement.stall_us is None else measurement.stall_us / 1e6,
        "unanswered": float(sum(not second.count for second in after)),
        "missed": max(0.0, missed / rate),
        "away-p99": _p99_ms(away),
        "away-max": max((second.max_us / 1000 for second in away if second.count), default=None),
        "lowest-back": 100 * min(returned) if returned else None,
    }
    by_metric = {key: value for key, value in known.items() if value is not None}
    return OutageFigures.model_validate({"by_metric": by_metric, "errors": errors})


def _until(second: int | None, fault_s: float, end_s: float) -> MetricFigure:
    """The time from the fault to a second; without one at least as long as was looked for it."""
    if second is None:
        return MetricFigure(value=max(0.0, end_s - fault_s), at_least=True)
    return MetricFigure(value=second - fault_s)


MOVED: Final = 1.05
"""From this factor on, what requests in flight could do to the time to first byte is a doubt. A
closed loop always has some in flight, and with large bodies nearly all of those have had their
first byte: smaller effects are in every step.
"""


class Reading:
    """One operation of a measured step, as a metric reads it (see `Metric.read`)."""

    def __init__(
        self,
        tally: Tally,
        measurement: Measurement,
        use: StepUse | None,
        workload: Workload | None,
        outage: Outage | None,
    ) -> None:
        self.tally: Tally = tally
        self.window_s: float = measurement.window_s
        self.done: int = measurement.done
        """Operations of the step that succeeded, of any kind."""
        self.gateway_cpu_s: float | None = None if use is None else use.gateway_cpu_s
        self.storage_cpu_s: float | None = None if use is None else use.storage_cpu_s
        self.from_disk: float | None = None if use is None else _from_disk(measurement, use)
        """Bytes read from disks for each byte that reads answered; None if not only reads did."""
        self.fault = ""
        """Why only the exact maximum is known, if histograms are unreadable."""
        self._latency: Histogram | None = None
        self._in_flight: Histogram | None = None
        self._first: Histogram | None = None
        self._awaiting: Histogram | None = None
        try:
            self._latency, self._in_flight, self._first, self._awaiting = (
                None if text is None else Histogram.decode(text)
                for text in (tally.latency, tally.in_flight, tally.first_byte, tally.awaiting)
            )
        except InvalidMeasurement as error:
            self.fault = str(error)
        self.outage: OutageFigures | None = None
        """What a fault did to it; None without one, and if no rate before it is known."""
        self.broken = workload is not None and workload.fault is not None
        """Whether something dies in its steps."""
        if workload is not None and workload.fault is not None:
            times = times_of(workload.fault, outage)
            self.outage = figures(measurement, tally.operation, times)
        self.offered: float | None = None
        """Requests of this operation that were due in the window; None without `overload`."""
        self.not_sent: float | None = None
        """Those of them that were not sent; None as for `offered`, and if unknown."""
        self.good: int | None = None
        """Successes within the time of the workload's `overload`; None as for `offered`."""
        if workload is not None and workload.overload is not None and workload.rate_per_s:
            due, weights = workload.rate_per_s * self.window_s, workload.operations
            self.offered = due * weights.get(tally.operation, 0.0) / sum(weights.values())
            if measurement.begun is not None:
                self.not_sent = self.offered * (1 - min(1.0, measurement.begun / due))
            self.good = self._good(workload.overload.within)

    def latency(self, percent: float) -> MetricFigure | None:
        """A percentile in ms (100: maximum), with its interval by order statistics; None of too few
        samples. Never above the exact maximum.
        """
        tally = self.tally
        in_flight_us = None if self.fault else tally.in_flight_max_us
        count = tally.count if tally.bins is None else tally.bins.count
        if percent < 100 and not enough_samples(count, percent):
            return None
        if tally.bins is not None and (percent < 100 or tally.max_us is None):
            return MetricFigure(within=percentile(tally.bins, percent))
        ages_us = [us for us in (tally.max_us, in_flight_us) if us is not None]
        if not ages_us:
            return None
        longest_us = max(ages_us)
        if percent == 100:
            return MetricFigure(value=longest_us / 1000, at_least=longest_us != tally.max_us)
        value = None if self._latency is None else bounded(self._latency, self._in_flight, percent)
        if self._latency is None or value is None:
            return None
        low, high = order_statistic_interval(self._latency, percent, in_flight=self._in_flight)
        value_ms = min(value[0], longest_us / 1000)
        return MetricFigure(value=value_ms, at_least=value[1] is None, low=low, high=high)

    def first_byte(self, percent: float) -> MetricFigure | None:
        """A percentile of the time to first byte in ms, and whether it is a lower bound; None if
        uncertain.

        Where it is not known whether requests not seen to end had theirs: if none had, it is that
        of `bounded`. If that has no upper end, or exceeds MOVED times that of requests that ended,
        only a lower bound is certain: the percentile if all had had theirs at once.
        """
        first, in_flight = self._first, self._in_flight
        if first is None or not enough_samples(first.count, percent):
            return None
        if self._awaiting is not None and (exact := bounded(first, self._awaiting, percent)):
            return MetricFigure(value=exact[0], at_least=exact[1] is None)
        seen_ms = first.percentile_us(percent) / 1000
        most = bounded(first, in_flight, percent)
        certain = most is None or (most[1] is not None and most[1] <= MOVED * seen_ms)
        if in_flight is None or certain:
            return MetricFigure(value=seen_ms)
        rank = rank_of(first.count + in_flight.count, percent) - in_flight.count
        if rank <= 0:
            return None
        return MetricFigure(value=first.at_rank_us(rank) / 1000, at_least=True)

    def _good(self, within_s: float | None) -> int | None:
        """Successes within a time; None if the histogram does not say."""
        if within_s is None or not self.tally.count:
            return self.tally.count
        if self._latency is None:
            return None
        return sum(count for top_us, count in self._latency.buckets() if top_us <= within_s * 1e6)


def _from_disk(measurement: Measurement, use: StepUse) -> float | None:
    """Bytes read from disks for each byte answered; None if not only reads made disks read."""
    if not all(TRAITS[tally.operation].answers_bodies for tally in measurement.tallies):
        return None
    answered = sum(tally.bytes for tally in measurement.tallies)
    read = use.disk_read_bytes
    return read / answered if answered and read is not None else None
