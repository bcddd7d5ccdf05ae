import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.gateways.stub_host import StubHost
from weighbridge.gateways.swift import running_swift
from weighbridge.gateways.swift.config import Proxy, Secrets
from weighbridge.gateways.swift.read_ring import described
from weighbridge.gateways.swift.settings import SwiftSettings

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
