from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from pydantic import NonNegativeInt

from weighbridge.common.errors import TargetError
from weighbridge.common.record import Record
from weighbridge.results.influx import server as influx
from weighbridge.results.influx.points import RunPoints
from weighbridge.results.record import RunStore


class Sent(Record):
    """The result of sending. `unplaced` steps have no measurement, so no time and no point."""

    points: NonNegativeInt
    steps: NonNegativeInt
    unplaced: NonNegativeInt = 0

    @property
    def words(self) -> str:
        without = (
            f"; {self.unplaced} steps without a measurement have no point" if self.unplaced else ""
        )
        return f"{self.points} points of {self.steps} steps sent{without}"


def send_run(
    store: RunStore, server: influx.InfluxServer, *, retry_s: float = influx.RETRY_S
) -> Sent:
    """Send every point of a run, including those that a live run could not send.

    Of a step that was measured again, the last result is sent. Raises TargetError when the server
    stays away, refuses to write, or refuses some of the lines (points that are sent again replace
    the first ones); InvalidMeasurement, UsageError or StoreError when the run cannot be read.
    """
    of, points = Counter[bool](), RunPoints(store)

    def lines() -> Iterator[str]:
        yield from points.run()
        for step in store.latest().values():
            of[step.measurement is not None] += 1
            yield from points.step(step)

    connection = server.connect(retry_s=retry_s)
    try:
        made = lines()
        while not _ended(connection) and (batch := list(islice(made, influx.BATCH))):
            connection.write(batch)
            connection.settle()
    finally:
        connection.close()
    error, sent = connection.error, f"{connection.sent} points were sent"
    if isinstance(error, influx.Away):
        advice = "Nothing is lost: send the run again when the server answers."
        raise TargetError(f"{error.message}\n{sent} before that", advice=advice) from error
    if error is not None and not error.batch:
        raise error
    if connection.sent < connection.given:
        rest = connection.given - connection.sent
        why = "no answer in time" if error is None else error.message
        raise TargetError(f"{why}\n{sent}; of {rest} others the server refused some or all")
    return Sent(points=connection.sent, steps=of[True], unplaced=of[False])


def _ended(connection: influx.InfluxConnection) -> bool:
    """Whether the server takes no more: it has stayed away, or refuses any write."""
    error = connection.error
    return error is not None and not (isinstance(error, influx.WriteRefused) and error.batch)
