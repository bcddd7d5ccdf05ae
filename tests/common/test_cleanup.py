import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

import pytest

from weighbridge.common.cleanup import TERMINATION_SIGNALS, with_signals_deferred


class Interrupted(BaseException):
    pass


@pytest.fixture(autouse=True)
def _raise_on_signals() -> Iterator[None]:
    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise Interrupted

    before = {one: signal.signal(one, interrupt) for one in TERMINATION_SIGNALS}
    yield
    for one, handler in before.items():
        signal.signal(one, handler)


@pytest.mark.parametrize("number", TERMINATION_SIGNALS)
def test_a_signal_is_delivered_when_the_ending_has_returned(number: int) -> None:
    done: list[str] = []

    def ending() -> None:
        done.append("begun")
        os.kill(os.getpid(), number)
        done.append("ended")

    with pytest.raises(Interrupted):
        with_signals_deferred(ending)
    assert done == ["begun", "ended"]
    with pytest.raises(Interrupted):
        os.kill(os.getpid(), number)  # as before


def test_a_signal_is_also_delivered_when_the_ending_fails() -> None:
    def ending() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        raise ValueError("something stays")

    with pytest.raises(Interrupted) as interrupted:
        with_signals_deferred(ending)
    assert isinstance(interrupted.value.__context__, ValueError)


def test_an_ignored_signal_stays_ignored() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with_signals_deferred(lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


def test_other_threads_do_not_change_handlers() -> None:
    seen: list[object] = []
    thread = threading.Thread(
        target=lambda: with_signals_deferred(lambda: seen.append(signal.getsignal(signal.SIGTERM)))
    )
    before = signal.getsignal(signal.SIGTERM)
    thread.start()
    thread.join()
    assert seen == [before]
