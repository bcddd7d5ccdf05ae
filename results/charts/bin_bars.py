"""Latencies told in bins as they are drawn: a bar from end to end of the bin, filled for p90, hollow for the slowest request.

No line joins them, since where in its bin a latency lies is not known. Layouts stand beside each other at each worker count:
two bars at the same height would hide one another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from weighbridge.results.analysis.steps.interval import Interval
from weighbridge.results.charts.chart_data import Mark, Panel

BAR_PX: Final = 8
APART_PX: Final = 11
LEAST_PX: Final = 4
WIDTH_PX: Final = 440
HEIGHT_PX: Final = 260
"""About how large a panel is drawn; bars of neighbours are placed by it."""


def ends_of(panel: Panel) -> list[float]:
    """What the scale must hold: the ends of all bars. Of the first bin, which begins at 0, half its height is enough."""
    found = [within for mark in panel.marks for within in (mark.within, mark.top_within) if within is not None]
    return [end for one in found for end in (one.low_ms or one.top_ms / 2, _top(one)) if math.isfinite(end)]


def height_of(mark: Mark) -> float | None:
    """Where the label or the cross of a mark stands: at its figure, else at the upper end of its bar, else at its max."""
    tops = [_top(within) for within in (mark.within, mark.top_within) if within is not None]
    return mark.value or (tops[0] if tops else mark.top)


def bars(panel: Panel, x: alt.X, scale: alt.Scale, colour: alt.Color, ends: tuple[float, float]) -> list[alt.Chart]:
    """The bars of a panel on a logarithmic scale that goes from end to end; none where no driver told bins."""
    drawn = []
    for field, about, filled in (("within", "p90 ms", True), ("top_within", "max ms", False)):
        data = _data(panel, field, ends)
        if data:
            tooltip = [alt.Tooltip("layout:N"), alt.Tooltip("at:Q", title="workers"), alt.Tooltip("told:N", title=about)]
            drawn.append(
                alt.Chart(alt.InlineData(values=data))
                .mark_bar(size=BAR_PX, filled=filled, strokeWidth=0 if filled else 2, opacity=1.0 if filled else 0.9)
                .encode(x=x, y=alt.Y("low:Q", scale=scale), y2="high:Q", color=colour, tooltip=tooltip)
            )
    return drawn


def _data(panel: Panel, field: str, ends: tuple[float, float]) -> list[dict[str, Any]]:
    layouts = list(dict.fromkeys(mark.layout for mark in panel.marks))
    doublings = math.log2(panel.workers[-1] / panel.workers[0]) or 2.0
    values: list[dict[str, Any]] = []
    for mark in panel.marks:
        within: Interval | None = getattr(mark, field)
        if within is not None and mark.valid:
            low, high = _drawn(within, ends)
            shift_px = APART_PX * (layouts.index(mark.layout) - (len(layouts) - 1) / 2)
            values.append(
                {
                    "layout": mark.layout,
                    "at": mark.workers,
                    "workers": mark.workers * 2 ** (doublings * shift_px / WIDTH_PX),
                    "low": low,
                    "high": high,
                    "told": str(within),
                }
            )
    return values


def _drawn(within: Interval, ends: tuple[float, float]) -> tuple[float, float]:
    """From where to where a bar goes: within the scale, and never less high than can be seen (a dot would be higher)."""
    low, high = max(within.low_ms, ends[0]), min(within.top_ms, ends[1])
    least = (ends[1] / ends[0]) ** (LEAST_PX / HEIGHT_PX)
    widen = max(1.0, math.sqrt(least / (high / low)))
    return low / widen, high * widen


def _top(within: Interval) -> float:
    """The upper end; of the last bin, which has none, the lower."""
    return within.low_ms if within.high_ms is None else within.high_ms


def told_in_bins(panels: Sequence[Panel]) -> bool:
    """Whether any latency of these is a bin."""
    return any(mark.top_within is not None for panel in panels for mark in panel.marks)
