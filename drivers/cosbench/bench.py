"""COSBench set up for one target: prepares, measures and cleans up workloads."""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import secrets
import select
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Final, Self

from weighbridge.common.errors import DriverError
from weighbridge.drivers.cosbench.archive import Archived, Folder, collect, folder_at, kept
from weighbridge.drivers.cosbench.controller import FINAL, Controller, Unanswered, WorkloadState
from weighbridge.drivers.cosbench.measurement import StepContext, measurement_of, outcome, rows
from weighbridge.drivers.cosbench.script import (
    INTERVAL_S,
    PREPARED,
    Script,
    StorageAccess,
    access,
    prepare_script,
    step_script,
    unfit,
)
from weighbridge.drivers.cosbench.site import CosbenchSetup, CosbenchSite
from weighbridge.drivers.locust.account import Account
from weighbridge.drivers.locust.cpu_allowance import allowance
from weighbridge.drivers.protocol import (
    Cleaned,
    Cleanup,
    DriverFailure,
    Measured,
    Prepare,
    Prepared,
    Progress,
    Ready,
    Step,
)
from weighbridge.results.run.step import Load
from weighbridge.suites import Workload

# Requests to stop, by a closed stdin or a signal; all waiting is done here, so that it ends.


SIGNALLED = 128
"""Exit status of a program that a signal ended: this plus its number, as in shells."""


class Stopped(BaseException):
    """A stop was requested: not an error, and nothing that catches errors should catch it."""


class StopRequest:
    """`code` is the requested exit status, or None until a stop is requested."""

    def __init__(self) -> None:
        self.code: int | None = None
        # A pipe: signal handlers can write to it, even those that interrupt the waiting.
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)

    def ask(self, code: int) -> None:
        """Stop with this exit status, unless asked before; from a signal handler or any thread."""
        if self.code is None:
            self.code = code
        with contextlib.suppress(BlockingIOError):
            os.write(self._write_end, b"x")

    @staticmethod
    def on_signals(stop: Callable[[int], None]) -> None:
        """Have SIGTERM and SIGINT call `stop` with their exit status."""

        def handle(number: int, _frame: FrameType | None) -> None:
            stop(SIGNALLED + number)

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, handle)

    def wait(self, seconds: float) -> None:
        """Sleep. Raises Stopped as soon as a stop is requested."""
        if select.select([self._read_end], [], [], seconds)[0]:
            raise Stopped

    def check(self) -> None:
        """Raise Stopped if a stop was requested."""
        self.wait(0)


# A workload's containers at the target: listed, and deleted by direct requests.
#
# COSBench's cleanup and dispose never fail, whatever remains.


PARALLEL: Final = 8
AT_ONCE: Final = 500
PATIENCE_S: Final = 30.0
"""How long listings may show deleted objects: Swift updates them later."""
PAUSE_S: Final = 0.5


class CosbenchContainers:
    """A workload's containers, `{prefix}-{workload}-{number}`, numbered from 1 as by COSBench."""

    def __init__(self, account: Account, prefix: str, stop: StopRequest) -> None:
        self._account = account
        self._prefix = prefix
        self._stop = stop

    def prefix(self, workload: Workload) -> str:
        return f"{self._prefix}-{workload.name}-"

    def names(self, workload: Workload) -> list[str]:
        return [
            f"{self.prefix(workload)}{number}"
            for number in range(1, workload.objects.containers + 1)
        ]

    def make(self, workload: Workload) -> None:
        """Make the containers: COSBench's init over S3 hides what failed. Raises DriverError."""
        self._account.renew()
        for name in self.names(workload):
            self._stop.check()
            self._account.make_bucket(name)

    def left(self, workload: Workload, at_most: int) -> int:
        """The number of prepared objects listed; while more than `at_most`, looks again a while."""
        deadline_s = time.monotonic() + PATIENCE_S
        self._account.renew()
        while True:
            found = sum(
                name.startswith(PREPARED)
                for bucket in self.names(workload)
                for name in self._account.objects(bucket)
            )
            if found <= at_most or time.monotonic() > deadline_s:
                return found
            self._stop.wait(PAUSE_S)

    def delete(
        self, workload: Workload, *, everything: bool, send: Callable[[Progress], None]
    ) -> tuple[int, int]:
        """Delete what was written, or all with the containers; (deleted, failed) objects."""
        self._account.renew()
        deleted = failed = 0
        with ThreadPoolExecutor(PARALLEL) as pool:
            for bucket in self.names(workload):
                names = [
                    name
                    for name in self._account.objects(bucket)
                    if everything or not name.startswith(PREPARED)
                ]
                for start in range(0, len(names), AT_ONCE):
                    self._stop.check()
                    some = names[start : start + AT_ONCE]
                    gone = sum(
                        pool.map(lambda name, bucket=bucket: self._deleted(bucket, name), some)
                    )
                    deleted, failed = deleted + gone, failed + len(some) - gone
                    total = deleted + failed
                    send(Progress(phase="cleanup", done=deleted, total=total, errors=failed))
                if everything:
                    self._delete_container(bucket)
        return deleted, failed

    def _deleted(self, bucket: str, name: str) -> bool:
        try:
            self._account.delete_object(bucket, name)
        except DriverError:
            return False
        return True

    def _delete_container(self, bucket: str) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while not self._account.delete_bucket(bucket):
            if time.monotonic() > deadline_s:
                raise DriverError(
                    f"{self._account.url}: {bucket} is not empty {PATIENCE_S:g} s after its "
                    "objects were deleted",
                    advice="Delete it by hand; the gateway's log may say what remains in it.",
                )
            self._stop.wait(PAUSE_S)


PERIOD_S: Final = 0.4

Meter = Callable[[], float]
"""CPU seconds so far."""


class ProgressReporter:
    """While entered, reports a command's progress; `meter` is read at both ends of the window."""

    def __init__(
        self, send: Callable[[Progress], None], first: Progress, meter: Meter | None = None
    ) -> None:
        self._send = send
        self._progress = first
        self._meter = meter
        self._window: tuple[float, float, float] | None = None
        self._ends: dict[str, tuple[float, float]] = {}
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._report, name="progress", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # Joined, since no event may follow the answer to the command.
        self._over.set()
        self._thread.join()

    def set(self, progress: Progress) -> None:
        with self._lock:
            self._progress = progress

    def stage_began(self, warmup_s: float, runtime_s: float) -> None:
        """A step's stage starts now: report by the clock."""
        began_s = time.monotonic()
        with self._lock:
            self._window = (began_s, warmup_s, runtime_s)

    @property
    def cpu(self) -> tuple[float, float] | None:
        """CPU seconds used in the window, and the seconds between its two readings, or None."""
        if {"began", "ended"} - set(self._ends):
            return None
        (before, began_s), (after, ended_s) = self._ends["began"], self._ends["ended"]
        return after - before, ended_s - began_s

    def _report(self) -> None:
        while True:
            self._send(self._now())
            if self._over.wait(PERIOD_S):
                return

    def _now(self) -> Progress:
        with self._lock:
            window, last = self._window, self._progress
        if window is None:
            return last
        began_s, warmup_s, runtime_s = window
        since_s = time.monotonic() - began_s
        if since_s < warmup_s:
            return Progress(phase="warm-up", done=since_s, total=warmup_s)
        if since_s < warmup_s + runtime_s:
            self._read("began")
            return Progress(phase="measure", done=since_s - warmup_s, total=runtime_s)
        if "began" in self._ends:
            self._read("ended")
        return Progress(phase="drain", done=0, total=0)

    def _read(self, end: str) -> None:
        if self._meter is not None and end not in self._ends:
            self._ends[end] = (self._meter(), time.monotonic())


POLL_S: Final = 0.4
SILENCE_S: Final = 30.0
"""How long a controller may be silent: the workload runs on meanwhile."""
QUEUE_S: Final = 900.0
"""How long to wait for others' workloads: a controller runs one at a time."""
STAGE_S: Final = INTERVAL_S + 15.0
"""Time of a stage beyond its work: it boots, launches, is polled and closed, and a watchdog ends
hung workers after 11 s.
"""
MARGIN_S: Final = 30.0

log = logging.getLogger(__name__)


class Submission:
    """Runs scripts at a controller, one after the other."""

    def __init__(self, controller: Controller, folder: Folder, stop: StopRequest) -> None:
        self._controller = controller
        self._folder = folder
        self._stop = stop

    def run(self, script: Script, work_s: float, began: Callable[[str], None]) -> Archived:
        """Submit a script whose stages work `work_s` in all, follow it, and return its results.

        `began` is called with each new stage. Raises DriverError when it is refused, when it does
        not end in time (it is then cancelled: with a dead COSBench driver it would run for ever),
        or when its archive does not come.
        """
        number = self._controller.submit(script.text)
        log.info("%s is %s", script.name, number)
        try:
            seen = self._follow(
                number, script, work_s + len(script.stages) * STAGE_S + MARGIN_S, began
            )
        except BaseException:
            self._cancel(number)
            raise
        log.info("%s ended as %s", number, seen.state)
        return collect(
            self._folder, number, script.name, seen.submitted, seen.state, self._stop.wait
        )

    def _follow(
        self, number: str, script: Script, patience_s: float, began: Callable[[str], None]
    ) -> WorkloadState:
        submitted_s = heard_s = time.monotonic()
        running_s: float | None = None
        stages: set[str] = set()
        while True:
            try:
                seen = self._look(number)
                heard_s = time.monotonic()
            except Unanswered as error:
                if time.monotonic() - heard_s > SILENCE_S:
                    raise
                log.warning("%s", error.message)
                self._stop.wait(POLL_S)
                continue
            if seen.state in FINAL:
                return seen
            if seen.state != "QUEUING" and running_s is None:
                running_s = heard_s
            if seen.stage is not None and seen.stage not in stages:
                stages.add(seen.stage)
                began(seen.stage)
            if running_s is None and heard_s - submitted_s > QUEUE_S:
                raise DriverError(
                    f"COSBench did not start {number} within {QUEUE_S:g} s: it runs other "
                    "workloads first",
                    advice="Wait until the controller is idle, or use another one.",
                )
            if running_s is not None and heard_s - running_s > patience_s:
                raise DriverError(
                    f"COSBench did not end {number}-{script.name} within {patience_s:.0f} s; it is "
                    f"at stage {seen.stage}",
                    advice="A workload never ends if a COSBench driver died: check that they run: "
                    + self._drivers(),
                )
            self._stop.wait(POLL_S)

    def _look(self, number: str) -> WorkloadState:
        for one in self._controller.index().active:
            if one.id == number:
                return one
        seen = self._controller.workload(number)
        if seen is None:
            raise DriverError(
                f"COSBench's controller no longer knows {number}: it was restarted, and its "
                "workloads are lost",
                advice="Run again when it is stable.",
            )
        return seen

    def _drivers(self) -> str:
        try:
            drivers = self._controller.index().drivers
        except DriverError:
            return "which cannot be checked now"
        return ", ".join(f"{name} at {url}" for name, url in drivers.items()) or "there is none"

    def _cancel(self, number: str) -> None:
        with contextlib.suppress(DriverError):
            self._controller.cancel(number)
            log.info("%s cancelled", number)


SLOWEST_BYTES_PER_S: Final = 1_000_000
SLOWEST_OBJECT_S: Final = 5.0
"""Time for each worker's object when preparing: COSBench's S3 client takes 2 s for a failed one."""

FIRST_ALONE: Final = (
    "COSBench's CPU use is that of the first client; its drivers on other clients count in the "
    "use of their hosts"
)

Send = Callable[[Progress], None]


@dataclass(frozen=True)
class _PreparedWorkload:
    workload: Workload
    prepared: Prepared


class Cosbench:
    """COSBench and its target, for one thread. Methods raise DriverError."""

    def __init__(self, setup: CosbenchSetup, stop: StopRequest, send: Send) -> None:
        self._setup = setup
        self._site = setup.site
        self._send = send
        self._prepared: dict[str, _PreparedWorkload] = {}
        self._number = 0
        # Several drivers may work in a run, and names of workloads must not be reused.
        self._nonce = secrets.token_hex(3)
        self._account = Account(setup.target, setup.request_timeout_s)
        self._containers = CosbenchContainers(self._account, setup.bucket_prefix, stop)
        self._meter: Meter | None = None
        with ExitStack() as stack:
            self._account.authenticate()
            url, archive = self._locate(stack, self._site)
            self._controller = Controller(
                url, self._site.user, self._site.password.get_secret_value()
            )
            folder = folder_at(archive)
            stack.callback(folder.close)
            self._submission = Submission(self._controller, folder, stop)
            self._drivers = self._controller.index().drivers
            if not self._drivers:
                raise DriverError(
                    f"{url}: COSBench's controller has no drivers",
                    advice="List its drivers in conf/controller.conf.",
                )
            access(setup.target, self._account, self._site.auth, setup.request_timeout_s)
            self._stack = stack.pop_all()

    def close(self) -> None:
        self._stack.close()

    def ready(self) -> Ready:
        """Versions; of COSBench its place, since it reports a wrong version of itself."""
        where = "started by us" if self._site.home is not None else f"at {self._controller.url}"
        drivers = ", ".join(f"{name} {url}" for name, url in self._drivers.items())
        return Ready(
            versions={
                "python": platform.python_version(),
                "cosbench": where,
                "cosbench drivers": drivers,
            }
        )

    def prepare(self, command: Prepare) -> Prepared:
        workload = command.workload
        self._check(workload)
        count = workload.objects.count if workload.needs_objects else 0
        earlier = self._prepared.get(workload.name)
        if earlier is not None and earlier.workload == workload:
            return earlier.prepared.model_copy(update={"seconds": 0.0, "kept": ()})
        began_s = time.monotonic()
        reach = self._access()
        containers = self._containers.prefix(workload)
        script = prepare_script(
            self._name(workload, "prepare"), workload, containers, reach, command.parallel
        )
        size = round(count * workload.objects.mean_bytes)
        work_s = size / SLOWEST_BYTES_PER_S + SLOWEST_OBJECT_S * (
            count / command.parallel + workload.objects.containers
        )
        with ProgressReporter(self._send, Progress(phase="prepare", done=0, total=count)):
            archived = self._run(script, reach, work_s, lambda _stage: None)
            files = kept(reach, script, archived)
            fault = self._missing(archived, workload, count)
            if not fault and archived.state != "FINISHED":
                fault = outcome(archived)
            if fault:
                raise DriverFailure(fault, kept=files)
            self._containers.make(workload)
        size = sum(
            row.bytes or 0 for row in rows(archived.summary) if row.operation == "prepare-write"
        )
        prepared = Prepared(
            objects=count, bytes=size, seconds=time.monotonic() - began_s, kept=files
        )
        self._prepared[workload.name] = _PreparedWorkload(workload, prepared)
        return prepared

    def step(self, command: Step) -> Measured:
        """Run a step, and measure it by COSBench's archive."""
        workload = command.workload
        self._check(workload)
        earlier = self._prepared.get(workload.name)
        if earlier is None or earlier.workload != workload:
            raise DriverError(f"workload {workload.name!r} was not prepared")
        if "delete" in workload.operations:
            del self._prepared[workload.name]
        reach = self._access(workload.warmup + workload.runtime)
        name = self._name(workload, f"w{command.workers}")
        containers = self._containers.prefix(workload)
        written = f"written-{self._nonce}-{self._number}-"
        script = step_script(name, workload, containers, reach, command.workers, written)
        opened = datetime.now(UTC)
        first = Progress(phase="warm-up", done=0, total=workload.warmup)
        with ProgressReporter(self._send, first, self._meter) as reporter:

            def began(_stage: str) -> None:
                nonlocal opened
                opened = datetime.now(UTC) + timedelta(seconds=workload.warmup)
                reporter.stage_began(workload.warmup, workload.runtime)

            archived = self._run(script, reach, workload.warmup + workload.runtime, began)
            files = kept(reach, script, archived)
            context = StepContext(
                api=self._setup.api,
                started_at=f"{opened:%Y-%m-%dT%H:%M:%SZ}",
                load=self._load(reporter),
                started_by_us=self._site.home is not None,
                drivers=len(self._drivers),
            )
            try:
                measurement = measurement_of(archived, script.stages[0], command, context)
                for tally in measurement.tallies:
                    if tally.operation == "delete":
                        self._check_deleted(workload, tally.count)
            except DriverError as error:
                raise DriverFailure(
                    reach.redacted(error.message), advice=error.advice, kept=files
                ) from None
        if self._site.drivers:
            notes = (*measurement.notes, FIRST_ALONE)
            measurement = measurement.model_copy(update={"notes": notes})
        return Measured(measurement=measurement, kept=files)

    def cleanup(self, command: Cleanup) -> Cleaned:
        """Delete, not by COSBench: its cleanup reports success whatever it did."""
        everything = command.what == "all"
        if everything:
            self._prepared.pop(command.workload.name, None)
        first = Progress(phase="cleanup", done=0, total=0)
        with ProgressReporter(self._send, first) as reporter:
            deleted, failed = self._containers.delete(
                command.workload, everything=everything, send=reporter.set
            )
        return Cleaned(deleted=deleted, failed=failed)

    def _locate(self, stack: ExitStack, site: CosbenchSite) -> tuple[str, str]:
        if site.controller is not None and site.archive is not None:
            log.warning(
                "%s was not started here: its driver sets its host's clock (date -s) if it can",
                site.controller,
            )
            return site.controller, site.archive
        from weighbridge.drivers.cosbench.installation import Installation  # noqa: PLC0415 - wanted only where one is started

        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="weighbridge-cosbench-"))
        with ProgressReporter(self._send, Progress(phase="prepare", done=0, total=0)):
            running = stack.enter_context(
                Installation(
                    Path(site.home or ""),
                    self._own_address(),
                    Path(folder) / "cosbench",
                    lambda text: log.info("%s", text),
                    others=site.drivers,
                )
            )
        self._meter = running.cpu_s
        return running.controller, site.archive or str(running.archive)

    def _own_address(self) -> str:
        """This host's address towards the target: on the lab's network."""
        try:
            with socket.socket(
                socket.AF_INET6 if ":" in self._account.host else socket.AF_INET, socket.SOCK_DGRAM
            ) as probe:
                probe.connect((self._account.host, self._account.port))  # sends nothing
                return str(probe.getsockname()[0])
        except OSError as error:
            raise DriverError(
                f"{self._account.host}: no route from this host: {error.strerror}"
            ) from None

    def _run(
        self, script: Script, reach: StorageAccess, work_s: float, began: Callable[[str], None]
    ) -> Archived:
        try:
            return self._submission.run(script, work_s, began)
        except DriverError as error:
            raise DriverFailure(
                reach.redacted(error.message), advice=error.advice, kept=kept(reach, script, None)
            ) from None

    def _access(self, lasting_s: float = 0.0) -> StorageAccess:
        """For each workload a new one: a token that expires in the middle would end it."""
        found = access(
            self._setup.target, self._account, self._site.auth, self._setup.request_timeout_s
        )
        left_s = self._account.left_s
        if left_s < lasting_s:
            raise DriverError(
                f"{self._account.url}: its token lasts another {left_s:.0f} s, and COSBench, "
                f"which cannot renew them, needs one for {lasting_s:g} s",
                advice="Shorten the workload, or choose the driver locust, which renews them.",
            )
        return found

    def _name(self, workload: Workload, what: str) -> str:
        self._number += 1
        return f"{self._setup.bucket_prefix}-{workload.name}-{what}-{self._nonce}-{self._number}"

    def _check(self, workload: Workload) -> None:
        faults = unfit(workload, self._setup.api)
        if faults:
            raise DriverError(
                f"{workload.name}: {'; '.join(faults)}",
                advice="Change the workload, or choose another driver.",
            )

    @staticmethod
    def _missing(archived: Archived, workload: Workload, count: int) -> str:
        if not count or archived.state not in ("FINISHED", "FAILED"):
            return ""
        written = sum(
            row.count or 0 for row in rows(archived.summary) if row.operation == "prepare-write"
        )
        if written == count:
            return ""
        return (
            f"COSBench wrote {written} of {count} objects of {workload.name}; {outcome(archived)}"
        )

    def _load(self, reporter: ProgressReporter) -> Load | None:
        if reporter.cpu is None:
            return None
        cpu_s, window_s = reporter.cpu
        return Load(cpu_s=cpu_s, cpu_limit=allowance().cpus, window_s=window_s)

    def _check_deleted(self, workload: Workload, deleted: int) -> None:
        """Raise DriverError unless listings agree: COSBench counts every delete as a success."""
        count = workload.objects.count
        left = self._containers.left(workload, count - deleted)
        if not left:
            raise DriverError(
                f"all {count} objects of {workload.name} were deleted before the end, and "
                "COSBench counts deleting them again",
                advice="Give the workload more objects, or a shorter runtime.",
            )
        if count - left < deleted:
            raise DriverError(
                f"COSBench counted {deleted} deletes of {workload.name}, but only {count - left} "
                "of its objects are gone",
                advice="Deletes failed, which COSBench does not report; the gateway's log may say "
                "why.",
            )
