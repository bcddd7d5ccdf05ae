"""Series of figures: one metric of one cell over runs that are comparable.

Runs are comparable as for `compare-runs --history`: the same suite, release, places and settings,
guard facts, and hosts that performed alike. What is not makes another series, so that a change of
the machine is never one of the gateway.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import fmean, median
from typing import Final, Literal

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from weighbridge.common.quantities import utc
from weighbridge.common.record import Record
from weighbridge.results.features.compare_runs import hosts_apart
from weighbridge.results.features.run_guard import (
    ALL,
    ComparedRun,
    Difference,
    DifferenceKind,
    Facts,
    all_facts,
    by_kind,
    differences,
    planned,
    planned_differences,
)
from weighbridge.results.figures.doubt import Doubt, doubt_brief, doubt_words, few, graves, touching
from weighbridge.results.figures.metrics import METRICS, MetricKey, compared
from weighbridge.results.figures.reading import MetricFigure
from weighbridge.results.figures.summary import Row
from weighbridge.results.judge.comparing import comparable, reason
from weighbridge.results.judge.comparison import Kind, kind_of, subjects
from weighbridge.results.numbers import counted, listed, show_figure
from weighbridge.suites import Api, DriverName, Operation

OTAVA: Final = "otava"


@dataclass(frozen=True)
class ChangeRule:
    """How Otava is asked, and which of its answers are told."""

    most_p: float = 1e-4
    """The largest p of a change in one series."""
    before: int = 5
    """Figures that are needed before a change: of fewer, Otava underestimates the scatter."""
    after: int = 2
    """Figures from a change on: one run may be off by itself."""
    window: int = 50
    """Figures that Otava looks at together: its own default."""

    @property
    def runs(self) -> int:
        """The least runs in which a change can be found."""
        return self.before + self.after


RULE: Final = ChangeRule()


class ChangePoint(Record):
    """A change of a series: means on both sides, since the change before and until the next."""

    before: PositiveFloat
    """Mean of the figures before it, since the change before that, in the metric's unit."""
    after: PositiveFloat
    runs_before: PositiveInt
    runs_after: PositiveInt
    passing: NonNegativeInt = 0
    """Runs between the two sides, at levels that did not last, in neither mean."""
    p: NonNegativeFloat
    """Of Student's t-test of the two sides; not corrected for the number of series."""

    def sides(self, at: int) -> tuple[slice, slice]:
        """Where the figures before it and after it are in the series, if its first is there."""
        until = at - self.passing
        return slice(until - self.runs_before, until), slice(at, at + self.runs_after)


def change_points(
    values: Sequence[float], least: float, rule: ChangeRule = RULE
) -> dict[int, ChangePoint]:
    """The changes of figures above 0, by the number of their first figure, from 0. `least`: a share
    of the smaller side, below which none is told. Raises ImportError without the extra.
    """
    if len(values) < rule.runs:
        return {}
    from otava.analysis import compute_change_points  # noqa: PLC0415 - an extra, and heavy

    changes, _ = compute_change_points(
        list(values), window_len=rule.window, max_pvalue=rule.most_p, min_magnitude=least
    )
    places = [int(change.index) for change in changes]
    if places and len(values) - places[-1] < rule.after:
        # The last run may be off by itself: where the level before it ends is known all the same.
        *places, end = places
    else:
        end = len(values)
    ends = [0, *places, end]
    told: dict[int, ChangePoint] = {}
    first = 0
    for number, at in enumerate(places, start=1):
        if number < len(places) and places[number] - at < rule.before:
            continue
        before, after = slice(ends[first], ends[first + 1]), slice(at, ends[number + 1])
        means = differ(values[before], values[after], least, rule)
        first = number
        if means is not None:
            told[at] = ChangePoint(
                before=means[0],
                after=means[1],
                runs_before=before.stop - before.start,
                runs_after=after.stop - after.start,
                passing=at - before.stop,
                p=means[2],
            )
    return told


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

    test = TTestSignificanceTester(rule.most_p).compare(before, after)
    if test.pvalue >= rule.most_p:
        return None
    return float(test.mean_1), float(test.mean_2), float(test.pvalue)


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


@dataclass(frozen=True)
class OutlierRule:
    """When a figure is an outlier."""

    z: float = 3.5
    """The modified z-score beyond which it is, among many neighbours."""
    few: float = 25.0
    """Among n neighbours the bound is wider by this share of 1 / n."""
    least: int = 10
    """Neighbours that are needed."""
    most: int = 50
    """The nearest that are looked at, as many as Otava's window has."""

    def bound(self, neighbours: int) -> float:
        """The modified z-score beyond which a figure is an outlier among so many neighbours."""
        return self.z * (1 + self.few / neighbours)


OUTLIER_RULE: Final = OutlierRule()


class Outlying(Record):
    """A figure far outside its neighbours: beyond `low` to `high` about their median, `middle`."""

    middle: PositiveFloat
    low: NonNegativeFloat
    high: PositiveFloat
    neighbours: PositiveInt
    z: float | None
    """Its modified z-score; None: its neighbours are all alike."""


def outlying(
    values: Sequence[float],
    least: float,
    changes: Iterable[int] = (),
    rule: OutlierRule = OUTLIER_RULE,
) -> dict[int, Outlying]:
    """The outliers of figures above 0, by their numbers; neighbours are of one level between
    `changes`. `least`: what differs from the median by no more than this share is none.
    """
    logs = [math.log(one) for one in values]
    ends = [0, *changes, len(logs)]
    outliers = {}
    for start, end in pairwise(ends):
        for at in range(start, end):
            around = range(max(start, at - rule.most), min(end, at + rule.most + 1))
            near = sorted((abs(one - at), one) for one in around if one != at)
            others = [logs[place] for _, place in near[: rule.most]]
            outlier = _outlying(logs[at], others, least, rule)
            if outlier is not None:
                outliers[at] = outlier
    return outliers


def _outlying(
    log: float, near: Sequence[float], least: float, rule: OutlierRule
) -> Outlying | None:
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
    return Outlying(
        middle=math.exp(middle),
        low=math.exp(middle - reach),
        high=math.exp(middle + reach),
        neighbours=len(near),
        z=away / sigma if sigma else None,
    )


# Comparable runs.


Standing = Literal["sure", "provisional", "not comparable"]
"""`provisional`: a mild doubt touches the figure. `not comparable`: a grave one does, or it is not
valid, not steady, or unknown.
"""
LARGEST: Final = 1e100
"""No gateway has such figures: their squares would overflow."""


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
    def shown(self) -> str:
        """The figure: its bin if the driver counts in bins, `≥ 2,000` for a lower bound."""
        if self.figure.within is not None:
            return str(self.figure.within)
        return f"{'≥ ' * self.figure.at_least}{show_figure(self.figure.value)}"

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

    @property
    def words(self) -> str:
        """`throughput of 64 kB reads at 4 workers on rgw-beast@ceph-16`."""
        requests = f"{self.about} at {counted(self.workers, 'worker')}"
        return f"{METRICS[self.metric].name} of {requests} on {self.label}"


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
    """All series of these runs, by time, and breaks; `despite`: facts that may differ, or `all`."""
    groups: dict[tuple[str, str, str], list[_Group]] = {}
    breaks = []
    for run in runs:
        suite = run.plan.suite
        for layout in run.layouts:
            for workload in suite.workloads:
                guarded = all_facts(run, [workload.name], {layout: layout}).items()
                facts = {name: fact for name, fact in guarded if not {name, ALL} & set(despite)}
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


def _planned_apart(one: ComparedRun, other: ComparedRun, layout: str) -> tuple[Difference, ...]:
    found = planned_differences(one, other, [(layout, layout)])
    return tuple(each.model_copy(update={"fact": "layout"}) for each in found)


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
    doubts = touching([*row.doubts, *hosts, *few(len(row.used))], metric)
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


# What parts series, and what else changed with a change.


MAX_DIFFERENCES: Final = 3
"""So many differences are named one by one."""
_OF_KIND: Final[Mapping[DifferenceKind, str]] = {
    "differs": "",
    "computed": "in a layout's file and computed from the hosts' size: ",
    "not recorded": "recorded in one run only: ",
}


def difference_words(differs: Sequence[Difference]) -> str:
    """What differs first; then what only moved to the sizing rule, and what one side lacks."""
    texts = []
    for kind, found in by_kind(differs).items():
        shown = [
            _named(one) if kind == "not recorded" else f"{_named(one)}: {one.a} before, {one.b} now"
            for one in found[:MAX_DIFFERENCES]
        ]
        more = len(found) - len(shown)
        between = ", " if kind == "not recorded" else "; "
        texts.append(_OF_KIND[kind] + between.join([*shown, *([f"{more} more"] if more else [])]))
    return "; ".join(texts)


def _named(one: Difference) -> str:
    return f"{one.fact}{f' {one.of}' if one.of else ''}"


def break_words(breaks: Sequence[SeriesBreak]) -> tuple[str, ...]:
    """From when on runs are not compared with those before, and why: a sentence each."""
    groups: dict[tuple[str, str, str], list[SeriesBreak]] = {}
    for one in breaks:
        why = difference_words(one.differs) or one.hosts or "they differ"
        groups.setdefault((one.run, one.suite, why), []).append(one)
    texts = []
    for (run, suite, why), group in groups.items():
        labels = listed([*dict.fromkeys(label_of(one.layout, one.release) for one in group)])
        workloads = listed([*dict.fromkeys(one.workload for one in group)])
        texts.append(
            f"{labels}, {workloads} of {suite}: runs from {run} on are not compared with earlier "
            f"ones: {why}"
        )
    return tuple(texts)
