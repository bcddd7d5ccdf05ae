"""Native PowerPoint tables: cells are merged where a value spans several; a hairline is below each
line.
"""

from __future__ import annotations

from typing import Any, Final

from pptx.enum.text import MSO_ANCHOR, PP_ALIGN
from pptx.oxml.ns import qn
from pptx.util import Pt

from weighbridge.results.show.theme import Look
from weighbridge.results.slides.fitting import (
    EDGE_PT,
    LEFT_PT,
    ROOM_PT,
    SIDE_PT,
    bound,
    columns_pt,
    lines_pt,
    size_for,
)
from weighbridge.results.slides.paint import bare, rgb, xml
from weighbridge.results.slides.slide import SlideTable, TableCell

_PLAIN: Final = "{2D5ABB26-0587-4C30-8999-92F81FD0307C}"
"""PowerPoint's id for the style without fills and lines."""
_STRETCHED: Final = 1.4
"""How much higher lines may be than their text needs, where there is room."""
_FALLBACK: Final = (13, 12, 11, 10, 9, 8)
_ALIGN: Final = {"left": PP_ALIGN.LEFT, "center": PP_ALIGN.CENTER, "right": PP_ALIGN.RIGHT}


def add_table(slide: Any, grid: SlideTable, look: Look, *, top_pt: float, end_pt: float) -> None:
    """Draw a table of full width, at the largest size that fits."""
    room = end_pt - top_pt
    size = size_for(grid, ROOM_PT, room)
    if size is None:
        size = next(
            (one for one in _FALLBACK if sum(lines_pt(grid, ROOM_PT, one)) <= room), _FALLBACK[-1]
        )
    heights = lines_pt(grid, ROOM_PT, size)
    heads, body = sum(heights[: grid.heads]), sum(heights[grid.heads :])
    stretch = min(_STRETCHED, max(1.0, (room - heads) / body)) if body else 1.0
    heights = (*heights[: grid.heads], *(height * stretch for height in heights[grid.heads :]))
    frame = slide.shapes.add_table(
        len(grid.lines), len(grid.widths), Pt(LEFT_PT), Pt(top_pt), Pt(ROOM_PT), Pt(sum(heights))
    )
    table = frame.table
    table.first_row, table.horz_banding = True, False
    table._tbl.tblPr.find(qn("a:tableStyleId")).text = _PLAIN  # noqa: SLF001 - styles of tables have no API in python-pptx
    for column, width in zip(table.columns, columns_pt(grid, ROOM_PT), strict=True):
        column.width = Pt(width)
    for line, height in zip(table.rows, heights, strict=True):
        line.height = Pt(height)
    for row, cells in enumerate(grid.lines):
        for column, cell in enumerate(cells):
            _fill(table.cell(row, column), cell, look, size)
            if (cell.across, cell.down) != (1, 1):
                table.cell(row, column).merge(
                    table.cell(row + cell.down - 1, column + cell.across - 1)
                )


def _fill(place: Any, cell: TableCell, look: Look, size: int) -> None:
    frame = place.text_frame
    frame.word_wrap = True
    for number, text in enumerate(bound(cell.text).split("\n")):
        paragraph = frame.paragraphs[0] if not number else frame.add_paragraph()
        paragraph.alignment = _ALIGN[cell.align]
        run = paragraph.add_run()
        run.text = text
        run.font.size, run.font.bold = Pt(size), cell.bold
        run.font.color.rgb = rgb(cell.ink or look.ink)
    place.vertical_anchor = MSO_ANCHOR.MIDDLE
    place.margin_left = place.margin_right = Pt(SIDE_PT)
    place.margin_top = place.margin_bottom = Pt(EDGE_PT)
    if cell.fill is None:
        place.fill.background()
    else:
        place.fill.solid()
        place.fill.fore_color.rgb = rgb(cell.fill)
    properties = place._tc.get_or_add_tcPr()  # noqa: SLF001 - lines of cells have no API in python-pptx
    for number, side in enumerate(("lnL", "lnR", "lnT")):
        properties.insert(number, xml(f'<a:{side} w="0"><a:noFill/></a:{side}>'))
    colour = bare(look.background if cell.fill is not None else look.grid)
    properties.insert(
        3, xml(f'<a:lnB w="9525"><a:solidFill><a:srgbClr val="{colour}"/></a:solidFill></a:lnB>')
    )
