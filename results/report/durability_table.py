from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.results.analysis.durability import (
    FINDING_WORDS,
    CutSeries,
    FindingCount,
    KindDurability,
    LayoutDurability,
)
from weighbridge.results.figures import UNKNOWN, counted, listed, show_figure, upper
from weighbridge.results.record.durability import FINDINGS, Finding

MOST_EXAMPLES: Final = 20
ALWAYS: Final[tuple[Finding, ...]] = ("lost", "not-listed")
"""Findings that have a column even where there are none."""
_WAYS: Final = {"plain": "at once", "multipart": "in parts"}

Lines = tuple[tuple[str, ...], ...]


class DurabilityTable(Record):
    """A table: its head, its lines, and the columns that hold numbers."""

    head: tuple[str, ...]
    lines: Lines
    numbers: tuple[int, ...]


class DurabilitySection(Record):
    """What survived power cuts, as a page shows it."""

    sentences: tuple[str, ...]
    layouts: DurabilityTable
    controls: DurabilityTable
    kinds: DurabilityTable
    examples: DurabilityTable
    unseen: str
    """The findings that have no column, since there are none."""
    more: tuple[str, ...]
    """How many objects are left out of the examples."""
    failures: tuple[str, ...]
    """Why a store did not serve after a cut."""


def durability_section(found: Sequence[LayoutDurability]) -> DurabilitySection | None:
    """The section; None if no layout was tried."""
    if not found:
        return None
    seen = tuple(one for one in FINDINGS if one in ALWAYS or _is_seen(one, found))
    unseen = [FINDING_WORDS[one] for one in FINDINGS if one not in seen]
    return DurabilitySection(
        sentences=tuple(one.sentence for one in found),
        layouts=_layouts(found, seen),
        controls=_controls(found, seen),
        kinds=_kinds(found, seen),
        examples=_examples(found),
        unseen=listed(unseen, "or") if unseen else "",
        more=tuple(
            f"{one.layout}: {left:,} more, in durability.jsonl of the run folder"
            for one in found
            if (left := len(one.store.examples) - MOST_EXAMPLES) > 0
        ),
        failures=tuple(
            f"{one.layout}, cut {cut.number}{' of its control' * cut.control}: {cut.why_not}"
            for one in found
            for cut in (*one.store.cuts, *one.control.cuts)
            if cut.why_not
        ),
    )


def _is_seen(finding: Finding, found: Sequence[LayoutDurability]) -> bool:
    return any(
        series.found[finding].objects for one in found for series in (one.store, one.control)
    )


def _layouts(found: Sequence[LayoutDurability], seen: Sequence[Finding]) -> DurabilityTable:
    ends = ("Serves after, s", "At most, s", "Release")
    head = ("Layout", "Verdict", "Cuts that may lose", "Cuts", "Served after", *_heads(seen), *ends)
    return DurabilityTable(
        head=head,
        lines=tuple(
            (
                one.layout,
                one.judgement.replace("-", " "),
                one.share_words or UNKNOWN,
                str(one.store.made),
                str(one.store.served),
                *_counts(one.store, seen),
                *(show_figure(value, 2) for value in one.store.serves_s or (None, None)),
                one.release or UNKNOWN,
            )
            for one in found
            if one.store.made
        ),
        numbers=tuple(range(2, len(head) - 1)),
    )


def _controls(found: Sequence[LayoutDurability], seen: Sequence[Finding]) -> DurabilityTable:
    head = ("Layout", "Cuts", "Cuts that lost", "Served after", *_heads(seen))
    return DurabilityTable(
        head=head,
        lines=tuple(
            (
                one.layout,
                str(one.control.made),
                str(one.control.losing),
                str(one.control.served),
                *_counts(one.control, seen),
            )
            for one in found
            if one.control.made
        ),
        numbers=tuple(range(1, len(head))),
    )


def _kinds(found: Sequence[LayoutDurability], seen: Sequence[Finding]) -> DurabilityTable:
    head = ("Layout", "API", "Object", "Written", *_heads(seen))
    return DurabilityTable(
        head=head,
        lines=tuple(
            (
                one.layout,
                kind.api,
                show_bytes(kind.size_bytes),
                _WAYS[kind.way],
                *_counts(kind, seen),
            )
            for one in found
            for kind in one.store.kinds
        ),
        numbers=(2, *range(4, len(head))),
    )


def _examples(found: Sequence[LayoutDurability]) -> DurabilityTable:
    return DurabilityTable(
        head=("Layout", "Cut", "Finding", "API", "Object", "What was seen"),
        lines=tuple(
            (
                one.layout,
                str(cut.number),
                FINDING_WORDS[example.finding],
                example.api,
                f"{example.container}/{example.name}",
                example.what,
            )
            for one in found
            for cut, example in one.store.examples[:MOST_EXAMPLES]
        ),
        numbers=(1,),
    )


def _heads(seen: Sequence[Finding]) -> tuple[str, ...]:
    return (
        "Acknowledged",
        "Of one cut",
        "Deleted",
        *(upper(FINDING_WORDS[one]) for one in seen),
    )


def _counts(counted_in: CutSeries | KindDurability, seen: Sequence[Finding]) -> tuple[str, ...]:
    return (
        f"{counted_in.acknowledged:,}",
        f"{counted_in.most_acknowledged:,}",
        f"{counted_in.deleted:,}",
        *(_count(counted_in.found[one]) for one in seen),
    )


def _count(found: FindingCount) -> str:
    return f"{found.objects:,} in {counted(found.cuts, 'cut')}" if found.objects else "0"
