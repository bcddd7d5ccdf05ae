from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from weighbridge.results.slides.slide import ChartPoint, Series, SeriesChart, Side

_ASPECT: Final = 2.5
"""Width of a chart divided by its height."""
_AWAY: Final = 0.055
"""Distance from a point to the middle of its label, as a share of the chart's height."""
_SIDES: Final[dict[Side, tuple[float, float]]] = {
    "above": (0, 1),
    "left": (-1.1, 0),
    "right": (1.1, 0),
    "below": (0, -1),
}
_STEPS: Final = 40
"""The points that stand for a line between two marks."""

Place = tuple[float, float]


def with_sides(chart: SeriesChart) -> tuple[Series, ...]:
    """The series of a chart with a side for each label, chosen one after the other."""

    def place(point: ChartPoint) -> Place:
        return chart.x.share(point.x) * _ASPECT, chart.y.share(point.y)

    taken = [
        at
        for one in chart.series
        for at in _path([place(point) for point in one.points], joined=one.joined)
    ]
    taken += [at for one in chart.series for point in one.points for at in _whiskers(point, place)]
    found = []
    for one in chart.series:
        points = []
        for point in one.points:
            if point.label:
                side, middle = _freest(place(point), taken)
                taken.append(middle)
                points.append(point.model_copy(update={"side": side}))
            else:
                points.append(point)
        found.append(one.model_copy(update={"points": tuple(points)}))
    return tuple(found)


def _path(places: Sequence[Place], *, joined: bool) -> Iterator[Place]:
    yield from places
    for (x_a, y_a), (x_b, y_b) in pairwise(places) if joined else ():
        for step in range(1, _STEPS):
            share = step / _STEPS
            yield x_a + (x_b - x_a) * share, y_a + (y_b - y_a) * share


def _whiskers(point: ChartPoint, place: Callable[[ChartPoint], Place]) -> Iterator[Place]:
    for low, high, field in ((point.low, point.high, "y"), (point.x_low, point.x_high, "x")):
        if low is not None and high is not None:
            ends = [place(point.model_copy(update={field: end})) for end in (low, high)]
            yield from _path(ends, joined=True)


def _freest(at: Place, taken: Sequence[Place]) -> tuple[Side, Place]:
    """The side whose label is farthest from its nearest neighbour; the first of equals."""
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
