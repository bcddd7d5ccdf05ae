"""Goodput over the offered rate: a line for each layout beside the line on which all is served."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final

from weighbridge.results.analysis.overload import (
    SHARES,
    GoodputCurve,
    OverloadKind,
)
from weighbridge.results.doubt import touching
from weighbridge.results.figures import show_figure, upper
from weighbridge.results.metrics import METRICS
from weighbridge.results.show.chart import (
    COLOUR,
    COMPARABLE,
    MUTED,
    NOT_COMPARABLE,
    PROVISIONAL,
    Chart,
    End,
    Panel,
    layer,
    standing_layers,
)
from weighbridge.results.show.chart_source import ChartSource, place_of
from weighbridge.results.show.scales import AxisScale
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM

_NAMED_PERCENT: Final = 5.0
"""Refusals from this share on are written beside a point."""


def goodput_chart(source: ChartSource) -> tuple[Chart, ...]:
    """The chart of a run with workloads that may be beyond capacity; else none."""
    kinds, repeats = source.overload, source.plan.suite.repeats
    if not kinds:
        return ()
    bars = " Bars: 95 % interval over the repeats." if repeats > 1 else " One repeat."
    few = (
        f" Fewer than {REPEATS_FOR_A_CLAIM} repeats: provisional."
        if repeats < REPEATS_FOR_A_CLAIM
        else ""
    )
    chart = Chart(
        key="goodput-over-rate",
        title="Goodput over the offered rate",
        finding="; ".join(kind.headline for kind in kinds),
        caption="Requests come at a constant rate, and latency counts from their intended start. "
        f"Dotted: everything is served. Beside points: refused requests.{bars} "
        f"Hollow: provisional. ×: cannot be judged.{few}",
        panels=tuple(_panel(kind) for kind in kinds),
        layouts=source.layouts,
    )
    return (chart,)


def _panel(kind: OverloadKind) -> Panel:
    points = [point for curve in kind.curves for point in curve.points]
    most = max((point.row.figure("goodput").high or point.goodput or 0.0) for point in points)
    x = AxisScale.from_zero(max(point.offered_per_s for point in points), "offered, op/s")
    y = AxisScale.from_zero((most or 1.0) * 1.1, "goodput, op/s")
    column = METRICS["goodput"].column
    low, high = METRICS["goodput"].spread_columns
    end = min(x.high, y.high)
    served = layer("line", "uncounted", x="at", y="at", color=MUTED)
    served["data"] = {"values": [{"at": 0.0}, {"at": end}]}
    interval = layer("rule", "interval", f"isValid(datum.{high})", y=low, y2=high)
    interval["mark"]["clip"] = True
    line = layer("line", "path", "isValid(datum._stretch)", y=column)
    line["encoding"]["detail"] = {"field": "_stretch", "type": "nominal"}
    refused = layer("text", "note", "isValid(datum._text)", y=column, text="_text")
    return Panel(
        key=kind.key,
        title=upper(kind.about),
        finding=_finding(kind),
        rows=[row for curve in kind.curves for row in _rows(curve)],
        spec={
            "encoding": {
                "x": {**x.encoding(), "field": "offered_ops_s"},
                "y": y.encoding(),
                "color": COLOUR,
            },
            "layer": [served, interval, line, *standing_layers(column), refused],
        },
        ends=tuple(_end(curve) for curve in kind.curves),
        y=y,
        alt_text=" ".join(kind.sentences),
    )


def _rows(curve: GoodputCurve) -> Iterator[dict[str, Any]]:
    goodput = METRICS["goodput"]
    groups = groupby(curve.points, lambda point: point.judged)
    for number, (judged, group) in enumerate(groups):
        for point in group:
            figure = point.row.figure("goodput")
            doubted = bool(touching(point.row.doubts, "goodput"))
            named = judged and point.refused is not None and point.refused >= _NAMED_PERCENT
            yield {
                **place_of(point.row),
                "offered_ops_s": point.offered_per_s,
                goodput.column: point.goodput,
                goodput.spread_columns[0]: figure.low if judged else None,
                goodput.spread_columns[1]: figure.high if judged else None,
                **{METRICS[key].column: point.row.value(key) for key in SHARES},
                "standing": NOT_COMPARABLE
                if not judged
                else PROVISIONAL
                if doubted
                else COMPARABLE,
                "note": point.note,
                "_at": point.goodput or 0.0,
                "_stretch": f"{curve.layout}-{number}" if judged else None,
                "_text": f"{show_figure(point.refused, 2)} % refused" if named else None,
            }


def _end(curve: GoodputCurve) -> End:
    drawn = curve.judged or curve.points
    last, kept = drawn[-1], curve.kept
    note = "" if kept is None else f"keeps up to {show_figure(kept.offered_per_s)}/s"
    return End(curve.layout, last.offered_per_s, last.goodput or 0.0, note)


def _finding(kind: OverloadKind) -> str:
    """The range of what the layouts keep of their best at the highest rate."""
    shares = [
        f"{100 * (curve.judged[-1].goodput or 0.0) / curve.best.goodput:.0f} % {curve.layout}"
        for curve in kind.curves
        if curve.best is not None and curve.best.goodput
    ]
    return f"of its best at the highest rate: {', '.join(shares)}" if shares else ""
