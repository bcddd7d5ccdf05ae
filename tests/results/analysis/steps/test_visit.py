from __future__ import annotations

from pathlib import Path

import pytest

from fake_run import WORKLOADS, fake_run
from made_rows import altered
from made_up import fake_measurement
from weighbridge.results.analysis.steps.summary import rows_of, summarize
from weighbridge.results.analysis.steps.use import Resource, StepUse
from weighbridge.results.analysis.steps.visit import JudgedStep, read_visits, visit
from weighbridge.results.derivation import derive
from weighbridge.results.record.histogram import Histogram
from weighbridge.results.record.measurement import Measurement
from weighbridge.results.record.step import StepKey, StepResult
from weighbridge.results.record.store import RunStore

ONE = (altered(WORKLOADS[0], runtime=3.0, workers=(4,)),)


def step_of(measurement: Measurement, *, repeat: int = 0) -> StepResult:
    key = StepKey(layout="swift", api="swift", workload="small-read", workers=4, repeat=repeat)
    return StepResult(key=key, measurement=measurement, valid=True, order=repeat)


def nic(share: float, tier: str = "client") -> StepUse:
    about = {"what": "network", "host": f"{tier}-1", "tier": tier, "limit": "1 Gbit/s received"}
    return StepUse(resources=(Resource.model_validate({**about, "share": share}),))


def unreadable(measurement: Measurement) -> Measurement:
    """The same with a truncated histogram."""
    (tally,) = measurement.tallies
    assert tally.latency is not None
    return altered(measurement, tallies=(altered(tally, latency=tally.latency[:100]),))


@pytest.mark.parametrize(
    ("use", "valid"),
    [(nic(0.79), True), (nic(0.8), False), (nic(0.99, "gateway"), True), (None, True)],
)
def test_a_step_whose_driver_filled_its_nic_is_not_valid(use: StepUse | None, valid: bool) -> None:
    found = visit(step_of(fake_measurement()), use)
    assert found.valid is found.ranked is found.points["read"].valid is valid
    assert valid or found.notes[0].startswith("network of client-1 (80 % of 1 Gbit/s received)")


@pytest.mark.parametrize(
    ("cpu_share", "use", "full"),
    [(0.79, None, False), (0.8, None, True), (0.2, nic(0.79), False), (0.2, nic(0.8), True)],
)
def test_a_load_generator_at_the_bound_of_its_cpu_or_nic_is_marked(
    cpu_share: float, use: StepUse | None, full: bool
) -> None:
    found = visit(step_of(fake_measurement(driver_share=cpu_share)), use)
    assert found.points["read"].driver_full is full


def test_the_nic_of_every_client_is_judged() -> None:
    second = altered(nic(0.9).resources[0], host="client-2")
    found = visit(step_of(fake_measurement()), StepUse(resources=(*nic(0.1).resources, second)))
    assert not found.valid
    assert found.notes[0].startswith("network of client-2 (90 %")


def test_invalid_steps_are_not_judged_for_steadiness() -> None:
    found = visit(altered(step_of(fake_measurement()), valid=False, notes=("driver busy",)))
    assert (found.valid, found.steady, found.notes) == (False, None, ("driver busy",))


def test_an_unreadable_histogram_spoils_its_step_and_leaves_no_percentile() -> None:
    found = visit(step_of(unreadable(fake_measurement())), place="steps.jsonl:7")
    point = found.points["read"]
    assert found.valid is False
    assert (point.valid, point.value("p50"), point.value("p90")) == (False, None, None)
    assert point.value("throughput") == 400
    assert found.notes[0].startswith(
        "steps.jsonl:7: latencies of read: a histogram cannot be decoded: "
    )


@pytest.fixture
def spoilt(runs: Path) -> RunStore:
    """Two repeats of one step on each of two layouts, with a bad histogram in line 2 of
    `steps.jsonl`.
    """
    run = fake_run(runs, workloads=ONE, repeats=2)
    path = run.folder / "steps.jsonl"
    steps = [StepResult.model_validate_json(line) for line in path.read_text().splitlines()]
    assert steps[1].measurement is not None
    steps[1] = altered(steps[1], measurement=unreadable(steps[1].measurement))
    path.write_text("".join(step.model_dump_json() + "\n" for step in steps))
    return run


def by_layout(run: RunStore) -> dict[tuple[str, int], JudgedStep]:
    return {(key.layout, key.repeat): one for key, one in read_visits(run, run.plan()).items()}


def test_an_unreadable_histogram_spoils_nothing_else_and_the_run_gets_its_report(
    spoilt: RunStore,
) -> None:
    found = by_layout(spoilt)
    assert [place for place, one in found.items() if not one.valid] == [("swift", 0)]
    assert len(found) == 4
    assert found["swift", 0].notes[0].startswith("steps.jsonl:2: ")
    beast, swift = rows_of(spoilt.plan(), read_visits(spoilt, spoilt.plan()))
    assert (beast.repeats, swift.repeats, swift.valid) == (2, 1, True)
    assert swift.notes[0] == "1 of 2 repeats left out as not valid"
    assert "cannot be decoded" in derive(spoilt.folder, pictures=False).report.read_text()


def test_unreadable_telemetry_is_a_gap_of_its_step(runs: Path) -> None:
    run = fake_run(runs, workloads=ONE, repeats=1)
    key = StepKey(layout="swift", api="swift", workload="small-read", workers=4, repeat=0)
    path = run.folder / "telemetry" / f"{key.file_name}.jsonl"
    path.write_text(path.read_text().replace('"kind":"host"', '"kind":"ghost"', 1))
    found = by_layout(run)
    assert found["rgw-beast", 0].use is not None
    assert found["swift", 0].use is None
    assert found["swift", 0].valid
    assert any(
        str(path) in note and note.startswith("what the hosts used is not known")
        for note in found["swift", 0].notes
    )


def test_the_last_result_of_a_step_counts(runs: Path) -> None:
    run = fake_run(runs, workloads=ONE, repeats=1, telemetry=False)
    again = fake_measurement(mean_ms=40, window_s=3.0)
    run.append(step_of(again))
    assert by_layout(run)["swift", 0].points["read"].value("throughput") == 100


def moving(measurement: Measurement) -> Measurement:
    """The same with half the throughput in the second half of its window."""
    seconds = tuple(
        altered(one, count=one.count if one.second < 10 else one.count // 2)
        for one in measurement.seconds
    )
    return altered(measurement, seconds=seconds)


def test_unsteady_repeats_are_left_out_and_a_row_of_only_those_is_not_ranked(runs: Path) -> None:
    plan = fake_run(runs, layouts=("swift",), workloads=ONE, repeats=2, telemetry=False).plan()
    steady, unsteady = fake_measurement(mean_ms=10), moving(fake_measurement(mean_ms=20))
    (mixed,) = summarize(plan, [step_of(unsteady), step_of(steady, repeat=1)])
    assert mixed.repeats == 1
    assert (mixed.steady, mixed.ranked, mixed.value("throughput")) == (True, True, 400)
    assert mixed.notes[0] == "1 of 2 repeats left out as not steady"
    (none,) = summarize(plan, [step_of(unsteady), step_of(unsteady, repeat=1)])
    assert (none.repeats, none.valid) == (2, True)
    assert (none.steady, none.ranked, none.value("throughput")) == (False, False, 200)
    assert none.notes[0] == "not steady"
    assert any(note.startswith("not steady: throughput falls by ") for note in none.notes)
    (unknown,) = summarize(
        plan, [step_of(steady), step_of(fake_measurement(window_s=3.0), repeat=1)]
    )
    assert (unknown.repeats, unknown.steady, unknown.ranked) == (2, None, True)
    refused = altered(step_of(fake_measurement(mean_ms=40), repeat=1), valid=False)
    (one,) = summarize(plan, [step_of(unsteady), refused])
    assert (one.repeats, one.ranked, one.value("throughput")) == (1, False, 200), (
        "an invalid repeat is never averaged with valid ones, steady or not"
    )


def test_requests_in_flight_make_maximum_and_percentiles_lower_bounds(runs: Path) -> None:
    plan = fake_run(runs, layouts=("swift",), workloads=ONE, repeats=1, telemetry=False).plan()
    complete = fake_measurement(mean_ms=10)
    (tally,) = complete.tallies

    def stalled(requests: int, age_us: int) -> Measurement:
        more = {"in_flight": Histogram.of([age_us] * requests).encode(), "in_flight_max_us": age_us}
        return complete.model_copy(update={"tallies": (tally.model_copy(update=more),)})

    usual = visit(step_of(complete)).points["read"]
    late = visit(step_of(stalled(4, 500_000))).points["read"]
    assert (usual.lower_bounds, late.lower_bounds) == ((), ("max",))
    assert late.value("max") == 500
    assert late.value("p90") == pytest.approx(usual.value("p90"), rel=0.01)
    # A fifth of all requests never ended: the 90th percentile is beyond all that did.
    most = visit(step_of(stalled(tally.count // 4, 500_000))).points["read"]
    assert set(most.lower_bounds) == {"p90", "p99", "p99.9", "max"}
    assert most.value("p90") == pytest.approx(500, rel=0.002)
    (row,) = summarize(plan, [step_of(stalled(4, 500_000))])
    assert [(one.what, one.metrics) for one in row.doubts if one.metrics] == [
        ("lower bound", ("max",))
    ]
    words = "requests not seen to end took at least as long, so it may be higher"
    assert words in [one.words for one in row.doubts]


def stalling(share: float) -> Measurement:
    """Reads whose first byte takes all of their latency; so many more by share were in flight
    for 5 s at the end.
    """
    complete = fake_measurement(mean_ms=10)
    (tally,) = complete.tallies
    more: dict[str, object] = {"first_byte": tally.latency}
    if share:
        more["in_flight"] = Histogram.of([5_000_000] * int(share * tally.count)).encode()
        more["in_flight_max_us"] = 5_000_000
    return complete.model_copy(update={"tallies": (tally.model_copy(update=more),)})


@pytest.mark.parametrize(("share", "bound"), [(0.0, False), (0.002, False), (0.13, True)])
def test_the_time_to_first_byte_is_a_lower_bound_if_requests_in_flight_could_move_it(
    share: float, bound: bool
) -> None:
    measured = stalling(share)
    point = visit(step_of(measured)).points["read"]
    assert (point.figure("first-byte").at_least) == bound
    usual_ms = Histogram.decode(measured.tallies[0].first_byte or "").percentile_us(90) / 1000
    assert point.value("first-byte") is not None
    # What is in flight may have had its first byte: its age is no lower bound of that.
    assert point.value("first-byte") < usual_ms if bound else point.value("first-byte") == usual_ms


def test_a_stalling_gateway_puts_the_time_to_first_byte_in_doubt_or_makes_it_unknown(
    runs: Path,
) -> None:
    plan = fake_run(runs, layouts=("swift",), workloads=ONE, repeats=1, telemetry=False).plan()
    (row,) = summarize(plan, [step_of(stalling(0.13))])
    assert ("first-byte",) in [one.metrics for one in row.doubts if one.what == "lower bound"]
    point = visit(step_of(stalling(10.0))).points["read"]
    assert (point.value("first-byte"), point.figure("first-byte").at_least) == (None, False)
