"""The staircase chart: for each kind of requests and layout a row per layer, from front to disks.

Rates are on a logarithmic scale, since a disk and a gateway may differ a hundredfold. So they are
dots, not bars: the length of a bar would mean nothing. The band between a dot and the rate of the
layer below is the loss between the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

from weighbridge.common.structure import Level
from weighbridge.results.analysis.layers.staircase import (
    HARDWARE,
    INSIDE,
    PLAIN,
    LayerStep,
    Staircase,
    percent,
    staircase_csv,
)
from weighbridge.results.charts.chart_source import ChartSource
from weighbridge.results.charts.panels import AxisScale, Figure, Mark, Panel, Spot
from weighbridge.results.figures import UNKNOWN, show_figure, upper
from weighbridge.results.record.resolved import PlannedLayout

WIDTH: Final = 270
PAGE_WIDTH: Final = 170
ROW: Final = 27
LABELS: Final = 142
"""Width of the layers' names, left of the scale, in pixels."""


def staircase_chart(source: ChartSource) -> tuple[Figure, ...]:
    """The chart of a run's layers; none where there is nothing to draw."""
    figure = staircase_figure(source.stairs, source.layouts)
    return () if figure is None else (figure,)


def staircase_figure(
    stairs: Sequence[Staircase], layouts: Sequence[PlannedLayout]
) -> Figure | None:
    """The chart of staircases; None where there is nothing to draw."""
    if not any(stair.known for stair in stairs):
        return None
    return Figure(
        name="efficiency-staircase",
        section="layers",
        title="Where it is lost: from the disks to the clients",
        finding=finding(stairs),
        caption="MB/s of objects that each layer can serve to clients, after replication, and its "
        "share of the layer below. For RADOS and object servers that is their disks or network, "
        "whichever is less. Gateways at their best worker count, layers at the largest. Hollow: "
        "its load client ran out of CPU, so it can do more.",
        data=staircase_csv(stairs),
        panels=tuple(
            _panel(list(mine)) for _, mine in groupby(stairs, key=lambda stair: stair.kind)
        ),
        layouts=tuple(layouts),
        labels_px=LABELS,
    )


def finding(stairs: Sequence[Staircase]) -> str:
    """By layout, the share of what the store can do, or else the hardware, that clients get."""
    by_level: dict[Level, list[str]] = {}
    for layout in dict.fromkeys(stair.layout for stair in stairs):
        shares: dict[Level, list[float]] = {}
        for stair in stairs:
            reference = _reference(stair)
            if (
                stair.layout == layout
                and reference is not None
                and reference.throughput_ops_s
                and stair.top.throughput_ops_s
            ):
                shares.setdefault(reference.level, []).append(
                    stair.top.throughput_ops_s / reference.throughput_ops_s
                )
        if shares:
            level, found = max(shares.items(), key=lambda one: len(one[1]))
            low, high = percent(min(found)), percent(max(found))
            span = high if low == high else f"{low.removesuffix(' %')} to {high}"
            by_level.setdefault(level, []).append(f"{span} ({layout})")
    parts = [
        f"of what {INSIDE[level]} can do, clients get {', '.join(layouts)}"
        for level, layouts in by_level.items()
    ]
    text = "; ".join(parts) or "what each layer can do"
    return upper(text)


def _reference(stair: Staircase) -> LayerStep | None:
    """The layer that a staircase's top is compared with: its store, else the slower below."""
    below = [
        step
        for step in stair.known
        if step is not stair.top and step.level != "gateway" and step.carries
    ]
    stores = [step for step in below if step.level not in HARDWARE]
    return (
        stores[-1]
        if stores
        else min(below, key=lambda step: step.throughput_ops_s or 0.0, default=None)
    )


def _panel(stairs: Sequence[Staircase]) -> Panel:
    spots: dict[str, list[Spot]] = {
        name: []
        for name in ("loss", "riser", "point", "hollow", "head", "name", "figure", "beside", "gap")
    }
    count = 0
    for stair in stairs:
        spots["head"].append(Spot(y=count, text=stair.layout, layout=stair.layout))
        places = {
            step.level: count + 1 + number for number, step in enumerate(reversed(stair.steps))
        }
        for step in stair.steps:
            for kind, spot in _row(stair, step, places):
                spots[kind].append(spot)
        count += 1 + len(stair.steps)
    known = [value for stair in stairs for step in stair.steps if (value := step.bandwidth_mb_s)]
    left: dict[str, Any] = {"at": "left", "align": "left"}
    right: dict[str, Any] = {"at": "right", "align": "left", "dx": 74}
    return Panel(
        key="-".join(stairs[0].kind),
        title=upper(stairs[0].about),
        alt_text=" ".join(f"{stair.words}." for stair in stairs),
        x=AxisScale.logarithmic(known, "MB/s (log scale)"),
        y=AxisScale(low=count - 0.4, high=-0.6, hidden=True),
        marks=(
            *(
                Mark(kind=kind, spots=tuple(spots[kind]))
                for kind in ("loss", "riser", "point", "hollow")
            ),
            Mark(kind="strong text", spots=tuple(spots["head"]), dx=-LABELS, size=15, **left),
            Mark(kind="text", spots=tuple(spots["name"]), dx=10 - LABELS, **left),
            Mark(
                kind="strong text", spots=tuple(spots["figure"]), at="right", align="right", dx=62
            ),
            Mark(kind="text", spots=tuple(spots["beside"]), **right),
            Mark(kind="text", spots=tuple(spots["gap"]), size=13, **right),
        ),
        width=WIDTH,
        height=count * ROW,
        page_width=PAGE_WIDTH,
    )


def _row(stair: Staircase, step: LayerStep, places: dict[Level, int]) -> list[tuple[str, Spot]]:
    """What is drawn of a layer, with the kind of mark."""
    at: dict[str, Any] = {
        "y": float(places[step.level]),
        "tone": "ink" if step.believable else "bad",
    }
    rate = step.bandwidth_mb_s
    figure = UNKNOWN if rate is None else f"{'≥ ' if step.held else ''}{show_figure(rate)}"
    found = [("name", Spot(text=step.name, **at)), ("figure", Spot(text=figure, **at))]
    if rate is None:
        gap = step.note.partition(": --layers")[0]
        return [*found, *([("gap", Spot(text=gap, **{**at, "tone": "muted"}))] if gap else [])]
    of = (
        ""
        if step.of_below is None or step.below is None
        else f"{percent(step.of_below)} of {PLAIN[step.below]}"
    )
    remark = (
        f"{', ' if of else ''}{step.doubt.verdict}"
        if step.doubt is not None and step.doubt.verdict != "at least"
        else ""
    )
    point = Spot(
        x=rate, y=at["y"], layout=stair.layout, tip=f"{stair.layout}, {step.name}: {figure} MB/s"
    )
    found += [
        ("beside", Spot(text=f"{of}{remark}", **at)),
        ("hollow" if step.held else "point", point),
    ]
    lower = stair.step(step.below) if step.below is not None else None
    if lower is not None and lower.bandwidth_mb_s is not None:
        below = Spot(
            x=lower.bandwidth_mb_s, y=at["y"], y2=float(places[lower.level]), layout=stair.layout
        )
        found += [
            ("loss", Spot(x=rate, x2=lower.bandwidth_mb_s, y=at["y"], layout=stair.layout)),
            ("riser", below),
        ]
    return found
