"""A section: what one question gives to the page, to the terminal and to JSON."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from weighbridge.results.show.table import Cell, Filled


@dataclass(frozen=True)
class Grid:
    """A table of texts. The cells of a column `Layout` get the layout's colour on a page."""

    caption: str
    head: Sequence[str]
    lines: Sequence[Sequence[str]]
    numbers: Collection[int] = ()
    """The columns that hold numbers, from 0."""
    bad: Collection[int] = ()
    """The lines that cannot be compared, or claim nothing, from 0."""
    labels: int = 1
    """The first columns, which a terminal repeats where the table does not fit it."""
    abouts: Sequence[str] = ()
    """What the columns mean."""
    values: Sequence[Sequence[Cell]] = ()
    """What sorts the lines of a table that a reader can sort."""


@dataclass(frozen=True)
class Part:
    """A text, sentences, a chart, tables and files, in this order."""

    title: str = ""
    text: str = ""
    """How to read what follows."""
    sentences: Sequence[str] = ()
    chart: str = ""
    """The key of a chart in the run's gallery."""
    grids: Sequence[Grid] = ()
    files: Sequence[tuple[str, str]] = ()
    """Names and texts of files to copy."""
    foot: str = ""
    link: str = ""
    """Where the foot leads to, relative to the page."""
    folded: bool = False
    """Behind its title."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to show but how to read it."""
        tables = any(grid.lines for grid in self.grids)
        return not (self.sentences or self.chart or tables or self.files)


@dataclass(frozen=True)
class Section:
    """What a run says about one question. Outputs show it, and decide nothing."""

    key: str
    """Its id in the page."""
    title: str
    parts: Sequence[Part] = ()
    sentences: Sequence[str] = ()
    """What JSON has of it, and a terminal with the tables of `terminal`."""
    terminal: Sequence[Grid] = ()
    folded: bool = False
    first: bool = False
    """Whether the run was made for it: a terminal prints it before the table of results."""


def grid_of(caption: str, table: Filled, bad: Collection[int] = ()) -> Grid:
    """A table with its columns that are for people; `bad`: lines that cannot be compared."""
    return Grid(caption, [head.title for head in table.heads], table.texts, table.numbers, bad)


def sortable(caption: str, table: Filled, heads: Mapping[str, str]) -> Grid:
    """A table with these columns, by name and head, that a reader can sort."""
    chosen = table.chosen(heads)
    return Grid(
        caption,
        [column.title for column in chosen.table.columns],
        [[line.text(column) for column in chosen.table.columns] for line in chosen.lines],
        [place for place, column in enumerate(chosen.table.columns) if column.is_number],
        abouts=[column.about for column in chosen.table.columns],
        values=chosen.cells,
    )
