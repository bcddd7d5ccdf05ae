"""What the charts of a run are drawn from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from weighbridge.results.figures.doubt import graves, touching
from weighbridge.results.figures.metrics import MetricKey
from weighbridge.results.figures.reading import Interval
from weighbridge.results.figures.summary import Row
from weighbridge.results.judge.comparison import Comparison, Effect, Kind, kind_of, subjects
from weighbridge.results.judge.leads import Lead, leads
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.judge.words import caveats, store_names
from weighbridge.results.numbers import counted, grouped
from weighbridge.results.run.resolved import PlannedLayout, ResolvedPlan
from weighbridge.results.show.chart import COMPARABLE, NOT_COMPARABLE, PROVISIONAL, Chart
from weighbridge.results.show.latencies import KindLatencies, read_latencies


@dataclass(frozen=True)
class CeilingLine:
    """A ceiling from the layer below, in op/s: a line across a panel, or words if far above."""

    layouts: tuple[str, ...]
    layer: str
    label: str
    """The layer, with its layouts where others have another ceiling."""
    value: float


@dataclass(frozen=True)
class ChartSource:
    """The data of all charts. Of a tuning, `rows` and `plan` are of its baseline only."""

    data: RunData
    plan: ResolvedPlan
    rows: tuple[Row, ...]
    comparison: Comparison | None = None
    """None where layouts are not compared."""
    ceilings: Mapping[str, tuple[CeilingLine, ...]] = field(default_factory=dict)
    """Lines across the chart of throughput, by key of its panel."""
    slo_ms: float | None = None
    """The requested bound on p90; None: charts choose one that separates the layouts."""

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
        """What each workload is called."""
        return subjects(self.rows)

    def cells(self, rows: Sequence[Row] | None = None) -> dict[Kind, list[Row]]:
        """The rows of each workload, in the order of the table."""
        return grouped(self.rows if rows is None else rows, kind_of)

    def at_one_count(self) -> dict[Kind, list[Row]]:
        """The rows of each workload at the largest worker count at which most are ranked."""
        chosen = {}
        for kind, rows in self.cells().items():
            counts = {row.workers: 0 for row in rows}
            for row in rows:
                counts[row.workers] += row.ranked and row.value("throughput") is not None
            best = max(counts, key=lambda count: (counts[count], count))
            chosen[kind] = [row for row in rows if row.workers == best]
        return chosen

    @cached_property
    def latencies(self) -> tuple[KindLatencies, ...]:
        """The latencies of each workload at one worker count, decoded once."""
        return read_latencies(self.at_one_count(), self.names, self.data.steps.values())

    def standing(self, row: Row, metric: MetricKey) -> str:
        """Whether a figure is comparable; provisional: it is in doubt, or all that it is compared
        with; or not comparable.
        """
        doubts = touching(row.doubts, metric)
        if not row.valid or row.condemned or graves(doubts):
            return NOT_COMPARABLE
        if row.steady is False or doubts:
            return PROVISIONAL
        effects = [
            effect
            for effect in self.effects
            if effect.workers == row.workers
            and kind_of(effect) == kind_of(row)
            and row.layout in (effect.baseline, effect.subject)
        ]
        doubted = [
            bool(effect.doubts) and effect.verdict in ("provisional", "not comparable")
            for effect in effects
        ]
        return PROVISIONAL if doubted and all(doubted) else COMPARABLE

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


def place_of(row: Row) -> dict[str, object]:
    """The first columns of a chart's rows: what a row of the table is about."""
    names = ("layout", "api", "driver", "workload", "operation", "object_size_bytes", "workers")
    return {**{name: getattr(row, name) for name in names}, "repeats": row.repeats}


def place_in(kind: Kind, layout: str) -> dict[str, object]:
    """The first columns of a chart's rows that are about no row of the table alone."""
    workload, operation, api, driver = kind
    place = {"layout": layout, "api": api, "driver": driver}
    return {**place, "workload": workload, "operation": operation}


def drawn_ends_ms(within: Interval) -> tuple[float, float]:
    """The ends of a bin on a logarithmic scale, which cannot show 0: half of a first bin is shown,
    and of a last one, which has no upper edge, the lower.
    """
    top_ms = within.low_ms if within.high_ms is None else within.high_ms
    return within.low_ms or top_ms / 2, top_ms


def repeats_words(counts: Collection[int]) -> str:
    """`5 repeats`, or `3 to 5 repeats` where not all were usable."""
    low, high = min(counts), max(counts)
    return f"{low} to " * (low < high) + counted(high, "repeat")


def source_of(data: RunData, *, slo_ms: float | None = None) -> ChartSource:
    """What charts of a run folder are drawn from. Raises as reading a run does."""
    tuning, controls = data.tuning, data.plan.twins
    names = {layout.name for layout in data.plan.layouts if layout.name not in controls}
    if tuning is not None:
        names = {tuning.baseline}
    layouts = tuple(layout for layout in data.plan.layouts if layout.name in names)
    return ChartSource(
        data=data,
        plan=data.plan.model_copy(update={"layouts": layouts}),
        rows=tuple(row for row in data.rows if row.layout in names),
        comparison=data.comparison if tuning is None else None,
        slo_ms=slo_ms,
    )


@dataclass(frozen=True)
class ChartKind:
    """A kind of chart. `draw` returns its charts, none where a run has nothing to show."""

    draw: Callable[[ChartSource], Sequence[Chart]]
    runs: tuple[Literal["comparison", "tuning"], ...] = ("comparison",)
    """The kinds of run that it is drawn for."""

    def of(self, source: ChartSource) -> Sequence[Chart]:
        """Its charts of a run; none for another kind of run."""
        run = "comparison" if source.data.tuning is None else "tuning"
        return self.draw(source) if run in self.runs else ()
