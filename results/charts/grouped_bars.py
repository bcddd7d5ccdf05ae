"""Bars of throughput: every layout beside the others, a panel for each kind of requests, all at one worker count.

Bars begin at 0, and the whiskers are the interval that the repeats make. Kinds of requests have scales of their own, since small
objects and large ones are a hundred times apart; the figure stands at the end of each bar, so that no grid is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

import altair as alt

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.record import Record
from weighbridge.results.analysis.findings import reason
from weighbridge.results.analysis.kinds import Kind, kind_of, subjects
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.charts.chart_data import interval_of
from weighbridge.results.charts.chart_theme import LIGHT, Look, Style
from weighbridge.results.charts.figure import Figure, Plot
from weighbridge.results.figures import UNKNOWN, show_figure
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM

ROW_PX: Final = 40
BAR_PX: Final = 24
WIDTH: Final = 400
ROOM: Final = 1.3
"""How much longer the scale is than the longest bar or whisker: figures stand there."""


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


def grouped_bars(rows: Sequence[Row], styled: Sequence[Style], look: Look = LIGHT, *, workers: int | None = None) -> Figure | None:
    """The figure of a table; None without anything to rank.

    Each kind of requests is drawn at `workers`, or where it has none of them or nothing was asked for, at the largest worker count
    at which most of the layouts can be ranked.
    """
    groups = panels(rows, workers)
    if not any(bar.value is not None for group in groups for bar in group.bars):
        return None
    repeats = {bar.repeats for group in groups for bar in group.bars if bar.value is not None}
    whiskers = ", with the 95 % interval of their geometric mean as whiskers" if max(repeats) > 1 else ""
    some = "Some have fewer" if max(repeats) >= REPEATS_FOR_A_CLAIM else "Fewer"
    few = f" {some} than {REPEATS_FOR_A_CLAIM} repeats: no claim." if min(repeats) < REPEATS_FOR_A_CLAIM and len(styled) > 1 else ""
    span = f"{max(repeats)}" if len(repeats) == 1 else f"{min(repeats)} to {max(repeats)}"
    counted = f"median of {span} repeats{whiskers}" if max(repeats) > 1 else "one repeat"
    return Figure(
        name="throughput-bars",
        title="Throughput of every layout",
        finding=finding(groups),
        caption=f"Operations per second: {counted}. Each panel has a scale of its own, from 0.{few}",
        csv=bars_csv(groups),
        plots=tuple(_plot(group, styled, look) for group in groups),
        look=look,
    )


def panels(rows: Sequence[Row], workers: int | None = None) -> tuple[Bars, ...]:
    """A panel for each kind of requests, in the order of the table."""
    names = subjects(rows)
    made = []
    for kind, group in groupby(rows, key=kind_of):
        cells = list(group)
        at = workers if workers in {row.workers for row in cells} else _busiest(cells)
        own = [row for row in cells if row.workers == at]
        made.append(Bars(kind=kind, about=names[kind], workers=at or 0, bars=tuple(_bar(row) for row in own)))
    return tuple(made)


def finding(groups: Sequence[Bars]) -> str:
    """Which layout has the longest bar in how many panels, without a claim: that is the comparison's."""
    longest: dict[str, int] = {}
    compared = 0
    for group in groups:
        known = [bar for bar in group.bars if bar.value is not None]
        if len(known) > 1:
            compared += 1
            top = max(known, key=lambda bar: bar.value or 0).layout
            longest[top] = longest.get(top, 0) + 1
    counts = sorted({group.workers for group in groups})
    at = f"{' or '.join(str(count) for count in counts)} worker{'s' * (counts != [1])}"
    if not compared:
        return f"What was measured at {at}"
    (name, times), *others = sorted(longest.items(), key=lambda item: -item[1])
    rest = "".join(f", {other} in {count}" for other, count in others)
    where = f"all {compared} kinds" if times == compared > 1 else f"{times} of {compared} kinds" if compared > 1 else "the kind"
    return f"At {at}, {name} did most in {where} of requests{rest}"


def bars_csv(groups: Sequence[Bars]) -> str:
    """The bars: a line for each layout and kind of requests."""
    head = (
        "about",
        *("workload", "operation", "api", "driver"),
        *("workers", "layout", "throughput_ops_s", "low_ops_s", "high_ops_s"),
    )
    lines = [
        (group.about, *group.kind, group.workers, bar.layout, bar.value, bar.low, bar.high, bar.repeats, bar.why)
        for group in groups
        for bar in group.bars
    ]
    return csv_lines((*head, "repeats", "why"), lines)


def _busiest(cells: Sequence[Row]) -> int:
    """The largest of the worker counts at which most layouts can be ranked."""
    counts = {row.workers: 0 for row in cells}
    for row in cells:
        counts[row.workers] += row.ranked and row.throughput_ops_s is not None
    return max(counts, key=lambda workers: (counts[workers], workers))


def _bar(row: Row) -> LayoutBar:
    if not row.ranked or row.throughput_ops_s is None:
        return LayoutBar(layout=row.layout, why="not measured" if not row.points else reason(row))
    low, high = interval_of([point.throughput_ops_s for point in row.used])
    return LayoutBar(layout=row.layout, value=row.throughput_ops_s, low=low, high=high, repeats=row.repeats)


def _plot(group: Bars, styled: Sequence[Style], look: Look) -> Plot:
    lines = [
        (
            bar.layout,
            show_figure(bar.value),
            UNKNOWN if bar.low is None or bar.high is None else f"{show_figure(bar.low)} to {show_figure(bar.high)}",
            str(bar.repeats),
            bar.why,
        )
        for bar in group.bars
    ]
    return Plot(
        key="-".join(group.kind),
        title=f"{group.about[:1].upper()}{group.about[1:]}, {group.workers} worker{'s' * (group.workers > 1)}",
        finding="",
        spec=_spec(group, styled, look),
        head=("Layout", "Median op/s", "95 % interval", "Repeats", "Notes"),
        lines=tuple(lines),
        width=WIDTH,
        height=ROW_PX * len(group.bars),
    )


def _spec(group: Bars, styled: Sequence[Style], look: Look) -> dict[str, Any]:
    known = [bar for bar in group.bars if bar.value is not None]
    longest = max((bar.value or 0.0 for bar in known), default=0.0) or 1.0
    # An interval of two repeats may be many times the figure: it is cut off rather than let press all bars into a corner.
    reach = min(max([longest, *(bar.high for bar in known if bar.high is not None)]), 1.6 * longest)
    end = reach * ROOM
    order = [bar.layout for bar in group.bars]
    values = [
        {
            **bar.model_dump(),
            "value": bar.value or 0.0,
            "known": bar.value is not None,
            "high": None if bar.high is None else min(bar.high, reach),
            "edge": max(bar.value or 0.0, min(bar.high or 0.0, reach)),
            "label": f"× {_short(bar.why)}" if bar.value is None else f"{show_figure(bar.value)} op/s",
        }
        for bar in group.bars
    ]
    scale = alt.Scale(domain=[0, end], nice=False)
    y = alt.Y(
        "layout:N",
        sort=order,
        title=None,
        scale=alt.Scale(domain=order),
        axis=alt.Axis(domain=False, ticks=False, labelFontSize=15, labelLimit=330, labelPadding=8, labelOverlap=False),
    )
    x = {field: alt.X(f"{field}:Q", scale=scale, title=None, axis=None) for field in ("value", "low", "edge")}
    colours = alt.Scale(domain=[style.layout for style in styled], range=[style.colour for style in styled])
    colour = alt.Color("layout:N", scale=colours, legend=None)
    base = alt.Chart(alt.InlineData(values=values))
    tooltip = [alt.Tooltip("layout:N"), alt.Tooltip("label:N", title="throughput"), alt.Tooltip("repeats:Q")]
    bars = (
        base.transform_filter("datum.known")
        .mark_bar(height=BAR_PX, cornerRadiusEnd=3)
        .encode(x=x["value"], x2=alt.datum(0), y=y, color=colour, tooltip=tooltip)
    )
    told = base.transform_filter("datum.high !== null").encode(x=x["low"], x2="high:Q", y=y)
    # An edge in the colour of the background: a whisker has to be seen on a bar of any colour.
    whiskers = [told.mark_rule(strokeWidth=5, color=look.background), told.mark_rule(strokeWidth=2, color=look.ink)]
    words = base.encode(x=x["edge"], y=y, text="label:N")
    figures = words.transform_filter("datum.known").mark_text(align="left", dx=8, fontSize=15, fontWeight=600, color=look.ink)
    gaps = words.transform_filter("!datum.known").mark_text(align="left", dx=4, fontSize=14, color=look.muted)
    ground = alt.Chart(alt.InlineData(values=[{"value": 0}])).mark_rule(color=look.axis, strokeWidth=1.2).encode(x=x["value"])
    layers = [bars, *whiskers, figures, gaps, ground]
    return dict(alt.layer(*layers).to_dict(validate=False))


def _short(text: str) -> str:
    return text if len(text) <= 44 else f"{text[:43].rstrip()}…"
