"""How much of a slide is left for its body when its title, lead and foot have what they need."""

from __future__ import annotations

from weighbridge.results.slides.fitting import bound, height_pt, largest
from weighbridge.results.slides.page import BODY_PT, FOOT_SIZES, GAP_PT, LEAD_SIZES, ROOM_PT, TITLE_SIZES, TOP_PT


def body_pt(title: str, lead: str = "", foot: str = "") -> float:
    """The height of what is left, in points."""
    room = BODY_PT - TOP_PT - _height(title, TITLE_SIZES, bold=True) - (GAP_PT / 2 if lead else GAP_PT)
    for text, sizes in ((lead, LEAD_SIZES), (foot, FOOT_SIZES)):
        room -= _height(text, sizes) + GAP_PT if text else 0.0
    return room


def _height(text: str, sizes: tuple[tuple[int, int], ...], *, bold: bool = False) -> float:
    told = bound(text)
    return height_pt(told, ROOM_PT, largest(told, ROOM_PT, sizes, bold=bold), bold=bold)
