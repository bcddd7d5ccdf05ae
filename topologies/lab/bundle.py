"""What a host is made of, for runc: its config.json, its /etc/hosts, and the shell lines that mount its root."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from topologies.lab.disk import LoopDisk
from topologies.lab.runc import DEPLOYMENT, HOST
from topologies.lab.tools import INSIDE

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# Enough for mon, OSD, radosgw, swift, xfs mounts on the host's own disks and ptrace-based inspection; no CAP_SYS_RESOURCE,
# no CAP_SYS_MODULE, no CAP_SYS_TIME: nothing a gateway does needs to change the machine.
CAPABILITIES = (
    "CAP_AUDIT_WRITE",
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_DAC_READ_SEARCH",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_IPC_LOCK",
    "CAP_KILL",
    "CAP_MKNOD",
    "CAP_NET_ADMIN",
    "CAP_NET_BIND_SERVICE",
    "CAP_NET_RAW",
    "CAP_SETFCAP",
    "CAP_SETGID",
    "CAP_SETPCAP",
    "CAP_SETUID",
    "CAP_SYS_ADMIN",
    "CAP_SYS_CHROOT",
    "CAP_SYS_NICE",
    "CAP_SYS_PTRACE",
    "CAP_SYS_RAWIO",
)

# What a file system that is a program (ceph-fuse) is mounted by: character device 10:229 on every Linux.
FUSE = Path("/dev/fuse")
_FUSE_DEVICE = {"type": "c", "major": 10, "minor": 229}

# The first process of a host has to reap what its programs leave behind, and nothing else: `wait` does, in dash and bash.
INIT = ("/bin/sh", "-c", "sleep infinity & wait")

OWN_FOLDERS: Final = ("/proc", "/sys", "/dev", "/run", "/tmp", "/var/log")  # noqa: S108 - replaced in every host
"""Folders that each host has for itself, also one whose root is this machine's."""


@dataclass(frozen=True)
class Bundle:
    """One container. `image` is a root image below an overlay, or None: this machine's own root, read only."""

    deployment: str
    host: str
    folder: Path
    """Where the bundle is kept: config.json, the mount point `rootfs`, the overlay's `upper` and `work`."""
    logs: Path
    """The folder that is the host's /var/log/host."""
    image: Path | None
    etc_hosts: Path
    disks: tuple[LoopDisk, ...] = ()
    memory_bytes: int | None = None
    limit_swap: bool = False
    """Whether this kernel accounts swap: then memory and swap together are limited to `memory_bytes`."""
    visible: tuple[Path, ...] = ()
    """Folders of this machine to be seen although they are below /tmp or /run; only where there is no image."""
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
            devices.append({"path": str(FUSE), **_FUSE_DEVICE, "fileMode": 0o666, "uid": 0, "gid": 0})
            resources["devices"].append({"allow": True, **_FUSE_DEVICE, "access": "rwm"})
        if self.memory_bytes is not None:
            swap = {"swap": self.memory_bytes} if self.limit_swap else {}
            resources["memory"] = {"limit": self.memory_bytes, **swap}
        return {
            "ociVersion": "1.0.2",
            "hostname": self.host.replace("_", ""),
            "root": {"path": "rootfs", "readonly": self.image is None},
            # No rlimits: above the caller's hard limit runc fails, below it a gateway would be held back for nothing.
            "process": {
                "terminal": False,
                "user": {"uid": 0, "gid": 0},
                "cwd": "/",
                "args": list(INIT),
                "env": [f"PATH={PATH}", "LC_ALL=C.UTF-8"],
                "noNewPrivileges": False,
                "capabilities": {kind: list(CAPABILITIES) for kind in ("bounding", "effective", "permitted", "inheritable")},
            },
            "annotations": {DEPLOYMENT: self.deployment, HOST: self.host},
            "mounts": self._mounts(),
            "linux": {
                "cgroupsPath": self.cgroup,
                "namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")],
                "devices": devices,
                "resources": resources,
                "maskedPaths": ["/proc/kcore", "/sys/firmware"],
                "readonlyPaths": ["/proc/sysrq-trigger"],
            },
        }

    def _mounts(self) -> list[dict[str, Any]]:
        def mount(target: str, kind: str, options: str, source: str = "") -> dict[str, Any]:
            return {"destination": target, "type": kind, "source": source or kind, "options": options.split(",")}

        seen = [path for path in self.visible if path.is_relative_to("/tmp") or path.is_relative_to("/run")]  # noqa: S108
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
            *(mount(str(path), "bind", "rbind,ro", str(path)) for path in seen if self.image is None),
            *([mount(INSIDE, "bind", "bind,ro", str(self.tools))] if self.tools is not None else []),
        ]

    def write(self) -> None:
        """Make the bundle's folders and config.json."""
        for name in ("rootfs", "upper", "work") if self.image is not None else ("rootfs",):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.logs.mkdir(parents=True, exist_ok=True)
        (self.folder / "config.json").write_text(json.dumps(self.config(), indent=1))

    def script(self, submounts: Sequence[str] = ()) -> str:
        """Shell lines that mount the root at `rootfs`, for a private mount namespace with the bundle's folder as working folder.

        `submounts` are the mount points of this machine below `/` that a machine root shows as well.
        """
        if self.image is not None:
            options = f"lowerdir={self.image},upperdir={self.folder}/upper,workdir={self.folder}/work"
            return f"mount -t overlay weighbridge -o {shlex.quote(options)} rootfs"
        # A root of this machine is read only as a whole, also where other file systems are mounted in it. /var/log gets a
        # file system of its own because runc makes the mount point /var/log/host, which must not appear on this machine.
        # What cannot be made read only is not shown at all; what lies under another mount cannot be reached anyway.
        lines = [
            "mount --rbind / rootfs",
            "mount --make-rprivate rootfs",
            'shut() { mount -o remount,bind,ro "$1" 2>/dev/null || umount --lazy "$1" 2>/dev/null || ! mountpoint --quiet "$1"; }',
        ]
        lines += [f"shut {shlex.quote(f'rootfs{path}')}" for path in submounts]
        lines += ["mount -t tmpfs -o mode=755 weighbridge rootfs/var/log"]
        return "\n".join(lines)


def etc_hosts(addresses: Mapping[str, str]) -> str:
    """An /etc/hosts with the names of all hosts of a deployment."""
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback"]
    return "\n".join([*lines, *(f"{address} {name}" for name, address in addresses.items())]) + "\n"


def submounts(mountinfo: str) -> tuple[str, ...]:
    """Mount points of a /proc/PID/mountinfo to be made read only in a machine root: all but `/` and what a host has of its own."""
    points = [line.split()[4].encode().decode("unicode_escape") for line in mountinfo.splitlines()]
    return tuple(
        dict.fromkeys(
            point for point in points if point != "/" and not any(f"{point}/".startswith(f"{one}/") for one in OWN_FOLDERS)
        )
    )
