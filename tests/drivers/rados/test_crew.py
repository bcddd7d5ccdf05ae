from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.drivers.rados.conftest import StubMachine
from weighbridge.drivers.driver import GaveUp
from weighbridge.drivers.rados.host_commands import CommandOutput, HostCommands, kept_of


def never(seconds: float, ran: Sequence[CommandOutput]) -> bool:
    return False


@pytest.fixture
def crew(machine: StubMachine, tmp_path: Path) -> HostCommands:
    return HostCommands(machine, tmp_path / "log")


def gone(path: Path) -> bool:
    """Whether the process whose number is in a file is gone."""
    try:
        os.kill(int(path.read_text()), 0)
    except ProcessLookupError:
        return True
    return False


def test_commands_run_at_once_and_all_that_they_print_is_told_with_their_cpu(
    crew: HostCommands, tmp_path: Path
) -> None:
    # Each waits for the other: one after the other they would never end.
    pair = [tmp_path / "a", tmp_path / "b"]
    text = (
        'mkfifo "$1" 2>/dev/null; while ! [ -p "$2" ]; do sleep 0.01; done; echo one; echo '
        "two; echo aside >&2"
    )
    ran = crew.run(
        [
            ["sh", "-c", text, "sh", *order]
            for order in (list(map(str, pair)), list(map(str, pair[::-1])))
        ],
        never,
        within_s=30,
    )
    assert [one.text for one in ran] == ["one\ntwo"] * 2
    assert [one.errors for one in ran] == ["aside\n"] * 2
    assert all(one.code == 0 and one.cpu_s > 0 and one.lines[-1][0] <= one.seconds for one in ran)
    assert [kept.name for kept in kept_of(ran)] == ["sh-0.txt", "sh-1.txt"]


def test_one_that_fails_ends_the_others_and_is_named_with_what_it_printed(
    crew: HostCommands, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    long = ["sh", "-c", f"echo $$ >{pid}; exec sleep 600"]
    fails = [
        "sh",
        "-c",
        f"while ! [ -s {pid} ]; do sleep 0.01; done; echo so far; echo no space >&2; exit 5",
    ]
    with pytest.raises(GaveUp, match=r"gateway-1: 2 of 2 sh ended with 5") as caught:
        crew.run([long, fails], never, within_s=60)
    assert "| no space" in caught.value.message
    assert "| so far" in caught.value.message
    assert [kept.name for kept in caught.value.kept] == ["sh-0.txt", "sh-1.txt"]
    assert gone(pid)


def test_one_that_is_killed_fails_and_is_told_by_its_signal(crew: HostCommands) -> None:
    with pytest.raises(GaveUp, match="sh was ended by signal 9"):
        crew.run([["sh", "-c", "kill -KILL $$"]], never, within_s=60)


def test_one_that_was_told_to_stop_is_no_failure(crew: HostCommands) -> None:
    def heard_twice(seconds: float, ran: Sequence[CommandOutput]) -> bool:
        return len(ran[0].lines) >= 2

    (ran,) = crew.run([["sh", "-c", "echo 1; echo 2; exec sleep 600"]], heard_twice, within_s=60)
    assert (ran.code, ran.text) == (-2, "1\n2")


def test_one_is_stopped_also_where_the_one_who_started_all_ignores_interrupts(
    crew: HostCommands,
) -> None:
    before = signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # as a shell does for what it starts with `&`
    try:
        (ran,) = crew.run(
            [["sh", "-c", "echo 1; exec sleep 600"]],
            lambda seconds, ran: bool(ran[0].lines),
            within_s=60,
        )
    finally:
        signal.signal(signal.SIGINT, before)
    assert ran.code == -signal.SIGINT


def test_what_does_not_end_in_time_is_given_up_and_ended(
    crew: HostCommands, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    with pytest.raises(GaveUp, match="had not ended after 1 s"):
        crew.run([["sh", "-c", f"echo $$ >{pid}; exec sleep 600"]], never, within_s=1)
    deadline = time.monotonic() + 30
    while not gone(pid):
        assert time.monotonic() < deadline


def test_a_program_that_is_not_there_is_told(crew: HostCommands, tmp_path: Path) -> None:
    with pytest.raises(GaveUp, match="was ended with the program that started it"):
        crew.run([["no-such-program"]], never, within_s=60)
    assert "no-such-program" in (tmp_path / "log").read_text()
