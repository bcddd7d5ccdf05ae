"""The records of a talk: what is on each slide.

Colours are `#rrggbb`. The notes of a slide have all figures that are drawn on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, PositiveInt, model_validator

from weighbridge.common.record import Record
from weighbridge.results.record import PlannedLayout
from weighbridge.results.show.scales import AxisScale
from weighbridge.results.show.theme import Look, Tone

Colour = Annotated[str, Field(pattern=r"^#[0-9A-Fa-f]{6}$")]
Align = Literal["left", "center", "right"]
Side = Literal["above", "left", "right", "below"]


class TableCell(Record):
    """`across` and `down`: columns and lines that it spans, where others are `covered`."""

    text: str
    fill: Colour | None = None
    """None: the slide's background."""
    ink: Colour | None = None
    bold: bool = False
    align: Align = "left"
    across: PositiveInt = 1
    down: PositiveInt = 1
    covered: bool = False


def head_cells(texts: Iterable[str], look: Look, align: Align = "center") -> list[TableCell]:
    """Bold cells of a table's head."""
    return [TableCell(text=text, fill=look.grid, bold=True, align=align) for text in texts]


class SlideTable(Record):
    """A table whose first `heads` lines are its head; `widths` are relative to one another."""

    widths: tuple[float, ...]
    lines: Annotated[tuple[tuple[TableCell, ...], ...], Field(min_length=1)]
    heads: PositiveInt = 1
    largest_pt: PositiveInt = 20

    @model_validator(mode="after")
    def _even(self) -> SlideTable:
        if any(len(line) != len(self.widths) for line in self.lines):
            raise ValueError(f"each line of the table needs {len(self.widths)} cells")
        return self


class ChartPoint(Record):
    """One point of a chart, with the ends of its whiskers; None: no whisker."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    x_low: float | None = None
    x_high: float | None = None
    label: str = ""
    side: Side = "above"
    """The side of the point that its label is on."""


class Series(Record):
    """Points of a layout: a line, or if not `joined`, crosses for figures that are not ranked."""

    name: str
    layout: str
    points: Annotated[tuple[ChartPoint, ...], Field(min_length=1)]
    joined: bool = True


class SeriesChart(Record):
    """Series over worker counts at equal distances (`lines`), or over two figures (`paths`)."""

    form: Literal["lines", "paths"]
    x: AxisScale
    y: AxisScale
    series: Annotated[tuple[Series, ...], Field(min_length=1)]
    layouts: tuple[PlannedLayout, ...]
    """All layouts of the run, which give each its colour and shape."""


class SlideBar(Record):
    """A bar from 0, with whiskers where an interval is known, of a layout or of a tone."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    layout: str = ""
    tone: Tone | float | None = None
    label: str
    """Its figure as text."""


class BarChart(Record):
    """Horizontal bars, the first one on top."""

    x: AxisScale
    bars: Annotated[tuple[SlideBar, ...], Field(min_length=1)]
    layouts: tuple[PlannedLayout, ...] = ()


class SlideCard(Record):
    """A large figure, what it is about, and what it is based on."""

    figure: str
    about: str
    text: str
    detail: str
    colour: Colour


class Slide(Record):
    """One slide. `title` is the finding, a sentence; `lead` is below it, `foot` at the bottom."""

    key: str
    """A slug that is unique in the deck."""
    title: str
    lead: str = ""
    cards: tuple[SlideCard, ...] = ()
    lines: tuple[str, ...] = ()
    """Sentences, a bullet each."""
    grid: SlideTable | None = None
    chart: SeriesChart | BarChart | None = None
    code: str = ""
    """A command line."""
    foot: str = ""
    notes: Annotated[tuple[str, ...], Field(min_length=1)]
    """The speaker's notes: every figure of the slide with its number of repeats."""
    opening: bool = False


class Deck(Record):
    """A complete talk. `dated`: when its run started, UTC, ISO 8601."""

    title: str
    subject: str
    footer: str
    dated: str
    look: Look
    colours: tuple[Colour, ...]
    """The layouts' colours, in order."""
    slides: Annotated[tuple[Slide, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _unique_keys(self) -> Deck:
        keys = [slide.key for slide in self.slides]
        if len(set(keys)) < len(keys):
            raise ValueError("two slides have the same key")
        return self
