"""A display that hands what it is told on to another one, and to a writer that sends it to an
InfluxDB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from weighbridge.conductor.influx_writer import InfluxWriter
from weighbridge.conductor.measuring import Display
from weighbridge.drivers.order import Progress
from weighbridge.results.influx.server import InfluxServer
from weighbridge.results.record import RunStore, StepKey, StepResult


class InfluxDisplay:
    """Shows everything by `shown`, and has `writer` send what is told of steps."""

    def __init__(self, shown: Display, writer: InfluxWriter) -> None:
        self._shown = shown
        self._writer = writer
        self._key: StepKey | None = None

    def say(self, text: str) -> None:
        """Only shown."""
        self._shown.say(text)

    def begins(self, key: StepKey, number: int) -> None:
        """From here on what is told is of this step."""
        self._key = key
        self._shown.begins(key, number)

    def progress(self, progress: Progress) -> None:
        """Sent while a step runs; preparing and cleaning up are only shown."""
        self._shown.progress(progress)
        if self._key is not None:
            self._writer.live(self._key, progress)

    def ended(self, result: StepResult) -> None:
        """The conductor has written the step down, so that what is sent of it can be made again
        from the run folder.
        """
        self._key = None
        self._shown.ended(result)
        self._writer.step()


@contextmanager
def sending(
    server: InfluxServer | None, store: RunStore, say: Callable[[str], None]
) -> Iterator[Callable[[Display], Display]]:
    """What makes of a display one that sends too; without a server the display as it is.

    Left, what waits has been sent or told.
    """
    if server is None:
        yield lambda shown: shown
        return
    with InfluxWriter(store, server, say) as writer:
        yield lambda shown: InfluxDisplay(shown, writer)
