"""SIGINT, SIGTERM and SIGHUP as one exception, once: the teardown after the first must finish."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from weighbridge.common.cleanup import TERMINATION_SIGNALS


class Interrupted(BaseException):
    """The run was asked to end by `signal`; the exit status is 128 + its number, as in shells.

    A note (`add_note`) says what is left, although all should be torn down.

    Not a KeyboardInterrupt, which click would turn into its own error without the number.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.signal = signal.Signals(number)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise Interrupted in the main thread at the first signal; ignore others in the block."""
    before = {one: signal.signal(one, _first) for one in TERMINATION_SIGNALS}
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
    try:
        for one in TERMINATION_SIGNALS:
            signal.signal(one, _first)
        yield
    finally:
        for one in TERMINATION_SIGNALS:
            signal.signal(one, signal.SIG_IGN)


def _first(number: int, _frame: FrameType | None) -> None:
    for one in TERMINATION_SIGNALS:
        signal.signal(one, signal.SIG_IGN)
    raise Interrupted(number)
