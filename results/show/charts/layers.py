"""Charts of layers: the staircase from the disks to the clients, and ceilings in other charts.

Rates are on a logarithmic scale, since a disk and a gateway may differ a hundredfold. So they are
points, not bars: the length of a bar would mean nothing. The band between a point and the rate of
the layer below is what is lost between the two.

A ceiling is what disks, network or store can do. The scale of a chart of throughput follows the
gateways' figures: a ceiling extends it a little, and never so far that they are squeezed together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from statistics import median_low
from typing import Any, Final

from weighbridge.common.record import Record
from weighbridge.common.structure import Level
from weighbridge.results.analysis.layers.staircase import (
    HARDWARE,
    INSIDE,
    LAYER_BOUND,
    PLAIN,
    LayerStep,
    Staircase,
    percent,
)
from weighbridge.results.figures import show_figure, upper
from weighbridge.results.show.chart import (
    COLOUR,
    COMPARABLE,
    FULL_WIDTH,
    MUTED,
    NOT_COMPARABLE,
    PROVISIONAL,
    Chart,
    Panel,
    Spec,
    layer,
    standing_layers,
)
from weighbridge.results.show.chart_source import ChartSource
from weighbridge.results.show.scales import AxisScale, names_encoding, spread

DRAWN: Final[tuple[Level, ...]] = ("disk", "network", "rados", "object-server")
NEAR: Final = 1.6
"""A ceiling up to so many times the highest mark is drawn; a higher one is in words."""


class CeilingLine(Record):
    """A ceiling from the layer below, in op/s: a line across a panel, or words if far above."""

    layouts: tuple[str, ...]
    layer: str
    label: str
    """The layer, with its layouts where others have another ceiling."""
    value: float


def ceiling_lines(stairs: Iterable[Staircase]) -> Mapping[str, tuple[CeilingLine, ...]]:
    """The ceilings by key of the panel; those within LAYER_BOUND share one line."""
    found = {}
    for kind, group in groupby(stairs, key=lambda stair: stair.kind):
        mine = list(group)
        lines: list[CeilingLine] = []
        for level in DRAWN:
            steps = [
                (step.throughput_ops_s or 0.0, stair.layout)
                for stair in mine
                if (step := stair.step(level)) is not None and step.carries
            ]
            # The top layer is the curve itself.
            below = [
                one
                for one in steps
                if any(stair.layout == one[1] and stair.top.level != level for stair in mine)
            ]
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
        lines.append(
            CeilingLine(
                layouts=layouts, layer=PLAIN[level], label=f"{PLAIN[level]}{whose}", value=value
            )
        )
    return lines


def top_with_ceilings(largest: float, lines: Iterable[CeilingLine]) -> float:
    """The largest value for the scale to hold, including the ceilings that are near."""
    return max([largest, *(line.value for line in lines if line.value <= NEAR * largest)])


def ceiling_layers(lines: Sequence[CeilingLine], scale: AxisScale, *, lone: bool) -> list[Spec]:
    """The ceilings on a scale, with their names; one of several layouts has its colour."""
    drawn = [line for line in lines if line.value <= scale.high]
    if not drawn:
        return []
    gap = 0.07
    places = spread([scale.share(line.value) + gap / 2 for line in drawn], gap)
    rows = [
        {
            "layout": line.layouts[0] if len(line.layouts) == 1 and not lone else "",
            "value": line.value,
            "at": scale.value(place),
            "text": f"{line.label} {show_figure(line.value)}",
        }
        for line, place in zip(drawn, places, strict=True)
    ]
    layers = []
    for whose, colour in (("datum.layout", COLOUR), ("!datum.layout", MUTED)):
        rule = layer("rule", "level", whose, y="value", color=colour)
        rule["encoding"] |= FULL_WIDTH
        words = layer("text", "note", whose, y="at", text="text", color=colour)
        words["encoding"]["x"] = {"value": 0}
        layers += [rule, words]
    return [{**one, "data": {"values": rows}} for one in layers]


def far_ceilings(lines: Sequence[CeilingLine], top: float) -> str:
    """The ceilings above the scale: `↑ disks 9,370, network 6,250 to 18,900`; empty without any."""
    found: dict[str, list[float]] = {}
    for line in lines:
        if line.value > top:
            found.setdefault(line.layer, []).append(line.value)
    spans = []
    for name, values in found.items():
        low, high = show_figure(min(values)), show_figure(max(values))
        spans.append(f"{name} {low if low == high else f'{low} to {high}'}")
    return f"↑ {', '.join(spans)}" if spans else ""


def staircase_chart(source: ChartSource) -> tuple[Chart, ...]:
    """The chart of a run's layers; none where there is nothing to draw."""
    stairs = source.stairs
    if not any(stair.known for stair in stairs):
        return ()
    chart = Chart(
        key="efficiency-staircase",
        section="layers",
        title="Where it is lost: from the disks to the clients",
        finding=finding(stairs),
        caption="MB/s that each layer can serve to clients, after replication, and its share of "
        "the layer below. Hollow: at least this, since its load client ran out of CPU. ×: not "
        "believable.",
        panels=tuple(
            _panel(list(mine)) for _, mine in groupby(stairs, key=lambda stair: stair.kind)
        ),
        layouts=source.layouts,
        legend=len(source.layouts) > 1,
    )
    return (chart,)


def _panel(stairs: Sequence[Staircase]) -> Panel:
    names = _levels(stairs)
    rows = [row for stair in stairs for step in reversed(stair.steps) for row in _rows(stair, step)]
    known = [value for stair in stairs for step in stair.steps if (value := step.bandwidth_mb_s)]
    # Twice as far to the right as the largest: there the texts are.
    scale = AxisScale.logarithmic([*known, 4 * max(known, default=1.0)], "MB/s (log scale)")
    layouts = list(dict.fromkeys(stair.layout for stair in stairs))
    loss = layer("rule", "bin", "isValid(datum._below)", x="bandwidth_mb_s", x2="_below")
    words = layer("text", "figure", "", x="_right", text="_text")
    points = []
    for one in standing_layers("bandwidth_mb_s"):
        place = one["encoding"].pop("y")
        points.append({**one, "encoding": {**one["encoding"], "x": place}})
    beside = {"field": "layout", "type": "nominal", "sort": layouts}
    return Panel(
        key="-".join(stairs[0].kind),
        title=upper(stairs[0].about),
        rows=rows,
        spec={
            "encoding": {
                "x": scale.encoding(),
                "y": {**names_encoding(names), "field": "layer"},
                "yOffset": {**beside, "scale": {"domain": layouts}},
                "color": COLOUR,
            },
            "layer": [loss, *points, words],
        },
        height=max(2, len(layouts)) * len(names) * 22 + 40,
        alt_text=" ".join(f"{stair.words}." for stair in stairs),
    )


def _levels(stairs: Sequence[Staircase]) -> list[str]:
    """The names of the layers from the clients down: those of the longest staircase, and others
    before the layer that is above them.
    """
    names: list[str] = []
    for stair in sorted(stairs, key=lambda stair: -len(stair.steps)):
        at = 0
        for step in reversed(stair.steps):
            if step.name in names:
                at = names.index(step.name) + 1
            else:
                names.insert(at, step.name)
                at += 1
    return names


def _rows(stair: Staircase, step: LayerStep) -> Iterator[dict[str, Any]]:
    rate, below = step.bandwidth_mb_s, None
    if step.below is not None and (lower := stair.step(step.below)) is not None:
        below = lower.bandwidth_mb_s
    figure = "not measured" if rate is None else f"{'≥ ' * bool(step.held)}{show_figure(rate)}"
    of = (
        ""
        if step.of_below is None or step.below is None or rate is None
        else f", {percent(step.of_below)} of {PLAIN[step.below]}"
    )
    doubted = step.doubt is not None and step.doubt.verdict != "at least"
    remark = f", {step.doubt.verdict}" if step.doubt is not None and doubted else ""
    standing = NOT_COMPARABLE if not step.believable else PROVISIONAL if step.held else COMPARABLE
    yield {
        "layout": stair.layout,
        "layer": step.name,
        "workers": step.workers,
        "throughput_ops_s": step.throughput_ops_s,
        "bandwidth_mb_s": rate,
        "below": step.below,
        "share_of_below": step.of_below,
        "standing": None if rate is None else standing,
        "note": step.note,
        "_at": rate,
        "_below": below if rate is not None else None,
        "_right": max(rate or 0.0, below or 0.0) or None,
        "_text": f"{figure}{of}{remark}",
    }


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
