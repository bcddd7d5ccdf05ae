"""Swift behind HAProxy on stub hosts: the order of its start, and the checks before it."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.gateways.stage import HAPROXY
from tests.gateways.stub_host import StubHost, ports
from weighbridge.common.errors import CommandFailed, UsageError
from weighbridge.common.host import Host
from weighbridge.gateways.gateway import RunningGateway
from weighbridge.gateways.swift.settings import SwiftPlacement, SwiftSettings
from weighbridge.gateways.swift.swift import Swift

NAMES = ("client-1", "gateway-1", "gateway-2", "balancer-1", "store-1", "store-2", "store-3")
PLACE = SwiftPlacement(
    proxy=("gateway-1", "gateway-2"),
    storage=("store-1", "store-2", "store-3"),
    haproxy="balancer-1",
)
SERVERS = ("proxy", "account", "container", "object")
KNOWN = {
    "samples": {server: {"DEFAULT": ["workers"]} for server in SERVERS},
    "uses": {server: {} for server in SERVERS},
    "read": {server: [] for server in SERVERS},
}
REFUSED = (
    "[ALERT] (1) : config : parsing [/etc/haproxy/haproxy.cfg:1] : unknown keyword 'x'; did "
    "you mean 'y' maybe ?"
)


class Stage:
    """Stub hosts, and what was asked of them."""

    def __init__(self, folder: Path) -> None:
        self.events: list[tuple[str, str]] = []
        self.haproxy_code = 0
        programs = {"weighbridge.gateways.ports": ports}
        self.stubs = {
            name: StubHost(name, f"10.0.0.{index}", folder, self.events, self.answer, programs)
            for index, name in enumerate(NAMES)
        }
        self.hosts: dict[str, Host] = dict(self.stubs)

    def answer(self, argv: Sequence[str], stdin: str) -> str:
        line = " ".join(argv)
        if "weighbridge.gateways.verify" in line:
            return json.dumps(
                {"checks": [{"api": "swift", "operation": "PUT", "status": 200, "took_ms": 1.0}]}
            )
        if "make_rings" in line:
            return json.dumps(dict.fromkeys(json.loads(stdin)["rings"], "cmluZw=="))
        if "haproxy_counters" in line:
            return json.dumps(HAPROXY)
        if "known_options" in line:
            return json.dumps(KNOWN)
        if line.startswith("haproxy -c") and self.haproxy_code:
            raise CommandFailed("balancer-1", argv, self.haproxy_code, REFUSED)
        return "0"

    def start(self, settings: SwiftSettings) -> RunningGateway:
        return Swift("swift-2.35", PLACE, settings).bring_up(
            self.hosts, self.hosts["client-1"], print
        )

    def started(self) -> list[tuple[str, str]]:
        return [
            (host, what.removeprefix("start "))
            for host, what in self.events
            if what.startswith("start ")
        ]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_the_front_starts_after_proxies_and_storage_servers(stage: Stage) -> None:
    stage.start(SwiftSettings.model_validate({"proxy": {"daemons": 2}}))
    started = stage.started()
    assert started[-1] == ("balancer-1", "haproxy")
    # Hosts are worked on concurrently, in any order.
    assert sorted(one for one in started if one[1].startswith("proxy")) == [
        *(("gateway-1", f"proxy-server-{index}") for index in (0, 1)),
        *(("gateway-2", f"proxy-server-{index}") for index in (0, 1)),
    ]
    assert sorted(host for host, what in started if what == "memcached") == [
        "gateway-1",
        "gateway-2",
    ]
    # A host without servers has only the front's file and program.
    assert set(stage.stubs["balancer-1"].files) == {
        "/etc/haproxy/haproxy.cfg",
        "/usr/local/lib/weighbridge/haproxy_counters.pyz",
    }


def test_endpoints_are_the_fronts_and_facts_and_probes_include_its_own(
    stage: Stage,
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


def test_a_front_on_another_port_has_it_in_its_url(stage: Stage) -> None:
    running = stage.start(SwiftSettings.model_validate({"haproxy": {"port": 8000}}))
    assert running.endpoints[0].url == "http://10.0.0.3:8000/auth/v1.0"


def test_rendered_files_are_the_written_ones(stage: Stage) -> None:
    running = stage.start(SwiftSettings())
    for one in running.rendered:
        written = stage.stubs[one.host].files[one.path]
        assert isinstance(written, str)
        assert "***" in one.text or one.text == written
    assert len(running.rendered) == 2 * 2 + 1 + 3 * 5


def test_faults_of_swift_and_haproxy_are_reported_together_and_nothing_starts(stage: Stage) -> None:
    stage.haproxy_code = 1
    with pytest.raises(UsageError) as caught:
        Swift("swift-2.35", PLACE, SwiftSettings()).preflight(stage.hosts, print)
    message = str(caught.value)
    assert message.startswith("swift-2.35:\n")
    assert "proxy-server.conf [DEFAULT]: Swift does not know the option 'bind_ip'" in message
    assert "unknown keyword 'x'; did you mean 'y' maybe ?" in message
    # A fault of several equal proxies is reported once.
    assert (
        message.count("proxy-server.conf [DEFAULT]: Swift does not know the option 'bind_ip'") == 1
    )
    assert stage.started() == []


def test_an_haproxy_that_cannot_be_run_is_no_fault_of_the_layout(stage: Stage) -> None:
    stage.haproxy_code = 127
    with pytest.raises(CommandFailed):
        Swift("swift-2.35", PLACE, SwiftSettings()).preflight(stage.hosts, print)
