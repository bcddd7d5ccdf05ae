"""A run as it is compared with others: its table, and what decides what its figures mean."""

from __future__ import annotations

from pathlib import Path

from weighbridge.common.record import Record
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.record import Attested, Manifest, PlannedLayout, ResolvedPlan


class ComparedRun(Record):
    """A run to compare. `rows` are those of the report, including A/A controls."""

    folder: Path
    manifest: Manifest
    plan: ResolvedPlan
    rows: tuple[Row, ...]
    attested: tuple[Attested, ...] = ()
    """Empty if the hosts were not attested."""
    is_tuning: bool = False
    """Whether it is a tuning: its rows are of variants that were tried."""

    @property
    def layouts(self) -> dict[str, PlannedLayout]:
        """The layouts by name, without A/A controls."""
        return {
            layout.name: layout
            for layout in self.plan.layouts
            if layout.name not in self.plan.twins
        }

    @property
    def brief(self) -> ComparedRun:
        """The same without configuration files, which decide nothing here and may be large."""
        return self.model_copy(
            update={"manifest": self.manifest.model_copy(update={"configs": ()})}
        )

    def facts(self, layout: str | None = None, title: str | None = None) -> dict[str, str]:
        """The facts about a layout, or about none in particular; `title` limits the sheets."""
        sheets = [
            sheet
            for sheet in self.manifest.sheets
            if sheet.layout == layout and title in (None, sheet.title)
        ]
        return {name: text for sheet in sheets for name, text in sheet.facts.items()}


def read_compared_run(folder: Path) -> ComparedRun:
    """Read a run, finished or not. Raises UsageError or InvalidMeasurement if it cannot be read."""
    data = RunData(folder)
    return ComparedRun(
        folder=folder,
        manifest=data.manifest,
        plan=data.plan,
        rows=data.rows,
        attested=data.attested,
        is_tuning=data.tuning is not None,
    )
