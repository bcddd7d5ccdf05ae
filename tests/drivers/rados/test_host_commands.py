from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.drivers.rados.conftest import StubMachine
from weighbridge.drivers.protocol import DriverFailure
from weighbridge.drivers.rados import host_commands
from weighbridge.drivers.rados.host_commands import CommandOutput, HostCommands, kept_of


def never(seconds: float, ran: Sequence[CommandOutput]) -> bool:
    return False


@pytest.fixture
def commands(machine: StubMachine, tmp_path: Path) -> HostCommands:
    return HostCommands(machine, tmp_path / "log")


def gone(path: Path) -> bool:
    """Whether the process whose pid is in a file has ended, or did before it wrote that."""
    try:
        os.kill(int(path.read_text()), 0)
    except FileNotFoundError:
        return True
    except ProcessLookupError:
        return True
    return False


def test_commands_run_in_parallel_and_their_output_and_cpu_are_reported(
    commands: HostCommands, tmp_path: Path
) -> None:
    # Each waits for the other: one after the other they would never end.
    pair = [str(tmp_path / "a"), str(tmp_path / "b")]
    text = (
        'mkfifo "$1" 2>/dev/null; while ! [ -p "$2" ]; do sleep 0.01; done; echo one; echo '
        "two; echo aside >&2"
    )
    both = [["sh", "-c", text, "sh", *names] for names in (pair, pair[::-1])]
    ran = commands.run(both, never, within_s=30)
    assert [one.text for one in ran] == ["one\ntwo"] * 2
    assert [one.errors for one in ran] == ["aside\n"] * 2
    assert all(one.code == 0 and one.cpu_s > 0 and one.lines[-1][0] <= one.seconds for one in ran)
    assert [kept.name for kept in kept_of(ran)] == ["sh-0.txt", "sh-1.txt"]


def test_one_that_fails_ends_the_others_and_is_named_with_its_output(
    commands: HostCommands, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    long = ["sh", "-c", f"echo $$ >{pid}; exec sleep 600"]
    fails = [
        "sh",
        "-c",
        f"while ! [ -s {pid} ]; do sleep 0.01; done; echo so far; echo no space >&2; exit 5",
    ]
    with pytest.raises(DriverFailure, match=r"gateway-1: 2 of 2 sh ended with 5") as caught:
        commands.run([long, fails], never, within_s=60)
    assert "| no space" in caught.value.message
    assert "| so far" in caught.value.message
    assert [kept.name for kept in caught.value.kept] == ["sh-0.txt", "sh-1.txt"]
    assert gone(pid)


def test_one_that_is_killed_fails_with_its_signal(commands: HostCommands) -> None:
    with pytest.raises(DriverFailure, match="sh was ended by signal 9"):
        commands.run([["sh", "-c", "kill -KILL $$"]], never, within_s=60)


def test_one_that_was_stopped_is_not_a_failure(commands: HostCommands) -> None:
    def two_lines(seconds: float, ran: Sequence[CommandOutput]) -> bool:
        return len(ran[0].lines) >= 2

    (ran,) = commands.run([["sh", "-c", "echo 1; echo 2; exec sleep 600"]], two_lines, within_s=60)
    assert (ran.code, ran.text) == (-2, "1\n2")


def test_commands_can_be_stopped_even_if_their_starter_ignores_sigint(
    commands: HostCommands,
) -> None:
    # As a shell does for programs that it starts with `&`.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        (ran,) = commands.run(
            [["sh", "-c", "echo 1; exec sleep 600"]],
            lambda seconds, ran: bool(ran[0].lines),
            within_s=60,
        )
    finally:
        signal.signal(signal.SIGINT, before)
    assert ran.code == -signal.SIGINT


@pytest.mark.parametrize("may_fail", [False, True])
def test_commands_that_do_not_end_in_time_are_given_up_and_ended(
    commands: HostCommands, tmp_path: Path, may_fail: bool
) -> None:
    pid = tmp_path / "pid"
    endless = ["sh", "-c", f"echo $$ >{pid}; exec sleep 600"]
    with pytest.raises(DriverFailure, match="had not ended after 1 s"):
        _ = (
            commands.ask(endless, within_s=1)
            if may_fail
            else commands.run([endless], never, within_s=1)
        )
    deadline = time.monotonic() + 30
    while not gone(pid):
        assert time.monotonic() < deadline


def test_a_missing_program_is_reported(commands: HostCommands, tmp_path: Path) -> None:
    with pytest.raises(DriverFailure, match="was ended with the program that started it"):
        commands.run([["no-such-program"]], never, within_s=60)
    assert "no-such-program" in (tmp_path / "log").read_text()


def test_a_command_that_is_asked_may_fail_and_its_status_and_output_are_known(
    commands: HostCommands,
) -> None:
    found = commands.ask(["sh", "-c", "echo so far; echo denied >&2; exit 5"], within_s=30)
    assert (found.code, found.text, found.errors) == (5, "so far", "denied\n")


def test_no_file_is_written_on_the_host(
    commands: HostCommands, machine: StubMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def put(*_: object, **__: object) -> None:
        raise AssertionError("a file was put there")

    monkeypatch.setattr(machine, "put", put)
    # Files that are open and deleted count too.
    script = "echo aside >&2; readlink /proc/$PPID/fd/*"
    found = commands.ask(["sh", "-c", script], within_s=30)
    files = [one for one in found.text.splitlines() if one.startswith("/")]
    assert found.errors == "aside\n"
    assert {*files} <= {str(tmp_path / "log"), "/dev/null"}


def test_of_long_errors_the_end_is_kept(commands: HostCommands) -> None:
    found = commands.ask(["sh", "-c", "yes | head -c 1000000 >&2; echo the end >&2"], within_s=30)
    assert len(found.errors) == 4000
    assert found.errors.endswith("y\nthe end\n")


def test_what_a_command_leaves_running_does_not_keep_its_end_back(commands: HostCommands) -> None:
    text = "echo aside >&2; sleep 30 >/dev/null & echo $!"
    began = time.monotonic()
    found = commands.ask(["sh", "-c", text], within_s=20)
    os.kill(int(found.text), signal.SIGKILL)
    assert (found.code, found.errors) == (0, "aside\n")
    assert time.monotonic() - began < 15
    assert found.seconds < 1


def test_errors_that_come_soon_after_the_end_are_kept(commands: HostCommands) -> None:
    text = "(sleep 0.3; echo late >&2) >/dev/null & echo aside >&2"
    assert commands.ask(["sh", "-c", text], within_s=20).errors == "aside\nlate\n"


@pytest.mark.parametrize(
    ("limit", "most", "said"),
    [("MOST_BYTES", 2**20, "more than 1 MiB"), ("MOST_LINES", 1000, "more than 1,000 lines")],
)
def test_endless_output_is_an_error(
    commands: HostCommands, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, said: str
) -> None:
    monkeypatch.setattr(host_commands, limit, most)
    # Its program is stuck in what it prints, and is killed.
    monkeypatch.setattr(host_commands, "END_S", 0.2)
    with pytest.raises(DriverFailure, match=f"yes printed {said}"):
        commands.ask(["yes"], within_s=30)
