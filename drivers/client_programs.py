"""Programs on other clients that a driver depends on: started, watched, and ended on every path."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Protocol, Self

from weighbridge.common.errors import DriverError
from weighbridge.common.host import Command
from weighbridge.common.piped_process import PipedProcess
from weighbridge.drivers.process import how_it_ended, last_lines

KILLED_S: Final = 10.0
"""How long to wait for killed programs, in all: their host may be gone."""
HOST_GONE_S: Final = 2.0
"""How long a host may take to be gone after its programs."""
_KILLED: Final = frozenset({-signal.SIGKILL, 128 + signal.SIGKILL})


class ClientHost(Protocol):
    """What these programs need of a host."""

    name: str

    def module(self, name: str, *arguments: str) -> Command:
        """See Host."""

    def spawn(
        self, argv: Sequence[str], *, stderr: Path, env: Mapping[str, str] | None = None
    ) -> PipedProcess:
        """See Host."""

    def is_up(self) -> bool:
        """See Host."""


@dataclass(frozen=True)
class _Program:
    name: str
    host: ClientHost
    program: PipedProcess
    log: Path
    writing: threading.Thread


class ClientPrograms:
    """Programs that end when their stdin closes, within `end_s` in all.

    A context manager that ends them all. `check` and `close` may be called at any time.
    """

    def __init__(self, end_s: float) -> None:
        self._end_s = end_s
        self._programs: list[_Program] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(
        self, host: ClientHost, name: str, command: Command, log: Path, line: bytes = b""
    ) -> PipedProcess:
        """Start a program on a host and write `line` to its stdin, which stays open.

        Its stderr goes to `log`.
        """
        program = host.spawn(command.argv, stderr=log, env=command.env)
        if program.stdin is None:
            raise DriverError(f"{host.name}: {name} has no stdin")
        # In a thread: a program that does not read must keep nobody waiting.
        writing = threading.Thread(
            target=_write, args=(program.stdin, line), name=f"write-{host.name}", daemon=True
        )
        self._programs.append(_Program(name, host, program, log, writing))
        writing.start()
        return program

    def check(self) -> None:
        """Raise DriverError when a program has ended, or its host is gone."""
        for one in self._programs:
            code = one.program.poll()
            if code is None:
                continue
            # A host's first process ends after all others: is this the host's end, or its own?
            deadline_s = time.monotonic() + HOST_GONE_S
            while code in _KILLED and one.host.is_up() and time.monotonic() < deadline_s:
                time.sleep(0.02)
            how = how_it_ended(code) if one.host.is_up() else "has ended: the host is gone"
            raise DriverError(
                "\n".join([f"{one.host.name}: {one.name} {how}", *last_lines(one.log)])
            )

    def close(self) -> None:
        """End all programs: close their stdin, then kill those still running by their pid."""
        for one in self._programs:
            if one.writing.is_alive():
                one.program.kill()  # it does not even read its first line
                one.writing.join(KILLED_S)
            if one.program.stdin is not None and not one.writing.is_alive():
                with contextlib.suppress(OSError, ValueError):
                    one.program.stdin.close()
        deadline_s = time.monotonic() + self._end_s
        left = [
            one for one in self._programs if not _ended(one.program, deadline_s - time.monotonic())
        ]
        for one in left:
            one.program.kill()
        deadline_s = time.monotonic() + KILLED_S
        for one in left:
            _ended(one.program, deadline_s - time.monotonic())
        for one in self._programs:
            if one.program.stdout is not None:
                one.program.stdout.close()


def _write(stdin: IO[bytes], line: bytes) -> None:
    # `check` reports a program that has ended, with how it ended.
    with contextlib.suppress(OSError, ValueError):
        stdin.write(line)
        stdin.flush()


def _ended(program: PipedProcess, timeout_s: float) -> bool:
    with contextlib.suppress(subprocess.TimeoutExpired):
        program.wait(max(0.05, timeout_s))
        return True
    return False
