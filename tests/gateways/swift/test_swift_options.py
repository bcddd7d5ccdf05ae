"""The options that a release of Swift knows, read from samples and code, and faults of others."""

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.gateways.stage import Stage
from tests.gateways.stub_host import StubHost
from weighbridge.common.errors import CommandFailed, UsageError
from weighbridge.gateways.gateway import RunningGateway
from weighbridge.gateways.swift import config, known_options, running_swift
from weighbridge.gateways.swift.config import Proxy, Secrets
from weighbridge.gateways.swift.options import Known, faults, ignored, own_files
from weighbridge.gateways.swift.read_ring import described
from weighbridge.gateways.swift.samples import sample_of
from weighbridge.gateways.swift.settings import SERVERS, SwiftPlacement, SwiftSettings
from weighbridge.gateways.swift.swift import Swift

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
    names, uses = known_options.sample(SAMPLE)
    (tmp_path / "server.py").write_text(CODE)
    found = {
        "samples": {"object": names},
        "uses": {"object": uses},
        "read": {"object": sorted(known_options.read(tmp_path))},
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


def test_endpoints_are_the_fronts_and_facts_and_probes_include_its_own(
    stage: Fronted,
) -> None:
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


def test_rendered_files_are_the_written_ones(stage: Fronted) -> None:
    running = stage.start(SwiftSettings())
    for one in running.rendered:
        written = stage.hosts[one.host].files[one.path]
        assert isinstance(written, str)
        assert "***" in one.text or one.text == written
    assert len(running.rendered) == 2 * 2 + 1 + 3 * 5


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
