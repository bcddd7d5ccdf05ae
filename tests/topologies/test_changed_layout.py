"""References to layouts, and layouts with further settings: keys, names, places of faults."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from weighbridge.common.document import Document, DocumentError, Fault
from weighbridge.common.errors import UsageError
from weighbridge.common.record import Record
from weighbridge.gateways.rgw.settings import RgwSettings
from weighbridge.gateways.swift.settings import SwiftSettings
from weighbridge.topologies import loader
from weighbridge.topologies.loader import LONGEST_NAME, parse, path_of, split

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
    ("settings", "key", "path"),
    [
        (RgwSettings, "radosgw.threads", "radosgw threads"),
        (RgwSettings, "log", "log"),
        (RgwSettings, "options.client.rgw_x", "options client rgw_x"),
        (
            RgwSettings,
            "options.client.rgw.gateway-1.rgw_x",
            "options client.rgw.gateway-1 rgw_x",
        ),
        (
            RgwSettings,
            "apache.options.clients.LimitRequestBody",
            "apache options clients LimitRequestBody",
        ),
        (RgwSettings, "haproxy.options.global", "haproxy options global"),
        (RgwSettings, "nowhere.at.all", "nowhere at all"),
        (RgwSettings, "options.client", "options client"),
        (
            SwiftSettings,
            "options.object.app:object-server.keep_cache_size",
            "options object app:object-server keep_cache_size",
        ),
        (
            SwiftSettings,
            "options.proxy.filter:my.own.workers",
            "options proxy filter:my.own workers",
        ),
        (SwiftSettings, "proxy.error_suppression.limit", "proxy error_suppression limit"),
        (SwiftSettings, "options.object", "options object"),
    ],
)
def test_a_key_is_split_where_its_record_ends(settings: type[Record], key: str, path: str) -> None:
    assert path_of(key, settings) == tuple(path.split())


def test_a_changed_layout_has_the_changes_of_its_base_and_further_ones() -> None:
    planned = changed(
        "swift@swift-2.35:replicas=2",
        {"object.keep_cache_private": True, "options.object.app:object-server.splice": True},
    )
    assert planned.layout.release == "swift-2.35"
    assert planned.layout.settings["replicas"] == 2
    assert planned.layout.settings["object"]["keep_cache_private"] is True
    assert planned.layout.settings["options"] == {"object": {"app:object-server": {"splice": True}}}
    assert planned.gateway.settings.object.keep_cache_private  # type: ignore[attr-defined]
    assert loader.checked_again(planned.layout, LAB, "plan.json").layout == planned.layout
    assert "keep_cache_private: true" in planned.text


WHERE = Fault("t", 1, 1, "", "")


def changed(text: str, changes: Mapping[str, object], **named: Any) -> loader.Planned:
    return loader.changed_layout(base(text), LAB, changes, WHERE, **named)


def test_the_base_is_unchanged() -> None:
    planned = base("null:threads=2")
    before = planned.layout.model_dump_json()
    loader.changed_layout(planned, LAB, {"threads": 4}, WHERE)
    assert planned.layout.model_dump_json() == before


def test_a_file_can_be_the_base() -> None:
    reference = parse("null:seed=3")
    path = loader.shipped_layouts()["null"]
    planned = loader.changed_layout(path, LAB, {"delay_ms": 5}, WHERE, reference=reference)
    assert (planned.layout.settings["seed"], planned.layout.settings["delay_ms"]) == (3, 5)
    assert planned.layout.name == "null-seed-3-delay-ms-5"


def test_each_changed_layout_has_its_own_name_and_long_ones_differ_by_a_hash() -> None:
    names = {
        changed("swift", {key: "20s"}).layout.name
        for key in ("proxy.node_timeout", "object.node_timeout")
    }
    assert names == {"swift-proxy-node-timeout-20s", "swift-object-node-timeout-20s"}
    long = {
        changed(
            "swift:replicas=2",
            {"object.keep_cache_size": size, "object.keep_cache_private": True},
        ).layout.name
        for size in (2**20, 2**21)
    }
    assert len(long) == 2
    long |= {
        base(f"null:delay_ms=1:threads=2:fail_status=503:seed={n}").layout.name for n in (1, 2)
    }
    assert len(long) == 4
    assert all(len(name) <= LONGEST_NAME for name in long)
    assert changed("null", {}, name="baseline").layout.name == "baseline"


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


def test_a_reference_is_a_shipped_layout_with_a_release_settings_and_placement() -> None:
    assert base("null").layout.name == "null"
    assert parse("a/file.yaml").name == "a/file.yaml"
    planned = base("null@engine:delay_ms=5:threads=2")
    assert planned.layout.name == "null-engine-delay-ms-5-threads-2"
    assert planned.layout.settings["delay_ms"] == 5
    assert planned.layout.settings["threads"] == 2
    assert base("null:place.target=client-1").layout.place == {"target": "client-1"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("null@", "layout:1:5: @ needs a release"),
        ("null:delay_ms", "layout:1:6: 'delay_ms' is not KEY=VALUE"),
        ("null:=3", "is not KEY=VALUE"),
        ("null:threads=1:delay=3", "layout:1:16: unknown key 'delay'"),
        ("null:delay_ms=soon", "layout:1:6: delay_ms: Input should be a valid number"),
        ("null@engin", "layout:1:6: no release 'engin' of null (did you mean 'engine'?)"),
        ("null:threads.more=3", "threads.more: there is nothing of that name to change"),
        ("null:delay_ms={", "brackets are not closed"),
        ("null:delay_ms=]", "brackets are not closed"),
        ('null:delay_ms="', "is not a value in YAML"),
    ],
)
def test_invalid_changes_are_reported_at_their_place_in_the_reference(
    text: str, message: str
) -> None:
    with pytest.raises(UsageError) as error:
        base(text)
    assert message in str(error.value)


def test_a_fault_of_the_file_is_reported_at_its_place_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(
        'name: own\nabout: x\ngateway: "null"\nrelease: engine\nplace: {target: '
        "gateway-1}\nsettings: {threads: 0}\n"
    )
    with pytest.raises(DocumentError) as error:
        loader.load_layout(path, LAB, parse("own:delay_ms=-1"))
    assert f"{path}:6:21: threads" in str(error.value)
    assert "layout:1:5: delay_ms" in str(error.value)


def test_commas_within_brackets_do_not_separate_references() -> None:
    assert split("a, b:place.x=[c,d] ,e") == ["a", "b:place.x=[c,d]", "e"]
    assert split("") == []
