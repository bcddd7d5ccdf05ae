"""SDK users: workers that are greenlets and call boto3 or python-swiftclient, as a Python
application would.

They make the same sequence of requests as the native engine.
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


@dataclass
class WorkerPace:
    """A worker's position in its sequence; at a rate also when its next request is due."""

    of: int
    repeat: int
    due_s: float
    apart_s: float
    drawn: int = 0


class SdkWorkerGroup:
    """A worker group whose workers are greenlets that call an SDK."""

    def __init__(self, setup: Setup, account: Account, workload: Workload, workers: int) -> None:
        self._setup = setup
        self._account = account
        self._workload = workload
        self._workload_json = workload.model_dump_json()
        self._requests = SdkRequests(setup, workload)
        self._client = clients(setup, account, workload, workers)
        self._greenlets: dict[int, gevent.Greenlet] = {}
        self._leaving: set[int] = set()
        # For each worker with an outstanding request, its operation and (intended) start.
        self._in_hand: dict[int, tuple[Operation, float]] = {}
        self._paces: dict[int, WorkerPace] = {}
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
        """See WorkerGroup."""
        self._greenlets[index] = gevent.spawn(self._work, index, of, repeat)

    def remove_worker(self, index: int) -> None:
        """See WorkerGroup."""
        self._leaving.add(index)

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
        """See WorkerGroup."""
        self._leaving.update(self._greenlets)
        gevent.joinall(list(self._greenlets.values()), timeout=timeout_s)
        cut = len(self._in_hand)
        gevent.killall(list(self._greenlets.values()), block=True)
        return cut

    def renew(self, account: Account) -> None:
        """See WorkerGroup. The clients read the account's token for each request."""

    def progress(self) -> WorkerProgress:
        """See WorkerGroup."""
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
        """See WorkerGroup."""
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
        """See WorkerGroup."""
        left = list(self._requests.written)
        for number in range(min(parallel, len(left))):
            self._greenlets[-1 - number] = gevent.spawn(self._delete_share, left[number::parallel])

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

    def _work(self, index: int, of: int, repeat: int) -> None:
        client = self._client()
        picker = Picker(self._workload_json, self._setup.seed, of, repeat, index)
        rate = self._workload.rate_per_s
        pace_s = of / rate if rate else 0.0
        pace = self._paces[index] = WorkerPace(
            of, repeat, time.perf_counter() + pace_s * index / of, pace_s
        )
        # Separate from the sequence, which must not depend on what is verified.
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
                # Open loop: latency counts from when the request was due.
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
            # Greenlets switch only when they wait: without this, one that never has to would
            # starve all others.
            gevent.sleep(0)

    def _one(
        self,
        client: Client,
        start_s: float,
        worker: tuple[int, int, int],
        request: tuple[str, int, int, int],
        *,
        verify: bool,
    ) -> None:
        operation = cast("Operation", request[0])
        try:
            moved_bytes, first_byte_s = self._requests.make(client, worker, request, verify=verify)
        except Exception as error:  # noqa: BLE001 - SDKs raise all kinds; each is counted by class
            end_s = time.perf_counter()
            error_class = self._fail(client, error)
            self._in_hand.pop(worker[2], None)
            counts = self._counts(worker[2])
            if counts is not None:
                counts.failure(
                    operation, end_s - self._opened_s, error_class, round((end_s - start_s) * 1e6)
                )
            # A dead target fails at once: without a pause nothing else would run.
            gevent.sleep(0.01)
            if counts is not None and counts is self._recorder:
                rested_s = (time.perf_counter() if self._open else self._closed_s) - end_s
                counts.rested(operation, round(rested_s * 1e6))
            return
        end_s = time.perf_counter()
        self._done += 1
        self._bytes += moved_bytes
        if (counts := self._counts(worker[2])) is not None:
            first_us = None if first_byte_s is None else round((first_byte_s - start_s) * 1e6)
            counts.success(
                operation,
                end_s - self._opened_s,
                round((end_s - start_s) * 1e6),
                moved_bytes,
                first_us,
            )

    def _counts(self, index: int) -> Recorder | None:
        """The recorder of a worker's request that ends now, if it is recorded."""
        return self._recorder if self._open and index not in self._leaving else None

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
