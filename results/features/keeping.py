"""What it costs to keep objects: bytes on disks, and the memory of daemons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.common.structure import Structure
from weighbridge.results.judge.run_data import RunData, of_run
from weighbridge.results.numbers import UNKNOWN
from weighbridge.results.run.durability import DaemonMemory, Kept, KeptObjects, read_kept
from weighbridge.results.show.feature import Feature
from weighbridge.results.show.section import Part, Section, grid_of
from weighbridge.results.show.table import Filled, Line, Table, columns, line
from weighbridge.results.show.tables import RUN
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


@of_run
def kept_costs(data: RunData) -> Costs:
    """What was read of objects and daemons."""
    return costs(read_kept(data.store.folder), [one.name for one in data.plan.layouts])


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


KEPT: Final = Table(
    "kept",
    "A line for each layout and workload: what its objects take on disks.",
    columns(f"""
{RUN}
layout text | The layout. | Layout
planned text | How its plan keeps objects; unknown of stores that run elsewhere. | Planned
workload text | The workload. | Workload
api text | How the objects were written.
driver text | What wrote them.
object_bytes number B | Mean size of an object. | Object
objects integer | How many. | Objects
stored_bytes integer B | Their bytes. | Stored
compressible number | Share of their bytes that compress; unknown where the suite does not say it.
    | Compressible
disk_bytes number B | What they take, all copies counted. | On disks
times number | Bytes on disks per byte stored. | Per byte stored
least_times number | The least of all repeats. | Range
most_times number | The most of all repeats.
beside_bytes number B | Growth of databases and metadata. | Databases beside
repeats integer | How often it was read. | Repeats
how text | Where it was read.
"""),
    lambda data: kept_table(kept_costs(data), data.plan.structures).lines,
)
MEMORY: Final = Table(
    "memory",
    "A line for each layout and kind of daemon: the memory that was resident after steps.",
    columns(f"""
{RUN}
layout text | The layout. | Layout
role text | The kind of daemon, or all of them. | Daemons
hosts texts | Where they run. | Hosts
daemons integer | How many. | Number
least_bytes integer B | The least of one. | Each
most_bytes integer B | The most of one.
sum_bytes integer B | The most of all together. | All together
peak_bytes integer B | The most of one at any time. | Peak of one
"""),
    lambda data: memory_table(kept_costs(data)).lines,
)


def kept_table(costs: Costs, structures: Mapping[str, Structure]) -> Filled:
    """What objects take; `structures`: how each layout is planned, if known."""
    return Filled(KEPT, tuple(_kept_line(row, structures.get(row.layout)) for row in costs.kept))


def _kept_line(row: KeptRow, structure: Structure | None) -> Line:
    return line(row, planned=None if structure is None else structure.redundancy_words).showing(
        {
            "object_bytes": show_bytes(row.object_bytes),
            "compressible": "random" if row.compressible is None else f"{row.compressible:.0%}",
            "objects": f"{row.objects:,}",
            "times": UNKNOWN if row.times is None else f"{row.times:.2f}",
            "least_times": _range(row.least_times, row.most_times, 1, ""),
        }
    )


def memory_table(costs: Costs) -> Filled:
    """The memory of daemons."""
    return Filled(MEMORY, tuple(map(_memory_line, costs.memory)))


def _memory_line(row: MemoryRow) -> Line:
    if row.role == ALL:
        return line(row).showing({"least_bytes": "", "peak_bytes": ""})
    return line(row).showing(
        {"least_bytes": _range(row.least_bytes, row.most_bytes, 2**20, " MiB")}
    )


def _range(least: float | None, most: float | None, unit: int, name: str) -> str:
    if least is None or most is None:
        return UNKNOWN
    digits = 2 if unit == 1 else 1
    low, high = (f"{one / unit:,.{digits}f}" for one in (least, most))
    return f"{low}{name}" if low == high else f"{low} to {high}{name}"


def keeping_sections(data: RunData) -> Iterator[Section]:
    """What it costs to keep objects; none where nothing was read."""
    cost = kept_costs(data)
    how = {row.layout: row.how for row in cost.kept}
    read = "; ".join(f"{layout}: {where}" for layout, where in how.items())
    parts = (
        Part(
            text="How much the stores grew while the objects of a workload were prepared, all "
            "copies and fragments counted; means over repeats. The growth of databases and "
            "metadata is shown next to it, and is no part of the figure per byte: databases grow "
            f"in steps. Read from {read}.",
            grids=(grid_of("Bytes on disks", kept_table(cost, data.plan.structures)),),
        ),
        Part(
            text="Memory that was resident after the steps of each workload, pages shared by "
            "processes of a daemon counted once; over all readings. The peak is since the start, "
            "and not known of daemons with several processes.",
            grids=(grid_of("Memory of daemons", memory_table(cost)),),
        ),
    )
    if cost.kept or cost.memory:
        yield Section("keeping", "What it costs to keep", parts, folded=True)


FEATURE: Final = Feature(tables=(KEPT, MEMORY), sections=keeping_sections)
