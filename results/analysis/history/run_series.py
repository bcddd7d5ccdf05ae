"""Series of figures: one metric of one cell over runs that are comparable.

Runs are comparable as for `compare-runs --history`: the same suite, release, places and settings,
guard facts, and hosts that performed alike. What is not makes another series, so that a change of
the machine is never one of the gateway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, Literal

from weighbridge.common.quantities import utc
from weighbridge.common.record import Record
from weighbridge.results.analysis.across_runs.guard import (
    ALL,
    ComparedRun,
    Difference,
    Facts,
    all_facts,
    differences,
    planned,
    planned_differences,
)
from weighbridge.results.analysis.across_runs.runs_comparison import hosts_apart
from weighbridge.results.analysis.contrast import comparable, reason
from weighbridge.results.analysis.kinds import Kind, kind_of, subjects
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.doubt import Doubt, doubt_brief, doubt_words, few, graves, touching
from weighbridge.results.metric import MetricFigure
from weighbridge.results.metrics import MetricKey, compared
from weighbridge.suites import Api, DriverName, Operation

Standing = Literal["sure", "provisional", "not comparable"]
"""`provisional`: a mild doubt touches the figure. `not comparable`: a grave one does, or it is not
valid, not steady, or unknown.
"""
LARGEST: Final = 1e100
"""No gateway has such figures: their squares would overflow."""
PLANNED: Final = "layout"
"""The kind of fact of what was planned of a layout: release, places and settings."""


class HistoryRun(Record):
    """A run of a history."""

    run: str
    begun: datetime
    """UTC, without a time zone."""
    suite: str
    state: str


class HistoryPoint(Record):
    """One metric of one cell of one run."""

    run: str
    begun: datetime
    figure: MetricFigure
    """As in the table of its run."""
    standing: Standing
    doubts: tuple[Doubt, ...] = ()
    why: str = ""
    """Why it is not comparable; empty otherwise."""
    outlier: str = ""
    """That it is far outside those of its neighbours, in words; empty: it is not."""

    @property
    def notes(self) -> str:
        if self.why:
            return self.why
        # The words of an outlier have its doubts.
        return self.outlier or doubt_brief(self.doubts)

    @property
    def searched(self) -> bool:
        """Whether it is among the figures in which changes are searched."""
        value = self.figure.value or 0
        return self.standing != "not comparable" and 1 / LARGEST < value < LARGEST


class SeriesCell(Record):
    """What a series is of: one metric of one cell."""

    layout: str
    release: str
    suite: str
    workload: str
    operation: Operation
    api: Api
    driver: DriverName
    about: str
    workers: int
    metric: MetricKey
    group: int
    """From 1: which group of comparable runs of its layout and workload it is of, by time."""

    @property
    def label(self) -> str:
        """The layout with its release: `rgw-beast@ceph-16`."""
        return label_of(self.layout, self.release)

    @property
    def kind(self) -> Kind:
        return self.workload, self.operation, self.api, self.driver


class RunSeries(SeriesCell):
    """One metric of one cell over comparable runs, in order of time."""

    gateway: str
    least: float
    """The practical threshold of the metric, as a share: smaller changes do not matter."""
    points: tuple[HistoryPoint, ...]

    @property
    def searched(self) -> tuple[HistoryPoint, ...]:
        return tuple(one for one in self.points if one.searched)


class SeriesBreak(Record):
    """From this run on, runs of a layout and workload are not compared with those before."""

    run: str
    begun: datetime
    layout: str
    release: str
    suite: str
    workload: str
    differs: tuple[Difference, ...]
    """Guard facts and settings that differ; `a` is before."""
    hosts: str = ""
    """How the hosts differ, if they do."""


class _Group:
    """Comparable runs of one layout and workload."""

    def __init__(self, first: ComparedRun, facts: Mapping[str, Facts]) -> None:
        self.runs = [first]
        self.plans = [first]
        """One of each plan of theirs: they may not all record the same settings."""
        self.facts = facts
        self.doubts: dict[str, tuple[Doubt, ...]] = {}

    def takes(self, run: ComparedRun, layout: str, facts: Mapping[str, Facts]) -> bool:
        """Whether a run is comparable with those of the group, which it then belongs to."""
        if facts != self.facts or any(_planned_apart(one, run, layout) for one in self.plans):
            return False
        apart = tuple(one.doubt for one in hosts_apart(self.runs[0], run, [(layout, layout)]))
        if graves(apart):
            return False
        self.runs.append(run)
        if all(planned(one, layout) != planned(run, layout) for one in self.plans):
            self.plans.append(run)
        self.doubts[run.manifest.run_id] = apart
        return True


def series_of(
    runs: Sequence[ComparedRun], despite: Sequence[str] = ()
) -> tuple[tuple[RunSeries, ...], tuple[SeriesBreak, ...]]:
    """All series of these runs, by time, and their breaks. `despite` names guard facts in which
    runs may differ, or `all`.
    """
    groups: dict[tuple[str, str, str], list[_Group]] = {}
    breaks = []
    for run in runs:
        suite = run.plan.suite
        for layout in run.layouts:
            for workload in suite.workloads:
                facts = _facts(run, layout, workload.name, despite)
                before = groups.setdefault((suite.name, layout, workload.name), [])
                if any(group.takes(run, layout, facts) for group in reversed(before)):
                    continue
                if before:
                    breaks.append(_break(before[-1], run, layout, workload.name, facts))
                before.append(_Group(run, facts))
    names = {
        suite: subjects([row for run in runs if run.plan.suite.name == suite for row in run.rows])
        for suite in dict.fromkeys(run.plan.suite.name for run in runs)
    }
    found = [
        one
        for (suite, layout, workload), of_place in groups.items()
        for number, group in enumerate(of_place, start=1)
        for one in _series(group, number, layout, workload, names[suite])
    ]
    return tuple(found), tuple(breaks)


def label_of(layout: str, release: str) -> str:
    """A layout with its release, unless its name has it."""
    return layout if release in layout else f"{layout}@{release}"


def _facts(
    run: ComparedRun, layout: str, workload: str, despite: Sequence[str]
) -> dict[str, Facts]:
    """All that must be equal for figures to be comparable, beside the plan."""
    guarded = all_facts(run, [workload], {layout: layout})
    return {name: facts for name, facts in guarded.items() if not {name, ALL} & set(despite)}


def _planned_apart(one: ComparedRun, other: ComparedRun, layout: str) -> tuple[Difference, ...]:
    found = planned_differences(one, other, [(layout, layout)])
    return tuple(each.model_copy(update={"fact": PLANNED}) for each in found)


def _break(
    before: _Group, run: ComparedRun, layout: str, workload: str, facts: Mapping[str, Facts]
) -> SeriesBreak:
    plans = (found for one in before.plans if (found := _planned_apart(one, run, layout)))
    guarded = (one for name in facts for one in differences(name, before.facts[name], facts[name]))
    differs = (*next(plans, ()), *guarded)
    apart = graves(one.doubt for one in hosts_apart(before.runs[0], run, [(layout, layout)]))
    return SeriesBreak(
        run=run.manifest.run_id,
        begun=begun(run),
        layout=layout,
        release=run.layouts[layout].release,
        suite=run.plan.suite.name,
        workload=workload,
        differs=differs,
        hosts="" if differs else doubt_words(apart),
    )


def begun(run: ComparedRun) -> datetime:
    """When a run began, in UTC. Raises InvalidMeasurement if it does not say."""
    return utc(run.manifest.created_at)


def _series(
    group: _Group, number: int, layout: str, workload: str, names: Mapping[Kind, str]
) -> Iterator[RunSeries]:
    cells: dict[tuple[Kind, int], list[tuple[ComparedRun, Row]]] = {}
    for run in group.runs:
        for row in run.rows:
            if row.layout == layout and row.workload == workload:
                cells.setdefault((kind_of(row), row.workers), []).append((run, row))
    last = group.runs[-1]
    for (kind, workers), rows in cells.items():
        for metric in compared():
            points = [
                _point(run, row, metric.key, group.doubts.get(run.manifest.run_id, ()))
                for run, row in rows
            ]
            if any(one.figure.known for one in points):
                yield RunSeries(
                    layout=layout,
                    gateway=last.layouts[layout].gateway,
                    release=last.layouts[layout].release,
                    suite=last.plan.suite.name,
                    workload=workload,
                    operation=kind[1],
                    api=kind[2],
                    driver=kind[3],
                    about=names[kind],
                    workers=workers,
                    metric=metric.key,
                    least=metric.bound_of(last.plan.suite.bounds) - 1,
                    group=number,
                    points=tuple(points),
                )


def _point(run: ComparedRun, row: Row, metric: MetricKey, hosts: Sequence[Doubt]) -> HistoryPoint:
    lone = few(len(row.used))
    doubts = touching([*row.doubts, *hosts, *([lone] if lone is not None else [])], metric)
    figure = row.figure(metric)
    why = (
        reason(row)
        if not comparable(row)
        else doubt_words(graves(doubts)) or ("" if figure.known else "too few samples")
    )
    return HistoryPoint(
        run=run.manifest.run_id,
        begun=begun(run),
        figure=figure,
        standing="not comparable" if why else "provisional" if doubts else "sure",
        doubts=doubts,
        why=why,
    )
