"""Charts of a history: a figure for each metric, a panel for each cell, a line for each layout with
its release, over time.

A line joins comparable runs alone. Provisional figures are hollow, those that are not comparable
are crosses that no line passes through. A dashed line across is where a change was found, and its
change is written beside it. A figure far outside its neighbours is called an outlier.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from weighbridge.results.analysis.contrast import ALWAYS
from weighbridge.results.analysis.history.change_points import RULE
from weighbridge.results.analysis.history.history import History, RunChange
from weighbridge.results.analysis.history.run_series import HistoryPoint, RunSeries, Standing
from weighbridge.results.analysis.kinds import Kind
from weighbridge.results.charts.panels import AxisScale, Figure, Label, Mark, Panel, Spot, Trace
from weighbridge.results.charts.placing import nice_top
from weighbridge.results.figures import UNKNOWN, counted, show_figure, show_percent, upper
from weighbridge.results.metric import MetricFigure
from weighbridge.results.metrics import METRICS, MetricKey
from weighbridge.results.record.resolved import PlannedLayout

DAY: Final = timedelta(days=1)
WIDTH: Final = 520
TICKS: Final = 3
"""So many steps between dates have room."""
_REACH: Final = 0.12
"""How far the means before and after a change are drawn, as a share of the axis."""
_CAPTION: Final = (
    "A line joins comparable runs: the same suite, settings and hosts. Hollow: provisional. "
    "×: not comparable, at its figure or at the bottom. Across: a change, in brackets if it is "
    "provisional; dashed beside it: the means before and after. Outlier: far outside its "
    "neighbours, and no change."
)

Cell = tuple[str, Kind, int]
"""Suite, kind of requests, and worker count."""


def history_charts(history: History) -> tuple[Figure, ...]:
    """A figure for throughput and one for p90; none without any figure of it."""
    frame = _Frame(history)
    found = [_figure(history, metric, frame) for metric in ALWAYS]
    return tuple(one for one in found if one is not None)


def _figure(history: History, metric: MetricKey, frame: _Frame) -> Figure | None:
    cells: dict[Cell, list[RunSeries]] = {}
    for one in history.series:
        if one.metric == metric and any(point.figure.value for point in one.points):
            cells.setdefault((one.suite, one.kind, one.workers), []).append(one)
    if not cells:
        return None
    changes = [
        change for one in history.changes for change in one.changes if change.metric == metric
    ]
    suites = len({suite for suite, _, _ in cells}) > 1
    panels = tuple(
        _panel(number, mine, [one for one in changes if _cell(one) == place], frame, suites=suites)
        for number, (place, mine) in enumerate(cells.items(), start=1)
    )
    name = METRICS[metric].name
    return Figure(
        name=f"history-{metric}",
        title=f"{upper(name)} over time",
        finding=_finding(changes, metric, history),
        caption=f"{_CAPTION} {history.despite_words}".rstrip(),
        panels=panels,
        layouts=frame.layouts,
    )


def _cell(one: RunChange) -> Cell:
    return one.suite, one.kind, one.workers


def _finding(changes: Sequence[RunChange], metric: MetricKey, history: History) -> str:
    name = METRICS[metric].name
    if not changes:
        of_it = [one for one in history.series if one.metric == metric]
        searched = sum(len(one.searched) >= RULE.runs for one in of_it)
        if not searched:
            return f"No change of {name} can be found yet: that needs {RULE.runs} comparable runs"
        among = f"{counted(searched, 'cell')} of {counted(len(history.runs), 'run')}"
        return f"No lasting change of {name} was found in {among}"
    last = max(changes, key=lambda one: (not one.doubts, one.begun, abs(one.ratio - 1)))
    more = len(changes) - 1
    others = f"; {counted(more, 'more change')}" if more else ""
    doubted = "Provisional: " if last.doubts else ""
    return upper(
        f"{doubted}{name} of {last.about} at {counted(last.workers, 'worker')} on {last.label}: "
        f"{show_percent(last.ratio)} from {last.begun:%Y-%m-%d} on{others}"
    )


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
    points = [(one, point) for one in series for point in one.points]
    suite = f", {first.suite}" if suites else ""
    return Panel(
        key=f"cell-{number}",
        title=f"{upper(first.about)}, {counted(first.workers, 'worker')}{suite}",
        finding="; ".join(f"{one.label} {_mark(one)}" for one in changes),
        x=frame.scale,
        y=y,
        marks=(
            *_change_marks(changes, frame),
            Mark(
                kind="interval",
                spots=tuple(
                    _spot(one, point, frame, ends[0]).model_copy(update={"y2": ends[1]})
                    for one, point in points
                    if point.searched and len(ends := _ends(point.figure)) == 2
                ),
            ),
            Mark(kind="thin line", traces=tuple(_lines(series, frame))),
            _points("small point", "sure", points, frame),
            _points("small hollow", "provisional", points, frame),
            Mark(
                kind="beside",
                spots=tuple(
                    Spot(
                        x=frame.days(point.begun),
                        y=point.figure.value or 0.0,
                        tone="ink",
                        text=point.outlier.partition(";")[0],
                    )
                    for one, point in points
                    if point.outlier
                ),
            ),
            Mark(
                kind="cross",
                spots=tuple(
                    _spot(one, point, frame, point.figure.value or y.low)
                    for one, point in points
                    if point.standing == "not comparable"
                ),
            ),
        ),
        width=WIDTH,
        labels=tuple(_labels(series, frame)),
        head=("Layout", "Run", "Begun (UTC)", metric.unit, "Standing", "Notes"),
        lines=tuple(
            (
                one.label,
                point.run,
                f"{point.begun:%Y-%m-%d %H:%M}",
                _shown(point.figure),
                point.standing,
                point.notes,
            )
            for one, point in points
        ),
    )


class _Frame:
    """What all panels share: days since the first run, with dates as ticks, and layouts' styles."""

    def __init__(self, history: History) -> None:
        begun = [run.begun for run in history.runs]
        self.first, last = min(begun), max(begun)
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
            expression=f"utcFormat({start_ms:.0f} + datum.value * 86400000, '{form}')",
            title=f"{self.first:%Y-%m-%d}, UTC" if span < 2 else "",
            grid=False,
        )

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


def _spot(one: RunSeries, point: HistoryPoint, frame: _Frame, y: float) -> Spot:
    tip = (
        f"{one.label}, {point.run}, {point.begun:%Y-%m-%d %H:%M}: {_shown(point.figure)} "
        f"{METRICS[one.metric].unit}"
    )
    about = point.notes
    return Spot(
        x=frame.days(point.begun),
        y=y,
        layout=frame.names[one.label],
        tip=f"{tip}; {about}" if about else tip,
    )


def _points(
    kind: Literal["small point", "small hollow"],
    standing: Standing,
    points: Sequence[tuple[RunSeries, HistoryPoint]],
    frame: _Frame,
) -> Mark:
    return Mark(
        kind=kind,
        spots=tuple(
            _spot(one, point, frame, point.figure.value or 0.0)
            for one, point in points
            if point.standing == standing and point.searched
        ),
    )


def _lines(series: Sequence[RunSeries], frame: _Frame) -> Iterator[Trace]:
    for one in series:
        if one.searched:
            yield Trace(
                layout=frame.names[one.label],
                x=tuple(frame.days(point.begun) for point in one.searched),
                y=tuple(point.figure.value or 0.0 for point in one.searched),
            )


def _change_marks(changes: Sequence[RunChange], frame: _Frame) -> Iterator[Mark]:
    """Where the changes are, the means before and after, and by how much."""
    if not changes:
        return
    yield Mark(
        kind="rule",
        spots=tuple(
            Spot(
                x=frame.days(one.begun),
                tone="muted" if one.doubts or one.direction == "better" else "bad",
                tip=one.text,
            )
            for one in changes
        ),
    )
    reach = _REACH * (frame.scale.high - frame.scale.low)
    yield Mark(
        kind="dashed line",
        traces=tuple(
            Trace(x=ends, y=(level, level), tone="ink")
            for one in changes
            for at in [frame.days(one.begun)]
            for ends, level in (((at - reach, at), one.before), ((at, at + reach), one.after))
        ),
    )
    yield Mark(
        kind="beside",
        spots=tuple(
            Spot(x=frame.days(one.begun), y=one.after, tone="ink", text=_mark(one))
            for one in changes
        ),
    )


def _mark(one: RunChange) -> str:
    words = show_percent(one.ratio)
    return f"({words})" if one.doubts else words


def _labels(series: Sequence[RunSeries], frame: _Frame) -> Iterator[Label]:
    last: Mapping[str, HistoryPoint] = {
        one.label: point
        for one in sorted(series, key=lambda one: one.points[-1].begun)
        for point in one.searched
    }
    for label, point in last.items():
        yield Label(
            layout=frame.names[label],
            x=frame.days(point.begun),
            y=point.figure.value or 0.0,
            text=label,
        )


def _ends(figure: MetricFigure) -> tuple[float, ...]:
    """The interval over the repeats, if both ends are known and above 0."""
    return (figure.low, figure.high) if figure.low and figure.high else ()


def _shown(figure: MetricFigure) -> str:
    if figure.within is not None:
        return str(figure.within)
    return f"{'≥ ' * figure.at_least}{show_figure(figure.value)}" if figure.value else UNKNOWN
