from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

from weighbridge.common.errors import UsageError
from weighbridge.common.record import Record
from weighbridge.common.registry import Registry
from weighbridge.results.analysis.power_mark import marks_of, power_words
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.charts.by_workers import (
    first_byte_by_workers,
    latency_by_workers,
    throughput_by_workers,
)
from weighbridge.results.charts.change_map import change_charts, study_chart
from weighbridge.results.charts.chart_source import ChartSource, source_of
from weighbridge.results.charts.composer import compose
from weighbridge.results.charts.durability_chart import durability_chart
from weighbridge.results.charts.grouped_bars import grouped_bars
from weighbridge.results.charts.latency.distributions import percentile_chart
from weighbridge.results.charts.latency.heat_map import latency_over_time
from weighbridge.results.charts.latency.hockey_stick import hockey_stick
from weighbridge.results.charts.latency.share_chart import share_chart
from weighbridge.results.charts.panels import Figure
from weighbridge.results.charts.rates.goodput import goodput_chart
from weighbridge.results.charts.rates.outage_chart import outage_charts
from weighbridge.results.charts.rates.rate_bars import rate_bars
from weighbridge.results.charts.resource_strips import resources_by_workers
from weighbridge.results.charts.staircase_chart import staircase_chart
from weighbridge.results.charts.tuning_charts import drift_chart, tornado_charts


class ChartKind(Record):
    """A kind of chart. `draw` returns its figures, none where a run has nothing to show."""

    draw: Callable[[ChartSource], tuple[Figure, ...]]
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
    "throughput-bars": ChartKind(draw=grouped_bars),
    "hockey-stick": ChartKind(draw=hockey_stick),
    "percentiles": ChartKind(draw=percentile_chart),
    "latency-shares": ChartKind(draw=share_chart),
    "latency-over-time": ChartKind(draw=latency_over_time),
    "resources-by-workers": ChartKind(draw=resources_by_workers, runs=("comparison", "tuning")),
    "efficiency-staircase": ChartKind(draw=staircase_chart),
    "recap": ChartKind(draw=study_chart),
    "power-cuts": ChartKind(draw=durability_chart),
}
CHARTS: Final = Registry("weighbridge.charts", "chart", own=OWN, kind=ChartKind)
"""Every chart by name; others come by entry points of the group `weighbridge.charts`, each a
`ChartKind`."""


_WITHOUT_WRITES: Final = ("resources", "durability")
"""Sections whose figures compare no figures of writes."""


class Gallery(Record):
    """All figures of a run; `compose` draws them in a look."""

    figures: tuple[Figure, ...]
    left_out: tuple[str, ...] = ()
    """Charts of other packages that failed, a sentence each with the reason."""

    def named(self, name: str) -> Figure | None:
        """The figure with a name; None where the run has nothing to show in it."""
        return next((figure for figure in self.figures if figure.name == name), None)

    def of(self, section: str) -> tuple[Figure, ...]:
        return tuple(figure for figure in self.figures if figure.section == section)


def gallery(source: ChartSource) -> Gallery:
    """The figures of a run. Raises InvalidMeasurement on a histogram that cannot be read."""
    run = "comparison" if source.tuned is None else "tuning"
    figures: list[Figure] = []
    left_out: list[str] = []
    for name in _names(left_out):
        try:
            kind = OWN[name] if name in OWN else CHARTS[name]
            made = kind.draw(source) if run in kind.runs else ()
            figures += made if name in OWN else _checked(made, figures, source)
        except Exception as error:
            # Another package's chart may fail in any way: the report is made without it.
            if name in OWN:
                raise
            known = isinstance(error, UsageError)
            words = " ".join(str(error).split()) if known else f"{type(error).__name__}: {error}"
            left_out.append(f"the chart {name} is left out: {words}")
    marked = tuple(_with_power(one, source) for one in figures)
    return Gallery(figures=marked, left_out=tuple(left_out))


def _with_power(figure: Figure, source: ChartSource) -> Figure:
    """The figure; what power cuts did is in the caption of those that may compare writes."""
    shown = [row for row in source.rows if figure.workload in ("", row.workload)]
    marks = power_words(marks_of([row.power for row in shown]))
    if not marks or figure.section in _WITHOUT_WRITES:
        return figure
    caption = f"{figure.caption} Writes, {marks}."
    return figure.model_copy(update={"caption": caption})


def _names(left_out: list[str]) -> tuple[str, ...]:
    """The names of all charts; only this package's where others cannot be listed."""
    try:
        return tuple(CHARTS)
    except UsageError as error:
        left_out.append(f"charts of other packages are left out: {error}")
        return tuple(OWN)


def _checked(made: object, others: list[Figure], source: ChartSource) -> list[Figure]:
    """The figures of another package's chart. Raises ValueError where they are none."""
    if not isinstance(made, tuple) or not all(isinstance(one, Figure) for one in made):
        raise ValueError(f"it returned {type(made).__name__}, not a tuple of figures")
    taken = {figure.name for figure in others} & {figure.name for figure in made}
    if taken:
        raise ValueError(f"another chart has the name {', '.join(sorted(taken))}")
    figures = [
        one if one.layouts else one.model_copy(update={"layouts": source.layouts}) for one in made
    ]
    for figure in figures:
        compose(figure)
    return figures


def gallery_of(folder: Path, *, slo_ms: float | None = None) -> Gallery:
    """The figures of a run folder. Raises UsageError or InvalidMeasurement as reading it does."""
    return gallery(source_of(RunData(folder), slo_ms=slo_ms))
