"""Load of a locustfile's user class: Locust decides about users and shows statistics."""

from __future__ import annotations

import logging
import time
from typing import Final, Literal

import gevent
from locust.stats import RequestStats
from pydantic import ValidationError

from weighbridge.common.endpoint import ObjectApi
from weighbridge.common.errors import DriverError, UsageError
from weighbridge.drivers.locust.figures import LocustFigures
from weighbridge.drivers.locust.kind import KIND
from weighbridge.drivers.locust.prepared_objects import PreparedObjects
from weighbridge.drivers.locust.worker_process import Begin, End, WorkerProcess
from weighbridge.drivers.protocol import Prepare, Progress, Setup
from weighbridge.suites import Suite, Workload

NUMBERS: Final = 1_000_000_007
"""Of how many workers a user's number counts, as nobody knows how many there will be. A prime: with
`pick: sequential` each then visits all objects.
"""
MOST_PROCESSES: Final = 1024
FEED_S: Final = 1.0
WINDOW_S: Final = 60.0
"""After so long a window is forgotten and a new one opened, since it keeps each of its seconds."""

log = logging.getLogger(__name__)


class LiveLoad:
    """Makes a workload's load in this process, from its making to `close`.

    `rank` is this process's number among all of Locust's, `repeat` the test's: users of no two draw
    the same requests. Raises DriverError when the target does not let it in.
    """

    def __init__(
        self, stats: RequestStats, setup: Setup, workload: Workload, *, rank: int, repeat: int
    ) -> None:
        self.process = WorkerProcess(setup)
        first = rank % MOST_PROCESSES
        self.process.begin(
            Begin(
                workload=workload,
                workers=NUMBERS,
                repeat=repeat,
                first=first,
                count=len(range(first, NUMBERS, MOST_PROCESSES)),
                apart=MOST_PROCESSES,
            )
        )
        # Each request of an SDK is an event, of which Locust makes the statistics.
        self._figures = None if self.process.sdk else LocustFigures(stats, workload.name)
        if self._figures is not None:
            self.process.open_window()
        self.process.release()
        self._feeding = gevent.spawn(self._feed)

    def close(self, patience_s: float) -> None:
        """End all workers; requests may take so long. Raises DriverError if the engine failed."""
        self._feeding.kill()
        try:
            if self._figures is not None:
                self._figures.add(self.process.close_window())
            self.process.end(End(timeout_s=patience_s))
        finally:
            self.process.close()

    def delete_written(self) -> None:
        """Delete what its workers wrote. What cannot be deleted is still in the buckets."""
        self.process.delete_written()

    def _feed(self) -> None:
        while True:
            gevent.sleep(FEED_S)
            try:
                # Renews a token that was refused, too.
                self.process.progress()
                window = self.process.window_so_far() if self._figures else None
            except (DriverError, RuntimeError) as error:
                log.error("%s", error)  # noqa: TRY400 - no traceback helps users
                return
            if self._figures is None or window is None:
                continue
            self._figures.add(window)
            if window.window_s > WINDOW_S:
                self._figures.forget()
                self.process.open_window()


LOG_S: Final = 5.0
PARALLEL: Final = 8


class MadeObjects:
    """What was made at one target for workloads, to be deleted in the end."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._objects = PreparedObjects(setup)
        self._workloads: dict[str, Workload] = {}

    def prepare(self, workload: Workload) -> None:
        """Make a workload's buckets and objects, unless they exist. Raises DriverError."""
        self._objects.reach()
        self._workloads[workload.name] = workload
        if not self._objects.is_complete(workload):
            count = workload.objects.count if workload.needs_objects else 0
            log.info("%s: making its buckets and %d objects", workload.name, count)
        made = self._objects.prepare(Prepare(workload=workload, parallel=PARALLEL), _Log())
        log.info("%s: %d objects exist after %.1f s", workload.name, made.objects, made.seconds)

    def test_ended(self) -> None:
        """A test may have deleted some of them: the next one writes them again."""
        for workload in self._workloads.values():
            if workload.deletes:
                self._objects.forget(workload)

    def delete(self) -> None:
        """Delete all objects, also what tests wrote, and the buckets. Raises DriverError."""
        while self._workloads:
            name, workload = self._workloads.popitem()
            deleted, failed = self._objects.delete_all(workload, PARALLEL, _Log())
            log.info("%s: %d objects deleted", name, deleted)
            if failed:
                prefix = self.setup.bucket_prefix
                log.warning("%d objects or buckets of %s-%s-* are left", failed, prefix, name)


class _Log:
    """Logs progress every few seconds."""

    def __init__(self) -> None:
        self._logged_s = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        now_s = time.monotonic()
        if now_s - self._logged_s > LOG_S:
            self._logged_s = now_s
            log.info("%s: %d of %d objects", progress.phase, progress.done, progress.total)


def refuse_unfit(workload: Workload, api: ObjectApi, users: Literal["engine", "sdk"]) -> None:
    """Raise UsageError with all reasons why Locust's users cannot replay this workload."""
    faults = list(KIND.unfit(workload, api))
    if workload.rate_per_s is not None:
        faults.append("rate_per_s needs to know how many workers there will be")
    if workload.only_deletes:
        faults.append("it only deletes, and would soon have nothing left to delete")
    try:
        # What SDK users cannot do, suites know.
        Suite(name="of-a-locustfile", about="", api=(api,), workloads=(workload,), users=users)
    except ValidationError as error:
        faults += [fault["msg"].removeprefix("Value error, ") for fault in error.errors()]
    if faults:
        raise UsageError(
            f"Locust's users cannot replay {workload.name}: {'; '.join(faults)}",
            advice="`weighbridge compare` replays workloads step by step.",
        )
