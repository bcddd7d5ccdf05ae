"""The limits of hosts of the lab hold: CPU, memory, disks and network."""

from __future__ import annotations

import signal
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest

from deployed_layouts import left_over
from small_lab import MIB, PYTHON, labelled, python, raised, within
from suite_command import started, weighbridge
from weighbridge.common.errors import CommandFailed
from weighbridge.common.host import Counters, Host, Service
from weighbridge.environment import place
from weighbridge.results.features.baseline import Baseline, oddities
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.lab import LabHosts
from weighbridge.topologies.lab.network import can_delay
from weighbridge.topologies.lab.requirements import lab_requirements

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def limited(lab: LabHosts) -> LabHosts:
    lab.limit()
    return lab


def test_limits_are_reported_as_the_kernel_has_them(limited: LabHosts) -> None:
    facts = limited.facts()
    # A quarter of a CPU in the hardware's periods of 10 ms.
    assert {"2500", "10000"} <= set(facts["limits gateway-1"].replace(";", "").split())
    assert facts["CPU quota"].startswith("in periods of 10 ms, of which a CPU takes slices of ")
    assert "rate 200Mbit" in facts["limits gateway-1"]
    assert "/dev/wb0" in facts["limits store-1"]
    assert str(20 * MIB) in facts["limits store-1"]
    assert facts["disks without limits"].startswith("store-1")


@pytest.mark.alone
def test_the_cpu_quota_holds(limited: LabHosts, gateway: Host) -> None:
    before = gateway.counters()
    started = time.monotonic()
    python(gateway, "import time; end = time.monotonic() + 2\nwhile time.monotonic() < end: pass")
    took_s = time.monotonic() - started
    after = gateway.counters()
    assert _more(before, after, "cpu_s") <= 0.25 * took_s * 1.2 + 0.05
    assert _more(before, after, "throttled_s") > 0.2


def _more(before: Counters, after: Counters, name: str) -> float:
    first, second = getattr(before, name), getattr(after, name)
    assert first is not None
    assert second is not None
    return float(second - first)


def test_a_program_beyond_the_memory_of_its_host_is_killed_and_the_host_runs(gateway: Host) -> None:
    before = gateway.counters()
    with pytest.raises(CommandFailed) as killed:
        python(gateway, "kept = []\nwhile True: kept.append(bytearray(4 << 20))")
    assert killed.value.code == 137
    after = gateway.counters()
    assert _more(before, after, "oom_kills") >= 1
    assert after.memory_peak_bytes is not None
    assert after.memory_peak_bytes <= 128 * MIB
    assert gateway.run(["echo", "runs"]).stdout == "runs\n"


@pytest.mark.parametrize("how", ["oflag=direct", "conv=fsync", "then sync"])
def test_the_disk_limit_holds_for_direct_and_for_written_back_writes(
    limited: LabHosts, store: Host, how: str
) -> None:
    mount = "mkdir -p /run/limited; mount -t xfs /dev/wb0 /run/limited"
    store.run(["sh", "-ec", f"mkfs.xfs -q -K -f /dev/wb0; {mount}"], timeout_s=120)
    try:
        write = (
            "dd if=/dev/zero of=/run/limited/f bs=1M count=60 "
            f"{'' if how == 'then sync' else how} 2>/dev/null"
        )
        started = time.monotonic()
        store.run(["sh", "-ec", f"{write}; sync -f /run/limited"], timeout_s=120)
        took_s = time.monotonic() - started
    finally:
        store.run(["umount", "/run/limited"])
    # 60 MiB at 20 MiB/s; unlimited it takes less than 0.3 s. A little passes before the throttle
    # first holds.
    assert took_s > 2.2


SEND = """
import socket, sys, time
out = socket.create_connection((sys.argv[1], 5001), timeout=10)
end, sent = time.monotonic() + 3, 0
while time.monotonic() < end:
    sent += out.send(bytes(65536))
print(sent * 8 / 3)
"""
RECEIVE = """
import socket
server = socket.create_server(("0.0.0.0", 5001))
print("listens", flush=True)
while True:
    peer, _ = server.accept()
    while peer.recv(1 << 20):
        pass
"""


def listens(host: Host) -> bool:
    return host.log_tail("sink.out")[-1:] == ["listens"]


def test_the_rate_of_a_nic_holds_in_both_directions(
    limited: LabHosts, client: Host, store: Host
) -> None:
    for receiver, sender in (
        (store, client),
        (client, store),
    ):  # only the client's NIC is limited: what it sends, what it gets
        receiver.start([Service("sink", (PYTHON, "-c", RECEIVE))])
        assert within(20, partial(listens, receiver))
        rate_bit_per_s = float(python(sender, SEND, receiver.address))
        receiver.stop("sink")
        assert rate_bit_per_s < 200e6 * 1.15
        assert rate_bit_per_s > 200e6 * 0.4


def test_a_delayed_nic_adds_its_delay_to_a_round_trip_or_is_refused_without_netem(
    tmp_path: Path,
) -> None:
    hosts = {"client-1": {"nic": {"rate": "1Gbit", "delay": "20ms"}}, "store-1": {}}
    far = Hardware.model_validate({"name": "far", "kind": "lab", "hosts": hosts})
    if not can_delay():
        needed = [one for one in lab_requirements(far, home=tmp_path) if "netem" in one.name]
        assert [one.found for one in needed] == [False]
        return
    with raised(labelled("far"), tmp_path / "far", tmp_path, hardware=far) as found:
        found.limit()
        peer = found.hosts["store-1"].address
        script = (
            "import socket, time; begin = time.monotonic(); one = socket.socket(); "
            f"one.connect_ex(('{peer}', 9)); print(time.monotonic() - begin)"
        )
        took_s = float(python(found.hosts["client-1"], script))
        assert took_s >= 0.02  # a refused connection is one round trip
        assert "netem" in found.facts()["limits client-1"]


@pytest.mark.alone
def test_dropping_caches_empties_the_page_cache(client: Host) -> None:
    big = place().home / "big"  # on a disk, as /tmp need not be
    try:
        big.write_bytes(bytes(256 * MIB))
        assert len(big.read_bytes()) == 256 * MIB
        before = meminfo("Cached")
        assert "entire machine" in client.drop_kernel_caches()
        # Dirty pages cannot be dropped: they are written back first.
        assert before - meminfo("Cached") > 128 * MIB
        assert meminfo("Dirty") < 64 * MIB
    finally:
        big.unlink(missing_ok=True)


def meminfo(name: str) -> int:
    lines = (line.partition(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return next(int(value.split()[0]) for found, _, value in lines if found == name) * 1024


# `weighbridge baseline` on real hosts: it sees a slow disk and the limits, writes what it found,
# and leaves nothing.

MB = 10**6
HARDWARE = """
name: baseline-test
kind: lab
hosts:
  client-1: {memory: 512MiB, nic: 200Mbit}
  store-1:
    memory: 512MiB
    nic: 200Mbit
    disks: [{size: 1GiB, bandwidth: 60MB}, {size: 1GiB, bandwidth: 20MB}]
"""


def measured(folder: Path) -> tuple[Baseline, str]:
    (folder / "hardware.yaml").write_text(HARDWARE)
    done = weighbridge(f"baseline {folder}/hardware.yaml --sizes 1MiB --out {folder}/out")
    assert done.returncode == 0, done.stdout + done.stderr
    (written,) = (folder / "out").iterdir()
    assert {path.name for path in written.iterdir()} == {"baseline.json", "baseline.csv", "charts"}
    assert (written / "charts" / "baseline.png").stat().st_size > 10_000
    return Baseline.model_validate_json((written / "baseline.json").read_bytes()), done.stdout


def test_a_baseline_sees_the_limits_of_each_disk_of_both_at_once_and_of_the_network(
    tmp_path: Path,
) -> None:
    baseline, printed = measured(tmp_path)
    found = {(one.host, one.what): one for one in baseline.figures}
    slow, fast = (
        found["store-1", "disk wb1 random write of 1 MiB"],
        found["store-1", "disk wb0 random write of 1 MiB"],
    )
    assert slow.value < 30 * MB
    assert fast.value < 75 * MB
    assert found["store-1", "2 disks at once sequential read of 1 MiB"].promised == 80 * MB
    assert found["store-1", "2 disks at once sequential read of 1 MiB"].value < 100 * MB
    for one in baseline.figures:
        if one.group in ("network", "fabric"):
            assert one.promised == 200 * MB
            assert one.value < 1.15 * 200 * MB
    assert {one.what for one in baseline.figures if one.group == "fabric"} == {
        "sent while all hosts send to 1",
        "received while all hosts send to 1",
    }
    assert "disk wb1 sequential write of 1 MiB" in printed
    assert all(sentence in printed for sentence in oddities(baseline.figures))
    assert left_over() == []


def test_a_baseline_that_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "hardware.yaml").write_text(HARDWARE)
    line = f"baseline {tmp_path}/hardware.yaml --out {tmp_path}/out"
    with started(line, subprocess.PIPE) as process:
        assert process.stdout is not None
        for text in process.stdout:
            if text.startswith("disk wb0"):
                process.send_signal(signal.SIGINT)
        assert process.wait(60) == 128 + signal.SIGINT
    assert left_over() == []
    assert not (tmp_path / "out").exists()
