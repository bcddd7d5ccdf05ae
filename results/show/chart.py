"""Charts: a function returns a `Chart` of panels; a panel is a plain Vega-Lite spec over rows.

The rows of all panels are the chart's data, as its CSV file and the tables of pages have them.
Columns whose names begin with `_` are only drawn. A spec has no colours of its own: marks have a
`style` of the theme, and `COLOUR` and `SHAPE` are those of layouts. Names stand at the ends of
lines (`End`). Pages show each panel by itself; a picture for a screen has up to four of them, wide
as 16:9, with text that can be read from the last row.

Specs are plain JSON: Altair copies every chart and all that is in it several times over, which took
most of the time that a report of many panels needs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, Final, Literal

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.errors import UsageError
from weighbridge.results.numbers import show_value
from weighbridge.results.run.resolved import PlannedLayout
from weighbridge.results.show.scales import LIGHT, TOKENS, AxisScale, Look, config, spread

Spec = dict[str, Any]
Row = Mapping[str, Any]

SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v6.json"
COLOUR: Final = {"field": "layout", "type": "nominal", "scale": "$colours", "legend": "$legend"}
SHAPE: Final = {"field": "layout", "type": "nominal", "scale": "$shapes", "legend": "$legend"}
HEIGHT_PX: Final = 900
"""Of a picture, as it is laid out: its text is at least 3 % of that."""
TEXT_PX: Final = 28
PAGE_TEXT_PX: Final = 14
_WIDE: Final = 1.4
"""From this ratio of width to height on a picture has two columns, and two rows at most."""
_HALF_PX: Final = 230.0
"""About the height of a plot of which two are one below the other."""
_MARGIN_PX: Final = 40
_TITLES_PX: Final = (46, 40, 36)
"""Sizes of titles; the largest with which a title has at most two lines is taken."""
_LETTER: Final = 0.53
"""The mean width of a letter, as a share of the type's size."""
_ROW_PX: Final = (34, 110)
"""The least and the largest height of a row of names in a picture."""
COMPARABLE: Final = "comparable"
PROVISIONAL: Final = "provisional"
NOT_COMPARABLE: Final = "not comparable"
"""What a point may be, in the column `standing`."""
_NO_COLUMNS: Final = ("api", "driver", "workload", "operation", "object_size_bytes")
"""Columns that the tables of pages leave out: the title of the panel says what they are."""

_SYMBOLS: Final = {
    "cross": {"shape": "M-.6,-.6L.6,.6M.6,-.6L-.6,.6", "filled": False},
    "second": {"shape": "stroke", "filled": False},
    "doubted": {"filled": False, "fill": "$background"},
    "interval": {"clip": True},
    "band": {"clip": True},
}
"""What a mark must say itself, since Vega-Lite does not read it from its style."""
_TYPES: Final = {"detail": {"type": "nominal"}, "order": {"type": "quantitative"}}
"""Of the columns of channels that no panel's `encoding` has."""
INK: Final = {"value": "$ink"}
MUTED: Final = {"value": "$muted"}
BAD: Final = {"value": "$bad"}
FULL_HEIGHT: Final[Spec] = {"y": {"value": 0}, "y2": {"value": "height"}}
FULL_WIDTH: Final[Spec] = {"x": {"value": 0}, "x2": {"value": "width"}}


def layer(mark: str, style: str = "", where: str = "", rows: Any = None, **channels: Any) -> Spec:
    """A layer of the panel's rows, or of its own, for which `where`, a Vega expression, holds. A
    channel is the name of a column, or a Vega-Lite definition; what is common to all layers is in
    the panel's `encoding`.
    """
    spec: Spec = {"mark": {"type": mark, **({"style": style} if style else {})}}
    spec["mark"] |= _SYMBOLS.get(style, {})
    if mark == "bar":
        spec["mark"]["height"] = {"band": 0.62}
    if rows is not None:
        spec["data"] = {"values": rows}
    if where:
        spec["transform"] = [{"filter": where}]
    spec["encoding"] = {
        channel: {"field": given, **_TYPES.get(channel, {})} if isinstance(given, str) else given
        for channel, given in channels.items()
    }
    return spec


@dataclass(frozen=True)
class End:
    """A layout's name at the right of a panel, with a line to what it names at `x`, `y`."""

    layout: str
    x: float | None
    """None: it names nothing that is drawn, and has no line."""
    y: float
    note: str = ""
    """A smaller text below the name."""
    text: str = ""
    """The name, where it is more than the layout's."""


@dataclass(frozen=True)
class Panel:
    """One panel of a chart: its rows, and a Vega-Lite spec of layers with what they share."""

    key: str
    """A slug that is unique within the chart."""
    title: str
    rows: Sequence[Row]
    spec: Spec
    finding: str = ""
    """Its result in a few words; empty where there is nothing to say."""
    ends: tuple[End, ...] = ()
    y: AxisScale | None = None
    """Its vertical scale, where names are at the ends of lines."""
    height: int = 260
    """On a page, in pixels."""
    alt_text: str = ""
    listed: Sequence[Row] = ()
    """The rows that a page lists, where there are more than anybody reads."""

    @property
    def table(self) -> tuple[tuple[str, ...], ...]:
        """Its rows for readers: a head, and a line for each."""
        rows = self.listed or self.rows
        columns = [name for name in columns_of(rows) if name not in _NO_COLUMNS]
        lines = (tuple(_shown(row.get(name)) for name in columns) for row in rows)
        return (tuple(name.replace("_", " ") for name in columns), *lines)


@dataclass(frozen=True)
class PictureStyle:
    """How pictures are made: size in pixels, title, and whether each panel has its own picture."""

    width: int = 1920
    height: int = 1080
    title: str = ""
    single: bool = False

    @classmethod
    def of(cls, size: str | None, *, title: str = "", single: bool = False) -> PictureStyle:
        """With a size such as `1920x1080`. Raises UsageError."""
        if size is None:
            return cls(title=title, single=single)
        pixels = re.fullmatch(r"([1-9]\d{2,3})x([1-9]\d{2,3})", size)
        if pixels is None:
            raise UsageError(
                f"--size: {size!r} is not a size in pixels, from 100 to 9999 each",
                advice="Write width and height, such as 1920x1080 (16:9) or 1600x1200.",
            )
        return cls(width=int(pixels[1]), height=int(pixels[2]), title=title, single=single)


@dataclass(frozen=True)
class Chart:
    """One chart. `finding` is its title, a sentence; `caption` says how to read it."""

    key: str
    """The name of its files, without extension."""
    title: str
    """What kind of chart it is: its heading on a page."""
    finding: str
    caption: str
    panels: tuple[Panel, ...]
    layouts: tuple[PlannedLayout, ...] = ()
    section: Literal[
        "workers", "figures", "certainty", "layers", "study", "tuning", "resources", "durability"
    ] = "figures"
    """The section of the report that shows it."""
    workload: str = ""
    """The workload that it is about, if it is about one alone."""
    legend: bool = False
    """Whether layouts are named above it, since its panels have no room for names."""
    columns: int = 2
    """Of panels side by side."""
    caveat: str = ""
    """What keeps its finding from being a claim, as the end of its caption where it is alone."""

    @property
    def csv(self) -> str:
        """Its rows, each with the title of its panel."""
        columns = columns_of([row for panel in self.panels for row in panel.rows])
        lines = [
            (panel.title, *(_cell(row.get(name)) for name in columns))
            for panel in self.panels
            for row in panel.rows
        ]
        return csv_lines(("panel", *columns), lines)

    @property
    def text(self) -> str:
        """Its finding, its caption, and the findings of its panels."""
        each = [f"{panel.title}: {panel.finding}" for panel in self.panels if panel.finding]
        return "\n".join((self.finding, f"{self.caption}{self.caveat}", *each, ""))

    def pictures(
        self, look: Look = LIGHT, style: PictureStyle | None = None
    ) -> Iterator[tuple[str, Spec]]:
        """Its pictures with the names of their files: of all panels together, or of each one."""
        style = style or PictureStyle()
        if style.single:
            for panel in self.panels:
                yield f"{self.key}-{panel.key}", self._picture([panel], look, style)
            return
        # Panels with many names need all of the height.
        rows = 1 if max(map(_least_px, self.panels), default=0.0) > _HALF_PX else 2
        count = math.ceil(len(self.panels) / (rows * self._columns(style))) or 1
        size = math.ceil(len(self.panels) / count)
        for number in range(count):
            shown = self.panels[number * size : (number + 1) * size]
            name = f"{self.key}-{number + 1}" if number else self.key
            yield name, self._picture(shown, look, style)

    def _columns(self, style: PictureStyle) -> int:
        """Of a picture: one where two would be too narrow for plots beside their names."""
        return self.columns if style.width / style.height > _WIDE else 1

    def _picture(self, panels: Sequence[Panel], look: Look, style: PictureStyle) -> Spec:
        width = HEIGHT_PX * style.width / style.height
        inside = width - 2 * _MARGIN_PX
        head = _head(style.title or self.finding, f"{self.caption}{self.caveat}", inside)
        above = sum(
            len(head[part]) * head[size]
            for part, size in (("text", "lineHeight"), ("subtitle", "subtitleLineHeight"))
        )
        columns = min(self._columns(style), len(panels)) or 1
        rows = math.ceil(len(panels) / columns) or 1
        gap = 1.2 * TEXT_PX
        cell_height = (HEIGHT_PX - 2 * _MARGIN_PX - above - 0.6 * TEXT_PX - (rows - 1) * gap) / rows
        if self.legend:
            cell_height -= 2 * TEXT_PX / rows
        cell_width = (inside - (columns - 1) * gap) / columns
        drawn = [self._in_picture(panel, cell_width, cell_height) for panel in panels]
        return {
            "$schema": SCHEMA,
            "concat": drawn,
            "columns": columns,
            "title": head,
            "config": config(look, self.layouts, TEXT_PX),
            "padding": _MARGIN_PX,
            "usermeta": {
                "size": [round(width), HEIGHT_PX],
                "scale": style.height / HEIGHT_PX,
                "background": look.background,
            },
        }

    def _in_picture(self, panel: Panel, width: float, height: float) -> Spec:
        vertical = panel.spec["encoding"].get("y", {})
        # What the vertical axis shows is said in the title: above the axis it takes a line.
        unit = vertical.get("title")
        title = f"{panel.title}, {unit}" if unit and panel.title.strip() else unit or panel.title
        titles = in_lines(title, max(12, round(width / (_LETTER * 1.1 * TEXT_PX))))
        left, right, below = _room_px(panel)
        plot_height = height - below - (1.3 * len(titles) + 0.4) * TEXT_PX
        names = _names(panel)
        if names:
            least, most = (len(names) * row for row in _ROW_PX)
            plot_height = min(max(plot_height, least), most)
        size = (round(max(120.0, width - left - right)), round(max(80.0, plot_height)))
        spec = self._spec(panel, size[1], TEXT_PX)
        if unit:
            spec["encoding"]["y"]["title"] = None
        return {**spec, "width": size[0], "title": {"text": titles}}

    def on_page(self, panel: Panel) -> Spec:
        """One panel for a page, which has the title, the margins and the config."""
        return {
            "$schema": SCHEMA,
            **self._spec(panel, panel.height, PAGE_TEXT_PX),
            "width": "container",
            "padding": 4,
        }

    def _spec(self, panel: Panel, height: int, text_px: int) -> Spec:
        names = [layout.name for layout in self.layouts]
        tokens = {
            **TOKENS,
            "$colours": {"domain": names, "range": "category"},
            "$shapes": {"domain": names, "range": "symbol"},
            "$legend": {} if self.legend else None,
            "$line": 1.4 * text_px,
        }
        layers = [*panel.spec["layer"], *_end_layers(panel, height, text_px)]
        spec = _replaced({**panel.spec, "layer": layers}, tokens)
        # Only the columns that the spec names: a page has all panels.
        text = str(spec)
        drawn = {name for name in {name for row in panel.rows for name in row} if name in text}
        rows = [_filled({name: row[name] for name in row if name in drawn}) for row in panel.rows]
        return {**spec, "data": {"values": rows}, "height": height}


def columns_of(rows: Sequence[Row]) -> list[str]:
    """The columns of rows that are data, in the order in which they first occur."""
    return [name for name in dict.fromkeys(name for row in rows for name in row) if name[0] != "_"]


def in_lines(text: str, letters: int) -> list[str]:
    """A text in as few lines as this width takes, of about equal length: no word is left alone."""
    # A no-break space keeps numbers with their units.
    whole = text.replace(" %", "\0%").replace(" ms", "\0ms").replace(" op/s", "\0op/s")
    lines = wrap(whole, letters, break_long_words=False, break_on_hyphens=False)
    for narrower in range(letters - 1, letters // 3, -1):
        closer = wrap(whole, narrower, break_long_words=False, break_on_hyphens=False)
        if len(closer) > len(lines):
            break
        lines = closer
    return [line.replace("\0", " ") for line in lines]


def _head(finding: str, caption: str, width: float) -> Spec:
    """The title of a picture, which fits into its width."""
    for size in _TITLES_PX:
        lines = in_lines(finding, round(width / (_LETTER * 1.04 * size)))
        if len(lines) <= 2:
            break
    return {
        "text": lines,
        "subtitle": in_lines(caption, round(width / (_LETTER * 0.97 * TEXT_PX))),
        "frame": "bounds",
        "fontSize": size,
        "lineHeight": round(1.2 * size),
        "fontWeight": 700,
        "offset": round(0.6 * TEXT_PX),
        "subtitlePadding": 10,
        "subtitleLineHeight": round(1.25 * TEXT_PX),
    }


def _room_px(panel: Panel) -> tuple[float, float, float]:
    """What axes and names take left, right and below a panel in a picture; text of TEXT_PX."""
    x, y = (panel.spec["encoding"].get(way, {}) for way in ("x", "y"))
    letter = _LETTER * TEXT_PX
    names = _names(panel)
    longest = max((len(name) for name in names), default=5)
    left = 0.0 if y.get("axis", {}) is None else longest * letter + 12
    texts = [text for end in panel.ends for text in (end.text or end.layout, end.note)]
    right = TEXT_PX + max((len(text) for text in texts), default=0) * 1.06 * letter
    if x.get("axis", {}) is None or (x.get("axis") or {}).get("orient") == "top":
        below = 0.0
    else:
        below = (1.5 + 1.4 * bool(x.get("title"))) * TEXT_PX
    above = 1.4 * TEXT_PX * ((x.get("axis") or {}).get("orient") == "top")
    return left, right if panel.ends else 12, below + above


def _least_px(panel: Panel) -> float:
    """The height that the names of a panel take in a picture, on its axis or at its right."""
    lines = len(panel.ends) * _end_lines(panel)
    return max(_ROW_PX[0] * len(_names(panel)), lines * TEXT_PX)


def _end_lines(panel: Panel) -> float:
    """The lines that each name at the right takes, with a gap."""
    return 1.3 + any(end.note for end in panel.ends)


def _names(panel: Panel) -> list[str]:
    """The names on the vertical axis; none where it has numbers."""
    encoding = panel.spec["encoding"].get("y", {})
    return list(encoding["scale"]["domain"]) if encoding.get("type") == "nominal" else []


def _end_layers(panel: Panel, height: int, text_px: int) -> list[Spec]:
    """Names at the right, linked to what they name, moved where two would overlap."""
    if panel.y is None or not panel.ends:
        return []
    line = _end_lines(panel) * text_px / height
    wanted = [panel.y.share(end.y) for end in panel.ends]
    places = spread(wanted, line)
    # Names that lie outside the panel are moved back into it where they fit.
    low, high = min(places), max(places)
    shift = max(0.0, line / 3 - low) - max(0.0, high - 1) if high - low < 1 else 0.0
    lift = 0.55 * text_px
    rows = []
    for end, share, place in zip(panel.ends, wanted, places, strict=True):
        middle = (1 - place - shift) * height
        row = {
            "layout": end.layout,
            "_x": end.x,
            "_from": (1 - share) * height,
            "_at": middle - lift * bool(end.note),
            "_below": middle + lift,
            "_name": end.text or end.layout,
            "_note": end.note,
        }
        rows.append(_filled(row))
    side = {"value": "width"}
    start, at, below = (
        {"field": field, "type": "quantitative", "scale": None, "axis": None}
        for field in ("_from", "_at", "_below")
    )
    named = "isValid(datum._x)"
    leader = layer("rule", "leader", named, rows, x="_x", x2=side, y=start, y2="_at", color=COLOUR)
    leader["mark"]["x2Offset"] = text_px
    name = layer("text", "name", "", rows, x=side, y=at, text="_name", color=COLOUR)
    note = layer("text", "note", "", rows, x=side, y=below, text="_note", color=MUTED)
    for words in (name, note):
        words["mark"] |= {"dx": 1.4 * text_px, "clip": False}
    return [leader, name, note]


def _filled(row: Row) -> Spec:
    """A row without what is unknown, and its figures with the five digits that can be seen."""
    return {name: _rounded(value) for name, value in row.items() if value is not None}


def _rounded(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_rounded(one) for one in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def _replaced(value: Any, tokens: Mapping[str, Any]) -> Any:
    """A spec in which tokens are replaced by what the theme has for them."""
    if isinstance(value, dict):
        return {name: _replaced(one, tokens) for name, one in value.items()}
    if isinstance(value, list):
        return [_replaced(one, tokens) for one in value]
    return tokens.get(value, value) if isinstance(value, str) and value[:1] == "$" else value


def _cell(value: Any) -> Any:
    """A cell of the CSV file; of several values each with five digits."""
    if isinstance(value, tuple | list):
        return tuple(f"{one:.5g}" if isinstance(one, float) else one for one in value)
    return value


def _shown(value: Any) -> str:
    if isinstance(value, tuple | list):
        return " · ".join(map(_shown, value))
    return show_value(value)


def standing_layers(column: str, *, at: str = "_at", along: str = "y") -> list[Spec]:
    """The points of figures by their column `standing`: filled if comparable, hollow if there is a
    caveat, and a cross at `at` if not comparable. `along`: the axis of the figures.
    """
    layers = []
    for mark, standing in (("sure", COMPARABLE), ("doubted", PROVISIONAL)):
        where = f"datum.standing == '{standing}' && isValid(datum.{column})"
        layers.append(layer("point", mark, where, **{along: column}, shape=SHAPE))
    where = f"datum.standing == '{NOT_COMPARABLE}'"
    return [*layers, layer("point", "cross", where, **{along: at})]
