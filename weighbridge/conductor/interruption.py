"""SIGINT, SIGTERM and SIGHUP as one exception, once: the teardown after the first must finish."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from weighbridge.common.cleanup import TERMINATION_SIGNALS, outside_imports


class Interrupted(BaseException):
    """The run was asked to end by `signal`; the exit status is 128 + its number, as in shells.

    A note (`add_note`) says what is left, although all should be torn down.

    Not a KeyboardInterrupt, which click would turn into its own error without the number.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.signal = signal.Signals(number)


SIGNALLED_S: Final = 5.0


def await_end(thread: threading.Thread) -> None:
    """Wait for a thread that is about to end: for SIGNALLED_S, if a signal ends what it was for, as
    it may wait for a host. It must be a daemon.
    """
    ended = sys.exception()
    thread.join(None if ended is None or isinstance(ended, Exception) else SIGNALLED_S)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise Interrupted in the main thread at the first signal; ignore others in the block."""
    first = outside_imports(_first)
    before = {one: signal.signal(one, first) for one in TERMINATION_SIGNALS}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


@contextmanager
def interruptible_again() -> Iterator[None]:
    """Raise Interrupted at the next signal in the block, although `interruptible` has had its first
    and ignores others: for a part of the teardown that may take long.
    """
    ignored = all(signal.getsignal(one) == signal.SIG_IGN for one in TERMINATION_SIGNALS)
    if not ignored or threading.current_thread() is not threading.main_thread():
        yield
        return
    first = outside_imports(_first)
    try:
        for one in TERMINATION_SIGNALS:
            signal.signal(one, first)
        yield
    finally:
        for one in TERMINATION_SIGNALS:
            signal.signal(one, signal.SIG_IGN)


def _first(number: int) -> None:
    for one in TERMINATION_SIGNALS:
        signal.signal(one, signal.SIG_IGN)
    raise Interrupted(number)
