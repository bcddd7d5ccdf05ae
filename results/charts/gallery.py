"""Every chart of a run, in the order in which a report or a talk shows them.

Charts are found by name: see `CHARTS`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

from weighbridge.common.errors import UsageError
from weighbridge.common.record import Record
from weighbridge.common.registry import Registry
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.charts.by_workers import latency_by_workers, throughput_by_workers
from weighbridge.results.charts.change_map import change_charts, study_chart
from weighbridge.results.charts.chart_source import ChartSource, source_of
from weighbridge.results.charts.composer import compose
from weighbridge.results.charts.distributions import percentile_chart
from weighbridge.results.charts.drift_chart import drift_chart
from weighbridge.results.charts.grouped_bars import grouped_bars
from weighbridge.results.charts.heat_map import latency_over_time
from weighbridge.results.charts.hockey_stick import hockey_stick
from weighbridge.results.charts.panels import Figure
from weighbridge.results.charts.resource_strips import resources_by_workers
from weighbridge.results.charts.share_chart import share_chart
from weighbridge.results.charts.staircase_chart import staircase_chart
from weighbridge.results.charts.tornado import tornado_charts


class ChartKind(Record):
    """A chart that may be drawn: `draw` gives its figures, none where a run has nothing to show."""

    draw: Callable[[ChartSource], tuple[Figure, ...]]
    runs: tuple[Literal["comparison", "tuning"], ...] = ("comparison",)
    """Of which runs it is drawn."""


OWN: Final = {
    "throughput-by-workers": ChartKind(draw=throughput_by_workers),
    "latency-by-workers": ChartKind(draw=latency_by_workers),
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
}
CHARTS: Final = Registry("weighbridge.charts", "chart", own=OWN, kind=ChartKind)
"""Every chart by name.

Another package adds one as an entry point of the group `weighbridge.charts` that names a
`ChartKind`.
"""


class Gallery(Record):
    """All figures of a run; `compose` draws them in one look or another."""

    figures: tuple[Figure, ...]
    left_out: tuple[str, ...] = ()
    """Charts of other packages that could not be made, and why, a sentence each."""

    def named(self, name: str) -> Figure | None:
        """The figure of that name; None where the run has nothing to show in it."""
        return next((figure for figure in self.figures if figure.name == name), None)

    def of(self, section: str) -> tuple[Figure, ...]:
        """The figures of a section of the report."""
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
            # What another package's chart may do is not known, and none of it costs a run its
            # report.
            if name in OWN:
                raise
            words = (
                " ".join(str(error).split())
                if isinstance(error, UsageError)
                else f"{type(error).__name__}: {error}"
            )
            left_out.append(f"the chart {name} is left out: {words}")
    return Gallery(figures=tuple(figures), left_out=tuple(left_out))


def _names(left_out: list[str]) -> tuple[str, ...]:
    """All charts; this package's alone where others cannot be told from them."""
    try:
        return tuple(CHARTS)
    except UsageError as error:
        left_out.append(f"charts of other packages are left out: {error}")
        return tuple(OWN)


def _checked(made: object, others: list[Figure], source: ChartSource) -> list[Figure]:
    """The figures that another package's chart gave.

    Raises ValueError where they are none, and what composing them raises.
    """
    found = [one for one in made if isinstance(one, Figure)] if isinstance(made, tuple) else []
    if not isinstance(made, tuple) or len(found) < len(made):
        raise ValueError(f"it gave {type(made).__name__} where a tuple of figures is wanted")
    taken = {figure.name for figure in others} & {figure.name for figure in found}
    if taken:
        raise ValueError(f"there is another chart {', '.join(sorted(taken))}")
    dressed = [
        one if one.layouts else one.model_copy(update={"layouts": source.layouts}) for one in found
    ]
    for figure in dressed:
        compose(figure)
    return dressed


def gallery_of(folder: Path, *, slo_ms: float | None = None) -> Gallery:
    """The figures of a run folder, finished or not.

    Raises UsageError when it is none, InvalidMeasurement when something of it cannot be read.
    """
    return gallery(source_of(RunData(folder), slo_ms=slo_ms))
