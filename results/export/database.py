"""An in-memory DuckDB database: typed tables, and queries that can only read them.

`lock` gives SQL no access to files, network, extensions or Python variables, and cannot be undone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from weighbridge.results.export.data_table import DataTable, Field, Kind

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SQL_TYPES: Final[Mapping[Kind, str]] = MappingProxyType(
    {
        "text": "VARCHAR",
        "integer": "BIGINT",
        "number": "DOUBLE",
        "boolean": "BOOLEAN",
        "time": "TIMESTAMP",
        "texts": "VARCHAR[]",
    }
)
_LOCKS: Final = (
    "SET enable_external_access = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET allow_community_extensions = false",
    "SET python_enable_replacements = false",
    "SET lock_configuration = true",
)


@contextmanager
def opened() -> Iterator[DuckDBPyConnection]:
    """A database in memory, closed at the end."""
    import duckdb  # noqa: PLC0415 - heavy, and wanted by few

    connection = duckdb.connect(":memory:")
    try:
        yield connection
    finally:
        connection.close()


def lock(connection: DuckDBPyConnection) -> None:
    """Restrict SQL to reading what is in the database; this cannot be undone."""
    for setting in _LOCKS:
        connection.execute(setting)


def create(connection: DuckDBPyConnection, name: str, fields: Sequence[Field]) -> None:
    """Create an empty table."""
    columns = ", ".join(f"{quoted(field.name)} {SQL_TYPES[field.kind]}" for field in fields)
    connection.execute(f"CREATE TABLE {quoted(name)} ({columns})")


def insert(connection: DuckDBPyConnection, name: str, table: DataTable) -> None:
    """Insert all lines of a table into one with the same columns, as inert parameters."""
    if not table.lines:
        return
    # One list per column: inserting line by line takes a hundred times as long.
    values = ", ".join(
        f"unnest(${number}::{SQL_TYPES[field.kind]}[])"
        for number, field in enumerate(table.fields, start=1)
    )
    cells = [
        [list(cell) if isinstance(cell, tuple) else cell for cell in column]
        for column in zip(*table.lines, strict=True)
    ]
    connection.execute(f"INSERT INTO {quoted(name)} SELECT {values}", cells)


def quoted(name: str) -> str:
    """A name quoted for SQL, whatever it contains."""
    return '"' + name.replace('"', '""') + '"'
