"""Runs of which a figure is far outside those of its neighbours: named, and called no change."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from typing import Literal

from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt

from weighbridge.results.analysis.history.cell_words import in_cells
from weighbridge.results.analysis.history.change_points import ChangePoint
from weighbridge.results.analysis.history.outlying import OutlyingFigure, outlying
from weighbridge.results.analysis.history.run_series import RunSeries, SeriesCell
from weighbridge.results.doubt import Doubt, doubt_brief
from weighbridge.results.metrics import METRICS


class RunOutlier(SeriesCell):
    """A figure of one run that is far outside those of its neighbours."""

    run: str
    begun: datetime
    value: PositiveFloat
    """In the metric's unit, as all of these."""
    middle: PositiveFloat
    """The median of its neighbours."""
    low: NonNegativeFloat
    high: PositiveFloat
    """Their interval: a figure in it is no outlier."""
    neighbours: PositiveInt
    z: float | None
    """Its modified z-score among them; None: they are all alike."""
    in_a_row: PositiveInt
    """How many runs one after the other are outliers in the same direction, with this one."""
    direction: Literal["better", "worse"]
    doubts: tuple[Doubt, ...] = ()
    """Those of its figure."""

    @property
    def ratio(self) -> float:
        """The figure relative to the median of its neighbours."""
        return self.value / self.middle

    @property
    def words(self) -> str:
        """`outlier, one run`, with doubts about its figure."""
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
            middle=one.middle,
            low=one.low,
            high=one.high,
            neighbours=one.neighbours,
            z=one.z,
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
