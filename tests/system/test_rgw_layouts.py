"""Every layout of Ceph RGW that ships, but rgw-beast, which has tests of its own: started, asked
by independent clients.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon_counters import counters
from deployed_layouts import (
    check_large_object,
    check_witness,
    deployed,
    endpoint,
    logged_in,
    planned,
    shipped,
    unlimited,
    witness,
)
from weighbridge.gateways.rgw.rgw import Rgw
from weighbridge.topologies.deployment import Deployment
from witness import ODD_NAMES

pytestmark = [pytest.mark.system, pytest.mark.long]

LAYOUTS = [
    "rgw-haproxy",
    *(
        pytest.param(one, marks=pytest.mark.test_all)
        for one in ("rgw-civetweb", "rgw-apache-proxy", "rgw-apache-fastcgi")
    ),
]


@pytest.fixture(scope="module", params=LAYOUTS)
def rgw(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployment]:
    with deployed(
        request.param, tmp_path_factory.mktemp("rgw"), change_hardware=unlimited, once=True
    ) as deployment:
        yield deployment


def gateway_of(deployment: Deployment, folder: Path) -> Rgw:
    gateway = planned(shipped(deployment.layout.name), folder).gateway
    assert isinstance(gateway, Rgw)
    return gateway


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_an_independent_client_reads_what_it_wrote_under_odd_names_too(
    rgw: Deployment, api: str
) -> None:
    check_witness(rgw, api)


def test_a_large_object_comes_back_as_it_was_sent(rgw: Deployment) -> None:
    # In one body each way: over S3 it would go up in parts.
    check_large_object(rgw, "swift")


def test_swift_clients_are_kept_at_the_address_they_came_to(
    rgw: Deployment, tmp_path: Path
) -> None:
    swift = endpoint(rgw, "swift")
    base = swift.url.removesuffix("/auth/v1.0")
    assert base == endpoint(rgw, "s3").url
    assert base.endswith(":8000") == (gateway_of(rgw, tmp_path).place.front is None)
    # radosgw's own way is to send them to its own port, past the front.
    assert logged_in(rgw)[0] == f"{base}/swift/v1"


def test_every_radosgw_answers_its_share_of_what_clients_ask(
    rgw: Deployment, tmp_path: Path
) -> None:
    radosgws = [
        probe for probe in rgw.running_gateway.probes() if probe.name.startswith("radosgw.")
    ]
    before = [counters(rgw, probe.name)["put"] for probe in radosgws]
    witness(rgw, "swift")
    gained = [
        counters(rgw, probe.name)["put"] - one for probe, one in zip(radosgws, before, strict=True)
    ]
    assert len(gained) == gateway_of(rgw, tmp_path).settings.radosgw.daemons
    assert sum(gained) == len(ODD_NAMES)
    assert max(gained) - min(gained) <= 2


def test_caches_of_every_radosgw_are_dropped_and_garbage_is_collected(rgw: Deployment) -> None:
    words = rgw.running_gateway.drop_caches()
    assert any("BlueStore" in line and "1 OSD" in line for line in words)
    assert rgw.running_gateway.settle() == ("RGW garbage collection completed, 0 entries left",)
    assert witness(rgw, "s3")["same"] == ODD_NAMES


def test_every_daemon_and_the_front_report_what_they_count(rgw: Deployment, tmp_path: Path) -> None:
    names = [probe.name for probe in rgw.running_gateway.probes()]
    assert len(set(names)) == len(names)
    assert "osd.0" in names
    osd = counters(rgw, "osd.0")
    assert osd["op"] > 0
    assert osd["bluestore_kv_commit_lat_count"] > 0
    place = gateway_of(rgw, tmp_path).place
    for front in ("haproxy", "apache"):
        assert any(front in name for name in names) == (getattr(place, front) is not None)
