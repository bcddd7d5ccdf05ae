from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from weighbridge.results.analysis.outages import OutageKind, OutageRow, Spread
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.doubt import doubt_text
from weighbridge.results.export.data_table import DataColumn, DataTable, TableSchema, attribute
from weighbridge.results.metrics import METRICS


@dataclass(frozen=True)
class OutageLine:
    """A layout's outages of one kind of requests, of one run."""

    data: RunData
    kind: OutageKind
    one: OutageRow


_Read = Callable[[OutageLine], Spread | None]


def _spread_columns(
    name: str, about: str, read: _Read, unit: str
) -> tuple[DataColumn[OutageLine], ...]:
    def part(which: str) -> Callable[[OutageLine], float | None]:
        return lambda line: None if (found := read(line)) is None else getattr(found, which)

    return (
        DataColumn(name, "number", f"{about} Median over the repeats.", part("middle"), unit),
        DataColumn(f"least_{name}", "number", "The least of all repeats.", part("least"), unit),
        DataColumn(f"most_{name}", "number", "The most of all repeats.", part("most"), unit),
    )


def _of_metric(key: str) -> tuple[DataColumn[OutageLine], ...]:
    metric = METRICS[key]
    return _spread_columns(
        metric.column, metric.about, lambda line: line.one.spread(key), metric.unit
    )


OUTAGES: Final[TableSchema[OutageLine]] = TableSchema(
    "outages",
    "A line for each layout, kind of requests and fault: what it did while something was broken.",
    (
        attribute("run", "text", "Name of the run.", "data.manifest.run_id"),
        attribute("layout", "text", "The layout.", "one.layout"),
        attribute("workload", "text", "The workload.", "one.row.workload"),
        attribute("operation", "text", "The operation on objects.", "one.row.operation"),
        attribute("workers", "integer", "Workers.", "one.row.workers"),
        attribute("about", "text", "Requests and fault in words.", "kind.about"),
        DataColumn("what", "texts", "What died.", lambda line: line.one.what),
        attribute("fault_s", "number", "When, in the window.", "one.fault_s", "s"),
        attribute("back_s", "number", "When it came back; unknown: not in it.", "one.back_s", "s"),
        attribute("returned_s", "number", "How long starting it took.", "one.returned_s", "s"),
        *(
            column
            for metric in METRICS.values()
            if metric.of_outage
            for column in _of_metric(metric.key)
        ),
        *_spread_columns(
            "noticed_s",
            "Until the store or its front said that a part is missing.",
            lambda line: line.one.noticed_s,
            "s",
        ),
        *_spread_columns(
            "clean_s",
            "From the return until the store had all parts and copies.",
            lambda line: line.one.clean_s,
            "s",
        ),
        attribute(
            "sent_before_mb_s",
            "number",
            "Sent by hosts that keep data, before the fault.",
            "one.traffic.before_mb_s",
            "MB/s",
        ),
        attribute("sent_away_mb_s", "number", "Until the return.", "one.traffic.away_mb_s", "MB/s"),
        attribute("sent_back_mb_s", "number", "After the return.", "one.traffic.back_mb_s", "MB/s"),
        attribute("errors", "text", "By class, over all repeats.", "one.error_words"),
        DataColumn(
            "doubts",
            "texts",
            "Doubts, each with its grade, grave (not comparable) or mild (provisional).",
            lambda line: tuple(map(doubt_text, line.one.doubts)),
        ),
        attribute("repeats", "integer", "How often it was seen.", "one.row.repeats"),
    ),
)


def outages_table(runs: Sequence[RunData]) -> DataTable:
    """What died, and what became of it."""
    return OUTAGES.fill(
        OutageLine(data, kind, row)
        for data in runs
        for kind in data.outages.kinds
        for row in kind.rows
    )
