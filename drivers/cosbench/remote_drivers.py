"""COSBench's drivers on all clients but the first, where its controller is: one on each.

The conductor starts them (RemoteDrivers); `python -m weighbridge.drivers.cosbench driver HOME
ADDRESS` is one of them (serve): it prints its URL when it answers, and ends when its stdin closes,
at a signal, or when COSBench has ended.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from weighbridge.common.errors import DriverError, WeighbridgeError
from weighbridge.common.host import Host, PipedProcess
from weighbridge.common.program_lines import NoLine, ProgramLines
from weighbridge.drivers.answering import EXIT_FAILED
from weighbridge.drivers.cosbench.installation import Installation
from weighbridge.drivers.process import ClientPrograms

MODULE: Final = ("weighbridge.drivers.cosbench", "driver")
END_S: Final = 15.0
"""A JVM has 10 s to end by itself."""
START_S: Final = 190.0
"""They give up by themselves after 180 s."""
POLL_S: Final = 0.5

log = logging.getLogger(__name__)


class RemoteDrivers(ClientPrograms):
    """COSBench's drivers on these hosts. Their logs are beside `log`."""

    def __init__(self, hosts: Sequence[Host], log: Path) -> None:
        super().__init__(END_S)
        self._hosts = tuple(hosts)
        self._log = log

    def start(self, home: str) -> tuple[str, ...]:
        """Start all in parallel, from the installation in `home` on each host.

        Returns their URLs once all answer. Raises DriverError.
        """
        started = []
        for host in self._hosts:
            log = self._log.with_name(f"{self._log.stem}-{host.name}{self._log.suffix}")
            command = host.module(*MODULE, home, host.address)
            started.append((host, self.add(host, "COSBench's driver", command, log)))
        deadline_s = time.monotonic() + START_S
        return tuple(self._url(host, program, deadline_s) for host, program in started)

    def _url(self, host: Host, program: PipedProcess, deadline_s: float) -> str:
        try:
            lines = ProgramLines(program)
            return lines.next(deadline_s - time.monotonic(), self.check).decode().strip()
        except NoLine as error:
            self.check()
            raise DriverError(f"{host.name}: COSBench's driver {error} without a URL") from None


def serve(home: str, address: str, stdin: int, stdout: int) -> int:
    """Be one of COSBench's drivers until it is to end. Returns the exit status."""
    over = threading.Event()

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        over.set()
        sys.exit(0 if number == signal.SIGHUP else 128 + number)

    def read() -> None:
        while os.read(stdin, 65536):
            pass
        # Interrupts the main thread whatever it waits for: COSBench may still be starting.
        os.kill(os.getpid(), signal.SIGHUP)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    threading.Thread(target=read, name="stdin", daemon=True).start()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="weighbridge-cosbench-") as folder,
            Installation(
                Path(home),
                address,
                Path(folder) / "cosbench",
                lambda text: log.info("%s", text),
                parts=("driver",),
            ) as one,
        ):
            os.write(stdout, f"{one.driver}\n".encode())
            while not over.wait(POLL_S):
                one.check()
    except WeighbridgeError as error:
        log.error("%s", error)  # noqa: TRY400 - the message alone is wanted
        return EXIT_FAILED
    return 0
