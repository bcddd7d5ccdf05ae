"""The study's table as `derived/summary.csv`, for people: a line a row, figures to three decimals."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Final

from weighbridge.common.csv_text import csv_cell
from weighbridge.results.analysis.steps.spreads import interval_ends, spread_column, spread_end
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.doubt import doubt_text
from weighbridge.results.metrics import METRICS

COLUMNS: Final = (
    "layout",
    "api",
    "driver",
    "workload",
    "operation",
    "object_size_bytes",
    "workers",
    "repeats",
    "throughput_ops_s",
    "bandwidth_mb_s",
    "p50_ms",
    "p90_ms",
    "p99_ms",
    "max_ms",
    "first_byte_ms",
    "mean_ms",
    "p50_low_ms",
    "p50_high_ms",
    "p90_low_ms",
    "p90_high_ms",
    "p99_low_ms",
    "p99_high_ms",
    "max_low_ms",
    "max_high_ms",
    "samples",
    "errors",
    "gateway_cpu_s_per_1000_ops",
    "storage_cpu_s_per_1000_ops",
    "saturated",
    "steady",
    "valid",
    "ranked",
    "provisional",
    "lower_bounds",
    *(spread_column(metric, high=high) for metric in METRICS.values() for high in (False, True)),
    "doubts",
    "notes",
)
"""Columns of `derived/summary.csv`, in order. Those with low and high are the ends of intervals; the last bin has no high one.
Those `over_repeats` are the ends of the 95 % interval of what the repeats say of a metric. `doubts` says what is in doubt, and how
gravely; `lower_bounds` names the latencies of which the figure is a lower bound, also of rows that are not ranked.
"""


def summary_csv(rows: Iterable[Row], columns: Sequence[str] = COLUMNS) -> str:
    """The table as CSV with these columns: three decimals, empty where unknown, `yes` or `no`, lists joined by `; `."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        told = {"doubts": tuple(doubt_text(one) for one in row.doubts), "lower_bounds": row.at_least}
        cells = interval_ends(row) | spread_ends(row) | told
        writer.writerow([csv_cell(cells[column] if column in cells else getattr(row, column)) for column in columns])
    return out.getvalue()


def spread_ends(row: Row) -> dict[str, float | None]:
    """The ends of the 95 % intervals of a row's metrics over its repeats, by column; None where they are not known."""
    return {
        spread_column(metric, high=high): spread_end(row, metric.key, high=high)
        for metric in METRICS.values()
        for high in (False, True)
    }
