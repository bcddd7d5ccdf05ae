"""What shells complete, asked as their scripts ask."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from weighbridge.cli.completion import VARIABLE
from weighbridge.command import weighbridge

RunCli = Callable[..., tuple[int, str, str]]


def completed(*words: str) -> list[str]:
    """What is offered for the last of these words."""
    *before, incomplete = words
    shell = BashComplete(weighbridge, {}, "weighbridge", VARIABLE)
    return [one.value for one in shell.get_completions(before, incomplete)]


def test_verbs_and_options_are_completed() -> None:
    assert {"compare", "compare-runs"} <= set(completed("comp"))
    assert "--workers" in completed("compare", "--wo")


def test_names_that_ship_are_completed_also_at_the_end_of_a_list() -> None:
    assert completed("compare", "--suite", "endp") == ["endpoints"]
    assert completed("compare", "--hardware", "lab-c") == ["lab-cpu"]
    assert completed("up", "rgw-beast-t") == ["rgw-beast-tuned"]
    assert "rgw-beast,swift-ec" in completed("compare", "--layouts", "rgw-beast,sw")
    assert completed("compare", "--layouts", "rgw-haproxy,rgw-hap") == []
    assert completed("compare", "--mix", "read,cop") == ["read,copy"]
    assert completed("compare", "--api", "s3,") == ["s3,swift"]
    assert completed("study", "ornl") == ["ornl-2013"]
    assert completed("tune", "apa") == ["apache-mpm"]
    assert completed("init", "suite", "--of", "overl") == ["overload"]


def test_runs_are_completed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("1-a", "2-b", "no-run"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    for name in ("1-a", "2-b"):
        (tmp_path / "runs" / name / "manifest.json").write_text("{}")
    assert completed("resume", "ru") == ["runs/2-b", "runs/1-a"]
    assert completed("report", "runs/1") == ["runs/1-a"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script_that_asks_the_command(run_cli: RunCli, shell: str) -> None:
    code, script, _ = run_cli("completion", shell)
    assert code == 0
    assert f"{VARIABLE}={shell}_complete" in script
    if shell == "bash":
        done = subprocess.run(["bash", "-n"], input=script, text=True, check=False)
        assert done.returncode == 0
    if shell == "fish":
        # A list of names has commas.
        assert 'string split -m 1 "," $completion' in script
