"""Stub hosts on which RGW and Swift can be started, and what was asked of them."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.gateways.stub_host import PORTS, StubHost
from weighbridge.gateways.gateway import RunningGateway
from weighbridge.gateways.rgw.placement import RgwPlacement
from weighbridge.gateways.rgw.rgw import Rgw
from weighbridge.gateways.rgw.settings import RgwSettings
from weighbridge.gateways.swift.settings import SwiftPlacement, SwiftSettings
from weighbridge.gateways.swift.swift import Swift

NAMES = ("client-1", "gateway-1", "store-1", "store-2", "store-3")
STORES = ("store-1", "store-2", "store-3")
HAPROXY = {
    "info": {"Version": "2.6.12", "Nbthread": "1", "Maxconn": "4096"},
    "rows": [
        {"svname": "a", "status": "UP", "algo": ""},
        {"svname": "BACKEND", "status": "UP", "algo": "roundrobin"},
    ],
}
"""What haproxy_counters prints once."""

MON = """
import json, sys
log = open({log!r}, "a")
osds, coded, dumps, quorums = 0, False, 0, 0
pgs = {{"num_pgs": 100, "pgs_by_state": [{{"state_name": "active+clean", "count": 100}}]}}
health = {{"status": "HEALTH_OK", "checks": {{}}}}
for line in sys.stdin:
    answers = []
    for command in json.loads(line):
        what = command["prefix"]
        log.write(json.dumps(command) + "\\n"); log.flush()
        osds += what == "osd new"
        dumps += what == "osd dump"
        quorums += what == "quorum_status"
        coded = coded or what == "osd erasure-code-profile set"
        primaries = [{{"acting_primary": one % osds}} for one in range(64)] if osds else []
        output = {{
            "osd dump": {{
                "osds": [{{"osd": one, "up": 1, "up_from": dumps}} for one in range(24)]
            }},
            "osd stat": {{"num_up_osds": osds}},
            "osd metadata": [{{"rotational": "0"}}] * osds,
            "status": {{"health": health, "pgmap": pgs}},
            "quorum_status": {{"quorum_names": ["a", "b", "c"][:quorums]}},
            "pg ls-by-pool": {{"pg_stats": primaries}},
            "osd pool get": {{"size": 3, "min_size": 2}},
            "osd pool ls": [
                {{"pool_name": "default.rgw.buckets.data", "erasure_code_profile": "weighbridge"}}
            ] * coded,
            "osd erasure-code-profile get": {{"k": "2", "m": "1", "plugin": "jerasure"}},
        }}.get(what, "")
        assert (what == "pg ls-by-pool") == (command.get("to") == "mgr")
        answers.append([{refused}.get(what, 0), json.dumps(output) if output != "" else "", "no"])
    print(json.dumps(answers), flush=True)
"""


class Stage:
    """Stub hosts, and what was asked of them."""

    def __init__(self, folder: Path, refused: Mapping[str, int] | None = None) -> None:
        self.events: list[tuple[str, str]] = []
        self.mon_log = folder / "mon"
        self.unknown: set[str] = set()
        self.known = ""
        """What `ceph-conf --show-config` prints."""
        self.zone = "none"
        self.dump = "{}"
        self.policy: dict[str, object] = {}
        self.rings: dict[str, dict[str, Any]] = {}
        self.verified = json.dumps(
            {"checks": [{"api": "s3", "operation": "PUT", "status": 200, "took_ms": 1.0}]}
        )
        programs = {
            "weighbridge.gateways.ports": PORTS,
            "ask_mon": MON.format(log=str(self.mon_log), refused=dict(refused or {})),
        }
        self.hosts = {
            name: StubHost(name, f"10.0.0.{index}", folder, self.events, self.answer, programs)
            for index, name in enumerate(NAMES)
        }

    def answer(self, argv: Sequence[str], stdin: str) -> str:
        line = " ".join(argv)
        if "--show-config" in line:
            return self.known
        if "known_options" in line:
            servers = ("proxy", "account", "container", "object")
            samples = {one: {"DEFAULT": ["user"]} for one in servers}
            uses: dict[str, dict[str, str]] = {one: {} for one in servers}
            return json.dumps(
                {"samples": samples, "uses": uses, "read": dict.fromkeys(servers, ())}
            )
        if "weighbridge.gateways.verify" in line:
            return self.verified
        if "haproxy_counters" in line:
            return json.dumps(HAPROXY)
        if "ask_daemon" in line:
            return json.dumps([self.option(command) for _, command in json.loads(stdin)])
        if "tls_handshake" in line:
            return json.dumps({"version": "TLSv1.3", "cipher": "TLS_X", "resumed": True})
        if "make_rings" in line:
            self.rings = json.loads(stdin)["rings"]
            return json.dumps(dict.fromkeys(self.rings, "cmluZw=="))
        if "zone get" in line:
            classes = {"STANDARD": {"compression_type": self.zone}}
            pool = {"key": "default-placement", "val": {"storage_classes": classes}}
            return json.dumps({"placement_pools": [pool]})
        if "storage_policy" in line:
            return json.dumps({"quorum": 3, **self.policy})
        return "[]" if "gc list" in line else "0"

    def option(self, command: Mapping[str, str]) -> str:
        if command["prefix"] == "perf dump":
            return self.dump
        if command["prefix"] != "config get":
            return ""
        return (
            '{"error": "no"}'
            if command["var"] in self.unknown
            else json.dumps({command["var"]: "1"})
        )

    def when(self, pattern: str) -> list[int]:
        """The indexes of events that match."""
        return [
            index
            for index, (host, what) in enumerate(self.events)
            if re.search(pattern, f"{host} {what}")
        ]

    def rgw(self, settings: RgwSettings | None = None, release: str = "ceph-16") -> RunningGateway:
        place = RgwPlacement(mon="store-1", osd=STORES, radosgw=("gateway-1",))
        return Rgw(release, place, settings or RgwSettings()).bring_up(
            self.hosts, self.hosts["client-1"], print
        )

    def swift(
        self, settings: SwiftSettings | None = None, release: str = "swift-2.30"
    ) -> RunningGateway:
        place = SwiftPlacement(proxy=("gateway-1",), storage=STORES)
        return Swift(release, place, settings or SwiftSettings()).bring_up(
            self.hosts, self.hosts["client-1"], print
        )
