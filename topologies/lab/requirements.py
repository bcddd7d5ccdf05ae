"""What lab hosts need of this machine: rights, tools, kernel, memory, disk; and how to get it."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from weighbridge.common.errors import install, installed
from weighbridge.common.quantities import show_bytes, show_cpus
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.lab import model_disks
from weighbridge.topologies.lab.cgroup import Cgroups
from weighbridge.topologies.lab.network import can_delay

TOOLS = (
    ("runc", "runc", "runs hosts as containers"),
    ("mmdebstrap", "mmdebstrap", "builds the hosts' root images from Debian packages"),
    ("ip", "iproute2", "connects the hosts by their own network"),
    ("tc", "iproute2", "limits the rate of NICs"),
    ("bash", "bash", "starts hosts in a private mount namespace"),
    ("mount", "mount", "mounts a host's root over its image"),
    ("nsenter", "util-linux", "reaches a host's network"),
    ("setpriv", "util-linux", "ends the build of an image with its program"),
    ("unshare", "util-linux", "gives hosts a private mount namespace"),
    ("dpkg-query", "dpkg", "lists the packages of an image"),
)
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

V1_CONTROLLERS = ("blkio", "cpu", "cpuacct", "devices", "memory")
V2_CONTROLLERS = ("cpu", "io", "memory")
CPUSET = "cpuset"
"""The controller of both versions that hosts with CPUs of their own need."""

IMAGES_BYTES = 3 * 2**30
"""Three images (Ceph 656 MB, Swift 416 MB, tools of attestation 241 MB), space to build one, and
what attestation writes to three disks at once (256 MiB each). The images of all releases are 4.7
GB.
"""
LEAST_MEMORY_BYTES = 256 * 2**20
"""The assumed memory of a host without a limit: an idle Swift storage host."""
OLDEST_KERNEL = (5, 8)
"""The first with LOOP_CONFIGURE; pidfds are older."""


@dataclass(frozen=True)
class HostRequirement:
    """A requirement. `remedy` says how to meet it."""

    name: str
    found: bool
    why: str
    remedy: str


def lab_requirements(hardware: Hardware, *, home: Path) -> tuple[HostRequirement, ...]:
    """What hosts of this hardware need; `home` is for images and disks. Starts nothing."""
    return (
        HostRequirement(
            "root",
            os.geteuid() == 0,
            "namespaces, cgroups, loop devices and mounts need it",
            "run it as root, or through sudo",
        ),
        *(
            HostRequirement(tool, shutil.which(tool) is not None, why, f"apt install {package}")
            for tool, package, why in TOOLS
        ),
        HostRequirement(
            "Debian's archive keys",
            KEYRING.exists(),
            "mmdebstrap verifies downloads with them",
            "apt install debian-archive-keyring",
        ),
        HostRequirement(
            "the extra `hosts`",
            installed("trustme"),
            "layouts with TLS need certificates",
            install("hosts"),
        ),
        _kernel(),
        _overlay(),
        *_loop(hardware),
        *_netem(hardware),
        *_models(hardware),
        *_cgroups(hardware),
        *_own_cpus(hardware),
        _memory(hardware),
        *_disk(hardware, home),
    )


def _kernel() -> HostRequirement:
    release = os.uname().release
    numbers = tuple(
        int(part) for part in release.replace("-", ".").split(".")[:2] if part.isdigit()
    )
    wanted = ".".join(map(str, OLDEST_KERNEL))
    return HostRequirement(
        f"Linux {wanted} or later (this is {release})",
        numbers >= OLDEST_KERNEL,
        "has loop disks that free themselves",
        "boot a newer kernel",
    )


def _overlay() -> HostRequirement:
    known = "overlay" in Path("/proc/filesystems").read_text().split() or _module("overlay")
    return HostRequirement("overlayfs", known, "shares an image between hosts", "modprobe overlay")


def _module(name: str) -> bool:
    listed = Path("/lib/modules") / os.uname().release / "modules.dep"
    return listed.exists() and f"/{name}.ko" in listed.read_text()


def _loop(hardware: Hardware) -> tuple[HostRequirement, ...]:
    count = sum(len(host.disks) for host in hardware.hosts.values())
    found = Path("/dev/loop-control").exists()
    needed = HostRequirement(
        "loop devices", found, f"the hosts have {count} disks", "modprobe loop"
    )
    return (needed,) if count else ()


def _netem(hardware: Hardware) -> tuple[HostRequirement, ...]:
    delayed = [name for name, host in hardware.hosts.items() if host.nic and host.nic.delay]
    if not delayed:
        return ()
    remedy = "modprobe sch_netem, boot a kernel that has it, or take `delay` out of the hardware"
    why = f"delays what {', '.join(delayed)} send"
    return (HostRequirement("netem in the kernel", can_delay(), why, remedy),)


def _models(hardware: Hardware) -> tuple[HostRequirement, ...]:
    disks = [disk for host in hardware.hosts.values() for disk in host.disks]
    count = sum(disk.model is not None for disk in disks)
    if not count:
        return ()
    missing = model_disks.lacking()
    return (
        HostRequirement(
            "FUSE" if missing is None else f"FUSE ({missing})",
            missing is None,
            f"{count} of the hosts' disks have a model",
            "modprobe fuse, `make setup`; or limit disks by iops and bandwidth instead of model",
        ),
    )


def _cgroups(hardware: Hardware) -> tuple[HostRequirement, ...]:
    cgroups = Cgroups()
    why = "limits hosts and counts what they use"
    if not cgroups.mount.is_dir():
        return (
            HostRequirement(
                "cgroups", found=False, why=why, remedy=f"mount cgroup2 at {cgroups.mount}"
            ),
        )
    there = cgroups.controllers()
    wanted = V2_CONTROLLERS if cgroups.version == 2 else V1_CONTROLLERS
    if any(host.cpuset is not None for host in hardware.hosts.values()):
        wanted = (*wanted, CPUSET)
    remedy = "use a kernel and boot parameters that have it; in a container, have it delegated"
    found = [
        HostRequirement(f"cgroup version {cgroups.version}, {name}", name in there, why, remedy)
        for name in wanted
    ]
    if not cgroups.hands_on():
        inside = cgroups.mount / "init"
        found.append(
            HostRequirement(
                "cgroup version 2, a root that hands on its controllers",
                found=False,
                why=f"{why}; this container has processes in {cgroups.mount} itself, so that the "
                "kernel gives hosts below it no limits",
                remedy=f"move them into a cgroup of their own: mkdir {inside}; for pid in $(cat "
                f"{cgroups.mount}/cgroup.procs); do echo $pid >{inside}/cgroup.procs; done",
            )
        )
    return tuple(found)


def _own_cpus(hardware: Hardware) -> tuple[HostRequirement, ...]:
    owners = {name: host.own_cpus for name, host in hardware.hosts.items() if host.own_cpus}
    if not owners:
        return ()
    there = os.sched_getaffinity(0)
    wanted = {cpu for own in owners.values() for cpu in own}
    return (
        HostRequirement(
            f"CPUs {show_cpus(wanted)} (this command may use {show_cpus(there)})",
            wanted <= there,
            f"{', '.join(owners)} have CPUs of their own",
            "choose hardware whose `cpuset` names CPUs of this machine, or that has `cpus` instead",
        ),
    )


def _memory(hardware: Hardware) -> HostRequirement:
    wanted = sum(host.memory or LEAST_MEMORY_BYTES for host in hardware.hosts.values())
    lines = (line.partition(":") for line in Path("/proc/meminfo").read_text().splitlines())
    available = next(
        int(value.split()[0]) * 1024 for name, _, value in lines if name == "MemAvailable"
    )
    return HostRequirement(
        f"{wanted / 2**30:.1f} GiB of memory ({available / 2**30:.1f} GiB available)",
        available >= wanted,
        f"for the hosts of {hardware.name} together",
        "end other programs, or choose hardware with less",
    )


def free_bytes(home: Path) -> int:
    """The free space where a folder is, or will be."""
    return shutil.disk_usage(_existing(home)).free


def _existing(path: Path) -> Path:
    return next(one for one in (path, *path.parents) if one.exists())


def _disk(hardware: Hardware, home: Path) -> tuple[HostRequirement, ...]:
    there, free = _existing(home), free_bytes(home)
    disks = sum(disk.size or 0 for host in hardware.hosts.values() for disk in host.disks)
    kind = _file_system(there)
    return (
        HostRequirement(
            f"{show_bytes(IMAGES_BYTES)} of disk at {there} ({free / 2**30:.1f} GiB free)",
            free >= IMAGES_BYTES,
            f"for root images, logs and the hosts' disks (which may grow to {show_bytes(disks)})",
            "free some space, or set WEIGHBRIDGE_HOME to a folder that has it",
        ),
        HostRequirement(
            f"a file system at {there} that supports overlays ({kind})",
            kind not in {"overlay", "nfs", "nfs4", "fuse", "ecryptfs"},
            "keeps what hosts change of their image",
            "set WEIGHBRIDGE_HOME to a folder on a local ext4, xfs or btrfs",
        ),
    )


def exhausted(output: str) -> str:
    """Advice for a host that did not start for lack of this machine's resources; else empty."""
    no_space = "No space left on device" in output
    if no_space and any(word in output for word in ("unshare", "namespace", "clone")):
        return (
            "This machine ran out of namespaces, which it reports as space: `sysctl user` shows "
            "the limits (max_mnt_namespaces, max_net_namespaces ...), `lsns` who has them."
        )
    if no_space and "cgroup" in output:
        return (
            "This machine ran out of cgroups: see cgroup.max.descendants; `weighbridge down --all` "
            "removes leftovers."
        )
    if "cannot allocate memory" in output.lower():
        return (
            "This machine ran out of memory: end other programs, or choose hardware with less; "
            "`weighbridge doctor` counts it."
        )
    return ""


def _file_system(path: Path) -> str:
    best, kind = "", "unknown"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        point = left.split()[4].encode().decode("unicode_escape")
        if path.resolve().is_relative_to(point) and len(point) >= len(best):
            best, kind = point, right.split()[0]
    return kind
