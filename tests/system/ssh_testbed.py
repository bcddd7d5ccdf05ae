"""Real hosts over SSH for tests, and ways to inspect them without the suite."""

from __future__ import annotations

import ctypes
import secrets
import time
from collections.abc import Callable
from pathlib import Path

from machines import Machines
from weighbridge.common.host import Host
from weighbridge.gateways.gateway import RootImage
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.hosts import Hosts
from weighbridge.topologies.ssh import startup
from weighbridge.topologies.ssh.connection import EventLoop

NOTHING = RootImage(name="nothing", suite="bookworm", packages=())
BOTH = ("store-1", "store-2")
SOON_S = 30.0


class LoopThere(EventLoop):
    """A loop whose thread is in the machines' network, as the command's own would be on a machine
    of theirs.
    """

    pid = 0

    def __init__(self) -> None:
        super().__init__()
        self.do(self._enter())

    async def _enter(self) -> None:
        with open(f"/proc/{self.pid}/ns/net", "rb") as namespace:  # noqa: ASYNC230, PTH123 - once, a file of the kernel
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), 0x40000000):
                raise OSError(ctypes.get_errno(), "setns")


def hardware_of(
    testbed: Machines, *, limits: dict[str, object] | None = None, iops: int | None = None
) -> Hardware:
    home = testbed.shared / "home" / ".ssh"
    hosts: dict[str, object] = {"client-1": {"address": "10.255.255.1"}}
    for name in BOTH:
        disk: dict[str, object] = {"id": f"/dev/disk/by-id/test-{name}-0"}
        own: dict[str, object] = {"address": testbed.hosts[name].address, "disks": [disk]}
        if name == "store-1":
            own |= limits or {}
            disk |= {} if iops is None else {"iops": iops, "bandwidth": "4MiB"}
        hosts[name] = own
    access = {"key": str(home / "id_ed25519"), "known_hosts": str(home / "known_hosts")}
    return Hardware.model_validate(
        {"name": "real", "kind": "ssh", "ssh": access, "clients": ["client-1"], "hosts": hosts}
    )


def raised(testbed: Machines, folder: Path, label: str = "", **parts: object) -> Hosts:
    label = label or f"test-{secrets.token_hex(3)}"
    hardware = hardware_of(testbed, **parts)  # type: ignore[arg-type]
    return startup.start_ssh(label, hardware, NOTHING, print, folder=folder / label, names=BOTH)


def left_over(testbed: Machines, *names: str) -> list[str]:
    """Whatever of a deployment is left on the machines, looked for past the suite."""
    script = """
        systemctl list-units --all --plain --no-legend 'weighbridge*' 2>/dev/null || true
        ls -d /opt/weighbridge/claim.json /opt/weighbridge/deployments \\
          /run/systemd/system.control/weighbridge* 2>/dev/null || true
        ls -d /sys/fs/cgroup/*/weighbridge.slice 2>/dev/null || true
        grep /opt/weighbridge /proc/1/mountinfo || true
        for one in /proc/[0-9]*; do
          tr '\\0' '\\n' <$one/environ 2>/dev/null |
            grep -q WEIGHBRIDGE_DEPLOYMENT && tr '\\0' ' ' <$one/cmdline; done || true
        for disk in /dev/wb*; do test -b $disk && blkid -p $disk || true; done
        ls -d /etc/of-the-deployment /srv/of-the-deployment /run/of-the-deployment \\
          2>/dev/null || true
    """
    return [
        f"{name}: {line}"
        for name in names or BOTH
        for line in testbed.hosts[name].run(["sh", "-c", script]).stdout.splitlines()
    ]


def until(true: Callable[[], bool], within_s: float = SOON_S) -> bool:
    deadline = time.monotonic() + within_s
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def there(testbed: Machines, host: Host, word: str) -> bool:
    """Whether a process with this word on its command line is on the machine."""
    script = (
        'for one in /proc/[0-9]*; do tr "\\0" " " <$one/cmdline 2>/dev/null | grep -q " '
        '[$1]" && echo yes; done; true'
    )
    return bool(
        testbed.hosts[host.name]
        .run(["sh", "-c", script.replace("[$1]", f"[{word[0]}]{word[1:]}")])
        .stdout
    )


def left_over_files(testbed: Machines, host: Host) -> list[str]:
    return [
        line
        for line in left_over(testbed, host.name)
        if "/of-the-deployment" in line.split(": ", 1)[1][:30]
    ]


def writes_s(host: Host) -> float:
    """How long the host's disk takes for 60 writes, one after the other, by dd's own clock: its
    start counts nothing.
    """
    printed = host.run(
        [
            "sh",
            "-c",
            'LC_ALL=C dd if=/dev/zero of="$1" bs=4k count=60 oflag=direct 2>&1',
            "sh",
            host.disks[0],
        ]
    ).stdout
    return float(printed.rsplit(" copied, ", 1)[1].split(" s", 1)[0])
