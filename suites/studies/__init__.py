"""Studies that others published, as plans that can be replayed: which layouts, which suite, and the
figures they printed.
"""

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
