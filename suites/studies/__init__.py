"""Published studies as plans that can be replayed: layouts, a suite, and the published figures."""

from weighbridge.suites.studies.study import (
    BANDWIDTH,
    WORKLOAD,
    Cells,
    Conclusion,
    ConclusionCheck,
    FactorComparison,
    HostNeed,
    HostRole,
    Published,
    PublishedColumn,
    ScaleName,
    Study,
    StudyScale,
    TableShape,
    Variant,
)

__all__ = [
    "BANDWIDTH",
    "WORKLOAD",
    "Cells",
    "Conclusion",
    "ConclusionCheck",
    "FactorComparison",
    "HostNeed",
    "HostRole",
    "Published",
    "PublishedColumn",
    "ScaleName",
    "Study",
    "StudyScale",
    "TableShape",
    "Variant",
]
