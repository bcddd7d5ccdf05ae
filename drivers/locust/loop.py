"""The loop of the driver: orders in, events out, one after the other, and an end that leaves
nothing behind.
"""

from __future__ import annotations

import importlib.metadata
import logging
import platform
import signal
from collections.abc import Callable

import gevent
import gevent.event
import gevent.os
import gevent.queue

from weighbridge.common.errors import DriverError
from weighbridge.drivers.answering import answer_orders, saying
from weighbridge.drivers.locust.aging import Aging
from weighbridge.drivers.locust.cpu_allowance import CpuAllowance, allowance
from weighbridge.drivers.locust.figures import feed, summary
from weighbridge.drivers.locust.floor import Floor, ManyStations, OneStation
from weighbridge.drivers.locust.prepared_objects import SAY_S, PreparedObjects
from weighbridge.drivers.locust.station import DELETE_WRITTEN, DELETED, Deleted, Nothing, Question
from weighbridge.drivers.locust.step import StepRun
from weighbridge.drivers.order import (
    ORDER,
    AgeBuckets,
    Cleaned,
    Cleanup,
    Event,
    Measured,
    Prepare,
    Prepared,
    Progress,
    Ready,
    Setup,
    Step,
)

SIGNALLED = 128
"""Exit status of a program ended by a signal: this and its number, as shells have it."""

DELETE_S = 24 * 3600.0
"""Deleting has no deadline but this: each of its requests has one."""

log = logging.getLogger(__name__)


class LoopEnd:
    """Why to end: stdin closed or a signal. `code` is the exit status it asks for."""

    def __init__(self) -> None:
        self.event = gevent.event.Event()
        self.code = 0

    def ask(self, code: int) -> None:
        """End with this status, unless asked before."""
        if not self.event.is_set():
            self.code = code
            self.event.set()

    def on_signals(self) -> None:
        """Be asked by SIGTERM and SIGINT."""
        for number in (signal.SIGTERM, signal.SIGINT):
            gevent.signal_handler(number, self.ask, SIGNALLED + number)


def read_lines(descriptor: int, inbox: gevent.queue.Queue, ending: LoopEnd) -> None:
    """Put each line of a descriptor into the inbox; its end is asked to be the end.

    Reads in a native thread: the hub goes on.
    """
    rest = b""
    while True:
        data = gevent.os.tp_read(descriptor, 65536)
        if not data:
            ending.ask(0)
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            inbox.put(line)


class LocustLoop:
    """Answers orders from an inbox of lines; `say` sends an event."""

    def __init__(self, inbox: gevent.queue.Queue, say: Callable[[Event], None]) -> None:
        self._inbox = inbox
        self._say = say
        self._setup: Setup | None = None
        self._floor: Floor | None = None
        self._stock: PreparedObjects | None = None
        self._allowance: CpuAllowance = allowance()
        self._prepared: dict[str, Prepare] = {}

    def run(self) -> int:
        """Answer orders until Quit (0) or until one cannot be done (3). Returns the exit status."""
        return answer_orders(
            iter(self._inbox.get, None), ORDER, self._answer, self._say, self._secrets
        )

    def _secrets(self) -> tuple[str, ...]:
        """What no text of a library may tell anybody."""
        return () if self._setup is None else self._setup.secrets

    def close(self) -> None:
        """End all users, crews and worker processes."""
        if self._floor is not None:
            self._floor.close()
            self._floor = None

    def _answer(self, order: Setup | Prepare | Step | Cleanup | AgeBuckets) -> Event:
        if isinstance(order, Setup):
            return self._set_up(order)
        if self._setup is None or self._floor is None or self._stock is None:
            raise DriverError(f"{order.kind!r} came before 'setup'")
        if isinstance(order, Prepare):
            return self._prepare(self._stock, order)
        if isinstance(order, Step):
            return self._step(self._setup, self._floor, self._stock, order)
        if isinstance(order, AgeBuckets):
            return Aging(self._setup, self._allowance, order, self._say).run()
        return self._clean(self._floor, self._stock, order)

    def _set_up(self, order: Setup) -> Ready:
        self.close()
        self._setup = order
        self._stock = PreparedObjects(order, self._allowance)
        self._stock.reach()
        self._floor = (
            OneStation(order, self._allowance)
            if order.stations == 1
            else ManyStations(order, self._allowance, self._say)
        )
        names = ["locust", "gevent"]
        if order.users == "sdk":
            names += ["boto3", "botocore"] if order.target.api == "s3" else ["python-swiftclient"]
        return Ready(
            versions={
                "python": platform.python_version(),
                **{name: importlib.metadata.version(name) for name in names},
            }
        )

    def _prepare(self, stock: PreparedObjects, order: Prepare) -> Prepared:
        prepared = stock.prepare(order, self._say)
        self._prepared[order.workload.name] = order
        return prepared

    def _step(self, setup: Setup, floor: Floor, stock: PreparedObjects, order: Step) -> Measured:
        workload = order.workload
        notes: tuple[str, ...] = ()
        if not stock.stands(workload):
            earlier = self._prepared.get(workload.name)
            if earlier is None or earlier.workload != workload:
                raise DriverError(f"workload {workload.name!r} was not prepared")
            stock.prepare(earlier, self._say)
            notes = (
                "objects that an earlier step deleted were written again right before this one",
            )
        if "delete" in workload.operations:
            stock.used_up(workload)
        measurement, window = StepRun(setup, floor, self._allowance, order, self._say).run()
        feed(
            floor.environment.stats,
            workload.name,
            window.model_copy(update={"tallies": measurement.tallies}),
        )
        log.info(
            "%s, %d workers, %.3f s:\n%s",
            workload.name,
            order.workers,
            window.window_s,
            summary(floor.environment.stats),
        )
        return Measured(
            measurement=measurement.model_copy(update={"notes": (*measurement.notes, *notes)})
        )

    def _clean(self, floor: Floor, stock: PreparedObjects, order: Cleanup) -> Cleaned:
        deleting = gevent.spawn(self._deleted, floor, DELETE_WRITTEN)
        try:
            while not deleting.ready():
                deleting.join(SAY_S)
                so_far = self._deleted(floor, DELETED)
                self._say(
                    Progress(
                        phase="cleanup",
                        done=so_far.deleted,
                        total=so_far.deleted,
                        errors=so_far.failed,
                    )
                )
            written: Deleted = deleting.get()
        finally:
            deleting.kill()
        deleted, failed = written.deleted, written.failed
        if order.what == "all":
            # What could not be deleted by those who wrote it is found in the buckets, which must be
            # empty to go.
            more, left = stock.delete_all(order.workload, self._parallel(order), self._say)
            failed = failed + left if stock.lists_nothing else left
        elif failed and not stock.lists_nothing:
            more, failed = stock.delete_strays(order.workload, self._say)
        else:
            more = 0
        return Cleaned(deleted=deleted + more, failed=failed)

    @staticmethod
    def _deleted(floor: Floor, question: Question[Nothing, Deleted]) -> Deleted:
        answers = floor.ask(question, Nothing(), DELETE_S)
        return Deleted(
            deleted=sum(one.deleted for one in answers), failed=sum(one.failed for one in answers)
        )

    def _parallel(self, order: Cleanup) -> int:
        earlier = self._prepared.get(order.workload.name)
        return earlier.parallel if earlier else 8


def drive(stdin: int, stdout: int) -> int:
    """Be the driver: orders from one descriptor, events to the other. Returns the exit status."""
    inbox = gevent.queue.Queue()
    ending = LoopEnd()
    ending.on_signals()
    gevent.spawn(read_lines, stdin, inbox, ending)
    loop = LocustLoop(inbox, saying(stdout, lambda: ending.ask(0)))
    running = gevent.spawn(loop.run)
    try:
        gevent.wait([running, ending.event], count=1)
        if running.ready():
            return int(running.get())
        return ending.code
    finally:
        running.kill()
        loop.close()
