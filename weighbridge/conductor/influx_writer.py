"""Sending a run to an InfluxDB as it is measured, by threads that never delay or fail the run.

When a step has ended, a thread makes its lines from the run folder, and influxdb-client writes them
in batches, each of which it tries again for two minutes while the server is away. At the end, what
was not written is reported with the command to send it: every point can be made again from the run
folder.

A driver's progress during a step (`weighbridge_live`) is only for watching: it is dropped while the
server is away.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, Self

from weighbridge.common.errors import WeighbridgeError
from weighbridge.drivers.protocol import Progress
from weighbridge.results.run import RunStore, StepKey, StepResult
from weighbridge.results.show.influx import (
    DEADLINE_S,
    RETRY_S,
    InfluxConnection,
    InfluxServer,
    RunPoints,
)

LIVE_STEP_S: Final = 0.9
"""Drivers report their rates at least twice a second; once is enough."""
CLOSE_S: Final = 15.0
"""How long the end of a run waits for the rest; a third of it if the run was interrupted."""


class InfluxWriter:
    """Sends a run's points to a server, of a resumed run those of its steps first. Only `close`
    waits, and nothing raises.
    """

    def __init__(
        self,
        store: RunStore,
        server: InfluxServer,
        say: Callable[[str], None],
        *,
        deadline_s: float = DEADLINE_S,
        retry_s: float = RETRY_S,
        close_s: float = CLOSE_S,
    ) -> None:
        self._store = store
        self._points = RunPoints(store)
        self._server = server
        self._say = say
        self._close_s = close_s
        self._connection = InfluxConnection(
            server, self._report, deadline_s=deadline_s, retry_s=retry_s
        )
        self._making = ThreadPoolExecutor(1, "influx-writer")
        self._missed = 0
        self._live_at = time.monotonic()

    def __enter__(self) -> Self:
        """Start with what the run folder has."""
        self._making.submit(self._send, "the run", self._points.run)
        with suppress(WeighbridgeError):
            for step in self._store.latest().values():
                self.step(step)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(self._close_s if kind is None else self._close_s / 3)

    def step(self, result: StepResult) -> None:
        """A step is recorded in the run folder. Does not wait."""
        self._making.submit(self._send, str(result.key), lambda: self._points.step(result))

    def live(self, key: StepKey, progress: Progress) -> None:
        """The driver reports its rates; ignored within a second of the last. Does not wait."""
        now = time.monotonic()
        if now - self._live_at < LIVE_STEP_S or self._connection.away:
            return
        self._live_at = now
        rates = (progress.operations_per_s, progress.bytes_per_s)
        at_ms = round(time.time() * 1000)
        with suppress(WeighbridgeError):
            self._connection.write(
                self._points.live(key, progress.phase, rates, progress.errors, at_ms)
            )

    def close(self, within_s: float) -> None:
        """Send what waits, for at most so long, and report what became of all points."""
        self._making.shutdown()
        self._connection.close(within_s)
        sent = f"{self._connection.sent} points sent to {self._server.option}"
        rest = []
        if unsent := self._connection.given - self._connection.sent:
            error = self._connection.error
            why = "no answer in time" if error is None else error.message
            rest.append(f"{unsent} were not written ({why})")
        if self._missed:
            rest.append(f"those of {self._missed} steps could not be made")
        if rest:
            to = ("--to", "influx", "--influx", self._server.option)
            again = shlex.join(("weighbridge", "export", str(self._store.folder), *to))
            sent = (
                f"{sent}; {', '.join(rest)}\nnothing is lost: send the entire run again with "
                f"{again}"
            )
        self._report(sent)

    def _send(self, name: str, make: Callable[[], Iterable[str]]) -> None:
        try:
            self._connection.write(list(make()))
        except Exception as error:  # noqa: BLE001 - report any error, and let the run go on
            self._missed += 1
            self._report(f"{name} could not be prepared for sending: {error}")

    def _report(self, text: str) -> None:
        """Show a line and record it in the run; if that fails, no points are lost for it."""
        with suppress(WeighbridgeError, OSError):
            self._say(f"influx: {text}")
        with suppress(WeighbridgeError):
            self._store.event("influx", text)
