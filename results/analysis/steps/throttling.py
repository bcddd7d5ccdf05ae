"""Throttling: how often and for how long a CPU quota kept a host waiting in a step, and which
latencies it may have made.

A host that has used its quota up is stopped until the period ends. Had it a slower CPU instead,
which is what a quota stands for, it would never be stopped and be slower all the time. Where stops
are short beside a latency the two are the same; where they are not, the latency says how the kernel
hands time out. A percentile is set by the limit where both hold:

- the host was stopped for at least the share of the time that lies beyond the percentile, so that
  requests beyond it, or those that were spared, are told apart by their luck; for a maximum any
  stop will do;
- a stop took STALL_SHARE or more of the percentile, on average.

`benchmarks/cpu_period.py` compares periods of 100, 20, 10 and 5 ms (its table is in
docs/cpu-limits.md): a p90 that is half stop or more is off by 40 % and more, either way, from the
one with periods of 5 ms; others by 11 % at most.
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
"""A stop of so much of a percentile makes it the limit's."""


class Throttled(Record):
    """What the quota of one host did in the window of one step."""

    host: str
    tier: Tier
    quota_cpus: Annotated[float, Field(gt=0)]
    """What the quota allows, in CPUs."""
    share_of_periods: Annotated[float, Field(ge=0, le=1)]
    """Of the periods in which the host had something to run, those in which the quota ran out."""
    share_of_time: NonNegativeFloat | None = None
    """How long it was stopped, by the window; each CPU counts for itself, so that it may be above
    1. None: not told.
    """
    period_ms: Annotated[float, Field(gt=0)] | None = None
    """None: not known, in runs that did not keep it."""
    stall_ms: NonNegativeFloat | None = None
    """How long it was stopped each time, on average, and never longer than a period.

    None: not told.
    """
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
        """From what the kernel counted in `window_s` seconds; None where it counts no periods."""
        if periods is None or throttled_periods is None:
            return None
        share_of_time = stall_ms = None
        if throttled_s is not None:
            share_of_time = throttled_s / window_s
            # Of several CPUs that were stopped at once the kernel counts each: together no longer
            # than the period.
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
        """`CPU limit of gateway-1 (0.6 CPU): throttled in 96 % of its periods of 100 ms, 54.0 ms
        each time`.
        """
        periods = (
            "its periods" if self.period_ms is None else f"its periods of {self.period_ms:g} ms"
        )
        each = "" if self.stall_ms is None else f", {show_figure(self.stall_ms)} ms each time"
        held = f"throttled in {self.share_of_periods * 100:.0f} % of {periods}{each}"
        return f"CPU limit of {self.host} ({self.quota_cpus:g} CPU): {held}"

    def touches(self, percent: float, latency_ms: float) -> bool:
        """Whether it may have made a percentile of this length, or with `percent` 100 a maximum;
        what is not known makes none.
        """
        if self.stall_ms is None or self.share_of_time is None or not self.stalls:
            return False
        return self.share_of_time >= 1 - percent / 100 and self.stall_ms >= STALL_SHARE * latency_ms


def touching(throttled: Sequence[Throttled], percent: float, latency_ms: float) -> Throttled | None:
    """The host whose limit may have made a percentile (100: the maximum) of this length; of several
    the one stopped longest.
    """
    found = [one for one in throttled if one.touches(percent, latency_ms)]
    return max(found, key=lambda one: one.stall_ms or 0.0, default=None)
