"""What lab hosts need of this machine: rights, tools, kernel, memory, disk; and how to get it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from weighbridge.common.errors import install, installed
from weighbridge.common.quantities import show_bytes, show_cpus
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.lab import model_disks
from weighbridge.topologies.lab.cgroup import Cgroups
from weighbridge.topologies.lab.network import can_delay
from weighbridge.topologies.on_host import machine

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
    return (*_of_machine(), *_of_hosts(hardware), *_of_disk(hardware, home))


def _of_machine() -> Iterator[HostRequirement]:
    why = "namespaces, cgroups, loop devices and mounts need it"
    yield HostRequirement("root", os.geteuid() == 0, why, "run it as root, or through sudo")
    for tool, package, why in TOOLS:
        there = shutil.which(tool) is not None
        yield HostRequirement(tool, there, why, f"apt install {package}")
    why = "mmdebstrap verifies downloads with them"
    remedy = "apt install debian-archive-keyring"
    yield HostRequirement("Debian's archive keys", KEYRING.exists(), why, remedy)
    why = "layouts with TLS need certificates"
    yield HostRequirement("the extra `hosts`", installed("trustme"), why, install("hosts"))
    release = os.uname().release
    numbers = release.replace("-", ".").split(".")[:2]
    yield HostRequirement(
        f"Linux {'.'.join(map(str, OLDEST_KERNEL))} or later (this is {release})",
        tuple(int(part) for part in numbers if part.isdigit()) >= OLDEST_KERNEL,
        "has loop disks that free themselves",
        "boot a newer kernel",
    )
    why = "shares an image between hosts"
    yield HostRequirement("overlayfs", machine.overlay(), why, "modprobe overlay")


def _of_hosts(hardware: Hardware) -> Iterator[HostRequirement]:
    hosts = hardware.hosts
    disks = [disk for host in hosts.values() for disk in host.disks]
    if disks:
        there, why = Path("/dev/loop-control").exists(), f"the hosts have {len(disks)} disks"
        yield HostRequirement("loop devices", there, why, "modprobe loop")
    delayed = [name for name, host in hosts.items() if host.nic and host.nic.delay]
    if delayed:
        why = f"delays what {', '.join(delayed)} send"
        remedy = (
            "modprobe sch_netem, boot a kernel that has it, or take `delay` out of the hardware"
        )
        yield HostRequirement("netem in the kernel", can_delay(), why, remedy)
    modelled = sum(disk.model is not None for disk in disks)
    if modelled:
        missing = model_disks.lacking()
        yield HostRequirement(
            "FUSE" if missing is None else f"FUSE ({missing})",
            missing is None,
            f"{modelled} of the hosts' disks have a model",
            "modprobe fuse, `make setup`; or limit disks by iops and bandwidth instead of model",
        )
    yield from _of_cgroups(hardware)
    owners = {name: host.own_cpus for name, host in hosts.items() if host.own_cpus}
    if owners:
        usable = os.sched_getaffinity(0)
        wanted = {cpu for own in owners.values() for cpu in own}
        yield HostRequirement(
            f"CPUs {show_cpus(wanted)} (this command may use {show_cpus(usable)})",
            wanted <= usable,
            f"{', '.join(owners)} have CPUs of their own",
            "choose hardware whose `cpuset` names CPUs of this machine, or that has `cpus` instead",
        )
    memory = sum(host.memory or LEAST_MEMORY_BYTES for host in hosts.values())
    lines = (line.partition(":") for line in Path("/proc/meminfo").read_text().splitlines())
    available = next(
        int(text.split()[0]) * 1024 for name, _, text in lines if name == "MemAvailable"
    )
    yield HostRequirement(
        f"{memory / 2**30:.1f} GiB of memory ({available / 2**30:.1f} GiB available)",
        available >= memory,
        f"for the hosts of {hardware.name} together",
        "end other programs, or choose hardware with less",
    )


def _of_cgroups(hardware: Hardware) -> Iterator[HostRequirement]:
    cgroups, why = Cgroups(), "limits hosts and counts what they use"
    if not cgroups.mount.is_dir():
        remedy = f"mount cgroup2 at {cgroups.mount}"
        yield HostRequirement("cgroups", found=False, why=why, remedy=remedy)
        return
    there = cgroups.controllers()
    wanted = V2_CONTROLLERS if cgroups.version == 2 else V1_CONTROLLERS
    if any(host.cpuset is not None for host in hardware.hosts.values()):
        wanted = (*wanted, CPUSET)
    remedy = "use a kernel and boot parameters that have it; in a container, have it delegated"
    for name in wanted:
        words = f"cgroup version {cgroups.version}, {name}"
        yield HostRequirement(words, name in there, why, remedy)
    if not cgroups.hands_on():
        inside = cgroups.mount / "init"
        yield HostRequirement(
            "cgroup version 2, a root that hands on its controllers",
            found=False,
            why=f"{why}; this container has processes in {cgroups.mount} itself, so that the "
            "kernel gives hosts below it no limits",
            remedy=f"move them into a cgroup of their own: mkdir {inside}; for pid in $(cat "
            f"{cgroups.mount}/cgroup.procs); do echo $pid >{inside}/cgroup.procs; done",
        )


def _of_disk(hardware: Hardware, home: Path) -> Iterator[HostRequirement]:
    there, free = machine.existing(home), machine.free_bytes(home)
    disks = sum(disk.size or 0 for host in hardware.hosts.values() for disk in host.disks)
    kind = machine.file_system(there)
    yield HostRequirement(
        f"{show_bytes(IMAGES_BYTES)} of disk at {there} ({free / 2**30:.1f} GiB free)",
        free >= IMAGES_BYTES,
        f"for root images, logs and the hosts' disks (which may grow to {show_bytes(disks)})",
        "free some space, or set WEIGHBRIDGE_HOME to a folder that has it",
    )
    yield HostRequirement(
        f"a file system at {there} that supports overlays ({kind})",
        kind not in {"overlay", "nfs", "nfs4", "fuse", "ecryptfs"},
        "keeps what hosts change of their image",
        "set WEIGHBRIDGE_HOME to a folder on a local ext4, xfs or btrfs",
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
