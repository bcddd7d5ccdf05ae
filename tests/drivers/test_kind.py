"""What is known of drivers before they run."""

from __future__ import annotations

from itertools import product

import pytest

from weighbridge.drivers.kind import KINDS, loading
from weighbridge.results.record.driver_traits import driver_label, tool_label, traits_of


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
