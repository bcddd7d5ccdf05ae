"""Why cells may not be ranked, or claim nothing: each reason once, with the cells that it touches,
in words.

Reasons whose texts differ in their numbers alone are one, with the range of each number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from string import ascii_lowercase
from typing import Final, Literal

from weighbridge.common.record import Record
from weighbridge.results.analysis.comparison import Comparison
from weighbridge.results.analysis.kinds import Kind, kind_of, subjects
from weighbridge.results.analysis.steps.summary import NOT_STEADY, NOT_VALID, Row
from weighbridge.results.analysis.steps.validity import ASIDES
from weighbridge.results.doubt import Doubt
from weighbridge.results.metrics import METRICS, MetricKey

Standing = Literal["not valid", "not comparable", "provisional"]
"""What a reason makes of the cells that it touches."""

Cell = tuple[str, Kind, int]
"""Layout, kind of requests, worker count."""

_BETWEEN: Final = ("hosts differ", "hosts not attested", "few repeats")
"""What is doubted of two layouts beside each other, and so stands in no row."""
_ORDER: Final[tuple[Standing, ...]] = ("not comparable", "not valid", "provisional")
_NUMBER: Final = re.compile(r"(?<![\w.-])\d[\d,]*(?:\.\d+)?")


class Reason(Record):
    """One reason. `mark` is what stands beside the cells that it touches; `where` says in words
    which these are.
    """

    mark: str
    standing: Standing
    words: str
    metrics: tuple[MetricKey, ...] = ()
    """The metrics that it touches; empty: all of them."""
    where: str
    cells: tuple[Cell, ...]

    @property
    def text(self) -> str:
        """The whole of it in one line."""
        what = f"{', '.join(METRICS[key].name for key in self.metrics)} " if self.metrics else ""
        return f"{what}{self.standing}: {self.words} ({self.where})"


def reasons(rows: Sequence[Row], comparison: Comparison) -> tuple[Reason, ...]:
    """All that keeps figures of a table from being ranked or claimed, the gravest first."""
    groups: dict[tuple[Standing, tuple[str, ...], str], list[tuple[str, Cell]]] = {}
    for standing, metrics, words, cell in (*_of_rows(rows), *_of_pairs(comparison)):
        groups.setdefault((standing, metrics, _NUMBER.sub("\0", words)), []).append((words, cell))
    ordered = sorted(groups.items(), key=lambda item: _ORDER.index(item[0][0]))
    whole = list(dict.fromkeys(_cell(row) for row in rows))
    names = subjects(rows)
    made = []
    for number, ((standing, metrics, pattern), told) in enumerate(ordered):
        cells = tuple(dict.fromkeys(cell for _, cell in told))
        made.append(
            Reason(
                mark=_mark(number),
                standing=standing,
                words=_ranged(pattern, [words for words, _ in told]),
                metrics=metrics,
                where=_where(cells, whole, names),
                cells=cells,
            )
        )
    return tuple(made)


def marks(row: Row, found: Sequence[Reason]) -> str:
    """The marks of the reasons that touch a row: `a c`."""
    return " ".join(one.mark for one in found if _cell(row) in one.cells)


def faults(row: Row) -> list[str]:
    """Why a row is not valid or not steady, without what is only to be known about it."""
    remarks = tuple(remark for point in row.points for remark in point.remarks)
    told = [
        note
        for note in row.notes
        if note not in (NOT_VALID, NOT_STEADY) and not any(aside in note for aside in ASIDES)
    ]
    return [note.splitlines()[0] for note in told if not note.endswith(remarks)]


def _cell(row: Row) -> Cell:
    return row.layout, kind_of(row), row.workers


def _of_rows(rows: Sequence[Row]) -> Iterator[tuple[Standing, tuple[str, ...], str, Cell]]:
    for row in rows:
        if not row.valid or row.steady is False:
            fallback = NOT_VALID if not row.valid else NOT_STEADY
            yield (
                "not comparable" if row.valid else "not valid",
                (),
                "; ".join(faults(row)) or fallback,
                _cell(row),
            )
        for doubt in row.doubts:
            yield _standing(doubt), doubt.metrics, f"{doubt.what}: {doubt.words}", _cell(row)


def _of_pairs(comparison: Comparison) -> Iterator[tuple[Standing, tuple[str, ...], str, Cell]]:
    for effect in comparison.effects:
        if effect.workers is not None:
            for doubt in effect.doubts:
                if doubt.what in _BETWEEN:
                    for layout in (effect.baseline, effect.subject):
                        cell = (layout, kind_of(effect), effect.workers)
                        yield _standing(doubt), doubt.metrics, f"{doubt.what}: {doubt.words}", cell


def _standing(doubt: Doubt) -> Standing:
    return "not comparable" if doubt.grade == "grave" else "provisional"


def _ranged(pattern: str, texts: Sequence[str]) -> str:
    """The one text for texts that differ in their numbers alone, with the range of each number."""
    found = [
        sorted(set(numbers), key=_value)
        for numbers in zip(*(_NUMBER.findall(text) for text in texts), strict=True)
    ]
    numbers = [each[0] if len(each) == 1 else f"{each[0]} to {each[-1]}" for each in found]
    parts = zip_longest(pattern.split("\0"), numbers, fillvalue="")
    return "".join(part for pair in parts for part in pair)


def _value(number: str) -> float:
    return float(number.replace(",", ""))


def _where(cells: Sequence[Cell], whole: Sequence[Cell], names: dict[Kind, str]) -> str:
    """Which cells: `all figures`, `all of swift`, `swift: 64 kB reads at 1 and 4 workers`."""
    touched = set(cells)
    if touched >= set(whole):
        return "all figures"
    parts = []
    for layout in dict.fromkeys(name for name, _, _ in cells):
        mine = [cell for cell in whole if cell[0] == layout]
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
            listed = (
                f"{', '.join(map(str, found[:-1]))} and {found[-1]}"
                if len(found) > 1
                else f"{found[0]}"
            )
            yield f"{names[kind]} at {listed} worker{'s' * (found != [1])}"


def _mark(number: int) -> str:
    """A to z, then aa to az ..."""
    before, last = divmod(number, len(ascii_lowercase))
    return f"{ascii_lowercase[before - 1] if before else ''}{ascii_lowercase[last]}"
