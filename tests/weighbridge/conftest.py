"""For tests of verbs: a complete run folder, one to damage, and the command line."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fake_run import WORKLOADS, fake_run
from weighbridge.command import main


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workload = WORKLOADS[0].model_copy(update={"workers": (1,), "runtime": 1.0})
    return fake_run(tmp_path_factory.mktemp("runs"), workloads=[workload], repeats=1).folder


@pytest.fixture
def folder(run_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(run_folder, tmp_path / "run"))


@pytest.fixture
def run_cli(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[str, str]]:
    """Run the command, which has to end with a code: stdout and stderr."""

    def run(code: int, *arguments: str | Path) -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", ["weighbridge", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        assert ended.value.code == code, printed
        return printed.out, printed.err

    return run
