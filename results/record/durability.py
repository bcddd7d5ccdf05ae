"""What survived power cuts: lines of `durability.jsonl`, one for each cut of a layout.

At a cut every host of the store loses power at one instant: what its disks had not been told to
flush is gone. The store is started again on what is left, and every object whose write or deletion
had been acknowledged is read and looked for in listings.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal, Self, get_args

from pydantic import Field, model_validator

from weighbridge.common.quantities import Count
from weighbridge.common.record import Record
from weighbridge.common.structure import CutDisk
from weighbridge.results.record.reading import read_lines
from weighbridge.results.record.step import Slug
from weighbridge.results.record.writing import append_line
from weighbridge.suites import Api

FILE: Final = "durability.jsonl"
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
    append_line(folder / FILE, cut.model_dump_json())


def read_cuts(folder: Path) -> tuple[PowerCut, ...]:
    """All cuts, the last line of each. Raises InvalidMeasurement with file:line."""
    found = {
        (cut.layout, cut.control, cut.load, cut.number): cut
        for cut in read_lines(folder / FILE, PowerCut.model_validate_json)
    }
    return tuple(found.values())
