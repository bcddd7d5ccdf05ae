"""Everything derived from a run folder: tables as CSV, findings, charts and the report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from weighbridge.common.errors import installed
from weighbridge.results.analysis.agreement import agreements, sentences
from weighbridge.results.analysis.answer import Answer
from weighbridge.results.analysis.comparison import Comparison
from weighbridge.results.analysis.durability import LayoutDurability
from weighbridge.results.analysis.endpoint_use import endpoint_use
from weighbridge.results.analysis.factor_cost import factor_costs
from weighbridge.results.analysis.find.answers import Found
from weighbridge.results.analysis.host_shares import unequal_shares
from weighbridge.results.analysis.listing import complete_listings
from weighbridge.results.analysis.outages import Outages
from weighbridge.results.analysis.reasons import Reason, Remedy, reasons, remedy
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.analysis.sameness import summary as host_sentences
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.tuning.tuning_result import TuningResult
from weighbridge.results.record import RunStore, write_atomically
from weighbridge.results.record.profile import read_profiles
from weighbridge.results.report.agreement_table import agreement_csv
from weighbridge.results.report.profile_section import profile_sections
from weighbridge.results.report.report import NO_OUTAGES, report
from weighbridge.results.report.staircase_section import staircase_section
from weighbridge.results.report.study_section import StudySection, study_section
from weighbridge.results.report.tuning_page import tuning_page
from weighbridge.results.show.chart_source import source_of
from weighbridge.results.show.gallery import Gallery, gallery
from weighbridge.results.show.pictures import DRAWING, write_charts
from weighbridge.results.show.tables import EFFECTS, feature_tables, rows_table
from weighbridge.suites import FACTORS

ANSWER: Final = "answer.txt"
"""In `derived/`: what came of the run in a sentence, for lists of runs."""
WINNERS: Final = "winner"
"""Folder of a tuning's choice: one file for each configuration file, ready to paste."""


@dataclass(frozen=True)
class Derived:
    """What was derived, and where it is."""

    folder: Path
    summary: Path
    report: Path | None
    """None without the extra `report`, which draws its charts."""
    gallery: Gallery
    rows: tuple[Row, ...]
    answered: Answer
    comparison: Comparison
    """The tests and verdicts behind the answer, and the noise floor of this machine if measured."""
    charts: tuple[Path, ...] = ()
    """The picture files, if written."""
    agreement: tuple[str, ...] = ()
    """How far two drivers agree, in sentences; empty if there is only one."""
    replayed: StudySection | None = None
    found: Found | None = None
    outages: Outages = NO_OUTAGES
    overload: tuple[str, ...] = ()
    """What each layout serves beyond its capacity, in sentences."""
    durability: tuple[LayoutDurability, ...] = ()
    """What survived power cuts; empty if no layout was tried."""
    stairs: tuple[str, ...] = ()
    """What each layer achieves relative to the one below, and how to read it, in sentences."""
    hosts: tuple[str, ...] = ()
    """Whether all layouts had equal hosts, and the largest difference, in sentences."""
    tuned: TuningResult | None = None
    reasons: tuple[Reason, ...] = ()
    """Why cells are not ranked or not significant, each reason once."""
    remedy: Remedy | None = None
    """What would make them significant; None if nothing is open."""

    @property
    def charts_folder(self) -> Path:
        """Where the picture files are, or would be."""
        return self.folder / "charts"

    @property
    def answer(self) -> str:
        """What came of it in one sentence; empty if nothing was compared."""
        headline = self.answered.headline
        return f"{headline}." if headline else ""

    @property
    def comparable(self) -> bool:
        """Whether anything valid may be ranked; of several layouts a cell of two of them."""
        if any(one.row.ranked for one in self.outages.rows):
            return True
        if self.tuned is not None:
            return any(effect.ratio is not None for effect in self.comparison.effects)
        if not self.comparison.subjects:
            return any(row.ranked for row in self.rows)
        return any(lead.standing != "not comparable" for lead in self.answered.leads)


def derive(run_folder: Path, *, pictures: bool = True) -> Derived:
    """Rebuild `derived/` of a run folder; `pictures`: also charts as files. Raises UsageError,
    InvalidMeasurement, or StoreError if it cannot be written.
    """
    data = RunData(run_folder)
    derived = _derive(data) if data.tuned is None else _derive_tuning(data, data.tuned)
    write_atomically(derived.folder / ANSWER, f"{derived.answer}\n")
    if not pictures:
        return derived
    return replace(derived, charts=write_charts(derived.gallery.charts, derived.charts_folder))


def _derive(data: RunData) -> Derived:
    store, plan, rows, comparison = data.store, data.plan, data.rows, data.comparison
    stairs = None if data.stairs is None else staircase_section(data.stairs, data.layers)
    answered, why = Answer(data), reasons(rows, comparison)
    would = remedy(comparison, plan, data.manifest.command)
    agreed = agreements(rows)
    summary = _write_tables(data)
    if stairs is not None:
        stairs.write(store.derived, data.manifest.run_id)
    if agreed:
        write_atomically(store.derived / "agreement.csv", agreement_csv(agreed))
    replayed = None if data.study is None else study_section(data.study)
    if replayed is not None:
        replayed.write(store.make_derived("study"))
    shown = gallery(source_of(data))
    page = _page_of(store)
    if page is not None:
        text = report(
            data.manifest,
            plan,
            store.plan_yaml(),
            rows,
            answered,
            shown,
            data.events,
            data.attested,
            agreed,
            replayed,
            stairs,
            profile_sections(read_profiles(store.folder)),
            comparison,
            data.gaps,
            why,
            would,
            found=data.found,
            endpoints=endpoint_use(data.steps.values()),
            overload=data.overload,
            cost=data.costs,
            durability=data.durability,
            listings=complete_listings(plan.suite, rows),
            outages=data.outages,
            factors=[
                cost
                for factor in FACTORS
                for cost in factor_costs(factor, plan.suite, data.steps, data.visits, rows)
            ],
        )
        write_atomically(page, text)
    return Derived(
        folder=store.derived,
        summary=summary,
        report=page,
        gallery=shown,
        rows=rows,
        answered=answered,
        comparison=comparison,
        agreement=sentences(agreed, answered.leads),
        replayed=replayed,
        found=data.found,
        outages=data.outages,
        overload=tuple(text for kind in data.overload for text in kind.sentences),
        durability=data.durability,
        stairs=stairs.sentences if stairs is not None else (),
        hosts=(*unequal_shares(plan), *host_sentences(data.attested, plan.measured)),
        reasons=why,
        remedy=would,
    )


def _derive_tuning(data: RunData, result: TuningResult) -> Derived:
    store = data.store
    summary, page = _write_tables(data), _page_of(store)
    shown = gallery(source_of(data))
    winner = store.derived / WINNERS
    if winner.exists():
        store.make_derived(WINNERS)  # fails if it is a link to another folder
        # What was chosen earlier, from fewer trials, must not be pasted any more.
        for old in winner.iterdir():
            if not old.is_dir():
                old.unlink()
    for fragment in result.to_paste:
        write_atomically(winner / fragment.name, fragment.text, folder=store.folder)
    if page is not None:
        write_atomically(page, tuning_page(data, result, shown))
    return Derived(
        folder=store.derived,
        summary=summary,
        report=page,
        gallery=shown,
        rows=data.rows,
        answered=Answer(data),
        comparison=data.comparison,
        hosts=host_sentences(data.attested),
        tuned=result,
    )


def _page_of(store: RunStore) -> Path | None:
    return store.derived / "report.html" if installed(DRAWING) else None


def _write_tables(data: RunData) -> Path:
    """Write as CSV `summary`, whose path it returns, `effects`, and what features have."""
    folder = data.store.make_derived()
    summary = rows_table(data.rows, data.manifest.run_id, data.plan.twins)
    of_features = [table.of_runs([data]) for table in feature_tables()]
    for one in (
        summary,
        EFFECTS.of_runs([data]),
        *(each for each in of_features if each.lines),
    ):
        write_atomically(folder / one.file, one.csv)
    return folder / summary.file
