"""SDK users: workers that are greenlets and call boto3 or python-swiftclient, as a Python
application would.

They make the very sequence of requests that the native engine makes.
"""

from __future__ import annotations

import functools
import hashlib
import math
import random
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import cast

import gevent

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
)
from weighbridge.drivers.locust.recorder import Recorder
from weighbridge.drivers.locust.worker_group import Window, WorkerProgress
from weighbridge.drivers.order import Setup
from weighbridge.suites import Operation, Workload

WHOLE_BYTES = 8 * 2**20
"""Bodies up to this size are bytes in memory, larger ones are files."""


@dataclass
class WorkerPace:
    """How far one worker is with its sequence; at a rate also when its next request is meant to
    start.
    """

    of: int
    repeat: int
    due_s: float
    apart_s: float
    drawn: int = 0


class Wrong(Exception):
    """An answer that is not what was asked for; `error_class` is its class."""

    def __init__(self, error_class: str, message: str) -> None:
        super().__init__(message)
        self.error_class = error_class


class SdkCrew:
    """A crew whose workers are greenlets that call an SDK."""

    def __init__(self, setup: Setup, account: Account, workload: Workload, workers: int) -> None:
        self._setup = setup
        self._account = account
        self._workload = workload
        self._workload_json = workload.model_dump_json()
        if setup.target.api == "s3":
            shared = S3Client(setup, account, max(1, workers))
            self._client: Callable[[], Client] = lambda: shared
        else:
            self._client = lambda: SwiftClient(setup, account)
        # A body is the same for all objects of a size, so a few of them do for a whole step.
        self._body = functools.lru_cache(maxsize=4)(lambda size: content(setup.seed, size, 0, size))
        self._greenlets: dict[int, gevent.Greenlet] = {}
        self._leaving: set[int] = set()
        # Of each worker with a request in hand its operation and its (intended) start.
        self._in_hand: dict[int, tuple[Operation, float]] = {}
        self._paces: dict[int, WorkerPace] = {}
        objects = workload.objects
        # Prepared objects are there, unless the workload deletes them.
        deletes = "delete" in workload.operations and not {"read", "head"} & set(
            workload.operations
        )
        self._least_listed = 0 if deletes else min(objects.per_container, LIST_MOST)
        self._md5 = functools.lru_cache(maxsize=1)(functools.partial(_md5, setup.seed))
        if "write" in workload.operations and isinstance(objects.size, int):
            self._md5(objects.size)
        self._started: set[int] = set()
        self._exhausted = 0
        self._errors: dict[str, int] = {}
        self._last_error: str | None = None
        self._done = self._failed = self._bytes = 0
        self._written: dict[tuple[str, str], None] = {}
        self._recorder: Recorder | None = None
        self._opened_s = self._closed_s = 0.0
        self._open = False
        self._begun, self._behind_s = 0, 0.0

    def add_worker(self, index: int, of: int, repeat: int) -> None:
        """See Crew."""
        self._greenlets[index] = gevent.spawn(self._work, index, of, repeat)

    def remove_worker(self, index: int) -> None:
        """See Crew."""
        self._leaving.add(index)

    def open_window(self) -> None:
        """See Crew."""
        self._recorder, self._open, self._opened_s = Recorder(), True, time.perf_counter()
        self._begun, self._behind_s = 0, 0.0

    def close_window(self) -> None:
        """See Crew."""
        if self._open and self._recorder is not None:
            self._open, self._closed_s = False, time.perf_counter()
            self._take_census(self._recorder, self._closed_s)

    def _take_census(self, recorder: Recorder, closed_s: float) -> None:
        """Record how long what is outstanding, and at a rate what has not been sent, had been
        waited for.
        """
        at_s = closed_s - self._opened_s
        for index, (operation, start_s) in self._in_hand.items():
            if index not in self._leaving:
                recorder.outstanding(operation, at_s, round((closed_s - start_s) * 1e6))
        if not self._workload.rate_per_s:
            return
        for index, pace in self._paces.items():
            late = math.ceil((closed_s - pace.due_s) / pace.apart_s)
            if late <= 0 or index in self._leaving:
                continue
            self._behind_s = max(self._behind_s, closed_s - pace.due_s)
            picker = Picker(self._workload_json, self._setup.seed, pace.of, pace.repeat, index)
            for number, operation in enumerate(
                islice(_operations(picker), pace.drawn, pace.drawn + late)
            ):
                recorder.waiting(
                    operation, round((closed_s - pace.due_s - number * pace.apart_s) * 1e6)
                )

    def stop(self, timeout_s: float) -> int:
        """See Crew."""
        self._leaving.update(self._greenlets)
        gevent.joinall(list(self._greenlets.values()), timeout=timeout_s)
        cut = len(self._in_hand)
        gevent.killall(list(self._greenlets.values()), block=True)
        return cut

    def renew(self, account: Account) -> None:
        """See Crew. Its clients ask the account for the token each time."""

    def pulse(self) -> WorkerProgress:
        """See Crew."""
        running = sum(not greenlet.dead for greenlet in self._greenlets.values())
        return WorkerProgress(
            started=len(self._started),
            running=running,
            exhausted=self._exhausted,
            done=self._done,
            failed=self._failed,
            bytes=self._bytes,
            errors=dict(self._errors),
            last_error=self._last_error,
        )

    def snapshot(self) -> Window:
        """See Crew."""
        if self._recorder is None:
            return Window(tallies=(), seconds=(), window_s=0.0)
        end_s = time.perf_counter() if self._open else self._closed_s
        paced = self._workload.rate_per_s is not None
        return Window(
            tallies=self._recorder.tallies(),
            seconds=self._recorder.seconds(),
            window_s=end_s - self._opened_s,
            begun=self._begun if paced else None,
            behind_us=round(self._behind_s * 1e6) if paced else None,
        )

    def delete_written(self, parallel: int) -> None:
        """See Crew."""
        left = list(self._written)
        for number in range(min(parallel, len(left))):
            self._greenlets[-1 - number] = gevent.spawn(self._delete_share, left[number::parallel])

    def _delete_share(self, share: list[tuple[str, str]]) -> None:
        client = self._client()
        for bucket, name in share:
            try:
                client.delete(bucket, name)
            except Exception as error:  # noqa: BLE001 - SDKs raise all kinds; each is counted by its class
                if self._class_of(client, error) != "http-404":
                    self._fail(client, error)
                    continue
            self._done += 1
            self._written.pop((bucket, name), None)

    def _work(self, index: int, of: int, repeat: int) -> None:
        client = self._client()
        picker = Picker(self._workload_json, self._setup.seed, of, repeat, index)
        rate = self._workload.rate_per_s
        pace_s = of / rate if rate else 0.0
        pace = self._paces[index] = WorkerPace(
            of, repeat, time.perf_counter() + pace_s * index / of, pace_s
        )
        # A stream of its own: looking closely at some changes nothing of the sequence.
        sample = random.Random(f"{self._setup.seed} {self._workload.name} {of} {repeat} {index}")  # noqa: S311 - not for secrets
        while index not in self._leaving:
            try:
                request = picker.next()
            except StopIteration:
                self._exhausted += 1
                self._started.add(index)
                return
            start_s = time.perf_counter()
            if rate:
                # An open clock: what is late counts from when it was meant to begin.
                gevent.sleep(max(0.0, pace.due_s - start_s))
                start_s = pace.due_s
                pace.due_s += pace_s
                self._begun += self._open and index not in self._leaving
            pace.drawn += 1
            self._in_hand[index] = (cast("Operation", request[0]), start_s)
            self._one(
                client,
                start_s,
                (of, repeat, index),
                request,
                verify=sample.random() < self._workload.verify,
            )
            self._in_hand.pop(index, None)
            self._started.add(index)
            # Greenlets give way only when they wait: without this one that is never kept waiting
            # would keep all others waiting.
            gevent.sleep(0)

    def _one(
        self,
        client: Client,
        start_s: float,
        whose: tuple[int, int, int],
        request: tuple[str, int, int, int],
        *,
        verify: bool,
    ) -> None:
        operation, container, number, size = cast("tuple[Operation, int, int, int]", request)
        bucket = f"{self._setup.bucket_prefix}-{self._workload.name}-{container}"
        # A delete of what the worker itself wrote has its number as -1 - number.
        own = operation == "write" or number < 0
        name = (
            written_name(*whose, number if number >= 0 else -1 - number)
            if own
            else object_name(number)
        )
        moved_bytes, first_byte_s = 0, None
        try:
            if operation == "read":
                moved_bytes, first_byte_s = self._read(client, bucket, name, size, verify=verify)
            elif operation == "write":
                # Noted before: one whose answer is lost may be there all the same.
                self._written[bucket, name] = None
                etag = client.write(
                    bucket,
                    name,
                    self._body(size) if size <= WHOLE_BYTES else Body(self._setup.seed, size),
                    size,
                )
                self._check_etag(etag, f"PUT {bucket}/{name}", size)
                moved_bytes = size
            elif operation == "delete":
                client.delete(bucket, name)
                self._written.pop((bucket, name), None)
            elif operation == "list":
                self._check_listing(client.list(bucket), bucket)
            elif (seen := client.head(bucket, name)) != size:
                raise Wrong("wrong-length", f"HEAD {bucket}/{name}: {seen} bytes instead of {size}")  # noqa: TRY301
        except Exception as error:  # noqa: BLE001 - SDKs raise all kinds; each is counted by its class
            end_s = time.perf_counter()
            error_class = self._fail(client, error)
            self._in_hand.pop(whose[2], None)
            counts = self._counts(whose[2])
            if counts is not None:
                counts.failure(
                    operation, end_s - self._opened_s, error_class, round((end_s - start_s) * 1e6)
                )
            # A dead target answers at once, and so often that nothing else would run.
            gevent.sleep(0.01)
            if counts is not None and counts is self._recorder:
                rested_s = (time.perf_counter() if self._open else self._closed_s) - end_s
                counts.rested(operation, round(rested_s * 1e6))
            return
        end_s = time.perf_counter()
        self._done += 1
        self._bytes += moved_bytes
        if (counts := self._counts(whose[2])) is not None:
            first_us = None if first_byte_s is None else round((first_byte_s - start_s) * 1e6)
            counts.success(
                operation,
                end_s - self._opened_s,
                round((end_s - start_s) * 1e6),
                moved_bytes,
                first_us,
            )

    def _counts(self, index: int) -> Recorder | None:
        """Where a request of a worker that ends now is recorded, if at all."""
        return self._recorder if self._open and index not in self._leaving else None

    def _check_etag(self, etag: str, what: str, size: int) -> None:
        """Where it is an MD5, it is that of the body.

        Of drawn sizes that is not known: to hash each would cost a lot.
        """
        if not etag:
            raise Wrong(
                "protocol", f"{what}: the answer has no ETag: it broke off, or is none of this API"
            )
        told = etag.strip('"').lower()
        is_md5 = len(told) == 32 and set(told) <= set("0123456789abcdef")
        if is_md5 and isinstance(self._workload.objects.size, int) and told != self._md5(size):
            raise Wrong("wrong-etag", f"{what}: the ETag {told} is not the MD5 of what was written")

    def _check_listing(self, keys: int, bucket: str) -> None:
        if not self._least_listed <= keys <= LIST_MOST:
            wanted = f"{self._least_listed} are there, and {LIST_MOST} were asked for"
            raise Wrong("bad-list", f"GET {bucket}: {keys} keys where at least {wanted}")

    def _read(
        self, client: Client, bucket: str, name: str, size: int, *, verify: bool
    ) -> tuple[int, float]:
        """Bytes read, and when the first of them came."""
        seen = 0
        first_byte_s = None
        for piece in client.read(bucket, name):
            if first_byte_s is None:
                first_byte_s = time.perf_counter()
            if verify and piece != content(self._setup.seed, size, seen, len(piece)):
                raise Wrong(
                    "wrong-content",
                    f"GET {bucket}/{name}: other bytes than were written, from {seen} on",
                )
            seen += len(piece)
        if seen < size:
            raise Wrong("short-body", f"GET {bucket}/{name}: {seen} bytes instead of {size}")
        if seen > size:
            raise Wrong("wrong-content", f"GET {bucket}/{name}: {seen} bytes instead of {size}")
        return seen, first_byte_s or time.perf_counter()

    def _fail(self, client: Client, error: Exception) -> str:
        error_class = self._class_of(client, error)
        self._failed += 1
        self._errors[error_class] = self._errors.get(error_class, 0) + 1
        # What SDKs and the libraries below them say may repeat what was sent.
        said = redacted(str(error), (*self._setup.secrets, self._account.token))
        self._last_error = f"{type(error).__name__}: {said[:200]}"
        return error_class

    @staticmethod
    def _class_of(client: Client, error: Exception) -> str:
        return (
            error.error_class
            if isinstance(error, Wrong)
            else client.classify(error) or way_class(error)
        )


def _operations(picker: Picker) -> Iterator[Operation]:
    """What a worker asks for, one after the other, until nothing is left to delete."""
    while True:
        try:
            yield cast("Operation", picker.next()[0])
        except StopIteration:
            return


def _md5(seed: int, size: int) -> str:
    """MD5 of the content of an object of `size` bytes, in hexadecimal digits."""
    made = hashlib.md5(usedforsecurity=False)
    for at in range(0, size, CHUNK_BYTES):
        made.update(content(seed, size, at, CHUNK_BYTES))
    return made.hexdigest()


def way_class(error: BaseException) -> str:
    """The class of an error on the way to the target or back, by the causes it carries:

    SDKs wrap them many times over.
    """
    names: set[str] = set()
    queue: list[object] = [error]
    seen: list[object] = []
    while queue:
        one = queue.pop()
        if not isinstance(one, BaseException) or any(one is other for other in seen):
            continue
        seen.append(one)
        names.update(kind.__name__ for kind in type(one).__mro__)
        queue += [one.__cause__, one.__context__, getattr(one, "reason", None), *one.args]
    connect = {
        "ConnectionRefusedError",
        "NewConnectionError",
        "ConnectTimeoutError",
        "ConnectTimeout",
        "EndpointConnectionError",
    }
    if names & {*connect, socket.gaierror.__name__}:
        return "connect"
    if names & {"TimeoutError", "ReadTimeoutError", "ReadTimeout", "Timeout"}:
        return "timeout"
    if names & {"IncompleteRead", "IncompleteReadError"}:
        return "short-body"
    if "BadStatusLine" in names and "RemoteDisconnected" not in names:
        # something was said, and it was no HTTP; boto3 calls that a connection that was closed
        return "protocol"
    if names & {
        "ConnectionResetError",
        "BrokenPipeError",
        "ConnectionAbortedError",
        "RemoteDisconnected",
        "ConnectionClosedError",
    }:
        return "reset"
    return "protocol"
