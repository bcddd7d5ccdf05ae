"""Published studies as plans that can be replayed: layouts, a suite, and the published figures."""

from weighbridge.suites.studies.conclusion import Cells, Compared, Conclusion, ConclusionCheck
from weighbridge.suites.studies.published import Measured, Published, PublishedColumn, Rule
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
    "Cells",
    "Compared",
    "Conclusion",
    "ConclusionCheck",
    "FactorComparison",
    "Measured",
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
