"""A driver of another package, found by an entry point: known from command line to exports."""

from __future__ import annotations

import csv
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.weighbridge import command_line
from tests.weighbridge.command_line import existing, null_target, s3_at
from weighbridge.results.record.store import RunStore

pytestmark = pytest.mark.long  # runs complete comparisons as programs

ROOT = Path(__file__).parents[2]
TOY = ROOT / "tests" / "support" / "toy_driver"
SUITE = command_line.trial("s3", "{head: 1}", name="heads", workers="[1]", runtime="2s")

Command = Callable[..., subprocess.CompletedProcess[str]]


def weighbridge(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "COLUMNS": "200", **environment}
    if "PYTHONPATH" not in environment:
        return command_line.run(*arguments, env=env, cwd=ROOT)
    argv = command_line.command(*arguments)
    return subprocess.run(
        argv, capture_output=True, text=True, check=False, timeout=600, cwd=ROOT, env=env
    )


@pytest.fixture(scope="module")
def with_toy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """The command with the toy driver installed, a suite, and a layout with a running target."""
    folder = tmp_path_factory.mktemp("toy")
    places = {
        "WEIGHBRIDGE_HOME": str(folder / "home"),
        "WEIGHBRIDGE_STATE": str(folder / "state"),
        "PYTHONPATH": str(TOY),
    }
    keys = command_line.keys()
    with null_target("--delay-ms", "60") as url:
        (folder / "trial.yaml").write_text(SUITE)
        (folder / "plain.yaml").write_text(existing("plain", s3=s3_at(url)))

        def run(verb: str, *more: str | Path) -> subprocess.CompletedProcess[str]:
            files = ["--suite", folder / "trial.yaml", "--layouts", folder / "plain.yaml"]
            where = ["--hardware", "this-machine", "--no-charts", "--out", folder / "runs"]
            return weighbridge(
                verb, *([*files, *where] if verb == "compare" else []), *more, **places, **keys
            )

        yield run


@pytest.fixture(scope="module")
def compared(with_toy: Command, tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    out = tmp_path_factory.mktemp("runs")
    done = with_toy("compare", "--driver", "toy", "--toy-pause", "5", "--out", out)
    (run,) = out.iterdir()
    assert done.returncode == 0, done.stdout + done.stderr
    return RunStore.open(run)


def test_a_driver_of_another_package_measures_a_run_by_its_own_option(compared: RunStore) -> None:
    (step,) = compared.steps()
    assert (step.key.driver, step.key.workload) == ("toy", "heads")
    assert step.measurement is not None
    assert step.measurement.driver == "toy"
    assert step.measurement.tallies[0].count > 10
    assert step.measurement.notes == ("pauses of 5 ms",)
    facts = {name: text for sheet in compared.manifest.sheets for name, text in sheet.facts.items()}
    assert facts["package toy-driver"] == "1.0"
    assert facts["toy"] == "1.0"


def test_its_run_has_a_report_and_exports_even_if_it_is_not_installed(
    compared: RunStore, tmp_path: Path
) -> None:
    assert "heads" in (compared.derived / "report.html").read_text()
    for place in ({}, {"PYTHONPATH": str(TOY)}):
        assert weighbridge("report", compared.folder, **place).returncode == 0
        out = tmp_path / str(len(place))
        out.mkdir()
        for form in ("json", "csv"):
            done = weighbridge(
                "export", compared.folder, "--to", form, "--out", out / form, **place
            )
            assert done.returncode == 0, done.stderr
        rows = [
            row
            for path in map(Path, done.stdout.split())
            for row in csv.DictReader(path.read_text().splitlines())
        ]
        assert {row["driver"] for row in rows if "driver" in row} == {"toy"}


def test_its_option_and_its_name_are_in_the_help_of_every_verb_that_runs_something(
    with_toy: Command,
) -> None:
    for verb in ("compare", "resume", "study", "tune"):
        assert "--toy-pause MS" in with_toy(verb, "--help").stdout
    assert "locust, toy" in " ".join(with_toy("compare", "--help").stdout.split())
    assert "--toy-pause" not in weighbridge("compare", "--help").stdout


def test_what_it_cannot_do_is_refused_before_anything_starts(
    with_toy: Command, tmp_path: Path
) -> None:
    (tmp_path / "reads.yaml").write_text(SUITE.replace("head: 1", "read: 1"))
    done = with_toy("compare", "--driver", "toy", "--suite", tmp_path / "reads.yaml")
    assert done.returncode == 2
    assert "heads: the toy driver knows no operation but head" in done.stderr


def test_a_missing_driver_is_refused_at_its_place_in_the_suite(
    tmp_path: Path, with_toy: Command
) -> None:
    (tmp_path / "named.yaml").write_text(SUITE.replace("api: [s3]", "api: [s3]\ndriver: toi"))
    done = with_toy("compare", "--suite", tmp_path / "named.yaml")
    assert done.returncode == 2
    assert "named.yaml:4:9: driver: no driver 'toi' (did you mean 'toy'?)" in done.stderr
