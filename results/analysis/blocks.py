"""Blocks: in each, every layout is measured once, so that what the machine did in a block both sides of a comparison felt alike.

Where that is most of what repeats scatter by, each block is compared by itself (`paired`, Student's test of the differences):
the same claim then takes a much smaller difference. Where it is not, that would halve the degrees of freedom for nothing, and
Welch's test of all repeats is the better one. One rule decides for all cells of two sides, fixed beforehand: `together`, the
correlation within blocks over all cells and metrics, from TOGETHER up. It is the machine's, not a cell's; chosen for each cell
by itself it would make intervals too narrow. Chosen over the run it does not: see docs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from weighbridge.results.statistics import Welch, one_sample

TOGETHER: Final = 0.5
"""From this correlation on differences of pairs scatter so much less that the freedom lost is worth it at 5 blocks."""

Sides = tuple[Sequence[float], Sequence[float]]
"""Figures above 0 of two sides in the same blocks, in the blocks' order: as many of each."""


def together(cells: Iterable[Sides]) -> float:
    """How far two sides' logarithms go up and down together from block to block, over all cells of both: from -1 to 1.

    Cells of less than 2 blocks count for nothing; 0 where nothing scatters. Raises ValueError for a figure that is not above 0, and
    where the sides of a cell are not of the same length.
    """
    both, one, other = 0.0, 0.0, 0.0
    for subject, baseline in cells:
        sub, base = _scatter(subject), _scatter(baseline)
        both += math.fsum(a * b for a, b in zip(sub, base, strict=True))
        one += math.fsum(a * a for a in sub)
        other += math.fsum(b * b for b in base)
    return both / math.sqrt(one * other) if one and other else 0.0


def paired(subject: Sequence[float], baseline: Sequence[float]) -> Welch:
    """Two sides compared block by block, as a record that tells p, intervals and power as Welch's: with n - 1 degrees of freedom.

    Raises ValueError for less than 2 blocks, a figure that is not above 0, or sides of different lengths.
    """
    tested = one_sample([math.log(a) - math.log(b) for a, b in zip(subject, baseline, strict=True)])
    return Welch(difference=tested.mean, error=tested.error, freedom=tested.repeats - 1.0, repeats=tested.repeats)


def _scatter(values: Sequence[float]) -> list[float]:
    logs = [math.log(value) for value in values]
    middle = math.fsum(logs) / len(logs) if logs else 0.0
    return [log - middle for log in logs]
