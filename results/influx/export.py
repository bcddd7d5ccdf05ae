"""Sends a complete run to an InfluxDB from its folder, whether or not it was sent live."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

from pydantic import NonNegativeInt

from weighbridge.common.errors import TargetError
from weighbridge.common.record import Record
from weighbridge.results.influx.cursor import Cursor, mark_complete, parts
from weighbridge.results.influx.points import RunPoints
from weighbridge.results.influx.server import (
    BATCH,
    Away,
    InfluxConnection,
    InfluxServer,
    WriteRefused,
)
from weighbridge.results.record import RunStore

TRIES: Final = 5
FIRST_WAIT_S: Final = 1.0
LONGEST_WAIT_S: Final = 30.0
"""A server that is away is tried again after 1, 2, 4 and 8 s, or when it asks to be, but no later
than this.
"""

Wait = Callable[[float], object]


class Sent(Record):
    """The result of sending.

    `unplaced` steps have no measurement, so they have no time and no point.
    """

    points: NonNegativeInt
    steps: NonNegativeInt
    unplaced: NonNegativeInt = 0

    @property
    def words(self) -> str:
        """The result as a sentence."""
        without = (
            f"; {self.unplaced} steps without a measurement have no point" if self.unplaced else ""
        )
        return f"{self.points} points of {self.steps} steps sent{without}"


def send_run(store: RunStore, server: InfluxServer, *, wait: Wait | None = None) -> Sent:
    """Send every point of a run, including those that a live run could not send.

    Of a step that was measured again, the last result is sent. `wait` waits some seconds before a
    server is tried again. Raises TargetError when it stays away, refuses to write, or refuses some
    of the lines (points that are sent again replace the first ones); InvalidMeasurement, UsageError
    or StoreError when the run cannot be read, or the cursor not be written.
    """
    of, after = Counter[bool](), Cursor(server=server.option)

    def lines() -> Iterator[str]:
        nonlocal after
        for part in parts(store, RunPoints(store), after):
            after = part.after
            if part.step is not None and part.last:
                of[part.step.measurement is not None] += 1
            yield from part.lines

    points, refused, first = 0, 0, ""
    waiting: Wait = threading.Event().wait if wait is None else wait
    with server.connect() as connection:
        for batch in _batches(lines()):
            try:
                _write(connection, batch, waiting)
            except WriteRefused as error:
                if not error.batch:
                    raise
                refused, first = refused + len(batch), first or error.message
            except Away as error:
                advice = "Nothing is lost: send the run again when the server answers."
                raise TargetError(
                    f"{error.message}\n{points} points were sent before that", advice=advice
                ) from error
            else:
                points += len(batch)
    if refused:
        raise TargetError(
            f"{first}\n{points} points were sent; of {refused} others the server refused some or "
            "all"
        )
    mark_complete(store.folder, after)
    return Sent(points=points, steps=of[True], unplaced=of[False])


def _write(connection: InfluxConnection, batch: list[str], wait: Wait) -> None:
    """Write a batch with retries. Raises Away and WriteRefused."""
    for number in range(TRIES):
        try:
            connection.write(batch)
        except Away as error:
            if number == TRIES - 1:
                raise
            asked_s = FIRST_WAIT_S * 2**number if error.after_s is None else error.after_s
            wait(min(LONGEST_WAIT_S, asked_s))
        else:
            return


def _batches(lines: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(lines)
    while batch := list(islice(rest, BATCH)):
        yield batch
