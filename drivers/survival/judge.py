"""What may be in the store after a cut, by what it had acknowledged before. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import model_validator

from weighbridge.common.endpoint import ObjectApi
from weighbridge.common.record import Record
from weighbridge.drivers.survival.operation import (
    Bucket,
    ObjectName,
    Operation,
    Version,
    object_name,
)
from weighbridge.results.record.durability import Way


class Expected(Record):
    """An object, and every state that it may have after a cut."""

    api: ObjectApi
    container: Bucket
    name: ObjectName
    size_bytes: int
    way: Way = "plain"
    acknowledged: Literal["written", "deleted", "nothing"]
    """The last state that was acknowledged before the cut."""
    allowed: tuple[Version, ...]
    """Versions that may be there."""
    may_be_absent: bool
    older: tuple[Version, ...] = ()
    """Other versions that had been written before the cut: it is a fault if one is there."""
    in_flight: bool = False
    """Whether a request was sent and not answered at the cut."""

    @model_validator(mode="after")
    def _has_a_state(self) -> Expected:
        if not self.allowed and not self.may_be_absent:
            raise ValueError("an object that may have no state at all")
        return self

    @property
    def object_name(self) -> str:
        """Unique over all APIs and containers."""
        return object_name(self.api, self.container, self.name)


def expected_after(
    operations: Iterable[Operation], before_s: float, after_s: float
) -> tuple[Expected, ...]:
    """Every object of which an operation had been sent at a cut between these two moments.

    Moments are of CLOCK_MONOTONIC, in seconds. What was answered before `before_s` is acknowledged,
    what was sent after `after_s` did not happen, and what lies between may have happened.
    Operations of an object are in their order.
    """
    histories: dict[tuple[str, str, str], list[Operation]] = {}
    for one in operations:
        if one.sent_s <= after_s:
            histories.setdefault((one.api, one.container, one.name), []).append(one)
    return tuple(_expected(history, before_s) for history in histories.values())


def _expected(history: list[Operation], before_s: float) -> Expected:
    settled = [at for at, one in enumerate(history) if _settled(one, before_s)]
    last = settled[-1] if settled else None
    # What failed, or was never answered, may be carried out at any time.
    possible = [
        one
        for at, one in enumerate(history)
        if at == last or (not one.acknowledged) or last is None or at > last
    ]
    allowed = tuple(one.version for one in possible if one.kind == "write")
    older = tuple(
        one.version for one in history if one.kind == "write" and one.version not in allowed
    )
    known = None if last is None else history[last]
    return Expected(
        api=history[0].api,
        container=history[0].container,
        name=history[0].name,
        size_bytes=history[0].size_bytes,
        way=history[0].way,
        acknowledged=(
            "nothing" if known is None else "written" if known.kind == "write" else "deleted"
        ),
        allowed=allowed,
        may_be_absent=known is None or any(one.kind == "delete" for one in possible),
        older=older,
        in_flight=any(one.answered_s is None or one.answered_s >= before_s for one in history),
    )


def _settled(one: Operation, before_s: float) -> bool:
    return one.acknowledged and one.answered_s is not None and one.answered_s < before_s
