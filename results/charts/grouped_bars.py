"""Bars of throughput: all layouts at one worker count, a panel for each kind of requests.

Bars begin at 0, and whiskers are the interval of the repeats. Each kind of requests has its own
scale, since small and large objects differ a hundredfold; figures at the bars' ends replace a grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.record import Record
from weighbridge.results.analysis.contrast import reason
from weighbridge.results.analysis.kinds import Kind, kind_of, subjects
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.charts.chart_source import ChartSource
from weighbridge.results.charts.panels import AxisScale, Figure, Mark, Panel, Spot
from weighbridge.results.charts.worker_data import repeats_interval
from weighbridge.results.figures import UNKNOWN, all_of, counted, show_figure, upper
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM

ROW_PX: Final = 40
WIDTH: Final = 400
ROOM: Final = 1.3
"""How much longer the scale is than the longest bar or whisker, for the figures."""


class LayoutBar(Record):
    """One layout in one panel. `value` is None where there is nothing to rank; `why` says so."""

    layout: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    repeats: int = 0
    why: str = ""


class Bars(Record):
    """One panel: all layouts at one worker count."""

    kind: Kind
    about: str
    workers: int
    bars: tuple[LayoutBar, ...]


def grouped_bars(source: ChartSource) -> tuple[Figure, ...]:
    """The figure of a table, each kind at the requested worker count, else at the largest at which
    most layouts are ranked; none without ranked figures.
    """
    groups = bar_groups(source.rows, source.workers)
    repeats = {bar.repeats for group in groups for bar in group.bars if bar.value is not None}
    if not repeats:
        return ()
    whiskers = (
        ", with the 95 % interval of their geometric mean as whiskers" if max(repeats) > 1 else ""
    )
    some = "Some have fewer" if max(repeats) >= REPEATS_FOR_A_CLAIM else "Fewer"
    compared = len(source.layouts) > 1
    few = (
        f" {some} than {REPEATS_FOR_A_CLAIM} repeats: no claim."
        if min(repeats) < REPEATS_FOR_A_CLAIM and compared
        else ""
    )
    span = f"{max(repeats)}" if len(repeats) == 1 else f"{min(repeats)} to {max(repeats)}"
    bars = f"median of {span} repeats{whiskers}" if max(repeats) > 1 else "one repeat"
    figure = Figure(
        name="throughput-bars",
        title="Throughput of every layout",
        finding=finding(groups),
        caption=f"Operations per second: {bars}. Each panel has its own scale, from 0.{few}",
        data=bars_csv(groups),
        panels=tuple(_panel(group) for group in groups),
    )
    return source.measured(figure)


def bar_groups(rows: Sequence[Row], workers: int | None = None) -> tuple[Bars, ...]:
    """A panel for each kind of requests, in the order of the table."""
    names = subjects(rows)
    made = []
    for kind, group in groupby(rows, key=kind_of):
        cells = list(group)
        at = workers if workers in {row.workers for row in cells} else _busiest(cells)
        own = [row for row in cells if row.workers == at]
        made.append(
            Bars(
                kind=kind, about=names[kind], workers=at or 0, bars=tuple(_bar(row) for row in own)
            )
        )
    return tuple(made)


def finding(groups: Sequence[Bars]) -> str:
    """Which layout had clearly the most in how many panels: its whisker touches no other, and every
    bar is ranked. Claims are left to the comparison.
    """
    first: dict[str, int] = {}
    compared = unranked = 0
    for group in groups:
        known = [bar for bar in group.bars if bar.value is not None]
        if len(known) > 1:
            compared += 1
            top = max(known, key=lambda bar: bar.value or 0)
            if len(known) < len(group.bars):
                unranked += 1
            elif all(_above(top, bar) for bar in known if bar is not top):
                first[top.layout] = first.get(top.layout, 0) + 1
    counts = sorted({group.workers for group in groups})
    at = f"{' or '.join(str(count) for count in counts)} worker{'s' * (counts != [1])}"
    if unranked == compared:
        return f"What was measured at {at}"
    if not first:
        return f"At {at}, no layout had clearly the most op/s"
    (name, times), *others = sorted(first.items(), key=lambda item: -item[1])
    rest = [f"{other} in {count}" for other, count in others]
    close = compared - unranked - sum(first.values())
    rest += [f"{close} too close to call"] * bool(close)
    rest += [f"{unranked} with a layout that is not ranked"] * bool(unranked)
    where = (
        all_of(compared, "kinds")
        if times == compared > 1
        else f"{times} of {compared} kinds"
        if compared > 1
        else "the kind"
    )
    return ", ".join((f"At {at}, {name} had the most op/s in {where} of requests", *rest))


def _above(one: LayoutBar, other: LayoutBar) -> bool:
    """Whether the intervals show it; those of fewer than two repeats show nothing."""
    return one.low is not None and other.high is not None and one.low > other.high


def bars_csv(groups: Sequence[Bars]) -> str:
    """The bars, a line for each layout and kind of requests."""
    head = (
        *("about", "workload", "operation", "api", "driver", "workers", "layout"),
        *("throughput_ops_s", "low_ops_s", "high_ops_s", "repeats", "why"),
    )
    lines = [
        (
            group.about,
            *group.kind,
            group.workers,
            bar.layout,
            bar.value,
            bar.low,
            bar.high,
            bar.repeats,
            bar.why,
        )
        for group in groups
        for bar in group.bars
    ]
    return csv_lines(head, lines)


def _busiest(cells: Sequence[Row]) -> int:
    """The largest of the worker counts at which most layouts are ranked."""
    counts = {row.workers: 0 for row in cells}
    for row in cells:
        counts[row.workers] += row.ranked and row.value("throughput") is not None
    return max(counts, key=lambda workers: (counts[workers], workers))


def _bar(row: Row) -> LayoutBar:
    if not row.ranked or (value := row.value("throughput")) is None:
        return LayoutBar(layout=row.layout, why="not measured" if not row.points else reason(row))
    low, high = repeats_interval(row)
    return LayoutBar(layout=row.layout, value=value, low=low, high=high, repeats=row.repeats)


def _panel(group: Bars) -> Panel:
    known = [bar for bar in group.bars if bar.value is not None]
    longest = max((bar.value or 0.0 for bar in known), default=0.0) or 1.0
    # An interval of two repeats may be many times the figure: cut it off, or bars get short.
    reach = min(max([longest, *(bar.high for bar in known if bar.high is not None)]), 1.6 * longest)
    figures = {bar.layout: f"{show_figure(bar.value)} op/s" for bar in known}
    marks = (
        Mark(
            kind="bar",
            spots=tuple(Spot(x=bar.value, y=bar.layout, layout=bar.layout) for bar in known),
        ),
        Mark(
            kind="whisker",
            spots=tuple(
                Spot(x=bar.low, x2=min(bar.high, reach), y=bar.layout)
                for bar in known
                if bar.high is not None
            ),
        ),
        Mark(
            kind="strong text",
            spots=tuple(
                Spot(
                    x=max(bar.value or 0.0, min(bar.high or 0.0, reach)),
                    y=bar.layout,
                    text=figures[bar.layout],
                    tone="ink",
                )
                for bar in known
            ),
            align="left",
            dx=8,
            size=15,
        ),
        Mark(
            kind="text",
            spots=tuple(
                Spot(x=0.0, y=bar.layout, text=f"× {_short(bar.why)}", tone="muted")
                for bar in group.bars
                if bar.value is None
            ),
            align="left",
            dx=4,
        ),
        Mark(kind="zero", spots=(Spot(x=0.0, tone="axis"),)),
    )
    lines = [
        (
            bar.layout,
            show_figure(bar.value),
            UNKNOWN
            if bar.low is None or bar.high is None
            else f"{show_figure(bar.low)} to {show_figure(bar.high)}",
            str(bar.repeats),
            bar.why,
        )
        for bar in group.bars
    ]
    return Panel(
        key="-".join(group.kind),
        title=f"{upper(group.about)}, {counted(group.workers, 'worker')}",
        x=AxisScale(high=reach * ROOM, grid=False, hidden=True),
        y=AxisScale.of_names([bar.layout for bar in group.bars]),
        marks=marks,
        head=("Layout", "Median op/s", "95 % interval", "Repeats", "Notes"),
        lines=tuple(lines),
        width=WIDTH,
        height=ROW_PX * len(group.bars),
    )


def _short(text: str) -> str:
    return text if len(text) <= 44 else f"{text[:43].rstrip()}…"
