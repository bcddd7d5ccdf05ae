from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from weighbridge.common.errors import DriverError, TargetError
from weighbridge.conductor.clearing import clearing
from weighbridge.conductor.interruption import Interrupted


class Kept:
    """A gateway that outlives its deployment; `fails`: errors of its next attempts to clear."""

    def __init__(self, *fails: BaseException) -> None:
        self.asked: list[Sequence[str]] = []
        self.fails = list(fails)
        self.said: list[str] = []

    def clear(self, buckets: Sequence[str]) -> tuple[str, ...]:
        self.asked.append(buckets)
        if self.fails:
            raise self.fails.pop(0)
        return (f"deleted {', '.join(buckets)}",)

    def through(self, error: BaseException | None = None) -> None:
        deployment: Any = SimpleNamespace(running_gateway=self)
        with clearing(deployment, ["wb-1-small-0"], self.said.append):
            if error is not None:
                raise error


def test_buckets_are_deleted_after_success() -> None:
    kept = Kept()
    kept.through()
    assert kept.asked == [["wb-1-small-0"]]
    assert kept.said == ["deleted wb-1-small-0"]


@pytest.mark.parametrize("error", [Interrupted(15), DriverError("it broke"), KeyError("a defect")])
def test_buckets_are_deleted_after_any_error_which_stays_the_error(
    error: BaseException,
) -> None:
    kept = Kept()
    with pytest.raises(type(error)) as raised:
        kept.through(error)
    assert raised.value is error
    assert kept.said == ["deleted wb-1-small-0"]


def test_a_bucket_that_cannot_be_deleted_is_an_error_unless_there_is_another() -> None:
    kept = Kept(TargetError("left: wb-1-small-0"))
    with pytest.raises(TargetError, match="left: wb-1-small-0"):
        kept.through()
    assert len(kept.asked) == 1


def test_a_bucket_that_cannot_be_deleted_after_another_error_is_reported_beside_it() -> None:
    kept = Kept(TargetError("left: wb-1-small-0"))
    with pytest.raises(Interrupted):
        kept.through(Interrupted(2))
    assert kept.said == ["left: wb-1-small-0"]


def test_interrupted_deleting_is_repeated_to_its_end() -> None:
    kept = Kept(Interrupted(2))
    with pytest.raises(Interrupted):
        kept.through()
    assert len(kept.asked) == 2
    assert kept.said == ["deleted wb-1-small-0"]
