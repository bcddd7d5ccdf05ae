from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from pptx import Presentation

from fake_run import WORKLOADS, fake_run
from weighbridge.cli.slides import command
from weighbridge.common.errors import UsageError
from weighbridge.results.record.store import RunStore

SHORT = tuple(
    workload.model_copy(update={"runtime": 1.0, "workers": (1, 4)}) for workload in WORKLOADS[:1]
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    return fake_run(tmp_path_factory.mktemp("runs"), workloads=SHORT, repeats=1)


def slides(*arguments: str | Path) -> str:
    return (
        CliRunner().invoke(command, [str(one) for one in arguments], catch_exceptions=False).output
    )


def test_a_talk_is_written_beside_the_other_derived_files(run: RunStore) -> None:
    output = slides(run.folder)
    path = run.derived / "slides.pptx"
    count = len(Presentation(io.BytesIO(path.read_bytes())).slides)
    assert output.startswith(f"{path}: {count} slides, set in Arial")


def test_a_dark_talk_has_a_dark_background(run: RunStore, tmp_path: Path) -> None:
    slides(run.folder, "--out", tmp_path / "talk.pptx", "--dark")
    with zipfile.ZipFile(tmp_path / "talk.pptx") as archive:
        assert b"14161A" in archive.read("ppt/theme/theme1.xml").upper()


def test_an_existing_deck_is_replaced_only_with_force(run: RunStore, tmp_path: Path) -> None:
    path = tmp_path / "talk.pptx"
    path.write_text("worked on")
    with pytest.raises(UsageError, match="already exists"):
        slides(run.folder, "--out", path)
    assert path.read_text() == "worked on"
    slides(run.folder, "--out", path, "--force")
    assert path.read_bytes().startswith(b"PK")


def test_a_missing_folder_is_reported_before_anything_is_read(
    run: RunStore, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="there is no folder"):
        slides(run.folder, "--out", tmp_path / "none" / "talk.pptx")


def test_a_folder_that_is_not_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        slides(tmp_path)
