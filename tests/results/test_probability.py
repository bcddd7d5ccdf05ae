"""Distribution functions are SciPy's to ten digits, over what comparisons ask of them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from scipy import special

from weighbridge.results import probability

CASES = 300


def spread(draw: random.Random, low: float, high: float) -> float:
    return math.exp(draw.uniform(math.log(low), math.log(high)))


def beta(draw: random.Random) -> tuple[float, ...]:
    return spread(draw, 0.5, 500), spread(draw, 0.5, 500), draw.uniform(0.001, 0.999)


def chi_square(draw: random.Random) -> tuple[float, ...]:
    return spread(draw, 1, 400), draw.uniform(0.001, 0.999)


def tail(draw: random.Random) -> tuple[float, ...]:
    return spread(draw, 1, 400), spread(draw, 1e-3, 60)


def quantile(draw: random.Random) -> tuple[float, ...]:
    return spread(draw, 1, 400), 1 - spread(draw, 1e-7, 0.5)


def noncentral(draw: random.Random) -> tuple[float, ...]:
    shift = spread(draw, 1e-3, 200)
    return spread(draw, 1, 100), shift, 1 + shift * draw.uniform(0.5, 2.0)


@pytest.mark.parametrize(
    ("ours", "theirs", "made"),
    [
        (probability.beta_share, special.betainc, beta),
        (probability.beta_quantile, special.betaincinv, beta),
        (
            probability.chi_square_quantile,
            lambda freedom, share: special.chdtri(freedom, 1 - share),
            chi_square,
        ),
        (probability.student_tail, lambda freedom, t: special.stdtr(freedom, -t), tail),
        (probability.student_quantile, special.stdtrit, quantile),
        (probability.noncentral_student, special.nctdtr, noncentral),
    ],
)
def test_a_distribution_function_is_scipys(
    ours: Callable[..., float],
    theirs: Callable[..., float],
    made: Callable[[random.Random], tuple[float, ...]],
) -> None:
    draw = random.Random(1)
    for _ in range(CASES):
        asked = made(draw)
        assert ours(*asked) == pytest.approx(float(theirs(*asked)), rel=1e-10, abs=1e-12), asked


def test_a_quantile_of_a_binomial_number_is_the_least_that_reaches_the_share(stats: Any) -> None:
    draw = random.Random(2)
    for _ in range(CASES):
        samples, p = round(spread(draw, 1, 1e6)), draw.choice([0.5, 0.9, 0.99, 0.999])
        share = draw.choice([0.025, 0.975])
        k = probability.binomial_quantile(samples, p, share)
        cdf = stats.binom.cdf
        assert cdf(k, samples, p) >= share > (cdf(k - 1, samples, p) if k else 0.0)


def test_the_middle_of_student_is_zero_and_far_tails_are_found() -> None:
    assert probability.student_quantile(3.0, 0.5) == 0.0
    assert probability.student_quantile(1.0, 1 - 1e-9) == pytest.approx(1e9 / math.pi, rel=1e-6)
    assert (probability.beta_share(2, 3, 0.0), probability.beta_share(2, 3, 1.0)) == (0.0, 1.0)
