"""A complete comparison, from a suite to a report, with a real Ceph RGW and a real OpenStack
Swift; and what is left when it is killed.
"""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from summary_columns import COLUMNS
from weighbridge.environment import place
from weighbridge.results.record.store import RunStore

sys.path.insert(0, str(Path(__file__).parent))
from deployed_layouts import written_once
from traces import Traces, traces

pytestmark = [pytest.mark.system, pytest.mark.alone]

SUITE = """
name: trial
about: Both sizes and both directions, as short as it can be
api: [swift]
workloads:
  - name: small-read
    objects: {size: 64KiB, containers: 2, per_container: 10}
    operations: {read: 100}
    workers: [1, 4]
    runtime: 3s
    warmup: 1s
    verify: true
  - name: large-write
    objects: {size: 8MB}
    operations: {write: 100}
    workers: [2]
    runtime: 4s
    warmup: 1s
"""


MOMENTS = ("starting", "attesting", "is running and verified", "preparing", "step 1/")
OTHER_ENDS = (
    *((signal.SIGINT, when) for when in MOMENTS if when != "attesting"),
    *((signal.SIGTERM, when) for when in MOMENTS[1:-1]),
)


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    with (folder / "output").open("w") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "weighbridge", *arguments],
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )


def weighbridge(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "weighbridge", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


@pytest.fixture
def before() -> Iterator[Traces]:
    """What was there before; whatever a failing test left is taken away, so that it fails alone."""
    found = traces(place().deployments)
    yield found
    if traces(place().deployments) != found:
        weighbridge("down", "--all")


@pytest.fixture(scope="module")
def at_first() -> Traces:
    """What was there before the first test."""
    return traces(place().deployments)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, at_first: Traces) -> tuple[Path, Path]:
    """One real comparison: its run folder and what the command printed."""
    folder = tmp_path_factory.mktemp("compare")
    (folder / "trial.yaml").write_text(SUITE)
    start(
        folder, "compare", "--suite", str(folder / "trial.yaml"), "--out", str(folder / "runs")
    ).wait(timeout=900)
    runs = list((folder / "runs").iterdir())
    assert len(runs) == 1, (folder / "output").read_text()
    return runs[0], folder / "output"


def test_a_comparison_measures_every_step_on_both_gateways_and_finds_them_valid(
    finished: tuple[Path, Path],
) -> None:
    run, output = finished
    steps = RunStore.open(run).steps()
    assert len(steps) == 6, output.read_text()
    assert RunStore.open(run).manifest.state == "done"
    for step in steps:
        assert step.measurement is not None, step.notes
        assert step.valid, step.notes
        assert not any(tally.errors for tally in step.measurement.tallies)
        assert all(tally.count > 0 for tally in step.measurement.tallies)


def test_the_table_has_the_columns_of_the_study_and_a_row_for_each_step(
    finished: tuple[Path, Path],
) -> None:
    text = (finished[0] / "derived" / "summary.csv").read_text()
    assert text.splitlines()[0] == COLUMNS
    rows = list(csv.DictReader(text.splitlines()))
    assert {(row["layout"], row["workload"], row["workers"]) for row in rows} == {
        (layout, workload, workers)
        for layout in ("rgw-beast", "swift")
        for workload, workers in (("small-read", "1"), ("small-read", "4"), ("large-write", "2"))
    }
    for row in rows:
        assert float(row["throughput_ops_s"]) > 0
        moved = float(row["throughput_ops_s"]) * float(row["object_size_bytes"]) / 1e6
        assert float(row["bandwidth_mb_s"]) == pytest.approx(moved, rel=0.01)


def test_charts_and_report_are_there_in_every_form(finished: tuple[Path, Path]) -> None:
    derived = finished[0] / "derived"
    charts = {path.suffix for path in (derived / "charts").iterdir()}
    assert charts >= {".png", ".svg", ".pdf", ".csv"}
    assert (derived / "report.html").stat().st_size > 100_000


def test_what_decided_the_results_is_in_the_manifest_and_no_secret_is(
    finished: tuple[Path, Path],
) -> None:
    manifest = RunStore.open(finished[0]).manifest
    facts = {sheet.layout: sheet.facts for sheet in manifest.sheets if sheet.layout}
    assert "16.2" in json.dumps(facts["rgw-beast"])
    assert "2.30" in json.dumps(facts["swift"])
    assert {config.layout for config in manifest.configs} == {"rgw-beast", "swift"}
    ceph = next(config.text for config in manifest.configs if config.path.endswith("ceph.conf"))
    assert "osd pool default size" in ceph.replace("_", " ")


def test_both_gateways_were_given_the_same_hosts_and_limits(finished: tuple[Path, Path]) -> None:
    facts = {
        sheet.layout: sheet.facts
        for sheet in RunStore.open(finished[0]).manifest.sheets
        if sheet.layout
    }
    limits = {
        layout: {name: text for name, text in one.items() if name.startswith("limits ")}
        for layout, one in facts.items()
    }
    assert limits["rgw-beast"] == limits["swift"] != {}


def test_the_hosts_of_both_deployments_were_attested_and_what_each_used_was_recorded(
    finished: tuple[Path, Path],
) -> None:
    store = RunStore.open(finished[0])
    attested = store.attested()
    for layout in ("rgw-beast", "swift"):
        hosts = {one.host for one in attested if one.layout == layout}
        assert hosts == {"client-1", "gateway-1", "store-1", "store-2", "store-3"}
    for row in csv.DictReader((finished[0] / "derived" / "summary.csv").read_text().splitlines()):
        assert row["saturated"]
        assert row["limited_by"]


@pytest.mark.usefixtures("finished")
def test_a_comparison_leaves_nothing_behind(at_first: Traces) -> None:
    # In the minutes that it took something else of this machine may have come to its end.
    assert soon(at_first).beyond(at_first) == Traces(*[frozenset()] * 6)


@pytest.mark.parametrize(
    ("number", "when"),
    [
        (signal.SIGTERM, "starting"),
        (signal.SIGINT, "attesting"),
        (signal.SIGTERM, "step 1/"),
        *(pytest.param(*one, marks=pytest.mark.test_all) for one in OTHER_ENDS),
    ],
)
def test_a_run_that_is_ended_at_any_point_leaves_nothing(
    tmp_path: Path, before: Traces, number: signal.Signals, when: str
) -> None:
    (tmp_path / "trial.yaml").write_text(SUITE)
    layout = written_once("rgw-beast" if number == signal.SIGINT else "swift", tmp_path)
    attest = "--attest" if when == "attesting" else "--no-attest"
    run = start(
        tmp_path,
        "compare",
        attest,
        "--suite",
        f"{tmp_path}/trial.yaml",
        "--layouts",
        str(layout),
        "--out",
        f"{tmp_path}/runs",
    )
    seen(run, tmp_path / "output", when)
    os.killpg(run.pid, number)  # as a terminal does it: the whole group
    assert run.wait(timeout=300) == 128 + number, (tmp_path / "output").read_text()
    assert soon(before) == before
    assert RunStore.open(next((tmp_path / "runs").iterdir())).manifest.state == "interrupted"


def test_what_a_killed_run_leaves_is_found_by_its_label_and_removed(
    tmp_path: Path, before: Traces
) -> None:
    (tmp_path / "trial.yaml").write_text(SUITE)
    swift = ("--no-attest", "--layouts", str(written_once("swift", tmp_path)))
    run = start(
        tmp_path,
        "compare",
        "--suite",
        f"{tmp_path}/trial.yaml",
        *swift,
        "--out",
        f"{tmp_path}/runs",
    )
    seen(run, tmp_path / "output", "preparing")
    run.send_signal(signal.SIGKILL)
    run.wait(timeout=300)
    assert traces(place().deployments) != before
    refused = weighbridge(
        "compare", "--suite", f"{tmp_path}/trial.yaml", "--out", f"{tmp_path}/again"
    )
    assert refused.returncode == 2
    assert "weighbridge down" in refused.stderr
    removed = weighbridge("down", "--all")
    assert removed.returncode == 0, removed.stderr
    assert soon(before) == before
    assert weighbridge("down", "--all").stdout.startswith("nothing is running")


def test_a_run_that_is_killed_in_the_middle_of_a_step_is_gone_on_with_where_it_was(
    tmp_path: Path, before: Traces
) -> None:
    (tmp_path / "trial.yaml").write_text(SUITE)
    swift = ("--no-attest", "--layouts", str(written_once("swift", tmp_path)))
    run = start(
        tmp_path,
        "compare",
        "--suite",
        f"{tmp_path}/trial.yaml",
        *swift,
        "--out",
        f"{tmp_path}/runs",
    )
    seen(run, tmp_path / "output", "step 2/3")
    run.send_signal(signal.SIGKILL)
    run.wait(timeout=300)
    assert traces(place().deployments) != before
    folder = next((tmp_path / "runs").iterdir())
    (first,) = RunStore.open(folder).steps()
    done = weighbridge("resume", "--no-charts", str(folder))
    assert done.returncode in (0, 4), (
        done.stdout + done.stderr
    )  # on a busy machine a step may not be valid
    store = RunStore.open(folder)
    steps = store.steps()
    assert steps[0] == first
    assert [(step.key.workload, step.key.workers) for step in steps] == [
        ("small-read", 1),
        ("small-read", 4),
        ("large-write", 2),
    ]
    assert all(step.measurement is not None for step in steps)
    assert store.manifest.state == "done"
    assert [
        event.kind for event in store.events() if event.kind in ("visit", "up", "resumed", "down")
    ] == [*("visit", "up", "resumed", "visit", "up", "down")]
    assert "removed swift-" in done.stdout
    assert (folder / "derived" / "report.html").exists()
    assert soon(before) == before


def soon(before: Traces) -> Traces:
    """The traces there are now; the kernel may take a moment to free what the last process held,
    but no longer than this.
    """
    deadline = time.monotonic() + 10
    while (now := traces(place().deployments)) != before and time.monotonic() < deadline:
        time.sleep(0.05)
    return now


def seen(run: subprocess.Popen[str], output: Path, words: str) -> None:
    """Wait until the command has printed `words`."""
    deadline = time.monotonic() + 300
    while words not in output.read_text():
        assert run.poll() is None, output.read_text()
        assert time.monotonic() < deadline, output.read_text()
        time.sleep(0.02)
