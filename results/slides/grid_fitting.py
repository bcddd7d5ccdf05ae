"""How large the type of a table can be, and how many lines of it fit a slide."""

from __future__ import annotations

from typing import Final

from weighbridge.results.slides.fitting import bound, breaks_words, height_pt
from weighbridge.results.slides.slide import SlideTable, TableCell

SMALLEST_PT: Final = 14
"""Smaller type cannot be read from the last row."""
SIDE_PT: Final = 7.0
EDGE_PT: Final = 3.0
"""Margins of a cell: left and right, above and below."""
_SIZES: Final = (22, 20, 18, 16, 15, 14)


def columns_pt(grid: SlideTable, room_pt: float) -> tuple[float, ...]:
    """How wide each column is."""
    whole = sum(grid.widths)
    return tuple(width / whole * room_pt for width in grid.widths)


def lines_pt(grid: SlideTable, room_pt: float, size_pt: float) -> tuple[float, ...]:
    """How high each line is at this size. A cell over several lines takes room of them all in equal parts."""
    columns = columns_pt(grid, room_pt)
    found = []
    for number in range(len(grid.lines)):
        lowest = size_pt * 1.2 + 2 * EDGE_PT
        for above in range(number + 1):
            for column, cell in enumerate(grid.lines[above]):
                if not cell.covered and above + cell.down > number:
                    lowest = max(lowest, _cell_pt(cell, sum(columns[column : column + cell.across]), size_pt) / cell.down)
        found.append(lowest)
    return tuple(found)


def _cell_pt(cell: TableCell, room_pt: float, size_pt: float) -> float:
    return height_pt(bound(cell.text), room_pt - 2 * SIDE_PT, size_pt, bold=cell.bold) + 2 * EDGE_PT


def size_for(grid: SlideTable, room_pt: float, height_room_pt: float) -> int | None:
    """The largest size at which a table is no higher than this, best one that breaks no word; None where even the smallest is."""
    fitting = [size for size in _SIZES if size <= grid.largest_pt and sum(lines_pt(grid, room_pt, size)) <= height_room_pt]
    return next((size for size in fitting if not _breaks_words(grid, room_pt, size)), fitting[-1] if fitting else None)


def _breaks_words(grid: SlideTable, room_pt: float, size_pt: float) -> bool:
    columns = columns_pt(grid, room_pt)
    return any(
        breaks_words(bound(cell.text), sum(columns[place : place + cell.across]) - 2 * SIDE_PT, size_pt, bold=cell.bold)
        for line in grid.lines
        for place, cell in enumerate(line)
        if not cell.covered
    )
