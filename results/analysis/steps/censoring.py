"""Percentiles of latencies if some requests were not seen to end, or if samples are few.

A request that is outstanding when the window closes, or given up after its timeout, has a latency
of at least its age. Leaving it out would make a gateway that stalls before the end look faster than
one that does not; counting its age as its latency would make it look nearly as good. Such latencies
are right-censored. Their distribution is estimated by the product-limit (E. L. Kaplan and P. Meier,
Journal of the American Statistical Association 53, 1958): at each observed latency, the share that
takes longer falls by the share that ended there among all known to have got so far. A percentile
that it does not fall to is unknown: it is at least the oldest of all. Without censoring the
estimate is the percentile by rank.

Latencies and ages are given as the tops of their buckets (at most 0.1 % too high).
"""

from __future__ import annotations

from collections import deque
from typing import Final

from weighbridge.results.probability import binomial_quantile
from weighbridge.results.record import Histogram

CLOSE: Final = 1e-9
"""Rounding error allowed in a product of thousands of factors."""


def bounded(
    latency: Histogram | None, in_flight: Histogram | None, percent: float
) -> tuple[float, float | None] | None:
    """A percentile in ms as (low, high): equal if known; high is None if it is at least `low`.

    `latency` are latencies of requests that ended, `in_flight` ages of those that were not seen to
    end. None without either. At 100 it is the maximum up to the width of buckets (see
    `highest_ms`). Raises ValueError outside 0 < percent <= 100.
    """
    if not 0 < percent <= 100:
        raise ValueError(f"{percent} is not a percentage above 0 and up to 100")
    if in_flight is None or not in_flight.count:
        if latency is None or not latency.count:
            return None
        at_ms = latency.percentile_us(percent) / 1000
        return at_ms, at_ms
    seen = latency.buckets() if latency is not None else ()
    cut = in_flight.buckets()
    # At risk at a time: all that ended then or later, and all whose age is at least that (a request
    # cut at a time was present at it).
    at_risk = sum(count for _, count in (*seen, *cut))
    ages, longer = deque(cut), 1.0
    for top_us, ended in seen:
        while ages and ages[0][0] < top_us:
            at_risk -= ages.popleft()[1]
        longer *= 1 - ended / at_risk
        if longer <= 1 - percent / 100 + CLOSE:
            return top_us / 1000, top_us / 1000
        at_risk -= ended
    return max(*(top_us for top_us, _ in (*seen[-1:], *cut[-1:])), 0) / 1000, None


def highest_ms(
    max_us: int | None, in_flight_max_us: int | None
) -> tuple[float, float | None] | None:
    """The maximum in ms as (low, high): of what ended; or with high None the oldest age not seen to
    end.

    None if neither is known.
    """
    if in_flight_max_us is not None and (max_us is None or in_flight_max_us > max_us):
        return in_flight_max_us / 1000, None
    return None if max_us is None else (max_us / 1000, max_us / 1000)


def order_statistic_interval(
    histogram: Histogram,
    percent: float,
    confidence: float = 0.95,
    in_flight: Histogram | None = None,
) -> tuple[float, float | None]:
    """The interval in ms that holds a percentile with `confidence` for any distribution: two of the
    ordered samples.

    The number of samples below it is binomial, so its ends are the ranks l and u with P(B < l) and
    P(B >= u) of at most half the rest each (H. A. David and H. N. Nagaraja, Order Statistics, 2003,
    section 7.1). High is None if u is beyond the largest sample, low is 0 if l is below the
    smallest. `in_flight` are ages of requests not seen to end: their latencies are at least that,
    so they count for the lower end, and nothing above the largest latency is known for the upper.
    Raises ValueError outside 0 < percent < 100 and 0 < confidence < 1, and without samples.
    """
    if not 0 < percent < 100 or not 0 < confidence < 1:
        raise ValueError(
            f"no interval of the {percent:g}th percentile with a confidence of {confidence:g}"
        )
    at_least = histogram if in_flight is None else Histogram.merged((histogram, in_flight))
    if not at_least.count:
        raise ValueError("no samples have no interval")
    tail = (1 - confidence) / 2
    low = binomial_quantile(at_least.count, percent / 100, tail)
    high = binomial_quantile(at_least.count, percent / 100, 1 - tail) + 1
    low_ms = at_least.at_rank_us(low) / 1000 if low else 0.0
    return low_ms, histogram.at_rank_us(high) / 1000 if high <= histogram.count else None
