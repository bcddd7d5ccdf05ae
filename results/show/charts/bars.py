"""Bars: throughput of all layouts at one worker count, and the highest rate within a bound.

Bars begin at 0, and whiskers are intervals. Each kind of requests has its own scale, since small
and large objects differ a hundredfold; figures at the bars' ends replace a grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM
from weighbridge.results.figures.summary import Row
from weighbridge.results.judge.contrast import reason
from weighbridge.results.judge.words import headline
from weighbridge.results.numbers import counted, show_figure, upper
from weighbridge.results.show.chart import (
    COLOUR,
    COMPARABLE,
    INK,
    MUTED,
    PROVISIONAL,
    Chart,
    Panel,
    layer,
)
from weighbridge.results.show.chart_source import ChartSource, place_of
from weighbridge.results.show.scales import names_encoding

ROW_PX: Final = 44
ROOM: Final = 1.5
"""How much longer the scale is than the longest bar or whisker, for the figures."""
CUT: Final = 1.6
"""An interval of two repeats may be many times the figure: it is cut off, or bars get short."""
_LONGEST: Final = 34
"""Characters beside a missing bar."""


def throughput_bars(source: ChartSource) -> tuple[Chart, ...]:
    """All layouts, each kind of requests at the requested worker count, else at the largest at
    which most layouts are ranked; none without ranked figures.
    """
    groups = source.at_one_count()
    repeats = [row.repeats for rows in groups.values() for row in rows if _value(row) is not None]
    if not repeats:
        return ()
    few = (
        f" Fewer than {REPEATS_FOR_A_CLAIM} repeats: no claim."
        if min(repeats) < REPEATS_FOR_A_CLAIM and len(source.layouts) > 1
        else ""
    )
    span = f"{min(repeats)} to " * (min(repeats) < max(repeats)) + counted(max(repeats), "repeat")
    doubted = any(
        source.standing(row, "throughput") == PROVISIONAL
        for rows in groups.values()
        for row in rows
    )
    pale = " Pale: provisional." if doubted else ""
    several = any(len({row.workers for row in rows}) > 1 for rows in source.cells().values())
    over = " The title is over all worker counts." if several and source.leads else ""
    drawn = (
        f"Geometric mean of {span}, with its 95 % interval" if max(repeats) > 1 else "One repeat"
    )
    chart = Chart(
        key="throughput-bars",
        title="Throughput of every layout",
        finding=headline(source.leads, source.stores) if source.leads else "What was measured",
        caption=f"{drawn}. Each panel has its own scale, from 0.{pale}{over}{few}",
        panels=tuple(
            bar_panel(
                [_throughput_row(source, row) for row in rows],
                "throughput_ops_s",
                key="-".join(kind),
                title=f"{upper(source.names[kind])}, {counted(rows[0].workers, 'worker')}",
            )
            for kind, rows in groups.items()
        ),
    )
    return source.measured(chart)


def _value(row: Row) -> float | None:
    return row.value("throughput") if row.ranked else None


def _throughput_row(source: ChartSource, row: Row) -> dict[str, Any]:
    value, figure = _value(row), row.figure("throughput")
    why = "" if value is not None else reason(row) if row.points else "not measured"
    return {
        **place_of(row),
        "throughput_ops_s": value,
        "low": None if value is None else figure.low,
        "high": None if value is None else figure.high,
        "standing": source.standing(row, "throughput"),
        "why": why,
        "_text": f"{show_figure(value)} op/s",
    }


def bar_panel(rows: Sequence[dict[str, Any]], column: str, **about: Any) -> Panel:
    """A bar for each row, with its whisker and figure; `about`: fields of the panel."""
    longest = max((row[column] or 0.0 for row in rows), default=0.0) or 1.0
    reach = min(max([longest, *(row["high"] or 0.0 for row in rows)]), CUT * longest)
    for row in rows:
        value, why = row[column], row["why"]
        row["_end"] = min(max(value or 0.0, row["high"] or 0.0), reach)
        short = why if len(why) <= _LONGEST else f"{why[: _LONGEST - 1].rstrip()}…"
        row["_why"] = f"× {short}" if value is None else None
    names = [row["layout"] for row in rows]
    bars = []
    for style, sign in (("sure", "=="), ("doubted-bar", "!=")):
        bar = layer("bar", style, f"datum.standing {sign} '{COMPARABLE}'", x=column)
        bar["mark"]["height"] = {"band": 0.62}
        bar["encoding"]["x2"] = {"datum": 0}
        bars.append(bar)
    bars[1]["encoding"]["stroke"] = COLOUR
    whole = "isValid(datum.low) && isValid(datum.high)"
    # An edge in the background's colour makes a whisker visible on any bar.
    whiskers = [
        layer("rule", style, whole, x="low", x2="_end", color=colour)
        for style, colour in (("whisker-edge", {"value": "$background"}), ("whisker", INK))
    ]
    figures = layer("text", "figure", f"isValid(datum.{column})", x="_end", text="_text")
    missing = layer("text", "note", "isValid(datum._why)", x={"value": 0}, text="_why")
    for words in (figures, missing):
        words["encoding"]["color"] = INK if words is figures else MUTED
    scale = {"domain": [0, reach * ROOM], "nice": False}
    return Panel(
        rows=rows,
        spec={
            "encoding": {
                "x": {"type": "quantitative", "scale": scale, "axis": None},
                "y": {**names_encoding(names), "field": "layout"},
                "color": COLOUR,
            },
            "layer": [*bars, *whiskers, figures, missing],
        },
        height=ROW_PX * len(rows),
        **about,
    )
