"""What each layout did, in absolute figures: one line for each kind of requests and layout.

It stands beside the ratios of the cards. Every line leads to its line in the table of results.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from weighbridge.common.record import Record
from weighbridge.results.analysis.comparison import Comparison, Effect
from weighbridge.results.analysis.kinds import Kind, kind_of, subjects
from weighbridge.results.analysis.reasons import Reason, marks
from weighbridge.results.analysis.steps.spreads import shown
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.figures import UNKNOWN, show_ratio
from weighbridge.results.metrics import METRICS, MetricKey

_METRICS: Final[tuple[MetricKey, ...]] = ("throughput", "bandwidth", "p90", "max", "first-byte")


class GlanceLine(Record):
    """One layout at the most workers of one kind of requests."""

    about: str
    workers: int
    layout: str
    cells: tuple[str, ...]
    ratio: str
    """Its throughput relative to the first layout's; in brackets what claims nothing."""
    limited_by: str
    marks: str
    anchor: str
    """Where its line is in the table of results."""
    ranked: bool
    provisional: bool


class Glance(Record):
    """The lines, the titles and units of their figures, and the layout of the ratios."""

    head: tuple[tuple[str, str], ...]
    lines: tuple[GlanceLine, ...]
    baseline: str
    anchors: dict[str, str]
    """Where the first line of each kind of requests is in the table of results."""


def anchor_of(number: int) -> str:
    """The name of a line of the table of results, from 0, for links to it."""
    return f"row-{number + 1}"


def glance(
    rows: Sequence[Row],
    comparison: Comparison | None,
    found: Sequence[Reason],
    controls: Sequence[str] = (),
) -> Glance:
    """The lines for a table of these rows, in its order, without the A/A `controls`."""
    names = subjects(rows)
    numbered = [(number, row) for number, row in enumerate(rows) if row.layout not in controls]
    baseline = "" if comparison is None or not comparison.subjects else comparison.baseline
    effects = _throughputs(comparison)
    lines: list[GlanceLine] = []
    anchors: dict[str, str] = {}
    for kind, group in groupby(numbered, key=lambda one: kind_of(one[1])):
        mine = list(group)
        anchors[names[kind]] = anchor_of(mine[0][0])
        most = max(row.workers for _, row in mine)
        lines += [
            _line(number, row, names[kind], baseline, effects, found)
            for number, row in mine
            if row.workers == most
        ]
    return Glance(
        head=tuple((METRICS[key].title, METRICS[key].unit) for key in _METRICS),
        lines=tuple(lines),
        baseline=baseline,
        anchors=anchors,
    )


def _throughputs(comparison: Comparison | None) -> dict[tuple[Kind, int, str], Effect]:
    if comparison is None:
        return {}
    return {
        (kind_of(one), one.workers, one.subject): one
        for one in comparison.effects
        if one.metric == "throughput" and one.workers is not None
    }


def _line(
    number: int,
    row: Row,
    about: str,
    baseline: str,
    effects: dict[tuple[Kind, int, str], Effect],
    found: Sequence[Reason],
) -> GlanceLine:
    effect = effects.get((kind_of(row), row.workers, row.layout))
    ratio = UNKNOWN
    if row.layout == baseline and row.ranked and row.figure("throughput").known:
        ratio = "1"
    elif effect is not None and effect.ratio is not None:
        ratio = show_ratio(effect.ratio.value)
        ratio = ratio if effect.verdict in ("better", "worse") else f"({ratio})"
    return GlanceLine(
        about=about,
        workers=row.workers,
        layout=row.layout,
        cells=tuple(shown(row, key, spread=False) for key in _METRICS),
        ratio=ratio,
        limited_by=row.limited_by or UNKNOWN,
        marks=marks(row, found),
        anchor=anchor_of(number),
        ranked=row.ranked,
        provisional=row.provisional,
    )
