"""The main job on real hosts:

RGW and Swift started over SSH and compared, once with a host that stops answering in the middle.
"""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from machines import CONDUCTOR, Machines, machines
from small_lab import sh
from weighbridge.results.run.durability import read_outages
from weighbridge.results.run.store import RunStore

pytestmark = [pytest.mark.system, pytest.mark.long]

DISK = "3GiB"
STORES = ("store-1", "store-2", "store-3")
AS_ADMIN = ("client-2", "store-3")
"""Hosts that are logged in to by who is not root."""
CUT_SUITE = """\
name: over-ssh
settle: 0s
about: A little of each, to be seen
api: [swift]
repeats: 1
workloads:
  - name: small-read
    objects: {size: 16kB, containers: 2, per_container: 20}
    operations: {read: 100}
    workers: [2]
    runtime: 2s
    warmup: 500ms
  - name: small-write
    objects: {size: 16kB, containers: 2, per_container: 20}
    operations: {write: 100}
    workers: [2]
    runtime: 6s
    warmup: 500ms
"""
SUITE = (
    CUT_SUITE
    + """\
  - name: daemon-dies
    objects: {size: 16kB, containers: 2, per_container: 20}
    operations: {read: 100}
    workers: [2]
    rate_per_s: 30
    runtime: 15s
    warmup: 500ms
    fault: {at: 5s, kill: storage-daemon, back: 9s}
"""
)
EXIT_TARGET = 3


@pytest.fixture(scope="module")
def testbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    disks = {"client-1": (), "client-2": (), "gateway-1": (), **dict.fromkeys(STORES, (DISK,))}
    with machines(tmp_path_factory.mktemp("machines"), disks) as found:
        (found.shared / "cut.yaml").write_text(CUT_SUITE)
        found.write_hardware(["client-1", "client-2"], admin=AS_ADMIN)
        yield found


def compare(testbed: Machines, out: str, *words: str) -> subprocess.CompletedProcess[str]:
    files = f"--suite /var/log/host/{out}.yaml --hardware /var/log/host/real.yaml"
    given = f"compare {files} --no-attest --no-charts --out /var/log/host/{out}"
    return testbed.weighbridge(*given.split(), *words, timeout_s=1200)


def run_of(testbed: Machines, out: str) -> RunStore:
    (folder,) = (testbed.shared / out).iterdir()
    return RunStore.open(folder)


def left_over(testbed: Machines) -> list[str]:
    script = """
        systemctl list-units --all --plain --no-legend 'weighbridge-*' 2>/dev/null || true
        ls -d /opt/weighbridge/claim.json /opt/weighbridge/deployments/* 2>/dev/null || true
        grep /opt/weighbridge /proc/1/mountinfo || true
        for one in /proc/[0-9]*; do
          tr "\\0" "\\n" <$one/environ 2>/dev/null |
            grep -q WEIGHBRIDGE_DEPLOYMENT && cat $one/cmdline
        done || true
        for disk in /dev/wb*; do test -b $disk && blkid -p $disk || true; done
    """
    found = []
    for name, host in testbed.hosts.items():
        if name != CONDUCTOR:
            found += [
                f"{name}: {line}" for line in host.run(["sh", "-c", script]).stdout.splitlines()
            ]
    return found


# Of the releases that the machines have.
DIES = {"rgw-beast-ceph-16": r"osd\.\d", "swift-swift-2-30": "object-server"}
RGW, SWIFT = "rgw-beast@ceph-16", "swift@swift-2.30"


@pytest.mark.parametrize(
    "layouts", [(RGW,), pytest.param((RGW, SWIFT), marks=pytest.mark.test_all)]
)
def test_layouts_of_the_lab_run_on_real_hosts_and_leave_nothing(
    testbed: Machines, layouts: Sequence[str], tmp_path: Path
) -> None:
    clients = ["client-1", "client-2"][: len(layouts)]  # each has to install all packages
    shares = clients if len(clients) > 1 else []
    testbed.write_hardware(clients, admin=AS_ADMIN)
    out = tmp_path.name
    (testbed.shared / f"{out}.yaml").write_text(SUITE)
    done = compare(testbed, out, "--layouts", ",".join(layouts))
    assert done.returncode == 0, done.stdout + done.stderr
    steps = run_of(testbed, out).latest()
    names = set(list(DIES)[: len(layouts)])
    assert {(key.layout, key.workload) for key in steps} == {
        (layout, workload)
        for layout in names
        for workload in ("small-read", "small-write", "daemon-dies")
    }
    for key, step in steps.items():
        assert step.measurement is not None, key
        # Two workers whose replicated writes wait for a busy disk make few.
        assert sum(tally.count for tally in step.measurement.tallies) >= 3, key
        if key.workload != "daemon-dies":
            assert not any(tally.failed for tally in step.measurement.tallies), key
        assert step.measurement.load is not None
        assert [one.client for one in step.measurement.load.clients] == shares
    died = {key.layout: one for key, one in read_outages(run_of(testbed, out).folder).items()}
    assert set(died) == names
    for layout, outage in died.items():
        assert outage.host in STORES
        (service,) = outage.services
        assert re.fullmatch(DIES[layout], service)
        assert outage.back is not None
    assert left_over(testbed) == []


@pytest.mark.test_all
def test_status_names_daemons_that_died_on_real_hosts_and_no_other(testbed: Machines) -> None:
    def status() -> list[str]:
        done = testbed.weighbridge("status", *hardware)
        assert done.returncode == 0, done.stdout + done.stderr
        return [line.strip() for line in done.stdout.splitlines()]

    hardware = ("--hardware", "/var/log/host/real.yaml")
    up = testbed.weighbridge("up", RGW, *hardware, timeout_s=1200)
    try:
        assert up.returncode == 0, up.stdout + up.stderr
        assert not [line for line in status() if line.startswith(("dead", "not known"))]
        for name, program in (("gateway-1", "radosgw"), ("store-2", "ceph-osd")):
            kill = f"kill -9 $(pidof {program}); while pidof {program}; do sleep 0.1; done"
            sh(testbed.hosts[name], kill)
        lines = status()
        dead = [line for line in lines if line.startswith("dead: ")]
        assert len(dead) == 2, lines
        for line, pattern in zip(
            dead, (r"radosgw\S* on (gateway-1)", r"osd\.\d on (store-2)"), strict=True
        ):
            found = re.fullmatch(rf"dead: {pattern}; its log: \1:(/opt/weighbridge/\S+)", line)
            assert found, lines
            testbed.hosts[found[1]].run(["test", "-f", found[2]])
        (advice,) = (line for line in lines if line.startswith("it is incomplete: "))
        assert "weighbridge down --hardware FILE`, and `up` again" in advice
    finally:
        done = testbed.weighbridge("down", *hardware)
    assert done.returncode == 0, done.stdout + done.stderr
    assert left_over(testbed) == []


@pytest.mark.test_all
def test_a_host_that_stops_answering_in_the_middle_ends_the_run_readable_and_it_can_be_gone_on_with(
    testbed: Machines,
) -> None:
    frozen = threading.Event()
    store = testbed.hosts["store-2"]

    def freeze() -> None:
        """Cut its cable as soon as a step of the run is whole."""
        deadline = time.monotonic() + 1000
        while time.monotonic() < deadline:
            lines = [
                line
                for path in testbed.shared.glob("cut/*/steps.jsonl")
                for line in path.read_text().splitlines()
            ]
            if lines:
                store.run(["ip", "link", "set", "eth0", "down"])
                frozen.set()
                return
            time.sleep(0.05)

    watcher = threading.Thread(target=freeze, daemon=True)
    watcher.start()
    done = compare(testbed, "cut", "--layouts", RGW)
    watcher.join(10)
    assert frozen.is_set()
    assert done.returncode == EXIT_TARGET, done.stdout + done.stderr
    assert "store-2" in done.stdout + done.stderr
    folder = Path(run_of(testbed, "cut").folder)
    first = (folder / "steps.jsonl").read_text().splitlines()[0]
    assert json.loads(first)["measurement"] is not None
    others = [line for line in left_over(testbed) if not line.startswith("store-2")]
    assert others == []

    store.run(["ip", "link", "set", "eth0", "up"])
    inside = f"/var/log/host/cut/{folder.name}"
    went_on = testbed.weighbridge("resume", inside, "--no-charts", timeout_s=1200)
    assert went_on.returncode == 0, went_on.stdout + went_on.stderr
    assert (folder / "steps.jsonl").read_text().splitlines()[0] == first
    assert all(step.measurement is not None for step in RunStore.open(folder).latest().values())
    assert left_over(testbed) == []
