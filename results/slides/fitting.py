"""Measures text and tables before they are drawn, and picks the largest font size that fits.

Slides are 16:9, 13.333 by 7.5 inches, in points of 1/72 inch. `typeface` has the widths of texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from weighbridge.results.slides.slide import SlideTable, TableCell
from weighbridge.results.slides.typeface import width_pt

LINE = 1.2
"""Height of a line, relative to its font size."""
_BREAKS = re.compile(r"[^ ]+?(?:-(?=[^ ])|(?= )|$)| +")
_UNIT = re.compile(r"(?<=\d) (?=(?:[kMGT]i?B|B|ms|s|op/s|%|Gbit/s)\b|%)")


def bound(text: str) -> str:
    """The same text with figures and their units kept on one line."""
    return _UNIT.sub("\N{NO-BREAK SPACE}", text)


def wrapped(text: str, room_pt: float, size_pt: float, *, bold: bool = False) -> list[str]:
    """The lines of a text, broken between words, after hyphens, or where words are too wide."""
    lines = []
    for paragraph in text.split("\n"):
        line = ""
        for piece in _pieces(paragraph, room_pt, size_pt, bold=bold):
            if line.strip() and width_pt((line + piece).rstrip(), size_pt, bold=bold) > room_pt:
                lines.append(line.rstrip())
                line = piece.lstrip()
            else:
                line += piece
        lines.append(line.rstrip())
    return lines


def breaks_words(text: str, room_pt: float, size_pt: float, *, bold: bool = False) -> bool:
    """Whether a word is wider than the room, so that it would be broken without a hyphen."""
    return any(
        width_pt(piece, size_pt, bold=bold) > room_pt
        for line in text.split("\n")
        for piece in _BREAKS.findall(line)
    )


def _pieces(text: str, room_pt: float, size_pt: float, *, bold: bool) -> Iterator[str]:
    for piece in _BREAKS.findall(text):
        start = 0
        for end in range(1, len(piece) + 1):
            if end - start > 1 and width_pt(piece[start:end], size_pt, bold=bold) > room_pt:
                yield piece[start : end - 1]
                start = end - 1
        yield piece[start:]


def height_pt(text: str, room_pt: float, size_pt: float, *, bold: bool = False) -> float:
    """The height of a text of this size in a room of this width."""
    return len(wrapped(text, room_pt, size_pt, bold=bold)) * size_pt * LINE


def largest(
    text: str, room_pt: float, sizes: Sequence[tuple[int, int]], *, bold: bool = False
) -> int:
    """The first of `sizes` (font size, most lines) at which a text fits, else the last."""
    for size, lines in sizes:
        if len(wrapped(text, room_pt, size, bold=bold)) <= lines:
            return size
    return sizes[-1][0]


SMALLEST_PT: Final = 14
"""Smaller type cannot be read from the last row."""
SIDE_PT: Final = 7.0
EDGE_PT: Final = 3.0
"""Margins of a cell: left and right, above and below."""
_WIDER: Final = 1.15
_WIDER_BOLD: Final = 1.25
"""How much wider texts of cells may become in another font, as in DejaVu Sans: a shape then sets
its text smaller, but a table grows.
"""
_SIZES: Final = (22, 20, 18, 16, 15, 14)


def columns_pt(grid: SlideTable, room_pt: float) -> tuple[float, ...]:
    """The width of each column."""
    total = sum(grid.widths)
    return tuple(width / total * room_pt for width in grid.widths)


def lines_pt(grid: SlideTable, room_pt: float, size_pt: float) -> tuple[float, ...]:
    """The height of each line; a cell over several takes equal parts of them."""
    columns = columns_pt(grid, room_pt)
    found = []
    for number in range(len(grid.lines)):
        lowest = size_pt * 1.2 + 2 * EDGE_PT
        for above in range(number + 1):
            for column, cell in enumerate(grid.lines[above]):
                if not cell.covered and above + cell.down > number:
                    lowest = max(
                        lowest,
                        _cell_pt(cell, sum(columns[column : column + cell.across]), size_pt)
                        / cell.down,
                    )
        found.append(lowest)
    return tuple(found)


def _cell_pt(cell: TableCell, room_pt: float, size_pt: float) -> float:
    room = (room_pt - 2 * SIDE_PT) / (_WIDER_BOLD if cell.bold else _WIDER)
    return height_pt(bound(cell.text), room, size_pt, bold=cell.bold) + 2 * EDGE_PT


def size_for(grid: SlideTable, room_pt: float, height_room_pt: float) -> int | None:
    """The largest size at which a table fits, if possible without broken words; or None."""
    fitting = [
        size
        for size in _SIZES
        if size <= grid.largest_pt and sum(lines_pt(grid, room_pt, size)) <= height_room_pt
    ]
    return next(
        (size for size in fitting if not _breaks_words(grid, room_pt, size)),
        fitting[-1] if fitting else None,
    )


def _breaks_words(grid: SlideTable, room_pt: float, size_pt: float) -> bool:
    columns = columns_pt(grid, room_pt)
    return any(
        breaks_words(
            bound(cell.text),
            sum(columns[place : place + cell.across]) - 2 * SIDE_PT,
            size_pt,
            bold=cell.bold,
        )
        for line in grid.lines
        for place, cell in enumerate(line)
        if not cell.covered
    )


def body_pt(title: str, lead: str = "", foot: str = "") -> float:
    """The height left for the body of a slide, in points."""
    room = (
        BODY_PT - TOP_PT - _height(title, TITLE_SIZES, bold=True) - (GAP_PT / 2 if lead else GAP_PT)
    )
    for text, sizes in ((lead, LEAD_SIZES), (foot, FOOT_SIZES)):
        room -= _height(text, sizes) + GAP_PT if text else 0.0
    return room


def _height(text: str, sizes: tuple[tuple[int, int], ...], *, bold: bool = False) -> float:
    text = bound(text)
    return height_pt(text, ROOM_PT, largest(text, ROOM_PT, sizes, bold=bold), bold=bold)


WIDTH_PT: Final = 960.0
HEIGHT_PT: Final = 540.0
LEFT_PT: Final = 44.0
ROOM_PT: Final = WIDTH_PT - 2 * LEFT_PT
TOP_PT: Final = 28.0
BODY_PT: Final = 498.0
"""The lower end of a slide's body; below is the line with the run's name and slide number."""
GAP_PT: Final = 12.0

TITLE_SIZES: Final = (
    (32, 1),
    (30, 1),
    (28, 1),
    (30, 2),
    (28, 2),
    (26, 2),
    (24, 2),
    (24, 3),
    (20, 4),
)
"""Font sizes of titles, each with its most lines."""
LEAD_SIZES: Final = ((24, 1), (22, 1), (20, 1), (20, 2), (18, 2), (16, 3))
FOOT_SIZES: Final = ((16, 1), (16, 2), (14, 3))
