"""What may be in the store after a cut, by what it had acknowledged before. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

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
from weighbridge.drivers.survival.orders import Kind
from weighbridge.results.run.durability import Example, Finding, FoundObjects, Way


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
    settled = [
        at
        for at, one in enumerate(history)
        if one.acknowledged and one.answered_s is not None and one.answered_s < before_s
    ]
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


_WORDS: Final = 300
_DOUBTED: Final = ("lost", "stale", "undead")


class Sight(NamedTuple):
    """What was read of an object. `version` is set where it is exactly one."""

    what: Literal["absent", "version", "torn", "wrong", "unreadable"]
    version: int | None
    words: str


class Judged(NamedTuple):
    """An object, its finding by its read, and what was seen, in words."""

    expected: Expected
    sight: Sight
    finding: Finding | None
    words: str

    def example(self, finding: Finding) -> Example:
        """This object as one with a finding."""
        one = self.expected
        what = f"{_wanted(one)}; found: {self.words}"
        if finding in ("not-listed", "listed-lost", "listed-deleted"):
            what += ", and not listed" if finding == "not-listed" else ", yet listed"
        return Example(
            finding=finding,
            api=one.api,
            container=one.container,
            name=one.name,
            what=what[:_WORDS],
        )


def is_doubted(expected: Expected, sight: Sight) -> bool:
    """Whether Swift should be asked for the newest of all copies before this is believed."""
    return expected.api == "swift" and finding_of(expected, sight) in _DOUBTED


def judged(expected: Expected, sight: Sight, newest: Sight | None = None) -> Judged:
    """What an object's read means; `newest`: what Swift gave with X-Newest.

    An object that is there with X-Newest alone is stale, not lost.
    """
    finding, words = finding_of(expected, sight), sight.words
    if newest is not None and newest.what != "unreadable":
        words += f"; with X-Newest: {newest.words}"
        if finding == "lost" and newest.what != "absent":
            finding = finding_of(expected, newest) or "stale"
    return Judged(expected, sight, finding, words)


def finding_of(expected: Expected, sight: Sight) -> Finding | None:
    """The finding of what was read once."""
    if sight.what == "unreadable":
        return None if expected.acknowledged == "nothing" else "unreadable"
    if sight.what == "absent":
        return None if expected.may_be_absent else "lost"
    if sight.version in expected.allowed:
        return None
    if expected.acknowledged == "deleted":
        return "undead"
    if expected.acknowledged == "nothing":
        return "wrong"
    if sight.what == "version":
        return "stale"
    return "torn" if sight.what == "torn" else "wrong"


def listing_finding(one: Judged, *, listed: bool) -> Finding | None:
    """The finding of an object's listing. What was in flight may be listed or not."""
    expected = one.expected
    if one.finding == "lost":
        return "listed-lost" if listed else None
    if one.finding is not None or expected.acknowledged == "nothing":
        return None
    if not expected.may_be_absent:
        return None if listed else "not-listed"
    return "listed-deleted" if listed and not expected.allowed else None


def counted(found: Iterable[tuple[Judged, Finding | None]]) -> tuple[FoundObjects, ...]:
    """Objects with the findings of their listings, summed up by kind."""
    counts: dict[Kind, Counter[str]] = {}
    for one, by_listing in found:
        expected = one.expected
        kind = Kind(api=expected.api, size_bytes=expected.size_bytes, way=expected.way)
        count = counts.setdefault(kind, Counter())
        state = {"written": "acknowledged", "deleted": "deleted", "nothing": "unacknowledged"}
        count[state[expected.acknowledged]] += 1
        if expected.acknowledged != "nothing":
            count["in_flight"] += expected.in_flight
        for finding in (one.finding, by_listing):
            if finding is not None:
                count[finding.replace("-", "_")] += 1
    needed = {"acknowledged": 0, "deleted": 0, "in_flight": 0}
    return tuple(
        FoundObjects(**kind.model_dump(), **{**needed, **count})
        for kind, count in sorted(
            counts.items(), key=lambda item: (item[0].api, item[0].way, item[0].size_bytes)
        )
    )


def unreadable(expected: Iterable[Expected], why: str) -> tuple[FoundObjects, ...]:
    """The objects of a store that does not serve."""
    return counted((judged(one, Sight("unreadable", None, why)), None) for one in expected)


def _wanted(expected: Expected) -> str:
    versions = [f"version {version}" for version in expected.allowed]
    if expected.acknowledged == "deleted":
        states = ["a deletion", *versions]
    elif expected.acknowledged == "nothing":
        states = ["nothing", *versions]
    else:
        states = [*versions, *["a deletion"] * expected.may_be_absent]
    more = f" (sent: {', '.join(states[1:])})" if len(states) > 1 else ""
    return f"acknowledged: {states[0]}{more}"
