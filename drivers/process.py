"""The conductor's side of a driver: sends orders to a driver process, follows its events, and ends
it on every path.
"""

from __future__ import annotations

import contextlib
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Self, TypeVar

from pydantic import ValidationError

from weighbridge.common.errors import DriverError
from weighbridge.common.piped import Piped
from weighbridge.drivers.driver import GaveUp, Heard
from weighbridge.drivers.order import (
    EVENT,
    AgeBuckets,
    Aged,
    Cleaned,
    Cleanup,
    Event,
    Failed,
    Listening,
    Measured,
    Order,
    Prepare,
    Prepared,
    Progress,
    Quit,
    Ready,
    Setup,
    Step,
)

Answer = TypeVar("Answer", Ready, Prepared, Measured, Cleaned, Aged)

SILENCE_S = 60.0
"""A driver speaks at least twice a second while an order runs; start-up on a host with a share of
one CPU takes longest.
"""

QUIT_S = 10.0
"""How long a driver may take to end by itself, and once more after SIGTERM."""

LOOK_S = 0.5
"""How often what is beside the driver is looked at while it is waited for."""

TAIL_LINES = 15


class DriverProcess:
    """One driver that runs, given as a Popen with stdin and stdout as pipes; `log` is the file its
    stderr goes to.

    For one conductor thread; `close` may be called from any. Use it as a context manager: leaving
    it ends the driver. Every order raises DriverError when the driver fails, ends, says something
    that is no event, or says nothing for `silence_s` seconds; after that only `close` is of use.
    `look` is called at least twice a second while an order runs, and raises DriverError when
    something has ended that the driver cannot do without.
    """

    def __init__(
        self,
        process: Piped,
        log: Path,
        *,
        silence_s: float = SILENCE_S,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        if process.stdin is None or process.stdout is None:
            raise ValueError("the driver's stdin and stdout must be pipes")
        self.process = process
        self.log = log
        self.silence_s = silence_s
        self._look = look
        self._stdin: IO[bytes] = process.stdin
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._busy = False
        self._closing = threading.Lock()
        self._reader = threading.Thread(
            target=self._read, args=(process.stdout,), name=f"driver-{log.stem}", daemon=True
        )
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def setup(self, order: Setup, listening: Callable[[Listening], None] | None = None) -> Ready:
        """Tell the driver its target. Returns the versions of what makes the load.

        `listening` starts the stations of other clients when the driver listens for them.
        """
        return self._ask(order, Ready, None, listening)

    def prepare(self, order: Prepare, heard: Heard | None = None) -> Prepared:
        """Have the workload's buckets and objects made; all of them are there when this returns."""
        return self._ask(order, Prepared, heard)

    def step(self, order: Step, heard: Heard | None = None) -> Measured:
        """Have one step run and measured."""
        return self._ask(order, Measured, heard)

    def cleanup(self, order: Cleanup, heard: Heard | None = None) -> Cleaned:
        """Have objects deleted."""
        return self._ask(order, Cleaned, heard)

    def age(self, order: AgeBuckets, heard: Heard | None = None) -> Aged:
        """Have the store filled and churned."""
        return self._ask(order, Aged, heard)

    def quit(self) -> None:
        """Ask an idle driver to end and see that it ended well.

        Raises DriverError when it did not.
        """
        if self._busy or self.process.poll() is not None:
            raise self._error(
                "was asked to quit, but "
                + ("an order runs" if self._busy else self._how_it_ended())
            )
        self._send(Quit())
        try:
            self.process.wait(QUIT_S)
        except subprocess.TimeoutExpired:
            raise self._error(f"did not end within {QUIT_S:g} s of being asked to") from None
        finally:
            self.close()
        if self.process.returncode != 0:
            raise self._error(self._how_it_ended())

    def close(self) -> None:
        """End the driver whatever it does: stdin closed (which means Quit), then SIGTERM, then
        SIGKILL, each by its pid.
        """
        with self._closing:
            self._close_stdin()
            for number, patience_s in (
                (None, QUIT_S if not self._busy else QUIT_S / 4),
                (signal.SIGTERM, QUIT_S),
                (signal.SIGKILL, None),
            ):
                if number is not None:
                    self.process.send_signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(patience_s)
                    break
            # The reader ends by itself at the end of the pipe; one that a surviving child holds
            # open is not waited for.
            self._reader.join(1.0)
            if not self._reader.is_alive() and self.process.stdout is not None:
                self.process.stdout.close()

    def _close_stdin(self) -> None:
        # A driver that is gone already cannot take what was still buffered for it, and need not.
        with contextlib.suppress(OSError, ValueError):
            self._stdin.close()

    def _read(self, stdout: IO[bytes]) -> None:
        # An empty line means the end: a pipe that closes gives none before it, and an event is
        # never empty.
        try:
            for line in stdout:
                self._lines.put(line)
        finally:
            self._lines.put(b"")

    def _send(self, order: Order) -> None:
        try:
            self._stdin.write(order.model_dump_json().encode() + b"\n")
            self._stdin.flush()
        except (OSError, ValueError):
            raise self._error(self._how_it_ended()) from None

    def _ask(
        self,
        order: Order,
        wanted: type[Answer],
        heard: Heard | None,
        listening: Callable[[Listening], None] | None = None,
    ) -> Answer:
        if self._busy:
            raise self._error(f"was given {order.kind!r} before its last order was answered")
        self._busy = (
            True  # stays so when this raises: nothing more can be asked of a driver that failed
        )
        self._send(order)
        while True:
            event = self._next(order)
            if isinstance(event, Progress):
                if heard is not None:
                    heard(event)
            elif isinstance(event, Listening) and listening is not None:
                listening(event)
            elif isinstance(event, Failed):
                what = f"the driver could not do {order.kind!r}: {event.message}"
                raise GaveUp(what, advice=f"its log: {self.log}", kept=event.kept)
            elif isinstance(event, wanted):
                self._busy = False
                return event
            else:
                raise self._error(f"answered {order.kind!r} with {event.kind!r}")

    def _next(self, order: Order) -> Event:
        line = self._line(order)
        if not line.strip():
            raise self._error(f"{self._how_it_ended()} while it was to do {order.kind!r}")
        try:
            return EVENT.validate_json(line)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0][
                "msg"
            ]
            raise self._error(
                f"said what is no event ({first}): {line[:200].decode(errors='replace').rstrip()}"
            ) from None

    def _line(self, order: Order) -> bytes:
        """What it says next. Raises DriverError when that is nothing, and what `look` raises."""
        deadline = time.monotonic() + self.silence_s
        while True:
            # What it has said already comes first: a measurement is none the worse for what has
            # ended since.
            with contextlib.suppress(queue.Empty):
                return self._lines.get_nowait()
            self._look()
            with contextlib.suppress(queue.Empty):
                return self._lines.get(timeout=max(0.0, min(LOOK_S, deadline - time.monotonic())))
            if time.monotonic() >= deadline:
                raise self._error(
                    f"said nothing for {self.silence_s:g} s while it was to do {order.kind!r}"
                )

    def _how_it_ended(self) -> str:
        deadline = time.monotonic() + 2.0
        with contextlib.suppress(subprocess.TimeoutExpired):
            # Its stdout closes a moment before it can be waited for.
            self.process.wait(max(0.0, deadline - time.monotonic()))
        code = self.process.returncode
        return "closed its output" if code is None else how_it_ended(code)

    def _error(self, what: str) -> DriverError:
        return DriverError("\n".join([f"the driver {what}", *last_lines(self.log)]))


def how_it_ended(code: int) -> str:
    """Of a program on a host, in words, by its exit status: signal N is told as -N, or where
    another stands between as 128 + N.
    """
    number = -code if code < 0 else code - 128
    if number not in set(signal.Signals):
        return f"ended with exit status {code}"
    name = signal.Signals(number).name
    return f"was ended by {name}" if code < 0 else f"ended with exit status {code} ({name})"


def last_lines(log: Path) -> list[str]:
    """The last lines of a log, with a line before them that names it."""
    try:
        with log.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - 65536))
            lines = file.read().decode(errors="replace").splitlines()[-TAIL_LINES:]
    except OSError as error:
        return [f"{log} cannot be read: {error.strerror}"]
    return (
        [f"last lines of {log}:", *[f"  | {line}" for line in lines]]
        if lines
        else [f"its log is empty: {log}"]
    )
