"""What may be there after a cut, by what was acknowledged before."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from load_history import operation
from weighbridge.drivers.survival import Operation, expected_after

LATE = 1000.0


REFUSED = {"acknowledged": False, "error": "503"}
UNANSWERED = {"acknowledged": False, "answered_s": None, "error": "timed out"}
ONE, TWO, THREE, GONE = operation(1), operation(2), operation(3), operation(2, "delete")
MUTE, BUSY = operation(2, **UNANSWERED), operation(2, **REFUSED)
KEPT = operation(2, "delete", **REFUSED)


@pytest.mark.parametrize(
    ("operations", "since", "until", "acknowledged", "allowed", "absent", "older", "in_flight"),
    [
        pytest.param([ONE, TWO], LATE, LATE, "written", (2,), False, (1,), False, id="the last"),
        pytest.param([ONE, GONE], LATE, LATE, "deleted", (), True, (1,), False, id="a deletion"),
        pytest.param([ONE, GONE, THREE], LATE, LATE, "written", (3,), False, (1,), False, id="new"),
        # What was in flight may have happened or not.
        pytest.param([ONE, TWO], 2.2, 2.2, "written", (1, 2), False, (), True, id="an overwrite"),
        pytest.param([ONE, GONE], 2.2, 2.2, "written", (1,), True, (), True, id="a delete"),
        # So may what was sent or answered while the mark was made, also at its very moment.
        pytest.param([ONE, TWO], 1.9, 2.7, "written", (1, 2), False, (), True, id="sent"),
        pytest.param([ONE, TWO], 2.3, 2.7, "written", (1, 2), False, (), True, id="answered"),
        pytest.param([ONE], 1.5, 1.5, "nothing", (1,), True, (), True, id="the very moment"),
        # What was sent after the cut did not happen.
        pytest.param([ONE, TWO], 1.8, 1.8, "written", (1,), False, (), False, id="after"),
        # What failed stays possible; what was answered is not in flight.
        pytest.param([ONE, BUSY], LATE, LATE, "written", (1, 2), False, (), False, id="refused"),
        pytest.param([ONE, KEPT], LATE, LATE, "written", (1,), True, (), False, id="not deleted"),
        pytest.param([ONE, MUTE, THREE], LATE, LATE, "written", (2, 3), False, (1,), True, id="2"),
        pytest.param(
            [operation(1, **UNANSWERED)], LATE, LATE, "nothing", (1,), True, (), True, id="never"
        ),
    ],
)
def test_what_may_be_there_follows_from_what_was_acknowledged_before(
    operations: list[Operation],
    since: float,
    until: float,
    acknowledged: str,
    allowed: tuple[int, ...],
    absent: bool,
    older: tuple[int, ...],
    in_flight: bool,
) -> None:
    (one,) = expected_after(operations, since, until)
    state = (one.acknowledged, one.allowed, one.may_be_absent, one.older, one.in_flight)
    assert state == (acknowledged, allowed, absent, older, in_flight)


def test_objects_of_one_name_in_other_containers_and_apis_are_others() -> None:
    one, two, three = operation(1), operation(1, container="other"), operation(1, api="swift")
    assert len(expected_after([one, two, three], LATE, LATE)) == 3
    assert expected_after([one], 0.5, 0.6) == ()


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
