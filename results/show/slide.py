"""What is on a slide: texts, charts, tables and cards as plain data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from weighbridge.results.numbers import upper

MAX_SLIDES: Final = 8
"""What an audience can follow; more is behind the divider."""
MAX_NOTE_WORDS: Final = 100

BETTER: Final = "tone:better"
WORSE: Final = "tone:worse"
INK: Final = "tone:ink"
MUTED: Final = "tone:muted"
BAD: Final = "tone:bad"
SHADE: Final = "tone:shade"
GRID: Final = "tone:grid"
"""Colours by what they mean; any other colour of a slide is the name of a layout."""


@dataclass(frozen=True)
class SlideCell:
    """A text in a table, its colour and that of its ground; empty: the slide's."""

    text: str
    ink: str = INK
    fill: str = ""
    bold: bool = False


Table = tuple[tuple[SlideCell, ...], ...]
"""The first line is the head."""
SlideLine = Sequence[str | SlideCell]
"""A line of a table to be."""


@dataclass(frozen=True)
class Point:
    """A figure with the ends of its whiskers. `x` is a worker count, a figure, or a bar's name."""

    x: float | str
    y: float
    low: float | None = None
    high: float | None = None
    label: str = ""
    colour: str = MUTED
    """Of a bar."""


@dataclass(frozen=True)
class Series:
    """Points of a layout: a line, or if not `joined` crosses, for figures that are not compared."""

    name: str
    points: tuple[Point, ...]
    colour: str = MUTED
    joined: bool = True


@dataclass(frozen=True)
class SlideChart:
    """`bars` from 0, `lines` over worker counts at equal distances, or `paths` over two figures."""

    form: Literal["bars", "lines", "paths"]
    title: str
    """What is drawn, with its unit."""
    series: tuple[Series, ...]
    x_title: str = ""
    limit: float = math.inf
    """The axis ends there, even if a whisker does not."""


def bar_chart(title: str, bars: Iterable[Point], limit: float = math.inf) -> SlideChart:
    """A chart of bars, the first one on top."""
    return SlideChart("bars", title, (Series(title, tuple(bars)),), limit=limit)


@dataclass(frozen=True)
class SlideCard:
    """A large figure, what it is about, and what it rests on. `caveat`: its border is dashed."""

    figure: str
    about: str
    text: str
    detail: str
    colour: str = MUTED
    caveat: bool = False


@dataclass(frozen=True)
class Slide:
    """From top to bottom: title, caveat, lead, cards, table, charts, lines, code, foot.

    The title is the finding. `lines` are sentences, `code` a command, `charts` one or two beside
    each other. `notes` are sentences for the speaker, the most important first; beyond
    MAX_NOTE_WORDS they are left out.
    """

    title: str
    caveat: str = ""
    lead: str = ""
    cards: tuple[SlideCard, ...] = ()
    table: Table = ()
    labels: int = 1
    """The columns that are repeated where a table continues on another slide."""
    charts: tuple[SlideChart, ...] = ()
    lines: tuple[str, ...] = ()
    code: str = ""
    foot: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Topic:
    """What one question gives to the talk of a run. The answer of the first topic is its title."""

    question: str
    answer: str
    """A sentence without a full stop."""
    caveat: str = ""
    cards: tuple[SlideCard, ...] = ()
    slides: tuple[Slide, ...] = ()
    """The most important first: those without room come behind the divider."""
    backup: tuple[Slide, ...] = ()
    doubts: tuple[str, ...] = ()
    """Sentences on how sure the answer is."""
    meaning: tuple[str, ...] = ()
    """Sentences on what it means for the audience."""

    @property
    def sentence(self) -> str:
        """The answer with its caveat."""
        caveat = self.caveat or (self.shown.caveat if self.shown is not None else "")
        return f"{upper(self.answer)}{f' ({caveat[:1].lower()}{caveat[1:]})' if caveat else ''}."

    @property
    def shown(self) -> Slide | None:
        """The slide that shows the answer, if its title is the answer."""
        return next((slide for slide in self.slides[:1] if slide.title == self.answer), None)


def table_of(head: Iterable[str], lines: Iterable[SlideLine]) -> Table:
    """A table of texts and cells; the first cell of each line is bold."""
    table = [tuple(SlideCell(text, fill=GRID, bold=True) for text in head)]
    for line in lines:
        first, *others = (SlideCell(cell) if isinstance(cell, str) else cell for cell in line)
        table.append((replace(first, bold=True), *others))
    return tuple(table)
