from __future__ import annotations

from collections.abc import Sequence

from weighbridge.common.record import Record
from weighbridge.results.record.kept import DaemonMemory, Kept, KeptObjects
from weighbridge.suites import Api, DriverName

ALL = "all daemons"
"""The role of the line that sums up a layout."""


class KeptRow(Record):
    """The prepared objects of one workload on one layout, over repeats: means, and the range."""

    layout: str
    workload: str
    api: Api
    driver: DriverName
    objects: int
    stored_bytes: int
    compressible: float | None
    disk_bytes: float
    """By how much what objects take grew, all copies and fragments counted."""
    times: float | None
    """Bytes on disks per byte stored; None of empty objects."""
    least_times: float | None
    most_times: float | None
    beside_bytes: float | None
    """By how much databases and metadata grew; None: unknown, or in `disk_bytes`."""
    repeats: int
    how: str

    @property
    def object_bytes(self) -> float:
        """Mean size of an object."""
        return self.stored_bytes / self.objects if self.objects else 0.0


class MemoryRow(Record):
    """The daemons of one role in a layout, over all readings. None: unknown of a daemon."""

    layout: str
    role: str
    hosts: tuple[str, ...]
    daemons: int
    least_bytes: int | None
    """Of one daemon."""
    most_bytes: int | None
    sum_bytes: int | None
    """The most of all of them at the same time."""
    peak_bytes: int | None
    """The most of one daemon at any time."""


class Costs(Record):
    """What it costs to keep objects, layout by layout."""

    kept: tuple[KeptRow, ...] = ()
    memory: tuple[MemoryRow, ...] = ()


def costs(found: Kept, layouts: Sequence[str]) -> Costs:
    """The costs of these layouts, in their order; layouts without readings have no rows."""
    return Costs(
        kept=tuple(row for name in layouts for row in _kept(found.objects, name)),
        memory=tuple(row for name in layouts for row in _memory(found.memory, name)),
    )


def _kept(found: Sequence[KeptObjects], layout: str) -> list[KeptRow]:
    same: dict[tuple[str, Api, DriverName], list[KeptObjects]] = {}
    for one in found:
        if one.layout == layout:
            same.setdefault((one.workload, one.api, one.driver), []).append(one)
    rows = []
    for (workload, api, driver), ones in same.items():
        times = [one.times for one in ones if one.times is not None]
        beside = [one.beside_bytes for one in ones if one.beside_bytes is not None]
        rows.append(
            KeptRow(
                layout=layout,
                workload=workload,
                api=api,
                driver=driver,
                objects=ones[-1].objects,
                stored_bytes=ones[-1].stored_bytes,
                compressible=ones[-1].compressible,
                disk_bytes=sum(one.after_bytes - one.before_bytes for one in ones) / len(ones),
                times=sum(times) / len(times) if times else None,
                least_times=min(times, default=None),
                most_times=max(times, default=None),
                beside_bytes=sum(beside) / len(beside) if len(beside) == len(ones) else None,
                repeats=len(ones),
                how=ones[-1].how,
            )
        )
    return rows


def _memory(found: Sequence[DaemonMemory], layout: str) -> list[MemoryRow]:
    mine = [one for one in found if one.layout == layout]
    roles = list(dict.fromkeys(one.role for one in mine))
    rows = [_role(layout, role, [one for one in mine if one.role == role]) for role in roles]
    return [*rows, _role(layout, ALL, mine)] if len(roles) > 1 else rows


def _role(layout: str, role: str, ones: Sequence[DaemonMemory]) -> MemoryRow:
    readings: dict[tuple[int, str], list[DaemonMemory]] = {}
    for one in ones:
        readings.setdefault((one.repeat, one.workload), []).append(one)
    each = [one.resident_bytes for one in ones]
    sizes = [size for size in each if size is not None]
    known = len(sizes) == len(each)
    peaks = [one.peak_bytes for one in ones if one.peak_bytes is not None]
    sums = [sum(one.resident_bytes or 0 for one in same) for same in readings.values()]
    return MemoryRow(
        layout=layout,
        role=role,
        hosts=tuple(dict.fromkeys(one.host for one in ones)),
        daemons=len({(one.host, one.daemon) for one in ones}),
        least_bytes=min(sizes) if known else None,
        most_bytes=max(sizes) if known else None,
        sum_bytes=max(sums) if known else None,
        peak_bytes=max(peaks) if len(peaks) == len(ones) else None,
    )
