"""Load from two clients at once: pretended hosts, Locust's driver and the null target, as real
processes.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import psutil
import pytest
from botocore.config import Config

from stub_run import Run
from tests.weighbridge.odd_locust import ANSWER_S
from weighbridge.common.errors import DriverError
from weighbridge.conductor.conductor import Conductor
from weighbridge.conductor.opening import DriverSettings, opened
from weighbridge.drivers.kind import OpenedDriver
from weighbridge.drivers.locust.kind import LocustModule
from weighbridge.drivers.process import DriverProcess
from weighbridge.drivers.protocol import Cleanup, Prepare, Progress, Step
from weighbridge.gateways.null.null import Null, NullPlacement, NullSettings
from weighbridge.results.figures.validity import judge
from weighbridge.results.run.step import Pass, StepKey, StepResult
from weighbridge.suites import Suite
from weighbridge.topologies.deployment import Deployment, deploy
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import Layout, Planned

pytestmark = pytest.mark.long

ODD = ("tests.weighbridge.odd_locust",)
BY_ODD = {"locust": LocustModule(module=ODD)}
NO_STATION = {"locust": LocustModule(module=("tests.weighbridge.no_station",))}
CLIENTS = ("client-1", "client-2")


def work(name: str, operation: str, runtime: str) -> dict[str, Any]:
    objects = {"size": "1KiB", "containers": 2, "per_container": 10}
    return {
        "name": name,
        "objects": objects,
        "operations": {operation: 1},
        "workers": [5],
        "runtime": runtime,
        "warmup": "0.2s",
    }


class TwoClients(Run):
    """A run by two clients with two worker processes each; the target answers after 5 ms."""

    def __init__(self, folder: Path, *workloads: dict[str, Any]) -> None:
        super().__init__(folder, workloads=list(workloads), processes=2, api=["s3"])
        hosts: dict[str, Any] = {name: {} for name in (*CLIENTS, "gateway-1")}
        self.hardware = Hardware.model_validate(
            {"name": "two-clients", "kind": "fake", "clients": CLIENTS, "hosts": hosts}
        )
        # So long that a client's own time is little beside it, on a busy machine too: a step is
        # judged invalid where it is not.
        gateway = Null("engine", NullPlacement(target="gateway-1"), NullSettings(delay_ms=40))
        layout = Layout(
            name="null",
            about="null",
            gateway="null",
            release="engine",
            place={"target": "gateway-1"},
        )
        self.planned = [Planned(layout, gateway, "")]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TwoClients, Deployment]]:
    run = TwoClients(tmp_path_factory.mktemp("two"), work("writes", "write", "1s"))
    with deploy(run.planned[0], run.hardware, run.place, lambda _: None) as deployment:
        yield run, deployment


@contextmanager
def ready_driver(
    two: tuple[TwoClients, Deployment],
    folder: Path,
    *,
    settings: DriverSettings | None = None,
    alone: bool = False,
    **suite: object,
) -> Iterator[tuple[Suite, OpenedDriver]]:
    """The run's suite with these changes, and a driver for it."""
    run, deployment = two
    changed = run.suite.model_copy(update=suite)
    one = Pass(api="s3", workloads=changed.workloads)
    log, prefix = folder / "driver.log", f"wb-{run.suite.name}"
    with opened(
        deployment, changed, one, prefix=prefix, log=log, settings=settings or {}, alone=alone
    ) as ready:
        yield changed, ready


def stations(of: psutil.Process | None = None) -> list[psutil.Process]:
    """Worker processes of Locust's driver below this process, or another."""
    below = (of or psutil.Process()).children(recursive=True)
    return [one for one in below if "worker" in words(one)]


def words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return []


def ended(processes: Sequence[psutil.Process]) -> bool:
    return not [
        one for one in processes if one.is_running() and one.status() != psutil.STATUS_ZOMBIE
    ]


def names(deployment: Deployment) -> list[str]:
    """All objects of the null target, as boto3 lists them."""
    endpoint = next(one for one in deployment.endpoints if one.api == "s3")
    s3: Any = boto3.client(
        "s3",
        endpoint_url=endpoint.url,
        aws_access_key_id=endpoint.user,
        aws_secret_access_key=endpoint.key.get_secret_value(),
        region_name=endpoint.region,
        config=Config(proxies={}, s3={"addressing_style": "path"}),
    )
    buckets = [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]
    pages = [
        page
        for name in buckets
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=name)
    ]
    s3.close()
    return [one["Key"] for page in pages for one in page.get("Contents", [])]


@pytest.mark.parametrize("users", ["engine", pytest.param("sdk", marks=pytest.mark.test_all)])
def test_two_clients_share_the_workers_of_a_step_and_their_clocks_do_not_matter(
    users: str, two: tuple[TwoClients, Deployment], tmp_path: Path
) -> None:
    _, deployment = two
    with ready_driver(two, tmp_path, settings=BY_ODD, users=users) as (suite, ready):
        (writes,) = suite.workloads
        load_made_by = ready.versions["load made by"]
        assert load_made_by == "2 clients, 2 worker processes on each: client-1, client-2"
        there = stations()
        secret = deployment.endpoints[0].key.get_secret_value()
        seen = [
            word
            for process in [*there, psutil.Process(pid_of(ready))]
            for word in (*words(process), *process.environ().values())
        ]
        assert len(there) == 4
        assert not [word for word in seen if secret in word]
        assert not [one for process in there for one in listening(process)]
        assert {where for where, _ in listening(psutil.Process(pid_of(ready)))} == {
            deployment.client.address
        }
        ready.driver.prepare(Prepare(workload=writes))
        measurement = ready.driver.step(Step(workload=writes, workers=5)).measurement
        (tally,) = measurement.tallies
        written = len(names(deployment))
        cleaned = ready.driver.cleanup(Cleanup(workload=writes, what="written"))
        assert cleaned.deleted == written
        assert not names(deployment)
        # Fewer workers than processes: some have none, and users start by a clock that went back.
        few = ready.driver.step(Step(workload=writes, workers=2)).measurement
        assert few.tallies[0].count > 0
        ready.driver.cleanup(Cleanup(workload=writes, what="written"))
    assert ended(there)
    # Objects written before and after the window exist, too.
    assert 0 < tally.count < written
    assert judge(measurement, suite.bounds).valid, measurement.notes
    assert 1.0 <= measurement.window_s < 30.0
    assert sum(second.count for second in measurement.seconds) == tally.count
    assert measurement.load is not None
    assert [client.client for client in measurement.load.clients] == list(CLIENTS)
    assert measurement.load.cpu_s == pytest.approx(
        sum(client.cpu_s for client in measurement.load.clients)
    )


def pid_of(ready: OpenedDriver) -> int:
    assert isinstance(ready.driver, DriverProcess)
    assert isinstance(ready.driver.process, subprocess.Popen)
    return ready.driver.process.pid


def listening(process: psutil.Process) -> list[tuple[str, int]]:
    return [one.laddr for one in process.net_connections("tcp") if one.status == psutil.CONN_LISTEN]


class Killing:
    """A display that does something to the run's processes, once in the window of this workload."""

    def __init__(self, deeds: dict[str, Callable[[], None]]) -> None:
        self._deeds = dict(deeds)
        self._workload = ""
        self._did_s = 0.0
        self.seen: set[psutil.Process] = set()
        self.took_s: dict[str, float] = {}
        """How long after the deed the step of a workload ended."""

    def say(self, text: str) -> None:
        pass

    def begins(self, key: StepKey, number: int) -> None:
        self._workload = key.workload

    def progress(self, progress: Progress) -> None:
        if progress.phase == "measure":
            self.seen.update(stations(), drivers())
            if (deed := self._deeds.pop(self._workload, None)) is not None:
                deed()
                self._did_s = time.monotonic()

    def ended(self, result: StepResult) -> None:
        self.took_s[result.key.workload] = time.monotonic() - self._did_s


def drivers() -> list[psutil.Process]:
    return [one for one in psutil.Process().children() if words(one)[-2:] == ["-m", *ODD]]


# The driver's own worker processes are its children, those of the other client are ours.
DEEDS: dict[str, tuple[Callable[[], None], str]] = {
    "remote-killed": (
        lambda: remote()[-1].send_signal(signal.SIGKILL),
        "client-2: worker process 4 of 4 was ended by SIGKILL\nits log is empty: ",
    ),
    "remote-stopped": (
        lambda: remote()[0].send_signal(signal.SIGSTOP),
        f"gave up after waiting {ANSWER_S:g} s for an answer to 'progress' from client-2: ",
    ),
    "local-killed": (
        lambda: stations(drivers()[0])[1].send_signal(signal.SIGKILL),
        "client-1: worker process 2 of 4 was ended by SIGKILL",
    ),
    "master-killed": (
        lambda: drivers()[0].send_signal(signal.SIGKILL),
        "the driver was ended by SIGKILL",
    ),
}


@pytest.mark.parametrize(
    "names",
    [
        ("remote-killed", "remote-stopped"),
        pytest.param(("local-killed", "master-killed"), marks=pytest.mark.test_all),
    ],
)
def test_any_process_of_a_distributed_driver_that_dies_costs_only_its_step_and_is_named(
    tmp_path: Path, names: Sequence[str]
) -> None:
    run = TwoClients(
        tmp_path, *(work(name, "read", "60s") for name in names), work("calm", "read", "1s")
    )
    display = Killing({name: DEEDS[name][0] for name in names})
    store = run.store()
    Conductor(run.plan(), run.planned, store, display, run.place, settings=BY_ODD).run()
    steps = {step.key.workload: step for step in store.steps()}
    assert list(steps) == [*names, "calm"]
    for name in names:
        assert DEEDS[name][1] in steps[name].notes[0]
        assert steps[name].measurement is None
        assert not steps[name].valid
        if name in ("remote-killed", "local-killed"):
            # Not by waiting for an answer, nor for the end of the window.
            assert display.took_s[name] < ANSWER_S
    calm = steps["calm"].measurement
    assert calm is not None
    assert steps["calm"].valid, steps["calm"].notes
    assert calm.tallies[0].count > 0
    assert len(display.seen) == 3 * 5
    assert ended(list(display.seen))


def remote() -> list[psutil.Process]:
    """The worker processes that the conductor started, by number."""
    return sorted(
        (one for one in psutil.Process().children() if "worker" in words(one)),
        key=lambda one: words(one)[-1],
    )


def test_a_load_client_that_cannot_start_fails_the_setup_with_its_message(
    two: tuple[TwoClients, Deployment], tmp_path: Path
) -> None:
    refused = (
        r"client-2: worker process [34] of 4 ended with exit status 1\nlast lines of "
        r".*driver-client-2-[12]\.log:\n"
    )
    there: list[psutil.Process] = []
    with pytest.raises(DriverError, match=refused):  # noqa: SIM117 - what is open is looked at when it has failed
        with ready_driver(two, tmp_path, settings=NO_STATION):
            there += stations()
    assert not there
    assert not stations()


def test_preparing_runs_only_on_the_first_client(
    two: tuple[TwoClients, Deployment], tmp_path: Path
) -> None:
    with ready_driver(two, tmp_path, alone=True, processes=1) as (_, ready):
        assert "load made by" not in ready.versions
        assert not stations()
