"""The scatter from run to run: what repeats of one run cannot show, since none of them is of another day.

Repeats of a run share its start, its files on the disks and the state of the machine; two runs of the same thing therefore differ
by more than either's repeats say, and their comparison alone calls 17 to 66 % of pairs of such runs different somewhere. With
earlier runs of the same thing as A, the scatter is known: A and these are values of one kind, B is one more. The standard error of
A against B is then at least the standard deviation of the runs times the root of two (which has the repeats' own part in it), and
no more is known of it than so many runs tell: their number less one are its degrees of freedom. How often B, unchanged, is called
worse by this: benchmarks/claims.py, table in docs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import stdev
from typing import Final

from weighbridge.results.statistics import Welch

RUNS: Final = 3
"""Runs of the same thing, A among them, that tell a scatter from run to run; two tell one difference."""


def across_runs(tested: Welch, runs: Sequence[float]) -> Welch:
    """A comparison of B with A, made wide enough for what differs from run to run.

    `runs` are logarithms of the same figure of at least RUNS runs of the same thing, A among them. Raises ValueError for fewer.
    """
    if len(runs) < RUNS:
        raise ValueError(f"{len(runs)} runs tell no scatter from run to run: {RUNS} are wanted")
    return Welch(
        difference=tested.difference,
        error=max(tested.error, stdev(runs) * math.sqrt(2)),
        freedom=min(tested.freedom, len(runs) - 1),
        repeats=tested.repeats,
    )
