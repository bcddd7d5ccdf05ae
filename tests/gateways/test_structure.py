from __future__ import annotations

from typing import Any

from weighbridge.common.structure import Structure
from weighbridge.gateways.gateway import Gateway
from weighbridge.gateways.null.null import Null
from weighbridge.gateways.rgw.rgw import Rgw
from weighbridge.gateways.swift.swift import Swift

DISKS = {"client-1": 0, "gateway-1": 0, "store-1": 3, "store-2": 3, "store-3": 3}
STORES = ("store-1", "store-2", "store-3")


def structure(
    kind: type[Gateway], release: str, place: dict[str, Any], settings: dict[str, Any] | None = None
) -> Structure:
    gateway = kind(
        release, kind.Placement.model_validate(place), kind.Settings.model_validate(settings or {})
    )
    found = gateway.structure(DISKS)
    assert found is not None
    return found


def rgw(
    settings: dict[str, Any] | None = None, release: str = "ceph-16", **place: Any
) -> Structure:
    return structure(
        Rgw, release, {"mon": "store-1", "osd": STORES, "radosgw": ["gateway-1"], **place}, settings
    )


def test_osds_store_objects_on_all_disks_and_copy_replicas_to_each_other() -> None:
    found = rgw()
    assert found.disks == dict.fromkeys(STORES, (0, 1, 2))
    assert (found.replicas, found.copied_by, found.writes, found.journals) == (3, "store", 1, {})
    assert (found.front, found.daemons, found.entrances) == (None, 1, ("gateway-1",))


def test_filestore_writes_everything_twice_with_journals_on_the_same_disks() -> None:
    assert rgw({"osd": {"objectstore": "filestore"}}).writes == 2


def test_separate_journals_are_on_a_hosts_last_disk_which_may_be_a_faster_one() -> None:
    found = rgw({"osd": {"objectstore": "filestore", "disks": 2, "filestore": {"journal": "own"}}})
    assert (found.writes, found.disks["store-2"], found.journals["store-2"]) == (1, (0,), (2,))
    found = rgw({"osd": {"objectstore": "filestore", "filestore": {"journal": "own"}}})
    assert (found.disks["store-2"], found.journals["store-2"]) == ((0, 1), (2,))


def test_memstore_uses_no_disk() -> None:
    assert rgw({"osd": {"objectstore": "memstore"}}).disks == {}


def test_a_front_is_what_clients_talk_to() -> None:
    found = rgw(
        {"radosgw": {"daemons": 2}}, radosgw=["gateway-1", "gateway-2"], haproxy="balancer-1"
    )
    assert (found.front, found.daemons) == ("HAProxy", 4)
    assert (found.entrances, found.gateways) == (("balancer-1",), ("gateway-1", "gateway-2"))
    assert rgw(apache="gateway-1").front == "Apache"


def test_swift_stores_objects_on_all_disks_but_one_and_its_proxy_sends_each_replica() -> None:
    place = {"proxy": ["gateway-1"], "storage": STORES}
    found = structure(Swift, "swift-2.30", place, {"replicas": 2})
    assert found.disks == dict.fromkeys(STORES, (1, 2))
    assert (found.replicas, found.copied_by, found.front) == (2, "gateway", None)
    assert structure(Swift, "swift-2.30", place, {"disks": 1}).disks == dict.fromkeys(STORES, (0,))


def test_a_gateway_without_a_store_has_no_structure() -> None:
    place, settings = Null.Placement.model_validate({"target": "gateway-1"}), Null.Settings()
    assert Null(next(iter(Null.releases)), place, settings).structure(DISKS) is None
