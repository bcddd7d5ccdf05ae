"""Published studies as plans that can be replayed: layouts, a suite, and the published figures."""

from weighbridge.suites.studies.conclusion import BANDWIDTH, Cells, Conclusion, ConclusionCheck
from weighbridge.suites.studies.parameter import Beside, HostNeed, HostRole, Lack, Parameter
from weighbridge.suites.studies.published import ColumnName, Published, PublishedColumn, Rule
from weighbridge.suites.studies.study import (
    WORKLOAD,
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
    "WORKLOAD",
    "Beside",
    "Cells",
    "ColumnName",
    "Conclusion",
    "ConclusionCheck",
    "FactorComparison",
    "HostNeed",
    "HostRole",
    "Lack",
    "Parameter",
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
