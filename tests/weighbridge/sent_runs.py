"""For tests: runs that are sent to a fake InfluxDB."""

import threading
import time
from collections.abc import Callable

from fake_influx import FakeInflux
from weighbridge.conductor.influx_writer import InfluxWriter
from weighbridge.results.influx.cursor import Cursor
from weighbridge.results.influx.points import RunPoints
from weighbridge.results.influx.server import InfluxServer
from weighbridge.results.record.step import StepResult
from weighbridge.results.record.store import RunStore


class Sending:
    """A writer and its messages."""

    def __init__(
        self,
        store: RunStore,
        influx: FakeInflux,
        *,
        deadline_s: float = 5.0,
        first_wait_s: float = 0.01,
    ) -> None:
        self.said: list[str] = []
        self.writer = InfluxWriter(
            store,
            InfluxServer(url=influx.url),
            self.said.append,
            deadline_s=deadline_s,
            first_wait_s=first_wait_s,
            close_s=20.0,
        )


def measured(store: RunStore, writer: InfluxWriter, *steps: StepResult) -> None:
    """Steps end: they are recorded, and the writer is woken."""
    for step in steps:
        store.append(step)
        writer.step()


def acknowledged(store: RunStore, influx: FakeInflux) -> int:
    """How many of a run's lines a server has, by the cursor."""
    found, points = Cursor.of(store.folder, influx.url), RunPoints(store)
    ended = [step for step, end in store.steps_from(0) if end <= found.at_bytes]
    return found.run + found.lines + sum(len(list(points.step(step))) for step in ended)


def until(true: Callable[[], bool]) -> None:
    """Wait for another thread, or fail."""
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end
        threading.Event().wait(0.005)
