"""What may be there after a cut, by what was acknowledged before."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from load_history import operation
from weighbridge.drivers.survival import Expected, Operation, expected_after

LATE = 1000.0


def after(*operations: Operation, at: float = LATE, until: float | None = None) -> Expected:
    (found,) = expected_after(operations, at, at if until is None else until)
    return found


def test_what_was_acknowledged_last_must_be_there_and_older_versions_must_not() -> None:
    found = after(operation(1), operation(2))
    assert (found.acknowledged, found.allowed, found.older) == ("written", (2,), (1,))
    assert not found.may_be_absent
    assert not found.in_flight


def test_an_object_whose_deletion_was_acknowledged_must_be_gone() -> None:
    found = after(operation(1), operation(2, "delete"))
    assert (found.acknowledged, found.allowed, found.older) == ("deleted", (), (1,))
    assert found.may_be_absent


def test_an_object_that_was_written_again_after_its_deletion_must_be_there() -> None:
    found = after(operation(1), operation(2, "delete"), operation(3))
    assert (found.acknowledged, found.allowed, found.older) == ("written", (3,), (1,))
    assert not found.may_be_absent


def test_an_overwrite_in_flight_may_have_happened_or_not() -> None:
    found = after(operation(1), operation(2), at=2.2)
    assert (found.allowed, found.older, found.in_flight) == ((1, 2), (), True)
    assert not found.may_be_absent


def test_a_deletion_in_flight_may_have_happened_or_not() -> None:
    found = after(operation(1), operation(2, "delete"), at=2.2)
    assert (found.acknowledged, found.allowed, found.may_be_absent) == ("written", (1,), True)


def test_what_was_sent_or_answered_while_the_mark_was_made_may_have_happened_or_not() -> None:
    found = after(operation(1), operation(2), at=1.9, until=2.7)
    assert (found.allowed, found.in_flight) == ((1, 2), True)
    answered = after(operation(1), operation(2), at=2.3, until=2.7)
    assert (answered.allowed, answered.in_flight) == ((1, 2), True)


def test_what_was_sent_after_the_cut_did_not_happen() -> None:
    found = after(operation(1), operation(2), at=1.8)
    assert (found.allowed, found.older, found.in_flight) == ((1,), (), False)
    assert expected_after([operation(1)], 0.5, 0.6) == ()


def test_an_answer_at_the_very_moment_of_the_mark_is_not_taken_for_one_before_it() -> None:
    assert after(operation(1), at=1.5).acknowledged == "nothing"


def test_what_was_never_acknowledged_may_be_there_or_not() -> None:
    found = after(operation(1, answered_s=None, acknowledged=False, error="timed out"))
    assert (found.acknowledged, found.allowed, found.may_be_absent) == ("nothing", (1,), True)
    assert found.in_flight


@pytest.mark.parametrize("kind", ["write", "delete"])
def test_a_failed_operation_stays_possible_but_an_answered_one_is_not_in_flight(kind: str) -> None:
    failed = operation(2, kind, acknowledged=False, error="503")
    found = after(operation(1), failed)
    assert found.allowed == ((1, 2) if kind == "write" else (1,))
    assert found.may_be_absent == (kind == "delete")
    assert (found.acknowledged, found.in_flight) == ("written", False)


def test_a_failed_write_stays_possible_even_after_another_that_was_acknowledged() -> None:
    failed = operation(2, acknowledged=False, answered_s=None, error="timed out")
    found = after(operation(1), failed, operation(3))
    assert (found.allowed, found.older) == ((2, 3), (1,))


def test_objects_of_one_name_in_other_containers_and_apis_are_others() -> None:
    one, two, three = operation(1), operation(1, container="other"), operation(1, api="swift")
    assert len(expected_after([one, two, three], LATE, LATE)) == 3


# A model: each operation takes effect at one moment after it was sent, if at all, and before its
# acknowledgement. What can be seen at any moment of the cut must be allowed, and nothing else.
@st.composite
def histories(draw: st.DrawFn) -> list[Operation]:
    moment, found = 0.0, []
    for version in range(1, draw(st.integers(1, 5)) + 1):
        sent = moment + draw(st.sampled_from([0.5, 1.0, 2.0]))
        moment = sent + draw(st.sampled_from([0.5, 1.0, 3.0]))
        how = draw(st.sampled_from(["acknowledged"] * 4 + ["refused", "unanswered"]))
        kind = draw(st.sampled_from(["write", "delete"])) if version > 1 else "write"
        found.append(
            operation(
                version,
                kind,
                sent_s=sent,
                answered_s=None if how == "unanswered" else moment,
                acknowledged=how == "acknowledged",
            )
        )
        if how != "acknowledged":
            break
    return found


def states_at(history: Sequence[Operation], cut_s: float) -> set[int]:
    """Every state at a cut, as the version that is there; 0: none."""
    states = {0}
    for one in history:
        if one.sent_s > cut_s:
            break
        result = one.version if one.kind == "write" else 0
        done = one.acknowledged and one.answered_s is not None and one.answered_s < cut_s
        states = {result} if done else {*states, result}
    return states


@settings(max_examples=500, deadline=None, derandomize=True, database=None)
@given(histories(), st.integers(0, 40), st.integers(0, 8))
def test_allowed_is_what_a_store_that_keeps_its_word_can_hold_at_the_cut(
    history: list[Operation], begin: int, length: int
) -> None:
    t0, t1 = begin / 2 + 0.25, (begin + length) / 2 + 0.25
    moments = [t0, t1, *(moment for one in history for moment in _around(one))]
    possible = set().union(*(states_at(history, at) for at in moments if t0 <= at <= t1))
    found = expected_after(history, t0, t1)
    if not found:
        assert possible == {0}
        return
    (one,) = found
    assert {*one.allowed, *([0] * one.may_be_absent)} == possible
    known = {each.version for each in history if each.kind == "write" and each.sent_s <= t1}
    assert {*one.allowed, *one.older} == known
    assert not {*one.allowed} & {*one.older}


def _around(one: Operation) -> tuple[float, ...]:
    """Just before and after it was sent and answered."""
    ends = [one.sent_s] if one.answered_s is None else [one.sent_s, one.answered_s]
    return tuple(math.nextafter(end, way) for end in ends for way in (-math.inf, math.inf))
