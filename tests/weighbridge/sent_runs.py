"""For tests: runs that are sent to a fake InfluxDB."""

import threading
import time
from collections.abc import Callable

from fake_influx import FakeInflux
from weighbridge.conductor.influx_writer import InfluxWriter
from weighbridge.results.run.step import StepResult
from weighbridge.results.run.store import RunStore
from weighbridge.results.show.influx import InfluxServer


class Sending:
    """A writer and its messages."""

    def __init__(
        self, store: RunStore, influx: FakeInflux, *, deadline_s: float = 5.0, close_s: float = 20.0
    ) -> None:
        self.said: list[str] = []
        self.writer = InfluxWriter(
            store,
            InfluxServer(url=influx.url),
            self.said.append,
            deadline_s=deadline_s,
            retry_s=0.01,
            close_s=close_s,
        )


def measured(store: RunStore, writer: InfluxWriter, *steps: StepResult) -> None:
    """Steps end: they are recorded, and the writer is told."""
    for step in steps:
        store.append(step)
        writer.step(step)


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end
        threading.Event().wait(0.005)
