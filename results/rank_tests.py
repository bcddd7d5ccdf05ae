"""Tests of ranks, of one set and of two, and Cliff's delta."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

_COUNTED: Final = 30
"""Up to this many values a side the rank test is exact; beyond, the normal approximation is as
good.
"""
_SIGNS_COUNTED: Final = 50
"""Up to this many values the signed rank test is exact."""


def signed_rank_p(logs: Sequence[float]) -> float:
    """Wilcoxon's two-sided signed rank test (Biometrics Bulletin 1, 1945) of whether these are
    around 0; zeros are left out.

    Exact for up to 50 values, else by the normal approximation. Raises ValueError for an empty set.
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
    """The probability of a number as far out as the one seen: `ways` to get 0, 1, 2 ...

    They are symmetrical.
    """
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
    """`rank_p`, exact, from the number of pairs in which a value of the first side is higher; no
    ties.
    """
    if not 0 <= wins <= of_a * of_b:
        raise ValueError(f"{wins} pairs of {of_a * of_b}")
    return _two_sided(_wins(*sorted((of_a, of_b))), wins)


@lru_cache(maxsize=64)
def _wins(fewer: int, more: int) -> tuple[int, ...]:
    """For each number of wins, how many orders of two sides have it.

    The coefficients of the Gaussian binomial: for each i of the fewer, times 1 - q^(more + i),
    divided by 1 - q^i.
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
    """Cliff's delta (N. Cliff 1993): the share of pairs with `a` higher minus that with `a` lower.

    Raises ValueError for an empty side.
    """
    if not a or not b:
        raise ValueError("at least one value of each side is needed")
    return sum((one > other) - (one < other) for one in a for other in b) / (len(a) * len(b))
