"""How far repeats scatter on this machine, as earlier runs show: what a planned run could find
depends on it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, PositiveInt

from weighbridge.common.errors import WeighbridgeError
from weighbridge.common.record import Record
from weighbridge.conductor.facts import facts_of_machine
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.topologies.hardware import Hardware

ASSUMED: Final = 0.15
"""The standard deviation of a repeat's logarithm if no earlier run shows it: `quick` scatters by
5 to 25 % on two cores.
"""
FEWEST: Final = 3
"""Repeats of a cell that a scatter needs."""
LOOKED_AT: Final = 5
"""How many runs, the newest, are searched."""
SAME: Final = ("cpu", "cpus", "hardware")
"""Facts of the machine that must be the same."""


class RepeatScatter(Record):
    """The median over cells of the standard deviation of logarithms: 0.15 is about 15 %."""

    share: Annotated[float, Field(ge=0)]
    cells: PositiveInt | None = None
    """None: it is assumed."""
    run: str = ""
    """The run that it was measured in."""

    @property
    def words(self) -> str:
        """`if repeats scatter by 14 % as in RUN (median of 24 cells)`."""
        percent = f"if repeats scatter by {self.share * 100:.0f} %"
        if self.cells is None:
            return f"{percent} (assumed: no earlier run on this machine)"
        return f"{percent} as in {self.run} (median of {self.cells} cells)"


def spread_of(rows: Sequence[Row], run: str) -> RepeatScatter | None:
    """The scatter of a table's throughputs and p90s; None if no cell has enough repeats."""
    found = []
    for row in rows:
        points = [point for point in row.used if point.valid]
        for metric in ("throughput", "p90"):
            figures = (point.value(metric) for point in points)
            known = [math.log(one) for one in figures if one is not None and one > 0]
            if len(known) >= FEWEST:
                found.append(statistics.stdev(known))
    if not found:
        return None
    return RepeatScatter(share=statistics.median(found), cells=len(found), run=run)


def spread_here(runs: Path, hardware: Hardware) -> RepeatScatter:
    """The scatter in the newest run below a folder that was made on this machine with this
    hardware, else the assumed one. Folders that cannot be read as runs are skipped.
    """
    now = facts_of_machine(hardware)
    folders = sorted((one.parent for one in runs.glob("*/manifest.json")), reverse=True)
    for folder in folders[:LOOKED_AT]:
        try:
            data = RunData(folder)
            facts = next(
                (sheet.facts for sheet in data.manifest.sheets if sheet.title == "machine"), {}
            )
            if data.tuning is None and all(facts.get(name) == now.get(name) for name in SAME):
                found = spread_of(data.rows, folder.name)
                if found is not None:
                    return found
        except WeighbridgeError:
            continue
    return RepeatScatter(share=ASSUMED)
