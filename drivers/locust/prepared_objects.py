"""A workload's buckets and objects: made before its steps and deleted after them."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, Literal, TypeVar
from urllib.parse import quote

import gevent
from gevent.pool import Pool

from weighbridge.common import plain_xml
from weighbridge.common.credential import RETRY_S
from weighbridge.common.endpoint import Encryption, Signing
from weighbridge.common.errors import DriverError
from weighbridge.common.listing import Entry
from weighbridge.drivers.engine._native import object_name, object_sizes
from weighbridge.drivers.locust.account import Account, AccountAnswer, NotServing, account_at
from weighbridge.drivers.locust.cpu_allowance import allowance
from weighbridge.drivers.locust.worker_group import NativeWorkerGroup, WorkerGroup, WorkerProgress
from weighbridge.drivers.protocol import Prepare, Prepared, Progress, Setup
from weighbridge.suites import PLAIN, Workload, deleted_indexes, whole

BATCH: Final = 2000
"""Objects that are written, or deleted, before it is decided whether more workers would help."""
MOST_PARALLEL: Final = 64
WORTHWHILE: Final = 1.1
"""Twice the workers must be so many times as fast to be kept."""


class Pace:
    """How many workers write or delete at once: twice as many after each batch that was faster."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._before, self._best_per_s = workers, 0.0
        self._grows = workers < MOST_PARALLEL

    def took(self, objects: int, seconds: float) -> None:
        """A batch is done: decide about the next one."""
        if not self._grows or objects < BATCH:
            return
        per_s = objects / max(seconds, 1e-9)
        if per_s < WORTHWHILE * self._best_per_s:
            self.workers, self._grows = self._before, False
            return
        self._best_per_s, self._before = per_s, self.workers
        self.workers = min(2 * self.workers, MOST_PARALLEL)
        self._grows = self.workers > self._before


def retried(act: Callable[[], object], pauses_s: Iterable[float]) -> None:
    """Call `act`, and again after each pause as long as it raises DriverError; raises the last."""
    for pause_s in pauses_s:
        try:
            act()
        except DriverError:
            gevent.sleep(pause_s)
        else:
            return
    act()


PARALLEL: Final = 16
"""Objects whose versions are deleted at the same time."""
_ON: Final = (
    b'<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
    b"<Status>Enabled</Status></VersioningConfiguration>"
)


class VersionedBuckets:
    """The buckets of a workload whose objects have versions.

    Every method raises DriverError when the target cannot be reached or refuses.
    """

    def __init__(self, setup: Setup, account: Account, workload: Workload) -> None:
        self._api = setup.api
        self._account = account
        self._each = workload.versions or 0
        self._names = [object_name(index) for index in range(workload.objects.per_container)]
        stem = f"{setup.bucket_prefix}-{workload.name}"
        self._buckets = [f"{stem}-{index}" for index in range(workload.objects.containers)]

    def keep(self, bucket: str) -> None:
        """Have a bucket keep versions, and prove that it does."""
        if self._api == "s3":
            asked = self._account.ask("PUT", f"/{bucket}", query="versioning=", body=_ON)
            proof = self._account.ask("GET", f"/{bucket}", query="versioning=")
            keeps = proof.status == 200 and _is_enabled(proof.body)
        else:
            on = {"X-Versions-Enabled": "true"}
            asked = self._account.ask("POST", f"/{bucket}", fields=on)
            proof = self._account.ask("HEAD", f"/{bucket}")
            keeps = (proof.headers.get("X-Versions-Enabled") or "").lower() == "true"
        if asked.status not in (200, 202, 204) or not keeps:
            raise DriverError(
                f"{self._account.url}: bucket {bucket} keeps no versions: asked to, it "
                f"answered {asked}; asked whether it does, {proof}",
                advice="Leave `versions` out, or choose a store or release that has them.",
            )

    def ids(self, *, alone: bool = False) -> list[str]:
        """IDs of the prepared versions: of object 0 from the oldest on, of object 1, ...

        Raises DriverError when one is missing; `alone`: also when there is anything else, as when
        a write was repeated.
        """
        ids: list[str] = []
        found = [self._ids_by_name(bucket) for bucket in self._buckets]
        for name in self._names:
            for bucket, by_name in zip(self._buckets, found, strict=True):
                oldest = by_name.get(name, [])[-self._each :][::-1]
                if len(oldest) < self._each:
                    raise DriverError(
                        f"{self._account.url}: {bucket}/{name} has {len(oldest)} of its "
                        f"{self._each} versions"
                    )
                ids += oldest
        there = sum(len(versions) for by_name in found for versions in by_name.values())
        if alone and there > len(ids):
            raise DriverError(
                f"{self._account.url}: {there} versions in {self._buckets[0]} and the buckets "
                f"after it instead of {len(ids)}: a write was repeated",
                advice="Try again.",
            )
        return ids

    def prove(self) -> None:
        """Raise DriverError unless what was prepared is there, and nothing else."""
        # Swift updates container listings a little later.
        retried(lambda: self.ids(alone=True), (0.5, 1.0, 2.0))

    def delete_others(
        self, bucket: str, keep: Collection[str], report: Callable[[int, int], None]
    ) -> tuple[int, int]:
        """Delete the versions and markers of a bucket, but of the names to keep those that were
        prepared: the oldest.

        `report` gets how many were deleted and how many could not be. Returns both.
        """
        of_name: dict[str, list[Entry]] = defaultdict(list)
        for one in self._account.listed(bucket, "versions"):
            of_name[one.name].append(one)
        others = [
            (versions[: -self._each] if name in keep else versions)[::-1]
            for name, versions in of_name.items()
        ]
        deleted = failed = 0
        for gone, left in Pool(PARALLEL).imap_unordered(partial(self._delete, bucket), others):
            deleted, failed = deleted + gone, failed + left
            report(deleted, failed)
        if not of_name and not keep:
            # s3api may have left the name of an object whose versions are gone.
            for name in self._account.objects(bucket):
                self._account.delete_object(bucket, name)
        return deleted, failed

    def _delete(self, bucket: str, versions: Sequence[Entry]) -> tuple[int, int]:
        """Delete versions of one object, one after the other, the oldest first: as long as a newer
        one is left, none becomes the latest. Returns how many are gone and how many are not.
        """
        gone = 0
        for one in versions:
            path = f"/{bucket}/{quote(one.name)}"
            try:
                answer = self._account.ask("DELETE", path, query=one.query(self._api))
            except DriverError:
                continue
            gone += answer.status in (200, 202, 204, 404)
        return gone, len(versions) - gone

    def _ids_by_name(self, bucket: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for one in self._account.listed(bucket, "versions"):
            found[one.name].append(one.id)
        return found


def _is_enabled(body: bytes) -> bool:
    try:
        return (plain_xml.parse(body).findtext("{*}Status") or "").strip() == "Enabled"
    except ValueError:
        return False


log = logging.getLogger(__name__)

APART_S: Final = 1.0
"""Least time between requests for a token: if new tokens are refused too, that causes no load.
Where there is no new one and the old one is still good, the time doubles up to RETRY_S.
"""
_REFUSED: Final = "http-401"


class Renewal:
    """Gives a group a new token when its own was refused, or will expire at a known time."""

    def __init__(self, account: Account, group: WorkerGroup, fault: str = "") -> None:
        """`fault`: why there was no new token before the group began."""
        self._account, self._group = account, group
        self._asking: gevent.Greenlet | None = None
        self._asked_s = time.monotonic() - APART_S
        self._seen = 0
        self.forgotten = self.expired = 0
        """How often there was a new one since the last was refused, and before it expired."""
        self._without, self._in_a_row, self._fault = 0, 0, ""
        if fault:
            self._asked_s += APART_S
            self._kept(fault)

    def look(self, progress: WorkerProgress) -> None:
        """Ask for a new token if the progress or the token's age says so; returns at once."""
        if not self._account.renewable:
            return
        refused = progress.errors.get(_REFUSED, 0)
        is_refused = refused > self._seen
        if not is_refused and not self._account.expires:
            return
        asking = self._asking is not None and not self._asking.ready()
        now_s = time.monotonic()
        is_good = not is_refused and self._account.left_s > 0
        apart_s = APART_S
        if is_good and self._in_a_row:
            apart_s = min(RETRY_S, APART_S * 2 ** (self._in_a_row - 1))
        if asking or now_s - self._asked_s < apart_s:
            return
        self._seen, self._asked_s = refused, now_s
        # In a greenlet: an auth server that hangs must not prolong a window.
        self._asking = gevent.spawn(self._renew, is_refused=is_refused)

    def end(self) -> None:
        if self._asking is not None:
            self._asking.kill()

    @property
    def note(self) -> str:
        """How often there was no new token or key, and why; "" if never."""
        if not self._without:
            return ""
        times = "once" if self._without == 1 else f"{self._without} times, at last"
        return f"{times}: {self._fault}"

    def _kept(self, fault: str) -> None:
        self._without, self._in_a_row = self._without + 1, self._in_a_row + 1
        ended = "" if self._account.left_s > 0 else "; by then the old ones had ended"
        self._fault = fault + ended

    def _renew(self, *, is_refused: bool) -> None:
        if is_refused:
            self._account.refused()
        try:
            self._account.authenticate()
        except DriverError as error:
            # Requests go on with the old token: refused ones are counted, and the last error says
            # more.
            log.warning("no new token: %s", error)
            self._kept(error.message)
            return
        self._in_a_row = 0
        self._group.renew(self._account)
        self.forgotten += is_refused
        self.expired += not is_refused


Send = Callable[[Progress], None]
Phase = Literal["prepare", "cleanup"]
Numbers = TypeVar("Numbers", range, Sequence[int])
"""Numbers of objects."""

SEND_S = 0.4
STRAYS_AT_ONCE: Final = 8
RECOVERY_S: Final = 120.0
"""How long a gateway may serve nobody after overload: Swift's proxy does without a memcached that
failed for 60 s, and answers requests for tokens with 503 meanwhile.
"""
SSE_S3: Final = "x-amz-server-side-encryption"
"""The header by which a store says that it encrypted an object with its own key."""


class PreparedObjects:
    """Which workloads' objects exist at the target; the native engine writes them for all."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._complete: dict[str, Workload] = {}
        """What was prepared last, by the workload that its buckets are named after."""
        self._account = account_at(setup)
        self._copies = 1 if setup.ring is None else len(setup.ring.table)

    def reach(self) -> None:
        """Raise DriverError when the target cannot be reached or does not let this user in."""
        self._account.renew()
        self._account.shake_hands()

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
        """Whether the target has no listings, as object servers: what is written is remembered."""
        return self._setup.api == "object-server"

    def is_complete(self, workload: Workload) -> bool:
        """Whether all of its objects exist, as far as this driver's own work goes."""
        known = self._complete.get(whole(workload).name)
        return known is not None and same_objects(known, workload)

    def forget(self, workload: Workload) -> None:
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
        containers = workload.objects.containers
        return [
            index * containers + container
            for index in deleted_indexes(workload, self._setup.seed)
            for container in range(containers)
        ]

    def make_buckets(self, workload: Workload, send: Send) -> None:
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
        if isinstance(workload.signed, Signing) and workload.signed.auth == "none":
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
        """Write objects by number, version by version. Raises DriverError unless all exist."""

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
        """Delete a workload's objects, buckets and all in them; returns (deleted, failed)."""
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
        """Delete a bucket with its content; returns (deleted, failed): one that remains failed."""
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
        """Delete what buckets have but prepared objects or versions: (deleted, failed) objects."""
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

        def left() -> Iterator[str]:
            for name in self._account.objects(bucket):
                report(deleted, failed)  # a list may be long before there is anything to delete
                # Segments of an object of Swift's in parts: `object-0000000000/00000001`.
                if name.partition("/")[0] not in keep:
                    yield name

        delete = partial(self._delete_one, bucket)
        for gone in Pool(STRAYS_AT_ONCE).imap_unordered(delete, left(), maxsize=STRAYS_AT_ONCE):
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
    """Whether two workloads of a name need the same objects: steps of a search may."""
    parts = ("objects", "operations", "listed", "versions")
    return all(getattr(one, part) == getattr(other, part) for part in parts)


def _is_encrypted(answer: AccountAnswer, encryption: Encryption) -> bool:
    if encryption == "sse-c":
        return answer.status in (400, 403)
    return answer.status == 200 and answer.headers.get(SSE_S3) == "AES256"


def _progress(phase: Phase, done: int, total: int, now: WorkerProgress) -> Progress:
    return Progress(phase=phase, done=done, total=max(done, total), errors=now.failed)
