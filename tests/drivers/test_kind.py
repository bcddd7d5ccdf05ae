"""What is known of drivers before they run."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from tests.drivers.rados.conftest import one_kind
from weighbridge.drivers.kind import KINDS, loading
from weighbridge.results.record.driver_traits import driver_label, tool_label, traits_of
from weighbridge.suites import Api, Workload


def test_each_driver_is_registered_by_its_own_name() -> None:
    assert all(kind.traits.name == name for name, kind in KINDS.items())
    assert {"locust", "cosbench", "rados", "fio"} <= set(KINDS)


def test_drivers_that_load_the_same_gateway_do_not_find_each_others_buckets() -> None:
    marks = [kind.mark for kind in KINDS.values() if kind.apis]
    assert len(set(marks)) == len(marks)


def test_no_two_drivers_declare_the_same_option() -> None:
    options = [word for kind in KINDS.values() for option in kind.options for word in option.opts]
    assert len(set(options)) == len(options)


@pytest.mark.parametrize(
    ("layer", "drivers"),
    [
        ("rados", ("rados",)),
        ("rbd", ("rados", "fio")),
        ("cephfs", ("fio",)),
        ("gateway", ("locust",)),
        ("object-server", ("locust",)),
    ],
)
def test_a_layer_is_loaded_by_its_drivers_in_the_order_of_their_ranks(
    layer: str, drivers: tuple[str, ...]
) -> None:
    assert loading(layer) == drivers  # type: ignore[arg-type] # a layer's name


def test_traits_are_found_by_the_driver_and_by_each_of_its_tools() -> None:
    assert traits_of("rbd-bench") == traits_of("rados") == KINDS["rados"].traits
    assert tool_label("rbd-bench") == "rbd bench"
    assert tool_label("locust-engine") == "the engine"
    assert tool_label("cosbench") == "COSBench"


def test_of_a_driver_that_is_not_installed_only_the_name_is_known() -> None:
    assert driver_label("strange") == tool_label("strange") == "strange"
    assert (traits_of("strange").rounding_us, traits_of("strange").beside_gateway) == (0, False)


def test_what_sets_a_drivers_figures_apart_is_reported_for_the_layouts_it_applies_to() -> None:
    (stalls,) = [one for one in traits_of("cosbench").caveats if one.fact]
    fronts = ("beast port=80", "beast port=80 tcp_nodelay=1", "civetweb")
    applies = {
        (name, front): stalls.applies({name: front})
        for name, front in product(("rgw: rgw_frontends", "other"), fronts)
    }
    assert [where for where, there in applies.items() if there] == [
        ("rgw: rgw_frontends", "beast port=80")
    ]


def unfit(some: Workload, api: Api, driver: str) -> tuple[str, ...]:
    return KINDS[driver].unfit(some, api)


def workload(**changed: Any) -> Workload:
    return one_kind(**{"objects": {"size": "4MiB"}, "workers": [4, 16], **changed})


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
