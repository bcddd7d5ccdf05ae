"""Outlying repeats, vs a published example and by simulation with a fixed seed."""

from __future__ import annotations

import math
import random

import pytest

from weighbridge.results.analysis.steps.validity import outlier, outlier_words


def test_grubbs_test_finds_the_outlier_of_the_handbook() -> None:
    # NIST/SEMATECH e-Handbook 1.3.5.17.1, Tietjen and Moore's mass spectrometer: G = 2.468765 for
    # 245.57, beyond the bound
    values = [199.31, 199.53, 200.19, 200.82, 201.92, 201.95, 202.18, 245.57]
    logs = [math.exp(value / 100) for value in values]
    assert outlier(logs) == 7
    # The two-sided bound at 1 % of 8 values is 2.274: an eighth that is nearer has G = 2.265, one
    # that is farther 2.289.
    assert outlier([*logs[:7], math.exp(2.080)]) is None
    assert outlier([*logs[:7], math.exp(2.085)]) == 7


@pytest.mark.parametrize("count", [5, pytest.param(8, marks=pytest.mark.test_all)])
def test_one_set_of_normal_logarithms_in_a_hundred_has_an_outlier(count: int) -> None:
    draw = random.Random(5)
    sets = ([math.exp(draw.gauss(4, 0.1)) for _ in range(count)] for _ in range(8000))
    assert 0.006 <= sum(outlier(one) is not None for one in sets) / 8000 <= 0.014


def test_an_outlier_is_found_on_either_side_and_not_among_few_or_equal_values() -> None:
    assert outlier([100.0, 101.0, 99.0, 50.0, 102.0]) == 3
    assert outlier([100.0, 200.0, 99.0, 101.0, 102.0]) == 1
    assert outlier([1.0, 9.0]) is None
    assert outlier([7.0] * 5) is None
    with pytest.raises(ValueError, match="math domain"):
        outlier([1.0, 0.0, 2.0])


def test_the_outlying_repeat_is_counted_from_1() -> None:
    words = ("the throughput of repeat 5 is an outlier (Grubbs’ test, 1 %)",)
    assert outlier_words([(0, 100.0), (1, 101.0), (3, 99.0), (4, 50.0), (5, 102.0)]) == words
    assert outlier_words([(0, 100.0), (1, 101.0), (2, 99.0)]) == ()
    assert outlier_words([(0, 100.0), (1, 101.0), (2, 99.0), (3, 0.0)]) == ()
