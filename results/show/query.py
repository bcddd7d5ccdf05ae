"""SQL queries over many runs: views of what their folders hold.

A view is filled when a query names it. Unknown values are NULL. SQL can read no files and change
nothing (results.show.table).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

from weighbridge.common import csv_text
from weighbridge.common.csv_text import show_time
from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import UsageError
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.numbers import UNKNOWN, show_figure
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


DIGITS: Final = 6
"""Significant digits in the text for people."""


def answer_text(answer: QueryResult) -> str:
    """Aligned columns, numbers to the right; nothing is cut off and no line is broken."""
    heads = [_shown(name) for name in answer.columns]
    cells = [[_shown(value) for value in line] for line in answer.lines]
    widths = [max(map(cell_len, column)) for column in zip(heads, *cells, strict=True)]
    number, columns = int | float | Decimal | None, zip(*answer.lines, strict=True)
    right = [all(isinstance(value, number) for value in column) for column in columns]

    def row(line: list[str]) -> str:
        padded = []
        for place, (cell, width) in enumerate(zip(line, widths, strict=True)):
            gap = " " * (width - cell_len(cell))
            padded.append(f"{gap}{cell}" if right and right[place] else f"{cell}{gap}")
        return "  ".join(padded).rstrip()

    rule = "  ".join("-" * width for width in widths)
    count = len(answer.lines)
    footer = f"({count} line{'' if count == 1 else 's'})"
    return "\n".join((row(heads), rule, *map(row, cells), footer)) + "\n"


def answer_csv(answer: QueryResult) -> str:
    """CSV with a header; empty cells are NULL."""
    head = [csv_text.formula_safe(name) for name in answer.columns]
    return csv_text.csv_lines(head, (map(_plain, line) for line in answer.lines))


def answer_json(answer: QueryResult) -> str:
    """A list of objects. Raises UsageError if two columns have the same name."""
    twice = sorted({name for name in answer.columns if answer.columns.count(name) > 1})
    if twice:
        raise UsageError(
            f"two columns are named {', '.join(twice)}",
            advice="Give one of them another name with AS.",
        )
    found = [dict(zip(answer.columns, map(_plain, line), strict=True)) for line in answer.lines]
    return json.dumps(found, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


ANSWERS: Final[Mapping[str, Callable[[QueryResult], str]]] = MappingProxyType(
    {"table": answer_text, "csv": answer_csv, "json": answer_json}
)


def _shown(value: object) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, (float, Decimal)):
        number = float(value)
        text = show_figure(number, DIGITS) if math.isfinite(number) else str(number)
        return text.rstrip("0").rstrip(".") if "." in text else text
    plain = _plain(value)
    text = plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def _plain(value: object) -> object:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime):
        return show_time(value)
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
