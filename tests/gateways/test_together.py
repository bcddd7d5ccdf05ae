"""Calls for several hosts at the same time."""

import threading
import time
from collections.abc import Callable, Sequence

import pytest

from weighbridge.gateways import together as module
from weighbridge.gateways.together import THREADS, together


def test_all_end_before_the_first_error_is_raised() -> None:
    ended = []

    def fail() -> None:
        raise ValueError("first")

    def end() -> None:
        time.sleep(0.05)
        ended.append(1)

    with pytest.raises(ValueError, match="first"):
        together([fail, end, end])
    assert ended == [1, 1]


def test_after_an_interrupt_no_more_calls_begin_and_those_that_began_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, ended = [], []
    release = threading.Event()

    def call() -> None:
        begun.append(1)
        release.wait(30)
        ended.append(1)

    def interrupted(_futures: object) -> None:
        threading.Timer(1.0, release.set).start()  # by then the others are cancelled
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "wait", interrupted)
    calls: Sequence[Callable[[], None]] = [call] * (3 * THREADS)
    with pytest.raises(KeyboardInterrupt):
        together(calls)
    assert len(begun) <= THREADS
    assert len(ended) == len(begun)
