from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from weighbridge.common.record import Record
from weighbridge.results.analysis.findings import Finding
from weighbridge.results.analysis.kinds import Kind
from weighbridge.results.analysis.power_mark import PowerMark, marks_of
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.slides.evidence import Evidence, repeats

ABREAST: Final = 6
"""The most layouts of a chart; of more, each slide has the first and five others."""
CROSSES: Final = "×: invalid, not steady or in grave doubt, not ranked"


class RequestGroup(Record):
    """The layouts of one slide, for one kind of requests."""

    kind: Kind
    about: str
    layouts: tuple[str, ...]
    rows: tuple[Row, ...]
    part: str
    """Which of several slides, as text."""
    key: str

    @property
    def power(self) -> tuple[PowerMark, ...]:
        """What power cuts did to its layouts, if they write and one of the run was tried."""
        return marks_of([row.power for row in self.rows])

    def of(self, layout: str) -> tuple[Row, ...]:
        """The rows of a layout, in the order of workers."""
        return tuple(row for row in self.rows if row.layout == layout)


def request_groups(evidence: Evidence) -> Iterator[RequestGroup]:
    """The groups of all kinds of requests."""
    first, *others = evidence.layouts
    parts = [others[at : at + ABREAST - 1] for at in range(0, len(others), ABREAST - 1)] or [[]]
    for kind, rows in evidence.kinds.items():
        for number, part in enumerate(parts, start=1):
            layouts = (first, *part)
            yield RequestGroup(
                kind=kind,
                about=evidence.called[kind],
                layouts=layouts,
                rows=tuple(row for row in rows if row.layout in layouts),
                part=f" ({number} of {len(parts)})" if len(parts) > 1 else "",
                key="-".join((*kind, str(number))),
            )


def group_pairs(evidence: Evidence, group: RequestGroup) -> list[Finding]:
    """The findings over all worker counts about the layouts of a slide."""
    return [
        pair
        for pair in evidence.pairs.get(group.kind, [])
        if {pair.faster, pair.slower} <= set(group.layouts)
    ]


def whisker_words(group: RequestGroup) -> str:
    """What points and whiskers of a chart are."""
    if repeats(group.rows)[1] > 1:
        return "points: geometric mean; whiskers: lowest and highest repeat"
    return "one repeat"
