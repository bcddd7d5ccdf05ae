"""Metrics: the figures of a step, each declared once. Tables, exports, sentences and tunings use
these records.

A metric says how it is read from a measured operation and how repeats are merged into a row. One
with a `better` direction is compared: it has a 95 % interval over the repeats and verdicts, and can
be a tuning's objective; the others are only shown. Other packages add metrics by entry points of
the group `weighbridge.metrics`, named by the metric's key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field

from weighbridge.common.record import Record
from weighbridge.common.registry import Registry
from weighbridge.results.figures.reading import (
    NOTHING,
    OF_ANY,
    Interval,
    Merge,
    MetricFigure,
    Reading,
    average,
    geometric_mean,
    largest,
    mean_of_all,
    total,
)
from weighbridge.suites import TRAITS, Bounds, Workload

Read = Callable[[Reading], MetricFigure | float | None]
"""How a metric is read from one operation of a step; None if it is unknown."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One figure of a step. Its export columns are `<key>_<suffix>`, with `_` for `-` and `.`.
    Raises ValueError if its fields do not fit.
    """

    key: str
    name: str
    """Its name in sentences: `p90`."""
    title: str
    """Its name in table headers."""
    unit: str
    suffix: str
    """The unit in column names: `ops_s`."""
    group: Literal["rate", "latency", "count", "cost"]
    about: str
    """What it is, in one sentence."""
    over_repeats: str = ""
    """How a table cell combines several repeats, in sentences."""
    read: Read
    merge: Merge = geometric_mean
    also_left_out: bool = False
    """Whether repeats that are left out of all other figures count."""
    of_overload: bool = False
    """Whether only workloads with `overload` have it."""
    of_outage: bool = False
    """Whether only workloads with `fault` have it; of others these have only counts."""
    better: Literal["more", "less"] | None = None
    """None: only shown, not compared."""
    percent: float | None = None
    """Its percentile, 100 for a maximum; None: it is not a percentile."""
    binned: bool = False
    """Whether a driver may report it in bins."""
    bound: str | float = 1.10
    """The practical threshold as a ratio, or the key of a suite's `bounds` that sets it."""
    resolution: float = 0.0
    """In its unit: a figure may be too large by less than this. Such a metric has its own `bound`.
    """
    is_integer: bool = False
    page: bool = True
    paper: bool = False
    """Whether the report's table has it as a column, and tables for papers."""
    terminal: str = ""
    """Its column header in the terminal; empty: not shown there."""

    def __post_init__(self) -> None:
        named = re.fullmatch(r"[a-z][a-z0-9.-]*", self.key) and re.fullmatch("\\w*", self.suffix)
        if not named:
            raise ValueError(f"{self.key!r} and {self.suffix!r} make no name of a column")
        if isinstance(self.bound, str) and self.resolution:
            raise ValueError("a metric with a resolution needs a bound of its own, as a number")
        if isinstance(self.bound, float) and self.bound < 1:
            raise ValueError(f"{self.bound} is no bound of {self.key}: give a ratio of at least 1")

    @property
    def stem(self) -> str:
        """The key as used in column names."""
        return self.key.replace("-", "_").replace(".", "_")

    @property
    def column(self) -> str:
        """Its column name: `p90_ms`."""
        return self._column()

    @property
    def bin_columns(self) -> tuple[str, str]:
        """Column names of its bin's edges: `p90_low_ms`, `p90_high_ms`."""
        return self._column("low"), self._column("high")

    @property
    def spread_columns(self) -> tuple[str, str]:
        """Column names of its 95 % interval over repeats: `p90_over_repeats_low_ms`."""
        return self._column("over_repeats_low"), self._column("over_repeats_high")

    def is_of(self, workload: Workload) -> bool:
        """Whether steps of a workload have it."""
        if workload.fault is not None:
            return self.of_outage or self.key in OF_ANY
        return not self.of_outage and not (self.of_overload and workload.overload is None)

    def bound_of(self, bounds: Bounds) -> float:
        """The practical threshold as a ratio of at least 1."""
        return float(getattr(bounds, self.bound)) if isinstance(self.bound, str) else self.bound

    def better_at(self, ratio: float) -> bool:
        """Whether `ratio` times another is better. Raises ValueError if it is not compared."""
        if self.better is None:
            raise ValueError(f"{self.key} is not compared")
        return (ratio > 1) == (self.better == "more")

    def gain(self, ratio: float) -> float:
        """How many times better `ratio` times another is. Raises ValueError if not compared."""
        return ratio if self.better_at(2.0) else 1 / ratio

    def _column(self, *parts: str) -> str:
        return "_".join(part for part in (self.stem, *parts, self.suffix) if part)


PRIMARY: Final[tuple[MetricKey, ...]] = ("throughput", "p90")
"""Metrics that a run is made for: they are always compared or reported as not comparable, and their
tests are corrected by themselves. Others are compared if a side has them.
"""
WITH_BODIES: Final = tuple(name for name, traits in TRAITS.items() if traits.moves_bodies)
REFUSED: Final = ("http-503", "http-429", "http-498")
"""Classes of failures by which a server says that it has too much to do; radosgw answers 498 over
Swift's API (seen with 16.2).
"""
TIMED_OUT: Final = ("timeout",)
OUTSTANDING: Final = ("unfinished",)
"""Those outstanding when the window closed, which nobody saw end. About as many from before the
window are counted in it: to count both would make more than were due.
"""
WHOLE_SECOND: Final = 1.0
"""Times of an outage are of complete seconds: the first may begin so much after the fault."""
_SUFFIXES: Final = {"op/s": "ops_s", "MB/s": "mb_s", "%": "percent", "s/1000 op": "s_per_1000_ops"}
"""Units in column names, if not as they are."""
_INTERVAL: Final = "Geometric mean over the repeats, ± half of its 95 % interval."
_MEAN: Final = "Geometric mean over the repeats."
_AVERAGE: Final = "Mean over the repeats."
_OF_PERCENTILES: Final = (
    "Geometric mean of the repeats’ percentiles; for p90 and p99 ± half of its 95 % interval. "
    "For one repeat: its order-statistic interval in square brackets. "
    "(10, 20]: the driver counts in bins, and it lies in this one."
)


def _metric(
    key: str, unit: str, about: str, read: Read, *, name: str = "", title: str = "", **more: Any
) -> Metric:
    """A metric whose names and columns follow from its key and unit if not given."""
    name = name or key
    title = title or name[0].upper() + name[1:]
    suffix = _SUFFIXES.get(unit, unit)
    return Metric(
        key=key, name=name, title=title, unit=unit, suffix=suffix, about=about, read=read, **more
    )


def _percentile(percent: float, **more: Any) -> Metric:
    name = f"p{percent:g}"
    about = f"{percent:g} % of the successful operations took at most this long."
    return _metric(
        name,
        "ms",
        about,
        lambda reading: reading.latency(percent),
        title=name,
        group="latency",
        over_repeats=_OF_PERCENTILES,
        percent=percent,
        binned=True,
        **more,
    )


def _first_byte(percent: float, key: str, title: str, **more: Any) -> Metric:
    return _metric(
        key,
        "ms",
        f"{percent:g} % of the successful reads and listings got their first byte within this "
        "time.",
        lambda reading: reading.first_byte(percent),
        name=f"p{percent:g} of time to first byte",
        title=title,
        group="latency",
        over_repeats=_MEAN,
        percent=percent,
        **more,
    )


def _shares(declared: str, *counts: Callable[[Reading], float | None]) -> Iterator[Metric]:
    """What became of requests that are not good, in % of those that were due: of each its key and
    what it is, a line each, and how it is counted.
    """
    for (key, about), count in zip(_entries(declared), counts, strict=True):
        yield _metric(
            key,
            "%",
            f"{about} Of workloads with `overload`.",
            partial(_share_of_due, count),
            name=key.replace("-", " "),
            group="count",
            of_overload=True,
            over_repeats=_AVERAGE,
            merge=average,
            page=False,
        )


def _share_of_due(count: Callable[[Reading], float | None], reading: Reading) -> float | None:
    number = count(reading)
    return None if number is None or not reading.offered else 100 * number / reading.offered


def _entries(declared: str) -> Iterator[tuple[str, str]]:
    """What is declared, a line each, as a name and what it means; what is indented goes on."""
    for entry in re.sub(r"\n +", " ", declared).strip().splitlines():
        name, about = entry.split(" | ")
        yield name, about


def _failures(reading: Reading, classes: tuple[str, ...]) -> int:
    return sum(reading.tally.errors.get(name, 0) for name in classes)


def _of_outage(declared: str) -> Iterator[Metric]:
    """Figures of a fault, a line each: key, unit, name and what it is. They are shown and not
    compared, as they may be 0, or are coarse, if `_MORE_OF_OUTAGE` does not say it.
    """
    known: dict[str, Any] = {"group": "count", "merge": average, "over_repeats": _AVERAGE}
    for place, about in _entries(declared):
        key, unit, name = place.split(" ", 2)
        yield _metric(
            key,
            unit,
            f"{about} Of workloads with `fault`.",
            partial(_figure_of_outage, key),
            name=name,
            of_outage=True,
            page=False,
            **(known | _MORE_OF_OUTAGE.get(key, {})),
        )


def _figure_of_outage(key: str, reading: Reading) -> MetricFigure | None:
    return None if reading.outage is None else reading.outage.by_metric.get(key)


_TIME: Final[dict[str, Any]] = {
    "group": "latency",
    "merge": geometric_mean,
    "over_repeats": f"{_MEAN} ≥: not within the time observed.",
    "better": "less",
    "bound": 1.25,
}
"""Of a time after a fault, which is compared."""
_MORE_OF_OUTAGE: Final[Mapping[str, dict[str, Any]]] = {
    "stall": _TIME,
    "detect": {**_TIME, "resolution": WHOLE_SECOND},
    "recover": {**_TIME, "resolution": WHOLE_SECOND},
    "away-max": {"merge": largest, "over_repeats": "The largest."},
}


def _mean(reading: Reading) -> MetricFigure | None:
    sum_us, count = reading.tally.sum_us, reading.tally.count
    if sum_us is None:
        return None
    value = sum_us / 1000 / count if count else None
    return MetricFigure(value=value, parts=(sum_us / 1000, count))


def _bandwidth(reading: Reading) -> float | None:
    has_bodies = reading.tally.operation in WITH_BODIES
    return reading.tally.bytes / 1e6 / reading.window_s if has_bodies else None


def _per_1000(cpu_s: float | None, done: int) -> float | None:
    return cpu_s / done * 1000 if cpu_s is not None and done else None


SHARES: Final = tuple(
    _shares(
        """
refused | Requests answered with 503, 429 or 498, in % of those that were due.
late | Requests that succeeded too late to count, in % of those that were due.
timed-out | Requests without a complete answer within the suite’s timeout, in % of those due.
failed-otherwise | Requests that failed in another way, in % of those that were due; without those
    that were outstanding when the window closed.
not-sent | Requests that were due and waited in the client for a free connection when the window
    closed, in % of those that were due.
""",
        lambda reading: _failures(reading, REFUSED),
        lambda reading: None if reading.good is None else reading.tally.count - reading.good,
        lambda reading: _failures(reading, TIMED_OUT),
        lambda reading: (
            reading.tally.failed - _failures(reading, (*REFUSED, *TIMED_OUT, *OUTSTANDING))
        ),
        lambda reading: reading.not_sent,
    )
)
"""What became of requests that are not good, each in % of those that were due."""

_OWN: Final = (
    _metric(
        "throughput",
        "op/s",
        "Operations that succeeded inside the window, divided by its length.",
        lambda reading: reading.tally.count / reading.window_s,
        group="rate",
        over_repeats=_INTERVAL,
        better="more",
        bound="throughput_ratio",
        paper=True,
        terminal="op/s",
    ),
    _metric(
        "bandwidth",
        "MB/s",
        "Bytes of complete bodies inside the window, in 10⁶ bytes per second.",
        _bandwidth,
        group="rate",
        over_repeats=_MEAN,
        paper=True,
        terminal="MB/s",
    ),
    _percentile(50, paper=True, terminal="p50 ms"),
    _percentile(90, paper=True, terminal="p90 ms", better="less", bound="p90_ratio"),
    _percentile(99, paper=True, better="less", bound="p99_ratio"),
    _percentile(99.9, page=False),
    _metric(
        "max",
        "ms",
        "The slowest successful operation in any repeat, or the bin that it lies in.",
        lambda reading: reading.latency(100),
        group="latency",
        over_repeats="It grows with the number of samples. ≥: requests that were not seen to end "
        "took at least this long.",
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
    _metric(
        "mean",
        "ms",
        "Sum of all latencies divided by their number.",
        _mean,
        group="latency",
        merge=mean_of_all,
    ),
    _metric(
        "samples",
        "",
        "Operations that succeeded, over all repeats.",
        lambda reading: reading.tally.count,
        group="count",
        merge=total,
        is_integer=True,
    ),
    _metric(
        "errors",
        "",
        "Operations that failed, over all repeats, including those left out.",
        lambda reading: reading.tally.failed,
        group="count",
        over_repeats="No other figure includes them.",
        merge=total,
        also_left_out=True,
        is_integer=True,
        paper=True,
        terminal="errors",
    ),
    _metric(
        "gateway-cpu",
        "s/1000 op",
        "CPU seconds of all gateway hosts in the window per 1000 successful operations of any "
        "kind.",
        lambda reading: _per_1000(reading.gateway_cpu_s, reading.done),
        name="gateway CPU per 1000 operations",
        title="Gateway CPU",
        group="cost",
        over_repeats="A step of several operations shares it over all of them. Geometric mean over "
        "the repeats; unknown if the hosts could not be sampled.",
        terminal="gw\nCPU-s/1k",
    ),
    _metric(
        "storage-cpu",
        "s/1000 op",
        "The same for all hosts that keep data.",
        lambda reading: _per_1000(reading.storage_cpu_s, reading.done),
        name="storage CPU per 1000 operations",
        title="Storage CPU",
        group="cost",
        over_repeats="If one host does both, neither is known.",
        terminal="st\nCPU-s/1k",
    ),
    _metric(
        "from-disk",
        "%",
        "Bytes read from the stores’ disks in the window, in % of those that reads answered: "
        "what was not in a cache, and more where disks read ahead.",
        lambda reading: None if reading.from_disk is None else 100 * reading.from_disk,
        name="read from disk",
        group="cost",
        over_repeats="Only of steps that do nothing but read; of clusters that already run, what "
        "the observed hosts read; unknown if a disk could not be sampled. Mean over the repeats.",
        merge=average,
        terminal="from\ndisk %",
    ),
    _metric(
        "goodput",
        "op/s",
        "Operations that succeeded inside the window, and within the time that the workload’s "
        "`overload` allows from their intended start, divided by the window’s length.",
        lambda reading: None if reading.good is None else reading.good / reading.window_s,
        group="rate",
        of_overload=True,
        over_repeats=_INTERVAL,
        better="more",
        bound="throughput_ratio",
        page=False,
    ),
    *SHARES,
    *_of_outage("""
stall s longest stall | The longest time in which a worker got no success, over all its tries.
detect s time to detect | From the fault to the first of five seconds without errors and with half
    of the rate before the fault, looked for until what died comes back.
recover s time to 90 % | From the fault to the first of five seconds with 90 % of the rate before
    the fault.
rate-before op/s rate before | Median of the seconds of the window before the fault.
unanswered s seconds without an answer | Complete seconds after the fault in which nothing
    succeeded.
missed s work missed | Work missed from the fault to the end of the window, in seconds at the rate
    before the fault.
away-p99 ms p99 while away | 99 % of what succeeded between the fault and the return took at most
    this long, from bands that are 19 to 25 % wide.
away-max ms max while away | The slowest success between the fault and the return.
lowest-back % lowest rate after the return | Mean of five seconds, in % of the rate before the
    fault.
"""),
)

METRICS: Final[Registry[Metric]] = Registry(
    "weighbridge.metrics", "metric", own={one.key: one for one in _OWN}, kind=Metric
)
"""Every metric by key in display order, including those of other packages."""


def compared() -> tuple[Metric, ...]:
    """The metrics whose differences are judged, in order."""
    return tuple(one for one in METRICS.values() if one.better)


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
        value = self.value(metric)
        return None if value is None else int(value)

    def within(self, metric: MetricKey) -> Interval | None:
        """The bin of a metric, if the driver counts in bins."""
        return self.figure(metric).within

    @property
    def lower_bounds(self) -> tuple[str, ...]:
        return tuple(key for key, one in self.figures.items() if one.at_least)


def by_column(one: Figures, *, intervals: bool = True) -> dict[str, float | None]:
    """All figures by column, with bin edges, and with `intervals` the 95 % intervals."""
    columns: dict[str, float | None] = {}
    for metric in METRICS.values():
        figure = one.figure(metric.key)
        columns[metric.column] = figure.value
        if metric.binned:
            edges = figure.within
            ends = (None, None) if edges is None else (edges.low_ms, edges.high_ms)
            columns |= zip(metric.bin_columns, ends, strict=True)
        if metric.better and intervals:
            columns |= zip(metric.spread_columns, (figure.low, figure.high), strict=True)
    return columns
