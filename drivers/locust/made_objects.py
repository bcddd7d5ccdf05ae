"""The buckets and objects that users of a locustfile work on."""

from __future__ import annotations

import logging
import time
from typing import Final

from weighbridge.drivers.locust.prepared_objects import PreparedObjects
from weighbridge.drivers.protocol import Prepare, Progress, Setup
from weighbridge.suites import Workload

LOG_S: Final = 5.0
PARALLEL: Final = 8

log = logging.getLogger(__name__)


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
