"""Load from two lab clients with two stations each; boto3 on a client, and the clients' own NICs,
say what was really done.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from behind_front import driving
from deployed_layouts import on_client
from small_lab import within
from suite_command import trial_suite
from weighbridge.common.errors import DriverError
from weighbridge.drivers.protocol import Cleanup, Prepare, Progress, Step
from weighbridge.environment import place
from weighbridge.results.figures.validity import judge
from weighbridge.results.run.step import Pass
from weighbridge.topologies.deployment import Deployment, deploy
from weighbridge.topologies.lab.host import LabHost
from weighbridge.topologies.loader import load_hardware, load_layout, shipped_layouts

pytestmark = pytest.mark.system

HARDWARE = """
name: two-clients
kind: lab
clients: [client-1, client-2]
hosts:
  client-1: {cpus: 0.5, memory: 1GiB, nic: 1Gbit}
  client-2: {cpus: 0.4, memory: 1GiB, nic: 1Gbit}
  gateway-1: {memory: 512MiB}
"""
SUITE = trial_suite(
    *("[s3]", "{write: 1}", "3s"),
    name="writes",
    containers=2,
    per_container=10,
    workers=6,
    warmup="0.5s",
    suite="processes: 2",
)
(WRITES,) = SUITE.workloads
COUNT = """
import json, sys, sdk
s3 = sdk.s3(json.load(sys.stdin))
pages = [page for bucket in s3.list_buckets()["Buckets"]
         for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket["Name"])]
print(sum(one["Size"] == 4096 for page in pages for one in page.get("Contents", [])))
"""


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    # 10 ms an answer: what limits the workers is that, and not what else this machine does.
    folder = tmp_path_factory.mktemp("many-clients")
    (folder / "hardware.yaml").write_text(HARDWARE)
    (folder / "null.yaml").write_text(
        shipped_layouts()["null"].read_text().replace("delay_ms: 0", "delay_ms: 10")
    )
    hardware = load_hardware(folder / "hardware.yaml")
    with deploy(
        load_layout(folder / "null.yaml", hardware), hardware, place(), print, logs=folder / "logs"
    ) as deployment:
        yield deployment


def written(deployment: Deployment) -> int:
    """How many objects of the workload's size there are, as boto3 counts them from the second
    client.
    """
    count: int = on_client(deployment, "s3", "-c", COUNT, client=1)
    return count


def test_two_clients_make_half_of_the_load_each_and_all_of_it_is_counted_once(
    two: Deployment, tmp_path: Path
) -> None:
    one = Pass(api="s3", workloads=(WRITES,))
    with driving(two, SUITE, tmp_path, one) as driver:
        driver.prepare(Prepare(workload=WRITES))
        before = [client.counters().network_sent_bytes for client in two.clients]
        measurement = driver.step(Step(workload=WRITES, workers=6)).measurement
        sent = [
            (client.counters().network_sent_bytes or 0) - (was or 0)
            for client, was in zip(two.clients, before, strict=True)
        ]
        there = written(two)
        deleted = driver.cleanup(Cleanup(workload=WRITES, what="written"))
    (tally,) = measurement.tallies
    assert tally.errors == {}
    assert (deleted.deleted, deleted.failed) == (there, 0)
    assert 0 < tally.count < there
    assert sum(second.count for second in measurement.seconds) == tally.count
    # Three workers on each client: bodies alone are half of what was written.
    assert [one == pytest.approx(sum(sent) / 2, rel=0.2) for one in sent] == [True, True], sent
    assert min(sent) > there / 2 * 4096 * 0.9
    assert measurement.load is not None
    assert [(one.client, one.cpu_limit) for one in measurement.load.clients] == [
        ("client-1", 0.5),
        ("client-2", 0.4),
    ]
    assert judge(measurement, SUITE.bounds).valid, measurement.notes


def test_a_client_host_that_goes_in_a_step_is_named_and_holds_nothing_up(
    two: Deployment, tmp_path: Path
) -> None:
    """The last test here: its host is gone afterwards."""
    long = WRITES.model_copy(update={"runtime": 60.0})
    lost = two.clients[1]
    assert isinstance(lost, LabHost)

    def end(progress: Progress) -> None:
        if progress.phase == "measure" and lost.is_up():
            os.kill(lost.pid, signal.SIGKILL)

    def run() -> None:
        one = Pass(api="s3", workloads=(long,))
        with driving(two, SUITE, tmp_path, one, prefix="wb-gone") as driver:
            driver.prepare(Prepare(workload=long))
            driver.step(Step(workload=long, workers=6), end)

    with pytest.raises(
        DriverError, match=r"client-2: worker process [34] of 4 has ended: the host is gone"
    ):
        run()
    # By the lost host's cgroup and name: other files of tests have stations of theirs on this
    # machine.
    assert within(30, lambda: not any(_is_of(one, lost) for one in psutil.process_iter()))


def _is_of(process: psutil.Process, host: LabHost) -> bool:
    """Whether it runs in this host, or is what runs something there."""
    try:
        group = Path(f"/proc/{process.pid}/cgroup").read_text()
        return process.status() != psutil.STATUS_ZOMBIE and (
            host.bundle.cgroup in group or host.bundle.id in process.cmdline()
        )
    except (FileNotFoundError, ProcessLookupError, psutil.NoSuchProcess):
        return False
