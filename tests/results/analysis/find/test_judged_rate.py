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


STRICT = LatencyBound(metric="p90", most_ms=30.0)
BUSY = StepUse(others=0.4, lab=True)


@pytest.mark.parametrize(
    ("given", "verdict", "why"),
    [
        ({"begun": 1985}, "served", ""),
        ({"begun": 1970}, "not served", "of the 100 intended (98.5%)"),
        ({"bound": STRICT}, "not served", "p90 of reads is 40"),
        ({"errors": {"http-503": 1}}, "served", ""),
        ({"errors": {"http-503": 40}}, "not served", "http-503: 40"),
        # A full driver or a busy machine says nothing, whether or not a bound is missed.
        ({"driver_share": 0.9}, "cannot tell", "the driver used 90% of its CPU limit"),
        ({"driver_share": 0.9, "bound": STRICT}, "cannot tell", "the driver used 90%"),
        ({"driver_share": 0.9, "begun": 1000}, "cannot tell", ""),
        ({"use": BUSY}, "cannot tell", "other programs used 40 %"),
    ],
)
def test_a_rate_is_served_within_all_bounds_if_driver_and_machine_allow_to_tell(
    given: dict[str, Any], verdict: str, why: str
) -> None:
    found = judged(**given)
    assert (found.verdict, why in found.why) == (verdict, True)


def test_a_rate_served_has_its_latency_and_what_is_doubtful_about_it() -> None:
    found = judged()
    assert (found.verdict, found.why, found.rate_per_s) == ("served", "", 100.0)
    assert found.latency_ms == pytest.approx(40, rel=0.05)
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


def test_too_few_samples_or_a_histogram_that_cannot_be_read_say_nothing() -> None:
    found = judged(begun=20, window_s=0.2, mean_ms=160.0)  # 5 samples
    assert (found.verdict, found.why) == ("cannot tell", "p90 of reads is not known")
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
