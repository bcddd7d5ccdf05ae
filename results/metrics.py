"""Metrics: the figures of a step, each declared once. Tables, exports, sentences and tunings are
made of these records.

A metric says how it is read from a measured operation of a step and how the repeats' figures are
merged into a row's. One whose `better` is named is compared: it has a 95 % interval over the
repeats, verdicts, and can be the objective of a tuning; others are shown. Another package adds one
by an entry point of the group `weighbridge.metrics`, whose name is the metric's key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, Protocol

from pydantic import AfterValidator, Field

from weighbridge.common.record import Record
from weighbridge.common.registry import Registry
from weighbridge.results.interval import Interval
from weighbridge.results.metric_figure import (
    NOTHING,
    Merge,
    MetricFigure,
    geometric_mean,
    largest,
    mean_of_all,
    total,
)
from weighbridge.results.record.measurement import Tally
from weighbridge.suites import Bounds

WITH_BODIES: Final = ("read", "write")


class OperationReader(Protocol):
    """One operation of one measured step, as a metric reads it."""

    tally: Tally
    window_s: float
    done: int
    """Operations of the step that succeeded, whatever their kind."""
    gateway_cpu_s: float | None
    storage_cpu_s: float | None
    """CPU seconds of all hosts of the tier in the window; None where they are not known."""

    def latency(self, percent: float) -> MetricFigure | None:
        """A percentile of the latencies, in ms; 100 is the maximum.

        None where it is not known or of too few samples.
        """

    def first_byte(self, percent: float) -> MetricFigure | None:
        """A percentile of the time to first byte of reads, in ms; None where it is not known or of
        too few samples.
        """


class Metric(Record):
    """One figure of a step.

    Columns of exports are named `<key>_<suffix>`, with `-` and `.` of the key as `_`.
    """

    key: Annotated[str, Field(pattern=r"^[a-z][a-z0-9.-]*$")]
    name: str
    """What sentences call it: `p90`."""
    title: str
    """What heads of tables call it."""
    unit: str
    suffix: Annotated[str, Field(pattern=r"^[a-z0-9_]*$")]
    """The unit as it stands in names of columns: `ops_s`."""
    group: Literal["rate", "latency", "count", "cost"]
    about: str
    """What it is, in a sentence."""
    over_repeats: str = ""
    """What a cell of a table shows of several repeats, in sentences."""
    read: Callable[[OperationReader], MetricFigure | float | None]
    merge: Merge = geometric_mean
    also_left_out: bool = False
    """Whether repeats that are left out of all other figures count."""
    better: Literal["more", "less"] | None = None
    """None: it is shown, and not compared."""
    percent: Annotated[float, Field(gt=0, le=100)] | None = None
    """The percentile that it is, 100 of a maximum; None: it is none."""
    binned: bool = False
    """Whether a driver may tell it in bins."""
    bound: str | Annotated[float, Field(ge=1)] = 1.10
    """How far two must be apart for it to matter, as a ratio: the key of a suite's `bounds` that
    says so, or the ratio itself.
    """
    whole: bool = False
    """Whether it has no fractions."""
    digits: int = 3
    """Significant digits in tables for people."""
    page: bool = True
    paper: bool = False
    """Whether the report's table has a column of it, and tables for papers."""
    terminal: str = ""
    """The head of its column on a terminal; empty: there is none."""

    @property
    def stem(self) -> str:
        """The key as it stands in names of columns."""
        return self.key.replace("-", "_").replace(".", "_")

    @property
    def column(self) -> str:
        """The name of its column: `p90_ms`."""
        return self._column()

    @property
    def bin_columns(self) -> tuple[str, str]:
        """The names of the columns of both ends of the bin that it lies in:

        `p90_low_ms`, `p90_high_ms`.
        """
        return self._column("low"), self._column("high")

    @property
    def spread_columns(self) -> tuple[str, str]:
        """The same of the 95 % interval over repeats: `p90_over_repeats_low_ms`."""
        return self._column("over_repeats_low"), self._column("over_repeats_high")

    @property
    def is_compared(self) -> bool:
        """Whether it is, and not only shown."""
        return self.better is not None

    def bound_of(self, bounds: Bounds) -> float:
        """How far two must be apart for it to matter, as a ratio from 1 up."""
        return float(getattr(bounds, self.bound)) if isinstance(self.bound, str) else self.bound

    def better_at(self, ratio: float) -> bool:
        """Whether a figure that is so many times another's is the better one.

        Raises ValueError of one that is not compared.
        """
        if self.better is None:
            raise ValueError(f"{self.key} is not compared")
        return (ratio > 1) == (self.better == "more")

    def gain(self, ratio: float) -> float:
        """How many times better a figure is that is so many times another's.

        Raises ValueError of one that is not compared.
        """
        return ratio if self.better_at(2.0) else 1 / ratio

    def _column(self, *parts: str) -> str:
        return "_".join(part for part in (self.stem, *parts, self.suffix) if part)


_OWN_MEAN: Final = "Geometric mean of the repeats’ own."
_WITH_INTERVAL: Final = "Geometric mean of the repeats’ own, ± half of its 95 % interval."

_OF_PERCENTILES: Final = (
    "Geometric mean of the repeats’ own percentiles, of p90 and p99 ± half of its 95 % interval. "
    "Of one repeat with few samples beyond it: in square brackets what its order statistics allow. "
    "(10, 20]: the driver counts in bins, and it lies in this one."
)


def _per_1000(cpu_s: float | None, done: int) -> float | None:
    return cpu_s / done * 1000 if cpu_s is not None and done else None


def _mean(one: OperationReader) -> MetricFigure | None:
    sum_us, count = one.tally.sum_us, one.tally.count
    if sum_us is None:
        return None
    return MetricFigure(
        value=sum_us / 1000 / count if count else None, parts=(sum_us / 1000, count)
    )


def _bandwidth(one: OperationReader) -> float | None:
    return one.tally.bytes / 1e6 / one.window_s if one.tally.operation in WITH_BODIES else None


def _percentile(percent: float, **more: Any) -> Metric:
    """The metric of a percentile of latencies."""
    name = f"p{percent:g}"
    return Metric(
        key=name,
        name=name,
        title=name,
        unit="ms",
        suffix="ms",
        group="latency",
        about=f"{percent:g} % of the operations that succeeded took at most so long.",
        over_repeats=_OF_PERCENTILES,
        read=lambda one: one.latency(percent),
        percent=percent,
        binned=True,
        **more,
    )


_OWN: Final = (
    Metric(
        key="throughput",
        name="throughput",
        title="Throughput",
        unit="op/s",
        suffix="ops_s",
        group="rate",
        about="Operations that succeeded inside the window, by its length.",
        over_repeats=_WITH_INTERVAL,
        read=lambda one: one.tally.count / one.window_s,
        better="more",
        bound="throughput_ratio",
        paper=True,
        terminal="op/s",
    ),
    Metric(
        key="bandwidth",
        name="bandwidth",
        title="Bandwidth",
        unit="MB/s",
        suffix="mb_s",
        group="rate",
        about="Bytes of complete bodies inside the window, in 10⁶ bytes a second.",
        over_repeats=_OWN_MEAN,
        read=_bandwidth,
        paper=True,
        terminal="bandwidth",
    ),
    _percentile(50, paper=True, terminal="p50 ms"),
    _percentile(90, paper=True, terminal="p90 ms", better="less", bound="p90_ratio"),
    _percentile(99, paper=True, better="less", bound="p99_ratio"),
    _percentile(99.9, page=False),
    Metric(
        key="max",
        name="max",
        title="Max",
        unit="ms",
        suffix="ms",
        group="latency",
        about="The slowest operation that succeeded, in any repeat, or the bin that it lies in.",
        over_repeats="It grows with the samples. ≥: requests that were not seen to end took at "
        "least so long.",
        read=lambda one: one.latency(100),
        merge=largest,
        better="less",
        percent=100,
        binned=True,
        bound="max_ratio",
        paper=True,
        terminal="max ms",
    ),
    Metric(
        key="first-byte-p50",
        name="p50 of time to first byte",
        title="First byte p50",
        unit="ms",
        suffix="ms",
        group="latency",
        about="The first byte of half of the reads that succeeded came within so long.",
        over_repeats=_OWN_MEAN,
        read=lambda one: one.first_byte(50),
        percent=50,
        page=False,
    ),
    Metric(
        key="first-byte",
        name="p90 of time to first byte",
        title="First byte",
        unit="ms",
        suffix="ms",
        group="latency",
        about="The first byte of 90 % of the reads that succeeded came within so long.",
        over_repeats=_OWN_MEAN,
        read=lambda one: one.first_byte(90),
        better="less",
        percent=90,
        bound="first_byte_ratio",
    ),
    Metric(
        key="mean",
        name="mean",
        title="Mean",
        unit="ms",
        suffix="ms",
        group="latency",
        about="Total of all latencies by their number.",
        read=_mean,
        merge=mean_of_all,
    ),
    Metric(
        key="samples",
        name="samples",
        title="Samples",
        unit="",
        suffix="",
        group="count",
        about="Operations that succeeded, over all repeats.",
        read=lambda one: one.tally.count,
        merge=total,
        whole=True,
    ),
    Metric(
        key="errors",
        name="errors",
        title="Errors",
        unit="",
        suffix="",
        group="count",
        about="Operations that failed, over all repeats, also those left out.",
        over_repeats="They are in no other figure.",
        read=lambda one: one.tally.failed,
        merge=total,
        also_left_out=True,
        whole=True,
        paper=True,
        terminal="errors",
    ),
    Metric(
        key="gateway-cpu",
        name="CPU of the gateway for 1000 operations",
        title="Gateway CPU",
        unit="s/1000 op",
        suffix="s_per_1000_ops",
        group="cost",
        about="CPU seconds of all gateway hosts in the window for 1000 operations of any kind "
        "that succeeded.",
        over_repeats="A step of several operations shares it over all of them. Geometric mean of "
        "the repeats’ own; unknown where "
        "the hosts could not be sampled.",
        read=lambda one: _per_1000(one.gateway_cpu_s, one.done),
        terminal="gw\nCPU-s/1k",
    ),
    Metric(
        key="storage-cpu",
        name="CPU of the store for 1000 operations",
        title="Storage CPU",
        unit="s/1000 op",
        suffix="s_per_1000_ops",
        group="cost",
        about="The same of all hosts that keep data.",
        over_repeats="Where one host does both, neither is known.",
        read=lambda one: _per_1000(one.storage_cpu_s, one.done),
        terminal="st\nCPU-s/1k",
    ),
)

METRICS: Final[Registry[Metric]] = Registry(
    "weighbridge.metrics", "metric", own={one.key: one for one in _OWN}, kind=Metric
)
"""Every metric by its key, in the order in which they are shown; of other packages, too."""


def compared() -> tuple[Metric, ...]:
    """The metrics of which differences are judged, in order."""
    return tuple(one for one in METRICS.values() if one.is_compared)


MetricKey = Annotated[str, AfterValidator(METRICS.known)]


class Figures(Record):
    """What has figures by metric: a repeat's point, or a row over its repeats.

    A metric of which nothing is known has none.
    """

    figures: Mapping[MetricKey, MetricFigure] = Field(default_factory=dict)

    def figure(self, metric: MetricKey) -> MetricFigure:
        """All that is known of a metric."""
        return self.figures.get(metric, NOTHING)

    def value(self, metric: MetricKey) -> float | None:
        """A metric's value in its unit; None where it is not known, or known to lie in a bin."""
        return self.figure(metric).value

    def count(self, metric: MetricKey) -> int | None:
        """The value of a metric that is whole."""
        found = self.figure(metric).value
        return None if found is None else int(found)

    def within(self, metric: MetricKey) -> Interval | None:
        """The bin that a metric lies in, where the driver counts in bins."""
        return self.figure(metric).within

    @property
    def lower_bounds(self) -> tuple[str, ...]:
        """Keys of the metrics of which the figure is a lower bound."""
        return tuple(key for key, one in self.figures.items() if one.at_least)


def by_column(one: Figures, *, intervals: bool = True) -> dict[str, float | None]:
    """All figures by column: values, both ends of bins of metrics that may be told in them, and
    with `intervals` of the 95 % intervals of those that are compared.
    """
    found: dict[str, float | None] = {}
    for metric in METRICS.values():
        figure = one.figure(metric.key)
        found[metric.column] = figure.value
        if metric.binned:
            ends = (
                (None, None)
                if figure.within is None
                else (figure.within.low_ms, figure.within.high_ms)
            )
            found |= zip(metric.bin_columns, ends, strict=True)
        if metric.is_compared and intervals:
            found |= zip(metric.spread_columns, (figure.low, figure.high), strict=True)
    return found
