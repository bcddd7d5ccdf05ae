"""Scales of charts and slides: ends, ticks, and places for names so that no two overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import resources
from typing import Any, Final, Literal

from weighbridge.common.record import Record
from weighbridge.results.run.resolved import PlannedLayout

NUMBER: Final = ",.6~g"
"""How figures are written on axes, as a d3 format."""
MAX_LOG_TICKS: Final = 9


class AxisScale(Record):
    """An axis of numbers from `low` to `high`. A logarithmic one says so in its title."""

    kind: Literal["linear", "log"] = "linear"
    low: float = 0.0
    high: float = 1.0
    ticks: tuple[float, ...] = ()
    title: str = ""

    @classmethod
    def from_zero(cls, largest: float, title: str) -> AxisScale:
        """A linear scale from 0 that holds the largest value."""
        high, step = nice_top(largest)
        ticks = tuple(number * step for number in range(round(high / step) + 1))
        return cls(high=high, ticks=ticks, title=title)

    @classmethod
    def around(cls, values: Sequence[float], title: str) -> AxisScale:
        """A linear scale that holds all values; not from 0, so nothing on it may be an area."""
        low, high = min(values), max(values)
        if low <= 0.5 * high:
            return cls.from_zero(high * 1.02, title)
        _, step = nice_top(high - low or high * 0.1)
        first = int(low // step)
        last = max(-int(-high // step), first + 1)
        ticks = tuple(number * step for number in range(first, last + 1))
        return cls(low=ticks[0], high=ticks[-1], ticks=ticks, title=title)

    @classmethod
    def logarithmic(cls, values: Sequence[float], title: str) -> AxisScale:
        """A logarithmic scale that holds all values, all above 0; from 1 to 10 without any."""
        low, high, ticks = log_ticks(min(values, default=1.0), max(values, default=10.0))
        return cls(kind="log", low=low, high=high, ticks=tuple(ticks), title=title)

    @classmethod
    def workers(cls, counts: Sequence[int], title: str = "workers (log scale)") -> AxisScale:
        """Worker counts: logarithmic, with a tick for each."""
        first, last = counts[0], counts[-1]
        low, high = (first / 1.2, last * 1.08) if first != last else (first / 2, last * 2)
        return cls(kind="log", low=low, high=high, ticks=tuple(counts), title=title)

    def share(self, value: float) -> float:
        """How far along the scale a value lies, from 0 to 1."""
        if self.kind == "log":
            return math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def value(self, share: float) -> float:
        """The value at a share of the scale: the inverse of `share`."""
        if self.kind == "log":
            return self.low * math.exp(share * math.log(self.high / self.low))
        return self.low + share * (self.high - self.low)

    def encoding(self, field: str = "", **axis: Any) -> dict[str, Any]:
        """A Vega-Lite encoding of a field with this scale; without one layers add it."""
        return {
            **({"field": field} if field else {}),
            "type": "quantitative",
            "title": self.title or None,
            "scale": {
                "type": self.kind,
                "domain": [self.low, self.high],
                "nice": False,
                "clamp": True,
                # Vega complains of it on a logarithmic scale.
                **({"zero": False} if self.kind == "linear" else {}),
            },
            "axis": {"values": list(self.ticks), "format": NUMBER, **axis},
        }


def names_encoding(names: Sequence[str], field: str = "", **axis: Any) -> dict[str, Any]:
    """A Vega-Lite encoding of a field of names in this order; without one layers add it."""
    scale = {"domain": list(names), "paddingInner": 0.06, "paddingOuter": 0.03}
    return {
        **({"field": field} if field else {}),
        "type": "nominal",
        "title": None,
        "sort": list(names),
        "scale": scale,
        "axis": {"grid": False, "labelOverlap": False, **axis},
    }


def nice_top(largest: float) -> tuple[float, float]:
    """The end of a scale from 0 that holds `largest`, and its tick step: 1, 2 or 5 times 10^n."""
    if largest <= 0:
        return 1.0, 0.5
    step = next(
        unit * 10**power
        for power in range(math.floor(math.log10(largest)) - 1, math.ceil(math.log10(largest)) + 1)
        for unit in (1, 2, 5)
        if largest / (unit * 10**power) <= 5
    )
    return math.ceil(largest * 1.02 / step) * step, step


def log_ticks(low: float, high: float) -> tuple[float, float, list[float]]:
    """Ends and ticks of a logarithmic scale: 1, 2 and 5 times powers of ten; of many the powers."""
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    fine = [unit * 10.0**power for power in powers for unit in (1, 2, 5)]
    start = max(tick for tick in fine if tick <= low)
    end = min(tick for tick in fine if tick >= high and tick > start)
    ticks = [tick for tick in fine if start <= tick <= end]
    if len(ticks) > MAX_LOG_TICKS:
        ticks = [tick for tick in ticks if abs(math.log10(tick) - round(math.log10(tick))) < 1e-9]
    return start, end, ticks


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Places near the wanted ones, in order, at least `gap` apart; those too close are moved about
    their common mean (pool adjacent violators).
    """
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    pools: list[tuple[float, int]] = []  # mean of (wanted - rank * gap), size
    for rank, index in enumerate(order):
        pools.append((wanted[index] - rank * gap, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (mean_a, size_a), (mean_b, size_b) = pools[-2:]
            mean = (mean_a * size_a + mean_b * size_b) / (size_a + size_b)
            pools[-2:] = [(mean, size_a + size_b)]
    flat = [mean for mean, size in pools for _ in range(size)]
    placed = [0.0] * len(wanted)
    for rank, index in enumerate(order):
        placed[index] = flat[rank] + rank * gap
    return placed


BLACK: Final = "#16181d"
WHITE: Final = "#ffffff"
FONT: Final = "Inter, sans-serif"
"""The generic family is the fallback: without it, a machine that lacks Inter would draw no text."""


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
    background=WHITE,
    ink=BLACK,
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

_SHIPPED: Final = {
    "rgw-beast": ("#D55E00", "#F4874F"),
    "rgw-civetweb": ("#6B5400", "#8F7410"),
    "rgw-apache-fastcgi": ("#8A1668", "#BC3596"),
    "rgw-apache-proxy": ("#5A2408", "#FFB6A2"),
    "rgw-haproxy": ("#C2185B", "#EA4C78"),
    "swift": ("#0072B2", "#35A1E7"),
    "swift-haproxy": ("#139CB6", "#7BDDF9"),
    "swift-s3api": ("#3D2FB6", "#7B66EA"),
}
"""The colours of the shipped layouts, light and dark.

Each has a contrast of at least 3:1 to its background, and no two are nearer than 0.07 in Oklab as
people with any of the three kinds of colour blindness see them: found by a search within each
family's hues.
"""
_SPARE: Final = {
    "rgw": (("#9A7F3A", "#C7A468"),),
    "swift": (("#3F5F8F", "#8AA0C8"),),
    "": (
        ("#00875F", "#2FC08F"),
        ("#5B5B66", "#A2A2AD"),
        ("#7A6F00", "#A3C644"),
        ("#00574A", "#7FD6C2"),
        ("#85858F", "#74747F"),
    ),
}
"""More of a family's hues, and colours for layouts of neither family."""
_SHAPES: Final = ("circle", "square", "triangle-up", "diamond", "triangle-down", "triangle-right")
_PARTS: Final = {
    "light": ("#5B5B66", "#00875F", "#00574A", "#139CB6", "#0072B2"),
    "dark": ("#A2A2AD", "#2FC08F", "#7FD6C2", "#7BDDF9", "#35A1E7"),
}
"""The colours of CPUs, each disk, all disks, pairs of hosts and the whole network."""
_WORSE_TO_BETTER: Final = {
    "light": ("#A64000", "#D55E00", "#F3B58A", "#F5F6F8", "#8FC1E3", "#0072B2", "#004A78"),
    "dark": ("#FF9A4D", "#D56A1B", "#7A4421", "#2A2E36", "#23587D", "#2A8FD3", "#7CC7FF"),
}
_HEAT: Final = {
    "light": ("#dde318", "#7ad151", "#22a884", "#2a788e", "#414487", "#440154"),
    "dark": ("#46327e", "#365c8d", "#277f8e", "#1fa187", "#6ece58", "#fde725"),
}
"""Viridis (S. van der Walt, N. Smith 2015), which people with any kind of colour vision can read;
low counts are near the background's colour.
"""
_OF_LOOK: Final = ("ink", "muted", "bad", "axis")
TOKENS: Final = {
    **{f"${name}": {"expr": name} for name in _OF_LOOK},
    # Vega has a signal `background` of its own.
    "$background": {"expr": "paper"},
    "$strong": "datum._tone > strongly_better || datum._tone < strongly_worse",
}
"""What specs have of a look, as params of its config: a spec is the same in every look."""
_STRONG: Final = {"light": (-0.7, 0.6), "dark": (-0.56, 0.56)}
"""By look, below and above which place text on a diverging colour is of the background's colour."""
CLAIMED: Final = {"better": 2 / 3, "worse": -2 / 3}
"""The place of the colour of significant changes, from worse, -1, to better, 1."""


class Style(Record):
    """How one layout is drawn."""

    layout: str
    colour: str
    shape: str


def styles(layouts: Sequence[PlannedLayout], look: Look = LIGHT) -> tuple[Style, ...]:
    """A style for each layout, in order. No two of up to six layouts look alike."""
    side = 0 if look.name == "light" else 1
    chosen = {one.name: _SHIPPED[one.name][side] for one in layouts if one.name in _SHIPPED}
    for layout in layouts:
        if layout.name not in chosen:
            family = [
                pair
                for name, pair in _SHIPPED.items()
                if layout.gateway and name.startswith(layout.gateway)
            ]
            pairs = (*family, *_SPARE.get(layout.gateway, ()), *_SPARE[""])
            palette = [pair[side] for pair in pairs]
            free = [colour for colour in palette if colour not in chosen.values()]
            chosen[layout.name] = (free or palette)[0]
    return tuple(
        Style(layout=one.name, colour=chosen[one.name], shape=_SHAPES[number % len(_SHAPES)])
        for number, one in enumerate(layouts)
    )


def diverging(look: Look) -> tuple[str, ...]:
    """Seven colours from the worst to the best; the fourth is neutral."""
    return _WORSE_TO_BETTER[look.name]


def font_folder() -> str:
    """The folder of the shipped fonts."""
    return str(resources.files("weighbridge.results").joinpath("fonts"))


def config(look: Look, layouts: Sequence[PlannedLayout], text_px: int) -> dict[str, Any]:
    """The Vega-Lite config of a chart with text of this size."""
    drawn = styles(layouts, look)
    text = {
        "labelFontSize": text_px,
        "titleFontSize": text_px,
        "labelColor": look.ink,
        "titleColor": look.muted,
    }
    worse, better = _STRONG[look.name]
    params = {
        "paper": look.background,
        **{name: getattr(look, name) for name in _OF_LOOK},
        "strongly_worse": worse,
        "strongly_better": better,
    }
    return {
        "params": [{"name": name, "value": value} for name, value in params.items()],
        "font": FONT,
        "background": look.background,
        "title": {
            "anchor": "start",
            "color": look.ink,
            "fontSize": round(1.1 * text_px),
            "fontWeight": 600,
            "offset": round(0.4 * text_px),
            "subtitleColor": look.muted,
            "subtitleFontSize": text_px,
            "subtitlePadding": 6,
            "subtitleLineHeight": round(1.25 * text_px),
        },
        "axis": {
            **text,
            "titleFontWeight": 500,
            "gridColor": look.grid,
            "domain": False,
            "ticks": False,
            "labelPadding": 6,
            "labelLimit": 0,
            "labelOverlap": True,
            "labelSeparation": text_px / 2,
            "labelFlush": False,
            "titlePadding": 8,
        },
        "axisX": {"grid": False},
        # The title of a vertical axis stands above it, so that it can be read.
        "axisY": {
            "titleAngle": 0,
            "titleAlign": "left",
            "titleAnchor": "end",
            "titleX": -4,
            "titleY": round(-0.8 * text_px),
        },
        "legend": {
            **text,
            "orient": "top",
            "title": None,
            "symbolSize": 9 * text_px,
            "labelLimit": 0,
            "titleLimit": 0,
        },
        "range": {
            "category": [style.colour for style in drawn],
            "symbol": [style.shape for style in drawn],
            "diverging": list(diverging(look)),
            "heatmap": list(_HEAT[look.name]),
            "ordinal": list(_PARTS[look.name]),
        },
        "style": _mark_styles(look, text_px),
        "view": {"stroke": None},
        "line": {"strokeJoin": "round"},
        "bar": {"cornerRadiusEnd": 3},
        "text": {"color": look.ink, "fontSize": text_px},
        "concat": {"spacing": round(1.2 * text_px)},
    }


def _mark_styles(look: Look, text_px: int) -> dict[str, Any]:
    """What marks mean, by the name that a layer's mark has as its `style`."""
    dashed = [text_px / 3, text_px / 4]
    figure = {"fontWeight": 600, "baseline": "middle"}
    # Dark colours on a dark background fade sooner.
    faint = 0.35 if look.name == "light" else 0.55
    return {
        "path": {"strokeWidth": text_px / 5, "strokeCap": "round"},
        "sure": {"filled": True, "opacity": 1, "size": 6 * text_px},
        "pale": {"filled": True, "opacity": faint, "size": 6 * text_px},
        "doubted": {"opacity": 1, "size": 6 * text_px, "strokeWidth": text_px / 7},
        "doubted-bar": {"fillOpacity": 0.15, "strokeWidth": text_px / 9},
        "cross": {"size": 14 * text_px, "strokeWidth": text_px / 6},
        "repeat": {"size": 2 * text_px, "opacity": 0.4},
        "second": {"size": 16 * text_px, "strokeWidth": text_px / 7},
        "band": {"opacity": 0.15, "line": False},
        "interval": {"strokeWidth": text_px / 8, "opacity": 0.6},
        "bin": {"strokeWidth": text_px / 2, "opacity": 0.5},
        "whisker": {"color": look.ink, "strokeWidth": text_px / 7},
        "whisker-edge": {"color": look.background, "strokeWidth": text_px / 2.8},
        "faint": {"strokeWidth": text_px / 12, "opacity": faint},
        "uncounted": {"strokeWidth": text_px / 9, "strokeDash": [1, 4], "opacity": 0.9},
        "unsure": {"strokeWidth": text_px / 8, "strokeDash": dashed, "opacity": 0.8},
        "level": {"color": look.muted, "strokeWidth": text_px / 10, "strokeDash": dashed},
        "zero": {"color": look.axis, "strokeWidth": text_px / 10},
        "moment": {"color": look.bad, "strokeWidth": text_px / 10, "strokeDash": dashed},
        "stall": {"color": look.bad, "opacity": 0.3},
        "failed": {"color": look.bad},
        "leader": {"strokeWidth": text_px / 12, "opacity": 0.5, "clip": False},
        "name": {"fontWeight": 600, "align": "left", "baseline": "middle"},
        "figure": {**figure, "align": "left", "dx": text_px / 2},
        "figure-left": {**figure, "align": "right", "dx": -text_px / 2},
        "note": {"color": look.muted, "align": "left", "baseline": "middle", "dx": text_px / 4},
        "frame": {"color": look.axis, "strokeDash": dashed, "filled": False, "cornerRadius": 4},
        "cell": {"cornerRadius": 4, "strokeWidth": 0},
        "plain": {"color": diverging(look)[3], "cornerRadius": 4},
        "cell-text": {"align": "center", "baseline": "middle"},
        "cell-figure": {"align": "center", "baseline": "middle", "fontWeight": 700},
        "grey": {"color": look.axis},
    }
