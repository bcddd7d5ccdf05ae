import configparser
from dataclasses import dataclass

import pytest
from pydantic import ValidationError

from weighbridge.common.document import Document
from weighbridge.common.endpoint import ObjectApi
from weighbridge.gateways.swift import config
from weighbridge.gateways.swift.config import SwiftRoster
from weighbridge.gateways.swift.settings import SwiftPlacement, SwiftSettings
from weighbridge.gateways.swift.swift import Swift
from weighbridge.topologies.loader import shipped_layouts

PLACE = SwiftPlacement(proxy=("gateway-1",), storage=("store-1", "store-2", "store-3"))
PLACE_ABC = SwiftPlacement(proxy=("p",), storage=("a", "b", "c"))


@dataclass(frozen=True)
class Spot:
    name: str
    address: str
    disks: tuple[str, ...] = ()


FRONTED = {"haproxy": "p"}
DISKS = ("/dev/wb0", "/dev/wb1", "/dev/wb2")
SITES = {
    **{name: Spot(name, f"10.0.0.{index}") for index, name in enumerate("pqf", 1)},
    **{name: Spot(name, f"10.0.1.{index}", DISKS) for index, name in enumerate("abc", 1)},
}


def proxy_conf(settings: SwiftSettings, key: str = "secret") -> configparser.RawConfigParser:
    return read(
        config.proxy_conf(
            settings, "10.0.0.1", settings.proxy.port, key, memcacheds=["10.0.0.1", "10.0.0.2"]
        )
    )


def read(text: str) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=True)
    parser.read_string(text)
    return parser


STANDARD = (
    "catch_errors gatekeeper healthcheck proxy-logging cache listing_formats container_sync bulk "
    "tempurl ratelimit tempauth copy "
    "container-quotas account-quotas slo dlo versioned_writes symlink proxy-logging proxy-server"
)
"""The `pipeline` of etc/proxy-server.conf-sample in Swift 2.26 to 2.38."""


def piped(settings: SwiftSettings) -> str:
    return proxy_conf(settings)["pipeline:main"]["pipeline"]


def test_the_pipeline_is_that_of_swifts_sample_or_the_studys() -> None:
    assert piped(SwiftSettings()) == STANDARD
    assert piped(SwiftSettings(pipeline="study-2014")) == "healthcheck cache tempauth proxy-server"


def test_s3api_comes_just_before_authentication_and_slo_after_it() -> None:
    assert piped(SwiftSettings(s3api=True)) == STANDARD.replace("tempauth", "s3api tempauth")
    bare = proxy_conf(SwiftSettings(s3api=True, pipeline="study-2014"))
    assert bare["pipeline:main"]["pipeline"] == "healthcheck cache s3api tempauth slo proxy-server"
    assert bare["filter:s3api"]["location"] == "us-east-1"


def test_formpost_comes_after_tempurl_where_the_layout_says_so() -> None:
    assert piped(SwiftSettings(formpost=True)) == STANDARD.replace("tempurl", "tempurl formpost")
    with pytest.raises(ValueError, match="formpost needs the standard pipeline"):
        Swift("swift-2.30", PLACE, SwiftSettings(formpost=True, pipeline="study-2014"))


@pytest.mark.parametrize("s3api", [False, True])
@pytest.mark.parametrize("pipeline", ["standard", "study-2014"])
def test_every_filter_of_the_pipeline_is_configured_and_no_other(
    pipeline: str, s3api: bool
) -> None:
    proxy = proxy_conf(SwiftSettings.model_validate({"pipeline": pipeline, "s3api": s3api}))
    filters = {
        section.removeprefix("filter:")
        for section in proxy.sections()
        if section.startswith("filter:")
    }
    assert filters == set(proxy["pipeline:main"]["pipeline"].split()) - {"proxy-server"}


def test_containers_keep_versions_only_if_the_layout_says_so() -> None:
    kept = proxy_conf(SwiftSettings(versions=True))["filter:versioned_writes"]
    assert (kept["allow_versioned_writes"], kept["allow_object_versioning"]) == ("true", "true")
    assert "allow_object_versioning" not in proxy_conf(SwiftSettings())["filter:versioned_writes"]
    for versions in (False, True):
        settings = SwiftSettings(versions=versions, s3api=True)
        gateway = Swift("swift-2.38", PLACE, settings)
        for api in gateway.apis():
            assert ("versions" in gateway.operations_lacked(api)) != versions
    with pytest.raises(ValueError, match="which study-2014 does not have"):
        Swift("swift-2.38", PLACE, SwiftSettings(versions=True, pipeline="study-2014"))


def test_no_rate_is_limited_requests_are_logged_only_if_enabled_and_the_user_has_its_key() -> None:
    proxy = proxy_conf(SwiftSettings(), "k3y")
    assert not [name for name in proxy["filter:ratelimit"] if "ratelimit" in name]
    assert proxy["filter:proxy-logging"]["access_log_level"] == "WARNING"
    assert proxy["filter:tempauth"]["user_weigh_bench"] == "k3y .admin"
    logged = proxy_conf(SwiftSettings(log_requests=True, log_level="ERROR"))
    assert logged["filter:proxy-logging"]["access_log_level"] == "INFO"


@pytest.mark.parametrize("layout", ["swift", "swift-s3api", "swift-haproxy"])
def test_shipped_layouts_name_their_pipeline(layout: str) -> None:
    assert Document.read(shipped_layouts()[layout]).data["settings"]["pipeline"] == "standard"


def storage(kind: str, settings: dict[str, object]) -> configparser.RawConfigParser:
    return read(config.storage_conf(SwiftSettings.model_validate(settings), kind, "10.0.0.1"))


def test_settings_of_reads_are_those_of_object_servers_and_options_go_before_them() -> None:
    reads = {"object": {"keep_cache_private": True, "etag_validate_pct": 0}}
    app = storage("object", reads)["app:object-server"]
    names = ("keep_cache_private", "etag_validate_pct", "keep_cache_size")
    assert [app[name] for name in names] == ["true", "0", "5242880"]
    assert "keep_cache_private" not in storage("account", reads)["app:account-server"]
    given = {"splice": True, "mb_per_sync": 64}
    app = storage("object", {"options": {"object": {"app:object-server": given}}})[
        "app:object-server"
    ]
    assert (app["splice"], app["mb_per_sync"]) == ("true", "64")


def test_object_daemons_do_not_walk_the_databases_disk() -> None:
    made = {name: storage(name, {})["DEFAULT"] for name in config.PORTS}
    devices = {name: one["devices"] for name, one in made.items()}
    assert devices["account"] == devices["container"] != devices["object"]
    # Without it a server writes to the root disk when a disk is not mounted.
    assert {one["mount_check"] for one in made.values()} == {"true"}


def test_rsync_serves_each_kind_of_data_from_its_folder() -> None:
    text = config.rsyncd_conf("10.0.0.1")
    modules = read(text[text.index("[") :])
    assert {name: modules[name]["path"] for name in modules.sections()} == {
        "account": config.DATABASES,
        "container": config.DATABASES,
        "object": config.OBJECTS,
    }


def test_clients_may_use_several_proxies_without_a_front() -> None:
    place = SwiftPlacement(proxy=("p", "q"), storage=("a", "b", "c"))
    settings = SwiftSettings.model_validate({"endpoints": {"drop_dead": True}})
    assert Swift("swift-2.30", place, settings).spreads()
    assert not Swift("swift-2.30", PLACE, SwiftSettings()).spreads()
    keys = ("endpoints", "endpoints.spread", "endpoints.drop_dead")
    assert {Swift.scope(key) for key in keys} == {"cluster"}


@pytest.mark.parametrize(
    ("place", "settings", "message"),
    [
        ({}, {"proxy": {"daemons": 2}}, "2 proxies need a front"),
        ({"proxy": ["p", "q"]}, {}, "2 proxies need a front"),
        ({}, {"endpoints": {}}, "for several proxies without a front"),
        ({}, {"haproxy": {"port": 81}}, "of haproxy are given, but place names no host"),
        (FRONTED, {"haproxy": {"port": 8080}}, "p: port 8080 of haproxy is taken by the proxy"),
        (FRONTED, {"haproxy": {"port": 11211}}, "haproxy is taken by memcached"),
        ({"haproxy": "a"}, {"haproxy": {"port": 6200}}, "taken by the object server"),
        (FRONTED, {"proxy": {"port": 65535, "daemons": 2}}, "need ports above 65535"),
        ({}, {"object": {"etag_validate_pct": 50}}, "every read; swift-2.35, swift-2.38 have"),
        ({"storage": ["a", "b"]}, {}, "3 replicas, each in its own zone, need 3 storage hosts"),
        ({"storage": ["b", "b"]}, {}, "same host twice"),
        ({"proxy": ["a"]}, {}, "a is both proxy and storage"),
        ({"proxy": ["p", "p"]}, {}, "proxy names the same host twice"),
        ({"proxy": []}, {}, "at least 1"),
    ],
)
def test_contradictory_layouts_are_refused(
    place: dict[str, object], settings: dict[str, object], message: str
) -> None:
    placed = {"proxy": ["p"], "storage": ["a", "b", "c"], **place}
    with pytest.raises(ValueError, match=message):
        Swift(
            "swift-2.30",
            SwiftPlacement.model_validate(placed),
            SwiftSettings.model_validate(settings),
        )


@pytest.mark.parametrize("daemons", [57_457, 2**63, 10**20])
def test_more_proxies_than_ports_are_refused_at_once(daemons: int) -> None:
    words = f"{daemons} daemons from port 8080 on need ports above 65535"
    with pytest.raises(ValueError, match=words):
        SwiftSettings.model_validate({"proxy": {"daemons": daemons}})


def test_every_proxy_has_the_same_list_of_memcacheds() -> None:
    place = SwiftPlacement(proxy=("p", "q"), storage=("a", "b", "c"), haproxy="f")
    settings = SwiftSettings.model_validate({"proxy": {"daemons": 2}})
    texts = {
        (one.host, one.path): one.text for one in Swift("swift-2.35", place, settings).render(SITES)
    }
    proxies = {key: read(text) for key, text in texts.items() if "proxy-server" in key[1]}
    assert len(proxies) == 4
    assert {conf["filter:cache"]["memcache_servers"] for conf in proxies.values()} == {
        "10.0.0.1:11211,10.0.0.2:11211"
    }
    assert sorted(
        (conf["DEFAULT"]["bind_ip"], conf["DEFAULT"]["bind_port"]) for conf in proxies.values()
    ) == [
        *(("10.0.0.1", port) for port in ("8080", "8081")),
        *(("10.0.0.2", port) for port in ("8080", "8081")),
    ]
    front = texts["f", "/etc/haproxy/haproxy.cfg"]
    assert [line.split()[2] for line in front.splitlines() if line.startswith("    server ")] == [
        *("10.0.0.1:8080", "10.0.0.1:8081", "10.0.0.2:8080", "10.0.0.2:8081")
    ]


def test_rendered_files_are_complete_and_have_no_secret() -> None:
    place = SwiftPlacement(proxy=("p",), storage=("a", "b", "c"))
    shown = Swift("swift-2.30", place, SwiftSettings()).render(SITES)
    servers = {"swift", "account-server", "container-server", "object-server"}
    assert {one.path for one in shown if one.host == "a"} == {
        *(f"/etc/swift/{name}.conf" for name in servers),
        "/etc/rsyncd.conf",
    }
    assert {one.path for one in shown if one.host == "p"} == {
        "/etc/swift/swift.conf",
        "/etc/swift/proxy-server.conf",
    }
    swift = next(one.text for one in shown if one.path.endswith("/swift.conf"))
    assert "swift_hash_path_suffix = ***" in swift
    assert "user_weigh_bench = *** .admin" in next(
        one.text for one in shown if "proxy-server" in one.path
    )


def test_with_servers_per_port_each_object_disk_has_a_port_in_the_ring() -> None:
    settings = SwiftSettings.model_validate({"object": {"servers_per_port": 2}})
    roster = SwiftRoster(PLACE_ABC, settings, SITES)
    ports = [(one.server, one.name, one.port) for one in roster.devices if one.host == "a"]
    assert ports == [
        ("account", "db0", 6202),
        ("container", "db0", 6201),
        ("object", "d0", 6210),
        ("object", "d1", 6211),
    ]
    assert roster.ports(SITES["a"], "object") == (6210, 6211)
    assert SwiftRoster(PLACE_ABC, SwiftSettings(), SITES).ports(SITES["a"], "object") == (6200,)


def test_background_daemons_use_swifts_own_interval_unless_it_is_set() -> None:
    assert "interval" not in storage("object", {})["object-updater"]
    for server, names in config.DAEMONS.items():
        conf = storage(server, {"background_interval": "5s"})
        assert {conf[f"{server}-{name}"]["interval"] for name in names} == {"5"}


def test_hosts_have_the_tiers_of_their_services() -> None:
    place = SwiftPlacement(proxy=("p",), storage=("a", "b", "c"), haproxy="a")
    needs = Swift("swift-2.30", place, SwiftSettings()).needs()
    assert {name: need.tier for name, need in needs.items()} == {
        "p": "gateway",
        "a": "shared",
        "b": "storage",
        "c": "storage",
    }
    assert needs["a"].roles == ("storage", "haproxy")


@pytest.mark.parametrize(
    "settings",
    [
        {"object": {"etag_validate_pct": 101}},
        {"proxy": {"node_timeout": 60}},
        {"part_power": 33},
        {"pipeline": "bare"},
        {"s3": True},
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        SwiftSettings.model_validate(settings)


@pytest.mark.parametrize(
    ("release", "api", "pipeline", "why"),
    [
        ("swift-2.26", "s3", "standard", "405"),
        ("swift-2.30", "s3", "standard", "405"),
        ("swift-2.26", "swift", "standard", "ignores part-number"),
        ("swift-2.30", "swift", "standard", "ignores part-number"),
        ("swift-2.35", "swift", "study-2014", "is not in its pipeline"),
        ("swift-2.35", "s3", "standard", ""),
        ("swift-2.35", "swift", "standard", ""),
    ],
)
def test_parts_are_read_by_number_since_2_34_from_objects_of_segments(
    release: str, api: ObjectApi, pipeline: str, why: str
) -> None:
    settings = SwiftSettings.model_validate({"pipeline": pipeline, "s3api": api == "s3"})
    lacked = Swift(release, PLACE, settings).operations_lacked(api)
    assert ("read-part" in lacked) == bool(why)
    assert why in lacked.get("read-part", "")
