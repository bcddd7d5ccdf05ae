"""The stations of Locust's driver on all clients but the first: started when its master listens, watched, ended on every path."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from drivers.order import Listening, Setup
from drivers.process import how_it_ended, last_lines
from gateways.host import Host
from ground.errors import DriverError
from ground.piped import Piped

STATION: Final = "station"
"""What the driver's module is told to be one."""
END_S: Final = 3.0
"""How long stations may take to end by themselves when their stdin closes, all together."""
KILLED_S: Final = 10.0
"""How long a killed one is waited for: its host may be gone."""


@dataclass(frozen=True)
class _Station:
    number: int
    host: Host
    program: Piped
    log: Path
    told: threading.Thread


class Stations:
    """The stations of one driver on hosts that are not its own. A context manager whose end ends all of them.

    `hosts` are all clients by the names that `setup` has, the driver's own first, `module` is Locust's driver with its arguments.
    What a station says to people is kept beside `log`, the driver's. `start` raises DriverError, and so does `check` when a station
    has ended or its host is gone. `check` and `close` may be called at any time.
    """

    def __init__(self, hosts: Sequence[Host], module: Sequence[str], setup: Setup, log: Path) -> None:
        self._hosts = tuple(hosts)
        self._module = tuple(module)
        self._setup = setup
        self._log = log
        self._stations: list[_Station] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def start(self, listening: Listening) -> None:
        """Start all of them; whether they find the driver, the driver says."""
        line = self._setup.model_dump_json().encode() + b"\n"
        each = self._setup.processes
        for number in range(each, self._setup.stations):
            host = self._hosts[number // each]
            where = (str(self._setup.listen), str(listening.port), str(number))
            command = host.module(*self._module, STATION, *where)
            log = self._log.with_name(f"{self._log.stem}-{host.name}-{number % each + 1}{self._log.suffix}")
            program = host.spawn(command.argv, stderr=log, env=command.env)
            if program.stdin is None:
                raise DriverError(f"{host.name}: a station has no stdin")
            # Through the pipe, never over the network: it holds the key. A station that does not read must keep nobody waiting.
            telling = threading.Thread(target=_tell, args=(program.stdin, line), name=f"station-{number}", daemon=True)
            self._stations.append(_Station(number, host, program, log, telling))
            telling.start()

    def check(self) -> None:
        """Raise DriverError when one has ended, or its host is gone: without it what the others do is no step."""
        for one in self._stations:
            code = one.program.poll()
            if code is None:
                continue
            how = how_it_ended(code) if one.host.stands() else "has ended: the host is gone"
            what = f"{one.host.name}: station {one.number + 1} of {self._setup.stations} {how}"
            raise DriverError("\n".join([what, *last_lines(one.log)]))

    def close(self) -> None:
        """End all: by the end of their stdin, and those that are then still there by a signal to their own process."""
        for one in self._stations:
            if one.told.is_alive():
                one.program.kill()  # it does not even read what it is told
                one.told.join(KILLED_S)
            if one.program.stdin is not None and not one.told.is_alive():
                with contextlib.suppress(OSError, ValueError):
                    one.program.stdin.close()
        deadline_s = time.monotonic() + END_S
        left = [one for one in self._stations if not _ended(one.program, deadline_s - time.monotonic())]
        for one in left:
            one.program.kill()
        deadline_s = time.monotonic() + KILLED_S
        for one in left:
            _ended(one.program, deadline_s - time.monotonic())
        for one in self._stations:
            if one.program.stdout is not None:
                one.program.stdout.close()


def _tell(stdin: IO[bytes], line: bytes) -> None:
    # A station that has ended is found by who checks, with how it ended.
    with contextlib.suppress(OSError, ValueError):
        stdin.write(line)
        stdin.flush()


def _ended(program: Piped, timeout_s: float) -> bool:
    with contextlib.suppress(subprocess.TimeoutExpired):
        program.wait(max(0.05, timeout_s))
        return True
    return False
