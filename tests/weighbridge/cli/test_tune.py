"""`weighbridge tune` on the command line."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.weighbridge import command_line
from weighbridge.results.record.trial import Trial, TuningStore
from weighbridge.suites.tuning import loader

pytestmark = pytest.mark.long

RunCli = Callable[..., tuple[int, str, str]]

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


def test_the_tunings_that_ship_are_listed(run_cli: RunCli) -> None:
    code, said, _ = run_cli("tune", "--list")
    assert code == 0
    assert all(name in said for name in loader.shipped())


@pytest.mark.parametrize("name", sorted(loader.shipped()))
def test_a_dry_run_prints_settings_and_restarts_and_starts_nothing(
    run_cli: RunCli, name: str, tmp_path: Path
) -> None:
    code, said, _ = run_cli(
        "tune", name, "--dry-run", "--out", tmp_path / "runs", "--budget", "24h"
    )
    assert code == 0
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
    code, _, said = run_cli("tune", *words, "--out", tmp_path)
    assert (code, says in said) == (2, True), said


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
    code, _, said = run_cli("tune", file, "--resume", "--out", tmp_path / "runs")
    assert code == 2
    assert "began with another tuning of this name: trials differs" in said
    assert str(run) in said
    file.write_text(NULL)
    done = command_line.weighbridge(
        *("tune", file, "--no-charts", "--resume", "--out", tmp_path / "runs"), folder=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    after = trials(tmp_path)
    assert after[:1] == before
    assert len(after) == 7  # two rounds of three, and one of the baseline on the new deployment
    assert json.loads((run / "manifest.json").read_text())["state"] == "done"
    assert (run / "derived" / "report.html").is_file()
    assert "delay_ms" in done.stdout
    code, said, _ = run_cli("resume", run, "--no-charts")
    assert code == 0
    assert "nothing is left to do" in said
    for words, says in (
        (("resume", run, "--ui"), "is a tuning: `--ui` shows comparisons and studies"),
        (("tune", run), f"weighbridge tune {run} --resume"),
        (("tune", run, "--resume", "--seed", "4"), "seed can no longer be changed"),
    ):
        code, _, said = run_cli(*words)
        assert (code, says in said) == (2, True), said
    shutil.rmtree(tmp_path / "home", ignore_errors=True)
