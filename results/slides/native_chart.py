"""Native PowerPoint charts: each has a workbook of its figures and can be edited on its slide.

Whiskers, logarithmic scales and the place of the plot have no API in python-pptx and are written as
XML. LibreOffice 7.4 draws custom whiskers only upwards and not sideways, though both are written
the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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

from weighbridge.results.show.scales import AxisScale
from weighbridge.results.show.theme import Look, Style, mark_colour, styles
from weighbridge.results.slides.label_sides import with_sides
from weighbridge.results.slides.paint import bare, rgb, xml
from weighbridge.results.slides.slide import BarChart, SeriesChart
from weighbridge.results.slides.typeface import width_pt

_MARKERS: Final = {
    "circle": XL_MARKER_STYLE.CIRCLE,
    "square": XL_MARKER_STYLE.SQUARE,
    "triangle-up": XL_MARKER_STYLE.TRIANGLE,
    "diamond": XL_MARKER_STYLE.DIAMOND,
    "triangle-down": XL_MARKER_STYLE.STAR,
    "triangle-right": XL_MARKER_STYLE.PLUS,
    "cross": XL_MARKER_STYLE.X,
}
"""PowerPoint has no triangle that points down or right; crosses mean `not ranked`."""
GLYPHS: Final = {
    "circle": "●",
    "square": "■",
    "triangle-up": "▲",
    "diamond": "◆",
    "triangle-down": "✱",
    "triangle-right": "✚",
    "cross": "×",
}
"""The same markers as text."""
_SIDES: Final = {
    "above": XL_LABEL_POSITION.ABOVE,
    "left": XL_LABEL_POSITION.LEFT,
    "right": XL_LABEL_POSITION.RIGHT,
    "below": XL_LABEL_POSITION.BELOW,
}
_TEXT_PT: Final = 16
_LABEL_PT: Final = 14
_LEFT_PT: Final = 84.0
_TOP_PT: Final = 10.0
_RIGHT_PT: Final = 24.0
_BOTTOM_PT: Final = 54.0
"""Room around a plot for labels and titles of axes."""
Box = tuple[float, float, float, float]


def add_chart(
    slide: Any, chart: SeriesChart | BarChart, look: Look, box: Box, *, alt_text: str
) -> None:
    """Draw a chart into a box (left, top, width, height in pt)."""
    place = tuple(Pt(value) for value in box)
    if isinstance(chart, BarChart):
        frame = _bars(chart, slide, look, place)
    else:
        frame = (_lines if chart.form == "lines" else _paths)(chart, slide, look, place)
    frame._element.nvGraphicFramePr.cNvPr.set("descr", alt_text)  # noqa: SLF001 - python-pptx has no API for alternative texts


def _lines(chart: SeriesChart, slide: Any, look: Look, box: Sequence[Any]) -> Any:
    data = CategoryChartData(number_format="#,##0.##")
    data.categories = [str(round(count)) for count in chart.x.ticks]
    for one in chart.series:
        values = {point.x: point.y for point in one.points}
        data.add_series(one.name, [values.get(count) for count in chart.x.ticks])
    frame = slide.shapes.add_chart(XL_CHART_TYPE.LINE_MARKERS, *box, data)
    drawn = _clean(frame.chart, look)
    _place_plot(drawn, box, left_pt=_LEFT_PT)
    _value_axis(drawn.value_axis, chart.y, look)
    _category_axis(drawn.category_axis, chart.x.title, look)
    drawn_as = {style.layout: style for style in styles(chart.layouts, look)}
    for series, one in zip(drawn.plots[0].series, chart.series, strict=True):
        style = drawn_as[one.layout]
        _style_series(series, style, joined=one.joined)
        ends = [(chart.x.ticks.index(at.x), at.y, at.low, at.high) for at in one.points]
        _whiskers(series, ends, style.colour)
    return frame


def _paths(chart: SeriesChart, slide: Any, look: Look, box: Sequence[Any]) -> Any:
    # LibreOffice 7.4 does not draw a series that is shorter than a later one.
    longest_first = sorted(chart.series, key=lambda one: -len(one.points))
    chart = chart.model_copy(update={"series": tuple(longest_first)})
    data = XyChartData(number_format="#,##0.###")
    for one in chart.series:
        points = data.add_series(one.name)
        for point in one.points:
            points.add_data_point(point.x, point.y)
    frame = slide.shapes.add_chart(XL_CHART_TYPE.XY_SCATTER_LINES, *box, data)
    drawn = _clean(frame.chart, look)
    _place_plot(drawn, box, left_pt=_LEFT_PT)
    _value_axis(drawn.category_axis, chart.x, look)
    _value_axis(drawn.value_axis, chart.y, look)
    drawn_as = {style.layout: style for style in styles(chart.layouts, look)}
    for series, one in zip(drawn.plots[0].series, with_sides(chart), strict=True):
        colour = drawn_as[one.layout].colour
        _style_series(series, drawn_as[one.layout], joined=one.joined)
        upright = [(n, at.y, at.low, at.high) for n, at in enumerate(one.points)]
        across = [(n, at.x, at.x_low, at.x_high) for n, at in enumerate(one.points)]
        _whiskers(series, upright, colour, way="y")
        _whiskers(series, across, colour, way="x")
        _label_points(series, [(at.label, _SIDES[at.side]) for at in one.points], colour)
    return frame


def _bars(chart: BarChart, slide: Any, look: Look, box: Sequence[Any]) -> Any:
    bars = chart.bars[::-1]  # PowerPoint puts the first one lowest
    names = [f"{bar.name}: {bar.label}" for bar in bars]
    data = CategoryChartData(number_format="0.0")
    data.categories = names
    data.add_series(chart.x.title, [bar.value for bar in bars])
    frame = slide.shapes.add_chart(XL_CHART_TYPE.BAR_CLUSTERED, *box, data)
    drawn = _clean(frame.chart, look)
    widest = max(width_pt(name, _TEXT_PT) for name in names)
    _place_plot(drawn, box, left_pt=min(widest + 16, box[2].pt * 0.55))
    _value_axis(drawn.value_axis, chart.x, look)
    _category_axis(drawn.category_axis, "", look)
    drawn.category_axis.tick_label_position = XL_TICK_LABEL_POSITION.LOW
    drawn.plots[0].gap_width = 60
    (series,) = drawn.plots[0].series
    series.invert_if_negative = False
    drawn_as = {style.layout: style for style in styles(chart.layouts, look)}
    for number, bar in enumerate(bars):
        fill = series.points[number].format.fill
        fill.solid()
        fill.fore_color.rgb = rgb(mark_colour(bar.layout, bar.tone, drawn_as, look))
    ends = [(number, bar.value, bar.low, bar.high) for number, bar in enumerate(bars)]
    _whiskers(series, ends, look.ink)
    return frame


def _place_plot(chart: Any, box: Sequence[Any], *, left_pt: float) -> None:
    """Give the plot all of the box except the room for labels and titles of its axes."""
    width, height = box[2].pt, box[3].pt
    shares = {"x": left_pt / width, "y": _TOP_PT / height}
    shares |= {"w": 1 - shares["x"] - _RIGHT_PT / width, "h": 1 - shares["y"] - _BOTTOM_PT / height}
    modes = "".join(f'<c:{way}Mode val="edge"/>' for way in ("x", "y"))
    places = "".join(f'<c:{way} val="{share:.4f}"/>' for way, share in shares.items())
    inner = f'<c:layoutTarget val="inner"/>{modes}{places}'
    plot = chart._chartSpace.chart.plotArea  # noqa: SLF001 - no API
    for old in plot.findall(qn("c:layout")):
        plot.remove(old)
    plot.insert(0, xml(f"<c:layout><c:manualLayout>{inner}</c:manualLayout></c:layout>"))


def _clean(chart: Any, look: Look) -> Any:
    """The chart without title and legend: the slide has a legend that looks the same everywhere."""
    for name in ("c:axId", "c:crossAx"):
        for axis in chart._chartSpace.iter(qn(name)):  # noqa: SLF001 - no API
            axis.set("val", axis.get("val").lstrip("-"))  # the standard allows no negative ids
    chart.has_title = False
    chart.has_legend = False
    chart.font.size = Pt(_TEXT_PT)
    chart.font.color.rgb = rgb(look.ink)
    return chart


def _value_axis(axis: Any, scale: AxisScale, look: Look) -> None:
    axis.minimum_scale, axis.maximum_scale = scale.low, scale.high
    smallest = scale.low
    if scale.kind == "log":
        axis._element.find(qn("c:scaling")).insert(0, xml('<c:logBase val="10"/>'))  # noqa: SLF001 - no API
    else:
        smallest = axis.major_unit = scale.ticks[1] - scale.ticks[0]
    axis.has_major_gridlines = True
    axis.major_gridlines.format.line.color.rgb = rgb(look.grid)
    axis.major_gridlines.format.line.width = Pt(0.75)
    axis.tick_labels.number_format = "#,##0.###" if smallest < 1 else "#,##0"
    axis.tick_labels.number_format_is_linked = False
    _axis_text(axis, scale.title, look)


def _category_axis(axis: Any, title: str, look: Look) -> None:
    axis.has_major_gridlines = False
    _axis_text(axis, title, look)


def _axis_text(axis: Any, title: str, look: Look) -> None:
    axis.format.line.color.rgb = rgb(look.axis)
    axis.tick_labels.font.size = Pt(_TEXT_PT)
    axis.tick_labels.font.color.rgb = rgb(look.ink)
    axis.has_title = bool(title)
    if title:
        frame = axis.axis_title.text_frame
        frame.text = title
        font = frame.paragraphs[0].runs[0].font
        font.size, font.bold = Pt(_TEXT_PT), False
        font.color.rgb = rgb(look.muted)


def _style_series(series: Any, style: Style, *, joined: bool) -> None:
    colour = rgb(style.colour)
    series.smooth = False
    series.marker.style = _MARKERS[style.shape if joined else "cross"]
    series.marker.size = 11 if joined else 13
    line = series.marker.format.line
    line.color.rgb = colour
    line.width = Pt(1 if joined else 2.5)
    series.marker.format.fill.solid()
    series.marker.format.fill.fore_color.rgb = colour
    if joined:
        series.format.line.color.rgb = colour
        series.format.line.width = Pt(3.5)
    else:
        series.marker.format.fill.background()
        series.format.line.fill.background()


def _label_points(series: Any, labels: Sequence[tuple[str, Any]], colour: str) -> None:
    if not any(text for text, _ in labels):
        return
    DataLabels(series._element.get_or_add_dLbls()).show_value = False  # noqa: SLF001 - no API for series of points
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
    """Add whiskers to each point that has both ends: custom error bars, as distances from it."""
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
        head = f'<c:formatCode>General</c:formatCode><c:ptCount val="{count}"/>'
        return f"<c:{name}><c:numLit>{head}{points}</c:numLit></c:{name}>"

    plus = distances("plus", [(place, high - value) for place, value, _, high in known])
    minus = distances("minus", [(place, value - low) for place, value, low, _ in known])
    direction = f'<c:errDir val="{way}"/>' if way else ""
    kind = '<c:errBarType val="both"/><c:errValType val="cust"/><c:noEndCap val="0"/>'
    ink = f'<a:solidFill><a:srgbClr val="{bare(colour)}"/></a:solidFill>'
    line = f'<c:spPr><a:ln w="19050">{ink}</a:ln></c:spPr>'
    bars = xml(f"<c:errBars>{direction}{kind}{plus}{minus}{line}</c:errBars>")
    element = series._element  # noqa: SLF001 - no API
    for name in ("c:xVal", "c:cat", "c:yVal", "c:val"):
        before = element.find(qn(name))
        if before is not None:
            before.addprevious(bars)
            return
