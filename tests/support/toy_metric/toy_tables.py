"""A feature of another package with a table and a section of its own, and an export format."""

from weighbridge.results.show.exports import ExportFile, Format, Produced
from weighbridge.results.show.feature import Feature
from weighbridge.results.show.section import Part, Section, grid_of
from weighbridge.results.show.table import Table, columns, line
from weighbridge.results.show.tables import RUN

TAILS = Table(
    "tails",
    "A line for each row: how far its tail is from its median.",
    columns(f"""
{RUN}
layout text | The layout.
workers integer | Workers. | Workers
times number | p95 divided by p50. | Tail
"""),
    lambda data: (
        line(row, times=(row.value("p95") or 0) / (row.value("p50") or 1)) for row in data.rows
    ),
)
FEATURE = Feature(
    tables=(TAILS,),
    sections=lambda data: (
        Section(
            "tails", "How long tails are", (Part(grids=(grid_of("", TAILS.of_runs([data])),)),)
        ),
    ),
)

LINES = Format(
    "a line a row with its p95",
    lambda data, _tables: Produced(
        files=(
            ExportFile(
                name="p95.txt",
                content="".join(
                    f"{row.layout} {row.workers} {row.value('p95')}\n" for row in data.rows
                ).encode(),
            ),
        )
    ),
)
