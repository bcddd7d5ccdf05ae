from pathlib import Path

import pytest

from fake_run import WORKLOADS, fake_run
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.record.store import RunStore


@pytest.fixture
def store(runs: Path) -> RunStore:
    """Four steps: two layouts, two repeats."""
    workload = WORKLOADS[0].model_copy(update={"workers": (1,), "runtime": 1.0})
    return fake_run(runs, workloads=[workload], repeats=2)


def gaps(store: RunStore) -> tuple[str, ...]:
    return RunData(store.folder).gaps


def tear(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def test_a_whole_run_lacks_nothing(store: RunStore) -> None:
    assert gaps(store) == ()


def test_a_run_that_is_still_being_made_says_how_far_it_is(store: RunStore) -> None:
    tear(store.folder / "steps.jsonl")
    store.set_state("running")
    assert gaps(store) == (
        "the run is still being made, or was killed: 3 of 4 steps are there",
        "steps.jsonl: its last line is torn and was left out",
    )


def test_a_run_that_failed_says_why(store: RunStore) -> None:
    store.set_state("failed", error="gateway-1: radosgw died\nlast lines of its log: ...")
    assert gaps(store) == ("the run failed (gateway-1: radosgw died): 4 of 4 steps are there",)
    store.set_state("interrupted")
    assert gaps(store) == ("the run was interrupted: 4 of 4 steps are there",)


@pytest.mark.parametrize("content", [b"", None])
def test_a_run_without_any_step_says_so(store: RunStore, content: bytes | None) -> None:
    path = store.folder / "steps.jsonl"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    assert gaps(store) == ("the run is done, and 0 of 4 steps are there",)


def test_a_run_that_its_budget_ended_says_so(store: RunStore) -> None:
    lines = (store.folder / "steps.jsonl").read_text().splitlines(keepends=True)
    (store.folder / "steps.jsonl").write_text("".join(lines[:2]))
    store.event("budget", "the budget ends the run before repeat 2 of 2")
    assert gaps(store) == ("the run's budget ended it: 2 of 4 steps are there",)


def test_files_that_are_missing_are_counted_with_what_that_means(store: RunStore) -> None:
    for folder in ("latency", "series", "telemetry"):
        min((store.folder / folder).iterdir()).unlink()
    tear(min((store.folder / "telemetry").iterdir()))
    name = "rgw-beast.swift.small-read.w1.r0"
    assert gaps(store) == (
        (
            f"latency: 1 of 4 files is missing (the first: latency/{name}.hlog): their histograms are "
            "in steps.jsonl too"
        ),
        (
            f"series: 1 of 4 files is missing (the first: series/{name}.jsonl): their seconds are in "
            "steps.jsonl too"
        ),
        (
            f"telemetry: 1 of 4 files is missing (the first: telemetry/{name}.jsonl): what the hosts "
            "used in these steps is not known"
        ),
        (
            f"telemetry: 1 of 4 files is torn (the first: telemetry/{name[:-1]}1.jsonl): their last "
            "lines were left out"
        ),
    )


def test_a_run_that_recorded_no_telemetry_lacks_none(runs: Path) -> None:
    workload = WORKLOADS[0].model_copy(update={"workers": (1,), "runtime": 1.0})
    assert gaps(fake_run(runs, workloads=[workload], repeats=1, telemetry=False)) == ()


def test_a_step_without_telemetry_has_no_cpu_seconds_in_the_table_rather_than_none_used(
    store: RunStore,
) -> None:
    (store.folder / "telemetry" / "swift.swift.small-read.w1.r0.jsonl").unlink()
    beast, swift = RunData(store.folder).rows
    assert beast.value("gateway-cpu") is not None
    assert swift.value("gateway-cpu") is None
    assert swift.value("throughput") is not None
