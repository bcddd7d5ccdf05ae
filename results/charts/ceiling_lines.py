"""Ceilings in the chart of throughput: thin dashed lines at what disks, network and store can do, and words for those far above.

The scale is the gateways' own: a line stretches it a little and never presses what was measured into a corner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from statistics import median_low
from typing import Any, Final

import altair as alt

from weighbridge.common.layers import Level
from weighbridge.results.analysis.layers.staircase import LAYER_BOUND, PLAIN, Staircase
from weighbridge.results.charts.chart_data import CeilingLine, spread
from weighbridge.results.charts.chart_theme import LIGHT, Look, Style
from weighbridge.results.figures import show_figure

DRAWN: Final[tuple[Level, ...]] = ("disk", "network", "rados", "object-server")
NEAR: Final = 1.6
"""A ceiling up to so many times the highest mark is drawn; one above it is told in words."""
LABEL_PX: Final = 16


def ceiling_lines(stairs: Iterable[Staircase]) -> Mapping[str, tuple[CeilingLine, ...]]:
    """The lines by key of the panel. Layouts whose ceilings differ by no more than such figures do have one line together."""
    found = {}
    for kind, group in groupby(stairs, key=lambda stair: stair.kind):
        mine = list(group)
        lines: list[CeilingLine] = []
        for level in DRAWN:
            steps = [(step.throughput_ops_s or 0.0, stair.layout) for stair in mine if (step := stair.step(level)) is not None]
            # What stands on top is the curve itself.
            below = [one for one in steps if any(stair.layout == one[1] and stair.top.level != level for stair in mine)]
            lines += _merged(level, sorted(below), len(below))
        found["-".join(kind)] = tuple(lines)
    return found


def _merged(level: Level, steps: Sequence[tuple[float, str]], count: int) -> list[CeilingLine]:
    groups: list[list[tuple[float, str]]] = []
    for one in steps:
        if groups and one[0] <= groups[-1][0][0] * (1 + LAYER_BOUND):
            groups[-1].append(one)
        else:
            groups.append([one])
    lines = []
    for group in groups:
        layouts = tuple(layout for _, layout in group)
        named = ", ".join(layouts) if len(group) < 3 else f"{len(group)} layouts"
        whose = "" if len(group) == count else f" ({named})"
        value = median_low([value for value, _ in group])
        lines.append(CeilingLine(layouts=layouts, layer=PLAIN[level], label=f"{PLAIN[level]}{whose}", value=value))
    return lines


def stretched(largest: float, lines: Iterable[CeilingLine]) -> float:
    """The largest value that the scale is to hold, with the ceilings that are near."""
    return max([largest, *(line.value for line in lines if line.value <= NEAR * largest)])


def ceiling_layers(
    lines: Sequence[CeilingLine], styled: Sequence[Style], y: alt.Y, top: float, height: int, look: Look = LIGHT
) -> list[alt.Chart]:
    """What is drawn of the ceilings in a panel whose scale ends at `top`."""
    near = [line for line in lines if line.value <= top]
    far = [line for line in lines if line.value > top]
    colours = {style.layout: style.colour for style in styled}
    marked = [_coloured(line, colours, look.muted) for line in near]
    rules = alt.Chart(alt.InlineData(values=marked)).mark_rule(strokeDash=[5, 4], strokeWidth=1.4, opacity=0.9)
    gap = LABEL_PX / height
    # A label stands on its line; where lines are near one another the labels are moved apart.
    places = spread([line.value / top + gap / 2 for line in near], gap)
    texts = [{**one, "value": share * top} for one, share in zip(marked, places, strict=True)]
    names = alt.Chart(alt.InlineData(values=texts)).encode(x=alt.value(4), y=y, text="text:N")
    colour = alt.Color("colour:N", scale=None)
    drawn = [
        rules.encode(x=alt.value(0), x2=alt.value("width"), y=y, color=colour),
        # An edge in the colour of the background keeps a label readable where it lies on a line.
        names.mark_text(align="left", baseline="middle", fontSize=12.5, stroke=look.background, strokeWidth=4, clip=False),
        names.mark_text(align="left", baseline="middle", fontSize=12.5, clip=False).encode(color=colour),
    ]
    if far:
        words = alt.Chart(alt.InlineData(values=[{"text": _beyond(far)}]))
        mark = words.mark_text(align="right", baseline="bottom", dx=70, fontSize=12.5, color=look.muted, clip=False)
        drawn.append(mark.encode(x=alt.value("width"), y=alt.value(-7), text="text:N"))
    return drawn if near or far else []


def _coloured(line: CeilingLine, colours: Mapping[str, str], grey: str) -> dict[str, Any]:
    """A line of one layout in its colour, one of several in grey."""
    colour = colours.get(line.layouts[0], grey) if len(line.layouts) == 1 and len(colours) > 1 else grey
    return {"value": line.value, "colour": colour, "text": f"{line.label} {show_figure(line.value)}"}


def _beyond(far: Sequence[CeilingLine]) -> str:
    """`↑ disks 9,370, network 6,250 to 18,900`: all of one layer together."""
    found: dict[str, list[float]] = {}
    for line in far:
        found.setdefault(line.layer, []).append(line.value)
    spans = []
    for layer, values in found.items():
        low, high = show_figure(min(values)), show_figure(max(values))
        spans.append(f"{layer} {low if low == high else f'{low} to {high}'}")
    return f"↑ {', '.join(spans)}"
