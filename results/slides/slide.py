"""The records of a talk: what is on each slide, before it is known whether that becomes PowerPoint
or Markdown.

Colours are `#rrggbb`. Everything that is drawn is told in figures as well, in the notes of its
slide.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt, model_validator

from weighbridge.common.record import Record
from weighbridge.results.charts.chart_theme import Look

Colour = Annotated[str, Field(pattern=r"^#[0-9A-Fa-f]{6}$")]
Align = Literal["left", "center", "right"]
Side = Literal["above", "left", "right", "below"]


class TableCell(Record):
    """A cell of a table.

    `across` and `down` say over how many columns and lines it goes; those it covers are `covered`.
    """

    text: str
    fill: Colour | None = None
    """None: as the page."""
    ink: Colour | None = None
    bold: bool = False
    align: Align = "left"
    across: PositiveInt = 1
    down: PositiveInt = 1
    covered: bool = False


class SlideTable(Record):
    """A table: its first `heads` lines are its head.

    `widths` are the columns' shares of the whole, in any unit.
    """

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
    """One point of a chart.

    Of a line chart `x` is the place of its category, from 0. None: no whisker.
    """

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    x_low: float | None = None
    x_high: float | None = None
    label: str = ""
    side: Side = "above"
    """Where the label stands."""


class Series(Record):
    """Points that belong together.

    Not `joined`: no line goes through them, and they are crosses: figures that are not valid.
    """

    name: str
    colour: Colour
    shape: str
    spots: Annotated[tuple[ChartPoint, ...], Field(min_length=1)]
    joined: bool = True


class Axis(Record):
    """An axis of figures: ends and step of its ticks; logarithmic ones go by powers of ten."""

    title: str
    low: float
    high: float
    step: float | None = None
    logarithmic: bool = False


class LineChart(Record):
    """Series over categories that stand at equal distances."""

    categories: tuple[str, ...]
    across: str
    """What the categories are."""
    up: Axis
    series: Annotated[tuple[Series, ...], Field(min_length=1)]


class ScatterChart(Record):
    """Series over two figures, each joined in the order of its spots."""

    across: Axis
    up: Axis
    series: Annotated[tuple[Series, ...], Field(min_length=1)]


class SlideBar(Record):
    """A bar from 0, with whiskers where an interval is known."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    colour: Colour
    label: str
    """Its figure in words, told with its name."""


class BarChart(Record):
    """Bars that lie, the first one on top."""

    across: Axis
    bars: Annotated[tuple[SlideBar, ...], Field(min_length=1)]


class SlideCard(Record):
    """A figure as it is put on a screen, what it is about, and what it rests on."""

    figure: str
    about: str
    text: str
    detail: str
    colour: Colour


class Slide(Record):
    """One slide. `title` says what was found, in a sentence; `lead` comes below it, and `foot` says
    how to read the rest.
    """

    key: str
    """A slug that tells it from all others."""
    title: str
    lead: str = ""
    cards: tuple[SlideCard, ...] = ()
    lines: tuple[str, ...] = ()
    """Sentences, a bullet each."""
    grid: SlideTable | None = None
    chart: LineChart | ScatterChart | BarChart | None = None
    code: str = ""
    """A command, as it is typed."""
    foot: str = ""
    notes: Annotated[tuple[str, ...], Field(min_length=1)]
    """What the speaker has before them: every figure of the slide with its number of repeats."""
    opening: bool = False


class Deck(Record):
    """A whole talk. `dated` is when its run was made, UTC, ISO 8601: nothing in a deck tells when
    it was rendered.
    """

    title: str
    subject: str
    footer: str
    dated: str
    look: Look
    colours: tuple[Colour, ...]
    """Of the layouts, in order."""
    slides: Annotated[tuple[Slide, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _told_apart(self) -> Deck:
        keys = [slide.key for slide in self.slides]
        if len(set(keys)) < len(keys):
            raise ValueError("two slides have the same key")
        return self
