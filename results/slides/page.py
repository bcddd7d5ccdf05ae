"""The page that slides are laid out on: 16:9, 13.333 by 7.5 inches, in points of 1/72 inch; content and drawing agree on it."""

from __future__ import annotations

from typing import Final

from weighbridge.results.slides.fitting import bound, height_pt, largest


def body_pt(title: str, lead: str = "", foot: str = "") -> float:
    """The height of what is left, in points."""
    room = BODY_PT - TOP_PT - _height(title, TITLE_SIZES, bold=True) - (GAP_PT / 2 if lead else GAP_PT)
    for text, sizes in ((lead, LEAD_SIZES), (foot, FOOT_SIZES)):
        room -= _height(text, sizes) + GAP_PT if text else 0.0
    return room


def _height(text: str, sizes: tuple[tuple[int, int], ...], *, bold: bool = False) -> float:
    told = bound(text)
    return height_pt(told, ROOM_PT, largest(told, ROOM_PT, sizes, bold=bold), bold=bold)


WIDTH_PT: Final = 960.0
HEIGHT_PT: Final = 540.0
LEFT_PT: Final = 44.0
ROOM_PT: Final = WIDTH_PT - 2 * LEFT_PT
TOP_PT: Final = 28.0
BODY_PT: Final = 498.0
"""Where the body of a slide ends at the latest; below is the line with the run's name and the number of the slide."""
GAP_PT: Final = 12.0

TITLE_SIZES: Final = ((32, 1), (30, 1), (28, 1), (30, 2), (28, 2), (26, 2), (24, 2), (24, 3), (20, 4))
"""Sizes of titles, each with the lines that it may take: title and lead never change places with the body."""
LEAD_SIZES: Final = ((24, 1), (22, 1), (20, 1), (20, 2), (18, 2), (16, 3))
FOOT_SIZES: Final = ((16, 1), (16, 2), (14, 3))
