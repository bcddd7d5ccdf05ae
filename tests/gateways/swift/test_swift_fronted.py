"""Swift behind HAProxy on stub hosts: the order of its start, and the checks before it."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.gateways.stage import Stage
from weighbridge.common.errors import CommandFailed, UsageError
from weighbridge.gateways.gateway import RunningGateway
from weighbridge.gateways.swift.settings import SwiftPlacement, SwiftSettings
from weighbridge.gateways.swift.swift import Swift

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
