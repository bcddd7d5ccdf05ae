"""A workload's buckets and objects: made before its steps and deleted after them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Final, Literal

import gevent

from weighbridge.common.encryption import Encryption
from weighbridge.common.errors import DriverError
from weighbridge.common.signing import Signing
from weighbridge.drivers.engine._native import object_name, object_sizes
from weighbridge.drivers.locust.account import AccountAnswer, account_at
from weighbridge.drivers.locust.cpu_allowance import allowance
from weighbridge.drivers.locust.worker_group import NativeWorkerGroup, WorkerProgress
from weighbridge.drivers.protocol import Prepare, Prepared, Progress, Setup
from weighbridge.suites import PLAIN, Workload

Send = Callable[[Progress], None]
Phase = Literal["prepare", "cleanup"]
log = logging.getLogger(__name__)

SEND_S = 0.4
SSE_S3: Final = "x-amz-server-side-encryption"
"""The header by which a store says that it encrypted an object with its own key."""


class PreparedObjects:
    """Knows which workloads' objects exist at the target. They are written by the native engine,
    whatever makes the load.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._complete: dict[str, Workload] = {}
        self._account = account_at(setup)
        self._copies = 1 if setup.ring is None else len(setup.ring.table)

    def reach(self) -> None:
        """Raise DriverError when the target cannot be reached or does not let this user in."""
        self._account.authenticate()

    @property
    def lists_nothing(self) -> bool:
        """Whether the target has no listings, as object servers: what was written to it must be
        remembered.
        """
        return self._setup.api == "object-server"

    def is_complete(self, workload: Workload) -> bool:
        """Whether all of its objects exist, as far as this driver's own work goes."""
        known = self._complete.get(workload.name)
        return known is not None and same_objects(known, workload)

    def forget(self, workload: Workload) -> None:
        """A step may have deleted some of its objects."""
        self._complete.pop(workload.name, None)

    def prepare(self, command: Prepare, send: Send) -> Prepared:
        """Make the buckets and the objects that the workload needs; raises DriverError unless all
        exist.
        """
        workload = command.workload
        began_s = time.monotonic()
        count = workload.objects.count if workload.needs_objects else 0
        if not self.is_complete(workload):
            self.make_buckets(workload, send)
            if count:
                self.write(workload, range(count), command.parallel, send)
            self._prove_encryption(workload, send, prepared=count > 0)
            self._complete[workload.name] = workload
        size = workload.objects.size
        if isinstance(size, int):
            written_bytes = count * size
        else:
            text = workload.model_dump_json()
            written_bytes = sum(object_sizes(text, self._setup.seed, 0, count))
        return Prepared(objects=count, bytes=written_bytes, seconds=time.monotonic() - began_s)

    def make_buckets(self, workload: Workload, send: Send) -> None:
        """Make the buckets of a workload."""
        self._account.authenticate()
        sent_s = time.monotonic()
        for number, bucket in enumerate(self._buckets(workload)):
            if time.monotonic() - sent_s > SEND_S:
                sent_s = time.monotonic()
                send(Progress(phase="prepare", done=number, total=workload.objects.containers))
            self._make_bucket(bucket, public=_is_anonymous(workload))

    def _make_bucket(self, name: str, *, public: bool) -> None:
        """Make a bucket in at most three attempts: a gateway that has just started may refuse."""
        for pause_s in (0.2, 1.0, None):
            try:
                self._account.make_bucket(name)
                if public:
                    self._account.let_all(name)
            except DriverError:
                if pause_s is None:
                    raise
                gevent.sleep(pause_s)
            else:
                return

    def _prove_encryption(self, workload: Workload, send: Send, *, prepared: bool) -> None:
        """Raise DriverError unless the first object is encrypted as the workload asks; without a
        prepared one, it is written for this and deleted.
        """
        encryption = workload.encrypted
        if encryption == PLAIN:
            return
        if not prepared:
            self.write(workload, range(1), 1, send)
        name, bucket = object_name(0), self._buckets(workload)[0]
        answer = self._account.head_object(bucket, name)
        if not prepared:
            self.delete(workload, (0,), 1, send)
        if not _is_encrypted(answer, encryption):
            raise DriverError(
                f"{workload.name}: the store does not encrypt as asked ({encryption}): HEAD of an "
                f"object without a key gets {answer}",
                advice="Leave `encryption` out, or choose a store that has it.",
            )

    def write(self, workload: Workload, numbers: range, parallel: int, send: Send) -> None:
        """Write a workload's objects by their numbers. Raises DriverError unless all exist."""
        if numbers:
            first, stride = numbers.start, numbers.step
            self._all(
                "written",
                workload,
                len(numbers),
                lambda group: group.prepare(first, len(numbers), parallel, stride),
                send,
            )

    def delete(self, workload: Workload, numbers: Sequence[int], parallel: int, send: Send) -> None:
        """Delete a workload's objects by their numbers. Raises DriverError unless all are gone."""
        if numbers:
            self._all(
                "deleted",
                workload,
                len(numbers),
                lambda group: group.delete_listed(numbers, parallel),
                send,
            )

    def delete_all(self, workload: Workload, parallel: int, send: Send) -> tuple[int, int]:
        """Delete a workload's objects, anything else in its buckets, and the buckets.

        Returns (deleted, failed) objects.
        """
        self._account.authenticate()
        self.forget(workload)
        deleted = failed = 0
        if workload.needs_objects:
            group = self._group(workload)
            group.delete_prepared(parallel)
            progress = self._follow(
                group,
                lambda now: send(_progress("cleanup", now.done, workload.objects.count, now)),
            )
            deleted = progress.done // self._copies
            if self.lists_nothing:
                return deleted, workload.objects.count - deleted
        for bucket in self._buckets(workload):
            more, left = self._delete_bucket(bucket, send)
            deleted, failed = deleted + more, failed + left
        return deleted, failed

    def _delete_bucket(self, bucket: str, send: Send) -> tuple[int, int]:
        """Delete a bucket with its content; returns (deleted, failed) objects.

        A bucket that remains counts as failed.
        """
        deleted = failed = 0
        # Swift updates container listings a little later: they may still show deleted objects.
        for pause_s in (0.0, 0.0, 0.5, 1.0, 2.0, 4.0):
            gevent.sleep(pause_s)
            if self._account.delete_bucket(bucket):
                return deleted, failed
            more, failed = self._delete_left(bucket, frozenset(), send)
            deleted += more
        log.warning("bucket %s cannot be deleted: it is never empty", bucket)
        return deleted, failed + 1

    def delete_strays(self, workload: Workload, send: Send) -> tuple[int, int]:
        """Delete what a workload's buckets contain besides its prepared objects.

        Returns (deleted, failed) objects.
        """
        self._account.authenticate()
        keep = frozenset(
            object_name(index)
            for index in range(workload.objects.per_container if workload.needs_objects else 0)
        )
        deleted = failed = 0
        for bucket in self._buckets(workload):
            more, left = self._delete_left(bucket, keep, send)
            deleted, failed = deleted + more, failed + left
        return deleted, failed

    def _delete_left(self, bucket: str, keep: frozenset[str], send: Send) -> tuple[int, int]:
        deleted = failed = 0
        sent_s = 0.0
        for name in [name for name in self._account.objects(bucket) if name not in keep]:
            try:
                self._account.delete_object(bucket, name)
                deleted += 1
            except DriverError:
                failed += 1
            if time.monotonic() - sent_s > SEND_S:
                sent_s = time.monotonic()
                send(Progress(phase="cleanup", done=deleted, total=deleted + failed, errors=failed))
        return deleted, failed

    def _buckets(self, workload: Workload) -> list[str]:
        return [
            f"{self._setup.bucket_prefix}-{workload.name}-{index}"
            for index in range(workload.objects.containers)
        ]

    def _group(self, workload: Workload) -> NativeWorkerGroup:
        return NativeWorkerGroup(self._setup, self._account, workload, allowance().cpus)

    def _all(
        self,
        what: str,
        workload: Workload,
        count: int,
        start: Callable[[NativeWorkerGroup], None],
        send: Send,
    ) -> None:
        """Have a worker group write or delete `count` objects.

        The engine tries each a bounded number of times, with growing pauses.
        """
        phase: Phase = "prepare" if what == "written" else "cleanup"
        group = self._group(workload)
        try:
            start(group)
            progress = self._follow(
                group, lambda now: send(_progress(phase, now.done // self._copies, count, now))
            )
        finally:
            group.stop(0.0)
        done = progress.done // self._copies
        if done < count:
            errors = [f"{name} x {times}" for name, times in sorted(progress.errors.items())]
            raise DriverError(
                f"only {done} of {count} objects of {workload.name} could be {what}; errors: "
                f"{', '.join(errors) or 'none seen'}; last error: {progress.last_error}"
            )

    def _follow(
        self, group: NativeWorkerGroup, report: Callable[[WorkerProgress], None]
    ) -> WorkerProgress:
        """Wait until the group is idle. Raises DriverError when it makes no progress at all."""
        moved_s = sent_s = time.monotonic()
        last = WorkerProgress()
        while (now := group.progress()).running:
            at_s = time.monotonic()
            if (now.done, now.failed) != (last.done, last.failed):
                last, moved_s = now, at_s
            if at_s - moved_s > 2 * self._setup.request_timeout_s + 10:
                raise DriverError(
                    f"no request has completed for {at_s - moved_s:.0f} s; last error: "
                    f"{now.last_error}"
                )
            if at_s - sent_s > SEND_S:
                sent_s = at_s
                report(now)
            gevent.sleep(0.01)
        report(now)
        return now


def same_objects(one: Workload, other: Workload) -> bool:
    """Whether two workloads of a name need the same objects; steps of a search differ in rate and
    window.
    """
    return (one.objects, one.operations) == (other.objects, other.operations)


def _is_encrypted(answer: AccountAnswer, encryption: Encryption) -> bool:
    if encryption == "sse-c":
        return answer.status in (400, 403)
    return answer.status == 200 and answer.headers.get(SSE_S3) == "AES256"


def _progress(phase: Phase, done: int, total: int, now: WorkerProgress) -> Progress:
    return Progress(phase=phase, done=done, total=max(done, total), errors=now.failed)


def _is_anonymous(workload: Workload) -> bool:
    return isinstance(workload.signed, Signing) and workload.signed.auth == "none"
