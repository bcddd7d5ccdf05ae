"""What a step's figures include: only successes, its own window, its own repeat; and constant
rates.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from fake_run import fake_run
from made_rows import altered, made_workload, plan_of, step_of
from made_up import fake_measurement
from weighbridge.results.analysis.steps.summary import Row, summarize
from weighbridge.results.analysis.steps.use import Resource, StepUse
from weighbridge.results.analysis.steps.visit import read_visits
from weighbridge.results.record.histogram import Histogram
from weighbridge.results.record.measurement import Measurement
from weighbridge.results.record.step import StepKey, StepResult

WORKLOAD = made_workload()


def failing(errors: Mapping[str, int]) -> Measurement:
    """8000 successful reads of 1 MB in 20 s, and the given number of failed ones."""
    return fake_measurement(workload="w", errors=errors)


def row_of(measurement: Measurement, use: StepUse | None = None) -> Row:
    step = step_of(measurement)
    (row,) = summarize(plan_of(WORKLOAD), [step], {step.key: use} if use is not None else {})
    return row


def used(cpu_s: float, share: float) -> StepUse:
    """What a gateway's host used in a step."""
    cpu = Resource.model_validate(
        {"what": "CPU", "host": "gateway-1", "tier": "gateway", "share": share, "limit": "1 CPU"}
    )
    return StepUse(gateway_cpu_s=cpu_s, resources=(cpu,))


@pytest.mark.parametrize("errors", [{}, {"http-503": 8}, {"timeout": 3000, "reset": 5000}])
def test_failed_requests_count_only_as_errors(errors: dict[str, int]) -> None:
    row = row_of(failing(errors))
    (point,) = row.points
    assert row.value("throughput") == point.value("throughput") == 400
    assert row.value("bandwidth") == point.value("bandwidth") == 400
    assert row.count("samples") == point.count("samples") == 8000
    assert row.count("errors") == point.count("errors") == sum(errors.values())
    assert row.value("mean") == point.value("mean") is not None, "of one repeat its own"


def test_a_failed_request_makes_no_other_cheaper_or_faster() -> None:
    use = StepUse(gateway_cpu_s=16.0, storage_cpu_s=8.0)
    clean, spoilt = row_of(failing({}), use), row_of(failing({"http-503": 8000}), use)
    assert (clean.value("gateway-cpu"), clean.value("storage-cpu")) == (2.0, 1.0)
    assert (spoilt.value("gateway-cpu"), spoilt.value("storage-cpu")) == (2.0, 1.0)
    assert [spoilt.value(one) for one in ("mean", "p50", "p90")] == [
        clean.value(one) for one in ("mean", "p50", "p90")
    ]


def test_bytes_from_disk_are_compared_with_those_that_reads_answered() -> None:
    use = StepUse(disk_read_bytes=2e9)
    assert row_of(failing({"reset": 9}), use).value("from-disk") == 25.0, "of 8000 MB"
    assert row_of(failing({})).value("from-disk") is None
    assert row_of(failing({}), StepUse(disk_read_bytes=0.0)).value("from-disk") == 0.0
    nothing = fake_measurement(workload="w", mean_ms=10)
    (tally,) = nothing.tallies
    empty = altered(nothing, tallies=(altered(tally, bytes=0),))
    assert row_of(empty, use).value("from-disk") is None


def test_where_something_else_is_done_as_well_what_disks_read_for_reads_is_unknown() -> None:
    use, both = StepUse(disk_read_bytes=2e9), fake_measurement(workload="w")
    (read,) = both.tallies
    for other, known in (("write", False), ("head", False), ("read-range", True)):
        second = altered(read, operation=other)
        step = step_of(altered(both, tallies=(read, second)))
        (row,) = summarize(plan_of(WORKLOAD), [step], {step.key: use})
        assert row.value("from-disk") == (12.5 if known else None), other


def test_rates_use_the_real_length_of_the_window_without_warm_up() -> None:
    measured = fake_measurement(workload="w", window_s=20.0)
    longer = altered(measured, window_s=20.4, warmup_s=7.0)
    row = row_of(longer)
    assert row.value("throughput") == pytest.approx(8000 / 20.4)
    assert row.value("bandwidth") == pytest.approx(8000 / 20.4)


def test_each_repeat_keeps_its_own_number_and_its_own_figures() -> None:
    steps = [
        step_of(fake_measurement(workload="w", mean_ms=mean_ms), repeat=number)
        for number, mean_ms in enumerate((10, 20, 40))
    ]
    (row,) = summarize(plan_of(WORKLOAD, repeats=3), steps)
    by_repeat = {point.repeat: point.value("throughput") for point in row.points}
    assert by_repeat == {0: 400, 1: 200, 2: 100}


def test_failures_belong_to_their_repeat_even_if_it_is_left_out() -> None:
    first = step_of(failing({"reset": 5}))
    second = altered(step_of(failing({"timeout": 2000}), repeat=1), valid=False)
    (row,) = summarize(plan_of(WORKLOAD, repeats=2), [first, second])
    assert [point.count("errors") for point in row.points] == [5, 2000]
    assert (row.count("errors"), row.repeats, row.count("samples")) == (2005, 1, 8000)


def test_a_repeat_left_out_adds_neither_latencies_nor_host_use() -> None:
    steps = [
        step_of(fake_measurement(workload="w", mean_ms=mean_ms), repeat=number)
        for number, mean_ms in enumerate((10, 40))
    ]
    steps[1] = altered(steps[1], valid=False)
    uses = {
        step.key: used(cpu_s, share)
        for step, cpu_s, share in zip(steps, (8.0, 80.0), (0.3, 0.9), strict=True)
    }
    (row,) = summarize(plan_of(WORKLOAD, repeats=2), steps, uses)
    (alone,) = summarize(plan_of(WORKLOAD), steps[:1], uses)
    assert row.value("gateway-cpu") == alone.value("gateway-cpu") == 1.0
    assert row.resources == alone.resources
    assert [one.share for one in row.resources] == [0.3]
    assert [row.value(one) for one in ("mean", "p90", "max")] == [
        alone.value(one) for one in ("mean", "p90", "max")
    ]


def test_a_percentile_of_few_digits_is_not_above_the_exact_maximum() -> None:
    # 1 to 2 us of 10 000 are beyond what a histogram of three digits tells apart.
    values = [9_995] * 1000
    tally = altered(
        fake_measurement(workload="w").tallies[0],
        count=1000,
        latency=Histogram.of(values).encode(),
        min_us=9_995,
        max_us=9_995,
        sum_us=sum(values),
    )
    assert Histogram.of(values).percentile_us(90) > 9_995
    row = row_of(altered(fake_measurement(workload="w"), tallies=(tally,), seconds=()))
    assert (row.value("p50"), row.value("p90"), row.value("max")) == (9.995, 9.995, 9.995)


@pytest.mark.parametrize("rate_per_s", [None, 400.0])
def test_growing_latencies_count_only_at_a_constant_rate(
    tmp_path: Path, rate_per_s: float | None
) -> None:
    """In a closed loop they cannot grow alone; at a rate only they show that a gateway falls
    behind.
    """
    workload = altered(WORKLOAD, name="small-read", rate_per_s=rate_per_s)
    run = fake_run(tmp_path, layouts=("swift",), workloads=(workload,), repeats=1, telemetry=False)
    key = StepKey(layout="swift", api="swift", workload="small-read", workers=4, repeat=0)
    complete = run.latest()[key].measurement
    assert complete is not None
    growing = tuple(
        altered(one, sum_us=one.sum_us * (1 if one.second < 10 else 2)) for one in complete.seconds
    )
    run.append(
        StepResult(key=key, measurement=altered(complete, seconds=growing), valid=True, order=1)
    )
    by_folder = read_visits(run, run.plan())[key]
    (by_steps,) = summarize(run.plan(), run.steps())
    assert by_folder.steady is by_steps.steady
    assert (by_folder.steady is False) is (rate_per_s is not None), by_folder.notes
