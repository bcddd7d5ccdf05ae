import base64
import struct
import time
from dataclasses import dataclass

import pytest
from pydantic import ValidationError

from gateways.rgw.config import CONF, DATA_POOL, frontend, pools
from gateways.rgw.keyring import keyring, new_key
from gateways.rgw.rgw import Rgw
from gateways.rgw.settings import Place, PoolSettings, RadosgwSettings, Settings

STORES = ("store-1", "store-2", "store-3")
PLACE = Place(mon="store-1", osd=STORES, radosgw=("gateway-1",))


@dataclass(frozen=True)
class Spot:
    name: str
    address: str
    disks: tuple[str, ...] = ()


SITES = {
    "gateway-1": Spot("gateway-1", "10.0.0.9"),
    **{name: Spot(name, f"10.0.0.{index}", ("/dev/wb0", "/dev/wb1")) for index, name in enumerate(STORES, 1)},
}


def rgw(settings: dict[str, object] | Settings | None = None, release: str = "ceph-16", **place: object) -> Rgw:
    where = Place.model_validate({**PLACE.model_dump(), **place})
    return Rgw(release, where, settings if isinstance(settings, Settings) else Settings.model_validate(settings or {}))


def conf(settings: dict[str, object] | Settings, release: str = "ceph-16", **place: object) -> dict[str, dict[str, str]]:
    text = next(one.text for one in rgw(settings, release, **place).render(SITES) if one.path == CONF)
    sections: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        if line.startswith("["):
            sections[line[1:-1]] = current = {}
        elif line:
            name, _, value = line.partition(" =")
            current[name] = value.strip()
    return sections


@pytest.mark.parametrize(("kind", "length"), [(1, 16), (2, 32)])
def test_a_key_says_its_kind_and_the_length_of_its_secret(kind: int, length: int) -> None:
    raw = base64.b64decode(new_key(kind))  # type: ignore[arg-type]
    found, seconds, nanoseconds, size = struct.unpack("<HIIH", raw[:12])
    assert (found, nanoseconds, size, len(raw)) == (kind, 0, length, 12 + length)
    assert abs(seconds - time.time()) < 60


def test_no_two_keys_are_alike() -> None:
    keys = [line for line in keyring(1, 3, ["client.rgw.g"]).splitlines() if line.startswith("key = ")]
    assert len(keys) == 7
    assert len(set(keys)) == 7


def test_the_keyring_names_every_daemon_once() -> None:
    names = [line for line in keyring(1, 2, ["client.rgw.g"]).splitlines() if line.startswith("[")]
    assert names == ["[mon.]", "[client.admin]", "[mgr.a]", "[osd.0]", "[osd.1]", "[client.rgw.g]"]


def test_nagle_is_off_unless_the_layout_wants_it() -> None:
    assert frontend(RadosgwSettings(), 8000) == "beast port=8000 tcp_nodelay=1"
    assert frontend(RadosgwSettings(tcp_nodelay=False), 8000) == "beast port=8000 tcp_nodelay=0"


def test_civetweb_gets_a_thread_a_connection() -> None:
    assert frontend(RadosgwSettings(frontend="civetweb", threads=100), 8001) == "civetweb port=8001 tcp_nodelay=1 num_threads=100"


def test_crush_sees_hosts_apart_though_they_share_a_kernel() -> None:
    sections = conf(Settings())
    assert sections["osd.0"]["crush_location"] == "root=default host=store-1"
    assert sections["osd.2"]["crush_location"] == "root=default host=store-2"
    assert sections["osd.2"]["public_addr"] == "10.0.0.2"


def test_options_of_the_layout_win_over_ours() -> None:
    sections = conf(Settings(options={"osd": {"osd_memory_target": 2**30, "osd_op_num_shards": 1}}))
    assert sections["osd"]["osd_memory_target"] == str(2**30)
    assert sections["osd"]["osd_op_num_shards"] == "1"


def test_quiet_logging_silences_each_daemon_and_default_logging_none() -> None:
    assert conf(Settings())["global"]["debug_rgw"] == "0/0"
    assert not [name for name in conf(Settings(log="default"))["global"] if name.startswith("debug_")]


def test_scrubs_are_off_without_a_flag_that_would_warn_for_ever() -> None:
    assert conf(Settings())["osd"]["osd_max_scrubs"] == "0"
    assert "osd_max_scrubs" not in conf(Settings.model_validate({"osd": {"scrub": True}}))["osd"]


def test_a_single_replica_does_not_make_the_cluster_unhealthy() -> None:
    mon = conf(Settings(pools=PoolSettings(replicas=1, min_size=1)))["mon"]
    assert (mon["mon_allow_pool_size_one"], mon["mon_warn_on_pool_no_redundancy"]) == ("true", "false")


def test_every_pool_has_the_placement_groups_the_layout_says() -> None:
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
def test_settings_that_cannot_be_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Settings.model_validate(settings)


def test_a_host_cannot_be_named_twice() -> None:
    with pytest.raises(ValidationError, match="same host twice"):
        Place(mon="a", osd=("a", "a"), radosgw=("b",))


def test_too_few_hosts_for_the_replicas_are_refused_unless_osds_may_share_a_host() -> None:
    place = Place(mon="a", osd=("a",), radosgw=("b",))
    with pytest.raises(ValueError, match="3 replicas on hosts of their own need 3 osd hosts, not 1"):
        Rgw("ceph-16", place, Settings())
    Rgw("ceph-16", place, Settings(pools=PoolSettings(failure_domain="osd")))


def test_what_is_asked_of_hosts_names_roles_and_disks() -> None:
    needs = Rgw("ceph-16", PLACE, Settings()).needs()
    assert needs["store-1"].roles == ("mon", "osd")
    assert {name: need.disks for name, need in needs.items()} == {"store-1": 1, "store-2": 1, "store-3": 1, "gateway-1": 0}


def test_both_apis_are_answered_on_one_port() -> None:
    assert Rgw("ceph-16", PLACE, Settings()).apis() == ("swift", "s3")
