"""What hosts have used, as the kernel counts it: cgroups, NICs and disks."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from weighbridge.common.errors import TargetError
from weighbridge.common.host import Counters, DiskCounters, ModelDiskCounters
from weighbridge.topologies.lab.cgroup import Cgroups
from weighbridge.topologies.lab.network import NIC

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
        """The number of CPUs."""
        return os.cpu_count() or 1

    def counters(self) -> Counters:
        """CPU time of all programs, hosts included, and the kernel; and of the kernel alone.

        Raises TargetError.
        """
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
        """Ticks of all helpers with their threads; the last ones known of those that have ended."""
        for pid in self._helpers:
            with suppress(FileNotFoundError, ProcessLookupError):
                fields = (self._proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
                self._helper_ticks[pid] = int(fields[11]) + int(fields[12])
        return sum(self._helper_ticks.values())

    def _of_threads(self) -> int:
        """Ticks of all kernel threads since they were first seen, including those that ended."""
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
