"""What a chart is made of: panels of marks on two scales. A chart is a function that gives a
`Figure`; it says what is shown and in which words, and `results.charts.composer` how that looks:
theme, palette, axes, labels, legend, layout.

Nothing here knows a look: a mark has the colour of a layout, or a `Tone` that says what it means.
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
    """One scale with its axis: of numbers from `low` to `high`, or of `names` in their order."""

    kind: Literal["linear", "log", "names"] = "linear"
    low: float = 0.0
    high: float = 1.0
    ticks: tuple[float, ...] = ()
    title: str = ""
    expression: str = ""
    """How a tick is written, where that is not its number or name, as a Vega expression."""
    grid: bool = True
    hidden: bool = False
    """Whether it has no axis, since texts say what is where."""
    names: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    """What each name belongs to: shown once for all that follow one another, outside of the names.
    """

    @classmethod
    def from_zero(cls, largest: float, title: str, **more: Any) -> AxisScale:
        """A linear scale from 0 that holds the largest value."""
        high, step = nice_top(largest)
        ticks = tuple(number * step for number in range(round(high / step) + 1))
        return cls(high=high, ticks=ticks, title=title, **more)

    @classmethod
    def around(cls, values: Sequence[float], title: str) -> AxisScale:
        """A linear scale that holds all values.

        It need not begin at 0, so nothing on it may be an area.
        """
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
        """A logarithmic scale that holds all values, which are above 0; from 1 to 10 without
        any.
        """
        low, high, ticks = log_ticks(min(values, default=1.0), max(values, default=10.0))
        return cls(kind="log", low=low, high=high, ticks=tuple(ticks), title=title, **more)

    @classmethod
    def workers(cls, counts: Sequence[int], title: str = "workers") -> AxisScale:
        """Worker counts: logarithmic, a tick for each of them."""
        first, last = counts[0], counts[-1]
        low, high = (first / 1.2, last * 1.08) if first != last else (first / 2, last * 2)
        return cls(kind="log", low=low, high=high, ticks=tuple(counts), title=title, grid=False)

    @classmethod
    def of_names(cls, names: Sequence[str], title: str = "", **more: Any) -> AxisScale:
        """Names, the first at the top or at the left."""
        return cls(kind="names", names=tuple(names), title=title, grid=False, **more)

    def share(self, value: float) -> float:
        """How far along the scale a value lies, from 0 to 1; what is below a logarithmic scale lies
        at its beginning.
        """
        if self.kind == "log":
            return math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def value(self, share: float) -> float:
        """The value that lies so far along it."""
        if self.kind == "log":
            return self.low * math.exp(share * math.log(self.high / self.low))
        return self.low + share * (self.high - self.low)


Tone = Literal["ink", "muted", "axis", "bad", "cpu", "disk", "disks", "network", "fabric"]
"""What has no colour of a layout: words, words beside them, lines of the ground, what is not to be
believed; parts of a host.
"""


class Spot(Record):
    """One point, interval, cell or text. All spots of a mark have the same of `x`, `y`, `x2`, `y2`;
    without `x` a mark goes from side to side, without `y` from top to bottom.
    """

    x: float | str | None = None
    y: float | str | None = None
    x2: float | None = None
    y2: float | None = None
    layout: str = ""
    """Whose colour and shape it has."""
    tone: Tone | float | None = None
    """What it means instead: a `Tone`, or a place on the scale from worse, -1, to better, 1."""
    value: float | None = None
    """Of a cell whose colour is an amount."""
    text: str = ""
    tip: str = ""
    """What is said of it where the pointer rests."""


class Trace(Record):
    """A line through points in their order, or a band between `y` and `y2`."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    y2: tuple[float, ...] = ()
    layout: str = ""
    tone: Tone | None = None


# Grouped by what they are: lines and bands of traces, points, bars and intervals, rules, cells, texts.
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
"""What can be drawn; `results.charts.composer` says how.

`level` is a rule with words, `beside` texts where there is room.
"""


class Mark(Record):
    """One layer of a panel: `spots`, or of lines and bands `traces`."""

    kind: MarkKind
    spots: tuple[Spot, ...] = ()
    traces: tuple[Trace, ...] = ()
    stepped: bool = False
    """Whether a line stays level until its next point."""
    at: Literal["x", "left", "right"] = "x"
    """Whether texts stand at their `x`, or in a column at a side of the panel."""
    align: Literal["left", "center", "right"] = "center"
    dx: float = 0
    """How far right of that, in pixels."""
    size: PositiveInt | None = None
    """Of texts, in pixels."""


class Label(Record):
    """A layout's name at the right of a panel, and what it names: the end of a line at `x`, `y`, by
    the panel's scales.
    """

    layout: str
    x: float | None
    """None: it names nothing that is drawn, and has no thread."""
    y: float
    text: str = ""
    """Where that is not the layout's name alone."""
    note: str = ""
    """Below the name, smaller."""


class HeatScale(Record):
    """The logarithmic scale of colour of cells that have a `value`."""

    low: float
    high: float
    title: str


class Panel(Record):
    """One panel of a figure, with what it shows as a table: `head` and `lines`."""

    key: str
    """A slug that tells it from the figure's other panels."""
    title: str
    finding: str = ""
    """What it says, in a few words or a sentence; empty where there is nothing to say."""
    x: AxisScale
    y: AxisScale
    marks: tuple[Mark, ...]
    labels: tuple[Label, ...] = ()
    heat: HeatScale | None = None
    aside: str = ""
    """Small words above its right end."""
    told: str = ""
    """The same in words, for those who cannot see it; the finding where there is nothing to add."""
    head: tuple[str, ...] = ()
    lines: tuple[tuple[str, ...], ...] = ()
    width: PositiveInt = WIDTH
    height: PositiveInt = HEIGHT
    row: str = ""
    """Title of the row of panels that it stands in, where a figure has such rows."""
    page_width: PositiveInt | None = None
    """Its width on a page, where texts beside it need the rest; None: all the width that there is.
    """

    def px(self, x: float, y: float) -> tuple[float, float]:
        """Pixels from the lower left corner."""
        return self.x.share(x) * self.width, self.y.share(y) * self.height

    def values(self, x_px: float, y_px: float) -> tuple[float, float]:
        """What lies so many pixels from the lower left corner."""
        return self.x.value(x_px / self.width), self.y.value(y_px / self.height)

    @property
    def table(self) -> tuple[tuple[str, ...], ...]:
        """Its head and lines; where a chart gives none, every spot and every point of its
        traces.
        """
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
    """One chart. `finding` is its title, one sentence without a full stop; `caption` says how to
    read it.
    """

    name: str
    """What its files are called."""
    title: str
    """What kind of chart it is: its heading on a page."""
    finding: str
    caption: str
    panels: tuple[Panel, ...]
    data: str = ""
    """What it is drawn from, as CSV, where that is more than the tables of its panels."""
    section: Literal["workers", "figures", "certainty", "layers", "study", "resources"] = "figures"
    """Where a report shows it."""
    columns: PositiveInt = 2
    layouts: tuple[PlannedLayout, ...] = ()
    """Those that have a colour and a shape in it, in order."""
    legend: bool = False
    """Whether the layouts are named above it, since its panels are too small for labels."""
    labels_px: int = 0
    """How wide long labels left of its panels are: the title begins above them. 0: it begins above
    the panels.
    """

    @property
    def csv(self) -> str:
        """What it is drawn from."""
        if self.data or not self.panels:
            return self.data
        lines = [(panel.title, *line) for panel in self.panels for line in panel.table[1:]]
        return csv_lines(("panel", *self.panels[0].table[0]), lines)


def _shown(cell: float | str | None) -> str:
    return show_figure(cell) if isinstance(cell, float) else cell or ""


def upper(text: str) -> str:
    """A text with a capital letter at its beginning."""
    return f"{text[:1].upper()}{text[1:]}"


def at_count(workers: int) -> str:
    """`8 workers`."""
    return f"{workers} worker{'s' * (workers != 1)}"
