"""cgroups of versions 1 and 2: the place of a host's, its limits, its usage, its removal."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal

from weighbridge.common.errors import TargetError
from weighbridge.common.host import Counters, DiskCounters, ModelDiskCounters
from weighbridge.topologies.hardware import DEFAULT_PERIOD_S, Disk, HostSpec, quota_of
from weighbridge.topologies.hosts import LIMITED, Limited
from weighbridge.topologies.lab.network import NIC

MOUNT: Final = Path("/sys/fs/cgroup")
TREE: Final = "weighbridge"
"""The parent of all cgroups of the lab, below each hierarchy's mount point."""
KERNELS_PERIOD_US: Final = 100_000
"""The kernel's default period, which a cgroup gets back with no quota."""

_HANDED_ON: Final = "cgroup.subtree_control"
V1_FILES: Final = ("read_bps_device", "write_bps_device", "read_iops_device", "write_iops_device")


@dataclass(frozen=True)
class Write:
    """A line to write to a file of a cgroup."""

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
        if self.handed_on() is None:
            return
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
        devices: tuple[str, ...],
        what: Collection[Limited] = LIMITED,
        *,
        period_s: float = DEFAULT_PERIOD_S,
    ) -> tuple[Write, ...]:
        """Writes that put CPU and block limits on; `devices` are the disks' `major:minor`."""
        writes: list[Write] = []
        if spec.cpus is not None and "cpu" in what:
            quota = quota_of(spec.cpus, period_s)
            writes += self._cpu(group, str(quota.quota_us), quota.period_us)
        if "disk" in what:
            for device, disk in zip(devices, spec.disks, strict=True):
                writes += self.block(group, device, disk)
        return tuple(writes)

    def lifts(
        self,
        group: str,
        spec: HostSpec,
        devices: tuple[str, ...],
        what: Collection[Limited] = LIMITED,
    ) -> tuple[Write, ...]:
        """Writes that remove what `limits` puts on."""
        writes: list[Write] = []
        if spec.cpus is not None and "cpu" in what:
            writes += self._cpu(group, "max" if self.version == 2 else "-1", KERNELS_PERIOD_US)
        if "disk" in what:
            none = "max" if self.version == 2 else "0"
            for device, disk in zip(devices, spec.disks, strict=True):
                rates = (disk.bandwidth, disk.bandwidth, disk.iops, disk.iops)
                nones = tuple(None if rate is None else none for rate in rates)
                writes += self._block(group, device, nones)
        return tuple(writes)

    def _cpu(self, group: str, quota: str, period_us: int) -> tuple[Write, ...]:
        folder = self.at("cpu", group)
        if self.version == 2:
            return (Write(folder / "cpu.max", f"{quota} {period_us}"),)
        # Remove the quota first: with the new period it might exceed all CPUs or be too small.
        none = Write(folder / "cpu.cfs_quota_us", "-1")
        last = (Write(folder / "cpu.cfs_quota_us", quota),) if quota != none.text else ()
        return none, Write(folder / "cpu.cfs_period_us", str(period_us)), *last

    def block(self, group: str, device: str, disk: Disk) -> tuple[Write, ...]:
        """Writes that limit one device in one cgroup; none where the disk has no limits."""
        return self._block(group, device, (disk.bandwidth, disk.bandwidth, disk.iops, disk.iops))

    def _block(
        self, group: str, device: str, rates: tuple[int | str | None, ...]
    ) -> tuple[Write, ...]:
        if self.version == 2:
            keys = zip(("rbps", "wbps", "riops", "wiops"), rates, strict=True)
            limits = [f"{key}={rate}" for key, rate in keys if rate is not None]
            if not limits:
                return ()
            return (Write(self.at("io", group) / "io.max", " ".join([device, *limits])),)
        folder = self.at("blkio", group)
        return tuple(
            Write(folder / f"blkio.throttle.{name}", f"{device} {rate}")
            for name, rate in zip(V1_FILES, rates, strict=True)
            if rate is not None
        )

    def write_back(self, device: str, disk: Disk) -> tuple[Write, ...]:
        """Writes that limit a device's write-back too.

        Version 1 charges the kernel's flusher threads to the root cgroup: without this, a service
        that writes through the page cache (Swift) would have an unlimited disk, and one with direct
        I/O (BlueStore) a limited one. The two budgets are separate: a host that does both at once
        gets up to twice the rate. Version 2 charges write-back to the cgroup that dirtied the page
        and needs nothing.
        """
        return self.block("/", device, disk) if self.version == 1 else ()

    def read(
        self, group: str, devices: Mapping[str, str], *, own_cpus: bool = False
    ) -> tuple[str, ...]:
        """A host's limits as the kernel has them, `devices` by names. Raises TargetError."""
        names: tuple[tuple[str, str], ...]
        if self.version == 2:
            names = (("cpu", "cpu.max"), ("memory", "memory.max"), ("io", "io.max"))
        else:
            throttles = tuple(("blkio", f"blkio.throttle.{name}") for name in V1_FILES)
            cpu = (("cpu", "cpu.cfs_quota_us"), ("cpu", "cpu.cfs_period_us"))
            names = (*cpu, ("memory", "memory.limit_in_bytes"), *throttles)
        if own_cpus:
            names = (("cpuset", "cpuset.cpus"), *names)
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
        """Remove a cgroup with those below it in all hierarchies; returns those in use."""
        busy = []
        for folder in self.folders(group):
            for path in (*reversed(tuple(_below(folder))), folder):
                try:
                    path.rmdir()
                except FileNotFoundError:
                    continue
                except OSError:
                    busy.append(path)
        return tuple(busy)

    def remove_tree_if_empty(self) -> None:
        """Remove `/weighbridge` if no deployment is left in it."""
        for folder in self.folders(TREE):
            try:
                folder.rmdir()
            except OSError as error:
                if error.errno not in {errno.EBUSY, errno.ENOTEMPTY, errno.ENOENT}:
                    raise


def _below(folder: Path) -> Iterator[Path]:
    try:
        inside = [path for path in folder.iterdir() if path.is_dir()]
    except FileNotFoundError:
        return
    for path in inside:
        yield path
        yield from _below(path)


SECTOR_BYTES = 512
"""The unit of /sys/block/*/stat (Documentation/block/stat.rst)."""

_KERNEL_THREAD = 0x00200000
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
        self._helpers = tuple(helpers)
        self._programs: set[str] = set()
        self._threads: dict[str, int] = {}
        self._threads_ticks = 0
        self._helper_ticks: dict[int, int] = {}

    @property
    def cpus(self) -> int:
        return os.cpu_count() or 1

    def counters(self) -> Counters:
        """CPU time of all programs and the kernel, and the kernel's alone. Raises TargetError."""
        stat = self._proc / "stat"
        try:
            fields = [int(word) for word in stat.read_text().partition("\n")[0].split()[1:]]
        except (OSError, ValueError) as error:
            raise TargetError(f"{stat} cannot be read: {error}") from error
        # proc(5); the time of guests is part of user.
        user, nice, system, _idle, _iowait, irq, softirq, *_ = fields
        ticks_per_s = os.sysconf("SC_CLK_TCK")
        return Counters(
            cpu_s=(user + nice + system + irq + softirq) / ticks_per_s,
            conductor_cpu_s=time.process_time() + self._of_helpers() / ticks_per_s,
            kernel_cpu_s=(irq + softirq + self._of_threads()) / ticks_per_s,
        )

    def _of_helpers(self) -> int:
        for pid in self._helpers:
            with suppress(FileNotFoundError, ProcessLookupError):
                fields = (self._proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
                self._helper_ticks[pid] = int(fields[11]) + int(fields[12])
        return sum(self._helper_ticks.values())

    def _of_threads(self) -> int:
        pids = {path.name for path in self._proc.iterdir() if path.name.isdigit()}
        self._programs &= pids  # a pid may be used again
        ticks: dict[str, int] = {}
        for pid in pids - self._programs:
            try:
                fields = (self._proc / pid / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[6]) & _KERNEL_THREAD:
                ticks[pid] = int(fields[11]) + int(fields[12])
            else:
                self._programs.add(pid)
        self._threads_ticks += sum(
            max(0, now - self._threads.get(pid, now)) for pid, now in ticks.items()
        )
        self._threads = ticks
        return self._threads_ticks


@dataclass(frozen=True)
class NicUse:
    """Bytes that a NIC received and sent, and its dropped and broken packets."""

    received_bytes: int
    sent_bytes: int
    faults: int


def counters(
    cgroups: Cgroups,
    group: str,
    pid: int,
    minors: Sequence[int],
    before: tuple[DiskCounters, ...],
    models: Sequence[ModelDiskCounters | None] = (),
) -> Counters:
    """What a host has used since it started; `before` has its loop devices' counters when attached,
    `models` what disks with a model say themselves.

    A host without disks has None there. Raises TargetError when the host is gone.
    """
    try:
        nic = nic_use(Path(f"/proc/{pid}/net/dev").read_text())
        return Counters(
            **(_cgroup2(cgroups, group) if cgroups.version == 2 else _cgroup1(cgroups, group)),
            network_received_bytes=nic.received_bytes,
            network_sent_bytes=nic.sent_bytes,
            network_faults=nic.faults,
            **_disks(minors, before, models),
        )
    except (OSError, KeyError) as error:
        raise TargetError(f"{group}: its counters cannot be read: {error}") from error


def _cgroup2(cgroups: Cgroups, group: str) -> Mapping[str, Any]:
    cpu = _pairs((cgroups.at("cpu", group) / "cpu.stat").read_text())
    memory = cgroups.at("memory", group)
    peak = memory / "memory.peak"  # Linux 5.19 and later
    used_bytes = _number(memory / "memory.current")
    pages = _pairs((memory / "memory.stat").read_text())
    return {
        "cpu_s": cpu["usage_usec"] / 1e6,
        "throttled_s": cpu["throttled_usec"] / 1e6 if "throttled_usec" in cpu else None,
        "cpu_periods": cpu.get("nr_periods"),
        "throttled_periods": cpu.get("nr_throttled"),
        "memory_bytes": used_bytes,
        "memory_held_bytes": max(0, used_bytes - pages["active_file"] - pages["inactive_file"]),
        "memory_peak_bytes": _number(peak) if peak.exists() else None,
        "oom_kills": _pairs((memory / "memory.events").read_text())["oom_kill"],
    }


def _cgroup1(cgroups: Cgroups, group: str) -> Mapping[str, Any]:
    cpu = _pairs((cgroups.at("cpu", group) / "cpu.stat").read_text())
    memory = cgroups.at("memory", group)
    used_bytes = _number(memory / "memory.usage_in_bytes")
    pages = _pairs((memory / "memory.stat").read_text())
    return {
        "cpu_s": _number(cgroups.at("cpuacct", group) / "cpuacct.usage") / 1e9,
        "throttled_s": cpu["throttled_time"] / 1e9,
        "cpu_periods": cpu["nr_periods"],
        "throttled_periods": cpu["nr_throttled"],
        "memory_bytes": used_bytes,
        "memory_held_bytes": max(
            0, used_bytes - pages["total_active_file"] - pages["total_inactive_file"]
        ),
        "memory_peak_bytes": _number(memory / "memory.max_usage_in_bytes"),
        "oom_kills": _pairs((memory / "memory.oom_control").read_text()).get("oom_kill"),
    }


def disk_use(minors: Sequence[int], block: Path = Path("/sys/block")) -> tuple[DiskCounters, ...]:
    """The counters of loop devices, in this order."""
    return tuple(_disk((block / f"loop{minor}/stat").read_text()) for minor in minors)


def _disk(text: str) -> DiskCounters:
    stat = [int(word) for word in text.split()]
    return DiskCounters(
        read_bytes=stat[2] * SECTOR_BYTES,
        written_bytes=stat[6] * SECTOR_BYTES,
        reads=stat[0],
        writes=stat[4],
        busy_s=stat[9] / 1e3,
        waited_s=(stat[3] + stat[7]) / 1e3,
    )


def _disks(
    minors: Sequence[int],
    before: tuple[DiskCounters, ...],
    models: Sequence[ModelDiskCounters | None],
) -> Mapping[str, Any]:
    if not minors:
        return {}
    names = [one.name for one in fields(DiskCounters) if one.name != "model"]
    said = models or [None] * len(minors)
    used = tuple(
        DiskCounters(
            **{name: getattr(now, name) - getattr(then, name) for name in names}, model=model
        )
        for now, then, model in zip(disk_use(minors), before, said, strict=True)
    )
    return {
        "disk_read_bytes": sum(disk.read_bytes for disk in used),
        "disk_written_bytes": sum(disk.written_bytes for disk in used),
        "disks": used,
    }


def nic_use(table: str) -> NicUse:
    """The NIC's counters in a /proc/PID/net/dev. Raises KeyError when there is none."""
    for line in table.splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == NIC:
            fields = [int(word) for word in numbers.split()]
            # Received: bytes, packets, errs, drop, fifo, frame, compressed, multicast; sent: bytes,
            # packets, errs, drop, ...
            return NicUse(fields[0], fields[8], fields[2] + fields[3] + fields[10] + fields[11])
    raise KeyError(f"no {NIC}")


def _pairs(text: str) -> dict[str, int]:
    return {
        name: int(value)
        for name, value in (line.split() for line in text.splitlines() if line.strip())
    }


def _number(path: Path) -> int:
    return int(path.read_text())
