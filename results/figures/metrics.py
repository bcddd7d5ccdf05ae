"""Metrics: the figures of a step, each declared once. Tables, exports, sentences and tunings use
these records.

A metric says how it is read from a measured operation and how repeats are merged into a row. One
with a `better` direction is compared: it has a 95 % interval over the repeats and verdicts, and can
be a tuning's objective; the others are only shown. Other packages add metrics by entry points of
the group `weighbridge.metrics`, named by the metric's key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field

from weighbridge.common.record import Record
from weighbridge.common.registry import Registry
from weighbridge.results.figures.metric import (
    NOTHING,
    Interval,
    Metric,
    MetricFigure,
    OperationReader,
    average,
    largest,
    mean_of_all,
    total,
)
from weighbridge.suites import TRAITS

__all__ = [
    "METRICS",
    "WITH_BODIES",
    "Figures",
    "Metric",
    "MetricKey",
    "by_column",
    "compared",
]


WITH_INTERVAL: Final = "Geometric mean over the repeats, ± half of its 95 % interval."
REFUSED: Final = ("http-503", "http-429", "http-498")
"""Classes of failures by which a server says that it has too much to do; radosgw answers 498 over
Swift's API (seen with 16.2).
"""
TIMED_OUT: Final = ("timeout",)
OUTSTANDING: Final = ("unfinished",)
"""Those outstanding when the window closed, which nobody saw end. About as many from before the
window are counted in it: to count both would make more than were due.
"""


def _of_offered(one: OperationReader, count: float | None) -> float | None:
    return None if count is None or not one.offered else 100 * count / one.offered


def _failures(one: OperationReader, classes: tuple[str, ...]) -> int:
    return sum(one.tally.errors.get(name, 0) for name in classes)


def _share_metric(
    key: str, name: str, about: str, read: Callable[[OperationReader], float | None]
) -> Metric:
    return Metric(
        key=key,
        name=name,
        title=name[0].upper() + name[1:],
        unit="%",
        suffix="percent",
        group="count",
        about=f"{about} Of workloads with `overload`.",
        of_overload=True,
        over_repeats="Mean over the repeats.",
        read=read,
        merge=average,
        page=False,
    )


GOODPUT: Final = Metric(
    key="goodput",
    name="goodput",
    title="Goodput",
    unit="op/s",
    suffix="ops_s",
    group="rate",
    about=(
        "Operations that succeeded inside the window, and within the time that the workload’s "
        "`overload` allows from their intended start, divided by the window’s length."
    ),
    of_overload=True,
    over_repeats=WITH_INTERVAL,
    read=lambda one: None if one.good is None else one.good / one.window_s,
    better="more",
    bound="throughput_ratio",
    page=False,
)
SHARES: Final = (
    _share_metric(
        "refused",
        "refused",
        "Requests answered with 503, 429 or 498, in % of those that were due.",
        lambda one: _of_offered(one, _failures(one, REFUSED)),
    ),
    _share_metric(
        "late",
        "late",
        "Requests that succeeded too late to count, in % of those that were due.",
        lambda one: _of_offered(one, None if one.good is None else one.tally.count - one.good),
    ),
    _share_metric(
        "timed-out",
        "timed out",
        "Requests without a complete answer within the suite’s timeout, in % of those due.",
        lambda one: _of_offered(one, _failures(one, TIMED_OUT)),
    ),
    _share_metric(
        "failed-otherwise",
        "failed otherwise",
        "Requests that failed in another way, in % of those that were due; without those that were "
        "outstanding when the window closed.",
        lambda one: _of_offered(
            one, one.tally.failed - _failures(one, (*REFUSED, *TIMED_OUT, *OUTSTANDING))
        ),
    ),
    _share_metric(
        "not-sent",
        "not sent",
        "Requests that were due and waited in the client for a free connection when the window "
        "closed, in % of those that were due.",
        lambda one: None if one.sent_share is None else 100 * (1 - one.sent_share),
    ),
)
"""What became of requests that are not good, each in % of those that were due."""


_OF: Final = "Of workloads with `fault`."
WHOLE_SECOND: Final = 1.0
"""They are read from complete seconds: the first after the fault begins up to this much later."""


def _until(reached_s: float | None, within_s: float) -> MetricFigure:
    if reached_s is None:
        return MetricFigure(value=within_s, at_least=True)
    return MetricFigure(value=reached_s)


def _detect(one: OperationReader) -> MetricFigure | None:
    found = one.outage
    return None if found is None else _until(found.detect_s, found.detect_within_s)


def _recover(one: OperationReader) -> MetricFigure | None:
    found = one.outage
    return None if found is None else _until(found.recover_s, found.recover_within_s)


def _shown(
    key: str,
    name: str,
    unit: str,
    about: str,
    read: Callable[[OperationReader], float | None],
    **more: Any,
) -> Metric:
    """A figure that is shown, and not compared: it may be 0, or is coarse."""
    return Metric(
        key=key,
        name=name,
        title=name[0].upper() + name[1:],
        unit=unit,
        suffix={"%": "percent", "op/s": "ops_s"}.get(unit, unit),
        group="count",
        about=f"{about} {_OF}",
        of_outage=True,
        read=read,
        page=False,
        **{"merge": average, "over_repeats": "Mean over the repeats.", **more},
    )


def _time(
    key: str,
    name: str,
    about: str,
    read: Callable[[OperationReader], MetricFigure | float | None],
    resolution: float = 0.0,
) -> Metric:
    return Metric(
        key=key,
        name=name,
        title=name[0].upper() + name[1:],
        unit="s",
        suffix="s",
        group="latency",
        about=f"{about} {_OF}",
        over_repeats="Geometric mean over the repeats. ≥: not within the time observed.",
        of_outage=True,
        read=read,
        better="less",
        bound=1.25,
        resolution=resolution,
        page=False,
    )


OUTAGE_METRICS: Final = (
    _time(
        "stall",
        "longest stall",
        "The longest time in which a worker got no success, over all its tries.",
        lambda one: None if one.outage is None or one.stall_us is None else one.stall_us / 1e6,
    ),
    _time(
        "detect",
        "time to detect",
        "From the fault to the first of five seconds without errors and with half of the rate "
        "before the fault, looked for until what died comes back.",
        _detect,
        resolution=WHOLE_SECOND,
    ),
    _time(
        "recover",
        "time to 90 %",
        "From the fault to the first of five seconds with 90 % of the rate before the fault.",
        _recover,
        resolution=WHOLE_SECOND,
    ),
    _shown(
        "rate-before",
        "rate before",
        "op/s",
        "Median of the seconds of the window before the fault.",
        lambda one: None if one.outage is None else one.outage.before_ops_s,
    ),
    _shown(
        "unanswered",
        "seconds without an answer",
        "s",
        "Complete seconds after the fault in which nothing succeeded.",
        lambda one: None if one.outage is None else float(one.outage.unanswered_s),
    ),
    _shown(
        "missed",
        "work missed",
        "s",
        "Work missed from the fault to the end of the window, in seconds at the rate before the "
        "fault.",
        lambda one: None if one.outage is None else one.outage.missed_s,
    ),
    _shown(
        "away-p99",
        "p99 while away",
        "ms",
        "99 % of what succeeded between the fault and the return took at most this long, from "
        "bands that are 19 to 25 % wide.",
        lambda one: None if one.outage is None else one.outage.away_p99_ms,
    ),
    _shown(
        "away-max",
        "max while away",
        "ms",
        "The slowest success between the fault and the return.",
        lambda one: None if one.outage is None else one.outage.away_max_ms,
        merge=largest,
        over_repeats="The largest.",
    ),
    _shown(
        "lowest-back",
        "lowest rate after the return",
        "%",
        "Mean of five seconds, in % of the rate before the fault.",
        lambda one: (
            None
            if one.outage is None or one.outage.lowest_back is None
            else 100 * one.outage.lowest_back
        ),
    ),
)
"""In the order of tables."""


WITH_BODIES: Final = tuple(name for name, one in TRAITS.items() if one.moves_bodies)


_OWN_MEAN: Final = "Geometric mean over the repeats."

_OF_PERCENTILES: Final = (
    "Geometric mean of the repeats’ percentiles; for p90 and p99 ± half of its 95 % interval. "
    "For one repeat: its order-statistic interval in square brackets. "
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
    """Figures by metric, of a repeat's point or of a row; unknown ones are absent."""

    figures: Mapping[MetricKey, MetricFigure] = Field(default_factory=dict)

    def figure(self, metric: MetricKey) -> MetricFigure:
        return self.figures.get(metric, NOTHING)

    def value(self, metric: MetricKey) -> float | None:
        """A metric's value in its unit; None if unknown, or known only as a bin."""
        return self.figure(metric).value

    def count(self, metric: MetricKey) -> int | None:
        found = self.figure(metric).value
        return None if found is None else int(found)

    def within(self, metric: MetricKey) -> Interval | None:
        """The bin of a metric, if the driver counts in bins."""
        return self.figure(metric).within

    @property
    def lower_bounds(self) -> tuple[str, ...]:
        return tuple(key for key, one in self.figures.items() if one.at_least)


def by_column(one: Figures, *, intervals: bool = True) -> dict[str, float | None]:
    """All figures by column, with bin edges, and with `intervals` the 95 % intervals."""
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
