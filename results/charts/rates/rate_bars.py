"""Bars of the highest rate within a bound: all layouts, a panel for each kind of requests.

As the bars of throughput: from 0, each panel with its own scale. The whisker is where the most that
is served lies: up to the lowest rate that was not served, or over repeats the 95 % interval.
"""

from __future__ import annotations

from weighbridge.results.analysis.find.answers import (
    RATE_HEAD,
    Found,
    FoundKind,
    FoundRate,
    rate_lines,
)
from weighbridge.results.charts.chart_source import ChartSource
from weighbridge.results.charts.grouped_bars import ROOM, ROW_PX, WIDTH
from weighbridge.results.charts.panels import AxisScale, Figure, Mark, Panel, Spot
from weighbridge.results.figures import counted, upper

_LONGEST = 44
"""Characters beside a missing bar."""


def rate_bars(source: ChartSource) -> tuple[Figure, ...]:
    """The figure of a run that searched rates and found one; else none."""
    found = source.found
    if found is None or not any(rate.rate_per_s for kind in found.kinds for rate in kind.rates):
        return ()
    rates = [rate for kind in found.kinds for rate in kind.rates if rate.rate_per_s is not None]
    repeats = {rate.repeats for rate in rates}
    whiskers = (
        "Whiskers end at the lowest rate that was not served"
        if max(repeats) == 1
        else "Whiskers are the 95 % interval over the repeats"
    )
    start = "Provisional: the" if any(rate.doubts for rate in rates) else "The"
    if any(rate.condemned for rate in rates):
        start = "Not comparable: the"
    figure = Figure(
        name="highest-rates",
        title=f"The highest rate within {found.bound}",
        finding=f"{start} most requests/s that each layout serves within {found.bound}",
        caption=f"Requests are sent at a constant rate. {whiskers}.",
        panels=tuple(_panel(kind, found) for kind in found.kinds),
        layouts=source.layouts,
    )
    return (figure,)


def _panel(kind: FoundKind, found: Found) -> Panel:
    known = [rate for rate in kind.rates if rate.rate_per_s is not None]
    longest = max((rate.rate_per_s or 0.0 for rate in known), default=0.0) or 1.0
    reach = max([longest, *(min(rate.high_per_s or 0.0, 1.6 * longest) for rate in known)])
    ends = {rate.layout: max(rate.rate_per_s or 0.0, _end(rate, reach)) for rate in known}
    marks = (
        Mark(
            kind="bar",
            spots=tuple(
                Spot(x=rate.rate_per_s, y=rate.layout, layout=rate.layout) for rate in known
            ),
        ),
        Mark(
            kind="whisker",
            spots=tuple(
                Spot(x=rate.low_per_s, x2=_end(rate, reach), y=rate.layout)
                for rate in known
                if rate.low_per_s is not None and rate.high_per_s is not None
            ),
        ),
        Mark(
            kind="strong text",
            spots=tuple(
                Spot(x=ends[rate.layout], y=rate.layout, text=f"{rate.figure}/s", tone="ink")
                for rate in known
            ),
            align="left",
            dx=8,
            size=15,
        ),
        Mark(
            kind="text",
            spots=tuple(
                Spot(x=0.0, y=rate.layout, text=f"× {_short(rate.words)}", tone="muted")
                for rate in kind.rates
                if rate.rate_per_s is None
            ),
            align="left",
            dx=4,
        ),
        Mark(kind="zero", spots=(Spot(x=0.0, tone="axis"),)),
    )
    first = kind.rates[0]
    return Panel(
        key=f"{first.workload}-{first.api}-{first.driver}",
        title=f"{upper(kind.about)}, {counted(kind.connections, 'connection')}",
        x=AxisScale(high=reach * ROOM, grid=False, hidden=True),
        y=AxisScale.of_names([rate.layout for rate in kind.rates]),
        marks=marks,
        head=(RATE_HEAD[1], *RATE_HEAD[3:]),
        lines=tuple(line[1:2] + line[3:] for line in rate_lines(found) if line[0] == kind.about),
        width=WIDTH,
        height=ROW_PX * len(kind.rates),
    )


def _end(rate: FoundRate, reach: float) -> float:
    return min(rate.high_per_s or 0.0, reach)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1].rstrip()}…"
