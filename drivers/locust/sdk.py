"""The workers of SDK users, which call boto3 or python-swiftclient as a Python application would.

Each request is a task of Locust's user. They make the same sequence of requests as the native
engine.
"""

from __future__ import annotations

import functools
import hashlib
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import cast

import gevent
from hdrh.histogram import HdrHistogram

from weighbridge.common.credential import redacted
from weighbridge.drivers.engine._native import Picker, content, object_name, written_name
from weighbridge.drivers.locust.account import Account
from weighbridge.drivers.locust.client import (
    CHUNK_BYTES,
    LIST_MOST,
    Body,
    Client,
    S3Client,
    SwiftClient,
    transport_error_class,
)
from weighbridge.drivers.locust.worker_group import Window, WorkerProgress
from weighbridge.drivers.protocol import Setup
from weighbridge.results.run.histogram import band_of
from weighbridge.results.run.step import Second, Tally
from weighbridge.suites import Operation, Workload
from weighbridge.suites.factors import SDK_DEFAULT

IN_MEMORY_BYTES = 8 * 2**20
"""Bodies up to this size are held in memory, larger ones are read as files."""


MOST_CONNECTIONS = 4096
"""That workers keep: more workers make a new one for each request."""


class BadResponse(Exception):
    """A response that is not what was requested; `error_class` is its class."""

    def __init__(self, error_class: str, message: str) -> None:
        super().__init__(message)
        self.error_class = error_class


def clients(
    setup: Setup, account: Account, workload: Workload, workers: int
) -> Callable[[], Client]:
    """What gives each of so many workers its client."""
    if setup.target.api == "s3":
        as_shipped = workload.signed == SDK_DEFAULT
        connections = min(max(1, workers), MOST_CONNECTIONS)
        shared = S3Client(setup, account, connections, checksums=as_shipped)
        return lambda: shared
    return lambda: SwiftClient(setup, account)


def class_of(client: Client, error: Exception) -> str:
    """The class of what a request raised."""
    if isinstance(error, BadResponse):
        return error.error_class
    return client.classify(error) or transport_error_class(error)


class SdkRequests:
    """Makes the requests of a workload's workers. `written` is what they wrote, or may have."""

    def __init__(self, setup: Setup, workload: Workload) -> None:
        self._setup = setup
        self._workload = workload
        self.written: dict[tuple[str, str], None] = {}
        # All objects of a size have the same body, so a few bodies are enough for a step.
        self._body = functools.lru_cache(maxsize=4)(lambda size: content(setup.seed, size, 0, size))
        objects = workload.objects
        # Prepared objects exist, unless the workload deletes them.
        deletes = "delete" in workload.operations and not {"read", "head"} & set(
            workload.operations
        )
        self._least_listed = 0 if deletes else min(objects.per_container, LIST_MOST)
        self._md5 = functools.lru_cache(maxsize=1)(functools.partial(_md5, setup.seed))
        if "write" in workload.operations and isinstance(objects.size, int):
            self._md5(objects.size)

    def make(
        self,
        client: Client,
        worker: tuple[int, int, int],
        request: tuple[str, int, int, int],
        *,
        verify: bool,
    ) -> tuple[int, float | None]:
        """Make a request of a Picker for a worker (of how many, repeat, index).

        Returns the bytes moved, and when the first of a read arrived (perf_counter). Raises what
        the SDK raises, and BadResponse.
        """
        operation, container, number, size = cast("tuple[Operation, int, int, int]", request)
        bucket = f"{self._setup.bucket_prefix}-{self._workload.name}-{container}"
        # A delete of one of the worker's own objects has the number -1 - number.
        own = operation == "write" or number < 0
        name = (
            written_name(*worker, number if number >= 0 else -1 - number)
            if own
            else object_name(number)
        )
        if operation == "read":
            return self._read(client, bucket, name, size, verify=verify)
        if operation == "write":
            # Noted first: the object may exist even if the answer is lost.
            self.written[bucket, name] = None
            in_memory = size <= IN_MEMORY_BYTES
            body = self._body(size) if in_memory else Body(self._setup.seed, size)
            etag = client.write(bucket, name, body, size)
            self._check_etag(etag, f"PUT {bucket}/{name}", size)
            return size, None
        if operation == "delete":
            client.delete(bucket, name)
            self.written.pop((bucket, name), None)
        elif operation == "list":
            self._check_listing(client.list(bucket), bucket)
        elif (seen := client.head(bucket, name)) != size:
            text = f"HEAD {bucket}/{name}: {seen} bytes instead of {size}"
            raise BadResponse("wrong-length", text)
        return 0, None

    def _check_etag(self, etag: str, what: str, size: int) -> None:
        """Check an ETag that is an MD5, of fixed sizes: hashing each drawn one costs too much."""
        if not etag:
            text = f"{what}: no ETag: the answer was cut off, or is not of this API"
            raise BadResponse("protocol", text)
        etag = etag.strip('"').lower()
        is_md5 = len(etag) == 32 and set(etag) <= set("0123456789abcdef")
        if is_md5 and isinstance(self._workload.objects.size, int) and etag != self._md5(size):
            text = f"{what}: the ETag {etag} is not the MD5 of what was written"
            raise BadResponse("wrong-etag", text)

    def _check_listing(self, keys: int, bucket: str) -> None:
        if not self._least_listed <= keys <= LIST_MOST:
            wanted = f"{self._least_listed} exist, and {LIST_MOST} were requested"
            raise BadResponse("bad-list", f"GET {bucket}: {keys} keys where at least {wanted}")

    def _read(
        self, client: Client, bucket: str, name: str, size: int, *, verify: bool
    ) -> tuple[int, float]:
        seen = 0
        first_byte_s = None
        for piece in client.read(bucket, name):
            if first_byte_s is None:
                first_byte_s = time.perf_counter()
            if verify and piece != content(self._setup.seed, size, seen, len(piece)):
                text = f"GET {bucket}/{name}: other bytes than were written, from {seen} on"
                raise BadResponse("wrong-content", text)
            seen += len(piece)
        if seen != size:
            error_class = "short-body" if seen < size else "wrong-content"
            text = f"GET {bucket}/{name}: {seen} bytes instead of {size}"
            raise BadResponse(error_class, text)
        return seen, first_byte_s or time.perf_counter()


def _md5(seed: int, size: int) -> str:
    made = hashlib.md5(usedforsecurity=False)
    for at in range(0, size, CHUNK_BYTES):
        made.update(content(seed, size, at, CHUNK_BYTES))
    return made.hexdigest()


# What SDK users record: for each operation an HDR histogram, exact min, max and sum, errors by
# class, and per-second series.


LOWEST_US = 1
HIGHEST_US = 3_600_000_000
DIGITS = 3


def new_histogram() -> HdrHistogram:
    """An empty histogram with every measurement's bounds: 1 us to 1 h, 3 significant digits."""
    return HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)


def encoded(histogram: HdrHistogram) -> str:
    """A histogram as V2 deflate base64."""
    return str(histogram.encode().decode("ascii"))


def _count(histogram: HdrHistogram, latency_us: int) -> None:
    histogram.record_value(min(HIGHEST_US, max(LOWEST_US, latency_us)))


@dataclass
class _Moment:
    count: int = 0
    bytes: int = 0
    errors: int = 0
    max_us: int = 0
    sum_us: int = 0
    bands: Counter[int] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)


@dataclass
class _Record:
    latency: HdrHistogram = field(default_factory=new_histogram)
    first_byte: HdrHistogram = field(default_factory=new_histogram)
    count: int = 0
    bytes: int = 0
    min_us: int = 2**63
    max_us: int = 0
    sum_us: int = 0
    in_flight: HdrHistogram = field(default_factory=new_histogram)
    in_flight_max_us: int = 0
    outstanding_us: int = 0
    failed_us: int = 0
    before_us: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    seconds: dict[int, _Moment] = field(default_factory=dict)


class Recorder:
    """Records a window's requests: whole microseconds, `at_s` from the window's opening on."""

    def __init__(self) -> None:
        self._records: dict[Operation, _Record] = {}

    def success(
        self,
        operation: Operation,
        at_s: float,
        latency_us: int,
        moved_bytes: int,
        first_byte_us: int | None,
    ) -> None:
        record = self._records.setdefault(operation, _Record())
        record.count += 1
        record.bytes += moved_bytes
        record.min_us = min(record.min_us, latency_us)
        record.max_us = max(record.max_us, latency_us)
        record.sum_us += latency_us
        record.before_us += _before(at_s, latency_us)
        _count(record.latency, latency_us)
        if first_byte_us is not None:
            _count(record.first_byte, first_byte_us)
        moment = record.seconds.setdefault(int(at_s), _Moment())
        moment.count += 1
        moment.bytes += moved_bytes
        moment.max_us = max(moment.max_us, latency_us)
        moment.sum_us += latency_us
        moment.bands[band_of(latency_us)] += 1

    def failure(self, operation: Operation, at_s: float, error_class: str, age_us: int) -> None:
        """Record a failure after `age_us`, in flight: one that timed out might have ended later."""
        record = self._records.setdefault(operation, _Record())
        record.errors[error_class] = record.errors.get(error_class, 0) + 1
        record.failed_us += age_us
        record.before_us += _before(at_s, age_us)
        if error_class == "timeout":
            _unseen(record, age_us)
        moment = record.seconds.setdefault(int(at_s), _Moment())
        moment.errors += 1
        moment.failures[error_class] += 1

    def rested(self, operation: Operation, rest_us: int) -> None:
        """Record that a worker paused after a failure, inside the window."""
        self._records.setdefault(operation, _Record()).failed_us += rest_us

    def outstanding(self, operation: Operation, at_s: float, age_us: int) -> None:
        """Record a request that was outstanding for `age_us` when the window closed, at `at_s`."""
        record = self._records.setdefault(operation, _Record())
        record.outstanding_us += age_us
        record.before_us += _before(at_s, age_us)
        _unseen(record, age_us)

    def waiting(self, operation: Operation, age_us: int) -> None:
        """Record a request that was due `age_us` before the window closed, and was not sent."""
        _unseen(self._records.setdefault(operation, _Record()), age_us)

    def tallies(self) -> tuple[Tally, ...]:
        """The complete window, by operation."""
        return tuple(
            Tally(
                operation=operation,
                count=record.count,
                bytes=record.bytes,
                errors=dict(record.errors),
                latency=_encoded_unless_empty(record.latency),
                first_byte=_encoded_unless_empty(record.first_byte),
                min_us=record.min_us if record.count else None,
                max_us=record.max_us if record.count else None,
                sum_us=record.sum_us,
                in_flight=_encoded_unless_empty(record.in_flight),
                in_flight_max_us=record.in_flight_max_us
                if record.in_flight.get_total_count()
                else None,
                outstanding_us=record.outstanding_us,
                failed_us=record.failed_us,
                before_us=record.before_us,
            )
            for operation, record in sorted(self._records.items())
        )

    def seconds(self) -> tuple[Second, ...]:
        """The window by seconds, without those in which nothing of an operation completed."""
        return tuple(
            Second(
                second=second,
                operation=operation,
                count=moment.count,
                bytes=moment.bytes,
                errors=moment.errors,
                max_us=moment.max_us,
                sum_us=moment.sum_us,
                bands=tuple(sorted(moment.bands.items())),
                failures=dict(moment.failures),
            )
            for operation, record in sorted(self._records.items())
            for second, moment in sorted(record.seconds.items())
        )


def _encoded_unless_empty(histogram: HdrHistogram) -> str | None:
    return encoded(histogram) if histogram.get_total_count() else None


def _before(at_s: float, age_us: int) -> int:
    """How much of a time that ended `at_s` after the window opened was before it, in us."""
    return max(0, age_us - round(at_s * 1e6))


def _unseen(record: _Record, age_us: int) -> None:
    _count(record.in_flight, age_us)
    record.in_flight_max_us = max(record.in_flight_max_us, age_us)


PAUSE_S = 0.01
"""After a failure: a dead target fails at once, and without a pause nothing else would run."""


@dataclass(frozen=True)
class Outcome:
    """What became of a request. `error` is the class of a failure, which moved no bytes."""

    operation: Operation
    latency_ms: float
    moved_bytes: int = 0
    error: str | None = None


@dataclass
class _Worker:
    """A worker (of how many, repeat, index) and its position in its sequence; at a rate also when
    its next request is due, and how far apart they are.
    """

    key: tuple[int, int, int]
    client: Client
    picker: Picker
    sample: random.Random
    due_s: float
    apart_s: float
    drawn: int = 0


class SdkWorkerGroup:
    """A worker group whose requests Locust's users make by an SDK, one after the other."""

    def __init__(self, setup: Setup, account: Account, workload: Workload, workers: int) -> None:
        self.workload = workload
        self._setup = setup
        self._account = account
        self._workload_json = workload.model_dump_json()
        self._requests = SdkRequests(setup, workload)
        self._client = clients(setup, account, workload, workers)
        self._workers: dict[int, _Worker] = {}
        self._deleting: list[gevent.Greenlet] = []
        # For each worker with an outstanding request, its operation and (intended) start.
        self._in_hand: dict[int, tuple[Operation, float]] = {}
        self._started: set[int] = set()
        self._exhausted = 0
        self._errors: dict[str, int] = {}
        self._last_error: str | None = None
        self._done = self._failed = self._bytes = 0
        self._recorder: Recorder | None = None
        self._opened_s = self._closed_s = 0.0
        self._open = False
        self._begun, self._behind_s = 0, 0.0

    def add_worker(self, index: int, of: int, repeat: int) -> None:
        """See WorkerGroup. Its user makes its requests."""
        rate = self.workload.rate_per_s
        apart_s = of / rate if rate else 0.0
        self._workers[index] = _Worker(
            key=(of, repeat, index),
            client=self._client(),
            picker=Picker(self._workload_json, self._setup.seed, of, repeat, index),
            # Separate from the sequence, which must not depend on what is verified.
            sample=random.Random(f"{self._setup.seed} {self.workload.name} {of} {repeat} {index}"),  # noqa: S311 - not for secrets
            due_s=time.perf_counter() + apart_s * index / of,
            apart_s=apart_s,
        )

    def remove_worker(self, index: int) -> None:
        """See WorkerGroup. Its user has ended, and may have cut its request off."""
        self._workers.pop(index, None)

    def wait_s(self, index: int) -> float:
        """Seconds until a worker's next request is due: 0 but at a rate."""
        worker = self._workers.get(index)
        if worker is None or not self.workload.rate_per_s:
            return 0.0
        return max(0.0, worker.due_s - time.perf_counter())

    def request(self, index: int) -> Outcome | None:
        """Make a worker's next request; None when it has none left, or has been removed."""
        worker = self._workers.get(index)
        if worker is None:
            return None
        try:
            request = worker.picker.next()
        except StopIteration:
            self._exhausted += 1
            self._started.add(index)
            return None
        start_s = time.perf_counter()
        if self.workload.rate_per_s:
            # Open loop: latency counts from when the request was due.
            gevent.sleep(self.wait_s(index))
            start_s = worker.due_s
            worker.due_s += worker.apart_s
            self._begun += self._open
        worker.drawn += 1
        self._in_hand[index] = (cast("Operation", request[0]), start_s)
        verify = worker.sample.random() < self.workload.verify
        outcome = self._one(worker, start_s, request, verify=verify)
        self._started.add(index)
        return outcome

    def open_window(self) -> None:
        self._recorder, self._open, self._opened_s = Recorder(), True, time.perf_counter()
        self._begun, self._behind_s = 0, 0.0

    def close_window(self) -> None:
        if self._open and self._recorder is not None:
            self._open, self._closed_s = False, time.perf_counter()
            self._take_census(self._recorder, self._closed_s)

    def _take_census(self, recorder: Recorder, closed_s: float) -> None:
        """Record the age of outstanding requests, and at a rate of due requests not yet sent."""
        at_s = closed_s - self._opened_s
        for operation, start_s in self._in_hand.values():
            recorder.outstanding(operation, at_s, round((closed_s - start_s) * 1e6))
        if not self.workload.rate_per_s:
            return
        for worker in self._workers.values():
            late = math.ceil((closed_s - worker.due_s) / worker.apart_s)
            if late <= 0:
                continue
            self._behind_s = max(self._behind_s, closed_s - worker.due_s)
            picker = Picker(self._workload_json, self._setup.seed, *worker.key)
            for number, operation in enumerate(
                islice(_operations(picker), worker.drawn, worker.drawn + late)
            ):
                waited_s = closed_s - worker.due_s - number * worker.apart_s
                recorder.waiting(operation, round(waited_s * 1e6))

    def stop(self, timeout_s: float) -> int:
        """See WorkerGroup. Locust has stopped the users: what is outstanding was cut off."""
        gevent.killall(self._deleting, block=True)
        self._workers.clear()
        return len(self._in_hand)

    def renew(self, account: Account) -> None:
        """See WorkerGroup. The clients read the account's token for each request."""

    def progress(self) -> WorkerProgress:
        deleting = sum(not greenlet.dead for greenlet in self._deleting)
        return WorkerProgress(
            started=len(self._started),
            running=len(self._workers) + deleting,
            exhausted=self._exhausted,
            done=self._done,
            failed=self._failed,
            bytes=self._bytes,
            errors=dict(self._errors),
            last_error=self._last_error,
        )

    def snapshot(self) -> Window:
        if self._recorder is None:
            return Window(tallies=(), seconds=(), window_s=0.0)
        end_s = time.perf_counter() if self._open else self._closed_s
        paced = self.workload.rate_per_s is not None
        return Window(
            tallies=self._recorder.tallies(),
            seconds=self._recorder.seconds(),
            window_s=end_s - self._opened_s,
            begun=self._begun if paced else None,
            behind_us=round(self._behind_s * 1e6) if paced else None,
        )

    def delete_written(self, parallel: int) -> None:
        left = list(self._requests.written)
        self._deleting = [
            gevent.spawn(self._delete_share, left[number::parallel]) for number in range(parallel)
        ]

    def _delete_share(self, share: list[tuple[str, str]]) -> None:
        client = self._client()
        for bucket, name in share:
            try:
                client.delete(bucket, name)
            except Exception as error:  # noqa: BLE001 - SDKs raise all kinds; each is counted by class
                if class_of(client, error) != "http-404":
                    self._fail(client, error)
                    continue
            self._done += 1
            self._requests.written.pop((bucket, name), None)

    def _one(
        self,
        worker: _Worker,
        start_s: float,
        request: tuple[str, int, int, int],
        *,
        verify: bool,
    ) -> Outcome:
        operation, index = cast("Operation", request[0]), worker.key[2]
        try:
            moved_bytes, first_byte_s = self._requests.make(
                worker.client, worker.key, request, verify=verify
            )
        except Exception as error:  # noqa: BLE001 - SDKs raise all kinds; each is counted by class
            end_s = time.perf_counter()
            error_class = self._fail(worker.client, error)
            self._in_hand.pop(index, None)
            counts = self._recorder if self._open else None
            if counts is not None:
                counts.failure(
                    operation, end_s - self._opened_s, error_class, round((end_s - start_s) * 1e6)
                )
            gevent.sleep(PAUSE_S)
            if counts is not None and counts is self._recorder:
                rested_s = (time.perf_counter() if self._open else self._closed_s) - end_s
                counts.rested(operation, round(rested_s * 1e6))
            return Outcome(operation, (end_s - start_s) * 1000, error=error_class)
        end_s = time.perf_counter()
        self._in_hand.pop(index, None)
        self._done += 1
        self._bytes += moved_bytes
        if self._open and self._recorder is not None:
            first_us = None if first_byte_s is None else round((first_byte_s - start_s) * 1e6)
            self._recorder.success(
                operation,
                end_s - self._opened_s,
                round((end_s - start_s) * 1e6),
                moved_bytes,
                first_us,
            )
        return Outcome(operation, (end_s - start_s) * 1000, moved_bytes)

    def _fail(self, client: Client, error: Exception) -> str:
        error_class = class_of(client, error)
        self._failed += 1
        self._errors[error_class] = self._errors.get(error_class, 0) + 1
        # Messages of SDKs and of libraries below them may repeat what was sent.
        text = redacted(str(error), self._account.secrets)
        self._last_error = f"{type(error).__name__}: {text[:200]}"
        return error_class


def _operations(picker: Picker) -> Iterator[Operation]:
    while True:
        try:
            yield cast("Operation", picker.next()[0])
        except StopIteration:
            return
