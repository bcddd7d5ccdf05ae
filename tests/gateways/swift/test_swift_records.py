"""The options that a release of Swift knows, read from samples and code, and faults of others."""

import configparser
import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from tests.gateways.rgw.planned_rgw import Spot
from tests.gateways.stage import Stage
from tests.gateways.stub_host import StubHost
from weighbridge.common.endpoint import ObjectApi
from weighbridge.common.errors import CommandFailed, UsageError
from weighbridge.gateways.gateway import RunningGateway
from weighbridge.gateways.swift import config, running_swift, swift_host
from weighbridge.gateways.swift.config import Proxy, Secrets, SwiftRoster
from weighbridge.gateways.swift.options import Known, faults, ignored, own_files
from weighbridge.gateways.swift.settings import SERVERS, SwiftPlacement, SwiftSettings
from weighbridge.gateways.swift.swift import Swift
from weighbridge.gateways.swift.swift_host import described, sample_of

SAMPLE = """
[DEFAULT]
# bind_port = 6200
# How many; Swift's own choice = none
# workers = auto

[pipeline:main]
pipeline = recon object-server

[app:object-server]
use = egg:swift#object
# set log_name = object-server
# splice = no

[filter:recon]
use = egg:swift#recon
# recon_cache_path = /var/cache/swift
# [filter:xprofile]
# use = egg:swift#xprofile
# dump_interval = 5.0

[object-auditor]
# files_per_second = 20
# [proxy-server:policy:<policy index>]
# sorting_method = shuffle
"""
CODE = """
self.a = int(conf.get('read_by_code', 1)); self.b = config_true_value(wsgi_conf.get("read_too"))
self.c = conf['and_this']; options.setdefault('and_that', 1); headers.get('not_this')
conf.get(name)
"""


def known(tmp_path: Path) -> Known:
    names, uses = swift_host.sample(SAMPLE)
    (tmp_path / "server.py").write_text(CODE)
    found = {
        "samples": {"object": names},
        "uses": {"object": uses},
        "read": {"object": sorted(swift_host.read(tmp_path))},
    }
    return Known.model_validate_json(json.dumps(found))


def test_a_servers_sample_is_found_where_debian_or_ubuntu_have_it(tmp_path: Path) -> None:
    places = [f"{tmp_path}/swift/{{0}}.conf", f"{tmp_path}/swift-{{0}}/{{0}}.conf-sample"]
    (tmp_path / "swift-proxy").mkdir()
    (tmp_path / "swift-proxy" / "proxy.conf-sample").write_text("of Ubuntu")
    assert sample_of("proxy", places) == "of Ubuntu"
    (tmp_path / "swift").mkdir()
    (tmp_path / "swift" / "proxy.conf").write_text("of Debian")
    assert sample_of("proxy", places) == "of Debian"
    with pytest.raises(SystemExit, match="no sample file of Swift's object server: /"):
        sample_of("object", places)


def test_options_are_found_in_samples_and_in_code(tmp_path: Path) -> None:
    found = known(tmp_path)
    assert found.samples["object"]["app:object-server"] == {"use", "log_name", "splice"}
    assert found.samples["object"]["filter:xprofile"] == {"use", "dump_interval"}
    assert found.uses["object"]["filter:recon"] == "egg:swift#recon"
    assert found.read["object"] == {"read_by_code", "read_too", "and_this", "and_that"}


@pytest.mark.parametrize(
    "text",
    [
        (
            "[app:object-server]\nuse = egg:swift#object\nsplice = yes\nset workers = 1\n"
            "read_by_code = 3"
        ),
        "[filter:my-own-name]\nuse = egg:swift#recon\nrecon_cache_path = /x",
        "[filter:foreign]\nuse = egg:somebodys#else\nanything = 1",
        "[filter:auth]\nuse = egg:swift#recon\n[pipeline:main]\npipeline = auth",
        "[proxy-server:policy:3]\nsorting_method = timing",
    ],
)
def test_known_options_and_sections_have_no_faults(tmp_path: Path, text: str) -> None:
    assert faults(known(tmp_path), "object", text) == []


def test_with_another_ones_settings_only_unknown_options_of_the_layout_are_refused(
    tmp_path: Path,
) -> None:
    text = "[app:object-server]\nuse = egg:swift#object\nours = 1\n[DEFAULT]\nmine = 1\n"
    mine = {"DEFAULT": {"mine"}, "app:object-server": {"splice"}}
    assert faults(known(tmp_path), "object", text, mine) == [
        "object-server.conf [DEFAULT]: Swift does not know the option 'mine'"
    ]
    assert ignored(known(tmp_path), {"a": {"/etc/swift/object-server.conf": text}}) == [
        "object-server.conf [app:object-server]: Swift does not know the option 'ours'",
        "object-server.conf [DEFAULT]: Swift does not know the option 'mine'",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[app:object-server]\nsplicee = yes",
            (
                "[app:object-server]: Swift does not know the option 'splicee' "
                "(did you mean 'splice'?)"
            ),
        ),
        (
            "[DEFAULT]\nworkerz = 1",
            "[DEFAULT]: Swift does not know the option 'workerz' (did you mean 'workers'?)",
        ),
        (
            "[object-audito]\nx = 1",
            "[object-audito]: Swift has no such section (did you mean 'object-auditor'?)",
        ),
        ("[filter:x]\nuse = egg:swift#rekon", "[filter:x]: Swift has no such section"),
        (
            "[object-auditor]\nnot_this = 1",
            "[object-auditor]: Swift does not know the option 'not_this'",
        ),
        (
            "[pipeline:main]\npipeline = recom\n[filter:recon]\nuse = egg:swift#recon",
            "'recom' has no section [filter:recom]",
        ),
        (
            "[filter:recon]\nuse = egg:swift#recon\nuser_weigh_bench = k .admin",
            "does not know the option 'user_weigh_bench'",
        ),
    ],
)
def test_unknown_names_are_reported_with_the_closest_known_ones(
    tmp_path: Path, text: str, message: str
) -> None:
    (fault,) = faults(known(tmp_path), "object", text)
    assert fault.startswith("object-server.conf [")
    assert message in fault


def test_all_faults_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    assert len(faults(known(tmp_path), "object", "[DEFAULT]\na = 1\nb = 2\n[nowhere]\nc = 3")) == 3


def test_only_files_of_swift_servers_are_checked() -> None:
    texts = {f"/etc/swift/{server}-server.conf": server for server in SERVERS}
    texts |= {
        "/etc/swift/proxy-server-1.conf": "proxy",
        "/etc/swift/swift.conf": "no",
        "/etc/rsyncd.conf": "no",
    }
    assert all(server == text for server, text in own_files(texts))
    assert len(own_files(texts)) == 4


def test_options_that_the_release_lacks_are_left_out() -> None:
    text = config.storage_conf(
        SwiftSettings(), "object", "10.0.0.1", lacks=frozenset({"etag_validate_pct"})
    )
    assert "etag_validate_pct" not in text
    assert "keep_cache_private" in text


NAMES = ("client-1", "gateway-1", "gateway-2", "balancer-1", "store-1", "store-2", "store-3")
PLACE = SwiftPlacement(
    proxy=("gateway-1", "gateway-2"),
    storage=("store-1", "store-2", "store-3"),
    haproxy="balancer-1",
)
REFUSED = (
    "[ALERT] (1) : config : parsing [/etc/haproxy/haproxy.cfg:1] : unknown keyword 'x'; did "
    "you mean 'y' maybe ?"
)


class Fronted(Stage):
    """With two proxies' hosts, and one for HAProxy, which may refuse its file."""

    haproxy_code = 0

    def answer(self, argv: Sequence[str], stdin: str) -> str:
        if " ".join(argv).startswith("haproxy -c") and self.haproxy_code:
            raise CommandFailed("balancer-1", argv, self.haproxy_code, REFUSED)
        return super().answer(argv, stdin)

    def start(self, settings: SwiftSettings) -> RunningGateway:
        return Swift("swift-2.35", PLACE, settings).bring_up(
            self.hosts, self.hosts["client-1"], print
        )


@pytest.fixture
def stage(tmp_path: Path) -> Fronted:
    return Fronted(tmp_path, names=NAMES)


def test_the_front_starts_after_proxies_and_storage_servers(stage: Fronted) -> None:
    given = {"proxy": {"daemons": 2}, "haproxy": {"port": 8000}}
    running = stage.start(SwiftSettings.model_validate(given))
    assert running.endpoints[0].url == "http://10.0.0.3:8000/auth/v1.0"
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


def test_endpoints_are_the_fronts_and_facts_and_probes_include_its_own(stage: Fronted) -> None:
    running = stage.start(SwiftSettings(s3api=True))
    assert [one.url for one in running.endpoints] == [
        "http://10.0.0.3/auth/v1.0",
        "http://10.0.0.3",
    ]
    assert running.facts["path"] == "clients -> HAProxy on balancer-1 -> 1 backends"
    assert running.facts["daemons"].startswith("proxy and memcached on gateway-1, gateway-2;")
    names = [one.name for one in running.probes()]
    assert names[:2] == ["memcached.gateway-1", "memcached.gateway-2"]
    assert names[-1] == "haproxy.balancer-1"


def test_faults_of_swift_and_haproxy_are_reported_together_and_nothing_starts(
    stage: Fronted,
) -> None:
    stage.haproxy_code = 1
    with pytest.raises(UsageError) as caught:
        Swift("swift-2.35", PLACE, SwiftSettings()).preflight(stage.hosts, print)
    message = str(caught.value)
    assert message.startswith("swift-2.35:\n")
    # A fault of several equal proxies is reported once.
    unknown = "proxy-server.conf [DEFAULT]: Swift does not know the option 'bind_ip'"
    assert message.count(unknown) == 1
    assert "unknown keyword 'x'; did you mean 'y' maybe ?" in message
    assert stage.started() == []


def test_an_haproxy_that_cannot_be_run_is_no_fault_of_the_layout(stage: Fronted) -> None:
    stage.haproxy_code = 127
    with pytest.raises(CommandFailed):
        Swift("swift-2.35", PLACE, SwiftSettings()).preflight(stage.hosts, print)


PROXY = Proxy("proxy-server-0", "gateway-1", "10.0.0.2", 8080, "/etc/swift/proxy-server-0.conf")


def test_disks_are_numbered_without_holes() -> None:
    disks = [
        {"id": number, "ip": f"10.0.1.{number}", "port": 6200, "device": "d0", "zone": 1}
        for number in (0, 2, 3)
    ]
    ring = SimpleNamespace(
        devs=[disks[0], None, *disks[1:]], _part_shift=31, _replica2part2dev_id=[[0, 3], [2, 0]]
    )
    seen = described(ring)
    assert seen["part_power"] == 1
    assert [disk["address"] for disk in seen["disks"]] == ["10.0.1.0", "10.0.1.2", "10.0.1.3"]
    assert seen["table"] == [[0, 2], [1, 0]]


def test_only_a_proxy_behind_a_front_gets_an_explicit_storage_url() -> None:
    fronted = running_swift.direct_proxy(PROXY, "k", SwiftSettings(s3api=True), fronted=True)
    assert [(one.api, one.url, one.storage_url) for one in fronted] == [
        ("swift", "http://10.0.0.2:8080/auth/v1.0", "http://10.0.0.2:8080/v1/AUTH_weigh"),
        ("s3", "http://10.0.0.2:8080", None),
    ]
    assert [
        one.storage_url
        for one in running_swift.direct_proxy(PROXY, "k", SwiftSettings(), fronted=False)
    ] == [None]


@pytest.fixture
def store(tmp_path: Path) -> StubHost:
    def answer(argv: Sequence[str], stdin: str) -> str:
        return json.dumps(
            {
                "part_power": 1,
                "disks": [{"address": "10.0.1.1", "port": 6200, "device": "d0"}],
                "table": [[0, 0]],
            }
        )

    return StubHost("store-1", "10.0.1.1", tmp_path, [], answer, {})


def test_object_servers_have_their_hosts_names_and_show_no_secret(store: StubHost) -> None:
    secret = Secrets()
    servers = running_swift.object_servers(store, [store], secret, 1)
    assert [(one.host, one.port, one.device) for one in servers.servers] == [
        ("store-1", 6200, "d0")
    ]
    assert (servers.ring, servers.part_power, servers.replicas, servers.account) == (
        ((0, 0),),
        1,
        1,
        "AUTH_weigh",
    )
    assert servers.hash_suffix.get_secret_value() == secret.suffix
    assert secret.suffix not in repr(servers)
    assert secret.prefix not in repr(servers)


PLACE_OF_RECORDS = SwiftPlacement(proxy=("gateway-1",), storage=("store-1", "store-2", "store-3"))
PLACE_ABC = SwiftPlacement(proxy=("p",), storage=("a", "b", "c"))


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
        Swift("swift-2.30", PLACE_OF_RECORDS, SwiftSettings(formpost=True, pipeline="study-2014"))


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
        gateway = Swift("swift-2.38", PLACE_OF_RECORDS, settings)
        for api in gateway.apis():
            assert ("versions" in gateway.operations_lacked(api)) != versions
    with pytest.raises(ValueError, match="which study-2014 does not have"):
        Swift("swift-2.38", PLACE_OF_RECORDS, SwiftSettings(versions=True, pipeline="study-2014"))


def test_no_rate_is_limited_requests_are_logged_only_if_enabled_and_the_user_has_its_key() -> None:
    proxy = proxy_conf(SwiftSettings(), "k3y")
    assert not [name for name in proxy["filter:ratelimit"] if "ratelimit" in name]
    assert proxy["filter:proxy-logging"]["access_log_level"] == "WARNING"
    assert proxy["filter:tempauth"]["user_weigh_bench"] == "k3y .admin"
    logged = proxy_conf(SwiftSettings(log_requests=True, log_level="ERROR"))
    assert logged["filter:proxy-logging"]["access_log_level"] == "INFO"


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
    assert not Swift("swift-2.30", PLACE_OF_RECORDS, SwiftSettings()).spreads()
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
    shown = Swift("swift-2.30", PLACE_ABC, SwiftSettings()).render(SITES)
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
    lacked = Swift(release, PLACE_OF_RECORDS, settings).operations_lacked(api)
    assert ("read-part" in lacked) == bool(why)
    assert why in lacked.get("read-part", "")
