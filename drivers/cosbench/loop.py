"""The loop of the driver: orders in, events out, one after the other, and an end that leaves
nothing running.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator

from weighbridge.drivers.answering import answer_orders, saying
from weighbridge.drivers.cosbench.bench import Cosbench
from weighbridge.drivers.cosbench.ending import AskedToEnd, EndRequest
from weighbridge.drivers.cosbench.site import COSBENCH_ORDER, CosbenchSetup
from weighbridge.drivers.order import AgeBuckets, Cleanup, Event, Failed, Prepare, Step


class CosbenchLoop:
    """Answers orders from an inbox of lines, of which an empty one means the end; `say` sends an
    event.
    """

    def __init__(
        self, inbox: queue.SimpleQueue[bytes], say: Callable[[Event], None], ending: EndRequest
    ) -> None:
        self._inbox = inbox
        self._say = say
        self._ending = ending
        self._bench: Cosbench | None = None
        self._setup: CosbenchSetup | None = None

    def run(self) -> int:
        """Answer orders until Quit (0), until one cannot be done (3) or until the end is asked for.

        Returns the exit status.
        """
        try:
            return (
                answer_orders(self._lines(), COSBENCH_ORDER, self._answer, self._say, self._secrets)
                or self._ending.code
                or 0
            )
        except AskedToEnd:
            return self._ending.code or 0

    def _lines(self) -> Iterator[bytes]:
        while line := self._inbox.get():
            self._ending.check()
            yield line

    def _secrets(self) -> tuple[str, ...]:
        """What no text of a library may tell anybody."""
        return () if self._setup is None else self._setup.secrets

    def close(self) -> None:
        """End what was started."""
        if self._bench is not None:
            self._bench.close()
            self._bench = None

    def _answer(self, order: CosbenchSetup | Prepare | Step | Cleanup | AgeBuckets) -> Event:
        if isinstance(order, CosbenchSetup):
            self.close()
            self._setup = order
            self._bench = Cosbench(order, self._ending, self._say)
            return self._bench.ready()
        if self._bench is None:
            return Failed(message=f"{order.kind!r} came before 'setup'")
        if isinstance(order, Prepare):
            return self._bench.prepare(order)
        if isinstance(order, Step):
            return self._bench.step(order)
        if isinstance(order, Cleanup):
            return self._bench.cleanup(order)
        return Failed(
            message="COSBench ages no store: what is written and deleted has to be known, and "
            "Locust's driver knows it"
        )


def drive(stdin: int, stdout: int) -> int:
    """Be the driver: orders from one descriptor, events to the other. Returns the exit status."""
    ending = EndRequest()
    inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def end(code: int) -> None:
        ending.ask(code)
        inbox.put(b"")

    def read() -> None:
        with os.fdopen(stdin, "rb", closefd=False) as lines:
            for line in lines:
                if line.strip():
                    inbox.put(line)
        end(0)

    ending.on_signals(end)
    threading.Thread(target=read, name="orders", daemon=True).start()
    loop = CosbenchLoop(inbox, saying(stdout, lambda: end(0)), ending)
    try:
        return loop.run()
    finally:
        loop.close()
