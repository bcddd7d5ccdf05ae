"""Charts as PowerPoint has them: each with the workbook of its figures, so that they can be edited
where they are shown.

Whiskers, logarithmic scales and the place of the plot have no door in python-pptx and are XML of
their own. LibreOffice 7.4 draws custom whiskers upwards and not sideways, though it is told of both
in the same words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import singledispatch
from typing import Any, Final

from pptx.chart.data import CategoryChartData, XyChartData
from pptx.chart.datalabel import DataLabels
from pptx.enum.chart import (
    XL_CHART_TYPE,
    XL_LABEL_POSITION,
    XL_MARKER_STYLE,
    XL_TICK_LABEL_POSITION,
)
from pptx.oxml.ns import qn
from pptx.util import Pt

from weighbridge.results.charts.chart_theme import Look
from weighbridge.results.slides.fitting import width_pt
from weighbridge.results.slides.paint import bare, made, rgb
from weighbridge.results.slides.slide import Axis, BarChart, LineChart, ScatterChart, Series

_MARKERS: Final = {
    "circle": XL_MARKER_STYLE.CIRCLE,
    "square": XL_MARKER_STYLE.SQUARE,
    "triangle-up": XL_MARKER_STYLE.TRIANGLE,
    "diamond": XL_MARKER_STYLE.DIAMOND,
    "triangle-down": XL_MARKER_STYLE.STAR,
    "triangle-right": XL_MARKER_STYLE.PLUS,
    "cross": XL_MARKER_STYLE.X,
}
"""PowerPoint has no triangle that points down or right; crosses are for what is not ranked alone.
"""
GLYPHS: Final = {
    "circle": "●",
    "square": "■",
    "triangle-up": "▲",
    "diamond": "◆",
    "triangle-down": "✱",
    "triangle-right": "✚",
    "cross": "×",
}
"""The same marks in a line of text."""
_SIDES: Final = {
    "above": XL_LABEL_POSITION.ABOVE,
    "left": XL_LABEL_POSITION.LEFT,
    "right": XL_LABEL_POSITION.RIGHT,
    "below": XL_LABEL_POSITION.BELOW,
}
_WORDS_PT: Final = 16
_LABEL_PT: Final = 14
_LEFT_PT: Final = 84.0
_TOP_PT: Final = 10.0
_RIGHT_PT: Final = 24.0
_BOTTOM_PT: Final = 54.0
"""What labels and titles of axes take around a plot."""
Box = tuple[float, float, float, float]


def add_chart(
    slide: Any, chart: LineChart | ScatterChart | BarChart, look: Look, box: Box, *, told: str
) -> None:
    """Draw a chart into a box (left, top, width, height in pt).

    `told` is for those who cannot see it.
    """
    frame = _drawn(chart, slide, look, tuple(Pt(value) for value in box))
    frame._element.nvGraphicFramePr.cNvPr.set("descr", told)  # noqa: SLF001 - texts for those who cannot see have no door


@singledispatch
def _drawn(chart: Any, slide: Any, look: Look, box: Sequence[Any]) -> Any:  # noqa: ARG001 - what each kind takes
    raise TypeError(f"{type(chart).__name__} is no chart")


@_drawn.register
def _lines(chart: LineChart, slide: Any, look: Look, box: Sequence[Any]) -> Any:
    data = CategoryChartData(number_format="#,##0.##")
    data.categories = chart.categories
    for one in chart.series:
        values = {int(spot.x): spot.y for spot in one.spots}
        data.add_series(one.name, [values.get(place) for place in range(len(chart.categories))])
    frame = slide.shapes.add_chart(XL_CHART_TYPE.LINE_MARKERS, *box, data)
    drawn = _dressed(frame.chart, look)
    _placed(drawn, box, left_pt=_LEFT_PT)
    _measured(drawn.value_axis, chart.up, look)
    _counted(drawn.category_axis, chart.across, look)
    for series, one in zip(drawn.plots[0].series, chart.series, strict=True):
        _marked(series, one)
        _whiskers(
            series, [(int(spot.x), spot.y, spot.low, spot.high) for spot in one.spots], one.colour
        )
    return frame


@_drawn.register
def _scatter(chart: ScatterChart, slide: Any, look: Look, box: Sequence[Any]) -> Any:
    data = XyChartData(number_format="#,##0.###")
    for one in chart.series:
        points = data.add_series(one.name)
        for spot in one.spots:
            points.add_data_point(spot.x, spot.y)
    frame = slide.shapes.add_chart(XL_CHART_TYPE.XY_SCATTER_LINES, *box, data)
    drawn = _dressed(frame.chart, look)
    _placed(drawn, box, left_pt=_LEFT_PT)
    _measured(drawn.category_axis, chart.across, look)
    _measured(drawn.value_axis, chart.up, look)
    for series, one in zip(drawn.plots[0].series, chart.series, strict=True):
        _marked(series, one)
        _whiskers(
            series,
            [(number, spot.y, spot.low, spot.high) for number, spot in enumerate(one.spots)],
            one.colour,
            way="y",
        )
        _whiskers(
            series,
            [(number, spot.x, spot.x_low, spot.x_high) for number, spot in enumerate(one.spots)],
            one.colour,
            way="x",
        )
        _labelled(series, [(spot.label, _SIDES[spot.side]) for spot in one.spots], one.colour)
    return frame


@_drawn.register
def _bars(chart: BarChart, slide: Any, look: Look, box: Sequence[Any]) -> Any:
    bars = chart.bars[::-1]  # PowerPoint puts the first one lowest
    data = CategoryChartData(number_format="0.0")
    data.categories = [f"{bar.name}: {bar.label}" for bar in bars]
    data.add_series(chart.across.title, [bar.value for bar in bars])
    frame = slide.shapes.add_chart(XL_CHART_TYPE.BAR_CLUSTERED, *box, data)
    drawn = _dressed(frame.chart, look)
    names = max(width_pt(f"{bar.name}: {bar.label}", _WORDS_PT) for bar in bars)
    _placed(drawn, box, left_pt=min(names + 16, box[2].pt * 0.55))
    _measured(drawn.value_axis, chart.across, look)
    _counted(drawn.category_axis, "", look)
    drawn.category_axis.tick_label_position = XL_TICK_LABEL_POSITION.LOW
    drawn.plots[0].gap_width = 60
    (series,) = drawn.plots[0].series
    series.invert_if_negative = False
    for number, bar in enumerate(bars):
        fill = series.points[number].format.fill
        fill.solid()
        fill.fore_color.rgb = rgb(bar.colour)
    _whiskers(
        series,
        [(number, bar.value, bar.low, bar.high) for number, bar in enumerate(bars)],
        look.ink,
    )
    return frame


def _placed(chart: Any, box: Sequence[Any], *, left_pt: float) -> None:
    """Give the plot all of the box but what labels and titles of its axes take."""
    width, height = box[2].pt, box[3].pt
    shares = {"x": left_pt / width, "y": _TOP_PT / height}
    shares |= {"w": 1 - shares["x"] - _RIGHT_PT / width, "h": 1 - shares["y"] - _BOTTOM_PT / height}
    modes = "".join(f'<c:{way}Mode val="edge"/>' for way in ("x", "y"))
    places = "".join(f'<c:{way} val="{share:.4f}"/>' for way, share in shares.items())
    plot = chart._chartSpace.chart.plotArea  # noqa: SLF001 - no door
    for old in plot.findall(qn("c:layout")):
        plot.remove(old)
    plot.insert(
        0,
        made(
            "<c:layout><c:manualLayout><c:layoutTarget "
            f'val="inner"/>{modes}{places}</c:manualLayout></c:layout>'
        ),
    )


def _dressed(chart: Any, look: Look) -> Any:
    for name in ("c:axId", "c:crossAx"):
        for axis in chart._chartSpace.iter(qn(name)):  # noqa: SLF001 - no door
            axis.set("val", axis.get("val").lstrip("-"))  # the standard knows no names below 0
    chart.has_title = False
    chart.has_legend = (
        False  # the slide has one, whose place and size do not depend on the program that shows it
    )
    chart.font.size = Pt(_WORDS_PT)
    chart.font.color.rgb = rgb(look.ink)
    return chart


def _measured(axis: Any, told: Axis, look: Look) -> None:
    """An axis of figures: its ends, its ticks, a grid that stays behind."""
    axis.minimum_scale, axis.maximum_scale = told.low, told.high
    if told.step is not None:
        axis.major_unit = told.step
    if told.logarithmic:
        axis._element.find(qn("c:scaling")).insert(0, made('<c:logBase val="10"/>'))  # noqa: SLF001 - no door
    axis.has_major_gridlines = True
    axis.major_gridlines.format.line.color.rgb = rgb(look.grid)
    axis.major_gridlines.format.line.width = Pt(0.75)
    small = (told.step or told.low) < 1
    axis.tick_labels.number_format, axis.tick_labels.number_format_is_linked = (
        ("#,##0.###" if small else "#,##0"),
        False,
    )
    _worded(axis, told.title, look)
    axis.format.line.color.rgb = rgb(look.axis)


def _counted(axis: Any, title: str, look: Look) -> None:
    """An axis of categories."""
    axis.has_major_gridlines = False
    _worded(axis, title, look)
    axis.format.line.color.rgb = rgb(look.axis)


def _worded(axis: Any, title: str, look: Look) -> None:
    axis.tick_labels.font.size = Pt(_WORDS_PT)
    axis.tick_labels.font.color.rgb = rgb(look.ink)
    axis.has_title = bool(title)
    if title:
        frame = axis.axis_title.text_frame
        frame.text = title
        font = frame.paragraphs[0].runs[0].font
        font.size, font.bold = Pt(_WORDS_PT), False
        font.color.rgb = rgb(look.muted)


def _marked(series: Any, told: Series) -> None:
    series.smooth = False
    series.marker.style = _MARKERS[told.shape]
    series.marker.size = 11 if told.joined else 13
    line = series.marker.format.line
    line.color.rgb = rgb(told.colour)
    line.width = Pt(1 if told.joined else 2.5)
    series.marker.format.fill.solid()
    series.marker.format.fill.fore_color.rgb = rgb(told.colour)
    if told.joined:
        series.format.line.color.rgb = rgb(told.colour)
        series.format.line.width = Pt(3.5)
    else:
        series.marker.format.fill.background()
        series.format.line.fill.background()


def _labelled(series: Any, labels: Sequence[tuple[str, Any]], colour: str) -> None:
    """A text of its own at each point that has one, none at the others."""
    if not any(text for text, _ in labels):
        return
    DataLabels(series._element.get_or_add_dLbls()).show_value = False  # noqa: SLF001 - series of points have no door to it
    for number, (text, where) in enumerate(labels):
        if text:
            label = series.points[number].data_label
            label.text_frame.text = text
            font = label.text_frame.paragraphs[0].runs[0].font
            font.size, font.bold = Pt(_LABEL_PT), True
            font.color.rgb = rgb(colour)
            label.position = where


def _whiskers(
    series: Any,
    spots: Iterable[tuple[int, float, float | None, float | None]],
    colour: str,
    *,
    way: str = "",
) -> None:
    """Whiskers from the low to the high end of each point that has both: custom error bars, as far
    as the ends are from it.
    """
    known = [
        (place, value, low, high)
        for place, value, low, high in spots
        if low is not None and high is not None
    ]
    if not known:
        return
    count = max(place for place, *_ in known) + 1

    def distances(name: str, of: Iterable[tuple[int, float]]) -> str:
        points = "".join(
            f'<c:pt idx="{place}"><c:v>{max(0.0, distance):.6g}</c:v></c:pt>'
            for place, distance in of
        )
        return (
            f"<c:{name}><c:numLit><c:formatCode>General</c:formatCode><c:ptCount "
            f'val="{count}"/>{points}</c:numLit></c:{name}>'
        )

    plus = distances("plus", [(place, high - value) for place, value, _, high in known])
    minus = distances("minus", [(place, value - low) for place, value, low, _ in known])
    direction = f'<c:errDir val="{way}"/>' if way else ""
    bars = made(
        f'<c:errBars>{direction}<c:errBarType val="both"/><c:errValType val="cust"/><c:noEndCap '
        f'val="0"/>{plus}{minus}'
        '<c:spPr><a:ln w="19050"><a:solidFill><a:srgbClr '
        f'val="{bare(colour)}"/></a:solidFill></a:ln></c:spPr></c:errBars>'
    )
    element = series._element  # noqa: SLF001 - no door
    for name in ("c:xVal", "c:cat", "c:yVal", "c:val"):
        before = element.find(qn(name))
        if before is not None:
            before.addprevious(bars)
            return
