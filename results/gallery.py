"""Every picture of a run, in the order in which a report or a talk shows them; a twin of a layout is in none of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from weighbridge.common.record import Record
from weighbridge.results.ceiling_lines import ceiling_lines
from weighbridge.results.chart_theme import LIGHT, Look, styles
from weighbridge.results.charts import Chart, charts
from weighbridge.results.comparison import Comparison
from weighbridge.results.distributions import distribution_figures
from weighbridge.results.drift_chart import drift_chart
from weighbridge.results.figure import Figure
from weighbridge.results.findings import findings_of
from weighbridge.results.grouped_bars import grouped_bars
from weighbridge.results.pictures import Drawing
from weighbridge.results.recap_chart import RecapChart, recap_chart
from weighbridge.results.recap_map import recap_maps
from weighbridge.results.resolved import ResolvedPlan
from weighbridge.results.resource_chart import ResourceChart, resource_chart
from weighbridge.results.run_data import RunData
from weighbridge.results.staircase import Staircase
from weighbridge.results.staircase_chart import StaircaseChart, staircase_chart
from weighbridge.results.step import StepResult
from weighbridge.results.study_page import study_page
from weighbridge.results.summary import Row
from weighbridge.results.tornado import tornado, tornados, tuned
from weighbridge.results.tuning_result import TuningResult


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
    recap: RecapChart | None = None,
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
        recap=None if recap is None else recap_chart(recap.maps, look),
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
    stairs = data.stairs.stairs if data.stairs is not None else ()
    replayed = study_page(data.store, data.plan, (*data.rows, *data.layers))
    recap = replayed.chart if replayed is not None else None
    return gallery(data.plan, data.rows, data.steps.values(), data.comparison, stairs, recap, look, slo_ms=slo_ms)
