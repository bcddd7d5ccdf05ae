"""The workers of one process for one step: their protocol, their records, the native engine's."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Protocol

import gevent
from pydantic import Field, NonNegativeFloat, NonNegativeInt

from weighbridge.common import plain_xml
from weighbridge.common.credential import redacted
from weighbridge.common.record import Record
from weighbridge.drivers.engine._native import Engine
from weighbridge.drivers.locust.account import Account
from weighbridge.drivers.protocol import Setup
from weighbridge.results.run.step import (
    EndpointTally,
    ErrorClass,
    Second,
    Tally,
)
from weighbridge.suites import Workload


class WorkerProgress(Record):
    """The progress of a worker group since it was created, recorded or not."""

    started: NonNegativeInt = 0
    """Workers that have finished their first request."""
    running: NonNegativeInt = 0
    """Workers that have not ended."""
    exhausted: NonNegativeInt = 0
    """Workers that ran out of objects to delete."""
    done: NonNegativeInt = 0
    failed: NonNegativeInt = 0
    bytes: NonNegativeInt = 0
    errors: dict[ErrorClass, NonNegativeInt] = Field(default_factory=dict)
    last_error: str | None = None
    """Status and first bytes of the last failed answer, for people."""


class Window(Record):
    """What a worker group recorded from the opening to the closing of its window."""

    tallies: tuple[Tally, ...]
    seconds: tuple[Second, ...]
    window_s: NonNegativeFloat
    begun: NonNegativeInt | None = None
    """At a rate: requests sent inside the window."""
    behind_us: NonNegativeInt | None = None
    """At a rate: by how much the latest worker was behind its schedule when the window closed."""
    connections: NonNegativeInt | None = None
    """Connections made inside the window; None of SDKs."""
    stall_us: NonNegativeInt | None = None
    """The longest time that a worker waited for a success, over all its tries; None of SDKs."""
    endpoints: tuple[EndpointTally, ...] = ()
    """Each of several endpoints; empty for a single one."""
    cpu_s: NonNegativeFloat = 0.0
    """CPU seconds of the group's process in the window."""
    cpu_limit: NonNegativeFloat = 0.0
    """CPUs that all of the driver's processes on its host may use together; 0: unknown."""
    note: str = ""
    """Why `cpu_limit` is not its host's quota, if it is not."""


class WorkerGroup(Protocol):
    """The workers of one process, closed loops or open ones at a rate, each with one request."""

    def add_worker(self, index: int, of: int, repeat: int) -> None:
        """Start worker `index` of the step's `of` workers."""

    def remove_worker(self, index: int) -> None:
        """Let a worker complete its outstanding request and end; returns at once."""

    def open_window(self) -> None:
        """Record what completes from now on."""

    def close_window(self) -> None:
        """Stop recording, except for the age of requests that are outstanding now."""

    def stop(self, timeout_s: float) -> int:
        """End all workers; returns how many had an outstanding request cut off."""

    def renew(self, account: Account) -> None:
        """Use the account's present token or keys from now on."""

    def progress(self) -> WorkerProgress:
        """Its progress."""

    def snapshot(self) -> Window:
        """What was recorded in the window so far."""

    def delete_written(self, parallel: int) -> None:
        """Start deleting what its workers wrote and did not delete; `running` is 0 when done."""


class NativeWorkerGroup:
    """Workers of the native engine."""

    def __init__(self, setup: Setup, account: Account, workload: Workload, cpus: float) -> None:
        self._account = account
        self._engine = Engine(
            engine_config(setup, account, workload, threads=max(1, math.ceil(cpus)))
        )
        self.add_worker, self.remove_worker = self._engine.add_worker, self._engine.remove_worker
        self.open_window, self.close_window = self._engine.open_window, self._engine.close_window

    def stop(self, timeout_s: float) -> int:
        """See WorkerGroup. Waits in a native thread, so that greenlets go on."""
        return int(gevent.get_hub().threadpool.apply(self._engine.stop, (timeout_s,)))

    def renew(self, account: Account) -> None:
        self._account = account
        self._engine.renew_keys(account.keys)

    def progress(self) -> WorkerProgress:
        progress = {**json.loads(self._engine.progress()), "started": self._engine.started()}
        if said := progress["last_error"]:
            # The engine's own search is for plain ones.
            said = redacted(said, self._account.secrets)
            status, mark, body = said.partition("<")  # of an answer in XML
            progress["last_error"] = status + plain_xml.error_words((mark + body).encode())
        return WorkerProgress.model_validate(progress)

    def snapshot(self) -> Window:
        return Window.model_validate_json(self._engine.snapshot())

    def prepare(
        self, first: int, count: int, parallel: int, stride: int = 1, version: int | None = None
    ) -> None:
        """Write `count` objects from `first` on, or versions; `running` is 0 when done."""
        self._engine.prepare(first, count, stride, parallel, version)

    def know_versions(self, ids: Sequence[str]) -> None:
        """Give it the IDs of the prepared versions: of object 0 from the oldest on, of 1, ..."""
        self._engine.know_versions(list(ids))

    def delete_prepared(self, parallel: int) -> None:
        self._engine.delete("objects", parallel)

    def delete_listed(self, numbers: Sequence[int], parallel: int) -> None:
        self._engine.delete_listed(list(numbers), parallel)

    def delete_written(self, parallel: int) -> None:
        self._engine.delete("written", parallel)


def engine_config(setup: Setup, account: Account, workload: Workload, *, threads: int) -> str:
    """The engine's configuration (see drivers/engine/_native.pyi)."""
    s3 = setup.api == "s3"
    return json.dumps(
        {
            "api": setup.api,
            "host": account.host,
            "port": account.port,
            "tls": account.tls,
            "ca_file": setup.target.ca_file,
            "base_path": account.base_path,
            "access_key": account.keys[0] if s3 else "",
            "secret_key": account.keys[1] if s3 else "",
            "region": setup.target.region,
            "addressing": setup.target.addressing,
            "token": account.token,
            "endpoints": [asdict(place) for place in account.places()],
            "spread": setup.target.spreading.spread,
            "drop_dead": setup.target.spreading.drop_dead,
            "ring": None if setup.ring is None else setup.ring.model_dump(mode="json"),
            "bucket_prefix": setup.bucket_prefix,
            "request_timeout_s": setup.request_timeout_s,
            "threads": threads,
            "verify": workload.verify,
            "seed": setup.seed,
            "workload": workload.model_dump(mode="json"),
        }
    )
