"""Stub hosts on which RGW and Swift can be started, and what was asked of them."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from tests.gateways.stub_host import StubHost, ports
from threaded_driver import Serve
from weighbridge.gateways.gateway import RunningGateway
from weighbridge.gateways.rgw.rgw import Rgw
from weighbridge.gateways.rgw.settings import RgwPlacement, RgwSettings
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

FAILED = {
    "failed": {
        "api": "swift",
        "url": "http://u",
        "operation": "GET",
        "what": "200 was expected",
        "status": 503,
        "body": "busy",
        "skewed": False,
    }
}
"""What verification says of a wrong answer."""

PGS = {"num_pgs": 100, "pgs_by_state": [{"state_name": "active+clean", "count": 100}]}
CODED = {"pool_name": "default.rgw.buckets.data", "erasure_code_profile": "weighbridge"}


def swift(settings: Mapping[str, Any], release: str = "swift-2.30", **place: str) -> Swift:
    where = SwiftPlacement.model_validate({"proxy": ["gateway-1"], "storage": STORES, **place})
    return Swift(release, where, SwiftSettings.model_validate(settings))


class Mon:
    """A stub of ask_mon, of a cluster that is healthy; `log` gets the commands, `refused` are the
    codes of those that fail.
    """

    def __init__(self, log: Path, refused: Mapping[str, int] | None = None) -> None:
        self._log = log
        self._refused = dict(refused or {})

    def __call__(self, commands: TextIO, answers: TextIO) -> int:
        done: Counter[str] = Counter()
        with self._log.open("a") as log:
            for line in commands:
                asked = json.loads(line)
                for command in asked:
                    print(json.dumps(command), file=log, flush=True)
                print(json.dumps([self._answer(one, done) for one in asked]), file=answers)
                answers.flush()
        return 0

    def _answer(self, command: Mapping[str, str], done: Counter[str]) -> tuple[int, str, str]:
        what = command["prefix"]
        done[what] += 1
        assert (what == "pg ls-by-pool") == (command.get("to") == "mgr")
        osds, coded = done["osd new"], bool(done["osd erasure-code-profile set"])
        health = {"status": "HEALTH_OK", "checks": {}}
        up_from = done["osd dump"]
        output: object = {
            "osd dump": {"osds": [{"osd": one, "up": 1, "up_from": up_from} for one in range(24)]},
            "osd metadata": [{"rotational": "0"}] * osds,
            "status": {"health": health, "pgmap": PGS},
            "quorum_status": {"quorum_names": ["a", "b", "c"][: done["quorum_status"]]},
            "pg ls-by-pool": {
                "pg_stats": [{"acting_primary": one % osds} for one in range(64 if osds else 0)]
            },
            "osd pool get": {"size": 3, "min_size": 2},
            "osd pool ls": [CODED] * coded,
            "osd erasure-code-profile get": {"k": "2", "m": "1", "plugin": "jerasure"},
        }.get(what, "")
        return self._refused.get(what, 0), json.dumps(output) if output != "" else "", "no"


class Stage:
    """Stub hosts, and what was asked of them."""

    stub: type[StubHost] = StubHost

    def __init__(
        self, folder: Path, refused: Mapping[str, int] | None = None, names: Sequence[str] = NAMES
    ) -> None:
        self.events: list[tuple[str, str]] = []
        self.mon_log = folder / "mon"
        self.unknown: set[str] = set()
        self.known = ""
        """What `ceph-conf --show-config` prints."""
        self.zone = "none"
        self.dump = "{}"
        self.policy: dict[str, object] = {}
        self.rings: dict[str, dict[str, Any]] = {}
        self.verified: dict[str, Any] = {
            "checks": [{"api": "s3", "operation": "PUT", "status": 200, "took_ms": 1.0}]
        }
        programs: dict[str, Serve] = {
            "weighbridge.gateways.await_answers": self.answering,
            "ask_mon": Mon(self.mon_log, refused),
        }
        self.hosts = {
            name: self.stub(
                *(name, f"10.0.0.{index}", folder, self.events),
                *(partial(self.answer_on, name), programs),
            )
            for index, name in enumerate(names)
        }

    def answering(self, order: TextIO, found: TextIO) -> int:
        """Ports and servers that are waited for."""
        return ports(order, found)

    def answer_on(self, host: str, argv: Sequence[str], stdin: str) -> str:
        return self.answer(argv, stdin)

    def answer(self, argv: Sequence[str], stdin: str) -> str:
        line = " ".join(argv)
        if "--show-config" in line:
            return self.known
        if "swift_host.pyz known" in line:
            servers = ("proxy", "account", "container", "object")
            samples = {one: {"DEFAULT": ["user"]} for one in servers}
            uses: dict[str, dict[str, str]] = {one: {} for one in servers}
            return json.dumps(
                {"samples": samples, "uses": uses, "read": dict.fromkeys(servers, ())}
            )
        if "weighbridge.gateways.verify" in line:
            return json.dumps(self.verified)
        if "haproxy_counters" in line:
            return json.dumps(HAPROXY)
        if "ask_daemon" in line:
            return json.dumps([self.option(command) for _, command in json.loads(stdin)])
        if "tls_handshake" in line:
            return json.dumps({"version": "TLSv1.3", "cipher": "TLS_X", "resumed": True})
        if "swift_host.pyz faults" in line:
            return "{}"
        if "swift_host.pyz rings" in line:
            self.rings = json.loads(stdin)["rings"]
            return json.dumps(dict.fromkeys(self.rings, "cmluZw=="))
        if "zone get" in line:
            classes = {"STANDARD": {"compression_type": self.zone}}
            pool = {"key": "default-placement", "val": {"storage_classes": classes}}
            return json.dumps({"placement_pools": [pool]})
        if "swift_host.pyz policy" in line:
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

    def started(self, since: int = 0) -> list[str]:
        """`HOST SERVICE` of all services that were started since an event."""
        return [
            f"{host} {what.removeprefix('start ')}"
            for host, what in self.events[since:]
            if what.startswith("start ")
        ]

    def when(self, pattern: str) -> list[int]:
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
