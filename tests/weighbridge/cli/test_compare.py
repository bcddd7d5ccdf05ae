"""Verbs that measure: options of `compare`, `tune`, and what is sent to InfluxDB meanwhile."""

from __future__ import annotations

import io
import json
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from fake_influx import FakeInflux, InfluxReply
from stub_run import SUITE, Run, StubGateway, fake_driver_settings
from tests.weighbridge import command_line
from weighbridge import run as running
from weighbridge.cli.compare import compare_verb, resume_verb, study_verb
from weighbridge.common.errors import UsageError
from weighbridge.common.registry import Registry
from weighbridge.conductor.interruption import Interrupted
from weighbridge.display import PlainDisplay
from weighbridge.results.run.store import RunStore
from weighbridge.results.run.trial import Trial, TuningStore
from weighbridge.results.show.influx import InfluxServer, RunPoints
from weighbridge.suites.tuning import loader as tunings
from weighbridge.topologies import loader

RunCli = Callable[..., tuple[str, str]]
NULL = """\
name: null-screen
about: The null target's own settings
layout: "null:delay_ms=2"
hardware: loopback
workloads:
  - name: read
    objects: {size: 4KB, containers: 1, per_container: 4}
    operations: {read: 1}
    workers: [2]
    runtime: 1s
    warmup: 0s
objectives: [{workload: read}]
parameters:
  - {key: delay_ms, values: [20]}
trials: {least: 2, most: 2}
confirm: 0
"""


@pytest.mark.long
def test_the_tunings_that_ship_are_listed(run_cli: RunCli) -> None:
    said, _ = run_cli(0, "tune", "--list")
    assert all(name in said for name in tunings.shipped())


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(tunings.shipped()))
def test_a_dry_run_prints_settings_and_restarts_and_starts_nothing(
    run_cli: RunCli, name: str, tmp_path: Path
) -> None:
    said, _ = run_cli(0, "tune", name, "--dry-run", "--out", tmp_path / "runs", "--budget", "24h")
    assert "objective: " in said
    assert re.search(r"\brestart\b", said)
    assert "if each is clear at once" in said
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("rgw-beats", "--dry-run"), "did you mean 'rgw-beast'"),
        ((), "--list"),
        (("rgw-beast", "--resume"), "has no unfinished run of tuning rgw-beast"),
    ],
)
def test_what_names_no_tuning_is_refused_with_what_would(
    run_cli: RunCli, tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    _, said = run_cli(2, "tune", *words, "--out", tmp_path)
    assert says in said


def command(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command_line.command("tune", *words, "--out", folder / "runs"),
        env=command_line.environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def trials(folder: Path) -> tuple[Trial, ...]:
    [run] = (folder / "runs").iterdir()
    return TuningStore(run).trials()


@pytest.mark.long
def test_a_killed_command_resumes_the_trial_it_was_making(run_cli: RunCli, tmp_path: Path) -> None:
    file = tmp_path / "null.yaml"
    file.write_text(NULL)
    with command(tmp_path, str(file), "--no-charts") as begun:
        assert begun.stdout is not None
        # Killed as the second step begins, after the baseline's trial.
        steps = 0
        for line in begun.stdout:
            steps += "  step " in line
            if steps == 2:
                begun.send_signal(signal.SIGKILL)
                break
    before = trials(tmp_path)
    assert len(before) == 1
    [run] = (tmp_path / "runs").iterdir()
    file.write_text(NULL.replace("least: 2, most: 2", "least: 3, most: 3"))
    _, said = run_cli(2, "tune", file, "--resume", "--out", tmp_path / "runs")
    assert "began with another tuning of this name: trials differs" in said
    assert str(run) in said
    file.write_text(NULL)
    done = command_line.weighbridge(
        *("tune", file, "--no-charts", "--resume", "--out", tmp_path / "runs"),
        folder=tmp_path,
        code=0,
    )
    after = trials(tmp_path)
    assert after[:1] == before
    assert len(after) == 7  # two rounds of three, and one of the baseline on the new deployment
    assert json.loads((run / "manifest.json").read_text())["state"] == "done"
    assert (run / "derived" / "report.html").is_file()
    assert "delay_ms" in done.stdout
    said, _ = run_cli(0, "resume", run, "--no-charts")
    assert "nothing is left to do" in said
    for words, says in (
        (("resume", run, "--ui"), "is a tuning: `--ui` is for comparisons and studies"),
        (("tune", run), f"weighbridge tune {run} --resume"),
        (("tune", run, "--resume", "--seed", "4"), "seed can no longer be changed"),
    ):
        _, said = run_cli(2, *words)
        assert says in said
    shutil.rmtree(tmp_path / "home", ignore_errors=True)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """One step on each of two layouts, with made-up measurements, and no report."""
    monkeypatch.setattr(loader, "STORES", Registry("none", "gateway", own={"stub": StubGateway}))
    monkeypatch.setattr(running, "derive", lambda folder, **_: folder)
    monkeypatch.setattr(running, "Doing", partial(running.Doing, settings=fake_driver_settings()))
    return Run(tmp_path, workloads=[{**SUITE["workloads"][0], "workers": [1]}])


def compared(run: Run, server: InfluxServer) -> tuple[RunStore, str]:
    """A complete run that is sent as it is measured; returns what it printed."""
    text = io.StringIO()
    doing = running.Doing(run.place, Console(file=text, width=400), influx=server)
    running.run(run.plan(), run.planned, doing, out=run.folder / "runs", text="", attest=False)
    (folder,) = (run.folder / "runs").iterdir()
    return RunStore.open(folder), text.getvalue()


def lines_of(store: RunStore) -> list[str]:
    points = RunPoints(store)
    return [*points.run(), *(line for step in store.steps() for line in points.step(step))]


def test_a_run_is_sent_as_it_is_measured_and_reports_that(run: Run) -> None:
    with FakeInflux() as influx:
        store, text = compared(run, InfluxServer(url=influx.url))
    assert store.manifest.state == "done"
    assert [step.notes for step in store.steps() if not step.valid] == []
    assert [line for line in influx.taken if not line.startswith("weighbridge_live")] == lines_of(
        store
    )
    assert f"points sent to {influx.url}" in text


@pytest.mark.parametrize("answer", [InfluxReply(503), InfluxReply(401), InfluxReply(400)])
@pytest.mark.long
def test_a_server_that_refuses_everything_spoils_no_run(run: Run, answer: InfluxReply) -> None:
    with FakeInflux(otherwise=answer) as influx:
        store, text = compared(run, InfluxServer(url=influx.url))
    assert store.manifest.state == "done"
    assert len(store.steps()) == 2
    assert [step.notes for step in store.steps() if not step.valid] == []
    assert "send the entire run again with weighbridge export" in text
    assert any(
        "nothing is lost" in event.text for event in store.events() if event.kind == "influx"
    )


def test_a_run_that_is_interrupted_sends_what_it_has_and_ends_as_interrupted(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: PlainDisplay, result: Any) -> None:
        raise Interrupted(signal.SIGINT)

    with FakeInflux() as influx:
        monkeypatch.setattr(PlainDisplay, "ended", interrupted)
        with pytest.raises(Interrupted):
            compared(run, InfluxServer(url=influx.url))
    (folder,) = (run.folder / "runs").iterdir()
    store = RunStore.open(folder)
    assert store.manifest.state == "interrupted"
    assert any("points sent" in event.text for event in store.events() if event.kind == "influx")


@pytest.mark.parametrize("verb", [compare_verb, study_verb, resume_verb])
@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("nonsense", "not of the form http://"),
        ("http://h?token=planted-secret", "bucket and org, nothing else"),
    ],
)
def test_an_invalid_url_is_refused_before_anything_is_started(
    verb: Any, url: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(
        verb, [*([str(tmp_path)] if verb is resume_verb else []), "--influx", url]
    )
    assert isinstance(done.exception, UsageError)
    assert words in str(done.exception)
    assert not list(tmp_path.iterdir())


def test_a_missing_token_is_refused_before_anything_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WEIGHBRIDGE_INFLUX_TOKEN", "INFLUX_TOKEN", "WEIGHBRIDGE_INFLUX_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(compare_verb, ["--influx", "http://127.0.0.1:1"])
    assert isinstance(done.exception, UsageError)
    assert "WEIGHBRIDGE_INFLUX_TOKEN is not set" in str(done.exception)
    assert not list(tmp_path.iterdir())
