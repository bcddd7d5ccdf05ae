"""Tables as data: typed columns with names, units and meanings; nothing is rounded, None is
unknown.

A `TableSchema` says what a table's columns are and how each is read from the source of a line, so
that the schema of an export, the columns of a view and the file cannot differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any, Generic, Literal, TypeVar

from weighbridge.common import quantities
from weighbridge.common.record import Record

Kind = Literal["text", "integer", "number", "boolean", "time", "texts"]
"""`integer` and `number` are without and with fractions, `time` is UTC, `texts` a list."""

Cell = str | int | float | bool | datetime | tuple[str, ...] | None
Source_contra = TypeVar("Source_contra", contravariant=True)


class Field(Record):
    """A column: its name, with its unit if it has one, the kind of its cells, its meaning."""

    name: str
    kind: Kind
    about: str
    unit: str = ""


@dataclass(frozen=True)
class DataTable:
    """A table with its lines: each has a cell for each field."""

    name: str
    about: str
    fields: tuple[Field, ...]
    lines: tuple[tuple[Cell, ...], ...]

    def column(self, name: str) -> tuple[Cell, ...]:
        """All cells of a column. Raises ValueError for an unknown name."""
        place = [field.name for field in self.fields].index(name)
        return tuple(line[place] for line in self.lines)


@dataclass(frozen=True)
class DataColumn(Generic[Source_contra]):
    """A field, and how its cell is read from the source of a line."""

    name: str
    kind: Kind
    about: str
    read: Callable[[Source_contra], Cell]
    unit: str = ""

    @property
    def field(self) -> Field:
        """The field, without how it is read."""
        return Field(name=self.name, kind=self.kind, about=self.about, unit=self.unit)


def attribute(name: str, kind: Kind, about: str, path: str = "", unit: str = "") -> DataColumn[Any]:
    """A column that is read from an attribute of its source: a dotted path, by default its name."""
    return DataColumn(name, kind, about, attrgetter(path or name), unit)


@dataclass(frozen=True)
class TableSchema(Generic[Source_contra]):
    """A table without lines."""

    name: str
    about: str
    columns: tuple[DataColumn[Source_contra], ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(column.field for column in self.columns)

    def fill(self, sources: Iterable[Source_contra]) -> DataTable:
        reads = [column.read for column in self.columns]
        lines = tuple(tuple(read(source) for read in reads) for source in sources)
        return DataTable(name=self.name, about=self.about, fields=self.fields, lines=lines)


def utc(text: str | None) -> datetime | None:
    """As `common.times.utc`; None for None."""
    return None if text is None else quantities.utc(text)


def show_time(value: datetime) -> str:
    """A time in UTC as ISO 8601, ending in `Z`."""
    return f"{value.isoformat(timespec='milliseconds')}Z"
