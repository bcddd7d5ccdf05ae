"""What is known of one metric, and how repeats are merged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from pydantic import NonNegativeFloat, NonNegativeInt, model_validator

from weighbridge.common.record import Record
from weighbridge.results import statistics
from weighbridge.results.interval import Interval, highest, middle


class MetricFigure(Record):
    """What is known of one metric of a repeat, or of a row, in the metric's unit."""

    value: NonNegativeInt | NonNegativeFloat | None = None
    within: Interval | None = None
    """The bin that it lies in, if the driver counts in bins; there is then no value."""
    low: NonNegativeFloat | None = None
    high: NonNegativeFloat | None = None
    """The 95 % interval: over repeats, or by order statistics for one repeat with few samples. Both
    None: unknown; only `high` None: the upper end is unknown.
    """
    at_least: bool = False
    """Whether it is a lower bound: requests in flight at the end, or given up, took at least as
    long.
    """
    parts: tuple[NonNegativeFloat, NonNegativeInt] | None = None
    """For a mean: the total and its count, so that the mean over repeats can be computed."""

    @model_validator(mode="before")
    @classmethod
    def _number(cls, given: Any) -> Any:
        """Accept a plain number as a value."""
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


def geometric_mean(found: Sequence[MetricFigure]) -> MetricFigure:
    """The geometric mean; 0 if a value is 0, NOTHING if one is unknown. For bins: that of the
    median.

    Without the unknown value it would describe a different set of repeats.
    """
    values = [one.value for one in found if one.value is not None]
    bins = [one.within for one in found if one.within is not None]
    if values and len(values) == len(found):
        return MetricFigure(value=statistics.geometric_mean(values) if min(values) > 0 else 0.0)
    return MetricFigure(within=middle(bins)) if bins and len(bins) == len(found) else NOTHING


def average(found: Sequence[MetricFigure]) -> MetricFigure:
    """The arithmetic mean, for shares that may be 0; NOTHING if a value is unknown."""
    values = [one.value for one in found if one.value is not None]
    known = values and len(values) == len(found)
    return MetricFigure(value=sum(values) / len(values)) if known else NOTHING


def largest(found: Sequence[MetricFigure]) -> MetricFigure:
    """The largest known value, or its bin."""
    values = [one.value for one in found if one.value is not None]
    bins = [one.within for one in found if one.within is not None]
    if values:
        return MetricFigure(value=max(values))
    return MetricFigure(within=highest(bins)) if bins else NOTHING


def total(found: Sequence[MetricFigure]) -> MetricFigure:
    """The sum; NOTHING if a value is unknown."""
    values = [one.value for one in found if one.value is not None]
    return MetricFigure(value=sum(values)) if values and len(values) == len(found) else NOTHING


def mean_of_all(found: Sequence[MetricFigure]) -> MetricFigure:
    """The sum of totals over the sum of counts (`parts`); NOTHING if one is unknown."""
    parts = [one.parts for one in found if one.parts is not None]
    count = sum(one[1] for one in parts)
    return (
        MetricFigure(value=sum(one[0] for one in parts) / count)
        if count and len(parts) == len(found)
        else NOTHING
    )
