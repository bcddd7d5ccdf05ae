"""What came of a run's layers: the staircases, what stands beside them, and all that a page, a
terminal and files tell of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from weighbridge.common.record import Record
from weighbridge.results.analysis.findings import subjects
from weighbridge.results.analysis.layers.staircase import (
    INSIDE,
    LayerStep,
    Staircase,
    doubts,
    gaps,
    percent,
    staircase_csv,
)
from weighbridge.results.analysis.layers.staircases import beside
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.steps.use import limit_brief
from weighbridge.results.export.csv_format import rounded_csv
from weighbridge.results.export.run_tables import rows_table
from weighbridge.results.figures import UNKNOWN, show_figure
from weighbridge.results.record import write_whole
from weighbridge.results.record.driver_traits import driver_label

_BESIDE: Final = {"rbd": "RBD", "cephfs": "CephFS"}


class LayerLine(Record):
    """One layer of one staircase as a table shows it, all in words."""

    about: str
    layout: str
    first: bool
    """Whether it is the first of its staircase."""
    name: str
    ops_s: str
    mb_s: str
    of_below: str
    of_disks: str
    limit: str
    note: str
    known: bool
    believable: bool


class BesideLine(Record):
    """What stands beside a gateway, as a table shows it."""

    about: str
    layout: str
    name: str
    by: str
    workers: str
    ops_s: str
    mb_s: str
    of_rados: str
    limit: str
    note: str
    valid: bool


class StaircasePage(Record):
    """All that is told of the layers; `layers` are their rows."""

    stairs: tuple[Staircase, ...]
    layers: tuple[Row, ...]
    lines: tuple[LayerLine, ...]
    beside: tuple[BesideLine, ...]

    @property
    def doubts(self) -> tuple[str, ...]:
        """What is to be said of figures that are above what they stand on, gravest first."""
        return doubts(self.stairs)

    @property
    def gaps(self) -> tuple[str, ...]:
        """What is not known, and how to get it."""
        return gaps(self.stairs)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a terminal shows: a line for each staircase, then doubts and gaps."""
        return (*(stair.words for stair in self.stairs if stair.known), *self.doubts, *self.gaps)

    def write(self, folder: Path, run: str) -> None:
        """Write `staircase.csv` and, of what was replayed, `layers.csv`; `run` is the name of the
        run. Raises StoreError.
        """
        write_whole(folder / "staircase.csv", staircase_csv(self.stairs))
        if self.layers:
            write_whole(folder / "layers.csv", rounded_csv(rows_table(self.layers, run)))


def staircase_page(stairs: Sequence[Staircase], layers: Sequence[Row]) -> StaircasePage:
    """What came of the layers of a run, by its staircases and the rows of what was replayed on the
    layers.
    """
    sideways = beside(layers)
    names = subjects(sideways)
    return StaircasePage(
        stairs=tuple(stairs),
        layers=tuple(layers),
        lines=tuple(
            _line(stair, step, first=not number)
            for stair in stairs
            for number, step in enumerate(reversed(stair.steps))
        ),
        beside=tuple(
            _beside(row, names[row.workload, row.operation, row.api, row.driver], layers)
            for row in sideways
        ),
    )


def _line(stair: Staircase, step: LayerStep, *, first: bool) -> LayerLine:
    below = (
        f"{percent(step.of_below)} of {INSIDE[step.below]}" if step.below is not None else UNKNOWN
    )
    said = f"{step.doubt.verdict}: {step.doubt.text}" if step.doubt is not None else ""
    least = "≥ " if step.held else ""
    at = f"at {step.workers} worker{'s' * (step.workers > 1)}" if step.workers is not None else ""
    return LayerLine(
        about=f"{stair.about[:1].upper()}{stair.about[1:]}",
        layout=stair.layout,
        first=first,
        name=step.name,
        ops_s=_least(least, step.throughput_ops_s),
        mb_s=_least(least, step.bandwidth_mb_s),
        of_below=below,
        of_disks=percent(step.of_disks) or UNKNOWN,
        limit=step.saturated or UNKNOWN,
        note="; ".join(part for part in (said, at, step.note) if part),
        known=step.throughput_ops_s is not None,
        believable=step.believable,
    )


def _beside(row: Row, about: str, layers: Sequence[Row]) -> BesideLine:
    same = [
        one
        for one in layers
        if (one.layer, one.layout, one.workload, one.operation)
        == ("rados", row.layout, row.workload, row.operation)
        and one.ranked
    ]
    rados = next((ops_s for one in same if (ops_s := one.value("throughput"))), None)
    rate = row.value("throughput") if row.ranked else None
    return BesideLine(
        about=f"{about[:1].upper()}{about[1:]}",
        layout=row.layout,
        name=_BESIDE.get(row.layer or "", UNKNOWN),
        by=driver_label(row.driver),
        workers=str(row.workers),
        ops_s=show_figure(row.value("throughput")),
        mb_s=show_figure(row.value("bandwidth")),
        of_rados=percent(rate / rados) if rate is not None and rados is not None else UNKNOWN,
        limit=limit_brief(row.resources) or UNKNOWN,
        note="; ".join(row.notes),
        valid=row.valid,
    )


def _least(sign: str, value: float | None) -> str:
    return UNKNOWN if value is None else f"{sign}{show_figure(value)}"
