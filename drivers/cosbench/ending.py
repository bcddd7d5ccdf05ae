"""Why to end: stdin closed or a signal.

All waiting is done here, so that it ends when it is asked to.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable
from types import FrameType

SIGNALLED = 128
"""Exit status of a program ended by a signal: this and its number, as shells have it."""


class AskedToEnd(BaseException):
    """It was asked to end: no error, and nothing that whoever catches errors may hold up."""


class EndRequest:
    """`code` is the exit status it asks for, or None as long as nothing was asked."""

    def __init__(self) -> None:
        self.code: int | None = None
        # A pipe, since what waits may be interrupted by the very signal that is to end it: it can
        # be written to there.
        self._asked, self._ask = os.pipe()
        os.set_blocking(self._ask, False)

    def ask(self, code: int) -> None:
        """End with this status, unless asked before.

        May be called from a signal's handler or any thread.
        """
        if self.code is None:
            self.code = code
        with contextlib.suppress(BlockingIOError):
            os.write(self._ask, b"x")

    @staticmethod
    def on_signals(end: Callable[[int], None]) -> None:
        """Have SIGTERM and SIGINT call `end` with the exit status that they ask for."""

        def asked(number: int, _frame: FrameType | None) -> None:
            end(SIGNALLED + number)

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, asked)

    def wait(self, seconds: float) -> None:
        """Pass this time. Raises Ended as soon as it is asked to."""
        if select.select([self._asked], [], [], seconds)[0]:
            raise AskedToEnd

    def check(self) -> None:
        """Raise Ended when it was asked to."""
        self.wait(0)
