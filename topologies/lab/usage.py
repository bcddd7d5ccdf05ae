"""What a host has used: its cgroups, its NIC and its disks, as the kernel counts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateways.host import Counters
from ground.errors import TargetError
from topologies.lab.cgroup import Cgroups
from topologies.lab.network import NIC

SECTOR_BYTES = 512
"""What /sys/block/*/stat counts in (Documentation/block/stat.rst)."""


@dataclass(frozen=True)
class DiskUse:
    """Bytes read from and written to disks, write-back included."""

    read_bytes: int
    written_bytes: int


def counters(cgroups: Cgroups, group: str, pid: int, minors: Sequence[int], before: DiskUse) -> Counters:
    """What a host has used since it started; `before` is what its loop devices had counted when they were attached.

    Memory has the page cache in it. Disks are the host's own; a host without disks has None there. Raises TargetError when
    the host is gone.
    """
    try:
        received, sent = _network(Path(f"/proc/{pid}/net/dev").read_text())
        cpu = _pairs((cgroups.at("cpu", group) / "cpu.stat").read_text())
        if cgroups.version == 2:
            memory = cgroups.at("memory", group)
            peak = memory / "memory.peak"  # Linux 5.19 and later
            return Counters(
                cpu_s=cpu["usage_usec"] / 1e6,
                throttled_s=cpu.get("throttled_usec", 0) / 1e6,
                memory_bytes=_number(memory / "memory.current"),
                memory_peak_bytes=_number(peak) if peak.exists() else None,
                oom_kills=_pairs((memory / "memory.events").read_text())["oom_kill"],
                network_received_bytes=received,
                network_sent_bytes=sent,
                **_disks(minors, before),
            )
        memory = cgroups.at("memory", group)
        return Counters(
            cpu_s=_number(cgroups.at("cpuacct", group) / "cpuacct.usage") / 1e9,
            throttled_s=cpu["throttled_time"] / 1e9,
            memory_bytes=_number(memory / "memory.usage_in_bytes"),
            memory_peak_bytes=_number(memory / "memory.max_usage_in_bytes"),
            oom_kills=_pairs((memory / "memory.oom_control").read_text()).get("oom_kill"),
            network_received_bytes=received,
            network_sent_bytes=sent,
            **_disks(minors, before),
        )
    except (OSError, KeyError) as error:
        raise TargetError(f"{group}: its counters cannot be read: {error}") from error


def disk_use(minors: Sequence[int], block: Path = Path("/sys/block")) -> DiskUse:
    """What loop devices have counted so far."""
    stats = [[int(word) for word in (block / f"loop{minor}/stat").read_text().split()] for minor in minors]
    return DiskUse(sum(stat[2] for stat in stats) * SECTOR_BYTES, sum(stat[6] for stat in stats) * SECTOR_BYTES)


def _disks(minors: Sequence[int], before: DiskUse) -> Mapping[str, int]:
    if not minors:
        return {}
    now = disk_use(minors)
    return {
        "disk_read_bytes": now.read_bytes - before.read_bytes,
        "disk_written_bytes": now.written_bytes - before.written_bytes,
    }


def _network(table: str) -> tuple[int, int]:
    """Bytes received and sent by the NIC, of a /proc/PID/net/dev."""
    for line in table.splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == NIC:
            fields = numbers.split()
            return int(fields[0]), int(fields[8])
    raise KeyError(f"no {NIC}")


def _pairs(text: str) -> dict[str, int]:
    return {name: int(value) for name, value in (line.split() for line in text.splitlines() if line.strip())}


def _number(path: Path) -> int:
    return int(path.read_text())
