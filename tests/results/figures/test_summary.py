import csv
import io
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fake_run import fake_run
from made_rows import (
    altered,
    changed,
    csv_of,
    made_row,
    made_workload,
    plan_of,
    present,
    step_of,
    summarize,
)
from made_up import COLUMNS, fake_measurement
from weighbridge.results.figures.doubt import Doubt
from weighbridge.results.figures.reading import MetricFigure
from weighbridge.results.figures.service_level import (
    Served,
    Stop,
    default_bound_ms,
    most_within,
    path,
    served,
    stretches,
)
from weighbridge.results.figures.summary import Row, read_visits, show_spread, shown
from weighbridge.results.figures.use import Resource, StepUse
from weighbridge.results.run.histogram import Histogram
from weighbridge.results.run.resolved import ResolvedPlan
from weighbridge.results.run.step import Measurement, Pass, StepKey, StepResult
from weighbridge.results.run.store import RunStore
from weighbridge.results.show.report import results_grid
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


def test_percentiles_are_geometric_means_max_the_largest_mean_of_all_samples(run: RunStore) -> None:
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


@pytest.mark.parametrize("window_s", [0.15, 2.0])
def test_a_percentile_of_one_repeat_has_its_interval_by_order_statistics(window_s: float) -> None:
    (row,) = summarize(plan_of(ONE), [step_of(measured(window_s))])
    assert (row.count("samples"), row.value("p99") is None) == (400 * window_s, window_s < 1)
    found = row.figure("p90")
    assert (found.low or 0) < (found.value or 0) < (found.high or 0)


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


def test_the_csv_has_exactly_the_studys_columns_and_empty_cells_for_unknown(run: RunStore) -> None:
    rows = summarize(run.plan(), run.steps())
    text = csv_of(rows)
    lines = list(csv.DictReader(io.StringIO(text)))
    assert text.splitlines()[0] == COLUMNS
    wanted = ("swift", "large-read", "8")
    (absent,) = (
        line for line in lines if (line["layout"], line["workload"], line["workers"]) == wanted
    )
    assert {absent[one] for one in ("p90_ms", "throughput_ops_s", "samples")} == {""}
    assert absent["valid"] == "false"
    assert {line["valid"] for line in lines} == {"true", "false"}
    assert {line["object_size_bytes"] for line in lines} == {"1000000.0", "64000000.0"}
    bounds = changed(rows[0], steady=False, at_least=("p90", "max"))
    (line,) = csv.DictReader(io.StringIO(csv_of([bounds])))
    assert (line["ranked"], line["lower_bounds"]) == ("false", '["p90", "max"]'), (
        "even if not ranked"
    )


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
    assert row.within("p99.9") is None  # of 1379 samples: it needs 3688
    assert row.value("mean") == 14.0


def test_the_interval_over_repeats_is_that_of_the_median_and_of_the_highest_max() -> None:
    (row,) = summarize(binned_plan(3), binned_steps(14.5, 44.5, 24.5))
    assert (str(row.within("p50")), str(row.within("max"))) == ("(20, 30]", "(40, 50]")
    (two,) = summarize(binned_plan(2), binned_steps(14.5, 24.5))
    assert str(two.within("p50")) == "(15, 25]"
    few = binned_steps(14.5, 14.5, window_s=0.05)[1]
    (row,) = summarize(binned_plan(2), [*binned_steps(14.5), few])
    assert [point.within("p90") is None for point in row.points] == [False, True]
    assert row.within("p90") is None
    assert str(row.within("max")) == "(10, 20]"


def test_csv_and_table_have_the_ends_of_intervals_and_the_table_sorts_by_the_upper() -> None:
    rows = summarize(binned_plan(1), binned_steps(14.5))
    (line,) = csv.DictReader(io.StringIO(csv_of(rows)))
    assert (line["p90_ms"], line["p90_low_ms"], line["p90_high_ms"]) == ("", "10.0", "20.0")
    assert (line["p99_9_low_ms"], line["max_low_ms"], line["max_high_ms"]) == ("", "10.0", "20.0")
    assert line["driver"] == "cosbench"
    table = results_grid((*rows, altered(rows[0], driver="locust")))
    place = table.head.index("p90 (ms)")
    assert (table.lines[0][place], table.values[0][place]) == ("(10, 20]", 20)
    assert table.lines[0][table.head.index("Driver")] == "COSBench"


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
    assert first == ["12.5", "11.0", "14.0"]
    assert line["provisional"] == "true"
    assert line["doubts"] == '["grave (p90): set by the CPU limit: the quota ran out"]'


# What a step's figures include: only successes, its own window, its own repeat; and constant
# rates.

WORKLOAD = made_workload()


def failing(errors: Mapping[str, int]) -> Measurement:
    """8000 successful reads of 1 MB in 20 s, and the given number of failed ones."""
    return fake_measurement(workload="w", errors=errors)


def row_of(measurement: Measurement, use: StepUse | None = None) -> Row:
    step = step_of(measurement)
    (row,) = summarize(plan_of(WORKLOAD), [step], {step.key: use} if use is not None else {})
    return row


def used(cpu_s: float, share: float) -> StepUse:
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
def test_growing_latencies_count_only_at_a_rate(tmp_path: Path, rate_per_s: float | None) -> None:
    """In a closed loop they cannot grow alone; at a rate they show that a gateway falls behind."""
    workload = altered(WORKLOAD, name="small-read", rate_per_s=rate_per_s)
    run = fake_run(tmp_path, layouts=("swift",), workloads=(workload,), repeats=1, telemetry=False)
    key = StepKey(layout="swift", api="swift", workload="small-read", workers=4, repeat=0)
    complete = present(run.latest()[key].measurement)
    growing = tuple(
        altered(one, sum_us=one.sum_us * (1 if one.second < 10 else 2)) for one in complete.seconds
    )
    run.append(
        StepResult(key=key, measurement=altered(complete, seconds=growing), valid=True, order=1)
    )
    by_folder = read_visits(run, run.plan(), run.steps())[key]
    (by_steps,) = summarize(run.plan(), run.steps())
    assert by_folder.steady is by_steps.steady
    assert (by_folder.steady is False) is (rate_per_s is not None), by_folder.notes


READS = made_workload(name="reads", workers=(1, 4, 16), runtime=3.0)


def stop(workers: int, ops_s: float, p90_ms: float | None, *, ranked: bool = True) -> Stop:
    return Stop(
        workers=workers,
        throughput_ops_s=ops_s,
        low_ops_s=ops_s,
        high_ops_s=ops_s,
        p90_ms=p90_ms,
        low_ms=p90_ms,
        high_ms=p90_ms,
        ranked=ranked,
        repeats=1,
    )


def rows_of(runs: Path, repeats: int = 3) -> list[Row]:
    store = fake_run(runs, workloads=[READS], repeats=repeats, telemetry=False)
    return list(summarize(store.plan(), store.steps()))


@pytest.mark.parametrize(
    ("points", "bound_ms", "ops_s", "more"),
    [
        ([(100.0, 10.0), (200.0, 30.0)], 15.0, 125.0, False),  # on the line between them
        ([(100.0, 10.0), (200.0, 30.0)], 50.0, 200.0, True),  # beyond the last nothing is known
        ([(300.0, 5.0), (290.0, 30.0)], 20.0, 300.0, False),  # falling: the most is at a point
        ([(100.0, 10.0), (150.0, None), (200.0, 30.0)], 20.0, 100.0, True),  # a break in the path
        # A break within the bound on both sides hides nothing.
        ([(100.0, 10.0), (150.0, None), (200.0, 15.0), (300.0, 25.0)], 20.0, 250.0, False),
        ([(100.0, 10.0), (200.0, 30.0)], 9.0, None, False),
        ([(100.0, None)], 10.0, None, False),
        ([], 10.0, None, False),
    ],
)
def test_the_most_within_a_bound_is_on_the_measured_path(
    points: list[tuple[float, float | None]], bound_ms: float, ops_s: float | None, more: bool
) -> None:
    found = most_within(points, bound_ms)
    if ops_s is None:
        assert found is None
        return
    most, at_ms, open_end = present(found)
    assert (most, open_end) == (ops_s, more)
    assert more or at_ms == (5.0 if ops_s == 300.0 else bound_ms)


def test_only_ranked_neighbours_are_joined() -> None:
    stops = [
        stop(1, 10, 1.0),
        stop(2, 20, 2.0),
        stop(4, 30, None),
        stop(8, 40, 9.0),
        stop(16, 50, 20.0, ranked=False),
    ]
    assert [[one.workers for one in part] for part in stretches(stops)] == [[1, 2], [8]]


def test_a_figure_has_a_range_over_repeats(tmp_path: Path) -> None:
    rows = [row for row in rows_of(tmp_path) if row.layout == "rgw-beast"]
    bound_ms = (rows[0].value("p90") or 0) * 1.2
    found = served("rgw-beast", rows, bound_ms)
    low, most, high = found.low_ops_s, found.ops_s, found.high_ops_s
    assert (low or math.inf) <= (most or 0) <= (high or 0)
    alone = [row for row in rows_of(tmp_path, repeats=1) if row.layout == "swift"]
    found = served("swift", alone, 1000.0)
    assert (found.low_ops_s, found.high_ops_s, found.at_least) == (None, None, True)
    assert found.words.startswith("≥ ")


GRAVE = Doubt(what="hosts differ", grade="grave", words="other hosts")


@pytest.mark.parametrize("metrics", [(), ("p90",)])
def test_a_row_that_is_not_ranked_or_whose_p90_is_not_comparable_serves_nothing(
    tmp_path: Path, metrics: tuple[str, ...]
) -> None:
    doubt = altered(GRAVE, metrics=metrics)
    rows = [altered(row, doubts=(doubt,)) for row in rows_of(tmp_path) if row.layout == "swift"]
    assert served("swift", rows, 1000.0) == Served(layout="swift", ops_s=None, known=False)
    assert not any(one.joined for one in path(rows))


def test_unmeasured_rows_are_on_no_path_and_without_all_p90s_have_no_figure(tmp_path: Path) -> None:
    row = rows_of(tmp_path)[0]
    gone = changed(row, points=(), throughput_ops_s=None, p90_ms=None, valid=False)
    assert path([gone]) == ()
    lacking = (changed(row.points[0], p90_ms=None), *row.points[1:])
    (one,) = path([changed(row, p90_ms=None, points=lacking)])
    assert (one.p90_ms, one.low_ms, one.high_ms, one.joined) == (None, None, None, False)


def test_the_default_bound_is_a_round_one_that_most_paths_cross() -> None:
    fast, slow = [stop(1, 10, 1.0), stop(8, 40, 30.0)], [stop(1, 8, 4.0), stop(8, 20, 90.0)]
    bound_ms = default_bound_ms([fast, slow])
    assert bound_ms in (5.0, 10.0, 20.0)


@pytest.mark.parametrize("stops", [[], [stop(1, 10, 3.0)], [stop(1, 10, None)]])
def test_there_is_no_bound_between_fewer_than_two_latencies(stops: list[Stop]) -> None:
    assert default_bound_ms([stops]) is None


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (594.0, 576.0, 612.0, "594 ±3 %"),
        (594.0, 593.0, 595.0, "594 ±<1 %"),
        (594.0, 380.0, 928.0, "594 (380–928)"),
        (594.0, 380.0, None, "594 (≥ 380)"),
        (594.0, None, None, "594"),
        (None, None, None, "–"),
    ],
)
def test_a_figure_shows_half_of_its_interval_or_lopsided_ends(
    value: float | None, low: float | None, high: float | None, text: str
) -> None:
    assert show_spread(MetricFigure(value=value, low=low, high=high)) == text


def test_few_samples_show_an_order_statistic_interval_and_lower_bounds_a_sign() -> None:
    row = made_row(
        layout="a",
        p90_ms=87.0,
        p50_ms=40.0,
        p99_ms=150.0,
        max_ms=2000.0,
        intervals={"p50": (35, 70), "p90": (61, 140), "p99": (70, None)},
        at_least=("p50", "max"),
        valid=True,
    )
    assert shown(row, "p90") == "87.0 [61.0–140]"
    assert shown(row, "p50") == "≥ 40.0 [35.0–70.0]"
    assert shown(row, "p99") == "150 [≥ 70.0]"
    assert shown(row, "p90", spread=False) == "87.0"
    assert shown(row, "max") == "≥ 2,000"
