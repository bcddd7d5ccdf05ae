"""The command with COSBench, by a recorded controller, on a null target of this machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from swiftclient.client import Connection

from tests.drivers.cosbench.recorded_controller import UNKNOWN_STORAGE, Take, recorded_controller
from tests.weighbridge import command_line
from tests.weighbridge.command_line import KEY, existing, null_target, swift_at
from weighbridge.results.record.store import RunStore

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]


SUITE = """
name: trial
about: What was recorded
api: [swift]
cache: none
workloads:
  - name: mixed
    objects: {size: 64kB, containers: 2, per_container: 50}
    operations: {read: 80, write: 20}
    workers: [2]
    runtime: 12s
    warmup: 2s
"""
ENDS = {
    "strange": (UNKNOWN_STORAGE, "unrecognized storage type: nosuch"),
    "stopped": (
        Take("jdk8/w36-cancel-me", ["s2-main-b"], "CANCELLED"),
        "ended as CANCELLED: somebody cancelled it",
    ),
    "refused": (
        Take("jdk8/w43-swift-fail-404", ["s1-m"], "FAILED"),
        "write of stage s1-main never succeeded",
    ),
}
"""Workloads that end badly: what was recorded, and what is said of it."""


def weighbridge(*arguments: str) -> subprocess.CompletedProcess[str]:
    return command_line.run(*arguments, env=os.environ, cwd=ROOT)


def words(folder: Path, suite: str, controller: str, archive: Path | str) -> tuple[str, ...]:
    """A comparison by COSBench of what the folder has."""
    files = ("--suite", f"{folder}/{suite}.yaml", "--layouts", f"{folder}/mine.yaml")
    by = ("--driver", "cosbench", "--cosbench", controller, "--cosbench-archive", str(archive))
    where = ("--hardware", "this-machine", "--no-charts", "--out", f"{folder}/runs")
    return ("compare", *files, *by, *where)


@pytest.fixture
def compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., tuple[int, RunStore, str]]]:
    """Runs `weighbridge compare --driver cosbench` with more options: exit code, run and output."""
    variables = {
        "WEIGHBRIDGE_HOME": str(tmp_path / "home"),
        "WEIGHBRIDGE_STATE": str(tmp_path / "state"),
    }
    for name, value in {**variables, "ST_USER": "weigh:er", "ST_KEY": KEY}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("COSBENCH_HOME", raising=False)
    with null_target() as url:
        (tmp_path / "trial.yaml").write_text(SUITE)
        (tmp_path / "mine.yaml").write_text(existing("mine", swift=swift_at(url)))

        def compare(
            controller: str, archive: Path | str, more: Sequence[str] = ()
        ) -> tuple[int, RunStore, str]:
            done = weighbridge(*words(tmp_path, "trial", controller, archive), *more)
            (run,) = (tmp_path / "runs").iterdir()
            swift: Any = Connection(f"{url}/auth/v1.0", "weigh:er", KEY, retries=0)
            assert swift.get_account()[1] == []
            swift.close()
            assert not [
                path
                for path in run.rglob("*")
                if path.is_file() and KEY.encode() in path.read_bytes()
            ]
            return done.returncode, RunStore.open(run), done.stdout + done.stderr

        yield compare


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[Any]:
    with recorded_controller(tmp_path / "cosbench") as running:
        yield running


def test_results_of_cosbench_are_kept_beside_failures_which_exit_with_3(
    compared: Any, controller: Any, tmp_path: Path
) -> None:
    one = SUITE[SUITE.index("  - name") :]
    (tmp_path / "trial.yaml").write_text(
        SUITE + "".join(one.replace("mixed", name) for name in ENDS)
    )
    controller.by_workload = {name: take for name, (take, _) in ENDS.items()}
    code, store, output = compared(controller.url, controller.archive)
    assert code == 3, output
    good, *bad = store.steps()
    assert (good.key.driver, good.key.workload, good.valid) == ("cosbench", "mixed", True)
    assert good.measurement is not None
    assert good.measurement.driver == "cosbench"
    assert good.measurement.tallies[0].bins is not None
    assert [step.key.workload for step in bad] == list(ENDS)
    for step, (_, said) in zip(bad, ENDS.values(), strict=True):
        assert (step.measurement, step.valid) == (None, False)
        assert said in step.notes[0]
        assert said in " ".join(output.split())
    kept = [
        path.relative_to(store.folder).as_posix()
        for path in store.folder.rglob("*")
        if path.is_file()
    ]
    assert len(
        [name for name in kept if "failed" in name and name.endswith("workload.xml")]
    ) == len(ENDS)
    assert any(name.endswith("-rt-histogram.csv.gz") for name in kept)


def test_an_unreachable_controller_is_reported_and_exits_with_3(
    compared: Any, tmp_path: Path
) -> None:
    (tmp_path / "archive").mkdir()
    code, store, output = compared("http://127.0.0.1:9/controller", tmp_path / "archive")
    assert code == 3
    assert "COSBench's controller does not answer" in " ".join(output.split())
    assert {step.measurement for step in store.steps()} == {None}


def test_what_cosbench_cannot_do_is_refused_before_anything_starts(
    compared: Any, controller: Any, tmp_path: Path
) -> None:
    text = SUITE.replace("{read: 80, write: 20}", "{read: 80, head: 20}")
    (tmp_path / "other.yaml").write_text(text)
    done = weighbridge(*words(tmp_path, "other", controller.url, tmp_path))
    assert done.returncode == 2
    assert "COSBench has no head" in done.stderr
    assert not (tmp_path / "runs").exists()
