"""COSBench's drivers on all clients but the first, where its controller is: one on each, from the
same installation.
"""

from __future__ import annotations

import select
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from weighbridge.common.errors import DriverError
from weighbridge.common.host import Host
from weighbridge.common.piped import Piped
from weighbridge.drivers.client_programs import ClientPrograms

FURTHER: Final = ("weighbridge.drivers.cosbench", "driver")
END_S: Final = 15.0
"""A JVM is given 10 s to end by itself."""
START_S: Final = 190.0
"""They give up by themselves after 180 s."""
LOOK_S: Final = 0.5


class FarDrivers(ClientPrograms):
    """Such drivers on these hosts. What they say to people is kept beside `log`."""

    def __init__(self, hosts: Sequence[Host], log: Path) -> None:
        super().__init__(END_S)
        self._hosts = tuple(hosts)
        self._log = log

    def start(self, home: str) -> tuple[str, ...]:
        """Start all of them side by side, from the installation in `home` on each; returns their
        URLs when all answer.

        Raises DriverError.
        """
        started = []
        for host in self._hosts:
            log = self._log.with_name(f"{self._log.stem}-{host.name}{self._log.suffix}")
            command = host.module(*FURTHER, home, host.address)
            started.append((host, self.add(host, "COSBench's driver", command, log)))
        deadline_s = time.monotonic() + START_S
        return tuple(self._url(host, program, deadline_s) for host, program in started)

    def _url(self, host: Host, program: Piped, deadline_s: float) -> str:
        assert program.stdout is not None  # noqa: S101 - a host's programs have pipes
        while not select.select([program.stdout], [], [], LOOK_S)[0]:
            self.check()
            if time.monotonic() > deadline_s:
                raise DriverError(
                    f"{host.name}: COSBench's driver does not answer after {START_S:g} s"
                )
        url = program.stdout.readline().decode().strip()
        if not url:
            program.wait(END_S)
            self.check()
        return url
