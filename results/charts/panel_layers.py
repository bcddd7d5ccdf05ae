"""The layers of one panel in one look: how each kind of mark is drawn, where its texts go, axes,
and names beside lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from weighbridge.results.charts.chart_theme import (
    FAINT,
    LINES,
    POINTS,
    RULES,
    TIER_COLOURS,
    Look,
    colour_at,
    diverging,
    heat_colours,
    ink_on,
    neutral,
    styles,
)
from weighbridge.results.charts.panels import AxisScale, Figure, Mark, Panel, Spot
from weighbridge.results.charts.placing import LabelSpot, along, beside, pieces, spread

NUMBER: Final = ",.6~g"
NAME_PX: Final = 15
NOTE_PX: Final = 13
THREAD_PX: Final = 26
"""From the right edge of a panel to the names."""
GAP: Final = 0.06
"""Of a cell, between two."""
_OPEN: Final = ("hollow", "small hollow")
_OUTLINED: Final = ("outline", "cross")


def by_row(field: str) -> dict[str, Any]:
    """A colour as each row says it."""
    return {"field": field, "type": "nominal", "scale": None}


def _rounded(value: Any) -> Any:
    """A figure to the five digits that a picture can show."""
    return float(f"{value:.5g}") if isinstance(value, float) else value


class PanelLayers:
    """One panel in one look."""

    def __init__(self, figure: Figure, panel: Panel, look: Look) -> None:
        self.panel, self.look = panel, look
        self.styles = {style.layout: style for style in styles(figure.layouts, look)}

    def drawn(self) -> dict[str, Any]:
        """Its layers, and of names in groups a second axis beside theirs."""
        if not self.panel.y.groups:
            return {"layer": self._layers()}
        return {
            "layer": [{"layer": self._layers()}, self._groups()],
            "resolve": {"scale": {"y": "independent"}},
        }

    def _layers(self) -> list[dict[str, Any]]:
        """All that is drawn, the lowest first."""
        drawn = [
            layer for mark in self.panel.marks for layer in self._mark(mark) if _has_rows(layer)
        ]
        drawn += self._labels() if self.panel.labels else []
        if self.panel.aside:
            row = {"text": self.panel.aside}
            mark = {
                "type": "text",
                "align": "right",
                "baseline": "bottom",
                "dx": 70,
                "fontSize": NOTE_PX,
            }
            encoding = {"x": {"value": "width"}, "y": {"value": -7}, "text": {"field": "text"}}
            drawn.append(_layer([row], {**mark, "color": self.look.muted}, encoding))
        if not any("field" in layer["encoding"].get("x", {}) for layer in drawn):
            drawn.append(
                _layer([], {"type": "point"}, self._places("xy"))
            )  # axes are those of layers
        return drawn

    def _mark(self, mark: Mark) -> list[dict[str, Any]]:
        kind = mark.kind
        if kind in LINES or kind == "band":
            return [self._traces(mark)]
        if kind in POINTS:
            return [self._points(mark)]
        if kind == "whisker":
            # An edge in the colour of the background: it has to be seen on a bar of any colour.
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
                "c": self._colour(Spot(layout=one.layout, tone=one.tone)),
                "x": [_rounded(value) for value in one.x],
                "y": [_rounded(value) for value in one.y],
                **({"y2": [_rounded(value) for value in one.y2]} if one.y2 else {}),
            }
            for number, one in enumerate(mark.traces)
        ]
        encoding = {
            **self._places("xy"),
            "color": by_row("c"),
            "detail": {"field": "n", "type": "ordinal"},
        }
        if mark.kind == "band":
            # Where many bands lie on one another each must be paler for their lines to be seen.
            opacity = 0.18 if len({trace.layout for trace in mark.traces}) <= 3 else 0.1
            drawn: dict[str, Any] = {"type": "area", "opacity": opacity, "line": False}
            encoding["y2"] = {"field": "y2"}
        else:
            # Points are joined in the order in which they were given, wherever they lie.
            drawn = {"type": "line", "order": None, **LINES[mark.kind]}
            drawn |= {"interpolate": "step-after"} if mark.stepped else {}
            drawn |= {"opacity": FAINT[self.look.name]} if mark.kind == "faint line" else {}
        fields = ["x", "y", *(["y2"] if mark.kind == "band" else [])]
        return {**_layer(rows, drawn, encoding), "transform": [{"flatten": fields}]}

    def _points(self, mark: Mark) -> dict[str, Any]:
        rows = self._rows(mark.spots)
        drawn: dict[str, Any] = {
            "type": "point",
            "filled": True,
            "opacity": 1,
            "clip": False,
            **POINTS[mark.kind],
        }
        encoding = self._places("xy")
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
        return _layer(rows, drawn, _tipped(encoding, mark))

    def _rule(self, mark: Mark, form: Mapping[str, Any]) -> dict[str, Any]:
        encoding = self._spanned(mark)
        if mark.kind == "tick":  # as high as its row of names
            return _layer(
                self._rows(mark.spots),
                {"type": "tick", "thickness": 2, "bandSize": 20},
                {**encoding, "color": by_row("c")},
            )
        if "color" not in form:
            encoding["color"] = by_row("c")
        return _layer(self._rows(mark.spots), {"type": "rule", **form}, _tipped(encoding, mark))

    def _bars(self, mark: Mark) -> dict[str, Any]:
        encoding = {**self._spanned(mark), "color": by_row("c")}
        if mark.kind == "hollow bin":
            form: dict[str, Any] = {"size": 8, "filled": False, "strokeWidth": 2, "opacity": 0.9}
        else:
            form = {"height": {"band": 0.62}, "cornerRadiusEnd": 3}
            encoding["x2"] = {"datum": 0}
        return _layer(self._rows(mark.spots), {"type": "bar", **form}, _tipped(encoding, mark))

    def _cells(self, mark: Mark) -> list[dict[str, Any]]:
        heat, rows, encoding = self.panel.heat, self._rows(mark.spots), self._spanned(mark)
        if mark.kind == "shade":
            return [
                _layer(rows, {"type": "rect", "color": self.look.bad, "opacity": 0.3}, encoding)
            ]
        if mark.kind == "frame":
            form = {
                "filled": False,
                "stroke": self.look.axis,
                "strokeWidth": 1.2,
                "strokeDash": [4, 4],
                "cornerRadius": 4,
            }
            text = {"type": "text", "fontSize": 17, "color": self.look.muted}
            words = {**self._places("xy"), "text": {"field": "text"}}
            return [
                _layer(rows, {"type": "rect", **form}, _tipped(encoding, mark)),
                _layer(rows, text, words),
            ]
        if heat is not None:
            scale = {
                "type": "log",
                "domain": [heat.low, heat.high],
                "range": list(heat_colours(self.look)),
                "interpolate": "rgb",
            }
            legend = {
                "title": heat.title,
                "orient": "right",
                "gradientLength": self.panel.height - 60,
                "gradientThickness": 12,
            }
            legend |= {
                "format": NUMBER,
                "tickCount": 4,
                "labelFontSize": NOTE_PX,
                "titleFontSize": NOTE_PX,
            }
            encoding["color"] = {
                "field": "value",
                "type": "quantitative",
                "scale": scale,
                "legend": legend,
            }
            names = (("x", self.panel.x.title), ("y", self.panel.y.title), ("value", heat.title))
            encoding["tooltip"] = [
                {"field": field, "type": "quantitative", "title": title} for field, title in names
            ]
            return [
                _layer(
                    [{**row, "c": None} for row in rows],
                    {"type": "rect", "strokeWidth": 0, "aria": False},
                    encoding,
                )
            ]
        for row, spot in zip(rows, mark.spots, strict=True):
            row["c"] = (
                colour_at(float(spot.tone), diverging(self.look))
                if isinstance(spot.tone, float)
                else neutral(self.look)
            )
            row["i"] = ink_on(row["c"]) if isinstance(spot.tone, float) else self.look.muted
        strong = [
            row for row, spot in zip(rows, mark.spots, strict=True) if isinstance(spot.tone, float)
        ]
        words = {**self._places("xy"), "text": {"field": "text"}, "color": by_row("i")}
        return [
            _layer(
                rows,
                {"type": "rect", "cornerRadius": 4},
                {**_tipped(encoding, mark), "color": by_row("c")},
            ),
            *(
                _layer(
                    mine, {"type": "text", "fontSize": mark.size or 17, "fontWeight": weight}, words
                )
                for mine, weight in (
                    (strong, 700),
                    ([row for row in rows if row not in strong], 400),
                )
                if mine
            ),
        ]

    def _texts(self, mark: Mark) -> dict[str, Any]:
        form: dict[str, Any] = {
            "type": "text",
            "align": mark.align,
            "baseline": "middle",
            "dx": mark.dx,
            "clip": False,
        }
        form |= {
            "fontSize": mark.size or 14,
            "fontWeight": 600 if mark.kind == "strong text" else 400,
        }
        encoding = {
            **self._places("y" if mark.at != "x" else "xy"),
            "text": {"field": "text"},
            "color": by_row("c"),
        }
        if mark.at != "x":
            encoding["x"] = {"value": 0 if mark.at == "left" else "width"}
        return _layer(self._rows([one for one in mark.spots if one.text]), form, encoding)

    # ---- texts that are given a place

    def _beside(self, mark: Mark) -> dict[str, Any]:
        """Small texts beside points, where there is room."""
        points = [(*self.panel.px(_number(one.x), _number(one.y)), one.text) for one in mark.spots]
        places = beside(points, self._taken(words=True), NOTE_PX, 12)
        spots = [
            one.model_copy(update=dict(zip("xy", self.panel.values(place.x, place.y), strict=True)))
            for one, place in zip(mark.spots, places, strict=True)
            if place is not None
        ]
        return self._texts(mark.model_copy(update={"spots": tuple(spots), "size": NOTE_PX}))

    def _level_words(self, mark: Mark) -> dict[str, Any]:
        spots = []
        for one in mark.spots:
            place = self._level_place(one)
            x, y = self.panel.values(place.x, place.y)
            spots.append(one.model_copy(update={"x": x, "y": y}))
        return self._texts(Mark(kind="strong text", spots=tuple(spots), size=NOTE_PX))

    def _level_place(self, spot: Spot) -> LabelSpot:
        level = self.panel.y.share(_number(spot.y)) * self.panel.height
        return along(level, self.panel.width, spot.text, self._taken(words=False), NOTE_PX)

    def _taken(self, *, words: bool) -> list[LabelSpot]:
        """What is drawn, in small pieces that no text should lie on; with `words`, levels with
        theirs, too.
        """
        spots: list[LabelSpot] = []
        floor = self.panel.y.low
        for mark in self.panel.marks:
            for trace in mark.traces:
                spots += pieces(
                    [self.panel.px(x, y) for x, y in zip(trace.x, trace.y, strict=True)]
                )
            for one in (
                mark.spots
                if mark.kind in ("interval", "pale bin", *(("drop",) if words else ()))
                else ()
            ):
                x, y = self.panel.px(_number(one.x), _number(one.y))
                to_x, to_y = self.panel.px(
                    _number(one.x if one.x2 is None else one.x2),
                    _number(one.y2, _number(one.y, floor)),
                )
                width = (
                    10.0
                    if mark.kind == "pale bin"
                    else 4.0
                    if one.x2 is None
                    else max(12.0, abs(to_x - x))
                )
                height = (
                    12.0
                    if one.x2 is not None
                    else max(abs(to_y - y), 8.0 if mark.kind == "pale bin" else 0.0)
                )
                spots.append(
                    LabelSpot(x=(x + to_x) / 2, y=(y + to_y) / 2, width=width, height=height)
                )
            for one in mark.spots if mark.kind == "level" and words else ():
                level = self.panel.y.share(_number(one.y)) * self.panel.height
                spots.append(self._level_place(one))
                spots.append(
                    LabelSpot(
                        x=self.panel.width / 2, y=level, width=float(self.panel.width), height=3
                    )
                )
        return spots

    def _ceiling_words(self, mark: Mark) -> list[dict[str, Any]]:
        """Words on the lines that they name, apart where lines are near one another."""
        gap = (NOTE_PX + 3) / self.panel.height
        places = spread([self.panel.y.share(_number(one.y)) + gap / 2 for one in mark.spots], gap)
        moved = [
            one.model_copy(update={"y": self.panel.y.value(place)})
            for one, place in zip(mark.spots, places, strict=True)
        ]
        words = self._texts(
            mark.model_copy(
                update={
                    "spots": tuple(moved),
                    "at": "left",
                    "align": "left",
                    "dx": 4,
                    "size": NOTE_PX,
                }
            )
        )
        # An edge in the colour of the background keeps a label readable where it lies on a line.
        edge = {
            **words,
            "mark": {**words["mark"], "stroke": self.look.background, "strokeWidth": 4},
        }
        return [edge, words]

    def _labels(self) -> list[dict[str, Any]]:
        """Names at the right with threads to what they name, moved up or down where two would
        overlap.
        """
        panel, labels = self.panel, self.panel.labels
        noted = any(label.note for label in labels)
        row = (NAME_PX + 5 + (NOTE_PX + 4) * noted) / panel.height
        spots = spread([panel.y.share(label.y) for label in labels], row)
        # Names that stand apart are moved back into the panel where they fit into it.
        low, high = min(spots), max(spots)
        shift = max(0.0, row / 3 - low) - max(0.0, high - 1) if high - low < 1 else 0.0
        names, threads, notes = [], [], []
        lift = (NOTE_PX + 2) / 2 if noted else 0
        for label, spot in zip(labels, spots, strict=True):
            to = panel.y.value(spot + shift)
            names.append(Spot(y=to, layout=label.layout, text=label.text or label.layout))
            if label.note:
                notes.append(Spot(y=to, tone="muted", text=label.note))
            if label.x is not None:
                threads.append(
                    Spot(x=label.x, x2=panel.x.high, y=label.y, y2=to, layout=label.layout)
                )
        column: dict[str, Any] = {"at": "right", "align": "left", "dx": THREAD_PX}
        drawn = [
            self._rule(
                Mark(kind="interval", spots=tuple(threads)),
                {"strokeWidth": 1.2, "opacity": 0.5, "clip": False, "x2Offset": THREAD_PX - 6},
            ),
            _lifted(
                self._texts(Mark(kind="strong text", spots=tuple(names), size=NAME_PX, **column)),
                -lift,
            ),
            _lifted(
                self._texts(Mark(kind="text", spots=tuple(notes), size=NOTE_PX, **column)), lift + 2
            ),
        ]
        return [layer for layer in drawn if _has_rows(layer)]

    def _groups(self) -> dict[str, Any]:
        """What rows belong to, left of their names at the first of each, and a line between two."""
        scale = self.panel.y
        first = [
            number
            for number, about in enumerate(scale.groups)
            if not number or scale.groups[number - 1] != about
        ]
        longest = max(len(_last(name)) for name in scale.names)
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
        encoding = {"y": {**_named("y", scale), "axis": axis}}
        rows = [{"y": scale.names[number]} for number in first if number]
        step = self.panel.height / len(scale.names)
        return _layer(
            rows,
            {"type": "rule", "yOffset": -step / 2, "strokeWidth": 1, "color": self.look.axis},
            encoding,
        )

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
                **(
                    {}
                    if self.panel.heat is not None and one.value is not None
                    else {"c": self._colour(one)}
                ),
            }
            for one in spots
        ]

    def _colour(self, spot: Spot) -> str:
        if isinstance(spot.tone, float):
            return colour_at(spot.tone, diverging(self.look))
        if spot.tone is not None:
            plain = {name: getattr(self.look, name) for name in ("ink", "muted", "axis", "bad")}
            return str({**plain, **TIER_COLOURS[self.look.name]}[spot.tone])
        return self.styles[spot.layout].colour if spot.layout in self.styles else self.look.ink

    def _places(self, ways: str) -> dict[str, Any]:
        return {way: self._place(way) for way in ways}

    def _spanned(self, mark: Mark) -> dict[str, Any]:
        """Both places and both ends, from side to side where no place is given."""
        spot = mark.spots[0] if mark.spots else Spot(x=0.0, y=0.0)
        found: dict[str, Any] = {}
        for way, size in (("x", "width"), ("y", "height")):
            if getattr(spot, way) is not None:
                found[way] = self._place(way)
                found |= (
                    {f"{way}2": {"field": f"{way}2"}}
                    if any(getattr(one, f"{way}2") is not None for one in mark.spots)
                    else {}
                )
            elif way == "x" or mark.kind in ("rule", "zero", "shade"):
                found |= {way: {"value": 0}, f"{way}2": {"value": size}}
        return found

    def _place(self, way: str) -> dict[str, Any]:
        scale = self.panel.x if way == "x" else self.panel.y
        if scale.kind == "names":
            return _named(way, scale)
        drawn = {"type": scale.kind, "domain": [scale.low, scale.high], "nice": False}
        place = {"field": way, "type": "quantitative", "scale": drawn, "title": scale.title or None}
        if scale.hidden:
            return {**place, "axis": None}
        axis: dict[str, Any] = {"values": list(scale.ticks), "grid": scale.grid}
        axis |= {"labelExpr": scale.expression} if scale.expression else {"format": NUMBER}
        if way == "x":
            axis |= (
                {"tickSize": 5}
                if not scale.grid
                else {"ticks": False, "domain": False, "labelFlush": False}
            )
        else:
            words = {
                "titleAngle": 0,
                "titleAlign": "left",
                "titleAnchor": "end",
                "titleX": -4,
                "titleY": -12,
            }
            axis |= {"ticks": False, "domain": False, **words}
        return {**place, "axis": axis}


_BARE: Final = {"domain": False, "ticks": False, "grid": False, "labelOverlap": False}


def _named(way: str, scale: AxisScale) -> dict[str, Any]:
    """An encoding of names: above the panel, or left of it, of groups only the last part of
    each.
    """
    expression = scale.expression or ("split(datum.value, '\\n')[1]" if scale.groups else "")
    axis: dict[str, Any] = {
        **_BARE,
        "labelPadding": 9,
        "labelLimit": 560,
        **({"labelExpr": expression} if expression else {}),
    }
    if way == "x":
        axis |= {
            "orient": "top",
            "labelAngle": 0,
            "labelFontSize": 16,
            "labelFontWeight": 600,
            "titlePadding": 8,
        }
        axis |= {"labelPadding": 26} if expression else {}
    domain = {"domain": list(scale.names), "paddingInner": GAP, "paddingOuter": 0}
    place = {"field": way, "type": "nominal", "sort": list(scale.names), "scale": domain}
    return {**place, "title": scale.title or None, "axis": None if scale.hidden else axis}


def _last(name: str) -> str:
    return name.rpartition("\n")[2]


def _number(value: float | str | None, otherwise: float = 0.0) -> float:
    return value if isinstance(value, float) else otherwise


def _layer(
    rows: Sequence[dict[str, Any]], mark: dict[str, Any], encoding: dict[str, Any]
) -> dict[str, Any]:
    return {"data": {"values": list(rows)}, "mark": mark, "encoding": encoding}


def _has_rows(layer: dict[str, Any]) -> bool:
    return bool(layer["data"]["values"])


def _lifted(layer: dict[str, Any], dy: float) -> dict[str, Any]:
    return {**layer, "mark": {**layer["mark"], "dy": dy}}


def _tipped(encoding: dict[str, Any], mark: Mark) -> dict[str, Any]:
    told = any(spot.tip for spot in mark.spots)
    return {**encoding, "tooltip": {"field": "tip", "type": "nominal"}} if told else encoding
