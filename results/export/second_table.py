from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.analysis.steps.validity import class_words
from weighbridge.results.export.data_table import DataColumn, DataTable, TableSchema, attribute
from weighbridge.results.export.step_columns import KEY, OfStep
from weighbridge.results.record.measurement import Second


@dataclass(frozen=True)
class SecondLine(OfStep):
    """One second of one operation of a step."""

    second: Second


SECONDS: Final[TableSchema[SecondLine]] = TableSchema(
    "seconds",
    "A line for each second of the window, for each operation of each step that has a series.",
    (
        *KEY,
        attribute("operation", "text", "The operation on objects.", "second.operation"),
        attribute(
            "second", "integer", "Seconds since the start of the window.", "second.second", "s"
        ),
        attribute("operations", "integer", "Operations that succeeded.", "second.count"),
        attribute("bytes", "integer", "Bytes of their complete bodies.", "second.bytes", "B"),
        attribute("errors", "integer", "Operations that failed.", "second.errors"),
        DataColumn(
            "failures",
            "text",
            "The same by class; empty also where the driver does not know.",
            lambda one: class_words(one.second.failures),
        ),
        attribute(
            "in_flight",
            "integer",
            "Requests outstanding when the second began; unknown of some drivers.",
            "second.in_flight",
        ),
        DataColumn(
            "mean_ms",
            "number",
            "Mean latency; unknown where nothing succeeded.",
            lambda one: one.second.sum_us / one.second.count / 1000 if one.second.count else None,
            "ms",
        ),
        DataColumn(
            "max_ms",
            "number",
            "Highest latency; unknown where nothing succeeded.",
            lambda one: one.second.max_us / 1000 if one.second.count else None,
            "ms",
        ),
    ),
)


def seconds_table(runs: Sequence[RunData]) -> DataTable:
    """The series of these runs."""
    return SECONDS.fill(
        SecondLine(data, key, second)
        for data in runs
        for key, step in data.steps.items()
        if step.measurement is not None
        for second in step.measurement.seconds
    )
