from __future__ import annotations

import math
import random

import pytest

from results.statistics import geometric_mean, ratio, t_quantile


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(1, 12.7062), (2, 4.30265), (4, 2.77645), (8, 2.30600), (30, 2.04227), (1000, 1.96234)]
)
def test_quantiles_of_t_are_those_of_the_tables(freedom: float, quantile: float) -> None:
    assert t_quantile(0.975, freedom) == pytest.approx(quantile, rel=2e-6)


def test_a_ratio_is_of_geometric_means_with_welchs_interval() -> None:
    measure = ratio([10, 12, 11], [5, 5.5, 6])
    # By hand: logs of a have mean 2.395263, variance 0.008319; those of b 1.702116, 0.008318; 4 degrees of freedom.
    assert measure.value == pytest.approx(2.0, rel=1e-3)
    reach = 2.77645 * math.sqrt(2 * 0.0083138 / 3)
    assert measure.low == pytest.approx(measure.value * math.exp(-reach), rel=2e-3)
    assert measure.high == pytest.approx(measure.value * math.exp(reach), rel=2e-3)
    assert measure.shown
    assert not measure.claim


def test_a_single_repeat_has_a_ratio_but_no_interval_and_no_claim() -> None:
    measure = ratio([20], [10, 11])
    assert (measure.low, measure.high, measure.repeats, measure.shown, measure.claim) == (None, None, 1, False, False)


def test_repeats_without_any_spread_have_an_interval_of_one_value() -> None:
    measure = ratio([2, 2], [1, 1])
    assert (measure.low, measure.value, measure.high) == pytest.approx((2, 2, 2))


def test_the_interval_holds_the_truth_about_95_times_in_100() -> None:
    draw = random.Random(7)
    inside = 0
    for _ in range(300):
        a = [2 * math.exp(draw.gauss(0, 0.1)) for _ in range(5)]
        b = [math.exp(draw.gauss(0, 0.05)) for _ in range(5)]
        measure = ratio(a, b)
        inside += (measure.low or 9) <= 2 <= (measure.high or 0)
    assert 0.92 <= inside / 300 <= 0.98


def test_five_repeats_that_differ_make_a_claim_and_equal_ones_do_not() -> None:
    assert ratio([20, 21, 20, 22, 21], [10, 11, 10, 10, 11]).claim
    assert not ratio([20, 21, 20, 22, 21], [21, 20, 22, 20, 21]).claim


@pytest.mark.parametrize("values", [[], [0.0], [1.0, -1.0]])
def test_values_that_have_no_logarithm_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="above 0"):
        geometric_mean(values)


def test_a_huge_spread_gives_a_wide_interval_and_no_overflow() -> None:
    measure = ratio([1, 1e9], [1, 1])
    assert measure.low is not None
    assert measure.high is not None
    assert measure.low < 1e-3
    assert measure.high > 1e6
    assert not measure.shown
    assert not ratio([1e9, 1e18], [1, 1]).shown
