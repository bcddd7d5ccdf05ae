"""The stations of Locust's driver on all clients but the first: started when its master listens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from weighbridge.common.host import Host
from weighbridge.drivers.client_programs import ClientPrograms
from weighbridge.drivers.order import Joining, Listening, Setup

STATION: Final = "station"
"""What the driver's module is told to be one."""
END_S: Final = 3.0


class FarStations(ClientPrograms):
    """The stations of one driver on hosts that are not its own.

    `hosts` are all clients by the names that `setup` has, the driver's own first, `module` is
    Locust's driver with its arguments. What a station says to people is kept beside `log`, the
    driver's.
    """

    def __init__(
        self, hosts: Sequence[Host], module: Sequence[str], setup: Setup, log: Path
    ) -> None:
        super().__init__(END_S)
        self._hosts = tuple(hosts)
        self._module = tuple(module)
        self._setup = setup
        self._log = log

    def start(self, listening: Listening) -> None:
        """Start all of them; whether they find the driver, the driver says. Raises DriverError."""
        # Through their stdin, never over the network or on a command line: it holds keys.
        line = Joining(setup=self._setup, key=listening.key).model_dump_json().encode() + b"\n"
        each = self._setup.processes
        for number in range(each, self._setup.stations):
            host = self._hosts[number // each]
            command = host.module(
                *self._module, STATION, str(self._setup.listen), str(listening.port), str(number)
            )
            log = self._log.with_name(
                f"{self._log.stem}-{host.name}-{number % each + 1}{self._log.suffix}"
            )
            self.add(host, f"station {number + 1} of {self._setup.stations}", command, log, line)
