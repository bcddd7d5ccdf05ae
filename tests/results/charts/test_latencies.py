from __future__ import annotations

import random
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from fake_run import WORKLOADS, StepFaults, fake_run
from made_rows import altered
from weighbridge.common.errors import InvalidMeasurement
from weighbridge.results.analysis.steps.summary import summarize
from weighbridge.results.charts.latencies import (
    KindLatencies,
    LayoutLatencies,
    RepeatLatencies,
    read_latencies,
)
from weighbridge.results.record.histogram import Histogram
from weighbridge.results.record.step import StepResult
from weighbridge.results.record.store import RunStore

SHORT = tuple(altered(workload, runtime=3.0, workers=(1, 8)) for workload in WORKLOADS[:1])


def counted(values_us: list[int], repeat: int = 0, *, ranked: bool = True) -> RepeatLatencies:
    buckets = Histogram.of(values_us).buckets()
    reached = tuple(accumulate(count for _, count in buckets))
    tops = tuple(top for top, _ in buckets)
    return RepeatLatencies(
        repeat=repeat, ranked=ranked, tops_us=tops, reached=reached, max_us=max(values_us)
    )


def read(store: RunStore, workers: int | None = None) -> tuple[KindLatencies, ...]:
    rows = summarize(store.plan(), store.steps())
    return read_latencies(store.plan(), rows, store.steps(), workers=workers)


def with_latency(step: StepResult, latency: str) -> StepResult:
    assert step.measurement is not None
    tallies = tuple(altered(tally, latency=latency) for tally in step.measurement.tallies)
    return altered(step, measurement=altered(step.measurement, tallies=tallies))


def test_percentiles_are_those_of_the_histogram_and_never_above_the_max() -> None:
    values = [10_001, 20_003, 30_007, 40_009, 50_021, 63_001]
    one = counted(values)
    assert one.percentile_us(100) == 63_001
    for percent in (1, 25, 50, 80):
        assert one.percentile_us(percent) == Histogram.of(values).percentile_us(percent)
    with pytest.raises(InvalidMeasurement):
        RepeatLatencies(repeat=0, ranked=True).percentile_us(50)
    assert counted([1000] * 50).interval_us(99) is None, "beyond the samples"


def test_percentiles_of_repeats_are_averaged_geometrically_and_not_pooled() -> None:
    repeats = (counted([1000] * 99 + [9000]), counted([2000] * 100, 1), counted([3000] * 100, 2))
    one = LayoutLatencies(layout="swift", repeats=repeats)
    assert one.middle_us(50) == pytest.approx((1000 * 2000 * 3000) ** (1 / 3), rel=2e-3)
    assert one.middle_us(100) == pytest.approx((9000 * 2000 * 3000) ** (1 / 3), rel=2e-3)
    assert one.largest_us == 9000


def test_repeats_that_are_not_ranked_do_not_count() -> None:
    one = LayoutLatencies(
        layout="swift", repeats=(counted([1000] * 50), counted([70_000] * 50, 1, ranked=False))
    )
    assert one.middle_us(50) < 1100
    assert one.largest_us == 1000
    assert len(one.known) == 2


def test_a_percentile_is_reached_where_every_repeat_has_samples_beyond() -> None:
    one = LayoutLatencies(
        layout="swift", repeats=(counted([1000] * 2000), counted([1000] * 199, 1))
    )
    assert one.reaches(50)
    assert not one.reaches(90)
    assert LayoutLatencies(layout="swift", repeats=(counted([1000] * 200),)).reaches(90)


def test_the_interval_of_a_percentile_holds_the_true_one_about_95_times_in_100() -> None:
    draw = random.Random(5)
    held = 0
    for _ in range(1000):
        values = sorted(draw.randrange(1_000_000, 2_000_000) for _ in range(300))
        each: dict[str, Any] = {
            "tops_us": tuple(values),
            "reached": tuple(range(1, 301)),
            "max_us": values[-1],
        }
        one = RepeatLatencies(repeat=0, ranked=True, **each)
        interval = one.interval_us(90)
        assert interval is not None
        held += interval[0] <= 1_900_000 <= interval[1]
    assert 0.94 <= held / 1000 <= 0.98


def test_latencies_are_read_at_the_largest_worker_count_at_which_most_layouts_count(
    tmp_path: Path,
) -> None:
    given: dict[str, Any] = {"workloads": SHORT, "repeats": 1, "telemetry": False}
    whole = fake_run(tmp_path / "whole", **given)
    absent = StepFaults(absent=(("swift", "small-read", 8),))
    lacking = fake_run(tmp_path / "lacking", spoilt=absent, **given)
    assert [kind.workers for kind in read(whole)] == [8]
    assert [kind.workers for kind in read(lacking)] == [1]
    assert [kind.workers for kind in read(lacking, workers=8)] == [8]


def test_a_histogram_that_cannot_be_decoded_is_a_gap_that_says_why(tmp_path: Path) -> None:
    store = fake_run(tmp_path, workloads=SHORT, repeats=2, telemetry=False)
    steps = [
        with_latency(step, "HISTnot")
        if (step.key.layout, step.key.workers, step.key.repeat) == ("swift", 8, 0)
        else step
        for step in store.steps()
    ]
    (kind,) = read_latencies(store.plan(), summarize(store.plan(), steps), steps, workers=8)
    beast, swift = kind.layouts
    assert [one.count > 0 for one in swift.repeats] == [False, True]
    assert len(beast.ranked) == 2
    assert len(kind.gaps) == 1
    assert "repeat 1 on swift: a histogram cannot be decoded" in kind.gaps[0]


def test_a_histogram_with_another_count_is_a_gap(tmp_path: Path) -> None:
    store = fake_run(tmp_path, workloads=SHORT, repeats=1, telemetry=False)
    steps = [with_latency(step, Histogram.of([1000, 2000]).encode()) for step in store.steps()]
    (kind,) = read_latencies(store.plan(), summarize(store.plan(), store.steps()), steps)
    assert not any(one.known for one in kind.layouts)
    assert "counts 2 samples, but" in kind.gaps[0]


def test_a_step_without_a_measurement_is_a_gap_with_its_notes(tmp_path: Path) -> None:
    spoilt = StepFaults(failed=(("swift", "small-read", 8),))
    (kind,) = read(fake_run(tmp_path, workloads=SHORT, repeats=2, telemetry=False, spoilt=spoilt))
    assert "repeat 1 on swift: the gateway did not answer for 60 s" in kind.gaps[0]


def test_latencies_in_bins_are_a_gap_with_that_reason(tmp_path: Path) -> None:
    (kind,) = read(
        fake_run(tmp_path, workloads=SHORT, repeats=1, telemetry=False, driver="cosbench")
    )
    assert all("the driver reports latencies only in bins" in gap for gap in kind.gaps)
    assert not any(one.known for one in kind.layouts)


def test_an_a_a_control_is_never_among_the_layouts(tmp_path: Path) -> None:
    layouts = ("rgw-beast", "rgw-beast-again")
    store = fake_run(tmp_path, workloads=SHORT, repeats=1, telemetry=False, layouts=layouts)
    plan = altered(store.plan(), twins={"rgw-beast-again": "rgw-beast"})
    (kind,) = read_latencies(plan, summarize(plan, store.steps()), store.steps())
    assert [one.layout for one in kind.layouts] == ["rgw-beast"]
