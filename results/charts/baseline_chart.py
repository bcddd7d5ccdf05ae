from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weighbridge.results.analysis.baseline import (
    TITLES,
    Baseline,
    Group,
    HostFigure,
    baseline_csv,
    oddities,
)
from weighbridge.results.charts.panels import AxisScale, Figure, Mark, Panel, Spot
from weighbridge.results.figures import upper

WIDTH: Final = 620
BAR_PX: Final = 22
MOST_BARS: Final = 40
"""The most bars of a group: of more, the lowest are drawn, since those are of interest."""


def baseline_chart(baseline: Baseline) -> Figure:
    """The chart of a baseline; its title is the first irregularity."""
    odd = oddities(baseline.figures)
    more = (
        f"; {len(odd) - 1} more {'things are' if len(odd) > 2 else 'thing is'} odd"
        if len(odd) > 1
        else ""
    )
    finding = (
        f"{upper(odd[0])}{more}"
        if odd
        else f"The hosts of {baseline.hardware} are equal and reach what is promised"
    )
    groups = [(group, [one for one in baseline.figures if one.group == group]) for group in TITLES]
    return Figure(
        name="baseline",
        title="What hosts can do",
        finding=finding,
        caption=f"What the hosts of {baseline.hardware} can do without a gateway. Vertical line: "
        "what the hardware file promises.",
        data=baseline_csv(baseline.figures),
        panels=tuple(_panel(group, figures) for group, figures in groups if figures),
        columns=1,
    )


def _panel(group: Group, figures: Sequence[HostFigure]) -> Panel:
    shown = sorted(sorted(figures, key=lambda one: one.value)[:MOST_BARS], key=figures.index)
    left = f" (the lowest {len(shown)} of {len(figures)})" if len(shown) < len(figures) else ""
    words = [
        one.shown if one.share is None else f"{one.shown}, {100 * one.share:.0f} %" for one in shown
    ]
    ends = [max(one.value, one.promised or 0) for one in shown]
    names = [_name(one) for one in shown]
    bars = tuple(
        Spot(x=one.value, y=name, tone=group) for one, name in zip(shown, names, strict=True)
    )
    promises = tuple(
        Spot(x=one.promised, y=name, tone="muted")
        for one, name in zip(shown, names, strict=True)
        if one.promised
    )
    texts = tuple(
        Spot(x=end, y=name, text=text, tone="ink")
        for end, name, text in zip(ends, names, words, strict=True)
    )
    return Panel(
        key=group,
        title=f"{TITLES[group]}{left}",
        x=AxisScale(high=max(ends) * 1.28, grid=False, hidden=True),
        y=AxisScale.of_names(names),
        marks=(
            Mark(kind="bar", spots=bars),
            Mark(kind="tick", spots=promises),
            Mark(kind="text", spots=texts, align="left", dx=6),
        ),
        head=("Host", "Figure"),
        lines=tuple(zip(names, words, strict=True)),
        width=WIDTH,
        height=BAR_PX * len(names),
    )


def _name(one: HostFigure) -> str:
    return (
        f"{one.sender} to {one.receiver}" if one.group == "network" else f"{one.host}: {one.what}"
    )
