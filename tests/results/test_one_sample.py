"""Tests of one sample of ratios vs published values, and by simulation with fixed seeds."""

from __future__ import annotations

import itertools
import math
import random
from importlib import import_module
from typing import Any

import pytest

from sleep_data import SLEEP
from weighbridge.results.statistics import TTest, one_sample, signed_rank_p


def test_the_one_sample_test_matches_r_on_the_paired_sleep_data() -> None:
    # R, t.test(extra ~ group, data = sleep, paired): t = -4.0621, df = 9, p-value = 0.002833,
    # interval -2.4598858 to -0.7001142
    tested = one_sample([one - other for one, other in zip(*SLEEP, strict=True)])
    assert tested.difference / tested.error == pytest.approx(-4.0621, abs=5e-5)
    assert tested.p == pytest.approx(0.002833, abs=5e-7)
    measure = tested.ratio
    assert measure.low is not None
    assert measure.high is not None
    assert (math.log(measure.low), math.log(measure.high)) == pytest.approx(
        (-2.4598858, -0.7001142), abs=1e-6
    )


@pytest.mark.parametrize("repeats", [2, 3, 5, 8, 20])
def test_the_one_sample_test_and_its_intervals_match_scipy(stats: Any, repeats: int) -> None:
    draw = random.Random(repeats)
    logs = [draw.gauss(0.03, 0.05) for _ in range(repeats)]
    tested, theirs = one_sample(logs), stats.ttest_1samp(logs, 0.0)
    assert tested.p == pytest.approx(float(theirs.pvalue))
    for confidence in (0.90, 0.95, 0.9875):
        measure, interval = tested.ratio_at(confidence), theirs.confidence_interval(confidence)
        assert measure.repeats == repeats
        assert (measure.low, measure.high) == pytest.approx(
            (math.exp(interval.low), math.exp(interval.high))
        )


@pytest.mark.parametrize("repeats", [5, 6, 8, 12])
def test_the_signed_rank_test_counts_every_sign(stats: Any, repeats: int) -> None:
    draw = random.Random(repeats)
    logs = [draw.gauss(0.02, 0.05) for _ in range(repeats)]
    ranks = sorted(range(repeats), key=lambda number: abs(logs[number]))
    positive = sum(rank for rank, number in enumerate(ranks, start=1) if logs[number] > 0)
    total = repeats * (repeats + 1) // 2
    sums = [
        sum(rank for rank, sign in enumerate(signs, start=1) if sign)
        for signs in itertools.product((False, True), repeat=repeats)
    ]
    tail = sum(one <= min(positive, total - positive) for one in sums)
    assert signed_rank_p(logs) == pytest.approx(min(1.0, 2 * tail / 2**repeats))
    assert signed_rank_p(logs) == pytest.approx(float(stats.wilcoxon(logs, method="exact").pvalue))


def test_five_trials_cannot_reach_a_signed_rank_test_of_5_percent_and_six_can() -> None:
    assert signed_rank_p([0.1, 0.2, 0.3, 0.4, 0.5]) == pytest.approx(2 / 32)
    assert signed_rank_p([-0.1, -0.2, -0.3, -0.4, -0.5, -0.6]) == pytest.approx(2 / 64)


def test_the_signed_rank_test_leaves_zeros_out_and_takes_equal_values(stats: Any) -> None:
    assert signed_rank_p([0.0, 0.0]) == 1.0
    assert signed_rank_p([0.0, 0.1, 0.2, 0.3, 0.4, 0.5]) == signed_rank_p([0.1, 0.2, 0.3, 0.4, 0.5])
    # By hand: the ranks are all 3.5, so the sum is as far out if no sign differs, or one.
    assert signed_rank_p([0.1, 0.1, 0.1, 0.1, 0.1, -0.1]) == pytest.approx(2 * 7 / 64)
    draw = random.Random(3)
    many = [draw.gauss(0.02, 0.05) for _ in range(80)]
    theirs = stats.wilcoxon(many, method="asymptotic", correction=False)
    assert signed_rank_p(many) == pytest.approx(float(theirs.pvalue))
    with pytest.raises(ValueError, match="at least one"):
        signed_rank_p([])


@pytest.mark.parametrize(
    ("repeats", "level"), [(5, 0.05), (5, 0.0125), (8, 0.0125), (8, 0.05 / 60), (12, 0.05)]
)
def test_the_smallest_effect_of_one_sample_matches_scipys_noncentral_t(
    stats: Any, repeats: int, level: float
) -> None:
    brentq = import_module("scipy.optimize").brentq
    edge = stats.t.ppf(1 - level / 2, repeats - 1)
    wanted = brentq(lambda apart: stats.nct.sf(edge, repeats - 1, apart) - 0.8, 0, 100)
    tested = one_sample([0.05 * (-1) ** number + 0.01 for number in range(repeats)])
    assert math.log(tested.smallest_seen(level)) == pytest.approx(wanted * tested.error, rel=1e-5)


def test_the_smallest_effect_of_one_sample_matches_r() -> None:
    # R, power.t.test(delta = 0.5, sd = 1, power = 0.8, type = "one.sample"): n = 33.36713
    def smallest(repeats: int) -> float:
        tested = TTest(
            difference=0.5, error=1 / math.sqrt(repeats), freedom=repeats - 1, repeats=repeats
        )
        return math.log(tested.smallest_seen())

    assert smallest(33) > 0.5 > smallest(34)


def test_the_smallest_effect_of_one_sample_is_found_about_8_times_in_10() -> None:
    level, draw = 0.05 / 4, random.Random(12)
    apart = math.log(
        TTest(difference=0.5, error=0.05 / math.sqrt(8), freedom=7, repeats=8).smallest_seen(level)
    )
    shown = sum(
        one_sample([draw.gauss(apart, 0.05) for _ in range(8)]).p <= level for _ in range(2000)
    )
    assert 0.77 <= shown / 2000 <= 0.83


def test_ratios_without_spread_have_an_interval_of_one_value() -> None:
    apart, alike = one_sample([0.5, 0.5, 0.5]), one_sample([0.0, 0.0])
    assert (apart.p, alike.p, apart.smallest_seen()) == (0.0, 1.0, 1.0)
    assert (apart.ratio.low, apart.ratio.high) == pytest.approx((math.exp(0.5), math.exp(0.5)))


def test_a_single_ratio_and_an_impossible_level_are_refused() -> None:
    with pytest.raises(ValueError, match="no spread"):
        one_sample([0.1])
    with pytest.raises(ValueError, match="level of 0"):
        one_sample([0.1, 0.2]).smallest_seen(0)


def test_a_huge_spread_of_ratios_gives_no_overflow() -> None:
    wild = one_sample([-600.0, 600.0])
    assert wild.ratio.high == pytest.approx(math.exp(300))
    assert wild.smallest_seen() < math.inf
