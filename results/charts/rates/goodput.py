"""Goodput over the offered rate: a line for each layout beside the line on which all is served.

Refusals are written beside the points. What cannot be judged is a cross that no line passes
through.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from weighbridge.common.csv_text import csv_lines
from weighbridge.results.analysis.overload import (
    SHARES,
    GoodputCurve,
    OfferedPoint,
    OverloadKind,
    headline_of,
)
from weighbridge.results.charts.chart_source import ChartSource
from weighbridge.results.charts.panels import AxisScale, Figure, Label, Mark, Panel, Spot, Trace
from weighbridge.results.doubt import touching
from weighbridge.results.figures import show_figure, upper
from weighbridge.results.metrics import METRICS
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM

_NAMED_PERCENT: Final = 5.0
"""Refusals from this share on are written beside a point."""
_HEAD: Final = ("Layout", "offered/s", "goodput/s", *(f"{METRICS[key].name}, %" for key in SHARES))


def goodput_chart(source: ChartSource) -> tuple[Figure, ...]:
    """The figure of a run with workloads that may be beyond capacity; else none."""
    kinds = source.overload
    if not kinds:
        return ()
    repeats = source.plan.suite.repeats
    bars = " Bars: 95 % interval over the repeats." if repeats > 1 else " One repeat."
    few = (
        f" Fewer than {REPEATS_FOR_A_CLAIM} repeats: provisional."
        if repeats < REPEATS_FOR_A_CLAIM
        else ""
    )
    figure = Figure(
        name="goodput-over-rate",
        title="Goodput over the offered rate",
        finding=headline_of(kinds),
        caption="Requests come at a constant rate, and latency counts from their intended start. "
        f"Dotted: everything is served. Beside points: refused requests.{bars} "
        f"Hollow: with doubts. × cannot be judged.{few}",
        data=_csv(kinds),
        panels=tuple(_panel(kind) for kind in kinds),
        layouts=source.layouts,
    )
    return (figure,)


def _panel(kind: OverloadKind) -> Panel:
    points = [(curve.layout, point) for curve in kind.curves for point in curve.points]
    most = max((point.row.figure("goodput").high or point.goodput or 0.0) for _, point in points)
    x = AxisScale.from_zero(max(point.offered_per_s for _, point in points), "offered, op/s")
    y = AxisScale.from_zero((most or 1.0) * 1.1, "goodput, op/s")
    end = min(x.high, y.high)
    judged = [(layout, point) for layout, point in points if point.judged]
    marks = (
        Mark(kind="dotted line", traces=(Trace(x=(0.0, end), y=(0.0, end), tone="muted"),)),
        Mark(
            kind="interval",
            spots=tuple(
                Spot(x=point.offered_per_s, y=one.low, y2=min(one.high, y.high), layout=layout)
                for layout, point in judged
                if (one := point.row.figure("goodput")).low is not None and one.high is not None
            ),
        ),
        Mark(kind="line", traces=tuple(one for curve in kind.curves for one in _lines(curve))),
        Mark(kind="point", spots=_spots(judged, doubted=False)),
        Mark(kind="hollow", spots=_spots(judged, doubted=True)),
        Mark(
            kind="cross",
            spots=tuple(_spot(layout, point) for layout, point in points if not point.judged),
        ),
        Mark(
            kind="beside",
            spots=tuple(
                Spot(
                    x=point.offered_per_s,
                    y=point.goodput,
                    layout=layout,
                    text=f"{show_figure(refused, 2)} % refused",
                )
                for layout, point in judged
                if (refused := point.refused) is not None and refused >= _NAMED_PERCENT
            ),
        ),
    )
    return Panel(
        key=kind.key,
        title=upper(kind.about),
        finding=_finding(kind),
        x=x,
        y=y,
        marks=marks,
        labels=tuple(_label(curve) for curve in kind.curves),
        alt_text=" ".join(kind.sentences),
        head=(*_HEAD, "Repeats", "Notes"),
        lines=tuple(
            (
                layout,
                show_figure(point.offered_per_s),
                show_figure(point.goodput),
                *(show_figure(point.row.value(key), 2) for key in SHARES),
                str(point.row.repeats),
                point.note,
            )
            for layout, point in points
        ),
    )


def _lines(curve: GoodputCurve) -> list[Trace]:
    runs = [list(run) for judged, run in groupby(curve.points, lambda one: one.judged) if judged]
    return [
        Trace(
            layout=curve.layout,
            x=tuple(point.offered_per_s for point in run),
            y=tuple(point.goodput or 0.0 for point in run),
        )
        for run in runs
    ]


def _spots(judged: Sequence[tuple[str, OfferedPoint]], *, doubted: bool) -> tuple[Spot, ...]:
    return tuple(
        _spot(layout, point)
        for layout, point in judged
        if bool(touching(point.row.doubts, "goodput")) == doubted
    )


def _spot(layout: str, point: OfferedPoint) -> Spot:
    said = point.shares if point.judged else point.note
    tip = f"{layout} at {show_figure(point.offered_per_s)}/s: {show_figure(point.goodput)}/s"
    return Spot(
        x=point.offered_per_s,
        y=point.goodput or 0.0,
        layout=layout,
        tip=f"{tip}, {said}" if said else tip,
    )


def _label(curve: GoodputCurve) -> Label:
    drawn = curve.judged or curve.points
    last, kept = drawn[-1], curve.kept
    note = "" if kept is None else f"keeps up to {show_figure(kept.offered_per_s)}/s"
    return Label(layout=curve.layout, x=last.offered_per_s, y=last.goodput or 0.0, note=note)


def _finding(kind: OverloadKind) -> str:
    """The range of what the layouts keep of their best at the highest rate."""
    shares = [
        f"{100 * (curve.judged[-1].goodput or 0.0) / curve.best.goodput:.0f} % {curve.layout}"
        for curve in kind.curves
        if curve.best is not None and curve.best.goodput
    ]
    return f"of its best at the highest rate: {', '.join(shares)}" if shares else ""


def _csv(kinds: Sequence[OverloadKind]) -> str:
    columns = [METRICS[key].column for key in SHARES]
    goodput = METRICS["goodput"]
    lines = [
        (
            *(curve.layout, point.row.api, point.row.driver, point.row.workload),
            *(point.row.operation, point.row.object_size_bytes, point.row.workers),
            *(point.offered_per_s, point.goodput),
            *(point.row.figure("goodput").low, point.row.figure("goodput").high),
            *(point.row.value(key) for key in SHARES),
            *(point.row.repeats, point.judged),
        )
        for kind in kinds
        for curve in kind.curves
        for point in curve.points
    ]
    head = (
        *("layout", "api", "driver", "workload", "operation", "object_size_bytes", "connections"),
        *("offered_ops_s", goodput.column, *goodput.spread_columns, *columns),
        *("repeats", "judged"),
    )
    return csv_lines(head, lines)
