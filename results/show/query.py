"""SQL queries over many runs: views of what their folders hold.

A view is filled when a query names it. Unknown values are NULL. SQL can read no files and change
nothing (results.show.table).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import UsageError
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.show.table import SQL_TYPES, create, database, insert, lock
from weighbridge.results.show.tables import tables

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_READING: Final = ("SELECT", "EXPLAIN")
"""Statements that only read; SELECT includes FROM, WITH, VALUES, DESCRIBE, SUMMARIZE and SHOW."""
_HIDDEN: Final = re.compile(r"\bquery(_table)?\b", re.IGNORECASE)
"""DuckDB's functions that take a table's name as text: for them all views are filled."""
_NO_TABLE: Final = re.compile(r"Table with name (\S+) does not exist")


@dataclass(frozen=True)
class QueryResult:
    """A query's result: the names of its columns, and lines of Python values; None is NULL."""

    columns: tuple[str, ...]
    lines: tuple[tuple[object, ...], ...]


def ask(sql: str, runs: Sequence[RunData]) -> QueryResult:
    """The result of a query. Raises UsageError with DuckDB's message, and as reading runs does."""
    import duckdb  # noqa: PLC0415 - heavy, and wanted by few

    with database() as connection:
        for view in tables().values():
            create(connection, view)
        try:
            _refuse_writes(connection, sql)
            for name, view in tables().items():
                if re.search(rf"\b{name}\b", sql, re.IGNORECASE) or _HIDDEN.search(sql):
                    insert(connection, view.of_runs(runs))
            lock(connection)
            result = connection.execute(sql)
            columns = tuple(str(column[0]) for column in result.description or ())
            return QueryResult(
                columns=columns, lines=tuple(tuple(line) for line in result.fetchall())
            )
        except duckdb.Error as error:
            raise _query_error(sql, error) from None


def schema_words() -> str:
    """Every view with its columns, their types, units and meanings."""
    parts = []
    for name, view in tables().items():
        wide = max(len(one.name) for one in view.columns)
        parts += [f"{name}: {view.about}"]
        for one in view.columns:
            unit = f" [{one.unit}]" if one.unit else ""
            parts.append(f"  {one.name:{wide}}  {SQL_TYPES[one.kind]:9}  {one.about}{unit}")
        parts.append("")
    return "\n".join(parts)


def _refuse_writes(connection: DuckDBPyConnection, sql: str) -> None:
    """Raises UsageError unless it is one statement that only reads."""
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise UsageError(
            f"expected one query, not {len(statements)}",
            advice="Remove what follows the first semicolon.",
        )
    kind = statements[0].type.name
    if kind not in _READING:
        raise UsageError(
            f"{kind} is not a query: runs can only be read",
            advice="Begin with SELECT, FROM, WITH, DESCRIBE or EXPLAIN.",
        )


def _query_error(sql: str, error: Exception) -> UsageError:
    """DuckDB's message with guesses at the views' names instead of its own."""
    views = tables()
    words = "\n".join(
        line
        for line in str(error).splitlines()
        if line.strip() and not line.startswith("Did you mean")
    )
    missing = _NO_TABLE.search(words)
    guess = (
        did_you_mean(missing[1], list(views))
        if missing and not missing[1].startswith(("'", "/"))
        else ""
    )
    named = [name for name in views if re.search(rf"\b{name}\b", sql, re.IGNORECASE)]
    columns = [
        f"{name} has {', '.join(one.name for one in views[name].columns)}." for name in named
    ]
    advice = "\n".join(
        (f"The views are {', '.join(views)}; `weighbridge sql --schema` describes them.", *columns)
    )
    first, _, rest = words.partition("\n")
    return UsageError("\n".join(part for part in (f"{first}{guess}", rest) if part), advice=advice)
