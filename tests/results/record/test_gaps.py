from pathlib import Path

import pytest

from fake_run import WORKLOADS, fake_run
from made_rows import altered
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.record.store import RunStore

HISTOGRAMS = "steps.jsonl has these histograms too"
SECONDS = "steps.jsonl has these seconds too"
UNKNOWN = "what the hosts used in these steps is unknown"
IGNORED = "their last lines were ignored"


@pytest.fixture
def store(runs: Path) -> RunStore:
    """Four steps: two layouts, two repeats."""
    workload = altered(WORKLOADS[0], workers=(1,), runtime=1.0)
    return fake_run(runs, workloads=[workload], repeats=2)


def gaps(store: RunStore) -> tuple[str, ...]:
    return RunData(store.folder).gaps


def tear(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def test_a_complete_run_has_no_gaps_also_without_telemetry(store: RunStore, runs: Path) -> None:
    assert gaps(store) == ()
    workload = altered(WORKLOADS[0], workers=(1,), runtime=1.0)
    assert gaps(fake_run(runs, workloads=[workload], repeats=1, telemetry=False)) == ()


def test_a_run_in_progress_says_how_far_it_is(store: RunStore) -> None:
    tear(store.folder / "steps.jsonl")
    store.set_state("running")
    assert gaps(store) == (
        "the run is still running, or was killed: 3 of 4 steps have a result",
        "steps.jsonl: the last line is incomplete and was ignored",
    )


def test_a_run_that_failed_says_why(store: RunStore) -> None:
    store.set_state("failed", error="gateway-1: radosgw died\nlast lines of its log: ...")
    assert gaps(store) == ("the run failed (gateway-1: radosgw died): 4 of 4 steps have a result",)
    store.set_state("interrupted")
    assert gaps(store) == ("the run was interrupted: 4 of 4 steps have a result",)


@pytest.mark.parametrize("content", [b"", None])
def test_a_run_without_any_step_says_so(store: RunStore, content: bytes | None) -> None:
    path = store.folder / "steps.jsonl"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    assert gaps(store) == ("the run is done, but 0 of 4 steps have a result",)


def test_a_run_that_its_budget_ended_says_so(store: RunStore) -> None:
    lines = (store.folder / "steps.jsonl").read_text().splitlines(keepends=True)
    (store.folder / "steps.jsonl").write_text("".join(lines[:2]))
    store.event("budget", "the budget ends the run before repeat 2 of 2")
    assert gaps(store) == ("the run's budget ended it: 2 of 4 steps have a result",)


def test_missing_files_are_counted_with_the_consequence(store: RunStore) -> None:
    for folder in ("latency", "series", "telemetry"):
        min((store.folder / folder).iterdir()).unlink()
    tear(min((store.folder / "telemetry").iterdir()))
    name = "rgw-beast.swift.small-read.w1.r0"
    assert gaps(store) == (
        f"latency: 1 of 4 files is missing (the first: latency/{name}.hlog): {HISTOGRAMS}",
        f"series: 1 of 4 files is missing (the first: series/{name}.jsonl): {SECONDS}",
        f"telemetry: 1 of 4 files is missing (the first: telemetry/{name}.jsonl): {UNKNOWN}",
        f"telemetry: 1 of 4 files is torn (the first: telemetry/{name[:-1]}1.jsonl): {IGNORED}",
    )


def test_cpu_seconds_of_a_step_without_telemetry_are_unknown_not_zero(store: RunStore) -> None:
    (store.folder / "telemetry" / "swift.swift.small-read.w1.r0.jsonl").unlink()
    beast, swift = RunData(store.folder).rows
    assert beast.value("gateway-cpu") is not None
    assert swift.value("gateway-cpu") is None
    assert swift.value("throughput") is not None
