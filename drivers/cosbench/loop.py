"""The loop of the driver: orders in, events out, one after the other, and an end that leaves nothing running."""

from __future__ import annotations

import logging
import os
import queue
import threading
import traceback
from collections.abc import Callable

from pydantic import ValidationError

from weighbridge.common.credential import redacted
from weighbridge.common.errors import WeighbridgeError
from weighbridge.drivers.cosbench.bench import Cosbench
from weighbridge.drivers.cosbench.ending import AskedToEnd, EndRequest
from weighbridge.drivers.driver import GaveUp
from weighbridge.drivers.order import ORDER, AgeBuckets, Cleanup, Event, Failed, Prepare, Quit, Setup, Step

EXIT_FAILED = 3

log = logging.getLogger(__name__)


class CosbenchLoop:
    """Answers orders from an inbox of lines, of which an empty one means the end; `say` sends an event."""

    def __init__(self, inbox: queue.SimpleQueue[bytes], say: Callable[[Event], None], ending: EndRequest) -> None:
        self._inbox = inbox
        self._say = say
        self._ending = ending
        self._bench: Cosbench | None = None
        self._setup: Setup | None = None

    def run(self) -> int:
        """Answer orders until Quit (0), until one cannot be done (3) or until the end is asked for. Returns the exit status."""
        while line := self._inbox.get():
            try:
                self._ending.check()
                order = ORDER.validate_json(line)
                if isinstance(order, Quit):
                    return 0
                self._say(self._answer(order))
            except AskedToEnd:
                break
            except ValidationError as error:
                # Without its input: the line may hold a key.
                faults = error.errors(include_url=False, include_context=False, include_input=False)
                words = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults[:5])
                self._say(Failed(message=f"the line is no order: {words}"))
                return EXIT_FAILED
            except WeighbridgeError as error:
                self._say(Failed(message=str(error), kept=error.kept if isinstance(error, GaveUp) else ()))
                return EXIT_FAILED
            except Exception as error:  # noqa: BLE001 - whatever it is, it is answered: silence would be waited for
                log.error("%s", redacted(traceback.format_exc(), self._secrets()))  # noqa: TRY400 - the traceback alone is wanted
                self._say(Failed(message=redacted(f"{type(error).__name__}: {error}", self._secrets())))
                return EXIT_FAILED
        return self._ending.code or 0

    def _secrets(self) -> tuple[str, ...]:
        """What no text of a library may tell anybody."""
        return () if self._setup is None else self._setup.secrets

    def close(self) -> None:
        """End what was started."""
        if self._bench is not None:
            self._bench.close()
            self._bench = None

    def _answer(self, order: Setup | Prepare | Step | Cleanup | AgeBuckets) -> Event:
        if isinstance(order, Setup):
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
        return Failed(message="COSBench ages no store: what is written and deleted has to be known, and Locust's driver knows it")


def drive(stdin: int, stdout: int) -> int:
    """Be the driver: orders from one descriptor, events to the other. Returns the exit status."""
    ending = EndRequest()
    inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    writing = threading.Lock()

    def end(code: int) -> None:
        ending.ask(code)
        inbox.put(b"")

    def say(event: Event) -> None:
        data = event.model_dump_json().encode() + b"\n"
        with writing:
            try:
                while data:
                    data = data[os.write(stdout, data) :]
            except BrokenPipeError:
                # Nobody listens any more, which is how a conductor that died looks from here.
                end(0)

    def read() -> None:
        with os.fdopen(stdin, "rb", closefd=False) as lines:
            for line in lines:
                if line.strip():
                    inbox.put(line)
        end(0)

    ending.on_signals(end)
    threading.Thread(target=read, name="orders", daemon=True).start()
    loop = CosbenchLoop(inbox, say, ending)
    try:
        return loop.run()
    finally:
        loop.close()
