"""The noise floor of a machine: how far a layout differs from itself, measured twice in every block
(an A/A control).

A layout and its A/A control are the same, so their differences are noise. A difference between two
layouts that is no larger cannot be detected on this machine, however certain its test is.

Each repeat of the layout and the control's repeat in the same block are a pair. 95 % of the means
over a cell's pairs lie within Student's quantile of their standard error, over all cells: that is
the floor. It is an estimate, with the 95 % interval of a variance (chi-square). The maximum of some
samples, which grows with every cell, would not be an estimate of anything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from statistics import fmean
from typing import Final

from weighbridge.results.analysis.comparison import Effect, NoiseFloor
from weighbridge.results.analysis.contrast import comparable, reason
from weighbridge.results.analysis.kinds import kind_of
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.steps.visit import Point
from weighbridge.results.metrics import Metric, compared
from weighbridge.results.probability import chi_square_quantile
from weighbridge.results.record.step import UNLIKE
from weighbridge.results.statistics import (
    CONFIDENCE,
    FARTHEST,
    LEVEL,
    corrected,
    one_sample,
    t_quantile,
)

REASONS: Final = 2
"""How many reasons to give why a control could not be used."""


def floors(rows: Sequence[Row], controls: Mapping[str, str]) -> tuple[NoiseFloor, ...]:
    """The noise floor of each metric by each A/A control; none if no cell is comparable."""
    found = (
        _floor(rows, metric, layout, control)
        for control, layout in controls.items()
        for metric in compared()
    )
    return tuple(floor for floor in found if floor is not None)


def unused(
    rows: Sequence[Row], controls: Mapping[str, str], found: Sequence[NoiseFloor]
) -> tuple[str, ...]:
    """A sentence with the reason for each A/A control that gives no noise floor."""
    return tuple(
        _why(rows, layout, control)
        for control, layout in controls.items()
        if all(floor.control != control for floor in found)
    )


def _why(rows: Sequence[Row], layout: str, control: str) -> str:
    sides = [row for row in rows if row.layout in (layout, control) and not comparable(row)]
    notes = [
        note for row in rows if row.layout == control for one in row.used for note in _unlike(one)
    ]
    found = list(dict.fromkeys((*(f"{row.layout}: {reason(row)}" for row in sides), *notes)))
    more = f"; and {len(found) - REASONS} more" if len(found) > REASONS else ""
    why = (
        f"{'; '.join(found[:REASONS])}{more}"
        if found
        else "it needs two repeats of each, in the same blocks"
    )
    return (
        f"The noise floor of this machine is unknown: {control}, the A/A control of {layout}, "
        f"could not be used ({why})."
    )


def floor_of(noise: Sequence[NoiseFloor], one: Effect) -> float | None:
    """The noise floor for an effect; None without an A/A control, and for latencies in bins."""
    if one.bins is not None:
        return None
    return max((floor.ratio for floor in noise if floor.metric == one.metric), default=None)


def _floor(rows: Sequence[Row], metric: Metric, layout: str, control: str) -> NoiseFloor | None:
    cells = []
    for _, group in groupby((row for row in rows if row.layout in (layout, control)), key=kind_of):
        kind = list(group)
        one, again = (
            {row.workers: row for row in kind if row.layout == name} for name in (layout, control)
        )
        cells += [
            _pairs(metric, row, again[workers]) for workers, row in one.items() if workers in again
        ]
    known = [cell for cell in cells if len(cell) >= 2]
    if not known:
        return None
    repeats = min(len(cell) for cell in known)
    ratio, low, high = floor_of_pairs(known)
    q_values = corrected([one_sample(cell).p for cell in known])
    return NoiseFloor(
        metric=metric.key,
        layout=layout,
        control=control,
        ratio=ratio,
        low=low,
        high=high,
        pairs=sum(len(cell) for cell in known),
        cells=len(known),
        shown=sum(q <= LEVEL for q in q_values),
        repeats=repeats,
    )


def _pairs(metric: Metric, row: Row, again: Row) -> list[float]:
    """Logarithms of the ratio of a repeat to the other side's repeat in the same block."""
    if not comparable(row, again):
        return []
    one, other = (
        {
            point.repeat: value
            for point in side.used
            if (value := point.value(metric.key)) and not _unlike(point)
        }
        for side in (row, again)
    )
    return [math.log(value / other[repeat]) for repeat, value in one.items() if repeat in other]


def _unlike(point: Point) -> list[str]:
    return [note for note in point.notes if note.startswith(UNLIKE)]


def floor_of_pairs(cells: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """The bound, as a ratio, on 95 % of the means of these logarithms around 0, and its 95 %
    interval.

    One set for each cell, of at least 2. The standard error of a cell's mean is that of its pairs,
    or of the cells' means if these are further from 0: what all pairs of a cell share does not
    average out. Raises ValueError without pairs.
    """
    logs = [value for cell in cells for value in cell]
    if len(logs) < 2:
        raise ValueError("one value has no spread")
    repeats = min(len(cell) for cell in cells)
    of_pairs = math.fsum(value**2 for value in logs) / len(logs) / repeats
    of_means = math.fsum(fmean(cell) ** 2 for cell in cells) / len(cells)
    error = math.sqrt(max(of_pairs, of_means))
    freedom = len(logs) if of_pairs >= of_means else len(cells)
    reach = t_quantile((1 + CONFIDENCE) / 2, len(logs)) * error
    low, high = (
        math.sqrt(freedom / chi_square_quantile(freedom, share))
        for share in ((1 + CONFIDENCE) / 2, (1 - CONFIDENCE) / 2)
    )
    value, least, most = (math.exp(min(reach * times, FARTHEST)) for times in (1.0, low, high))
    return value, least, most
