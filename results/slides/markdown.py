"""A deck as Markdown: one file that Marp shows as slides and any other reader as a page, with the
charts as pictures beside it.

Markdown cannot merge cells: of a value that goes over several columns all but the first say `←`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from weighbridge.common.errors import UsageError
from weighbridge.common.inert import inert
from weighbridge.results.record import write_whole
from weighbridge.results.slides.picture import picture
from weighbridge.results.slides.slide import Deck, Slide, SlideTable

PICTURES: Final = "pictures"
_AS_LEFT: Final = "←"
_FENCES: Final = re.compile(r"`+")
_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]#|~])")


def write_markdown(deck: Deck, folder: Path) -> tuple[Path, ...]:
    """Write `slides.md` and its pictures into a folder, which is made.

    Raises UsageError or StoreError when it cannot be.
    """
    try:
        (folder / PICTURES).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{folder}: cannot be made: {error.strerror}",
            advice="Choose another folder with --markdown.",
        ) from error
    written = []
    for one in deck.slides:
        if one.chart is not None:
            path = folder / PICTURES / f"{one.key}.png"
            write_whole(path, picture(one.chart, deck.look))
            written.append(path)
    page = folder / "slides.md"
    write_whole(page, markdown(deck))
    return (page, *written)


def markdown(deck: Deck) -> str:
    """The text of the deck; pictures are named relative to it."""
    slides = "\n\n---\n\n".join("\n\n".join(_slide(one)) for one in deck.slides)
    return "\n".join((*_front(deck), "", slides, ""))


def _front(deck: Deck) -> Iterator[str]:
    """What Marp reads first. JSON is YAML, and quotes whatever a name may hold."""
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
    """The parts of a slide, in the order in which they are read."""
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
        # A fence that is longer than any in it ends where it is to end.
        fence = "`" * max(3, 1 + max(map(len, _FENCES.findall(one.code)), default=0))
        yield f"{fence}sh\n{one.code}\n{fence}"
    if one.lines:
        yield "\n".join(f"- {_plain(line)}" for line in one.lines)
    if one.foot:
        yield f"*{_plain(one.foot)}*"
    # A comment is what Marp shows to the speaker alone; nothing in it can end it.
    yield "<!--\n{}\n-->".format(inert("\n".join(one.notes)).replace("--", "-\N{WORD JOINER}-"))


def _table(grid: SlideTable) -> Iterator[str]:
    texts: list[list[str]] = []
    for row, line in enumerate(grid.lines):
        texts.append([])
        for column, cell in enumerate(line):
            if not cell.covered:
                texts[-1].append(cell.text)
            elif column and _reaches(grid, row, column):
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


def _reaches(grid: SlideTable, row: int, column: int) -> bool:
    """Whether a covered cell belongs to one left of it in its own line."""
    return any(
        column < place + cell.across
        for place, cell in enumerate(grid.lines[row][:column])
        if cell.across > 1
    )


def _line(words: list[str], *, escaped: bool = False) -> str:
    return f"| {' | '.join(words if escaped else [_plain(text) for text in words])} |"


def _plain(text: str) -> str:
    """A text that means nothing to Markdown, on one line."""
    one_line = inert(" · ".join(part for part in text.split("\n") if part))
    return (
        _SPECIAL.sub(r"\\\1", one_line)
        .replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
    )
