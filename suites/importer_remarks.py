"""Remarks of an import: what of a file is not in the suite made from it, and what that changes."""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import Literal

from weighbridge.suites.cosbench_xml import XmlPlace

Severity = Literal["note", "change", "fault"]
"""How a remark affects the import.

`note`: left out, or handled otherwise by every suite. `change`: the suite would measure something
else, which is refused unless requested. `fault`: COSBench itself refuses the file or fails on it.
"""


@dataclass(frozen=True)
class Remark:
    """One difference between the suite and the file, and its place in the file."""

    place: XmlPlace
    message: str
    severity: Severity

    def __str__(self) -> str:
        return f"{self.place.file}:{self.place.line}: {self.message}"


class Remarks:
    """The remarks of one import, without duplicates."""

    def __init__(self) -> None:
        self._all: dict[tuple[int, int, str], Remark] = {}

    def note(self, place: XmlPlace, message: str) -> None:
        """Note what is left out, or handled otherwise by every suite."""
        self._add(Remark(place, message, "note"))

    def change(self, place: XmlPlace, message: str) -> None:
        """Note what would make the suite measure something else than the file."""
        self._add(Remark(place, message, "change"))

    def fault(self, place: XmlPlace, message: str) -> None:
        """Note what COSBench itself would refuse."""
        self._add(Remark(place, message, "fault"))

    def of(self, *severities: Severity) -> tuple[Remark, ...]:
        """Those of some severities, in file order."""
        return tuple(
            one
            for _, one in sorted(self._all.items(), key=itemgetter(0))
            if one.severity in severities
        )

    def _add(self, remark: Remark) -> None:
        self._all.setdefault((remark.place.line, remark.place.column, remark.message), remark)
