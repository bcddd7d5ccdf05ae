"""What an import has to say: what of a file is not in the suite that is made of it, and what that
does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from weighbridge.suites.cosbench_xml import XmlPlace

Weight = Literal["told", "changes", "fault"]
"""`told`: left out, or done otherwise by every suite. `changes`: what is measured would be
something else, which is refused unless it is asked for. `fault`: COSBench itself refuses the file,
or fails on it.
"""


@dataclass(frozen=True)
class Remark:
    """One thing that is not in the suite as it is in the file, and where it stands there."""

    place: XmlPlace
    message: str
    weight: Weight

    def __str__(self) -> str:
        return f"{self.place.file}:{self.place.line}: {self.message}"


class Remarks:
    """The remarks of one import, each once, in the order of the file."""

    def __init__(self) -> None:
        self._all: dict[tuple[int, int, str], Remark] = {}

    def told(self, place: XmlPlace, message: str) -> None:
        """Say what is left out, or done otherwise by every suite."""
        self._add(Remark(place, message, "told"))

    def changes(self, place: XmlPlace, message: str) -> None:
        """Say what would make the suite measure something else than the file."""
        self._add(Remark(place, message, "changes"))

    def fault(self, place: XmlPlace, message: str) -> None:
        """Say what COSBench itself would not take."""
        self._add(Remark(place, message, "fault"))

    def of(self, *weights: Weight) -> tuple[Remark, ...]:
        """Those of some weights, in the order of the file."""
        return tuple(
            remark
            for _, remark in sorted(self._all.items(), key=lambda item: item[0])
            if remark.weight in weights
        )

    def _add(self, remark: Remark) -> None:
        self._all.setdefault((remark.place.line, remark.place.column, remark.message), remark)
