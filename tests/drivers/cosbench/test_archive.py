"""COSBench's archive and the measurements made of it, from recordings."""

from __future__ import annotations

import json
import os
import re
import sys
from base64 import b64encode
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

import pytest

import weighbridge.drivers.cosbench.archive
from tests.drivers.cosbench.conftest import change
from weighbridge.common.errors import DriverError
from weighbridge.drivers.cosbench.archive import Archived, LocalFolder, collect, folder_at, kept
from weighbridge.drivers.cosbench.measurement import (
    StepContext,
    bins,
    codes,
    log_of_stage,
    measurement_of,
    reasons,
    rows,
)
from weighbridge.drivers.cosbench.script import Script, StorageAccess
from weighbridge.drivers.protocol import Step
from weighbridge.results.run.step import Load
from weighbridge.suites import Workload

sys.path.insert(0, str(Path(__file__).parent))
from recorded_controller import DATA, recorded, text_of

CONTEXT = StepContext(
    api="swift", started_at="2026-11-21T00:40:00Z", load=None, started_by_us=True, drivers=1
)


def archived(folder: str, state: str) -> Archived:
    number, _, name = Path(folder).name.partition("-")
    texts = {
        f"{number}-{name}.csv": recorded(folder),
        f"{number}-{name}-rt-histogram.csv": recorded(folder, "-rt-histogram") or "ResTime\n",
        "workload.log": recorded(folder, "log"),
    }
    log = text_of(DATA / Path(folder).parent / "system.log")
    _, _, log = log.rpartition(f"begin to process workload {number}\n")
    files = {name: text.encode() for name, text in texts.items()}
    return Archived(number, name, state, files, log.partition("begin to process")[0])


def _nothing(_seconds: float) -> None:
    """Do not sleep."""


def test_only_regular_files_of_an_archive_are_read_up_to_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("only for this user")
    archive = tmp_path / "archive"
    (archive / "w1-n" / "folder").mkdir(parents=True)
    (archive / "w1-n" / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(archive / "w1-n" / "pipe")
    (archive / "w1-n" / "scripts.log").write_text("x" * 100)
    (archive / "run-history.csv").write_text("w1,n,2026-11-21 00:00:00,x\n")
    monkeypatch.setattr(weighbridge.drivers.cosbench.archive, "LARGEST_FILE_BYTES", 60)
    folder = LocalFolder(str(archive))
    when = datetime.fromisoformat("2026-11-21 00:00:00")
    assert collect(folder, "w1", "n", when, "FINISHED", _nothing).files == {
        "scripts.log": b"x" * 60
    }
    monkeypatch.setattr(weighbridge.drivers.cosbench.archive, "MOST_BYTES", 100)
    for name in ("a", "b", "c", "w1-n.csv"):
        (archive / "w1-n" / name).write_text("y" * 60)
    bounded = collect(folder, "w1", "n", when, "FINISHED", _nothing).files
    assert list(bounded) == ["w1-n.csv", "a"], "all files together have a bound, figures first"
    for number in range(100):
        (archive / "w1-n" / f"more-{number}").touch()
    with pytest.raises(DriverError, match="has 108 files"):
        collect(folder, "w1", "n", when, "FINISHED", _nothing)


def test_names_that_cannot_be_kept_are_said_and_no_file_has_a_secret_in_any_form() -> None:
    secret = "S3cr/et+S3cret&K=y"
    forms = (secret, quote(secret, safe=""), json.dumps(secret).replace("/", "\\u002f"))
    encoded = (secret.replace("/", "&#47;"), b64encode(f"AK:{secret}".encode()).decode())
    log = "\n".join((*forms, *encoded)).encode()
    odd = ("my notes.txt", ".nfs00000000017", "Kopie (2).csv", "x" * 200)
    files = {"workload.log": log, "workload.xml": b"theirs", **dict.fromkeys(odd, b"text")}
    reach = StorageAccess("none", "", "s3", "", (secret, "AK"))
    script = Script("n", "<workload/>", ("s1",))
    files_kept = kept(reach, script, Archived("w1", "n", "FINISHED", files, "x" * 5_000_000))
    texts = {one.name: one.text for one in files_kept}
    assert list(texts) == ["workload.log", "workload.xml", "system.log.gz", "not-kept.txt"]
    assert texts["workload.xml"] == "<workload/>"
    assert [name for name in odd if repr(name) not in texts["not-kept.txt"]] == []
    assert not re.search("S3c|K=y|et.{1,9}S3|UzNj", texts["workload.log"])


def test_a_workloads_folder_is_not_read_by_a_link_or_a_path_that_leads_elsewhere(
    tmp_path: Path,
) -> None:
    (tmp_path / "home" / "folder").mkdir(parents=True)
    (tmp_path / "home" / "folder" / "scripts.log").write_text("only for this user")
    archive = tmp_path / "archive"
    archive.mkdir()
    (archive / "w1-n").symlink_to(tmp_path / "home" / "folder")
    folder = LocalFolder(str(archive))
    with pytest.raises(DriverError, match="w1-n: is a link, which is not followed"):
        folder.names("w1-n")
    assert folder.read("w1-n/scripts.log") is None
    with pytest.raises(DriverError, match="is not a plain path"):
        folder.names("w1/../../home/folder")
    assert folder.read("w1/../../home/folder/scripts.log") is None


def test_logs_of_a_controller_are_read_even_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "system.log").write_text("begin to process workload w1\nends\n")
    (tmp_path / "cosbench" / "archive").mkdir(parents=True)
    (tmp_path / "cosbench" / "log").symlink_to(tmp_path / "logs")
    folder = LocalFolder(str(tmp_path / "cosbench" / "archive"))
    assert folder.read("../log/system.log", last_bytes=5) == b"ends\n"


def test_an_archive_is_found_by_id_name_and_submission_and_read_when_its_last_file_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """w18 was used twice: cancelled in the queue, and again after the controller was restarted."""
    history = (DATA / "jdk8" / "run-history.csv").read_text()
    assert len([line for line in history.splitlines() if line.startswith("w18,")]) == 2
    (tmp_path / "run-history.csv").write_text(history)
    (tmp_path / "w18-tiny").mkdir()
    (tmp_path / "w18-tiny" / "w18-tiny.csv").write_text("figures")
    wrong = datetime.fromisoformat("2026-11-21 00:24:50")
    (line,) = [line for line in history.splitlines() if line.startswith("w18,tiny,")]
    right = datetime.fromisoformat(line.split(",")[2])
    folder = LocalFolder(str(tmp_path))
    monkeypatch.setattr(weighbridge.drivers.cosbench.archive, "WAIT_S", 0.0)
    with pytest.raises(DriverError, match="but no archive came"):
        collect(folder, "w18", "tiny", right, "FINISHED", _nothing)
    monkeypatch.setattr(weighbridge.drivers.cosbench.archive, "WAIT_S", 60.0)

    def last(_seconds: float) -> None:
        (tmp_path / "w18-tiny" / "scripts.log").touch()

    assert collect(folder, "w18", "tiny", right, "FINISHED", last).summary == "figures"
    monkeypatch.setattr(weighbridge.drivers.cosbench.archive, "WAIT_S", 0.0)
    with pytest.raises(DriverError, match="but no archive came"):
        collect(folder, "w18", "tiny", wrong, "FINISHED", _nothing)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("/none/none", "no such folder on the driver's host"),
        ("ssh://host", r"not of the form ssh://USER@HOST\[:PORT\]/PATH"),
        ("ssh://bench@127.0.0.1:9/archive", r"127\.0\.0\.1: over ssh: "),
    ],
)
def test_an_archive_that_cannot_be_reached_is_refused_at_once(place: str, words: str) -> None:
    with pytest.raises(DriverError, match=words):
        folder_at(place)


@pytest.mark.parametrize(
    "folder", sorted(path.relative_to(DATA).as_posix() for path in DATA.glob("*/w*"))
)
def test_every_recorded_summary_can_be_read(folder: str) -> None:
    found = rows(recorded(folder))
    assert found
    for row in found:
        assert row.status in {"completed", "failed", "terminated", "cancelled", "aborted"}
        assert (row.operation is None) == (row.count is None)


def test_what_is_not_applicable_is_none_and_never_zero() -> None:
    init, prepare, *_ = rows(recorded("jdk8/w35-mock-stepped"))
    assert (init.count, init.mean_ms, init.success) == (0, None, None)
    assert (prepare.operation, prepare.count) == ("prepare-write", 100)
    assert (prepare.mean_ms, prepare.success) == (10.23, 1.0)
    (hung,) = rows(recorded("jdk8/w42-hang-long"))
    assert (hung.count, hung.throughput_per_s) == (None, None)


def test_a_summary_in_another_language_or_format_is_refused() -> None:
    head, row = recorded("jdk8/w35-mock-stepped").splitlines()[:2]
    with pytest.raises(DriverError, match="Its JVM must write numbers in English"):
        rows(f"{head}\n{row.replace('N/A', '10,5')}")
    with pytest.raises(DriverError, match="does not have the header"):
        rows("<html>")
    with pytest.raises(DriverError, match="does not have the header"):
        rows("")


def test_bins_sum_to_the_count_of_the_summary_in_every_recorded_stage() -> None:
    for folder in ("jdk8/w33-mock-errors", "jdk8/w35-mock-stepped"):
        histogram = recorded(folder, "-rt-histogram")
        for row in rows(recorded(folder)):
            found = bins(histogram, row.stage, row.operation or "")
            if row.operation in ("read", "write", "delete"):
                assert found is not None
                assert found.count == row.count
                assert (found.width_us, found.beyond_us) == (10_000, 500_000_000)
            else:
                assert found is None


def test_a_truncated_histogram_is_refused() -> None:
    histogram = recorded("jdk8/w35-mock-stepped", "-rt-histogram")
    with pytest.raises(DriverError, match="its last row is missing"):
        bins(histogram[: len(histogram) // 2].rpartition("\n")[0], "s3-main-w1", "read")
    assert bins("ResTime\n0~10\n", "s1-main", "read") is None


def test_codes_are_those_of_their_stage_and_reasons_those_of_their_workload() -> None:
    log = recorded("jdk8/w33-mock-errors", "log")
    assert codes(log_of_stage(log, "s3-main-ok")) == {"N/A": 103}
    assert codes(log_of_stage(log, "s1-init")) == {}
    unknown = archived("jdk8/w39-unknown-storage", "TERMINATED")
    assert reasons(unknown.system_log, unknown.log) == (
        "HTTP 400 - unrecognized storage type: nosuch",
    )
    assert "refused" in " ".join(reasons("", recorded("jdk8/w38-allfail", "log")))


# ---- its measurement


def test_failures_are_counted_from_the_share_no_more_exactly_than_it_allows(
    mixed: Workload,
) -> None:
    step = Step(workload=change(mixed, runtime=6.0), workers=2)
    errors = archived("jdk8/w33-mock-errors", "FAILED")
    measurement = measurement_of(errors, "s3-main-ok", step, CONTEXT)
    read, write = measurement.tallies
    assert (read.count, read.errors) == (1010, {"untold": 57})
    assert (write.count, write.errors) == (546, {"untold": 29})
    assert not any(" between " in note for note in measurement.notes)
    many = recorded("jdk8/w33-mock-errors").replace("1010,64640000", "101000,64640000")
    head, first, rest = errors.histogram.split("\n", 2)
    fields = first.split(",")
    fields[1] = str(int(fields[1]) + 101000 - 1010)
    files = {
        **errors.files,
        "w33-mock-errors.csv": many.encode(),
        "w33-mock-errors-rt-histogram.csv": "\n".join((head, ",".join(fields), rest)).encode(),
    }
    more = Archived(errors.id, errors.name, errors.state, files, "")
    notes = measurement_of(more, "s3-main-ok", step, CONTEXT).notes
    assert any("read: between 5692 and 5703 failed" in note for note in notes)


@pytest.mark.parametrize(
    ("folder", "stage", "state", "reason"),
    [
        ("jdk8/w36-cancel-me", "s2-main-b", "CANCELLED", "ended as CANCELLED: somebody"),
        ("jdk8/w37-allfail-main", "s1-m", "FAILED", "Connection to http://127.0.0.1:7999 refused"),
        ("jdk8/w40-swift-token", "s2-main", "TERMINATED", "ended as TERMINATED"),
        ("jdk8/w42-hang-long", "s1-m", "FINISHED", "read of stage s1-m has no figures"),
        ("jdk8/w43-swift-fail-404", "s1-m", "FAILED", "write of stage s1-m never succeeded"),
        ("jdk17/w7-driver-down", "s1-a", "TERMINATED", "see log/system.log of its controller"),
        ("jdk8/w35-mock-stepped", "s9-none", "FINISHED", "read of stage s9-none has no figures"),
    ],
)
def test_figures_of_a_workload_that_did_not_end_well_are_not_used(
    folder: str, stage: str, state: str, reason: str, mixed: Workload
) -> None:
    step = Step(workload=mixed, workers=2)
    with pytest.raises(DriverError) as error:
        measurement_of(archived(folder, state), stage, step, CONTEXT)
    assert reason in error.value.message


def test_a_histogram_with_another_count_than_the_summary_is_not_used(mixed: Workload) -> None:
    stepped = archived("jdk8/w35-mock-stepped", "FINISHED")
    summary = stepped.summary.replace("1694,1694000", "1695,1694000").encode()
    files = {**stepped.files, "w35-mock-stepped.csv": summary}
    torn = Archived(stepped.id, stepped.name, stepped.state, files, "")
    with pytest.raises(DriverError, match="the histogram has 1694 of 1695 response times"):
        measurement_of(torn, "s4-main-w2", Step(workload=mixed, workers=2), CONTEXT)


def test_what_cosbench_does_differently_is_noted(mixed: Workload) -> None:
    stepped = archived("jdk8/w35-mock-stepped", "FINISHED")
    load = Load(cpu_s=1.0, cpu_limit=2.0, window_s=12.0)
    context = replace(CONTEXT, load=load, drivers=2)
    ours = measurement_of(stepped, "s4-main-w2", Step(workload=mixed, workers=2), context)
    assert ours.load == load
    assert not any("date -s" in note for note in ours.notes)
    assert any("about 1 ms for COSBench's own check" in note for note in ours.notes)
    assert any("2 COSBench drivers number what they write alike" in note for note in ours.notes)
    assert not any("over the time its workers worked" in note for note in ours.notes)
    step = Step(workload=change(mixed, runtime=20.0), workers=2)
    longer = measurement_of(stepped, "s4-main-w2", step, CONTEXT)
    assert any("COSBench reports 141.27 op/s" in note for note in longer.notes)
