import importlib
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from weighbridge.common import cleanup
from weighbridge.common.cleanup import TERMINATION_SIGNALS, with_signals_deferred
from weighbridge.conductor import interruption


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


@pytest.mark.parametrize(("ignored", "signals"), [(False, 2), (True, 1)])
def test_the_second_signal_hurries_an_ending_once(*, ignored: bool, signals: int) -> None:
    if ignored:  # as after the first signal of a run
        for one in TERMINATION_SIGNALS:
            signal.signal(one, signal.SIG_IGN)
    hurried: list[int] = []
    sent = 0

    def ending() -> None:
        nonlocal sent
        for _ in range(signals - 1):
            os.kill(os.getpid(), signal.SIGINT)
            sent += 1
        assert not hurried
        os.kill(os.getpid(), signal.SIGTERM)
        sent += 1

    def hurry() -> None:
        hurried.append(sent)

    stack = cleanup.CleanupStack()
    stack.add(ending, hurry)
    try:
        stack.close()
    except Interrupted:
        assert not ignored
    assert hurried == [signals - 1]


def test_other_threads_do_not_change_handlers() -> None:
    seen: list[object] = []
    thread = threading.Thread(
        target=lambda: with_signals_deferred(lambda: seen.append(signal.getsignal(signal.SIGTERM)))
    )
    before = signal.getsignal(signal.SIGTERM)
    thread.start()
    thread.join()
    assert seen == [before]


MODULE = """
import os, signal
try:
    os.kill(os.getpid(), signal.SIGINT)
    done = True
except BaseException:
    done = False
"""


def test_a_signal_is_not_lost_in_a_module_that_is_being_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "swallows.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)

    def interrupted() -> None:
        with interruption.interruptible():
            assert importlib.import_module("swallows").done
            threading.Event().wait(60)

    with pytest.raises(interruption.Interrupted):
        interrupted()


def test_a_module_that_is_imported_for_ever_does_not_keep_a_signal_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "endless.py").write_text(f"{MODULE}import threading\nthreading.Event().wait(60)")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(cleanup, "AGAIN_S", 0.001)
    with interruption.interruptible(), pytest.raises(interruption.Interrupted):
        importlib.import_module("endless")
