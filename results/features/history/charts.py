"""Charts of a history: one for each metric, a panel for each cell, a line for each layout with its
release, over time.

A line joins comparable runs alone. Provisional figures are hollow, those that are not comparable
are crosses that no line passes through. A dashed line across is where a change was found, and its
change is written beside it. A figure far outside its neighbours is called an outlier.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from weighbridge.results.features.history.history import History, RunChange
from weighbridge.results.features.history.run_series import RULE, HistoryPoint, RunSeries
from weighbridge.results.figures.metric import MetricFigure
from weighbridge.results.figures.metrics import METRICS, MetricKey
from weighbridge.results.judge.comparison import Kind
from weighbridge.results.judge.contrast import ALWAYS
from weighbridge.results.numbers import UNKNOWN, counted, show_figure, show_percent, upper
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
from weighbridge.results.show.scales import AxisScale, nice_top

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

Cell = tuple[str, Kind, int]
"""Suite, kind of requests, and worker count."""


def history_charts(history: History) -> tuple[Chart, ...]:
    """A chart for throughput and one for p90; none without any figure of it."""
    frame = _Frame(history)
    charts = (_chart(history, metric, frame) for metric in ALWAYS)
    return tuple(chart for chart in charts if chart is not None)


def _chart(history: History, metric: MetricKey, frame: _Frame) -> Chart | None:
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
    return Chart(
        key=f"history-{metric}",
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
    rows = [_row(one, point, frame, y.low) for one in series for point in one.points]
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
            "encoding": {
                "x": {**frame.x, "field": "_day"},
                "y": y.encoding(),
                "color": COLOUR,
            },
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


def _row(one: RunSeries, point: HistoryPoint, frame: _Frame, floor: float) -> dict[str, Any]:
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
        "shown": _shown(point.figure),
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
    rule = layer("rule", "moment", x="at", color=BAD)
    rule["encoding"] |= FULL_HEIGHT
    layers = [
        rule,
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


def _shown(figure: MetricFigure) -> str:
    if figure.within is not None:
        return str(figure.within)
    return f"{'≥ ' * figure.at_least}{show_figure(figure.value)}" if figure.value else UNKNOWN
