"""Changes and outliers of one metric in several cells, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from weighbridge.results.figures import counted
from weighbridge.results.metrics import METRICS, MetricKey
from weighbridge.results.percent import show_percent


class Moved(Protocol):
    """A figure relative to others."""

    @property
    def ratio(self) -> float:
        """Itself relative to the others."""

    @property
    def direction(self) -> str:
        """Better or worse."""


def in_cells(metric: MetricKey, moved: Sequence[Moved]) -> str:
    """Such as `throughput +10 % in 4 cells (+8 % to +12 %), better`."""
    ratios = sorted(one.ratio for one in moved)
    low, middle, high = (show_percent(ratios[at]) for at in (0, len(ratios) // 2, -1))
    ends = f" ({low} to {high})" if low != high else ""
    ways = " and ".join(sorted({one.direction for one in moved}))
    return f"{METRICS[metric].name} {middle} in {counted(len(moved), 'cell')}{ends}, {ways}"
