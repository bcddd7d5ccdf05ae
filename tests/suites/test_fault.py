"""Faults of workloads: what a suite may say of them."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from weighbridge.suites import Fault, Suite, Workload

WORKLOAD = {
    "name": "host-dies",
    "objects": {"size": "4KiB"},
    "operations": {"read": 1},
    "workers": [8],
    "runtime": "100s",
}


def workload(fault: object, **more: object) -> Workload:
    return Workload.model_validate({**WORKLOAD, "fault": fault, **more})


def test_a_fault_says_what_how_and_when() -> None:
    fault = workload({"at": "30s", "kill": "store-3/osd.2", "back": "1.5m"}).fault
    assert isinstance(fault, Fault)
    assert (fault.at, fault.back, fault.last_s) == (30, 90, 90)
    assert (fault.way, fault.what) == ("kill", "store-3/osd.2")
    assert fault.words == "kill store-3/osd.2 at 30 s, back at 90 s"
    for way, what in (
        ("unplug", "store-3"),
        ("fail", "store-3/wb0"),
        ("fail", "storage-disk"),
        ("silence", "storage-host"),
    ):
        found = workload({"at": "30s", way: what}).fault
        assert found is not None
        assert (found.way, found.what) == (way, what)
        assert found.words == f"{way} {what} at 30 s, not back"


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ({"at": "30s"}, "set one of kill, silence, unplug, fail"),
        ({"at": "30s", "fail": "store-3"}, "`fail` is for disks"),
        ({"at": "30s", "fail": "storage-host"}, "`fail` is for disks"),
        ({"at": "30s", "kill": "storage-disk"}, "kill: storage-disk: `fail` is for disks"),
        ({"at": "30s", "kill": "store-3", "silence": "store-3"}, "set one of"),
        ({"at": "30s", "silence": "store-3/osd.2"}, "is a daemon, and its host would answer"),
        ({"at": "30s", "unplug": "store-3/osd.2"}, "unplug: store-3/osd.2 is a daemon"),
        ({"at": "30s", "silence": "gateway-daemon"}, "is a daemon, and its host would answer"),
        ({"at": "30s", "kill": "store-3", "back": "30s"}, "is not after the fault at 30s"),
        ({"at": "2s", "kill": "store-3"}, "greater than or equal to 5"),
        ({"at": "30s", "kill": "store 3"}, "match"),
        ({"at": "96s", "kill": "store-3"}, "the window ends at 100 s"),
        ({"at": "30s", "kill": "store-3", "back": "2m"}, "the window ends at 100 s"),
    ],
)
def test_a_fault_that_cannot_be_seen_is_refused(fault: object, why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        workload(fault)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"rate_per_s": 100, "overload": {"within": "1s"}}, "cannot be combined with `overload`"),
        ({"operations": {"delete": 1}}, "only deletes ends when no objects are left"),
    ],
)
def test_a_fault_needs_a_load_that_goes_on(more: dict[str, object], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        workload({"at": "30s", "kill": "store-3"}, **more)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"users": "sdk"}, "only the engine measures how long its workers wait"),
        ({"cache": "every 10s"}, "hosts that are gone have no caches to drop"),
    ],
)
def test_a_suite_with_a_fault_uses_the_engine_and_drops_no_caches_meanwhile(
    more: dict[str, object], why: str
) -> None:
    fault = {"at": "30s", "kill": "store-3"}
    given = {"name": "trial", "about": "A trial", "workloads": [{**WORKLOAD, "fault": fault}]}
    assert Suite.model_validate(given)
    with pytest.raises(ValidationError, match=why):
        Suite.model_validate({**given, **more})
