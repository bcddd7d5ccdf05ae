"""Runs of which a figure is far outside those of its neighbours: named, and called no change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from itertools import groupby, pairwise
from statistics import median
from typing import Final, Literal, Protocol

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from weighbridge.common.record import Record
from weighbridge.results.analysis.history.change_points import ChangePoint
from weighbridge.results.analysis.history.run_series import RunSeries, SeriesCell
from weighbridge.results.doubt import Doubt, doubt_brief
from weighbridge.results.figures import counted, show_percent
from weighbridge.results.metrics import METRICS, MetricKey

# Figures far outside those of their neighbours, in one run: peaks and dips that no lasting change
# is made of, and that a search for changes passes over.
#
# By the modified z-score, 0.6745 (x - median) / MAD, of the logarithm of a figure among its
# nearest neighbours at the same level, of which some may be outliers too without hiding it. B.
# Iglewicz and D. C. Hoaglin (How to Detect and Handle Outliers, ASQC 1993) call beyond 3.5 an
# outlier. That is for many figures: of few, the median absolute deviation (MAD) is often small by
# chance, so that the bound is wider by the inverse of their number.
# `benchmarks/history_changes.py` chose by how much.


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


class Outlying(Record):
    """How far a figure is outside those of its neighbours."""

    middle: PositiveFloat
    """The median of its neighbours."""
    low: NonNegativeFloat
    high: PositiveFloat
    """Their interval: a figure in it is no outlier."""
    neighbours: PositiveInt
    z: float | None
    """Its modified z-score; None: its neighbours are all alike."""


class OutlyingFigure(Outlying):
    """A figure of a series that is far outside those of its neighbours."""

    at: NonNegativeInt
    """Its number in the series, from 0."""


def outlying(
    values: Sequence[float],
    least: float,
    changes: Sequence[ChangePoint] = (),
    rule: OutlierRule = OUTLIER_RULE,
) -> tuple[OutlyingFigure, ...]:
    """The outliers of figures above 0; neighbours are of one level between `changes`. `least`: what
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


class RunOutlier(Outlying, SeriesCell):
    """A figure of one run that is far outside those of its neighbours."""

    run: str
    begun: datetime
    value: PositiveFloat
    """In the metric's unit, as all of these."""
    in_a_row: PositiveInt
    """How many runs one after the other are outliers in the same direction, with this one."""
    direction: Literal["better", "worse"]
    doubts: tuple[Doubt, ...] = ()

    @property
    def ratio(self) -> float:
        return self.value / self.middle

    @property
    def words(self) -> str:
        row = "one run" if self.in_a_row == 1 else f"one of {self.in_a_row} runs in a row"
        return "; ".join(filter(None, (f"outlier, {row}", doubt_brief(self.doubts))))


def run_outliers(series: RunSeries, changes: Sequence[ChangePoint]) -> tuple[RunOutlier, ...]:
    """The outliers of a series, whose changes these are."""
    points = series.searched
    values = [one.figure.value or 0.0 for one in points]
    found = outlying(values, series.least, changes)
    rows = _rows(found, values)
    metric = METRICS[series.metric]
    cell = series.model_dump(include=set(SeriesCell.model_fields))
    return tuple(
        RunOutlier(
            **cell,
            run=points[one.at].run,
            begun=points[one.at].begun,
            value=values[one.at],
            **one.model_dump(exclude={"at"}),
            in_a_row=rows[one.at],
            direction="better" if metric.better_at(values[one.at] / one.middle) else "worse",
            doubts=points[one.at].doubts,
        )
        for one in found
    )


def _rows(found: Sequence[OutlyingFigure], values: Sequence[float]) -> dict[int, int]:
    """How long the row of outliers in one direction is that each is in, by its number."""
    up = {one.at: values[one.at] > one.middle for one in found}
    lengths: dict[int, int] = {}
    for _, same in groupby(enumerate(sorted(up)), lambda one: (one[1] - one[0], up[one[1]])):
        row = [at for _, at in same]
        lengths |= dict.fromkeys(row, len(row))
    return lengths


def outlier_words(found: Sequence[RunOutlier]) -> tuple[str, ...]:
    """A sentence for each run and layout that has outliers."""
    places: dict[tuple[datetime, str, str], list[RunOutlier]] = {}
    for one in found:
        places.setdefault((one.begun, one.run, one.label), []).append(one)
    texts = []
    for (begun, run, label), mine in sorted(places.items(), key=lambda each: each[0]):
        by_metric = {
            metric: [one for one in mine if one.metric == metric]
            for metric in dict.fromkeys(one.metric for one in mine)
        }
        figures = "; ".join(in_cells(metric, some) for metric, some in by_metric.items())
        words = ", ".join(dict.fromkeys(one.words for one in mine))
        texts.append(f"{label} in {run} ({begun:%Y-%m-%d}): {words}: {figures}")
    return tuple(texts)
