"""All charts of a run: what they are drawn from, who draws which, and those of other packages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import UsageError
from weighbridge.common.registry import Registry
from weighbridge.results.figures.doubt import marks_of, power_words
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.show.chart import Chart
from weighbridge.results.show.chart_source import ChartKind, ChartSource, source_of
from weighbridge.results.show.feature import FEATURES, failure

CHARTS: Final = Registry("weighbridge.charts", "chart", kind=ChartKind)
"""Charts of other packages, by entry points of the group `weighbridge.charts`."""
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


def gallery(data: RunData, *, slo_ms: float | None = None) -> Gallery:
    """The charts of a run; `slo_ms` is the bound on p90 of those that have one.

    Raises UsageError and InvalidMeasurement as reading the run does.
    """
    source = source_of(data, slo_ms=slo_ms)
    own: dict[str, ChartKind] = {}
    for feature in FEATURES.values():
        own |= feature.charts
        if feature.ceilings is not None:
            source = replace(source, ceilings=feature.ceilings(data))
    charts = [chart for kind in own.values() for chart in kind.of(source)]
    left_out: list[str] = []
    try:
        names = list(CHARTS)
    except UsageError as error:
        left_out.append(f"charts of other packages are left out: {error}")
        names = []
    for name in names:
        if name in own:
            left_out.append(f"the chart {name} is left out: two packages have a chart {name!r}")
            continue
        try:
            charts += _checked(CHARTS[name].of(source), charts, source)
        except Exception as error:  # noqa: BLE001 - another package's chart may fail in any way
            left_out.append(f"the chart {name} is left out: {failure(error)}")
    return Gallery(tuple(_with_power(chart, source) for chart in charts), tuple(left_out))


def _with_power(chart: Chart, source: ChartSource) -> Chart:
    """The chart; what power cuts did is in the caption of those that may compare writes."""
    rows = [row for row in source.rows if chart.workload in ("", row.workload)]
    marks = power_words(marks_of([row.power for row in rows]))
    if not marks or chart.section in _WITHOUT_WRITES:
        return chart
    return replace(chart, caption=f"{chart.caption} Writes, {marks}.")


def _checked(drawn: object, others: Sequence[Chart], source: ChartSource) -> list[Chart]:
    """The charts of another package. Raises ValueError where they are none."""
    if not isinstance(drawn, tuple) or not all(isinstance(chart, Chart) for chart in drawn):
        raise ValueError(f"it returned {type(drawn).__name__}, not a tuple of charts")
    taken = {chart.key for chart in others} & {chart.key for chart in drawn}
    if taken:
        raise ValueError(f"another chart has the key {', '.join(sorted(taken))}")
    charts = [chart if chart.layouts else replace(chart, layouts=source.layouts) for chart in drawn]
    for chart in charts:
        # What cannot be composed, or has no rows as data, fails here and not in the report.
        _ = chart.csv, list(chart.pictures())
    return charts
