"""The chart of a tuning: a bar for each setting, how far it moves a metric from the baseline."""

from __future__ import annotations

from collections.abc import Sequence

from weighbridge.results.analysis.comparison import Effect
from weighbridge.results.charts.panels import AxisScale
from weighbridge.results.charts.placing import nice_top
from weighbridge.results.charts.tornado import CLAIMED, WIDEST
from weighbridge.results.percent import percent
from weighbridge.results.slides.slide import BarChart, SlideBar


def change_chart(changes: Sequence[tuple[str, str, Effect]], metric: str) -> BarChart:
    """Bars of changes in per cent: settings, their figures as text, and effects with a ratio."""
    bars = []
    for name, label, effect in changes:
        if effect.ratio is not None:
            value, low, high = (
                None if end is None else percent(end)
                for end in (effect.ratio.value, effect.ratio.low, effect.ratio.high)
            )
            tone = CLAIMED.get(effect.verdict, "axis")
            bars.append(
                SlideBar(name=name, value=value or 0.0, low=low, high=high, tone=tone, label=label)
            )
    farthest = max(abs(bar.value) for bar in bars)
    ends = [abs(end) for bar in bars for end in (bar.value, bar.low, bar.high) if end is not None]
    # An interval without an end would squeeze all bars together.
    top, step = nice_top(min(max(ends), WIDEST * farthest or 1.0) or 1.0)
    ticks = tuple(step * number for number in range(-round(top / step), round(top / step) + 1))
    x = AxisScale(low=-top, high=top, ticks=ticks, title=f"change of {metric}, %")
    return BarChart(x=x, bars=tuple(bars))
