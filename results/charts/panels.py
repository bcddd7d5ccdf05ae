"""The chart model: panels of marks on two scales.

A chart is a function that returns a `Figure`. It says what is shown and in which words;
`results.charts.composer` decides how that looks: theme, palette, axes, labels, legend, layout. A
mark has the colour of a layout, or a `Tone` that says what it means.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, Literal

from pydantic import PositiveInt

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.record import Record
from weighbridge.results.charts.placing import log_ticks, nice_top
from weighbridge.results.figures import show_figure
from weighbridge.results.record.resolved import PlannedLayout

WIDTH: Final = 440
HEIGHT: Final = 260
TALL: Final = HEIGHT + 40


class AxisScale(Record):
    """An axis with its scale: numbers from `low` to `high`, or `names` in order."""

    kind: Literal["linear", "log", "names"] = "linear"
    low: float = 0.0
    high: float = 1.0
    ticks: tuple[float, ...] = ()
    title: str = ""
    expression: str = ""
    """How a tick is written, as a Vega expression, where it is not its number or name."""
    grid: bool = True
    hidden: bool = False
    """True: no axis is drawn, since texts in the panel say what is where."""
    names: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    """The group of each name, shown once for neighbours of the same group, outside the names."""

    @classmethod
    def from_zero(cls, largest: float, title: str, **more: Any) -> AxisScale:
        """A linear scale from 0 that holds the largest value."""
        high, step = nice_top(largest)
        ticks = tuple(number * step for number in range(round(high / step) + 1))
        return cls(high=high, ticks=ticks, title=title, **more)

    @classmethod
    def around(cls, values: Sequence[float], title: str) -> AxisScale:
        """A linear scale that holds all values; not from 0, so nothing on it may be an area."""
        low, high = min(values), max(values)
        if low <= 0.5 * high:
            return cls.from_zero(high * 1.02, title)
        _, step = nice_top(high - low or high * 0.1)
        first = int(low // step)
        last = max(-int(-high // step), first + 1)
        ticks = tuple(number * step for number in range(first, last + 1))
        return cls(low=ticks[0], high=ticks[-1], ticks=ticks, title=title)

    @classmethod
    def logarithmic(cls, values: Sequence[float], title: str, **more: Any) -> AxisScale:
        """A logarithmic scale that holds all values, all above 0; from 1 to 10 without any."""
        low, high, ticks = log_ticks(min(values, default=1.0), max(values, default=10.0))
        return cls(kind="log", low=low, high=high, ticks=tuple(ticks), title=title, **more)

    @classmethod
    def workers(cls, counts: Sequence[int], title: str = "workers") -> AxisScale:
        """Worker counts: logarithmic, with a tick for each."""
        first, last = counts[0], counts[-1]
        low, high = (first / 1.2, last * 1.08) if first != last else (first / 2, last * 2)
        return cls(kind="log", low=low, high=high, ticks=tuple(counts), title=title, grid=False)

    @classmethod
    def of_names(cls, names: Sequence[str], title: str = "", **more: Any) -> AxisScale:
        """Names, the first at the top or at the left."""
        return cls(kind="names", names=tuple(names), title=title, grid=False, **more)

    def share(self, value: float) -> float:
        """How far along the scale a value lies, from 0 to 1."""
        if self.kind == "log":
            return math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def value(self, share: float) -> float:
        """The value at a share of the scale: the inverse of `share`."""
        if self.kind == "log":
            return self.low * math.exp(share * math.log(self.high / self.low))
        return self.low + share * (self.high - self.low)


Tone = Literal["ink", "muted", "axis", "bad", "cpu", "disk", "disks", "network", "fabric"]
"""What a mark means where it has no layout's colour: text, secondary text, an axis, something
invalid, or a part of a host.
"""


class Spot(Record):
    """One point, interval, cell or text; all of a mark have the same of `x`, `y`, `x2`, `y2` set.
    Without `x` or `y` it spans the panel.
    """

    x: float | str | None = None
    y: float | str | None = None
    x2: float | None = None
    y2: float | None = None
    layout: str = ""
    tone: Tone | float | None = None
    """Its meaning, instead of a layout: a `Tone`, or a place between worse, -1, and better, 1."""
    value: float | None = None
    """The amount that a cell's colour shows."""
    text: str = ""
    tip: str = ""


class Trace(Record):
    """A line through points in their order, or a band between `y` and `y2`."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    y2: tuple[float, ...] = ()
    layout: str = ""
    tone: Tone | None = None


# By subject: lines and bands of traces, points, bars and intervals, rules, cells, texts.
# fmt: off
MarkKind = Literal[
    "line", "thin line", "faint line", "dotted line", "dashed line", "band",
    "point", "small point", "hollow", "small hollow", "outline", "dot", "diamond", "cross",
    "bar", "whisker", "interval", "strip", "bin", "pale bin", "hollow bin", "loss",
    "rule", "ceiling", "level", "drop", "riser", "tick", "zero",
    "cell", "frame", "shade",
    "text", "strong text", "beside",
]
# fmt: on
"""What can be drawn (`results.charts.composer`): `level` is a rule with text, `beside` texts in
free places."""


class Mark(Record):
    """One layer of a panel: `spots`, or `traces` for lines and bands."""

    kind: MarkKind
    spots: tuple[Spot, ...] = ()
    traces: tuple[Trace, ...] = ()
    stepped: bool = False
    """Whether a line stays level until its next point."""
    at: Literal["x", "left", "right"] = "x"
    """Whether texts are at their `x`, or in a column at a side of the panel."""
    align: Literal["left", "center", "right"] = "center"
    dx: float = 0
    """Offset of texts to the right, in pixels."""
    size: PositiveInt | None = None
    """Font size of texts, in pixels."""


class Label(Record):
    """A layout's name at the right of a panel, with a line to what it names at `x`, `y`."""

    layout: str
    x: float | None
    """None: it names nothing that is drawn, and has no line."""
    y: float
    text: str = ""
    """The label, where it is more than the layout's name."""
    note: str = ""
    """A smaller text below the name."""


class HeatScale(Record):
    """The logarithmic colour scale of cells that have a `value`."""

    low: float
    high: float
    title: str


class Panel(Record):
    """One panel of a figure, with its data as a table: `head` and `lines`."""

    key: str
    """A slug that is unique within the figure."""
    title: str
    finding: str = ""
    """Its result in a few words or a sentence; empty where there is nothing to say."""
    x: AxisScale
    y: AxisScale
    marks: tuple[Mark, ...]
    labels: tuple[Label, ...] = ()
    heat: HeatScale | None = None
    aside: str = ""
    """Small text above its right end."""
    alt_text: str = ""
    head: tuple[str, ...] = ()
    lines: tuple[tuple[str, ...], ...] = ()
    width: PositiveInt = WIDTH
    height: PositiveInt = HEIGHT
    row: str = ""
    """Title of its row, in figures whose panels are in titled rows."""
    page_width: PositiveInt | None = None
    """Its width on a page where texts beside it need room; None: the full width."""

    def px(self, x: float, y: float) -> tuple[float, float]:
        """Pixels from the lower left corner."""
        return self.x.share(x) * self.width, self.y.share(y) * self.height

    def values(self, x_px: float, y_px: float) -> tuple[float, float]:
        """The values at a place in pixels from the lower left corner."""
        return self.x.value(x_px / self.width), self.y.value(y_px / self.height)

    @property
    def table(self) -> tuple[tuple[str, ...], ...]:
        """Its head and lines; without those, every spot and every point of its traces."""
        if self.head:
            return (self.head, *self.lines)
        spots = [(one.layout, one.x, one.y, one.text) for mark in self.marks for one in mark.spots]
        spots += [
            (trace.layout, x, y, "")
            for mark in self.marks
            for trace in mark.traces
            for x, y in zip(trace.x, trace.y, strict=True)
        ]
        shown = [tuple(_shown(cell) for cell in line) for line in spots]
        return (("Layout", self.x.title or "x", self.y.title or "y", "Notes"), *shown)


class Figure(Record):
    """One chart. `finding` is its title, a sentence; `caption` says how to read it."""

    name: str
    """The name of its files, without extension."""
    title: str
    """What kind of chart it is: its heading on a page."""
    finding: str
    caption: str
    panels: tuple[Panel, ...]
    data: str = ""
    """Its data as CSV, where that is more than the tables of its panels."""
    section: Literal[
        "workers", "figures", "certainty", "layers", "study", "resources", "durability"
    ] = "figures"
    """The section of the report that shows it."""
    columns: PositiveInt = 2
    workload: str = ""
    """The workload that it is about, if it is about one alone."""
    layouts: tuple[PlannedLayout, ...] = ()
    legend: bool = False
    """Whether the layouts are named above it, since its panels are too small for labels."""
    labels_px: int = 0
    """Pixels of long labels left of its panels, above which the title begins; 0: above the panels.
    """

    @property
    def csv(self) -> str:
        """Its data."""
        if self.data or not self.panels:
            return self.data
        lines = [(panel.title, *line) for panel in self.panels for line in panel.table[1:]]
        return csv_lines(("panel", *self.panels[0].table[0]), lines)


def _shown(cell: float | str | None) -> str:
    return show_figure(cell) if isinstance(cell, float) else cell or ""
