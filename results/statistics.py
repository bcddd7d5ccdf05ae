"""The little statistics that a comparison needs: ratios of geometric means with Welch's interval on logarithms.

Throughputs of repeats differ by factors, not by sums, so they are compared as logarithms. Welch's interval (B. L. Welch,
Biometrika 34, 1947) keeps its coverage at 2 to 10 repeats, where bootstrap intervals of so few values are too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from pydantic import PositiveFloat, PositiveInt

from ground.record import Record

REPEATS_FOR_A_CLAIM: Final = 5
"""Fewer repeats of either side make no claim, whatever their interval (3 can never reach p < 0.1 in a rank test)."""
CONFIDENCE: Final = 0.95


class Ratio(Record):
    """How many times `a` is `b`: the ratio of their geometric means, and its 95 % interval where both have two values."""

    value: PositiveFloat
    low: PositiveFloat | None = None
    high: PositiveFloat | None = None
    repeats: PositiveInt
    """Values of the side that has fewer."""

    @property
    def shown(self) -> bool:
        """Whether the interval leaves 1 out: a difference was shown, as far as these repeats can show one."""
        return self.low is not None and self.high is not None and not self.low <= 1 <= self.high

    @property
    def claim(self) -> bool:
        """Whether a difference may be claimed: it was shown, with enough repeats."""
        return self.shown and self.repeats >= REPEATS_FOR_A_CLAIM


def ratio(a: Sequence[float], b: Sequence[float]) -> Ratio:
    """The ratio of two sets of repeats, all above 0. Raises ValueError on an empty one or one with values not above 0."""
    logs_a, logs_b = _logs(a), _logs(b)
    middle = _mean(logs_a) - _mean(logs_b)
    repeats = min(len(a), len(b))
    if repeats < 2:
        return Ratio(value=math.exp(middle), repeats=repeats)
    part_a, part_b = (_variance(logs) / len(logs) for logs in (logs_a, logs_b))
    reach = 0.0
    if part_a + part_b > 0:
        freedom = (part_a + part_b) ** 2 / (part_a**2 / (len(a) - 1) + part_b**2 / (len(b) - 1))
        reach = t_quantile((1 + CONFIDENCE) / 2, freedom) * math.sqrt(part_a + part_b)
    # Nothing is known beyond e^300, and nothing beyond e^709 is a number.
    reach = min(reach, 300.0)
    return Ratio(value=math.exp(middle), low=math.exp(middle - reach), high=math.exp(middle + reach), repeats=repeats)


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean, the only fair mean of ratios. Raises ValueError on an empty set or a value not above 0."""
    return math.exp(_mean(_logs(values)))


@lru_cache(maxsize=1024)
def t_quantile(share: float, freedom: float) -> float:
    """The quantile of Student's t for 0.5 <= share < 1, to about 8 digits.

    With t = sqrt(v) tan(x) the density becomes cos(x)^(v - 1), smooth on a closed range, which Simpson's rule integrates.
    """
    if not 0.5 <= share < 1 or freedom < 1:
        raise ValueError(f"no quantile of t for share {share} and {freedom} degrees of freedom")
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)

    def reached(angle: float, steps: int = 160) -> float:
        width = angle / steps
        ends = 1 + math.cos(angle) ** (freedom - 1)
        inner = sum((4 if step % 2 else 2) * math.cos(step * width) ** (freedom - 1) for step in range(1, steps))
        return float(0.5 + scale * (ends + inner) * width / 3)

    low, high = 0.0, math.pi / 2
    for _ in range(48):
        middle = (low + high) / 2
        low, high = (middle, high) if reached(middle) < share else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def _logs(values: Sequence[float]) -> list[float]:
    if not values or min(values) <= 0:
        raise ValueError("values above 0 are wanted, and at least one")
    return [math.log(value) for value in values]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _variance(values: Sequence[float]) -> float:
    middle = _mean(values)
    return math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1)
