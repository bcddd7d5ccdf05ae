"""What a suite measures of hosts, and which tools it needs on them."""

from __future__ import annotations

import pytest

from weighbridge.common.errors import UsageError
from weighbridge.conductor.passes import asked_of_hosts, passes_of, wants_tools
from weighbridge.suites import Suite

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
