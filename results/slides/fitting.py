"""Whether a text fits a box before anything draws it: the largest of a few sizes at which it does.

Decks are set in Arial, which every machine that shows slides has (or Liberation Sans, of the same widths). Texts are measured in
Inter, which ships with us and is 2 to 8 % wider: what fits here fits there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import resources

from PIL import ImageFont

LINE = 1.2
"""Height of a line, by the size of its type."""
_UNITS = 200
"""Widths are measured at this size and scaled, so that they grow evenly."""
_BREAKS = re.compile(r"[^ ]+?(?:-(?=[^ ])|(?= )|$)| +")
_UNIT = re.compile(r"(?<=\d) (?=(?:[kMGT]i?B|B|ms|s|op/s|%|Gbit/s)\b|%)")


def bound(text: str) -> str:
    """The same text whose figures keep their units beside them wherever a line ends."""
    return _UNIT.sub("\N{NO-BREAK SPACE}", text)


def width_pt(text: str, size_pt: float, *, bold: bool = False) -> float:
    """How wide a text of one line is, in points."""
    return _units(text, bold) * size_pt / _UNITS


@lru_cache(maxsize=8192)
def _units(text: str, bold: bool) -> float:
    return float(_font(bold).getlength(text))


@lru_cache(maxsize=2)
def _font(bold: bool) -> ImageFont.FreeTypeFont:
    name = "Inter-Bold.otf" if bold else "Inter-Regular.otf"
    with resources.as_file(resources.files("weighbridge.results").joinpath("fonts", name)) as path:
        return ImageFont.truetype(str(path), _UNITS)


def wrapped(text: str, room_pt: float, size_pt: float, *, bold: bool = False) -> list[str]:
    """The lines that a text breaks into: between words, after hyphens, and inside words that are wider than the room."""
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
    """Whether a word of a text is wider than the room, so that it has to be broken where no hyphen is."""
    return any(width_pt(piece, size_pt, bold=bold) > room_pt for line in text.split("\n") for piece in _BREAKS.findall(line))


def _pieces(text: str, room_pt: float, size_pt: float, *, bold: bool) -> Iterator[str]:
    for piece in _BREAKS.findall(text):
        start = 0
        for end in range(1, len(piece) + 1):
            if end - start > 1 and width_pt(piece[start:end], size_pt, bold=bold) > room_pt:
                yield piece[start : end - 1]
                start = end - 1
        yield piece[start:]


def height_pt(text: str, room_pt: float, size_pt: float, *, bold: bool = False) -> float:
    """How high a text of this size is in a room of this width."""
    return len(wrapped(text, room_pt, size_pt, bold=bold)) * size_pt * LINE


def largest(text: str, room_pt: float, sizes: Sequence[tuple[int, int]], *, bold: bool = False) -> int:
    """The first of the sizes at which a text takes at most so many lines (size and lines, largest first); else the last."""
    for size, lines in sizes:
        if len(wrapped(text, room_pt, size, bold=bold)) <= lines:
            return size
    return sizes[-1][0]
