"""How charts look: type that can be read from the last row, a colour for each layout that is the same in every chart.

Colours are those of Okabe and Ito (2008), which people with any kind of colour vision can tell apart, and darker kin of
them: RGW in reds and oranges, Swift in blues. A marker's shape says the same again, for print without colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import Any, Final, Literal

from ground.record import Record
from results.resolved import PlannedLayout

FONT: Final = "Inter, sans-serif"
"""Without the generic family a machine that lacks Inter would draw no text at all."""

FIXED: Final = {
    "rgw-beast": "#D55E00",
    "rgw-civetweb": "#E69F00",
    "rgw-apache-fastcgi": "#A8487E",
    "rgw-apache-proxy": "#8C3A0E",
    "rgw-haproxy": "#F0836B",
    "swift": "#0072B2",
    "swift-haproxy": "#56B4E9",
}
"""Layouts that ship have their colour in every run."""

_FAMILIES: Final = {
    "rgw": ("#D55E00", "#E69F00", "#A8487E", "#8C3A0E", "#F0836B", "#C9A227"),
    "swift": ("#0072B2", "#56B4E9", "#003F66", "#5E7FBF"),
}
_OTHERS: Final = ("#009E73", "#5B5B66", "#7A6F00", "#00695C", "#9A9AA5")
_SHAPES: Final = ("circle", "square", "triangle-up", "diamond", "triangle-down", "triangle-right")


class Look(Record):
    """The colours that a chart has beside those of its layouts: for a page or a bright room, or for a dark one."""

    name: Literal["light", "dark"]
    background: str
    ink: str
    muted: str
    grid: str
    axis: str


LIGHT: Final = Look(name="light", background="white", ink="#16181d", muted="#5b6270", grid="#e6e8ec", axis="#9aa0ab")
DARK: Final = Look(name="dark", background="#14161a", ink="#f2f3f5", muted="#a9b0bd", grid="#2b2f37", axis="#6b7280")

INK: Final = LIGHT.ink
MUTED: Final = LIGHT.muted
GRID: Final = LIGHT.grid


class Style(Record):
    """How one layout is drawn."""

    layout: str
    colour: str
    shape: str


def styles(layouts: Sequence[PlannedLayout]) -> tuple[Style, ...]:
    """A style for each layout, in order. No two of up to six layouts look alike."""
    chosen: dict[str, str] = {layout.name: FIXED[layout.name] for layout in layouts if layout.name in FIXED}
    for layout in layouts:
        if layout.name not in chosen:
            palette = (*_FAMILIES.get(layout.gateway, ()), *_OTHERS)
            free = [colour for colour in palette if colour not in chosen.values()]
            chosen[layout.name] = (free or palette)[0]
    return tuple(
        Style(layout=layout.name, colour=chosen[layout.name], shape=_SHAPES[number % len(_SHAPES)])
        for number, layout in enumerate(layouts)
    )


def font_folder() -> str:
    """The folder of the fonts that ship."""
    return str(resources.files("results").joinpath("fonts"))


def config(look: Look = LIGHT) -> dict[str, Any]:
    """The Vega-Lite config of every chart."""
    return {
        "font": FONT,
        "background": look.background,
        "padding": 20,
        "title": {
            "anchor": "start",
            "frame": "group",
            "color": look.ink,
            "fontSize": 26,
            "fontWeight": 700,
            "offset": 22,
            "subtitleFontSize": 16,
            "subtitleColor": look.muted,
            "subtitlePadding": 8,
            "subtitleLineHeight": 22,
        },
        "axis": {
            "labelFontSize": 15,
            "labelColor": look.ink,
            "labelPadding": 6,
            "titleFontSize": 15,
            "titleFontWeight": 500,
            "titleColor": look.muted,
            "titlePadding": 10,
            "gridColor": look.grid,
            "domainColor": look.axis,
            "tickColor": look.axis,
            "labelOverlap": True,
        },
        "text": {"color": look.ink},
        "view": {"stroke": None},
        "line": {"strokeWidth": 3, "strokeCap": "round", "strokeJoin": "round"},
        "concat": {"spacing": 44},
    }
