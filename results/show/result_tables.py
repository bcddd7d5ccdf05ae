"""Tables as text: the results of a run, and the tests of a comparison with their verdicts.

They decide what is shown; a template decides how it looks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.results.figures.metric import MetricFigure
from weighbridge.results.figures.metrics import METRICS
from weighbridge.results.figures.power_mark import power_brief
from weighbridge.results.figures.summary import Row, shown
from weighbridge.results.figures.use import limit_brief
from weighbridge.results.judge.comparison import Comparison, Effect, kind_of, subjects
from weighbridge.results.judge.reasons import Reason, marks
from weighbridge.results.numbers import UNKNOWN, show_p, show_ratio
from weighbridge.results.run.step import driver_label

SortKey = float | str | None


class TableColumn(Record):
    """One column; `about` explains its values."""

    title: str
    unit: str = ""
    numeric: bool = False
    about: str = ""


class TableLine(Record):
    """A cell and a sort value for each column; what is not ranked must not look ranked."""

    layout: str
    about: str
    cells: tuple[str, ...]
    values: tuple[SortKey, ...]
    ranked: bool
    provisional: bool
    """Whether it is ranked although some of it is in doubt."""
    lost: bool = False
    """Whether its layout lost acknowledged writes in power cuts."""


class ResultsTable(Record):
    """The table of results of a run."""

    columns: tuple[TableColumn, ...]
    lines: tuple[TableLine, ...]


_METRICS: Final = tuple(one for one in METRICS.values() if one.page)
_COLUMNS: Final = (
    TableColumn(title="Workload", about="The name of the workload in the suite."),
    TableColumn(title="Operation", about="What was done to objects, as the suite names it."),
    TableColumn(
        title="Sent",
        about="What a request is over this API: its method, and what makes it special.",
    ),
    TableColumn(
        title="Size",
        numeric=True,
        about="Size of an object, or the expected mean where sizes are drawn from a distribution.",
    ),
    TableColumn(title="API", about="The interface that the requests used: Swift or S3."),
    TableColumn(
        title="Driver",
        about="The load generator: Locust with the native engine or an SDK, COSBench, or the "
        "store’s own benchmark.",
    ),
    TableColumn(
        title="Workers",
        numeric=True,
        about="Clients that each kept exactly one request outstanding (a closed loop).",
    ),
    TableColumn(title="Layout", about="What was measured: the services and the hosts they ran on."),
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
        about="The probable bottleneck: the most used resource among those at 80 % or more of "
        "their limit (memory: 95 %), or whose CPU quota ran out in at least half of its periods; "
        "+1 means that there is another one. If none reached that, the most used resource.",
    ),
    TableColumn(title="Repeats", numeric=True, about="Number of repeats behind the figures."),
    TableColumn(
        title="Steady",
        about="Whether throughput was stable throughout the window: MSER-5 finds no warm-up left "
        "in it, and fifths of it and a fitted line stay within 20 % and 10 % of its mean or "
        "within the scatter. –: the window was too short, or the scatter too large, to judge.",
    ),
    TableColumn(
        title="Valid",
        about="Whether failures, the driver host’s CPU and NIC, and Little’s law were within "
        "bounds. A line is ranked when it is valid, not unsteady, and not above the ceiling that "
        "the layer below it sets.",
    ),
    TableColumn(
        title="In doubt",
        about="Letters of the doubts that apply to these figures; they are explained under the "
        "headline. Provisional figures rank nothing.",
    ),
)


POWER_CUTS: Final = TableColumn(
    title="Power cuts",
    about="What power cuts did to objects of this layout, or what it has on disk when it "
    "acknowledges a write, in every line of writes. It changes no figure and no rank.",
)


def results_table(rows: Sequence[Row], found: Sequence[Reason] = ()) -> ResultsTable:
    """The table with these reasons' marks. Empty columns stay, but that of power cuts."""
    names = subjects(rows)
    lines = tuple(_line(row, names[kind_of(row)], marks(row, found)) for row in rows)
    if all(row.power is None for row in rows):
        return ResultsTable(columns=_COLUMNS, lines=lines)
    place = [one.title for one in _COLUMNS].index("Layout") + 1
    return ResultsTable(
        columns=(*_COLUMNS[:place], POWER_CUTS, *_COLUMNS[place:]),
        lines=tuple(_with_power(line, row, place) for line, row in zip(lines, rows, strict=True)),
    )


def _with_power(line: TableLine, row: Row, place: int) -> TableLine:
    words = "" if row.power is None else row.power.words
    return line.model_copy(
        update={
            "cells": (*line.cells[:place], words, *line.cells[place:]),
            "values": (*line.values[:place], words, *line.values[place:]),
            "lost": row.power is not None and row.power.endangered,
        }
    )


def _line(row: Row, about: str, doubts: str) -> TableLine:
    size, limit = row.object_size_bytes, limit_brief(row.resources)
    driver = driver_label(row.driver)
    steady = None if row.steady is None else "yes" if row.steady else "no"
    valid = "yes" if row.valid else "no"
    pairs: tuple[tuple[str, SortKey], ...] = (
        (row.workload, row.workload),
        (row.operation, row.operation),
        (row.sent or UNKNOWN, row.sent),
        (UNKNOWN if size is None else show_bytes(size), size),
        (row.api, row.api),
        (driver, driver),
        (str(row.workers), row.workers),
        (row.layout, row.layout),
        *((shown(row, one.key), _sorted_by(row.figure(one.key))) for one in _METRICS),
        (limit or UNKNOWN, limit),
        (str(row.repeats), row.repeats),
        (steady or UNKNOWN, steady),
        (valid, valid),
        (doubts, doubts),
    )
    cells, values = zip(*pairs, strict=True)
    return TableLine(
        layout=row.layout,
        about=about,
        cells=cells,
        values=values,
        ranked=row.ranked,
        provisional=row.provisional,
    )


def _sorted_by(figure: MetricFigure) -> float | None:
    """A bin is sorted by its upper end, the last one by its lower end."""
    within = figure.within
    if within is None:
        return figure.value
    return within.low_ms if within.high_ms is None else within.high_ms


EFFECT_HEAD: Final = (
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
    "Detectable",
    "Verdict",
    "In doubt",
)
EFFECT_NUMBERS: Final = frozenset(
    {"Workers", "Ratio", "95 % interval", "p", "q", "Mann-Whitney p", "Cliff’s δ", "Detectable"}
)


class EffectLine(Record):
    """One compared cell: what is shown and what sorts it. `weak`: it claims nothing."""

    cells: tuple[str, ...]
    values: tuple[str, ...]
    weak: bool


def effect_texts(comparison: Comparison) -> tuple[EffectLine, ...]:
    """The lines of the table of tests, in the order of the comparison."""
    return tuple(_effect_line(effect) for effect in comparison.effects)


def _effect_line(effect: Effect) -> EffectLine:
    ratio, workers = effect.ratio, effect.workers
    marked = [power_brief(effect.power)] if effect.power else []
    doubts = ", ".join(dict.fromkeys((*(doubt.what for doubt in effect.doubts), *marked)))
    pairs: tuple[tuple[str, SortKey], ...] = (
        (effect.about, effect.about),
        ("all", 1e9) if workers is None else (str(workers), workers),
        (effect.subject, effect.subject),
        (METRICS[effect.metric].name, effect.metric),
        (UNKNOWN, None) if ratio is None else (show_ratio(ratio.value), ratio.value),
        (_interval(effect), None if ratio is None else ratio.low),
        (show_p(effect.p), effect.p),
        (show_p(effect.q), effect.q),
        (show_p(effect.rank_p), effect.rank_p),
        (UNKNOWN if effect.delta is None else f"{effect.delta:+.2f}", effect.delta),
        (UNKNOWN if effect.smallest is None else show_ratio(effect.smallest), effect.smallest),
        (effect.verdict, effect.verdict),
        (doubts, doubts),
    )
    return EffectLine(
        cells=tuple(cell for cell, _ in pairs),
        values=tuple(
            "" if value is None else value if isinstance(value, str) else f"{value:.9g}"
            for _, value in pairs
        ),
        weak=effect.verdict not in ("better", "worse"),
    )


def _interval(effect: Effect) -> str:
    if effect.ratio is None or effect.ratio.low is None or effect.ratio.high is None:
        return UNKNOWN
    return f"{show_ratio(effect.ratio.low)} to {show_ratio(effect.ratio.high)}"
