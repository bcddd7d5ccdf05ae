"""Distribution functions and their quantiles, as comparisons need them: beta, gamma, Student's t
(also noncentral) and binomial.

SciPy has all of them and takes more room than the rest of a client together. Here they are to ten
digits or more, as the tests check with SciPy's.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Final

_CLOSE: Final = 4e-16
"""Relative error at which a series or a search ends."""
_TERMS: Final = 1_000_000
_TINY: Final = 1e-300
_FAR: Final = 30.0
"""The noncentrality from which the terms of the series become too small to begin with."""
_NORMAL: Final = NormalDist()


def beta_share(a: float, b: float, x: float) -> float:
    """The share of a beta distribution up to x: the regularised incomplete beta function."""
    return _beta(a, b, x, 1 - x)


def beta_quantile(a: float, b: float, share: float) -> float:
    """The x that this share of a beta distribution, above 0 and below 1, is up to."""
    return root(lambda x: beta_share(a, b, x) - share, 0.0, 1.0)


def chi_square_quantile(freedom: float, share: float) -> float:
    """The value that this share of a chi-square distribution, above 0 and below 1, is up to."""
    high = freedom + 10.0
    while _gamma(freedom / 2, high / 2) < share:
        high *= 2
    return root(lambda value: _gamma(freedom / 2, value / 2) - share, 0.0, high)


def student_tail(freedom: float, t: float) -> float:
    """The share of Student's t above t >= 0."""
    square = t * t
    return _beta(freedom / 2, 0.5, freedom / (freedom + square), square / (freedom + square)) / 2


def student_quantile(freedom: float, share: float) -> float:
    """The t that this share of Student's t, at least 0.5 and below 1, is up to."""
    if share == 0.5:
        return 0.0
    wanted, high = math.log1p(-share), 1.0
    while student_tail(freedom, math.expm1(high)) > 1 - share:
        high += 2.0
    # On these scales it is nearly a line, also where tails are heavy.
    at = root(lambda x: math.log(student_tail(freedom, math.expm1(x))) - wanted, 0.0, high)
    return math.expm1(at)


def noncentral_student(freedom: float, shift: float, t: float) -> float:
    """The share of the noncentral t up to t > 0, with a noncentrality of at least 0."""
    if shift > _FAR:
        # T <= t where (Z + shift) / t <= S: averaged over the normal Z, of which no more than 9
        # standard deviations count. The trapezoid rule is exact here to all digits.
        step = 0.25
        return math.fsum(
            step
            * _NORMAL.pdf(number * step)
            * (1 - _gamma(freedom / 2, freedom * ((number * step + shift) / t) ** 2 / 2))
            for number in range(-36, 37)
        )
    # R. V. Lenth, Applied Statistics 38 (1989), algorithm AS 243.
    x, rest = t * t / (t * t + freedom), freedom / (t * t + freedom)
    half, b = shift * shift / 2, freedom / 2
    even = math.exp(-half)
    odd = shift * even * math.sqrt(2 / math.pi)
    of_even, of_odd = _beta(0.5, b, x, rest), -math.expm1(b * math.log(rest))
    less_even = math.exp(_log_inverse_beta(0.5, b) + 0.5 * math.log(x) + b * math.log(rest)) * 2
    less_odd = b * x * math.exp(b * math.log(rest))
    total, left = 0.0, 1.0
    for number in range(_TERMS):
        total += even * of_even + odd * of_odd
        left -= even
        if number > half and left * of_even < 1e-14:
            break
        of_even, of_odd = of_even - less_even, of_odd - less_odd
        less_even *= x * (number + 0.5 + b) / (number + 1.5)
        less_odd *= x * (number + 1 + b) / (number + 2)
        even *= half / (number + 1)
        odd *= half / (number + 1.5)
    return min(1.0, _NORMAL.cdf(-shift) + total / 2)


# The steps of a run are read several times, and each of their intervals has some ends.
@functools.lru_cache(maxsize=4096)
def binomial_quantile(samples: int, p: float, share: float) -> int:
    """The least k that a binomial number is at most with probability `share`, in (0, 1) as p."""
    spread = math.sqrt(samples * p * (1 - p))
    guess = round(samples * p + _NORMAL.inv_cdf(share) * spread)
    k = min(max(guess, 0), samples)
    odds = p / (1 - p)
    term = math.exp(
        math.lgamma(samples + 1)
        - math.lgamma(k + 1)
        - math.lgamma(samples - k + 1)
        + k * math.log(p)
        + (samples - k) * math.log1p(-p)
    )
    below, least = 0.0, term
    for smaller in range(k, -1, -1):
        below += least
        if least < below * _CLOSE:
            break
        least *= smaller / (samples - smaller + 1) / odds
    while k > 0 and below - term >= share:
        below -= term
        term *= k / (samples - k + 1) / odds
        k -= 1
    while below < share and k < samples:
        term *= (samples - k) / (k + 1) * odds
        k += 1
        below += term
    return k


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a continuous function that has other signs at `low` and `high` is 0.

    By T. R. Chandrupatla, Advances in Engineering Software 28 (1997): inverse quadratic
    interpolation where it converges, bisection elsewhere.
    """
    one, other = low, high
    at_one, at_other = function(one), function(other)
    if at_one == 0 or at_other == 0:
        return one if at_one == 0 else other
    part = 0.5
    while True:
        here = one + part * (other - one)
        at_here = function(here)
        if (at_here > 0) == (at_one > 0):
            third, at_third = one, at_one
        else:
            third, at_third, other, at_other = other, at_other, one, at_one
        one, at_one = here, at_here
        best = one if abs(at_one) < abs(at_other) else other
        least = (2 * _CLOSE * abs(best) + _TINY) / abs(other - one)
        if least >= 0.5 or at_here == 0:
            return best
        near, way = (one - other) / (third - other), (at_one - at_other) / (at_third - at_other)
        part = 0.5
        if near > 0 and 1 - math.sqrt(1 - near) < way < math.sqrt(near):
            part = at_one / (at_other - at_one) * at_third / (at_other - at_third) + (
                third - one
            ) / (other - one) * at_one / (at_third - at_one) * at_other / (at_third - at_other)
        part = min(max(part, least), 1 - least)


def _log_inverse_beta(a: float, b: float) -> float:
    return math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)


def _beta(a: float, b: float, x: float, rest: float) -> float:
    """`beta_share` with `rest`, 1 - x, as exact as it is known."""
    if x <= 0 or rest <= 0:
        return float(x > 0)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_below(b, a, rest, x)
    return _beta_below(a, b, x, rest)


def _beta_below(a: float, b: float, x: float, rest: float) -> float:
    """The continued fraction of Abramowitz and Stegun, 26.5.8, by Lentz's method."""
    front = math.exp(_log_inverse_beta(a, b) + a * math.log(x) + b * math.log(rest)) / a
    up, down = 1.0, 1 / (1 - (a + b) * x / (a + 1) or _TINY)
    value = down
    for m in range(1, _TERMS):
        for factor in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            down = 1 / (1 + factor * down or _TINY)
            up = 1 + factor / up or _TINY
            value *= down * up
        if abs(down * up - 1) < _CLOSE:
            break
    return front * value


def _gamma(a: float, x: float) -> float:
    """A gamma distribution's share up to x (Abramowitz and Stegun, 6.5.29 and 6.5.31)."""
    if x <= 0:
        return 0.0
    front = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        for number in range(1, _TERMS):
            term *= x / (a + number)
            total += term
            if term < total * _CLOSE:
                break
        return front * total
    base = x + 1 - a
    up, down = 1 / _TINY, 1 / base
    value = down
    for number in range(1, _TERMS):
        factor = -number * (number - a)
        base += 2
        down = 1 / (factor * down + base or _TINY)
        up = base + factor / up or _TINY
        value *= down * up
        if abs(down * up - 1) < _CLOSE:
            break
    return 1 - front * value
