"""Tables as data: typed columns with names, units and meanings, and lines with nothing rounded.
What is unknown is None.

A `TableSchema` says what a table's columns are and how each is read from what a line is made of, so
that the schema of an export, the columns of a view and the file that holds them can never differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, Literal, TypeVar

from weighbridge.common.errors import InvalidMeasurement
from weighbridge.common.record import Record

Kind = Literal["text", "whole", "number", "truth", "time", "texts"]
"""`whole` is a number without a fraction, `truth` is true or false, `time` is in UTC, `texts` a
list, empty for none.
"""

Cell = str | int | float | bool | datetime | tuple[str, ...] | None
Source_contra = TypeVar("Source_contra", contravariant=True)


class Field(Record):
    """What a column is: its name (with its unit where it has one), the kind of its cells, and what
    they mean.
    """

    name: str
    kind: Kind
    about: str
    unit: str = ""


@dataclass(frozen=True)
class DataTable:
    """A table that is filled: a cell for each field in every line."""

    name: str
    about: str
    fields: tuple[Field, ...]
    lines: tuple[tuple[Cell, ...], ...]

    def column(self, name: str) -> tuple[Cell, ...]:
        """All cells of one column. Raises ValueError where there is none of that name."""
        place = [field.name for field in self.fields].index(name)
        return tuple(line[place] for line in self.lines)


@dataclass(frozen=True)
class DataColumn(Generic[Source_contra]):
    """A field, and how its cell is read from what a line is made of."""

    name: str
    kind: Kind
    about: str
    read: Callable[[Source_contra], Cell]
    unit: str = ""

    @property
    def field(self) -> Field:
        """What it is, without how it is read."""
        return Field(name=self.name, kind=self.kind, about=self.about, unit=self.unit)


@dataclass(frozen=True)
class TableSchema(Generic[Source_contra]):
    """A table without its lines."""

    name: str
    about: str
    columns: tuple[DataColumn[Source_contra], ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        """What its columns are, in order."""
        return tuple(column.field for column in self.columns)

    def fill(self, sources: Iterable[Source_contra]) -> DataTable:
        """The table with a line for each of these."""
        reads = [column.read for column in self.columns]
        lines = tuple(tuple(read(source) for read in reads) for source in sources)
        return DataTable(name=self.name, about=self.about, fields=self.fields, lines=lines)


def utc(text: str | None) -> datetime | None:
    """A time in ISO 8601 as one in UTC that carries no zone; None for none.

    Raises InvalidMeasurement when it is not a time.
    """
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None)
    except ValueError as error:
        raise InvalidMeasurement(f"{text!r} is not a time in ISO 8601") from error


def show_time(value: datetime) -> str:
    """A time in UTC as ISO 8601 with its `Z`."""
    return f"{value.isoformat(timespec='milliseconds')}Z"
