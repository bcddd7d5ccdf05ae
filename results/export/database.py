"""DuckDB in memory: tables as data put into it with their types, and queries that can do nothing
but read them.

`open_tables` gives SQL no file, no network, no extension and no variable of Python's to reach for,
and locks that.
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
        "whole": "BIGINT",
        "number": "DOUBLE",
        "truth": "BOOLEAN",
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
    """From now on SQL reaches nothing but what is in the database, and cannot change that."""
    for setting in _LOCKS:
        connection.execute(setting)


def create(connection: DuckDBPyConnection, name: str, fields: Sequence[Field]) -> None:
    """An empty table."""
    columns = ", ".join(f"{quoted(field.name)} {SQL_TYPES[field.kind]}" for field in fields)
    connection.execute(f"CREATE TABLE {quoted(name)} ({columns})")


def insert(connection: DuckDBPyConnection, name: str, table: DataTable) -> None:
    """Put all lines of a table into one that has its columns.

    Values go in as parameters: whatever stands in them is inert.
    """
    if not table.lines:
        return
    # One list a column: inserting line by line takes a hundred times as long.
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
    """A name as SQL has it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'
