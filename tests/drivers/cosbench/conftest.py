"""A COSBench driver, its recorded controller and a target, on loopback; each ends with its test."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

import pytest
from pydantic import SecretStr
from swiftclient.client import Connection

from null_process import null_process
from threaded_driver import ThreadedProgram
from weighbridge.common.endpoint import Endpoint
from weighbridge.drivers.cosbench.bench import StopRequest
from weighbridge.drivers.cosbench.loop import drive
from weighbridge.drivers.cosbench.site import CosbenchSetup, CosbenchSite
from weighbridge.drivers.process import DriverProcess
from weighbridge.drivers.protocol import Measured, OnProgress, Prepare, Prepared, Step
from weighbridge.suites import Objects, Workload

ROOT = Path(__file__).parents[3]
KEY = "a-planted-secret"


def _recorded() -> ModuleType:
    name = "recorded_controller"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


_recorded()


class Store:
    """A null target that lists its content."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    @contextmanager
    def client(self) -> Iterator[Any]:
        swift: Any = Connection(f"{self.url}/auth/v1.0", "ben:ch", KEY, retries=0)
        try:
            yield swift
        finally:
            swift.close()

    def names(self) -> list[str]:
        """Containers and objects, as `container/` and `container/object`."""
        with self.client() as swift:
            found = [one["name"] for one in swift.get_account()[1]]
            return [
                name
                for container in found
                for name in [
                    f"{container}/",
                    *(f"{container}/{one['name']}" for one in swift.get_container(container)[1]),
                ]
            ]

    def empty(self) -> None:
        names = self.names()
        with self.client() as swift:
            for name in sorted(names, reverse=True):
                container, _, one = name.partition("/")
                if one:
                    swift.delete_object(container, one)
                else:
                    swift.delete_container(container)

    def put(self, container: str, *names: str) -> None:
        with self.client() as swift:
            swift.put_container(container)
            for name in names:
                swift.put_object(container, name, b"x")

    def delete(self, container: str, *names: str) -> None:
        with self.client() as swift:
            for name in names:
                swift.delete_object(container, name)


@pytest.fixture(scope="module")
def null_target() -> Iterator[Store]:
    with null_process(user="ben:ch", key=KEY) as (_, url):
        yield Store(int(url.rsplit(":", 1)[1]))


@pytest.fixture
def store(null_target: Store) -> Iterator[Store]:
    yield null_target
    null_target.empty()


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[Any]:
    with sys.modules["recorded_controller"].recorded_controller(tmp_path / "cosbench") as running:
        yield running


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DriverProcess]:
    """The driver as a thread: a start of the program takes a second of CPU."""
    # Only a program's main thread can have them.
    monkeypatch.setattr(StopRequest, "on_signals", lambda *_: None)
    kept: list[int] = []

    def serve(commands: TextIO, events: TextIO) -> int:
        # The thread that reads commands outlives `drive`: the descriptor must, too.
        kept.append(os.dup(commands.fileno()))
        return drive(kept[0], events.fileno())

    with DriverProcess(ThreadedProgram(serve), tmp_path / "driver.log", silence_s=40.0) as running:
        yield running
    for thread in threading.enumerate():
        if thread.name == "commands":
            thread.join(10)
    for descriptor in kept:
        os.close(descriptor)


@pytest.fixture
def driver_program(tmp_path: Path) -> Iterator[DriverProcess]:
    """The driver as a program, for its signals and its log."""
    log = tmp_path / "driver.log"
    argv = [sys.executable, "-m", "weighbridge.drivers.cosbench"]
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, cwd=ROOT
        )
    with DriverProcess(process, log, silence_s=40.0) as running:
        yield running


@pytest.fixture
def setup(store: Store, controller: Any) -> Callable[..., CosbenchSetup]:
    """Makes the setup of a driver with the store and the recorded controller."""

    def make(**more: Any) -> CosbenchSetup:
        url = f"{store.url}/auth/v1.0"
        target = more.pop(
            "target", Endpoint(api="swift", url=url, user="ben:ch", key=SecretStr(KEY))
        )
        site = CosbenchSite(controller=controller.url, archive=str(controller.archive), **more)
        return CosbenchSetup(
            target=target, bucket_prefix="wb-test", seed=1, request_timeout_s=10.0, site=site
        )

    return make


class Trial:
    """A driver, what it is set up with, and a recorded workload."""

    def __init__(
        self, make: Callable[..., CosbenchSetup], controller: Any, store: Store, mixed: Workload
    ) -> None:
        self.make, self.controller, self.store, self.mixed = make, controller, store, mixed
        self.driver: DriverProcess

    def begin(self, workload: Workload | None = None) -> None:
        self.driver.setup(self.make())
        self.prepare(workload)

    def prepare(self, workload: Workload | None = None, *heard: OnProgress) -> Prepared:
        return self.driver.prepare(Prepare(workload=workload or self.mixed), *heard)

    def step(self, workload: Workload | None = None, *heard: OnProgress) -> Measured:
        return self.driver.step(Step(workload=workload or self.mixed, workers=2), *heard)


@pytest.fixture
def idle(
    setup: Callable[..., CosbenchSetup], controller: Any, store: Store, mixed: Workload
) -> Trial:
    return Trial(setup, controller, store, mixed)


@pytest.fixture
def trial(idle: Trial, driver: DriverProcess) -> Trial:
    idle.driver = driver
    return idle


@pytest.fixture
def program_trial(idle: Trial, driver_program: DriverProcess) -> Trial:
    idle.driver = driver_program
    return idle


@pytest.fixture
def mixed() -> Workload:
    """As recorded: 2 x 50 objects of 64 kB, reads and writes 80 to 20, 12 s after 2 s."""
    return Workload(
        name="mixed",
        objects=Objects(size=64000, containers=2, per_container=50),
        operations={"read": 80, "write": 20},
        workers=(2,),
        runtime=12.0,
        warmup=2.0,
    )


def change(workload: Workload, **more: Any) -> Workload:
    return Workload.model_validate({**workload.model_dump(), **more})
