"""Swift's layouts: what they come to, what is refused, and which options a release knows."""

import configparser
import json
import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from tests.gateways.rgw.planned_rgw import Spot
from tests.gateways.stage import Stage
from weighbridge.common.endpoint import ObjectApi
from weighbridge.common.errors import CommandFailed, UsageError
from weighbridge.gateways.gateway import RunningGateway
from weighbridge.gateways.swift import config, swift_host
from weighbridge.gateways.swift.settings import SERVERS, SwiftPlacement, SwiftSettings
from weighbridge.gateways.swift.swift import Swift

FRONTED = {"haproxy": "p"}
DISKS = ("/dev/wb0", "/dev/wb1", "/dev/wb2")
SITES = {
    **{name: Spot(name, f"10.0.0.{index}") for index, name in enumerate("pqf", 1)},
    **{name: Spot(name, f"10.0.1.{index}", DISKS) for index, name in enumerate("abc", 1)},
}
Conf = configparser.RawConfigParser


def swift(settings: dict[str, Any], release: str = "swift-2.35", **place: Any) -> Swift:
    where = {"proxy": ["p"], "storage": ["a", "b", "c"], **place}
    return Swift(
        release, SwiftPlacement.model_validate(where), SwiftSettings.model_validate(settings)
    )


def files(layout: Swift) -> dict[str, str]:
    """Texts by host and path, such as `a:/etc/rsyncd.conf`."""
    return {f"{one.host}:{one.path}": one.text for one in layout.render(SITES)}


def read(text: str) -> Conf:
    parser = Conf(strict=True)
    parser.read_string(text)
    return parser


def conf(place: str, settings: dict[str, Any], release: str = "swift-2.35") -> Conf:
    """A host's server, such as `p:proxy` or `a:object`."""
    host, _, server = place.partition(":")
    return read(files(swift(settings, release))[f"{host}:/etc/swift/{server}-server.conf"])


# What a release knows

SAMPLE = """
[DEFAULT]
# bind_port = 6200
# How many; Swift's own choice = none
# workers = auto
[app:object-server]
use = egg:swift#object
# set log_name = object-server
# [filter:xprofile]
# use = egg:swift#xprofile
# dump_interval = 5.0
# [proxy-server:policy:<policy index>]
# sorting_method = shuffle
"""
CODE = """
self.a = int(conf.get('read_by_code', 1)); self.b = config_true_value(wsgi_conf.get("read_too"))
self.c = conf['and_this']; options.setdefault('and_that', 1); headers.get('not_this')
conf.get(name)
"""


def test_samples_are_found_where_debian_or_ubuntu_have_them_and_options_also_in_code(
    tmp_path: Path,
) -> None:
    places = [f"{tmp_path}/swift/{{0}}.conf", f"{tmp_path}/swift-{{0}}/{{0}}.conf-sample"]
    for folder, name in (("swift-proxy", "proxy.conf-sample"), ("swift", "proxy.conf")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(folder)
        assert swift_host.sample_of("proxy", places) == folder
    with pytest.raises(SystemExit, match="no sample file of Swift's object server: /"):
        swift_host.sample_of("object", places)
    names, uses = swift_host.sample(SAMPLE)
    assert names["app:object-server"] == ["use", "log_name"]
    assert names["filter:xprofile"] == ["use", "dump_interval"]
    assert uses["app:object-server"] == "egg:swift#object"
    (tmp_path / "server.py").write_text(CODE)
    assert swift_host.read(tmp_path) == {"read_by_code", "read_too", "and_this", "and_that"}


NAMES = ("client-1", "gateway-1", "gateway-2", "balancer-1", "store-1", "store-2", "store-3")
PLACE = {"proxy": NAMES[1:3], "storage": NAMES[4:], "haproxy": "balancer-1"}
REFUSED = (
    "[ALERT] (1) : config : parsing [/etc/haproxy/haproxy.cfg:1] : unknown keyword 'x'; did "
    "you mean 'y' maybe ?"
)


class Knowing(Stage):
    """A release that knows what a layout without options has, and some more; with two proxies'
    hosts, and one for HAProxy, which may refuse its file.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, names=NAMES)
        self.haproxy_code = 0
        self.unknown: set[str] = set()
        self.said: list[str] = []

    def answer(self, argv: Sequence[str], stdin: str) -> str:
        line = " ".join(argv)
        if line.startswith("haproxy -c") and self.haproxy_code:
            raise CommandFailed("balancer-1", argv, self.haproxy_code, REFUSED)
        return (
            self.known_options() if "swift_host.pyz known" in line else super().answer(argv, stdin)
        )

    def known_options(self) -> str:
        samples: dict[str, Any] = {}
        uses: dict[str, Any] = {}
        for server in ("proxy", *SERVERS):
            parser = conf(f"{'p' if server == 'proxy' else 'a'}:{server}", {})
            given = {name: parser[name] for name in ("DEFAULT", *parser.sections())}
            samples[server] = {name: {*own} - self.unknown for name, own in given.items()}
            uses[server] = {name: own["use"] for name, own in given.items() if "use" in own}
        samples["object"]["app:object-server"] |= {"splice"}
        samples["proxy"]["proxy-server:policy:<policy index>"] = {"sorting_method"}
        read_by_code = {server: ["read_by_code"] for server in samples}
        known = {"samples": samples, "uses": uses, "read": read_by_code}
        return json.dumps(known, default=sorted)

    def faults(self, settings: dict[str, Any], release: str = "swift-2.35") -> list[str]:
        try:
            swift(settings, release, **PLACE).preflight(self.hosts, self.said.append)
        except UsageError as error:
            head, *lines = str(error).splitlines()
            assert head == f"{release}:"
            assert not self.started()
            return lines
        return []


@pytest.fixture
def stage(tmp_path: Path) -> Knowing:
    return Knowing(tmp_path)


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ("app:object-server: {splice: true, set workers: 1, read_by_code: 3}", ""),
        ("filter:my-own-name: {use: 'egg:swift#recon', recon_cache_path: /x}", ""),
        ("filter:foreign: {use: 'egg:somebodys#else', anything: 1}", ""),
        ("pipeline:main: {pipeline: healthcheck object-server}", ""),
        ("app:object-server: {splicee: true}", "does not know the option 'splicee' (did you mean"),
        (
            "DEFAULT: {workerz: 1}",
            "does not know the option 'workerz' (did you mean 'workers'?)",
        ),
        ("object-audito: {x: 1}", "Swift has no such section (did you mean 'object-auditor'?)"),
        ("filter:x: {use: 'egg:swift#rekon'}", "Swift has no such section"),
        ("pipeline:main: {pipeline: recom object-server}", "'recom' has no section [filter:recom]"),
        ("filter:recon: {user_a_b: k}", "Swift does not know the option 'user_a_b'"),
    ],
)
def test_unknown_names_are_reported_with_the_closest_known_ones(
    stage: Knowing, options: str, fault: str
) -> None:
    given = yaml.safe_load(options)
    found = stage.faults({"options": {"object": given}})
    assert len(found) == bool(fault)
    assert fault in "".join(found)
    assert all(one.startswith(f"object-server.conf [{next(iter(given))}]: ") for one in found)


def test_sections_of_policies_are_known_by_any_number(stage: Knowing) -> None:
    section = {"proxy-server:policy:3": {"sorting_method": "timing"}}
    assert stage.faults({"options": {"proxy": section}}) == []


def test_with_another_ones_settings_only_unknown_options_of_the_layout_are_refused(
    stage: Knowing,
) -> None:
    stage.unknown = {"mb_per_sync"}
    assert stage.faults({}, "swift-2.33") == []
    (said,) = stage.said
    unknown = "object-server.conf [app:object-server]: Swift does not know the option 'mb_per_sync'"
    assert said.endswith(f"ignore 1: {unknown}")
    own = {"options": {"object": {"app:object-server": {"mb_per_sync": 1}}}}
    assert stage.faults(own, "swift-2.33") == [unknown]


def test_all_faults_of_swift_and_haproxy_are_reported_together(stage: Knowing) -> None:
    stage.haproxy_code, stage.unknown = 1, {"bind_ip"}
    found = stage.faults({"options": {"object": {"DEFAULT": {"a": 1}, "nowhere": {"c": 3}}}})
    # A fault of several equal proxies is reported once.
    unknown = "proxy-server.conf [DEFAULT]: Swift does not know the option 'bind_ip'"
    assert len([one for one in found if one.startswith(unknown)]) == 1
    assert len([one for one in found if "'a'" in one or "nowhere" in one]) == 2
    assert "unknown keyword 'x'; did you mean 'y' maybe ?" in str(found)
    stage.haproxy_code = 127  # it cannot be run, which is no fault of the layout
    with pytest.raises(CommandFailed):
        stage.faults({})


# What runs


def start(stage: Knowing, settings: dict[str, Any]) -> RunningGateway:
    return swift(settings, **PLACE).bring_up(stage.hosts, stage.hosts["client-1"], print)


def test_the_front_starts_after_proxies_and_storage_servers(stage: Knowing) -> None:
    given = {"proxy": {"daemons": 2}, "haproxy": {"port": 8000}, "s3api": True}
    running = start(stage, given)
    base = "http://10.0.0.3:8000"
    assert [one.url for one in running.endpoints] == [f"{base}/auth/v1.0", base]
    started = stage.started()
    assert started[-1] == "balancer-1 haproxy"
    # Hosts are worked on concurrently, in any order.
    servers = ("memcached", "proxy-server-0", "proxy-server-1")
    assert sorted(one for one in started if one.split()[1] in servers) == [
        f"gateway-{number} {server}" for number in (1, 2) for server in servers
    ]
    # A host without servers has only the front's file and program.
    assert set(stage.hosts["balancer-1"].files) == {
        "/etc/haproxy/haproxy.cfg",
        "/usr/local/lib/weighbridge/haproxy_counters.pyz",
    }
    assert running.facts["path"] == "clients -> HAProxy on balancer-1 -> 1 backends"
    assert running.facts["daemons"].startswith("2 proxies and memcached on gateway-1, gateway-2;")
    names = [one.name for one in running.probes()]
    assert names[:2] == ["memcached.gateway-1", "memcached.gateway-2"]
    assert names[-1] == "haproxy.balancer-1"


def test_object_servers_and_a_proxy_are_found_below_the_front_without_showing_a_secret(
    stage: Knowing, monkeypatch: pytest.MonkeyPatch
) -> None:
    disks = [
        {"id": number, "ip": f"10.0.0.{number}", "port": 6200, "device": "d0", "zone": 1}
        for number in (4, 5, 6)
    ]
    # A removed device leaves a hole: disks are numbered without.
    ring = SimpleNamespace(
        devs=[disks[0], None, *disks[1:]], _part_shift=31, _replica2part2dev_id=[[4, 6], [5, 4]]
    )
    running = start(stage, {"s3api": True})
    described = json.dumps(swift_host.described(ring))
    monkeypatch.setattr(stage, "answer", lambda *_: described)
    below = running.below()
    # Only behind a front auth would return another storage URL.
    assert [(one.api, one.url, one.storage_url) for one in below.gateway] == [
        ("swift", "http://10.0.0.1:8080/auth/v1.0", "http://10.0.0.1:8080/v1/AUTH_weigh"),
        ("s3", "http://10.0.0.1:8080", None),
    ]
    servers = below.swift
    assert servers is not None
    assert [(one.host, one.port, one.device) for one in servers.servers] == [
        (f"store-{number}", 6200, "d0") for number in (1, 2, 3)
    ]
    assert (servers.ring, servers.part_power) == (((0, 2), (1, 0)), 1)
    assert (servers.replicas, servers.account) == (3, "AUTH_weigh")
    texts = str(stage.hosts["store-1"].files["/etc/swift/swift.conf"])
    for secret in (servers.hash_prefix, servers.hash_suffix):
        assert secret.get_secret_value() in texts
        assert secret.get_secret_value() not in repr(servers)


def test_with_servers_per_port_each_object_disk_has_a_port_in_the_ring(stage: Knowing) -> None:
    for host in stage.hosts.values():
        host.disks = DISKS if host.name.startswith("store") else ()
    for settings, ports in (({}, [6200, 6200]), ({"servers_per_port": 2}, [6210, 6211])):
        start(stage, {"object": settings})
        places = {
            server: [(one["device"], one["port"]) for one in own["devices"] if one["zone"] == 1]
            for server, own in stage.rings.items()
        }
        assert places == {
            "account": [("db0", 6202)],
            "container": [("db0", 6201)],
            "object": list(zip(("d0", "d1"), ports, strict=True)),
        }


# Files

STANDARD = (
    "catch_errors gatekeeper healthcheck proxy-logging cache listing_formats container_sync bulk "
    "tempurl ratelimit tempauth copy "
    "container-quotas account-quotas slo dlo versioned_writes symlink proxy-logging proxy-server"
)
"""The `pipeline` of etc/proxy-server.conf-sample in Swift 2.26 to 2.38."""
BARE = "healthcheck cache tempauth proxy-server"


@pytest.mark.parametrize(
    ("settings", "pipeline"),
    [
        ({}, STANDARD),
        ({"pipeline": "study-2014"}, BARE),
        ({"s3api": True}, STANDARD.replace("tempauth", "s3api tempauth")),
        ({"s3api": True, "pipeline": "study-2014"}, BARE.replace("tempauth", "s3api tempauth slo")),
        ({"formpost": True}, STANDARD.replace("tempurl", "tempurl formpost")),
    ],
)
def test_the_pipeline_is_that_of_swifts_sample_or_the_studys_and_every_filter_is_configured(
    settings: dict[str, Any], pipeline: str
) -> None:
    proxy = conf("p:proxy", settings)
    assert proxy["pipeline:main"]["pipeline"] == pipeline
    filters = {name.removeprefix("filter:") for name in proxy.sections() if "filter:" in name}
    assert filters == {*pipeline.split()} - {"proxy-server"}


def test_containers_keep_versions_only_if_the_layout_says_so() -> None:
    assert "allow_object_versioning" not in conf("p:proxy", {})["filter:versioned_writes"]
    for versions in (False, True):
        gateway = swift({"versions": versions, "s3api": True}, "swift-2.38")
        for api in gateway.apis():
            assert ("versions" in gateway.operations_lacked(api)) != versions


OPTIONS = """
p:proxy {} -> [filter:proxy-logging] access_log_level = WARNING
p:proxy {log_requests: true} -> [filter:proxy-logging] access_log_level = INFO
p:proxy {s3api: true} -> [filter:s3api] location = us-east-1
p:proxy {} -> [filter:tempauth] user_weigh_bench = *** .admin
p:proxy {proxy: {error_suppression: {interval: 9s}}} -> [app] error_suppression_interval = 9
p:proxy {proxy: {conn_timeout: 500ms}} -> [app] conn_timeout = 0.5
p:proxy {proxy: {error_suppression_limit: 7}} -> [app] error_suppression_limit = 7
p:proxy {proxy: {memcache_max_connections: 3}} -> [filter:cache] memcache_max_connections = 3
p:proxy {versions: true} -> [filter:versioned_writes] allow_versioned_writes = true
p:proxy {versions: true} -> [filter:versioned_writes] allow_object_versioning = true
a:object {object: {keep_cache_private: true}} -> [app] keep_cache_private = true
a:object {object: {etag_validate_pct: 0}} -> [app] etag_validate_pct = 0
a:object {} -> [app] keep_cache_size = 5242880
a:object {options: {object: {app:object-server: {splice: true}}}} -> [app] splice = true
a:object {options: {object: {app:object-server: {mb_per_sync: 6}}}} -> [app] mb_per_sync = 6
a:object {} -> [DEFAULT] eventlet_tpool_num_threads = auto
a:object {object: {tpool_threads: 4}} -> [DEFAULT] eventlet_tpool_num_threads = 4
a:object {} -> [DEFAULT] devices = /srv/node
a:account {} -> [DEFAULT] devices = /srv/database
a:container {} -> [DEFAULT] devices = /srv/database
a:object {} -> [DEFAULT] mount_check = true
a:account {} -> [DEFAULT] mount_check = true
a:container {} -> [DEFAULT] mount_check = true
"""
"""Settings, also by Swift's own names, and options, which go before them. Object daemons do not
walk the databases' disk; without `mount_check` a server writes to the root disk when a disk is not
mounted.
"""


@pytest.mark.parametrize("row", OPTIONS.strip().splitlines())
def test_a_setting_is_an_option_of_its_server(row: str) -> None:
    match = re.fullmatch(r"(\w):(\w+) (.+) -> \[(.+)\] (\S+) = (.*)", row)
    assert match
    host, server, settings, section, name, value = match.groups()
    section = f"app:{server}-server" if section == "app" else section
    assert conf(f"{host}:{server}", yaml.safe_load(settings))[section][name] == value


def test_background_daemons_have_the_interval_that_is_set() -> None:
    for server, names in config.DAEMONS.items():
        found = conf(f"a:{server}", {"background_interval": "5s"})
        assert {found[f"{server}-{name}"]["interval"] for name in names} == {"5"}


def test_an_option_is_only_where_its_server_and_its_release_have_it() -> None:
    for place, release, section, name in (
        ("a:account", "swift-2.35", "app:account-server", "keep_cache_private"),
        ("a:object", "swift-2.30", "app:object-server", "etag_validate_pct"),
        ("a:object", "swift-2.35", "object-updater", "interval"),
        ("p:proxy", "swift-2.35", "filter:ratelimit", "account_ratelimit"),
    ):
        assert name not in conf(place, {"object": {"keep_cache_private": True}}, release)[section]


def test_rsync_serves_each_kind_of_data_from_its_folder() -> None:
    text = files(swift({}))["a:/etc/rsyncd.conf"]
    modules = read(text[text.index("[") :])
    assert {name: modules[name]["path"] for name in modules.sections()} == {
        "account": config.DATABASES,
        "container": config.DATABASES,
        "object": config.OBJECTS,
    }


def test_every_proxy_has_a_port_and_the_list_of_all_memcacheds_and_the_front_has_every_proxy() -> (
    None
):
    texts = files(swift({"proxy": {"daemons": 2}}, proxy=["p", "q"], haproxy="f"))
    proxies = [read(text) for name, text in texts.items() if "proxy-server" in name]
    memcacheds = [one["filter:cache"]["memcache_servers"] for one in proxies]
    assert memcacheds == ["10.0.0.1:11211,10.0.0.2:11211"] * 4
    places = ["10.0.0.1:8080", "10.0.0.1:8081", "10.0.0.2:8080", "10.0.0.2:8081"]
    own = [f"{one['DEFAULT']['bind_ip']}:{one['DEFAULT']['bind_port']}" for one in proxies]
    assert sorted(own) == places
    assert (
        re.findall(r"^    server \S+ (\S+)", texts["f:/etc/haproxy/haproxy.cfg"], re.MULTILINE)
        == places
    )


def test_rendered_files_are_complete_and_have_no_secret() -> None:
    texts = files(swift({}, "swift-2.30"))
    servers = {"swift", "account-server", "container-server", "object-server"}
    assert {name for name in texts if name[0] in "ap"} == {
        *(f"a:/etc/swift/{name}.conf" for name in servers),
        *("a:/etc/rsyncd.conf", "p:/etc/swift/swift.conf", "p:/etc/swift/proxy-server.conf"),
    }
    for host in "ap":
        assert "swift_hash_path_suffix = ***" in texts[f"{host}:/etc/swift/swift.conf"]


# Layouts


def test_clients_may_use_several_proxies_without_a_front() -> None:
    assert swift({"endpoints": {"drop_dead": True}}, proxy=["p", "q"]).spreads()
    assert not swift({}).spreads()


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
        ({}, {"object": {"etag_validate_pct": 101}}, "less than or equal to 100"),
        ({}, {"proxy": {"node_timeout": 60}}, "has no unit"),
        ({}, {"part_power": 33}, "less than or equal to 32"),
        ({}, {"pipeline": "bare"}, "should be 'standard' or 'study-2014'"),
        ({}, {"s3": True}, "Extra inputs are not permitted"),
        (
            {},
            {"proxy": {"error_suppression_limit": 1, "error_suppression": {"limit": 2}}},
            "error_suppression_limit is error_suppression.limit, and both are given",
        ),
        ({}, {"formpost": True, "pipeline": "study-2014"}, "formpost needs the standard pipeline"),
        ({}, {"versions": True, "pipeline": "study-2014"}, "which study-2014 does not have"),
        ({"storage": ["a", "b"]}, {}, "3 replicas, each in its own zone, need 3 storage hosts"),
        ({"storage": ["b", "b"]}, {}, "same host twice"),
        ({"proxy": ["a"]}, {}, "a is both proxy and storage"),
        ({"proxy": ["p", "p"]}, {}, "proxy names the same host twice"),
        ({"proxy": []}, {}, "at least 1"),
        # More proxies than ports, which are refused at once.
        *(
            ({}, {"proxy": {"daemons": count}}, f"{count} daemons from port 8080 on need ports")
            for count in (57_457, 2**63, 10**20)
        ),
    ],
)
def test_contradictory_layouts_are_refused(
    place: dict[str, object], settings: dict[str, object], message: str
) -> None:
    with pytest.raises((ValueError, ValidationError), match=message):
        swift(settings, "swift-2.30", **place)


def test_hosts_have_the_tiers_of_their_services() -> None:
    needs = swift({}, haproxy="a").needs()
    tiers = {"p": "gateway", "a": "shared", "b": "storage", "c": "storage"}
    assert {name: need.tier for name, need in needs.items()} == tiers
    assert needs["a"].roles == ("storage", "haproxy")


def test_parts_are_read_by_number_since_2_34_from_objects_of_segments() -> None:
    apis: tuple[ObjectApi, ...] = ("swift", "s3")
    for release, pipeline, reasons in (
        ("swift-2.26", "standard", ("ignores part-number", "405")),
        ("swift-2.30", "standard", ("ignores part-number", "405")),
        ("swift-2.35", "study-2014", ("is not in its pipeline", "")),
        ("swift-2.35", "standard", ("", "")),
    ):
        for api, why in zip(apis, reasons, strict=True):
            # The study's pipeline has slo with s3api.
            given = {"pipeline": pipeline, "s3api": api == "s3"}
            lacked = swift(given, release).operations_lacked(api)
            assert ("read-part" in lacked) == bool(why), (release, api)
            assert why in lacked.get("read-part", "")
