"""How far repeats scatter on this machine, as far as earlier runs of it tell; for saying what a run
that is planned could show.
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
"""The standard deviation of a repeat's logarithm where no earlier run tells: what `quick` shows on
two cores is 5 to 25 %.
"""
FEWEST: Final = 3
"""Repeats of a cell of which a scatter is made."""
LOOKED_AT: Final = 5
"""So many runs, the newest, are looked at for one that tells."""
SAME: Final = ("cpu", "cpus", "hardware")
"""Facts of the machine that must be the same."""


class RepeatScatter(Record):
    """The median over cells of the standard deviation of logarithms: 0.15 is about 15 %."""

    share: Annotated[float, Field(ge=0)]
    cells: PositiveInt | None = None
    """None: it is assumed."""
    run: str = ""
    """The run that told it."""

    @property
    def words(self) -> str:
        """`repeats of RUN scattered by 14 % here (median of 24 cells)`."""
        if self.cells is None:
            return (
                f"assuming that repeats scatter by {self.share * 100:.0f} % (no earlier run "
                "here tells)"
            )
        return (
            f"as repeats of {self.run} scatter by {self.share * 100:.0f} % (median of "
            f"{self.cells} cells)"
        )


def spread_of(rows: Sequence[Row], run: str) -> RepeatScatter | None:
    """The spread of a table's throughputs and p90s; None where no cell has repeats enough."""
    found = []
    for row in rows:
        points = [point for point in row.used if point.valid]
        for metric in ("throughput", "p90"):
            known = [
                math.log(figure)
                for point in points
                if (figure := point.value(metric)) is not None and figure > 0
            ]
            if len(known) >= FEWEST:
                found.append(statistics.stdev(known))
    return (
        RepeatScatter(share=statistics.median(found), cells=len(found), run=run) if found else None
    )


def spread_here(runs: Path, hardware: Hardware) -> RepeatScatter:
    """What the newest run below a folder tells that was made on this machine with this hardware,
    else what is assumed.

    A folder that is no run, or cannot be read, is passed over: what it would have told is not
    needed.
    """
    now = facts_of_machine(hardware)
    for folder in sorted((one.parent for one in runs.glob("*/manifest.json")), reverse=True)[
        :LOOKED_AT
    ]:
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
