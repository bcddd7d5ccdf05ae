"""Tables as plain words, for a terminal or a page: of rows, and of a comparison with its tests and
verdicts.

What is shown is decided here, how it is drawn by who shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.results.analysis.comparison import Comparison, Effect
from weighbridge.results.analysis.reasons import Reason, marks
from weighbridge.results.analysis.steps.spreads import shown
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.steps.use import limit_brief
from weighbridge.results.figures import UNKNOWN, show_p, show_ratio
from weighbridge.results.metric_figure import MetricFigure
from weighbridge.results.metrics import METRICS
from weighbridge.results.record.driver_traits import driver_label


class TableColumn(Record):
    """One column. `about` says what its figures are."""

    title: str
    unit: str = ""
    numeric: bool = False
    about: str = ""


class TableLine(Record):
    """One line: a cell for each column.

    Lines that are not ranked must not look like those that are.
    """

    cells: tuple[str, ...]
    values: tuple[float | str | None, ...]
    """What to sort by, a value a cell."""
    valid: bool
    ranked: bool
    provisional: bool = False
    """Whether it is ranked and something of it is in doubt."""
    notes: tuple[str, ...] = ()


class Table(Record):
    """A table with its title."""

    title: str
    columns: tuple[TableColumn, ...]
    lines: tuple[TableLine, ...]


_METRICS: Final = tuple(one for one in METRICS.values() if one.page)
_ABOUT: Final = (
    TableColumn(title="Workload", about="The name of the workload in the suite."),
    TableColumn(
        title="Operation", about="What was done to objects: read, write, delete, list or head."
    ),
    TableColumn(
        title="Size",
        numeric=True,
        about="Size of an object, or the expected mean where sizes are drawn from a distribution.",
    ),
    TableColumn(title="API", about="The interface that the requests used: Swift or S3."),
    TableColumn(
        title="Driver",
        about="What made the requests: Locust with the native engine or an SDK, or COSBench, or a "
        "bench of the store’s own.",
    ),
    TableColumn(
        title="Workers",
        numeric=True,
        about="Clients that each kept exactly one request outstanding (a closed loop).",
    ),
    TableColumn(title="Layout", about="What was weighed: the services and the hosts they ran on."),
    *(
        TableColumn(
            title=one.title,
            unit=one.unit,
            numeric=True,
            about=f"{one.about} {one.over_repeats}".rstrip(),
        )
        for one in _METRICS
    ),
    TableColumn(
        title="Saturated",
        about="The resource that may have been the limit: the most used of those used to 80 % or "
        "more of what they may be (memory: "
        "95 %), or whose CPU quota ran out in half of its periods; +1 where there is another. Of "
        "those below, the most used.",
    ),
    TableColumn(title="Repeats", numeric=True, about="How many repeats the figures are made of."),
    TableColumn(
        title="Steady",
        about="Whether throughput was the same all through the window: MSER-5 finds no warm-up "
        "left in it, and fifths of it and a "
        "fitted line stay within 20 % and 10 % of its mean or within the scatter. –: too short, "
        "or too much scatter, to tell.",
    ),
    TableColumn(
        title="Valid",
        about="Whether failures, CPU and NIC of the driver’s host and Little’s law were within "
        "bounds. Ranked is what is valid, "
        "not unsteady, and not above what it stands on.",
    ),
    TableColumn(
        title="In doubt",
        about="The letters of what is in doubt of these figures: under the headline each has its "
        "reason. What is provisional ranks "
        "nothing.",
    ),
)


def table(
    rows: Sequence[Row],
    found: Sequence[Reason] = (),
    *,
    title: str = "Throughput, latency and errors",
) -> Table:
    """The study's table, with the marks of these reasons. A column that would be the same empty
    word in all lines is kept: its absence would say less.
    """
    return Table(
        title=title, columns=_ABOUT, lines=tuple(_line(row, marks(row, found)) for row in rows)
    )


def _line(row: Row, doubts: str) -> TableLine:
    limit = limit_brief(row.resources)
    valid = "yes" if row.valid else "no"
    steady = None if row.steady is None else "yes" if row.steady else "no"
    return TableLine(
        cells=(
            row.workload,
            row.operation,
            UNKNOWN if row.object_size_bytes is None else show_bytes(row.object_size_bytes),
            row.api,
            driver_label(row.driver),
            str(row.workers),
            row.layout,
            *(shown(row, one.key) for one in _METRICS),
            limit or UNKNOWN,
            str(row.repeats),
            steady or UNKNOWN,
            valid,
            doubts,
        ),
        values=(
            row.workload,
            row.operation,
            row.object_size_bytes,
            row.api,
            driver_label(row.driver),
            row.workers,
            row.layout,
            *(_sorted_by(row.figure(one.key)) for one in _METRICS),
            limit,
            row.repeats,
            steady,
            valid,
            doubts,
        ),
        valid=row.valid,
        ranked=row.ranked,
        provisional=row.provisional,
        notes=row.notes,
    )


def _sorted_by(figure: MetricFigure) -> float | None:
    """An interval is sorted by its upper end, as COSBench prints it; the last bin, which has none,
    by its lower.
    """
    within = figure.within
    if within is None:
        return figure.value
    return within.low_ms if within.high_ms is None else within.high_ms


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
NUMBERS: Final = frozenset(
    {"Workers", "Ratio", "95 % interval", "p", "q", "Mann-Whitney p", "Cliff’s δ", "Could be shown"}
)
"""Columns that are sorted as numbers."""


class CertaintyLine(Record):
    """One cell of the map: what is shown, and what each column is sorted by.

    `weak`: nothing is claimed by it.
    """

    cells: tuple[str, ...]
    values: tuple[str, ...]
    weak: bool


def effect_lines(comparison: Comparison) -> tuple[CertaintyLine, ...]:
    """The lines of the table, in the order of the comparison."""
    return tuple(_effect_line(effect) for effect in comparison.effects)


def _effect_line(effect: Effect) -> CertaintyLine:
    ratio = effect.ratio
    cells: Sequence[tuple[str, float | str | None]] = (
        (effect.about, effect.about),
        (
            "all" if effect.workers is None else str(effect.workers),
            1e9 if effect.workers is None else effect.workers,
        ),
        (effect.subject, effect.subject),
        (METRICS[effect.metric].name, effect.metric),
        (
            UNKNOWN if ratio is None else show_ratio(ratio.value),
            None if ratio is None else ratio.value,
        ),
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
        values=tuple(
            "" if value is None else f"{value:.9g}" if isinstance(value, (int, float)) else value
            for _, value in cells
        ),
        weak=effect.verdict not in ("better", "worse"),
    )


def _doubts(effect: Effect) -> str:
    """What is in doubt, in a word or two each: the reasons stand once, at the head of the page."""
    return ", ".join(dict.fromkeys(doubt.what for doubt in effect.doubts))


def _interval(effect: Effect) -> str:
    if effect.ratio is None or effect.ratio.low is None or effect.ratio.high is None:
        return UNKNOWN
    return f"{show_ratio(effect.ratio.low)} to {show_ratio(effect.ratio.high)}"
