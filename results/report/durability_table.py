"""The tables of what survived power cuts: by layout, their controls, by kind, and the examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.results.analysis.durability import (
    FINDING_WORDS,
    CutSeries,
    FindingCount,
    LayoutDurability,
)
from weighbridge.results.figures import UNKNOWN, show_figure
from weighbridge.results.record.durability import FINDINGS, Finding

MOST_EXAMPLES: Final = 20
"""Objects of a layout that are named at most."""
_FINDINGS: Final = tuple(FINDING_WORDS[one].capitalize() for one in FINDINGS)
_COUNTS: Final = ("Cuts", "Served after", "Acknowledged", "Of one cut", "Deleted", *_FINDINGS)
LAYOUT_HEAD: Final = (
    "Layout",
    "Release",
    "Verdict",
    *_COUNTS,
    "Serves after, s",
    "At most, s",
    "Cuts that may lose",
)
LAYOUT_NUMBERS: Final = tuple(range(3, len(LAYOUT_HEAD)))
"""The columns that hold numbers."""
CONTROL_HEAD: Final = ("Layout", "Cuts that lost", *_COUNTS)
CONTROL_NUMBERS: Final = tuple(range(1, len(CONTROL_HEAD)))
"""The columns that hold numbers."""
KIND_HEAD: Final = (
    "Layout",
    "API",
    "Object",
    "Written",
    "Acknowledged",
    "Of one cut",
    "Deleted",
    *_FINDINGS,
)
KIND_NUMBERS: Final = (2, *range(4, len(KIND_HEAD)))
"""The columns that hold numbers."""
EXAMPLE_HEAD: Final = ("Layout", "Cut", "Finding", "API", "Object", "What was seen")
EXAMPLE_NUMBERS: Final = (1,)
"""The column that holds numbers."""
_WAYS: Final = {"plain": "at once", "multipart": "in parts"}
_VERDICTS: Final = {"kept": "kept", "lost": "lost", "cannot-tell": "cannot tell"}

Lines = tuple[tuple[str, ...], ...]


class DurabilitySection(Record):
    """What survived power cuts, as a page shows it."""

    sentences: tuple[str, ...]
    layouts: Lines
    controls: Lines
    kinds: Lines
    examples: Lines
    more: tuple[str, ...]
    """How many objects are left out of the examples."""
    failures: tuple[str, ...]
    """Why a store did not serve after a cut."""


def durability_section(found: Sequence[LayoutDurability]) -> DurabilitySection | None:
    """The section; None if no layout was tried."""
    if not found:
        return None
    return DurabilitySection(
        sentences=tuple(one.sentence for one in found),
        layouts=layout_lines(found),
        controls=control_lines(found),
        kinds=tuple(line for one in found for line in _kind_lines(one.layout, one.store)),
        examples=tuple(line for one in found for line in _example_lines(one)),
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


def layout_lines(found: Sequence[LayoutDurability]) -> Lines:
    """The cells of each layout, without its control."""
    return tuple(
        (
            one.layout,
            one.release or UNKNOWN,
            _VERDICTS[one.judgement],
            *_counts(one.store),
            *(show_figure(value, 2) for value in one.store.serves_s or (None, None)),
            one.share_words or UNKNOWN,
        )
        for one in found
        if one.store.made
    )


def control_lines(found: Sequence[LayoutDurability]) -> Lines:
    """The cells of each control."""
    return tuple(
        (one.layout, f"{one.control.losing} of {one.control.made}", *_counts(one.control))
        for one in found
        if one.control.made
    )


def _counts(series: CutSeries) -> tuple[str, ...]:
    return (
        str(series.made),
        str(series.served),
        f"{series.acknowledged:,}",
        f"{series.most_acknowledged:,}",
        f"{series.deleted:,}",
        *_found(series.found),
    )


def _found(found: Mapping[Finding, FindingCount]) -> Iterator[str]:
    """`41 in 3 cuts`, or `0`."""
    for one in FINDINGS:
        count = found[one]
        cuts = f" in {count.cuts} cut{'s' * (count.cuts > 1)}" if count.objects else ""
        yield f"{count.objects:,}{cuts}"


def _kind_lines(layout: str, series: CutSeries) -> Iterator[tuple[str, ...]]:
    for kind in series.kinds:
        yield (
            layout,
            kind.api,
            show_bytes(kind.size_bytes),
            _WAYS[kind.way],
            f"{kind.acknowledged:,}",
            f"{kind.most_acknowledged:,}",
            f"{kind.deleted:,}",
            *_found(kind.found),
        )


def _example_lines(one: LayoutDurability) -> Iterator[tuple[str, ...]]:
    for cut, example in one.store.examples[:MOST_EXAMPLES]:
        yield (
            one.layout,
            str(cut.number),
            FINDING_WORDS[example.finding],
            example.api,
            f"{example.container}/{example.name}",
            example.what,
        )
