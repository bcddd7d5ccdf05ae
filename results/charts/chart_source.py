"""What charts are drawn from: a run as it was read and judged, without the twins of its layouts."""

from __future__ import annotations

from functools import cached_property

from weighbridge.common.record import Record
from weighbridge.results.analysis.comparison import Comparison
from weighbridge.results.analysis.findings import Finding, findings_of
from weighbridge.results.analysis.layers.staircase import Staircase
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.study.recap import Recap
from weighbridge.results.analysis.tuning.tuning_result import TuningResult
from weighbridge.results.charts.latencies import KindLatencies, read_latencies
from weighbridge.results.charts.panels import Figure
from weighbridge.results.record.resolved import PlannedLayout, ResolvedPlan
from weighbridge.results.record.step import StepResult


class ChartSource(Record):
    """All that a chart may show.

    Of a tuning, `rows` and `plan` have its baseline alone: `tuned` says what each setting did.
    """

    plan: ResolvedPlan
    rows: tuple[Row, ...]
    steps: tuple[StepResult, ...] = ()
    comparison: Comparison | None = None
    """None where layouts are not compared."""
    stairs: tuple[Staircase, ...] = ()
    """What each layer does of the one below."""
    recaps: tuple[Recap, ...] = ()
    """Of a study that was replayed."""
    tuned: TuningResult | None = None
    slo_ms: float | None = None
    """The bound on p90 that was asked for; None: charts choose one that tells layouts apart."""
    workers: int | None = None
    """The worker count that was asked for of charts that show one; None: the largest at which most
    layouts count.
    """

    @property
    def layouts(self) -> tuple[PlannedLayout, ...]:
        """The layouts, in order."""
        return self.plan.layouts

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What came of comparing the layouts; none where they are not compared."""
        return () if self.comparison is None else findings_of(self.comparison)

    @cached_property
    def kinds(self) -> tuple[KindLatencies, ...]:
        """The latencies of each kind of requests, decoded once.

        Raises InvalidMeasurement on one that cannot be read.
        """
        return read_latencies(self.plan, self.rows, self.steps, workers=self.workers)

    def measured(self, *figures: Figure | None) -> tuple[Figure, ...]:
        """Figures of what was measured, those that have something to show, in the layouts' colours.

        Where nothing of the comparison is claimed their titles say so first.
        """
        effects = () if self.comparison is None else self.comparison.effects
        claims = not effects or any(one.claimed or one.verdict == "not shown" for one in effects)
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
    """What the charts of a run folder are drawn from, finished or not.

    Raises UsageError when it is no run folder, InvalidMeasurement when something of it cannot be
    read.
    """
    plan = data.plan
    if data.tuned is not None:
        baseline = data.tuned.ledger.baseline.name
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
        slo_ms=slo_ms,
    )
