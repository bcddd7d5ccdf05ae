"""The statistics of a comparison: Welch's interval and test on logarithms, and the correction for
multiple tests.

Throughputs and latencies of repeats differ by factors rather than by sums, so their logarithms are
compared. Welch's interval (B. L. Welch, Biometrika 34, 1947) keeps its coverage at 2 to 10 repeats,
where bootstrap intervals are too narrow.

A difference is claimed if its interval lies beyond the practical threshold on one side.
`TTest.p_beyond` expresses this as a p-value, so that `corrected` can adjust all tests of a run
together: a claim has q <= LEVEL. That is Benjamini and Yekutieli's interval at confidence 1 - LEVEL
* claims / tests (J. Am. Stat. Assoc. 100, 2005) beyond the threshold. Two sides are equivalent if
the 95 % interval lies within it: D. J. Schuirmann's two one-sided tests (J. Pharmacokinet.
Biopharm. 15, 1987) at 2.5 %. Error rates of both: benchmarks/claims.py, table in
docs/statistics.md.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from statistics import NormalDist, fmean
from typing import Annotated, Final

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from weighbridge.common.record import Record

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


REPEATS_FOR_A_CLAIM: Final = 5
"""With fewer repeats on either side there is no claim (3 can never reach p < 0.1 in a rank test).
"""
CONFIDENCE: Final = 0.95
LEVEL: Final = 0.05
"""The corrected p-value up to which a difference is significant."""
POWER: Final = 0.8
"""How often the smallest detectable difference would be detected."""
FARTHEST: Final = 300.0
"""Bound on logarithms: e^300 is beyond any result, and e^709 overflows."""


class Ratio(Record):
    """`a` divided by `b`: the ratio of geometric means; with 2 values each, its 95 % interval."""

    value: PositiveFloat
    low: PositiveFloat | None = None
    high: PositiveFloat | None = None
    repeats: PositiveInt
    """Number of values of the smaller side."""

    @property
    def shown(self) -> bool:
        """Whether the interval excludes 1: a difference was found."""
        return self.low is not None and self.high is not None and not self.low <= 1 <= self.high

    @property
    def open(self) -> bool:
        """Whether there is an interval, and it includes 1: either side may be higher."""
        return self.low is not None and self.high is not None and not self.shown

    @property
    def claim(self) -> bool:
        """Whether this comparison alone may claim a difference: found, with enough repeats."""
        return self.shown and self.repeats >= REPEATS_FOR_A_CLAIM

    @property
    def either_way(self) -> float:
        """How far apart the two are, whichever is higher: at least 1."""
        return max(self.value, 1 / self.value)

    @property
    def inverted(self) -> Ratio:
        """`b` divided by `a`."""
        low, high = (None if end is None else 1 / end for end in (self.high, self.low))
        return Ratio(value=1 / self.value, low=low, high=high, repeats=self.repeats)


class TTest(Record):
    """A t test of logarithms: a difference, its standard error, and its degrees of freedom.

    For two sets `welch`, for one set of ratios `one_sample`: p-values and intervals equal those of
    scipy.stats.ttest_ind(equal_var=False) and ttest_1samp. SciPy's do not give the standard error,
    which is needed to test differences beyond a bound, the common mean of worker counts and the
    scatter from run to run.
    """

    difference: float
    error: NonNegativeFloat
    freedom: Annotated[float, Field(ge=1)]
    repeats: Annotated[int, Field(ge=2)]
    """Number of values of the smaller set."""

    @property
    def p(self) -> float:
        """The two-sided probability of such a difference by chance; 0 or 1 without spread."""
        return self.p_beyond()

    def p_beyond(self, bound: float = 1.0) -> float:
        """The probability that two sides `bound` apart come out at least this far beyond it,
        two-sided.

        `bound` is a ratio of at least 1; with 1 it is `p`. It is at most a level exactly if the
        interval at confidence 1 - level lies beyond the bound, on one side. 0 or 1 for sets without
        spread. Raises ValueError for a bound below 1.
        """
        beyond = abs(self.difference) - _log_bound(bound)
        if beyond <= 0 or self.error == 0:
            return float(beyond <= 0)
        return min(1.0, 2 * student_tail(self.freedom, beyond / self.error))

    @property
    def ratio(self) -> Ratio:
        """The difference as a ratio, with the interval that excludes 1 if p is below 0.05."""
        return self.ratio_at(CONFIDENCE)

    def ratio_at(self, confidence: float) -> Ratio:
        """The difference as a ratio, with its interval at a confidence between 0 and 1."""
        reach = min(
            t_quantile((1 + confidence) / 2, self.freedom) * self.error if self.error else 0.0,
            FARTHEST,
        )
        value, low, high = (math.exp(self.difference + way * reach) for way in (0, -1, 1))
        return Ratio(value=value, low=low, high=high, repeats=self.repeats)

    def widened(self, error: float, freedom: float = math.inf) -> TTest:
        """With a further, independent error of its difference, itself known with this freedom (F.
        E. Satterthwaite, Biometrics Bulletin 2, 1946).
        """
        own, more = self.error**2, error**2
        if not more:
            return self
        parts = own**2 / self.freedom + more**2 / freedom
        joint = (own + more) ** 2 / parts if parts else FARTHEST
        update = {"error": math.sqrt(own + more), "freedom": max(1.0, min(joint, FARTHEST))}
        return self.model_copy(update=update)

    def smallest(self, level: float = LEVEL, bound: float = 1.0) -> float:
        """The smallest ratio above 1 that a run like this would claim 8 times in 10: its interval
        at 1 - `level` lies beyond `bound`.

        `level` is what a test must reach after correction (`next_level`). The spread is estimated
        from these few repeats, and another run will estimate another: unlike `smallest_ratio` this
        includes both, without which it would hold only 6 to 7 times in 10. Raises ValueError for a
        level outside 0 < level <= 1, or a bound below 1.
        """
        known = _level(level)
        apart = _seen_again(round(self.freedom, 1), known) * self.error if self.error else 0.0
        return math.exp(min(_log_bound(bound) + apart, FARTHEST))


def one_sample(logs: Sequence[float]) -> TTest:
    """Student's test (Biometrika 6, 1908) of the logarithms of independent ratios, of a trial to
    its neighbours. Raises ValueError for fewer than 2.
    """
    if len(logs) < 2:
        raise ValueError("one value has no spread")
    error = math.sqrt(_variance(logs) / len(logs))
    return TTest(difference=fmean(logs), error=error, freedom=len(logs) - 1, repeats=len(logs))


@lru_cache(maxsize=1024)
def _seen_again(freedom: float, level: float) -> float:
    """How many standard errors, as estimated by one run, the sides must differ for POWER in
    another.

    The second run misses a difference of `apart` errors of the first where a normal number is below
    `reach` times its own estimate less `apart` times the first one's. The two estimates' shares of
    their common variance are independent of its size: so this is Student's t, with the freedom of
    both, averaged over the shares (64 quantiles of beta).
    """
    reach = t_quantile(1 - level / 2, freedom)
    edges = [
        (math.sqrt(2 * (1 - share)) * reach, math.sqrt(2 * share))
        for share in _quantiles_of_beta(freedom / 2)
    ]
    return _least(
        lambda apart: fmean(_student(2 * freedom, edge - apart * each) for edge, each in edges)
    )


def _student(freedom: float, t: float) -> float:
    """The share of Student's t up to `t`."""
    above = student_tail(freedom, abs(t))
    return 1 - above if t > 0 else above


@lru_cache(maxsize=64)
def _quantiles_of_beta(shape: float) -> tuple[float, ...]:
    """64 values that stand for a beta distribution with both parameters equal: symmetrical."""
    low = [beta_quantile(shape, shape, (number + 0.5) / 64) for number in range(32)]
    return (*low, *(1 - share for share in reversed(low)))


def _level(level: float) -> float:
    if not 0 < level <= 1:
        raise ValueError(f"no test at a level of {level}")
    return level


def _log_bound(bound: float) -> float:
    if not 1 <= bound < math.inf:
        raise ValueError(f"{bound} is not a practical threshold: give a ratio of at least 1")
    return math.log(bound)


def welch(a: Sequence[float], b: Sequence[float]) -> TTest:
    """Welch's comparison of two sets of at least 2 positive values. Raises ValueError on others."""
    logs_a, logs_b = _logs(a), _logs(b)
    if min(len(a), len(b)) < 2:
        raise ValueError("one value has no spread")
    part_a, part_b = (_variance(logs) / len(logs) for logs in (logs_a, logs_b))
    freedom = float(len(a) + len(b) - 2)
    if part_a + part_b > 0:
        # As shares of their sum, so that squaring does not underflow tiny variances.
        share_a, share_b = part_a / (part_a + part_b), part_b / (part_a + part_b)
        freedom = 1 / (share_a**2 / (len(a) - 1) + share_b**2 / (len(b) - 1))
    return TTest(
        difference=fmean(logs_a) - fmean(logs_b),
        error=math.sqrt(part_a + part_b),
        freedom=freedom,
        repeats=min(len(a), len(b)),
    )


def ratio(a: Sequence[float], b: Sequence[float]) -> Ratio:
    """The ratio of two non-empty sets of positive values. Raises ValueError on others."""
    if min(len(a), len(b)) >= 2:
        return welch(a, b).ratio
    return Ratio(
        value=math.exp(fmean(_logs(a)) - fmean(_logs(b))), repeats=max(1, min(len(a), len(b)))
    )


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean. Raises ValueError on an empty set or a value not above 0."""
    logs = _logs(values)
    return values[0] if min(values) == max(values) else math.exp(fmean(logs))


@lru_cache(maxsize=1024)
def t_quantile(share: float, freedom: float) -> float:
    """The quantile of Student's t for 0.5 <= share < 1. Raises ValueError on others."""
    if not 0.5 <= share < 1 or freedom < 1:
        raise ValueError(f"no quantile of t for share {share} and {freedom} degrees of freedom")
    return student_quantile(freedom, share)


def smallest_ratio(
    spread: float, repeats: int, *, level: float = LEVEL, bound: float = 1.0
) -> float:
    """The smallest ratio above 1 claimed 8 times in 10 if the logarithms of repeats have exactly
    this standard deviation.

    For planning; `TTest.smallest` is for a run that was made. Welch's test of two sides with this
    many repeats and equal spread. A claim needs the interval at confidence 1 - `level` beyond
    `bound`, the practical threshold as a ratio; when m comparisons are corrected together, the
    level of the first claim is LEVEL / m (`next_level`). Raises ValueError for fewer than 2
    repeats, a negative spread, a level outside 0 < level <= 1, or a bound below 1.
    """
    if repeats < 2 or not 0 <= spread < math.inf:
        raise ValueError(f"no smallest ratio for {repeats} repeats with a spread of {spread}")
    return math.exp(
        min(
            _log_bound(bound) + _planned(repeats, _level(level)) * spread * math.sqrt(2 / repeats),
            FARTHEST,
        )
    )


@lru_cache(maxsize=1024)
def _planned(repeats: int, level: float) -> float:
    """How many standard errors two sides of equal spread must differ for Welch's test to have
    POWER.

    Welch's degrees of freedom depend on the two sides' shares of the variance, which are
    independent of its sum: the power of the noncentral t with 2n - 2 degrees of freedom, averaged
    over the shares (64 quantiles of beta).
    """
    reaches = [
        student_quantile((repeats - 1) / (share**2 + (1 - share) ** 2), 1 - level / 2)
        for share in _quantiles_of_beta((repeats - 1) / 2)
    ]
    return _least(
        lambda apart: fmean(noncentral_student(2 * repeats - 2, apart, reach) for reach in reaches)
    )


def _least(missed: Callable[[float], float]) -> float:
    """Where the decreasing probability `missed` is at most 1 - POWER."""
    low, high = 0.0, 4.0
    while missed(high) > 1 - POWER:
        low, high = high, 2 * high
    return root(lambda apart: missed(apart) - (1 - POWER), low, high)


def corrected(p_values: Sequence[float]) -> tuple[float, ...]:
    """P-values after Benjamini and Hochberg's correction (J. R. Statist. Soc. B 57, 1995), in
    order.

    If differences with a corrected value of at most 5 % are claimed, at most 5 % of the claims are
    expected to be false; without any real difference there is a claim in at most 5 % of runs. The
    cells of a run share the machine and its drift, so any dependence is positive, which the
    procedure allows (Benjamini and Yekutieli 2001).
    """
    least, q_values = 1.0, [1.0] * len(p_values)
    for rank, place in reversed(
        list(enumerate(sorted(range(len(p_values)), key=p_values.__getitem__), start=1))
    ):
        least = min(least, p_values[place] * len(p_values) / rank)
        q_values[place] = least
    return tuple(q_values)


def next_level(tests: int, claims: int = 0) -> float:
    """The p-value that one more test must reach to be claimed (Benjamini and Hochberg). Raises
    ValueError without tests, or for more claims.
    """
    if tests < 1 or not 0 <= claims <= tests:
        raise ValueError(f"{claims} claims of {tests} tests")
    return LEVEL * min(claims + 1, tests) / tests


def _logs(values: Sequence[float]) -> list[float]:
    if not values or min(values) <= 0:
        raise ValueError("values must be above 0, and at least one is needed")

    return [math.log(value) for value in values]


def _variance(values: Sequence[float]) -> float:
    middle = fmean(values)
    return math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1)


_COUNTED: Final = 30
"""Up to this many values a side the rank test is exact; beyond, the normal approximation is as
good.
"""
_SIGNS_COUNTED: Final = 50
"""Up to this many values the signed rank test is exact."""


def signed_rank_p(logs: Sequence[float]) -> float:
    """Wilcoxon's two-sided signed rank test (Biometrics Bulletin 1, 1945) without zeros, exact up
    to 50 values. Raises ValueError for an empty set.
    """
    if not logs:
        raise ValueError("at least one value is needed")
    apart = [value for value in logs if value]
    if not apart:
        return 1.0
    sizes = sorted(map(abs, apart))
    # Twice the rank, so that the mean rank of equal ones is a whole number.
    ranks = [bisect_left(sizes, size) + bisect_right(sizes, size) + 1 for size in sizes]
    positive = sum(
        bisect_left(sizes, value) + bisect_right(sizes, value) + 1 for value in apart if value > 0
    )
    if len(ranks) <= _SIGNS_COUNTED:
        return _two_sided(_sums(tuple(ranks)), positive)
    z = (positive - sum(ranks) / 2) / (math.hypot(*ranks) / 2)
    return math.erfc(abs(z) / math.sqrt(2))


@lru_cache(maxsize=64)
def _sums(ranks: tuple[int, ...]) -> tuple[int, ...]:
    """For each sum, how many choices of signs give these ranks that sum of positive ones."""
    ways = [1]
    for rank in ranks:
        without, taken = [*ways, *[0] * rank], [*[0] * rank, *ways]
        ways = [one + other for one, other in zip(without, taken, strict=True)]
    return tuple(ways)


def _two_sided(ways: Sequence[int], seen: int) -> float:
    """The probability of a number as far out: symmetrical `ways` to get 0, 1, 2 ..."""
    tail = sum(ways[: min(seen, len(ways) - 1 - seen) + 1])
    return min(1.0, 2 * tail / sum(ways))


def rank_p(a: Sequence[float], b: Sequence[float]) -> float:
    """The two-sided Mann-Whitney test: exact for few values without ties, else by the normal
    approximation. Raises ValueError for an empty side.
    """
    if not a or not b:
        raise ValueError("at least one value of each side is needed")
    if len({*a, *b}) == len(a) + len(b) and max(len(a), len(b)) <= _COUNTED:
        return rank_p_of(sum(one > other for one in a for other in b), len(a), len(b))
    if min(a) == max(a) == min(b) == max(b):
        return 1.0  # the normal approximation would divide by zero
    both, pairs = Counter((*a, *b)), len(a) * len(b)
    wins = sum((one > other) + (one == other) / 2 for one in a for other in b)
    equal = sum(count**3 - count for count in both.values())
    count = len(a) + len(b)
    variance = pairs / 12 * (count + 1 - equal / (count * (count - 1)))
    # Less 1/2, as wins are whole numbers.
    beyond = max(abs(wins - pairs / 2) - 0.5, 0.0)
    return math.erfc(beyond / math.sqrt(2 * variance))


@lru_cache(maxsize=4096)
def rank_p_of(wins: int, of_a: int, of_b: int) -> float:
    """`rank_p`, exact without ties, from the number of pairs with a higher first side."""
    if not 0 <= wins <= of_a * of_b:
        raise ValueError(f"{wins} pairs of {of_a * of_b}")
    return _two_sided(_wins(*sorted((of_a, of_b))), wins)


@lru_cache(maxsize=64)
def _wins(fewer: int, more: int) -> tuple[int, ...]:
    """For each number of wins the orders of two sides that have it: coefficients of the Gaussian
    binomial, for each i of the fewer times 1 - q^(more + i), divided by 1 - q^i.
    """
    size = fewer * more + 1
    ways = [1, *[0] * (size - 1)]
    for one in range(1, fewer + 1):
        for at in range(size - 1, more + one - 1, -1):
            ways[at] -= ways[at - more - one]
        for at in range(one, size):
            ways[at] += ways[at - one]
    return tuple(ways)


def cliffs_delta(a: Sequence[float], b: Sequence[float]) -> float:
    """Cliff's delta (1993): the share of pairs with `a` higher less that with it lower. Raises
    ValueError if one side is empty.
    """
    if not a or not b:
        raise ValueError("at least one value of each side is needed")
    return sum((one > other) - (one < other) for one in a for other in b) / (len(a) * len(b))
