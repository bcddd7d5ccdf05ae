from __future__ import annotations

import csv
import io
import math
from typing import Any

import pytest

from made_rows import altered, changed, csv_of, made_row, made_workload, plan_of, step_of
from made_up import fake_measurement
from summary_columns import COLUMNS
from weighbridge.results.analysis.steps.summary import Row, summarize
from weighbridge.results.analysis.steps.use import StepUse
from weighbridge.results.doubt import Doubt
from weighbridge.results.record.histogram import Histogram
from weighbridge.results.record.measurement import Measurement
from weighbridge.results.record.resolved import ResolvedPlan
from weighbridge.results.record.step import Pass, StepResult
from weighbridge.results.record.store import RunStore
from weighbridge.results.report.tables import results_table
from weighbridge.suites import Objects, Uniform

ONE = made_workload(1000, runtime=2.0)
MIX = {"read": 3.0, "list": 1.0}


def measured(window_s: float = 2.0, **more: Any) -> Measurement:
    return fake_measurement(workload="w", window_s=window_s, **more)


def rows_by(run: RunStore) -> dict[tuple[str, str, int], Row]:
    return {
        (row.layout, row.workload, row.workers): row for row in summarize(run.plan(), run.steps())
    }


def test_there_is_a_row_for_everything_planned_in_the_order_of_the_plan(run: RunStore) -> None:
    rows = summarize(run.plan(), run.steps())
    wanted = [
        (layout, workload.name, workers)
        for workload in run.plan().suite.workloads
        for workers in workload.workers
        for layout in ("rgw-beast", "swift")
    ]
    assert [(row.layout, row.workload, row.workers) for row in rows] == wanted


def test_percentiles_are_geometric_means_max_the_largest_and_mean_that_of_all_samples(
    run: RunStore,
) -> None:
    row = rows_by(run)["rgw-beast", "small-read", 4]
    tallies = [
        (step.measurement.tallies[0], step.measurement.window_s)
        for step in run.steps()
        if step.measurement
        and (step.key.layout, step.key.workload, step.key.workers) == ("rgw-beast", "small-read", 4)
    ]
    assert row.repeats == len(tallies) == 2
    p90s = [Histogram.decode(tally.latency or "").percentile_us(90) / 1000 for tally, _ in tallies]
    assert row.value("p90") == pytest.approx(math.prod(p90s) ** 0.5)
    assert row.value("max") == max(tally.max_us or 0 for tally, _ in tallies) / 1000
    assert row.value("mean") == pytest.approx(
        sum(tally.sum_us or 0 for tally, _ in tallies)
        / sum(tally.count for tally, _ in tallies)
        / 1000
    )
    assert row.value("throughput") == pytest.approx(
        math.prod(tally.count / window for tally, window in tallies) ** 0.5
    )
    assert row.value("bandwidth") == pytest.approx(row.value("throughput"))
    assert row.count("samples") == sum(tally.count for tally, _ in tallies)


def test_an_invalid_repeat_is_left_out_and_noted_and_its_errors_still_count(run: RunStore) -> None:
    row = rows_by(run)["rgw-beast", "small-write", 32]
    assert (row.valid, row.repeats) == (True, 1)
    assert [point.valid for point in row.points] == [False, True]
    assert row.value("throughput") == row.points[1].value("throughput")
    assert row.notes[0] == "1 of 2 repeats left out as not valid"
    assert any("http-503: 40" in note and note.startswith("repeat 1: ") for note in row.notes)
    assert row.count("errors") == 43


def test_a_failed_step_and_one_never_measured_have_no_figures_and_say_why(run: RunStore) -> None:
    failed = rows_by(run)["swift", "small-read", 16]
    assert (failed.repeats, failed.valid, failed.lost) == (1, True, 1)
    assert "repeat 1: the gateway did not answer for 60 s" in failed.notes
    absent = rows_by(run)["swift", "large-read", 8]
    assert (absent.valid, absent.notes) == (False, ("not measured",))
    assert {absent.value(one) for one in ("throughput", "p50", "max")} == {None}
    assert (absent.count("samples"), absent.count("errors")) == (None, None)


def test_without_valid_repeats_figures_stay_but_the_row_is_not_valid() -> None:
    (row,) = summarize(plan_of(ONE), [step_of(measured(), notes=("driver busy",), valid=False)])
    assert not row.valid
    assert row.value("throughput") == 400
    assert row.notes == ("not valid", "driver busy")


def test_notes_of_repeats_that_differ_in_their_numbers_alone_are_one_with_their_range() -> None:
    said = (("lost 3 of 9 clients", "slow"), ("lost 4 of 9 clients",), ("slow",))
    steps = [step_of(measured(), repeat, notes, valid=False) for repeat, notes in enumerate(said)]
    (row,) = summarize(plan_of(ONE, repeats=3), steps)
    assert row.notes == (
        "not valid",
        "repeats 1, 2: lost 3 to 4 of 9 clients",
        "repeats 1, 3: slow",
    )


def test_a_percentile_unknown_in_one_repeat_is_unknown_in_the_row() -> None:
    steps = [step_of(measured(2.0)), step_of(measured(0.2), 1)]
    (row,) = summarize(plan_of(ONE, repeats=2), steps)
    assert [point.count("samples") for point in row.points] == [800, 80]
    assert [point.value("p99") is None for point in row.points] == [False, True]
    assert row.value("p99") is None
    assert row.value("p90") is not None


def test_a_percentile_of_few_samples_has_an_interval_and_one_of_many_has_none() -> None:
    (row,) = summarize(plan_of(ONE), [step_of(measured(0.15))])
    assert (row.count("samples"), row.value("p99")) == (60, None)
    found = row.figure("p90")
    assert None not in (found.low, found.value, found.high)
    assert (found.low or 0) < (found.value or 0) < (found.high or 0)
    (row,) = summarize(plan_of(ONE), [step_of(measured(2.0))])
    assert row.value("p90") is not None
    assert row.figure("p90").low is None


def test_a_percentile_is_never_above_the_exact_maximum(run: RunStore) -> None:
    for row in rows_by(run).values():
        for point in row.points:
            assert point.value("max") is not None
            known = [
                value for one in ("p50", "p90", "p99") if (value := point.value(one)) is not None
            ]
            assert max(known, default=0.0) <= point.value("max")


def test_each_operation_of_a_mix_has_a_row_and_only_bodies_have_bandwidth() -> None:
    sizes = Objects(size=Uniform(uniform=(1000, 3000)))
    workload = altered(ONE, objects=sizes, operations=MIX)
    step = step_of(measured(5.0, operations=MIX, object_size_bytes=2000))
    read, listed = summarize(plan_of(workload), [step])
    assert (read.operation, read.object_size_bytes, read.count("samples")) == ("read", 2000, 1500)
    assert (read.value("throughput"), listed.value("throughput")) == (1500 / 5, 500 / 5), (
        "each of its own operations alone"
    )
    assert read.value("bandwidth") == pytest.approx(1500 * 2000 / 1e6 / 5)
    assert (listed.operation, listed.count("samples")) == ("list", 500)
    assert listed.value("bandwidth") is None


def test_cpu_seconds_are_per_1000_successes_of_all_kinds_over_repeats() -> None:
    workload = altered(ONE, operations=MIX)
    steps = [step_of(measured(5.0, operations=MIX), repeat) for repeat in range(3)]
    keys = [step.key for step in steps]
    uses = {
        key: StepUse(gateway_cpu_s=cpu_s, storage_cpu_s=4.0)
        for key, cpu_s in zip(keys, (1.0, 2.0, 9.0), strict=True)
    }
    for row in summarize(plan_of(workload, repeats=3), steps, uses):
        assert (row.value("gateway-cpu"), row.value("storage-cpu")) == pytest.approx(
            (18 ** (1 / 3) / 2, 2.0)
        )  # of 2000 operations
    for row in summarize(plan_of(workload, repeats=3), steps, {keys[0]: uses[keys[0]]}):
        assert row.value("gateway-cpu") is None
        assert row.saturated is None


def test_the_csv_has_exactly_the_columns_of_the_study_and_empty_cells_for_unknown(
    run: RunStore,
) -> None:
    rows = summarize(run.plan(), run.steps())
    text = csv_of(rows)
    lines = list(csv.DictReader(io.StringIO(text)))
    assert text.splitlines()[0] == COLUMNS
    wanted = ("swift", "large-read", "8")
    (absent,) = (
        line for line in lines if (line["layout"], line["workload"], line["workers"]) == wanted
    )
    assert {absent[one] for one in ("p90_ms", "throughput_ops_s", "samples")} == {""}
    assert absent["valid"] == "no"
    assert {line["valid"] for line in lines} == {"yes", "no"}
    assert {line["object_size_bytes"] for line in lines} == {"1000000", "64000000"}
    bounds = changed(rows[0], steady=False, at_least=("p90", "max"))
    (line,) = csv.DictReader(io.StringIO(csv_of([bounds])))
    assert (line["ranked"], line["lower_bounds"]) == ("no", "p90; max"), "even if not ranked"


def binned_steps(*samples_ms: float, repeats: int = 1, window_s: float = 5.0) -> list[StepResult]:
    """Steps as COSBench reports them; all latencies of a repeat are near the given one."""
    return [
        step_of(
            measured(window_s, mean_ms=mean_ms, spread=0.001, bins=True), repeat, driver="cosbench"
        )
        for repeat, mean_ms in enumerate(samples_ms * repeats)
    ]


def binned_plan(repeats: int) -> ResolvedPlan:
    passes = {"swift": (Pass(api="swift", driver="cosbench", workloads=(ONE,)),)}
    return altered(plan_of(ONE, repeats=repeats), passes=passes)


def test_percentiles_of_bins_are_intervals_not_figures() -> None:
    (row,) = summarize(binned_plan(1), binned_steps(14.5))
    assert {row.value(one) for one in ("p50", "p90", "p99", "max")} == {None}
    assert [str(one) for one in (row.within("p50"), row.within("p90"), row.within("max"))] == [
        "(10, 20]"
    ] * 3
    assert row.within("p99") is None  # of 1379 samples: it needs 2000
    assert row.value("mean") == 14.0


def test_the_interval_over_repeats_is_that_of_the_median_and_of_the_highest_max() -> None:
    (row,) = summarize(binned_plan(3), binned_steps(14.5, 44.5, 24.5))
    assert (str(row.within("p50")), str(row.within("max"))) == ("(20, 30]", "(40, 50]")
    (two,) = summarize(binned_plan(2), binned_steps(14.5, 24.5))
    assert str(two.within("p50")) == "(15, 25]"
    few = binned_steps(14.5, 14.5, window_s=0.4)[1]
    (row,) = summarize(binned_plan(2), [*binned_steps(14.5), few])
    assert [point.within("p90") is None for point in row.points] == [False, True]
    assert row.within("p90") is None
    assert str(row.within("max")) == "(10, 20]"


def test_csv_and_table_have_the_ends_of_intervals_and_the_table_sorts_by_the_upper() -> None:
    rows = summarize(binned_plan(1), binned_steps(14.5))
    (line,) = csv.DictReader(io.StringIO(csv_of(rows)))
    assert (line["p90_ms"], line["p90_low_ms"], line["p90_high_ms"]) == ("", "10", "20")
    assert (line["p99_low_ms"], line["max_low_ms"], line["max_high_ms"]) == ("", "10", "20")
    assert line["driver"] == "cosbench"
    shown = results_table(rows)
    titles = [column.title for column in shown.columns]
    (cells,) = shown.lines
    assert {len(cells.cells), len(cells.values)} == {len(titles)}
    assert (cells.cells[titles.index("p90")], cells.values[titles.index("p90")]) == ("(10, 20]", 20)
    assert cells.cells[titles.index("Driver")] == "COSBench"


def test_the_csv_has_first_bytes_intervals_over_repeats_and_doubts() -> None:
    quota = Doubt(
        what="set by the CPU limit", grade="grave", words="the quota ran out", metrics=("p90",)
    )
    row = made_row(
        layout="a",
        first_byte_ms=12.5,
        intervals={"first-byte": (11, 14)},
        doubts=(quota,),
        valid=True,
        steady=True,
    )
    (line,) = csv.DictReader(io.StringIO(csv_of([row])))
    first = [line[f"first_byte_{one}ms"] for one in ("", "over_repeats_low_", "over_repeats_high_")]
    assert first == ["12.500", "11", "14"]
    assert line["provisional"] == "yes"
    assert line["doubts"] == "grave (p90): set by the CPU limit: the quota ran out"
