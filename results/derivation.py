"""All that can be rebuilt from a run folder: the table as CSV, findings, charts and the report."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from weighbridge.common.record import Record
from weighbridge.results.analysis.agreement import agreements, sentences
from weighbridge.results.analysis.comparison import Comparison
from weighbridge.results.analysis.findings import Finding, findings_of
from weighbridge.results.analysis.reasons import Reason, reasons
from weighbridge.results.analysis.remedy import Remedy, remedy
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.analysis.sameness import summary as told
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.tuning.tuning_result import TuningResult
from weighbridge.results.charts.chart_source import source_of
from weighbridge.results.charts.gallery import Gallery, gallery
from weighbridge.results.charts.pictures import write_charts
from weighbridge.results.export.csv_format import csv_file, rounded_csv
from weighbridge.results.export.effect_tables import ledger_table, trials_table
from weighbridge.results.export.effects import effects_csv
from weighbridge.results.export.run_tables import rows_table
from weighbridge.results.record import write_whole
from weighbridge.results.record.profile import read_profiles
from weighbridge.results.report.agreement_table import agreement_csv
from weighbridge.results.report.profile_page import shown as profiles_shown
from weighbridge.results.report.report import report
from weighbridge.results.report.staircase_page import staircase_page
from weighbridge.results.report.study_page import StudyPage, study_page
from weighbridge.results.report.tuning_page import tuning_page

WINNERS: Final = "winner"
"""Folder of what a tuning chose, a file for each configuration file, ready to be pasted."""


class Derived(Record):
    """What was derived, and where it is."""

    folder: Path
    summary: Path
    report: Path
    gallery: Gallery
    """The pictures of the run."""
    charts: tuple[Path, ...] = ()
    """Files of the pictures, where they were written."""
    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]
    comparison: Comparison
    """The tests and the verdicts behind the findings, and the rig's noise floor where it was
    measured.
    """
    agreement: tuple[str, ...] = ()
    """How far two drivers agree, in sentences; empty where one made all the load."""
    replayed: StudyPage | None = None
    """What the study came to that the run replays."""
    stairs: tuple[str, ...] = ()
    """What each layer does of the one below, by layout and kind of requests, and what to think of
    it, in sentences.
    """
    hosts: tuple[str, ...] = ()
    """Whether the hosts were the same for all layouts, and the worst of what differs, in sentences.
    """
    tuned: TuningResult | None = None
    """What a tuning came to; None of a run that is none."""
    reasons: tuple[Reason, ...] = ()
    """Why cells may not be ranked, or claim nothing, each reason once."""
    remedy: Remedy | None = None
    """What would have claimed what is not; None where nothing is left open."""

    @property
    def charts_folder(self) -> Path:
        """Where the files of its pictures are, or belong."""
        return self.folder / "charts"

    @property
    def comparable(self) -> bool:
        """Whether anything was measured that may be ranked: for more than one layout, a cell of two
        of them, if provisionally.

        Grave doubts about every cell leave nothing: then it is as if nothing valid had been
        measured.
        """
        if self.tuned is not None:
            return any(effect.ratio is not None for effect in self.comparison.effects)
        if not self.comparison.subjects:
            return any(row.ranked for row in self.rows)
        return any(finding.ratio is not None for finding in self.findings)


def derive(run_folder: Path, *, pictures: bool = True) -> Derived:
    """Rebuild `derived/` from the rest of a run folder, finished or not; `pictures`: write the
    charts as files, too.

    Raises UsageError when it is no run folder, InvalidMeasurement when something of it cannot be
    read, StoreError when it cannot be written.
    """
    data = RunData(run_folder)
    derived = _derive(data) if data.tuned is None else _derive_tuning(data, data.tuned)
    if not pictures:
        return derived
    return derived.model_copy(
        update={"charts": write_charts(derived.gallery.figures, derived.charts_folder)}
    )


def _derive(data: RunData) -> Derived:
    """Of a run that is no tuning's: its tables and its report."""
    store, plan, rows = data.store, data.plan, data.rows
    comparison, attested = data.comparison, data.attested
    stairs = None if data.stairs is None else staircase_page(data.stairs, data.layers)
    findings, why = findings_of(comparison), reasons(rows, comparison)
    would = remedy(comparison, plan, data.manifest.command)
    agreed = agreements(rows)
    store.make_derived()
    summary = store.derived / "summary.csv"
    write_whole(summary, rounded_csv(rows_table(rows, data.manifest.run_id, plan.twins)))
    if stairs is not None:
        stairs.write(store.derived, data.manifest.run_id)
    write_whole(store.derived / "effects.csv", effects_csv(comparison))
    if agreed:
        write_whole(store.derived / "agreement.csv", agreement_csv(agreed))
    outcome = data.study
    replayed = None if outcome is None else study_page(outcome)
    shown = gallery(source_of(data))
    if replayed is not None:
        replayed.write(store.make_derived("study"))
    page = store.derived / "report.html"
    write_whole(
        page,
        report(
            data.manifest,
            plan,
            store.plan_yaml(),
            rows,
            findings,
            shown,
            data.events,
            attested,
            agreed,
            replayed,
            stairs,
            profiles_shown(read_profiles(store.folder)),
            comparison,
            data.gaps,
            why,
            would,
        ),
    )
    return Derived(
        folder=store.derived,
        summary=summary,
        report=page,
        gallery=shown,
        rows=rows,
        findings=findings,
        comparison=comparison,
        agreement=sentences(agreed, findings),
        replayed=replayed,
        stairs=stairs.sentences if stairs is not None else (),
        hosts=told(attested, plan.own),
        reasons=why,
        remedy=would,
    )


def _derive_tuning(data: RunData, result: TuningResult) -> Derived:
    """The same of a tuning's run: its ledger, its trials, charts, what it chose ready to paste, and
    its page.
    """
    store = data.store
    derived = store.make_derived()
    summary, page = derived / "summary.csv", derived / "report.html"
    write_whole(summary, rounded_csv(rows_table(data.rows, data.manifest.run_id, data.plan.twins)))
    write_whole(derived / "effects.csv", effects_csv(data.comparison))
    for table in (ledger_table([data]), trials_table([data])):
        write_whole(derived / f"{table.name}.csv", csv_file(table).content)
    shown = gallery(source_of(data))
    winner = derived / WINNERS
    if winner.exists():
        store.make_derived(WINNERS)  # which is an error where it is a link to somebody's folder
        # What was chosen before, of fewer trials, is not to be pasted any more.
        for old in winner.iterdir():
            if not old.is_dir():
                old.unlink()
    for fragment in result.winner.fragments if result.winner is not None else ():
        write_whole(winner / fragment.name, fragment.text, folder=store.folder)
    write_whole(page, tuning_page(data, result, shown))
    return Derived(
        folder=derived,
        summary=summary,
        report=page,
        gallery=shown,
        rows=data.rows,
        findings=(),
        comparison=data.comparison,
        hosts=told(data.attested),
        tuned=result,
    )
