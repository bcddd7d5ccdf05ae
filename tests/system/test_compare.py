"""A complete comparison, from a suite to a report, with a real Ceph RGW and a real OpenStack
Swift; and what is left when it is killed.
"""

from __future__ import annotations

import csv
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import Popen

import pytest

from deaths import left_behind, soon_nothing_left
from deployed_layouts import written_once
from exposure import LISTENERS, Shown, check_credentials, check_listeners, check_secrets, shown_by
from made_up import COLUMNS
from suite_command import measured, printed, started, trial, weighbridge
from weighbridge.environment import place
from weighbridge.results.run.store import RunStore

pytestmark = pytest.mark.system

SUITE = """
name: trial
settle: 0s
about: Both sizes and both directions, as short as it can be
api: [swift]
workloads:
  - name: small-read
    objects: {size: 64KiB, containers: 2, per_container: 10}
    operations: {read: 100}
    workers: [1, 4]
    runtime: 3s
    warmup: 500ms
    verify: true
  - name: large-write
    objects: {size: 4MB}
    operations: {write: 100}
    workers: [2]
    runtime: 4s
    warmup: 500ms
"""


MOMENTS = ("starting", "attesting", "is running and verified", "preparing", "step 1/")
OTHER_ENDS = (
    *((signal.SIGINT, when) for when in MOMENTS if when != "attesting"),
    *((signal.SIGTERM, when) for when in MOMENTS[1:-1]),
)


@pytest.fixture
def nothing_stays() -> Iterator[None]:
    """Whatever a failing test left is taken away, so that it fails alone."""
    yield
    if left_behind():
        weighbridge("down --all")


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    folder = tmp_path_factory.mktemp("compare")
    (folder / "trial.yaml").write_text(SUITE)
    return shown_by(f"--no-attest --suite {folder}/trial.yaml", folder / "runs")


@pytest.fixture(scope="module")
def finished(shown: Shown) -> RunStore:
    return shown.run


def test_a_comparison_measures_every_step_on_both_gateways_and_finds_them_valid(
    finished: RunStore,
) -> None:
    steps = finished.latest().values()
    assert len(steps) == 6
    assert finished.manifest.state == "done"
    # Beside other tests one may be too short of CPU.
    assert {step.key.layout for step in steps if step.valid} == {"rgw-beast", "swift"}
    for step in steps:
        assert step.measurement is not None, step.notes
        assert not any(tally.errors for tally in step.measurement.tallies)
        assert all(tally.count > 0 for tally in step.measurement.tallies)


def test_the_table_has_the_columns_of_the_study_and_a_row_for_each_step(finished: RunStore) -> None:
    text = (finished.derived / "summary.csv").read_text()
    assert text.splitlines()[0] == COLUMNS
    rows = list(csv.DictReader(text.splitlines()))
    assert {(row["layout"], row["workload"], row["workers"]) for row in rows} == {
        (layout, workload, workers)
        for layout in ("rgw-beast", "swift")
        for workload, workers in (("small-read", "1"), ("small-read", "4"), ("large-write", "2"))
    }
    for row in rows:
        assert float(row["throughput_ops_s"]) > 0
        assert row["saturated"]
        assert row["limited_by"]
        moved = float(row["throughput_ops_s"]) * float(row["object_size_bytes"]) / 1e6
        assert float(row["bandwidth_mb_s"]) == pytest.approx(moved, rel=0.01)


def test_charts_and_report_are_there_in_every_form(finished: RunStore) -> None:
    derived = finished.derived
    charts = {path.suffix for path in (derived / "charts").iterdir()}
    assert charts >= {".png", ".svg", ".pdf", ".csv"}
    assert (derived / "report.html").stat().st_size > 100_000


def test_what_decided_the_results_is_in_the_manifest_and_no_secret_is(finished: RunStore) -> None:
    manifest = finished.manifest
    facts = {sheet.layout: sheet.facts for sheet in manifest.sheets if sheet.layout}
    assert "18.2" in json.dumps(facts["rgw-beast"])
    assert "2.35" in json.dumps(facts["swift"])
    assert {config.layout for config in manifest.configs} == {"rgw-beast", "swift"}
    ceph = next(config.text for config in manifest.configs if config.path.endswith("ceph.conf"))
    assert "osd pool default size" in ceph.replace("_", " ")


def test_both_gateways_were_given_the_same_hosts_and_limits(finished: RunStore) -> None:
    facts = {sheet.layout: sheet.facts for sheet in finished.manifest.sheets if sheet.layout}
    limits = {
        layout: {name: text for name, text in one.items() if name.startswith("limits ")}
        for layout, one in facts.items()
    }
    assert limits["rgw-beast"] == limits["swift"] != {}


def test_a_comparison_leaves_nothing_behind(finished: RunStore) -> None:
    soon_nothing_left(finished)


def test_everything_listens_on_the_address_of_its_host_and_credentials_are_new_and_found_nowhere(
    shown: Shown,
) -> None:
    check_listeners(shown)
    check_credentials(shown)
    check_secrets(shown)


@pytest.mark.test_all
def test_fronts_and_daemons_that_are_restarted_show_no_more(tmp_path: Path) -> None:
    mix = "{read: 50, write: 50}"
    suite = trial("[swift, s3]", mix, "1s", size="64KiB", suite="cache: before-step")
    (tmp_path / "suite.yaml").write_text(suite)
    layouts = "rgw-haproxy,swift-s3api:background=true"
    words = f"--suite {tmp_path}/suite.yaml --layouts {layouts} --no-charts"
    shown = shown_by(words, tmp_path / "runs")
    tools = {"rsync", "iperf3"}
    more = {"gateway-1": {"haproxy"}, "store-1": tools, "store-2": tools}
    check_listeners(shown, {host: names | more[host] for host, names in LISTENERS.items()})
    check_credentials(shown)
    check_secrets(shown)


@pytest.mark.parametrize(
    ("number", "when"),
    [
        pytest.param(signal.SIGTERM, "starting", marks=pytest.mark.test_all),
        pytest.param(signal.SIGINT, "attesting", marks=pytest.mark.test_all),
        (signal.SIGTERM, "step 1/"),
        *(pytest.param(*one, marks=pytest.mark.test_all) for one in OTHER_ENDS),
    ],
)
@pytest.mark.usefixtures("nothing_stays")
def test_a_run_that_is_ended_at_any_point_leaves_nothing(
    tmp_path: Path, number: signal.Signals, when: str
) -> None:
    attest = "--attest" if when == "attesting" else "--no-attest"
    layout = "rgw-beast" if number == signal.SIGINT else "swift"
    run = until(tmp_path, layout, when, attest)
    os.killpg(run.pid, number)  # as a terminal does it: the whole group
    assert run.wait(timeout=300) == 128 + number, (tmp_path / "output").read_text()
    (folder,) = (tmp_path / "runs").iterdir()
    soon_nothing_left(RunStore.open(folder))
    assert RunStore.open(folder).manifest.state == "interrupted"


def until(folder: Path, layout: str, words: str, option: str = "--no-attest") -> Popen[str]:
    """A run in a group of processes of its own that has printed some words."""
    (folder / "trial.yaml").write_text(SUITE)
    asked = f"compare {option} --suite {folder}/trial.yaml --layouts {written_once(layout, folder)}"
    with (folder / "output").open("w") as output:
        run = started(f"{asked} --out {folder}/runs", output, start_new_session=True)
    printed(run, folder / "output", lambda said: words in said)
    return run


@pytest.mark.usefixtures("nothing_stays")
def test_what_a_killed_run_leaves_is_found_by_its_label_and_removed(tmp_path: Path) -> None:
    run = until(tmp_path, "swift", "preparing")
    run.send_signal(signal.SIGKILL)
    run.wait(timeout=300)
    (folder,) = (tmp_path / "runs").iterdir()
    assert left_behind(RunStore.open(folder))
    refused = weighbridge(f"compare --suite {tmp_path}/trial.yaml --out {tmp_path}/again")
    assert refused.returncode == 2
    assert "weighbridge down" in refused.stderr
    removed = weighbridge("down --all")
    assert removed.returncode == 0, removed.stderr
    soon_nothing_left(RunStore.open(folder))
    assert weighbridge("down --all").stdout.startswith("nothing is running")


@pytest.mark.test_all
@pytest.mark.usefixtures("nothing_stays")
def test_a_run_that_is_killed_in_the_middle_of_a_step_is_gone_on_with_where_it_was(
    tmp_path: Path,
) -> None:
    run = until(tmp_path, "swift", "step 2/3")
    run.send_signal(signal.SIGKILL)
    run.wait(timeout=300)
    (folder,) = (tmp_path / "runs").iterdir()
    assert left_behind(RunStore.open(folder))
    (first,) = RunStore.open(folder).steps()
    done = weighbridge(f"resume --no-charts {folder}")
    store = measured(done, tmp_path / "runs")
    steps = list(store.latest().values())
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
    soon_nothing_left(store)


# The conductor killed in the real lab while hosts come and go, where it has least in hand;
# `resume` then finds what it left.

SHORT_SUITE = trial("[swift]", "{read: 1}", "1s")
Seen = Callable[[str], bool]


def _hosts_come(printed: str) -> bool:
    """The run's own hosts, after those on which its files were checked: claimed a moment before the
    first of them is started.
    """
    return "starting null" in printed and any((place().state / "claims").glob("*.json"))


def _hosts_go(printed: str) -> bool:
    return "stopping null" in printed


@pytest.mark.parametrize(
    ("seen", "number", "whole"),
    [
        (_hosts_come, signal.SIGKILL, 0),
        pytest.param(_hosts_go, signal.SIGKILL, 1, marks=pytest.mark.test_all),
        pytest.param(_hosts_go, signal.SIGTERM, 1, marks=pytest.mark.test_all),
    ],
)
def test_what_was_left_is_torn_down_and_only_what_is_missing_is_measured(
    tmp_path: Path, seen: Seen, number: int, whole: int
) -> None:
    (tmp_path / "killed.yaml").write_text(SHORT_SUITE)
    words = f"--no-attest --no-charts --suite {tmp_path}/killed.yaml --layouts null:delay_ms=5"
    output = tmp_path / "output"
    with output.open("w") as file:
        run = started(f"compare {words} --out {tmp_path}/runs", file)
    printed(run, output, seen)
    run.send_signal(number)
    code = run.wait(timeout=300)
    (folder,) = (tmp_path / "runs").iterdir()
    steps = folder / "steps.jsonl"
    lines = steps.read_bytes() if steps.exists() else b""
    assert lines.count(b"\n") == whole
    if number == signal.SIGTERM:
        assert code == 128 + number
        soon_nothing_left(RunStore.open(folder))
        return
    assert weighbridge(f"report --no-charts {folder}").returncode in (0, 4)
    store = measured(weighbridge(f"resume --no-charts {folder}"), tmp_path / "runs")
    assert steps.read_bytes().startswith(lines)
    assert [step.order for step in store.steps() if step.again is None] == [0]
    assert next(iter(store.latest().values())).measurement is not None
    assert store.manifest.state == "done"
    soon_nothing_left(store)
