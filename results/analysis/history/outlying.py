"""Figures far outside those of their neighbours, in one run: peaks and dips that no lasting change
is made of, and that a search for changes passes over.

By the modified z-score, 0.6745 (x - median) / MAD, of the logarithm of a figure among its nearest
neighbours at the same level, of which some may be outliers too without hiding it. B. Iglewicz and
D. C. Hoaglin (How to Detect and Handle Outliers, ASQC 1993) call beyond 3.5 an outlier. That is for
many figures: of few, the median absolute deviation (MAD) is often small by chance, so that the
bound is wider by the inverse of their number. `benchmarks/history_changes.py` chose by how much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Final

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from weighbridge.common.record import Record
from weighbridge.results.analysis.history.change_points import ChangePoint

_ALIKE: Final = 1e-12
SIGMAS_PER_MAD: Final = 1 / 0.6745
"""The standard deviation of a normal distribution in MADs."""


class OutlierRule(Record):
    """When a figure is an outlier."""

    z: PositiveFloat = 3.5
    """The modified z-score beyond which it is, among many neighbours."""
    few: NonNegativeFloat = 25.0
    """Among n neighbours the bound is wider by this share of 1 / n."""
    least: PositiveInt = 10
    """Neighbours that are needed."""
    most: PositiveInt = 50
    """The nearest that are looked at, as many as Otava's window has."""

    def bound(self, neighbours: int) -> float:
        """The modified z-score beyond which a figure is an outlier among so many neighbours."""
        return self.z * (1 + self.few / neighbours)


OUTLIER_RULE: Final = OutlierRule()


class OutlyingFigure(Record):
    """A figure of a series that is far outside those of its neighbours."""

    at: NonNegativeInt
    """Its number in the series, from 0."""
    middle: PositiveFloat
    """The median of its neighbours."""
    low: NonNegativeFloat
    high: PositiveFloat
    """Their interval: a figure in it is no outlier."""
    neighbours: PositiveInt
    z: float | None
    """Its modified z-score; None: its neighbours are all alike."""


def outlying(
    values: Sequence[float],
    least: float,
    changes: Sequence[ChangePoint] = (),
    rule: OutlierRule = OUTLIER_RULE,
) -> tuple[OutlyingFigure, ...]:
    """The outliers of a series of figures above 0, in order.

    `changes` are those of the series: neighbours are of the same level. `least`: a figure that
    differs from the median by no more than this share is none.
    """
    logs = [math.log(one) for one in values]
    ends = [0, *(one.at for one in changes), len(logs)]
    found = []
    for start, end in pairwise(ends):
        for at in range(start, end):
            around = range(max(start, at - rule.most), min(end, at + rule.most + 1))
            near = sorted((abs(one - at), one) for one in around if one != at)
            others = [logs[place] for _, place in near[: rule.most]]
            one = _outlying(at, logs[at], others, least, rule)
            found += [one] if one is not None else []
    return tuple(found)


def _outlying(
    at: int, log: float, near: Sequence[float], least: float, rule: OutlierRule
) -> OutlyingFigure | None:
    if len(near) < rule.least:
        return None
    middle = median(near)
    # Differences by rounding, as in a constant series, are none.
    sigma = SIGMAS_PER_MAD * median(abs(one - middle) for one in near)
    sigma = sigma if sigma > _ALIKE else 0.0
    away = log - middle
    reach = max(rule.bound(len(near)) * sigma, math.log1p(least))
    if abs(away) <= reach:
        return None
    return OutlyingFigure(
        at=at,
        middle=math.exp(middle),
        low=math.exp(middle - reach),
        high=math.exp(middle + reach),
        neighbours=len(near),
        z=away / sigma if sigma else None,
    )
