"""Where the texts of a panel stand: names of layouts in a column at its right with a thread to what they name, and small texts
beside points where there is room. All places are worked out here, so that no two texts lie on one another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, Literal

import altair as alt
from pydantic import PositiveInt

from weighbridge.common.record import Record
from weighbridge.results.charts.chart_data import log_ticks, nice_top, spread
from weighbridge.results.charts.chart_theme import Look, Style
from weighbridge.results.charts.charts import colour_of
from weighbridge.results.charts.figure import HEIGHT, WIDTH

NUMBER: Final = ",.6~g"
FAINT: Final = {"light": 0.35, "dark": 0.55}
"""Opacity of a repeat's line by the name of the look: dark colours on the dark fade sooner."""


class AxisScale(Record):
    """One scale, from `low` to `high`, with its title and ticks."""

    kind: Literal["linear", "log"]
    low: float
    high: float
    ticks: tuple[float, ...]
    title: str
    expression: str = ""
    """How a tick is written, where that is not its number, as a Vega expression."""
    grid: bool = True

    @classmethod
    def from_zero(cls, largest: float, title: str, *, grid: bool = True) -> AxisScale:
        """A linear scale from 0 that holds the largest value."""
        high, step = nice_top(largest)
        ticks = tuple(number * step for number in range(round(high / step) + 1))
        return cls(kind="linear", low=0.0, high=high, ticks=ticks, title=title, grid=grid)

    @classmethod
    def logarithmic(cls, least: float, largest: float, title: str, *, grid: bool = True) -> AxisScale:
        """A logarithmic scale that holds both values, which are above 0."""
        low, high, ticks = log_ticks(least, largest)
        return cls(kind="log", low=low, high=high, ticks=tuple(ticks), title=title, grid=grid)

    def share(self, value: float) -> float:
        """How far along the scale a value lies, from 0 to 1; what is below a logarithmic scale lies at its beginning."""
        if self.kind == "log":
            return math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def value(self, share: float) -> float:
        """The value that lies so far along it."""
        if self.kind == "log":
            return self.low * math.exp(share * math.log(self.high / self.low))
        return self.low + share * (self.high - self.low)

    def drawn(self) -> alt.Scale:
        """The scale for a chart."""
        return alt.Scale(type=self.kind, domain=[self.low, self.high], nice=False)


class Frame(Record):
    """Both scales of a panel. All of its layers ask it for their encodings, so that they share one pair of axes."""

    across: AxisScale
    up: AxisScale
    width: PositiveInt = WIDTH
    height: PositiveInt = HEIGHT

    def x(self, field: str = "x") -> alt.X:
        """Places across, by a field."""
        axis = self._axis(self.across, tickSize=5)
        return alt.X(f"{field}:Q", scale=self.across.drawn(), title=self.across.title, axis=axis)

    def y(self, field: str = "y") -> alt.Y:
        """Places up, by a field."""
        place: dict[str, Any] = {
            "domain": False,
            "titleAngle": 0,
            "titleAlign": "left",
            "titleAnchor": "end",
            "titleX": -4,
            "titleY": -12,
        }
        return alt.Y(f"{field}:Q", scale=self.up.drawn(), title=self.up.title, axis=self._axis(self.up, ticks=False, **place))

    def px(self, x: float, y: float) -> tuple[float, float]:
        """Pixels from the lower left corner."""
        return self.across.share(x) * self.width, self.up.share(y) * self.height

    def values(self, x_px: float, y_px: float) -> tuple[float, float]:
        """What lies so many pixels from the lower left corner."""
        return self.across.value(x_px / self.width), self.up.value(y_px / self.height)

    @staticmethod
    def _axis(scale: AxisScale, **more: Any) -> alt.Axis:
        written: dict[str, Any] = {"labelExpr": scale.expression} if scale.expression else {"format": NUMBER}
        return alt.Axis(values=list(scale.ticks), grid=scale.grid, **written, **more)


def chart_of(values: Sequence[dict[str, Any]]) -> alt.Chart:
    """A chart of rows that it carries itself."""
    return alt.Chart(alt.InlineData(values=list(values)))


def lines_of(values: Sequence[dict[str, Any]]) -> alt.Chart:
    """The same of whole lines: a row a line, whose fields `x` and `y` are lists. It carries a tenth of what a row a point would."""
    return chart_of(values).transform_flatten(["x", "y"])


def rounded(value: float) -> float:
    """A value to the four digits that a picture can show."""
    return float(f"{value:.4g}")


NAME_PX: Final = 15
NOTE_PX: Final = 13
THREAD_PX: Final = 26
"""From the right edge of a panel to the names."""


class Label(Record):
    """A layout's name at the right of a panel, and what it names: the end of a line at `x`, `y`, by the panel's scales."""

    layout: str
    x: float | None
    """None: it names nothing that is drawn, and has no thread."""
    y: float
    note: str = ""
    """Below the name, smaller."""


def side_labels(labels: Sequence[Label], frame: Frame, look: Look, shown: Sequence[Style]) -> list[alt.Chart]:
    """Layers of names, moved up or down where two would overlap."""
    noted = any(label.note for label in labels)
    row = (NAME_PX + 5 + (NOTE_PX + 4) * noted) / frame.height
    spots = spread([frame.up.share(label.y) for label in labels], row)
    # Names that stand apart are moved back into the panel where they fit into it.
    low, high = min(spots, default=0.0), max(spots, default=1.0)
    shift = max(0.0, row / 3 - low) - max(0.0, high - 1) if high - low < 1 else 0.0
    values = [
        {**label.model_dump(), "to": frame.up.value(spot + shift), "edge": frame.across.high}
        for label, spot in zip(labels, spots, strict=True)
    ]
    base = alt.Chart(alt.InlineData(values=values))
    colour, to = colour_of(shown), frame.y("to")
    thread: dict[str, Any] = {"strokeWidth": 1.2, "opacity": 0.5, "clip": False}
    lift = (NOTE_PX + 2) / 2 if noted else 0
    text: dict[str, Any] = {"align": "left", "baseline": "middle", "dx": THREAD_PX, "clip": False}
    return [
        base.transform_filter("datum.x !== null")
        .mark_rule(**thread, x2Offset=THREAD_PX - 6)
        .encode(x=frame.x(), x2=alt.X2("edge:Q"), y=frame.y(), y2=alt.Y2("to:Q"), color=colour),
        base.mark_text(**text, dy=-lift, fontSize=NAME_PX, fontWeight=600).encode(
            x=frame.x("edge"), y=to, color=colour, text=alt.Text("layout:N")
        ),
        base.transform_filter("datum.note !== ''")
        .mark_text(**text, dy=lift + 2, fontSize=NOTE_PX, color=look.muted)
        .encode(x=frame.x("edge"), y=to, text=alt.Text("note:N")),
    ]


class LabelSpot(Record):
    """A place for a small text: `x` and `y` in pixels from the panel's lower left corner, of its middle."""

    x: float
    y: float
    width: float
    height: float

    def touches(self, other: LabelSpot) -> bool:
        """Whether two would lie on one another."""
        return abs(self.x - other.x) * 2 < self.width + other.width and abs(self.y - other.y) * 2 < self.height + other.height


def beside(
    points: Sequence[tuple[float, float, str]], taken: Sequence[LabelSpot], size_px: int, far_px: float
) -> list[LabelSpot | None]:
    """A place for the text of each point, in pixels, above it, below it, left or right of it; None where there is no room.

    `taken` is what no text may lie on beside the points themselves; the first points choose first.
    """
    filled = [*taken, *(LabelSpot(x=x, y=y, width=far_px, height=far_px) for x, y, _ in points)]
    places: list[LabelSpot | None] = []
    for x, y, text in points:
        width, height = 0.62 * size_px * len(text), float(size_px)
        aside, above = (far_px + width) / 2 + 1, (far_px + height) / 2 + 1
        tried = [(x, y + above), (x - aside, y), (x + aside, y), (x, y - above), (x - aside, y + above), (x + aside, y - above)]
        spots = (LabelSpot(x=one, y=other, width=width, height=height) for one, other in tried)
        place = next((spot for spot in spots if not any(spot.touches(other) for other in filled)), None)
        places.append(place)
        filled += [place] if place is not None else []
    return places


def along(height_px: float, width_px: float, text: str, taken: Sequence[LabelSpot], size_px: int) -> LabelSpot:
    """A place for a text above or below a level line across a panel of this width, where it lies on as little as can be."""
    width = 0.6 * size_px * len(text)
    spots = [
        LabelSpot(x=left + width / 2, y=height_px + side * (size_px / 2 + 4), width=width, height=float(size_px))
        for side in (1, -1)
        for left in range(6, max(7, round(width_px - width)), 12)
    ]
    return min(spots, key=lambda spot: sum(spot.touches(other) for other in taken))
