"""The order of starting RGW and Swift and the files written meanwhile, on stub hosts."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.gateways.rgw.planned_rgw import rgw
from tests.gateways.stage import FAILED, NAMES, STORES, Mon, Stage, swift
from tests.gateways.stub_host import StubHost
from weighbridge.common import program_lines
from weighbridge.common.errors import CommandFailed, ServiceFailed, VerificationFailed
from weighbridge.common.host import Service
from weighbridge.gateways import daemon
from weighbridge.gateways import together as module
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.rgw.facts import uneven
from weighbridge.gateways.rgw.settings import RgwSettings
from weighbridge.gateways.swift.settings import SwiftSettings
from weighbridge.gateways.together import THREADS, together


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def asked_of_mon(stage: Stage) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stage.mon_log.read_text().splitlines()]


def test_facts_show_each_osds_share_of_reads_and_which_writes_are_deferred(stage: Stage) -> None:
    facts = stage.rgw().facts
    assert facts["reads by OSD"].startswith(
        "osd.0 17 %, osd.1 17 %, osd.2 17 %, osd.3 17 %, osd.4 16 %, osd.5 16 % of reads"
    )
    assert facts["reads by OSD"].endswith("by 64 placement groups of object data")
    assert {
        "osd: bluestore_prefer_deferred_size_ssd",
        "osd: bluestore_debug_enforce_settings",
    } <= set(facts)
    # A release is not asked for options that it lacks.
    stage.unknown = {"bluestore_debug_enforce_settings"}
    assert "osd: bluestore_debug_enforce_settings" not in stage.rgw(release="ceph-14").facts


def test_an_osd_with_half_of_the_reads_is_reported_as_uneven() -> None:
    assert uneven({0: 20, 1: 25, 2: 19}) == ()
    assert uneven({0: 64}) == ()
    (text,) = uneven({0: 16, 1: 9, 2: 6})
    assert text == "osd.0 answers 52 % of the reads; an even share of 3 OSDs would be 33 %"


def test_ceph_starts_in_the_order_that_makes_it_fast(stage: Stage) -> None:
    stage.rgw()
    mkfs, osds = stage.when("ceph-osd --mkfs"), stage.when(r"start osd\.")
    assert stage.when("start mon") < osds
    assert max(mkfs) < min(osds)
    late = ("start radosgw", "radosgw-admin metadata put", "gateways.verify")
    order = [max(osds), *(stage.when(what)[0] for what in late)]
    assert order == sorted(order)
    commands = asked_of_mon(stage)
    assert [one["id"] for one in commands if one["prefix"] == "osd new"] == [0, 1, 2, 3, 4, 5]
    pools = [
        {one["pool"] for one in commands if one["prefix"] == f"osd pool {what}"}
        for what in ("create", "application enable")
    ]
    assert pools[0] == pools[1]
    assert len(pools[0]) == 7
    muted = [one["code"] for one in commands if one["prefix"] == "health mute"]
    assert muted == ["MGR_MODULE_ERROR"]
    stage.rgw(RgwSettings.model_validate({"osd": {"disks": 1}}))
    assert len(stage.when(r"start osd\.")) == 6 + 3


def test_a_release_that_loads_the_modules_of_the_mgr_gets_a_balancer_that_rests(
    stage: Stage,
) -> None:
    stage.rgw(release="ceph-14")
    commands = asked_of_mon(stage)
    assert {one["name"]: one["value"] for one in commands if one["prefix"] == "config set"}[
        "mgr/balancer/active"
    ] == "false"
    assert not [one for one in commands if one["prefix"] == "health mute"]


def test_more_replicas_than_osds_are_refused_before_anything_starts(stage: Stage) -> None:
    few = rgw({"pools": {"replicas": 7, "failure_domain": "osd"}})
    (found,) = few.lacks(dict.fromkeys(STORES, 2))
    assert str(found).startswith("7 replicas need 7 OSDs; the disks of the osd hosts give 6")
    assert found.at == ("settings", "pools", "replicas")
    assert not few.lacks(dict.fromkeys(STORES, 3))


def test_an_erasure_coded_pool_gets_its_profile_first_and_only_object_data_is_coded(
    stage: Stage,
) -> None:
    running = stage.rgw(RgwSettings.model_validate({"pools": {"ec": {"k": 2, "m": 1}}}))
    commands = asked_of_mon(stage)
    prefixes = [one["prefix"] for one in commands]
    assert prefixes.index("osd erasure-code-profile set") < prefixes.index("osd pool create")
    coded = [one["pool"] for one in commands if one.get("pool_type") == "erasure"]
    assert coded == ["default.rgw.buckets.data"]
    profile = next(one for one in commands if one["prefix"] == "osd erasure-code-profile set")
    assert {"k=2", "m=1", "crush-failure-domain=host"} <= set(profile["profile"])
    assert running.facts["replicas"].startswith("erasure coded, 2 data and 1 parity fragments")
    assert "other pools 3 replicas" in running.facts["replicas"]


def test_the_zone_compresses_before_the_first_radosgw_starts(stage: Stage) -> None:
    stage.zone = "zstd"
    found = stage.rgw(RgwSettings.model_validate({"radosgw": {"compression": "zstd"}}))
    (changed,) = stage.when("zone placement modify .*--compression zstd")
    assert changed < min(stage.when("start radosgw"))
    assert found.facts["compression"].startswith("zstd")


def test_erasure_coded_swift_has_a_ring_of_as_many_replicas_as_fragments(stage: Stage) -> None:
    ec = SwiftSettings.model_validate({"ec": {"k": 2, "m": 1}, "replicas": 2})
    stage.policy = {"ec_type": "x", "ec_ndata": 2, "ec_nparity": 1, "ec_segment_size": 9}
    found = stage.swift(ec)
    rings = stage.rings
    assert {kind: own["replicas"] for kind, own in rings.items()} == {
        "account": 2,
        "container": 2,
        "object": 2,
        "object-1": 3,
    }
    assert rings["object-1"]["devices"] == rings["object"]["devices"]
    assert "3 of 3 fragments" in found.facts["acknowledgement"]


def test_rendered_files_are_the_written_ones_with_secrets_masked(stage: Stage) -> None:
    for running in (stage.rgw(), stage.swift(SwiftSettings(s3api=True))):
        secrets = [endpoint.key.get_secret_value() for endpoint in running.endpoints]
        assert running.rendered
        for one in running.rendered:
            written = stage.hosts[one.host].files[one.path]
            assert isinstance(written, str)
            assert len(written.splitlines()) == len(one.text.splitlines())
            assert not [secret for secret in secrets if secret in one.text]


def test_an_option_that_ceph_does_not_know_is_an_error(stage: Stage) -> None:
    stage.unknown.add("osd_op_num_shard")
    with pytest.raises(ServiceFailed, match=r"osd\.0: does not know the option 'osd_op_num_shard'"):
        stage.rgw(RgwSettings.model_validate({"options": {"osd": {"osd_op_num_shard": 3}}}))


def test_a_command_that_the_mon_refuses_fails_the_start_with_its_message(tmp_path: Path) -> None:
    stage = Stage(tmp_path, refused={"osd pool create": -34})
    with pytest.raises(CommandFailed, match=r"(?s)osd pool create.*ended with -34\nno"):
        stage.rgw()
    assert not stage.when("start radosgw")


def test_a_refused_cache_drop_is_an_error(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    running = stage.rgw()
    assert any("6 OSDs" in line for line in running.drop_caches())
    monkeypatch.setattr(
        stage,
        "option",
        lambda command: "unknown command" if command["prefix"] == "cache drop" else "",
    )
    with pytest.raises(ServiceFailed, match="caches not dropped: unknown command"):
        running.drop_caches()


def test_swifts_servers_start_when_rings_and_disks_are_ready(stage: Stage) -> None:
    stage.swift()
    servers = stage.when(r"start (proxy|account|container|object)-server")
    assert len(servers) == 10
    assert len(stage.when("start syslog")) == 4
    assert max(stage.when("start syslog")) < min(stage.when("start account-server"))
    assert max([*stage.when("swift_host.pyz rings"), *stage.when("mkfs.xfs")]) < min(servers)
    assert max(servers) < stage.when("weighbridge.gateways.verify")[0]
    assert all(
        f"/etc/swift/{kind}.ring.gz" in stage.hosts[name].files
        for name in NAMES[1:]
        for kind in ("account", "container", "object")
    )


def test_databases_get_a_separate_disk_where_there_are_two(stage: Stage) -> None:
    for settings in (SwiftSettings(), SwiftSettings(disks=1)):
        stage.swift(settings)
        devices = {kind: own["devices"] for kind, own in stage.rings.items()}
        assert {place["device"] for place in devices["object"]} == {"d0"}
        assert {place["device"] for place in devices["account"]} == {"db0"}
        assert [place["zone"] for place in devices["container"]] == [1, 2, 3]
    mounts = [what for host, what in stage.events if host == "store-1" and "mkfs.xfs" in what]
    assert "/dev/wb0 /srv/database/db0" in mounts[0]
    assert "/dev/wb1 /srv/node/d0" in mounts[0]
    assert "/dev/wb0 /srv/node/d0" in mounts[1]
    assert "mount --bind /srv/node/d0 /srv/database/db0" in mounts[1]


def test_background_daemons_start_after_verification_and_only_if_enabled(stage: Stage) -> None:
    stage.swift()
    assert not stage.when("start object-replicator")
    running = stage.swift(SwiftSettings(background=True))
    replicators = stage.when("start object-replicator")
    assert len(replicators) == 3
    assert min(replicators) > stage.when("weighbridge.gateways.verify")[1]
    assert (
        running.facts["background: repair of replicas"]
        == "replicators run, at Swift's own intervals"
    )


def test_the_running_pipeline_comes_from_the_proxys_log(stage: Stage) -> None:
    bare = SwiftSettings(pipeline="study-2014")
    assert (
        stage.swift(bare).facts["pipeline"]
        == "healthcheck cache tempauth proxy-server (as configured)"
    )
    log = stage.hosts["gateway-1"].log("swift.log")
    log.write_text(
        'proxy-server: Pipeline was modified. New pipeline is "catch_errors cache tempauth '
        'proxy-server".\n'
    )
    assert (
        stage.swift(bare).facts["pipeline"]
        == "catch_errors cache tempauth proxy-server (as the proxy logged it)"
    )


def test_facts_name_the_pipeline_and_what_the_bare_one_does_not_do(stage: Stage) -> None:
    assert stage.swift().facts["pipeline kind"].startswith("standard: ")
    assert "proxies and storage servers off" in stage.swift().facts["logging"]
    bare = stage.swift(SwiftSettings(pipeline="study-2014")).facts
    assert bare["pipeline kind"].startswith("study-2014: ")
    assert "not carried out" in bare["pipeline kind"]
    assert "of proxies none" in bare["logging"]


def test_a_wrong_answer_is_the_error_while_every_daemon_runs(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weighbridge.gateways.daemon._DIES_WITHIN_S", 0.2)
    stage.verified = FAILED
    stage.hosts["store-1"].dead.add("rsync")  # as it is until all is verified
    with pytest.raises(
        VerificationFailed, match=r"swift GET at http://u: 200 was expected \(status 503\)\nbusy"
    ):
        stage.swift(SwiftSettings(background=True))


def test_a_dead_daemon_is_blamed_for_a_wrong_answer(stage: Stage) -> None:
    stage.verified = FAILED
    stage.hosts["store-2"].dead.add("object-server")
    with pytest.raises(ServiceFailed, match="store-2: object-server: died"):
        stage.swift()


def test_only_daemons_can_read_secrets_and_no_two_deployments_share_one(tmp_path: Path) -> None:
    found: list[set[str]] = []
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        stage = Stage(tmp_path / str(number))
        endpoints = (*stage.rgw().endpoints, *stage.swift().endpoints)
        secrets = {one.key.get_secret_value() for one in endpoints}
        for host in stage.hosts.values():
            for path, content in host.files.items():
                keys = re.findall(
                    r"^(?:key|swift_hash_path_\w+) = (\S+)$", str(content), re.MULTILINE
                )
                secrets.update(keys)
                if keys or any(secret in str(content) for secret in secrets):
                    assert host.modes[path] == (
                        0o600,
                        "swift" if path.startswith("/etc/swift/") else "root",
                    ), path
        assert len(secrets) >= 3 + 2 + 6, (
            "two APIs of RGW, one of Swift, its prefix and suffix, cephx keys"
        )
        assert not [
            what for _, what in stage.events if any(secret in what for secret in secrets)
        ], "on a command line"
        found.append(secrets)
    assert not found[0] & found[1]


class Going(StubHost):
    """A host that can disappear."""

    gone = False

    def is_up(self) -> bool:
        return not self.gone

    def alive(self, service: str) -> bool:
        return not self.gone and super().alive(service)


def hosts(folder: Path) -> tuple[Going, Going, list[Daemon]]:
    first, second = (
        Going(name, "10.0.0.1", folder, [], lambda *_: "", {}) for name in ("store-1", "store-2")
    )
    names = [
        (first, "account-server"),
        (second, "account-server"),
        (second, "container-server"),
        (second, "object-server"),
    ]
    return first, second, [Daemon(host, Service(name, (name,))) for host, name in names]


def test_the_first_dead_daemon_and_all_others_are_named_with_their_hosts(tmp_path: Path) -> None:
    first, second, daemons = hosts(tmp_path)
    daemon.check(daemons)
    second.dead = {"container-server"}
    with pytest.raises(ServiceFailed, match=r"^store-2: container-server: died(\n|$)"):
        daemon.check(daemons)
    first.dead = {"account-server"}
    second.dead = {"account-server", "container-server", "object-server"}
    others = "so did account-server, container-server and object-server on store-2"
    with pytest.raises(ServiceFailed, match=f"^store-1: account-server: died; {others}"):
        daemon.check(daemons)


def test_a_daemon_that_died_with_its_host_is_reported_so(tmp_path: Path) -> None:
    _, second, daemons = hosts(tmp_path)
    second.gone = True
    with pytest.raises(ServiceFailed, match=r"died with its host.*; so did container-server and "):
        daemon.check(daemons)


def test_osds_that_were_killed_are_started_again_however_slow_the_mon_is(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = stage.rgw()
    monkeypatch.setattr(program_lines, "LOOK_S", 0.0)  # it looks after daemons while it waits
    dead = [one for one in running.daemons() if one.service.name in {"osd.2", "osd.3"}]
    for one in dead:
        one.host.kill(one.service.name)
    before = len(stage.events)
    running.revive(dead)
    assert sorted(stage.started(before)) == ["store-2 osd.2", "store-2 osd.3"]


def test_a_mon_that_died_is_told_and_not_waited_for(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = stage.rgw()
    monkeypatch.setattr(Mon, "__call__", lambda _, commands, __: len(list(commands)))  # no answer
    stage.hosts["store-1"].kill("mon")
    dead = [one for one in running.daemons() if one.service.name == "osd.2"]
    with pytest.raises(ServiceFailed, match="mon"):
        running.revive(dead)


@pytest.mark.parametrize(
    ("objectstore", "remounted"), [("bluestore", ""), ("filestore", "umount /var/lib/ceph/osd/3")]
)
def test_only_the_osd_of_a_disk_that_answers_again_is_started_again(
    stage: Stage, objectstore: str, remounted: str
) -> None:
    running = stage.rgw(RgwSettings.model_validate({"osd": {"objectstore": objectstore}}))
    before = len(stage.events)
    running.mend_disk("store-2", "/dev/wb1")
    assert stage.started(before) == ["store-2 osd.3"]
    scripts = [what for _, what in stage.events[before:] if what.startswith("sh -ec")]
    assert ("umount" in "".join(scripts)) == bool(remounted)
    assert remounted in "".join(scripts)


def test_a_disk_of_swift_is_mounted_again_below_its_servers_and_a_front_beside_them_goes_on(
    stage: Stage,
) -> None:
    planned = swift({"disks": 1}, haproxy="store-1")
    running = planned.bring_up(stage.hosts, stage.hosts["client-1"], print)
    before = len(stage.events)
    running.mend_disk("store-1", "/dev/wb0")
    assert sorted(stage.started(before)) == [
        f"store-1 {one}-server" for one in ("account", "container", "object")
    ]
    (script,) = [what for _, what in stage.events[before:] if "umount" in what]
    lines = script.removeprefix("sh -ec ").split("\n")
    # The second place of the same file system first: it would keep the disk busy.
    assert lines[:2] == ["umount /srv/database/db0", "umount /srv/node/d0"]
    assert lines[2].endswith("/dev/wb0 /srv/node/d0")


def test_all_end_before_the_first_error_is_raised() -> None:
    ended = []

    def fail() -> None:
        raise ValueError("first")

    def end() -> None:
        time.sleep(0.05)
        ended.append(1)

    with pytest.raises(ValueError, match="first"):
        together([fail, end, end])
    assert ended == [1, 1]


def test_after_an_interrupt_no_more_calls_begin_and_those_that_began_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, ended = [], []
    release = threading.Event()

    def call() -> None:
        begun.append(1)
        release.wait(30)
        ended.append(1)

    def interrupted(_futures: object) -> None:
        threading.Timer(1.0, release.set).start()  # by then the others are cancelled
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "wait", interrupted)
    calls: Sequence[Callable[[], None]] = [call] * (3 * THREADS)
    with pytest.raises(KeyboardInterrupt):
        together(calls)
    assert len(begun) <= THREADS
    assert len(ended) == len(begun)
