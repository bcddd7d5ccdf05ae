from __future__ import annotations

from typing import Any

import pytest

from stub_run import SUITE
from weighbridge.common.errors import UsageError
from weighbridge.conductor.passes import finding, left_out_of_search
from weighbridge.suites import Suite
from weighbridge.suites.loader import find, load


def suite(**more: Any) -> Suite:
    return Suite.model_validate({**SUITE, **more})


def workload(name: str, operations: dict[str, int], **more: Any) -> dict[str, Any]:
    return {**SUITE["workloads"][0], "name": name, "operations": operations, **more}


def test_reads_and_writes_are_searched_at_their_largest_worker_count_once() -> None:
    found = finding(suite(repeats=5, control=True, further={"blocks": 1, "within": "5m"}))
    assert [(one.name, one.workers) for one in found.workloads] == [
        ("small", (4,)),
        ("mixed", (2,)),
    ]
    assert (found.repeats, found.control, found.further) == (1, False, None)
    assert finding(suite(), repeats=3).repeats == 3


def test_other_workloads_are_left_out_and_named() -> None:
    given = suite(
        workloads=[
            workload("reads", {"read": 1}),
            workload("deletes", {"delete": 1}),
            workload("lists", {"list": 1, "read": 1}),
            workload("paced", {"read": 1}, rate_per_s=5.0),
        ]
    )
    found = finding(given)
    assert [one.name for one in found.workloads] == ["reads"]
    assert "deletes, lists, paced" in left_out_of_search(given, found)
    assert left_out_of_search(found, found) == ""


def test_a_suite_without_reads_and_writes_is_refused() -> None:
    with pytest.raises(UsageError, match="has no reads or writes"):
        finding(suite(workloads=[workload("deletes", {"delete": 1})]))


def test_a_driver_that_sends_at_no_rate_is_refused() -> None:
    with pytest.raises(UsageError, match=r"small: .*not at a rate"):
        finding(suite(driver="cosbench"))


def test_the_default_suite_can_be_searched() -> None:
    found = finding(load(find("quick")))
    assert [(one.name, one.workers) for one in found.workloads] == [
        ("small-write", (16,)),
        ("small-read", (16,)),
        ("large-read", (4,)),
        ("large-write", (4,)),
    ]
