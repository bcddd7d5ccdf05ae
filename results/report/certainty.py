"""The table of a comparison as a page shows it: a line for each cell of the map, with its tests and its verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weighbridge.common.record import Record
from weighbridge.results.analysis.comparison import Comparison, Effect
from weighbridge.results.figures import UNKNOWN, show_p, show_ratio
from weighbridge.results.metrics import METRICS

HEAD: Final = (
    "Requests",
    "Workers",
    "Layout",
    "Metric",
    "Ratio",
    "95 % interval",
    "p",
    "q",
    "Mann-Whitney p",
    "Cliff’s δ",
    "Could be shown",
    "Verdict",
    "In doubt",
)
NUMBERS: Final = frozenset({"Workers", "Ratio", "95 % interval", "p", "q", "Mann-Whitney p", "Cliff’s δ", "Could be shown"})
"""Columns that are sorted as numbers."""


class CertaintyLine(Record):
    """One cell of the map: what is shown, and what each column is sorted by. `weak`: nothing is claimed by it."""

    cells: tuple[str, ...]
    values: tuple[str, ...]
    weak: bool


def effect_lines(comparison: Comparison) -> tuple[CertaintyLine, ...]:
    """The lines of the table, in the order of the comparison."""
    return tuple(_line(effect) for effect in comparison.effects)


def _line(effect: Effect) -> CertaintyLine:
    ratio = effect.ratio
    cells: Sequence[tuple[str, float | str | None]] = (
        (effect.about, effect.about),
        ("all" if effect.workers is None else str(effect.workers), 1e9 if effect.workers is None else effect.workers),
        (effect.subject, effect.subject),
        (METRICS[effect.metric].name, effect.metric),
        (UNKNOWN if ratio is None else show_ratio(ratio.value), None if ratio is None else ratio.value),
        (_interval(effect), None if ratio is None else ratio.low),
        (show_p(effect.p), effect.p),
        (show_p(effect.q), effect.q),
        (show_p(effect.rank_p), effect.rank_p),
        (UNKNOWN if effect.delta is None else f"{effect.delta:+.2f}", effect.delta),
        (UNKNOWN if effect.smallest is None else show_ratio(effect.smallest), effect.smallest),
        (effect.verdict, effect.verdict),
        (_doubts(effect), _doubts(effect)),
    )
    return CertaintyLine(
        cells=tuple(shown for shown, _ in cells),
        values=tuple("" if value is None else f"{value:.9g}" if isinstance(value, (int, float)) else value for _, value in cells),
        weak=effect.verdict not in ("better", "worse"),
    )


def _doubts(effect: Effect) -> str:
    """What is in doubt, in a word or two each: the reasons stand once, at the head of the page."""
    return ", ".join(dict.fromkeys(doubt.what for doubt in effect.doubts))


def _interval(effect: Effect) -> str:
    if effect.ratio is None or effect.ratio.low is None or effect.ratio.high is None:
        return UNKNOWN
    return f"{show_ratio(effect.ratio.low)} to {show_ratio(effect.ratio.high)}"
