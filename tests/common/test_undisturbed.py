import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

import pytest

from weighbridge.common.undisturbed import SIGNALS, undisturbed


class Asked(BaseException):
    pass


@pytest.fixture(autouse=True)
def _asking() -> Iterator[None]:
    def ask(_number: int, _frame: FrameType | None) -> None:
        raise Asked

    before = {one: signal.signal(one, ask) for one in SIGNALS}
    yield
    for one, handler in before.items():
        signal.signal(one, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_comes_when_what_was_begun_has_ended(number: int) -> None:
    done: list[str] = []

    def ending() -> None:
        done.append("begun")
        os.kill(os.getpid(), number)
        done.append("ended")

    with pytest.raises(Asked):
        undisturbed(ending)
    assert done == ["begun", "ended"]
    with pytest.raises(Asked):
        os.kill(os.getpid(), number)  # as before


def test_it_comes_too_when_the_ending_fails() -> None:
    def ending() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        raise ValueError("something stays")

    with pytest.raises(Asked) as asked:
        undisturbed(ending)
    assert isinstance(asked.value.__context__, ValueError)


def test_what_was_to_be_ignored_is_ignored_all_the_same() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    undisturbed(lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


def test_in_another_thread_handlers_are_left_alone() -> None:
    seen: list[object] = []
    thread = threading.Thread(
        target=lambda: undisturbed(lambda: seen.append(signal.getsignal(signal.SIGTERM)))
    )
    before = signal.getsignal(signal.SIGTERM)
    thread.start()
    thread.join()
    assert seen == [before]
