import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Timer
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import SecretStr

from lying_store import lying_store
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import BucketsLeft, DriverError, LeftBehind, ObjectsLeft
from weighbridge.conductor import clearing as clearing_room
from weighbridge.conductor.clearing import HINT, SOON_S, clear, clearing
from weighbridge.conductor.interruption import Interrupted, interruptible
from weighbridge.gateways.existing.existing import RunningExisting
from weighbridge.topologies.this_machine import ThisHost

LEFT = BucketsLeft(["wb-1-small-0"], ["wb-1-small-0: no answer"])
NOTE = "buckets that may be left: wb-1-small-0"


def standing(gateway: object) -> Any:
    """A deployment of a gateway that outlives it."""
    hardware = SimpleNamespace(of=SimpleNamespace(for_running_gateways=True))
    return SimpleNamespace(running_gateway=gateway, hardware=hardware)


class Kept:
    """A gateway that outlives its deployment; `fails`: errors of its next attempts to clear."""

    def __init__(self, *fails: BaseException) -> None:
        self.asked: list[Sequence[str]] = []
        self.within_s: list[float | None] = []
        self.fails = list(fails)
        self.said: list[str] = []

    def clear(self, buckets: Sequence[str], *, within_s: float | None = None) -> tuple[str, ...]:
        self.asked.append(buckets)
        self.within_s.append(within_s)
        if self.fails:
            raise self.fails.pop(0)
        return (f"deleted {', '.join(buckets)}",)

    def through(self, error: BaseException | None = None) -> None:
        with clearing(standing(self), ["wb-1-small-0"], self.said.append):
            if error is not None:
                raise error


def test_buckets_are_deleted_after_success() -> None:
    kept = Kept()
    kept.through()
    assert kept.asked == [["wb-1-small-0"]]
    assert kept.said == ["deleted wb-1-small-0"]


@pytest.mark.parametrize("error", [Interrupted(15), DriverError("it broke"), KeyError("a defect")])
def test_buckets_are_deleted_after_any_error_which_stays_the_error(error: BaseException) -> None:
    kept = Kept()
    with pytest.raises(type(error)) as raised:
        kept.through(error)
    assert raised.value is error
    assert kept.said[-1] == "deleted wb-1-small-0"
    assert (HINT in kept.said) == isinstance(error, Interrupted)
    assert not hasattr(error, "__notes__")


def test_a_bucket_that_cannot_be_deleted_is_an_error_unless_there_is_another() -> None:
    kept = Kept(LEFT)
    with pytest.raises(BucketsLeft, match="left:\n  wb-1-small-0: no answer"):
        kept.through()
    assert len(kept.asked) == 1


def test_a_bucket_that_cannot_be_deleted_after_another_error_is_reported_beside_it() -> None:
    kept = Kept(LEFT)
    with pytest.raises(Interrupted) as error:
        kept.through(Interrupted(2))
    assert kept.said == [HINT, str(LEFT)]
    assert error.value.__notes__ == [NOTE]


def test_interrupted_deleting_gets_a_few_more_seconds_to_end() -> None:
    kept = Kept(Interrupted(2))
    with pytest.raises(Interrupted) as error:
        kept.through()
    assert kept.within_s == [None, SOON_S]
    assert kept.said == ["deleted wb-1-small-0"]
    assert not hasattr(error.value, "__notes__")


def test_the_first_signal_stays_the_error_when_a_second_one_ends_deleting() -> None:
    kept = Kept(Interrupted(2), LEFT)
    first = Interrupted(15)
    with pytest.raises(Interrupted) as error:
        kept.through(first)
    assert error.value is first
    assert first.__notes__ == [NOTE]


@pytest.mark.parametrize("signals", [1, 2])
def test_a_signal_ends_deleting_that_would_not_end_and_its_buckets_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signals: int
) -> None:
    """Two: the first comes in a step, before anything is deleted."""
    monkeypatch.setattr(clearing_room, "SOON_S", 1.0)
    client = ThisHost("client-1", "127.0.0.1", tmp_path / "client-1")
    said: list[str] = []
    sent = Timer(1.0, os.kill, (os.getpid(), signal.SIGTERM))
    started = time.monotonic()

    def run(gateway: RunningExisting) -> None:
        with interruptible(), clearing(standing(gateway), ["wb-1-small-0"], said.append):
            sent.start()
            if signals == 2:
                os.kill(os.getpid(), signal.SIGTERM)

    with lying_store() as url:
        known = Endpoint(api="s3", url=url, user="weigh:er", key=SecretStr("planted"))
        with pytest.raises(Interrupted) as error:
            run(RunningExisting(client, [known], {}))
    assert time.monotonic() - started < 15
    assert error.value.__notes__ == [NOTE]
    assert said[-1].startswith("buckets that this run made may be left:\n  wb-1-small-0: ")


def test_what_a_killed_run_left_is_named_if_a_signal_ends_its_deletion() -> None:
    kept = Kept(Interrupted(15), LEFT)
    with pytest.raises(Interrupted) as error:
        clear(standing(kept), ["wb-1-small-0"], kept.said.append)
    assert error.value.__notes__ == [NOTE]


def test_what_else_a_run_made_is_deleted_too_and_all_that_is_left_is_named_at_once() -> None:
    kept = Kept(LEFT)
    objects = ObjectsLeft("pool bench, namespace wb-1, by gateway-1", "no answer")

    def sweep(within_s: float | None) -> tuple[str, ...]:
        assert within_s is None
        raise objects

    with pytest.raises(LeftBehind) as error:
        clear(standing(kept), ["wb-1-small-0"], kept.said.append, sweep)
    assert error.value.words == f"{NOTE}; {objects.words}"
    assert error.value.message == f"{LEFT.message}\n{objects.message}"


def test_a_sweep_that_a_signal_ends_gets_a_few_more_seconds() -> None:
    kept = Kept()
    asked: list[float | None] = []

    def sweep(within_s: float | None) -> tuple[str, ...]:
        asked.append(within_s)
        if within_s is None:
            raise Interrupted(2)
        return ("deleted 3 objects",)

    with (
        pytest.raises(Interrupted),
        clearing(standing(kept), ["wb-1-small-0"], kept.said.append, sweep),
    ):
        pass
    assert asked == [None, SOON_S]
    assert kept.said[-1] == "deleted 3 objects"
