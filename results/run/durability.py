"""What survived power cuts: lines of `durability.jsonl`, one for each cut of a layout.

At a cut every host of the store loses power at one instant: what its disks had not been told to
flush is gone. The store is started again on what is left, and every object whose write or deletion
had been acknowledged is read and looked for in listings.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal, Self, get_args

from pydantic import Field, TypeAdapter, model_validator

from weighbridge.common.quantities import Count
from weighbridge.common.record import Record
from weighbridge.common.structure import CutDisk
from weighbridge.results.run.reading import append_line, read_lines
from weighbridge.results.run.step import Slug, StepKey
from weighbridge.suites import Api, DriverName, FaultWay

CUTS_FILE: Final = "durability.jsonl"
MOST_EXAMPLES: Final = 20
"""Objects named in a cut's line at most."""

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Way = Literal["plain", "multipart"]
"""How an object was written: at once, or in parts (over Swift as a static large object)."""
Finding = Literal[
    "lost",
    "torn",
    "wrong",
    "stale",
    "undead",
    "unreadable",
    "not-listed",
    "listed-lost",
    "listed-deleted",
]
FINDINGS: Final[tuple[Finding, ...]] = get_args(Finding)
"""In the order in which they are shown; `FoundObjects` says what each is."""


class FoundObjects(Record):
    """The objects of one kind at one cut, each counted once by its read and once by its listing.

    An object may have, after a cut, the state that was acknowledged last before it, or any that was
    sent later. Those with an acknowledged deletion are `deleted`, the others `acknowledged`.
    """

    api: Api
    size_bytes: Count
    way: Way = "plain"
    acknowledged: Count
    deleted: Count
    """Deletions that were acknowledged, and not followed by another write."""
    in_flight: Count
    """Objects, of those, of which a request was sent and not answered at the cut."""
    lost: Count = 0
    """Acknowledged, and now not found."""
    torn: Count = 0
    """Acknowledged, and now a mixture, or only a part, of what was written."""
    wrong: Count = 0
    """Acknowledged, and now bytes that were never written to this object."""
    stale: Count = 0
    """Acknowledged, and now an older version, or one that was deleted before."""
    undead: Count = 0
    """Deleted, and now there."""
    unacknowledged: Count = 0
    """Objects of which nothing was acknowledged; they are in no figure but `wrong`."""
    unreadable: Count = 0
    """Answered by errors, or not at all, until the end of the time that is allowed."""
    not_listed: Count = 0
    """Readable as acknowledged, and in no listing."""
    listed_lost: Count = 0
    """Listed, and not found when read."""
    listed_deleted: Count = 0
    """Deleted and not found when read, yet listed."""

    def count(self, finding: Finding) -> int:
        """How many have a finding."""
        return int(getattr(self, finding.replace("-", "_")))

    @model_validator(mode="after")
    def _within(self) -> Self:
        """Each object has one finding by its read, and one by its listing, at most."""
        known = self.acknowledged + self.deleted
        written = self.lost + self.torn + self.stale
        read = written + self.wrong + self.undead + self.unreadable
        fits = (
            written <= self.acknowledged
            and self.undead <= self.deleted
            and self.unreadable <= known
            and read <= known + self.unacknowledged
            and self.in_flight <= known
        )
        if not fits or self.listed_lost > self.lost or self.listed_deleted > self.deleted:
            raise ValueError("more objects were found than had been acknowledged")
        if written + self.not_listed > self.acknowledged:
            raise ValueError("an object that is not listed was read as acknowledged")
        return self


class Example(Record):
    """An object that a finding is about."""

    finding: Finding
    api: Api
    container: str
    name: str
    what: str
    """What was acknowledged and what was found, in words."""


class PowerCut(Record):
    """One cut of one layout."""

    layout: Slug
    release: str
    control: bool = False
    """Whether disks kept nothing that was synced during the load: it must lose something."""
    number: Annotated[int, Field(ge=1, le=1000)]
    """From 1 on, in the order of the cuts."""
    load: Annotated[int, Field(ge=1, le=1000)] = 1
    """The load that gave it: another load of a layout gives all cuts again."""
    at_s: Seconds
    """Seconds of load before the cut."""
    seed: Count
    """Decides when the cut was and which unflushed blocks were kept."""
    keep: Annotated[float, Field(ge=0, le=1)]
    """Chance of an unflushed block to be kept."""
    serves_s: Seconds | None
    """Seconds from power on until every operation was verified; None: it did not serve."""
    why_not: str = ""
    """Why it did not serve: then nothing was read, and all objects are unreadable."""
    objects: tuple[FoundObjects, ...]
    disks: tuple[CutDisk, ...] = ()
    examples: Annotated[tuple[Example, ...], Field(max_length=MOST_EXAMPLES)] = ()
    notes: tuple[str, ...] = ()
    """Containers without a complete listing, and why: what is not in it counts as not listed."""

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        if (self.serves_s is None) != bool(self.why_not):
            raise ValueError("why_not is for a store that does not serve, and only for that")
        return self

    def count(self, finding: Finding) -> int:
        return sum(one.count(finding) for one in self.objects)

    @property
    def acknowledged(self) -> int:
        """Objects that had to be there."""
        return sum(one.acknowledged for one in self.objects)

    @property
    def deleted(self) -> int:
        """Objects that had to be gone."""
        return sum(one.deleted for one in self.objects)


def record_cut(folder: Path, cut: PowerCut) -> None:
    """Append a line to a run folder. Raises StoreError."""
    append_line(folder / CUTS_FILE, cut.model_dump_json())


def read_cuts(folder: Path) -> tuple[PowerCut, ...]:
    """All cuts, the last line of each. Raises InvalidMeasurement with file:line."""
    found = {
        (cut.layout, cut.control, cut.load, cut.number): cut
        for cut in read_lines(folder / CUTS_FILE, PowerCut.model_validate_json)
    }
    return tuple(found.values())


OUTAGES_FILE: Final = "degrade.jsonl"
MOST_SEEN: Final = 500

Moment = Annotated[float, Field(ge=-1e5, le=1e7)]
Words = Annotated[str, Field(max_length=1000)]


class Change(Record):
    """Something that was done to a deployment: when it began and when it was done."""

    begun_s: Moment
    done_s: Moment

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.done_s < self.begun_s:
            raise ValueError(f"done at {self.done_s:g} s, before it began at {self.begun_s:g} s")
        return self


class Seen(Record):
    """What a store said of itself from this time on."""

    at_s: Moment
    whole: bool
    words: Words


class Outage(Record):
    """What died in a step and came back, when, and what the store said of it."""

    key: StepKey
    way: FaultWay
    host: Annotated[str, Field(min_length=1, max_length=100)]
    services: tuple[Annotated[str, Field(max_length=100)], ...]
    """Those that died; empty where only a link was down, or a disk failed."""
    disk: Annotated[str, Field(max_length=100)] = ""
    """The disk that failed: `wb0`."""
    fault: Change
    back: Change | None = None
    """None: not within the window."""
    seen: Annotated[tuple[Seen, ...], Field(max_length=MOST_SEEN)] = ()
    """Each change of what the store said; empty: it says nothing of itself as a whole."""
    settings: dict[str, Words] = Field(default_factory=dict)
    """What decides how the layout meets it."""

    @property
    def words(self) -> str:
        """`osd.2 on store-3 killed`."""
        if self.way == "fail":
            return f"disk {self.disk} of {self.host} failed"
        if self.way != "kill":
            return f"{self.host} {'silent' if self.way == 'silence' else 'unplugged'}"
        return f"{', '.join(self.services)} on {self.host} killed"

    @property
    def noticed_s(self) -> float | None:
        """Seconds from the fault until the store said something else; None: it did not."""
        until_s = self.back.begun_s if self.back is not None else float("inf")
        before = [one.words for one in self.seen if one.at_s <= self.fault.begun_s]
        for one in self.seen:
            if self.fault.begun_s < one.at_s < until_s and before and one.words != before[-1]:
                return one.at_s - self.fault.begun_s
        return None

    @property
    def clean_s(self) -> float | None:
        """Seconds from the return until it had all parts and copies again; None: not seen."""
        if self.back is None:
            return None
        after = [one for one in self.seen if one.at_s > self.back.begun_s]
        if not after or not after[-1].whole:
            return None
        first = next(
            one for number, one in enumerate(after) if all(later.whole for later in after[number:])
        )
        return first.at_s - self.back.begun_s


def record_outage(folder: Path, outage: Outage) -> None:
    """Append a line to a run folder. Raises StoreError."""
    append_line(folder / OUTAGES_FILE, outage.model_dump_json())


def read_outages(folder: Path) -> dict[StepKey, Outage]:
    """The last outage of each step. Raises InvalidMeasurement with file:line."""
    lines = read_lines(folder / OUTAGES_FILE, Outage.model_validate_json)
    return {outage.key: outage for outage in lines}


KEPT_FILE: Final = "kept.jsonl"


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
        append_line(folder / KEPT_FILE, "\n".join(line.model_dump_json() for line in lines))


def read_kept(folder: Path) -> Kept:
    """What was recorded. Raises InvalidMeasurement with file:line on an unreadable line."""
    objects: dict[tuple[object, ...], KeptObjects] = {}
    memory: dict[tuple[object, ...], DaemonMemory] = {}
    for line in read_lines(folder / KEPT_FILE, _LINE.validate_json):
        place = (line.layout, line.repeat, line.workload)
        if isinstance(line, KeptObjects):
            objects[*place, line.api, line.driver] = line
        else:
            memory[*place, line.host, line.daemon] = line
    return Kept(objects=tuple(objects.values()), memory=tuple(memory.values()))
