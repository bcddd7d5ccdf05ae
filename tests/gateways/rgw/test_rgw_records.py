import base64
import struct
import time

import pytest
from pydantic import ValidationError

from tests.gateways.rgw.planned_rgw import PLACE, SITES, STORES, conf, rgw
from weighbridge.gateways.apache.settings import STATS_PORT
from weighbridge.gateways.rgw.config import (
    CONF,
    DATA_POOL,
    KEYRING,
    frontend,
    keyring,
    new_key,
    pools,
)
from weighbridge.gateways.rgw.releases import RELEASES
from weighbridge.gateways.rgw.rgw import Rgw
from weighbridge.gateways.rgw.settings import (
    PoolSettings,
    RadosgwSettings,
    RgwPlacement,
    RgwSettings,
)


@pytest.mark.parametrize(("kind", "length"), [(1, 16), (2, 32)])
def test_a_key_contains_its_kind_and_the_length_of_its_secret(kind: int, length: int) -> None:
    raw = base64.b64decode(new_key(kind))  # type: ignore[arg-type]
    found, seconds, nanoseconds, size = struct.unpack("<HIIH", raw[:12])
    assert (found, nanoseconds, size, len(raw)) == (kind, 0, length, 12 + length)
    assert abs(seconds - time.time()) < 60


def test_no_two_keys_are_equal() -> None:
    keys = [
        line for line in keyring(1, 3, ["client.rgw.g"]).splitlines() if line.startswith("key = ")
    ]
    assert len(keys) == 7
    assert len(set(keys)) == 7


def test_the_keyring_names_every_daemon_once() -> None:
    names = [line for line in keyring(1, 2, ["client.rgw.g"]).splitlines() if line.startswith("[")]
    assert names == ["[mon.]", "[client.admin]", "[mgr.a]", "[osd.0]", "[osd.1]", "[client.rgw.g]"]


def test_nagle_is_off_unless_the_layout_enables_it() -> None:
    assert (
        frontend(RadosgwSettings(), "10.0.0.1", 8000)
        == "beast endpoint=10.0.0.1:8000 tcp_nodelay=1"
    )
    assert (
        frontend(RadosgwSettings(tcp_nodelay=False), "10.0.0.1", 8000)
        == "beast endpoint=10.0.0.1:8000 tcp_nodelay=0"
    )


def test_civetweb_gets_one_thread_for_each_connection() -> None:
    settings = RadosgwSettings(frontend="civetweb", threads=100)
    assert (
        frontend(settings, "10.0.0.1", 8001)
        == "civetweb port=10.0.0.1:8001 tcp_nodelay=1 num_threads=100"
    )


def test_crush_distinguishes_hosts_that_share_a_kernel() -> None:
    sections = conf(RgwSettings())
    assert sections["osd.0"]["crush_location"] == "root=default host=store-1"
    assert sections["osd.2"]["crush_location"] == "root=default host=store-2"
    assert sections["osd.2"]["public_addr"] == "10.0.0.2"


def test_options_of_the_layout_override_the_suites() -> None:
    sections = conf(
        RgwSettings(options={"osd": {"osd_memory_target": 2**30, "osd_op_num_shards": 1}})
    )
    assert sections["osd"]["osd_memory_target"] == str(2**30)
    assert sections["osd"]["osd_op_num_shards"] == "1"


def test_quiet_logging_silences_every_daemon_and_default_logging_none() -> None:
    assert conf(RgwSettings())["global"]["debug_rgw"] == "0/0"
    assert not [
        name for name in conf(RgwSettings(log="default"))["global"] if name.startswith("debug_")
    ]


def test_scrubs_are_off_without_a_flag_that_causes_a_warning() -> None:
    assert conf(RgwSettings())["osd"]["osd_max_scrubs"] == "0"
    assert "osd_max_scrubs" not in conf(RgwSettings.model_validate({"osd": {"scrub": True}}))["osd"]


def test_a_single_replica_does_not_make_the_cluster_unhealthy() -> None:
    mon = conf(RgwSettings(pools=PoolSettings(replicas=1, min_size=1)))["mon"]
    assert (mon["mon_allow_pool_size_one"], mon["mon_warn_on_pool_no_redundancy"]) == (
        "true",
        "false",
    )


def test_every_pool_has_the_layouts_number_of_placement_groups() -> None:
    wanted = pools(PoolSettings(data_pg_num=64, index_pg_num=16, other_pg_num=4))
    assert wanted[DATA_POOL] == 64
    assert sorted(wanted.values()) == [4, 4, 4, 4, 4, 16, 64]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pools": {"data_pg_num": 24}}, "not a power of two"),
        ({"pools": {"replicas": 2, "min_size": 3}}, "min_size 3 is above replicas 2"),
        ({"osd": {"memory_target": "512MiB"}}, "greater than or equal to"),
        ({"radosgw": {"tcp_no_delay": 1}}, "tcp_no_delay"),
        ({"options": {"osds": {}}}, "osds"),
        ({"options": {"osd": {"bad name": 1}}}, "pattern"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        RgwSettings.model_validate(settings)


def test_a_host_cannot_be_named_twice() -> None:
    with pytest.raises(ValidationError, match="same host twice"):
        RgwPlacement(mon="a", osd=("a", "a"), radosgw=("b",))


def test_too_few_hosts_for_the_replicas_are_refused_unless_replicas_may_share_a_host() -> None:
    place = RgwPlacement(mon="a", osd=("a",), radosgw=("b",))
    with pytest.raises(ValueError, match="3 replicas on separate hosts need 3 osd hosts, not 1"):
        Rgw("ceph-16", place, RgwSettings())
    Rgw("ceph-16", place, RgwSettings(pools=PoolSettings(failure_domain="osd")))


def test_needs_of_hosts_name_roles_and_disks() -> None:
    needs = Rgw("ceph-16", PLACE, RgwSettings()).needs()
    assert needs["store-1"].roles == ("mon", "osd")
    assert {name: need.disks for name, need in needs.items()} == {
        "store-1": 1,
        "store-2": 1,
        "store-3": 1,
        "gateway-1": 0,
    }


def test_rgw_serves_both_apis() -> None:
    assert Rgw("ceph-16", PLACE, RgwSettings()).apis() == ("swift", "s3")


def test_each_of_several_radosgw_has_a_name_a_section_and_a_port() -> None:
    settings = {"radosgw": {"daemons": 2, "port": 8100}}
    sections = conf(settings, haproxy="gateway-1")
    assert [name for name in sections if name.startswith("client.rgw")] == [
        "client.rgw.gateway-1.0",
        "client.rgw.gateway-1.1",
    ]
    assert (
        sections["client.rgw.gateway-1.1"]["rgw_frontends"]
        == f"beast endpoint={SITES['gateway-1'].address}:8101 tcp_nodelay=1"
    )
    keys = next(
        one.text for one in rgw(settings, haproxy="gateway-1").render(SITES) if one.path == KEYRING
    )
    assert keys.count("[client.rgw.gateway-1.") == 2


def test_the_single_radosgw_of_a_host_has_the_hosts_name() -> None:
    assert "client.rgw.gateway-1" in conf({})


def test_a_front_end_given_as_an_option_is_not_overridden() -> None:
    sections = conf({"options": {"client": {"rgw_frontends": "beast port=9"}}})
    assert sections["client"]["rgw_frontends"] == "beast port=9"
    assert "rgw_frontends" not in sections["client.rgw.gateway-1"]


def test_swift_clients_get_the_fronts_address_as_storage_url() -> None:
    assert "rgw_swift_url" not in conf({})["client"]
    assert conf({}, haproxy="gateway-1")["client"]["rgw_swift_url"] == "http://10.0.0.9"
    assert (
        conf({"apache": {"port": 81}}, apache="gateway-1")["client"]["rgw_swift_url"]
        == "http://10.0.0.9:81"
    )


def test_the_fronts_files_are_rendered_for_its_host_with_every_radosgw() -> None:
    shown = rgw({"radosgw": {"daemons": 2}}, haproxy="gateway-1").render(SITES)
    text = next(one.text for one in shown if one.path.endswith("haproxy.cfg"))
    assert "10.0.0.9:8000" in text
    assert "10.0.0.9:8001" in text
    assert {one.host for one in shown if one.path == CONF} == set(SITES)
    assert all("key = ***" in one.text for one in shown if one.path == KEYRING)


def test_rendering_is_repeatable() -> None:
    assert rgw().render(SITES) == rgw().render(SITES)


@pytest.mark.parametrize(
    ("settings", "place", "message"),
    [
        ({"radosgw": {"daemons": 2}}, {}, "2 radosgw need a front, haproxy or apache"),
        ({}, {"radosgw": ("gateway-1", "store-1")}, "2 radosgw need a front"),
        ({"endpoints": {}}, {}, "for several radosgw without a front, but there is one"),
        (
            {"endpoints": {}, "radosgw": {"daemons": 2}},
            {"haproxy": "gateway-1"},
            "for several radosgw without a front, but clients use its front",
        ),
        (
            {"haproxy": {"port": 80}},
            {},
            "settings of haproxy are given, but place names no host for it",
        ),
        ({"apache": {"path": "http"}}, {"haproxy": "gateway-1"}, "settings of apache are given"),
        (
            {"haproxy": {"port": 8000}},
            {"haproxy": "gateway-1"},
            "gateway-1: port 8000 of haproxy is taken by radosgw",
        ),
        (
            {"haproxy": {"port": 8001}, "radosgw": {"daemons": 2}},
            {"haproxy": "gateway-1"},
            "gateway-1: port 8001 of haproxy is taken by radosgw",
        ),
        (
            {"radosgw": {"port": 3300}},
            {"radosgw": ("store-1",)},
            "store-1: port 3300 of radosgw is taken by the mon",
        ),
        (
            {"radosgw": {"port": STATS_PORT}, "apache": {"path": "fastcgi"}},
            {"apache": "gateway-1"},
            f"port {STATS_PORT} of the FastCGI responder is taken by radosgw",
        ),
    ],
)
def test_a_placement_that_cannot_work_is_refused_when_it_is_read(
    settings: dict[str, object], place: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        rgw(settings, **place)


def test_clients_may_use_several_radosgw_without_a_front() -> None:
    several = {"radosgw": {"daemons": 2}, "endpoints": {"spread": "round-robin"}}
    assert rgw(several).spreads()
    assert not rgw().spreads()
    assert {Rgw.scope(key) for key in ("endpoints", "endpoints.spread")} == {"cluster"}


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ({"radosgw": ("gateway-1", "gateway-1")}, "radosgw names the same host twice"),
        ({"haproxy": "gateway-1", "apache": "gateway-1"}, "haproxy and apache are both placed"),
    ],
)
def test_a_contradictory_placement_is_refused(place: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        RgwPlacement.model_validate({**PLACE.model_dump(), **place})


@pytest.mark.parametrize("release", ["ceph-18", "ceph-20"])
def test_features_that_a_release_dropped_are_refused_with_the_releases_that_have_them(
    release: str,
) -> None:
    with pytest.raises(
        ValueError,
        match=f"radosgw of {release} has no front end civetweb; ceph-14, ceph-16 have it",
    ):
        rgw({"radosgw": {"frontend": "civetweb"}}, release)
    with pytest.raises(
        ValueError,
        match=f"the OSDs of {release} have no FileStore; ceph-14, ceph-16, ceph-17 have it",
    ):
        rgw({"osd": {"objectstore": "filestore"}}, release)


def test_options_that_a_release_lacks_are_not_written() -> None:
    assert "mon_allow_pool_size_one" in conf({}, "ceph-16")["mon"]
    assert "mon_allow_pool_size_one" not in conf({}, "ceph-14")["mon"]


def test_each_release_has_its_kind_of_key() -> None:
    assert {name: release.key_type for name, release in RELEASES.items()} == {
        "ceph-14": 1,
        "ceph-16": 1,
        "ceph-17": 1,
        "ceph-18": 1,
        "ceph-19": 1,
        "ceph-20": 2,
    }


def test_hosts_have_the_tiers_of_their_daemons() -> None:
    needs = rgw({}, haproxy="gateway-1").needs()
    assert needs["gateway-1"].roles == ("radosgw", "haproxy")
    assert {name: need.tier for name, need in needs.items()} == {
        **dict.fromkeys(STORES, "storage"),
        "gateway-1": "gateway",
    }
    assert rgw({}, radosgw=("store-1",)).needs()["store-1"].tier == "shared"


def test_sizes_are_written_in_bytes() -> None:
    client = conf(
        {"radosgw": {"max_chunk_size": "8MiB", "get_window": "32MiB", "print_continue": False}}
    )["client"]
    assert (client["rgw_max_chunk_size"], client["rgw_get_obj_window_size"]) == (
        str(8 << 20),
        str(32 << 20),
    )
    assert client["rgw_print_continue"] == "false"


def test_a_radosgw_with_fastcgi_listens_on_the_fronts_backend_port() -> None:
    assert (
        frontend(RadosgwSettings(), "10.0.0.1", 8001, native=True)
        == "fastcgi socket_port=8001 socket_host=10.0.0.1"
    )


@pytest.mark.parametrize("release", ["ceph-14", "ceph-16", "ceph-18", "ceph-20"])
def test_a_part_number_is_ignored_before_20_and_over_the_swift_api(release: str) -> None:
    gateway = rgw({}, release)
    assert ("read-part" in gateway.operations_lacked("s3")) == (release != "ceph-20")
    assert "read-part" in gateway.operations_lacked("swift")
