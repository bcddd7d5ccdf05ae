"""The composer: makes the Vega-Lite spec of a figure from its panels.

What all charts have in common is decided here and in `panel_layers`. Specs are plain JSON: Altair
copies every chart and all that is in it several times over, which took most of the time that a
report of many panels needs.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any, Final

from weighbridge.results.charts.chart_theme import LIGHT, Look, config, styles
from weighbridge.results.charts.panel_layers import PanelLayers, by_row
from weighbridge.results.charts.panels import WIDTH, Figure, Panel
from weighbridge.results.charts.placing import in_lines

SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v6.json"
WIDE_CHARACTERS: Final = 64
"""Characters per line of a title above two columns."""


def compose(figure: Figure, look: Look = LIGHT) -> dict[str, Any]:
    """The Vega-Lite spec of a complete figure, with its finding as the title."""
    rows = [list(mine) for _, mine in groupby(figure.panels, key=lambda panel: panel.row)]
    in_rows = any(panel.row for panel in figure.panels)
    columns = max(map(len, rows), default=1) if in_rows else min(figure.columns, len(figure.panels))
    widest = max((panel.width for panel in figure.panels), default=WIDTH) + figure.labels_px
    # A character of the titles' type is 13.5 pixels wide on average, one of the captions' 7.6.
    characters = (
        74 if in_rows else WIDE_CHARACTERS if columns > 1 else max(38, round(widest / 13.5))
    )
    below = 150 if columns > 1 else max(74, round(widest / 7.6))
    title = {
        "text": in_lines(figure.finding, characters),
        "subtitle": in_lines(figure.caption, below),
        **({"frame": "bounds"} if figure.labels_px else {}),
    }
    drawn = iter([_titled(figure, panel, look) for panel in figure.panels])
    parts: list[dict[str, Any]] = list(drawn) if not in_rows else []
    for row in rows if in_rows else ():
        heading = {"text": row[0].row, "fontSize": 18, "fontWeight": 600, "offset": 10}
        parts.append({"hconcat": [next(drawn) for _ in row], "spacing": 26, "title": heading})
    if figure.legend:
        parts.insert(0, _legend(figure, look))
    spec = {"vconcat": parts} if in_rows else {"concat": parts, "columns": columns}
    named = {"title": title} if figure.finding or figure.caption else {}
    return {"$schema": SCHEMA, **spec, **named, "config": config(look)}


def compose_panel(figure: Figure, panel: Panel, look: Look = LIGHT) -> dict[str, Any]:
    """The spec of one panel for a page, which has the title and the margins."""
    width = panel.page_width or "container"
    settings = {**config(look), "padding": 4, "background": None}
    if panel.page_width is not None:
        settings["padding"] = {"left": 4, "right": 36, "top": 4, "bottom": 4}
    if panel.row:
        small = {"labelFontSize": 12, "titleFontSize": 12, "labelPadding": 3}
        settings |= {"axis": {**settings["axis"], **small}, "padding": 2}
    return {
        "$schema": SCHEMA,
        **PanelLayers(figure, panel, look).drawn(),
        "width": width,
        "height": panel.height,
        "config": settings,
    }


def _titled(figure: Figure, panel: Panel, look: Look) -> dict[str, Any]:
    # Without any finding, no line is reserved for one.
    blank = " " if any(one.finding for one in figure.panels) else ""
    room = round((panel.width + (90 if panel.labels else 0)) / 7)
    small = {"fontSize": 15, "fontWeight": 500, "color": look.muted, "offset": 8}
    title: dict[str, Any] = {
        "text": panel.title,
        "subtitle": in_lines(panel.finding, room) if panel.finding else blank,
        "fontSize": 18,
        "fontWeight": 600,
        "subtitleFontSize": 15,
        "offset": 14,
        **(small if panel.row else {}),
        **({"dx": -figure.labels_px} if figure.labels_px and figure.columns > 1 else {}),
    }
    size = {"width": panel.width, "height": panel.height}
    named = {"title": title} if panel.title or panel.finding else {}
    return {**PanelLayers(figure, panel, look).drawn(), **size, **named}


def _legend(figure: Figure, look: Look) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    x = 6.0
    for style in styles(figure.layouts, look):
        rows.append({"x": x, "text": style.layout, "c": style.colour, "s": style.shape})
        x += 42 + 8.6 * len(style.layout)
    axis = {"type": "quantitative", "scale": {"domain": [0, x], "nice": False}, "axis": None}
    base = {"x": {"field": "x", **axis}, "y": {"value": 8}}
    shape = {"field": "s", "type": "nominal", "scale": None}
    points = {"type": "point", "filled": True, "size": 120, "opacity": 1}
    words = {"type": "text", "align": "left", "baseline": "middle", "dx": 10, "fontSize": 16}
    layers = [
        {"mark": points, "encoding": {**base, "color": by_row("c"), "shape": shape}},
        {"mark": words, "encoding": {**base, "text": {"field": "text"}}},
    ]
    return {"data": {"values": rows}, "layer": layers, "width": round(x), "height": 16}
