"""The Vega-Lite layers of a panel: marks, places for their texts, axes, and names beside lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from weighbridge.results.charts.axes import (
    axis_encoding,
    encodings,
    group_names,
    heat_encoding,
    layer,
)
from weighbridge.results.charts.chart_theme import (
    FAINT,
    LINES,
    POINTS,
    RULES,
    Look,
    ink_on,
    mark_colour,
    neutral,
    styles,
)
from weighbridge.results.charts.panels import Figure, Mark, Panel, Spot, Trace
from weighbridge.results.charts.placing import LabelSpot, beside, spread
from weighbridge.results.charts.text_places import NOTE_PX, level_place, number, taken

NAME_PX: Final = 15
LEADER_PX: Final = 26
"""From the right edge of a panel to the names."""
TICKS_PX: Final = 24.0
"""Height of the numbers below a panel."""
_OPEN: Final = ("hollow", "small hollow")
_OUTLINED: Final = ("outline", "cross")


def by_row(field: str) -> dict[str, Any]:
    """An encoding of colour where each row has its own."""
    return {"field": field, "type": "nominal", "scale": None}


def _rounded(value: Any) -> Any:
    """A figure rounded to the five digits that a picture can show."""
    return float(f"{value:.5g}") if isinstance(value, float) else value


class PanelLayers:
    """One panel in one look."""

    def __init__(self, figure: Figure, panel: Panel, look: Look) -> None:
        self.panel, self.look = panel, look
        self.styles = {style.layout: style for style in styles(figure.layouts, look)}

    def drawn(self) -> dict[str, Any]:
        """Its layers; where names are in groups, with a second axis for the groups."""
        if not self.panel.y.groups:
            return {"layer": self._layers()}
        return {
            "layer": [{"layer": self._layers()}, group_names(self.panel, self.look)],
            "resolve": {"scale": {"y": "independent"}},
        }

    def _layers(self) -> list[dict[str, Any]]:
        drawn = [
            layer for mark in self.panel.marks for layer in self._mark(mark) if _has_rows(layer)
        ]
        drawn += self._labels() if self.panel.labels else []
        if self.panel.aside:
            row = {"text": self.panel.aside}
            form = {"type": "text", "align": "right", "baseline": "bottom", "dx": 70}
            form |= {"fontSize": NOTE_PX, "color": self.look.muted}
            at = {"x": {"value": "width"}, "y": {"value": -7}, "text": {"field": "text"}}
            drawn.append(layer([row], form, at))
        if not any("field" in layer["encoding"].get("x", {}) for layer in drawn):
            # Axes are drawn by layers: without one that has an x there would be none.
            drawn.append(layer([], {"type": "point"}, encodings(self.panel, "xy")))
        return drawn

    def _mark(self, mark: Mark) -> list[dict[str, Any]]:
        kind = mark.kind
        if kind in LINES or kind == "band":
            return [self._traces(mark)]
        if kind in POINTS:
            return [self._points(mark)]
        if kind == "whisker":
            # An edge in the background's colour makes a whisker visible on any bar.
            wide, thin = (
                {"strokeWidth": width, "color": ink}
                for width, ink in ((5, self.look.background), (2, self.look.ink))
            )
            return [self._rule(mark, wide), self._rule(mark, thin)]
        if kind == "ceiling":
            return [self._rule(mark, RULES[kind]), *self._ceiling_words(mark)]
        if kind == "level":
            return [self._rule(mark, RULES[kind]), self._level_words(mark)]
        if kind in RULES:
            return [self._rule(mark, RULES[kind])]
        if kind in ("bar", "hollow bin"):
            return [self._bars(mark)]
        if kind in ("cell", "frame", "shade"):
            return self._cells(mark)
        if kind == "beside":
            return [self._beside(mark)]
        return [self._texts(mark)]

    # ---- marks

    def _traces(self, mark: Mark) -> dict[str, Any]:
        rows = [
            {
                "n": number,
                "l": one.layout,
                "c": self._colour(one),
                "x": [_rounded(value) for value in one.x],
                "y": [_rounded(value) for value in one.y],
                **({"y2": [_rounded(value) for value in one.y2]} if one.y2 else {}),
            }
            for number, one in enumerate(mark.traces)
        ]
        encoding = {
            **encodings(self.panel, "xy"),
            "color": by_row("c"),
            "detail": {"field": "n", "type": "ordinal"},
        }
        if mark.kind == "band":
            # Where many bands overlap, each is paler so that their lines can be seen.
            opacity = 0.18 if len({trace.layout for trace in mark.traces}) <= 3 else 0.1
            drawn: dict[str, Any] = {"type": "area", "opacity": opacity, "line": False}
            encoding["y2"] = {"field": "y2"}
        else:
            # Points are joined in the order given, wherever they lie.
            drawn = {"type": "line", "order": None, **LINES[mark.kind]}
            drawn |= {"interpolate": "step-after"} if mark.stepped else {}
            drawn |= {"opacity": FAINT[self.look.name]} if mark.kind == "faint line" else {}
        fields = ["x", "y", *(["y2"] if mark.kind == "band" else [])]
        return {**layer(rows, drawn, encoding), "transform": [{"flatten": fields}]}

    def _points(self, mark: Mark) -> dict[str, Any]:
        rows = self._rows(mark.spots)
        drawn: dict[str, Any] = {
            "type": "point",
            "filled": True,
            "opacity": 1,
            "clip": False,
            **POINTS[mark.kind],
        }
        encoding = encodings(self.panel, "xy")
        paint = "color"
        if mark.kind in _OPEN:
            drawn["fill"], paint = self.look.background, "stroke"
        elif mark.kind in _OUTLINED:
            drawn["filled"] = False
        encoding[paint] = by_row("c")
        if "shape" not in drawn:
            for row, spot in zip(rows, mark.spots, strict=True):
                row["s"] = (
                    self.styles[spot.layout].shape if spot.layout in self.styles else "circle"
                )
            encoding["shape"] = by_row("s")
        return layer(rows, drawn, _tipped(encoding, mark))

    def _rule(self, mark: Mark, form: Mapping[str, Any]) -> dict[str, Any]:
        encoding = self._spanned(mark)
        if mark.kind == "tick":  # as high as its row of names
            form = {"type": "tick", "thickness": 2, "bandSize": 20}
            return layer(self._rows(mark.spots), form, {**encoding, "color": by_row("c")})
        if "color" not in form:
            encoding["color"] = by_row("c")
        return layer(self._rows(mark.spots), {"type": "rule", **form}, _tipped(encoding, mark))

    def _bars(self, mark: Mark) -> dict[str, Any]:
        encoding = {**self._spanned(mark), "color": by_row("c")}
        if mark.kind == "hollow bin":
            form: dict[str, Any] = {"size": 8, "filled": False, "strokeWidth": 2, "opacity": 0.9}
        else:
            form = {"height": {"band": 0.62}, "cornerRadiusEnd": 3}
            encoding["x2"] = {"datum": 0}
        return layer(self._rows(mark.spots), {"type": "bar", **form}, _tipped(encoding, mark))

    def _cells(self, mark: Mark) -> list[dict[str, Any]]:
        heat, rows, encoding = self.panel.heat, self._rows(mark.spots), self._spanned(mark)
        if mark.kind == "shade":
            return [layer(rows, {"type": "rect", "color": self.look.bad, "opacity": 0.3}, encoding)]
        if mark.kind == "frame":
            dashed = {"stroke": self.look.axis, "strokeWidth": 1.2, "strokeDash": [4, 4]}
            form = {"type": "rect", "filled": False, **dashed, "cornerRadius": 4}
            text = {"type": "text", "fontSize": 17, "color": self.look.muted}
            words = {**encodings(self.panel, "xy"), "text": {"field": "text"}}
            return [layer(rows, form, _tipped(encoding, mark)), layer(rows, text, words)]
        if heat is not None:
            encoding |= heat_encoding(self.panel, heat, self.look)
            form = {"type": "rect", "strokeWidth": 0, "aria": False}
            return [layer([{**row, "c": None} for row in rows], form, encoding)]
        strong, plain = [], []
        for row, spot in zip(rows, mark.spots, strict=True):
            if isinstance(spot.tone, float):
                row["i"] = ink_on(row["c"])
                strong.append(row)
            else:
                row["c"], row["i"] = neutral(self.look), self.look.muted
                plain.append(row)
        form = {"type": "rect", "cornerRadius": 4}
        words = {**encodings(self.panel, "xy"), "text": {"field": "text"}, "color": by_row("i")}
        text = {"type": "text", "fontSize": mark.size or 17}
        return [
            layer(rows, form, {**_tipped(encoding, mark), "color": by_row("c")}),
            layer(strong, {**text, "fontWeight": 700}, words),
            layer(plain, {**text, "fontWeight": 400}, words),
        ]

    def _texts(self, mark: Mark) -> dict[str, Any]:
        weight = 600 if mark.kind == "strong text" else 400
        form = {
            "type": "text",
            "align": mark.align,
            "baseline": "middle",
            "dx": mark.dx,
            "clip": False,
            "fontSize": mark.size or 14,
            "fontWeight": weight,
        }
        encoding = {
            **encodings(self.panel, "y" if mark.at != "x" else "xy"),
            "text": {"field": "text"},
            "color": by_row("c"),
        }
        if mark.at != "x":
            encoding["x"] = {"value": 0 if mark.at == "left" else "width"}
        return layer(self._rows([one for one in mark.spots if one.text]), form, encoding)

    # ---- placed texts

    def _beside(self, mark: Mark) -> dict[str, Any]:
        """Small texts beside points, where there is room."""
        points = [(*self.panel.px(number(one.x), number(one.y)), one.text) for one in mark.spots]
        width = float(self.panel.width)
        ticks = LabelSpot(x=width / 2, y=-TICKS_PX / 2, width=width, height=TICKS_PX)
        places = beside(points, [*taken(self.panel, words=True), ticks], NOTE_PX, 12)
        spots = [
            one.model_copy(update=dict(zip("xy", self.panel.values(place.x, place.y), strict=True)))
            for one, place in zip(mark.spots, places, strict=True)
            if place is not None
        ]
        return self._texts(mark.model_copy(update={"spots": tuple(spots), "size": NOTE_PX}))

    def _level_words(self, mark: Mark) -> dict[str, Any]:
        spots = []
        for one in mark.spots:
            place = level_place(self.panel, one)
            x, y = self.panel.values(place.x, place.y)
            spots.append(one.model_copy(update={"x": x, "y": y}))
        return self._texts(Mark(kind="strong text", spots=tuple(spots), size=NOTE_PX))

    def _ceiling_words(self, mark: Mark) -> list[dict[str, Any]]:
        """The names of ceilings, on their lines, moved apart where lines are close."""
        gap = (NOTE_PX + 3) / self.panel.height
        places = spread([self.panel.y.share(number(one.y)) + gap / 2 for one in mark.spots], gap)
        moved = [
            one.model_copy(update={"y": self.panel.y.value(place)})
            for one, place in zip(mark.spots, places, strict=True)
        ]
        column: dict[str, Any] = {"at": "left", "align": "left", "dx": 4, "size": NOTE_PX}
        words = self._texts(mark.model_copy(update={"spots": tuple(moved), **column}))
        # An edge in the background's colour keeps a label readable where it lies on a line.
        edge = {"stroke": self.look.background, "strokeWidth": 4}
        return [{**words, "mark": {**words["mark"], **edge}}, words]

    def _labels(self) -> list[dict[str, Any]]:
        """Names at the right, linked to what they name, moved where two would overlap."""
        panel, labels = self.panel, self.panel.labels
        noted = any(label.note for label in labels)
        row = (NAME_PX + 5 + (NOTE_PX + 4) * noted) / panel.height
        spots = spread([panel.y.share(label.y) for label in labels], row)
        # Names that lie outside the panel are moved back into it where they fit.
        low, high = min(spots), max(spots)
        shift = max(0.0, row / 3 - low) - max(0.0, high - 1) if high - low < 1 else 0.0
        names, leaders, notes = [], [], []
        lift = (NOTE_PX + 2) / 2 if noted else 0
        for label, spot in zip(labels, spots, strict=True):
            to = panel.y.value(spot + shift)
            names.append(Spot(y=to, layout=label.layout, text=label.text or label.layout))
            if label.note:
                notes.append(Spot(y=to, layout=label.layout, tone="muted", text=label.note))
            if label.x is not None:
                leaders.append(
                    Spot(x=label.x, x2=panel.x.high, y=label.y, y2=to, layout=label.layout)
                )
        column: dict[str, Any] = {"at": "right", "align": "left", "dx": LEADER_PX}
        drawn = [
            self._rule(
                Mark(kind="interval", spots=tuple(leaders)),
                {"strokeWidth": 1.2, "opacity": 0.5, "clip": False, "x2Offset": LEADER_PX - 6},
            ),
            _shifted(
                self._texts(Mark(kind="strong text", spots=tuple(names), size=NAME_PX, **column)),
                -lift,
            ),
            _shifted(
                self._texts(Mark(kind="text", spots=tuple(notes), size=NOTE_PX, **column)), lift + 2
            ),
        ]
        return [layer for layer in drawn if _has_rows(layer)]

    # ---- rows and encodings

    def _rows(self, spots: Sequence[Spot]) -> list[dict[str, Any]]:
        return [
            {
                **{
                    name: _rounded(value)
                    for name in ("x", "y", "x2", "y2", "value")
                    if (value := getattr(one, name)) is not None
                },
                **{name: value for name in ("text", "tip") if (value := getattr(one, name))},
                **({"l": one.layout} if one.layout else {}),
                **(
                    {}
                    if self.panel.heat is not None and one.value is not None
                    else {"c": self._colour(one)}
                ),
            }
            for one in spots
        ]

    def _colour(self, spot: Spot | Trace) -> str:
        return mark_colour(spot.layout, spot.tone, self.styles, self.look)

    def _spanned(self, mark: Mark) -> dict[str, Any]:
        """Both places and both ends, from side to side where no place is given."""
        spot = mark.spots[0] if mark.spots else Spot(x=0.0, y=0.0)
        found: dict[str, Any] = {}
        for way, size in (("x", "width"), ("y", "height")):
            if getattr(spot, way) is not None:
                found[way] = axis_encoding(self.panel, way)
                found |= (
                    {f"{way}2": {"field": f"{way}2"}}
                    if any(getattr(one, f"{way}2") is not None for one in mark.spots)
                    else {}
                )
            elif way == "x" or mark.kind in ("rule", "zero", "shade"):
                found |= {way: {"value": 0}, f"{way}2": {"value": size}}
        return found


def _has_rows(layer: dict[str, Any]) -> bool:
    return bool(layer["data"]["values"])


def _shifted(layer: dict[str, Any], dy: float) -> dict[str, Any]:
    return {**layer, "mark": {**layer["mark"], "dy": dy}}


def _tipped(encoding: dict[str, Any], mark: Mark) -> dict[str, Any]:
    tipped = any(spot.tip for spot in mark.spots)
    return {**encoding, "tooltip": {"field": "tip", "type": "nominal"}} if tipped else encoding
