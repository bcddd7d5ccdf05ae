"""What a folder of power cuts was made with: cuts made with anything else do not get into it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from weighbridge.common.errors import UsageError
from weighbridge.common.record import Record
from weighbridge.results.record.durability import FILE as CUTS
from weighbridge.results.record.reading import read_record
from weighbridge.results.record.writing import write_atomically
from weighbridge.suites import Durability
from weighbridge.topologies.layout import Layout

FILE: Final = "durability.json"


class DurabilityOrder(Record):
    """The settings of all cuts of a folder. `layouts` are those that were cut, by name."""

    wanted: Durability
    seed: int
    hardware: str
    layouts: dict[str, Layout]

    def record(self, folder: Path) -> None:
        """Write it to a folder, with the layouts that the folder has already.

        Raises UsageError if cuts of the folder were made with other settings, StoreError.
        """
        path = folder / FILE
        all_of_it = self
        if path.exists():
            before = read_record(path, DurabilityOrder)
            if other := self._other_than(before):
                raise UsageError(
                    f"{folder}: its cuts were made with other settings: {', '.join(other)}",
                    advice=f"Choose another folder with --out, or the settings in {path}.",
                )
            layouts: Mapping[str, Layout] = {**before.layouts, **self.layouts}
            all_of_it = self.model_copy(update={"layouts": layouts})
        elif (folder / CUTS).exists():
            raise UsageError(
                f"{folder}: has cuts, and no {FILE} that says how they were made",
                advice="Choose another folder with --out.",
            )
        write_atomically(path, all_of_it.model_dump_json(indent=1))

    def _other_than(self, before: DurabilityOrder) -> list[str]:
        """Names of settings that differ."""
        mine, others = (one.model_dump(exclude={"layouts"}) for one in (self, before))
        mine, others = ({**one.pop("wanted"), **one} for one in (mine, others))
        names = [name for name in mine if mine[name] != others[name]]
        return names + [
            f"the layout {name}"
            for name, layout in self.layouts.items()
            if before.layouts.get(name, layout) != layout
        ]
