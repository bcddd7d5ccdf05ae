"""What survived power cuts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.show.table import Line, Table, columns, line
from weighbridge.results.show.tables import RUN, Feature


def _lines(data: RunData) -> Iterator[Line]:
    """Cut by cut; controls after the cuts of their layout."""
    for layout in data.durability:
        for cut in (*layout.store.cuts, *layout.control.cuts):
            # Nothing was read after a cut after which nothing served.
            for objects in cut.objects or (None,):
                yield line(
                    objects,
                    layout=cut.layout,
                    release=cut.release,
                    control=cut.control,
                    cut=cut.number,
                    at_s=cut.at_s,
                    seed=cut.seed,
                    keep=cut.keep,
                    serves_s=cut.serves_s,
                    why_not=cut.why_not,
                    unflushed_blocks=sum(disk.unflushed_blocks for disk in cut.disks),
                    kept_blocks=sum(disk.kept_blocks for disk in cut.disks),
                )


DURABILITY: Final = Table(
    "durability",
    "A line for each power cut and kind of objects: what survived.",
    columns(f"""
{RUN}
layout text | The layout.
release text | Its release.
control boolean | Whether disks kept nothing that was synced: it must lose objects.
cut integer | Number of the cut, from 1 on.
at_s number s | Load before the cut.
seed integer | What decided about the cut.
keep number | Chance that an unflushed block is kept.
serves_s number s | From power on until every operation works; unknown if it did not serve.
why_not text | Why it did not serve; else empty.
api text | How the objects were written.
size_bytes integer B | Size of an object.
way text | Written at once (plain), or in parts (multipart).
acknowledged integer | Objects that must exist: acknowledged writes.
deleted integer | Objects that must be gone: acknowledged deletions.
in_flight integer | Of those, objects with a request that was not answered at the cut.
lost integer | Acknowledged, and not found.
torn integer | Acknowledged, and a mixture or a part of what was written.
wrong integer | Acknowledged, and bytes that were never written to them.
stale integer | Acknowledged, and an older version.
undead integer | Deleted, and there.
unreadable integer | Answered by errors, or not at all.
not_listed integer | Readable as acknowledged, and in no listing.
listed_lost integer | Listed, and not found when read.
listed_deleted integer | Deleted and not found when read, yet listed.
unflushed_blocks integer | Blocks of 4 KiB of all disks that were written and not flushed at the
    cut.
kept_blocks integer | Of these, those that were kept by chance.
"""),
    _lines,
)
FEATURE: Final = Feature(tables=(DURABILITY,))
