"""Tunings: the settings of a layout that are tried, the objectives, and the spaces that ship."""

from weighbridge.suites.tuning.tuning import (
    Constraints,
    Level,
    Objective,
    Parameter,
    Range,
    SearchOptions,
    Setting,
    Strategy,
    Trials,
    Tuning,
    show_setting,
)

__all__ = [
    "Constraints",
    "Level",
    "Objective",
    "Parameter",
    "Range",
    "SearchOptions",
    "Setting",
    "Strategy",
    "Trials",
    "Tuning",
    "show_setting",
]
