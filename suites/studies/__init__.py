"""Studies that others published, as plans that can be replayed: which layouts, which suite, and the figures they printed."""

from weighbridge.suites.studies.conclusion import Cells, Check, Compared, Conclusion
from weighbridge.suites.studies.published import Measured, Published, Rule, Told
from weighbridge.suites.studies.study import Comparison, Scale, ScaleName, Shape, Source, Study, Variant

__all__ = [
    "Cells",
    "Check",
    "Compared",
    "Comparison",
    "Conclusion",
    "Measured",
    "Published",
    "Rule",
    "Scale",
    "ScaleName",
    "Shape",
    "Source",
    "Study",
    "Told",
    "Variant",
]
