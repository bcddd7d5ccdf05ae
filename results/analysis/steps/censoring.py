"""What can be said of latencies of which some were not seen to end, and of percentiles of few
samples.

Of the latency of a request that is outstanding when the window closes, or that is given up after
its timeout, one thing is known: it is at least its age then. Left out, a gateway that stalls before
the end would look faster than one that does not; counted as if its age were its latency, it would
look nearly as good. Such latencies are censored on the right, and their distribution is estimated
by the product-limit (E. L. Kaplan and P. Meier, Journal of the American Statistical Association 53,
1958): at each latency seen, the share that takes longer falls by that of those which ended there
among all that are known to have got so far. A percentile that it does not come down to is not
known: it is at least the oldest of all. Where nothing is censored the estimate is the percentile by
rank that it is without.

Latencies and ages are told as the tops of their buckets (at most 0.1 % above).
"""

from __future__ import annotations

from typing import Final

from weighbridge.results.record import Histogram

CLOSE: Final = 1e-9
"""A product of thousands of factors is the share that it stands for but for this."""


def bounded(
    latency: Histogram | None, in_flight: Histogram | None, percent: float
) -> tuple[float, float | None] | None:
    """The percentile in ms as (low, high): both the same where it is known; high None where it is
    at least `low`.

    `latency` are those of requests that ended, `in_flight` the ages of those that were not seen to.
    None where there are neither. At 100 it is the maximum, but for the widths of buckets (see
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
    import numpy as np  # noqa: PLC0415 - takes its time to load, and drivers have no need of it

    if seen:
        times, ended = (np.array(column, dtype=float) for column in zip(*seen, strict=True))
        ages, cuts = (np.array(column, dtype=float) for column in zip(*cut, strict=True))
        # At risk at a time: all that ended then or later, and all whose age is as high (what is cut
        # at a time was there at it).
        later = ended[::-1].cumsum()[::-1]
        older = np.append(cuts[::-1].cumsum()[::-1], 0.0)[np.searchsorted(ages, times, side="left")]
        longer = np.cumprod(1 - ended / (later + older))
        reached = np.flatnonzero(longer <= 1 - percent / 100 + CLOSE)
        if reached.size:
            at_ms = float(times[reached[0]]) / 1000
            return at_ms, at_ms
    return max(*(top_us for top_us, _ in (*seen[-1:], *cut[-1:])), 0) / 1000, None


def highest_ms(
    max_us: int | None, in_flight_max_us: int | None
) -> tuple[float, float | None] | None:
    """The maximum in ms as (low, high): of what ended; or with high None at least the age of the
    oldest that was not seen to end.

    None where neither is known.
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
    """The interval in ms that holds a percentile with `confidence`, whatever the distribution:
    between two of the samples in order.

    How many of n samples lie below it is binomial, so that ranks l and u with P(B < l) and P(B >=
    u) at most half of the rest each are its ends (H. A. David and H. N. Nagaraja, Order Statistics,
    2003, section 7.1). High is None where u is beyond the largest sample, low 0 where l is below
    the smallest. `in_flight` are ages of requests that were not seen to end: they are at least
    their ages, so that these count for the lower end, and nothing above the largest latency is
    known for the upper. Raises ValueError outside 0 < percent < 100 and 0 < confidence < 1, and
    where there are no samples.
    """
    if not 0 < percent < 100 or not 0 < confidence < 1:
        raise ValueError(
            f"no interval of the {percent:g}th percentile with a confidence of {confidence:g}"
        )
    at_least = histogram if in_flight is None else Histogram.merged((histogram, in_flight))
    if not at_least.count:
        raise ValueError("an interval of no samples was asked for")
    tail = (1 - confidence) / 2
    from scipy.stats import binom  # noqa: PLC0415 - takes its time to load, and drivers have no need of it

    low = int(binom.ppf(tail, at_least.count, percent / 100))
    high = int(binom.ppf(1 - tail, at_least.count, percent / 100)) + 1
    low_ms = at_least.at_rank_us(low) / 1000 if low else 0.0
    return low_ms, histogram.at_rank_us(high) / 1000 if high <= histogram.count else None
