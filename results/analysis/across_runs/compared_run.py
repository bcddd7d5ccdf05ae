"""A run as another is compared with it: its manifest, its plan, its table, and what its hosts could do."""

from __future__ import annotations

from pathlib import Path

from weighbridge.common.record import Record
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.record.attestation import Attested
from weighbridge.results.record.manifest import Manifest
from weighbridge.results.record.resolved import PlannedLayout, ResolvedPlan


class ComparedRun(Record):
    """A run that was read. `rows` are those of the gateways as the report has them, twins with them."""

    folder: Path
    manifest: Manifest
    plan: ResolvedPlan
    rows: tuple[Row, ...]
    attested: tuple[Attested, ...] = ()
    """Empty where the hosts were not attested."""

    @property
    def layouts(self) -> dict[str, PlannedLayout]:
        """The layouts by name, without twins."""
        return {layout.name: layout for layout in self.plan.layouts if layout.name not in self.plan.twins}

    def facts(self, layout: str | None = None, title: str | None = None) -> dict[str, str]:
        """What is known of a layout, of all sheets about it, or of none in particular; only of the sheets of this title."""
        sheets = [sheet for sheet in self.manifest.sheets if sheet.layout == layout and title in (None, sheet.title)]
        return {name: text for sheet in sheets for name, text in sheet.facts.items()}


def weighed(folder: Path) -> ComparedRun:
    """Read a run, finished or not. Raises UsageError when it is none, InvalidMeasurement when something of it cannot be read."""
    data = RunData(folder)
    return ComparedRun(folder=folder, manifest=data.manifest, plan=data.plan, rows=data.rows, attested=data.attested)
