"""The verbs that list runs and files, open a report, and write files to edit."""

from __future__ import annotations

import json
import shutil
import webbrowser
from collections.abc import Callable
from pathlib import Path

import pytest

from weighbridge.documents import HardwareDocument, RunsDocument, SuitesDocument
from weighbridge.results import derive
from weighbridge.results.record.store import RunStore, lock_run_folder
from weighbridge.suites import loader as suite_files
from weighbridge.topologies.loader import shipped_hardware

RunCli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def here(run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with three runs in `runs`: a complete one, a killed one, and a broken one."""
    monkeypatch.chdir(tmp_path)
    for name in ("20260101T000000Z-a", "20260102T000000Z-b", "20260103T000000Z-c"):
        shutil.copytree(run_folder, tmp_path / "runs" / name)
    (tmp_path / "runs" / "notes").mkdir()
    killed = tmp_path / "runs" / "20260102T000000Z-b" / "manifest.json"
    killed.write_text(killed.read_text().replace('"state": "done"', '"state": "running"'))
    (tmp_path / "runs" / "20260103T000000Z-c" / "plan.resolved.json").write_text("{")
    return tmp_path


def listed(run_cli: RunCli) -> RunsDocument:
    code, out, _ = run_cli("runs", "--json")
    assert code == 0
    return RunsDocument.model_validate_json(out)


def test_runs_are_listed_with_their_state_and_their_answer(
    here: Path, run_cli: RunCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    RunStore.open(here / "runs" / "20260101T000000Z-a").set_state("done")
    derived = derive(Path("runs/20260101T000000Z-a"), pictures=False)
    found = {one.folder: one for one in listed(run_cli).runs}
    done, killed = found["runs/20260101T000000Z-a"], found["runs/20260102T000000Z-b"]
    assert (done.state, done.answer) == ("done", derived.answer)
    assert (killed.state, killed.answer) == ("killed", "")
    assert done.layouts == ("rgw-beast", "swift")
    (broken,) = listed(run_cli).unreadable
    assert broken.startswith("runs/20260103T000000Z-c: ")
    code, out, _ = run_cli("runs")
    assert code == 0
    for words in ("runs/20260101T000000Z-a", "killed", derived.answer.split()[0]):
        assert words in out


def test_a_run_that_is_being_written_is_running(here: Path, run_cli: RunCli) -> None:
    with lock_run_folder(here / "runs" / "20260102T000000Z-b"):
        assert {one.state for one in listed(run_cli).runs} >= {"running"}


def test_a_folder_without_runs_is_said_to_have_none_and_none_is_refused(
    run_cli: RunCli, tmp_path: Path
) -> None:
    code, out, _ = run_cli("runs", tmp_path)
    assert (code, out.startswith("no runs that can be read in ")) == (0, True)
    code, _, said = run_cli("runs", tmp_path / "none")
    assert (code, "No such file or directory" in said) == (2, True)


def test_the_newest_report_is_opened_where_there_is_a_screen_and_its_path_printed(
    here: Path, run_cli: RunCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    run = here / "runs" / "20260101T000000Z-a"
    code, _, said = run_cli("open", run)
    assert code == 2
    assert f"weighbridge report {run}" in said
    derive(run, pictures=False)
    shutil.rmtree(here / "runs" / "20260102T000000Z-b")
    code, out, _ = run_cli("open")
    assert (code, out, opened) == (0, f"{run / 'derived' / 'report.html'}\n", [])
    monkeypatch.setenv("DISPLAY", ":0")
    assert run_cli("open", run)[0] == 0
    assert opened == [(run / "derived" / "report.html").as_uri()]


def test_shipped_suites_and_hardware_are_listed(run_cli: RunCli) -> None:
    suites = SuitesDocument.model_validate_json(run_cli("suites", "--json")[1])
    assert [one.name for one in suites.suites] == list(suite_files.shipped())
    hardware = HardwareDocument.model_validate_json(run_cli("hardware", "--json")[1])
    assert [one.name for one in hardware.hardware] == list(shipped_hardware())
    assert "endpoints" in run_cli("suites")[1]
    assert "this-machine" in run_cli("hardware")[1]


def test_a_file_to_edit_is_printed_or_written_once(run_cli: RunCli, tmp_path: Path) -> None:
    code, out, _ = run_cli("init", "suite", "--of", "quick")
    assert code == 0
    assert suite_files.parse("mine.yaml", out).name == "my-quick"
    path = tmp_path / "new" / "mine.yaml"
    assert run_cli("init", "suite", path)[0] == 0
    assert suite_files.load(path).name == "mine"
    code, _, said = run_cli("init", "suite", path)
    assert code == 2
    assert "--force" in said
    assert run_cli("init", "suite", path, "--force")[0] == 0
    code, _, said = run_cli("init", "layout", "--of", "rgw-best")
    assert code == 2
    assert "did you mean 'rgw-beast'" in said


def test_the_json_of_a_report_is_its_answer_and_its_exported_tables(
    here: Path, run_cli: RunCli
) -> None:
    run = here / "runs" / "20260101T000000Z-a"
    code, out, said = run_cli("report", "--no-charts", "--json", run)
    assert code == 0
    found = json.loads(out)
    derived = derive(run, pictures=False)
    _, exported, _ = run_cli("export", run, "--to", "json", "--out", "-")
    tables = json.loads(exported)["tables"]
    assert found["answer"] == derived.answer
    assert found["tables"] == {name: tables[name] for name in ("summary", "effects")}
    assert len(found["findings"]) == len(derived.findings)
    assert "small-read" not in said
