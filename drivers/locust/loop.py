"""The driver's main loop: commands in, events out, and an end that leaves nothing behind."""

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
from weighbridge.drivers.answering import answer_commands, event_writer
from weighbridge.drivers.engine._native import socket_options
from weighbridge.drivers.locust.aging import Aging
from weighbridge.drivers.locust.cpu_allowance import allowance
from weighbridge.drivers.locust.figures import feed, summary
from weighbridge.drivers.locust.load_runner import (
    DistributedLoadRunner,
    LoadRunner,
    LocalLoadRunner,
)
from weighbridge.drivers.locust.prepared_objects import SEND_S, PreparedObjects, same_objects
from weighbridge.drivers.locust.step import StepRun
from weighbridge.drivers.locust.worker_process import (
    DELETE_WRITTEN,
    DELETED,
    Deleted,
    Empty,
    Question,
)
from weighbridge.drivers.protocol import (
    DRIVER_COMMAND,
    OPEN_LINE,
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
"""Exit status of a program that a signal ended: this plus its number, as in shells."""

DELETE_S = 24 * 3600.0
"""Limit for deleting as a whole; each request has its own timeout."""

log = logging.getLogger(__name__)


class LoopEnd:
    """A request to end, by a closed stdin or a signal. `code` is the exit status."""

    def __init__(self) -> None:
        self.event = gevent.event.Event()
        self.code = 0

    def ask(self, code: int) -> None:
        """End with this status, unless an end was requested before."""
        if not self.event.is_set():
            self.code = code
            self.event.set()

    def on_signals(self) -> None:
        """End on SIGTERM and SIGINT."""
        for number in (signal.SIGTERM, signal.SIGINT):
            gevent.signal_handler(number, self.ask, SIGNALLED + number)


def read_lines(descriptor: int, inbox: gevent.queue.Queue, ending: LoopEnd) -> None:
    """Put each line of a descriptor into the inbox; at its end, request the loop's end.

    Reads in a native thread, so that the hub runs on.
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
    """Answers commands from an inbox of lines; `send` sends an event."""

    def __init__(self, inbox: gevent.queue.Queue, send: Callable[[Event], None]) -> None:
        self._inbox = inbox
        self._send = send
        self._setup: Setup | None = None
        self._runner: LoadRunner | None = None
        self._objects: PreparedObjects | None = None
        self._prepared: dict[str, Prepare] = {}
        self._was_overloaded = False

    def run(self) -> int:
        lines = (line for line in iter(self._inbox.get, None) if line != OPEN_LINE)
        return answer_commands(lines, DRIVER_COMMAND, self._answer, self._send, self._secrets)

    def _told_to_open(self) -> bool:
        return not self._inbox.empty() and self._inbox.peek() == OPEN_LINE

    def _secrets(self) -> tuple[str, ...]:
        return () if self._setup is None else self._setup.secrets

    def close(self) -> None:
        if self._runner is not None:
            self._runner.close()
            self._runner = None

    def _answer(self, command: Setup | Prepare | Step | Cleanup | AgeBuckets) -> Event:
        if isinstance(command, Setup):
            return self._set_up(command)
        if self._setup is None or self._runner is None or self._objects is None:
            raise DriverError(f"{command.kind!r} came before 'setup'")
        if self._was_overloaded:
            self._objects.await_answer(self._send)
            self._was_overloaded = False
        if isinstance(command, Prepare):
            return self._prepare(self._objects, command)
        if isinstance(command, Step):
            return self._step(self._setup, self._runner, self._objects, command)
        if isinstance(command, AgeBuckets):
            return Aging(self._setup, command, self._send).run()
        return self._clean(self._runner, self._objects, command)

    def _set_up(self, command: Setup) -> Ready:
        self.close()
        self._setup = command
        self._objects = PreparedObjects(command)
        self._objects.reach()
        self._runner = (
            LocalLoadRunner(command)
            if command.worker_processes == 1
            else DistributedLoadRunner(command, self._send)
        )
        names = ["locust", "gevent"]
        if command.users == "sdk":
            names += ["boto3", "botocore"] if command.target.api == "s3" else ["python-swiftclient"]
        versions = {name: importlib.metadata.version(name) for name in names}
        if command.users == "engine":
            versions["sockets"] = ", ".join(f"{name} {value}" for name, value in socket_options())
        return Ready(versions={"python": platform.python_version(), **versions})

    def _prepare(self, objects: PreparedObjects, command: Prepare) -> Prepared:
        prepared = objects.prepare(command, self._send)
        self._prepared[command.workload.name] = command
        return prepared

    def _step(
        self, setup: Setup, runner: LoadRunner, objects: PreparedObjects, command: Step
    ) -> Measured:
        workload = command.workload
        notes: tuple[str, ...] = ()
        if not objects.is_complete(workload):
            earlier = self._prepared.get(workload.name)
            if earlier is None or not same_objects(earlier.workload, workload):
                raise DriverError(f"workload {workload.name!r} was not prepared")
            objects.prepare(earlier, self._send)
            notes = ("objects deleted by an earlier step were written again before this one",)
        if workload.deletes:
            objects.forget(workload)
        self._was_overloaded = workload.overload is not None
        measurement, window = StepRun(
            setup, runner, allowance(), command, self._send, self._told_to_open
        ).run()
        stats = runner.environment.stats
        feed(stats, workload.name, window.model_copy(update={"tallies": measurement.tallies}))
        log.info(
            "%s, %d workers, %.3f s:\n%s",
            workload.name,
            command.workers,
            window.window_s,
            summary(stats),
        )
        return Measured(
            measurement=measurement.model_copy(update={"notes": (*measurement.notes, *notes)})
        )

    def _clean(self, runner: LoadRunner, objects: PreparedObjects, command: Cleanup) -> Cleaned:
        deleting = gevent.spawn(self._deleted, runner, DELETE_WRITTEN)
        try:
            while not deleting.ready():
                deleting.join(SEND_S)
                so_far = self._deleted(runner, DELETED)
                done, failed = so_far.deleted, so_far.failed
                self._send(Progress(phase="cleanup", done=done, total=done, errors=failed))
            written: Deleted = deleting.get()
        finally:
            deleting.kill()
        deleted, failed = written.deleted, written.failed
        if command.what == "all":
            # What worker groups could not delete is still in the buckets, which must be emptied.
            more, left = objects.delete_all(command.workload, self._parallel(command), self._send)
            failed = failed + left if objects.lists_nothing else left
        elif (failed or command.workload.versions) and not objects.lists_nothing:
            more, failed = objects.delete_strays(command.workload, self._send)
        else:
            more = 0
        return Cleaned(deleted=deleted + more, failed=failed)

    @staticmethod
    def _deleted(runner: LoadRunner, question: Question[Empty, Deleted]) -> Deleted:
        answers = runner.ask(question, Empty(), DELETE_S)
        return Deleted(
            deleted=sum(one.deleted for one in answers), failed=sum(one.failed for one in answers)
        )

    def _parallel(self, command: Cleanup) -> int:
        earlier = self._prepared.get(command.workload.name)
        return earlier.parallel if earlier else 8


def drive(stdin: int, stdout: int) -> int:
    """Be the driver: commands from one descriptor, events to the other. Returns the exit status."""
    inbox = gevent.queue.Queue()
    ending = LoopEnd()
    ending.on_signals()
    gevent.spawn(read_lines, stdin, inbox, ending)
    loop = LocustLoop(inbox, event_writer(stdout, lambda: ending.ask(0)))
    running = gevent.spawn(loop.run)
    try:
        gevent.wait([running, ending.event], count=1)
        if running.ready():
            return int(running.get())
        return ending.code
    finally:
        running.kill()
        loop.close()
