"""What verbs that measure, or read a run, print with `--json`.

Figures are those of the exported tables and of what was derived: nothing is computed again.
"""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from weighbridge.common.json_document import JsonDocument
from weighbridge.results.analysis.comparison import NoiseFloor
from weighbridge.results.analysis.durability import LayoutDurability
from weighbridge.results.analysis.findings import Finding
from weighbridge.results.analysis.reasons import Reason
from weighbridge.results.analysis.remedy import Remedy
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.derivation import Derived
from weighbridge.results.export.effect_tables import EFFECTS, EffectOfRun
from weighbridge.results.export.formats import OF_TUNINGS, TABLES
from weighbridge.results.export.json_format import json_objects
from weighbridge.results.export.run_tables import rows_table

JsonTable = tuple[dict[str, JsonValue], ...]


class RunDocument(JsonDocument):
    """A run and what it came to."""

    document: Literal["run"] = "run"
    run: str
    """Name of the run."""
    folder: str
    suite: str
    state: str
    """running, done, failed or interrupted."""
    report: str | None
    """The report's path; null without the extra that makes reports."""
    answer: str = ""
    """Who leads in what, in one sentence; empty if nothing was compared."""
    findings: tuple[Finding, ...] = ()
    """The ratio of two layouts, for each kind of requests and worker count."""
    doubts: tuple[Reason, ...] = ()
    """Why figures are not ranked or provisional, and which."""
    noise: tuple[NoiseFloor, ...] = ()
    """The noise floor of this machine by metric, from A/A controls."""
    remedy: Remedy | None = None
    """What would settle what is open, and the command for it."""
    sentences: tuple[str, ...] = ()
    """What else can be said: rates within a bound, outages, overload, layers, drivers, hosts."""
    durability: tuple[LayoutDurability, ...] = ()
    """What survived power cuts."""
    gaps: tuple[str, ...] = ()
    """What the run's folder lacks."""
    tables: dict[str, JsonTable]
    """The tables `summary` and `effects`, of a tuning also `ledger` and `trials`, as `export --to
    json` writes them: its `--schema` describes their fields.
    """


def run_document(derived: Derived, exit_code: int) -> RunDocument:
    """The document of a run whose report was derived."""
    data = RunData(derived.folder.parent)
    run = data.manifest.run_id
    tables = {
        "summary": rows_table(derived.rows, run, data.plan.twins),
        "effects": EFFECTS.fill(EffectOfRun(data, one) for one in derived.comparison.effects),
    }
    if derived.tuned is not None:
        tables |= {name: TABLES[name]([data]) for name in OF_TUNINGS}
    return RunDocument(
        exit_code=exit_code,
        run=run,
        folder=str(data.store.folder),
        suite=data.manifest.suite,
        state=data.manifest.state,
        report=None if derived.report is None else str(derived.report),
        answer=derived.answer,
        findings=derived.findings,
        doubts=derived.reasons,
        noise=derived.comparison.noise,
        remedy=derived.remedy,
        sentences=(
            *(() if derived.found is None else derived.found.sentences),
            *derived.overload,
            *derived.outages.sentences,
            *derived.stairs,
            *derived.agreement,
            *derived.hosts,
        ),
        durability=derived.durability,
        gaps=data.gaps,
        tables={name: tuple(json_objects(table)) for name, table in tables.items()},
    )
