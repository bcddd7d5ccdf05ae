"""A crew: the workers of one process for one step, whoever makes their requests; and what it tells
about itself.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Protocol

import gevent
from pydantic import Field, NonNegativeFloat, NonNegativeInt

from weighbridge.common.record import Record
from weighbridge.drivers.engine._native import Engine
from weighbridge.drivers.locust.account import Account
from weighbridge.drivers.order import Setup
from weighbridge.results.record.measurement import ErrorClass, Second, Tally
from weighbridge.suites import Workload


class WorkerProgress(Record):
    """How a crew is getting on, since it was made, whether recorded or not."""

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
    """Status and first bytes of the last answer that was a failure, for people."""


class Window(Record):
    """What a crew recorded between the opening and the closing of its window."""

    tallies: tuple[Tally, ...]
    seconds: tuple[Second, ...]
    window_s: NonNegativeFloat
    begun: NonNegativeInt | None = None
    """At a rate: requests sent inside the window."""
    behind_us: NonNegativeInt | None = None
    """At a rate: how far the latest worker was behind its intended starts when the window closed.
    """
    cpu_s: NonNegativeFloat = 0.0
    """CPU seconds of the crew's process inside the window."""
    cpu_limit: NonNegativeFloat = 0.0
    """CPUs that it may use together with all others of the driver on its host; 0: it was not told.
    """
    note: str = ""
    """Why that is not its host's quota, where it is not."""


class WorkerGroup(Protocol):
    """The workers of one process.

    Each is a closed loop (or, at a constant rate, a clock) with one request outstanding.
    """

    def add_worker(self, index: int, of: int, repeat: int) -> None:
        """Start worker `index` of the `of` workers of the whole step."""

    def remove_worker(self, index: int) -> None:
        """Let a worker finish the request it has in hand and end; returns at once."""

    def open_window(self) -> None:
        """Record what completes from now on."""

    def close_window(self) -> None:
        """Record from now on nothing but how long what is outstanding now has been so."""

    def stop(self, timeout_s: float) -> int:
        """End all workers; returns how many had to be cut off while a request was in hand."""

    def renew(self, account: Account) -> None:
        """Send the token that the account has now with all that is asked from now on."""

    def pulse(self) -> WorkerProgress:
        """How it is getting on."""

    def snapshot(self) -> Window:
        """What the window recorded so far."""

    def delete_written(self, parallel: int) -> None:
        """Start deleting what its workers wrote and have not deleted; `pulse().running` falls to 0
        when it is done.
        """


class NativeCrew:
    """A crew of the native engine."""

    def __init__(self, setup: Setup, account: Account, workload: Workload, cpus: float) -> None:
        self._engine = Engine(
            engine_config(setup, account, workload, threads=max(1, math.ceil(cpus)))
        )

    def add_worker(self, index: int, of: int, repeat: int) -> None:
        """See Crew."""
        self._engine.add_worker(index, of, repeat)

    def remove_worker(self, index: int) -> None:
        """See Crew."""
        self._engine.remove_worker(index)

    def open_window(self) -> None:
        """See Crew."""
        self._engine.open_window()

    def close_window(self) -> None:
        """See Crew."""
        self._engine.close_window()

    def stop(self, timeout_s: float) -> int:
        """See Crew. Waits in a native thread, so that greenlets go on."""
        return int(gevent.get_hub().threadpool.apply(self._engine.stop, (timeout_s,)))

    def renew(self, account: Account) -> None:
        """See Crew."""
        self._engine.renew_token(account.token)

    def pulse(self) -> WorkerProgress:
        """See Crew."""
        return WorkerProgress.model_validate(
            {**json.loads(self._engine.progress()), "started": self._engine.started()}
        )

    def snapshot(self) -> Window:
        """See Crew."""
        return Window.model_validate_json(self._engine.snapshot())

    def prepare(self, first: int, count: int, parallel: int, stride: int = 1) -> None:
        """Start writing `count` prepared objects from number `first` on; `pulse().running` falls to
        0 when it is done.
        """
        self._engine.prepare(first, count, stride, parallel)

    def delete_prepared(self, parallel: int) -> None:
        """Start deleting all of the workload's prepared objects."""
        self._engine.delete("objects", parallel)

    def delete_listed(self, numbers: Sequence[int], parallel: int) -> None:
        """Start deleting prepared objects by their numbers."""
        self._engine.delete_listed(list(numbers), parallel)

    def delete_written(self, parallel: int) -> None:
        """See Crew."""
        self._engine.delete("written", parallel)


def engine_config(setup: Setup, account: Account, workload: Workload, *, threads: int) -> str:
    """The engine's configuration as its door wants it (see drivers/engine/_native.pyi)."""
    s3 = setup.api == "s3"
    return json.dumps(
        {
            "api": setup.api,
            "host": account.host,
            "port": account.port,
            "tls": account.tls,
            "ca_file": setup.target.ca_file,
            "base_path": account.base_path,
            "access_key": setup.target.user if s3 else "",
            "secret_key": setup.target.key.get_secret_value() if s3 else "",
            "region": setup.target.region,
            "addressing": setup.target.addressing,
            "token": account.token,
            "ring": None if setup.ring is None else setup.ring.model_dump(mode="json"),
            "bucket_prefix": setup.bucket_prefix,
            "request_timeout_s": setup.request_timeout_s,
            "threads": threads,
            "verify": workload.verify,
            "seed": setup.seed,
            "workload": workload.model_dump(mode="json"),
        }
    )
