"""What has to come to its end once it was begun: signals that would cut it short come when it
has.
"""

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
    """Call `ending`; a signal that comes meanwhile is delivered, as it would have been, when that
    has returned or raised.

    Only a main thread is disturbed by signals; in others `ending` is called as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        ending()
        return
    with _held_back():
        ending()


class Endings:
    """What is to be done at an end, the last that was added first, each to its own end.

    A signal that raises can come at the beginning of any function, of these too. What it kept from
    its beginning is done all the same here. Only at the very beginning of `close` nothing is done,
    so that whoever has to be sure calls that twice: of the signals that end a program one comes
    through (`interruptible`).
    """

    def __init__(self) -> None:
        self._left: list[Callable[[], object]] = []

    def add(self, ending: Callable[[], object]) -> None:
        """What may be done more than once: it is done again where a signal came before it was taken
        off the list.
        """
        self._left.append(ending)

    def drop(self) -> None:
        """Forget them all: nothing is done."""
        self._left.clear()

    def close(self) -> None:
        """Do all of them that are left, whichever fail.

        Raises the first of their errors, else what a signal has raised.
        """
        raised: list[BaseException] = []
        while self._left:
            try:
                undisturbed(self._next)
            except BaseException as error:  # noqa: BLE001 - raised again when all are done
                raised.append(error)
        for one in sorted(raised, key=lambda one: not isinstance(one, Exception)):
            raise one

    def _next(self) -> None:
        try:
            self._left[-1]()
        finally:
            self._left.pop()


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
