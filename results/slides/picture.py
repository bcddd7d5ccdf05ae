"""The charts of a deck as pictures, for decks that cannot hold charts of their own: the same
figures, colours and ends of axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import singledispatch
from typing import Any, Final

import altair as alt
import vl_convert as vlc

from weighbridge.results.charts.chart_theme import Look, config, font_folder
from weighbridge.results.slides.slide import Axis, BarChart, LineChart, ScatterChart, Series

WIDTH: Final = 1040
HEIGHT: Final = 400
_SIDES: Final = {"above": (0, -20), "left": (-22, 0), "right": (22, 0), "below": (0, 20)}
_CROSS: Final = "M-.6,-.6L.6,.6M.6,-.6L-.6,.6"


def picture(chart: LineChart | ScatterChart | BarChart, look: Look) -> bytes:
    """The chart as a PNG file, twice as large as it is shown."""
    vlc.register_font_directory(font_folder())
    spec = (
        alt.layer(*_layers(chart, look))
        .properties(width=WIDTH, height=HEIGHT)
        .to_dict(validate=False)
    )
    large = {"labelFontSize": 19, "titleFontSize": 19}
    dressed = config(look)
    legend = {"labelFontSize": 21, "orient": "top", "labelLimit": 420}
    dressed |= {"axis": {**dressed["axis"], **large}, "legend": {**dressed["legend"], **legend}}
    return bytes(vlc.vegalite_to_png({**spec, "config": dressed}, scale=2))


@singledispatch
def _layers(chart: Any, look: Look) -> list[alt.Chart]:  # noqa: ARG001 - what each kind takes
    raise TypeError(f"{type(chart).__name__} is no chart")


@_layers.register
def _lines(chart: LineChart, look: Look) -> list[alt.Chart]:  # noqa: ARG001 - colours are those of the series
    axis = alt.Axis(labelAngle=0, grid=False)
    x = alt.X(
        "category:N",
        sort=list(chart.categories),
        scale=alt.Scale(domain=list(chart.categories)),
        title=chart.across,
        axis=axis,
    )
    data = [{**one, "category": chart.categories[int(one["x"])]} for one in _spots(chart.series)]
    return _drawn(data, chart.series, x, _scaled("y", chart.up))


@_layers.register
def _scatter(chart: ScatterChart, look: Look) -> list[alt.Chart]:  # noqa: ARG001 - as above
    data = list(_spots(chart.series))
    x, y = _scaled("x", chart.across), _scaled("y", chart.up)
    base = alt.Chart(alt.InlineData(values=data))
    colour = _colours(chart.series)
    sideways = (
        base.mark_rule(strokeWidth=2)
        .encode(x=x, x2="x_high:Q", y=y, color=colour)
        .transform_filter("datum.x_low !== null")
    )
    sideways = sideways.transform_calculate(x="datum.x_low")
    labels = [
        base.mark_text(dx=dx, dy=dy, fontSize=17, fontWeight=600)
        .encode(x=x, y=y, color=colour, text="label:N")
        .transform_filter(f"datum.side === '{side}'")
        for side, (dx, dy) in _SIDES.items()
    ]
    return [sideways, *_drawn(data, chart.series, x, y), *labels]


@_layers.register
def _bars(chart: BarChart, look: Look) -> list[alt.Chart]:
    named = [{**bar.model_dump(), "name": f"{bar.name}: {bar.label}"} for bar in chart.bars]
    base = alt.Chart(alt.InlineData(values=named))
    order = [bar["name"] for bar in named]
    y = alt.Y(
        "name:N", sort=order, title=None, axis=alt.Axis(labelLimit=520, domain=False, ticks=False)
    )
    bars = base.mark_bar().encode(
        x=_scaled("value", chart.across, alt.X), y=y, color=alt.Color("colour:N", scale=None)
    )
    whiskers = base.mark_rule(strokeWidth=2, color=look.ink).encode(
        x=_scaled("low", chart.across, alt.X), x2="high:Q", y=y
    )
    return [bars, whiskers.transform_filter("datum.low !== null")]


def _spots(series: Sequence[Series]) -> Iterator[dict[str, Any]]:
    for number, one in enumerate(series):
        name = next(other.name for other in series if other.colour == one.colour)
        for place, spot in enumerate(one.spots):
            yield {
                **spot.model_dump(),
                "name": name,
                "part": number,
                "place": place,
                "joined": one.joined,
            }


def _drawn(
    data: list[dict[str, Any]], series: Sequence[Series], x: alt.X, y: alt.Y
) -> list[alt.Chart]:
    """Whiskers, lines, marks and crosses of series."""
    base = alt.Chart(alt.InlineData(values=data))
    colour = _colours(series)
    shapes = {one.name: one.shape for one in series if one.joined}
    shape = alt.Shape(
        "name:N", scale=alt.Scale(domain=list(shapes), range=list(shapes.values())), title=None
    )
    whiskers = base.mark_rule(strokeWidth=2).encode(x=x, y=y, y2="high:Q", color=colour)
    lines = base.mark_line(strokeWidth=4).encode(
        x=x, y=y, color=colour, detail="part:N", order="place:Q"
    )
    marks = base.mark_point(size=150, filled=True, opacity=1).encode(
        x=x, y=y, color=colour, shape=shape
    )
    crosses = base.mark_point(
        size=300, shape=_CROSS, filled=False, strokeWidth=3, opacity=1
    ).encode(x=x, y=y, color=colour)
    return [
        whiskers.transform_filter("datum.low !== null").transform_calculate(y="datum.low"),
        lines.transform_filter("datum.joined"),
        marks.transform_filter("datum.joined"),
        crosses.transform_filter("!datum.joined"),
    ]


def _colours(series: Sequence[Series]) -> alt.Color:
    """Each layout in its colour, named above the chart."""
    names: dict[str, str] = {}
    for one in series:
        names.setdefault(one.colour, one.name)
    return alt.Color(
        "name:N", scale=alt.Scale(domain=list(names.values()), range=list(names)), title=None
    )


def _scaled(field: str, axis: Axis, way: Any = None) -> Any:
    scale = alt.Scale(
        type="log" if axis.logarithmic else "linear", domain=[axis.low, axis.high], nice=False
    )
    ticks = (
        alt.Axis(format=",.6~g", tickCount=6)
        if axis.step is None
        else alt.Axis(format=",.6~g", values=_ticks(axis, axis.step))
    )
    return (way or (alt.Y if field == "y" else alt.X))(
        f"{field}:Q", scale=scale, title=axis.title, axis=ticks
    )


def _ticks(axis: Axis, step: float) -> list[float]:
    return [axis.low + number * step for number in range(round((axis.high - axis.low) / step) + 1)]
