"""Outages over time: op/s and p99 of each second, layout below layout, with the moments marked."""

from __future__ import annotations

from itertools import groupby
from typing import Final

from weighbridge.common.csv_text import csv_lines
from weighbridge.results.analysis.outages import CurveSecond, OutageKind, OutageRow
from weighbridge.results.charts.chart_source import ChartSource
from weighbridge.results.charts.panels import AxisScale, Figure, Mark, Panel, Spot, Trace
from weighbridge.results.figures import show_figure, upper
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM

_HEIGHT: Final = 150
_HEAD: Final = ("Layout", "second", "op/s", "errors/s", "p99 ms", "in flight")
_TEXT_PX: Final = 13


def outage_charts(source: ChartSource) -> tuple[Figure, ...]:
    """A figure for each kind of requests with a fault; none without."""
    return tuple(_figure(source, kind) for kind in source.outages.kinds)


def _figure(source: ChartSource, kind: OutageKind) -> Figure:
    repeats = min(row.row.repeats for row in kind.rows)
    few = (
        f" Fewer than {REPEATS_FOR_A_CLAIM} repeats: nothing is ranked."
        if repeats < REPEATS_FOR_A_CLAIM
        else ""
    )
    several = "Means over the repeats, of p99 the median" if repeats > 1 else "One repeat"
    rate = max((one.ops_s for row in kind.rows for one in row.seconds), default=1.0) or 1.0
    known = [one.p99_ms for row in kind.rows for one in row.seconds if one.p99_ms]
    length = max((len(row.seconds) for row in kind.rows), default=0) or 1
    nice = AxisScale.from_zero(length, "s since the window opened")
    x = nice.model_copy(
        update={"high": float(length), "ticks": tuple(one for one in nice.ticks if one <= length)}
    )
    scales = (x, AxisScale.from_zero(rate * 1.08, ""), AxisScale.logarithmic(known, ""))
    return Figure(
        name=f"outage-{kind.key}",
        title=f"While something is broken: {kind.about}",
        finding=kind.headline,
        caption=(
            "Each complete second of the window, with the moments of the fault and the return. "
            "Crosses: seconds with errors. p99: an upper bound for what succeeded, from bands "
            f"of 19 to 25 %. {several}.{few}"
        ),
        data=_csv(kind),
        panels=tuple(panel for row in kind.rows for panel in _panels(row, *scales)),
        layouts=source.layouts,
        columns=2,
    )


def _panels(row: OutageRow, x: AxisScale, rate: AxisScale, p99: AxisScale) -> tuple[Panel, Panel]:
    xs = tuple(one.second + 0.5 for one in row.seconds)
    line = Trace(layout=row.layout, x=xs, y=tuple(one.ops_s for one in row.seconds))
    failed = tuple(
        Spot(
            x=one.second + 0.5,
            y=one.ops_s,
            tone="bad",
            tip=f"{row.layout}, second {one.second}: {show_figure(one.errors_s)} errors",
        )
        for one in row.seconds
        if one.errors_s
    )
    lines = tuple(
        (
            row.layout,
            str(one.second),
            *map(show_figure, (one.ops_s, one.errors_s, one.p99_ms, one.in_flight)),
        )
        for one in row.seconds
    )
    size = {"height": _HEIGHT, "row": f"{row.layout}: {'; '.join(row.what)}"}
    return (
        Panel(
            key=f"{row.layout}-rate",
            title="op/s",
            x=x,
            y=rate,
            marks=(
                *_moments(row, rate),
                Mark(kind="line", traces=(line,)),
                Mark(kind="cross", spots=failed),
            ),
            head=_HEAD,
            lines=lines,
            alt_text=row.sentence,
            **size,
        ),
        Panel(
            key=f"{row.layout}-p99",
            title="p99, ms",
            x=x,
            y=p99,
            marks=(*_moments(row, p99), Mark(kind="line", traces=_tails(row))),
            head=_HEAD,
            lines=lines,
            alt_text=f"p99 of each second of {row.layout}",
            **size,
        ),
    )


def _tails(row: OutageRow) -> tuple[Trace, ...]:
    """p99 over time; no line goes through seconds without an answer."""
    runs = [list(run) for known, run in groupby(row.seconds, _has_p99) if known]
    return tuple(
        Trace(
            layout=row.layout,
            x=tuple(one.second + 0.5 for one in run),
            y=tuple(one.p99_ms or 0.0 for one in run),
        )
        for run in runs
    )


def _has_p99(one: CurveSecond) -> bool:
    return bool(one.p99_ms)


def _moments(row: OutageRow, y: AxisScale) -> tuple[Mark, Mark]:
    found = [(row.fault_s, upper(row.row.fault.way) if row.row.fault is not None else "")]
    found += [(row.back_s, "Back")] if row.back_s is not None else []
    top = y.value(0.93)
    return (
        Mark(kind="rule", spots=tuple(Spot(x=at, tone="bad", tip=name) for at, name in found)),
        Mark(
            kind="text",
            spots=tuple(Spot(x=at, y=top, text=name, tone="muted") for at, name in found),
            align="left",
            dx=5,
            size=_TEXT_PX,
        ),
    )


def _csv(kind: OutageKind) -> str:
    lines = [
        (row.layout, row.fault_s, row.back_s, *one.model_dump().values())
        for row in kind.rows
        for one in row.seconds
    ]
    head = ("layout", "fault_s", "back_s", "second", "ops_s", "errors_s", "p99_ms", "in_flight")
    return csv_lines(head, lines)
