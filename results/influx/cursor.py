"""The cursor: up to where in a run's steps an InfluxDB has acknowledged the points, so that the
others are made again and sent.

    RUN/influx.cursor    which server, and what it has: the run's own point, results of
    `steps.jsonl`, lines of the next one RUN/influx.refused   lines that it would not have, each
    batch below a comment with what it said

Every line can be made again from the run folder, and a result is there before it is sent. So
nothing is lost on an outage or by a kill; at most one write is sent again after one, and the server
keeps one of two points that are the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from pydantic import NonNegativeInt, ValidationError

from weighbridge.common import inside
from weighbridge.common.record import Record
from weighbridge.results.influx.points import RunPoints
from weighbridge.results.record import (
    RunStore,
    StepResult,
    StoreError,
    line_begins,
    read_whole,
    whole_lines,
    write_whole,
)

CURSOR: Final = "influx.cursor"
REFUSED: Final = "influx.refused"
_STEPS: Final = "steps.jsonl"


class Cursor(Record):
    """What a server has of a run."""

    server: str
    """As `--influx` takes it."""
    run: bool = False
    """Whether it has the run's own point."""
    at_bytes: NonNegativeInt = 0
    """The place in `steps.jsonl` up to which it has all."""
    lines: NonNegativeInt = 0
    """How many lines of the result that begins there it has besides."""

    @classmethod
    def of(cls, folder: Path, server: str) -> Cursor:
        """Where a server is with a run; at its beginning where this is not known, or is no place in
        its steps.

        Raises UsageError and StoreError where that cannot be read.
        """
        try:
            found = cls.model_validate_json(read_whole(folder / CURSOR))
        except (FileNotFoundError, ValidationError):
            return cls(server=server)
        except OSError as error:
            raise StoreError(folder / CURSOR, error) from error
        known = found.server == server and line_begins(folder / _STEPS, found.at_bytes)
        return found if known else cls(server=server)

    def keep(self, folder: Path) -> None:
        """Write it down: the old or the new one is there. Raises StoreError."""
        write_whole(folder / CURSOR, self.model_dump_json() + "\n")

    def waiting(self, folder: Path) -> int:
        """How many results the server does not have all of.

        Raises UsageError where they cannot be counted.
        """
        return whole_lines(folder / _STEPS, self.at_bytes)


@dataclass(frozen=True)
class Part:
    """The run's own point, or those of one result."""

    points: RunPoints
    step: StepResult | None
    """None: of the run itself."""
    after: Cursor
    """Where a server is that has them all."""
    last: bool = True
    """Whether it is the last result of its step.

    Of another nothing is sent: what its hosts used is no longer known.
    """

    @property
    def name(self) -> str:
        """What it is, for messages."""
        return "the run" if self.step is None else str(self.step.key)

    @cached_property
    def lines(self) -> list[str]:
        """All of its lines.

        Raises InvalidMeasurement, ValueError and UsageError where they cannot be made.
        """
        made = (
            self.points.run()
            if self.step is None
            else self.points.step(self.step)
            if self.last
            else ()
        )
        return list(made)


def parts(store: RunStore, points: RunPoints, begin: Cursor) -> Iterator[Part]:
    """What a server lacks, in order, as far as it is in the run folder; one result after the other
    is held.

    Raises InvalidMeasurement and UsageError where a result cannot be read.
    """
    if not begin.run:
        begin = begin.model_copy(update={"run": True, "lines": 0})
        yield Part(points, None, begin)
    lasts = {step.key: end for step, end in store.steps_from(begin.at_bytes)}
    for step, end in store.steps_from(begin.at_bytes):
        after = begin.model_copy(update={"at_bytes": end, "lines": 0})
        yield Part(points, step, after, last=end >= lasts.get(step.key, 0))


def set_aside(folder: Path, lines: Sequence[str], why: str) -> None:
    """Keep lines that a server will not have, with its reason. Raises StoreError."""
    data = f"# {' '.join(why.split())}\n" + "".join(f"{line}\n" for line in lines)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        with os.fdopen(inside.opened(folder, REFUSED, flags), "ab") as file:
            file.write(data.encode())
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StoreError(folder / REFUSED, error) from error


def has_all(folder: Path, after: Cursor) -> None:
    """Note that a server has all of a run up to a place, if it was sent to it while it was
    measured. Raises StoreError.
    """
    if Cursor.of(folder, after.server).run:
        after.keep(folder)
    try:
        (folder / REFUSED).unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(folder / REFUSED, error) from error
