"""A talk as PPTX, 16:9, with native charts and tables that can be edited on their slides.

What is on a slide is plain data. Sizes of type follow from an estimate of how wide texts are in
Arial; PowerPoint and LibreOffice shrink what is still too long, as in a wider font (`normAutofit`).
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from textwrap import wrap
from typing import Any, Final

from pptx import Presentation
from pptx.chart.data import CategoryChartData, XyChartData
from pptx.chart.datalabel import DataLabels
from pptx.dml.color import RGBColor
from pptx.enum.chart import (
    XL_CHART_TYPE,
    XL_LABEL_POSITION,
    XL_MARKER_STYLE,
    XL_TICK_LABEL_POSITION,
)
from pptx.enum.dml import MSO_LINE
from pptx.enum.shapes import MSO_SHAPE, PP_PLACEHOLDER
from pptx.enum.text import MSO_ANCHOR, MSO_AUTO_SIZE, PP_ALIGN
from pptx.opc.constants import RELATIONSHIP_TYPE
from pptx.oxml import parse_xml
from pptx.oxml.ns import nsdecls, qn
from pptx.util import Pt

from weighbridge.common.escaping import escape_controls
from weighbridge.results.run.resolved import PlannedLayout
from weighbridge.results.show.scales import LIGHT, Look, diverging, nice_top, styles
from weighbridge.results.show.slide import (
    BAD,
    BETTER,
    GRID,
    INK,
    MAX_NOTE_WORDS,
    MUTED,
    SHADE,
    WORSE,
    Point,
    Series,
    Slide,
    SlideCard,
    SlideCell,
    SlideChart,
    Table,
)


@dataclass(frozen=True)
class Deck:
    """A complete talk. `dated`: when its run started, ISO 8601; `layouts` have the colours."""

    title: str
    footer: str
    dated: str
    layouts: tuple[PlannedLayout, ...]
    slides: tuple[Slide, ...]
    backup: tuple[Slide, ...] = ()
    """Behind a divider."""

    @property
    def pages(self) -> tuple[Slide, ...]:
        """All slides, with the divider; what does not fit continues on another one."""
        divider = (Slide("Backup", lead="Settings, tables, and what else was measured"),)
        backup = [page for slide in self.backup for page in _pages(slide)]
        return (*self.slides, *(divider if backup else ()), *backup)


def spoken(sentences: Iterable[str]) -> str:
    """As many of the sentences as a speaker can say; if the first is too long, its beginning."""
    chosen: list[str] = []
    left = MAX_NOTE_WORDS
    for sentence in dict.fromkeys(sentences):
        words = sentence.split(" ")
        if len(words) > left:
            chosen = chosen or [f"{' '.join(words[: left - 1])} …"]
            break
        chosen.append(sentence)
        left -= len(words)
    return "\n".join(chosen)


def powerpoint(deck: Deck, look: Look = LIGHT) -> bytes:
    """The deck as a PPTX file."""
    colours = {style.layout: style.colour for style in styles(deck.layouts, look)}
    shade = "#FFF3DC" if look.name == "light" else "#3A2F17"
    colours |= {BETTER: diverging(look)[5], WORSE: diverging(look)[1], SHADE: shade}
    colours |= {INK: look.ink, MUTED: look.muted, BAD: look.bad, GRID: look.grid}
    presentation = _blank(deck, look)
    for number, slide in enumerate(deck.pages, start=1):
        page = presentation.slides.add_slide(presentation.slide_layouts[0])
        _Page(page.shapes, colours).fill(slide, f"{deck.footer} · {number}")
        page.notes_slide.notes_text_frame.text = escape_controls(spoken(slide.notes))
    out = io.BytesIO()
    presentation.save(out)
    return out.getvalue()


def _blank(deck: Deck, look: Look) -> Any:
    """A presentation without slides: one layout, of a title, and the look as its theme."""
    presentation = Presentation()
    presentation.slide_width, presentation.slide_height = Pt(WIDTH_PT), Pt(HEIGHT_PT)
    for layout in list(presentation.slide_layouts):
        if layout.name != "Title Only":
            presentation.slide_layouts.remove(layout)
    master = presentation.slide_masters[0]
    for shape in (*master.placeholders, *presentation.slide_layouts[0].placeholders):
        if shape.placeholder_format.type in (PP_PLACEHOLDER.TITLE, PP_PLACEHOLDER.CENTER_TITLE):
            _place(shape, (LEFT_PT, TOP_PT, ROOM_PT, 78.0))
        else:
            shape.element.getparent().remove(shape.element)
    part = master.part.part_related_by(RELATIONSHIP_TYPE.THEME)
    theme = part.blob.decode().replace('typeface="Calibri"', f'typeface="{TYPEFACE}"')
    colours = {"dk1": look.ink, "lt1": look.background, "dk2": look.axis, "lt2": look.grid}
    for number, style in enumerate(styles(deck.layouts, look)[:6], start=1):
        colours[f"accent{number}"] = style.colour
    for name, colour in colours.items():
        ink = f'<a:{name}><a:srgbClr val="{_hex(colour)}"/></a:{name}>'
        theme = re.sub(rf"<a:{name}>.*?</a:{name}>", ink, theme, flags=re.DOTALL)
    part._blob = theme.encode()  # noqa: SLF001 - python-pptx has no API for themes
    properties = presentation.core_properties
    properties.title = bound(deck.title)[:255]
    properties.author = properties.last_modified_by = "Weighbridge"
    dated = datetime.fromisoformat(deck.dated).astimezone(UTC).replace(tzinfo=None, microsecond=0)
    properties.created = properties.modified = dated
    return presentation


# ---- how much room texts and tables take


WIDTH_PT: Final = 960.0
HEIGHT_PT: Final = 540.0
LEFT_PT: Final = 44.0
ROOM_PT: Final = WIDTH_PT - 2 * LEFT_PT
TOP_PT: Final = 28.0
BODY_PT: Final = 498.0
"""The lower end of a slide's body; below is the line with the run's name and slide number."""
GAP_PT: Final = 12.0
LINE: Final = 1.2
"""Height of a line, relative to its font size."""
SIDE_PT: Final = 7.0
EDGE_PT: Final = 3.0
"""Margins of a cell: left and right, above and below."""
MAX_COLUMNS: Final = 8
"""The most columns of a table that are readable."""

TYPEFACE: Final = "Arial"
_TITLE_SIZES: Final = ((32, 1), (28, 1), (30, 2), (28, 2), (26, 2), (24, 3), (20, 4))
_LEAD_SIZES: Final = ((22, 1), (20, 1), (18, 1), (20, 2), (18, 2), (16, 3))
_FOOT_SIZES: Final = ((16, 1), (14, 2), (12, 3))
"""Font sizes, each with the most lines that a text may take at it."""
_READABLE_PT: Final = 14
"""Smaller type cannot be read from the last row."""
_TABLE_SIZES: Final = (20, 18, 16, 15, 14, 13, 12, 11, 10, 9, 8)
_LINE_SIZES: Final = (24, 22, 20, 18, 16, 14, 12)
_CARD_SIZES: Final = ((54, 20), (48, 18), (44, 16), (36, 15), (32, 14), (26, 12), (22, 11))
"""Font sizes of a card's figure and of its text."""
_CHART_PT: Final = 16
_MARKERS: Final = (
    *(
        (XL_MARKER_STYLE.CIRCLE, "●"),
        (XL_MARKER_STYLE.SQUARE, "■"),
        (XL_MARKER_STYLE.TRIANGLE, "▲"),
    ),
    *((XL_MARKER_STYLE.DIAMOND, "◆"), (XL_MARKER_STYLE.STAR, "✱"), (XL_MARKER_STYLE.PLUS, "✚")),
)
"""They say the same as colours, for print without them; crosses mean `not comparable`."""

_LETTER: Final = 0.54
"""The mean width of a letter in Arial, a few per cent above that of ordinary texts, as a share of
the type's size.
"""
_WORD: Final = 1.1
"""How much wider than so many mean letters a single word may be."""
_BOLD: Final = 1.1
"""How much wider bold type is."""
_WIDER: Final = 1.13
"""How much wider texts may be in another font. A shape shrinks its text, but a table grows."""
_UNIT: Final = re.compile(
    r"(?<=\d) (?=(?:[kMGT]i?B|B|ms|s|op/s|%|Gbit/s)\b|%)|(?<=\bn) (?==)|(?<=n =) (?=\d)"
)
Text = tuple[str, float, str, bool]
"""A paragraph: what it says, its size in points, its colour by name, and whether it is bold."""
Box = tuple[float, float, float, float]
"""Left, top, width and height in points."""


def bound(text: str) -> str:
    """The text with figures and their units kept on one line, and harmless to show."""
    return _UNIT.sub("\N{NO-BREAK SPACE}", escape_controls(text))


def height_pt(text: str, size_pt: float, room_pt: float) -> float:
    """The height of a text; lines break after words and hyphens, and where a word is too wide."""
    letters = max(1, int(room_pt / (_LETTER * size_pt)))
    count = 0
    for paragraph in bound(text).split("\n"):
        lines = wrap(paragraph, letters)
        count += max(1, len(lines))
    return count * size_pt * LINE


def _fit(
    text: str, sizes: Sequence[tuple[int, int]], room_pt: float = ROOM_PT
) -> tuple[int, float]:
    """The first size at which a text fits its lines, else the last; and its height in points."""
    size, height = 0, 0.0
    for size, lines in sizes:
        height = height_pt(text, size, room_pt)
        if height <= lines * size * LINE + 0.1:
            break
    return size, height


def _wider(cell: SlideCell) -> float:
    return _WIDER * _BOLD if cell.bold else _WIDER


def _columns(table: Table, size: float) -> tuple[list[float], bool]:
    """The widths of columns, and whether no word is broken; spare room goes to long texts."""
    least: list[float] = []
    most: list[float] = []
    for ends in (r"[ \n]", r"[ \n]|(?<=-)"):  # names break at hyphens only where they must
        least, most = [], []
        for column in zip(*table, strict=True):
            longest = widest = 0.0
            for cell in column:
                text, letter_pt = bound(cell.text), size * _LETTER * _wider(cell)
                longest = max(longest, len(text) * letter_pt)
                for word in re.split(ends, text):
                    widest = max(widest, _WORD * len(word) * letter_pt)
            most.append(longest + 2 * SIDE_PT)
            least.append(widest + 2 * SIDE_PT)
        if sum(least) <= ROOM_PT:
            break
    spare, wanted = ROOM_PT - sum(least), sum(most) - sum(least)
    if spare < 0:
        return [width * ROOM_PT / sum(least) for width in least], False
    if wanted <= spare:
        return [width * ROOM_PT / sum(most) for width in most], True
    shares = zip(least, most, strict=True)
    return [low + (high - low) * spare / wanted for low, high in shares], True


def _heights(table: Table, widths: Sequence[float], size: float) -> list[float]:
    heights = []
    for line in table:
        cells = [
            height_pt(cell.text, size, (width - 2 * SIDE_PT) / _wider(cell))
            for cell, width in zip(line, widths, strict=True)
        ]
        heights.append(max(cells) + 2 * EDGE_PT)
    return heights


def _heading(slide: Slide) -> list[tuple[Text, float]]:
    """The texts above the body of a slide, with their heights."""
    size, height = _fit(slide.title, _TITLE_SIZES, ROOM_PT / _BOLD)
    texts: list[tuple[Text, float]] = [((slide.title, size, INK, True), height)]
    for text, ink in ((slide.caveat, BAD), (slide.lead, MUTED)):
        if text:
            size, height = _fit(text, _LEAD_SIZES)
            texts.append(((text, size, ink, False), height))
    return texts


def _pages(slide: Slide) -> list[Slide]:
    """The slide, or several where its table is too wide, or too high in readable type."""
    if not slide.table:
        return [slide]
    room = BODY_PT - TOP_PT - sum(height + GAP_PT for _, height in _heading(slide))
    room -= _fit(slide.foot, _FOOT_SIZES)[1] + GAP_PT if slide.foot else 0.0
    tables: list[Table] = []
    width = max(1, MAX_COLUMNS - slide.labels)
    for first in range(slide.labels, len(slide.table[0]), width):
        part = [(*line[: slide.labels], *line[first : first + width]) for line in slide.table]
        heights = _heights(tuple(part), _columns(tuple(part), _READABLE_PT)[0], _READABLE_PT)
        page, left = part[:1], room - heights[0]
        for line, height in zip(part[1:], heights[1:], strict=True):
            if height > left and len(page) > 1:
                tables.append(tuple(page))
                page, left = part[:1], room - heights[0]
            page.append(line)
            left -= height
        tables.append(tuple(page))
    if len(tables) == 1:
        return [slide]
    numbered = enumerate(tables, start=1)
    titles = [f"{slide.title} ({number} of {len(tables)})" for number, _ in numbered]
    return [
        replace(slide, title=title, table=table)
        for title, table in zip(titles, tables, strict=True)
    ]


# ---- a slide


class _Page:
    """One slide, filled from the top; `top` and `end` are the ends of the room that is left."""

    def __init__(self, shapes: Any, colours: dict[str, str]) -> None:
        self._shapes = shapes
        self._colours = colours
        self._markers: dict[str, Any] = {}
        self.top = TOP_PT
        self.end = BODY_PT

    def fill(self, slide: Slide, footer: str) -> None:
        for text, height in _heading(slide):
            box = (LEFT_PT, self.top, ROOM_PT, height)
            if text[3]:
                _place(self._shapes.title, box)
                self._write(self._shapes.title, [text])
            else:
                self._box(box, [text])
            self.top += height + GAP_PT
        if slide.foot:
            size, height = _fit(slide.foot, _FOOT_SIZES)
            self.end -= height
            self._box((LEFT_PT, self.end, ROOM_PT, height), [(slide.foot, size, MUTED, False)])
            self.end -= GAP_PT
        self._box((LEFT_PT, HEIGHT_PT - 30, ROOM_PT, 14), [(footer, 11, MUTED, False)])
        if slide.code:
            self._code(slide.code)
        if slide.lines:
            self._lines(slide.lines, last=bool(slide.cards or slide.table or slide.charts))
        if slide.cards:
            self._cards(slide.cards)
        if slide.table:
            self._table(slide.table)
        if slide.charts:
            self._charts(slide)

    def _box(self, box: Box, texts: Sequence[Text], *, after: float = 0.0) -> Any:
        """A text box, a paragraph for each text, with room of `after` font sizes below it."""
        shape = self._shapes.add_textbox(0, 0, 0, 0)
        _place(shape, box)
        self._write(shape, texts, after=after)
        return shape

    def _write(self, place: Any, texts: Sequence[Text], *, after: float = 0.0) -> None:
        frame = place.text_frame
        for number, (text, size, ink, bold) in enumerate(texts):
            paragraph = frame.add_paragraph() if number else frame.paragraphs[0]
            paragraph.alignment, paragraph.space_after = PP_ALIGN.LEFT, Pt(size * after)
            run = paragraph.add_run()
            run.text = bound(text)
            run.font.size, run.font.bold = Pt(size), bold
            run.font.color.rgb = _rgb(self._colours[ink])

    def _plate(self, box: Box, colour: str) -> Any:
        shape = self._shapes.add_shape(MSO_SHAPE.RECTANGLE, 0, 0, 0, 0)
        _place(shape, box)
        shape.fill.solid()
        shape.fill.fore_color.rgb = _rgb(self._colours[colour])
        shape.line.fill.background()
        shape.element.remove(shape.element.find(qn("p:style")))  # some programs draw its shadow
        return shape

    def _code(self, text: str) -> None:
        """A command at the end. Monospaced letters are 0.6 of their size wide; lines end early."""
        size, count = 0, 0
        for size in (18, 16, 14, 12):
            count = math.ceil(len(text) * size * 0.66 / (ROOM_PT - 2 * GAP_PT))
            if count <= 3:
                break
        height = count * size * LINE + 2 * GAP_PT
        self.end -= height
        self._plate((LEFT_PT, self.end, ROOM_PT, height), GRID)
        inside = (LEFT_PT + GAP_PT, self.end + GAP_PT, ROOM_PT - 2 * GAP_PT, height - 2 * GAP_PT)
        shape = self._box(inside, [(text, size, INK, False)])
        shape.text_frame.paragraphs[0].runs[0].font.name = "Courier New"
        self.end -= GAP_PT

    def _lines(self, lines: Sequence[str], *, last: bool) -> None:
        """Sentences at the largest size that fits; if they come last, in at most half the room."""
        room = (self.end - self.top) * (0.5 if last else 1.0)
        size, height = 0, 0.0
        for size in _LINE_SIZES[4 if last else 0 :]:
            height = sum(height_pt(line, size, ROOM_PT) + size * 0.5 for line in lines)
            if height <= room:
                break
        top = max(self.top, self.end - height) if last else self.top
        box = (LEFT_PT, top, ROOM_PT, min(height, self.end - top))
        self._box(box, [(line, size, INK, False) for line in lines], after=0.5)
        self.end = top - GAP_PT

    def _cards(self, cards: Sequence[SlideCard]) -> None:
        """Cards in one row, or more than four in two, at one size, since they are compared."""
        count = 1 if len(cards) <= 4 else 2
        columns = -(-len(cards) // count)
        width = (ROOM_PT - (columns - 1) * GAP_PT) / columns
        height = min(240.0, (self.end - self.top - (count - 1) * GAP_PT) / count)
        room = (width - 2 * GAP_PT, height - 2 * GAP_PT)
        texts: list[list[Text]] = []
        for large, small in _CARD_SIZES:
            texts = []
            for card in cards:
                head: list[Text] = [(card.figure, large, INK, True), (card.about, small, INK, True)]
                body: list[Text] = [
                    (card.text, small, INK, False),
                    (card.detail, small, MUTED, False),
                ]
                texts.append([*head, *body])
            heights = [
                sum(height_pt(text, size, room[0] / _BOLD) for text, size, *_ in of_card)
                for of_card in texts
            ]
            if max(heights) <= room[1]:
                break
        for number, (card, of_card) in enumerate(zip(cards, texts, strict=True)):
            left = LEFT_PT + number % columns * (width + GAP_PT)
            top = self.top + number // columns * (height + GAP_PT)
            plate = self._plate((left, top, width, height), GRID)
            if card.caveat:
                plate.line.color.rgb = _rgb(self._colours[MUTED])
                plate.line.dash_style = MSO_LINE.DASH
            self._plate((left, top, width, GAP_PT / 2), card.colour)
            self._box((left + GAP_PT, top + GAP_PT, *room), of_card)
        self.top += count * (height + GAP_PT)

    def _table(self, table: Table) -> None:
        """A table of full width at the largest size that fits, with a hairline below each line."""
        room = self.end - self.top
        size, widths, heights = 0, [0.0], [0.0]
        for size in _TABLE_SIZES:
            widths, whole = _columns(table, size)
            heights = _heights(table, widths, size)
            if sum(heights) <= room and (whole or size < _READABLE_PT):
                break
        stretch = max(0.5, min(1.4, room / sum(heights)))
        frame = self._shapes.add_table(len(table), len(table[0]), 0, 0, 0, 0)
        _place(frame, (LEFT_PT, self.top, ROOM_PT, sum(heights) * stretch))
        # Styles of tables have no API in python-pptx: this one has no fills and no lines.
        plain = "{2D5ABB26-0587-4C30-8999-92F81FD0307C}"
        frame.element.find(f".//{qn('a:tableStyleId')}").text = plain
        for column, width in zip(frame.table.columns, widths, strict=True):
            column.width = Pt(width)
        for number, line in enumerate(table):
            frame.table.rows[number].height = Pt(heights[number] * stretch)
            for place, cell in zip(frame.table.rows[number].cells, line, strict=True):
                self._cell(place, cell, size)
        ink = f'<a:solidFill><a:srgbClr val="{_hex(self._colours[GRID])}"/></a:solidFill>'
        for element in frame.element.iter(qn("a:tcPr")):
            element.insert(0, _xml(f'<a:lnB w="9525">{ink}</a:lnB>'))

    def _cell(self, place: Any, cell: SlideCell, size: float) -> None:
        place.vertical_anchor = MSO_ANCHOR.MIDDLE
        place.margin_left = place.margin_right = Pt(SIDE_PT)
        place.margin_top = place.margin_bottom = Pt(EDGE_PT)
        texts = [(text, size, cell.ink, cell.bold) for text in cell.text.split("\n")]
        self._write(place, texts)
        if cell.fill:
            place.fill.solid()
            place.fill.fore_color.rgb = _rgb(self._colours[cell.fill])
        else:
            place.fill.background()

    # ---- native charts: each has a workbook of its figures

    def _charts(self, slide: Slide) -> None:
        """The charts beside each other, with one legend of coloured names above them."""
        if slide.charts[0].form != "bars":
            self._legend([series for chart in slide.charts for series in chart.series])
        width = (ROOM_PT - (len(slide.charts) - 1) * GAP_PT) / len(slide.charts)
        for number, chart in enumerate(slide.charts):
            left = LEFT_PT + number * (width + GAP_PT)
            box = [Pt(value) for value in (left, self.top, width, max(1.0, self.end - self.top))]
            frame = (self._bars if chart.form == "bars" else self._curves)(chart, box)
            # python-pptx has no API for alternative texts.
            about = bound(f"{slide.title}. {chart.title}")
            frame.element.nvGraphicFramePr.cNvPr.set("descr", about)
            self._axes(frame.chart, chart)

    def _legend(self, curves: Sequence[Series]) -> None:
        """Coloured names, each with the marker of its layout."""
        height = _CHART_PT * LINE
        paragraph = self._box((LEFT_PT, self.top, ROOM_PT, height), []).text_frame.paragraphs[0]
        for curve in curves:
            if curve.colour not in self._markers:
                marker, glyph = _MARKERS[len(self._markers) % len(_MARKERS)]
                self._markers[curve.colour] = marker
                run = paragraph.add_run()
                run.text = f"{glyph} {bound(curve.name)}     "
                run.font.size, run.font.bold = Pt(_CHART_PT), True
                run.font.color.rgb = _rgb(self._colours[curve.colour])
        self.top += height + GAP_PT / 2

    def _axes(self, drawn: Any, chart: SlideChart) -> None:
        for name in ("c:axId", "c:crossAx"):
            for element in drawn.element.iter(qn(name)):
                element.set("val", element.get("val").lstrip("-"))  # the standard has no negative
        drawn.has_legend = False
        drawn.font.size, drawn.font.color.rgb = Pt(_CHART_PT), _rgb(self._colours[INK])
        _head(drawn.chart_title, chart.title)
        ends = [
            end
            for series in chart.series
            for point in series.points
            for end in (point.y, point.low, point.high)
            if end is not None
        ]
        axis = drawn.value_axis
        low, high = max(min(ends), -chart.limit), min(max(ends), chart.limit)
        _, unit = nice_top(max(-low, high))
        axis.major_unit = unit
        axis.maximum_scale = max(0, math.ceil(high / unit)) * unit
        axis.minimum_scale = min(0, math.floor(low / unit)) * unit
        axis.tick_labels.number_format = "General" if unit < 10 else "#,##0"
        axis.tick_labels.number_format_is_linked = False
        axis.major_gridlines.format.line.color.rgb = _rgb(self._colours[GRID])
        axis.format.line.fill.background()
        drawn.category_axis.has_major_gridlines = False
        if chart.x_title:
            _head(drawn.category_axis.axis_title, chart.x_title)

    def _bars(self, chart: SlideChart, box: Sequence[Any]) -> Any:
        points = chart.series[0].points[::-1]  # PowerPoint puts the first one lowest
        data = CategoryChartData(number_format="#,##0.###")
        data.categories = [f"{bound(str(bar.x))}: {bar.label}" for bar in points]
        data.add_series(bound(chart.title), [bar.y for bar in points])
        frame = self._shapes.add_chart(XL_CHART_TYPE.BAR_CLUSTERED, *box, data)
        frame.chart.category_axis.tick_label_position = XL_TICK_LABEL_POSITION.LOW
        frame.chart.plots[0].gap_width = 60
        (series,) = frame.chart.plots[0].series
        series.invert_if_negative = False
        for number, bar in enumerate(points):
            fill = series.points[number].format.fill
            fill.solid()
            fill.fore_color.rgb = _rgb(self._colours[bar.colour])
        frame.chart.category_axis.tick_labels.font.size = Pt(_CHART_PT if len(points) < 8 else 13)
        (names,) = frame.chart.element.iter(qn("c:catAx"))  # each bar has its name
        names.insert_element_before(_xml('<c:tickLblSkip val="1"/>'), "c:noMultiLvlLbl")
        (element,) = frame.chart.element.iter(qn("c:ser"))
        self._whiskers(element, dict(enumerate(points)), INK)
        return frame

    def _curves(self, chart: SlideChart, box: Sequence[Any]) -> Any:
        # LibreOffice 7.4 does not draw a series of points that is shorter than a later one.
        curves = sorted(chart.series, key=lambda series: -len(series.points))
        counts = sorted({float(point.x) for series in curves for point in series.points})
        if chart.form == "lines":
            data: Any = CategoryChartData(number_format="#,##0.###")
            data.categories = [f"{count:g}" for count in counts]
            for series in curves:
                values = {point.x: point.y for point in series.points}
                data.add_series(bound(series.name), [values.get(count) for count in counts])
            frame = self._shapes.add_chart(XL_CHART_TYPE.LINE_MARKERS, *box, data)
        else:
            data = XyChartData(number_format="#,##0.###")
            for series in curves:
                points = data.add_series(bound(series.name))
                for point in series.points:
                    points.add_data_point(point.x, point.y)
            frame = self._shapes.add_chart(XL_CHART_TYPE.XY_SCATTER_LINES, *box, data)
            frame.chart.category_axis.minimum_scale = 0
        elements = frame.chart.element.iter(qn("c:ser"))
        for series, drawn, element in zip(
            curves, frame.chart.plots[0].series, elements, strict=True
        ):
            colour = _rgb(self._colours[series.colour])
            drawn.smooth, drawn.marker.size = False, 11
            drawn.marker.style = (
                self._markers[series.colour] if series.joined else XL_MARKER_STYLE.X
            )
            drawn.marker.format.line.color.rgb = colour
            drawn.marker.format.fill.solid()
            drawn.marker.format.fill.fore_color.rgb = colour
            drawn.format.line.color.rgb, drawn.format.line.width = colour, Pt(3)
            if not series.joined:
                drawn.format.line.fill.background()
            places = [counts.index(float(point.x)) for point in series.points]
            if chart.form == "paths":
                places = list(range(len(series.points)))
            placed = dict(zip(places, series.points, strict=True))
            self._whiskers(
                element, placed, series.colour, way='<c:errDir val="y"/>' * (chart.form == "paths")
            )
            if any(point.label for point in series.points):
                DataLabels(element.get_or_add_dLbls()).show_value = False
            for number, point in enumerate(series.points):
                if point.label:
                    label = drawn.points[number].data_label
                    label.text_frame.text = point.label
                    label.position = XL_LABEL_POSITION.ABOVE
        return frame

    def _whiskers(self, element: Any, points: dict[int, Point], ink: str, *, way: str = "") -> None:
        """Custom error bars, for which python-pptx has no API: distances from points by place."""
        head = f'<c:formatCode>General</c:formatCode><c:ptCount val="{max(points) + 1}"/>'
        plus = minus = head
        for place, point in points.items():
            if point.low is not None and point.high is not None:
                plus += _distance(place, point.high - point.y)
                minus += _distance(place, point.y - point.low)
        if plus == head:
            return
        ends = f"<c:plus><c:numLit>{plus}</c:numLit></c:plus>"
        ends += f"<c:minus><c:numLit>{minus}</c:numLit></c:minus>"
        kind = '<c:errBarType val="both"/><c:errValType val="cust"/><c:noEndCap val="0"/>'
        colour = f'<a:solidFill><a:srgbClr val="{_hex(self._colours[ink])}"/></a:solidFill>'
        line = f'<c:spPr><a:ln w="19050">{colour}</a:ln></c:spPr>'
        bars = _xml(f"<c:errBars>{way}{kind}{ends}{line}</c:errBars>")
        element.insert_element_before(bars, "c:cat", "c:val", "c:xVal", "c:yVal")


def _place(shape: Any, box: Box) -> None:
    """Put a shape into a box; its text wraps, without margins, and shrinks where it must."""
    shape.left, shape.top, shape.width, shape.height = (Pt(max(0.0, value)) for value in box)
    if shape.has_text_frame:
        frame = shape.text_frame
        frame.word_wrap, frame.auto_size = True, MSO_AUTO_SIZE.TEXT_TO_FIT_SHAPE
        frame.vertical_anchor = MSO_ANCHOR.TOP
        frame.margin_left = frame.margin_right = frame.margin_top = frame.margin_bottom = 0


def _distance(place: int, value: float) -> str:
    return f'<c:pt idx="{place}"><c:v>{max(0.0, value):.6g}</c:v></c:pt>'


def _head(title: Any, text: str) -> None:
    title.text_frame.text = bound(text)
    font = title.text_frame.paragraphs[0].runs[0].font
    font.size, font.bold = Pt(_CHART_PT), False


def _hex(colour: str) -> str:
    """`#rrggbb` as files have it."""
    return colour.removeprefix("#").upper()


def _rgb(colour: str) -> RGBColor:
    colour_of: RGBColor = RGBColor.from_string(_hex(colour))
    return colour_of


def _xml(text: str) -> Any:
    """An element with the prefixes `a` and `c`."""
    name = re.split("[ >]", text, maxsplit=1)[0]
    return parse_xml(text.replace(name, f"{name} {nsdecls('a', 'c')}", 1))
