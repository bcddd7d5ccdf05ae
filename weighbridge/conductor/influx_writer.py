"""Sending a run to an InfluxDB while it goes on, by a thread beside it that never makes it wait and never makes it fail.

A step that has ended is made into lines, put into the spool of the run folder, and sent from there. While the server is away the
spool grows and the server is asked again, later each time; when it answers, all of it goes out in order. What it refuses is said
once. At the end what could not be sent is said, with where it lies and what sends it: nothing of it is lost, since every point
can be made again from the run folder.

What a driver tells while a step runs (`weighbridge_live`) is for watching alone: it is sent when the server answers, and dropped
when it does not.
"""

from __future__ import annotations

import queue
import shlex
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from pydantic import NonNegativeInt

from weighbridge.common.errors import WeighbridgeError
from weighbridge.common.record import Record
from weighbridge.drivers.order import Progress
from weighbridge.results.influx.points import RunPoints, last_results, results_at
from weighbridge.results.influx.server import DEADLINE_S, Away, InfluxConnection, InfluxServer, WriteRefused
from weighbridge.results.influx.spool import REFUSED, SPOOL, Spool
from weighbridge.results.record.step import StepKey, StepResult
from weighbridge.results.record.store import RunStore

FIRST_WAIT_S: Final = 2.0
LONGEST_WAIT_S: Final = 60.0
"""A server that is away is asked again after 2, 4, 8 ... s, or when it says so, but at least once a minute."""
LIVE_EVERY_S: Final = 5.0
"""Live points of so long go out together: on small machines each write is felt."""
LIVE_STEP_S: Final = 0.9
"""Drivers tell their rates at least twice a second; one a second is enough."""
CLOSE_S: Final = 15.0
"""How long the end of a run waits for what is still to be sent; a third of it when the run was interrupted."""
QUEUED: Final = 256
"""Steps that may wait for the thread. It is behind by so many only where the server answers byte by byte."""


class Delivery(Record):
    """What became of a run's points: how many the server has, how many wait in the spool, how many it refused.

    Rates that are for watching alone are not counted. `missed` steps never came as far as the spool. `why` is the last thing that
    the server said or did to that; empty if nothing.
    """

    server: str
    sent: NonNegativeInt
    waiting: NonNegativeInt
    refused: NonNegativeInt
    missed: NonNegativeInt
    why: str = ""

    @property
    def whole(self) -> bool:
        """Whether the server has everything."""
        return not (self.waiting or self.refused or self.missed)

    def words(self, folder: Path) -> str:
        """The same in words, with what sends the rest."""
        said = f"{self.sent} points sent to {self.server}"
        if self.whole:
            return said
        rest = [f"{self.waiting} wait in {folder / SPOOL}"] if self.waiting else []
        rest += [f"{self.refused} that it refused are in {folder / REFUSED}"] if self.refused else []
        rest += [f"those of {self.missed} steps were not made ready"] if self.missed else []
        again = shlex.join(("weighbridge", "export", str(folder), "--to", "influx", "--influx", self.server))
        return f"{said}; {', '.join(rest)} ({self.why})\nnothing is lost: send the whole run again with {again}"


class InfluxWriter:
    """Sends the points of the run in `store` to a server, from entering to leaving. `say` shows a line to who watches.

    Where the run is gone on with, what it has measured before is sent again. None of its methods waits for longer than its
    docstring says, and none raises anything but entering, where the steps that are there cannot be read.
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
        self._before: frozenset[int] = frozenset()
        self._server = server
        self._say = say
        self._deadline_s = deadline_s
        self._first_wait_s = first_wait_s
        self._close_s = close_s
        self._orders: queue.Queue[StepResult | tuple[str, ...] | None] = queue.Queue(QUEUED)
        # A daemon: a server that never comes to an end with its answer must not keep this process alive.
        self._thread = threading.Thread(target=self._run, name="influx-writer", daemon=True)
        self._asked = threading.Event()
        self._ending = threading.Event()
        self._close_by = float("inf")
        self._due = 0.0
        self._tries = 0
        self._stopped = False
        self._sent = self._waiting = self._refused = self._missed = 0
        self._why = ""
        self._live: list[str] = []
        self._live_at = self._live_sent_at = time.monotonic()

    def __enter__(self) -> Self:
        """Begin, and wait until the server has been asked once, or for as long as two writes may take."""
        self._before = last_results(self._store)
        self._thread.start()
        self._asked.wait(2 * self._deadline_s)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close(self._close_s if kind is None else self._close_s / 3)

    # ---- what the run calls

    def step(self, result: StepResult) -> None:
        """A step has been written down. Waits for nothing."""
        try:
            self._orders.put_nowait(result)
        except queue.Full:
            self._missed += 1

    def live(self, key: StepKey, progress: Progress) -> None:
        """The driver has told its rates. Waits for nothing; what comes within a second of the last is passed over."""
        now = time.monotonic()
        if now - self._live_at < LIVE_STEP_S:
            return
        self._live_at = now
        rates = (progress.operations_per_s, progress.bytes_per_s)
        with suppress(WeighbridgeError):
            self._live += self._points.live(key, progress.phase, rates, progress.errors, round(time.time() * 1000))
        if now - self._live_sent_at >= LIVE_EVERY_S:
            lines, self._live, self._live_sent_at = tuple(self._live), [], now
            if self._orders.empty():
                self._orders.put_nowait(lines)

    def close(self, within_s: float) -> Delivery:
        """Send what waits, for at most so long, and say and note what became of all points."""
        self._close_by = time.monotonic() + within_s
        self._ending.set()
        with suppress(queue.Full):  # then there is nothing to wake it from
            self._orders.put_nowait(None)
        self._thread.join(within_s)
        with self._orders.mutex:
            behind = sum(isinstance(one, StepResult) for one in self._orders.queue)
        found = Delivery(
            server=self._server.option,
            sent=self._sent,
            waiting=self._waiting,
            refused=self._refused,
            missed=self._missed + behind,
            why=self._why,
        )
        self._tell(found.words(self._store.folder))
        return found

    # ---- the thread

    def _run(self) -> None:
        try:
            with Spool(self._store.folder) as spool, self._server.connect(self._deadline_s) as connection:
                self._serve(spool, connection)
        except Exception as error:  # noqa: BLE001 - whatever it is: it is told, and the measurement goes on
            self._why = str(error) or type(error).__name__
            self._tell(f"sending has ended: {self._why}")
        finally:
            self._asked.set()

    def _serve(self, spool: Spool, connection: InfluxConnection) -> None:
        if self._before:
            # A run that is gone on with: all of it goes out again, for what a kill kept from the spool is known to nobody.
            spool.drop()
        self._keep(spool, "the run", self._points.run)
        for step in results_at(self._store, self._before):
            self._keep(spool, str(step.key), partial(self._points.step, step))
        self._drain(spool, connection)
        self._asked.set()
        while not (self._ending.is_set() and self._orders.empty()):
            order = self._next(spool)
            if isinstance(order, StepResult):
                self._keep(spool, str(order.key), partial(self._points.step, order))
            elif order is not None and not self._stopped and not self._tries:
                self._show(connection, order)
            if not self._stopped and time.monotonic() >= self._due:
                self._drain(spool, connection)
        # A last try, whatever came before: what was refused may have been mended.
        self._drain(spool, connection)

    def _next(self, spool: Spool) -> StepResult | tuple[str, ...] | None:
        """The next order; None when it is time to ask the server again, or to end."""
        asks = spool.waiting and not self._stopped
        try:
            return self._orders.get(timeout=max(0.0, self._due - time.monotonic()) if asks else None)
        except queue.Empty:
            return None

    def _keep(self, spool: Spool, what: str, lines: Callable[[], Iterable[str]]) -> None:
        try:
            spool.append(tuple(lines()))
        except (WeighbridgeError, ValueError) as error:
            self._missed += 1
            self._why = str(error)
            self._tell(f"{what} could not be made ready for sending: {error}")
        self._waiting = spool.waiting

    def _show(self, connection: InfluxConnection, lines: Sequence[str]) -> None:
        try:
            connection.write(lines)
        except Away as error:
            self._away(error)
        except WriteRefused as error:
            self._refuse(error)

    def _drain(self, spool: Spool, connection: InfluxConnection) -> None:
        """Send what waits until all of it is sent, the server is away or refuses, or the time to end has come."""
        while spool.waiting and time.monotonic() < self._close_by:
            lines = spool.head()
            try:
                connection.write(lines)
            except Away as error:
                self._away(error)
                break
            except WriteRefused as error:
                self._refuse(error)
                if not error.batch:
                    break
                spool.set_aside(lines, error.message)
                self._refused += len(lines)
            else:
                spool.sent(len(lines))
                self._sent += len(lines)
                if self._tries or self._stopped:
                    self._tell(f"{self._server} answers again{f'; {spool.waiting} points are to be sent' if spool.waiting else ''}")
                self._tries, self._stopped = 0, False
            self._waiting = spool.waiting

    def _away(self, error: Away) -> None:
        """The server is away: say so once, and ask again later."""
        if not self._tries:
            self._tell(f"{error.message}; points are kept in {self._store.folder / SPOOL} until it answers")
        self._why = error.message
        wait_s = error.after_s if error.after_s is not None else self._first_wait_s * 2 ** min(self._tries, 20)
        self._tries += 1
        # A server that asks for no time at all is not asked as fast as a program can.
        self._due = time.monotonic() + max(self._first_wait_s, min(LONGEST_WAIT_S, wait_s))

    def _refuse(self, error: WriteRefused) -> None:
        """The server refuses: say why once; unless it is about these lines alone, nothing is sent before the end."""
        if error.batch:
            if not self._refused:
                self._tell(f"{error.message}; these lines are kept in {self._store.folder / REFUSED}")
        elif not self._stopped:
            self._tell(f"{error}\npoints are kept in {self._store.folder / SPOOL} and sent at the end, if it takes them then")
        self._stopped = self._stopped or not error.batch
        self._why = error.message

    def _tell(self, text: str) -> None:
        """Show a line and note it in the run. That neither can be done is no reason to lose points."""
        with suppress(WeighbridgeError, OSError):
            self._say(f"influx: {text}")
        with suppress(WeighbridgeError):
            self._store.event("influx", text)
