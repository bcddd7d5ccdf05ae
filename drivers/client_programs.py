"""Programs on other clients that a driver cannot do without: started, watched, and ended on every
path.
"""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from weighbridge.common.errors import DriverError
from weighbridge.common.host import Command, Host
from weighbridge.common.piped import Piped
from weighbridge.drivers.process import how_it_ended, last_lines

KILLED_S: Final = 10.0
"""How long killed ones are waited for, all together: their host may be gone."""


@dataclass(frozen=True)
class _Program:
    called: str
    host: Host
    program: Piped
    log: Path
    told: threading.Thread


class ClientPrograms:
    """Such programs, each of which ends when its stdin closes; `end_s` is how long they may take
    for it, all together.

    A context manager whose end ends all of them. `check` and `close` may be called at any time.
    """

    def __init__(self, end_s: float) -> None:
        self._end_s = end_s
        self._programs: list[_Program] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def add(self, host: Host, called: str, command: Command, log: Path, told: bytes = b"") -> Piped:
        """Start one on a host and hand it `told` through its stdin, which stays open.

        What it says to people goes to `log`.
        """
        program = host.spawn(command.argv, stderr=log, env=command.env)
        if program.stdin is None:
            raise DriverError(f"{host.name}: {called} has no stdin")
        # One that does not read must keep nobody waiting.
        telling = threading.Thread(
            target=_tell, args=(program.stdin, told), name=f"tell-{host.name}", daemon=True
        )
        self._programs.append(_Program(called, host, program, log, telling))
        telling.start()
        return program

    def check(self) -> None:
        """Raise DriverError when one has ended, or its host is gone."""
        for one in self._programs:
            code = one.program.poll()
            if code is None:
                continue
            how = how_it_ended(code) if one.host.stands() else "has ended: the host is gone"
            raise DriverError(
                "\n".join([f"{one.host.name}: {one.called} {how}", *last_lines(one.log)])
            )

    def close(self) -> None:
        """End all: by the end of their stdin, and those that are then still there by a signal to
        their own process.
        """
        for one in self._programs:
            if one.told.is_alive():
                one.program.kill()  # it does not even read what it is told
                one.told.join(KILLED_S)
            if one.program.stdin is not None and not one.told.is_alive():
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


def _tell(stdin: IO[bytes], line: bytes) -> None:
    # One that has ended is found by who checks, with how it ended.
    with contextlib.suppress(OSError, ValueError):
        stdin.write(line)
        stdin.flush()


def _ended(program: Piped, timeout_s: float) -> bool:
    with contextlib.suppress(subprocess.TimeoutExpired):
        program.wait(max(0.05, timeout_s))
        return True
    return False
