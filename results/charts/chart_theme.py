"""How charts look: type that can be read from the last row, and the same colour for a layout in
every chart.

RGW is drawn in reds, oranges and browns, Swift in blues; orange and blue are those of Okabe and Ito
(2008), which people with any kind of colour vision can distinguish. A marker's shape says the same
again, for print without colour. The dark look has colours of the same hues with enough contrast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, Final, Literal

from weighbridge.common.record import Record
from weighbridge.results.record.resolved import PlannedLayout

BLACK: Final = "#16181d"
WHITE: Final = "#ffffff"

_WORSE_TO_BETTER: Final = {
    "light": ("#A64000", "#D55E00", "#F3B58A", "#F5F6F8", "#8FC1E3", "#0072B2", "#004A78"),
    "dark": ("#FF9A4D", "#D56A1B", "#7A4421", "#2A2E36", "#23587D", "#2A8FD3", "#7CC7FF"),
}


def diverging(look: Look) -> tuple[str, ...]:
    """Seven colours from the worst to the best; the fourth is neutral."""
    return _WORSE_TO_BETTER[look.name]


_HEAT: Final = {
    "light": ("#dde318", "#7ad151", "#22a884", "#2a788e", "#414487", "#440154"),
    "dark": ("#46327e", "#365c8d", "#277f8e", "#1fa187", "#6ece58", "#fde725"),
}
"""Viridis (S. van der Walt, N. Smith 2015), which people with any kind of colour vision can read;
low counts are near the background's colour.
"""


TIER_COLOURS: Final[dict[str, dict[str, str]]] = {
    "light": {
        "cpu": "#5B5B66",
        "disk": "#00875F",
        "disks": "#00574A",
        "network": "#139CB6",
        "fabric": "#0072B2",
    },
    "dark": {
        "cpu": "#A2A2AD",
        "disk": "#2FC08F",
        "disks": "#7FD6C2",
        "network": "#7BDDF9",
        "fabric": "#35A1E7",
    },
}
"""By look, the colours of the parts of a host."""


def heat_colours(look: Look) -> tuple[str, ...]:
    """Colours from low to high."""
    return _HEAT[look.name]


def neutral(look: Look) -> str:
    """The middle of the diverging colours."""
    colours = diverging(look)
    return colours[len(colours) // 2]


def colour_at(place: float, colours: Sequence[str]) -> str:
    """The colour at a place from -1 (the first) to 1 (the last); beyond, that of the end."""
    along = (min(1.0, max(-1.0, place)) + 1) / 2 * (len(colours) - 1)
    number = min(int(along), len(colours) - 2)
    low, high = _channels(colours[number]), _channels(colours[number + 1])
    mixed = (round(a + (b - a) * (along - number)) for a, b in zip(low, high, strict=True))
    return "#" + "".join(f"{channel:02X}" for channel in mixed)


def ink_on(colour: str) -> str:
    """Black or white, whichever is easier to read on a colour."""
    return max((BLACK, WHITE), key=lambda ink: contrast(ink, colour))


def contrast(a: str, b: str) -> float:
    """The contrast of two colours, 1 to 21 (WCAG 2.1); shapes need 3, text 4.5."""
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


FONT: Final = "Inter, sans-serif"
"""The generic family is the fallback: without it, a machine that lacks Inter would draw no text."""

_SHIPPED: Final = (
    "rgw-beast",
    "rgw-civetweb",
    "rgw-apache-fastcgi",
    "rgw-apache-proxy",
    "rgw-haproxy",
    "swift",
    "swift-haproxy",
    "swift-s3api",
)

_COLOURS: Final = {
    "light": (
        "#D55E00",
        "#6B5400",
        "#8A1668",
        "#5A2408",
        "#C2185B",
        "#0072B2",
        "#139CB6",
        "#3D2FB6",
    ),
    "dark": (
        "#F4874F",
        "#8F7410",
        "#BC3596",
        "#FFB6A2",
        "#EA4C78",
        "#35A1E7",
        "#7BDDF9",
        "#7B66EA",
    ),
}
"""By look, the colours of the shipped layouts.

Each has a contrast of at least 3:1 to its background, and no two are nearer than 0.07 in Oklab as
people with any of the three kinds of colour blindness see them: found by a search within each
family's hues.
"""

_SPARE: Final = {
    "light": {
        "rgw": ("#9A7F3A",),
        "swift": ("#3F5F8F",),
        "": ("#00875F", "#5B5B66", "#7A6F00", "#00574A", "#85858F"),
    },
    "dark": {
        "rgw": ("#C7A468",),
        "swift": ("#8AA0C8",),
        "": ("#2FC08F", "#A2A2AD", "#A3C644", "#7FD6C2", "#74747F"),
    },
}
"""More of a family's hues, and colours for layouts of neither family."""

_SHAPES: Final = ("circle", "square", "triangle-up", "diamond", "triangle-down", "triangle-right")


class Look(Record):
    """The colours of a chart, apart from its layouts', for a bright or a dark page or room."""

    name: Literal["light", "dark"]
    background: str
    ink: str
    muted: str
    grid: str
    axis: str
    bad: str
    """For invalid figures."""


LIGHT: Final = Look(
    name="light",
    background="#ffffff",
    ink="#16181d",
    muted="#5b6270",
    grid="#e6e8ec",
    axis="#9aa0ab",
    bad="#a3260f",
)
DARK: Final = Look(
    name="dark",
    background="#14161a",
    ink="#f2f3f5",
    muted="#a9b0bd",
    grid="#2b2f37",
    axis="#6b7280",
    bad="#ff9078",
)

INK: Final = LIGHT.ink
MUTED: Final = LIGHT.muted


class Style(Record):
    """How one layout is drawn."""

    layout: str
    colour: str
    shape: str


def styles(layouts: Sequence[PlannedLayout], look: Look = LIGHT) -> tuple[Style, ...]:
    """A style for each layout, in order. No two of up to six layouts look alike."""
    shipped = dict(zip(_SHIPPED, _COLOURS[look.name], strict=True))
    spare = _SPARE[look.name]
    chosen = {layout.name: shipped[layout.name] for layout in layouts if layout.name in shipped}
    for layout in layouts:
        if layout.name not in chosen:
            family = tuple(
                colour
                for name, colour in shipped.items()
                if layout.gateway and name.startswith(layout.gateway)
            )
            palette = (*family, *spare.get(layout.gateway, ()), *spare[""])
            free = [colour for colour in palette if colour not in chosen.values()]
            chosen[layout.name] = (free or palette)[0]
    return tuple(
        Style(layout=layout.name, colour=chosen[layout.name], shape=_SHAPES[number % len(_SHAPES)])
        for number, layout in enumerate(layouts)
    )


def mark_colour(
    layout: str, tone: str | float | None, drawn_as: Mapping[str, Style], look: Look
) -> str:
    """The colour of a tone (`panels.Tone`, or -1 to 1 from worse to better), else of a layout."""
    if isinstance(tone, float):
        return colour_at(tone, diverging(look))
    if tone is not None:
        plain = {name: getattr(look, name) for name in ("ink", "muted", "axis", "bad")}
        return str({**plain, **TIER_COLOURS[look.name]}[tone])
    return drawn_as[layout].colour if layout in drawn_as else look.ink


def font_folder() -> str:
    """The folder of the shipped fonts."""
    return str(resources.files("weighbridge.results").joinpath("fonts"))


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
        "legend": {
            "labelColor": look.ink,
            "titleColor": look.muted,
            "labelFontSize": 15,
            "titleFontSize": 15,
        },
        "view": {"stroke": None},
        "line": {"strokeWidth": 3, "strokeCap": "round", "strokeJoin": "round"},
        "concat": {"spacing": 44},
    }


# ---- how Vega-Lite draws marks, by `panels.MarkKind`

_CROSS: Final = "M-.6,-.6L.6,.6M.6,-.6L-.6,.6"
POINTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "point": {"size": 95},
    "small point": {"size": 70},
    "dot": {"size": 30, "opacity": 0.35},
    "diamond": {"size": 70, "opacity": 0.85, "shape": "diamond"},
    "hollow": {"size": 95, "strokeWidth": 2.5},
    "small hollow": {"size": 50, "strokeWidth": 2},
    "outline": {"size": 60, "strokeWidth": 1.6, "opacity": 0.75},
    "cross": {"size": 210, "strokeWidth": 2.5, "shape": _CROSS},
}
RULES: Final[Mapping[str, Mapping[str, Any]]] = {
    "interval": {"strokeWidth": 1.8, "opacity": 0.55},
    "strip": {"strokeWidth": 9, "opacity": 0.2},
    "bin": {"strokeWidth": 8},
    "pale bin": {"strokeWidth": 6, "opacity": 0.45, "strokeCap": "round"},
    "loss": {"strokeWidth": 11, "opacity": 0.22},
    "riser": {"strokeWidth": 1.5, "opacity": 0.55},
    "rule": {"strokeWidth": 1.5, "strokeDash": [5, 4], "opacity": 0.8},
    "level": {"strokeWidth": 1.6, "strokeDash": [6, 4]},
    "ceiling": {"strokeWidth": 1.4, "strokeDash": [5, 4], "opacity": 0.9},
    "drop": {"strokeWidth": 2, "strokeDash": [1, 4], "strokeCap": "round", "opacity": 0.8},
    "tick": {"strokeWidth": 2},
    "zero": {"strokeWidth": 1.4},
}
LINES: Final[Mapping[str, Mapping[str, Any]]] = {
    "line": {"strokeWidth": 3},
    "thin line": {"strokeWidth": 2},
    "faint line": {"strokeWidth": 1.2},
    "dotted line": {"strokeWidth": 1.8, "strokeDash": [1, 4], "opacity": 0.9},
    "dashed line": {"strokeWidth": 1.8, "strokeDash": [4, 4], "opacity": 0.8},
}
FAINT: Final = {"light": 0.35, "dark": 0.55}
"""By look, the opacity of a repeat's line: dark colours on a dark background fade sooner."""
