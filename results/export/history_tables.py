from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from weighbridge.results.analysis.history.history import History, RunChange
from weighbridge.results.analysis.history.run_series import HistoryPoint, RunSeries
from weighbridge.results.doubt import doubt_text
from weighbridge.results.export.data_table import (
    DataColumn,
    DataTable,
    Kind,
    TableSchema,
    attribute,
)
from weighbridge.results.metrics import METRICS


@dataclass(frozen=True)
class FigureLine:
    """One figure of one run, and its series."""

    series: RunSeries
    point: HistoryPoint


def _series(name: str, kind: Kind, about: str) -> DataColumn[FigureLine]:
    return attribute(name, kind, about, f"series.{name}")


def _figure(name: str, about: str) -> DataColumn[FigureLine]:
    return attribute(name, "number", about, f"point.figure.{name}")


def _bin_end(name: str, about: str) -> DataColumn[FigureLine]:
    return DataColumn(
        f"bin_{name}", "number", about, lambda one: getattr(one.point.figure.within, name, None)
    )


_PLACE: Final = (
    ("layout", "text", "The layout."),
    ("release", "text", "Its release; empty if it has none."),
    ("suite", "text", "The suite."),
    ("workload", "text", "The workload."),
    ("operation", "text", "The operation on objects."),
    ("api", "text", "The API."),
    ("driver", "text", "What made the load."),
    ("workers", "integer", "Worker count."),
    ("metric", "text", f"The metric: {', '.join(METRICS)}."),
    ("group", "integer", "Runs of one number are comparable, within layout, suite and workload."),
)
FIGURES: Final[TableSchema[FigureLine]] = TableSchema(
    "figures",
    "A line for each compared metric of each cell of each run, in order of time.",
    (
        *(_series(*one) for one in _PLACE),
        attribute("run", "text", "Name of the run.", "point.run"),
        attribute("begun_at", "time", "When the run began, UTC.", "point.begun"),
        _figure("value", "The figure, in the unit of its metric; unknown for one in a bin."),
        _figure("low", "Lower end of its 95 % interval over the repeats."),
        _figure("high", "Upper end of that."),
        _bin_end("low_ms", "Lower edge of its bin, where the driver counts in bins."),
        _bin_end("high_ms", "Upper edge of that."),
        DataColumn(
            "unit", "text", "Unit of the metric.", lambda one: METRICS[one.series.metric].unit
        ),
        attribute(
            "standing",
            "text",
            "sure, provisional (a mild doubt) or not comparable (a grave one, or not valid).",
            "point.standing",
        ),
        DataColumn(
            "doubts",
            "texts",
            "Doubts about it, each with its grade.",
            lambda one: tuple(doubt_text(doubt) for doubt in one.point.doubts),
        ),
        attribute("why", "text", "Why it is not comparable.", "point.why"),
        attribute(
            "outlier",
            "text",
            "That it is far outside those of its neighbours, and no change; empty: it is not.",
            "point.outlier",
        ),
    ),
)
CHANGES: Final[TableSchema[RunChange]] = TableSchema(
    "changes",
    "A line for each change of a metric of a cell, in order of time.",
    (
        *(attribute(*one) for one in _PLACE),
        attribute("run", "text", "The first run after the change."),
        attribute("begun_at", "time", "When that run began, UTC.", "begun"),
        attribute("previous", "text", "The last run of the figures before it."),
        attribute("before", "number", "Mean of the figures before it."),
        attribute("after", "number", "Mean of the figures after it."),
        attribute("ratio", "number", "After relative to before."),
        attribute("runs_before", "integer", "Figures before it, since the last change."),
        attribute("runs_after", "integer", "Figures after it, until the next change."),
        attribute("passing", "integer", "Figures between, at levels that did not last."),
        attribute("p", "number", "P-value of Student's t-test, not corrected."),
        attribute("direction", "text", "better or worse."),
        DataColumn(
            "doubts",
            "texts",
            "Doubts about its figures, unless those without make the change: then provisional.",
            lambda one: tuple(doubt_text(doubt) for doubt in one.doubts),
        ),
        attribute("text", "text", "The change in a sentence."),
    ),
)


def history_tables(history: History) -> tuple[DataTable, DataTable]:
    """Figures and changes."""
    changes = (change for one in history.changes for change in one.changes)
    return FIGURES.fill(_lines(history)), CHANGES.fill(changes)


def _lines(history: History) -> Iterator[FigureLine]:
    return (FigureLine(series, point) for series in history.series for point in series.points)
