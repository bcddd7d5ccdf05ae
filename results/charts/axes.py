"""Vega-Lite encodings of the scales of a panel, with their axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from weighbridge.results.charts.chart_theme import Look, heat_colours
from weighbridge.results.charts.panels import AxisScale, HeatScale, Panel
from weighbridge.results.charts.text_places import NOTE_PX

NUMBER: Final = ",.6~g"
"""How figures are written, as a d3 format."""
GAP: Final = 0.06
"""Gap between two cells, as a share of a cell."""
_BARE: Final = {"domain": False, "ticks": False, "grid": False, "labelOverlap": False}


def encodings(panel: Panel, ways: str) -> dict[str, Any]:
    """The encodings of `x`, `y` or both (`xy`)."""
    return {way: axis_encoding(panel, way) for way in ways}


def axis_encoding(panel: Panel, way: str) -> dict[str, Any]:
    """The encoding of `x` or `y`, with its axis."""
    scale = panel.x if way == "x" else panel.y
    if scale.kind == "names":
        return _names_encoding(way, scale)
    drawn = {"type": scale.kind, "domain": [scale.low, scale.high], "nice": False}
    place = {"field": way, "type": "quantitative", "scale": drawn, "title": scale.title or None}
    if scale.hidden:
        return {**place, "axis": None}
    axis: dict[str, Any] = {"values": list(scale.ticks), "grid": scale.grid}
    axis |= {"labelExpr": scale.expression} if scale.expression else {"format": NUMBER}
    if way == "x":
        bare = {"ticks": False, "domain": False, "labelFlush": False}
        axis |= bare if scale.grid else {"tickSize": 5}
    else:
        above = {"titleAngle": 0, "titleAlign": "left", "titleAnchor": "end"}
        axis |= {"ticks": False, "domain": False, **above, "titleX": -4, "titleY": -12}
    return {**place, "axis": axis}


def _names_encoding(way: str, scale: AxisScale) -> dict[str, Any]:
    """An encoding of names, above the panel or left of it; names in groups without their group."""
    expression = scale.expression or ("split(datum.value, '\\n')[1]" if scale.groups else "")
    axis: dict[str, Any] = {
        **_BARE,
        "labelPadding": 9,
        "labelLimit": 560,
        **({"labelExpr": expression} if expression else {}),
    }
    if way == "x":
        axis |= {"orient": "top", "labelAngle": 0, "labelFontSize": 16, "labelFontWeight": 600}
        axis |= {"titlePadding": 8, **({"labelPadding": 26} if expression else {})}
    domain = {"domain": list(scale.names), "paddingInner": GAP, "paddingOuter": 0}
    place = {"field": way, "type": "nominal", "sort": list(scale.names), "scale": domain}
    return {**place, "title": scale.title or None, "axis": None if scale.hidden else axis}


def group_names(panel: Panel, look: Look) -> dict[str, Any]:
    """The groups of rows: a name left of the first row of each, and a line between two groups."""
    scale = panel.y
    first = [
        number
        for number, about in enumerate(scale.groups)
        if not number or scale.groups[number - 1] != about
    ]
    longest = max(len(name.rpartition("\n")[2]) for name in scale.names)
    axis = {
        "values": [scale.names[number] for number in first],
        "labelExpr": "split(datum.value, '\\n')[0]",
        "labelFontSize": 16,
        "labelFontWeight": 600,
        "labelLimit": 330,
        "orient": "left",
        "offset": min(340, 26 + 8.2 * longest),
        **_BARE,
    }
    rows = [{"y": scale.names[number]} for number in first if number]
    step = panel.height / len(scale.names)
    rule = {"type": "rule", "yOffset": -step / 2, "strokeWidth": 1, "color": look.axis}
    return layer(rows, rule, {"y": {**_names_encoding("y", scale), "axis": axis}})


def heat_encoding(panel: Panel, heat: HeatScale, look: Look) -> dict[str, Any]:
    """The encodings of the colour of cells that have a value, and of their tooltips."""
    colours = {"range": list(heat_colours(look)), "interpolate": "rgb"}
    legend = {
        "title": heat.title,
        "orient": "right",
        "format": NUMBER,
        "tickCount": 4,
        "gradientLength": panel.height - 60,
        "gradientThickness": 12,
        "labelFontSize": NOTE_PX,
        "titleFontSize": NOTE_PX,
    }
    titles = (("x", panel.x.title), ("y", panel.y.title), ("value", heat.title))
    return {
        "color": {
            "field": "value",
            "type": "quantitative",
            "scale": {"type": "log", "domain": [heat.low, heat.high], **colours},
            "legend": legend,
        },
        "tooltip": [
            {"field": field, "type": "quantitative", "title": title} for field, title in titles
        ],
    }


def layer(
    rows: Sequence[dict[str, Any]], mark: dict[str, Any], encoding: dict[str, Any]
) -> dict[str, Any]:
    """A Vega-Lite layer of rows."""
    return {"data": {"values": list(rows)}, "mark": mark, "encoding": encoding}
