"""The pictures of distributions and of time: hockey stick, percentiles, shares of requests by latency, latencies over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from altair.utils.schemapi import debug_mode

from weighbridge.results.chart_theme import LIGHT, Look, styles
from weighbridge.results.ecdf_chart import ecdf_chart
from weighbridge.results.figure import Figure
from weighbridge.results.heat_map import heat_maps
from weighbridge.results.hockey_stick import hockey_stick
from weighbridge.results.latencies import read_latencies
from weighbridge.results.percentile_chart import percentile_chart
from weighbridge.results.resolved import ResolvedPlan
from weighbridge.results.step import StepResult
from weighbridge.results.summary import Row


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
