"""Published studies as plans that can be replayed: layouts, a suite, and the published figures."""

from weighbridge.suites.studies.conclusion import BANDWIDTH, Cells, Conclusion, ConclusionCheck
from weighbridge.suites.studies.published import ColumnName, Published, PublishedColumn, Rule
from weighbridge.suites.studies.study import (
    FactorComparison,
    ScaleName,
    Source,
    Study,
    StudyScale,
    TableShape,
    Variant,
)

__all__ = [
    "BANDWIDTH",
    "Cells",
    "ColumnName",
    "Conclusion",
    "ConclusionCheck",
    "FactorComparison",
    "Published",
    "PublishedColumn",
    "Rule",
    "ScaleName",
    "Source",
    "Study",
    "StudyScale",
    "TableShape",
    "Variant",
]
