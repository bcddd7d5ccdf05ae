"""The cursor: how far an InfluxDB has acknowledged the points of a run; the rest is sent again.

    RUN/influx.cursor    the server and what it has: the run's own point, results of `steps.jsonl`,
                         lines of the next one
    RUN/influx.refused   lines that it refused, each batch after a comment with its reason

Every line can be made again from the run folder, and a result is stored before it is sent. So
nothing is lost by an outage or a kill; after one, at most one write is sent again, and the server
keeps one of two equal points.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from pydantic import NonNegativeInt, ValidationError

from weighbridge.common import safe_files
from weighbridge.common.record import Record
from weighbridge.results.influx.points import RunPoints
from weighbridge.results.record import (
    RunStore,
    StepResult,
    StoreError,
    count_lines,
    is_line_start,
    read_bounded,
    write_atomically,
)

CURSOR: Final = "influx.cursor"
REFUSED: Final = "influx.refused"
_STEPS: Final = "steps.jsonl"


class Cursor(Record):
    """What a server has of a run."""

    server: str
    """The server, as `--influx` takes it."""
    run: bool = False
    """Whether it has the run's own point."""
    at_bytes: NonNegativeInt = 0
    """The offset in `steps.jsonl` up to which it has all."""
    lines: NonNegativeInt = 0
    """How many lines of the result at that offset it has."""

    @classmethod
    def of(cls, folder: Path, server: str) -> Cursor:
        """The cursor of a server; at the beginning where it is unknown or no result's offset.

        Raises UsageError and StoreError where it cannot be read.
        """
        try:
            found = cls.model_validate_json(read_bounded(folder / CURSOR))
        except (FileNotFoundError, ValidationError):
            return cls(server=server)
        except OSError as error:
            raise StoreError(folder / CURSOR, error) from error
        known = found.server == server and is_line_start(folder / _STEPS, found.at_bytes)
        return found if known else cls(server=server)

    def keep(self, folder: Path) -> None:
        """Replace the file with this cursor. Raises StoreError."""
        write_atomically(folder / CURSOR, self.model_dump_json() + "\n")

    def waiting(self, folder: Path) -> int:
        """The number of results that the server does not have completely.

        Raises UsageError where they cannot be counted.
        """
        return count_lines(folder / _STEPS, self.at_bytes)


@dataclass(frozen=True)
class Part:
    """The points of the run itself, or of one result."""

    points: RunPoints
    step: StepResult | None
    """None: of the run itself."""
    after: Cursor
    """The cursor of a server that has all of them."""
    last: bool = True
    """Whether it is the last result of its step.

    Of earlier ones nothing is sent: what the hosts used is no longer known.
    """

    @property
    def name(self) -> str:
        """Its name in messages."""
        return "the run" if self.step is None else str(self.step.key)

    @cached_property
    def lines(self) -> list[str]:
        """All of its lines.

        Raises InvalidMeasurement, ValueError and UsageError where they cannot be made.
        """
        if self.step is None:
            return list(self.points.run())
        return list(self.points.step(self.step)) if self.last else []


def parts(store: RunStore, points: RunPoints, begin: Cursor) -> Iterator[Part]:
    """The parts after a cursor, in order, one at a time in memory.

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
    """Keep refused lines with the server's reason. Raises StoreError."""
    data = f"# {' '.join(why.split())}\n" + "".join(f"{line}\n" for line in lines)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        with os.fdopen(safe_files.open_descriptor(folder, REFUSED, flags), "ab") as file:
            file.write(data.encode())
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StoreError(folder / REFUSED, error) from error


def mark_complete(folder: Path, after: Cursor) -> None:
    """Record that a server has all of a run up to a cursor, if the run was sent to it live.

    Raises StoreError.
    """
    if Cursor.of(folder, after.server).run:
        after.keep(folder)
    try:
        (folder / REFUSED).unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(folder / REFUSED, error) from error
