"""The frame of a panel: its two scales with their ticks, and from values to places on it and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, Literal

import altair as alt
from pydantic import PositiveInt

from weighbridge.common.record import Record
from weighbridge.results.chart_data import log_ticks, nice_top
from weighbridge.results.figure import HEIGHT, WIDTH

NUMBER: Final = ",.6~g"
FAINT: Final = {"light": 0.35, "dark": 0.55}
"""Opacity of a repeat's line by the name of the look: dark colours on the dark fade sooner."""


class Scale(Record):
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
    def from_zero(cls, largest: float, title: str, *, grid: bool = True) -> Scale:
        """A linear scale from 0 that holds the largest value."""
        high, step = nice_top(largest)
        ticks = tuple(number * step for number in range(round(high / step) + 1))
        return cls(kind="linear", low=0.0, high=high, ticks=ticks, title=title, grid=grid)

    @classmethod
    def logarithmic(cls, least: float, largest: float, title: str, *, grid: bool = True) -> Scale:
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

    across: Scale
    up: Scale
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
    def _axis(scale: Scale, **more: Any) -> alt.Axis:
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
