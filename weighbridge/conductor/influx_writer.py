"""Sending a run to an InfluxDB as it is measured, by a thread that never delays or fails the run.

A step that has ended is read from the run folder, made into lines and sent; a cursor in that folder
records what the server has (`results.influx.cursor`). While the server is away, the thread tries
again at growing intervals; when it answers, all that it lacks is sent, in order. What it refuses is
reported once. At the end, what could not be sent is reported with the command to send it: `resume`
continues at the cursor, and every point can be made again from the run folder.

A driver's progress during a step (`weighbridge_live`) is only for watching: it is sent if the
server answers, and dropped if not.
"""

from __future__ import annotations

import shlex
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from pydantic import NonNegativeInt

from weighbridge.common.errors import WeighbridgeError
from weighbridge.common.record import Record
from weighbridge.drivers.protocol import Progress
from weighbridge.results.influx.cursor import REFUSED, Cursor, Part, parts, set_aside
from weighbridge.results.influx.points import RunPoints
from weighbridge.results.influx.server import (
    BATCH,
    DEADLINE_S,
    Away,
    InfluxConnection,
    InfluxServer,
    WriteRefused,
)
from weighbridge.results.record import RunStore, StepKey

FIRST_WAIT_S: Final = 2.0
LONGEST_WAIT_S: Final = 60.0
"""Retries come after 2, 4, 8 ... s, or when the server asks for it, but at least once a minute."""
LIVE_EVERY_S: Final = 5.0
"""Interval between writes of live points: on small machines each write has a cost."""
LIVE_STEP_S: Final = 0.9
"""Drivers report their rates at least twice a second; once is enough."""
CLOSE_S: Final = 15.0
"""How long the end of a run waits for the rest; a third of it if the run was interrupted."""


class Delivery(Record):
    """What became of a run's points: how many were sent and refused; how many steps wait.

    Live rates are not counted. `missed` steps gave no points. `begun`: the server has the run's own
    point. `why` is the last error of the server, or empty.
    """

    server: str
    sent: NonNegativeInt
    begun: bool
    waiting: NonNegativeInt
    refused: NonNegativeInt
    missed: NonNegativeInt
    why: str = ""

    @property
    def complete(self) -> bool:
        """Whether the server has everything."""
        return self.begun and not (self.waiting or self.refused or self.missed)

    def words(self, folder: Path) -> str:
        """The same in words, with the command that sends the rest."""
        sent = f"{self.sent} points sent to {self.server}"
        if self.complete:
            return sent
        rest = []
        if self.waiting:
            rest.append(f"those of {self.waiting} steps wait")
        elif not self.begun:
            rest.append("that of the run waits")
        if self.refused:
            rest.append(f"{self.refused} that it refused are in {folder / REFUSED}")
        if self.missed:
            rest.append(f"those of {self.missed} steps could not be made")
        again = shlex.join(
            ("weighbridge", "export", str(folder), "--to", "influx", "--influx", self.server)
        )
        return (
            f"{sent}; {', '.join(rest)} ({self.why})\nnothing is lost: send the entire run again "
            f"with {again}"
        )


class InfluxWriter:
    """Sends the points of the run in `store` to a server, from entering to leaving.

    For a resumed run, what the server lacks is sent first. No method waits longer than its
    docstring says, and none raises anything.
    """

    def __init__(
        self,
        store: RunStore,
        server: InfluxServer,
        say: Callable[[str], None],
        *,
        deadline_s: float = DEADLINE_S,
        first_wait_s: float = FIRST_WAIT_S,
        close_s: float = CLOSE_S,
    ) -> None:
        self._store = store
        self._points = RunPoints(store)
        self._cursor = Cursor(server=server.option)
        self._server = server
        self._say = say
        self._deadline_s = deadline_s
        self._first_wait_s = first_wait_s
        self._close_s = close_s
        self._woken = threading.Event()
        # A daemon: a server whose answer never ends must not keep this process alive.
        self._thread = threading.Thread(target=self._run, name="influx-writer", daemon=True)
        self._asked = threading.Event()
        self._ending = threading.Event()
        self._close_by = float("inf")
        self._due = 0.0
        self._tries = 0
        self._stopped = False
        self._sent = self._refused = self._missed = 0
        self._why = ""
        self._live: list[str] = []
        self._shown: deque[Sequence[str]] = deque(maxlen=1)
        self._live_at = self._live_sent_at = time.monotonic()

    def __enter__(self) -> Self:
        """Start, and wait until the server was tried once, or for the time of two writes."""
        self._thread.start()
        self._asked.wait(2 * self._deadline_s)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(self._close_s if kind is None else self._close_s / 3)

    # ---- what the run calls

    def step(self) -> None:
        """A step is recorded in the run folder. Does not wait."""
        self._woken.set()

    def live(self, key: StepKey, progress: Progress) -> None:
        """The driver reports its rates; ignored within a second of the last. Does not wait."""
        now = time.monotonic()
        if now - self._live_at < LIVE_STEP_S:
            return
        self._live_at = now
        rates = (progress.operations_per_s, progress.bytes_per_s)
        with suppress(WeighbridgeError):
            self._live += self._points.live(
                key, progress.phase, rates, progress.errors, round(time.time() * 1000)
            )
        if now - self._live_sent_at >= LIVE_EVERY_S:
            self._shown.append(self._live)
            self._live, self._live_sent_at = [], now
            self._woken.set()

    def close(self, within_s: float) -> Delivery:
        """Send what waits, for at most so long, and report what became of all points."""
        self._close_by = time.monotonic() + within_s
        self._ending.set()
        self._woken.set()
        self._thread.join(within_s)
        waiting = 0
        with suppress(WeighbridgeError):
            waiting = self._cursor.waiting(self._store.folder)
        found = Delivery(
            server=self._server.option,
            sent=self._sent,
            begun=self._cursor.run,
            waiting=waiting,
            refused=self._refused,
            missed=self._missed,
            why=self._why,
        )
        self._report(found.words(self._store.folder))
        return found

    # ---- the thread

    def _run(self) -> None:
        try:
            self._cursor = Cursor.of(self._store.folder, self._server.option)
            with self._server.connect(self._deadline_s) as connection:
                self._serve(connection)
        except Exception as error:  # noqa: BLE001 - report any error, and let the run go on
            self._why = str(error) or type(error).__name__
            self._report(f"sending has ended: {self._why}")
        finally:
            self._asked.set()

    def _serve(self, connection: InfluxConnection) -> None:
        self._drain(connection)
        self._asked.set()
        while not self._ending.is_set():
            asks = self._tries and not self._stopped and self._lacking()
            self._woken.wait(max(0.0, self._due - time.monotonic()) if asks else None)
            self._woken.clear()
            if self._shown and not self._stopped and not self._tries:
                self._show(connection, self._shown.popleft())
            if not self._stopped and time.monotonic() >= self._due:
                self._drain(connection)
        # A last try, whatever came before: the reason for a refusal may be gone.
        self._drain(connection)

    def _lacking(self) -> bool:
        return not self._cursor.run or self._cursor.waiting(self._store.folder) > 0

    def _show(self, connection: InfluxConnection, lines: Sequence[str]) -> None:
        try:
            connection.write(lines)
        except Away as error:
            self._away(error)
        except WriteRefused as error:
            self._refuse(error)

    def _drain(self, connection: InfluxConnection) -> None:
        """Send what the server lacks until it has all, is away or refuses, or time is up."""
        for part in parts(self._store, self._points, self._cursor):
            lines = self._lines(part)
            while len(lines) > self._cursor.lines:
                if time.monotonic() >= self._close_by or not self._write(
                    connection, lines[self._cursor.lines :][:BATCH]
                ):
                    return
            self._reach(part.after)

    def _lines(self, part: Part) -> list[str]:
        """The lines of a part; none if they cannot be made, which is reported."""
        try:
            return part.lines
        except (WeighbridgeError, ValueError) as error:
            self._missed += 1
            self._why = str(error)
            self._report(f"{part.name} could not be prepared for sending: {error}")
            return []

    def _write(self, connection: InfluxConnection, lines: list[str]) -> bool:
        """Whether these lines are done: the server has them, or refused them and they are kept."""
        try:
            connection.write(lines)
        except Away as error:
            self._away(error)
            return False
        except WriteRefused as error:
            self._refuse(error)
            if not error.batch:
                return False
            set_aside(self._store.folder, lines, error.message)
            self._refused += len(lines)
        else:
            self._sent += len(lines)
            if self._tries or self._stopped:
                self._report(f"{self._server} answers again")
            self._tries, self._stopped = 0, False
        self._reach(self._cursor.model_copy(update={"lines": self._cursor.lines + len(lines)}))
        return True

    def _reach(self, cursor: Cursor) -> None:
        self._cursor = cursor
        cursor.keep(self._store.folder)

    def _away(self, error: Away) -> None:
        """The server is away: report it once, and try again later."""
        if not self._tries:
            self._report(
                f"{error.message}; points are kept in {self._store.folder} until it answers"
            )
        self._why = error.message
        wait_s = error.after_s
        if wait_s is None:
            wait_s = self._first_wait_s * 2 ** min(self._tries, 20)
        self._tries += 1
        # Do not flood a server that asks for no wait at all.
        self._due = time.monotonic() + max(self._first_wait_s, min(LONGEST_WAIT_S, wait_s))

    def _refuse(self, error: WriteRefused) -> None:
        """The server refuses: report it once, and pause unless only these lines are at fault."""
        if error.batch:
            if not self._refused:
                self._report(
                    f"{error.message}; these lines are kept in {self._store.folder / REFUSED}"
                )
        elif not self._stopped:
            self._report(
                f"{error}\npoints are kept in {self._store.folder} and sent at the end, if it "
                "accepts them then"
            )
        self._stopped = self._stopped or not error.batch
        self._why = error.message

    def _report(self, text: str) -> None:
        """Show a line and record it in the run; if that fails, no points are lost for it."""
        with suppress(WeighbridgeError, OSError):
            self._say(f"influx: {text}")
        with suppress(WeighbridgeError):
            self._store.event("influx", text)
