"""Ceilings in charts of throughput: what disks, network and store can do.

The scale follows the gateways' figures: a ceiling extends it a little, and never so far that they
are squeezed together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from statistics import median_low
from typing import Final

from weighbridge.common.record import Record
from weighbridge.common.structure import Level
from weighbridge.results.analysis.layers.staircase import LAYER_BOUND, PLAIN, Staircase
from weighbridge.results.charts.panels import Mark, Spot
from weighbridge.results.figures import show_figure

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


def ceiling_mark(lines: Sequence[CeilingLine], top: float, *, lone: bool) -> Mark:
    """The ceilings on a scale that ends at `top`; one of several layouts has its colour."""
    spots = [
        Spot(
            y=line.value,
            text=f"{line.label} {show_figure(line.value)}",
            **(
                {"layout": line.layouts[0]}
                if len(line.layouts) == 1 and not lone
                else {"tone": "muted"}
            ),
        )
        for line in lines
        if line.value <= top
    ]
    return Mark(kind="ceiling", spots=tuple(spots))


def far_ceilings(lines: Sequence[CeilingLine], top: float) -> str:
    """The ceilings above the scale: `↑ disks 9,370, network 6,250 to 18,900`; empty without any."""
    found: dict[str, list[float]] = {}
    for line in lines:
        if line.value > top:
            found.setdefault(line.layer, []).append(line.value)
    spans = []
    for layer, values in found.items():
        low, high = show_figure(min(values)), show_figure(max(values))
        spans.append(f"{layer} {low if low == high else f'{low} to {high}'}")
    return f"↑ {', '.join(spans)}" if spans else ""
