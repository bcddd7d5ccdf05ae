"""Which latencies a CPU quota may have set."""

from __future__ import annotations

import pytest

from weighbridge.results.analysis.steps.use import Throttled, touching


def throttled(
    *,
    periods: int = 1000,
    stops: int = 960,
    stopped_s: float | None = 5.0,
    period_ms: float | None = 10.0,
) -> Throttled:
    """A gateway of 0.6 CPU over ten seconds."""
    found = Throttled.counted(
        host="gateway-1",
        tier="gateway",
        quota_cpus=0.6,
        period_ms=period_ms,
        periods=periods,
        throttled_periods=stops,
        throttled_s=stopped_s,
        window_s=10.0,
    )
    assert found is not None
    return found


LONG = throttled(periods=100, stops=80, stopped_s=3.6, period_ms=100.0)
"""Stopped for 45 ms in 80 of 100 periods: 36 % of the time."""


@pytest.mark.parametrize(
    ("percent", "latency_ms", "touched"),
    [
        (90, 63.0, True),  # what lies beyond is stopped
        (90, 4.0, True),  # what lies before was spared
        (99, 51.0, True),
        (50, 2.0, False),  # it ran for more than half of the time
        (90, 200.0, False),  # so slow that a stop is little of it
        (100, 70.0, True),
        (100, 300.0, False),
    ],
)
def test_frequent_and_long_stops_set_a_percentile(
    percent: float, latency_ms: float, touched: bool
) -> None:
    assert LONG.touches(percent, latency_ms) is touched


def test_short_stops_do_not_set_a_much_longer_latency() -> None:
    assert throttled().stall_ms == pytest.approx(5.2, abs=0.01)
    assert not throttled().touches(90, 35.0)
    assert throttled().touches(90, 9.0)


def test_stops_rarer_than_the_tail_do_not_set_the_percentile() -> None:
    few = throttled(stops=10, stopped_s=0.4, period_ms=100.0)
    assert not few.touches(90, 30.0)
    assert few.touches(99, 30.0)


def test_cpus_stopped_at_once_wait_at_most_one_period() -> None:
    assert throttled(stops=500, stopped_s=9.0).stall_ms == 10.0
    assert throttled(stops=500, stopped_s=9.0, period_ms=None).stall_ms == pytest.approx(18.0)


def test_unknown_stops_set_no_latency() -> None:
    unknown = throttled(stopped_s=None)
    assert (unknown.stall_ms, unknown.share_of_time) == (None, None)
    assert not unknown.touches(100, 0.1)
    assert not throttled(stops=0, stopped_s=0.0).touches(100, 0.1)
    nothing = {
        "host": "h",
        "tier": "gateway",
        "quota_cpus": 1.0,
        "period_ms": None,
        "throttled_s": 1.0,
        "window_s": 1.0,
    }
    assert Throttled.counted(**nothing, periods=None, throttled_periods=None) is None  # type: ignore[arg-type]


def test_the_host_stopped_longest_is_named() -> None:
    assert touching((throttled(), LONG), 90, 8.0) == LONG
    assert touching((throttled(), LONG), 50, 300.0) is None
    assert (
        LONG.words
        == "gateway-1 (limit 0.6 CPU) was throttled in 80 % of its periods of 100 ms, 45.0 ms "
        "each time"
    )
