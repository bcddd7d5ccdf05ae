"""Stalls: seconds of a window in which almost nothing completed, and periodic dips.

A stall is a run of whole seconds, each with at most QUIET of the mean, that chance cannot explain:
at the mean rate of the window (which the stall itself lowers) the Poisson probability of so few
completions is at most CHANCE over the square of the window's seconds, so that over all positions
and lengths at most one window in 1,000 has one by chance. Requests may end in bursts, as many at
once as there are workers: in a closed loop each worker would have completed two in that time.

Dips are periodic if the seconds resemble themselves a period later: their autocorrelation at the
period is beyond SIGMAS of its standard errors (M. S. Bartlett, J. R. Statist. Soc. Suppl. 8, 1946,
with the first lags for what neighbours share), and the periodic part moves throughput by more than
SWING. A pulse has its energy in many harmonics, of which a test of the largest line of the
periodogram (R. A. Fisher, Proc. R. Soc. A 125, 1929) sees only one; the autocorrelation sees all.
False alarms and detection rates: benchmarks/steadiness_rules.py, table in docs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Final

from pydantic import NonNegativeInt, PositiveFloat

from weighbridge.common.record import Record

QUIET: Final = 0.10
CHANCE: Final = 0.001
SHARE: Final = 0.02
"""Stalls that take less of a window than this are reported without making it unsteady."""
BESIDE: Final = 0.4
"""The share of a second next to a stall that must be missing for it to count as part of the stall:
less is noise at 30 requests a second.
"""
SIGMAS: Final = 4.3
"""One in 1,000 windows has a lag beyond this many standard errors by chance."""
SWING: Final = 0.05
"""Standard deviation of the periodic part relative to the mean: a dip by 17 % for a tenth of the
time.
"""
SHORTEST: Final = 4
"""The shortest period in seconds, and how often it must fit into the window."""


class Stall(Record):
    """Almost nothing completed for about `length_s` seconds from this second of the window on."""

    second: NonNegativeInt
    length_s: PositiveFloat


def stalls(counts: Sequence[float], workers: int) -> tuple[Stall, ...]:
    """The stalls in a window of whole seconds, from what completed in each and the outstanding
    requests.
    """
    length = len(counts)
    mean = math.fsum(counts) / length if length else 0.0
    found, start = [], 0
    while start < length:
        end = start
        while end < length and counts[end] <= QUIET * mean:
            end += 1
        expected = mean * (end - start)
        if (
            expected >= 2 * workers
            and _poisson(math.fsum(counts[start:end]), expected) <= CHANCE / length**2
        ):
            found.append(Stall(second=start, length_s=_length(counts, start, end)))
        start = max(end, start + 1)
    return tuple(found)


def stall_words(found: Sequence[Stall]) -> str:
    """`stalls of 3 s every 30 s`, `a stall of 3 s after 4 s`, `2 stalls of 1 to 3 s after 4 and 17
    s`.

    Raises ValueError without stalls.
    """
    if not found:
        raise ValueError("no stall")
    longest, shortest = (f"{of(max(1, round(one.length_s)) for one in found)}" for of in (max, min))
    much = f"{longest} s" if longest == shortest else f"{shortest} to {longest} s"
    if len(found) == 1:
        return f"a stall of {much} after {found[0].second} s"
    apart = [after.second - before.second for before, after in pairwise(found)]
    period = sum(apart) / len(apart)
    if len(found) > 2 and all(abs(one - period) <= max(1.5, 0.1 * period) for one in apart):
        return f"stalls of {much} every {period:.0f} s"
    starts = [str(one.second) for one in found[:4]]
    listed = (
        f"{', '.join(starts)} ..."
        if len(found) > 4
        else f"{', '.join(starts[:-1])} and {starts[-1]}"
    )
    return f"{len(found)} stalls of {much} after {listed} s"


def period_s(counts: Sequence[float]) -> int | None:
    """The period of dips in seconds; None without, and for windows of fewer than 16 seconds."""
    length = len(counts)
    mean = math.fsum(counts) / length if length else 0.0
    rest = _detrended(counts)
    power = math.fsum(one * one for one in rest)
    if length < SHORTEST**2 or not mean or power <= 1e-12 * length * mean**2:
        return None

    def like(lag: int) -> float:
        return math.fsum(one * after for one, after in zip(rest, rest[lag:], strict=False)) / power

    lags = {lag: like(lag) for lag in range(1, length // SHORTEST + 1)}
    common = 1 + 2 * sum(max(0.0, lags[lag]) ** 2 for lag in range(1, SHORTEST))
    needed = max(SIGMAS * math.sqrt(common / length), SWING**2 * length * mean**2 / power)
    # What neighbours share is not a period: the correlation must have fallen in between.
    peaks = [
        lag
        for lag in range(SHORTEST, len(lags) + 1)
        if lags[lag] >= needed and min(lags[one] for one in range(1, lag)) < needed / 2
    ]
    return max(peaks, key=lags.__getitem__) if peaks else None


def _length(counts: Sequence[float], start: int, end: int) -> float:
    """How long a stall was, from what is missing relative to the median of the other seconds; the
    seconds next to it count only if much is missing.
    """
    mean = math.fsum(counts) / len(counts)
    level = median(count for count in counts if count > QUIET * mean)
    beside = [1 - counts[place] / level for place in (start - 1, end) if 0 <= place < len(counts)]
    return math.fsum(
        [
            *(1 - count / level for count in counts[start:end]),
            *(one for one in beside if one > BESIDE),
        ]
    )


def _detrended(values: Sequence[float]) -> list[float]:
    """The values minus their least-squares line: a drift is not periodic."""
    length = len(values)
    if length < 2:
        return [0.0] * length
    middle, mean = (length - 1) / 2, math.fsum(values) / length
    slope = math.fsum((place - middle) * value for place, value in enumerate(values)) / (
        length * (length**2 - 1) / 12
    )
    return [value - mean - slope * (place - middle) for place, value in enumerate(values)]


def _poisson(count: float, expected: float) -> float:
    """The probability of at most `count` where `expected` are expected."""
    return math.fsum(
        math.exp(one * math.log(expected) - expected - math.lgamma(one + 1))
        for one in range(math.floor(count) + 1)
    )
