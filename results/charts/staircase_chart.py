"""The staircase as a picture: for each kind of requests and layout a row a layer, from its front down to its disks.

Rates are on a logarithmic scale, since a disk and a gateway may be a hundred times apart, and so they are dots and not bars: a bar
would say with its length what only its end does. The band between a dot and what it is a share of is what was lost on the way up.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final, Literal

import altair as alt

from weighbridge.common.layers import Level
from weighbridge.common.record import Record
from weighbridge.results.analysis.layers.staircase import (
    HARDWARE,
    INSIDE,
    PLAIN,
    LayerStep,
    Staircase,
    percent,
    staircase_csv,
)
from weighbridge.results.charts.chart_data import log_ticks
from weighbridge.results.charts.chart_theme import LIGHT, Look, Style, config, styles
from weighbridge.results.charts.figure import in_lines
from weighbridge.results.figures import UNKNOWN, show_figure
from weighbridge.results.record.resolved import PlannedLayout

WIDTH: Final = 270
PAGE_WIDTH: Final = 170
ROW: Final = 27
"""Height of a row in pixels."""
LABELS: Final = 142
"""Room for the names of the layers, left of the scale."""


class Rung(Record):
    """One row of a panel: a layout's name, or one of its layers. `y` counts rows from the top."""

    layout: str
    y: int
    name: str
    head: bool = False
    mb_s: float | None = None
    below_mb_s: float | None = None
    below_y: int | None = None
    figure: str = ""
    share: str = ""
    gap: str = ""
    held: bool = False
    believable: bool = True


class Flight(Record):
    """One panel: the staircases of all layouts for one kind of requests."""

    key: str
    title: str
    rungs: tuple[Rung, ...]
    text: str
    """The same in words, for those who cannot see it."""


class StaircaseChart(Record):
    """All panels, and the CSV they are drawn from. `finding` is their title, one sentence."""

    name: str = "efficiency-staircase"
    title: str = "Where it is lost: from the disks to the clients"
    finding: str
    caption: str
    csv: str
    flights: tuple[Flight, ...]
    styles: tuple[Style, ...]
    look: Look = LIGHT

    def flight_spec(self, flight: Flight) -> dict[str, Any]:
        """The Vega-Lite spec of one panel for a page."""
        # Not as wide as there is room: the columns of words beside the scale would be taken from its width.
        spec: dict[str, Any] = _draw(flight, self.styles, self.look, PAGE_WIDTH).to_dict(validate=False)
        return {
            **spec,
            "config": {**config(self.look), "padding": {"left": 4, "right": 36, "top": 4, "bottom": 4}, "background": None},
        }

    def spec(self) -> dict[str, Any]:
        """The Vega-Lite spec of the whole chart."""
        drawn = [
            _draw(flight, self.styles, self.look, WIDTH).properties(
                title=alt.Title(flight.title, fontSize=18, fontWeight=600, offset=8, dx=-LABELS)
            )
            for flight in self.flights
        ]
        wide = len(drawn) > 1
        caption = in_lines(self.caption, 150 if wide else 72)
        title = alt.Title(_whole(self.finding, 64 if wide else 42), subtitle=caption, dx=-LABELS)
        spec: dict[str, Any] = alt.concat(*drawn, columns=2 if wide else 1).properties(title=title).to_dict(validate=False)
        return {**spec, "config": config(self.look)}


def staircase_chart(stairs: Sequence[Staircase], layouts: Sequence[PlannedLayout], look: Look = LIGHT) -> StaircaseChart | None:
    """The chart of staircases; None where there is nothing to draw."""
    if not any(stair.known for stair in stairs):
        return None
    flights = [_flight(list(mine)) for _, mine in groupby(stairs, key=lambda stair: stair.kind)]
    return StaircaseChart(
        finding=finding(stairs),
        caption="MB/s of objects that each layer can do for clients, after replication, and its share of the layer below: of RADOS "
        "and object servers, of their disks or network, whichever is less. Gateways at their best worker count, layers at the "
        "largest. Hollow: its own load ran out of CPU, it can do more.",
        csv=staircase_csv(stairs),
        flights=tuple(flights),
        styles=styles(layouts, look),
        look=look,
    )


def finding(stairs: Sequence[Staircase]) -> str:
    """What is left at the top of what the store below can do, or the hardware where that is not known, by layout."""
    said: dict[Level, list[str]] = {}
    for layout in dict.fromkeys(stair.layout for stair in stairs):
        shares: dict[Level, list[float]] = {}
        for stair in stairs:
            ground = _ground(stair)
            if stair.layout == layout and ground is not None and ground.throughput_ops_s and stair.top.throughput_ops_s:
                shares.setdefault(ground.level, []).append(stair.top.throughput_ops_s / ground.throughput_ops_s)
        if shares:
            level, found = max(shares.items(), key=lambda one: len(one[1]))
            low, high = percent(min(found)), percent(max(found))
            span = high if low == high else f"{low.removesuffix(' %')} to {high}"
            said.setdefault(level, []).append(f"{span} ({layout})")
    parts = [f"of what {INSIDE[level]} can do, clients get {', '.join(layouts)}" for level, layouts in said.items()]
    text = "; ".join(parts) or "what each layer can do"
    return f"{text[:1].upper()}{text[1:]}"


def _ground(stair: Staircase) -> LayerStep | None:
    """What a staircase's top is measured by: its store, else the smaller of its disks and network."""
    below = [step for step in stair.known if step is not stair.top and step.level != "gateway"]
    stores = [step for step in below if step.level not in HARDWARE]
    return stores[-1] if stores else min(below, key=lambda step: step.throughput_ops_s or 0.0, default=None)


def _flight(stairs: Sequence[Staircase]) -> Flight:
    rungs: list[Rung] = []
    for stair in stairs:
        rungs.append(Rung(layout=stair.layout, y=len(rungs), name=stair.layout, head=True))
        first = len(rungs)
        places = {step.level: first + number for number, step in enumerate(reversed(stair.steps))}
        rungs += [_rung(stair, step, places) for step in reversed(stair.steps)]
    about = stairs[0].about
    return Flight(
        key="-".join(stairs[0].kind),
        title=f"{about[:1].upper()}{about[1:]}",
        rungs=tuple(rungs),
        text=" ".join(f"{stair.words}." for stair in stairs),
    )


def _rung(stair: Staircase, step: LayerStep, places: dict[Level, int]) -> Rung:
    lower = stair.step(step.below) if step.below is not None else None
    of = "" if step.of_below is None or step.below is None else f"{percent(step.of_below)} of {PLAIN[step.below]}"
    said = f"{', ' if of else ''}{step.doubt.verdict}" if step.doubt is not None and step.doubt.verdict != "at least" else ""
    return Rung(
        layout=stair.layout,
        y=places[step.level],
        name=step.name,
        mb_s=step.bandwidth_mb_s,
        below_mb_s=None if lower is None else lower.bandwidth_mb_s,
        below_y=None if lower is None else places[lower.level],
        figure=UNKNOWN if step.bandwidth_mb_s is None else f"{'≥ ' if step.held else ''}{show_figure(step.bandwidth_mb_s)}",
        share=f"{of}{said}",
        gap=step.note.partition(": --layers")[0] if step.bandwidth_mb_s is None else "",
        held=bool(step.held),
        believable=step.believable,
    )


def _draw(flight: Flight, styled: Sequence[Style], look: Look, width: int) -> alt.LayerChart | alt.FacetChart:
    known = [value for rung in flight.rungs for value in (rung.mb_s,) if value]
    low, high, ticks = log_ticks(min(known, default=1.0), max(known, default=10.0))
    count = len(flight.rungs)
    x_scale = alt.Scale(type="log", domain=[low, high], nice=False)
    axis = alt.Axis(values=ticks, format=",.4~g", ticks=False, domain=False, labelOverlap=True, labelFlush=False, titlePadding=4)
    x = alt.X("mb_s:Q", scale=x_scale, title="MB/s (log scale)", axis=axis)
    y_scale = alt.Scale(domain=[count - 0.4, -0.6], nice=False)
    y = alt.Y("y:Q", scale=y_scale, axis=None)
    colour = alt.Color(
        "layout:N",
        scale=alt.Scale(domain=[style.layout for style in styled], range=[style.colour for style in styled]),
        legend=None,
    )
    base = alt.Chart(alt.InlineData(values=[rung.model_dump() for rung in flight.rungs]))
    rated = base.transform_filter("datum.mb_s !== null")
    lost = rated.transform_filter("datum.below_mb_s !== null")
    tooltip = [alt.Tooltip("layout:N"), alt.Tooltip("name:N", title="layer"), alt.Tooltip("mb_s:Q", title="MB/s", format=",.4~g")]
    bands = lost.mark_bar(height=11, opacity=0.22).encode(x=x, x2="below_mb_s:Q", y=y, color=colour)
    risers = lost.mark_rule(strokeWidth=1.5, opacity=0.55).encode(
        x=alt.X("below_mb_s:Q", scale=x_scale), y=y, y2="below_y:Q", color=colour
    )
    dots = rated.transform_filter("!datum.held").mark_point(size=120, filled=True, opacity=1)
    filled = dots.encode(x=x, y=y, color=colour, tooltip=tooltip)
    hollow = (
        rated.transform_filter("datum.held")
        .mark_point(size=110, fill=look.background, strokeWidth=2.5, opacity=1)
        .encode(x=x, y=y, color=colour, tooltip=tooltip)
    )
    ink = alt.condition("datum.believable", alt.value(look.ink), alt.value(look.bad))
    heads = _text(base.transform_filter("datum.head"), y, "name", 0, -LABELS, size=15, weight=600).encode(color=colour)
    names = _text(base.transform_filter("!datum.head"), y, "name", 0, 10 - LABELS, size=14).encode(color=ink)
    layers = base.transform_filter("!datum.head")
    figures = _text(layers, y, "figure", "width", 62, size=14, weight=600, align="right").encode(color=ink)
    shares = _text(rated, y, "share", "width", 74, size=14).encode(color=ink)
    gaps = _text(base.transform_filter("datum.gap !== ''"), y, "gap", "width", 74, size=13).encode(color=alt.value(look.muted))
    return alt.layer(bands, risers, filled, hollow, heads, names, figures, shares, gaps).properties(width=width, height=count * ROW)


def _whole(text: str, width: int) -> list[str]:
    """Lines of about so many characters, none of which begins with a sign of per cent."""
    return [line.replace("\0", " ") for line in in_lines(text.replace(" %", "\0%"), width)]


def _text(
    base: alt.Chart,
    y: alt.Y,
    field: str,
    end: Literal[0, "width"],
    dx: int,
    *,
    size: int,
    weight: Literal["normal", 600] = "normal",
    align: Literal["left", "right"] = "left",
) -> alt.Chart:
    """A column of texts, `dx` pixels right of the left or the right end of the scale."""
    mark = base.mark_text(align=align, baseline="middle", dx=dx, fontSize=size, fontWeight=weight, clip=False)
    placed: alt.Chart = mark.encode(x=alt.value(end), y=y, text=f"{field}:N")
    return placed
