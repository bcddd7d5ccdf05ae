"""cgroups of versions 1 and 2: the place of a host's, its limits, its processes, its removal."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from weighbridge.common.errors import TargetError
from weighbridge.common.host import Counters
from weighbridge.common.record import Record
from weighbridge.topologies.hardware import DEFAULT_PERIOD_S, Disk, HostSpec, quota_of
from weighbridge.topologies.hosts import LIMITED, Limited
from weighbridge.topologies.on_host import telemetry

MOUNT: Final = Path("/sys/fs/cgroup")
TREE: Final = "weighbridge"
"""The parent of all cgroups of the lab, below each hierarchy's mount point."""
KERNELS_PERIOD_US: Final = 100_000
"""The kernel's default period, which a cgroup gets back with no quota."""

_HANDED_ON: Final = "cgroup.subtree_control"
V1_FILES: Final = ("read_bps_device", "write_bps_device", "read_iops_device", "write_iops_device")
_V2_KEYS: Final = ("rbps", "wbps", "riops", "wiops")


class Write(Record):
    """A line to write to a file of a cgroup, such as the limit `7:3 10485760` of a device."""

    path: Path
    text: str

    def apply(self) -> None:
        """Write it. Raises TargetError."""
        try:
            self.path.write_text(self.text)
        except OSError as error:
            raise TargetError(
                f"{self.path}: {self.text!r} was refused: {error.strerror}"
            ) from error

    def lift(self) -> None:
        """Remove a device's limit in the root cgroup unless another has it now, as the device may.
        Raises TargetError.
        """
        with suppress(FileNotFoundError):
            if self.text in self.path.read_text().splitlines():
                Write(path=self.path, text=f"{self.text.split()[0]} 0").apply()


@dataclass(frozen=True)
class Cgroups:
    """The cgroup file systems of a machine, mounted at `mount`."""

    mount: Path = MOUNT

    @property
    def version(self) -> Literal[1, 2]:
        """2 if one hierarchy has all controllers; hybrids, with none in version 2's, are 1."""
        return 2 if (self.mount / "cgroup.controllers").exists() else 1

    def controllers(self) -> frozenset[str]:
        """The controllers, such as blkio in version 1 and io in version 2."""
        if self.version == 2:
            return frozenset((self.mount / "cgroup.controllers").read_text().split())
        return frozenset(
            name for path in self.mount.iterdir() for name in path.name.split(",") if path.is_dir()
        )

    def hands_on(self) -> bool:
        """Whether the root may give cgroups below it all controllers.

        In version 2 only the machine's own root may have processes and hand on memory and io. What
        a container sees as its root has a type, and must be without processes. Source: "No
        Internal Process Constraint" of the kernel's cgroup-v2.rst.
        """
        if self.version == 1 or not (self.mount / "cgroup.type").exists():
            return True
        return not (self.mount / "cgroup.procs").read_text().split()

    def handed_on(self) -> frozenset[str] | None:
        """The controllers that cgroups below the root have, before the lab's tree is there; None
        once it is, and in version 1.
        """
        if self.version == 1 or self.at("", TREE).exists():
            return None
        return frozenset((self.mount / _HANDED_ON).read_text().split())

    def take_back(self, before: frozenset[str]) -> None:
        """Hand on what was `before`, unless the tree or another needs more. Raises TargetError."""
        for name in sorted((self.handed_on() or frozenset()) - before):
            try:
                (self.mount / _HANDED_ON).write_text(f"-{name}")
            except OSError as error:
                if error.errno != errno.EBUSY:
                    raise TargetError(
                        f"{self.mount / _HANDED_ON}: -{name} was refused: {error.strerror}"
                    ) from error

    def accounts_swap(self) -> bool:
        """Whether memory and swap can be limited together."""
        return self.version == 2 or (self.mount / "memory/memory.memsw.limit_in_bytes").exists()

    def at(self, controller: str, group: str) -> Path:
        """The folder of a cgroup such as `/weighbridge/D/H`, in version 1 that of a controller."""
        return (self.mount if self.version == 2 else self.mount / controller) / group.strip("/")

    def limits(
        self,
        group: str,
        spec: HostSpec,
        devices: Sequence[str],
        what: Collection[Limited] = LIMITED,
        *,
        period_s: float = DEFAULT_PERIOD_S,
        lift: bool = False,
    ) -> tuple[Write, ...]:
        """Writes that put CPU and block limits on, or `lift` them; `devices` are the disks'
        `major:minor`.
        """
        writes: list[Write] = []
        if spec.cpus is not None and "cpu" in what:
            of_cpu = self.at("cpu", group)
            quota = quota_of(spec.cpus, period_s)
            period_us = KERNELS_PERIOD_US if lift else quota.period_us
            if self.version == 2:
                text = f"{'max' if lift else quota.quota_us} {period_us}"
                writes.append(Write(path=of_cpu / "cpu.max", text=text))
            else:
                # Remove the quota first: with the new period it might exceed all CPUs or be too
                # small.
                writes.append(Write(path=of_cpu / "cpu.cfs_quota_us", text="-1"))
                writes.append(Write(path=of_cpu / "cpu.cfs_period_us", text=str(period_us)))
                if not lift:
                    last = Write(path=of_cpu / "cpu.cfs_quota_us", text=str(quota.quota_us))
                    writes.append(last)
        if "disk" in what:
            for device, disk in zip(devices, spec.disks, strict=True):
                writes += self._block(group, device, disk, lift=lift)
        return tuple(writes)

    def _block(self, group: str, device: str, disk: Disk, *, lift: bool = False) -> list[Write]:
        second = self.version == 2
        none = "max" if second else "0"
        rates = (disk.bandwidth, disk.bandwidth, disk.iops, disk.iops)
        limits = [
            (name, none if lift else str(rate))
            for name, rate in zip(_V2_KEYS if second else V1_FILES, rates, strict=True)
            if rate is not None
        ]
        if second:
            words = " ".join([device, *(f"{key}={rate}" for key, rate in limits)])
            return [Write(path=self.at("io", group) / "io.max", text=words)] if limits else []
        folder = self.at("blkio", group)
        return [
            Write(path=folder / f"blkio.throttle.{name}", text=f"{device} {rate}")
            for name, rate in limits
        ]

    def write_back(self, device: str, disk: Disk) -> list[Write]:
        """Writes that limit a device's write-back too.

        Version 1 charges the kernel's flusher threads to the root cgroup: without this, a service
        that writes through the page cache (Swift) would have an unlimited disk, and one with direct
        I/O (BlueStore) a limited one. The two budgets are separate: a host that does both at once
        gets up to twice the rate. Version 2 charges write-back to the cgroup that dirtied the page
        and needs nothing.
        """
        return self._block("/", device, disk) if self.version == 1 else []

    def read(
        self, group: str, devices: Mapping[str, str], *, own_cpus: bool = False
    ) -> tuple[str, ...]:
        """A host's limits as the kernel has them, `devices` by names. Raises TargetError."""
        names = [("cpuset", "cpuset.cpus")] if own_cpus else []
        if self.version == 2:
            names += [("cpu", "cpu.max"), ("memory", "memory.max"), ("io", "io.max")]
        else:
            names += [("cpu", "cpu.cfs_quota_us"), ("cpu", "cpu.cfs_period_us")]
            names.append(("memory", "memory.limit_in_bytes"))
            names += [("blkio", f"blkio.throttle.{name}") for name in V1_FILES]
        found = []
        for controller, name in names:
            try:
                lines = (self.at(controller, group) / name).read_text().split("\n")
            except OSError as error:
                raise TargetError(f"{group}: {name} cannot be read: {error.strerror}") from error
            for line in filter(None, lines):
                device, blank, rate = line.partition(" ")
                named = f"{devices[device]} {rate}" if blank and device in devices else line
                found.append(f"{name} {named}")
        return tuple(found)

    def make(self, group: str) -> Path:
        """Make a cgroup without limits, in version 1 of memory, for `pids`. Raises TargetError."""
        folder = self.at("memory", group)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TargetError(f"{folder} cannot be made: {error.strerror}") from error
        return folder

    def pids(self, group: str) -> tuple[int, ...]:
        """Processes (this machine's pids) of a cgroup and those below it; none when it is gone."""
        found: list[int] = []
        folder = self.at("memory", group)
        for path in (folder, *_below(folder)):
            try:
                found += map(int, (path / "cgroup.procs").read_text().split())
            except OSError as error:
                if error.errno not in {errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP}:
                    raise
        return tuple(found)

    def folders(self, group: str) -> tuple[Path, ...]:
        """The folders of a cgroup in all hierarchies, also systemd's and an unused version 2's."""
        tops = [self.mount]
        if self.version == 1:
            tops = [
                path for path in self.mount.iterdir() if path.is_dir() and not path.is_symlink()
            ]
        return tuple(path for top in tops if (path := top / group.strip("/")).is_dir())

    def remove(self, group: str) -> tuple[Path, ...]:
        """Remove a cgroup with those below it in all hierarchies, and `/weighbridge` if no
        deployment is left in it; returns those in use.
        """
        busy = []
        for folder in self.folders(group):
            for path in (*reversed(tuple(_below(folder))), folder):
                try:
                    path.rmdir()
                except FileNotFoundError:
                    continue
                except OSError:
                    busy.append(path)
        for folder in self.folders(TREE):
            with suppress(OSError):  # another deployment's are in it
                folder.rmdir()
        return tuple(busy)


def _below(folder: Path) -> Iterator[Path]:
    try:
        inside = [path for path in folder.iterdir() if path.is_dir()]
    except FileNotFoundError:
        return
    for path in inside:
        yield path
        yield from _below(path)


_KERNEL_THREAD: Final = 0x00200000
"""PF_KTHREAD of include/linux/sched.h, in the ninth field of /proc/PID/stat."""


class LabMachine:
    """The CPUs of the lab's machine; it remembers which processes are kernel threads.

    `helpers` are processes of this suite, such as the program of disks with a model: their CPU time
    is counted with the conductor's.
    """

    name = "this machine"
    """Not a valid name of a host."""

    def __init__(self, proc: Path = Path("/proc"), *, helpers: Sequence[int] = ()) -> None:
        self._proc = proc
        self._helper_ticks = dict.fromkeys(helpers, 0)
        self._programs: set[str] = set()
        self._threads: dict[str, int] = {}
        self._threads_ticks = 0

    @property
    def cpus(self) -> int:
        return os.cpu_count() or 1

    def counters(self) -> Counters:
        """CPU time of all programs and the kernel, and the kernel's alone. Raises TargetError."""
        stat = self._proc / "stat"
        try:
            programs, interrupts = telemetry.machine_ticks(stat.read_text())
        except (OSError, ValueError) as error:
            raise TargetError(f"{stat} cannot be read: {error}") from error
        for pid, ticks in self._helper_ticks.items():
            self._helper_ticks[pid] = self._used(pid)[1] or ticks
        ticks_per_s = telemetry.TICKS_PER_S
        return Counters(
            cpu_s=(programs + interrupts) / ticks_per_s,
            conductor_cpu_s=time.process_time() + sum(self._helper_ticks.values()) / ticks_per_s,
            kernel_cpu_s=(interrupts + self._of_threads()) / ticks_per_s,
        )

    def _used(self, pid: object) -> tuple[int, int]:
        """A process's flags and CPU time; nothing of one that has ended."""
        fields = telemetry.stat_of(pid, str(self._proc))
        return (0, 0) if fields is None else (int(fields[6]), int(fields[11]) + int(fields[12]))

    def _of_threads(self) -> int:
        pids = {path.name for path in self._proc.iterdir() if path.name.isdigit()}
        self._programs &= pids  # a pid may be used again
        ticks: dict[str, int] = {}
        for pid in pids - self._programs:
            flags, used = self._used(pid)
            if flags & _KERNEL_THREAD:
                ticks[pid] = used
            elif flags:
                self._programs.add(pid)
        self._threads_ticks += sum(
            max(0, now - self._threads.get(pid, now)) for pid, now in ticks.items()
        )
        self._threads = ticks
        return self._threads_ticks
