"""A deck as Markdown: one file that Marp shows as slides and other readers as a page, with charts
as pictures beside it.

Markdown cannot merge cells: in a value over several columns, all cells but the first are `←`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from weighbridge.common.errors import UsageError
from weighbridge.common.escaping import escape_controls
from weighbridge.results.charts.chart_theme import font_folder
from weighbridge.results.charts.composer import compose
from weighbridge.results.charts.pictures import draw
from weighbridge.results.record import write_atomically
from weighbridge.results.slides.picture import slide_figure
from weighbridge.results.slides.slide import Deck, Slide, SlideTable

PICTURES: Final = "pictures"
_AS_LEFT: Final = "←"
_FENCES: Final = re.compile(r"`+")
_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]#|~])")


def write_markdown(deck: Deck, folder: Path) -> tuple[Path, ...]:
    """Write `slides.md` and its pictures into a folder, which is created.

    Raises UsageError or StoreError when it cannot be written, RenderingError when a chart cannot be
    drawn.
    """
    try:
        (folder / PICTURES).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{folder}: cannot be made: {error.strerror}",
            advice="Choose another folder with --markdown.",
        ) from error
    figures = [slide_figure(one, one.chart) for one in deck.slides if one.chart is not None]
    specs = [compose(figure, deck.look) for figure in figures]
    pictures = draw(specs, font_folder()) if specs else ()
    written = [folder / "slides.md"]
    write_atomically(written[0], markdown(deck))
    for figure, picture in zip(figures, pictures, strict=True):
        written.append(folder / PICTURES / f"{figure.name}.png")
        write_atomically(written[-1], picture.png)
    return tuple(written)


def markdown(deck: Deck) -> str:
    """The text of the deck, with relative paths of pictures."""
    slides = "\n\n---\n\n".join("\n\n".join(_slide(one)) for one in deck.slides)
    return "\n".join((*_front_matter(deck), "", slides, ""))


def _front_matter(deck: Deck) -> Iterator[str]:
    """The front matter for Marp. JSON is valid YAML, and quotes any text."""
    look = deck.look
    yield "---"
    yield "marp: true"
    yield f"title: {json.dumps(deck.title, ensure_ascii=False)}"
    yield "size: 16:9"
    yield "paginate: true"
    yield f"footer: {json.dumps(deck.footer, ensure_ascii=False)}"
    yield "style: |"
    yield (
        f"  section {{ background: {look.background}; color: {look.ink}; font: 26px/1.35 Inter, "
        "Arial, sans-serif; }"
    )
    yield "  section { padding: 44px 56px; }"
    yield f"  h1 {{ color: {look.ink}; font-size: 40px; margin: 0 0 12px; }}"
    yield f"  em, footer, section::after {{ color: {look.muted}; font-style: normal; }}"
    yield "  em { font-size: 20px; }"
    yield "  table { font-size: 20px; }"
    yield (
        f"  th, td {{ background: {look.background}; color: {look.ink}; border-color: "
        f"{look.grid}; }}"
    )
    yield "  img { display: block; max-height: 440px; margin: 0 auto; }"
    yield "---"


def _slide(one: Slide) -> Iterator[str]:
    """The parts of a slide, in reading order."""
    yield f"# {_plain(one.title)}"
    if one.lead:
        yield _plain(one.lead)
    if one.cards:
        yield "\n".join(
            f"- **{_plain(card.figure)}** {_plain(card.about)}: {_plain(card.text)} "
            f"({_plain(card.detail)})"
            for card in one.cards
        )
    if one.grid is not None:
        yield "\n".join(_table(one.grid))
    if one.chart is not None:
        yield f"![{_plain(one.title)}]({PICTURES}/{one.key}.png)"
    if one.code:
        # The fence must be longer than any inside the code.
        fence = "`" * max(3, 1 + max(map(len, _FENCES.findall(one.code)), default=0))
        yield f"{fence}sh\n{one.code}\n{fence}"
    if one.lines:
        yield "\n".join(f"- {_plain(line)}" for line in one.lines)
    if one.foot:
        yield f"*{_plain(one.foot)}*"
    # A comment is a speaker's note for Marp; the notes must not end it.
    yield "<!--\n{}\n-->".format(
        escape_controls("\n".join(one.notes)).replace("--", "-\N{WORD JOINER}-")
    )


def _table(grid: SlideTable) -> Iterator[str]:
    texts: list[list[str]] = []
    for row, line in enumerate(grid.lines):
        texts.append([])
        for column, cell in enumerate(line):
            if not cell.covered:
                texts[-1].append(cell.text)
            elif column and _is_right_part(grid, row, column):
                texts[-1].append(texts[-1][-1] if row < grid.heads else _AS_LEFT)
            else:
                texts[-1].append("")
    head = [
        " ".join(part for part in dict.fromkeys(parts) if part)
        for parts in zip(*texts[: grid.heads], strict=True)
    ]
    yield _line(head)
    yield _line(["---"] * len(head), escaped=True)
    for words in texts[grid.heads :]:
        yield _line(words)


def _is_right_part(grid: SlideTable, row: int, column: int) -> bool:
    """Whether a covered cell belongs to a cell left of it in its line."""
    return any(
        column < place + cell.across
        for place, cell in enumerate(grid.lines[row][:column])
        if cell.across > 1
    )


def _line(words: list[str], *, escaped: bool = False) -> str:
    return f"| {' | '.join(words if escaped else [_plain(text) for text in words])} |"


def _plain(text: str) -> str:
    """A text without meaning to Markdown, on one line."""
    one_line = escape_controls(" · ".join(part for part in text.split("\n") if part))
    return (
        _SPECIAL.sub(r"\\\1", one_line)
        .replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
    )
