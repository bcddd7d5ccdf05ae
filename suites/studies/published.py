"""How the columns of a study's published figures are to be read beside what its replay measures."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from weighbridge.common.record import Record

Measured = Literal[
    "throughput_ops_s", "bandwidth_mb_s", "p50_ms", "p90_ms", "p99_ms", "max_ms", "mean_ms"
]
"""Figures of a row of the table, by its own names. MB are 10^6 bytes."""

Where = Literal["variant", "workload", "workers"]


class PublishedColumn(Record):
    """One column of published figures.

    `ours` is what this suite measures of the same kind; None: nothing.
    """

    column: str
    title: str
    ours: Measured | None = None
    scale: PositiveFloat = 1.0
    """What a published figure is multiplied by to be in the unit of ours: 1.048576 for the MB of
    `rados bench`, which are MiB.
    """


class Replayed(Record):
    """What of a replay stands beside a published line; None: another rule tells it, or nothing.

    `workers` are the study's own.
    """

    variant: str | None = None
    workload: str | None = None
    workers: PositiveInt | None = None


class Rule(Record):
    """Published lines whose cells are all as `when` says stand beside what `beside` says; of two
    rules the later one holds.
    """

    when: dict[str, str]
    beside: Replayed

    def holds(self, line: dict[str, str]) -> bool:
        """Whether it is about this line of the file."""
        return all(line.get(column) == value for column, value in self.when.items())


class Published(Record):
    """A file of published figures (results/published) and how it is read."""

    file: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,79}$")]
    """Its name without `.csv`."""
    title: str
    same: dict[Where, str] = Field(default_factory=dict)
    """Columns whose cells are names of this study's variants or workloads, or its numbers of
    workers, as they are.
    """
    rules: tuple[Rule, ...] = ()
    figures: Annotated[tuple[PublishedColumn, ...], Field(min_length=1)]
    note: str = ""
    """What a reader must know of these figures."""

    def beside(self, line: dict[str, str]) -> Replayed:
        """What of a replay a published line stands beside.

        Raises ValueError when a cell that tells it is none of its kind.
        """
        found: dict[str, object] = {
            key: line[column] for key, column in self.same.items() if line.get(column)
        }
        for rule in self.rules:
            if rule.holds(line):
                found |= rule.beside.model_dump(exclude_none=True)
        return Replayed.model_validate(found)
