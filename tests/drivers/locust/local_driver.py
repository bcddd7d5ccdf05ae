"""The Locust driver and a null target on loopback, for tests.

A start of the driver costs seconds of CPU. A test whose commands all succeed takes the `kept`
process; one of a command that fails lets `answered` answer in the test's own process; what depends
on a process's end, its log or its children starts a `driver` of its own.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal

import gevent.queue
import pytest
from hdrh.histogram import HdrHistogram
from pydantic import SecretStr
from swiftclient.client import Connection

from null_process import null_process, s3_client
from weighbridge.common.endpoint import Endpoint
from weighbridge.drivers.process import DriverProcess
from weighbridge.drivers.protocol import (
    DriverCommand,
    Event,
    Failed,
    OnProgress,
    Prepare,
    Setup,
    Step,
)
from weighbridge.results.run.step import Measurement, Tally
from weighbridge.suites import Objects, Operation, Workload

ROOT = Path(__file__).parents[3]
KEY = "a-secret-key"
Api = Literal["s3", "swift"]


class Null:
    """A running null target."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url

    def target(self, api: Api, key: str = KEY) -> Endpoint:
        url = self.url + ("/auth/v1.0" if api == "swift" else "")
        return Endpoint(api=api, url=url, user="bench", key=SecretStr(key))

    def names(self, api: Api, key: str = KEY) -> list[str]:
        """`bucket/object` of all that exists, as an independent client of the API lists it."""
        found: list[str] = []
        if api == "swift":
            swift: Any = Connection(
                authurl=f"{self.url}/auth/v1.0", user="bench", key=key, retries=0
            )
            for container in swift.get_account(full_listing=True)[1]:
                objects = swift.get_container(container["name"], full_listing=True)[1]
                found += [f"{container['name']}/{one['name']}" for one in objects] or [
                    f"{container['name']}/"
                ]
            swift.close()
            return found
        s3 = s3_client(self.url, "bench", key)
        for bucket in s3.list_buckets()["Buckets"]:
            pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket["Name"])
            objects = [one for page in pages for one in page.get("Contents", [])]
            found += [f"{bucket['Name']}/{one['Key']}" for one in objects] or [f"{bucket['Name']}/"]
        s3.close()
        return found


@pytest.fixture
def null() -> Iterator[Callable[..., Null]]:
    with ExitStack() as stack:

        def start(**config: float | str | None) -> Null:
            # Without a delay, workers in a closed loop would use all CPUs for nothing.
            usual = {"delay_ms": 2.0, "seed": 11, "user": "bench", "key": KEY}
            return Null(*stack.enter_context(null_process(**{**usual, **config})))

        yield start


@contextmanager
def driver(tmp_path: Path) -> Iterator[DriverProcess]:
    log = tmp_path / "driver.log"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "weighbridge.drivers.locust"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=ROOT,
        )
    with DriverProcess(process, log, silence_s=40.0) as running:
        yield running


Kept = Callable[[], AbstractContextManager[DriverProcess]]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    """Gives the driver that an earlier test of the file has left idle: the next setup begins anew.
    One whose test failed is not used again.
    """
    folder = tmp_path_factory.mktemp("kept-driver")
    with ExitStack() as stack:
        idle: list[DriverProcess] = []

        @contextmanager
        def use() -> Iterator[DriverProcess]:
            running = idle.pop() if idle else stack.enter_context(driver(folder))
            yield running
            idle.append(running)

        yield use


def stepped(
    running: DriverProcess, setup: Setup, one: Workload, workers: int, *heard: OnProgress
) -> Measurement:
    """The measurement of a step of a workload that is prepared for it."""
    running.setup(setup)
    running.prepare(Prepare(workload=one))
    return running.step(Step(workload=one, workers=workers), *heard).measurement


def answered(*commands: DriverCommand) -> tuple[int, list[Event]]:
    """The exit status and the events of a driver with these commands, in this process."""
    # Not above: for its import Locust must have been told to leave this process as it is.
    from weighbridge.drivers.locust.loop import LocustLoop  # noqa: PLC0415

    inbox, events = gevent.queue.Queue(), list[Event]()
    for command in commands:
        inbox.put(command.model_dump_json().encode())
    inbox.put(None)
    loop = LocustLoop(inbox, events.append)
    try:
        return loop.run(), events
    finally:
        loop.close()


def fault_of(*commands: DriverCommand) -> str:
    """Why the last of these commands fails; those before it succeed."""
    status, events = answered(*commands)
    assert status == 3
    *_, last = events
    assert isinstance(last, Failed), events
    return last.message


def setup_for(target: Endpoint, **more: Any) -> Setup:
    return Setup(
        target=target,
        bucket_prefix="wb-test",
        seed=11,
        request_timeout_s=more.pop("request_timeout_s", 10.0),
        **more,
    )


def workload(operations: dict[Operation, float], **more: Any) -> Workload:
    objects = more.pop("objects", Objects(size=4096, containers=2, per_container=20))
    return Workload(
        name="tried",
        objects=objects,
        operations=operations,
        **{"workers": (1, 4), "runtime": 0.6, "warmup": 0.1, **more},
    )


def by_operation(measurement: Measurement) -> dict[str, Tally]:
    return {tally.operation: tally for tally in measurement.tallies}


def check_consistent(measurement: Measurement) -> None:
    """What must hold for every measurement: its parts add up."""
    for tally in measurement.tallies:
        seconds = [second for second in measurement.seconds if second.operation == tally.operation]
        assert sum(second.count for second in seconds) == tally.count
        assert sum(second.bytes for second in seconds) == tally.bytes
        # Requests that never ended did so in no second.
        ended = tally.failed - tally.errors.get("unfinished", 0)
        assert sum(second.errors for second in seconds) == ended
        assert sum(second.sum_us for second in seconds) == tally.sum_us
        if tally.count:
            assert tally.latency is not None
            assert tally.min_us is not None
            assert tally.max_us is not None
            assert HdrHistogram.decode(tally.latency).get_total_count() == tally.count
            assert tally.min_us * tally.count <= tally.sum_us <= tally.max_us * tally.count
            assert max(second.max_us for second in seconds) == tally.max_us
