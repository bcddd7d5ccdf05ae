"""The command on misbehaving targets: each fault is an error of its class, and the run is complete.

One run of each kind of user meets all faults, one per workload; the target reports how many answers
were correct.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.weighbridge import command_line
from tests.weighbridge.command_line import KEY
from weighbridge.results.run.histogram import Histogram
from weighbridge.results.run.step import StepResult
from weighbridge.results.run.store import RunStore

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
SLOW_S = 11.0
"""What answers of the workload `slow` take: more than five times what requests may."""
SIZE_BYTES = 20_000
WRONG = {
    "status-503": {"http-503"},
    "status-500": {"http-500"},
    "refusing": {"connect", "reset"},
    "resetting": {"reset"},
    "slow": {"timeout", "unfinished"},
    "never": {"timeout", "unfinished"},
    "stuck": {"timeout", "unfinished"},
    "half": {"short-body", "reset", "protocol"},
    "shorter": {"short-body"},
    "longer": {"wrong-content"},
    "promising": {"short-body"},
    "other-content": {"wrong-content"},
    "garbage": {"protocol"},
}
"""Names of workloads, which the target does wrong by, and the classes that their failures may have.
"""
UNDER = (("engine", "swift"), ("sdk", "swift"), ("sdk", "s3"))
# Both SDKs share all but how an answer's fault becomes an exception.
FEW_OF_SDKS = ("status-503", "resetting", "never", "half", "other-content")
CASES = [
    pytest.param(
        *(way, fault),
        id="-".join((*way, fault)),
        marks=[pytest.mark.test_all] if way[0] == "sdk" and fault not in FEW_OF_SDKS else [],
    )
    for way in UNDER
    for fault in WRONG
]
RUNTIME_S, RATE_PER_S = 3.0, 30
"""A clock, so that a target without a delay does not take all CPUs of this machine."""
COMMAND = """
import sys
from functools import partial
from weighbridge import run
from weighbridge.command import main
from weighbridge.drivers.locust.kind import LocustModule
driver = LocustModule(module=("tests.weighbridge.impatient_locust", "2"))
run.Doing = partial(run.Doing, settings={"locust": driver})
main()
"""
WORKLOAD = """
  - name: {name}
    objects: {{size: {size}B, containers: 1, per_container: 4}}
    operations: {{read: 70, write: 30}}
    workers: [3]
    runtime: {runtime}s
    rate_per_s: {rate}
    warmup: 0s
    verify: true
"""
Counts = dict[str, dict[str, int]]


@contextmanager
def misbehaving() -> Iterator[tuple[subprocess.Popen[str], str]]:
    with subprocess.Popen(
        [sys.executable, str(HERE / "misbehaving_target.py")], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline())["listening"]
        finally:
            process.kill()


def witness(url: str) -> Counts:
    with urllib.request.urlopen(f"{url}/witness") as answer:
        counts: Counts = json.load(answer)
    return counts


def compare(
    folder: Path, url: str, users: str, api: str, names: Sequence[str]
) -> subprocess.Popen[str]:
    """A started comparison of one layout, with a workload for each name."""
    folder.mkdir()
    workloads = "".join(
        WORKLOAD.format(name=name, size=SIZE_BYTES, runtime=RUNTIME_S, rate=RATE_PER_S)
        for name in names
    )
    (folder / "trial.yaml").write_text(
        f"name: trial\nabout: Faults\napi: [{api}]\nusers: {users}\nworkloads:{workloads}"
    )
    swift = f'{{auth_url: "{url}/auth/v1.0"}}'
    layout_text = command_line.existing("plain", s3=command_line.s3_at(url), swift=swift)
    (folder / "plain.yaml").write_text(layout_text)
    where = {"PYTHONPATH": str(HERE.parents[1]), "COLUMNS": "300"}
    layout, suite = str(folder / "plain.yaml"), str(folder / "trial.yaml")
    asked = ("compare", "--suite", suite, "--layouts", layout, "--hardware", "this-machine")
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, *asked, "--no-charts", "--out", str(folder / "runs")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=command_line.environment(folder, **command_line.keys(), **where),
    )


@dataclass(frozen=True)
class Ended:
    """A run that has ended."""

    code: int
    said: str
    folder: Path
    steps: dict[str, StepResult]
    seen: Counts


def ended(process: subprocess.Popen[str], folder: Path, url: str = "") -> Ended:
    try:
        said = process.communicate(timeout=600)[0]
    finally:
        process.kill()
    assert "Traceback" not in said, said
    assert (folder / "runs").exists(), said
    (run,) = (folder / "runs").iterdir()
    steps = {step.key.workload: step for step in RunStore.open(run).steps()}
    return Ended(process.returncode, said, run, steps, witness(url) if url else {})


@pytest.fixture(scope="module")
def runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[tuple[str, str], Ended]]:
    """A run of each kind of user, all at the same time: they mostly wait. Each meets the faults
    whose tests are selected.
    """
    selected = {case.nodeid.partition("[")[2].rstrip("]") for case in request.session.items}
    top = tmp_path_factory.mktemp("runs")
    started = []
    for users, api in UNDER:
        target = misbehaving()
        _, url = target.__enter__()
        folder = top / f"{users}-{api}"
        faults = [fault for fault in WRONG if f"{users}-{api}-{fault}" in selected] or list(WRONG)
        names = ["expiring", *faults] if api == "swift" else faults
        started.append((target, url, folder, compare(folder, url, users, api, names)))
    try:
        yield {
            way: ended(process, folder, url)
            for way, (_, url, folder, process) in zip(UNDER, started, strict=True)
        }
    finally:
        for target, *_ in started:
            target.__exit__(None, None, None)


@pytest.mark.parametrize(("way", "fault"), CASES)
def test_errors_of_a_target_are_counted_by_class_and_never_as_success(
    runs: dict[tuple[str, str], Ended], way: tuple[str, str], fault: str
) -> None:
    run = runs[way]
    step, seen = run.steps[fault], run.seen[fault]
    assert step.measurement is not None, step.notes
    errors = {name for tally in step.measurement.tallies for name in tally.errors}
    assert errors
    assert errors <= WRONG[fault], step.notes
    for tally in step.measurement.tallies:
        right = seen.get("GET right" if tally.operation == "read" else "PUT right", 0)
        assert tally.count <= right
        assert tally.bytes == SIZE_BYTES * tally.count
        assert (tally.latency is None) == (tally.count == 0)
        if tally.latency is not None:
            assert Histogram.decode(tally.latency).count == tally.count
            assert tally.max_us is not None
            assert (
                tally.max_us < SLOW_S * 1e6
            )  # an answer in time may be late by the clock of the one before
    failed = sum(tally.failed for tally in step.measurement.tallies)
    if fault != "refusing":  # nothing is there to count
        unfinished = (
            step.measurement.workers
        )  # requests across the window's ends are counted by one side only
        assert failed <= seen.get("GET wrong", 0) + seen.get("PUT wrong", 0) + unfinished
    assert not step.valid
    assert any(f"{name}: " in note for name in errors for note in step.notes), step.notes


@pytest.mark.parametrize("way", UNDER, ids="-".join)
def test_a_run_of_errors_completes_with_4_and_a_reason_for_each_step(
    runs: dict[tuple[str, str], Ended], way: tuple[str, str]
) -> None:
    run = runs[way]
    assert run.code == 4, run.said
    faults = set(run.steps) - {"expiring"}
    for fault in faults:
        assert re.search(
            rf"^[a-z]+ +not valid: .* of {re.escape(fault)} at 3 workers", run.said, re.MULTILINE
        ), (fault, run.said)
    reasons = run.said.count("beyond the bound of 0.10%") + run.said.count("succeeded (")
    assert reasons >= len(faults)
    store = RunStore.open(run.folder)
    assert store.manifest.state == "done"
    assert not [
        path
        for path in run.folder.rglob("*")
        if path.is_file() and KEY.encode() in path.read_bytes()
    ]


def test_a_run_of_errors_is_reported_and_exported(
    runs: dict[tuple[str, str], Ended], run_cli: Callable[..., tuple[str, str]]
) -> None:
    folder, steps = runs["sdk", "s3"].folder, runs["sdk", "s3"].steps
    report = (folder / "derived" / "report.html").read_text()
    assert "beyond the bound of 0.10%" in report
    out, err = run_cli(0, "export", folder, "--to", "json", "--out", "-")
    assert err == ""
    rows = json.loads(out)["tables"]["summary"]
    assert {row["workload"] for row in rows} == set(steps) >= {*FEW_OF_SDKS}
    assert not any(row["valid"] for row in rows)


def test_a_target_that_dies_in_a_step_ends_the_run_with_3_and_what_was_measured_is_kept(
    tmp_path: Path,
) -> None:
    with misbehaving() as (target, url):
        process = compare(tmp_path / "run", url, "engine", "s3", ["before", "dying"])
        assert process.stdout is not None
        said = ""
        while "step 2/2" not in said:
            said += (line := process.stdout.readline())
            assert line, said
        target.kill()
        run = ended(process, tmp_path / "run")
    assert run.code == 3, run.said
    assert run.steps["before"].valid or run.steps["before"].measurement is not None
    dying = run.steps["dying"]
    assert dying.measurement is None or set().union(
        *(one.errors for one in dying.measurement.tallies)
    ) <= {"connect", "reset"}
    assert not dying.valid
    assert "127.0.0.1" in run.said
    assert "refused" in run.said
    assert "weighbridge resume" in run.said


@pytest.mark.parametrize("users", ["engine", "sdk"])
def test_a_token_that_expires_in_a_step_is_renewed_and_refusals_are_counted(
    runs: dict[tuple[str, str], Ended], users: str
) -> None:
    run = runs[users, "swift"]
    step, after = run.steps["expiring"], run.steps["status-503"]
    assert step.measurement is not None
    tallies = step.measurement.tallies
    assert set().union(*(one.errors for one in tallies)) == {"http-401"}
    failed, done = sum(one.failed for one in tallies), sum(one.count for one in tallies)
    assert 0 < failed <= run.seen["expiring"]["refused"]
    # Before the token expired and after the next: as many as the rate, except for refusals.
    assert done > RATE_PER_S * RUNTIME_S / 3
    assert done <= run.seen["expiring"]["GET right"] + run.seen["expiring"]["PUT right"]
    assert any(
        "forgot the token in the step (http-401): it was renewed during the step" in note
        for note in step.measurement.notes
    )
    assert any(f"http-401: {failed}" in note for note in step.notes)
    assert after.order > step.order
    assert after.measurement is not None
    assert set().union(*(one.errors for one in after.measurement.tallies)) == {"http-503"}
