"""Metrics: the figures of a step that are compared, each declared once. Tables, sentences and exports are made of these records."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Final, cast

from pydantic import AfterValidator, NonNegativeFloat

from weighbridge.common.record import Record
from weighbridge.suites import Bounds


class Metric(Record):
    """One figure of a step. Over repeats it is the geometric mean of the repeats' own, in tables as in sentences."""

    key: str
    name: str
    """What people read: `p90`."""
    unit: str
    rising_is_better: bool
    field: str
    """Of a `Point` and of a `Row`: where its figure is; None there where it is not known."""
    bins: str = ""
    """The same where a driver tells it in bins; empty where no driver does."""
    percent: float | None = None
    """The percentile that it is, 100 of a maximum; None: it is none."""
    bound: str
    """The key of a suite's `bounds` that says how far two must be apart for it to matter, as a ratio."""
    about: str

    def of(self, one: object) -> float | None:
        """The figure of a `Point` or a `Row`; None where it is not known."""
        return cast("float | None", getattr(one, self.field))

    def bound_of(self, bounds: Bounds) -> float:
        """How far two must be apart for it to matter, as a ratio above 1."""
        return float(getattr(bounds, self.bound))

    def better(self, ratio: float) -> bool:
        """Whether a figure that is so many times another's is the better one."""
        return (ratio > 1) == self.rising_is_better


_DECLARED: Final = (
    Metric(
        key="throughput",
        name="throughput",
        unit="op/s",
        rising_is_better=True,
        field="throughput_ops_s",
        bound="throughput_ratio",
        about="Operations that succeeded inside the window, by its length.",
    ),
    Metric(
        key="p90",
        name="p90",
        unit="ms",
        rising_is_better=False,
        field="p90_ms",
        bins="p90_in",
        percent=90,
        bound="p90_ratio",
        about="90 % of the operations that succeeded took at most so long.",
    ),
    Metric(
        key="p99",
        name="p99",
        unit="ms",
        rising_is_better=False,
        field="p99_ms",
        bins="p99_in",
        percent=99,
        bound="p99_ratio",
        about="99 % of the operations that succeeded took at most so long.",
    ),
    Metric(
        key="max",
        name="max",
        unit="ms",
        rising_is_better=False,
        field="max_ms",
        bins="max_in",
        percent=100,
        bound="max_ratio",
        about="The slowest operation of a repeat; what was still in flight at the end, or timed out, took at least so long.",
    ),
    Metric(
        key="first-byte",
        name="p90 of time to first byte",
        unit="ms",
        rising_is_better=False,
        field="first_byte_ms",
        percent=90,
        bound="first_byte_ratio",
        about="The first byte of 90 % of the reads that succeeded came within so long.",
    ),
)
METRICS: Final[Mapping[str, Metric]] = MappingProxyType({one.key: one for one in _DECLARED})
"""Every metric by its key, in the order in which they are shown."""


P50: Final = Metric(
    key="p50",
    name="p50",
    unit="ms",
    rising_is_better=False,
    field="p50_ms",
    bins="p50_in",
    percent=50,
    bound="p90_ratio",
    about="Half of the operations that succeeded took at most so long.",
)
"""Shown beside them, and not compared."""
SHOWN: Final[Mapping[str, Metric]] = MappingProxyType({P50.key: P50, **METRICS})
"""All of which there may be an interval, by key."""


def showable(key: str) -> str:
    """The key, where it is one of SHOWN. Raises ValueError where it is not."""
    return key if key == P50.key else known(key)


def known(key: str) -> str:
    """The key, where there is such a metric. Raises ValueError where there is none."""
    if key not in METRICS:
        raise ValueError(f"no metric {key!r}: there are {', '.join(METRICS)}")
    return key


MetricKey = Annotated[str, AfterValidator(known)]


ShownKey = Annotated[str, AfterValidator(showable)]


class Spread(Record):
    """The 95 % interval of one figure of a row, over its repeats; in the unit of the metric."""

    metric: ShownKey
    low: NonNegativeFloat
    high: NonNegativeFloat | None
    """None: nothing is known of its upper end."""
