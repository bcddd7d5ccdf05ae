from __future__ import annotations

from typing import Any

import pytest

from weighbridge.drivers.kind import KINDS
from weighbridge.suites import Api, Workload


def unfit(some: Workload, api: Api, driver: str) -> tuple[str, ...]:
    return KINDS[driver].unfit(some, api)


def workload(**changed: Any) -> Workload:
    known: dict[str, Any] = {
        "name": "some",
        "objects": {"size": "4MiB"},
        "operations": {"read": 1},
        "workers": [4, 16],
        "runtime": "3s",
    }
    return Workload.model_validate({**known, **changed})


@pytest.mark.parametrize("pick", ["uniform", "sequential"])
@pytest.mark.parametrize("operation", ["read", "write"])
def test_one_operation_on_objects_of_one_size_is_possible_with_cephs_benchmarks(
    operation: str, pick: str
) -> None:
    some = workload(operations={operation: 1}, pick=pick)
    apis = (("rados", "rados"), ("rbd", "fio"), ("cephfs", "fio"))
    assert [unfit(some, api, driver) for api, driver in apis] == [()] * 3


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"operations": {"read": 1, "write": 1}}, "in a workload, not read and write"),
        ({"operations": {"list": 1}}, "not list"),
        ({"objects": {"size": {"uniform": ["1MB", "2MB"]}}}, "objects of one size"),
        ({"pick": {"zipf": 1.1}}, "not by popularity"),
        ({"rate_per_s": 5}, "not at a rate"),
        ({"verify": True}, "is not verified"),
        ({"objects": {"size": "4KiB", "per_container": 15}}, "16 workers have 15 objects to read"),
        ({"objects": {"size": "0B"}}, "a size above 0"),
        ({"objects": {"size": "100MiB"}, "workers": [1]}, "accept no more than 90 MiB at once"),
        ({"objects": {"size": "64MiB"}}, "16 workers with 64 MiB each are more than the 512 MiB"),
    ],
)
def test_what_cephs_benchmarks_cannot_do_is_reported_before_anything_starts(
    changed: dict[str, Any], fault: str
) -> None:
    assert any(fault in one for one in unfit(workload(**changed), "rados", "rados"))


@pytest.mark.parametrize("api", ["swift", "s3"])
def test_cosbench_is_refused_connections_that_it_would_not_make(api: Api) -> None:
    for connections in ("per-request", {"reconnect_every": 9}):
        some = workload(connections=connections)
        assert any("connections" in one for one in unfit(some, api, "cosbench"))
        assert unfit(some, api, "locust") == ()
    assert unfit(workload(connections="keep-alive"), api, "cosbench") == ()


def test_block_devices_and_files_accept_requests_that_an_osd_would_not() -> None:
    assert unfit(workload(objects={"size": "100MiB"}, workers=[1]), "rbd", "rados") == ()
