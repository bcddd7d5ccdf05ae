"""The statistics of a comparison: Welch's interval and test on logarithms, rank tests, and the
correction for many of them.

Throughputs and latencies of repeats differ by factors, not by sums, so they are compared as
logarithms. Welch's interval (B. L. Welch, Biometrika 34, 1947) keeps its coverage at 2 to 10
repeats, where bootstrap intervals of so few values are too narrow.

The rule of a claim is one of intervals: a difference is claimed where the interval lies beyond the
practical threshold on one side. `TTest.p_beyond` says the same as a p-value, so that all that a run
tests is corrected together by `corrected`: a claim has q <= LEVEL. That is Benjamini and
Yekutieli's interval at confidence 1 - LEVEL * claims / tests (J. Am. Stat. Assoc. 100, 2005) beyond
the threshold. Two sides are equivalent where the 95 % interval lies within it, which is D. J.
Schuirmann's two one-sided tests (J. Pharmacokinet. Biopharm. 15, 1987) at 2.5 %. How often either
is said of what is not so: benchmarks/claims.py, table in docs/statistics.md. SciPy is imported
where it is needed: that takes longer than all else that a command imports.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from statistics import fmean
from typing import Annotated, Final

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from weighbridge.common.record import Record

REPEATS_FOR_A_CLAIM: Final = 5
"""Fewer repeats of either side make no claim, whatever their interval (3 can never reach p < 0.1 in
a rank test).
"""
CONFIDENCE: Final = 0.95
LEVEL: Final = 0.05
"""The p-value, corrected for the number of tests, up to which a difference is shown."""
POWER: Final = 0.8
"""How often the smallest difference that a run can show would be shown."""
_COUNTED: Final = 30
"""Up to so many values a side all orders are counted; beyond, the normal approximation is as good.
"""
FARTHEST: Final = 300.0
"""Nothing is known beyond e^300, and nothing beyond e^709 is a number."""


class Ratio(Record):
    """How many times `a` is `b`: the ratio of their geometric means, and its 95 % interval where
    both have two values.
    """

    value: PositiveFloat
    low: PositiveFloat | None = None
    high: PositiveFloat | None = None
    repeats: PositiveInt
    """Values of the side that has fewer."""

    @property
    def shown(self) -> bool:
        """Whether the interval leaves 1 out: a difference was shown, as far as these repeats can
        show one.
        """
        return self.low is not None and self.high is not None and not self.low <= 1 <= self.high

    @property
    def claim(self) -> bool:
        """Whether a difference may be claimed by this comparison alone: it was shown, with enough
        repeats.
        """
        return self.shown and self.repeats >= REPEATS_FOR_A_CLAIM

    @property
    def either_way(self) -> float:
        """How far the two are apart, whichever is the higher: never below 1."""
        return max(self.value, 1 / self.value)

    @property
    def inverted(self) -> Ratio:
        """How many times `b` is `a`."""
        low, high = (None if end is None else 1 / end for end in (self.high, self.low))
        return Ratio(value=1 / self.value, low=low, high=high, repeats=self.repeats)


class TTest(Record):
    """Student's test of logarithms: a difference, its standard error, and the degrees of freedom of
    that error.

    Of two sets by `welch`, of one set of ratios by `one_sample`: p-values and intervals are those
    of scipy.stats.ttest_ind(equal_var=False) and ttest_1samp. These tell no standard error, by
    which differences beyond a bound, the common middle of worker counts and the scatter from run to
    run are tested.
    """

    difference: float
    error: NonNegativeFloat
    freedom: Annotated[float, Field(ge=1)]
    repeats: Annotated[int, Field(ge=2)]
    """Values of the set that has fewer."""

    @property
    def p(self) -> float:
        """How often chance alone would make a difference at least as large, two-sided.

        Of sets without any spread 0 or 1.
        """
        return self.p_beyond()

    def p_beyond(self, bound: float = 1.0) -> float:
        """How often chance alone would put two sides that are `bound` apart at least so far beyond
        it, two-sided.

        `bound` is a ratio from 1 up. At most a level exactly where the interval with confidence 1 -
        level lies beyond the bound, on one side of it; p where the bound is 1. Of sets without any
        spread 0 or 1. Raises ValueError for a bound below 1.
        """
        from scipy.special import stdtr  # noqa: PLC0415 - as the head of the file says

        beyond = abs(self.difference) - _log_bound(bound)
        if beyond <= 0 or self.error == 0:
            return float(beyond <= 0)
        return min(1.0, 2 * float(stdtr(self.freedom, -beyond / self.error)))

    @property
    def ratio(self) -> Ratio:
        """The difference as a ratio, with the interval that leaves 1 out where p is below 0.05."""
        return self.ratio_at(CONFIDENCE)

    def ratio_at(self, confidence: float) -> Ratio:
        """The difference as a ratio, with its interval at this confidence, which is above 0 and
        below 1.
        """
        reach = min(
            t_quantile((1 + confidence) / 2, self.freedom) * self.error if self.error else 0.0,
            FARTHEST,
        )
        value, low, high = (math.exp(self.difference + way * reach) for way in (0, -1, 1))
        return Ratio(value=value, low=low, high=high, repeats=self.repeats)

    def smallest(self, level: float = LEVEL, bound: float = 1.0) -> float:
        """The smallest ratio above 1 that a run like this would claim 8 times in 10: its interval
        at 1 - `level` beyond `bound`.

        `level` is what a test must reach after correction (`next_level`). The spread is known from
        these few repeats alone, and another run will find another: unlike in `smallest_ratio` both
        are in the figure, else it were true 6 to 7 times in 10. Raises ValueError for a level that
        is not above 0 and up to 1, or a bound below 1.
        """
        known = _level(level)
        apart = _seen_again(round(self.freedom, 1), known) * self.error if self.error else 0.0
        return math.exp(min(_log_bound(bound) + apart, FARTHEST))

    def smallest_seen(self, level: float = LEVEL) -> float:
        """The smallest ratio above 1 that is shown 8 times in 10, two-sided at this level, where
        the error is this for sure.

        By the noncentral t, as `smallest_ratio`. Raises ValueError for a level that is not above 0
        and up to 1.
        """
        return math.exp(min(_beyond_chance(self.freedom, _level(level)) * self.error, FARTHEST))


def one_sample(logs: Sequence[float]) -> TTest:
    """Student's test (Biometrika 6, 1908) of logarithms of at least 2 ratios that were each made by
    itself, of a trial to what is beside it: with one degree of freedom less than there are values.
    Raises ValueError of fewer than 2.
    """
    if len(logs) < 2:
        raise ValueError("a set of one value has no spread")
    error = math.sqrt(_variance(logs) / len(logs))
    return TTest(difference=fmean(logs), error=error, freedom=len(logs) - 1, repeats=len(logs))


@lru_cache(maxsize=1024)
def _beyond_chance(freedom: float, level: float) -> float:
    """How many standard errors from 0 a mean must be to be shown with POWER by a two-sided t test
    at a level.
    """
    from scipy.special import nctdtrinc  # noqa: PLC0415 - as above

    return float(nctdtrinc(freedom, 1 - POWER, t_quantile(1 - level / 2, freedom)))


@lru_cache(maxsize=1024)
def _seen_again(freedom: float, level: float) -> float:
    """How many standard errors, as one run estimates them, two sides must differ to be told apart
    by another run with POWER.

    The power is that of the noncentral t, averaged over what the first run may have estimated
    (chi-square, by 64 quantiles of it).
    """
    from numpy import arange, sqrt  # noqa: PLC0415 - as above
    from scipy.special import gammaincinv, nctdtr  # noqa: PLC0415

    estimates = sqrt(2 * gammaincinv(freedom / 2, (arange(64) + 0.5) / 64) / freedom)
    reach = t_quantile(1 - level / 2, freedom)
    return _least(lambda apart: float(nctdtr(freedom, apart * estimates, reach).mean()))


def _level(level: float) -> float:
    if not 0 < level <= 1:
        raise ValueError(f"no test at a level of {level}")
    return level


def _log_bound(bound: float) -> float:
    if not 1 <= bound < math.inf:
        raise ValueError(f"{bound} is no practical threshold: a ratio from 1 up is wanted")
    return math.log(bound)


def signed_rank_p(logs: Sequence[float]) -> float:
    """Wilcoxon's two-sided signed rank test (Biometrics Bulletin 1, 1945) of whether these lie
    around 0; those at 0 are left out.

    Exact where no two are equally far from 0 and there are up to 50, else by the normal
    approximation. Raises ValueError of none.
    """
    if not logs:
        raise ValueError("at least one value is wanted")
    apart = [value for value in logs if value]
    if not apart:
        return 1.0
    from scipy.stats import wilcoxon  # noqa: PLC0415 - as above

    return min(1.0, float(wilcoxon(apart).pvalue))


def welch(a: Sequence[float], b: Sequence[float]) -> TTest:
    """Welch's comparison of two sets of at least 2 values, all above 0.

    Raises ValueError on others.
    """
    logs_a, logs_b = _logs(a), _logs(b)
    if min(len(a), len(b)) < 2:
        raise ValueError("a set of one value has no spread")
    part_a, part_b = (_variance(logs) / len(logs) for logs in (logs_a, logs_b))
    freedom = float(len(a) + len(b) - 2)
    if part_a + part_b > 0:
        # As shares of their sum, so that tiny variances do not vanish when they are squared.
        share_a, share_b = part_a / (part_a + part_b), part_b / (part_a + part_b)
        freedom = 1 / (share_a**2 / (len(a) - 1) + share_b**2 / (len(b) - 1))
    return TTest(
        difference=fmean(logs_a) - fmean(logs_b),
        error=math.sqrt(part_a + part_b),
        freedom=freedom,
        repeats=min(len(a), len(b)),
    )


def ratio(a: Sequence[float], b: Sequence[float]) -> Ratio:
    """The ratio of two sets of repeats, all above 0.

    Raises ValueError on an empty one or one with values not above 0.
    """
    if min(len(a), len(b)) >= 2:
        return welch(a, b).ratio
    return Ratio(
        value=math.exp(fmean(_logs(a)) - fmean(_logs(b))), repeats=max(1, min(len(a), len(b)))
    )


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean, the only fair mean of ratios.

    Raises ValueError on an empty set or a value not above 0.
    """
    logs = _logs(values)
    return values[0] if min(values) == max(values) else math.exp(fmean(logs))


@lru_cache(maxsize=1024)
def t_quantile(share: float, freedom: float) -> float:
    """The quantile of Student's t for 0.5 <= share < 1. Raises ValueError on others."""
    from scipy.special import stdtrit  # noqa: PLC0415 - as above

    if not 0.5 <= share < 1 or freedom < 1:
        raise ValueError(f"no quantile of t for share {share} and {freedom} degrees of freedom")
    return float(stdtrit(freedom, share))


def smallest_ratio(
    spread: float, repeats: int, *, level: float = LEVEL, bound: float = 1.0
) -> float:
    """The smallest ratio above 1 that is claimed 8 times in 10 where logarithms of repeats have
    this standard deviation for sure.

    For planning; of a run that was made `TTest.smallest` tells it. By Welch's test of two sides
    with so many repeats and an equal spread. A claim takes the interval at confidence 1 - `level`
    beyond `bound`, the practical threshold as a ratio; where m comparisons are corrected together,
    the level of the first claim is LEVEL / m (`next_level`). Raises ValueError for fewer than 2
    repeats, a spread below 0, a level that is not above 0 and up to 1, or a bound below 1.
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
    """How many standard errors two sides of equal spread must differ to be told apart with POWER by
    Welch's test.

    Its freedom is that of the two sides' shares of the variance, which do not depend on their sum:
    the power is that of the noncentral t with 2n - 2 degrees of freedom, averaged over the shares
    (beta, by 64 quantiles of it).
    """
    from numpy import arange  # noqa: PLC0415 - as above
    from scipy.special import betaincinv, nctdtr, stdtrit  # noqa: PLC0415

    share = betaincinv((repeats - 1) / 2, (repeats - 1) / 2, (arange(64) + 0.5) / 64)
    reach = stdtrit((repeats - 1) / (share**2 + (1 - share) ** 2), 1 - level / 2)
    return _least(lambda apart: float(nctdtr(2 * repeats - 2, apart, reach).mean()))


def _least(missed: Callable[[float], float]) -> float:
    """The least value at which a difference is missed no more often than POWER allows, to 1 in
    10,000; `missed` falls.
    """
    low, high = 0.0, 4.0
    while missed(high) > 1 - POWER:
        low, high = high, 2 * high
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if missed(middle) > 1 - POWER else (low, middle)
    return high


def rank_p(a: Sequence[float], b: Sequence[float]) -> float:
    """The two-sided Mann-Whitney test: exact where values are few and no two are equal, else by the
    normal approximation.

    Raises ValueError on an empty side.
    """
    if not a or not b:
        raise ValueError("at least one value of each side is wanted")
    if len({*a, *b}) == len(a) + len(b) and max(len(a), len(b)) <= _COUNTED:
        return rank_p_of(sum(one > other for one in a for other in b), len(a), len(b))
    if min(a) == max(a) == min(b) == max(b):
        return 1.0  # the normal approximation divides by the spread of ranks, which is none
    from scipy.stats import mannwhitneyu  # noqa: PLC0415 - as above

    return min(1.0, float(mannwhitneyu(a, b, alternative="two-sided").pvalue))


@lru_cache(maxsize=4096)
def rank_p_of(wins: int, of_a: int, of_b: int) -> float:
    """The same, exact, from the number of pairs in which a value of the first side is the higher,
    none being equal.
    """
    if not 0 <= wins <= of_a * of_b:
        raise ValueError(f"{wins} pairs of {of_a * of_b}")
    from scipy.stats import mannwhitneyu  # noqa: PLC0415 - as above

    # Any values with so many wins will do: some of the first side above all of the second, one
    # within them, the others below.
    above, within = divmod(wins, of_b)
    first = [*[of_b] * above, within - 0.5, *[-1] * of_a][:of_a]
    return float(mannwhitneyu(first, range(of_b), method="exact").pvalue)


def cliffs_delta(a: Sequence[float], b: Sequence[float]) -> float:
    """The share of pairs in which `a` is the higher less that in which it is the lower (N. Cliff
    1993): 1 where all of it is.

    Raises ValueError on an empty side.
    """
    if not a or not b:
        raise ValueError("at least one value of each side is wanted")
    return sum((one > other) - (one < other) for one in a for other in b) / (len(a) * len(b))


def corrected(p_values: Sequence[float]) -> tuple[float, ...]:
    """The p-values of one map after Benjamini and Hochberg's correction (J. R. Statist. Soc. B 57,
    1995), in their order.

    Of the differences that are claimed where these are at most 5 %, at most 5 % are expected to be
    none; of a map without any difference at most 5 % make a claim. Cells of a map share the machine
    and its drift, so they lean the same way if at all; for such the procedure holds as well
    (Benjamini and Yekutieli 2001).
    """
    if not p_values:
        return ()
    from scipy.stats import false_discovery_control  # noqa: PLC0415 - as above

    return tuple(false_discovery_control(p_values).tolist())


def next_level(tests: int, claims: int = 0) -> float:
    """The p-value that one more test must reach to be claimed beside so many claims among so many
    tests: Benjamini and Hochberg's.

    Raises ValueError without any test, or for claims that are not from 0 to the number of tests.
    """
    if tests < 1 or not 0 <= claims <= tests:
        raise ValueError(f"{claims} claims of {tests} tests")
    return LEVEL * min(claims + 1, tests) / tests


def _logs(values: Sequence[float]) -> list[float]:
    if not values or min(values) <= 0:
        raise ValueError("values above 0 are wanted, and at least one")
    return [math.log(value) for value in values]


def _variance(values: Sequence[float]) -> float:
    middle = fmean(values)
    return math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1)
