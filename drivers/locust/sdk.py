"""The workers of SDK users, which call boto3 or python-swiftclient as a Python application would.

Each request is a task of Locust's user. They make the same sequence of requests as the native
engine.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import cast

import gevent

from weighbridge.common.credential import redacted
from weighbridge.drivers.engine._native import Picker
from weighbridge.drivers.locust.account import Account
from weighbridge.drivers.locust.client import Client
from weighbridge.drivers.locust.recorder import Recorder
from weighbridge.drivers.locust.sdk_requests import SdkRequests, class_of, clients
from weighbridge.drivers.locust.worker_group import Window, WorkerProgress
from weighbridge.drivers.protocol import Setup
from weighbridge.suites import Operation, Workload

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
        """See WorkerGroup."""
        self._recorder, self._open, self._opened_s = Recorder(), True, time.perf_counter()
        self._begun, self._behind_s = 0, 0.0

    def close_window(self) -> None:
        """See WorkerGroup."""
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
        """See WorkerGroup."""
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
        """See WorkerGroup."""
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
        """See WorkerGroup."""
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
    """A worker's operations in sequence, until nothing is left to delete."""
    while True:
        try:
            yield cast("Operation", picker.next()[0])
        except StopIteration:
            return
