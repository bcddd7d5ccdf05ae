"""What a suite measures of hosts, and which tools it needs on them."""

from __future__ import annotations

from typing import Any

import pytest

from stub_run import SUITE
from weighbridge.common.errors import UsageError
from weighbridge.conductor.passes import (
    asked_of_hosts,
    finding,
    left_out_of_search,
    passes_of,
    wants_tools,
)
from weighbridge.suites import Suite
from weighbridge.suites.loader import find, load

WORKLOADS = [
    {
        "name": name,
        "objects": {"size": size},
        "operations": operations,
        "workers": [1],
        "runtime": 1.0,
    }
    for name, size, operations in (
        ("fixed", 64_000, {"read": 1}),
        ("again", 64_000, {"write": 1}),
        ("drawn", {"uniform": [1000, 3000]}, {"write": 1, "delete": 1}),
        ("listed", 77, {"list": 1}),
    )
]


def suite(**changes: object) -> Suite:
    return Suite.model_validate(
        {"name": "asking", "about": "test", "workloads": WORKLOADS, **changes}
    )


def test_disks_are_measured_once_for_each_size_and_for_the_mean_of_random_sizes() -> None:
    asked = asked_of_hosts(suite(layers=["disk", "network"]), sameness=False)
    assert asked.sizes == (2000, 64_000)
    assert asked.all_pairs
    assert not asked.sameness


def test_without_layers_hosts_are_only_measured_for_sameness() -> None:
    assert not asked_of_hosts(suite(), sameness=False)
    assert not asked_of_hosts(suite(layers=["rados"]), sameness=False)
    assert asked_of_hosts(suite(), sameness=True)


def test_tools_are_needed_for_fio() -> None:
    assert wants_tools(suite(layers=["rbd"]))
    assert wants_tools(suite(layers=["cephfs"]))
    assert wants_tools(suite(api=["rbd"]))
    assert not wants_tools(suite(layers=["rados", "disk"]))


def test_a_driver_that_cannot_load_gateways_is_refused() -> None:
    with pytest.raises(UsageError, match="fio cannot load swift"):
        passes_of(suite(driver="fio"), ())


def test_two_drivers_take_turns_in_the_order_in_which_the_suite_names_them() -> None:
    workloads = WORKLOADS[:2]
    named = [
        [one.driver for one in passes_of(suite(driver=driver, workloads=workloads), ())]
        for driver in ("locust,cosbench", "cosbench,locust")
    ]
    assert named == [["locust", "cosbench"], ["cosbench", "locust"]]


def trial(**more: Any) -> Suite:
    return Suite.model_validate({**SUITE, **more})


def workload(name: str, operations: dict[str, int], **more: Any) -> dict[str, Any]:
    return {**SUITE["workloads"][0], "name": name, "operations": operations, **more}


def test_reads_and_writes_are_searched_at_their_largest_worker_count_once() -> None:
    found = finding(trial(repeats=5, control=True, further={"blocks": 1, "within": "5m"}))
    assert [(one.name, one.workers) for one in found.workloads] == [
        ("small", (4,)),
        ("mixed", (2,)),
    ]
    assert (found.repeats, found.control, found.further) == (1, False, None)
    assert finding(trial(), repeats=3).repeats == 3


def test_other_workloads_are_left_out_and_named() -> None:
    given = trial(
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
        finding(trial(workloads=[workload("deletes", {"delete": 1})]))


def test_a_driver_that_sends_at_no_rate_is_refused() -> None:
    with pytest.raises(UsageError, match=r"small: .*not at a rate"):
        finding(trial(driver="cosbench"))


def test_the_default_suite_can_be_searched() -> None:
    found = finding(load(find("quick")))
    assert [(one.name, one.workers) for one in found.workloads] == [
        ("small-write", (16,)),
        ("small-read", (16,)),
        ("large-read", (4,)),
        ("large-write", (4,)),
    ]
