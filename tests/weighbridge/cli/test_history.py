"""`weighbridge history` on the command line, with made-up runs of many days."""

from __future__ import annotations

import csv
import json
import os
import shutil
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import duckdb
import pytest
from click.testing import CliRunner

from fake_run import WORKLOADS, fake_run
from tests.weighbridge import command_line
from weighbridge.cli.machine import baseline_verb, sizes_of
from weighbridge.common.errors import UsageError
from weighbridge.documents import HistoryDocument
from weighbridge.results.features.kept_runs import LARGEST_RECORD_BYTES

SMALL: Final = WORKLOADS[0].model_copy(update={"workers": (4,), "runtime": 10.0})
FIRST_DAY: Final = datetime(2026, 1, 1, 6, tzinfo=UTC)


def past_run(runs: Path, day: int, **more: Any) -> Path:
    """The folder of the run of this day, which scatters by about 2 %; its name tells the day.

    `more` are arguments of `fake_run`.
    """
    given = {"workloads": [SMALL], "layouts": ("rgw-beast",), "telemetry": False, **more}
    made = fake_run(runs, seed=day, **given).folder
    begun = FIRST_DAY + timedelta(days=day)
    folder = made.rename(runs / f"day-{day:03}")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest |= {"run_id": folder.name, "created_at": begun.isoformat()}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    plan = json.loads((folder / "plan.resolved.json").read_text())
    plan["suite"]["seed"] = 2014
    (folder / "plan.resolved.json").write_text(json.dumps(plan))
    return folder


def past_runs(
    runs: Path, days: Sequence[int], step_at: int | None = None, step: float = 1.0, **more: Any
) -> list[Path]:
    """A run for each day; from `step_at` on requests take `step` times as long."""
    return [
        past_run(runs, day, slower=step if step_at is not None and day >= step_at else 1.0, **more)
        for day in days
    ]


RunCli = Callable[..., tuple[str, str]]
STEP_AT = 12


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 18 runs; from the thirteenth on requests take 1.5 times as long."""
    runs = tmp_path_factory.mktemp("past") / "runs"
    past_runs(runs, range(18), STEP_AT, 1.5)
    return runs


@pytest.fixture
def runs(folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(folders, tmp_path / "runs"))


@pytest.fixture(scope="module")
def kept(folders: Path) -> Path:
    """What the command keeps of all runs, made beside them."""
    out = folders.parent / "history"
    command_line.weighbridge(
        "history", folders, "--no-charts", "--out", out, folder=folders.parent, code=0
    )
    return out


@pytest.fixture
def judged(runs: Path, kept: Path) -> Path:
    """A copy to change of runs, beside what the command has kept of them."""
    shutil.copytree(kept, "history")
    return runs


def lines_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.test_all
@pytest.mark.long
def test_fifty_runs_with_one_planted_step_of_10_percent_are_told_rightly(
    tmp_path: Path, run_cli: RunCli
) -> None:
    past_runs(tmp_path / "runs", range(50), 30, 1 / 0.9)
    out = tmp_path / "out"
    printed, _ = run_cli(0, "history", tmp_path / "runs", "--out", out, "--no-charts", "--json")
    found = HistoryDocument.model_validate_json(printed).history
    assert len(found.runs) == 50
    (change,) = found.changes
    assert (change.label, change.run) == ("rgw-beast@none-0", "day-030")
    throughput = next(one for one in change.changes if one.metric == "throughput")
    assert throughput.ratio == pytest.approx(0.9, abs=0.02)
    assert {one.direction for one in change.changes} == {"worse"}


def test_a_step_is_told_in_table_page_data_and_database(runs: Path, run_cli: RunCli) -> None:
    out, err = run_cli(0, "history", "--no-charts")
    assert err == ""
    assert out.startswith("1 change in 2 cells of 18 runs; the last: p90 of 1 MB reads on ")
    said = "rgw-beast@none-0 from day-012 on (2026-01-13): throughput −3"
    assert said in out
    folder = Path("history")
    page = (folder / "history.html").read_text()
    assert said in page
    assert 'data-spec="history-throughput-cell-1"' in page
    changes = lines_of(folder / "changes.csv")
    assert [(one["run"], one["metric"], one["direction"]) for one in changes] == [
        ("day-012", "throughput", "worse"),
        ("day-012", "p90", "worse"),
    ]
    figures = lines_of(folder / "figures.csv")
    assert {one["standing"] for one in figures} == {"sure"}
    assert len([one for one in figures if one["metric"] == "throughput"]) == 18
    with duckdb.connect(folder / "history.duckdb", read_only=True) as database:
        found = database.execute("select run, metric, direction from changes").fetchall()
        count = database.execute("select count(*) from figures").fetchone()
    assert found == [("day-012", "throughput", "worse"), ("day-012", "p90", "worse")]
    assert count == (len(figures),)


def test_ci_is_told_by_the_exit_code_that_the_latest_run_is_worse(
    runs: Path, run_cli: RunCli
) -> None:
    out, _ = run_cli(1, "history", "--no-charts", "--fail-on", "regression")
    assert "day-017 is worse than the runs before it: 2 of 2 figures." in out
    for folder in sorted(runs.iterdir())[STEP_AT:]:
        shutil.rmtree(folder)
    words = ("--no-charts", "--out", "fresh", "--fail-on", "regression", "--json")
    out, _ = run_cli(0, "history", *words)
    assert HistoryDocument.model_validate_json(out).exit_code == 0
    for folder in sorted(runs.iterdir())[3:]:
        shutil.rmtree(folder)
    out, said = run_cli(4, "history", *words[:1], "--out", "few", *words[3:])
    assert HistoryDocument.model_validate_json(out).exit_code == 4
    assert "3 comparable runs of the 7 that are needed" in said


def test_a_run_whose_folder_is_deleted_is_kept(judged: Path, run_cli: RunCli) -> None:
    before = run_cli(0, "history", "--no-charts", "--json")[0]
    for folder in sorted(judged.iterdir())[:10]:
        shutil.rmtree(folder)
    after, said = run_cli(0, "history", "--no-charts", "--json")
    assert json.loads(after)["history"] == json.loads(before)["history"]
    assert len(json.loads(after)["gone"]) == 10
    assert "10 runs are kept as judged; not in the folders read." in said
    assert "not read; kept as it was judged" in Path("history", "history.html").read_text()


def test_a_run_is_judged_once_until_its_folder_changes(
    runs: Path, run_cli: RunCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    from weighbridge.results.features import kept_runs  # noqa: PLC0415 - patched below

    read, real = [], kept_runs.read_compared_run
    monkeypatch.setattr(
        kept_runs, "read_compared_run", lambda folder: (read.append(folder.name), real(folder))[1]
    )
    run_cli(0, "history", "--no-charts")
    assert len(read) == 18
    read.clear()
    run_cli(0, "history", "--no-charts")
    assert read == []
    os.utime(runs / "day-003" / "steps.jsonl", (0, 0))
    run_cli(0, "history", "--no-charts")
    assert read == ["day-003"]


def test_named_runs_alone_are_read_and_the_same_run_once(
    runs: Path, run_cli: RunCli, tmp_path: Path
) -> None:
    copy = shutil.copytree(runs / "day-001", tmp_path / "copy")
    out, _ = run_cli(
        0, "history", runs / "day-000", runs / "day-001", copy, "--no-charts", "--json"
    )
    document = HistoryDocument.model_validate_json(out)
    assert [one.run for one in document.history.runs] == ["day-000", "day-001"]
    assert document.left_out == (f"left out: {copy}: the same run as {runs / 'day-001'}",)


@pytest.mark.long
def test_charts_are_drawn_as_those_of_a_run(runs: Path, run_cli: RunCli) -> None:
    run_cli(0, "history", *sorted(runs.iterdir())[:7])
    names = {path.name for path in Path("history", "charts").iterdir()}
    assert {"history-throughput.png", "history-throughput.csv", "history-p90.svg"} <= names


def test_without_a_run_nothing_is_drawn(
    tmp_path: Path, run_cli: RunCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _, err = run_cli(2, "history")
    assert "runs: No such file or directory" in err
    Path("runs", "notes").mkdir(parents=True)
    _, err = run_cli(2, "history")
    assert "there is no run that can be read" in err
    assert not Path("history", "history.html").exists()


def test_an_unknown_guard_fact_is_refused_before_anything_is_read(
    runs: Path, run_cli: RunCli
) -> None:
    _, err = run_cli(2, "history", "--despite", "seeds")
    assert "no guard fact 'seeds'" in err
    assert not Path("history").exists()


def test_what_runs_may_differ_in_is_said_on_terminal_and_page_and_in_json(
    runs: Path, run_cli: RunCli
) -> None:
    arguments = ("history", *sorted(runs.iterdir())[:2], "--despite", "kernel", "--no-charts")
    out, said = run_cli(0, *arguments, "--json")
    words = "Runs are compared although they may differ in kernel."
    assert words in said
    assert words in Path("history", "history.html").read_text().partition("What is compared")[2]
    assert json.loads(out)["history"]["despite"] == ["kernel"]


def test_a_tuning_is_left_out(runs: Path, run_cli: RunCli, tmp_path: Path) -> None:
    from fake_tuning import FakeCourse, fake_tuning  # noqa: PLC0415 - of this test alone

    short = FakeCourse(rounds=1, confirmed=None, choose=False)
    tuning = fake_tuning(tmp_path / "tunings", course=short).folder
    out, _ = run_cli(0, "history", runs / "day-000", tuning, "--no-charts", "--json")
    document = HistoryDocument.model_validate_json(out)
    assert len(document.history.runs) == 1
    assert document.left_out == (
        f"left out: {tuning}: is a tuning, whose trials are not runs of a suite",
    )


# ---- folders and databases from elsewhere


def test_a_folder_that_cannot_be_read_is_named_and_left_out(
    runs: Path, run_cli: RunCli, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("root:planted-secret:")
    for name, file in (("day-000", "steps.jsonl"), ("day-001", "manifest.json")):
        (runs / name / file).unlink()
        (runs / name / file).symlink_to(secret)
    (runs / "day-002" / "plan.resolved.json").write_text('{"suite": {"name": "made-up"')
    (runs / "day-003" / "steps.jsonl").unlink()
    os.mkfifo(runs / "day-003" / "steps.jsonl")
    manifest = json.loads((runs / "day-004" / "manifest.json").read_text())
    manifest["created_at"] = "9999-12-31T23:59:59-23:59"
    (runs / "day-004" / "manifest.json").write_text(json.dumps(manifest))
    for name, file in (("day-005", "manifest.json"), ("day-006", "plan.resolved.json")):
        with (runs / name / file).open("a") as text:
            text.write(" " * LARGEST_RECORD_BYTES)
    out, err = run_cli(0, "history", "--no-charts", "--json")
    document = HistoryDocument.model_validate_json(out)
    assert len(document.history.runs) == 11
    whys = ("is a link", "is a link", "Invalid JSON", "is a pipe", "is not a time")
    whys += ("manifest.json: is larger than ", "plan.resolved.json: is larger than ")
    assert len(document.left_out) == len(whys)
    assert all(why in text for why, text in zip(whys, document.left_out, strict=True))
    assert "planted-secret" not in out + err + Path("history", "history.html").read_text()


def test_names_and_texts_of_a_run_are_inert_everywhere(runs: Path, run_cli: RunCli) -> None:
    bad = "=cmd|'/c calc'!A1<script>alert(1)</script>\x1b[31m"
    for folder in runs.iterdir():
        path = folder / "manifest.json"
        manifest = json.loads(path.read_text())
        manifest["run_id"] = f"{bad}{folder.name}"
        manifest["weighbridge_version"] = bad if folder.name >= "day-012" else "0.1"
        path.write_text(json.dumps(manifest))
    out, _ = run_cli(0, "history", "--no-charts")
    assert "\x1b[31m" not in out
    page = Path("history", "history.html").read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    for name in ("figures.csv", "changes.csv"):
        cells = [one["run"] for one in lines_of(Path("history", name))]
        assert cells
        assert all(cell.startswith("'=cmd") for cell in cells)


@pytest.mark.parametrize("make", ["nonsense", "link", "folder"])
def test_a_database_that_is_none_is_left_alone(
    runs: Path, run_cli: RunCli, tmp_path: Path, make: str
) -> None:
    path = Path("history", "history.duckdb")
    path.parent.mkdir()
    elsewhere = tmp_path / "elsewhere"
    if make == "nonsense":
        path.write_text("nonsense" * 1000)
    elif make == "link":
        path.symlink_to(elsewhere)
    else:
        path.mkdir()
    _, err = run_cli(2, "history", "--no-charts")
    assert str(path) in err
    assert not elsewhere.exists()
    assert make != "nonsense" or path.read_text() == "nonsense" * 1000


def test_what_cannot_be_read_of_a_kept_run_is_judged_again_or_left_out_without_its_folder(
    judged: Path, run_cli: RunCli
) -> None:
    before = run_cli(0, "history", "--no-charts", "--json")[0]
    with duckdb.connect("history/history.duckdb") as database:
        database.execute("update kept set document = '{}' where run in ('day-000', 'day-002')")
        database.execute("update kept set document = null where run = 'day-001'")
        database.execute("update kept set state = '' where run = 'day-002'")
    assert run_cli(0, "history", "--no-charts", "--json")[0] == before
    with duckdb.connect("history/history.duckdb") as database:
        database.execute("update kept set document = '{}' where run = 'day-000'")
    shutil.rmtree(judged / "day-000")
    out, _ = run_cli(0, "history", "--no-charts", "--json")
    document = HistoryDocument.model_validate_json(out)
    assert len(document.history.runs) == 17
    (text,) = document.left_out
    assert text.startswith("left out: day-000: is kept in a form that cannot be read")


@pytest.mark.usefixtures("judged")
def test_a_document_under_the_name_of_another_run_is_no_run(run_cli: RunCli) -> None:
    with duckdb.connect("history/history.duckdb") as database:
        database.execute("insert into kept select 'x' || run, state, document from kept limit 3")
    out, _ = run_cli(0, "history", "--no-charts", "--json")
    document = HistoryDocument.model_validate_json(out)
    assert len(document.history.runs) == 18
    assert len(document.left_out) == 3


@pytest.mark.parametrize(
    "made",
    [
        "view kept as select 'a' as run, 'b' as state, 'c' as document from range(1000000000)",
        "table kept (run varchar, state varchar, document varchar)",
        "table kept (run varchar primary key, state varchar, document as (repeat(state, 9999)))",
    ],
)
def test_a_table_of_runs_that_others_made_is_refused(
    runs: Path, run_cli: RunCli, made: str
) -> None:
    Path("history").mkdir()
    with duckdb.connect("history/history.duckdb") as database:
        database.execute(f"create {made}")
    _, err = run_cli(2, "history", "--no-charts")
    assert "another program made its table of kept runs" in err


@pytest.mark.usefixtures("judged")
def test_a_log_of_the_database_that_is_a_link_is_left_alone(
    run_cli: RunCli, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    target.write_text("precious")
    Path("history", "history.duckdb.wal").symlink_to(target)
    _, err = run_cli(2, "history", "--no-charts")
    assert "history.duckdb.wal: is not a plain file" in err
    assert target.read_text() == "precious"


def test_a_late_run_is_one_more_in_the_same_history(judged: Path, run_cli: RunCli) -> None:
    past_run(judged, 18, slower=1.5)
    out, _ = run_cli(0, "history", judged / "day-018", "--no-charts", "--json")
    found = HistoryDocument.model_validate_json(out).history
    assert len(found.runs) == 19
    assert found.changes[0].changes[0].runs_after == 7


def test_sizes_are_parsed_each_once() -> None:
    assert sizes_of("4KiB, 64KB,1MB,4096") == (4096, 64_000, 1_000_000)


@pytest.mark.parametrize(
    ("hardware", "sizes", "why"),
    [
        ("lab-cp", "4KiB", "lab-cpu"),
        ("loopback", "4KiB", "are fake"),
        ("this-machine", "4KiB", "none are started"),
        ("lab-cpu", "4KiB,big", "'big' is not a quantity"),
        ("lab-cpu", "0", "'0' is not an object size"),
        ("lab-cpu", "", "names no size"),
        ("lab-cpu", " , ", "names no size"),
    ],
)
def test_bad_input_is_refused_and_makes_no_folder(
    tmp_path: Path, hardware: str, sizes: str, why: str
) -> None:
    asked = [hardware, "--sizes", sizes, "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(baseline_verb, asked, standalone_mode=False)
    assert isinstance(done.exception, UsageError)
    assert why in str(done.exception)
    assert not (tmp_path / "out").exists()
