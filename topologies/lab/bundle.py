"""What a host is made of, for runc: its config.json, its /etc/hosts, and the shell lines that mount
its root.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from weighbridge.topologies.lab.disk import LoopDisk
from weighbridge.topologies.lab.runc import DEPLOYMENT, HOST
from weighbridge.topologies.lab.tools import INSIDE

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_PLAIN: Final = (
    *(
        "CAP_AUDIT_WRITE",
        "CAP_CHOWN",
        "CAP_DAC_OVERRIDE",
        "CAP_FOWNER",
        "CAP_FSETID",
        "CAP_IPC_LOCK",
        "CAP_KILL",
    ),
    *(
        "CAP_NET_BIND_SERVICE",
        "CAP_NET_RAW",
        "CAP_SETFCAP",
        "CAP_SETGID",
        "CAP_SETPCAP",
        "CAP_SETUID",
        "CAP_SYS_CHROOT",
    ),
    *("CAP_SYS_NICE", "CAP_SYS_PTRACE"),
)
"""What daemons, drivers and tools need: no host changes the machine, its own limits of the network,
or which devices there are.
"""
_MOUNTING: Final = "CAP_SYS_ADMIN"
"""What mounting takes:

XFS on a host's disks, a file system that is a program. It is near to root on the machine.
"""

DENIED: Final = (
    *(
        "kexec_load",
        "kexec_file_load",
        "init_module",
        "finit_module",
        "delete_module",
        "reboot",
        "swapon",
        "swapoff",
    ),
    *(
        "settimeofday",
        "clock_settime",
        "adjtimex",
        "clock_adjtime",
        "bpf",
        "userfaultfd",
        "perf_event_open",
    ),
    *(
        "open_by_handle_at",
        "acct",
        "quotactl",
        "quotactl_fd",
        "iopl",
        "ioperm",
        "add_key",
        "request_key",
        "keyctl",
    ),
    *(
        "nfsservctl",
        "lookup_dcookie",
        "uselib",
        "ustat",
        "sysfs",
        "_sysctl",
        "vhangup",
        "pivot_root",
    ),
)
"""System calls that change the machine, or reach what is not the host's; nothing that a gateway or
a driver does takes one.
"""
MASKED: Final = (
    *(
        "/proc/acpi",
        "/proc/kcore",
        "/proc/keys",
        "/proc/latency_stats",
        "/proc/sched_debug",
        "/proc/scsi",
        "/proc/timer_list",
    ),
    *("/sys/firmware", "/sys/devices/virtual/powercap"),
)
READ_ONLY: Final = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
"""The machine's own, of which a host has no part."""
_SECCOMP: Final = Path("/proc/sys/kernel/seccomp/actions_avail")

# What a file system that is a program (ceph-fuse) is mounted by: character device 10:229 on every
# Linux.
FUSE = Path("/dev/fuse")
_FUSE_DEVICE = {"type": "c", "major": 10, "minor": 229}

# The first process of a host has to reap what its programs leave behind, and nothing else: `wait`
# does, in dash and bash.
INIT = ("/bin/sh", "-c", "sleep infinity & wait")

_OCTAL: Final = re.compile(rb"\\([0-7]{3})")
OWN_FOLDERS: Final = ("/proc", "/sys", "/dev", "/run", "/tmp", "/var/log")  # noqa: S108 - replaced in every host
"""Folders that each host has for itself, also one whose root is this machine's."""


@dataclass(frozen=True)
class Bundle:
    """One container. `image` is a root image below an overlay, or None: this machine's own root,
    read only.
    """

    deployment: str
    host: str
    folder: Path
    """Where the bundle is kept: config.json, the mount point `rootfs`, the overlay's `upper` and
    `work`.
    """
    logs: Path
    """The folder that is the host's /var/log/host."""
    image: Path | None
    etc_hosts: Path
    disks: tuple[LoopDisk, ...] = ()
    memory_bytes: int | None = None
    limit_swap: bool = False
    """Whether this kernel accounts swap: then memory and swap together are limited to
    `memory_bytes`.
    """
    visible: tuple[Path, ...] = ()
    """Folders of this machine to be seen although they are below /tmp or /run; only where there is
    no image.
    """
    tools: Path | None = None
    """The root image whose programs the host has at `tools.INSIDE`."""

    @property
    def id(self) -> str:
        """The container's name, unique on this machine: no deployment's label holds a dot."""
        return f"{self.deployment}.{self.host}"

    @property
    def cgroup(self) -> str:
        """Where its limits are, below the mount point of each cgroup hierarchy."""
        return f"/weighbridge/{self.deployment}/{self.host}"

    def config(self) -> dict[str, Any]:
        """config.json by the OCI runtime specification 1.0.2."""
        resources: dict[str, Any] = {"devices": [{"allow": False, "access": "rwm"}]}
        devices = []
        for disk in self.disks:
            device = {"type": "b", "major": disk.major, "minor": disk.minor}
            devices.append({"path": disk.path, **device, "fileMode": 0o660, "uid": 0, "gid": 0})
            resources["devices"].append({"allow": True, **device, "access": "rwm"})
        if self.image is not None and FUSE.is_char_device():
            devices.append(
                {"path": str(FUSE), **_FUSE_DEVICE, "fileMode": 0o666, "uid": 0, "gid": 0}
            )
            resources["devices"].append({"allow": True, **_FUSE_DEVICE, "access": "rwm"})
        if self.memory_bytes is not None:
            swap = {"swap": self.memory_bytes} if self.limit_swap else {}
            resources["memory"] = {"limit": self.memory_bytes, **swap}
        # XFS is mounted on disks, CephFS where an image is. A client, which shows this machine's
        # root, could make that writable.
        capabilities = [*_PLAIN, *([_MOUNTING] if self.image is not None or self.disks else [])]
        return {
            "ociVersion": "1.0.2",
            "hostname": self.host.replace("_", ""),
            "root": {"path": "rootfs", "readonly": self.image is None},
            # No rlimits: above the caller's hard limit runc fails, below it a gateway would be held
            # back for nothing.
            "process": {
                "terminal": False,
                "user": {"uid": 0, "gid": 0},
                "cwd": "/",
                "args": list(INIT),
                "env": [f"PATH={PATH}", "LC_ALL=C.UTF-8"],
                "noNewPrivileges": False,
                "capabilities": dict.fromkeys(
                    ("bounding", "effective", "permitted", "inheritable"), capabilities
                ),
            },
            "annotations": {DEPLOYMENT: self.deployment, HOST: self.host},
            "mounts": self._mounts(),
            "linux": {
                "cgroupsPath": self.cgroup,
                "namespaces": [
                    {"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")
                ],
                "devices": devices,
                "resources": resources,
                **({"seccomp": _seccomp()} if _SECCOMP.exists() else {}),
                "maskedPaths": list(MASKED),
                "readonlyPaths": list(READ_ONLY),
            },
        }

    def _mounts(self) -> list[dict[str, Any]]:
        def mount(target: str, kind: str, options: str, source: str = "") -> dict[str, Any]:
            return {
                "destination": target,
                "type": kind,
                "source": source or kind,
                "options": options.split(","),
            }

        seen = [
            path
            for path in self.visible
            if path.is_relative_to("/tmp") or path.is_relative_to("/run")  # noqa: S108
        ]
        return [
            mount("/proc", "proc", "nosuid,nodev,noexec"),
            mount("/dev", "tmpfs", "nosuid,strictatime,mode=755,size=65536k"),
            mount("/dev/pts", "devpts", "nosuid,noexec,newinstance,ptmxmode=0666,mode=0620,gid=5"),
            mount("/dev/shm", "tmpfs", "nosuid,noexec,nodev,mode=1777,size=1g"),  # noqa: S108 - a path inside the host
            mount("/sys", "sysfs", "nosuid,noexec,nodev,ro"),
            mount("/sys/fs/cgroup", "cgroup", "nosuid,noexec,nodev,relatime,ro"),
            mount("/run", "tmpfs", "nosuid,nodev,mode=755"),
            mount("/tmp", "tmpfs", "nosuid,nodev,mode=1777"),  # noqa: S108 - a path inside the host
            mount("/var/log/host", "bind", "rbind,rw", str(self.logs)),
            mount("/etc/hosts", "bind", "bind,ro", str(self.etc_hosts)),
            *(
                mount(str(path), "bind", "rbind,ro", str(path))
                for path in seen
                if self.image is None
            ),
            *(
                [mount(INSIDE, "bind", "bind,ro", str(self.tools))]
                if self.tools is not None
                else []
            ),
        ]

    def write(self) -> None:
        """Make the bundle's folders and config.json."""
        for name in ("rootfs", "upper", "work") if self.image is not None else ("rootfs",):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.logs.mkdir(parents=True, exist_ok=True)
        (self.folder / "config.json").write_text(json.dumps(self.config(), indent=1))

    def script(self, submounts: Sequence[str] = ()) -> str:
        """Shell lines that mount the root at `rootfs`, for a private mount namespace with the
        bundle's folder as working folder.

        `submounts` are the mount points of this machine below `/` that a machine root shows as
        well.
        """
        if self.image is not None:
            options = (
                f"lowerdir={self.image},upperdir={self.folder}/upper,workdir={self.folder}/work"
            )
            return f"mount -t overlay weighbridge -o {shlex.quote(options)} rootfs"
        # A root of this machine is read only as a whole, also where other file systems are mounted
        # in it. /var/log gets a file system of its own because runc makes the mount point
        # /var/log/host, which must not appear on this machine. What cannot be made read only is not
        # shown at all; what lies under another mount cannot be reached anyway.
        lines = [
            "mount --rbind / rootfs",
            "mount --make-rprivate rootfs",
            (
                'shut() { mount -o remount,bind,ro "$1" 2>/dev/null || umount --lazy "$1" 2>/dev/null '
                '|| ! mountpoint --quiet "$1"; }'
            ),
        ]
        lines += [f"shut {shlex.quote(f'rootfs{path}')}" for path in submounts]
        lines += ["mount -t tmpfs -o mode=755 weighbridge rootfs/var/log"]
        return "\n".join(lines)


def _seccomp() -> dict[str, Any]:
    """All system calls but DENIED. runc's default is none at all; other engines' lists name what is
    allowed, release by release.
    """
    denied = {"names": list(DENIED), "action": "SCMP_ACT_ERRNO", "errnoRet": 1}
    return {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [denied]}


def etc_hosts(addresses: Mapping[str, str]) -> str:
    """An /etc/hosts with the names of all hosts of a deployment."""
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback"]
    return "\n".join([*lines, *(f"{address} {name}" for name, address in addresses.items())]) + "\n"


def submounts(mountinfo: bytes) -> tuple[str, ...]:
    """Mount points of a /proc/PID/mountinfo to be made read only in a machine root: all but `/` and
    what a host has of its own.

    The kernel writes a blank, a tab, a newline and a backslash as an octal number, and all other
    bytes of a name as they are.
    """
    points = [
        os.fsdecode(_OCTAL.sub(lambda found: bytes([int(found[1], 8)]), line.split()[4]))
        for line in mountinfo.splitlines()
    ]
    return tuple(
        dict.fromkeys(
            point
            for point in points
            if point != "/" and not any(f"{point}/".startswith(f"{one}/") for one in OWN_FOLDERS)
        )
    )
