"""The font of decks, how wide its letters are, and what replaces it on this machine.

Decks are set in Arial, which Windows, macOS and Google's slides have; most Linux machines have
Liberation Sans, of the same widths. Texts are measured as wide as Arial or Inter makes them,
whichever is wider: neither always is. Inter, which charts are set in, is 1 to 8 % wider in most
texts, and so leaves room for other fonts and other programs' line breaks.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import Final

from PIL import ImageFont

TYPEFACE: Final = "Arial"
SAME_WIDTHS: Final = ("Liberation Sans", "Arimo", "Helvetica", "Nimbus Sans")
MONOSPACED: Final = "Courier New"
"""Of commands; it and all that usually replaces it have letters 0.6 of their size wide."""
FITTED: Final = (
    f"Texts are fitted for {TYPEFACE}; {', '.join(SAME_WIDTHS[:-1])} and {SAME_WIDTHS[-1]} have "
    "its widths. A wider font in its place makes long texts smaller, and breaks lines of tables "
    "elsewhere."
)
_MEASURED_AT: Final = 200
"""Widths are measured at this size and scaled, so that they grow evenly."""
_EM: Final = 2048
"""The units of a letter's width in Arial's own table."""


def width_pt(text: str, size_pt: float, *, bold: bool = False) -> float:
    """The width of one line of text, in points, without kerning, which makes it narrower."""
    return _wider(text, bold) * size_pt


@lru_cache(maxsize=8192)
def _wider(text: str, bold: bool) -> float:
    """The width at size 1, in the wider of both fonts."""
    widths, inter = _arial(bold), _inter(bold)
    arial = sum(
        widths[one] / _EM if one in widths else inter.getlength(one) / _MEASURED_AT for one in text
    )
    return max(arial, inter.getlength(text) / _MEASURED_AT)


@lru_cache(maxsize=2)
def _inter(bold: bool) -> ImageFont.FreeTypeFont:
    name = "Inter-Bold.otf" if bold else "Inter-Regular.otf"
    with resources.as_file(resources.files("weighbridge.results").joinpath("fonts", name)) as path:
        return ImageFont.truetype(str(path), _MEASURED_AT)


@lru_cache(maxsize=2)
def _arial(bold: bool) -> Mapping[str, int]:
    """The width of each letter in Arial, of those of Latin scripts and signs."""
    path = resources.files("weighbridge.results").joinpath("fonts", "arial-widths.json")
    groups = json.loads(path.read_text(encoding="utf-8"))["bold" if bold else "regular"]
    return {letter: int(width) for width, letters in groups.items() for letter in letters}


def shown_here() -> str:
    """In which font a deck is set, and in which this machine shows it, as the end of a sentence."""
    try:
        family = _family_here()
    except (OSError, subprocess.TimeoutExpired):
        return f"set in {TYPEFACE}; which font shows it here is not known: fc-match did not answer"
    if family in (None, TYPEFACE):
        return f"set in {TYPEFACE}"
    if family in SAME_WIDTHS:
        return f"set in {TYPEFACE}, shown here in {family}, of the same widths"
    return (
        f"set in {TYPEFACE}, which this machine lacks: shown here in {family}, whose widths "
        f"differ; install {SAME_WIDTHS[0]} (fonts-liberation)"
    )


def _family_here() -> str | None:
    """Arial's family by fontconfig, if there. Raises OSError, subprocess.TimeoutExpired."""
    program = shutil.which("fc-match")
    if program is None:
        return None
    command = [program, "--format=%{family[0]}", TYPEFACE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    return done.stdout.strip() or None
