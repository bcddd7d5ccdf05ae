"""What verbs say of a run's folder, also of a damaged one, and what they write."""

from __future__ import annotations

import io
import json
import re
import shutil
import webbrowser
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from pptx import Presentation

from fake_influx import FakeInflux
from fake_run import WORKLOADS, fake_run
from weighbridge.cli.results import EXAMPLES, slides_verb
from weighbridge.command import weighbridge
from weighbridge.common.errors import UsageError
from weighbridge.documents import RunsDocument
from weighbridge.results import derive
from weighbridge.results.run.store import RunStore, lock_run_folder
from weighbridge.results.show.pictures import RenderingError

RunCli = Callable[..., tuple[str, str]]


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
    out, _ = run_cli(0, "runs", "--json")
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
    out, _ = run_cli(0, "runs")
    for words in ("runs/20260101T000000Z-a", "killed", derived.answer.split()[0]):
        assert words in out


def test_a_run_that_is_being_written_is_running_and_a_folder_without_runs_has_none(
    here: Path, run_cli: RunCli
) -> None:
    with lock_run_folder(here / "runs" / "20260102T000000Z-b"):
        assert {one.state for one in listed(run_cli).runs} >= {"running"}
    out, _ = run_cli(0, "runs", here / "runs" / "notes")
    assert out.startswith("no runs that can be read in ")
    _, said = run_cli(2, "runs", here / "none")
    assert "No such file or directory" in said


def test_the_newest_report_is_opened_where_there_is_a_screen_and_its_path_printed(
    here: Path, run_cli: RunCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    run = here / "runs" / "20260101T000000Z-a"
    _, said = run_cli(2, "open", run)
    assert f"weighbridge report {run}" in said
    derive(run, pictures=False)
    shutil.rmtree(here / "runs" / "20260102T000000Z-b")
    out, _ = run_cli(0, "open")
    assert out == f"{run / 'derived' / 'report.html'}\n"
    assert opened == []
    monkeypatch.setenv("DISPLAY", ":0")
    run_cli(0, "open", run)
    assert opened == [(run / "derived" / "report.html").as_uri()]


def test_the_json_of_a_report_is_its_answer_and_its_exported_tables(
    here: Path, run_cli: RunCli
) -> None:
    run = here / "runs" / "20260101T000000Z-a"
    out, said = run_cli(0, "report", "--no-charts", "--json", run)
    found = json.loads(out)
    derived = derive(run, pictures=False)
    exported, _ = run_cli(0, "export", run, "--to", "json", "--out", "-")
    tables = json.loads(exported)["tables"]
    assert found["answer"] == derived.answer
    assert found["tables"] == {name: tables[name] for name in ("summary", "effects")}
    assert [lead["about"] for lead in found["leads"]] == ["1 MB reads"]
    assert found["context"] == derived.answered.context
    assert "small-read" not in said


def test_schemas_are_printed_without_any_run(run_cli: RunCli) -> None:
    out, _ = run_cli(0, "export", "--schema")
    assert json.loads(out)["title"] == "A run of Weighbridge"
    out, _ = run_cli(0, "sql", "--schema")
    assert "attestation: " in out


def test_every_example_query_of_the_help_runs(folder: Path, run_cli: RunCli) -> None:
    shown, _ = run_cli(0, "sql", "--help")
    for words, query in EXAMPLES:
        assert words in shown
        for line in query.splitlines():
            assert f"      {line}\n" in shown
        out, err = run_cli(0, "sql", query, folder)
        assert (err, out[-2:]) == ("", ")\n")


def test_standard_output_takes_one_file(folder: Path, run_cli: RunCli) -> None:
    tables = ("--table", "steps", "--table", "summary")
    out, _ = run_cli(2, "export", folder, "--to", "parquet", "--out", "-", *tables)
    assert out == ""
    _, err = run_cli(2, "export", folder, "--to", "influx")
    assert "--influx URL" in err
    run_cli(2, "export", folder, "--to", "csv", "--influx", "http://127.0.0.1:1")


def test_a_run_is_sent_to_an_influxdb(
    folder: Path, run_cli: RunCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIGHBRIDGE_INFLUX_TOKEN", "")
    with FakeInflux() as server:
        out, err = run_cli(0, "export", folder, "--to", "influx", "--influx", server.url)
    assert err == ""
    assert out == f"{len(server.taken)} points of 2 steps sent\n"
    assert any("swift" in line for line in server.taken)


def test_the_slides_of_a_run_open(folder: Path, run_cli: RunCli, tmp_path: Path) -> None:
    out, _ = run_cli(0, "export", folder, "--to", "pptx", "--out", tmp_path / "talk.pptx")
    assert out == f"{tmp_path / 'talk.pptx'}\n"
    assert len(Presentation(io.BytesIO((tmp_path / "talk.pptx").read_bytes())).slides) > 3


def test_existing_files_are_replaced_only_on_request(folder: Path, run_cli: RunCli) -> None:
    file = f"{folder}/derived/exports/summary.csv"
    assert run_cli(0, "export", folder, "--to", "csv") == (f"{file}\n", "")
    assert "exists already" in run_cli(2, "export", folder, "--to", "csv")[1]
    run_cli(0, "export", folder, "--to", "csv", "--force")
    assert "did you mean 'csv'" in run_cli(2, "export", folder, "--to", "cvs")[1]


@pytest.mark.parametrize(
    "words",
    [
        "slides RUN --force --out RUN/steps.jsonl",
        "export RUN --to json --force --out LINK/manifest.json",
        "export RUN --to csv --out RUN",
        "charts RUN --out RUN/logs",
        "compare-runs RUN RUN --out RUN/logs",
        "compare-runs LINK LINK --force --junit RUN/steps.jsonl",
        "history RUN --out RUN/logs",
        "init suite --force RUN/plan.yaml",
        "import-cosbench x --out RUN/new.yaml",
        "compare --out RUN",
        "baseline --out RUN",
        "capabilities rgw-beast --out RUN",
        "durability rgw-beast --out RUN",
    ],
)
def test_no_output_goes_among_the_records_of_a_run(
    folder: Path, tmp_path: Path, run_cli: RunCli, words: str
) -> None:
    link = tmp_path / "link"
    link.symlink_to(folder)
    given = words.replace("RUN", str(folder)).replace("LINK", str(link)).split()
    _, err = run_cli(2, *given)
    assert f"is in the folder of the run {folder.name}" in err
    run_cli(0, "export", folder, "--to", "csv", "--force", "--out", folder / "derived" / "mine.csv")


def slides(*arguments: str | Path) -> str:
    words = [str(argument) for argument in arguments]
    return CliRunner().invoke(slides_verb, words, catch_exceptions=False).output


def test_a_talk_is_written_beside_the_other_derived_files(folder: Path) -> None:
    output = slides(folder)
    path = folder / "derived" / "slides.pptx"
    count = len(Presentation(io.BytesIO(path.read_bytes())).slides)
    made, backup = (int(number) for number in re.findall(r"(\d+) (?:slides|of)", output))
    assert (output.startswith(f"{path}: "), made + backup, made <= 8) == (True, count, True)


def test_an_existing_deck_is_replaced_only_with_force_by_one_as_dark_as_asked(
    folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "talk.pptx"
    path.write_text("worked on")
    with pytest.raises(UsageError, match="exists already"):
        slides(folder, "--out", path)
    assert path.read_text() == "worked on"
    slides(folder, "--out", path, "--force", "--dark")
    with zipfile.ZipFile(path) as archive:
        assert b"14161A" in archive.read("ppt/theme/theme1.xml").upper()
    with pytest.raises(UsageError, match="there is no folder"):
        slides(folder, "--out", tmp_path / "none" / "talk.pptx")
    with pytest.raises(UsageError):
        slides(tmp_path)


@pytest.fixture(scope="module")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    small = WORKLOADS[0].model_copy(update={"runtime": 2.0, "workers": (1, 4)})
    return fake_run(tmp_path_factory.mktemp("runs"), workloads=[small], repeats=2).folder


def run(*arguments: str) -> str:
    result = CliRunner().invoke(
        weighbridge, ["charts", *arguments], catch_exceptions=False, standalone_mode=False
    )
    return result.output


def test_charts_are_written_into_the_run_with_data_and_sentence(small_run: Path) -> None:
    out = run(str(small_run), "--only", "recap-map,throughput-bars")
    charts = small_run / "derived" / "charts"
    assert out.splitlines() == [str(charts / "recap-map.png"), str(charts / "throughput-bars.png")]
    suffixes = {path.suffix for path in charts.glob("recap-map.*")}
    assert suffixes == {".png", ".svg", ".pdf", ".csv", ".txt"}


@pytest.mark.long
def test_dark_charts_are_written_beside_the_light_ones(small_run: Path, tmp_path: Path) -> None:
    words = ("--dark", "--only", "throughput-bars")
    run(str(small_run), *words)
    assert (
        "#14161a" in (small_run / "derived" / "charts" / "dark" / "throughput-bars.svg").read_text()
    )
    run(str(small_run), *words, "--out", str(tmp_path / "talk"))
    assert (tmp_path / "talk" / "throughput-bars.png").exists()


def test_charts_are_listed_and_the_bound_on_p90_is_a_time(small_run: Path) -> None:
    before = sorted(small_run.rglob("*"))
    names = [line.partition(":")[0] for line in run(str(small_run), "--list").splitlines()]
    assert names[:2] == ["throughput-by-workers", "latency-by-workers"]
    bounded = run(str(small_run), "--list", "--only", "hockey-stick", "--slo", "40ms")
    assert "p90 of 40 ms" in bounded
    assert sorted(small_run.rglob("*")) == before
    with pytest.raises(UsageError, match=r"did you mean .*hockey-stick"):
        run(str(small_run), "--only", "hockeystick")


def test_failed_charts_keep_table_report_and_exit_code(
    small_run: Path, run_cli: RunCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_cli(0, "report", "--no-charts", small_run)
    early = RenderingError("a process that draws charts ended early")
    errors = [early, MemoryError(), OSError(12, "no memory")]

    def fails(*_: object) -> None:
        raise errors.pop()

    monkeypatch.setattr("weighbridge.results_output.write_charts", fails)
    while errors:
        (small_run / "derived" / "report.html").unlink()
        output, _ = run_cli(0, "report", small_run)
        assert (small_run / "derived" / "report.html").is_file()
        assert 0 < output.index("small-read") < output.index("the charts could not be drawn (")
        assert f"nothing else is lost; to try again: weighbridge charts {small_run}" in output


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
    folder: Path, run_cli: RunCli, damaged: tuple[str, ...], code: int, words: str
) -> None:
    name, *how = damaged
    damage(folder / name, *how)
    for arguments in (("report", folder), ("export", folder, "--to", "csv", "--out", "-")):
        out, err = run_cli(code, *arguments)
        assert out == ""
        assert err.startswith("weighbridge: ")
        assert re.search(words, err)
    out, err = run_cli(2, "sql", "select count(*) from steps", folder)
    assert out == ""
    assert re.search(f"left out: .*{words}", err)
    assert "none of these folders is a run that can be read" in err


def test_an_unfinished_run_is_read_as_far_as_it_is_and_every_verb_says_so(
    folder: Path, run_cli: RunCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Charts take long, and have their own tests.
    monkeypatch.setattr("weighbridge.results_output.write_charts", lambda _drawings, _folder: ())
    change(folder / "manifest.json", '"state": "done"', '"state": "running"')
    steps = folder / "steps.jsonl"
    steps.write_bytes(steps.read_bytes()[:-100])
    for path in (folder / "telemetry").iterdir():
        path.write_bytes(path.read_bytes()[:-10])
    gap = "the run is still running, or was killed: 1 of 2 steps have a result"
    out, err = run_cli(0, "sql", "select layout, measured from steps", folder, "--format", "csv")
    assert out == "layout,measured\nrgw-beast,true\n"
    assert gap in err
    assert "steps.jsonl: the last line is incomplete and was ignored" in err
    out, err = run_cli(0, "export", folder, "--to", "json", "--out", "-")
    summary = {line["layout"]: line for line in json.loads(out)["tables"]["summary"]}
    assert summary["swift"]["throughput_ops_s"] is None
    assert summary["swift"]["notes"] == ["not measured"]
    assert gap in err
    out, err = run_cli(0, "report", folder)
    assert gap in err
    assert (folder / "derived" / "report.html").is_file()


def test_a_run_without_any_step_has_no_figures_in_any_table(folder: Path, run_cli: RunCli) -> None:
    (folder / "steps.jsonl").write_bytes(b"")
    out, err = run_cli(0, "export", folder, "--to", "markdown", "--out", "-")
    assert "| swift | swift | small-read | read | 1 | 0 | not valid" in out
    assert "op/s" not in out
    assert "0 of 2 steps have a result" in err
    query = "select count(throughput_ops_s), count(*) from summary"
    out, _ = run_cli(0, "sql", query, folder, "--format", "csv")
    assert out.splitlines()[1] == "0,2"
    _, err = run_cli(4, "export", folder, "--to", "hgrm")
    assert "nothing to export as hgrm" in err


@pytest.mark.parametrize("where", ["derived", "derived/exports"])
def test_a_file_in_place_of_a_folder_is_reported_and_kept(
    folder: Path, run_cli: RunCli, where: str
) -> None:
    path = folder / where
    shutil.rmtree(path, ignore_errors=True)
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    _, err = run_cli(3, "export", folder, "--to", "csv")
    assert f"{folder / 'derived' / 'exports'}: cannot be written" in err
    if where == "derived":
        assert "cannot be written" in run_cli(3, "report", folder)[1]
    assert path.read_text() == "mine"


def test_sql_reads_all_runs_and_names_folders_that_are_not(
    folder: Path, run_cli: RunCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _, err = run_cli(2, "sql", "select 1")
    assert "runs: No such file or directory" in err
    (tmp_path / "runs" / "notes").mkdir(parents=True)
    folder.rename(tmp_path / "runs" / "one")
    out, err = run_cli(0, "sql", "select count(*) from runs", "--format", "csv")
    assert out.splitlines()[1] == "1"
    assert (
        err == "weighbridge: left out: runs/notes: is not the folder of a run: it has no "
        "manifest.json\n"
    )
