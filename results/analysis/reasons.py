"""Why cells are not ranked or not significant: each reason once, with the cells that it affects.

Reasons whose texts differ in their numbers alone are one, with the range of each number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from string import ascii_lowercase
from typing import Final, Literal

from weighbridge.common.record import Record
from weighbridge.results.analysis.comparison import Comparison
from weighbridge.results.analysis.kinds import Kind, kind_of, subjects
from weighbridge.results.analysis.steps.summary import NOT_STEADY, NOT_VALID, Row
from weighbridge.results.analysis.steps.validity import ASIDES
from weighbridge.results.doubt import Doubt
from weighbridge.results.figures import listed, ranged, without_numbers
from weighbridge.results.metrics import METRICS, MetricKey

ReasonStatus = Literal["not valid", "not comparable", "not durable", "provisional"]
"""What a reason makes of the cells that it affects. Those that are not durable are ranked."""

Cell = tuple[str, Kind, int]
"""Layout, kind of requests, worker count."""

_BETWEEN: Final = ("hosts differ", "hosts below promise", "hosts not attested", "few repeats")
"""Doubts about pairs of layouts, which no row has."""
_ORDER: Final[tuple[ReasonStatus, ...]] = (
    "not comparable",
    "not valid",
    "not durable",
    "provisional",
)


class Reason(Record):
    """One reason. `mark` is shown beside the affected cells; `where` names them in words."""

    mark: str
    status: ReasonStatus
    words: str
    metrics: tuple[MetricKey, ...] = ()
    """The affected metrics; empty: all of them."""
    where: str
    cells: tuple[Cell, ...]

    @property
    def text(self) -> str:
        """All of it in one line."""
        what = f"{', '.join(METRICS[key].name for key in self.metrics)} " if self.metrics else ""
        return f"{what}{self.status}: {self.words} ({self.where})"


def reasons(rows: Sequence[Row], comparison: Comparison) -> tuple[Reason, ...]:
    """Everything that keeps figures of a table from being ranked or claimed, and writes that were
    lost, gravest first.
    """
    groups: dict[tuple[ReasonStatus, tuple[str, ...], str], list[tuple[str, Cell]]] = {}
    for status, metrics, words, cell in (*_of_rows(rows), *_of_pairs(comparison)):
        groups.setdefault((status, metrics, without_numbers(words)), []).append((words, cell))
    ordered = sorted(groups.items(), key=lambda item: _ORDER.index(item[0][0]))
    every = list(dict.fromkeys(_cell(row) for row in rows))
    names = subjects(rows)
    made = []
    for number, ((status, metrics, _), found) in enumerate(ordered):
        cells = tuple(dict.fromkeys(cell for _, cell in found))
        made.append(
            Reason(
                mark=_mark(number),
                status=status,
                words=ranged([words for words, _ in found]),
                metrics=metrics,
                where=_where(cells, every, names),
                cells=cells,
            )
        )
    return tuple(made)


def marks(row: Row, found: Sequence[Reason]) -> str:
    """The marks of the reasons that affect a row: `a c`."""
    return " ".join(one.mark for one in found if _cell(row) in one.cells)


def faults(row: Row) -> list[str]:
    """Why a row is not valid or not steady, without mere remarks."""
    remarks = tuple(remark for point in row.points for remark in point.remarks)
    notes = [
        note
        for note in row.notes
        if note not in (NOT_VALID, NOT_STEADY) and not any(aside in note for aside in ASIDES)
    ]
    return [note.splitlines()[0] for note in notes if not note.endswith(remarks)]


def _cell(row: Row) -> Cell:
    return row.layout, kind_of(row), row.workers


def _of_rows(rows: Sequence[Row]) -> Iterator[tuple[ReasonStatus, tuple[str, ...], str, Cell]]:
    for row in rows:
        if not row.valid or row.steady is False:
            fallback = NOT_VALID if not row.valid else NOT_STEADY
            words = _named_once("; ".join(faults(row)), f"{NOT_STEADY}: ") or fallback
            yield "not comparable" if row.valid else "not valid", (), words, _cell(row)
        if row.power is not None and row.power.endangered:
            yield "not durable", (), row.power.words, _cell(row)
        for doubt in row.doubts:
            yield _status(doubt), doubt.metrics, f"{doubt.what}: {doubt.words}", _cell(row)


def _named_once(text: str, name: str) -> str:
    before, named, after = text.partition(name)
    return f"{before}{named}{after.replace(name, '')}"


def _of_pairs(comparison: Comparison) -> Iterator[tuple[ReasonStatus, tuple[str, ...], str, Cell]]:
    for effect in comparison.effects:
        if effect.workers is not None:
            for doubt in effect.doubts:
                if doubt.what in _BETWEEN:
                    for layout in (effect.baseline, effect.subject):
                        cell = (layout, kind_of(effect), effect.workers)
                        yield _status(doubt), doubt.metrics, f"{doubt.what}: {doubt.words}", cell


def _status(doubt: Doubt) -> ReasonStatus:
    return "not comparable" if doubt.grade == "grave" else "provisional"


def _where(cells: Sequence[Cell], every: Sequence[Cell], names: dict[Kind, str]) -> str:
    """Which cells: `all figures`, `all of swift`, `swift: 64 kB reads at 1 and 4 workers`."""
    touched = set(cells)
    if touched >= set(every):
        return "all figures"
    parts = []
    for layout in dict.fromkeys(name for name, _, _ in cells):
        mine = [cell for cell in every if cell[0] == layout]
        parts.append(
            f"all of {layout}"
            if touched >= set(mine)
            else f"{layout}: {', '.join(_kinds(touched, mine, names))}"
        )
    return "; ".join(parts)


def _kinds(touched: set[Cell], mine: Sequence[Cell], names: dict[Kind, str]) -> Iterable[str]:
    for kind in dict.fromkeys(cell[1] for cell in mine):
        counts = [cell[2] for cell in mine if cell[1] == kind]
        found = [cell[2] for cell in mine if cell[1] == kind and cell in touched]
        if found == counts and len(counts) > 1:
            yield names[kind]
        elif found:
            yield f"{names[kind]} at {listed([*map(str, found)])} worker{'s' * (found != [1])}"


def _mark(number: int) -> str:
    """`a` to `z`, then `aa` to `az` and so on."""
    before, last = divmod(number, len(ascii_lowercase))
    return f"{ascii_lowercase[before - 1] if before else ''}{ascii_lowercase[last]}"
