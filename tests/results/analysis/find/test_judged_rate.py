from __future__ import annotations

from typing import Any

import pytest

from fake_run import WORKLOADS
from made_rows import altered
from made_up import fake_measurement
from weighbridge.results.analysis.find.searches import RateTrial, least_per_s, rate_trial, window_s
from weighbridge.results.analysis.steps.use import StepUse
from weighbridge.results.analysis.steps.visit import visit
from weighbridge.results.metrics import METRICS
from weighbridge.results.record import LatencyBound, StepKey, StepResult
from weighbridge.suites import Bounds

KEY = StepKey(
    layout="rgw",
    api="swift",
    workload="small-read",
    workers=4,
    repeat=0,
    rate_per_s=100.0,
    search_step=1,
)
BOUND = LatencyBound(metric="p90", most_ms=50.0)


def judged(
    *,
    begun: int = 2000,
    bound: LatencyBound = BOUND,
    use: StepUse | None = None,
    spoil: bool = False,
    **measured: Any,
) -> RateTrial:
    """A step of 20 s at 100/s in which by default 2000 of 10 ms were sent, and served."""
    given = {"workers": 4, "window_s": 20.0, "mean_ms": 40.0, "spread": 0.01, **measured}
    measurement = altered(fake_measurement(**given), begun=begun, behind_us=0)
    if spoil:
        tallies = tuple(altered(one, latency="x") for one in measurement.tallies)
        measurement = altered(measurement, tallies=tallies)
    step = StepResult(key=KEY, measurement=measurement, valid=True, order=0)
    return rate_trial(step, visit(step, use), bound, Bounds())


def test_a_rate_within_the_bound_is_served() -> None:
    found = judged()
    assert (found.verdict, found.why) == ("served", "")
    assert found.rate_per_s == 100.0
    assert found.latency_ms == pytest.approx(40, rel=0.05)


def test_a_latency_beyond_the_bound_is_not_served_and_says_so() -> None:
    found = judged(bound=LatencyBound(metric="p90", most_ms=30.0))
    assert found.verdict == "not served"
    assert found.why.startswith("p90 of reads is 40")


def test_a_rate_of_which_less_than_99_per_cent_was_reached_is_not_served() -> None:
    assert judged(begun=1985).verdict == "served"
    found = judged(begun=1970)
    assert found.verdict == "not served"
    assert "of the 100 intended (98.5%)" in found.why


def test_failures_beyond_the_bound_of_the_suite_are_not_served() -> None:
    assert judged(errors={"http-503": 1}).verdict == "served"
    found = judged(errors={"http-503": 40})
    assert found.verdict == "not served"
    assert "http-503: 40" in found.why


def test_a_saturated_driver_says_nothing_even_if_the_bound_is_missed() -> None:
    for most_ms in (30.0, 50.0):
        found = judged(driver_share=0.9, bound=LatencyBound(metric="p90", most_ms=most_ms))
        assert found.verdict == "cannot tell"
        assert "the driver used 90% of its CPU limit" in found.why


def test_a_saturated_driver_that_does_not_reach_the_rate_says_nothing() -> None:
    assert judged(driver_share=0.9, begun=1000).verdict == "cannot tell"


def test_a_busy_machine_says_nothing_and_a_less_busy_one_is_a_doubt() -> None:
    found = judged(use=StepUse(others=0.4, lab=True))
    assert found.verdict == "cannot tell"
    assert "other programs used 40 %" in found.why
    found = judged(use=StepUse(others=0.15, lab=True))
    assert found.verdict == "served"
    assert [doubt.what for doubt in found.doubts] == ["machine busy"]


def test_the_upper_end_of_an_interval_decides() -> None:
    few = {"window_s": 1.0, "spread": 0.3, "workers": 4}  # 100 samples: p90 has an interval
    loose = judged(begun=100, bound=LatencyBound(metric="p90", most_ms=200.0), **few)
    assert loose.verdict == "served"
    assert loose.latency_ms is not None
    close = judged(
        begun=100, bound=LatencyBound(metric="p90", most_ms=loose.latency_ms * 1.01), **few
    )
    assert close.verdict == "not served"
    assert " to " in close.why


def test_too_few_samples_for_the_metric_say_nothing() -> None:
    few = {"window_s": 0.2, "mean_ms": 160.0}  # 5 samples
    found = judged(begun=20, **few)
    assert found.verdict == "cannot tell"
    assert found.why == "p90 of reads is not known"


def test_a_histogram_that_cannot_be_read_says_nothing() -> None:
    found = judged(spoil=True)
    assert found.verdict == "cannot tell"
    assert found.why


def test_windows_hold_the_samples_of_a_percentile_up_to_a_minute() -> None:
    workload = altered(WORKLOADS[0], runtime=2.0)
    p90, p99, longest = (METRICS[name] for name in ("p90", "p99", "max"))
    assert window_s(workload, p90, 1000.0) == 10.0
    assert window_s(workload, p90, 10.0) == 20.0
    assert window_s(workload, p99, 20.0) == 60.0
    assert window_s(workload, longest, 0.1) == 10.0
    assert least_per_s(workload, p90) == pytest.approx(10 / 60)
    assert window_s(altered(workload, runtime=90.0), p90, 20.0) == 90.0


def test_a_step_without_a_rate_is_no_trial() -> None:
    key = altered(KEY, rate_per_s=None, search_step=None)
    step = StepResult(key=key, measurement=fake_measurement(), valid=True, order=0)
    with pytest.raises(ValueError, match="not a measured step at a rate"):
        rate_trial(step, visit(step), BOUND, Bounds())
