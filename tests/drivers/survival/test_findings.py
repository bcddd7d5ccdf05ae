"""What a read object and its listing mean, by what was expected."""

from __future__ import annotations

from typing import Any

import pytest

from weighbridge.drivers.survival import Expected
from weighbridge.drivers.survival.judge import Sight, counted, judged, listing_finding
from weighbridge.results.record.durability import Finding

STATES: dict[str, dict[str, Any]] = {
    "written": {"acknowledged": "written", "allowed": (2,), "may_be_absent": False},
    "overwritten in flight": {"acknowledged": "written", "allowed": (1, 2), "may_be_absent": False},
    "deleted in flight": {"acknowledged": "written", "allowed": (2,), "may_be_absent": True},
    "deleted": {"acknowledged": "deleted", "allowed": (), "may_be_absent": True},
    "rewritten in flight": {"acknowledged": "deleted", "allowed": (2,), "may_be_absent": True},
    "never": {"acknowledged": "nothing", "allowed": (1, 2), "may_be_absent": True},
}
SIGHTS = {
    "v2": Sight("version", 2, ""),
    "v1": Sight("version", 1, ""),
    "gone": Sight("absent", None, ""),
    "torn": Sight("torn", None, ""),
    "wrong": Sight("wrong", None, ""),
    "mute": Sight("unreadable", None, ""),
}
UNREAD: dict[str, Finding] = {"mute": "unreadable"}
DAMAGE: dict[str, Finding] = {"torn": "torn", "wrong": "wrong", **UNREAD}
BACK: dict[str, Finding] = {"v1": "undead", "torn": "undead", "wrong": "undead", **UNREAD}
WANTED: dict[str, dict[str, Finding]] = {
    "written": {"v1": "stale", "gone": "lost", **DAMAGE},
    "overwritten in flight": {"gone": "lost", **DAMAGE},
    "deleted in flight": {"v1": "stale", **DAMAGE},
    "deleted": {"v2": "undead", **BACK},
    "rewritten in flight": BACK,
    "never": {"torn": "wrong", "wrong": "wrong"},
}


def expected(state: str, **given: Any) -> Expected:
    usual = {"api": "swift", "container": "wb-x", "name": "n", "size_bytes": 4096}
    return Expected.model_validate(usual | STATES[state] | given)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("sight", SIGHTS)
def test_a_read_has_the_finding_that_its_object_allows(state: str, sight: str) -> None:
    found = judged(expected(state), SIGHTS[sight])
    assert found.finding == WANTED[state].get(sight)
    counted([(found, None)])  # raises where the numbers do not add up


@pytest.mark.parametrize(
    ("state", "sight", "listed", "finding"),
    [
        ("written", "v2", True, None),
        ("written", "v2", False, "not-listed"),
        ("overwritten in flight", "v1", False, "not-listed"),
        ("written", "v1", False, None),  # stale: counted by its read
        ("written", "mute", False, None),
        ("written", "gone", True, "listed-lost"),
        ("written", "gone", False, None),
        ("deleted in flight", "v2", False, None),
        ("deleted in flight", "gone", True, None),
        ("deleted", "gone", True, "listed-deleted"),
        ("deleted", "gone", False, None),
        ("deleted", "v1", True, None),  # undead
        ("rewritten in flight", "gone", True, None),
        ("never", "v1", False, None),
        ("never", "gone", True, None),
    ],
)
def test_a_listing_has_a_finding_where_it_contradicts_what_is_sure(
    state: str, sight: str, listed: bool, finding: Finding | None
) -> None:
    found = judged(expected(state), SIGHTS[sight])
    assert listing_finding(found, listed=listed) == finding


def test_objects_are_counted_by_kind_and_those_never_acknowledged_apart() -> None:
    found = [
        (judged(expected("written", in_flight=True), SIGHTS["v2"]), "not-listed"),
        (judged(expected("never", in_flight=True), SIGHTS["wrong"]), None),
        (judged(expected("deleted", api="s3"), SIGHTS["v1"]), None),
    ]
    s3, swift = counted(found)  # type: ignore[arg-type]
    assert (s3.api, s3.deleted, s3.undead, s3.acknowledged) == ("s3", 1, 1, 0)
    assert (swift.acknowledged, swift.unacknowledged, swift.in_flight) == (1, 1, 1)
    assert (swift.wrong, swift.not_listed) == (1, 1)


def test_the_newest_copy_decides_between_lost_and_stale_alone() -> None:
    gone = SIGHTS["gone"]
    assert judged(expected("written"), gone, SIGHTS["v2"]).finding == "stale"
    assert judged(expected("written"), gone, SIGHTS["torn"]).finding == "torn"
    assert judged(expected("written"), gone, gone).finding == "lost"
    assert judged(expected("written"), gone, SIGHTS["mute"]).finding == "lost"
    assert judged(expected("written"), SIGHTS["v1"], SIGHTS["v2"]).finding == "stale"
