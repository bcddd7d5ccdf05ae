"""Load of SDK users of an ordinary locustfile: each request is a task of Locust's user."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

import gevent

from weighbridge.drivers.engine._native import Picker
from weighbridge.drivers.locust.account import account_at
from weighbridge.drivers.locust.live_load import MOST_PROCESSES, NUMBERS
from weighbridge.drivers.locust.sdk_requests import SdkRequests, class_of, clients
from weighbridge.drivers.locust.worker_process import RENEW_APART_S
from weighbridge.drivers.protocol import Setup
from weighbridge.suites import Workload

MOST_CONNECTIONS = 4096
PAUSE_S = 0.01
"""After a failure: a dead target fails at once, and without a pause nothing else would run."""


@dataclass(frozen=True)
class Outcome:
    """What became of a request. `error` is the class of a failure, which moved no bytes."""

    operation: str
    latency_ms: float
    moved_bytes: int = 0
    error: str | None = None


class SdkLoad:
    """What the users of one class and process share in a test; `rank` and `repeat` as of LiveLoad.

    Raises DriverError when the target does not let it in.
    """

    def __init__(self, setup: Setup, workload: Workload, *, rank: int, repeat: int) -> None:
        self.account = account_at(setup)
        self.account.authenticate()
        self.seed, self.workload, self.repeat = setup.seed, workload, repeat
        self.requests = SdkRequests(setup, workload)
        self.client = clients(setup, self.account, workload, MOST_CONNECTIONS)
        self._renewed_s = time.monotonic()
        self._next = rank % MOST_PROCESSES

    def worker(self) -> SdkWorker:
        """The next worker."""
        index = self._next
        self._next += MOST_PROCESSES
        return SdkWorker(self, index)

    def renew(self) -> None:
        """Get a new token, if the last one is not too new. Raises DriverError."""
        if self.account.renewable and time.monotonic() - self._renewed_s > RENEW_APART_S:
            self._renewed_s = time.monotonic()
            self.account.authenticate()

    def close(self, patience_s: float) -> None:
        """Nothing: Locust has stopped its users, with their requests."""

    def delete_written(self) -> None:
        """Nothing: what they wrote is deleted with its bucket."""


class SdkWorker:
    """One worker: it makes one request after the other."""

    def __init__(self, load: SdkLoad, index: int) -> None:
        self._load = load
        self._worker = (NUMBERS, load.repeat, index)
        self._client = load.client()
        self._picker = Picker(load.workload.model_dump_json(), load.seed, *self._worker)
        self._sample = random.Random(f"{load.seed} {load.workload.name} {self._worker}")  # noqa: S311 - not for secrets

    def request(self) -> Outcome:
        """Make the next request. Raises DriverError if a token that was refused is not renewed."""
        request = self._picker.next()
        verify = self._sample.random() < self._load.workload.verify
        began_s = time.perf_counter()
        try:
            moved_bytes, _ = self._load.requests.make(
                self._client, self._worker, request, verify=verify
            )
        except Exception as error:  # noqa: BLE001 - SDKs raise all kinds; each is counted by class
            latency_ms = (time.perf_counter() - began_s) * 1000
            # Not the message: it may repeat what was sent.
            error_class = class_of(self._client, error)
            if error_class == "http-401":
                self._load.renew()
            gevent.sleep(PAUSE_S)
            return Outcome(request[0], latency_ms, error=error_class)
        return Outcome(request[0], (time.perf_counter() - began_s) * 1000, moved_bytes)
