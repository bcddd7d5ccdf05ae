"""Ends and ticks of scales, and places for texts so that no two overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from weighbridge.common.record import Record


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
    if len(ticks) > 9:
        ticks = [tick for tick in ticks if abs(math.log10(tick) - round(math.log10(tick))) < 1e-9]
    return start, end, ticks


def in_lines(text: str, width: int) -> list[str]:
    """A text broken into lines of about this many characters, none of which begins with `%`."""
    lines: list[str] = [""]
    for word in text.replace(" %", "\0%").split(" "):
        if lines[-1] and len(lines[-1]) + len(word) >= width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return [line.replace("\0", " ") for line in lines]


class LabelSpot(Record):
    """A rectangle on a panel, by its centre in pixels from the lower left corner."""

    x: float
    y: float
    width: float
    height: float

    def touches(self, other: LabelSpot) -> bool:
        across = abs(self.x - other.x) * 2 < self.width + other.width
        return across and abs(self.y - other.y) * 2 < self.height + other.height


def beside(
    points: Sequence[tuple[float, float, str]],
    taken: Sequence[LabelSpot],
    size_px: int,
    far_px: float,
) -> list[LabelSpot | None]:
    """A place for the text of each point, where there is room, earlier points first; `taken` is
    what no text may cover.
    """
    filled = [*taken, *(LabelSpot(x=x, y=y, width=far_px, height=far_px) for x, y, _ in points)]
    places: list[LabelSpot | None] = []
    for x, y, text in points:
        width, height = 0.62 * size_px * len(text), float(size_px)
        aside, above = (far_px + width) / 2 + 1, (far_px + height) / 2 + 1
        level = [(x, y + above), (x - aside, y), (x + aside, y), (x, y - above)]
        tried = [*level, (x - aside, y + above), (x + aside, y - above)]
        spots = (LabelSpot(x=one, y=other, width=width, height=height) for one, other in tried)
        place = next((spot for spot in spots if not any(map(spot.touches, filled))), None)
        places.append(place)
        filled += [place] if place is not None else []
    return places


def along(
    height_px: float, width_px: float, text: str, taken: Sequence[LabelSpot], size_px: int
) -> LabelSpot:
    """A place for a text above or below a level line, where it covers least."""
    width = 0.6 * size_px * len(text)
    spots = [
        LabelSpot(
            x=left + width / 2,
            y=height_px + side * (size_px / 2 + 4),
            width=width,
            height=float(size_px),
        )
        for side in (1, -1)
        for left in range(6, max(7, round(width_px - width)), 12)
    ]
    return min(spots, key=lambda spot: sum(map(spot.touches, taken)))


def pieces(places: Sequence[tuple[float, float]], size_px: float = 3) -> list[LabelSpot]:
    """A line through places in pixels, as small squares that no text should cover."""
    spots: list[LabelSpot] = []
    for (x, y), (to_x, to_y) in pairwise(places):
        count = max(1, math.ceil(max(abs(to_x - x), abs(to_y - y)) / 4))
        shares = [number / count for number in range(count + 1)]
        spots += [
            LabelSpot(
                x=x + (to_x - x) * share, y=y + (to_y - y) * share, width=size_px, height=size_px
            )
            for share in shares
        ]
    return spots
