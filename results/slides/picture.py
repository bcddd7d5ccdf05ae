"""The charts of slides as figures, for decks in Markdown, which cannot hold native charts."""

from __future__ import annotations

from typing import Final

from weighbridge.results.charts.panels import AxisScale, Figure, Label, Mark, Panel, Spot, Trace
from weighbridge.results.slides.slide import BarChart, SeriesChart, Slide

WIDTH: Final = 760
HEIGHT: Final = 320
BAR_PX: Final = 38


def slide_figure(slide: Slide, chart: SeriesChart | BarChart) -> Figure:
    """The figure of a slide's chart, without a title, since the slide has it."""
    panel = (
        _bar_panel(slide.key, chart) if isinstance(chart, BarChart) else _panel(slide.key, chart)
    )
    return Figure(
        name=slide.key,
        title=slide.title,
        finding="",
        caption="",
        panels=(panel,),
        layouts=chart.layouts,
    )


def _panel(key: str, chart: SeriesChart) -> Panel:
    last = {one.layout: one.points[-1] for one in chart.series}
    return Panel(
        key=key,
        title="",
        x=chart.x,
        y=chart.y,
        marks=_series_marks(chart),
        labels=tuple(Label(layout=name, x=point.x, y=point.y) for name, point in last.items()),
        width=WIDTH,
        height=HEIGHT,
    )


def _bar_panel(key: str, chart: BarChart) -> Panel:
    return Panel(
        key=key,
        title="",
        x=chart.x,
        y=AxisScale.of_names([bar.name for bar in chart.bars]),
        marks=_bar_marks(chart),
        width=WIDTH,
        height=BAR_PX * len(chart.bars),
    )


def _series_marks(chart: SeriesChart) -> tuple[Mark, ...]:
    """Whiskers, lines, points, crosses and labels."""
    upright, across, labels, lines = [], [], [], []
    points: dict[bool, list[Spot]] = {True: [], False: []}
    for one in chart.series:
        for point in one.points:
            spot = Spot(x=point.x, y=point.y, layout=one.layout)
            points[one.joined].append(spot)
            if point.low is not None:
                upright.append(spot.model_copy(update={"y": point.low, "y2": point.high}))
            if point.x_low is not None:
                across.append(spot.model_copy(update={"x": point.x_low, "x2": point.x_high}))
            if point.label:
                labels.append(spot.model_copy(update={"text": point.label}))
        if one.joined:
            xs, ys = zip(*((point.x, point.y) for point in one.points), strict=True)
            lines.append(Trace(layout=one.layout, x=xs, y=ys))
    return (
        Mark(kind="interval", spots=tuple(upright)),
        Mark(kind="interval", spots=tuple(across)),
        Mark(kind="line", traces=tuple(lines)),
        Mark(kind="point", spots=tuple(points[True])),
        Mark(kind="cross", spots=tuple(points[False])),
        Mark(kind="beside", spots=tuple(labels)),
    )


def _bar_marks(chart: BarChart) -> tuple[Mark, ...]:
    """Bars, whiskers and figures."""
    bars = [Spot(x=bar.value, y=bar.name, layout=bar.layout, tone=bar.tone) for bar in chart.bars]
    whiskers = [
        Spot(x=max(bar.low, chart.x.low), x2=min(bar.high, chart.x.high), y=bar.name)
        for bar in chart.bars
        if bar.low is not None and bar.high is not None
    ]
    figures = [Spot(y=bar.name, text=bar.label, tone="ink") for bar in chart.bars]
    return (
        Mark(kind="bar", spots=tuple(bars)),
        Mark(kind="whisker", spots=tuple(whiskers)),
        Mark(kind="zero", spots=(Spot(x=0.0, tone="ink"),)),
        Mark(kind="strong text", spots=tuple(figures), at="right", align="left", dx=8),
    )
