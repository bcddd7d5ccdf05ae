"""What has to come to its end once it was begun: signals that would cut it short come when it has."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Those by which a person, a service manager or a terminal that goes ends a program."""


def undisturbed(ending: Callable[[], object]) -> None:
    """Call `ending`; a signal that comes meanwhile is delivered, as it would have been, when that has returned or raised.

    Only a main thread is disturbed by signals; in others `ending` is called as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        ending()
        return
    with _held_back():
        ending()


@contextmanager
def _held_back() -> Iterator[None]:
    came: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        came.append(number)

    # A handler that was not set by Python cannot be put back, and is left alone.
    before = {one: handler for one in SIGNALS if (handler := signal.getsignal(one)) is not None}
    for one in before:
        signal.signal(one, note)
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
        if came:
            signal.raise_signal(came[0])
