"""What is known of one figure of a step: a value, a bin or a bound; and how repeats are merged."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Any, Final

from pydantic import NonNegativeFloat, NonNegativeInt, model_validator

from weighbridge.common.errors import InvalidMeasurement
from weighbridge.common.record import Record
from weighbridge.results.figures import statistics
from weighbridge.results.numbers import show_ms
from weighbridge.results.run import Bins, rank_of


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


def middle(bins: Sequence[Interval]) -> Interval:
    """The interval of the median of latencies in these bins. Raises StatisticsError if empty."""
    return _of_edges(median, bins)


def highest(bins: Sequence[Interval]) -> Interval:
    """The interval of the maximum of latencies in these bins. Raises ValueError if empty."""
    return _of_edges(max, bins)


def _of_edges(pick: Callable[[Iterable[float]], float], bins: Sequence[Interval]) -> Interval:
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
    of_bins: Callable[[Sequence[Interval]], Interval] | None = None,
    *,
    of_some: bool = False,
) -> MetricFigure:
    """`of_some`: also of those that are known alone."""
    values = [figure.value for figure in figures if figure.value is not None]
    bins = [figure.within for figure in figures if figure.within is not None]
    if values and (of_some or len(values) == len(figures)):
        return MetricFigure(value=of_values(values))
    if of_bins is not None and bins and (of_some or len(bins) == len(figures)):
        return MetricFigure(within=of_bins(bins))
    return NOTHING


def geometric_mean(figures: Sequence[MetricFigure]) -> MetricFigure:
    """0 if a value is 0; for bins that of the median."""
    return _merged(
        figures,
        lambda values: statistics.geometric_mean(values) if min(values) > 0 else 0.0,
        middle,
    )


def average(figures: Sequence[MetricFigure]) -> MetricFigure:
    """The arithmetic mean, for shares that may be 0."""
    return _merged(figures, lambda values: sum(values) / len(values))


def largest(figures: Sequence[MetricFigure]) -> MetricFigure:
    """The largest known value, or its bin."""
    return _merged(figures, max, highest, of_some=True)


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


SPAN_S: Final = 5
"""Rates are means of so many seconds."""
SERVES: Final = 0.5
"""A rate of this share of the one before, without an error, shows that the fault was dealt with."""
BACK: Final = 0.9
"""A rate of this share of the one before is as before."""


class OutageFigures(Record):
    """Figures of a fault in seconds since it; at most 1 s: no complete second was below."""

    before_ops_s: NonNegativeFloat
    """The median of the complete seconds before the fault."""
    detect_s: NonNegativeFloat | None
    """Until the first of SPAN_S seconds without an error and with SERVES of the rate before, which
    end before it comes back; None: not within that time.
    """
    detect_within_s: NonNegativeFloat
    """How long that was looked for."""
    recover_s: NonNegativeFloat | None
    """Until the first of SPAN_S seconds with BACK of the rate before; None: not in the window."""
    recover_within_s: NonNegativeFloat
    stall_us: NonNegativeInt | None = None
    """The longest time that a worker got no success, in any operation; None if unknown."""
    unanswered_s: NonNegativeInt
    """Complete seconds after the fault in which nothing succeeded."""
    missed_s: NonNegativeFloat
    """What was not done from the fault to the end, in seconds of the rate before."""
    away_p99_ms: NonNegativeFloat | None
    away_max_ms: NonNegativeFloat | None
    """Of what succeeded between the fault and the return, or the end."""
    lowest_back: NonNegativeFloat | None
    """The lowest rate of SPAN_S seconds after the return, as a share of the one before."""
    errors: dict[str, NonNegativeInt]
    """From the fault on, by class; `unknown` where the driver does not say."""


OF_ANY: Final = ("samples", "errors")
"""Metrics that also workloads with `fault` have."""
