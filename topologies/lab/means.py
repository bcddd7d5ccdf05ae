"""What lab hosts want of this machine: rights, tools, kernel, room; and how to get what is
missing.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from weighbridge.common.quantities import show_bytes
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.lab.cgroup import Cgroups

TOOLS = (
    ("runc", "runc", "hosts are containers under it"),
    ("mmdebstrap", "mmdebstrap", "builds the root images of hosts from Debian packages"),
    ("ip", "iproute2", "joins the hosts by a network of their own"),
    ("tc", "iproute2", "limits the rate of NICs"),
    ("bash", "bash", "starts hosts in a private mount namespace"),
    ("mount", "mount", "mounts a host's root over its image"),
    ("nsenter", "util-linux", "reaches a host's network"),
    ("setpriv", "util-linux", "ends what builds an image with the program that wanted it"),
    ("unshare", "util-linux", "gives hosts a private mount namespace"),
    ("dpkg-query", "dpkg", "lists the packages of an image"),
)
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

V1_CONTROLLERS = ("blkio", "cpu", "cpuacct", "devices", "memory")
V2_CONTROLLERS = ("cpu", "io", "memory")

IMAGES_BYTES = 3 * 2**30
"""Three images (Ceph 656 MB, Swift 416 MB, tools of attestation 241 MB), what is needed while one
is built, and what attestation writes to three disks at once (256 MiB each). The images of all
releases together are 4.7 GB."""
LEAST_MEMORY_BYTES = 256 * 2**20
"""What a host without a memory limit is counted as: an idle Swift storage host."""
OLDEST_KERNEL = (5, 8)
"""LOOP_CONFIGURE came with it; pidfds are older."""


@dataclass(frozen=True)
class Mean:
    """One thing that is wanted. `remedy` says how to get it."""

    name: str
    found: bool
    why: str
    remedy: str


def means(hardware: Hardware, *, home: Path) -> tuple[Mean, ...]:
    """What hosts of this hardware want of this machine; `home` is where images and disks will be.

    Starts nothing.
    """
    return (
        Mean(
            "root",
            os.geteuid() == 0,
            "namespaces, cgroups, loop devices and mounts are root's",
            "run it as root, or through sudo",
        ),
        *(
            Mean(tool, shutil.which(tool) is not None, why, f"apt install {package}")
            for tool, package, why in TOOLS
        ),
        Mean(
            "Debian's archive keys",
            KEYRING.exists(),
            "mmdebstrap checks what it downloads by them",
            "apt install debian-archive-keyring",
        ),
        _kernel(),
        _overlay(),
        *_loop(hardware),
        *_cgroups(),
        _memory(hardware),
        *_disk(hardware, home),
    )


def _kernel() -> Mean:
    release = os.uname().release
    numbers = tuple(
        int(part) for part in release.replace("-", ".").split(".")[:2] if part.isdigit()
    )
    wanted = ".".join(map(str, OLDEST_KERNEL))
    return Mean(
        f"Linux {wanted} or later (this is {release})",
        numbers >= OLDEST_KERNEL,
        "loop disks that free themselves",
        "a newer kernel",
    )


def _overlay() -> Mean:
    known = "overlay" in Path("/proc/filesystems").read_text().split() or _module("overlay")
    return Mean("overlayfs", known, "hosts of one image share it", "modprobe overlay")


def _module(name: str) -> bool:
    """Whether the running kernel has a module that it will load when it is asked for it."""
    listed = Path("/lib/modules") / os.uname().release / "modules.dep"
    return listed.exists() and f"/{name}.ko" in listed.read_text()


def _loop(hardware: Hardware) -> tuple[Mean, ...]:
    count = sum(len(host.disks) for host in hardware.hosts.values())
    if not count:
        return ()
    return (
        Mean(
            "loop devices",
            Path("/dev/loop-control").exists(),
            f"the hosts have {count} disks",
            "modprobe loop",
        ),
    )


def _cgroups() -> tuple[Mean, ...]:
    cgroups = Cgroups()
    if not cgroups.mount.is_dir():
        return (
            Mean(
                "cgroups",
                found=False,
                why="limits of hosts",
                remedy=f"mount cgroup2 at {cgroups.mount}",
            ),
        )
    there = cgroups.controllers()
    wanted = V2_CONTROLLERS if cgroups.version == 2 else V1_CONTROLLERS
    return tuple(
        Mean(
            f"cgroup version {cgroups.version}, {name}",
            name in there,
            "limits and counters of hosts",
            "a kernel and a boot line that have it; inside a container, the controllers delegated "
            "to it",
        )
        for name in wanted
    )


def _memory(hardware: Hardware) -> Mean:
    wanted = sum(host.memory or LEAST_MEMORY_BYTES for host in hardware.hosts.values())
    lines = (line.partition(":") for line in Path("/proc/meminfo").read_text().splitlines())
    available = next(
        int(value.split()[0]) * 1024 for name, _, value in lines if name == "MemAvailable"
    )
    return Mean(
        f"{wanted / 2**30:.1f} GiB of memory ({available / 2**30:.1f} GiB available)",
        available >= wanted,
        f"the hosts of {hardware.name} together",
        "end other programs, or choose hardware with less",
    )


def _disk(hardware: Hardware, home: Path) -> tuple[Mean, ...]:
    there = next(path for path in (home, *home.parents) if path.exists())
    free = shutil.disk_usage(there).free
    disks = sum(disk.size or 0 for host in hardware.hosts.values() for disk in host.disks)
    kind = _file_system(there)
    return (
        Mean(
            f"{show_bytes(IMAGES_BYTES)} of disk at {there} ({free / 2**30:.1f} GiB free)",
            free >= IMAGES_BYTES,
            f"root images, logs and what is written to disks (they may grow to {show_bytes(disks)})",
            "make room, or set WEIGHBRIDGE_HOME to a folder that has it",
        ),
        Mean(
            f"a file system at {there} that overlays can be written on ({kind})",
            kind not in {"overlay", "nfs", "nfs4", "fuse", "ecryptfs"},
            "what hosts change of their image is kept there",
            "set WEIGHBRIDGE_HOME to a folder on a local ext4, xfs or btrfs",
        ),
    )


def _file_system(path: Path) -> str:
    """The kind of file system that a path is on, by the longest mount point above it."""
    best, kind = "", "unknown"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        point = left.split()[4].encode().decode("unicode_escape")
        if path.resolve().is_relative_to(point) and len(point) >= len(best):
            best, kind = point, right.split()[0]
    return kind
