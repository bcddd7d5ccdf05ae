"""Changing settings of Swift on stub hosts: what is restarted, in which order, and errors."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from http_stub import Response, Server
from tests.gateways.stage import FAILED, Stage
from weighbridge.common.errors import ServiceFailed, UsageError, VerificationFailed
from weighbridge.common.structure import SCOPES, Scope, differing
from weighbridge.gateways.gateway import RunningGateway
from weighbridge.gateways.null.null import Null, NullSettings
from weighbridge.gateways.null.null import NullPlacement as NullPlace
from weighbridge.gateways.swift.settings import SwiftPlacement, SwiftSettings
from weighbridge.gateways.swift.swift import Swift
from weighbridge.gateways.swift.swift_host import processes, silent

NAMES = ("client-1", "gateway-1", "balancer-1", "store-1", "store-2", "store-3")
STORES = NAMES[3:]
PLACE = SwiftPlacement(proxy=("gateway-1",), storage=STORES, haproxy="balancer-1")
OBJECT_CONF = "/etc/swift/object-server.conf"


class RunningStage(Stage):
    """Stub hosts, what was asked of them, and what they answer."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, names=NAMES)
        self.silent: list[int] = []
        self.process: list[list[float]] = [[77, 1.0]]
        self.spoilt = ""

    def answer_on(self, host: str, argv: Sequence[str], stdin: str) -> str:
        line = " ".join(argv)
        if "swift_host.pyz running" in line:
            return json.dumps({path: self.file(host, path) for path in json.loads(stdin)})
        return (
            json.dumps(self.silent) if "swift_host.pyz silent" in line else self.answer(argv, stdin)
        )

    def file(self, host: str, path: str) -> dict[str, Any]:
        content = self.hosts[host].files[path]
        assert isinstance(content, str)
        digest = hashlib.sha256((content + self.spoilt).encode()).hexdigest()
        return {"sha256": digest, "age_s": 2.0, "processes": self.process}

    def start(self, **settings: Any) -> RunningGateway:
        running = swift(**settings).bring_up(self.hosts, self.hosts["client-1"], print)
        self.events.clear()
        return running

    def done(self) -> list[tuple[str, str]]:
        """What was stopped and started since the deployment started, with requests and checks."""
        words = {
            "swift_host.pyz silent": "ask",
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
    running = stage.start()
    done = running.change(swift(object={"disk_chunk_size": "1MiB"}), "restart", print)
    assert done == ("restarted object-server on store-1, store-2, store-3",)
    happened = stage.done()
    assert sorted(happened[:3]) == [(store, "stop object-server") for store in STORES]
    assert sorted(happened[3:6]) == [(store, "start object-server") for store in STORES]
    assert happened[6:] == [("gateway-1", "ask"), ("client-1", "verify")]
    for store in STORES:
        assert "disk_chunk_size = 1048576" in str(stage.hosts[store].files[OBJECT_CONF])
    assert "disk 1048576 bytes" in running.facts["chunks"]
    assert any("disk_chunk_size = 1048576" in one.text for one in running.rendered)


def test_the_front_stops_first_and_starts_last_except_for_background_daemons(
    stage: RunningStage,
) -> None:
    running = stage.start(background=True)
    after = swift(background=True, log_level="WARNING", haproxy={"retries": 1})
    assert running.change(after, "restart", print)
    happened = stage.done()
    stops = [what for _, what in happened if what.startswith("stop ")]
    assert stops[:2] == ["stop haproxy", "stop proxy-server"]
    order = [
        what
        for _, what in happened
        if what in {"start haproxy", "start proxy-server", "ask", "await backends", "verify"}
    ]
    assert order == ["start proxy-server", "ask", "start haproxy", "await backends", "verify"]
    late = happened[happened.index(("client-1", "verify")) + 1 :]
    assert {what for _, what in late} == {
        *(f"start account-{name}" for name in ("replicator", "auditor", "reaper")),
        *(f"start container-{name}" for name in ("replicator", "auditor", "updater")),
        *(f"start object-{name}" for name in ("replicator", "auditor", "updater")),
    }
    assert not {
        what for _, what in happened if "memcached" in what or "rsync" in what or "syslog" in what
    }


def test_an_unchanged_front_is_awaited_after_its_proxies_restarted(stage: RunningStage) -> None:
    running = stage.start()
    running.change(swift(proxy={"workers": 2}), "restart", print)
    assert stage.done() == [
        ("gateway-1", "stop proxy-server"),
        ("gateway-1", "start proxy-server"),
        ("gateway-1", "ask"),
        ("balancer-1", "await backends"),
        ("client-1", "verify"),
    ]


def test_secrets_do_not_change_and_are_not_shown(stage: RunningStage) -> None:
    running = stage.start()
    before = str(stage.hosts["gateway-1"].files["/etc/swift/proxy-server.conf"])
    endpoints = running.endpoints
    running.change(swift(proxy={"workers": 2}), "restart", print)
    after = str(stage.hosts["gateway-1"].files["/etc/swift/proxy-server.conf"])
    assert after == before.replace("workers = 1", "workers = 2")
    assert running.endpoints == endpoints
    key = endpoints[0].key.get_secret_value()
    assert key in after
    assert not any(key in one.text for one in running.rendered)


def test_each_disks_own_port_is_awaited(stage: RunningStage) -> None:
    ports = {"servers_per_port": 2}
    running = stage.start(object=ports)
    asked: list[str] = []
    answer = stage.hosts["gateway-1"]._answer

    def listening(argv: Sequence[str], stdin: str) -> str:
        if "swift_host.pyz silent" in " ".join(argv):
            asked.append(stdin)
        return answer(argv, stdin)

    stage.hosts["gateway-1"]._answer = listening
    running.change(swift(object={**ports, "mb_per_sync": 64}), "restart", print)
    # Stub hosts have two disks, one of them for objects.
    assert sorted(json.loads(asked[0])["servers"]) == [
        [f"10.0.0.{number}", 6210, ""] for number in (3, 4, 5)
    ]


@pytest.mark.parametrize(
    ("silent_servers", "process", "spoilt", "message"),
    [
        ([1], [[77, 1.0]], "", "port 6200 is open, but no request was answered"),
        ([], [[77, 1.0]], "x", "object-server.conf is not what was written to it"),
        ([], [], "", "no process runs with /etc/swift/object-server.conf"),
        ([], [[77, 1.0], [12, 60.0]], "", "process 12 is older than /etc/swift/object-server"),
    ],
)
def test_a_server_that_is_silent_or_does_not_run_with_its_file_is_an_error(
    stage: RunningStage,
    silent_servers: list[int],
    process: list[list[float]],
    spoilt: str,
    message: str,
) -> None:
    running = stage.start()
    stage.silent, stage.process, stage.spoilt = silent_servers, process, spoilt
    with pytest.raises(ServiceFailed, match=re.escape(message)):
        running.change(swift(object={"workers": 2}), "restart", print)


def test_the_change_after_a_failed_one_restarts_what_that_touched(stage: RunningStage) -> None:
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
    stage.events.clear()
    assert running.change(swift(), "restart", print) == (
        "restarted object-server on store-1, store-2, store-3",
    )
    assert running.change(swift(), "restart", print) == ("Swift: no change needed",)
    assert "workers = 1" in str(stage.hosts["store-1"].files[OBJECT_CONF])


def test_the_next_change_starts_a_dead_server(stage: RunningStage) -> None:
    running = stage.start()
    stage.hosts["store-2"].dead.add("container-server")
    assert running.change(swift(), "restart", print) == ("restarted container-server on store-2",)
    running.check()


@pytest.mark.parametrize(
    ("settings", "scope", "message"),
    [
        ({"part_power": 8, "disks": 1}, "restart", "part_power, disks cannot be changed while"),
        ({"haproxy": {"port": 8000}}, "restart", "haproxy.port cannot be changed"),
        ({"object": {"workers": 2}}, "reload", "object.workers cannot be changed by `reload`"),
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
    assert stage.done() == []


def test_another_gateway_release_or_placement_is_refused(stage: RunningStage) -> None:
    running = stage.start()
    others = [
        Null("engine", NullPlace(target="gateway-1"), NullSettings()),
        Swift("swift-2.30", PLACE, SwiftSettings()),
        Swift("swift-2.35", SwiftPlacement(proxy=("gateway-1",), storage=STORES), SwiftSettings()),
    ]
    for other in others:
        with pytest.raises(UsageError, match="no other kind, release or placement"):
            running.change(other, "restart", print)


@pytest.mark.parametrize(
    ("key", "scope"),
    [
        ("object.keep_cache_private", "restart"),
        ("proxy.error_suppression.limit", "restart"),
        ("log_level", "restart"),
        ("options.object.app:object-server.splice", "restart"),
        ("options.proxy.filter:tempauth.user_weigh_bench", "cluster"),
        ("options.proxy.DEFAULT.bind_ip", "cluster"),
        ("haproxy.balance", "restart"),
        ("haproxy.port", "cluster"),
        ("replicas", "cluster"),
        ("proxy.memcached_memory", "cluster"),
        ("object.keep_cash", "cluster"),
        ("nothing.of.this", "cluster"),
    ],
)
def test_the_scope_of_a_setting_is_what_depends_on_it(key: str, scope: Scope) -> None:
    assert Swift.scope(key) == scope


def test_every_setting_has_a_scope() -> None:
    other: Mapping[str, Any] = {
        "object": {"workers": 2, "tpool_threads": 4},
        "options": {"proxy": {"app:x": {"a": 1}}},
    }
    keys = differing(SwiftSettings(), SwiftSettings.model_validate(other))
    assert keys == ("object.workers", "object.tpool_threads", "options.proxy.app:x.a")
    assert all(Swift.scope(key) in SCOPES for key in keys)


@pytest.mark.parametrize(("status", "left"), [(200, []), (404, []), (503, [0])])
def test_any_answer_but_5xx_counts(status: int, left: list[int]) -> None:
    with Server(lambda _: Response(status)).serving() as server:
        order = {"servers": [["127.0.0.1", server.port, ""]], "deadline_s": 0.2}
        assert silent(order) == left
    assert silent({"servers": [["127.0.0.1", 9, ""]], "deadline_s": 0.0}) == [0]


def test_processes_are_found_by_the_file_in_their_arguments_with_their_age(tmp_path: Path) -> None:
    stat = "7 (a (b) c) " + " ".join(["S", *["0"] * 18, "4200", "0"])
    for number, words in {
        7: ["python3", "server", OBJECT_CONF],
        8: ["cat", f"{OBJECT_CONF}.old"],
    }.items():
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "cmdline").write_bytes(b"\0".join(word.encode() for word in words) + b"\0")
        (folder / "stat").write_text(stat)
    (tmp_path / "9").mkdir()
    assert processes(OBJECT_CONF, tmp_path, 50.0, 100) == [[7, 8.0]]
