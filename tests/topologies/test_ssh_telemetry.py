"""Answers of a real host, which may be anybody's, are validated."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any, cast

import pytest

from weighbridge.common.errors import TargetError
from weighbridge.topologies.ssh import host_telemetry as module
from weighbridge.topologies.ssh.host_telemetry import HostTelemetry
from weighbridge.topologies.ssh.program import RemoteProgram
from weighbridge.topologies.ssh.services import HostProcess


class AnsweringProgram:
    """A program on a host with these answers."""

    def __init__(self, *lines: bytes) -> None:
        self.stdin = io.BytesIO()
        self.stdout = io.BytesIO(b"".join(lines))

    def wait(self, _timeout_s: float | None = None) -> int:
        return 0


def telemetry_of(folder: Path, *lines: bytes) -> HostTelemetry:
    """The telemetry of such a program. Copies of logs go to `folder`/logs."""
    (folder / "logs").mkdir()
    return HostTelemetry(
        cast("RemoteProgram", AnsweringProgram(*lines)),
        "store-1 (10.0.0.4)",
        errors=folder / "telemetry.err",
    )


def line(answer: Any) -> bytes:
    return json.dumps({"answer": answer}).encode() + b"\n"


def news(*files: tuple[str, int, bytes], more: bool = False) -> bytes:
    answer = {
        path: {"inode": 7, "offset": offset, "data": base64.b64encode(data).decode()}
        for path, offset, data in files
    }
    return line({"files": answer, "more": more})


def test_logs_are_copied_as_they_grow_and_from_the_start_where_they_are_new(tmp_path: Path) -> None:
    telemetry = telemetry_of(
        tmp_path,
        news(("a/b.log", 0, b"one\n"), more=True),
        news(("a/b.log", 4, b"two\n")),
        news(("a/b.log", 0, b"new\n")),
    )
    telemetry.copy_logs("", tmp_path / "logs")
    assert (tmp_path / "logs/a/b.log").read_text() == "one\ntwo\n"
    telemetry.copy_logs("", tmp_path / "logs")
    assert (tmp_path / "logs/a/b.log").read_text() == "new\n"


@pytest.mark.parametrize(
    "name",
    [
        "../victim",
        "../../victim",
        "/{}/victim",
        "a/../../victim",
        "",
        ".",
        "a\x1b[2Jb",
        "a\0b",
        "\ud800",
    ],
)
def test_a_log_with_a_path_that_leads_elsewhere_is_not_written(tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine\n")
    telemetry = telemetry_of(tmp_path, news((name.format(tmp_path), 0, b"theirs\n")))
    with pytest.raises(
        TargetError,
        match=r"store-1 \(10.0.0.4\): its log .* cannot be copied .* plain path",
    ) as error:
        telemetry.copy_logs("", tmp_path / "logs")
    assert error.value.message.isprintable()
    assert victim.read_text() == "mine\n"
    assert list((tmp_path / "logs").rglob("*")) == []


def test_a_log_is_not_copied_through_a_link_in_the_folder_of_copies(
    tmp_path: Path,
) -> None:
    telemetry = telemetry_of(tmp_path, news(("stolen", 0, b"theirs\n")))
    (tmp_path / "victim").write_text("mine\n")
    (tmp_path / "logs" / "stolen").symlink_to(tmp_path / "victim")
    with pytest.raises(TargetError, match=r"'stolen' cannot be copied .* is a link"):
        telemetry.copy_logs("", tmp_path / "logs")
    assert (tmp_path / "victim").read_text() == "mine\n"


def test_a_log_that_continues_where_it_never_ended_makes_no_sparse_file(
    tmp_path: Path,
) -> None:
    telemetry = telemetry_of(tmp_path, news(("a.log", 2**60, b"end\n")))
    with pytest.raises(
        TargetError, match=r"'a\.log' continues at byte 1152921504606846976, not at 0"
    ):
        telemetry.copy_logs("", tmp_path / "logs")
    assert not (tmp_path / "logs" / "a.log").exists()


def test_a_host_that_promises_more_logs_without_data_is_not_asked_for_ever(
    tmp_path: Path,
) -> None:
    telemetry = telemetry_of(tmp_path, *[news(("a.log", 0, b""), more=True)] * 2)
    telemetry.copy_logs("", tmp_path / "logs")
    assert (tmp_path / "logs" / "a.log").read_bytes() == b""


def test_logs_beyond_a_bound_are_not_copied_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 1024)
    telemetry = telemetry_of(tmp_path, *[news(("a.log", 0, b"x" * 600), more=True)] * 3)
    with pytest.raises(TargetError, match="its logs are more than 10000 files or 1 KiB"):
        telemetry.copy_logs("", tmp_path / "logs")


@pytest.mark.parametrize(
    "answer",
    [
        b"Welcome to store-1\n",
        b"[]\n",
        b'"error"\n',
        b"{}\n",
        b"[" * 100_000 + b"\n",
        line(None),
        line({"files": [], "more": False}),
        line({"files": {"a": {"inode": 1, "offset": -1, "data": ""}}, "more": False}),
        line({"files": {"a": {"inode": 1, "offset": 0, "data": "a"}}, "more": False}),
    ],
)
def test_an_invalid_answer_is_an_error_of_that_host(tmp_path: Path, answer: bytes) -> None:
    with pytest.raises(TargetError, match=r"^store-1 \(10\.0\.0\.4\): ") as error:
        telemetry_of(tmp_path, answer).copy_logs("", tmp_path / "logs")
    assert len(error.value.message) < 1000


def test_invalid_counters_and_processes_are_an_error_of_that_host(tmp_path: Path) -> None:
    telemetry = telemetry_of(tmp_path, line([]), line({}), line([True, True]))
    with pytest.raises(TargetError, match="counters are not an object"):
        telemetry.counters()
    for _ in range(2):
        with pytest.raises(TargetError, match="does not say which processes"):
            telemetry.running([HostProcess(1, 2)])


def test_an_endless_answer_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_ANSWER_BYTES", 1000)
    with pytest.raises(TargetError, match="prints too much"):
        telemetry_of(tmp_path, b" " * 2000).counters()
