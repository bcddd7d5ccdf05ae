from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from weighbridge.results.charts.panels import HEIGHT, WIDTH, Mark, Spot
from weighbridge.results.charts.worker_data import WorkerPanel, WorkerPoint
from weighbridge.results.interval import Interval

APART_PX: Final = 11
"""Distance between the bars of two layouts."""
LEAST_PX: Final = 4
"""Least height of a bar, so that a narrow bin is visible on the scale."""


def any_bins(panels: Sequence[WorkerPanel]) -> bool:
    """Whether any latency is known only as a bin."""
    return any(mark.top_within is not None for panel in panels for mark in panel.marks)


def bin_ends(panel: WorkerPanel) -> list[float]:
    """The ends of all bars for the scale to hold; of the first bin half its end."""
    found = [
        within
        for mark in panel.marks
        for within in (mark.within, mark.top_within)
        if within is not None
    ]
    return [
        end
        for one in found
        for end in (one.low_ms or one.top_ms / 2, _top(one))
        if math.isfinite(end)
    ]


def height_of(mark: WorkerPoint) -> float | None:
    """The height of a mark's label or cross: its figure, else its bin's upper end, else its max."""
    tops = [_top(within) for within in (mark.within, mark.top_within) if within is not None]
    return mark.value or (tops[0] if tops else mark.top)


def bin_marks(panel: WorkerPanel, ends: tuple[float, float]) -> tuple[Mark, ...]:
    """The bars on a logarithmic scale with these ends: of p90s, then of maxima."""
    layouts = list(dict.fromkeys(mark.layout for mark in panel.marks))
    doublings = math.log2(panel.workers[-1] / panel.workers[0]) or 2.0
    filled: list[Spot] = []
    hollow: list[Spot] = []
    for mark in panel.marks:
        shift_px = APART_PX * (layouts.index(mark.layout) - (len(layouts) - 1) / 2)
        for within, about, found in (
            (mark.within, "p90", filled),
            (mark.top_within, "max", hollow),
        ):
            if within is not None and mark.valid:
                low, high = _drawn(within, ends)
                tip_text = f"{mark.layout}, {mark.workers} workers: {about} in {within} ms"
                x = mark.workers * 2 ** (doublings * shift_px / WIDTH)
                found.append(Spot(x=x, y=low, y2=high, layout=mark.layout, tip=tip_text))
    return (Mark(kind="bin", spots=tuple(filled)), Mark(kind="hollow bin", spots=tuple(hollow)))


def _drawn(within: Interval, ends: tuple[float, float]) -> tuple[float, float]:
    """The ends of a bar within the scale, high enough to be seen."""
    low, high = max(within.low_ms, ends[0]), min(within.top_ms, ends[1])
    least = (ends[1] / ends[0]) ** (LEAST_PX / HEIGHT)
    widen = max(1.0, math.sqrt(least / (high / low)))
    return low / widen, high * widen


def _top(within: Interval) -> float:
    return within.low_ms if within.high_ms is None else within.high_ms
