"""A repeat that lies far from the others: a remark beside a figure, never a reason to leave it out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean, stdev

from weighbridge.results.statistics import t_quantile


def outlier(values: Sequence[float], level: float = 0.01) -> int | None:
    """Which one of the values, all above 0, lies so far from the others that so few sets of normal logarithms have one; None: none.

    F. E. Grubbs' two-sided test (Technometrics 11, 1969). No value is left out by it, and two far ones hide each
    other. Of fewer than 3 values nothing can be told: None. Raises ValueError for a value that is not above 0.
    """
    logs = [math.log(value) for value in values]
    count = len(logs)
    if count < 3 or min(logs) == max(logs):
        return None
    middle, spread = mean(logs), stdev(logs)
    farthest = max(range(count), key=lambda number: abs(logs[number] - middle))
    t = t_quantile(1 - level / (2 * count), count - 2)
    bound = (count - 1) / math.sqrt(count) * math.sqrt(t**2 / (count - 2 + t**2))
    return farthest if abs(logs[farthest] - middle) / spread > bound else None


def outlier_words(values: Sequence[tuple[int, float]]) -> tuple[str, ...]:
    """That the throughput of a repeat lies far from the others, of pairs of a repeat's number from 0 and its throughput."""
    found = outlier([value for _, value in values]) if all(value > 0 for _, value in values) else None
    return (
        () if found is None else (f"the throughput of repeat {values[found][0] + 1} lies far from the others (Grubbs’ test, 1 %)",)
    )
