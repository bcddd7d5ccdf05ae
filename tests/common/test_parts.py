"""What may die of a layout: roles, hosts and services, and what may not."""

from __future__ import annotations

import re

import pytest

from weighbridge.common.parts import Part, Target, targets

PARTS = (
    Part("store-1", "mon", lone="the only mon"),
    Part("store-1", "osd.0", "storage-daemon"),
    Part("store-2", "osd.1", "storage-daemon"),
    Part("store-3", "osd.2", "storage-daemon"),
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


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("store-1", "store-1 may not die: the only mon is there"),
        ("store-1/mon", "store-1/mon may not die: it is the only mon"),
        ("gateway-1", "gateway-1 may not die: the only haproxy is there"),
        ("store-4", "it has no service on 'store-4' (did you mean 'store-"),
        ("store-3/osd.3", "store-3 has no service 'osd.3' (did you mean 'osd.2'?)"),
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
