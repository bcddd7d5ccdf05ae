"""Tunings: the settings of a layout that are tried, the objectives, and the spaces that ship."""

from weighbridge.suites.tuning.objective import Objective
from weighbridge.suites.tuning.parameter import Level, Parameter, Range, Setting, show_setting
from weighbridge.suites.tuning.tuning import Constraints, SearchOptions, Strategy, Trials, Tuning

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
