from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from weighbridge.results.analysis.keeping import KeptRow, MemoryRow
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.export.data_table import DataColumn, DataTable, TableSchema, attribute


@dataclass(frozen=True)
class KeptRowLine:
    """A layout's objects of one workload, of one run."""

    data: RunData
    row: KeptRow


@dataclass(frozen=True)
class MemoryLine:
    """The daemons of one role of a layout, of one run."""

    data: RunData
    row: MemoryRow


KEPT: Final[TableSchema[KeptRowLine]] = TableSchema(
    "kept",
    "A line for each layout and workload: what its objects take on disks.",
    (
        attribute("run", "text", "Name of the run.", "data.manifest.run_id"),
        attribute("layout", "text", "The layout.", "row.layout"),
        attribute("workload", "text", "The workload.", "row.workload"),
        attribute("api", "text", "How the objects were written.", "row.api"),
        attribute("driver", "text", "What wrote them.", "row.driver"),
        attribute("objects", "integer", "How many.", "row.objects"),
        attribute("stored_bytes", "integer", "Their bytes.", "row.stored_bytes", "B"),
        attribute(
            "compressible",
            "number",
            "Share of their bytes that compress; unknown where the suite does not say it.",
            "row.compressible",
        ),
        attribute(
            "disk_bytes", "number", "What they take, all copies counted.", "row.disk_bytes", "B"
        ),
        attribute("times", "number", "Bytes on disks per byte stored.", "row.times"),
        attribute("least_times", "number", "The least of all repeats.", "row.least_times"),
        attribute("most_times", "number", "The most of all repeats.", "row.most_times"),
        attribute(
            "beside_bytes", "number", "Growth of databases and metadata.", "row.beside_bytes", "B"
        ),
        attribute("repeats", "integer", "How often it was read.", "row.repeats"),
        attribute("how", "text", "Where it was read.", "row.how"),
    ),
)

MEMORY: Final[TableSchema[MemoryLine]] = TableSchema(
    "memory",
    "A line for each layout and kind of daemon: the memory that was resident after steps.",
    (
        attribute("run", "text", "Name of the run.", "data.manifest.run_id"),
        attribute("layout", "text", "The layout.", "row.layout"),
        attribute("role", "text", "The kind of daemon, or all of them.", "row.role"),
        DataColumn("hosts", "texts", "Where they run.", lambda one: one.row.hosts),
        attribute("daemons", "integer", "How many.", "row.daemons"),
        attribute("least_bytes", "integer", "The least of one.", "row.least_bytes", "B"),
        attribute("most_bytes", "integer", "The most of one.", "row.most_bytes", "B"),
        attribute("sum_bytes", "integer", "The most of all together.", "row.sum_bytes", "B"),
        attribute("peak_bytes", "integer", "The most of one at any time.", "row.peak_bytes", "B"),
    ),
)


def kept_table(runs: Sequence[RunData]) -> DataTable:
    """What objects take on disks."""
    return KEPT.fill(KeptRowLine(data, row) for data in runs for row in data.costs.kept)


def memory_table(runs: Sequence[RunData]) -> DataTable:
    """The memory of daemons."""
    return MEMORY.fill(MemoryLine(data, row) for data in runs for row in data.costs.memory)
