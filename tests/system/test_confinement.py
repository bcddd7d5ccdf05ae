"""What a lab host cannot do to this machine: each line is an attempt made inside, by programs that
are there.
"""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from small_lab import raised
from weighbridge.common.errors import CommandFailed
from weighbridge.common.host import Host
from weighbridge.environment import place
from weighbridge.gateways.swift.swift import Swift
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.images import ensure
from weighbridge.topologies.lab import LabHosts

pytestmark = pytest.mark.system

MACHINE_ROOT, IMAGE = "client-1", "gateway-1"
HARDWARE = Hardware.model_validate(
    {
        "name": "confined",
        "kind": "lab",
        "hosts": {
            MACHINE_ROOT: {"memory": "256MiB", "nic": "100Mbit"},
            IMAGE: {"memory": "256MiB", "nic": "100Mbit"},
        },
    }
)
BOTH = (MACHINE_ROOT, IMAGE)
CALL = (
    "import ctypes, os, sys; c = ctypes.CDLL(None, use_errno=True); sys.exit(c.syscall({}) == "
    "0 or ctypes.get_errno() != 1)"
)
"""A system call by its number on x86-64: ends with 0 where the host is not permitted it."""
ATTEMPTS = (
    # (who tries, what is tried)
    *((who, "ip link delete eth0") for who in BOTH),
    *((who, "tc qdisc delete dev eth0 root") for who in BOTH),
    *((who, "tc qdisc replace dev eth0 root pfifo") for who in BOTH),
    *((who, "mknod /tmp/disk b 7 0") for who in BOTH),
    # What is there already is written, or nothing: an attempt that gets through does no harm.
    *((who, "true >>/proc/sysrq-trigger") for who in BOTH),
    *((who, "cat /proc/sys/kernel/core_pattern >/proc/sys/kernel/core_pattern") for who in BOTH),
    *((who, "cat /proc/sys/vm/swappiness >/proc/sys/vm/swappiness") for who in BOTH),
    *((who, "cat /proc/kcore | head -c 1 | grep -q .") for who in BOTH),
    (MACHINE_ROOT, "mount -o remount,bind,rw /"),
    (MACHINE_ROOT, "mount -o remount,rw /"),
    (MACHINE_ROOT, "mount -t tmpfs none /mnt"),
    (MACHINE_ROOT, "umount /tmp"),
    (MACHINE_ROOT, "unshare --mount true"),
    *((who, "unshare --user --map-root-user --mount true") for who in BOTH),
    (MACHINE_ROOT, "nsenter --target 1 --mount true"),
    (MACHINE_ROOT, "touch /etc/weighbridge-test"),
)
DENIED = {
    "kexec_load": "246, 0, 0, 0, 0, 0",
    "init_module": "175, 0, 0, 0, 0, 0",
    "bpf": "321, 0, 0, 0, 0, 0",
    "open_by_handle_at": "304, 0, 0, 0, 0, 0",
    "keyctl": "250, 0, 0, 0, 0, 0",
    "clock_settime": "227, 0, 0, 0, 0, 0",
    "unshare for a user namespace": "272, 0x10000000, 0, 0, 0, 0",
    # 17 is SIGCHLD; with a new process namespace as well.
    "clone for a user namespace": "56, 0x30000011, 0, 0, 0, 0",
}


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabHosts]:
    folder = tmp_path_factory.mktemp("confined")
    images = {IMAGE: ensure(Swift.releases["swift-2.35"], print, store=place().images)}
    label = f"confined-{secrets.token_hex(3)}"
    odd = Path("/srv") / f"{label}-größe"
    odd.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", label, str(odd)], check=True)
    try:
        where = folder / "deployment", folder / "state"
        with raised(label, *where, images, HARDWARE) as confined:
            confined.limit()
            yield confined
    finally:
        subprocess.run(["umount", str(odd)], check=True)
        odd.rmdir()


def nic(host: Host) -> str:
    return host.run(["sh", "-c", "ip link show eth0; tc qdisc show dev eth0"]).stdout


@pytest.mark.parametrize(
    ("who", "attempt"), ATTEMPTS, ids=[f"{who}: {attempt}" for who, attempt in ATTEMPTS]
)
def test_an_attempt_on_the_machine_fails_and_changes_nothing(
    hosts: LabHosts, who: str, attempt: str
) -> None:
    host = hosts.hosts[who]
    before = nic(host)
    assert "tbf" in before
    with pytest.raises(CommandFailed):
        host.run(["sh", "-ec", attempt])
    assert nic(host) == before


@pytest.mark.parametrize("who", BOTH)
@pytest.mark.parametrize("call", DENIED)
def test_a_call_that_changes_the_machine_is_not_permitted(
    hosts: LabHosts, who: str, call: str
) -> None:
    hosts.hosts[who].run(["python3", "-c", CALL.format(DENIED[call])])


def test_a_file_system_with_letters_beyond_ascii_in_its_name_is_read_only_too(
    hosts: LabHosts,
) -> None:
    (odd,) = Path("/srv").glob("confined-*-größe")
    with pytest.raises(CommandFailed, match="Read-only file system"):
        hosts.hosts[MACHINE_ROOT].run(["touch", f"{odd}/written"])
    assert not list(odd.iterdir())
