"""What of the layouts that ship may die, and what stores say of themselves."""

from __future__ import annotations

from typing import Any

import pytest

from weighbridge.common.errors import TargetError
from weighbridge.common.structure import targets
from weighbridge.gateways.gateway import Standing
from weighbridge.gateways.rgw.running_rgw import standing
from weighbridge.selection import hardware_named, layout_named


def named(layout: str, what: str) -> list[str]:
    hardware = hardware_named("lab-cpu")
    gateway = layout_named(layout, hardware).gateway
    return [str(one) for one in targets(gateway.parts(hardware.of.sites(hardware)), what)]


@pytest.mark.parametrize(
    ("layout", "what", "found"),
    [
        ("rgw-haproxy", "gateway-daemon", ["gateway-1/radosgw.0", "gateway-1/radosgw.1"]),
        (
            "swift-haproxy",
            "gateway-daemon",
            ["gateway-1/proxy-server-0", "gateway-1/proxy-server-1"],
        ),
        ("rgw-beast", "storage-host", ["store-2", "store-3"]),
        ("swift", "storage-host", ["store-1", "store-2", "store-3"]),
        ("rgw-beast", "storage-daemon", ["store-1/osd.0", "store-2/osd.1", "store-3/osd.2"]),
        ("swift", "store-2/container-server", ["store-2/container-server"]),
        ("swift", "gateway-1/memcached", ["gateway-1/memcached"]),
    ],
)
def test_each_layout_resolves_a_role(layout: str, what: str, found: list[str]) -> None:
    assert named(layout, what) == found


@pytest.mark.parametrize(
    ("layout", "what", "why"),
    [
        ("rgw-beast", "gateway-daemon", "it is the only radosgw"),
        ("swift", "gateway-daemon", "it is the only proxy"),
        ("rgw-beast", "store-1", "the only mon is there"),
        ("rgw-haproxy", "gateway-1/haproxy", "it is the only haproxy"),
        ("swift", "gateway-1", "the only proxy is there"),
        ("rgw-beast", "client-1", "it has no service on 'client-1'"),
    ],
)
def test_what_a_layout_has_once_may_not_die(layout: str, what: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        named(layout, what)


def status(up: int, states: dict[str, int], *, nested: bool = False) -> dict[str, Any]:
    osdmap = {"num_up_osds": up}
    by_state = [{"state_name": name, "count": count} for name, count in states.items()]
    return {
        "osdmap": {"osdmap": osdmap} if nested else osdmap,
        "pgmap": {"num_pgs": sum(states.values()), "pgs_by_state": by_state},
    }


@pytest.mark.parametrize("nested", [False, True])
def test_a_cluster_is_whole_with_all_osds_and_all_groups_clean(*, nested: bool) -> None:
    clean = {"active+clean": 90, "active+clean+scrubbing": 6}
    assert standing(status(3, clean, nested=nested), 3) == Standing(
        whole=True, words="3 of 3 OSDs up, 96 of 96 placement groups clean"
    )
    assert not standing(status(2, clean, nested=nested), 3).whole
    assert standing(status(3, {"active+clean": 95, "active+undersized": 1}), 3) == Standing(
        whole=False, words="3 of 3 OSDs up, 95 of 96 placement groups clean"
    )


@pytest.mark.parametrize("answer", [{}, {"osdmap": {}, "pgmap": {}}, {"osdmap": [], "pgmap": 1}])
def test_a_status_that_does_not_say_it_is_refused(answer: dict[str, Any]) -> None:
    with pytest.raises(TargetError, match="has no OSDs or groups"):
        standing(answer, 3)
