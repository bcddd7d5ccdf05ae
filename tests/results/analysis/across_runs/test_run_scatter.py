"""The scatter from run to run, by simulation with fixed seeds."""

from __future__ import annotations

import math
import random

import pytest

from weighbridge.results.analysis.across_runs.runs_comparison import RUNS, across_runs
from weighbridge.results.statistics import TTest, welch


def runs(
    draw: random.Random, count: int, between: float, apart: float = 0.0
) -> tuple[TTest, list[float]]:
    """B vs A, and the means of A and of `count` - 1 earlier runs: five repeats with 5 % scatter
    each.
    """
    made = []
    for number in range(count + 1):
        level = draw.gauss(0, between) + (apart if number == count else 0.0)
        made.append([math.exp(level + draw.gauss(0, 0.05)) for _ in range(5)])
    return welch(made[-1], made[0]), [sum(map(math.log, one)) / 5 for one in made[:-1]]


@pytest.mark.parametrize("count", [3, pytest.param(4, marks=pytest.mark.test_all), 8])
@pytest.mark.parametrize("between", [0.0, pytest.param(0.03, marks=pytest.mark.test_all), 0.1])
def test_runs_of_the_same_thing_are_called_different_at_most_5_times_in_100(
    count: int, between: float
) -> None:
    draw, called, alone = random.Random(6), 0, 0
    for _ in range(1000):
        tested, means = runs(draw, count, between)
        alone += tested.p <= 0.05
        called += across_runs(tested, means).p <= 0.05
    assert called <= 0.06 * 1000
    if between == 0.1:
        assert alone >= 0.4 * 1000  # repeats of the two runs alone


def test_a_change_beyond_the_scatter_of_runs_is_found() -> None:
    draw = random.Random(7)
    found = sum(
        across_runs(*runs(draw, 6, 0.03, apart=-0.3)).p_beyond(1.05) <= 0.05 for _ in range(300)
    )
    assert found >= 0.9 * 300


def test_earlier_runs_that_happen_to_agree_make_nothing_more_certain() -> None:
    tested = welch([9.0, 10.0, 11.0, 10.5, 9.5], [8.0, 9.0, 10.0, 9.5, 8.5])
    wide = across_runs(tested, [0.1, 0.1, 0.1])
    assert wide.error == tested.error
    assert (wide.freedom, wide.difference) == (RUNS - 1, tested.difference)
    with pytest.raises(ValueError, match="2 runs give no scatter"):
        across_runs(tested, [0.1, 0.2])
