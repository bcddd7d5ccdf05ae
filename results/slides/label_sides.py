"""On which side of its point a label stands: the one where it is farthest from all lines, marks and
labels of the chart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from weighbridge.results.slides.slide import Axis, ChartPoint, Series, Side

_ASPECT: Final = 2.5
"""Width of a chart by its height."""
_AWAY: Final = 0.055
"""How far the middle of a label is from its point, by the height of the chart."""
_SIDES: Final[dict[Side, tuple[float, float]]] = {
    "above": (0, 1),
    "left": (-1.1, 0),
    "right": (1.1, 0),
    "below": (0, -1),
}
_STEPS: Final = 40
"""Points that a line between two marks is taken for."""

Place = tuple[float, float]


def sided(series: Sequence[Series], across: Axis, up: Axis) -> tuple[Series, ...]:
    """The same series with a side for each label, one label after the other."""

    def place(spot: ChartPoint) -> Place:
        return _along(spot.x, across) * _ASPECT, _along(spot.y, up)

    taken = [
        point
        for one in series
        for point in _path([place(spot) for spot in one.spots], joined=one.joined)
    ]
    taken += [point for one in series for spot in one.spots for point in _whiskers(spot, place)]
    made = []
    for one in series:
        spots = []
        for spot in one.spots:
            if spot.label:
                side, middle = _freest(place(spot), taken)
                taken.append(middle)
                spots.append(spot.model_copy(update={"side": side}))
            else:
                spots.append(spot)
        made.append(one.model_copy(update={"spots": tuple(spots)}))
    return tuple(made)


def _along(value: float, axis: Axis) -> float:
    """Where on its axis a figure is, from 0 to 1."""
    if axis.logarithmic:
        return math.log(value / axis.low) / math.log(axis.high / axis.low)
    return (value - axis.low) / (axis.high - axis.low)


def _path(places: Sequence[Place], *, joined: bool) -> Iterator[Place]:
    yield from places
    for (x_a, y_a), (x_b, y_b) in pairwise(places) if joined else ():
        for step in range(1, _STEPS):
            share = step / _STEPS
            yield x_a + (x_b - x_a) * share, y_a + (y_b - y_a) * share


def _whiskers(spot: ChartPoint, place: Callable[[ChartPoint], Place]) -> Iterator[Place]:
    """Points along the whiskers of a spot."""
    for low, high, field in ((spot.low, spot.high, "y"), (spot.x_low, spot.x_high, "x")):
        if low is not None and high is not None:
            ends = [place(spot.model_copy(update={field: end})) for end in (low, high)]
            yield from _path(ends, joined=True)


def _freest(at: Place, taken: Sequence[Place]) -> tuple[Side, Place]:
    """The side whose label is farthest from what is nearest to it; the first of those that are as
    good.
    """
    middles: dict[Side, Place] = {
        side: (at[0] + dx * _AWAY, at[1] + dy * _AWAY) for side, (dx, dy) in _SIDES.items()
    }

    def free(side: Side) -> float:
        middle = middles[side]
        if not 0 <= middle[1] <= 1:
            return 0.0
        return round(min(math.dist(middle, other) for other in taken), 3)

    chosen = max(_SIDES, key=free)
    return chosen, middles[chosen]
