"""What verbs that compare runs, or cut power, print with `--json`."""

from __future__ import annotations

from typing import Literal

from weighbridge.common.json_document import JsonDocument
from weighbridge.results.analysis.across_runs.guard import Difference, Guarded
from weighbridge.results.analysis.across_runs.leads_by_run import LeadsByRun
from weighbridge.results.analysis.comparison import Comparison
from weighbridge.results.analysis.durability import LayoutDurability


class ComparedRunsDocument(JsonDocument):
    """What `compare-runs` prints."""

    document: Literal["compared runs"] = "compared runs"
    a: str
    """Names of the two runs."""
    b: str
    guarded: Guarded
    """Facts that are the same in both, that are not known, and that differ."""
    comparison: Comparison
    """Each effect with its tests, as in comparison.json."""
    lost: tuple[str, ...]
    """What was comparable in A and is not in B."""


class LeadsDocument(JsonDocument):
    """What `compare-runs --leads` prints."""

    document: Literal["leads"] = "leads"
    a: str
    """Names of the two runs."""
    b: str
    differences: tuple[Difference, ...]
    """Facts in which the runs differ."""
    leads: tuple[LeadsByRun, ...]


class DurabilityDocument(JsonDocument):
    """What `durability` prints."""

    document: Literal["durability"] = "durability"
    layouts: tuple[LayoutDurability, ...]
    failed: tuple[str, ...] = ()
    """Layouts that could not be tried to the end, and why."""
