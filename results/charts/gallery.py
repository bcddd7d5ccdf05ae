"""Every picture of a run, in the order in which a report or a talk shows them; a twin of a layout is in none of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from altair.utils.schemapi import debug_mode

from weighbridge.common.record import Record
from weighbridge.results.analysis.comparison import Comparison
from weighbridge.results.analysis.findings import findings_of
from weighbridge.results.analysis.layers.staircase import Staircase
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.study.recap import Recap
from weighbridge.results.analysis.tuning.tuning_result import TuningResult
from weighbridge.results.charts.ceiling_lines import ceiling_lines
from weighbridge.results.charts.chart_theme import LIGHT, Look, styles
from weighbridge.results.charts.charts import Chart, charts
from weighbridge.results.charts.drift_chart import drift_chart
from weighbridge.results.charts.ecdf_chart import ecdf_chart
from weighbridge.results.charts.figure import Figure
from weighbridge.results.charts.grouped_bars import grouped_bars
from weighbridge.results.charts.heat_map import heat_maps
from weighbridge.results.charts.hockey_stick import hockey_stick
from weighbridge.results.charts.latencies import read_latencies
from weighbridge.results.charts.percentile_chart import percentile_chart
from weighbridge.results.charts.pictures import Drawing
from weighbridge.results.charts.recap_chart import RecapChart, recap_chart
from weighbridge.results.charts.recap_map import recap_maps
from weighbridge.results.charts.resource_chart import ResourceChart, resource_chart
from weighbridge.results.charts.staircase_chart import StaircaseChart, staircase_chart
from weighbridge.results.charts.tornado import tornado, tornados, tuned
from weighbridge.results.record.resolved import ResolvedPlan
from weighbridge.results.record.step import StepResult


def distribution_figures(
    plan: ResolvedPlan,
    rows: Sequence[Row],
    steps: Iterable[StepResult],
    look: Look = LIGHT,
    *,
    slo_ms: float | None = None,
    workers: int | None = None,
) -> tuple[Figure, ...]:
    """The figures of a run, of `summarize`'s rows and the run's steps; those that have nothing to show are left out.

    `slo_ms` is the bound on p90 in the hockey stick, chosen from the data where it is None; `workers` the worker count of the other
    figures, the largest at which most layouts count where it is None.
    """
    kinds = read_latencies(plan, rows, steps, workers=workers)
    shown = styles(plan.layouts, look)
    own = [row for row in rows if row.layout not in plan.twins]
    # Altair checks each part of a spec against its schema as it is made, which takes most of the time; tests draw every figure.
    with debug_mode(arg=False):
        drawn = [
            hockey_stick(own, kinds, shown, look, slo_ms=slo_ms),
            percentile_chart(kinds, shown, look),
            ecdf_chart(kinds, shown, look),
            *heat_maps(kinds, look),
        ]
    return tuple(figure for figure in drawn if figure is not None)


class Gallery(Record):
    """All pictures of a run in one look."""

    charts: tuple[Chart, ...]
    """Throughput and latency by workers."""
    figures: tuple[Figure, ...]
    resources: ResourceChart
    stairs: StaircaseChart | None = None
    recap: RecapChart | None = None
    """Of a study that was replayed."""

    @property
    def drawings(self) -> tuple[Drawing, ...]:
        """Those that have something to show."""
        found: list[Drawing] = [*self.charts, *self.figures]
        found += [self.resources] if self.resources.recorded else []
        found += [self.stairs] if self.stairs is not None else []
        found += [self.recap] if self.recap is not None and self.recap.maps else []
        return tuple(found)


def gallery(
    plan: ResolvedPlan,
    rows: Sequence[Row],
    steps: Iterable[StepResult],
    comparison: Comparison,
    stairs: Sequence[Staircase] = (),
    recaps: Sequence[Recap] = (),
    look: Look = LIGHT,
    *,
    slo_ms: float | None = None,
) -> Gallery:
    """The pictures of a run's table, steps and comparison; `slo_ms` is the bound on p90 in the hockey stick.

    Raises InvalidMeasurement on a histogram that cannot be read.
    """
    own = [row for row in rows if row.layout not in plan.twins]
    layouts = [layout for layout in plan.layouts if layout.name not in plan.twins]
    ceilings = ceiling_lines(stair for stair in stairs if stair.layout not in plan.twins)
    bars = grouped_bars(own, styles(layouts, look), look)
    changed = tuned(comparison, layouts)
    tornados = [tornado(changed, look, metric) for metric in ("throughput", "p90")]
    return Gallery(
        charts=charts(own, findings_of(comparison), layouts, repeats=plan.suite.repeats, ceilings=ceilings, look=look),
        figures=(
            *recap_maps(comparison, look),
            *(one for one in tornados if one is not None),
            *(_hedged(one, comparison) for one in [bars] if one is not None),
            *(
                _hedged(one, comparison)
                for one in distribution_figures(
                    plan.model_copy(update={"layouts": tuple(layouts)}), own, steps, look, slo_ms=slo_ms
                )
            ),
        ),
        resources=resource_chart(own, layouts, look),
        stairs=staircase_chart([stair for stair in stairs if stair.layout not in plan.twins], layouts, look),
        recap=recap_chart(recaps, look) if recaps else None,
    )


def _hedged(figure: Figure, comparison: Comparison) -> Figure:
    """The figure; where nothing of a comparison is claimed its title says first that this is what was measured, and no more."""
    if not comparison.effects or any(one.claimed or one.verdict == "not shown" for one in comparison.effects):
        return figure
    known = any(one.ratio is not None for one in comparison.effects)
    return figure.model_copy(update={"finding": f"{'Provisional' if known else 'Not comparable'}: {figure.finding}"})


def tuning_gallery(result: TuningResult, plan: ResolvedPlan, rows: Sequence[Row], look: Look = LIGHT) -> Gallery:
    """The pictures of a tuning: what each setting does, how the baseline moved, and what the hosts used of the baseline."""
    drift = drift_chart(result, look)
    layouts = [layout for layout in plan.layouts if layout.name == result.ledger.baseline.name]
    own = [row for row in rows if row.layout == result.ledger.baseline.name]
    return Gallery(
        charts=(),
        figures=(*tornados(result, look), *([drift] if drift is not None else [])),
        resources=resource_chart(own, layouts, look),
    )


def gallery_of(folder: Path, look: Look = LIGHT, *, slo_ms: float | None = None) -> Gallery:
    """The pictures of a run folder, finished or not.

    Raises UsageError when it is none, InvalidMeasurement when something of it cannot be read.
    """
    data = RunData(folder)
    if data.tuned is not None:
        return tuning_gallery(data.tuned, data.plan, data.rows, look)
    recaps = () if data.study is None else data.study.recaps
    return gallery(data.plan, data.rows, data.steps.values(), data.comparison, data.stairs or (), recaps, look, slo_ms=slo_ms)
