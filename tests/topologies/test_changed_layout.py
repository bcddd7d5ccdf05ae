"""A layout with further settings: how keys are split, its name, and the places of its faults."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from weighbridge.common.document import Document, DocumentError, Fault
from weighbridge.gateways.rgw.settings import RgwSettings
from weighbridge.gateways.swift.settings import SwiftSettings
from weighbridge.topologies import loader
from weighbridge.topologies.loader import LONGEST_NAME, parse, path_of

LAB = loader.load_hardware(loader.shipped_hardware()["lab-cpu"])
TUNING = """name: trial
parameters:
  - key: one
  - key: two
"""


def base(text: str) -> loader.Planned:
    reference = parse(text)
    return loader.load_layout(
        loader.find(reference.name, loader.shipped_layouts(), "layout"), LAB, reference
    )


def places(changes: Mapping[str, object]) -> Mapping[str, Fault]:
    """Places of the changes: lines 3 and 4 of a tuning's file."""
    document = Document("tuning.yaml", TUNING)
    return {
        key: document.fault_at(("parameters", number, "key"), "")
        for number, key in enumerate(changes)
    }


def faults(text: str, changes: Mapping[str, object]) -> list[str]:
    with pytest.raises(DocumentError) as caught:
        loader.changed_layout(base(text), LAB, changes, places(changes).__getitem__)
    return [str(fault).splitlines()[0] for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("radosgw.threads", ("radosgw", "threads")),
        ("log", ("log",)),
        ("options.client.rgw_x", ("options", "client", "rgw_x")),
        ("options.client.rgw.gateway-1.rgw_x", ("options", "client.rgw.gateway-1", "rgw_x")),
        (
            "apache.options.clients.LimitRequestBody",
            ("apache", "options", "clients", "LimitRequestBody"),
        ),
        ("haproxy.options.global", ("haproxy", "options", "global")),
        ("nowhere.at.all", ("nowhere", "at", "all")),
        ("options.client", ("options", "client")),
    ],
)
def test_a_key_of_rgw_is_split_where_its_record_ends(key: str, path: tuple[str, ...]) -> None:
    assert path_of(key, RgwSettings) == path


@pytest.mark.parametrize(
    ("key", "path"),
    [
        (
            "options.object.app:object-server.keep_cache_size",
            ("options", "object", "app:object-server", "keep_cache_size"),
        ),
        ("options.proxy.filter:my.own.workers", ("options", "proxy", "filter:my.own", "workers")),
        ("proxy.error_suppression.limit", ("proxy", "error_suppression", "limit")),
        ("options.object", ("options", "object")),
    ],
)
def test_options_of_swift_are_split_into_server_section_and_option(
    key: str, path: tuple[str, ...]
) -> None:
    assert path_of(key, SwiftSettings) == path


def test_a_changed_layout_has_the_changes_of_its_base_and_further_ones() -> None:
    planned = loader.changed_layout(
        base("swift@swift-2.35:replicas=2"),
        LAB,
        {"object.keep_cache_private": True, "options.object.app:object-server.splice": True},
        Fault("t", 1, 1, "", ""),
    )
    assert planned.layout.release == "swift-2.35"
    assert planned.layout.settings["replicas"] == 2
    assert planned.layout.settings["object"]["keep_cache_private"] is True
    assert planned.layout.settings["options"] == {"object": {"app:object-server": {"splice": True}}}
    assert planned.gateway.settings.object.keep_cache_private  # type: ignore[attr-defined]
    assert loader.checked_again(planned.layout, LAB, "plan.json").layout == planned.layout
    assert "keep_cache_private: true" in planned.text


def test_the_base_is_unchanged() -> None:
    planned = base("null:threads=2")
    before = planned.layout.model_dump_json()
    loader.changed_layout(planned, LAB, {"threads": 4}, Fault("t", 1, 1, "", ""))
    assert planned.layout.model_dump_json() == before


def test_a_file_can_be_the_base() -> None:
    reference = parse("null:seed=3")
    path = loader.shipped_layouts()["null"]
    planned = loader.changed_layout(
        path, LAB, {"delay_ms": 5}, Fault("t", 1, 1, "", ""), reference=reference
    )
    assert (planned.layout.settings["seed"], planned.layout.settings["delay_ms"]) == (3, 5)
    assert planned.layout.name == "null-seed-3-delay-ms-5"


def test_settings_of_two_servers_with_the_same_name_give_two_names() -> None:
    names = {
        loader.changed_layout(
            base("swift"), LAB, {key: "20s"}, Fault("t", 1, 1, "", "")
        ).layout.name
        for key in ("proxy.node_timeout", "object.node_timeout")
    }
    assert names == {"swift-proxy-node-timeout-20s", "swift-object-node-timeout-20s"}


def test_long_names_differ_by_a_hash() -> None:
    changes = [
        {"object.keep_cache_size": size, "object.keep_cache_private": True}
        for size in (2**20, 2**21)
    ]
    where = Fault("t", 1, 1, "", "")
    made = [
        loader.changed_layout(base("swift:replicas=2"), LAB, one, where).layout.name
        for one in changes
    ]
    assert all(len(name) <= LONGEST_NAME for name in made)
    assert len(set(made)) == 2


def test_a_layout_can_be_renamed_without_a_change() -> None:
    assert (
        loader.changed_layout(
            base("null"), LAB, {}, Fault("t", 1, 1, "", ""), name="baseline"
        ).layout.name
        == "baseline"
    )


def test_faults_of_all_changes_are_reported_at_once_at_the_changes() -> None:
    assert faults("rgw-beast", {"radosgw.thread": 64, "radosgw.get_window": "16 apples"}) == [
        "tuning.yaml:3:10: unknown key 'thread' (did you mean 'threads'?)",
        (
            "tuning.yaml:4:10: radosgw.get_window: '16 apples' is not a quantity such as 4KiB or "
            "1MB "
            "(units: b, kb, mb, gb, tb, k, m, g, t, kib, mib, gib, tib)"
        ),
    ]


def test_a_key_below_a_plain_value_is_reported_beside_other_faults() -> None:
    found = faults(
        "rgw-beast:radosgw.threads=64", {"radosgw.threads.more": 1, "radosgw.get_windw": 1}
    )
    assert [one.partition(" ")[0] for one in found] == ["tuning.yaml:3:10:", "tuning.yaml:4:10:"]
    assert "there is nothing of that name to change" in found[0]
    assert "did you mean 'get_window'?" in found[1]


def test_what_a_change_breaks_elsewhere_is_reported_at_the_change() -> None:
    (fault,) = faults(
        "rgw-apache-proxy", {"radosgw.threads": 64, "apache.mpm.threads_per_child": 10_000}
    )
    assert fault.startswith("tuning.yaml:4:10: apache.mpm: ")
    (fault,) = faults("swift", {"replicas": 4})
    assert fault.startswith("tuning.yaml:3:10: 4 replicas, each in its own zone")
    one, *_ = faults("rgw-beast", {"osd.memory_target": "64GiB"})
    assert one.startswith("tuning.yaml:3:10: mon, osd may take 64 GiB of memory; host 'store-1'")


def test_one_origin_can_serve_all_changes(tmp_path: Path) -> None:
    with pytest.raises(
        DocumentError, match=r"^t:7:3: unknown key 'delay' \(did you mean 'delay_ms'\?\)"
    ):
        loader.changed_layout(base("null"), LAB, {"delay": 1}, Fault("t", 7, 3, "", "x"))
