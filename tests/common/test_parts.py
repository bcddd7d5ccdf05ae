"""What may die of a layout: roles, hosts and services, and what may not."""

from __future__ import annotations

import re

import pytest

from weighbridge.common.structure import Part, Target, parts_of, targets

PARTS = (
    Part("store-1", "mon", lone="the only mon"),
    Part("store-1", "osd.0", "storage-daemon"),
    Part("store-2", "osd.1", "storage-daemon"),
    Part("store-3", "osd.2", "storage-daemon", disks=("/dev/wb0", "/dev/wb2")),
    Part("store-3", "osd.3", "storage-daemon", disks=("/dev/wb1", "/dev/wb2")),
    Part("gateway-1", "radosgw.0", "gateway-daemon"),
    Part("gateway-1", "radosgw.1", "gateway-daemon"),
    Part("gateway-1", "haproxy", lone="the only haproxy"),
)


def test_a_role_means_all_that_have_it_and_may_die() -> None:
    assert targets(PARTS, "storage-host") == (Target("store-2"), Target("store-3"))
    assert [str(one) for one in targets(PARTS, "gateway-daemon")] == [
        "gateway-1/radosgw.0",
        "gateway-1/radosgw.1",
    ]
    assert Target("store-1", "osd.0") in targets(PARTS, "storage-daemon")


def test_a_host_or_a_service_is_named_alone() -> None:
    assert targets(PARTS, "store-3") == (Target("store-3"),)
    assert targets(PARTS, "store-1/osd.0") == (Target("store-1", "osd.0"),)


def test_a_disk_is_a_role_or_named_and_concerns_all_that_keep_data_on_it() -> None:
    found = targets(PARTS, "storage-disk")
    assert [str(one) for one in found] == ["store-3/wb0", "store-3/wb2", "store-3/wb1"]
    journal = Target("store-3", disk="/dev/wb2")
    assert targets(PARTS, "store-3/wb2") == (journal,)
    assert [one.service for one in parts_of(PARTS, journal)] == ["osd.2", "osd.3"]
    assert [one.service for one in parts_of(PARTS, found[0])] == ["osd.2"]
    with pytest.raises(ValueError, match="it has no storage-disk"):
        targets(PARTS[:3], "storage-disk")


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("store-1", "store-1 may not die: the only mon is there"),
        ("store-1/mon", "store-1/mon may not die: it is the only mon"),
        ("gateway-1", "gateway-1 may not die: the only haproxy is there"),
        ("store-4", "it has no service on 'store-4' (did you mean 'store-"),
        ("store-2/osd.3", "store-2 has no 'osd.3' (did you mean 'osd.1'?)"),
        ("store-3/wb3", "store-3 has no 'wb3' (did you mean 'wb"),
        ("client-1", "it has no service on 'client-1' (known: store-1, store-2"),
    ],
)
def test_what_nothing_is_left_without_may_not_die(what: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        targets(PARTS, what)


def test_the_host_of_all_gateway_daemons_may_not_die() -> None:
    parts = [one for one in PARTS if one.service != "haproxy"]
    with pytest.raises(ValueError, match="all its gateway daemons are there"):
        targets(parts, "gateway-1")
