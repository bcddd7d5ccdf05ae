"""Comparing within blocks, and when to: vs SciPy's paired test, and by simulation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from weighbridge.results.analysis.contrast import TOGETHER, paired, together
from weighbridge.results.statistics import TTest, welch


def test_comparing_within_blocks_is_students_paired_test(stats: Any) -> None:
    one, other = [110.0, 95.0, 130.0, 120.0, 100.0], [100.0, 90.0, 115.0, 118.0, 93.0]
    theirs = stats.ttest_rel(np.log(one), np.log(other))
    tested = paired(one, other)
    assert (tested.p, tested.freedom, tested.repeats) == (pytest.approx(theirs.pvalue), 4.0, 5)
    low, high = theirs.confidence_interval(0.95)
    assert tested.ratio.low == pytest.approx(math.exp(low))
    assert tested.ratio.high == pytest.approx(math.exp(high))


def test_together_is_the_correlation_within_blocks_over_all_cells() -> None:
    assert together([([1.0, 2.0, 4.0], [10.0, 20.0, 40.0])]) == pytest.approx(1.0)
    assert together([([1.0, 2.0, 4.0], [4.0, 2.0, 1.0])]) == pytest.approx(-1.0)
    # A second cell with the opposite correlation cancels it; levels do not matter.
    assert together([([1.0, 2.0], [1.0, 2.0]), ([70.0, 140.0], [2.0, 1.0])]) == pytest.approx(0.0)
    logs = np.random.default_rng(3).normal(size=(2, 9))
    assert together([(list(np.exp(logs[0])), list(np.exp(logs[1])))]) == pytest.approx(
        np.corrcoef(logs)[0, 1]
    )
    assert together([]) == together([([5.0, 5.0], [7.0, 9.0])]) == together([([5.0], [7.0])]) == 0.0


def test_sides_of_different_blocks_are_refused() -> None:
    for wrong in (
        lambda: paired([1.0, 2.0], [1.0]),
        lambda: together([([1.0, 2.0], [1.0])]),
        lambda: paired([1.0], [1.0]),
    ):
        with pytest.raises(ValueError, match=r"shorter|one value"):
            wrong()


def by_rule(cells: list[tuple[list[float], list[float]]]) -> list[TTest]:
    way = paired if together(cells) >= TOGETHER else welch
    return [way(*cell) for cell in cells]


def cells(draw: np.random.Generator, blocks: float) -> list[tuple[list[float], list[float]]]:
    """Twelve cells of a layout vs itself, with block effects and 5 % scatter of each step."""
    common = blocks * draw.normal(size=5)
    return [
        (list(np.exp(a + common)), list(np.exp(b + common)))
        for a, b in 0.05 * draw.normal(size=(12, 2, 5))
    ]


@pytest.mark.parametrize("blocks", [0.0, 0.05, 0.1])
def test_intervals_chosen_by_the_rule_hold_the_truth_in_95_of_100_whatever_the_blocks_do(
    blocks: float,
) -> None:
    held = []
    for run in range(150):
        for one in by_rule(cells(np.random.default_rng([4, run]), blocks)):
            low, high = one.ratio.low, one.ratio.high
            held.append(low is not None and high is not None and low <= 1 <= high)
    assert 0.93 <= sum(held) / len(held) <= 0.985


def test_the_rule_pairs_where_the_machine_drifts_and_does_not_where_it_is_quiet() -> None:
    def share(of: Callable[[np.random.Generator], list[tuple[list[float], list[float]]]]) -> float:
        return (
            sum(together(of(np.random.default_rng([5, run]))) >= TOGETHER for run in range(150))
            / 150
        )

    assert share(lambda draw: cells(draw, 0.0)) <= 0.01
    assert share(lambda draw: cells(draw, 0.1)) >= 0.85
