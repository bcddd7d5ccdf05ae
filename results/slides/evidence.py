from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from weighbridge.common.record import Record
from weighbridge.results.analysis.comparison import Comparison
from weighbridge.results.analysis.contrast import reason
from weighbridge.results.analysis.durability import LayoutDurability
from weighbridge.results.analysis.findings import Finding, findings_of, overall
from weighbridge.results.analysis.kinds import Kind, kind_of, subjects
from weighbridge.results.analysis.layers.staircase import Staircase
from weighbridge.results.analysis.reasons import Reason, Remedy, reasons, remedy
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.analysis.steps.steadiness import NOT_STEADY
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.tuning.tuning_result import TuningResult
from weighbridge.results.doubt import doubt_words
from weighbridge.results.figures import counted
from weighbridge.results.record import Attested, Manifest, ResolvedPlan, RunStore
from weighbridge.results.show.theme import Look, Style, styles
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM


class Evidence(Record):
    """What is known of a run; A/A controls are only in `comparison`."""

    manifest: Manifest
    plan: ResolvedPlan
    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]
    comparison: Comparison
    stairs: tuple[Staircase, ...]
    attested: tuple[Attested, ...]
    durability: tuple[LayoutDurability, ...] = ()
    gaps: tuple[str, ...] = ()
    tuned: TuningResult | None = None

    @property
    def layouts(self) -> tuple[str, ...]:
        return tuple(layout.name for layout in self.plan.layouts)

    @property
    def kinds(self) -> dict[Kind, tuple[Row, ...]]:
        return {kind: tuple(rows) for kind, rows in groupby(self.rows, key=kind_of)}

    @property
    def called(self) -> dict[Kind, str]:
        return subjects(self.rows)

    @property
    def pairs(self) -> dict[Kind, list[Finding]]:
        return overall(self.findings)

    @property
    def reasons(self) -> tuple[Reason, ...]:
        return reasons(self.rows, self.comparison)

    @property
    def remedy(self) -> Remedy | None:
        return remedy(self.comparison, self.plan, self.manifest.command)

    def drawn(self, look: Look) -> dict[str, Style]:
        return {style.layout: style for style in styles(self.plan.layouts, look)}

    @property
    def facts(self) -> dict[str, dict[str, str]]:
        """The facts about each layout from all fact sheets."""
        found: dict[str, dict[str, str]] = {name: {} for name in self.layouts}
        for sheet in self.manifest.sheets:
            if sheet.layout in found:
                found[sheet.layout].update(sheet.facts)
        return found

    @property
    def repeats(self) -> tuple[int, int]:
        """The fewest and the most repeats of measured figures; 0 where nothing was measured."""
        return repeats(self.rows)


def evidence(store: RunStore) -> Evidence:
    """Raises UsageError or InvalidMeasurement when a run folder cannot be read."""
    data = RunData(store.folder)
    plan, controls = data.plan, data.plan.twins
    return Evidence(
        manifest=data.manifest,
        plan=plan.model_copy(
            update={"layouts": tuple(one for one in plan.layouts if one.name not in controls)}
        ),
        rows=tuple(row for row in data.rows if row.layout not in controls),
        findings=findings_of(data.comparison),
        comparison=data.comparison,
        stairs=tuple(stair for stair in data.stairs or () if stair.layout not in controls),
        attested=data.attested,
        durability=data.durability,
        gaps=data.gaps,
        tuned=data.tuned,
    )


def repeats(rows: Sequence[Row]) -> tuple[int, int]:
    """The fewest and the most repeats of measured rows; 0 where nothing was measured."""
    known = [row.repeats for row in rows if row.repeats]
    return min(known, default=0), max(known, default=0)


def rests_on(fewest: int, most: int | None = None) -> str:
    """`n = 5`, `n = 1: provisional`, `n = 2 to 5: provisional below 5`."""
    if fewest == 0:
        return "nothing was measured"
    if most is not None and most != fewest:
        return f"n = {fewest} to {most}" + (
            f": provisional below {REPEATS_FOR_A_CLAIM}" if fewest < REPEATS_FOR_A_CLAIM else ""
        )
    return f"n = {fewest}" + ("" if fewest >= REPEATS_FOR_A_CLAIM else ": provisional")


def spanned(counts: Sequence[int]) -> str:
    """`1 worker`, `1 to 32 workers`."""
    return (
        counted(counts[0], "worker")
        if counts[0] == counts[-1]
        else f"{counts[0]} to {counts[-1]} workers"
    )


def why_not(row: Row) -> str:
    """Why a row is not ranked, in as few words as possible."""
    if not row.valid:
        return reason(row)
    return doubt_words(row.condemned) or (
        NOT_STEADY if row.steady is False else "nothing succeeded"
    )
