"""Series of figures: one metric of one cell over runs that are comparable.

Runs are comparable as for `compare-runs --history`: the same suite, release, places and settings,
guard facts, and hosts that performed alike. What is not makes another series, so that a change of
the machine is never one of the gateway.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby, pairwise
from statistics import fmean, median
from typing import Final, Literal, Protocol

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from weighbridge.common.quantities import utc
from weighbridge.common.record import Record
from weighbridge.results.features.compare_runs.comparison import hosts_apart
from weighbridge.results.features.compare_runs.guard import (
    ALL,
    ComparedRun,
    Difference,
    Facts,
    all_facts,
    differences,
    planned,
    planned_differences,
)
from weighbridge.results.figures.doubt import Doubt, doubt_brief, doubt_words, few, graves, touching
from weighbridge.results.figures.metric import MetricFigure
from weighbridge.results.figures.metrics import METRICS, MetricKey, compared
from weighbridge.results.figures.summary import Row
from weighbridge.results.judge.comparison import Kind, kind_of, subjects
from weighbridge.results.judge.contrast import comparable, reason
from weighbridge.results.numbers import counted, show_percent
from weighbridge.suites import Api, DriverName, Operation

OTAVA: Final = "otava"


class ChangeRule(Record):
    """How Otava is asked, and which of its answers are told."""

    most_p: PositiveFloat = 1e-4
    """The largest p of a change in one series."""
    before: PositiveInt = 5
    """Figures that are needed before a change: of fewer, Otava underestimates the scatter."""
    after: PositiveInt = 2
    """Figures from a change on: one run may be off by itself."""
    window: PositiveInt = 50
    """Figures that Otava looks at together: its own default."""

    @property
    def runs(self) -> int:
        """The least runs in which a change can be found."""
        return self.before + self.after


RULE: Final = ChangeRule()


class ChangePoint(Record):
    """A place where a series changed."""

    at: NonNegativeInt
    """The number of the first figure after it, from 0."""
    before: PositiveFloat
    """The mean of the figures before it, since the change before that."""
    after: PositiveFloat
    """The mean of the figures after it, until the next change."""
    runs_before: NonNegativeInt
    runs_after: NonNegativeInt
    passing: NonNegativeInt = 0
    """Figures between the two sides, at levels that did not last, in neither mean."""
    p: NonNegativeFloat
    """Of Student's t-test of the two sides."""

    @property
    def sides(self) -> tuple[slice, slice]:
        """Where the figures before it and after it are in the series."""
        until = self.at - self.passing
        return slice(until - self.runs_before, until), slice(self.at, self.at + self.runs_after)


def change_points(
    values: Sequence[float], least: float, rule: ChangeRule = RULE
) -> tuple[ChangePoint, ...]:
    """The changes of figures above 0. `least`: a share of the smaller side, below which none is
    told. Raises ImportError without the extra.
    """
    if len(values) < rule.runs:
        return ()
    from otava.analysis import compute_change_points  # noqa: PLC0415 - an extra, and heavy

    found, _ = compute_change_points(
        list(values), window_len=rule.window, max_pvalue=rule.most_p, min_magnitude=least
    )
    places = [int(one.index) for one in found]
    if places and len(values) - places[-1] < rule.after:
        # The last run may be off by itself: where the level before it ends is known all the same.
        *places, end = places
    else:
        end = len(values)
    ends = [0, *places, end]
    told, first = [], 0
    for number, at in enumerate(places, start=1):
        if number < len(places) and places[number] - at < rule.before:
            continue
        before, after = slice(ends[first], ends[first + 1]), slice(at, ends[number + 1])
        one = _between(values, before, after, least, rule)
        told += [one] if one is not None else []
        first = number
    return tuple(told)


def differ(
    before: Sequence[float], after: Sequence[float], least: float, rule: ChangeRule = RULE
) -> tuple[float, float, float] | None:
    """Both means and p, if they differ by the rule. Raises ImportError without the extra."""
    if len(before) < rule.before or len(after) < rule.after:
        return None
    low, high = sorted((fmean(before), fmean(after)))
    if high / low - 1 <= least:
        return None
    from otava.analysis import TTestSignificanceTester  # noqa: PLC0415 - an extra, and heavy

    found = TTestSignificanceTester(rule.most_p).compare(before, after)
    if found.pvalue >= rule.most_p:
        return None
    return float(found.mean_1), float(found.mean_2), float(found.pvalue)


def _between(
    values: Sequence[float], before: slice, after: slice, least: float, rule: ChangeRule
) -> ChangePoint | None:
    """The change from one level to another, with those between them passed over."""
    found = differ(values[before], values[after], least, rule)
    if found is None:
        return None
    return ChangePoint(
        at=after.start,
        before=found[0],
        after=found[1],
        runs_before=before.stop - before.start,
        runs_after=after.stop - after.start,
        passing=after.start - before.stop,
        p=found[2],
    )


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


# Figures far outside those of their neighbours, in one run: peaks and dips that no lasting change
# is made of, and that a search for changes passes over.
#
# By the modified z-score, 0.6745 (x - median) / MAD, of the logarithm of a figure among its
# nearest neighbours at the same level, of which some may be outliers too without hiding it. B.
# Iglewicz and D. C. Hoaglin (How to Detect and Handle Outliers, ASQC 1993) call beyond 3.5 an
# outlier. That is for many figures: of few, the median absolute deviation (MAD) is often small by
# chance, so that the bound is wider by the inverse of their number.
# `benchmarks/history_changes.py` chose by how much.


_ALIKE: Final = 1e-12
SIGMAS_PER_MAD: Final = 1 / 0.6745
"""The standard deviation of a normal distribution in MADs."""


class OutlierRule(Record):
    """When a figure is an outlier."""

    z: PositiveFloat = 3.5
    """The modified z-score beyond which it is, among many neighbours."""
    few: NonNegativeFloat = 25.0
    """Among n neighbours the bound is wider by this share of 1 / n."""
    least: PositiveInt = 10
    """Neighbours that are needed."""
    most: PositiveInt = 50
    """The nearest that are looked at, as many as Otava's window has."""

    def bound(self, neighbours: int) -> float:
        """The modified z-score beyond which a figure is an outlier among so many neighbours."""
        return self.z * (1 + self.few / neighbours)


OUTLIER_RULE: Final = OutlierRule()


class Outlying(Record):
    """How far a figure is outside those of its neighbours."""

    middle: PositiveFloat
    """The median of its neighbours."""
    low: NonNegativeFloat
    high: PositiveFloat
    """Their interval: a figure in it is no outlier."""
    neighbours: PositiveInt
    z: float | None
    """Its modified z-score; None: its neighbours are all alike."""


class OutlyingFigure(Outlying):
    """A figure of a series that is far outside those of its neighbours."""

    at: NonNegativeInt
    """Its number in the series, from 0."""


def outlying(
    values: Sequence[float],
    least: float,
    changes: Sequence[ChangePoint] = (),
    rule: OutlierRule = OUTLIER_RULE,
) -> tuple[OutlyingFigure, ...]:
    """The outliers of figures above 0; neighbours are of one level between `changes`. `least`: what
    differs from the median by no more than this share is none.
    """
    logs = [math.log(one) for one in values]
    ends = [0, *(one.at for one in changes), len(logs)]
    found = []
    for start, end in pairwise(ends):
        for at in range(start, end):
            around = range(max(start, at - rule.most), min(end, at + rule.most + 1))
            near = sorted((abs(one - at), one) for one in around if one != at)
            others = [logs[place] for _, place in near[: rule.most]]
            one = _outlying(at, logs[at], others, least, rule)
            found += [one] if one is not None else []
    return tuple(found)


def _outlying(
    at: int, log: float, near: Sequence[float], least: float, rule: OutlierRule
) -> OutlyingFigure | None:
    if len(near) < rule.least:
        return None
    middle = median(near)
    # Differences by rounding, as in a constant series, are none.
    sigma = SIGMAS_PER_MAD * median(abs(one - middle) for one in near)
    sigma = sigma if sigma > _ALIKE else 0.0
    away = log - middle
    reach = max(rule.bound(len(near)) * sigma, math.log1p(least))
    if abs(away) <= reach:
        return None
    return OutlyingFigure(
        at=at,
        middle=math.exp(middle),
        low=math.exp(middle - reach),
        high=math.exp(middle + reach),
        neighbours=len(near),
        z=away / sigma if sigma else None,
    )


class Moved(Protocol):
    """A figure relative to others."""

    @property
    def ratio(self) -> float:
        """Itself relative to the others."""

    @property
    def direction(self) -> str:
        """Better or worse."""


def in_cells(metric: MetricKey, moved: Sequence[Moved]) -> str:
    """Such as `throughput +10 % in 4 cells (+8 % to +12 %), better`."""
    ratios = sorted(one.ratio for one in moved)
    low, middle, high = (show_percent(ratios[at]) for at in (0, len(ratios) // 2, -1))
    ends = f" ({low} to {high})" if low != high else ""
    ways = " and ".join(sorted({one.direction for one in moved}))
    return f"{METRICS[metric].name} {middle} in {counted(len(moved), 'cell')}{ends}, {ways}"


class RunOutlier(Outlying, SeriesCell):
    """A figure of one run that is far outside those of its neighbours."""

    run: str
    begun: datetime
    value: PositiveFloat
    """In the metric's unit, as all of these."""
    in_a_row: PositiveInt
    """How many runs one after the other are outliers in the same direction, with this one."""
    direction: Literal["better", "worse"]
    doubts: tuple[Doubt, ...] = ()

    @property
    def ratio(self) -> float:
        return self.value / self.middle

    @property
    def words(self) -> str:
        row = "one run" if self.in_a_row == 1 else f"one of {self.in_a_row} runs in a row"
        return "; ".join(filter(None, (f"outlier, {row}", doubt_brief(self.doubts))))


def run_outliers(series: RunSeries, changes: Sequence[ChangePoint]) -> tuple[RunOutlier, ...]:
    """The outliers of a series, whose changes these are."""
    points = series.searched
    values = [one.figure.value or 0.0 for one in points]
    found = outlying(values, series.least, changes)
    rows = _rows(found, values)
    metric = METRICS[series.metric]
    cell = series.model_dump(include=set(SeriesCell.model_fields))
    return tuple(
        RunOutlier(
            **cell,
            run=points[one.at].run,
            begun=points[one.at].begun,
            value=values[one.at],
            **one.model_dump(exclude={"at"}),
            in_a_row=rows[one.at],
            direction="better" if metric.better_at(values[one.at] / one.middle) else "worse",
            doubts=points[one.at].doubts,
        )
        for one in found
    )


def _rows(found: Sequence[OutlyingFigure], values: Sequence[float]) -> dict[int, int]:
    """How long the row of outliers in one direction is that each is in, by its number."""
    up = {one.at: values[one.at] > one.middle for one in found}
    lengths: dict[int, int] = {}
    for _, same in groupby(enumerate(sorted(up)), lambda one: (one[1] - one[0], up[one[1]])):
        row = [at for _, at in same]
        lengths |= dict.fromkeys(row, len(row))
    return lengths


def outlier_words(found: Sequence[RunOutlier]) -> tuple[str, ...]:
    """A sentence for each run and layout that has outliers."""
    places: dict[tuple[datetime, str, str], list[RunOutlier]] = {}
    for one in found:
        places.setdefault((one.begun, one.run, one.label), []).append(one)
    texts = []
    for (begun, run, label), mine in sorted(places.items(), key=lambda each: each[0]):
        by_metric = {
            metric: [one for one in mine if one.metric == metric]
            for metric in dict.fromkeys(one.metric for one in mine)
        }
        figures = "; ".join(in_cells(metric, some) for metric, some in by_metric.items())
        words = ", ".join(dict.fromkeys(one.words for one in mine))
        texts.append(f"{label} in {run} ({begun:%Y-%m-%d}): {words}: {figures}")
    return tuple(texts)
