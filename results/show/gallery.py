"""All charts of a run: what they are drawn from, who draws which, and those of other packages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import UsageError
from weighbridge.common.record import Record
from weighbridge.common.registry import Registry
from weighbridge.results.analysis.power_mark import marks_of, power_words
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.show.chart import Chart
from weighbridge.results.show.chart_source import ChartSource, source_of
from weighbridge.results.show.charts.bars import rate_bars, throughput_bars
from weighbridge.results.show.charts.by_workers import (
    first_byte_by_workers,
    latency_by_workers,
    throughput_by_workers,
)
from weighbridge.results.show.charts.change_map import change_charts, study_chart
from weighbridge.results.show.charts.distributions import percentile_chart, share_chart
from weighbridge.results.show.charts.durability import power_cut_charts
from weighbridge.results.show.charts.layers import staircase_chart
from weighbridge.results.show.charts.outages import outage_charts
from weighbridge.results.show.charts.over_time import latency_over_time
from weighbridge.results.show.charts.overload import goodput_chart
from weighbridge.results.show.charts.ratios import ratio_chart
from weighbridge.results.show.charts.resources import resources_by_workers
from weighbridge.results.show.charts.settings import drift_chart, tornado_charts
from weighbridge.results.show.charts.within_bound import hockey_stick


class ChartKind(Record):
    """A kind of chart. `draw` returns its charts, none where a run has nothing to show."""

    draw: Callable[[ChartSource], Sequence[Chart]]
    runs: tuple[Literal["comparison", "tuning"], ...] = ("comparison",)
    """The kinds of run that it is drawn for."""


OWN: Final = {
    "highest-rates": ChartKind(draw=rate_bars),
    "goodput-over-rate": ChartKind(draw=goodput_chart),
    "outages": ChartKind(draw=outage_charts),
    "throughput-by-workers": ChartKind(draw=throughput_by_workers),
    "latency-by-workers": ChartKind(draw=latency_by_workers),
    "first-byte-by-workers": ChartKind(draw=first_byte_by_workers),
    "recap-map": ChartKind(draw=change_charts),
    "tornado": ChartKind(draw=tornado_charts, runs=("comparison", "tuning")),
    "drift": ChartKind(draw=drift_chart, runs=("tuning",)),
    "ratios": ChartKind(draw=ratio_chart),
    "throughput-bars": ChartKind(draw=throughput_bars),
    "hockey-stick": ChartKind(draw=hockey_stick),
    "percentiles": ChartKind(draw=percentile_chart),
    "latency-shares": ChartKind(draw=share_chart),
    "latency-over-time": ChartKind(draw=latency_over_time),
    "resources-by-workers": ChartKind(draw=resources_by_workers, runs=("comparison", "tuning")),
    "efficiency-staircase": ChartKind(draw=staircase_chart),
    "recap": ChartKind(draw=study_chart),
    "power-cuts": ChartKind(draw=power_cut_charts),
}
CHARTS: Final = Registry("weighbridge.charts", "chart", own=OWN, kind=ChartKind)
"""Every chart by name; others come by entry points of the group `weighbridge.charts`, each a
`ChartKind`."""
_WITHOUT_WRITES: Final = ("resources", "durability")
"""Sections whose charts compare no figures of writes."""


@dataclass(frozen=True)
class Gallery:
    """All charts of a run."""

    charts: tuple[Chart, ...]
    left_out: tuple[str, ...] = ()
    """Charts of other packages that failed, a sentence each with the reason."""

    def named(self, key: str) -> Chart | None:
        """The chart with a key; None where the run has nothing to show in it."""
        return next((chart for chart in self.charts if chart.key == key), None)

    def choose(self, keys: Sequence[str]) -> tuple[Chart, ...]:
        """The charts with these keys, in that order. Raises UsageError."""
        known = {chart.key: chart for chart in self.charts}
        for key in keys:
            if key not in known:
                raise UsageError(
                    f"no chart {key!r} in this run{did_you_mean(key, list(known))}",
                    advice="--list names the charts and their findings.",
                )
        return tuple(known[key] for key in dict.fromkeys(keys))

    def of(self, section: str) -> tuple[Chart, ...]:
        return tuple(chart for chart in self.charts if chart.section == section)


def gallery(source: ChartSource) -> Gallery:
    """The charts of a run. Raises InvalidMeasurement on a histogram that cannot be read."""
    run = "comparison" if source.tuned is None else "tuning"
    charts: list[Chart] = []
    left_out: list[str] = []
    for name in _names(left_out):
        try:
            kind = OWN[name] if name in OWN else CHARTS[name]
            drawn = kind.draw(source) if run in kind.runs else ()
            charts += drawn if name in OWN else _checked(drawn, charts, source)
        except Exception as error:
            # Another package's chart may fail in any way: the report is made without it.
            if name in OWN:
                raise
            own_words = isinstance(error, UsageError)
            words = (
                " ".join(str(error).split()) if own_words else f"{type(error).__name__}: {error}"
            )
            left_out.append(f"the chart {name} is left out: {words}")
    return Gallery(
        charts=tuple(_with_power(chart, source) for chart in charts), left_out=tuple(left_out)
    )


def _with_power(chart: Chart, source: ChartSource) -> Chart:
    """The chart; what power cuts did is in the caption of those that may compare writes."""
    shown = [row for row in source.rows if chart.workload in ("", row.workload)]
    marks = power_words(marks_of([row.power for row in shown]))
    if not marks or chart.section in _WITHOUT_WRITES:
        return chart
    return replace(chart, caption=f"{chart.caption} Writes, {marks}.")


def _names(left_out: list[str]) -> tuple[str, ...]:
    """The names of all charts; only this package's where others cannot be listed."""
    try:
        return tuple(CHARTS)
    except UsageError as error:
        left_out.append(f"charts of other packages are left out: {error}")
        return tuple(OWN)


def _checked(drawn: object, others: Sequence[Chart], source: ChartSource) -> list[Chart]:
    """The charts of another package. Raises ValueError where they are none."""
    if not isinstance(drawn, tuple) or not all(isinstance(one, Chart) for one in drawn):
        raise ValueError(f"it returned {type(drawn).__name__}, not a tuple of charts")
    taken = {chart.key for chart in others} & {chart.key for chart in drawn}
    if taken:
        raise ValueError(f"another chart has the key {', '.join(sorted(taken))}")
    charts = [chart if chart.layouts else replace(chart, layouts=source.layouts) for chart in drawn]
    for chart in charts:
        # What cannot be composed, or has no rows as data, fails here and not in the report.
        _ = chart.csv, list(chart.pictures())
    return charts


def gallery_of(folder: Path, *, slo_ms: float | None = None) -> Gallery:
    """The charts of a run folder. Raises UsageError or InvalidMeasurement as reading it does."""
    return gallery(source_of(RunData(folder), slo_ms=slo_ms))
