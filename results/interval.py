"""Intervals: what is known of a latency counted in bins, such as COSBench's of 10 ms: `(10, 20]`.

The median over repeats lies between the median of the lower and the median of the upper edges,
since a median never falls when one of its values rises. The same holds for a maximum. Drivers round
differently, so a latency on an edge may be counted on either side of it: intervals that touch are
not told apart, just like those that overlap.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from statistics import median

from pydantic import NonNegativeFloat, model_validator

from weighbridge.common.errors import InvalidMeasurement
from weighbridge.common.record import Record
from weighbridge.results.figures import show_ms
from weighbridge.results.record import Bins, rank_of


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


def middle(found: Sequence[Interval]) -> Interval:
    """The interval of the median of latencies in these bins. Raises StatisticsError if empty."""
    return _of_edges(median, found)


def highest(found: Sequence[Interval]) -> Interval:
    """The interval of the maximum of latencies in these bins. Raises ValueError if empty."""
    return _of_edges(max, found)


def _of_edges(pick: Callable[[Iterable[float]], float], found: Sequence[Interval]) -> Interval:
    high_ms = pick(one.top_ms for one in found)
    low_ms = pick(one.low_ms for one in found)
    return Interval(low_ms=low_ms, high_ms=None if math.isinf(high_ms) else high_ms)


def show_latency(value_ms: float | None, within: Interval | None) -> str:
    """A latency as far as known: its figure, its interval, or UNKNOWN."""
    return show_ms(value_ms) if within is None else str(within)


def _plain(value: float) -> str:
    """Without thousands separators: the comma of an interval separates its ends."""
    return f"{value:.3f}".rstrip("0").rstrip(".")
