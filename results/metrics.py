"""Metrics: the figures of a step, each declared once. Tables, exports, sentences and tunings use
these records.

A metric says how it is read from a measured operation and how repeats are merged into a row. One
with a `better` direction is compared: it has a 95 % interval over the repeats and verdicts, and can
be a tuning's objective; the others are only shown. Other packages add metrics by entry points of
the group `weighbridge.metrics`, named by the metric's key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field

from weighbridge.common.record import Record
from weighbridge.common.registry import Registry
from weighbridge.results.interval import Interval
from weighbridge.results.metric import Metric, OperationReader
from weighbridge.results.metric_figure import (
    NOTHING,
    MetricFigure,
    average,
    largest,
    mean_of_all,
    total,
)
from weighbridge.results.outage_metrics import OUTAGE_METRICS
from weighbridge.results.overload_metrics import GOODPUT, SHARES, WITH_INTERVAL
from weighbridge.suites import TRAITS

__all__ = [
    "METRICS",
    "WITH_BODIES",
    "Figures",
    "Metric",
    "MetricKey",
    "OperationReader",
    "by_column",
    "compared",
]

WITH_BODIES: Final = tuple(name for name, one in TRAITS.items() if one.moves_bodies)


_OWN_MEAN: Final = "Geometric mean over the repeats."

_OF_PERCENTILES: Final = (
    "Geometric mean of the repeats’ percentiles; for p90 and p99 ± half of its 95 % interval. "
    "For one repeat with few samples beyond it: its order-statistic interval in square brackets. "
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
    """The metric of a latency percentile."""
    name = f"p{percent:g}"
    return Metric(
        key=name,
        name=name,
        title=name,
        unit="ms",
        suffix="ms",
        group="latency",
        about=f"{percent:g} % of the successful operations took at most this long.",
        over_repeats=_OF_PERCENTILES,
        read=lambda one: one.latency(percent),
        percent=percent,
        binned=True,
        **more,
    )


def _first_byte(percent: float, key: str, title: str, **more: Any) -> Metric:
    """The metric of a percentile of the time to first byte."""
    return Metric(
        key=key,
        name=f"p{percent:g} of time to first byte",
        title=title,
        unit="ms",
        suffix="ms",
        group="latency",
        about=f"{percent:g} % of the successful reads and listings got their first byte within "
        "this time.",
        over_repeats=_OWN_MEAN,
        read=lambda one: one.first_byte(percent),
        percent=percent,
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
        about="Operations that succeeded inside the window, divided by its length.",
        over_repeats=WITH_INTERVAL,
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
        about="Bytes of complete bodies inside the window, in 10⁶ bytes per second.",
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
        about="The slowest successful operation in any repeat, or the bin that it lies in.",
        over_repeats="It grows with the number of samples. ≥: requests that were not seen to end "
        "took at least this long.",
        read=lambda one: one.latency(100),
        merge=largest,
        better="less",
        percent=100,
        binned=True,
        bound="max_ratio",
        paper=True,
        terminal="max ms",
    ),
    _first_byte(50, "first-byte-p50", "First byte p50"),
    _first_byte(90, "first-byte", "First byte", better="less", bound="first_byte_ratio"),
    _first_byte(99, "first-byte-p99", "First byte p99"),
    Metric(
        key="mean",
        name="mean",
        title="Mean",
        unit="ms",
        suffix="ms",
        group="latency",
        about="Sum of all latencies divided by their number.",
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
        is_integer=True,
    ),
    Metric(
        key="errors",
        name="errors",
        title="Errors",
        unit="",
        suffix="",
        group="count",
        about="Operations that failed, over all repeats, including those left out.",
        over_repeats="No other figure includes them.",
        read=lambda one: one.tally.failed,
        merge=total,
        also_left_out=True,
        is_integer=True,
        paper=True,
        terminal="errors",
    ),
    Metric(
        key="gateway-cpu",
        name="gateway CPU per 1000 operations",
        title="Gateway CPU",
        unit="s/1000 op",
        suffix="s_per_1000_ops",
        group="cost",
        about="CPU seconds of all gateway hosts in the window per 1000 successful operations of "
        "any kind.",
        over_repeats="A step of several operations shares it over all of them. Geometric mean over "
        "the repeats; unknown if the hosts could not be sampled.",
        read=lambda one: _per_1000(one.gateway_cpu_s, one.done),
        terminal="gw\nCPU-s/1k",
    ),
    Metric(
        key="storage-cpu",
        name="storage CPU per 1000 operations",
        title="Storage CPU",
        unit="s/1000 op",
        suffix="s_per_1000_ops",
        group="cost",
        about="The same for all hosts that keep data.",
        over_repeats="If one host does both, neither is known.",
        read=lambda one: _per_1000(one.storage_cpu_s, one.done),
        terminal="st\nCPU-s/1k",
    ),
    Metric(
        key="from-disk",
        name="read from disk",
        title="Read from disk",
        unit="%",
        suffix="percent",
        group="cost",
        about="Bytes read from the stores’ disks in the window, in % of those that reads answered: "
        "what was not in a cache, and more where disks read ahead.",
        over_repeats="Only of steps that do nothing but read; of clusters that already run, what "
        "the observed hosts read; unknown if a disk could not be sampled. Mean over the repeats.",
        read=lambda one: None if one.from_disk is None else 100 * one.from_disk,
        merge=average,
        terminal="from\ndisk %",
    ),
    GOODPUT,
    *SHARES,
    *OUTAGE_METRICS,
)

METRICS: Final[Registry[Metric]] = Registry(
    "weighbridge.metrics", "metric", own={one.key: one for one in _OWN}, kind=Metric
)
"""Every metric by key in display order, including those of other packages."""


def compared() -> tuple[Metric, ...]:
    """The metrics whose differences are judged, in order."""
    return tuple(one for one in METRICS.values() if one.is_compared)


MetricKey = Annotated[str, AfterValidator(METRICS.known)]


class Figures(Record):
    """Figures by metric: of a repeat's point, or of a row over its repeats. Unknown ones are
    absent.
    """

    figures: Mapping[MetricKey, MetricFigure] = Field(default_factory=dict)

    def figure(self, metric: MetricKey) -> MetricFigure:
        """Everything known of a metric."""
        return self.figures.get(metric, NOTHING)

    def value(self, metric: MetricKey) -> float | None:
        """A metric's value in its unit; None if unknown, or known only as a bin."""
        return self.figure(metric).value

    def count(self, metric: MetricKey) -> int | None:
        """The value of an integer metric."""
        found = self.figure(metric).value
        return None if found is None else int(found)

    def within(self, metric: MetricKey) -> Interval | None:
        """The bin of a metric, if the driver counts in bins."""
        return self.figure(metric).within

    @property
    def lower_bounds(self) -> tuple[str, ...]:
        """Keys of the metrics whose figure is a lower bound."""
        return tuple(key for key, one in self.figures.items() if one.at_least)


def by_column(one: Figures, *, intervals: bool = True) -> dict[str, float | None]:
    """All figures by column: values, bin edges of binned metrics, and with `intervals` the 95 %
    intervals of compared ones.
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
