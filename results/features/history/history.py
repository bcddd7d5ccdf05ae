"""The history of many runs: the series of their figures, and the changes in them, in sentences.

A change is told if Otava finds it among comparable figures and it is larger than the practical
threshold. It is provisional if some of its figures are, unless the others alone make it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, Literal

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from weighbridge.common.errors import EXIT_DIFFERENCE, EXIT_FINE, EXIT_INVALID
from weighbridge.common.record import Record
from weighbridge.results.features.compare_runs.comparison import RunsVerdict
from weighbridge.results.features.compare_runs.guard import (
    ALL,
    ComparedRun,
    Difference,
    DifferenceKind,
    by_kind,
    guard,
    refuse_unknown,
    settings_apart,
)
from weighbridge.results.features.history.run_series import (
    RULE,
    ChangePoint,
    HistoryPoint,
    HistoryRun,
    RunOutlier,
    RunSeries,
    SeriesBreak,
    SeriesCell,
    begun,
    change_points,
    differ,
    in_cells,
    label_of,
    outlier_words,
    run_outliers,
    series_of,
)
from weighbridge.results.figures.doubt import Doubt, doubt_brief
from weighbridge.results.figures.metrics import METRICS, MetricKey
from weighbridge.results.judge.contrast import ALWAYS
from weighbridge.results.numbers import counted, listed, show_figure, show_p, show_percent

MOST_WORDS: Final = 3
"""So many differences are named one by one."""
_PASSING: Final = ("begun at", "suite", "repeats", "layouts", "workloads")
"""What differs between runs and changes none of their figures."""


class RunChange(SeriesCell):
    """A change of one metric of one cell, from one run on."""

    run: str
    """The first run after the change."""
    begun: datetime
    previous: str
    """The last run of the figures before it."""
    before: PositiveFloat
    """Mean of the figures before it, since the change before that, in the metric's unit."""
    after: PositiveFloat
    runs_before: PositiveInt
    runs_after: PositiveInt
    passing: NonNegativeInt = 0
    """Runs between `previous` and `run`, at levels that did not last, in neither mean."""
    p: NonNegativeFloat
    """Of Student's t-test of the two sides; not corrected for the number of series."""
    direction: Literal["better", "worse"]
    doubts: tuple[Doubt, ...] = ()
    """About its figures, if those without are no change by themselves; any makes it provisional."""

    @property
    def ratio(self) -> float:
        return self.after / self.before

    @property
    def standing(self) -> str:
        """`better`, `worse`, or `provisional: few repeats`."""
        return doubt_brief(self.doubts) or self.direction

    @property
    def text(self) -> str:
        metric = METRICS[self.metric]
        figures = f"{show_figure(self.before)} to {show_figure(self.after)} {metric.unit}"
        doubted = f"; {doubt_brief(self.doubts)}" if self.doubts else ""
        between = f", {self.passing} between at levels that did not last" if self.passing else ""
        return (
            f"{metric.name} of {self.about} at {counted(self.workers, 'worker')} on {self.label}: "
            f"{show_percent(self.ratio)} ({figures}) from {self.run} on; {self.runs_before} runs "
            f"before, {self.runs_after} since{between}; p {show_p(self.p)}{doubted}"
        )


class LayoutChange(Record):
    """All changes of a layout that begin with the same run."""

    label: str
    run: str
    begun: datetime
    changes: tuple[RunChange, ...]
    differs: tuple[Difference, ...]
    """What else differs between that run and the last one before: guard facts that were allowed to,
    versions and settings; `a` is before.
    """

    @property
    def is_sure(self) -> bool:
        """Whether one of them is not provisional."""
        return any(not one.doubts for one in self.changes)

    @property
    def differs_words(self) -> str:
        return _words(self.differs)

    @property
    def brief(self) -> str:
        most = max(self._told, key=lambda one: abs(one.ratio - 1))
        what = f"{METRICS[most.metric].name} of {most.about} on {self.label}"
        return f"{what} {show_percent(most.ratio)} from {self.begun:%Y-%m-%d} on"

    @property
    def text(self) -> str:
        by_metric: dict[MetricKey, list[RunChange]] = {}
        for one in self._told:
            by_metric.setdefault(one.metric, []).append(one)
        words = "; ".join(in_cells(metric, mine) for metric, mine in by_metric.items())
        word = "" if self.is_sure else "provisional: "
        return f"{self.label} from {self.run} on ({self.begun:%Y-%m-%d}): {word}{words}"

    @property
    def _told(self) -> tuple[RunChange, ...]:
        return tuple(one for one in self.changes if not one.doubts) or self.changes


class History(Record):
    """Runs over time, with all their series and changes."""

    runs: tuple[HistoryRun, ...]
    """The oldest first."""
    series: tuple[RunSeries, ...]
    changes: tuple[LayoutChange, ...]
    """By time."""
    breaks: tuple[SeriesBreak, ...]
    """Where runs of the same layout are no longer comparable with those before."""
    searched: int
    """How many series had runs enough to be searched: cells of throughput and p90."""
    outliers: tuple[RunOutlier, ...] = ()
    """Figures of one run far outside those of its neighbours, by time: no changes."""

    despite: tuple[str, ...] = ()
    """Guard facts in which comparable runs were allowed to differ; `all`: any of them."""

    @property
    def despite_words(self) -> str:
        if not self.despite:
            return ""
        facts = "any guard fact" if ALL in self.despite else listed(self.despite)
        return f"Runs are compared although they may differ in {facts}."

    @property
    def outlier_words(self) -> tuple[str, ...]:
        return outlier_words(self.outliers)

    @property
    def headline(self) -> str:
        among = f"{counted(self.searched, 'cell')} of {counted(len(self.runs), 'run')}"
        sure = [one for one in self.changes if one.is_sure]
        if sure:
            return f"{counted(len(sure), 'change')} in {among}; the last: {sure[-1].brief}."
        if not self.searched:
            return f"No change can be found yet: that needs {RULE.runs} comparable runs."
        doubted = f"; {len(self.changes)} provisional" if self.changes else ""
        return f"No lasting change found in {among}{doubted}."


def history_of(runs: Sequence[ComparedRun], despite: Sequence[str] = ()) -> History:
    """The history of runs, in any order.

    `despite` names guard facts in which comparable runs may differ, or `all`. Raises UsageError for
    unknown names, InvalidMeasurement for a run that does not say when it began, and ImportError
    without the extra.
    """
    refuse_unknown(despite)
    by_time = sorted(runs, key=lambda run: (begun(run), run.manifest.run_id))
    found: list[RunChange] = []
    outliers: list[RunOutlier] = []
    series: list[RunSeries] = []
    unmarked, breaks = series_of(by_time, despite)
    for one in unmarked:
        apart: tuple[RunOutlier, ...] = ()
        if one.metric in ALWAYS:
            places = change_points([each.figure.value or 0.0 for each in one.searched], one.least)
            found += [_change(one, one.searched, place) for place in places]
            apart = run_outliers(one, places)
            outliers += apart
        series.append(_marked(one, apart))
    of_run = {run.manifest.run_id: run for run in by_time}
    return History(
        runs=tuple(
            HistoryRun(
                run=run.manifest.run_id,
                begun=begun(run),
                suite=run.plan.suite.name,
                state=run.manifest.state,
            )
            for run in by_time
        ),
        series=tuple(series),
        changes=tuple(_by_layout(found, of_run, despite)),
        despite=tuple(despite),
        breaks=breaks,
        outliers=tuple(sorted(outliers, key=lambda one: (one.begun, one.run))),
        searched=sum(one.metric in ALWAYS and len(one.searched) >= RULE.runs for one in series),
    )


def _marked(series: RunSeries, found: Sequence[RunOutlier]) -> RunSeries:
    """The series, whose figures say that they are outliers."""
    words = {one.run: one.words for one in found}
    points = tuple(
        one.model_copy(update={"outlier": words.get(one.run, "")}) for one in series.points
    )
    return series.model_copy(update={"points": points})


def _change(series: RunSeries, points: Sequence[HistoryPoint], found: ChangePoint) -> RunChange:
    sides = [points[side] for side in found.sides]
    previous, first = sides[0][-1], sides[1][0]
    gained = METRICS[series.metric].better_at(found.after / found.before)
    return RunChange(
        **series.model_dump(include=set(RunChange.model_fields) & set(RunSeries.model_fields)),
        run=first.run,
        begun=first.begun,
        previous=previous.run,
        before=found.before,
        after=found.after,
        runs_before=found.runs_before,
        runs_after=found.runs_after,
        passing=found.passing,
        p=found.p,
        direction="better" if gained else "worse",
        doubts=_doubts(sides, series.least, rises=found.after > found.before),
    )


def _doubts(
    sides: Sequence[Sequence[HistoryPoint]], least: float, *, rises: bool
) -> tuple[Doubt, ...]:
    """The doubts of a change that figures without doubts do not make; one of each kind."""
    doubts = {doubt.what: doubt for side in sides for one in side for doubt in one.doubts}
    if not doubts:
        return ()
    before, after = ([one.figure.value or 0.0 for one in side if not one.doubts] for side in sides)
    alone = differ(before, after, least)
    holds = alone is not None and (alone[1] > alone[0]) == rises
    return () if holds else tuple(doubts.values())


def _by_layout(
    found: Sequence[RunChange], of_run: Mapping[str, ComparedRun], despite: Sequence[str]
) -> Iterable[LayoutChange]:
    places: dict[tuple[datetime, str, str, str], list[RunChange]] = {}
    for one in found:
        places.setdefault((one.begun, one.run, one.label, one.layout), []).append(one)
    for (moment, run, label, layout), mine in sorted(places.items()):
        before, after = of_run[mine[0].previous], of_run[run]
        pair = [(layout, layout)]
        allowed = [
            one
            for one in guard(before, after, pair, [ALL]).unlike
            if {one.fact, ALL} & set(despite)
        ]
        apart = [one for one in settings_apart(before, after, pair) if one.fact not in _PASSING]
        yield LayoutChange(
            label=label,
            run=run,
            begun=moment,
            changes=tuple(mine),
            differs=(*allowed, *apart),
        )


_OF_KIND: Final[Mapping[DifferenceKind, str]] = {
    "differs": "",
    "computed": "in a layout's file and computed from the hosts' size: ",
    "not recorded": "recorded in one run only: ",
}


def _words(differs: Sequence[Difference]) -> str:
    """What differs first; then what only moved to the sizing rule, and what one side lacks."""
    texts = []
    for kind, found in by_kind(differs).items():
        shown = [
            _named(one) if kind == "not recorded" else f"{_named(one)}: {one.a} before, {one.b} now"
            for one in found[:MOST_WORDS]
        ]
        more = len(found) - len(shown)
        between = ", " if kind == "not recorded" else "; "
        texts.append(_OF_KIND[kind] + between.join([*shown, *([f"{more} more"] if more else [])]))
    return "; ".join(texts)


def _named(one: Difference) -> str:
    return f"{one.fact}{f' {one.of}' if one.of else ''}"


def break_words(breaks: Sequence[SeriesBreak]) -> tuple[str, ...]:
    """From when on runs are not compared with those before, and why: a sentence each."""
    found: dict[tuple[str, str, str], list[SeriesBreak]] = {}
    for one in breaks:
        why = _words(one.differs) or one.hosts or "they differ"
        found.setdefault((one.run, one.suite, why), []).append(one)
    return tuple(
        f"{listed(_labels(mine))}, {listed(_workloads(mine))} of {suite}: runs from {run} on "
        f"are not compared with earlier ones: {why}"
        for (run, suite, why), mine in found.items()
    )


def _labels(breaks: Sequence[SeriesBreak]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(label_of(one.layout, one.release) for one in breaks))


def _workloads(breaks: Sequence[SeriesBreak]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.workload for one in breaks))


def latest_verdict(history: History) -> RunsVerdict:
    """Worse if it is at a level that a change for the worse began, of any cell's throughput or p90.

    What could not be judged has not passed: figures that are not comparable, too few comparable
    runs, and changes that are provisional.
    """
    latest = history.runs[-1].run
    series = [
        one for one in history.series if one.metric in ALWAYS and one.points[-1].run == latest
    ]
    last = {_place(change): change for of_layout in history.changes for change in of_layout.changes}
    worse = [
        change
        for one in series
        if (change := last.get(_place(one))) is not None and change.direction == "worse"
    ]
    sure = [one for one in worse if not one.doubts]
    if sure:
        return RunsVerdict(
            exit_code=EXIT_DIFFERENCE,
            answer=f"{latest} is worse than the runs before it: {len(sure)} of "
            f"{counted(len(series), 'figure')}.",
            details=tuple(one.text for one in sure),
        )
    details = [*(_open(one) for one in series), *(one.text for one in worse)]
    details = [text for text in details if text]
    if details or not series:
        among = f"{len(details)} of {counted(len(series), 'figure')}" if series else "it has none"
        return RunsVerdict(
            exit_code=EXIT_INVALID,
            answer=f"Whether {latest} is worse than the runs before it cannot be judged: {among}.",
            details=tuple(details),
        )
    return RunsVerdict(exit_code=EXIT_FINE)


def _place(one: SeriesCell) -> tuple[object, ...]:
    return tuple(getattr(one, name) for name in SeriesCell.model_fields)


def _open(one: RunSeries) -> str:
    """Why the last figure of a series cannot be judged; empty if it can."""
    last, count = one.points[-1], len(one.searched)
    where = (
        f"{METRICS[one.metric].name} of {one.about} at {counted(one.workers, 'worker')} on "
        f"{one.label}"
    )
    if not last.searched:
        return f"{where}: {last.why or 'known in bins alone'}"
    if count < RULE.runs:
        return f"{where}: {counted(count, 'comparable run')} of the {RULE.runs} that are needed"
    return ""
