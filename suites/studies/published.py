"""How columns of a study's published figures compare with what its replay measures."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from weighbridge.common.record import Record

ColumnName = Annotated[str, Field(pattern=r"^[a-z0-9_]{1,80}$")]
"""The column of a metric in `summary.csv` (`weighbridge.results.metrics`). MB are 10^6 bytes."""

Where = Literal["variant", "workload", "workers"]


class PublishedColumn(Record):
    """One column of published figures; `ours` is our figure of the same kind, if any."""

    column: str
    title: str
    ours: ColumnName | None = None
    scale: PositiveFloat = 1.0
    """Factor from the published unit to ours: the MB of `rados bench` are MiB (1.048576)."""


class Replayed(Record):
    """The cell of a replay to show beside a published line; None: set by another rule, or none.

    `workers` are the study's.
    """

    variant: str | None = None
    workload: str | None = None
    workers: PositiveInt | None = None


class Rule(Record):
    """Published lines whose cells match `when` belong to a cell of the replay; later rules win."""

    when: dict[str, str]
    beside: Replayed

    def holds(self, line: dict[str, str]) -> bool:
        """Whether it applies to this line of the file."""
        return all(line.get(column) == value for column, value in self.when.items())


class Published(Record):
    """A file of published figures (results/published) and how it is read."""

    file: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,79}$")]
    """Its name without `.csv`."""
    title: str
    same: dict[Where, str] = Field(default_factory=dict)
    """Columns that directly hold the study's variants, workloads or worker counts."""
    rules: tuple[Rule, ...] = ()
    figures: Annotated[tuple[PublishedColumn, ...], Field(min_length=1)]
    note: str = ""
    """What a reader must know about these figures."""

    def beside(self, line: dict[str, str]) -> Replayed:
        """The cell of a replay to show beside a published line.

        Raises ValueError if one of the line's cells is invalid.
        """
        found: dict[str, object] = {
            key: line[column] for key, column in self.same.items() if line.get(column)
        }
        for rule in self.rules:
            if rule.holds(line):
                found |= rule.beside.model_dump(exclude_none=True)
        return Replayed.model_validate(found)
