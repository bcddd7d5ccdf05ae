"""SIGINT, SIGTERM and SIGHUP as one exception, once: the teardown after the first must finish."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from weighbridge.common.cleanup import TERMINATION_SIGNALS


class Interrupted(BaseException):
    """The run was asked to end by `signal`; the exit status is 128 + its number, as in shells.

    Not a KeyboardInterrupt, which click would turn into its own error without the number.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.signal = signal.Signals(number)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise Interrupted in the main thread at the first signal; ignore others in the block."""

    def first(number: int, _frame: FrameType | None) -> None:
        for one in TERMINATION_SIGNALS:
            signal.signal(one, signal.SIG_IGN)
        raise Interrupted(number)

    before = {one: signal.signal(one, first) for one in TERMINATION_SIGNALS}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
