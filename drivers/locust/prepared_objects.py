"""A workload's buckets and objects: made before its steps and deleted after them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Literal, TypeVar
from urllib.parse import quote

import gevent
from gevent.pool import Pool

from weighbridge.common.encryption import Encryption
from weighbridge.common.errors import DriverError
from weighbridge.common.signing import Signing
from weighbridge.drivers.engine._native import object_name, object_sizes
from weighbridge.drivers.locust.account_answer import AccountAnswer, NotServing
from weighbridge.drivers.locust.cpu_allowance import allowance
from weighbridge.drivers.locust.object_servers import account_at
from weighbridge.drivers.locust.pace import BATCH, Pace
from weighbridge.drivers.locust.renewal import Renewal
from weighbridge.drivers.locust.retrying import retried
from weighbridge.drivers.locust.versioned_buckets import VersionedBuckets
from weighbridge.drivers.locust.worker_group import NativeWorkerGroup, WorkerProgress
from weighbridge.drivers.protocol import Prepare, Prepared, Progress, Setup
from weighbridge.suites import PLAIN, Workload, deleted_indexes, whole

Send = Callable[[Progress], None]
Phase = Literal["prepare", "cleanup"]
Numbers = TypeVar("Numbers", range, Sequence[int])
"""Numbers of objects."""
log = logging.getLogger(__name__)

SEND_S = 0.4
STRAYS_AT_ONCE: Final = 8
RECOVERY_S: Final = 120.0
"""How long a gateway may serve nobody after overload: Swift's proxy does without a memcached that
failed for 60 s, and answers requests for tokens with 503 meanwhile.
"""
SSE_S3: Final = "x-amz-server-side-encryption"
"""The header by which a store says that it encrypted an object with its own key."""


class PreparedObjects:
    """Knows which workloads' objects exist at the target. They are written by the native engine,
    whatever makes the load.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._complete: dict[str, Workload] = {}
        """What was prepared last, by the workload that its buckets are named after."""
        self._account = account_at(setup)
        self._copies = 1 if setup.ring is None else len(setup.ring.table)

    def reach(self) -> None:
        """Raise DriverError when the target cannot be reached or does not let this user in."""
        self._account.renew()

    def await_answer(self, send: Send) -> None:
        """Wait until a target serves again after overload, RECOVERY_S at most: a gateway that
        queues first answers requests whose clients have given up. Raises DriverError as `reach`.
        """
        until_s = time.monotonic() + RECOVERY_S
        while True:
            try:
                self._account.check_serves()
            except NotServing as error:
                if time.monotonic() >= until_s:
                    late = f"no recovery from the previous step within {RECOVERY_S:g} s"
                    raise DriverError(f"{late}: {error.message}") from error
                send(Progress(phase="prepare", done=0, total=0))
                gevent.sleep(SEND_S)
            else:
                return

    @property
    def lists_nothing(self) -> bool:
        """Whether the target has no listings, as object servers: what was written to it must be
        remembered.
        """
        return self._setup.api == "object-server"

    def is_complete(self, workload: Workload) -> bool:
        """Whether all of its objects exist, as far as this driver's own work goes."""
        known = self._complete.get(whole(workload).name)
        return known is not None and same_objects(known, workload)

    def forget(self, workload: Workload) -> None:
        """A step may have deleted some of its objects."""
        self._complete.pop(whole(workload).name, None)

    def prepare(self, command: Prepare, send: Send) -> Prepared:
        """Make the buckets and the objects that the workload needs, and delete those that its steps
        must not find; raises DriverError unless all is done.
        """
        workload, all_of_it = command.workload, whole(command.workload)
        began_s = time.monotonic()
        count = workload.objects.count if workload.needs_objects else 0
        gone = self._deleted_numbers(workload)
        if not self.is_complete(workload):
            known = self._complete.pop(all_of_it.name, None)
            before = [] if known is None else self._deleted_numbers(known)
            if (
                known is None
                or not same_objects(whole(known), all_of_it)
                or len(before) > len(gone)
            ):
                before = []
                self.make_buckets(all_of_it, send)
                for bucket in self._buckets(workload) if workload.versions else ():
                    self._delete_left(all_of_it, bucket, frozenset(), send)
                self.write(all_of_it, range(count), command.parallel, send)
            self._prove_encryption(all_of_it, send, prepared=count > 0)
            if workload.versions and count:
                self._versioned(workload).prove()
            self.delete(all_of_it, gone[len(before) :], command.parallel, send)
            self._complete[all_of_it.name] = workload
        size, each = workload.objects.size, workload.versions or 1
        if isinstance(size, int):
            written_bytes = (count - len(gone)) * size
        else:
            sizes = object_sizes(all_of_it.model_dump_json(), self._setup.seed, 0, count)
            written_bytes = sum(sizes) - sum(sizes[one] for one in gone)
        return Prepared(
            objects=(count - len(gone)) * each,
            bytes=written_bytes * each,
            seconds=time.monotonic() - began_s,
        )

    def _deleted_numbers(self, workload: Workload) -> list[int]:
        """Numbers of the objects that the workload's steps must not find; a smaller share's are the
        first of a larger one's.
        """
        containers = workload.objects.containers
        return [
            index * containers + container
            for index in deleted_indexes(workload, self._setup.seed)
            for container in range(containers)
        ]

    def make_buckets(self, workload: Workload, send: Send) -> None:
        """Make the buckets of a workload."""
        self._account.renew()
        sent_s = time.monotonic()
        for number, bucket in enumerate(self._buckets(workload)):
            if time.monotonic() - sent_s > SEND_S:
                sent_s = time.monotonic()
                send(Progress(phase="prepare", done=number, total=workload.objects.containers))
            # A gateway that has just started may refuse.
            retried(partial(self._make_bucket, workload, bucket), (0.2, 1.0))

    def _make_bucket(self, workload: Workload, name: str) -> None:
        self._account.make_bucket(name)
        if _is_anonymous(workload):
            self._account.let_all(name)
        if workload.versions:
            self._versioned(workload).keep(name)

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
        # Of a customer's key the content must be refused: a store may refuse HEAD alone.
        method = "GET" if encryption == "sse-c" else "HEAD"
        answer = self._account.ask(method, f"/{bucket}/{quote(name)}")
        if not prepared:
            self.delete(workload, (0,), 1, send)
        if not _is_encrypted(answer, encryption):
            got = f"HTTP {answer.status}" if answer.status == 200 else str(answer)
            raise DriverError(
                f"{workload.name}: the store does not encrypt as asked ({encryption}): {method} of "
                f"an object without a key gets {got}",
                advice="Leave `encryption` out, or choose a store that supports it.",
            )

    def write(self, workload: Workload, numbers: range, parallel: int, send: Send) -> None:
        """Write a workload's objects by their numbers, version by version.

        Raises DriverError unless all exist.
        """

        def start(version: int | None, group: NativeWorkerGroup, some: range, workers: int) -> None:
            group.prepare(some.start, len(some), workers, some.step, version)

        for version in range(workload.versions) if workload.versions else (None,):
            if numbers:
                begin = partial(start, version)
                self._all("written", workload, numbers, parallel, begin, send)

    def delete(self, workload: Workload, numbers: Sequence[int], parallel: int, send: Send) -> None:
        """Delete a workload's objects by their numbers. Raises DriverError unless all are gone."""

        def start(group: NativeWorkerGroup, some: Sequence[int], workers: int) -> None:
            group.delete_listed(some, workers)

        if numbers:
            self._all("deleted", workload, numbers, parallel, start, send)

    def delete_all(self, workload: Workload, parallel: int, send: Send) -> tuple[int, int]:
        """Delete a workload's objects, anything else in its buckets, and the buckets.

        Returns (deleted, failed) objects.
        """
        self._account.renew()
        self.forget(workload)
        workload = whole(workload)
        deleted = failed = 0
        if workload.needs_objects and not workload.versions:
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
            more, left = self._delete_bucket(workload, bucket, send)
            deleted, failed = deleted + more, failed + left
        return deleted, failed

    def _delete_bucket(self, workload: Workload, bucket: str, send: Send) -> tuple[int, int]:
        """Delete a bucket with its content; returns (deleted, failed) objects.

        A bucket that remains counts as failed.
        """
        deleted = failed = 0
        # Swift updates container listings a little later: they may still show deleted objects.
        for pause_s in (0.0, 0.0, 0.5, 1.0, 2.0, 4.0):
            gevent.sleep(pause_s)
            if self._account.delete_bucket(bucket):
                return deleted, failed
            more, failed = self._delete_left(workload, bucket, frozenset(), send)
            deleted += more
        log.warning("bucket %s cannot be deleted: it is never empty", bucket)
        return deleted, failed + 1

    def delete_strays(self, workload: Workload, send: Send) -> tuple[int, int]:
        """Delete what a workload's buckets contain besides its prepared objects, or versions.

        Returns (deleted, failed) objects.
        """
        self._account.renew()
        keep = frozenset(
            object_name(index)
            for index in range(workload.objects.per_container if workload.needs_objects else 0)
        )
        deleted = failed = 0
        for bucket in self._buckets(workload):
            more, left = self._delete_left(workload, bucket, keep, send)
            deleted, failed = deleted + more, failed + left
        return deleted, failed

    def _delete_left(
        self, workload: Workload, bucket: str, keep: frozenset[str], send: Send
    ) -> tuple[int, int]:
        deleted, failed, sent_s = 0, 0, 0.0

        def report(deleted: int, failed: int) -> None:
            nonlocal sent_s
            if time.monotonic() - sent_s > SEND_S:
                sent_s = time.monotonic()
                total = deleted + failed
                send(Progress(phase="cleanup", done=deleted, total=total, errors=failed))

        if workload.versions:
            return self._versioned(workload).delete_others(bucket, keep, report)
        # The segments of an object of Swift's in parts are named `object-0000000000/00000001`.
        left = [one for one in self._account.objects(bucket) if one.partition("/")[0] not in keep]
        for gone in Pool(STRAYS_AT_ONCE).imap_unordered(partial(self._delete_one, bucket), left):
            deleted, failed = deleted + gone, failed + (not gone)
            report(deleted, failed)
        return deleted, failed

    def _delete_one(self, bucket: str, name: str) -> bool:
        try:
            self._account.delete_object(bucket, name)
        except DriverError:
            return False
        return True

    def _buckets(self, workload: Workload) -> list[str]:
        return [
            f"{self._setup.bucket_prefix}-{whole(workload).name}-{index}"
            for index in range(workload.objects.containers)
        ]

    def _versioned(self, workload: Workload) -> VersionedBuckets:
        return VersionedBuckets(self._setup, self._account, workload)

    def _group(self, workload: Workload) -> NativeWorkerGroup:
        return NativeWorkerGroup(self._setup, self._account, workload, allowance().cpus)

    def _all(
        self,
        what: str,
        workload: Workload,
        numbers: Numbers,
        parallel: int,
        start: Callable[[NativeWorkerGroup, Numbers, int], None],
        send: Send,
    ) -> None:
        """Have a worker group write or delete objects by their numbers.

        The engine tries each a bounded number of times, with growing pauses. Batch by batch the
        number of workers doubles while that makes it faster.
        """
        phase: Phase = "prepare" if what == "written" else "cleanup"
        group, count, done = self._group(workload), len(numbers), 0
        pace = Pace(parallel)
        try:
            while done < count:
                some = numbers[done : done + BATCH]
                began_s = time.monotonic()
                start(group, some, pace.workers)
                progress = self._follow(
                    group, lambda now: send(_progress(phase, now.done // self._copies, count, now))
                )
                pace.took(len(some), time.monotonic() - began_s)
                done += len(some)
                if progress.done // self._copies < done:
                    break
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
        last, renewal = WorkerProgress(), Renewal(self._account, group)
        while (now := group.progress()).running:
            renewal.look(now)
            at_s = time.monotonic()
            if (now.done, now.failed, now.bytes) != (last.done, last.failed, last.bytes):
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
        renewal.end()
        report(now)
        return now


def same_objects(one: Workload, other: Workload) -> bool:
    """Whether two workloads of a name need the same objects; steps of a search differ in rate and
    window.
    """
    return (one.objects, one.operations, one.listed, one.versions) == (
        other.objects,
        other.operations,
        other.listed,
        other.versions,
    )


def _is_encrypted(answer: AccountAnswer, encryption: Encryption) -> bool:
    if encryption == "sse-c":
        return answer.status in (400, 403)
    return answer.status == 200 and answer.headers.get(SSE_S3) == "AES256"


def _progress(phase: Phase, done: int, total: int, now: WorkerProgress) -> Progress:
    return Progress(phase=phase, done=done, total=max(done, total), errors=now.failed)


def _is_anonymous(workload: Workload) -> bool:
    return isinstance(workload.signed, Signing) and workload.signed.auth == "none"
