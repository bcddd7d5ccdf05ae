"""The noise floor of a machine: how far a layout is from itself, measured twice in every block (an
A/A control).

Whatever differs between a layout and its control is neither's doing. A difference between two
layouts that is no larger than that is none that this machine can show, however sure its test is.

Each repeat of the layout beside that of its control is a pair. Means of a cell's pairs stay 95
times in 100 within Student's quantile of their standard error, over all cells: that is the floor.
It is an estimate, whose own 95 % interval is that of a variance (chi-square). The worst of some
draws, which grows with every cell, is no such figure.
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
from weighbridge.results.metrics import Metric, compared
from weighbridge.results.statistics import (
    CONFIDENCE,
    FARTHEST,
    LEVEL,
    corrected,
    one_sample,
    t_quantile,
)

REASONS: Final = 2
"""As many are told of why a control could not be used."""


def floors(rows: Sequence[Row], twins: Mapping[str, str]) -> tuple[NoiseFloor, ...]:
    """The noise floor of each metric, by each control; nothing where no cell of the two could be
    compared.
    """
    found = (
        _floor(rows, metric, layout, twin)
        for twin, layout in twins.items()
        for metric in compared()
    )
    return tuple(floor for floor in found if floor is not None)


def unused(
    rows: Sequence[Row], twins: Mapping[str, str], found: Sequence[NoiseFloor]
) -> tuple[str, ...]:
    """A sentence for each control that was made and gives no floor, with why."""
    return tuple(
        _why(rows, layout, twin)
        for twin, layout in twins.items()
        if all(floor.twin != twin for floor in found)
    )


def _why(rows: Sequence[Row], layout: str, twin: str) -> str:
    sides = [row for row in rows if row.layout in (layout, twin) and not comparable(row)]
    told = list(dict.fromkeys(f"{row.layout}: {reason(row)}" for row in sides))
    more = f"; and {len(told) - REASONS} more" if len(told) > REASONS else ""
    why = (
        f"{'; '.join(told[:REASONS])}{more}"
        if told
        else "it needs two repeats of each, in the same blocks"
    )
    return (
        f"The rig’s noise floor is not known: {twin}, the control of {layout}, could not be "
        f"used ({why})."
    )


def floor_of(noise: Sequence[NoiseFloor], one: Effect) -> float | None:
    """What an effect has to be beyond; None where it is not known: without an A/A control, and of
    latencies told in bins.
    """
    if one.bins is not None:
        return None
    return max((floor.ratio for floor in noise if floor.metric == one.metric), default=None)


def _floor(rows: Sequence[Row], metric: Metric, layout: str, twin: str) -> NoiseFloor | None:
    cells = []
    for _, group in groupby((row for row in rows if row.layout in (layout, twin)), key=kind_of):
        kind = list(group)
        one, again = (
            {row.workers: row for row in kind if row.layout == name} for name in (layout, twin)
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
        twin=twin,
        ratio=ratio,
        low=low,
        high=high,
        pairs=sum(len(cell) for cell in known),
        cells=len(known),
        shown=sum(q <= LEVEL for q in q_values),
        repeats=repeats,
    )


def _pairs(metric: Metric, row: Row, again: Row) -> list[float]:
    """Logarithms of how many times a repeat of the one is that of the other in the same block."""
    if not comparable(row, again):
        return []
    one, other = (
        {point.repeat: value for point in side.used if (value := point.value(metric.key))}
        for side in (row, again)
    )
    return [math.log(value / other[repeat]) for repeat, value in one.items() if repeat in other]


def floor_of_pairs(cells: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """What 95 % of the means of such logarithms of pairs, about 0, stay below, as a ratio, and the
    95 % interval of that figure.

    A set for each cell, of at least 2. The standard error of a cell's mean is that of its pairs, or
    that of the cells' own means where these lie farther from 0: what all pairs of a cell share does
    not average out. Raises ValueError of no pairs.
    """
    from scipy.special import chdtri  # noqa: PLC0415 - as the head of the file says

    logs = [value for cell in cells for value in cell]
    if len(logs) < 2:
        raise ValueError("a spread of one value is not known")
    repeats = min(len(cell) for cell in cells)
    of_pairs = math.fsum(value**2 for value in logs) / len(logs) / repeats
    of_means = math.fsum(fmean(cell) ** 2 for cell in cells) / len(cells)
    error = math.sqrt(max(of_pairs, of_means))
    freedom = len(logs) if of_pairs >= of_means else len(cells)
    reach = t_quantile((1 + CONFIDENCE) / 2, len(logs)) * error
    # chdtri(v, p) is what chi-square exceeds with probability p.
    low, high = (
        math.sqrt(freedom / float(chdtri(freedom, share)))
        for share in ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)
    )
    value, least, most = (math.exp(min(reach * times, FARTHEST)) for times in (1.0, low, high))
    return value, least, most
