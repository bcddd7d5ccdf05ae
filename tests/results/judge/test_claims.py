"""What complete runs claim: fewer runs of the program behind the tables of docs/statistics.md."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3]))
from benchmarks.claims import REGIMES, ClaimTally, add, alone, day, worse

RUNS = 120


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        "equal, 5 %",
        pytest.param("unequal, 3 and 20 %", marks=pytest.mark.test_all),
        pytest.param("drift: the machine by 10 % a block", marks=pytest.mark.test_all),
        pytest.param("bursts in 15 %, one loses 26 %", marks=pytest.mark.test_all),
    ],
)
def test_runs_of_a_layout_vs_itself_rarely_claim_anything(name: str) -> None:
    regime, tally = next(one for one in REGIMES if one.name == name), ClaimTally()
    for run in range(RUNS):
        add(tally, regime, np.random.default_rng([7, run]))
    assert tally.claiming <= 0.05 * RUNS, regime.name
    assert 0.92 <= tally.held / tally.intervals <= 0.98, regime.name
    # 80 in 100, and what chance adds or takes in so few
    assert 0.68 <= tally.found / tally.promised <= 0.92, regime.name
    assert tally.equivalent <= 0.05 * tally.at_bound, regime.name


@pytest.mark.long
@pytest.mark.test_all
def test_differing_days_are_no_regression_given_earlier_runs() -> None:
    draw, pairs, lone, known, found = np.random.default_rng(8), 60, 0, 0, 0
    for _ in range(pairs):
        a, b, slow = day(draw, 0.10), day(draw, 0.10), day(draw, 0.10, slower=math.log(2))
        earlier = [day(draw, 0.10) for _ in range(4)]
        lone += alone(a, b)
        known += worse(a, b, earlier)
        found += worse(a, slow, earlier)
        assert not worse(a, slow, earlier[:1])  # neither found nor ruled out
    assert lone >= 0.2 * pairs
    assert known <= 0.05 * pairs
    assert found >= 0.7 * pairs
