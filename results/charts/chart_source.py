from __future__ import annotations

from functools import cached_property

from weighbridge.common.record import Record
from weighbridge.results.analysis.comparison import Comparison
from weighbridge.results.analysis.durability import LayoutDurability
from weighbridge.results.analysis.find.answers import Found
from weighbridge.results.analysis.findings import Finding, findings_of
from weighbridge.results.analysis.layers.staircase import Staircase
from weighbridge.results.analysis.outages import Outages
from weighbridge.results.analysis.overload import OverloadKind
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.study.recap import Recap
from weighbridge.results.analysis.tuning.tuning_result import TuningResult
from weighbridge.results.charts.latencies import KindLatencies, read_latencies
from weighbridge.results.charts.panels import Figure
from weighbridge.results.record.resolved import PlannedLayout, ResolvedPlan
from weighbridge.results.record.step import StepResult


class ChartSource(Record):
    """The data of all charts. Of a tuning, `rows` and `plan` are of its baseline only."""

    plan: ResolvedPlan
    rows: tuple[Row, ...]
    steps: tuple[StepResult, ...] = ()
    comparison: Comparison | None = None
    """None where layouts are not compared."""
    stairs: tuple[Staircase, ...] = ()
    recaps: tuple[Recap, ...] = ()
    """The comparisons of a study that was replayed."""
    tuned: TuningResult | None = None
    found: Found | None = None
    overload: tuple[OverloadKind, ...] = ()
    outages: Outages = Outages()
    durability: tuple[LayoutDurability, ...] = ()
    slo_ms: float | None = None
    """The requested bound on p90; None: charts choose one that separates the layouts."""
    workers: int | None = None
    """The requested worker count for charts that show one; None: the largest mostly valid."""

    @property
    def layouts(self) -> tuple[PlannedLayout, ...]:
        return self.plan.layouts

    @property
    def by_workers(self) -> tuple[Row, ...]:
        """The rows for charts over worker counts: without those over an offered rate."""
        offered = {one.name for one in self.plan.suite.workloads if one.overload is not None}
        return tuple(row for row in self.rows if row.workload not in offered)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        return () if self.comparison is None else findings_of(self.comparison)

    @cached_property
    def kinds(self) -> tuple[KindLatencies, ...]:
        """The latencies of each kind of requests. Raises InvalidMeasurement if unreadable."""
        return read_latencies(self.plan, self.rows, self.steps, workers=self.workers)

    def measured(self, *figures: Figure | None) -> tuple[Figure, ...]:
        """The figures that are not None; titles begin with a warning where nothing is claimed."""
        effects = () if self.comparison is None else self.comparison.effects
        claims = not effects or any(
            one.claimed or one.verdict == "not significant" for one in effects
        )
        word = "Provisional" if any(one.ratio is not None for one in effects) else "Not comparable"
        return tuple(
            one.model_copy(
                update={
                    "layouts": self.layouts,
                    "finding": one.finding if claims else f"{word}: {one.finding}",
                }
            )
            for one in figures
            if one is not None
        )


def source_of(data: RunData, *, slo_ms: float | None = None) -> ChartSource:
    """What charts of a run folder are drawn from. Raises as reading a run does."""
    plan = data.plan
    if data.tuned is not None:
        baseline = data.tuned.table.baseline.name
        own = plan.model_copy(
            update={"layouts": tuple(one for one in plan.layouts if one.name == baseline)}
        )
        return ChartSource(
            plan=own,
            rows=tuple(row for row in data.rows if row.layout == baseline),
            tuned=data.tuned,
        )
    own = plan.model_copy(
        update={"layouts": tuple(one for one in plan.layouts if one.name not in plan.twins)}
    )
    return ChartSource(
        plan=own,
        rows=tuple(row for row in data.rows if row.layout not in plan.twins),
        steps=tuple(data.steps.values()),
        comparison=data.comparison,
        stairs=tuple(stair for stair in data.stairs or () if stair.layout not in plan.twins),
        recaps=() if data.study is None else data.study.recaps,
        found=data.found,
        overload=data.overload,
        outages=data.outages,
        durability=data.durability,
        slo_ms=slo_ms,
    )
