"""Clean-up that signals may not cut short: they are delivered when it has finished."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Final

TERMINATION_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals by which a person, a service manager or a closing terminal ends a program."""


AGAIN_S: Final = 0.05
MOST_AGAIN: Final = 100
"""So often a signal is put off for imports, 5 s in all: one may be of what never ends."""


def outside_imports(handle: Callable[[int], None]) -> Callable[[int, FrameType | None], None]:
    """A handler that calls `handle` with the signal's number, and sends it again a moment later if
    a module is just imported: there, an exception is swallowed or leaves half a module behind.
    """
    left = MOST_AGAIN

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal left
        while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
            frame = frame.f_back
        if frame is None or not left:
            handle(number)
            return
        left -= 1
        later = threading.Timer(AGAIN_S, os.kill, (os.getpid(), number))
        later.daemon = True
        later.start()

    return handler


def with_signals_deferred(
    ending: Callable[[], object], hurry: Callable[[], object] | None = None
) -> None:
    """Call `ending`; in the main thread signals that arrive are delivered after it.

    At the second signal, also if the first came before and others are ignored since, `hurry` is
    called: it has `ending` end soon.
    """
    if threading.current_thread() is not threading.main_thread():
        ending()
        return
    received: list[int] = []
    # SIGTERM is what neither a shell nor nohup has ignored.
    ignored = signal.getsignal(signal.SIGTERM) == signal.SIG_IGN

    def note(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        if hurry is not None and len(received) + ignored == 2:
            hurry()

    # A handler that Python did not set cannot be restored, so it stays.
    before = {
        one: handler
        for one in TERMINATION_SIGNALS
        if (handler := signal.getsignal(one)) is not None
    }
    for one in before:
        signal.signal(one, note)
    try:
        ending()
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
        if received:
            signal.raise_signal(received[0])


class CleanupStack:
    """A stack of clean-up actions, each run to its end, the last added first.

    A signal handler can raise at the start of any function, including these methods. An action that
    it kept from starting is still run here. Only at the very start of `close` would nothing be
    done: callers that must be sure call it twice, since only one signal is delivered
    (`interruptible`).
    """

    def __init__(self) -> None:
        self._actions: list[tuple[Callable[[], object], Callable[[], object] | None]] = []

    def add(self, ending: Callable[[], object], hurry: Callable[[], object] | None = None) -> None:
        """Add a repeatable action: it runs again if a signal came before it was removed. A second
        signal calls `hurry`.
        """
        self._actions.append((ending, hurry))

    def drop(self) -> None:
        """Forget all actions without running them."""
        self._actions.clear()

    def close(self) -> None:
        """Run all remaining actions. Raises the first of their errors, else that of a signal."""
        raised: list[BaseException] = []
        while self._actions:
            try:
                with_signals_deferred(self._run_last, self._actions[-1][1])
            except BaseException as error:  # noqa: BLE001 - raised again below
                raised.append(error)
        for one in sorted(raised, key=lambda one: not isinstance(one, Exception)):
            raise one

    def _run_last(self) -> None:
        try:
            self._actions[-1][0]()
        finally:
            self._actions.pop()
