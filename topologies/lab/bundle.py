"""The OCI bundle of a host: config.json, its root, and the start of its container."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, Final

from weighbridge.common.errors import CommandFailed, MissingPrerequisite
from weighbridge.common.host import program_environment
from weighbridge.common.paths import IMPORTED_FROM
from weighbridge.gateways.gateway import Say
from weighbridge.topologies.attestation import IMAGE
from weighbridge.topologies.hardware import Hardware, HostSpec
from weighbridge.topologies.images import ensure
from weighbridge.topologies.lab.cgroup import TREE, Cgroups
from weighbridge.topologies.lab.claim import Claim
from weighbridge.topologies.lab.disk import LoopDisk
from weighbridge.topologies.lab.ending import BUNDLES
from weighbridge.topologies.lab.model_disks import ModelDisks
from weighbridge.topologies.lab.requirements import exhausted
from weighbridge.topologies.lab.runc import DEPLOYMENT, HOST, PRIVATE, Runc

# The measuring tools: programs of one image for all hosts, run by that image's loader.


TOOLS_INSIDE: Final = "/run/weighbridge/tools"
"""Where hosts have the tools. Below /run, which is each host's own file system: there the mount
point can be made even if the host's root is this machine's, read only.
"""


REBUILD: Final = "remove that folder: the image is built again when it is needed"


def toolbox(images: Path, say: Say, *, ending: Event | None = None) -> Path:
    """The image of the tools, built if it is missing. Raises CommandFailed."""
    try:
        return ensure(IMAGE, say, store=images, ending=ending)
    except CommandFailed as error:
        raise CommandFailed(
            error.host,
            error.argv,
            error.code,
            error.output,
            advice="attestation, `baseline` and the layers rbd and cephfs need this image; other "
            "runs do without it (--no-attest)",
        ) from error


def tool_argv(root: Path, name: str) -> tuple[str, ...]:
    """The command that runs program `name` of the image `root` in a host that has it at `INSIDE`.

    With the image's own loader and libraries a program depends on nothing of the host but the
    kernel. Raises MissingPrerequisite when the image has no such program.
    """
    folder = next((one for one in ("usr/bin", "usr/sbin") if (root / one / name).is_file()), None)
    if folder is None:
        raise MissingPrerequisite(f"{root} has no program {name}", advice=REBUILD)
    # The C library's place on every Debian: /lib/x86_64-linux-gnu/ld-linux-x86-64.so.2,
    # /lib/s390x-linux-gnu/ld64.so.1.
    loader = next(iter(sorted(root.glob("lib/*-linux-gnu*/ld*.so.[0-9]"))), None)
    if loader is None:
        raise MissingPrerequisite(f"{root} has no loader", advice=REBUILD)
    triplet = loader.parent.name
    # fio is linked with Ceph's libraries, of which one is in a folder outside the usual search
    # path.
    folders = (f"usr/lib/{triplet}", f"lib/{triplet}", f"usr/lib/{triplet}/ceph")
    libraries = ":".join(f"{TOOLS_INSIDE}/{folder}" for folder in folders)
    return (
        f"{TOOLS_INSIDE}/{loader.relative_to(root)}",
        "--library-path",
        libraries,
        f"{TOOLS_INSIDE}/{folder}/{name}",
    )


START_S: Final = 60.0
"""A host starts in 0.1 s, and even on a very busy machine in less than this."""
FIRST_SPARE_DESCRIPTOR: Final = 100

ETC_HOSTS: Final = "etc-hosts"
"""The file of a deployment's names, beside its bundles."""

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_PLAIN_TEXT: Final = """
AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID IPC_LOCK KILL NET_BIND_SERVICE NET_RAW SETFCAP
SETGID SETPCAP SETUID SYS_CHROOT SYS_NICE SYS_PTRACE
"""
_PLAIN: Final = tuple(f"CAP_{name}" for name in _PLAIN_TEXT.split())
"""For daemons, drivers and tools: no host can change the machine, its network limits or devices."""
_MOUNTING: Final = "CAP_SYS_ADMIN"
"""For mounting XFS on a host's disks or a FUSE file system. It is close to root on the machine."""

_DENIED_TEXT: Final = """
kexec_load kexec_file_load init_module finit_module delete_module reboot swapon swapoff
settimeofday clock_settime adjtimex clock_adjtime bpf userfaultfd perf_event_open
open_by_handle_at acct quotactl quotactl_fd iopl ioperm add_key request_key keyctl nfsservctl
lookup_dcookie uselib ustat sysfs _sysctl vhangup pivot_root
"""
DENIED: Final = tuple(_DENIED_TEXT.split())
"""System calls that change the machine or reach beyond the host. Gateways and drivers use none."""
_NEW_USER: Final = 0x10000000
"""CLONE_NEWUSER."""
_MASKED_TEXT: Final = """
/proc/acpi /proc/kcore /proc/keys /proc/latency_stats /proc/sched_debug /proc/scsi
/proc/timer_list /sys/firmware /sys/devices/virtual/powercap
"""
MASKED: Final = tuple(_MASKED_TEXT.split())
"""The machine's own, of which a host has no part."""
READ_ONLY: Final = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
"""The machine's own settings, which hosts may not change."""
_SECCOMP: Final = Path("/proc/sys/kernel/seccomp/actions_avail")

# For FUSE file systems such as ceph-fuse: character device 10:229 on every Linux.
FUSE = Path("/dev/fuse")
_FUSE_DEVICE: Final = ("c", 10, 229)

# The first process of a host only has to reap orphaned processes: `wait` does, in dash and bash.
INIT = ("/bin/sh", "-c", "sleep infinity & wait")

_OCTAL: Final = re.compile(rb"\\([0-7]{3})")
OWN_FOLDERS: Final = ("/proc", "/sys", "/dev", "/run", "/tmp", "/var/log")  # noqa: S108 - replaced in every host
"""Folders of its own in each host, also in one whose root is this machine's."""


@dataclass
class Lab:
    """What all hosts of a deployment share."""

    claim: Claim
    hardware: Hardware
    runc: Runc
    cgroups: Cgroups
    folder: Path
    """The deployment's: of bundles and logs."""
    tools: Path | None = None
    """The root image of `Host.tool`."""
    recorded: bool = False
    """Whether disks remember what is written to them, roots included."""
    submounts: tuple[str, ...] = ()
    """Mount points below this machine's `/` that a host with its root shows too."""
    model_disks: ModelDisks | None = None
    """The program of disks with a model."""

    @property
    def deployment(self) -> str:
        return self.claim.claimed.deployment

    @property
    def bundles(self) -> Path:
        return self.folder / BUNDLES


def python_of_this_process() -> tuple[Path, ...]:
    """Folders of this Python and this project, for drivers on clients, even below /tmp."""
    return tuple(dict.fromkeys((Path(sys.prefix), Path(sys.base_prefix), IMPORTED_FROM)))


@dataclass(frozen=True)
class Bundle:
    """One container. `image` is a root image below an overlay; None: this machine's, read only."""

    lab: Lab
    host: str
    image: Path | None
    spec: HostSpec
    """Its memory and CPUs of its own are limited from the start."""
    disks: tuple[LoopDisk, ...] = ()
    root: LoopDisk | None = None
    """The disk of what it writes to its root; None: that is in `folder`."""
    empty: bool = True
    """Whether `root` has no file system yet."""

    @property
    def id(self) -> str:
        """The container's name, unique on this machine: labels of deployments have no dot."""
        return f"{self.lab.deployment}.{self.host}"

    @property
    def cgroup(self) -> str:
        """The path of its cgroup, below the mount point of each hierarchy."""
        return f"/{TREE}/{self.lab.deployment}/{self.host}"

    @property
    def folder(self) -> Path:
        """With config.json, the mount point `rootfs`, and the overlay's `upper` and `work`."""
        return self.lab.bundles / self.host

    @property
    def logs(self) -> Path:
        """The folder that is the host's /var/log/host."""
        return self.lab.folder / "logs" / self.host

    def config(self) -> dict[str, Any]:
        """config.json by the OCI runtime specification 1.0.2."""
        resources: dict[str, Any] = {"devices": [{"allow": False, "access": "rwm"}]}
        own = [(disk.path, "b", disk.major, disk.minor, 0o660) for disk in self.disks]
        if self.image is not None and FUSE.is_char_device():
            own.append((str(FUSE), *_FUSE_DEVICE, 0o666))
        devices = []
        for path, kind, major, minor, mode in own:
            device = {"type": kind, "major": major, "minor": minor}
            devices.append({"path": path, **device, "fileMode": mode, "uid": 0, "gid": 0})
            resources["devices"].append({"allow": True, **device, "access": "rwm"})
        if self.spec.memory is not None:
            swap = {"swap": self.spec.memory} if self.lab.cgroups.accounts_swap() else {}
            resources["memory"] = {"limit": self.spec.memory, **swap}
        if self.spec.cpuset is not None:
            resources["cpu"] = {"cpus": self.spec.cpuset}
        # Hosts mount XFS on disks, and CephFS if they have an image. A client, whose root is this
        # machine's, could remount that writable.
        capabilities = [*_PLAIN, *([_MOUNTING] if self.image is not None or self.disks else [])]
        return {
            "ociVersion": "1.0.2",
            "hostname": self.host.replace("_", ""),
            "root": {"path": "rootfs", "readonly": self.image is None},
            # No rlimits: above the caller's hard limit runc fails, lower ones slow a gateway down.
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
            "annotations": {DEPLOYMENT: self.lab.deployment, HOST: self.host},
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

        shown = [
            mount(str(path), "bind", "rbind,ro", str(path))
            for path in (python_of_this_process() if self.image is None else ())
            if path.is_relative_to("/tmp") or path.is_relative_to("/run")  # noqa: S108
        ]
        if self.lab.tools is not None:
            shown.append(mount(TOOLS_INSIDE, "bind", "bind,ro", str(self.lab.tools)))
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
            mount("/etc/hosts", "bind", "bind,ro", str(self.lab.bundles / ETC_HOSTS)),
            *shown,
        ]

    def write(self) -> None:
        own = ("upper", "work") if self.root is None else ("root",)
        for name in ("rootfs", *own) if self.image is not None else ("rootfs",):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.logs.mkdir(parents=True, exist_ok=True)
        (self.folder / "config.json").write_text(json.dumps(self.config(), indent=1))

    def script(self) -> str:
        """Shell lines that mount the root at `rootfs`, for a private mount namespace in the
        bundle's folder.
        """
        if self.image is not None:
            over = self.folder if self.root is None else self.folder / "root"
            layers = f"lowerdir={self.image},upperdir={over}/upper"
            options = f"{layers},workdir={over}/work"
            lines = []
            if self.root is not None:
                device = f"/dev/loop{self.root.minor}"
                lines += [f"mkfs.xfs -q -f -K {device}"] if self.empty else []
                lines += [f"mount -t xfs {device} root", "mkdir -p root/upper root/work"]
            lines.append(f"mount -t overlay weighbridge -o {shlex.quote(options)} rootfs")
            return "\n".join(lines)
        # This machine's root must be read only everywhere, also where other file systems are
        # mounted in it. A mount that cannot be made read only is unmounted; one below another mount
        # cannot be reached. /var/log is a file system of the host because runc makes /var/log/host,
        # which must not appear on this machine.
        lines = [
            "mount --rbind / rootfs",
            "mount --make-rprivate rootfs",
            "protect() {",
            '  mount -o remount,bind,ro "$1" 2>/dev/null ||',
            '  umount --lazy "$1" 2>/dev/null ||',
            '  ! mountpoint --quiet "$1"',
            "}",
        ]
        lines += [f"protect {shlex.quote(f'rootfs{path}')}" for path in self.lab.submounts]
        lines += ["mount -t tmpfs -o mode=755 weighbridge rootfs/var/log"]
        return "\n".join(lines)

    def start(self) -> int:
        """Start the container, which holds the claim's lock meanwhile; its first pid. Raises
        CommandFailed.
        """
        self.write()
        # runc passes on descriptors from 3 on, where bash moves the disks'. They are copied to
        # numbers above 100 first, so that none overwrites another.
        spare = [
            fcntl.fcntl(disk.descriptor, fcntl.F_DUPFD_CLOEXEC, FIRST_SPARE_DESCRIPTOR)
            for disk in self.disks
        ]
        moves = "".join(f"exec {3 + index}<&{one} {one}<&-\n" for index, one in enumerate(spare))
        run = (
            *("run", "--detach", "--no-new-keyring", "--preserve-fds", str(len(spare))),
            *("--bundle", ".", "--pid-file", "pid"),
        )
        script = f'{moves}{self.script()}\nexec "$@"'
        log = self.logs / "init.out"
        try:
            with log.open("wb") as out:
                code = subprocess.run(
                    [*PRIVATE, "bash", "-ec", script, "bash", *self.lab.runc.argv(*run, self.id)],
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    env=program_environment(),
                    pass_fds=(*spare, self.lab.claim.descriptor),
                    # Ctrl-C in the conductor's terminal must not reach it.
                    start_new_session=True,
                    timeout=START_S,
                    check=False,
                ).returncode
        except subprocess.TimeoutExpired:
            code = None
        finally:
            for one in spare:
                os.close(one)
        if code != 0:
            output = log.read_text(errors="replace")
            advice = "" if code is None else exhausted(output)
            raise CommandFailed(self.host, ["runc", *run], code, output, advice=advice)
        return int((self.folder / "pid").read_text())


def _seccomp() -> dict[str, Any]:
    """Allow all system calls but DENIED, and no user namespace, in which anybody may mount. runc
    denies none by default; other engines list what is allowed, which changes by release.
    """

    def denied(names: Sequence[str], error: int, **more: Any) -> dict[str, Any]:
        return {"names": list(names), "action": "SCMP_ACT_ERRNO", "errnoRet": error, **more}

    def flag(index: int) -> list[dict[str, Any]]:
        same = {"value": _NEW_USER, "valueTwo": _NEW_USER}
        return [{"index": index, "op": "SCMP_CMP_MASKED_EQ", **same}]

    # The flags of clone come second on IBM Z (clone(2)); those of clone3 are in memory, where no
    # filter can look: without that call, C libraries take clone.
    second = platform.machine() in ("s390", "s390x")
    return {
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [
            denied(DENIED, errno.EPERM),
            denied(["unshare"], errno.EPERM, args=flag(0)),
            denied(["clone"], errno.EPERM, args=flag(int(second))),
            denied(["clone3"], errno.ENOSYS),
        ],
    }


def etc_hosts(addresses: Mapping[str, str]) -> str:
    """An /etc/hosts with all hosts of a deployment."""
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback"]
    return "\n".join([*lines, *(f"{address} {name}" for name, address in addresses.items())]) + "\n"


def submounts(mountinfo: bytes) -> tuple[str, ...]:
    """Mount points in /proc/PID/mountinfo that a host must not write to: all but `/` and a host's
    own.

    The kernel writes blanks, tabs, newlines and backslashes of names as octal numbers.
    """
    points = [
        os.fsdecode(_OCTAL.sub(lambda found: bytes([int(found[1], 8)]), line.split()[4]))
        for line in mountinfo.splitlines()
    ]
    own = tuple(f"{folder}/" for folder in OWN_FOLDERS)
    return tuple(
        dict.fromkeys(point for point in points if point != "/" and not f"{point}/".startswith(own))
    )
