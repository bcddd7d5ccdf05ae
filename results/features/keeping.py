"""What it costs to keep objects: bytes on disks, and the memory of daemons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from weighbridge.common.quantities import show_bytes
from weighbridge.results.judge.run_data import RunData, of_run
from weighbridge.results.numbers import UNKNOWN, grouped
from weighbridge.results.run.durability import DaemonMemory, Kept, KeptObjects, read_kept
from weighbridge.results.show.feature import Feature
from weighbridge.results.show.section import Part, Section, grid_of
from weighbridge.results.show.table import Line, Table, columns, line
from weighbridge.results.show.tables import RUN

ALL: Final = "all daemons"
"""The role of the line that sums up a layout."""


@of_run
def _read(data: RunData) -> Kept:
    return read_kept(data.store.folder)


def _kept_lines(data: RunData) -> Iterator[Line]:
    """A line for each layout, workload, API and driver, in the order of layouts."""
    for layout in data.plan.layouts:
        structure = data.plan.structures.get(layout.name)
        planned = None if structure is None else structure.redundancy_words
        own = [reading for reading in _read(data).objects if reading.layout == layout.name]
        groups = grouped(own, lambda reading: (reading.workload, reading.api, reading.driver))
        for readings in groups.values():
            yield _kept_line(readings, planned)


def _kept_line(readings: Sequence[KeptObjects], planned: str | None) -> Line:
    """Means over repeats, and the range of what a byte takes."""
    last = readings[-1]
    grown = [reading.after_bytes - reading.before_bytes for reading in readings]
    times = [reading.times for reading in readings if reading.times is not None]
    databases = [reading.beside_bytes for reading in readings if reading.beside_bytes is not None]
    least, most, each = min(times, default=None), max(times, default=None), _mean(times)
    object_bytes = last.stored_bytes / last.objects if last.objects else 0.0
    return line(
        last,
        planned=planned,
        object_bytes=object_bytes,
        disk_bytes=_mean(grown),
        times=each,
        least_times=least,
        most_times=most,
        beside_bytes=_mean(databases) if len(databases) == len(readings) else None,
        repeats=len(readings),
    ).showing(
        {
            "object_bytes": show_bytes(object_bytes),
            "compressible": "random" if last.compressible is None else f"{last.compressible:.0%}",
            "objects": f"{last.objects:,}",
            "times": UNKNOWN if each is None else f"{each:.2f}",
            "least_times": _range(least, most, ".2f"),
        }
    )


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _memory_lines(data: RunData) -> Iterator[Line]:
    """A line for each layout and role, and, of several roles, one for all daemons."""
    for layout in data.plan.layouts:
        every = [reading for reading in _read(data).memory if reading.layout == layout.name]
        roles = grouped(every, lambda reading: reading.role)
        for role, readings in roles.items():
            yield _memory_line(layout.name, role, readings)
        if len(roles) > 1:
            yield _memory_line(layout.name, ALL, every)


def _memory_line(layout: str, role: str, readings: Sequence[DaemonMemory]) -> Line:
    """Over all readings; unknown if it is unknown of a daemon."""
    sizes = [one.resident_bytes for one in readings if one.resident_bytes is not None]
    peaks = [one.peak_bytes for one in readings if one.peak_bytes is not None]
    sums: dict[tuple[int, str], int] = {}
    for reading in readings:
        moment = (reading.repeat, reading.workload)
        sums[moment] = sums.get(moment, 0) + (reading.resident_bytes or 0)
    known = len(sizes) == len(readings)
    least, most = (min(sizes), max(sizes)) if known else (None, None)
    each = _range(least, most, ",.1f", 2**20, " MiB")
    return line(
        layout=layout,
        role=role,
        hosts=tuple(dict.fromkeys(reading.host for reading in readings)),
        daemons=len({(reading.host, reading.daemon) for reading in readings}),
        least_bytes=least,
        most_bytes=most,
        sum_bytes=max(sums.values()) if known else None,
        peak_bytes=max(peaks) if len(peaks) == len(readings) else None,
    ).showing({"least_bytes": "", "peak_bytes": ""} if role == ALL else {"least_bytes": each})


def _range(
    least: float | None, most: float | None, form: str, unit: int = 1, name: str = ""
) -> str:
    if least is None or most is None:
        return UNKNOWN
    low, high = f"{least / unit:{form}}", f"{most / unit:{form}}"
    return f"{low}{name}" if low == high else f"{low} to {high}{name}"


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
    _kept_lines,
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
    _memory_lines,
)


def keeping_sections(data: RunData) -> Iterator[Section]:
    """What it costs to keep objects; none where nothing was read."""
    kept, memory = KEPT.of_runs([data]), MEMORY.of_runs([data])
    places = zip(kept.column("layout"), kept.column("how"), strict=True)
    read = "; ".join(f"{layout}: {how}" for layout, how in dict(places).items())
    parts = (
        Part(
            text="How much the stores grew while the objects of a workload were prepared, all "
            "copies and fragments counted; means over repeats. The growth of databases and "
            "metadata is shown next to it, and is no part of the figure per byte: databases grow "
            f"in steps. Read from {read}.",
            grids=(grid_of("Bytes on disks", kept),),
        ),
        Part(
            text="Memory that was resident after the steps of each workload, pages shared by "
            "processes of a daemon counted once; over all readings. The peak is since the start, "
            "and not known of daemons with several processes.",
            grids=(grid_of("Memory of daemons", memory),),
        ),
    )
    if kept.lines or memory.lines:
        yield Section("keeping", "What it costs to keep", parts, folded=True)


FEATURE: Final = Feature(tables=(KEPT, MEMORY), sections=keeping_sections)
