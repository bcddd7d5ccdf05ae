from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.export.data_table import (
    Cell,
    DataColumn,
    DataTable,
    Kind,
    TableSchema,
    attribute,
)
from weighbridge.results.record.durability import FINDINGS, Finding, FoundObjects, PowerCut

_ABOUT: Final[dict[Finding, str]] = {
    "lost": "Acknowledged, and not found.",
    "torn": "Acknowledged, and a mixture or a part of what was written.",
    "wrong": "Acknowledged, and bytes that were never written to them.",
    "stale": "Acknowledged, and an older version.",
    "undead": "Deleted, and there.",
    "unreadable": "Answered by errors, or not at all.",
    "not-listed": "Readable as acknowledged, and in no listing.",
    "listed-lost": "Listed, and not found when read.",
    "listed-deleted": "Deleted and not found when read, yet listed.",
}


@dataclass(frozen=True)
class CutLine:
    """The objects of one kind at one cut, of one run; None: a cut after which none were read."""

    data: RunData
    cut: PowerCut
    objects: FoundObjects | None


def _of_objects(name: str, kind: Kind, about: str, unit: str = "") -> DataColumn[CutLine]:
    def read(one: CutLine) -> Cell:
        found: Cell = None if one.objects is None else getattr(one.objects, name)
        return found

    return DataColumn(name, kind, about, read, unit)


DURABILITY: Final[TableSchema[CutLine]] = TableSchema(
    "durability",
    "A line for each power cut and kind of objects: what survived.",
    (
        attribute("run", "text", "Name of the run.", "data.manifest.run_id"),
        attribute("layout", "text", "The layout.", "cut.layout"),
        attribute("release", "text", "Its release.", "cut.release"),
        attribute(
            "control",
            "boolean",
            "Whether disks kept nothing that was synced: it must lose objects.",
            "cut.control",
        ),
        attribute("cut", "integer", "Number of the cut, from 1 on.", "cut.number"),
        attribute("at_s", "number", "Load before the cut.", "cut.at_s", "s"),
        attribute("seed", "integer", "What decided about the cut.", "cut.seed"),
        attribute("keep", "number", "Chance that an unflushed block is kept.", "cut.keep"),
        attribute(
            "serves_s",
            "number",
            "From power on until every operation works; unknown if it did not serve.",
            "cut.serves_s",
            "s",
        ),
        attribute("why_not", "text", "Why it did not serve; else empty.", "cut.why_not"),
        _of_objects("api", "text", "How the objects were written."),
        _of_objects("size_bytes", "integer", "Size of an object.", "B"),
        _of_objects("way", "text", "Written at once (plain), or in parts (multipart)."),
        _of_objects("acknowledged", "integer", "Objects that must exist: acknowledged writes."),
        _of_objects("deleted", "integer", "Objects that must be gone: acknowledged deletions."),
        _of_objects(
            "in_flight",
            "integer",
            "Of those, objects with a request that was not answered at the cut.",
        ),
        *(_of_objects(one.replace("-", "_"), "integer", _ABOUT[one]) for one in FINDINGS),
        DataColumn(
            "unflushed_blocks",
            "integer",
            "Blocks of 4 KiB of all disks that were written and not flushed at the cut.",
            lambda one: sum(disk.unflushed_blocks for disk in one.cut.disks),
        ),
        DataColumn(
            "kept_blocks",
            "integer",
            "Of these, those that were kept by chance.",
            lambda one: sum(disk.kept_blocks for disk in one.cut.disks),
        ),
    ),
)


def durability_table(runs: Sequence[RunData]) -> DataTable:
    """What survived, cut by cut; controls after the cuts of their layout."""
    return DURABILITY.fill(line for data in runs for line in _lines(data))


def _lines(data: RunData) -> Iterator[CutLine]:
    for one in data.durability:
        for cut in (*one.store.cuts, *one.control.cuts):
            for objects in cut.objects or (None,):
                yield CutLine(data, cut, objects)
