"""The history of many runs: the series of their figures, and the changes in them, in sentences.

A change is told if Otava finds it among comparable figures and it is larger than the practical
threshold. It is provisional if some of its figures are, unless the others alone make it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, Final, Literal

from pydantic import PositiveFloat, PositiveInt

from weighbridge.common.errors import EXIT_DIFFERENCE, EXIT_FINE, EXIT_INVALID
from weighbridge.common.record import Record
from weighbridge.results.features.compare_runs import RunsVerdict
from weighbridge.results.features.run_guard import (
    ALL,
    GUARD_FACTS,
    ComparedRun,
    Difference,
    guard,
    refuse_unknown,
    settings_apart,
)
from weighbridge.results.features.run_series import (
    OUTLIER_RULE,
    RULE,
    ChangePoint,
    HistoryPoint,
    HistoryRun,
    Outlying,
    RunSeries,
    SeriesBreak,
    SeriesCell,
    begun,
    break_words,
    change_points,
    differ,
    difference_words,
    outlying,
    series_of,
)
from weighbridge.results.figures.doubt import Doubt, doubt_brief
from weighbridge.results.figures.metrics import METRICS, PRIMARY, MetricKey
from weighbridge.results.figures.reading import MetricFigure
from weighbridge.results.numbers import (
    counted,
    grouped,
    listed,
    show_figure,
    show_p,
    show_percent,
    upper,
)
from weighbridge.results.run.resolved import PlannedLayout
from weighbridge.results.show.chart import (
    BAD,
    COLOUR,
    COMPARABLE,
    FULL_HEIGHT,
    INK,
    MUTED,
    NOT_COMPARABLE,
    PROVISIONAL,
    Chart,
    End,
    Panel,
    Spec,
    layer,
    standing_layers,
)
from weighbridge.results.show.page import render
from weighbridge.results.show.scales import AxisScale, nice_top
from weighbridge.results.show.section import sortable
from weighbridge.results.show.table import Filled, Table, columns, line
from weighbridge.results.show.tables import doubt_texts

_PASSING: Final = ("begun at", "suite", "repeats", "layouts", "workloads")
"""What differs between runs and changes none of their figures."""


class RunChange(SeriesCell, ChangePoint):
    """A change of one metric of one cell, from one run on."""

    run: str
    """The first run after the change."""
    begun: datetime
    previous: str
    """The last run of the figures before it."""
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
            f"{self.words}: {show_percent(self.ratio)} ({figures}) from {self.run} on; "
            f"{self.runs_before} runs before, {self.runs_after} since{between}; "
            f"p {show_p(self.p)}{doubted}"
        )


class RunOutlier(SeriesCell, Outlying):
    """A figure of one run that is far outside those of its neighbours."""

    run: str
    begun: datetime
    value: PositiveFloat
    in_a_row: PositiveInt
    """How many runs one after the other are outliers in the same direction, with this one."""
    direction: Literal["better", "worse"]
    doubts: tuple[Doubt, ...] = ()

    @property
    def ratio(self) -> float:
        return self.value / self.middle

    @property
    def brief(self) -> str:
        row = "one run" if self.in_a_row == 1 else f"one of {self.in_a_row} runs in a row"
        return "; ".join(filter(None, (f"outlier, {row}", doubt_brief(self.doubts))))


def _in_cells(moved: Sequence[RunChange | RunOutlier]) -> str:
    """Such as `throughput +10 % in 4 cells (+8 % to +12 %), better`."""
    texts = []
    for metric, cells in grouped(moved, lambda one: one.metric).items():
        ratios = sorted(cell.ratio for cell in cells)
        low, middle, high = (show_percent(ratios[at]) for at in (0, len(ratios) // 2, -1))
        ends = f" ({low} to {high})" if low != high else ""
        ways = " and ".join(sorted({cell.direction for cell in cells}))
        cell_count = counted(len(cells), "cell")
        texts.append(f"{METRICS[metric].name} {middle} in {cell_count}{ends}, {ways}")
    return "; ".join(texts)


class LayoutChange(Record):
    """All changes of a layout that begin with the same run."""

    label: str
    run: str
    begun: datetime
    changes: tuple[RunChange, ...]
    differs: tuple[Difference, ...]
    """What else differs since the last run before: guard facts, settings; `a` is before."""

    @property
    def is_sure(self) -> bool:
        """Whether one of them is not provisional."""
        return any(not one.doubts for one in self.changes)

    @property
    def differs_words(self) -> str:
        return difference_words(self.differs)

    @property
    def brief(self) -> str:
        most = max(self._told, key=lambda one: abs(one.ratio - 1))
        what = f"{METRICS[most.metric].name} of {most.about} on {self.label}"
        return f"{what} {show_percent(most.ratio)} from {self.begun:%Y-%m-%d} on"

    @property
    def text(self) -> str:
        word = "" if self.is_sure else "provisional: "
        since = f"{self.label} from {self.run} on ({self.begun:%Y-%m-%d})"
        return f"{since}: {word}{_in_cells(self._told)}"

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
        """A sentence for each run and layout that has outliers."""
        places = grouped(self.outliers, lambda one: (one.begun, one.run, one.label))
        return tuple(
            f"{label} in {run} ({begun:%Y-%m-%d}): "
            f"{', '.join(dict.fromkeys(one.brief for one in outliers))}: {_in_cells(outliers)}"
            for (begun, run, label), outliers in sorted(places.items(), key=lambda each: each[0])
        )

    @property
    def headline(self) -> str:
        sure = [one for one in self.changes if one.is_sure]
        if sure:
            among = f"{counted(self.searched, 'cell')} of {counted(len(self.runs), 'run')}"
            return f"{counted(len(sure), 'change')} in {among}; the last: {sure[-1].brief}."
        doubted = f"; {len(self.changes)} provisional" if self.changes else ""
        return f"{self.no_change(self.searched)}{doubted}."

    def no_change(self, searched: int, of: str = "") -> str:
        """That no change was found in so many cells, or can be found yet."""
        if not searched:
            return f"No change{of} can be found yet: that needs {RULE.runs} comparable runs"
        among = f"{counted(searched, 'cell')} of {counted(len(self.runs), 'run')}"
        return f"No lasting change{of} found in {among}"


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
        if one.metric in PRIMARY:
            places = change_points([each.figure.value or 0.0 for each in one.searched], one.least)
            found += [_change(one, at, place) for at, place in places.items()]
            apart = _outliers(one, places)
            outliers += apart
        words = {each.run: each.brief for each in apart}
        points = tuple(
            point.model_copy(update={"outlier": words.get(point.run, "")}) for point in one.points
        )
        series.append(one.model_copy(update={"points": points}))
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
        searched=sum(one.metric in PRIMARY and len(one.searched) >= RULE.runs for one in series),
    )


def _outliers(series: RunSeries, changes: Iterable[int]) -> tuple[RunOutlier, ...]:
    """The outliers of a series, whose changes are there."""
    points = series.searched
    values = [one.figure.value or 0.0 for one in points]
    outliers = outlying(values, series.least, changes)
    up = {at: values[at] > one.middle for at, one in outliers.items()}
    in_a_row: dict[int, int] = {}
    for _, row in groupby(enumerate(up), lambda one: (one[1] - one[0], up[one[1]])):
        places = [at for _, at in row]
        in_a_row |= dict.fromkeys(places, len(places))
    return tuple(
        RunOutlier(
            **_cell_of(series),
            **one.model_dump(),
            run=points[at].run,
            begun=points[at].begun,
            value=values[at],
            in_a_row=in_a_row[at],
            direction=_direction(series, values[at] / one.middle),
            doubts=points[at].doubts,
        )
        for at, one in outliers.items()
    )


def _cell_of(one: SeriesCell) -> dict[str, Any]:
    """What a series, a change or an outlier is of."""
    return {name: getattr(one, name) for name in SeriesCell.model_fields}


def _direction(series: RunSeries, ratio: float) -> Literal["better", "worse"]:
    return "better" if METRICS[series.metric].better_at(ratio) else "worse"


def _change(series: RunSeries, at: int, found: ChangePoint) -> RunChange:
    sides = [series.searched[side] for side in found.sides(at)]
    previous, first = sides[0][-1], sides[1][0]
    return RunChange(
        **_cell_of(series),
        **found.model_dump(),
        run=first.run,
        begun=first.begun,
        previous=previous.run,
        direction=_direction(series, found.after / found.before),
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
    places = grouped(found, lambda one: (one.begun, one.run, one.label, one.layout))
    allowed = GUARD_FACTS if ALL in despite else despite
    for (moment, run, label, layout), mine in sorted(places.items()):
        before, after = of_run[mine[0].previous], of_run[run]
        pair = [(layout, layout)]
        differs = [
            *(one for one in guard(before, after, pair, [ALL]).unlike if one.fact in allowed),
            *(one for one in settings_apart(before, after, pair) if one.fact not in _PASSING),
        ]
        yield LayoutChange(
            label=label, run=run, begun=moment, changes=tuple(mine), differs=tuple(differs)
        )


def latest_verdict(history: History) -> RunsVerdict:
    """Worse if it is at a level that a change for the worse began, of any cell's throughput or p90.

    What could not be judged has not passed: figures that are not comparable, too few comparable
    runs, and changes that are provisional.
    """
    latest = history.runs[-1].run
    series = [
        one for one in history.series if one.metric in PRIMARY and one.points[-1].run == latest
    ]
    last = {str(_cell_of(one)): one for layout in history.changes for one in layout.changes}
    changes = [last[cell] for one in series if (cell := str(_cell_of(one))) in last]
    worse = [one for one in changes if one.direction == "worse"]
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


def _open(one: RunSeries) -> str:
    """Why the last figure of a series cannot be judged; empty if it can."""
    last, count = one.points[-1], len(one.searched)
    if not last.searched:
        return f"{one.words}: {last.why or 'known in bins alone'}"
    if count < RULE.runs:
        return f"{one.words}: {counted(count, 'comparable run')} of the {RULE.runs} that are needed"
    return ""


# The tables.


_CELL: Final = f"""
layout text | The layout. | Layout
release text | Its release; empty if it has none.
suite text | The suite.
workload text | The workload.
operation text | The operation on objects. | Requests
api text | The API.
driver text | What made the load.
workers integer | Worker count. | Workers
metric text | The metric: {", ".join(METRICS)}. | Metric
group integer | Runs of one number are comparable, within layout, suite and workload.
"""
FIGURES: Final = Table(
    "figures",
    "A line for each compared metric of each cell of each run, in order of time.",
    columns(f"""
{_CELL}
run text | Name of the run.
begun_at time | When the run began, UTC.
value number | The figure, in the unit of its metric; unknown for one in a bin.
low number | Lower end of its 95 % interval over the repeats.
high number | Upper end of that.
bin_low_ms number | Lower edge of its bin, where the driver counts in bins.
bin_high_ms number | Upper edge of that.
unit text | Unit of the metric.
standing text | sure, provisional (a mild doubt) or not comparable (a grave one, or not valid).
doubts texts | Doubts about it, each with its grade.
why text | Why it is not comparable.
outlier text | That it is far outside those of its neighbours, and no change; empty: it is not.
"""),
)
CHANGES: Final = Table(
    "changes",
    "A line for each change of a metric of a cell, in order of time.",
    columns(f"""
{_CELL}
run text | The first run after the change. | Run
begun_at time | When that run began, UTC. | From
previous text | The last run of the figures before it.
before number | Mean of the figures before it. | Before
after number | Mean of the figures after it. | After
ratio number | After relative to before. | Change
runs_before integer | Figures before it, since the last change. | Runs
runs_after integer | Figures after it, until the next change.
passing integer | Figures between, at levels that did not last.
p number | P-value of Student's t-test, not corrected. | p
direction text | better or worse. | Verdict
doubts texts | Doubts about its figures, unless those without make the change: then provisional.
text text | The change in a sentence.
"""),
)


def history_tables(history: History) -> tuple[Filled, Filled]:
    """Figures and changes."""
    figures = [
        line(
            point,
            point.figure,
            series,
            begun_at=point.begun,
            bin_low_ms=None if point.figure.within is None else point.figure.within.low_ms,
            bin_high_ms=None if point.figure.within is None else point.figure.within.high_ms,
            unit=METRICS[series.metric].unit,
            doubts=doubt_texts(point.doubts),
        )
        for series in history.series
        for point in series.points
    ]
    changes = [
        line(one, begun_at=one.begun, doubts=doubt_texts(one.doubts)).showing(_shown_change(one))
        for layout in history.changes
        for one in layout.changes
    ]
    return Filled(FIGURES, tuple(figures)), Filled(CHANGES, tuple(changes))


def _shown_change(one: RunChange) -> dict[str, str]:
    metric = METRICS[one.metric]
    passed = f", {one.passing} between left out" if one.passing else ""
    return {
        "begun_at": f"{one.begun:%Y-%m-%d}",
        "layout": one.label,
        "operation": one.about,
        "metric": metric.name,
        "before": f"{show_figure(one.before)} {metric.unit}",
        "after": f"{show_figure(one.after)} {metric.unit}",
        "ratio": show_percent(one.ratio),
        "runs_before": f"{one.runs_before} and {one.runs_after}{passed}",
        "p": show_p(one.p),
        "direction": one.standing,
    }


# The page.


def history_page(
    history: History,
    charts: Sequence[Chart],
    *,
    version: str,
    gone: Sequence[str] = (),
    left_out: Sequence[str] = (),
) -> str:
    """The page. `gone` runs have no folder any more, `left_out` says what could not be read."""
    _, changes = history_tables(history)
    caption = (
        "Every cell that changed. Before and after are means over the runs on each side, whose "
        "numbers are in “Runs”. The same data are in changes.csv."
    )
    doubted = [place for place, doubts in enumerate(changes.column("doubts")) if doubts]
    heads = {one.name: one.head for one in CHANGES.columns if one.head}
    return render(
        "history.html.j2",
        charts,
        charts[0].layouts if charts else (),
        history=history,
        version=version,
        drawn=charts,
        changes=replace(sortable(caption, changes, heads), bad=doubted),
        breaks=break_words(history.breaks),
        gone=gone,
        left_out=left_out,
        rule=RULE,
        outlier_rule=OUTLIER_RULE,
    )


# The charts.


DAY: Final = timedelta(days=1)
TICKS: Final = 3
"""So many steps between dates have room."""
_REACH: Final = 0.12
"""How far the means before and after a change are drawn, as a share of the axis."""
_STANDING: Final = {"sure": COMPARABLE, "provisional": PROVISIONAL}
_CAPTION: Final = (
    "A line joins comparable runs: the same suite, settings and hosts. Hollow: provisional. "
    "×: not comparable. Across: a change, in brackets if it is provisional, with the means before "
    "and after. Outlier: far outside its neighbours, and no change."
)


def history_charts(history: History) -> tuple[Chart, ...]:
    """A chart for throughput and one for p90; none without any figure of it."""
    frame = _Frame(history)
    charts = (_chart(history, metric, frame) for metric in PRIMARY)
    return tuple(chart for chart in charts if chart is not None)


def _chart(history: History, metric: MetricKey, frame: _Frame) -> Chart | None:
    known = [
        one
        for one in history.series
        if one.metric == metric and any(point.figure.value for point in one.points)
    ]
    cells = grouped(known, lambda one: (one.suite, one.kind, one.workers))
    if not cells:
        return None
    changes = [
        change for one in history.changes for change in one.changes if change.metric == metric
    ]
    suites = len({suite for suite, _, _ in cells}) > 1
    panels = []
    for number, (place, series) in enumerate(cells.items(), start=1):
        own = [one for one in changes if (one.suite, one.kind, one.workers) == place]
        panels.append(_panel(number, series, own, frame, suites=suites))
    name = METRICS[metric].name
    return Chart(
        key=f"history-{metric}",
        title=f"{upper(name)} over time",
        finding=_finding(changes, metric, history),
        caption=f"{_CAPTION} {history.despite_words}".rstrip(),
        panels=tuple(panels),
        layouts=frame.layouts,
    )


def _finding(changes: Sequence[RunChange], metric: MetricKey, history: History) -> str:
    if not changes:
        of_it = [one for one in history.series if one.metric == metric]
        searched = sum(len(one.searched) >= RULE.runs for one in of_it)
        return history.no_change(searched, f" of {METRICS[metric].name}")
    last = max(changes, key=lambda one: (not one.doubts, one.begun, abs(one.ratio - 1)))
    more = len(changes) - 1
    others = f"; {counted(more, 'more change')}" if more else ""
    doubted = "Provisional: " if last.doubts else ""
    change = f"{show_percent(last.ratio)} from {last.begun:%Y-%m-%d} on"
    return upper(f"{doubted}{last.words}: {change}{others}")


def _panel(
    number: int,
    series: Sequence[RunSeries],
    changes: Sequence[RunChange],
    frame: _Frame,
    *,
    suites: bool,
) -> Panel:
    first = series[0]
    metric = METRICS[first.metric]
    values = [
        value
        for one in series
        for point in one.points
        for value in (point.figure.value, *_ends(point.figure))
        if value
    ]
    y = AxisScale.around(values, metric.unit)
    rows = [_point_row(one, point, frame, y.low) for one in series for point in one.points]
    line = layer("line", "path", "datum._searched", y="value")
    line["encoding"]["detail"] = [{"field": name, "type": "nominal"} for name in ("label", "group")]
    outliers = layer("text", "note", "isValid(datum._outlier)", y="value", text="_outlier")
    outliers["mark"]["dy"] = -14
    suite = f", {first.suite}" if suites else ""
    interval = "datum._searched && isValid(datum.low)"
    return Panel(
        key=f"cell-{number}",
        title=f"{upper(first.about)}, {counted(first.workers, 'worker')}{suite}",
        finding="; ".join(f"{one.label} {_mark(one)}" for one in changes),
        rows=rows,
        spec={
            "encoding": {"x": {**frame.x, "field": "_day"}, "y": y.encoding(), "color": COLOUR},
            "layer": [
                *_change_layers(changes, frame),
                layer("rule", "interval", interval, y="low", y2="high"),
                line,
                *standing_layers("value"),
                outliers,
            ],
        },
        ends=tuple(_names(series, frame)),
        y=y,
    )


def _point_row(one: RunSeries, point: HistoryPoint, frame: _Frame, floor: float) -> dict[str, Any]:
    ends = _ends(point.figure)
    return {
        "layout": frame.names[one.label],
        "label": one.label,
        "run": point.run,
        "begun_utc": f"{point.begun:%Y-%m-%d %H:%M}",
        "metric": one.metric,
        "value": point.figure.value,
        "low": ends[0] if ends else None,
        "high": ends[1] if ends else None,
        "shown": point.shown,
        "group": one.group,
        "standing": _STANDING.get(point.standing, NOT_COMPARABLE),
        "notes": point.notes,
        "_day": frame.days(point.begun),
        "_searched": point.searched,
        "_outlier": point.outlier.partition(";")[0] or None,
        "_at": point.figure.value or floor,
    }


class _Frame:
    """What all panels share: days since the first run, with dates as ticks, and layouts' styles."""

    def __init__(self, history: History) -> None:
        self.first, last = history.runs[0].begun, history.runs[-1].begun
        span = (last - self.first) / DAY
        margin = 0.03 * span or 0.5
        _, step = nice_top(span or 1.0)
        step *= 2 if span > TICKS * step else 1
        start_ms = self.first.replace(tzinfo=UTC).timestamp() * 1000
        form = "%H:%M" if span < 2 else "%Y-%m-%d"
        self.scale = AxisScale(
            low=-margin,
            high=span + margin,
            ticks=tuple(number * step for number in range(int(span / step) + 1)),
            title=f"{self.first:%Y-%m-%d}, UTC" if span < 2 else "",
        )
        expression = f"utcFormat({start_ms:.0f} + datum.value * 86400000, '{form}')"
        self.x = self.scale.encoding(labelExpr=expression)
        self.names: dict[str, str] = {}
        for one in history.series:
            # Two releases of a layout are two lines; the first has the layout's own colour.
            taken = one.layout in self.names.values()
            free = f"{one.layout[:36]}-{len(self.names) + 1}" if taken else one.layout
            self.names.setdefault(one.label, free)
        gateways = {self.names[one.label]: one.gateway for one in history.series}
        self.layouts = tuple(
            PlannedLayout(name=name, gateway=gateway) for name, gateway in gateways.items()
        )

    def days(self, moment: datetime) -> float:
        return (moment - self.first) / DAY


def _change_layers(changes: Sequence[RunChange], frame: _Frame) -> list[Spec]:
    """Where the changes are, the means before and after, and by how much."""
    reach = _REACH * (frame.scale.high - frame.scale.low)
    rows = []
    for one in changes:
        at = frame.days(one.begun)
        rows.append(
            {
                "at": at,
                "from": at - reach,
                "to": at + reach,
                "before": one.before,
                "after": one.after,
                "text": _mark(one),
            }
        )
    layers = [
        layer("rule", "moment", x="at", color=BAD, **FULL_HEIGHT),
        layer("rule", "level", x="from", x2="at", y="before", color=MUTED),
        layer("rule", "level", x="at", x2="to", y="after", color=MUTED),
        layer("text", "figure", x="at", y="after", text="text", color=INK),
    ]
    return [{**one, "data": {"values": rows}} for one in layers] if rows else []


def _mark(one: RunChange) -> str:
    words = show_percent(one.ratio)
    return f"({words})" if one.doubts else words


def _names(series: Sequence[RunSeries], frame: _Frame) -> Iterator[End]:
    last = {
        one.label: point
        for one in sorted(series, key=lambda one: one.points[-1].begun)
        for point in one.searched
    }
    for label, point in last.items():
        day, value = frame.days(point.begun), point.figure.value or 0.0
        yield End(frame.names[label], day, value, text=label)


def _ends(figure: MetricFigure) -> tuple[float, ...]:
    """The interval over the repeats, if both ends are known and above 0."""
    return (figure.low, figure.high) if figure.low and figure.high else ()
