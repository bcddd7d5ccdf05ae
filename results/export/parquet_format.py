from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from weighbridge.results.export.data_table import DataTable
from weighbridge.results.export.database import create, insert, opened, quoted
from weighbridge.results.export.file import ExportFile


def parquet_file(table: DataTable) -> ExportFile:
    """A table as a Parquet file."""
    name = f"{table.name}.parquet"
    with TemporaryDirectory(prefix="weighbridge-") as folder, opened() as connection:
        path = Path(folder) / name
        create(connection, table.name, table.fields)
        insert(connection, table.name, table)
        connection.execute(
            f"COPY {quoted(table.name)} TO '{_literal(path)}' (FORMAT parquet, COMPRESSION zstd)"
        )
        return ExportFile(name=name, content=path.read_bytes())


def _literal(path: Path) -> str:
    return str(path).replace("'", "''")
