"""What keeping objects costs: bytes on disks before and after they were written, daemons' memory.

They are lines of `kept.jsonl`, each read from a deployment. A line is missing where nothing was
read; what is unknown is None.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, TypeAdapter

from weighbridge.common.quantities import Count
from weighbridge.common.record import Record
from weighbridge.results.record.reading import read_lines
from weighbridge.results.record.step import Slug
from weighbridge.results.record.writing import append_line
from weighbridge.suites import Api, DriverName

FILE: Final = "kept.jsonl"


class _OfVisit(Record):
    layout: Slug
    repeat: Annotated[int, Field(ge=0)]
    workload: Slug


class KeptObjects(_OfVisit):
    """The objects of a workload as they were prepared, and what the store then took of its disks,
    all copies and fragments counted. `before` is as of just before.
    """

    kind: Literal["objects"] = "objects"
    api: Api
    driver: DriverName
    objects: Count
    stored_bytes: Count
    """Bytes of the objects, as clients sent them."""
    compressible: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share of their bytes that compress to nothing; None: random, but repeated."""
    before_bytes: Count
    after_bytes: Count
    beside_before_bytes: Count | None = None
    """What databases and metadata took; None: they are in the others, or unknown."""
    beside_after_bytes: Count | None = None
    how: str
    """Where they were read, in words."""

    @property
    def times(self) -> float | None:
        """Bytes that objects take on disks per byte stored; None of empty objects."""
        grown = self.after_bytes - self.before_bytes
        return grown / self.stored_bytes if self.stored_bytes else None

    @property
    def beside_bytes(self) -> int | None:
        """By how much databases and metadata grew."""
        if self.beside_after_bytes is None or self.beside_before_bytes is None:
            return None
        return self.beside_after_bytes - self.beside_before_bytes


class DaemonMemory(_OfVisit):
    """The memory of a daemon's processes after a deployment's steps; `workload`: the last."""

    kind: Literal["memory"] = "memory"
    host: str
    daemon: str
    """Its service, such as `osd.0`."""
    role: str
    """What others do as well, such as `osd`."""
    processes: Count
    """0: none was found."""
    resident_bytes: Count | None
    """Resident, pages shared by several processes counted once; None: unknown."""
    peak_bytes: Count | None = None
    """The most that was resident since it started; None with several processes, which share pages.
    """


KeptLine = Annotated[KeptObjects | DaemonMemory, Field(discriminator="kind")]
_LINE: Final[TypeAdapter[KeptLine]] = TypeAdapter(KeptLine)


class Kept(Record):
    """All of a run; the last line where one was read twice."""

    objects: tuple[KeptObjects, ...] = ()
    memory: tuple[DaemonMemory, ...] = ()


def record_kept(folder: Path, *lines: KeptObjects | DaemonMemory) -> None:
    """Append lines to a run folder, all or none. Raises StoreError."""
    if lines:
        append_line(folder / FILE, "\n".join(line.model_dump_json() for line in lines))


def read_kept(folder: Path) -> Kept:
    """What was recorded. Raises InvalidMeasurement with file:line on an unreadable line."""
    objects: dict[tuple[object, ...], KeptObjects] = {}
    memory: dict[tuple[object, ...], DaemonMemory] = {}
    for line in read_lines(folder / FILE, _LINE.validate_json):
        place = (line.layout, line.repeat, line.workload)
        if isinstance(line, KeptObjects):
            objects[*place, line.api, line.driver] = line
        else:
            memory[*place, line.host, line.daemon] = line
    return Kept(objects=tuple(objects.values()), memory=tuple(memory.values()))
