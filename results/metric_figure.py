"""What is known of one metric, and how the figures of repeats become one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from pydantic import NonNegativeFloat, NonNegativeInt, model_validator

from weighbridge.common.record import Record
from weighbridge.results import statistics
from weighbridge.results.interval import Interval, highest, middle


class MetricFigure(Record):
    """What is known of one metric: of a repeat, or of a row over its repeats.

    In the unit of the metric.
    """

    value: NonNegativeInt | NonNegativeFloat | None = None
    within: Interval | None = None
    """Where the driver counts latencies in bins: the one that it lies in. Then there is no value.
    """
    low: NonNegativeFloat | None = None
    high: NonNegativeFloat | None = None
    """The 95 % interval: over the repeats, or of one repeat with few samples that of order
    statistics. Both None: not known; high alone: nothing is known of its upper end."""
    at_least: bool = False
    """Whether it is a lower bound: requests in flight at the end, or given up, took as long or
    longer.
    """
    parts: tuple[NonNegativeFloat, NonNegativeInt] | None = None
    """Of a mean: the total and how many it is of, for the mean over repeats."""

    @model_validator(mode="before")
    @classmethod
    def _number(cls, given: Any) -> Any:
        """A number alone is a value."""
        return {"value": given} if isinstance(given, int | float) else given

    @model_validator(mode="after")
    def _consistent(self) -> MetricFigure:
        if self.value is not None and self.within is not None:
            raise ValueError("a figure that is known exactly lies in no bin")
        if self.high is not None and (self.low is None or self.low > self.high):
            raise ValueError(f"an interval from {self.low} to {self.high} holds nothing")
        return self

    @property
    def known(self) -> bool:
        """Whether it says anything."""
        return self != NOTHING


NOTHING: Final = MetricFigure()


Merge = Callable[[Sequence[MetricFigure]], MetricFigure]


def geometric_mean(found: Sequence[MetricFigure]) -> MetricFigure:
    """Of the repeats' figures: 0 where one is 0, nothing where one is unknown, for the others are
    another set of repeats.

    Of bins the one that holds their median.
    """
    values = [one.value for one in found if one.value is not None]
    bins = [one.within for one in found if one.within is not None]
    if values and len(values) == len(found):
        return MetricFigure(value=statistics.geometric_mean(values) if min(values) > 0 else 0.0)
    return MetricFigure(within=middle(bins)) if bins and len(bins) == len(found) else NOTHING


def largest(found: Sequence[MetricFigure]) -> MetricFigure:
    """The largest of those that are known, or the bin that it lies in."""
    values = [one.value for one in found if one.value is not None]
    bins = [one.within for one in found if one.within is not None]
    if values:
        return MetricFigure(value=max(values))
    return MetricFigure(within=highest(bins)) if bins else NOTHING


def total(found: Sequence[MetricFigure]) -> MetricFigure:
    """The sum; nothing where one is unknown."""
    values = [one.value for one in found if one.value is not None]
    return MetricFigure(value=sum(values)) if values and len(values) == len(found) else NOTHING


def mean_of_all(found: Sequence[MetricFigure]) -> MetricFigure:
    """All totals by what they are of (`parts`); nothing where one is unknown."""
    parts = [one.parts for one in found if one.parts is not None]
    count = sum(one[1] for one in parts)
    return (
        MetricFigure(value=sum(one[0] for one in parts) / count)
        if count and len(parts) == len(found)
        else NOTHING
    )
