from __future__ import annotations

from tempfile import TemporaryFile

from weighbridge.results.export.data_table import DataTable
from weighbridge.results.export.database import create, insert, opened, quoted
from weighbridge.results.export.file import ExportFile


def parquet_file(table: DataTable) -> ExportFile:
    """A table as a Parquet file."""
    # A file without a name: one that is killed meanwhile leaves nothing behind.
    with TemporaryFile() as file, opened() as connection:
        create(connection, table.name, table.fields)
        insert(connection, table.name, table)
        connection.execute(
            f"COPY {quoted(table.name)} TO '/proc/self/fd/{file.fileno()}' "
            "(FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false)"
        )
        return ExportFile(name=f"{table.name}.parquet", content=file.read())
