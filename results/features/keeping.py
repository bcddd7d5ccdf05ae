"""What it costs to keep objects: bytes on disks, and the memory of daemons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weighbridge.common.quantities import show_bytes
from weighbridge.common.structure import Structure
from weighbridge.results.analysis.keeping import ALL, Costs, KeptRow, MemoryRow
from weighbridge.results.figures import UNKNOWN
from weighbridge.results.show.table import Filled, Line, Table, columns, line
from weighbridge.results.show.tables import RUN, Feature

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
    lambda data: kept_table(data.costs, data.plan.structures).lines,
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
    lambda data: memory_table(data.costs).lines,
)
FEATURE: Final = Feature(tables=(KEPT, MEMORY))


def kept_table(costs: Costs, structures: Mapping[str, Structure]) -> Filled:
    """What objects take; `structures`: how each layout is planned, if known."""
    return Filled(KEPT, tuple(_kept(row, structures.get(row.layout)) for row in costs.kept))


def _kept(row: KeptRow, structure: Structure | None) -> Line:
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
    return Filled(MEMORY, tuple(map(_memory, costs.memory)))


def _memory(row: MemoryRow) -> Line:
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
