"""Comparing two sides block by block, and when to.

Each block measures every layout once, so what the machine did in a block affects both sides of a
comparison alike. If that is most of the scatter of repeats, each block is compared by itself
(`paired`, Student's test of the differences), which detects much smaller differences. If it is not,
that would halve the degrees of freedom for nothing, and Welch's test of all repeats is better. One
rule, fixed beforehand, decides for all cells of two sides: `together`, the correlation within
blocks over all cells and metrics, from TOGETHER up. It is a property of the machine, not of a cell;
deciding cell by cell would make intervals too narrow, deciding over the run does not: see
docs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from weighbridge.results.statistics import TTest, one_sample

TOGETHER: Final = 0.5
"""From this correlation on, the smaller scatter of differences outweighs the lost freedom at 5
blocks.
"""

Sides = tuple[Sequence[float], Sequence[float]]
"""Positive figures of two sides in the same blocks, in block order; equal lengths."""


def together(cells: Iterable[Sides]) -> float:
    """The correlation of two sides' logarithms from block to block, over all their cells: -1 to 1.

    Cells with fewer than 2 blocks do not count; 0 without scatter. Raises ValueError for a figure
    not above 0, or sides of different lengths.
    """
    both, one, other = 0.0, 0.0, 0.0
    for subject, baseline in cells:
        sub, base = _scatter(subject), _scatter(baseline)
        both += math.fsum(a * b for a, b in zip(sub, base, strict=True))
        one += math.fsum(a * a for a in sub)
        other += math.fsum(b * b for b in base)
    return both / math.sqrt(one * other) if one and other else 0.0


def paired(subject: Sequence[float], baseline: Sequence[float]) -> TTest:
    """Two sides compared block by block, with n - 1 degrees of freedom.

    Raises ValueError for fewer than 2 blocks, a figure not above 0, or sides of different lengths.
    """
    return one_sample([math.log(a) - math.log(b) for a, b in zip(subject, baseline, strict=True)])


def _scatter(values: Sequence[float]) -> list[float]:
    logs = [math.log(value) for value in values]
    middle = math.fsum(logs) / len(logs) if logs else 0.0
    return [log - middle for log in logs]
