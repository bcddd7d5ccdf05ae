from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from weighbridge.common.quantities import show_bytes
from weighbridge.common.structure import Structure
from weighbridge.results.analysis.keeping import ALL, KeptRow, MemoryRow
from weighbridge.results.figures import UNKNOWN

KEPT_HEAD: Final = (
    "Layout",
    "Planned",
    "Workload",
    "Object",
    "Compressible",
    "Objects",
    "Stored",
    "On disks",
    "Per byte stored",
    "Range",
    "Databases beside",
    "Repeats",
)
KEPT_NUMBERS: Final = (3, 4, 5, 6, 7, 8, 9, 10, 11)
MEMORY_HEAD: Final = ("Layout", "Daemons", "Hosts", "Number", "Each", "All together", "Peak of one")
MEMORY_NUMBERS: Final = (3, 4, 5, 6)


def kept_lines(
    rows: Sequence[KeptRow], structures: Mapping[str, Structure]
) -> tuple[tuple[str, ...], ...]:
    """The cells of each layout and workload."""
    return tuple(
        (
            row.layout,
            structures[row.layout].redundancy_words if row.layout in structures else UNKNOWN,
            row.workload,
            show_bytes(row.object_bytes),
            "random" if row.compressible is None else f"{row.compressible:.0%}",
            f"{row.objects:,}",
            _mib(row.stored_bytes),
            _known(row.disk_bytes),
            UNKNOWN if row.times is None else f"{row.times:.2f}",
            _range(row.least_times, row.most_times),
            _known(row.beside_bytes),
            str(row.repeats),
        )
        for row in rows
    )


def memory_lines(rows: Sequence[MemoryRow]) -> tuple[tuple[str, ...], ...]:
    """The cells of each layout and role."""
    return tuple(
        (
            row.layout,
            row.role,
            ", ".join(row.hosts),
            str(row.daemons),
            "" if row.role == ALL else _sizes(row.least_bytes, row.most_bytes),
            _known(row.sum_bytes),
            "" if row.role == ALL else _known(row.peak_bytes),
        )
        for row in rows
    )


def _range(least: float | None, most: float | None) -> str:
    if least is None or most is None:
        return UNKNOWN
    low, high = f"{least:.2f}", f"{most:.2f}"
    return low if low == high else f"{low} to {high}"


def _sizes(least: int | None, most: int | None) -> str:
    if least is None or most is None:
        return UNKNOWN
    low, high = _mib(least), _mib(most)
    return low if low == high else f"{low.removesuffix(' MiB')} to {high}"


def _known(size: float | None) -> str:
    return UNKNOWN if size is None else _mib(size)


def _mib(size: float) -> str:
    return f"{size / 2**20:,.1f} MiB"
