"""Changing settings of Swift on stub hosts: what is restarted, in which order, and errors."""

import hashlib
import io
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import pytest

from tests.gateways.stage import FAILED, Stage
from tests.gateways.stub_host import ports
from weighbridge.common.errors import ServiceFailed, UsageError, VerificationFailed
from weighbridge.common.structure import Scope, differing
from weighbridge.gateways.gateway import RunningGateway
from weighbridge.gateways.null.null import Null, NullSettings
from weighbridge.gateways.null.null import NullPlacement as NullPlace
from weighbridge.gateways.swift.settings import SwiftPlacement, SwiftSettings
from weighbridge.gateways.swift.swift import Swift
from weighbridge.gateways.swift.swift_host import faults

NAMES = ("client-1", "gateway-1", "balancer-1", "store-1", "store-2", "store-3")
STORES = NAMES[3:]
PLACE = SwiftPlacement(proxy=("gateway-1",), storage=STORES, haproxy="balancer-1")
OBJECT_CONF = "/etc/swift/object-server.conf"


class RunningStage(Stage):
    """Stub hosts, what was asked of them, and what they answer."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, names=NAMES)
        self.asked: list[str] = []
        """URLs of servers that were asked last."""
        self.silent = False
        self.read: list[dict[str, str]] = []
        """Digests of files with which a host's processes should run."""
        self.fault = ""

    def answering(self, order: TextIO, found: TextIO) -> int:
        wanted = json.loads(line := order.readline())["wanted"]
        urls = [one["url"] for one in wanted if "url" in one]
        if urls:
            self.asked = urls
            self.events.append(("client-1", "ask"))
        return 1 if urls and self.silent else ports(io.StringIO(line), found)

    def answer(self, argv: Sequence[str], stdin: str) -> str:
        if "swift_host.pyz faults" in " ".join(argv):
            self.read.append(json.loads(stdin))
            return json.dumps(dict.fromkeys(self.read[-1], self.fault) if self.fault else {})
        return super().answer(argv, stdin)

    def start(self, **settings: Any) -> RunningGateway:
        running = swift(**settings).bring_up(self.hosts, self.hosts["client-1"], print)
        self.events.clear()
        return running

    def done(self) -> list[tuple[str, str]]:
        """What was stopped and started since the deployment started, with requests and checks."""
        words = {
            "ask": "ask",
            "weighbridge.gateways.verify": "verify",
            " up ": "await backends",
        }
        found = []
        for host, what in self.events:
            if what.startswith(("stop ", "start ")):
                found.append((host, what))
            found += [(host, word) for part, word in words.items() if part in what]
        return found


@pytest.fixture
def stage(tmp_path: Path) -> RunningStage:
    return RunningStage(tmp_path)


def swift(**settings: Any) -> Swift:
    return Swift("swift-2.35", PLACE, SwiftSettings.model_validate(settings))


def test_object_servers_are_stopped_and_started_with_their_file_before_any_request(
    stage: RunningStage,
) -> None:
    running = stage.start(object={"servers_per_port": 2})
    after = swift(object={"servers_per_port": 2, "disk_chunk_size": "1MiB"})
    assert running.change(after, "restart", print) == (
        "restarted object-server on store-1, store-2, store-3",
    )
    happened = stage.done()
    assert sorted(happened[:3]) == [(store, "stop object-server") for store in STORES]
    assert sorted(happened[3:6]) == [(store, "start object-server") for store in STORES]
    assert happened[6:] == [
        *(("client-1", "ask"), ("balancer-1", "await backends"), ("client-1", "verify"))
    ]
    # Each disk's own port: stub hosts have two disks, one of them for objects.
    assert sorted(stage.asked) == [f"http://10.0.0.{n}:6210/healthcheck" for n in (3, 4, 5)]
    for store in STORES:
        text = str(stage.hosts[store].files[OBJECT_CONF])
        assert "disk_chunk_size = 1048576" in text
        assert {OBJECT_CONF: hashlib.sha256(text.encode()).hexdigest()} in stage.read
    assert "disk 1048576 bytes" in running.facts["chunks"]
    assert any("disk_chunk_size = 1048576" in one.text for one in running.rendered)


def test_the_front_stops_before_and_starts_after_servers_and_background_daemons_start_last(
    stage: RunningStage,
) -> None:
    running = stage.start(background=True)
    after = swift(background=True, log_level="WARNING", haproxy={"retries": 1})
    assert running.change(after, "restart", print)
    happened = stage.done()
    stops = [what for _, what in happened if what.startswith("stop ")]
    assert stops.index("stop haproxy") < stops.index("stop proxy-server")
    order = ["start proxy-server", "ask", "start haproxy", "await backends", "verify"]
    assert [what for _, what in happened if what in order] == order
    late = happened[happened.index(("client-1", "verify")) + 1 :]
    assert {what for _, what in late} == {
        *(f"start account-{name}" for name in ("replicator", "auditor", "reaper")),
        *(f"start container-{name}" for name in ("replicator", "auditor", "updater")),
        *(f"start object-{name}" for name in ("replicator", "auditor", "updater")),
    }
    assert not re.search("memcached|rsync|syslog", str(happened))


def test_proxies_keep_their_secrets_and_an_unchanged_front_is_awaited(stage: RunningStage) -> None:
    running = stage.start()
    before = str(stage.hosts["gateway-1"].files["/etc/swift/proxy-server.conf"])
    endpoints = running.endpoints
    running.change(swift(proxy={"workers": 2}), "restart", print)
    assert stage.done() == [
        ("gateway-1", "stop proxy-server"),
        ("gateway-1", "start proxy-server"),
        ("client-1", "ask"),
        ("balancer-1", "await backends"),
        ("client-1", "verify"),
    ]
    after = str(stage.hosts["gateway-1"].files["/etc/swift/proxy-server.conf"])
    assert after == before.replace("workers = 1", "workers = 2")
    assert running.endpoints == endpoints
    key = endpoints[0].key.get_secret_value()
    assert key in after
    assert not any(key in one.text for one in running.rendered)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("", "port 6200 did not answer within 180 s, although the process is running"),
        ("no process runs with it", "object-server: no process runs with it"),
    ],
)
def test_a_server_that_is_silent_or_does_not_run_with_its_file_is_an_error(
    stage: RunningStage, fault: str, message: str
) -> None:
    running = stage.start()
    stage.silent, stage.fault = not fault, fault
    with pytest.raises(ServiceFailed, match=re.escape(message)):
        running.change(swift(object={"workers": 2}), "restart", print)


def test_the_change_after_a_failed_one_restarts_what_that_touched_and_what_died(
    stage: RunningStage,
) -> None:
    running = stage.start()
    good, stage.verified = stage.verified, FAILED
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("weighbridge.gateways.daemon._DIES_WITHIN_S", 0.0)
        with pytest.raises(VerificationFailed, match="503"):
            running.change(swift(object={"workers": 2}), "restart", print)
    assert running.facts["workers"].endswith(
        "object 1; threads for disk I/O of each object process: Swift's own number"
    )
    stage.verified = good
    for done in (
        ("restarted object-server on store-1, store-2, store-3",),
        ("nothing: it already runs with these settings",),
    ):
        assert running.change(swift(), "restart", print) == done
    assert "workers = 1" in str(stage.hosts["store-1"].files[OBJECT_CONF])
    stage.hosts["store-2"].dead.add("container-server")
    assert running.change(swift(), "restart", print) == ("restarted container-server on store-2",)
    running.check()


@pytest.mark.parametrize(
    ("settings", "scope", "message"),
    [
        ({"part_power": 8, "disks": 1}, "restart", "part_power, disks cannot be changed while"),
        ({"haproxy": {"port": 8000}}, "restart", "haproxy.port cannot be changed"),
        ({"object": {"workers": 2}}, "reload", "object.workers: this needs at least `restart`"),
        (
            {"options": {"object": {"DEFAULT": {"bind_port": 1}}}},
            "restart",
            "DEFAULT.bind_port cannot be changed",
        ),
    ],
)
def test_settings_that_cannot_change_at_runtime_are_refused_before_anything_stops(
    stage: RunningStage, settings: dict[str, Any], scope: Scope, message: str
) -> None:
    running = stage.start()
    with pytest.raises(UsageError, match=re.escape(message)):
        running.change(swift(**settings), scope, print)
    others = [
        Null("engine", NullPlace(target="gateway-1"), NullSettings()),
        Swift("swift-2.30", PLACE, SwiftSettings()),
        Swift("swift-2.35", SwiftPlacement(proxy=("gateway-1",), storage=STORES), SwiftSettings()),
    ]
    for other in others:
        with pytest.raises(UsageError, match="no other kind, release or placement"):
            running.change(other, "restart", print)
    assert stage.done() == []


SCOPES = """
restart: object.keep_cache_private proxy.error_suppression.limit log_level haproxy.balance
restart: options.object.app:object-server.splice
cluster: options.object.DEFAULT.servers_per_port options.proxy.filter:tempauth.user_weigh_bench
cluster: options.proxy.DEFAULT.bind_ip haproxy.port replicas ec.k endpoints endpoints.drop_dead
cluster: proxy.memcached_memory object.keep_cash nothing.of.this
"""


def test_the_scope_of_a_setting_is_what_depends_on_it() -> None:
    for line in SCOPES.strip().splitlines():
        scope, _, keys = line.partition(": ")
        assert {Swift.scope(key) for key in keys.split()} == {scope}
    assert Swift.scope("options.proxy.DEFAULT.set bind_ip") == "cluster"
    other: Mapping[str, Any] = {
        "object": {"workers": 2, "tpool_threads": 4},
        "options": {"proxy": {"app:x": {"a": 1}}},
    }
    keys = differing(SwiftSettings(), SwiftSettings.model_validate(other))
    assert keys == ("object.workers", "object.tpool_threads", "options.proxy.app:x.a")


@pytest.mark.parametrize(
    ("content", "argument", "started_s", "fault"),
    [
        ("text", "", 0, ""),
        ("other", "", 0, "{} is not what was written to it"),
        ("text", ".old", 0, "no process runs with {}"),
        ("text", "", 3600, "process 7 is older than {}, which it should have read"),
    ],
)
def test_processes_that_run_with_a_file_are_younger_than_it_and_the_file_is_as_written(
    tmp_path: Path, content: str, argument: str, started_s: int, fault: str
) -> None:
    conf, proc = tmp_path / "object-server.conf", tmp_path / "7"
    conf.write_text(content)
    proc.mkdir()
    (proc / "cmdline").write_bytes(f"python3\0server\0{conf}{argument}\0".encode())
    ticks = (time.clock_gettime(time.CLOCK_BOOTTIME) - started_s) * os.sysconf("SC_CLK_TCK")
    (proc / "stat").write_text("7 (a (b) c) " + " ".join(["S", *["0"] * 18, f"{ticks:.0f}", "0"]))
    (tmp_path / "9").mkdir()  # it has ended
    digest = hashlib.sha256(b"text").hexdigest()
    wrong = {str(conf): fault.format(conf)} if fault else {}
    assert faults({str(conf): digest}, str(tmp_path)) == wrong
