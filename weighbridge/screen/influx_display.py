"""A display that passes everything on to another one, and steps to a writer for an InfluxDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from weighbridge.conductor.influx_writer import InfluxWriter
from weighbridge.conductor.step_runner import Display
from weighbridge.drivers.protocol import Progress
from weighbridge.results.influx.server import InfluxServer
from weighbridge.results.record import RunStore, StepKey, StepResult


class InfluxDisplay:
    """Shows everything on `shown`, and has `writer` send steps."""

    def __init__(self, shown: Display, writer: InfluxWriter) -> None:
        self._shown = shown
        self._writer = writer
        self._key: StepKey | None = None
        self.say = shown.say

    def begins(self, key: StepKey, number: int) -> None:
        """From here on, progress is of this step."""
        self._key = key
        self._shown.begins(key, number)

    def progress(self, progress: Progress) -> None:
        """Sent while a step runs; preparing and cleaning up are only shown."""
        self._shown.progress(progress)
        if self._key is not None:
            self._writer.live(self._key, progress)

    def ended(self, result: StepResult) -> None:
        """The step is in the run folder, where the writer finds its telemetry."""
        self._key = None
        self._shown.ended(result)
        self._writer.step(result)


@contextmanager
def sending(
    server: InfluxServer | None, store: RunStore, say: Callable[[str], None]
) -> Iterator[Callable[[Display], Display]]:
    """A function that makes a display send, too; without a server it returns the display itself.

    At the end, what is left is sent, or reported as not sent.
    """
    if server is None:
        yield lambda shown: shown
        return
    with InfluxWriter(store, server, say) as writer:
        yield lambda shown: InfluxDisplay(shown, writer)
