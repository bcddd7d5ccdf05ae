"""Requests to stop, by a closed stdin or a signal; all waiting is done here, so that it ends."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable
from types import FrameType

SIGNALLED = 128
"""Exit status of a program that a signal ended: this plus its number, as in shells."""


class Stopped(BaseException):
    """A stop was requested: not an error, and nothing that catches errors should catch it."""


class StopRequest:
    """`code` is the requested exit status, or None until a stop is requested."""

    def __init__(self) -> None:
        self.code: int | None = None
        # A pipe: signal handlers can write to it, even those that interrupt the waiting.
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)

    def ask(self, code: int) -> None:
        """Stop with this exit status, unless a stop was requested before.

        May be called from a signal handler or any thread.
        """
        if self.code is None:
            self.code = code
        with contextlib.suppress(BlockingIOError):
            os.write(self._write_end, b"x")

    @staticmethod
    def on_signals(stop: Callable[[int], None]) -> None:
        """Have SIGTERM and SIGINT call `stop` with their exit status."""

        def handle(number: int, _frame: FrameType | None) -> None:
            stop(SIGNALLED + number)

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, handle)

    def wait(self, seconds: float) -> None:
        """Sleep. Raises Stopped as soon as a stop is requested."""
        if select.select([self._read_end], [], [], seconds)[0]:
            raise Stopped

    def check(self) -> None:
        """Raise Stopped if a stop was requested."""
        self.wait(0)
