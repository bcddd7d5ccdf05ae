"""Telemetry of real lab hosts against what is known of the load that the tests put on them."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fake_run import WORKLOADS, fake_run
from small_lab import labelled, raised, within
from weighbridge.common.host import Host, Service
from weighbridge.conductor.telemetry import Watch, limits_of
from weighbridge.drivers.protocol import Progress
from weighbridge.gateways.gateway import HostNeed
from weighbridge.gateways.probe import Probe
from weighbridge.results.figures.use import Resource, StepUse, limit_words, step_use
from weighbridge.results.run.step import StepKey
from weighbridge.results.run.store import RunStore
from weighbridge.results.run.telemetry import Telemetry
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.lab import LabHosts

pytestmark = pytest.mark.system

MIB = 2**20
WINDOW_S = 5.0
HARDWARE = Hardware.model_validate(
    {
        "name": "lab-telemetry",
        "kind": "lab",
        "hosts": {
            "client-1": {"memory": "512MiB", "nic": "100Mbit"},
            "gateway-1": {"cpus": 0.3, "memory": "128MiB", "nic": "100Mbit"},
            "store-1": {"memory": "256MiB", "disks": [{"size": "512MiB", "bandwidth": "10MiB"}]},
        },
    }
)
NEEDS = {
    "gateway-1": HostNeed(roles=("burner",)),
    "store-1": HostNeed(roles=("writer",), disks=1, tier="storage"),
}
KEY = StepKey(layout="swift", api="swift", workload="small-read", workers=4, repeat=0)

# 5 MB/s by the sender's own clock, for longer than the window.
SEND = """
import socket, sys, time
out = socket.create_connection((sys.argv[1], 5002), timeout=20)
start, sent = time.monotonic(), 0
while sent < 60e6:
    out.sendall(bytes(50_000))
    sent += 50_000
    time.sleep(max(0, start + sent / 5e6 - time.monotonic()))
"""
RECEIVE = """
import socket
server = socket.create_server(("0.0.0.0", 5002))
print("listens", flush=True)
peer, _ = server.accept()
print("connected", flush=True)
while peer.recv(1 << 20):
    pass
"""
TELL = """
import json, os, select, sys
while True:
    print(json.dumps({"pid": os.getpid()}), flush=True)
    if select.select([sys.stdin], [], [], 1)[0]:
        break
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabHosts]:
    home = tmp_path_factory.mktemp("lab")
    label = labelled("telemetry")
    with raised(label, home / "deployment", home / "state", hardware=HARDWARE) as hosts:
        hosts.limit()
        yield hosts


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    small = WORKLOADS[0].model_copy(update={"workers": (1,), "runtime": 1.0})
    return fake_run(tmp_path / "runs", layouts=("swift",), workloads=[small], repeats=1)


def recorded(lab: LabHosts, store: RunStore, probes: Callable[[], list[Probe]] = list) -> Telemetry:
    """Telemetry of a window of WINDOW_S that opens now."""
    limits = limits_of(HARDWARE, NEEDS, dict.fromkeys(lab.hosts))
    with (
        Watch(store, "swift", lab.hosts, limits, probes) as watch,
        watch.step(KEY, WINDOW_S) as recording,
    ):
        recording.on_progress(Progress(phase="measure", done=0, total=WINDOW_S))
        threading.Event().wait(
            WINDOW_S + 0.5
        )  # the window itself: there is nothing to be awaited but its length
    found = store.telemetry(KEY)
    assert found is not None
    return found


def of(use: StepUse, name: str) -> Resource:
    return next(one for one in use.resources if one.name == name)


@pytest.fixture
def gateway(lab: LabHosts) -> Iterator[Host]:
    host = lab.hosts["gateway-1"]
    yield host
    for service in ("burner", "sender"):
        host.stop(service)


@pytest.mark.alone
def test_a_host_that_burns_all_it_may_is_seen_at_its_limit_and_named(
    lab: LabHosts, store: RunStore, gateway: Host
) -> None:
    gateway.start([Service("burner", (sys.executable, "-c", "while True: pass"))])
    burner = burning(lab, gateway)
    for _ in range(4):
        before_s, began_s = cpu_s(burner), time.monotonic()
        telemetry = recorded(lab, store)
        witnessed = (cpu_s(burner) - before_s) / (time.monotonic() - began_s)
        use = step_use(telemetry, WINDOW_S)
        cpu = of(use, "CPU of gateway-1")
        assert cpu.share * 0.3 == pytest.approx(witnessed, rel=0.1)
        if witnessed > 0.28:
            break
    assert witnessed == pytest.approx(0.3, rel=0.1), (
        "this machine is too busy to give a host its 0.3 CPUs"
    )
    assert cpu.share == pytest.approx(1.0, rel=0.1)
    assert use.gateway_cpu_s == pytest.approx(0.3 * WINDOW_S, rel=0.1)
    assert use.storage_cpu_s == pytest.approx(0, abs=0.1)
    assert (cpu.throttled or 0) > 0.8
    assert (limit_words(use.resources) or "").startswith("CPU of gateway-1 (")
    assert {one.second for one in telemetry.hosts if one.phase == "measure"} == set(
        range(int(WINDOW_S))
    )


def burning(lab: LabHosts, host: Host) -> int:
    """The number of the burner on this machine, by its command line and its host's cgroup."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for process in Path("/proc").glob("[0-9]*"):
            try:
                ours = f"/{lab.deployment}/{host.name}" in (process / "cgroup").read_text()
                if ours and (process / "cmdline").read_bytes().startswith(sys.executable.encode()):
                    return int(process.name)
            except OSError:
                continue
        time.sleep(0.02)
    raise AssertionError("the burner did not start")


def cpu_s(pid: int) -> float:
    """What the scheduler says the process has used: a witness beside the cgroup."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


@pytest.mark.alone
def test_a_disk_that_is_written_at_its_limit_is_seen_at_its_limit(
    lab: LabHosts, store: RunStore
) -> None:
    host = lab.hosts["store-1"]
    argv = ["dd", "if=/dev/zero", "of=/dev/wb0", "bs=256k", "count=400", "oflag=direct"]
    with host.spawn(argv, stderr=store.logs / "dd") as dd:
        try:
            use = step_use(recorded(lab, store), WINDOW_S)
        finally:
            dd.kill()
    found = of(use, "disk of store-1")
    assert found.share == pytest.approx(1.0, rel=0.1)
    assert found.limit == "10 MiB/s written"


def test_a_known_number_of_bytes_on_the_network_is_counted_on_both_of_its_ends(
    lab: LabHosts, store: RunStore, gateway: Host
) -> None:
    client = lab.hosts["client-1"]
    with client.spawn([sys.executable, "-c", RECEIVE], stderr=store.logs / "sink") as sink:
        try:
            assert sink.stdout is not None
            assert sink.stdout.readline() == b"listens\n"
            gateway.start([Service("sender", (sys.executable, "-c", SEND, client.address))])
            assert sink.stdout.readline() == b"connected\n"
            telemetry = recorded(lab, store)
        finally:
            sink.kill()
    within = telemetry.within(WINDOW_S)
    span_s = sum(one.span_s for one in within if one.host == "gateway-1")
    sent = sum(one.sent_bytes or 0 for one in within if one.host == "gateway-1")
    received = sum(one.received_bytes or 0 for one in within if one.host == "client-1")
    assert sent / span_s == pytest.approx(5e6, rel=0.1)
    assert received == pytest.approx(sent, rel=0.05)
    assert of(step_use(telemetry, WINDOW_S), "network of gateway-1").share == pytest.approx(
        0.4, rel=0.1
    )


def test_probes_run_on_their_host_and_are_gone_afterwards(
    lab: LabHosts, store: RunStore, gateway: Host
) -> None:
    telemetry = recorded(
        lab, store, lambda: [Probe(gateway, "own.gateway-1", (sys.executable, "-c", TELL))]
    )
    probed = telemetry.probes_within(WINDOW_S)
    assert 3 <= len(probed) <= 7
    assert {one.values["pid"] < 2000 for one in probed} == {True}, (
        "a number in the host's own namespace"
    )
    words = ["pgrep", "-f", 'json.dumps.."pid": os.getpid']
    assert within(30, lambda: subprocess.run(words, capture_output=True, check=False).stdout == b"")
