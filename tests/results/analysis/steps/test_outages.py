"""What a fault did to one operation, from its seconds."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from weighbridge.results.analysis.steps.visit import Times, figures, series
from weighbridge.results.metric import OutageFigures
from weighbridge.results.record import Second
from weighbridge.results.record.histogram import band_of

AT = 10.2


def seconds(counts: Sequence[int], errors: dict[int, int] | None = None) -> list[Second]:
    """Reads: each second with these successes of 10 ms, and `timeout` errors by second."""
    failed = errors or {}
    return [
        Second(
            second=number,
            operation="read",
            count=count,
            bytes=0,
            errors=failed.get(number, 0),
            failures={"timeout": failed[number]} if number in failed else {},
            max_us=10_000 if count else 0,
            sum_us=10_000 * count,
            bands=((band_of(10_000), count),) if count else (),
            in_flight=8,
        )
        for number, count in enumerate(counts)
    ]


BEFORE = [100, 90, 110, 100, 100, 100, 95, 105, 100, 100]


def outage(
    after: Sequence[int], back_s: float, errors: dict[int, int] | None = None
) -> OutageFigures:
    """Of a fault at 10.2 s, after ten seconds of some 100 op/s."""
    counted = seconds([*BEFORE, *after], errors)
    found = figures(counted, 40.0, "read", Times(fault_s=AT, back_s=back_s))
    assert found is not None
    return found


def test_a_rate_that_never_falls_is_back_within_a_second() -> None:
    found = outage([98] * 30, 25.0)
    assert found.before_ops_s == 100
    assert found.recover_s == found.detect_s == pytest.approx(0.8)
    assert found.unanswered_s == 0
    assert found.missed_s == pytest.approx(0.02 * 29)
    assert found.lowest_back == pytest.approx(0.98)
    assert found.errors == {}


def test_times_run_from_the_fault_to_the_first_of_five_seconds() -> None:
    # Second 10 is that of the fault; nothing from 11 to 14, half from 15 to 19, all from 20 on.
    found = outage([20, *[0] * 4, *[55] * 5, *[100] * 20], 32.0, {11: 3, 13: 5})
    assert found.unanswered_s == 4
    assert found.detect_s == pytest.approx(15 - AT)
    assert found.recover_s == pytest.approx(19 - AT), "from 19 to 23 it is 91 on average"
    assert found.missed_s == pytest.approx(4 + 5 * 0.45)
    assert found.errors == {"timeout": 8}


def test_an_error_shows_that_the_fault_is_not_dealt_with() -> None:
    late = outage([100] * 30, 32.0, {16: 1})
    assert late.detect_s == pytest.approx(0.8), "the five seconds end before the error"
    assert outage([100] * 30, 32.0, {15: 1}).detect_s == pytest.approx(16 - AT)


def test_what_was_not_reached_is_not_known() -> None:
    found = outage([0] * 30, 20.0)
    assert (found.detect_s, found.recover_s) == (None, None)
    assert found.detect_within_s == pytest.approx(20 - AT)
    assert found.recover_within_s == pytest.approx(40 - AT)
    assert found.unanswered_s == 29
    assert found.away_p99_ms is None
    assert found.lowest_back == 0


def test_service_that_is_back_only_with_what_died_was_not_dealt_with_before() -> None:
    found = outage([*[0] * 10, *[100] * 20], 20.0)
    assert found.detect_s is None
    assert found.recover_s == pytest.approx(20 - AT)


def test_without_a_rate_before_nothing_is_known() -> None:
    assert figures(seconds([0] * 40), 40.0, "read", Times(fault_s=AT, back_s=None)) is None


def test_a_seconds_p99_is_the_edge_of_its_band_and_never_above_the_longest() -> None:
    (one,) = series(seconds([100]), 1.0, ("read",))
    assert one.p99_ms == 10.0
    assert (one.count, one.in_flight) == (100, 8)
    (none,) = series([], 1.5, ("read",))
    assert (none.count, none.p99_ms, none.in_flight) == (0, None, None)
