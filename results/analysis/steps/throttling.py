"""Throttling: how often and how long a CPU quota stopped a host in a step, and which latencies it
may have set.

A host that has used up its quota is stopped until the period ends. A quota represents
a slower CPU, which would never stop but be slow all the time. If stops are short compared to a
latency the two are the same; if not, the latency reflects how the kernel hands out time. A
percentile is set by the limit if both hold:

- the host was stopped for at least the share of the time beyond the percentile, so that it is
  chance which requests are beyond it; for a maximum any stop suffices;
- a stop took STALL_SHARE or more of the percentile, on average.

`benchmarks/cpu_period.py` compares periods of 100, 20, 10 and 5 ms (its table is in
docs/cpu-limits.md): a p90 of which a stop is half or more is off by 40 % and more, either way, from
that with periods of 5 ms; others by 11 % at most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Final, Self

from pydantic import Field, NonNegativeFloat

from weighbridge.common.record import Record
from weighbridge.results.figures import show_figure
from weighbridge.results.record import Tier

STALL_SHARE: Final = 0.5
"""A stop of this share of a percentile means that the limit set it."""


class Throttled(Record):
    """What the CPU quota of one host did in the window of one step."""

    host: str
    tier: Tier
    quota_cpus: Annotated[float, Field(gt=0)]
    """The quota, in CPUs."""
    share_of_periods: Annotated[float, Field(ge=0, le=1)]
    """The share of periods with something to run in which the quota ran out."""
    share_of_time: NonNegativeFloat | None = None
    """How long it was stopped relative to the window; each CPU counts, so it may be above 1. None:
    unknown.
    """
    period_ms: Annotated[float, Field(gt=0)] | None = None
    """None: unknown."""
    stall_ms: NonNegativeFloat | None = None
    """The mean length of a stop, at most one period; None: unknown."""
    stalls: Annotated[int, Field(ge=0)] = 0
    """Periods in which the quota ran out."""

    @classmethod
    def counted(
        cls,
        *,
        host: str,
        tier: Tier,
        quota_cpus: float,
        period_ms: float | None,
        periods: float | None,
        throttled_periods: float | None,
        throttled_s: float | None,
        window_s: float,
    ) -> Self | None:
        """From the kernel's counters over `window_s` seconds; None if it counts no periods."""
        if periods is None or throttled_periods is None:
            return None
        share_of_time = stall_ms = None
        if throttled_s is not None:
            share_of_time = throttled_s / window_s
            # The kernel counts each of several CPUs stopped at once; together at most a period.
            stall_ms = (
                min(1e3 * throttled_s / throttled_periods, period_ms or math.inf)
                if throttled_periods
                else 0.0
            )
        return cls(
            host=host,
            tier=tier,
            quota_cpus=quota_cpus,
            share_of_periods=min(1.0, throttled_periods / periods) if periods else 0.0,
            share_of_time=share_of_time,
            period_ms=period_ms,
            stall_ms=stall_ms,
            stalls=round(throttled_periods),
        )

    @property
    def words(self) -> str:
        """`gateway-1 (limit 0.6 CPU) was throttled in 96 % of its periods of 100 ms, 54.0 ms each
        time`.
        """
        periods = (
            "its periods" if self.period_ms is None else f"its periods of {self.period_ms:g} ms"
        )
        each = "" if self.stall_ms is None else f", {show_figure(self.stall_ms)} ms each time"
        share = f"{self.share_of_periods * 100:.0f} % of {periods}{each}"
        return f"{self.host} (limit {self.quota_cpus:g} CPU) was throttled in {share}"

    def touches(self, percent: float, latency_ms: float) -> bool:
        """Whether it may have set a percentile (100: the maximum) of this length."""
        if self.stall_ms is None or self.share_of_time is None or not self.stalls:
            return False
        return self.share_of_time >= 1 - percent / 100 and self.stall_ms >= STALL_SHARE * latency_ms


def touching(throttled: Sequence[Throttled], percent: float, latency_ms: float) -> Throttled | None:
    """The host whose limit may have set a percentile (100: the maximum); of several the longest
    stopped.
    """
    found = [one for one in throttled if one.touches(percent, latency_ms)]
    return max(found, key=lambda one: one.stall_ms or 0.0, default=None)
