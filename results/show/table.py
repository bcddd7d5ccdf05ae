"""Tables as data: a table declares its columns once, and every format is written here, once.

Columns are declared as text, a line each: name, kind and unit; what it means; and, if people see
it, its head:

    stored_bytes integer B | Bytes of the objects. | Stored

What is indented goes on. Nothing is rounded but where people read it (Markdown); what is unknown is
None: NULL, null or an empty cell, never a number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from tempfile import TemporaryFile
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, cast, get_args

from weighbridge.common.csv_text import csv_lines, show_time
from weighbridge.common.escaping import escape_controls
from weighbridge.common.quantities import utc
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.numbers import UNKNOWN, show_value

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Kind = Literal["text", "integer", "number", "boolean", "time", "texts"]
"""`integer` and `number` are without and with fractions, `time` is UTC, `texts` a list."""

Cell = str | int | float | bool | datetime | tuple[str, ...] | None

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


@dataclass(frozen=True)
class Column:
    """`unit` is empty if it has none, `head` if only programs see it."""

    name: str
    kind: Kind
    about: str
    unit: str = ""
    head: str = ""

    @property
    def is_number(self) -> bool:
        return self.kind in ("integer", "number")

    @property
    def json_type(self) -> dict[str, Any]:
        """What the JSON Schema says of its cells."""
        if self.kind == "texts":
            return {"type": "array", "items": {"type": "string"}}
        name = "string" if self.kind in ("text", "time") else self.kind
        return {"type": [name, "null"], **({"format": "date-time"} if self.kind == "time" else {})}

    @property
    def title(self) -> str:
        """Its head with its unit; sizes in bytes have theirs in each cell."""
        return f"{self.head or self.name}{f' ({self.unit})' if self.unit not in ('', 'B') else ''}"


def columns(text: str) -> tuple[Column, ...]:
    """Columns from their declarations. Raises ValueError for one that is not of the form above."""
    found = []
    for line in filter(None, re.sub(r"\n +", " ", text).splitlines()):
        place, about, *head = (part.strip() for part in line.split("|"))
        name, kind, *unit = place.split()
        if kind not in get_args(Kind) or not about.endswith("."):
            raise ValueError(f"not a column: {line}")
        found.append(Column(name, cast("Kind", kind), about, "".join(unit), "".join(head)))
    return tuple(found)


@dataclass(frozen=True)
class Line:
    """Where a line's cells are: those given by name, else the attribute of that name of the first
    source that has it. Of a source that is None nothing is known, so its cells are unknown too.
    """

    sources: tuple[object, ...]
    cells: Mapping[str, Cell]
    shown: Mapping[str, str] = field(default_factory=dict)
    """What people read instead of a cell."""

    def of_run(self, run: str) -> Line:
        """The same with the name of its run."""
        return replace(self, cells={"run": run, **self.cells})

    def showing(self, texts: Mapping[str, str]) -> Line:
        """The same with these texts for people."""
        return replace(self, shown=texts)

    def cell(self, column: Column) -> Cell:
        """Raises AttributeError if no source has it, InvalidMeasurement for what is no time."""
        value = self.cells[column.name] if column.name in self.cells else self._attribute(column)
        if column.kind == "time" and isinstance(value, str):
            return utc(value) if value else None
        return value

    def text(self, column: Column) -> str:
        """A cell as people read it."""
        if column.name in self.shown:
            return self.shown[column.name]
        value = self.cell(column)
        if isinstance(value, tuple):
            return "; ".join(value) or UNKNOWN
        if isinstance(value, datetime):
            return show_time(value)
        if column.unit == "B" and isinstance(value, int | float):
            return f"{value / 2**20:,.1f} MiB"
        return show_value(value)

    def _attribute(self, column: Column) -> Cell:
        for source in self.sources:
            if hasattr(source, column.name):
                found: Cell = getattr(source, column.name)
                return found
        if any(source is None for source in self.sources):
            return () if column.kind == "texts" else None
        raise AttributeError(f"nothing has a column {column.name}")


def line(*sources: object, **cells: Cell) -> Line:
    """A line of these sources and cells."""
    return Line(sources, cells)


@dataclass(frozen=True)
class Table:
    """A table without its lines. `lines` makes those of a run, if it is one of runs, in which the
    first column, `run`, is filled in; `notes` are what people must know of them.
    """

    name: str
    about: str
    columns: tuple[Column, ...]
    lines: Callable[[RunData], Iterable[Line]] = lambda _: ()
    notes: Callable[[RunData], Iterable[str]] = lambda _: ()

    def of_runs(self, runs: Iterable[RunData]) -> Filled:
        """The lines of these runs."""
        return Filled(
            self,
            tuple(one.of_run(data.manifest.run_id) for data in runs for one in self.lines(data)),
        )

    def markdown(self, data: RunData) -> str:
        """The table of a run for notes and papers, with what a reader must know below."""
        manifest = data.manifest
        state = "" if manifest.state == "done" else f" ({manifest.state})"
        caption = (
            f"{self.name.capitalize()} of run {manifest.run_id}{state}, suite {manifest.suite}"
        )
        return self.of_runs([data]).markdown(caption, self.notes(data))

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its lines, with units and meanings of all columns."""
        return {"type": "array", "description": self.about, "items": object_schema(self.columns)}


def object_schema(of: Sequence[Column]) -> dict[str, Any]:
    """The JSON Schema of a line with these columns."""
    about = {one.name: f"{one.about}{f' Unit: {one.unit}.' if one.unit else ''}" for one in of}
    return {
        "type": "object",
        "properties": {one.name: {**one.json_type, "description": about[one.name]} for one in of},
        "required": [one.name for one in of],
        "additionalProperties": False,
    }


@dataclass(frozen=True)
class Filled:
    """A table with its lines."""

    table: Table
    lines: tuple[Line, ...]

    @property
    def cells(self) -> list[tuple[Cell, ...]]:
        """Of each line, in the order of columns."""
        return [tuple(one.cell(column) for column in self.table.columns) for one in self.lines]

    def column(self, name: str) -> tuple[Cell, ...]:
        """All cells of a column. Raises KeyError for an unknown name."""
        column = {one.name: one for one in self.table.columns}[name]
        return tuple(one.cell(column) for one in self.lines)

    @property
    def file(self) -> str:
        """The name of its CSV file."""
        return f"{self.table.name}.csv"

    @property
    def csv(self) -> str:
        """CSV with a head; see `common.csv_text`."""
        return csv_lines([one.name for one in self.table.columns], self.cells)

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The lines as JSON objects."""
        names = [one.name for one in self.table.columns]
        return [dict(zip(names, map(_json_cell, cells), strict=True)) for cells in self.cells]

    @property
    def parquet(self) -> bytes:
        """Parquet with typed columns, compressed by zstd."""
        # A file without a name: one that is killed meanwhile leaves nothing behind.
        with TemporaryFile() as file, database() as connection:
            create(connection, self.table)
            insert(connection, self)
            connection.execute(
                f"COPY {quoted(self.table.name)} TO '/proc/self/fd/{file.fileno()}' "
                "(FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false)"
            )
            return file.read()

    def chosen(self, heads: Mapping[str, str]) -> Filled:
        """The same with these columns only, by name, and these heads."""
        known = {one.name: one for one in self.table.columns}
        chosen = tuple(replace(known[name], head=head) for name, head in heads.items())
        return replace(self, table=replace(self.table, columns=chosen))

    @property
    def heads(self) -> tuple[Column, ...]:
        """Columns for people: with a head (all, if none has one), of which something is known."""
        heads = [one for one in self.table.columns if one.head] or self.table.columns
        known = (any(line.text(one) not in (UNKNOWN, "") for line in self.lines) for one in heads)
        return tuple(one for one, some in zip(heads, known, strict=True) if some or not self.lines)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Which of these columns are of numbers."""
        return tuple(place for place, one in enumerate(self.heads) if one.is_number)

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The cells of these columns as people read them."""
        heads = self.heads
        return tuple(tuple(line.text(one) for one in heads) for line in self.lines)

    def markdown(self, caption: str, notes: Iterable[str] = ()) -> str:
        """Markdown as GitHub, GitLab and Pandoc read it, the caption above and notes below."""
        rule = ("---:" if one.is_number else ":---" for one in self.heads)
        parts = (
            f"**{escape(caption)}**",
            "",
            _markdown_line(one.title for one in self.heads),
            f"|{'|'.join(rule)}|",
            *map(_markdown_line, self.texts),
            "",
            *(f"- {escape(note)}" for note in notes),
        )
        return "\n".join(parts) + "\n"


def _json_cell(cell: Cell) -> object:
    if isinstance(cell, datetime):
        return show_time(cell)
    return list(cell) if isinstance(cell, tuple) else cell


# Markdown.


_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|~$&!])")
_LINKING: Final = re.compile(r"@|:(?=//)|www(?=\.)", re.IGNORECASE)
"""After these GitHub, GitLab and Pandoc see a link or a mention."""
_BREAK: Final = "\N{ZERO WIDTH SPACE}"
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]+")


def escape(text: str) -> str:
    """A text in one line, without anything that is Markdown, HTML, a link or a mention."""
    inert = _SPECIAL.sub(r"\\\1", escape_controls(_CONTROL.sub(" ", text)))
    return _LINKING.sub(rf"\g<0>{_BREAK}", inert)


def _markdown_line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(escape, cells))} |"


# An in-memory DuckDB database: typed tables, and queries that can only read them.


_LOCKS: Final = (
    "SET enable_external_access = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET allow_community_extensions = false",
    "SET python_enable_replacements = false",
    "SET lock_configuration = true",
)


@contextmanager
def database() -> Iterator[DuckDBPyConnection]:
    """A database in memory, closed at the end."""
    import duckdb  # noqa: PLC0415 - heavy, and wanted by few

    connection = duckdb.connect(":memory:")
    try:
        yield connection
    finally:
        connection.close()


def lock(connection: DuckDBPyConnection) -> None:
    """Give SQL no access to files, network, extensions or Python variables. Cannot be undone."""
    for setting in _LOCKS:
        connection.execute(setting)


def create(connection: DuckDBPyConnection, table: Table) -> None:
    """Create a table without lines."""
    types = ", ".join(f"{quoted(one.name)} {SQL_TYPES[one.kind]}" for one in table.columns)
    connection.execute(f"CREATE TABLE {quoted(table.name)} ({types})")


def insert(connection: DuckDBPyConnection, filled: Filled) -> None:
    """Insert all lines into their table, as inert parameters."""
    if not filled.lines:
        return
    # One list per column: inserting line by line takes a hundred times as long.
    values = ", ".join(
        f"unnest(${number}::{SQL_TYPES[one.kind]}[])"
        for number, one in enumerate(filled.table.columns, start=1)
    )
    cells = [
        [list(cell) if isinstance(cell, tuple) else cell for cell in column]
        for column in zip(*filled.cells, strict=True)
    ]
    connection.execute(f"INSERT INTO {quoted(filled.table.name)} SELECT {values}", cells)


def quoted(name: str) -> str:
    """A name quoted for SQL, whatever it contains."""
    return '"' + name.replace('"', '""') + '"'
