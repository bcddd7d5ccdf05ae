"""Which latencies a CPU quota may have made."""

from __future__ import annotations

import pytest

from weighbridge.results.analysis.steps.throttling import Throttled, touching


def held(
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


LONG = held(periods=100, stops=80, stopped_s=3.6, period_ms=100.0)
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
def test_a_percentile_is_the_limits_where_stops_are_frequent_and_long_beside_it(
    percent: float, latency_ms: float, touched: bool
) -> None:
    assert LONG.touches(percent, latency_ms) is touched


def test_short_stops_do_not_make_what_is_much_longer_than_they_are() -> None:
    assert held().stall_ms == pytest.approx(5.2, abs=0.01)
    assert not held().touches(90, 35.0)
    assert held().touches(90, 9.0)


def test_stops_that_take_less_of_the_time_than_lies_beyond_a_percentile_do_not_make_it() -> None:
    few = held(stops=10, stopped_s=0.4, period_ms=100.0)
    assert not few.touches(90, 30.0)
    assert few.touches(99, 30.0)


def test_cpus_that_were_stopped_at_once_wait_no_longer_than_a_period() -> None:
    assert held(stops=500, stopped_s=9.0).stall_ms == 10.0
    assert held(stops=500, stopped_s=9.0, period_ms=None).stall_ms == pytest.approx(18.0)


def test_what_is_not_known_makes_no_latency() -> None:
    unknown = held(stopped_s=None)
    assert (unknown.stall_ms, unknown.share_of_time) == (None, None)
    assert not unknown.touches(100, 0.1)
    assert not held(stops=0, stopped_s=0.0).touches(100, 0.1)
    nothing = {
        "host": "h",
        "tier": "gateway",
        "quota_cpus": 1.0,
        "period_ms": None,
        "throttled_s": 1.0,
        "window_s": 1.0,
    }
    assert Throttled.counted(**nothing, periods=None, throttled_periods=None) is None  # type: ignore[arg-type]


def test_of_several_hosts_the_one_that_was_stopped_longest_is_named() -> None:
    assert touching((held(), LONG), 90, 8.0) == LONG
    assert touching((held(), LONG), 50, 300.0) is None
    assert (
        LONG.words
        == "CPU limit of gateway-1 (0.6 CPU): throttled in 80 % of its periods of 100 ms, 45.0 ms "
        "each time"
    )
