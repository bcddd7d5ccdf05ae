"""What is around real hosts: their disks, their kernel settings, what doctor installs, and what a
killed conductor leaves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from machines import Machines, machines
from weighbridge.common.host import Completed, Host
from weighbridge.topologies.hardware import Disk, Hardware
from weighbridge.topologies.ssh import disks, kernel
from weighbridge.topologies.ssh.connection import SshConnection

pytestmark = pytest.mark.system

GATEWAY, STORE, CLIENT = "gateway-1", "store-1", "client-1"
BOTH = (GATEWAY, STORE)
LAYOUT = """\
name: one-store
about: Swift with one replica
gateway: swift
release: swift-2.30
place: {proxy: [gateway-1], storage: [store-1]}
settings: {replicas: 1}
"""
SETTING = "net.ipv4.tcp_timestamps"
EXIT_USAGE, EXIT_TARGET = 2, 3

LEFT = """
{
  pgrep -a -x sleep | grep 1000
  ls -d /etc/weighbridge-was-here /opt/weighbridge/*
  grep 'upperdir=/opt/weighbridge' /proc/1/mountinfo
  systemctl list-units --all --plain --no-legend 'weighbridge*'
} 2>/dev/null || true
"""

KILL = "kill -KILL $(pgrep -x -f 'sleep 1000'); while pgrep -x -f 'sleep 1000'; do sleep 0.05; done"

LEAVE = """
import os, signal, sys
from pathlib import Path
from weighbridge.gateways.gateway import RootImage
from weighbridge.common.host import Service
from weighbridge.topologies.loader import load_hardware
from weighbridge.topologies.ssh.startup import start_ssh
hardware = load_hardware(Path(sys.argv[1]))
folder = Path("/var/log/host/left"); folder.mkdir(exist_ok=True)
image = RootImage(name="bare", suite="", packages=())
names = ["gateway-1", "store-1"]
hosts = start_ssh("left-1", hardware, image, lambda text: None, folder=folder, names=names)
for host in hosts.hosts.values():
    host.start([Service("sleeper", ("sleep", "1000"))])
    host.put("/etc/weighbridge-was-here", "x")
print("running", flush=True)
sys.stdin.readline()
os.kill(os.getpid(), signal.SIGKILL)
"""


class Beside(SshConnection):
    """The way to a machine past sshd."""

    def __init__(self, host: Host) -> None:
        self.name, self.address, self._host = host.name, host.address, host

    def sh(
        self, script: str, *words: str, stdin: bytes | str = b"", timeout_s: float = 60
    ) -> Completed:
        return self._host.run(
            ["/bin/sh", "-ec", script, "sh", *words], stdin=stdin, timeout_s=timeout_s
        )

    def python(
        self, source: str, *words: str, stdin: bytes | str = b"", timeout_s: float = 60
    ) -> Completed:
        return self._host.run(
            ["python3", "-I", "-c", source, *words], stdin=stdin, timeout_s=timeout_s
        )


@pytest.fixture(scope="module")
def testbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    sizes = {CLIENT: (), GATEWAY: (), STORE: ("1GiB",) * 7}
    with machines(tmp_path_factory.mktemp("machines"), sizes) as found:
        (found.shared / "one-store.yaml").write_text(LAYOUT)
        found.write_hardware([CLIENT], f"sysctl: {{{SETTING}: '0'}}")
        yield found


def weighbridge(testbed: Machines, *words: str) -> tuple[int, str]:
    done = testbed.weighbridge(*words, "--hardware", "/var/log/host/real.yaml")
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def setting(testbed: Machines, name: str) -> str:
    return testbed.hosts[name].run(["cat", f"/proc/sys/{SETTING.replace('.', '/')}"]).stdout.strip()


def test_disks_with_data_or_in_use_are_refused_and_those_that_may_be_wiped_are_wiped(
    testbed: Machines,
) -> None:
    shell = Beside(testbed.hosts[STORE])
    ids = [f"/dev/disk/by-id/test-{STORE}-{index}" for index in range(7)]
    found, faults = disks.look(shell, [Disk(id=one) for one in ids])
    assert ([disk.size_bytes for disk in found], faults) == ([2**30] * 7, ())
    shell.sh(
        """
        mkfs.xfs -q /dev/wb1; mkswap -q /dev/wb2
        partition='\\200\\0\\001\\0\\203\\376\\377\\0\\0\\010\\0\\0\\0\\0\\020'
        printf "$partition" | dd of=/dev/wb3 bs=1 seek=446 2>/dev/null
        printf '\\125\\252' | dd of=/dev/wb3 bs=1 seek=510 2>/dev/null
        printf 'bluestore block device\\nx' | dd of=/dev/wb4 2>/dev/null
        printf junk | dd of=/dev/wb5 bs=1 seek=5000 2>/dev/null
        mkfs.ext4 -q /dev/wb6; mkdir -p /mnt/used; mount /dev/wb6 /mnt/used
        """
    )
    _, faults = disks.look(
        shell, [Disk(id=one) for one in (*ids, "/dev/disk/by-id/none", "/dev/null")]
    )
    expected = [
        (1, "a file system (xfs)"),
        (2, "swap space"),
        (3, "a partition table (dos)"),
        (4, "an OSD of Ceph (BlueStore)"),
    ]
    expected += [(5, "data of an unknown kind"), (6, "wb6 is mounted at /mnt/used")]
    for (index, word), fault in zip(expected, faults, strict=False):
        assert ids[index] in fault, fault
        assert word in fault
    assert "there is no such disk" in faults[6]
    assert "not a block device" in faults[7]
    _, (fault,) = disks.look(shell, [Disk(id=one, wipe=True) for one in ids])
    assert "mounted at /mnt/used" in fault
    shell.sh("umount /mnt/used")
    found, faults = disks.look(shell, [Disk(id=one, wipe=True) for one in ids])
    assert faults == ()
    disks.clear(shell, found)
    seen = shell.sh(
        "for disk in /dev/wb*; do blkid -p $disk || test $? = 2; head -c 1048576 $disk | tr -d "
        "'\\0' | wc -c; done"
    ).stdout
    assert seen.split() == ["0"] * 7
    assert disks.look(shell, [Disk(id=one) for one in ids])[1] == ()


def test_settings_and_mtu_are_set_read_back_and_put_back(testbed: Machines) -> None:
    shell = Beside(testbed.hosts[GATEWAY])
    hosts = {GATEWAY: {"address": shell.address}}
    wanted = {
        "name": "r",
        "kind": "ssh",
        "clients": [GATEWAY],
        "hosts": hosts,
        "sysctl": {SETTING: "0"},
    }
    hardware = Hardware.model_validate({**wanted, "network": {"mtu": 1400, "set": True}})
    looked = kernel.look(shell, hardware)
    assert kernel.faults(shell, hardware, looked) == ()
    before = kernel.former(hardware, looked)
    kernel.apply(shell, hardware, before)
    link = json.loads(shell.sh("ip -j link show eth0").stdout)[0]
    assert (link["mtu"], setting(testbed, GATEWAY)) == (1400, "0")
    kernel.restore(shell, before)
    assert kernel.look(shell, hardware) == looked
    lacking = hardware.model_copy(update={"sysctl": {"net.no_such_thing": "1"}})
    looked = kernel.look(shell, lacking)
    (fault,) = kernel.faults(shell, lacking, looked)
    assert "no setting net.no_such_thing" in fault


def test_doctor_names_the_packages_that_each_host_lacks(testbed: Machines) -> None:
    for name in BOTH:
        testbed.hosts[name].run(["dpkg", "--purge", "--force-depends", "memcached", "haproxy"])
    code, said = weighbridge(testbed, "doctor", "--layouts", "/var/log/host/one-store.yaml")
    assert code == EXIT_USAGE, said
    assert all(said.count(name) >= 2 for name in ("memcached", "haproxy")), said


@pytest.mark.test_all
def test_what_a_killed_conductor_left_is_removed_and_one_at_work_is_left_alone(
    testbed: Machines,
) -> None:
    command = testbed.conductor.module("x")
    words = [command.argv[0], "-c", LEAVE, "/var/log/host/real.yaml"]
    errors = testbed.shared / "leave.err"
    home = {**command.env, "HOME": "/var/log/host/home"}
    conductor = testbed.conductor.spawn(words, stderr=errors, env=home)
    assert conductor.stdout is not None
    assert conductor.stdin is not None
    assert conductor.stdout.readline() == b"running\n", errors.read_text()
    assert [setting(testbed, name) for name in BOTH] == ["0", "0"]

    code, said = weighbridge(testbed, "down")
    assert code == EXIT_USAGE, said
    assert "left-1 was left alone" in said
    assert "in use" in weighbridge(testbed, "status")[1]
    conductor.stdin.write(b"\n")
    conductor.stdin.flush()
    conductor.wait(10)
    conductor.stdout.close()
    conductor.stdin.close()

    code, said = weighbridge(testbed, "status")
    assert code == 0, said
    assert "left-1 on gateway-1, store-1" in said
    assert "dead" not in said
    hardware = (testbed.shared / "real.yaml").read_text()
    testbed.hosts[GATEWAY].run(["sh", "-ec", KILL])
    code, said = weighbridge(testbed, "status")
    assert code == 0, said
    assert said.count("dead: ") == 1, said
    log = "/opt/weighbridge/deployments/left-1/log/sleeper.out"
    assert f"dead: sleeper on {GATEWAY}; its log: {GATEWAY}:{log} it is incomplete" in said
    assert testbed.hosts[GATEWAY].run(["cat", log]).stdout == ""
    testbed.hosts[STORE].run(["sh", "-ec", KILL])
    code, said = weighbridge(testbed, "status")
    assert code == 0, said
    assert "dead: none of it is running; `" in said, said
    (testbed.shared / "real.yaml").write_text(f"{hardware}  gone-1: {{address: 10.255.255.1}}\n")
    code, said = weighbridge(testbed, "status")
    assert code == EXIT_TARGET, said
    assert [f"dead: sleeper on {name}; " in said for name in BOTH] == [True, True], said
    assert "not known: what is running on gone-1" in said
    assert "gone-1 (10.255.255.1): cannot be reached" in said
    code, said = weighbridge(testbed, "down")
    (testbed.shared / "real.yaml").write_text(hardware)
    assert code == EXIT_TARGET, said
    assert "gone-1 (10.255.255.1): cannot be reached" in said
    assert "removed left-1" in said
    for name in BOTH:
        assert testbed.hosts[name].run(["sh", "-c", LEFT]).stdout.split() == [
            "/opt/weighbridge/lock"
        ]
        assert setting(testbed, name) == "1"
    code, said = weighbridge(testbed, "down", "--all")
    assert (code, "nothing was left" in said) == (0, True), said
    assert [
        testbed.hosts[name].run(["ls", "/opt"]).stdout.split().count("weighbridge") for name in BOTH
    ] == [0, 0]
