from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from weighbridge.common.errors import TargetError
from weighbridge.topologies.lab.host import FILE, daemons, keep_daemon
from weighbridge.topologies.lab.program import (
    LabProcess,
    LabProgram,
    family,
    kill_family,
    send,
    wait_end,
)

FORKS = """
import subprocess
child = subprocess.Popen(["sleep", "60"], start_new_session=True)
print(child.pid, flush=True)
child.wait()
"""


def everything() -> tuple[int, ...]:
    return tuple(int(path.name) for path in Path("/proc").glob("[0-9]*"))


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def test_a_process_is_identified_by_pid_and_start_time(sleeper: subprocess.Popen[bytes]) -> None:
    found = LabProcess.of(sleeper.pid)
    assert found is not None
    assert found.parent == os.getpid()
    assert found == LabProcess.of(sleeper.pid)


@pytest.mark.parametrize("name", ["plain", "with blank", "pare) n (theses", ") S 1 1 1"])
def test_the_name_of_a_process_may_contain_anything(tmp_path: Path, name: str) -> None:
    (tmp_path / "7").mkdir()
    numbers = " ".join(map(str, range(100, 140)))
    (tmp_path / "7/stat").write_text(f"7 ({name}) S 5 6 8 {numbers}\n")
    assert LabProcess.of(7, tmp_path) == LabProcess(7, parent=5, session=8, started=115)


@pytest.mark.parametrize("state", ["Z", "X"])
def test_a_zombie_is_no_process(tmp_path: Path, state: str) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7/stat").write_text(f"7 (x) {state} " + " ".join(["1"] * 40))
    assert LabProcess.of(7, tmp_path) is None


def test_a_process_with_a_reused_pid_gets_no_signal(
    sleeper: subprocess.Popen[bytes],
) -> None:
    found = LabProcess.of(sleeper.pid)
    assert found is not None
    earlier = LabProcess(found.pid, found.parent, found.session, found.started - 1)
    send(earlier, signal.SIGKILL)
    assert wait_end(earlier, 0)
    assert not wait_end(found, 0.05)
    send(found, signal.SIGKILL)
    assert wait_end(found, 30)


def test_a_program_is_killed_with_children_in_other_sessions() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FORKS], stdout=subprocess.PIPE, start_new_session=True
    ) as program:
        assert program.stdout is not None
        child = int(program.stdout.readline())
        assert {one.pid for one in family(program.pid, everything())} == {program.pid, child}
        assert kill_family(program.pid, everything)
        assert program.wait(30) == -signal.SIGKILL
    assert LabProcess.of(child) is None


def test_survivors_of_a_program_are_found_by_its_session() -> None:
    with subprocess.Popen(
        ["sh", "-c", "sleep 60 & echo $!"], stdout=subprocess.PIPE, start_new_session=True
    ) as program:
        assert program.stdout is not None
        child = int(program.stdout.readline())
        program.wait(30)
        assert kill_family(program.pid, everything)
    assert LabProcess.of(child) is None


def test_killing_a_program_that_never_started_ends_its_starter(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("weighbridge.topologies.lab.program.STARTING_S", 0.1)
        program = LabProgram(["sleep", "60"], pid_file=tmp_path / "none", pids=lambda: ())
        program.kill()
        program.communicate()
    assert program.returncode == -signal.SIGKILL


def test_terminating_reaches_the_program_and_not_its_starter(tmp_path: Path) -> None:
    # A shell that starts the program and reports its end replaces runc.
    script = (
        "sh -c \"trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done\" & echo $! > "
        '"$0"; wait $!; exit $?'
    )
    program = LabProgram(
        ["sh", "-c", script, str(tmp_path / "pid")], pid_file=tmp_path / "pid", pids=everything
    )
    assert program.stdout is not None
    assert program.stdout.readline() == b"ready\n"
    program.terminate()
    program.communicate(timeout=30)
    assert program.returncode == 7
    program.forget()
    assert not (tmp_path / "pid").exists()


# runc 1.3 whose program ended before it listened for that.
DEAF = """
import os, signal, sys
print(sys.stdin.read(), flush=True)
signal.signal(signal.SIGCHLD, lambda *_: os._exit(7))
while True:
    signal.pause()
"""


def deaf(folder: Path) -> LabProgram:
    (folder / "pid").write_text("1")
    return LabProgram([sys.executable, "-c", DEAF], pid_file=folder / "pid", pids=everything)


def test_the_end_of_a_program_that_runc_missed_is_seen(tmp_path: Path) -> None:
    with deaf(tmp_path) as program:
        assert program.communicate(b"data", timeout=30)[0] == b"data\n"
        assert program.returncode == 7
    for way in ("wait", "poll"):
        with deaf(tmp_path) as program:
            assert program.stdin is not None
            assert program.stdout is not None
            program.stdin.close()
            program.stdout.readline()
            if way == "wait":
                assert program.wait(30) == 7
            end_s = time.monotonic() + 30
            while program.poll() is None and time.monotonic() < end_s:
                pass
            assert program.returncode == 7


def test_a_program_that_goes_on_is_waited_for_no_longer_than_asked(tmp_path: Path) -> None:
    (tmp_path / "pid").write_text("1")
    line = ["sleep", "60"]
    with LabProgram(line, pid_file=tmp_path / "pid", pids=lambda: ()) as program:
        for waiting in (program.wait, lambda s: program.communicate(timeout=s)):
            with pytest.raises(subprocess.TimeoutExpired):
                waiting(1.5)
        os.kill(program.pid, signal.SIGKILL)
        assert program.wait(10) == -signal.SIGKILL


def host(deployment: Path, name: str) -> Path:
    folder = deployment / "bundles" / name
    folder.mkdir(parents=True)
    return folder


def test_a_daemon_is_alive_as_long_as_its_first_process(tmp_path: Path) -> None:
    running = subprocess.Popen(["sleep", "60"])
    now = LabProcess.of(running.pid)
    assert now is not None
    later = LabProcess(
        now.pid, now.parent, now.session, now.started - 1
    )  # another one had the number
    keep_daemon(
        host(tmp_path, "gateway-1"),
        "gateway-1",
        {"radosgw": now, "haproxy": later, "apache2": None},
    )
    try:
        assert [(one.host, one.service, one.alive) for one in daemons(tmp_path)] == [
            ("gateway-1", "radosgw", True),
            ("gateway-1", "haproxy", False),
            ("gateway-1", "apache2", False),
        ]
    finally:
        running.kill()
        running.wait()
    assert not any(one.alive for one in daemons(tmp_path))


def test_the_last_record_counts_and_hosts_are_separate(tmp_path: Path) -> None:
    here, there = host(tmp_path, "store-1"), host(tmp_path, "store-2")
    keep_daemon(here, "store-1", {"osd.0": None, "mon": None})
    keep_daemon(there, "store-2", {"osd.1": None})
    keep_daemon(here, "store-1", {"osd.0": None})
    assert [(one.host, one.service) for one in daemons(tmp_path)] == [
        ("store-1", "osd.0"),
        ("store-2", "osd.1"),
    ]
    assert daemons(tmp_path / "none") == ()


def test_an_invalid_file_is_named(tmp_path: Path) -> None:
    folder = host(tmp_path, "store-1")
    (folder / FILE).write_text("{")
    with pytest.raises(TargetError, match=rf"{folder}/{FILE} is not a valid list"):
        daemons(tmp_path)
