"""The layers of a run for page, terminal and files: staircases, and RBD and CephFS beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from weighbridge.common.record import Record
from weighbridge.results.analysis.kinds import subjects
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
from weighbridge.results.analysis.steps.bottleneck import limit_brief
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.figures import UNKNOWN, counted, show_figure, upper
from weighbridge.results.record import write_atomically
from weighbridge.results.record.driver_traits import driver_label
from weighbridge.results.show.tables import rows_table

_BESIDE: Final = {"rbd": "RBD", "cephfs": "CephFS"}


class LayerLine(Record):
    """One layer of one staircase as a line of a table."""

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
    believable: bool


class BesideLine(Record):
    """What was measured beside a gateway, as a line of a table."""

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


class StaircaseSection(Record):
    """All that is shown of the layers; `layers` are their rows."""

    stairs: tuple[Staircase, ...]
    layers: tuple[Row, ...]
    lines: tuple[LayerLine, ...]
    beside: tuple[BesideLine, ...]

    @property
    def doubts(self) -> tuple[str, ...]:
        """Remarks on figures that exceed the layer below them, most serious first."""
        return doubts(self.stairs)

    @property
    def gaps(self) -> tuple[str, ...]:
        """What was not measured, and how to measure it."""
        return gaps(self.stairs)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The lines for a terminal: one for each staircase, then doubts and gaps."""
        return (*(stair.words for stair in self.stairs if stair.known), *self.doubts, *self.gaps)

    def write(self, folder: Path, run: str) -> None:
        """Write `staircase.csv` and, if layers were replayed, `layers.csv`. Raises StoreError."""
        write_atomically(folder / "staircase.csv", staircase_csv(self.stairs))
        if self.layers:
            write_atomically(folder / "layers.csv", rows_table(self.layers, run).csv)


def staircase_section(stairs: Sequence[Staircase], layers: Sequence[Row]) -> StaircaseSection:
    """The layers of a run: its staircases and the rows of the steps replayed on layers."""
    aside = beside(layers)
    names = subjects(aside)
    return StaircaseSection(
        stairs=tuple(stairs),
        layers=tuple(layers),
        lines=tuple(
            _line(stair, step, first=not number)
            for stair in stairs
            for number, step in enumerate(reversed(stair.steps))
        ),
        beside=tuple(
            _beside(row, names[row.workload, row.operation, row.api, row.driver], layers)
            for row in aside
        ),
    )


def _line(stair: Staircase, step: LayerStep, *, first: bool) -> LayerLine:
    below = UNKNOWN if step.below is None else f"{percent(step.of_below)} of {INSIDE[step.below]}"
    doubt = "" if step.doubt is None else f"{step.doubt.verdict}: {step.doubt.text}"
    at = "" if step.workers is None else f"at {counted(step.workers, 'worker')}"
    return LayerLine(
        about=upper(stair.about),
        layout=stair.layout,
        first=first,
        name=step.name,
        ops_s=_at_least(step.throughput_ops_s, bound=bool(step.held)),
        mb_s=_at_least(step.bandwidth_mb_s, bound=bool(step.held)),
        of_below=below,
        of_disks=percent(step.of_disks) or UNKNOWN,
        limit=step.saturated or UNKNOWN,
        note="; ".join(part for part in (doubt, at, step.note) if part),
        believable=step.believable,
    )


def _beside(row: Row, about: str, layers: Sequence[Row]) -> BesideLine:
    key = ("rados", row.layout, row.workload, row.operation)
    same = (
        one.value("throughput")
        for one in layers
        if (one.layer, one.layout, one.workload, one.operation) == key and one.ranked
    )
    rados = next((ops_s for ops_s in same if ops_s), None)
    rate = row.value("throughput") if row.ranked else None
    return BesideLine(
        about=upper(about),
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


def _at_least(value: float | None, *, bound: bool) -> str:
    return f"{'≥ ' if bound and value is not None else ''}{show_figure(value)}"
