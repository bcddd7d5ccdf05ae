"""The driver's main loop: commands in, events out, and an end that leaves nothing running."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator

from weighbridge.drivers.answering import answer_commands, event_writer
from weighbridge.drivers.cosbench.bench import Cosbench, Stopped, StopRequest
from weighbridge.drivers.cosbench.site import COSBENCH_COMMAND, CosbenchSetup
from weighbridge.drivers.protocol import AgeBuckets, Cleanup, Event, Failed, Prepare, Step


class CosbenchLoop:
    """Answers commands from an inbox of lines, an empty one at its end; `send` sends an event."""

    def __init__(
        self, inbox: queue.SimpleQueue[bytes], send: Callable[[Event], None], stop: StopRequest
    ) -> None:
        self._inbox = inbox
        self._send = send
        self._stop = stop
        self._bench: Cosbench | None = None
        self._setup: CosbenchSetup | None = None

    def run(self) -> int:
        """Answer commands until Quit (0), a failure (3) or a requested stop; the exit status."""
        try:
            status = answer_commands(
                self._lines(), COSBENCH_COMMAND, self._answer, self._send, self._secrets
            )
        except Stopped:
            status = 0
        return status or self._stop.code or 0

    def _lines(self) -> Iterator[bytes]:
        while line := self._inbox.get():
            self._stop.check()
            yield line

    def _secrets(self) -> tuple[str, ...]:
        return () if self._setup is None else self._setup.secrets

    def close(self) -> None:
        if self._bench is not None:
            self._bench.close()
            self._bench = None

    def _answer(self, command: CosbenchSetup | Prepare | Step | Cleanup | AgeBuckets) -> Event:
        if isinstance(command, CosbenchSetup):
            self.close()
            self._setup = command
            self._bench = Cosbench(command, self._stop, self._send)
            return self._bench.ready()
        if self._bench is None:
            return Failed(message=f"{command.kind!r} came before 'setup'")
        if isinstance(command, Prepare):
            return self._bench.prepare(command)
        if isinstance(command, Step):
            return self._bench.step(command)
        if isinstance(command, Cleanup):
            return self._bench.cleanup(command)
        return Failed(message="COSBench cannot age a store: use Locust's driver")


def drive(stdin: int, stdout: int) -> int:
    """Be the driver: commands from one descriptor, events to the other. Returns the exit status."""
    stop = StopRequest()
    inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def end(code: int) -> None:
        stop.ask(code)
        inbox.put(b"")

    def read() -> None:
        with os.fdopen(stdin, "rb", closefd=False) as lines:
            for line in lines:
                if line.strip():
                    inbox.put(line)
        end(0)

    stop.on_signals(end)
    threading.Thread(target=read, name="commands", daemon=True).start()
    loop = CosbenchLoop(inbox, event_writer(stdout, lambda: end(0)), stop)
    try:
        return loop.run()
    finally:
        loop.close()
