import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from pptx import Presentation

from fake_influx import FakeInflux
from weighbridge.cli.slides import command
from weighbridge.cli.sql import EXAMPLES
from weighbridge.common.errors import UsageError

Told = tuple[int, str, str]


def test_schemas_are_printed_without_any_run(run_cli: Callable[..., Told]) -> None:
    ended, out, _ = run_cli("export", "--schema")
    assert (ended, json.loads(out)["title"]) == (0, "A run of Weighbridge")
    ended, out, _ = run_cli("sql", "--schema")
    assert ended == 0
    assert "attestation: " in out


def test_every_example_query_of_the_help_runs(folder: Path, run_cli: Callable[..., Told]) -> None:
    _, shown, _ = run_cli("sql", "--help")
    for words, query in EXAMPLES:
        assert words in shown
        for line in query.splitlines():
            assert f"      {line}\n" in shown
        ended, out, err = run_cli("sql", query, folder)
        assert (ended, err, out[-2:]) == (0, "", ")\n")


def test_standard_output_takes_one_file(folder: Path, run_cli: Callable[..., Told]) -> None:
    ended, out, _ = run_cli(
        "export", folder, "--to", "parquet", "--out", "-", "--table", "steps", "--table", "summary"
    )
    assert (ended, out) == (2, "")
    ended, _, err = run_cli("export", folder, "--to", "influx")
    assert (ended, "--influx URL" in err) == (2, True)
    ended, _, err = run_cli("export", folder, "--to", "csv", "--influx", "http://127.0.0.1:1")
    assert ended == 2


def test_a_run_is_sent_to_an_influxdb(
    folder: Path, run_cli: Callable[..., Told], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIGHBRIDGE_INFLUX_TOKEN", "")
    with FakeInflux() as server:
        ended, out, err = run_cli("export", folder, "--to", "influx", "--influx", server.url)
    assert (ended, err) == (0, "")
    assert out == f"{len(server.taken)} points of 2 steps sent\n"
    assert any("swift" in line for line in server.taken)


def test_the_slides_of_a_run_open(
    folder: Path, run_cli: Callable[..., Told], tmp_path: Path
) -> None:
    ended, out, err = run_cli("export", folder, "--to", "pptx", "--out", tmp_path / "talk.pptx")
    assert (ended, out) == (0, f"{tmp_path / 'talk.pptx'}\n")
    assert "the slides are set in Arial" in err
    assert len(Presentation(io.BytesIO((tmp_path / "talk.pptx").read_bytes())).slides) > 3


def test_existing_files_are_replaced_only_on_request_and_a_close_format_is_suggested(
    folder: Path, run_cli: Callable[..., Told]
) -> None:
    assert run_cli("export", folder, "--to", "csv") == (
        0,
        f"{folder}/derived/exports/summary.csv\n",
        "",
    )
    ended, _, err = run_cli("export", folder, "--to", "csv")
    assert (ended, "exists already" in err) == (2, True)
    assert run_cli("export", folder, "--to", "csv", "--force")[0] == 0
    ended, _, err = run_cli("export", folder, "--to", "cvs")
    assert (ended, "did you mean 'csv'" in err) == (2, True)


def slides(*arguments: str | Path) -> str:
    return (
        CliRunner().invoke(command, [str(one) for one in arguments], catch_exceptions=False).output
    )


def test_a_talk_is_written_beside_the_other_derived_files(folder: Path) -> None:
    output = slides(folder)
    path = folder / "derived" / "slides.pptx"
    count = len(Presentation(io.BytesIO(path.read_bytes())).slides)
    assert output.startswith(f"{path}: {count} slides, set in Arial")


def test_a_dark_talk_has_a_dark_background(folder: Path, tmp_path: Path) -> None:
    slides(folder, "--out", tmp_path / "talk.pptx", "--dark")
    with zipfile.ZipFile(tmp_path / "talk.pptx") as archive:
        assert b"14161A" in archive.read("ppt/theme/theme1.xml").upper()


def test_an_existing_deck_is_replaced_only_with_force(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "talk.pptx"
    path.write_text("worked on")
    with pytest.raises(UsageError, match="already exists"):
        slides(folder, "--out", path)
    assert path.read_text() == "worked on"
    slides(folder, "--out", path, "--force")
    assert path.read_bytes().startswith(b"PK")


def test_a_missing_folder_and_one_that_is_no_run_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no folder"):
        slides(folder, "--out", tmp_path / "none" / "talk.pptx")
    with pytest.raises(UsageError):
        slides(tmp_path)
