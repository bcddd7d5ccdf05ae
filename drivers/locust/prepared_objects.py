"""The stock: the buckets and objects of a workload, made before its steps and taken away after
them.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Sequence

import gevent

from weighbridge.common.errors import DriverError
from weighbridge.drivers.engine._native import object_name, object_size
from weighbridge.drivers.locust.cpu_allowance import CpuAllowance
from weighbridge.drivers.locust.object_servers import account_at
from weighbridge.drivers.locust.worker_group import NativeCrew, WorkerProgress
from weighbridge.drivers.order import Prepare, Prepared, Progress, Setup
from weighbridge.suites import Workload

Say = Callable[[Progress], None]
log = logging.getLogger(__name__)

SAY_S = 0.4


class PreparedObjects:
    """Knows which workloads' objects stand at the target.

    Written by the native engine, whoever makes the load.
    """

    def __init__(self, setup: Setup, allowance: CpuAllowance) -> None:
        self._setup = setup
        self._allowance = allowance
        self._standing: dict[str, Workload] = {}
        self._account = account_at(setup)
        self._copies = 1 if setup.ring is None else len(setup.ring.table)

    def reach(self) -> None:
        """Raise DriverError when the target cannot be reached or does not let this user in."""
        self._account.authenticate()

    @property
    def lists_nothing(self) -> bool:
        """Whether nobody can tell what is there: object servers have no listings, what they were
        given must be remembered.
        """
        return self._setup.api == "object-server"

    def stands(self, workload: Workload) -> bool:
        """Whether all of its objects are there, as far as this driver did."""
        return self._standing.get(workload.name) == workload

    def used_up(self, workload: Workload) -> None:
        """A step may have deleted some of its objects."""
        self._standing.pop(workload.name, None)

    def prepare(self, order: Prepare, say: Say) -> Prepared:
        """Make the buckets and, where the workload needs them, write its objects.

        Raises DriverError unless all are there.
        """
        workload = order.workload
        began_s = time.monotonic()
        count = workload.objects.count if workload.needs_objects else 0
        if not self.stands(workload):
            self.make_buckets(workload, say)
            if count:
                self.write(workload, range(count), order.parallel, say)
            self._standing[workload.name] = workload
        size = workload.objects.size
        written_bytes = count * size if isinstance(size, int) else self._bytes(workload, count)
        return Prepared(objects=count, bytes=written_bytes, seconds=time.monotonic() - began_s)

    def make_buckets(self, workload: Workload, say: Say) -> None:
        """Make the buckets of a workload."""
        self._account.authenticate()
        said_s = time.monotonic()
        for number, bucket in enumerate(self._buckets(workload)):
            if time.monotonic() - said_s > SAY_S:
                said_s = time.monotonic()
                say(Progress(phase="prepare", done=number, total=workload.objects.containers))
            self._try(functools.partial(self._account.make_bucket, bucket))

    def write(self, workload: Workload, numbers: range, parallel: int, say: Say) -> None:
        """Write objects of a workload by their numbers. Raises DriverError unless all are there."""
        if numbers:
            first, stride = numbers.start, numbers.step
            self._all(
                "written",
                workload,
                len(numbers),
                lambda crew: crew.prepare(first, len(numbers), parallel, stride),
                say,
            )

    def delete(self, workload: Workload, numbers: Sequence[int], parallel: int, say: Say) -> None:
        """Delete objects of a workload by their numbers. Raises DriverError unless all are gone."""
        if numbers:
            self._all(
                "deleted",
                workload,
                len(numbers),
                lambda crew: crew.delete_listed(numbers, parallel),
                say,
            )

    def delete_all(self, workload: Workload, parallel: int, say: Say) -> tuple[int, int]:
        """Delete a workload's objects, what else its buckets hold, and the buckets.

        Returns (deleted, failed) objects.
        """
        self._account.authenticate()
        self._standing.pop(workload.name, None)
        deleted = failed = 0
        if workload.needs_objects:
            crew = NativeCrew(self._setup, self._account, workload, self._allowance.cpus)
            crew.delete_prepared(parallel)
            pulse = self._follow(
                crew,
                WorkerProgress(),
                lambda now: say(_progress("cleanup", now.done, workload.objects.count, now)),
            )
            deleted = pulse.done // self._copies
            if self.lists_nothing:
                return deleted, workload.objects.count - deleted
        for bucket in self._buckets(workload):
            more = self._delete_bucket(bucket, say)
            deleted, failed = deleted + more[0], failed + more[1]
        return deleted, failed

    def _delete_bucket(self, bucket: str, say: Say) -> tuple[int, int]:
        """Delete a bucket and whatever is in it.

        Returns (deleted, failed) objects; a bucket that stays counts as failed.
        """
        deleted = failed = 0
        # Swift tells its containers of deletes a little later: one can seem to hold what is gone.
        for pause_s in (0.0, 0.0, 0.5, 1.0, 2.0, 4.0):
            gevent.sleep(pause_s)
            if self._account.delete_bucket(bucket):
                return deleted, failed
            more, failed = self._delete_left(bucket, frozenset(), say)
            deleted += more
        log.warning("bucket %s cannot be deleted: it is never empty", bucket)
        return deleted, failed + 1

    def delete_strays(self, workload: Workload, say: Say) -> tuple[int, int]:
        """Delete what a workload's buckets hold beside its prepared objects.

        Returns (deleted, failed) objects.
        """
        self._account.authenticate()
        keep = frozenset(
            object_name(index)
            for index in range(workload.objects.per_container if workload.needs_objects else 0)
        )
        deleted = failed = 0
        for bucket in self._buckets(workload):
            more = self._delete_left(bucket, keep, say)
            deleted, failed = deleted + more[0], failed + more[1]
        return deleted, failed

    def _delete_left(self, bucket: str, keep: frozenset[str], say: Say) -> tuple[int, int]:
        deleted = failed = 0
        said_s = 0.0
        for name in [name for name in self._account.objects(bucket) if name not in keep]:
            try:
                self._account.delete_object(bucket, name)
                deleted += 1
            except DriverError:
                failed += 1
            if time.monotonic() - said_s > SAY_S:
                said_s = time.monotonic()
                say(Progress(phase="cleanup", done=deleted, total=deleted + failed, errors=failed))
        return deleted, failed

    def _buckets(self, workload: Workload) -> list[str]:
        return [
            f"{self._setup.bucket_prefix}-{workload.name}-{index}"
            for index in range(workload.objects.containers)
        ]

    def _bytes(self, workload: Workload, count: int) -> int:
        text, per_container = workload.model_dump_json(), workload.objects.per_container
        return sum(
            object_size(text, self._setup.seed, *divmod(number, per_container))
            for number in range(count)
        )

    @staticmethod
    def _try(what: Callable[[], None]) -> None:
        """Do it, three times if need be: a gateway that has just come up may refuse the first."""
        for pause_s in (0.2, 1.0, None):
            try:
                what()
            except DriverError:
                if pause_s is None:
                    raise
                gevent.sleep(pause_s)
            else:
                return

    def _all(
        self,
        what: str,
        workload: Workload,
        count: int,
        start: Callable[[NativeCrew], None],
        say: Say,
    ) -> None:
        """Have a crew do something to `count` objects.

        The engine tries each a bounded number of times, with growing pauses.
        """
        phase = "prepare" if what == "written" else "cleanup"
        crew = NativeCrew(self._setup, self._account, workload, self._allowance.cpus)
        try:
            start(crew)
            pulse = self._follow(
                crew,
                WorkerProgress(),
                lambda now: say(_progress(phase, now.done // self._copies, count, now)),
            )
        finally:
            crew.stop(0.0)
        done = pulse.done // self._copies
        if done < count:
            classes = ", ".join(f"{name} x {times}" for name, times in sorted(pulse.errors.items()))
            raise DriverError(
                f"only {done} of {count} objects of {workload.name} could be {what}; errors: "
                f"{classes or 'none seen'}; "
                f"last error: {pulse.last_error}"
            )

    def _follow(
        self, crew: NativeCrew, before: WorkerProgress, tell: Callable[[WorkerProgress], None]
    ) -> WorkerProgress:
        """Wait for the crew to be idle again; what no longer moves at all has a deadline."""
        moved_s = said_s = time.monotonic()
        last = before
        while (now := crew.pulse()).running:
            at_s = time.monotonic()
            if (now.done, now.failed) != (last.done, last.failed):
                last, moved_s = now, at_s
            if at_s - moved_s > 2 * self._setup.request_timeout_s + 10:
                raise DriverError(
                    f"nothing has been finished for {at_s - moved_s:.0f} s; last error: "
                    f"{now.last_error}"
                )
            if at_s - said_s > SAY_S:
                said_s = at_s
                tell(now)
            gevent.sleep(0.01)
        tell(now)
        return now


def _progress(phase: str, done: int, total: int, pulse: WorkerProgress) -> Progress:
    return Progress.model_validate(
        {"phase": phase, "done": done, "total": max(done, total), "errors": pulse.failed}
    )
