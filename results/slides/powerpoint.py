"""A deck as PPTX, 16:9, with native charts and tables that can be edited on their slides.

All text is measured before it is placed (`results.slides.fitting`), so nothing overflows or
overlaps in the font that it is fitted for, which the notes of the last slide name.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from pptx.enum.shapes import MSO_SHAPE
from pptx.enum.text import MSO_ANCHOR, MSO_AUTO_SIZE, PP_ALIGN
from pptx.oxml.ns import qn
from pptx.util import Pt

from weighbridge.common.escaping import escape_all_controls
from weighbridge.results.show.theme import Look, Style, styles
from weighbridge.results.slides.fitting import (
    BODY_PT,
    FOOT_SIZES,
    GAP_PT,
    HEIGHT_PT,
    LEAD_SIZES,
    LEFT_PT,
    LINE,
    ROOM_PT,
    TITLE_SIZES,
    TOP_PT,
    bound,
    height_pt,
    largest,
)
from weighbridge.results.slides.native_chart import GLYPHS, add_chart
from weighbridge.results.slides.native_table import add_table
from weighbridge.results.slides.paint import rgb, xml
from weighbridge.results.slides.slide import Deck, Series, SeriesChart, Slide, SlideCard
from weighbridge.results.slides.template import blank
from weighbridge.results.slides.typeface import FITTED, MONOSPACED, width_pt

_LINE_SIZES: Final = (24, 22, 20, 18, 16, 14)
"""Font sizes of sentences; 24 and more where there is room."""
_LEGEND_SIZES: Final = ((20, 1), (18, 1), (16, 1), (16, 2), (14, 6))
"""Font sizes with the most rows at each; a slide has no more than six layouts."""
_APART: Final = "    "
_CARD_SIZES: Final = (
    (54, 22),
    (54, 20),
    (48, 20),
    (48, 18),
    (44, 16),
    (36, 16),
    (32, 14),
    (26, 12),
    (22, 11),
)
"""Font sizes of a card's figure and of its text."""
_BAND_PT: Final = 6.0
_CODE_SIZES: Final = (20, 18, 16, 14)


def powerpoint(deck: Deck) -> bytes:
    """The deck as a PPTX file."""
    deck = escape_all_controls(deck)
    presentation = blank(deck)
    for number, one in enumerate(deck.slides, start=1):
        slide = presentation.slides.add_slide(presentation.slide_layouts[0])
        _SlideFiller(slide, deck.look).fill(one)
        _footer(slide, deck, number)
        last = number == len(deck.slides)
        notes = (*one.notes, FITTED) if last else one.notes
        slide.notes_slide.notes_text_frame.text = "\n".join(notes)
    out = io.BytesIO()
    presentation.save(out)
    return out.getvalue()


class _SlideFiller:
    """One slide, filled from the top; `at_pt` is where the next part begins."""

    def __init__(self, slide: Any, look: Look) -> None:
        self._slide = slide
        self._look = look
        self._at_pt = TOP_PT
        self._end_pt = BODY_PT

    def fill(self, one: Slide) -> None:
        """Add title and lead, the foot at the bottom, and the content between them."""
        self._title(one)
        if one.lead:
            lead = bound(one.lead)
            size = largest(lead, ROOM_PT, LEAD_SIZES)
            self._at_pt += self._text(lead, self._at_pt, size, colour=self._look.muted) + GAP_PT
        if one.foot:
            foot = bound(one.foot)
            size = largest(foot, ROOM_PT, FOOT_SIZES)
            self._end_pt -= height_pt(foot, ROOM_PT, size)
            self._text(foot, self._end_pt, size, colour=self._look.muted)
            self._end_pt -= GAP_PT
        if one.cards:
            self._cards(one.cards, self._lines_pt(one.lines))
        if one.code:
            self._code(one.code)
        if one.grid is not None:
            add_table(self._slide, one.grid, self._look, top_pt=self._at_pt, end_pt=self._end_pt)
        if isinstance(one.chart, SeriesChart):
            self._at_pt += self._legend(one.chart)
        if one.chart is not None:
            box = (LEFT_PT, self._at_pt, ROOM_PT, self._end_pt - self._at_pt)
            alt_text = f"{one.title}. {one.lead}"
            add_chart(self._slide, one.chart, self._look, box, alt_text=alt_text)
        if one.lines:
            self._bullets(one.lines)

    def _title(self, one: Slide) -> None:
        sizes = (
            ((44, 2), (40, 2), (40, 3), (36, 3), (32, 3), (28, 4), (24, 5))
            if one.opening
            else TITLE_SIZES
        )
        text = bound(one.title)
        size = largest(text, ROOM_PT, sizes, bold=True)
        height = height_pt(text, ROOM_PT, size, bold=True)
        title = self._slide.shapes.title
        title.left, title.top, title.width, title.height = (
            Pt(LEFT_PT),
            Pt(self._at_pt),
            Pt(ROOM_PT),
            Pt(height),
        )
        title.text_frame.text = text
        title.text_frame.auto_size = MSO_AUTO_SIZE.TEXT_TO_FIT_SHAPE
        title.text_frame.paragraphs[0].runs[0].font.size = Pt(size)
        self._at_pt += height + (GAP_PT / 2 if one.lead and not one.opening else GAP_PT)

    def _text(self, text: str, top_pt: float, size: int, *, colour: str) -> float:
        height = height_pt(text, ROOM_PT, size)
        _box(self._slide, (LEFT_PT, top_pt, ROOM_PT, height), [(text, size, colour, False)])
        return height

    def _legend(self, chart: SeriesChart) -> float:
        first = {one.layout: one for one in reversed(chart.series)}
        entries = [
            _LegendEntry(first[style.layout], style)
            for style in styles(chart.layouts, self._look)
            if style.layout in first
        ]
        size, rows = next(
            (size, rows)
            for size, most in _LEGEND_SIZES
            if len(rows := _legend_rows(entries, size)) <= most
        )
        height = len(rows) * size * LINE
        frame = _box(self._slide, (LEFT_PT, self._at_pt, ROOM_PT, height), []).text_frame
        for number, row in enumerate(rows):
            paragraph = frame.paragraphs[0] if not number else frame.add_paragraph()
            for place, one in enumerate(row):
                texts = (
                    (f"{_APART * bool(place)}{one.glyph}", one.style.colour),
                    (one.series.name, self._look.ink),
                )
                for text, colour in texts:
                    run = paragraph.add_run()
                    run.text = text
                    run.font.size, run.font.bold = Pt(size), True
                    run.font.color.rgb = rgb(colour)
        return height + GAP_PT / 2

    def _lines_pt(self, lines: tuple[str, ...]) -> float:
        return sum(height_pt(line, ROOM_PT, 18) + GAP_PT / 2 for line in lines)

    def _bullets(self, lines: tuple[str, ...]) -> None:
        """Add sentences, each a paragraph, at the largest size that fits the rest of the slide."""
        room = self._end_pt - self._at_pt
        indent = 18.0

        def total_pt(size: int) -> float:
            return sum(height_pt(line, ROOM_PT - indent, size) + size * 0.5 for line in lines)

        size = next((size for size in _LINE_SIZES if total_pt(size) <= room), _LINE_SIZES[-1])
        shape = self._slide.shapes.add_textbox(
            Pt(LEFT_PT), Pt(self._at_pt), Pt(ROOM_PT), Pt(min(room, total_pt(size)))
        )
        frame = _bare(shape)
        for number, line in enumerate(lines):
            paragraph = frame.paragraphs[0] if not number else frame.add_paragraph()
            paragraph.space_after = Pt(size * 0.5)
            run = paragraph.add_run()
            run.text = line
            run.font.size = Pt(size)
            properties = paragraph._p.get_or_add_pPr()  # noqa: SLF001 - bullets have no API in python-pptx
            properties.set("marL", str(Pt(indent)))
            properties.set("indent", str(-Pt(indent)))
            properties.append(xml('<a:buChar char="•"/>'))

    def _code(self, text: str) -> None:
        """Add a command in a box; a monospaced letter is 0.6 of its size wide."""
        room = ROOM_PT - 2 * GAP_PT
        size = next(
            (size for size in _CODE_SIZES if _code_lines(text, room, size) <= 3), _CODE_SIZES[-1]
        )
        height = _code_lines(text, room, size) * size * LINE + 2 * GAP_PT
        shape = _plate(self._slide, (LEFT_PT, self._at_pt, ROOM_PT, height), self._look.grid)
        frame = _bare(shape, GAP_PT)
        frame.vertical_anchor = MSO_ANCHOR.MIDDLE
        paragraph = frame.paragraphs[0]
        paragraph.alignment = PP_ALIGN.LEFT
        run = paragraph.add_run()
        run.text = text
        run.font.size, run.font.name = Pt(size), MONOSPACED
        run.font.color.rgb = rgb(self._look.ink)
        self._at_pt += height + 2 * GAP_PT

    def _cards(self, cards: tuple[SlideCard, ...], below_pt: float) -> None:
        """Add cards in one row, or more than four in two, with leading layouts' colours."""
        rows = 1 if len(cards) <= 4 else 2
        columns = -(-len(cards) // rows)
        width = (ROOM_PT - (columns - 1) * GAP_PT) / columns
        left_pt = self._end_pt - self._at_pt - below_pt - GAP_PT
        height = min(170.0, (left_pt - (rows - 1) * GAP_PT) / rows)
        room = (width - 2 * GAP_PT, height - _BAND_PT - GAP_PT)
        # One size for all cards, since they are compared.
        sizes = next(
            (
                sizes
                for sizes in _CARD_SIZES
                if all(_card_pt(card, room[0], sizes) <= room[1] for card in cards)
            ),
            _CARD_SIZES[-1],
        )
        for number, card in enumerate(cards):
            left = LEFT_PT + number % columns * (width + GAP_PT)
            top = self._at_pt + number // columns * (height + GAP_PT)
            _plate(self._slide, (left, top, width, height), self._look.grid)
            _plate(self._slide, (left, top, width, _BAND_PT), card.colour)
            inside = (left + GAP_PT, top + _BAND_PT + GAP_PT / 2, *room)
            inks = (self._look.ink, self._look.ink, self._look.ink, self._look.muted)
            lines = zip(_card_lines(card, sizes), inks, strict=True)
            _box(
                self._slide, inside, [(text, size, ink, bold) for (text, size, bold), ink in lines]
            )
        self._at_pt += rows * (height + GAP_PT) + GAP_PT / 2


def _card_lines(card: SlideCard, sizes: tuple[int, int]) -> tuple[tuple[str, int, bool], ...]:
    figure, words = sizes
    return (
        (card.figure, figure, True),
        (bound(card.about), words, True),
        (card.text, words, False),
        (card.detail, words, False),
    )


def _card_pt(card: SlideCard, room_pt: float, sizes: tuple[int, int]) -> float:
    return sum(
        height_pt(text, room_pt, size, bold=bold) for text, size, bold in _card_lines(card, sizes)
    )


@dataclass(frozen=True)
class _LegendEntry:
    series: Series
    style: Style

    @property
    def glyph(self) -> str:
        shape = self.style.shape if self.series.joined else "cross"
        return f"{GLYPHS[shape]}\N{NO-BREAK SPACE}"


def _legend_rows(entries: Iterable[_LegendEntry], size: int) -> list[list[_LegendEntry]]:
    rows: list[list[_LegendEntry]] = []
    for one in entries:
        row = [*rows[-1], one] if rows else [one]
        text = _APART.join(f"{other.glyph}{other.series.name}" for other in row)
        if rows and width_pt(text, size, bold=True) <= ROOM_PT:
            rows[-1].append(one)
        else:
            rows.append([one])
    return rows


def _code_lines(text: str, room_pt: float, size: int) -> int:
    letters = int(room_pt / (size * 0.6))
    lines, used = 1, 0
    for word in text.split(" "):
        if used and used + 1 + len(word) > letters:
            lines, used = lines + 1, 0
        used += len(word) + (1 if used else 0)
        lines, used = lines + used // (letters + 1), used % (letters + 1)
    return lines


def _footer(slide: Any, deck: Deck, number: int) -> None:
    top = HEIGHT_PT - 30
    _box(slide, (LEFT_PT, top, ROOM_PT - 60, 14), [(deck.footer, 11, deck.look.muted, False)])
    shape = _box(slide, (LEFT_PT + ROOM_PT - 50, top, 50, 14), [("", 11, deck.look.muted, False)])
    paragraph = shape.text_frame.paragraphs[0]
    paragraph.alignment = PP_ALIGN.RIGHT
    field = (
        '<a:fld id="{B6F15528-21DE-4FAA-801E-634DDDAF4B2B}" '
        'type="slidenum"><a:rPr lang="en-GB" sz="1100"><a:solidFill><a:srgbClr '
        f'val="{deck.look.muted[1:]}"/></a:solidFill></a:rPr>'
        f"<a:t>{number}</a:t></a:fld>"
    )
    for run in list(paragraph.runs):
        paragraph._p.remove(run._r)  # noqa: SLF001 - a field takes the place of the run
    paragraph._p.append(xml(field))  # noqa: SLF001 - fields have no API in python-pptx


def _box(
    slide: Any, box: tuple[float, float, float, float], lines: list[tuple[str, int, str, bool]]
) -> Any:
    """A text box without margins, a paragraph for each text, size, colour and weight."""
    shape = slide.shapes.add_textbox(*(Pt(value) for value in box))
    frame = _bare(shape)
    for number, (text, size, colour, bold) in enumerate(lines):
        paragraph = frame.paragraphs[0] if not number else frame.add_paragraph()
        run = paragraph.add_run()
        run.text = text
        run.font.size, run.font.bold = Pt(size), bold
        run.font.color.rgb = rgb(colour)
    return shape


def _plate(slide: Any, box: tuple[float, float, float, float], colour: str) -> Any:
    shape = slide.shapes.add_shape(MSO_SHAPE.RECTANGLE, *(Pt(value) for value in box))
    shape.fill.solid()
    shape.fill.fore_color.rgb = rgb(colour)
    shape.line.fill.background()
    shape._element.remove(shape._element.find(qn("p:style")))  # noqa: SLF001 - it has a shadow that some programs draw
    return shape


def _bare(shape: Any, margin_pt: float = 0.0) -> Any:
    """A shape's text frame, set to wrap and to shrink where another font is wider."""
    frame = shape.text_frame
    frame.word_wrap = True
    frame.auto_size = MSO_AUTO_SIZE.TEXT_TO_FIT_SHAPE
    frame.margin_left = frame.margin_right = Pt(margin_pt)
    frame.margin_top = frame.margin_bottom = Pt(margin_pt / 2)
    return frame
