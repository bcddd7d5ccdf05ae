"""The scale from worse to better: orange over a pale middle to blue, which people with any kind of colour vision can tell apart.

Orange and blue are those of Okabe and Ito (2008). The middle is the neutral nearest to the background, so that what has not
changed does not catch the eye; text on a colour is black or white, whichever is read better (contrast as WCAG 2.1 defines it).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weighbridge.results.chart_theme import Look

BLACK: Final = "#16181d"
WHITE: Final = "#ffffff"

_COLOURS: Final = {
    "light": ("#A64000", "#D55E00", "#F3B58A", "#F5F6F8", "#8FC1E3", "#0072B2", "#004A78"),
    "dark": ("#FF9A4D", "#D56A1B", "#7A4421", "#2A2E36", "#23587D", "#2A8FD3", "#7CC7FF"),
}


def diverging(look: Look) -> tuple[str, ...]:
    """Seven colours from the worst to the best; the fourth is the middle."""
    return _COLOURS[look.name]


def neutral(look: Look) -> str:
    """The middle of the scale."""
    colours = diverging(look)
    return colours[len(colours) // 2]


def colour_at(place: float, colours: Sequence[str]) -> str:
    """The colour at a place of -1 (the first) to 1 (the last), beyond which the ends hold."""
    along = (min(1.0, max(-1.0, place)) + 1) / 2 * (len(colours) - 1)
    number = min(int(along), len(colours) - 2)
    low, high = _channels(colours[number]), _channels(colours[number + 1])
    mixed = (round(a + (b - a) * (along - number)) for a, b in zip(low, high, strict=True))
    return "#" + "".join(f"{channel:02X}" for channel in mixed)


def ink_on(colour: str) -> str:
    """Black or white, whichever is read better on a colour."""
    return max((BLACK, WHITE), key=lambda ink: contrast(ink, colour))


def contrast(a: str, b: str) -> float:
    """The contrast of two colours, 1 to 21; 3 is wanted of what is drawn, 4.5 of text (WCAG 2.1)."""
    darker, lighter = sorted((_luminance(a), _luminance(b)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    red, green, blue = (_linear(channel / 255) for channel in _channels(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4


def _channels(colour: str) -> tuple[int, int, int]:
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return red, green, blue
