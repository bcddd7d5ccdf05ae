"""CSV (RFC 4180, UTF-8, line feeds): unrounded numbers, empty cells for what is unknown.

Booleans are `true` or `false`, times ISO 8601 in UTC, lists of texts JSON, since a text may contain
any separator. `derived/summary.csv` and `derived/layers.csv`, which are for people, have the same
columns with figures to three decimals (`rounded_csv`). A text that a spreadsheet would take for a
formula is preceded by an apostrophe (`common.csv_text`, which can remove it).
"""

from __future__ import annotations

import csv
import io
import json
from datetime import datetime

from weighbridge.common import csv_text
from weighbridge.results.export.data_table import Cell, DataTable, show_time
from weighbridge.results.export.file import ExportFile


def csv_file(table: DataTable) -> ExportFile:
    """A table as a CSV file with a head."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([field.name for field in table.fields])
    writer.writerows([csv_cell(cell) for cell in line] for line in table.lines)
    return ExportFile(name=f"{table.name}.csv", content=out.getvalue().encode())


def rounded_csv(table: DataTable) -> str:
    """A table for people: three decimals, `yes` or `no`, lists joined by `; `."""
    return csv_text.csv_lines([field.name for field in table.fields], table.lines)


def csv_cell(cell: Cell) -> str:
    """A cell as text."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, tuple):
        return json.dumps(cell, ensure_ascii=False) if cell else ""
    if isinstance(cell, datetime):
        return show_time(cell)
    if isinstance(cell, str):
        return csv_text.formula_safe(cell)
    return repr(cell) if isinstance(cell, float) else str(cell)
