"""Programs inside a host, started by `runc exec` and ended with everything they have started."""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TypeVar

from weighbridge.topologies.on_host import telemetry

T = TypeVar("T")

STARTING_S = 30.0
"""`runc exec` takes 0.02 s, and even on a very busy machine less than this."""
_NUDGE_S = 1.0
"""How often `runc exec` is told to look whether its program has ended. runc 1.3.0 to 1.3.5 waits
for ever if the program ended before it listened for that (opencontainers/runc issue 5208); Ubuntu
24.04 has 1.3.4.
"""


@dataclass(frozen=True)
class LabProcess:
    """A process of this machine, identified by pid and start time (ticks since boot)."""

    pid: int
    parent: int = field(compare=False)
    session: int = field(compare=False)
    """Parent and session change while a service starts; they do not identify the process."""
    started: int

    @classmethod
    def of(cls, pid: int) -> LabProcess | None:
        """The process with this number; None: there is none, or only a zombie."""
        fields = telemetry.stat_of(pid)
        if fields is None:
            return None
        return cls(pid, int(fields[1]), int(fields[3]), int(fields[telemetry.START]))

    @property
    def running(self) -> bool:
        return telemetry.running(self.pid, self.started)


def family(leader: int, among: Sequence[int]) -> tuple[LabProcess, ...]:
    """Of the processes `among`: `leader`, all it started, and all of its sessions, if known."""
    known = [process for pid in among if (process := LabProcess.of(pid)) is not None]
    members = {leader}
    sessions = {leader}
    grown = True
    while grown:
        more = [
            one
            for one in known
            if one.pid not in members and (one.parent in members or one.session in sessions)
        ]
        members |= {one.pid for one in more}
        sessions |= {one.session for one in more}
        grown = bool(more)
    return tuple(one for one in known if one.pid in members)


def send(process: LabProcess, number: int) -> None:
    """Signal this same process, not a later one with its number; one that has ended is no error."""
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(process.pid)
        try:
            if process.running:
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)


def wait_end(process: LabProcess, timeout_s: float) -> bool:
    """Wait for the end of a process; False: it is still running after `timeout_s`."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return True
    try:
        if not process.running:
            return True
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(max(0, timeout_s) * 1000))
    finally:
        os.close(descriptor)


def kill_family(leader: int, pids: Callable[[], Sequence[int]], *, timeout_s: float = 10) -> bool:
    """Kill a program and all it started, of `pids`; False if some are left, as in stuck I/O."""
    deadline = time.monotonic() + timeout_s
    while (members := family(leader, pids())) and time.monotonic() < deadline:
        for process in members:
            send(process, signal.SIGKILL)
        for process in members:
            wait_end(process, deadline - time.monotonic())
    return not members


class LabProgram(subprocess.Popen[bytes]):
    """A program in a host. Signals go to the program, not to runc; killing it kills all it started.

    `runc exec` itself is outside the host: if only that were killed, the program would go on.
    """

    _nudged_s = -math.inf

    def __init__(
        self,
        argv: Sequence[str],
        *,
        pid_file: Path,
        pids: Callable[[], Sequence[int]],
        stderr: int | IO[bytes] = subprocess.PIPE,
    ) -> None:
        """Start `argv`, a `runc exec --pid-file pid_file ...`; `pids` has the host's processes."""
        self._pid_file = pid_file
        self._pids = pids
        # In its own session Ctrl-C in the conductor's terminal does not reach it.
        super().__init__(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
        )

    def communicate(
        self,
        input: bytes | None = None,  # noqa: A002 - as in Popen
        timeout: float | None = None,
    ) -> tuple[Any, Any]:
        # Only the first call may have input: it goes on with what is left of it.
        communicate, data = super().communicate, iter((input,))
        return self._nudging(lambda part_s: communicate(next(data, None), part_s), timeout)

    def wait(self, timeout: float | None = None) -> int:
        return self._nudging(super().wait, timeout)

    def poll(self) -> int | None:
        if super().poll() is None and time.monotonic() >= self._nudged_s + _NUDGE_S:
            self._nudge()
        return self.returncode

    def _nudging(self, wait: Callable[[float], T], timeout_s: float | None) -> T:
        end_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left_s = max(0.0, end_s - time.monotonic())
            try:
                return wait(min(_NUDGE_S, left_s))
            except subprocess.TimeoutExpired:
                if timeout_s is not None and left_s <= _NUDGE_S:
                    raise subprocess.TimeoutExpired(self.args, timeout_s) from None
                self._nudge()

    def _nudge(self) -> None:
        """Let runc look for programs that have ended: it does so whenever it gets SIGCHLD."""
        self._nudged_s = time.monotonic()
        if self.returncode is None:  # so its pid is still its own
            os.kill(self.pid, signal.SIGCHLD)

    def leader(self) -> int | None:
        """The program's pid on this machine; None: runc ended without starting it."""
        deadline = time.monotonic() + STARTING_S
        while time.monotonic() < deadline:
            with contextlib.suppress(FileNotFoundError, ValueError):
                return int(self._pid_file.read_text())
            if super().poll() is not None:
                return None
            time.sleep(0.002)
        return None

    def send_signal(self, sig: int) -> None:
        """Signal the program; for KILL, with all it started."""
        if self.poll() is not None:
            return
        leader = self.leader()
        if leader is None or (sig == signal.SIGKILL and not kill_family(leader, self._pids)):
            super().send_signal(signal.SIGKILL)
        elif sig == signal.SIGKILL:
            # runc ends by itself once the pipes are closed, unless an unrelated process holds them.
            with contextlib.suppress(subprocess.TimeoutExpired):
                super().wait(0.5)
                return
            super().send_signal(signal.SIGKILL)
        elif (process := LabProcess.of(leader)) is not None:
            send(process, sig)

    def forget(self) -> None:
        self._pid_file.unlink(missing_ok=True)
