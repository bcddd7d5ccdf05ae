"""What the charts of a run are drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from weighbridge.common.record import Record
from weighbridge.results.analysis.comparison import Comparison, Effect
from weighbridge.results.analysis.durability import LayoutDurability
from weighbridge.results.analysis.find.answers import Found
from weighbridge.results.analysis.kinds import Kind, kind_of, subjects
from weighbridge.results.analysis.layers.staircase import Staircase
from weighbridge.results.analysis.leads import Lead, leads
from weighbridge.results.analysis.outages import Outages
from weighbridge.results.analysis.overload import OverloadKind
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.study.recap import Recap
from weighbridge.results.analysis.tuning.tuning_result import TuningResult
from weighbridge.results.analysis.words import caveats, store_names
from weighbridge.results.doubt import graves, touching
from weighbridge.results.metrics import MetricKey
from weighbridge.results.record.resolved import PlannedLayout, ResolvedPlan
from weighbridge.results.record.step import StepResult
from weighbridge.results.show.chart import COMPARABLE, NOT_COMPARABLE, PROVISIONAL, Chart
from weighbridge.results.show.latencies import KindLatencies, read_latencies


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
    """The requested worker count for charts that show one; None: the largest mostly ranked."""

    @property
    def layouts(self) -> tuple[PlannedLayout, ...]:
        return self.plan.layouts

    @property
    def by_workers(self) -> tuple[Row, ...]:
        """The rows for charts over worker counts: without those over an offered rate."""
        offered = {one.name for one in self.plan.suite.workloads if one.overload is not None}
        return tuple(row for row in self.rows if row.workload not in offered)

    @cached_property
    def effects(self) -> tuple[Effect, ...]:
        """Throughputs of all pairs of layouts."""
        found = self.comparison
        every = () if found is None else (*found.effects, *found.rivals)
        return tuple(effect for effect in every if effect.metric == "throughput")

    @cached_property
    def leads(self) -> tuple[Lead, ...]:
        """Who leads in each workload."""
        return () if self.comparison is None else leads(self.comparison)

    @property
    def caveat(self) -> str:
        """What keeps the answer from being a claim, to end a caption with; empty for claims."""
        words = caveats(self.leads)
        return f" {words}." if words else ""

    @cached_property
    def stores(self) -> dict[str, str]:
        """What the layouts of one store may be called by."""
        return store_names(self.plan)

    @cached_property
    def names(self) -> dict[Kind, str]:
        """What each kind of requests is called."""
        return subjects(self.rows)

    def cells(self, rows: Sequence[Row] | None = None) -> dict[Kind, list[Row]]:
        """The rows of each kind of requests, in the order of the table."""
        cells: dict[Kind, list[Row]] = {}
        for row in self.rows if rows is None else rows:
            cells.setdefault(kind_of(row), []).append(row)
        return cells

    def at_one_count(self) -> dict[Kind, list[Row]]:
        """The rows of each kind of requests at the requested worker count, else at the largest of
        those at which most layouts are ranked.
        """
        return {kind: _at_one_count(rows, self.workers) for kind, rows in self.cells().items()}

    @cached_property
    def latencies(self) -> tuple[KindLatencies, ...]:
        """The latencies of each kind of requests at one worker count, decoded once."""
        repeats = self.plan.suite.repeats
        return read_latencies(self.at_one_count(), self.names, self.steps, repeats)

    def standing(self, row: Row, metric: MetricKey) -> str:
        """Whether a figure is comparable, provisional, or not comparable."""
        if not row.valid or row.condemned or graves(touching(row.doubts, metric)):
            return NOT_COMPARABLE
        return PROVISIONAL if in_doubt(row, metric, self.effects) else COMPARABLE

    def measured(self, *charts: Chart) -> tuple[Chart, ...]:
        """The charts with the caveat in captions; titles say where nothing is comparable."""
        effects = () if self.comparison is None else self.comparison.effects
        lost = bool(effects) and all(effect.ratio is None for effect in effects)
        return tuple(
            replace(
                chart,
                layouts=self.layouts,
                finding=f"Not comparable: {lower(chart.finding)}" if lost else chart.finding,
                caveat=self.caveat,
            )
            for chart in charts
        )


def lower(sentence: str) -> str:
    """A sentence after a colon; names and abbreviations keep their first letter."""
    return sentence if sentence[1:2].isupper() else f"{sentence[:1].lower()}{sentence[1:]}"


def _at_one_count(rows: Sequence[Row], workers: int | None) -> list[Row]:
    counts = {row.workers: 0 for row in rows}
    for row in rows:
        counts[row.workers] += row.ranked and row.value("throughput") is not None
    best = max(counts, key=lambda count: (counts[count], count))
    return [row for row in rows if row.workers == (workers if workers in counts else best)]


def in_doubt(row: Row, metric: MetricKey, effects: Sequence[Effect]) -> bool:
    """Whether a row's figure is in doubt: itself, or all that it is compared with."""
    if row.steady is False or touching(row.doubts, metric):
        return True
    mine = [
        effect
        for effect in effects
        if effect.workers == row.workers
        and kind_of(effect) == kind_of(row)
        and row.layout in (effect.baseline, effect.subject)
    ]
    return bool(mine) and all(
        effect.doubts and effect.verdict in ("provisional", "not comparable") for effect in mine
    )


def place_of(row: Row) -> dict[str, object]:
    """The first columns of a chart's rows: what a row of the table is about."""
    names = ("layout", "api", "driver", "workload", "operation", "object_size_bytes", "workers")
    return {**{name: getattr(row, name) for name in names}, "repeats": row.repeats}


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
