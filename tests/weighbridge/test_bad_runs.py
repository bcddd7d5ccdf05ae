"""What `report`, `export` and `sql` say about damaged run folders: no traceback, no silent zero."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

Told = tuple[int, str, str]


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def damage(path: Path, how: str, text: str = "") -> None:
    if how == "begins with":
        path.write_bytes(text.encode("latin-1") + path.read_bytes())
    elif how == "is cut":
        first, second = path.read_text().splitlines()
        path.write_text(f"{first[:200]}\n{second}\n")
    elif how == "changed":
        change(path, *text.split(" -> "))
    else:
        path.unlink()
    if how == "is a folder":
        path.mkdir()
    elif how == "is a link":  # root can open any file, but not a link to itself
        path.symlink_to(path.name)
    elif how == "is":
        path.write_text(text)


NEWER_STEP = '{"schema_version":1,"key" -> {"schema_version":9,"cells":{},"key"'
NEWER_MEASUREMENT = '"measurement":{"schema_version":1 -> "measurement":{"schema_version":4,"new":1'


@pytest.mark.parametrize(
    ("damaged", "code", "words"),
    [
        (("manifest.json", "is gone"), 2, "is not the folder of a run"),
        (
            ("manifest.json", "changed", '"schema_version": 1 -> "schema_version": 2'),
            2,
            "manifest.json: written in version 2 of its format; this program knows version 1",
        ),
        (("manifest.json", "is a folder"), 2, "manifest.json: is a folder"),
        (("steps.jsonl", "changed", NEWER_STEP), 4, "steps.jsonl:1: written in version 9"),
        (("steps.jsonl", "changed", NEWER_MEASUREMENT), 4, "steps.jsonl:1: written in version 4"),
        (("steps.jsonl", "is cut"), 4, "steps.jsonl:1: "),
        (("steps.jsonl", "begins with", "\xff\xfe\x00\n"), 4, "steps.jsonl:1: "),
        (("steps.jsonl", "is a folder"), 2, "steps.jsonl: is a folder"),
        (("steps.jsonl", "is a link"), 2, "steps.jsonl: is a link"),
        (("plan.resolved.json", "is gone"), 2, "plan.resolved.json: No such file or directory"),
        (
            ("plan.resolved.json", "is", '{"suite": {"name": "made-up"'),
            2,
            "plan.resolved.json: Invalid JSON",
        ),
        (("plan.resolved.json", "is", "[]"), 2, "plan.resolved.json: "),
    ],
)
def test_an_unreadable_run_is_one_clear_error_of_every_verb(
    folder: Path, run_cli: Callable[..., Told], damaged: tuple[str, ...], code: int, words: str
) -> None:
    name, *how = damaged
    damage(folder / name, *how)
    for arguments in (("report", folder), ("export", folder, "--to", "csv", "--out", "-")):
        ended, out, err = run_cli(*arguments)
        assert (ended, out) == (code, "")
        assert err.startswith("weighbridge: ")
        assert re.search(words, err)
    ended, out, err = run_cli("sql", "select count(*) from steps", folder)
    assert (ended, out) == (2, "")
    assert re.search(f"left out: .*{words}", err)
    assert "none of these folders is a run that can be read" in err


def test_an_unfinished_run_is_read_as_far_as_it_is_and_every_verb_says_so(
    folder: Path, run_cli: Callable[..., Told], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Charts take long, and have their own tests.
    monkeypatch.setattr("weighbridge.results_output.write_charts", lambda _drawings, _folder: ())
    change(folder / "manifest.json", '"state": "done"', '"state": "running"')
    steps = folder / "steps.jsonl"
    steps.write_bytes(steps.read_bytes()[:-100])
    for path in (folder / "telemetry").iterdir():
        path.write_bytes(path.read_bytes()[:-10])
    gap = "the run is still running, or was killed: 1 of 2 steps have a result"
    ended, out, err = run_cli(
        "sql", "select layout, measured from steps", folder, "--format", "csv"
    )
    assert (ended, out) == (0, "layout,measured\nrgw-beast,true\n")
    assert gap in err
    assert "steps.jsonl: the last line is incomplete and was ignored" in err
    ended, out, err = run_cli("export", folder, "--to", "json", "--out", "-")
    summary = {line["layout"]: line for line in json.loads(out)["tables"]["summary"]}
    assert (ended, summary["swift"]["throughput_ops_s"], summary["swift"]["notes"]) == (
        0,
        None,
        ["not measured"],
    )
    assert gap in err
    ended, out, err = run_cli("report", folder)
    assert ended == 0
    assert gap in err
    assert (folder / "derived" / "report.html").is_file()


def test_a_run_without_any_step_has_no_figures_in_any_table(
    folder: Path, run_cli: Callable[..., Told]
) -> None:
    (folder / "steps.jsonl").write_bytes(b"")
    _, out, err = run_cli("export", folder, "--to", "markdown", "--out", "-")
    assert "| 1 MB reads | 1 | swift † | – | – | – | – | – | – | – | 0 |" in out
    assert "0 of 2 steps have a result" in err
    assert (
        run_cli(
            "sql", "select count(throughput_ops_s), count(*) from rows", folder, "--format", "csv"
        )[1].splitlines()[1]
        == "0,2"
    )
    ended, _, err = run_cli("export", folder, "--to", "hgrm")
    assert ended == 4
    assert "nothing to export as hgrm" in err


@pytest.mark.parametrize("where", ["derived", "derived/exports"])
def test_a_file_in_place_of_a_folder_is_reported_and_kept(
    folder: Path, run_cli: Callable[..., Told], where: str
) -> None:
    path = folder / where
    shutil.rmtree(path, ignore_errors=True)
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    ended, _, err = run_cli("export", folder, "--to", "csv")
    assert ended == 3
    assert f"{folder / 'derived' / 'exports'}: cannot be written" in err
    assert path.read_text() == "mine"


def test_a_report_is_not_made_where_it_cannot_be_written(
    folder: Path, run_cli: Callable[..., Told]
) -> None:
    shutil.rmtree(folder / "derived")
    (folder / "derived").write_text("mine")
    ended, _, err = run_cli("report", folder)
    assert (ended, "cannot be written" in err) == (3, True)


def test_sql_reads_all_runs_and_names_folders_that_are_not(
    folder: Path, run_cli: Callable[..., Told], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended, _, err = run_cli("sql", "select 1")
    assert (ended, "runs: No such file or directory" in err) == (2, True)
    (tmp_path / "runs" / "notes").mkdir(parents=True)
    folder.rename(tmp_path / "runs" / "one")
    ended, out, err = run_cli("sql", "select count(*) from runs", "--format", "csv")
    assert (ended, out.splitlines()[1]) == (0, "1")
    assert (
        err == "weighbridge: left out: runs/notes: is not the folder of a run: it has no "
        "manifest.json\n"
    )
