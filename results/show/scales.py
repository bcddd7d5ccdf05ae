"""Scales of charts and slides: ends, ticks, and places for names so that no two overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, Literal

from weighbridge.common.record import Record

NUMBER: Final = ",.6~g"
"""How figures are written on axes, as a d3 format."""
MAX_LOG_TICKS: Final = 9


class AxisScale(Record):
    """An axis of numbers from `low` to `high`. A logarithmic one says so in its title."""

    kind: Literal["linear", "log"] = "linear"
    low: float = 0.0
    high: float = 1.0
    ticks: tuple[float, ...] = ()
    title: str = ""

    @classmethod
    def from_zero(cls, largest: float, title: str, *, least: float = 0.0) -> AxisScale:
        """A linear scale from 0, or from a negative `least`, that holds the largest value."""
        high, step = nice_top(largest)
        first = -math.ceil(-least / step)
        ticks = tuple(number * step for number in range(first, round(high / step) + 1))
        return cls(low=ticks[0], high=high, ticks=ticks, title=title)

    @classmethod
    def around(cls, values: Sequence[float], title: str) -> AxisScale:
        """A linear scale that holds all values; not from 0, so nothing on it may be an area."""
        low, high = min(values), max(values)
        if low <= 0.5 * high:
            return cls.from_zero(high * 1.02, title)
        _, step = nice_top(high - low or high * 0.1)
        first = int(low // step)
        last = max(-int(-high // step), first + 1)
        ticks = tuple(number * step for number in range(first, last + 1))
        return cls(low=ticks[0], high=ticks[-1], ticks=ticks, title=title)

    @classmethod
    def logarithmic(cls, values: Sequence[float], title: str) -> AxisScale:
        """A logarithmic scale that holds all values, all above 0; from 1 to 10 without any."""
        low, high, ticks = log_ticks(min(values, default=1.0), max(values, default=10.0))
        return cls(kind="log", low=low, high=high, ticks=tuple(ticks), title=title)

    @classmethod
    def workers(cls, counts: Sequence[int], title: str = "workers (log scale)") -> AxisScale:
        """Worker counts: logarithmic, with a tick for each."""
        first, last = counts[0], counts[-1]
        low, high = (first / 1.2, last * 1.08) if first != last else (first / 2, last * 2)
        return cls(kind="log", low=low, high=high, ticks=tuple(counts), title=title)

    def share(self, value: float) -> float:
        """How far along the scale a value lies, from 0 to 1."""
        if self.kind == "log":
            return math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def value(self, share: float) -> float:
        """The value at a share of the scale: the inverse of `share`."""
        if self.kind == "log":
            return self.low * math.exp(share * math.log(self.high / self.low))
        return self.low + share * (self.high - self.low)

    def encoding(self, **axis: Any) -> dict[str, Any]:
        """A Vega-Lite encoding with this scale; layers add the field."""
        return {
            "type": "quantitative",
            "title": self.title or None,
            "scale": {
                "type": self.kind,
                "domain": [self.low, self.high],
                "nice": False,
                "clamp": True,
                # Vega complains of it on a logarithmic scale.
                **({"zero": False} if self.kind == "linear" else {}),
            },
            "axis": {"values": list(self.ticks), "format": NUMBER, **axis},
        }


def names_encoding(names: Sequence[str], **axis: Any) -> dict[str, Any]:
    """A Vega-Lite encoding of names in this order; layers add the field."""
    scale = {"domain": list(names), "paddingInner": 0.06, "paddingOuter": 0.03}
    return {
        "type": "nominal",
        "title": None,
        "sort": list(names),
        "scale": scale,
        "axis": {"grid": False, "labelOverlap": False, **axis},
    }


def nice_top(largest: float) -> tuple[float, float]:
    """The end of a scale from 0 that holds `largest`, and its tick step: 1, 2 or 5 times 10^n."""
    if largest <= 0:
        return 1.0, 0.5
    step = next(
        unit * 10**power
        for power in range(math.floor(math.log10(largest)) - 1, math.ceil(math.log10(largest)) + 1)
        for unit in (1, 2, 5)
        if largest / (unit * 10**power) <= 5
    )
    return math.ceil(largest * 1.02 / step) * step, step


def log_ticks(low: float, high: float) -> tuple[float, float, list[float]]:
    """Ends and ticks of a logarithmic scale: 1, 2 and 5 times powers of ten; of many the powers."""
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    fine = [unit * 10.0**power for power in powers for unit in (1, 2, 5)]
    start = max(tick for tick in fine if tick <= low)
    end = min(tick for tick in fine if tick >= high and tick > start)
    ticks = [tick for tick in fine if start <= tick <= end]
    if len(ticks) > MAX_LOG_TICKS:
        ticks = [tick for tick in ticks if abs(math.log10(tick) - round(math.log10(tick))) < 1e-9]
    return start, end, ticks


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Places near the wanted ones, in order, at least `gap` apart; those too close are moved about
    their common mean (pool adjacent violators).
    """
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    pools: list[tuple[float, int]] = []  # mean of (wanted - rank * gap), size
    for rank, index in enumerate(order):
        pools.append((wanted[index] - rank * gap, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (mean_a, size_a), (mean_b, size_b) = pools[-2:]
            mean = (mean_a * size_a + mean_b * size_b) / (size_a + size_b)
            pools[-2:] = [(mean, size_a + size_b)]
    flat = [mean for mean, size in pools for _ in range(size)]
    placed = [0.0] * len(wanted)
    for rank, index in enumerate(order):
        placed[index] = flat[rank] + rank * gap
    return placed
