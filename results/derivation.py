"""Everything derived from a run folder: tables as CSV, charts and the report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from weighbridge.common.errors import installed
from weighbridge.results.features.open_run import open_run
from weighbridge.results.judge.host_equality import summary, unequal_shares
from weighbridge.results.judge.reasons import Reason, Remedy, reasons, remedy_of
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.run.reading import write_atomically
from weighbridge.results.show.feature import Answer, Gallery, gallery, write_sections
from weighbridge.results.show.pictures import DRAWING, write_charts
from weighbridge.results.show.report import report
from weighbridge.results.show.section import Section
from weighbridge.results.show.tables import EFFECTS, feature_tables, rows_table

ANSWER: Final = "answer.txt"
"""In `derived/`: what came of the run in a sentence, for lists of runs."""


@dataclass(frozen=True)
class Derived:
    """What was derived from a run, and where it is."""

    data: RunData
    folder: Path
    summary: Path
    report: Path | None
    """None without the extra `report`, which draws its charts."""
    gallery: Gallery
    answered: Answer
    sections: tuple[Section, ...]
    """What features say."""
    charts: tuple[Path, ...] = ()
    """The picture files, if written."""

    @property
    def charts_folder(self) -> Path:
        """Where the picture files are, or would be."""
        return self.folder / "charts"

    @property
    def answer(self) -> str:
        """What came of it in one sentence; empty if nothing was compared."""
        headline = self.answered.headline
        return f"{headline}." if headline else ""

    @cached_property
    def reasons(self) -> tuple[Reason, ...]:
        """Why cells are not ranked or not significant, each reason once."""
        data = self.data
        return () if data.tuning is not None else reasons(data.rows, data.comparison)

    @cached_property
    def remedy(self) -> Remedy | None:
        """What would make them significant; None if nothing is open."""
        return remedy_of(self.data)

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """Whether all layouts had equal hosts, and the largest difference, in sentences."""
        data, plan = self.data, self.data.plan
        measured = () if data.tuning is not None else plan.measured
        shares = () if data.tuning is not None else unequal_shares(plan)
        return (*shares, *summary(data.attested, measured))

    @property
    def comparable(self) -> bool:
        """Whether anything valid may be ranked; of several layouts a cell of two of them."""
        data = self.data
        if any(row.fault is not None and row.ranked for row in data.every_row):
            return True
        if data.tuning is not None:
            return any(effect.ratio is not None for effect in data.comparison.effects)
        if not data.comparison.subjects:
            return any(row.ranked for row in data.rows)
        return any(lead.standing != "not comparable" for lead in self.answered.leads)


def derive(run_folder: Path, *, pictures: bool = True) -> Derived:
    """Rebuild `derived/` of a run folder; `pictures`: also charts as files. Raises UsageError,
    InvalidMeasurement, or StoreError if it cannot be written.
    """
    data = open_run(run_folder)
    store = data.store
    table = _write_tables(data)
    sections, left_out = write_sections(data)
    page = store.derived / "report.html" if installed(DRAWING) else None
    shown = gallery(data)
    shown = replace(shown, left_out=(*shown.left_out, *left_out))
    derived = Derived(data, store.derived, table, page, shown, Answer(data), sections)
    if page is not None:
        answer = derived.answered
        text = report(data, answer, shown, sections, derived.reasons, derived.remedy)
        write_atomically(page, text)
    write_atomically(derived.folder / ANSWER, f"{derived.answer}\n")
    if not pictures:
        return derived
    return replace(derived, charts=write_charts(derived.gallery.charts, derived.charts_folder))


def _write_tables(data: RunData) -> Path:
    """Write as CSV `summary`, whose path it returns, `effects`, and what features have."""
    folder = data.store.make_derived()
    table = rows_table(data.rows, data.manifest.run_id, data.plan.twins)
    of_features = [each.of_runs([data]) for each in feature_tables()]
    for filled in (table, EFFECTS.of_runs([data]), *(each for each in of_features if each.lines)):
        write_atomically(folder / filled.file, filled.csv)
    return folder / table.file
