"""The order of a bring-up and what is written on the way, on hosts that start nothing."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from stub_host import PORTS, StubHost

from weighbridge.common.errors import CommandFailed, ServiceFailed, UsageError, VerificationFailed
from weighbridge.gateways.gateway import Standing
from weighbridge.gateways.rgw.facts import uneven
from weighbridge.gateways.rgw.rgw import Rgw
from weighbridge.gateways.rgw.settings import RgwPlacement as RgwPlace
from weighbridge.gateways.rgw.settings import RgwSettings
from weighbridge.gateways.swift.settings import SwiftPlacement as SwiftPlace
from weighbridge.gateways.swift.settings import SwiftSettings
from weighbridge.gateways.swift.swift import Swift

NAMES = ("client-1", "gateway-1", "store-1", "store-2", "store-3")
STORES = ("store-1", "store-2", "store-3")

MON = """
import json, sys
log = open({log!r}, "a")
osds = 0
for line in sys.stdin:
    answers = []
    for command in json.loads(line):
        what = command["prefix"]
        log.write(json.dumps(command) + "\\n"); log.flush()
        osds += what == "osd new"
        output = {{"osd stat": {{"num_up_osds": osds}}, "osd metadata": [{{"rotational": "0"}}] * osds,
                  "status": {{"health": {{"status": "HEALTH_OK", "checks": {{}}}},
                  "pgmap": {{"num_pgs": 100, "pgs_by_state": [{{"state_name": "active+clean", "count": 100}}]}}}},
                  "pg ls-by-pool": {{"pg_stats": [{{"acting_primary": one % osds}} for one in range(64)]}}}}.get(what, "")
        assert (what == "pg ls-by-pool") == (command.get("to") == "mgr")
        answers.append([{refused}.get(what, 0), json.dumps(output) if output else "", "no"])
    print(json.dumps(answers), flush=True)
"""


class Stage:
    """Stub hosts, and what was asked of them."""

    def __init__(self, folder: Path, refused: Mapping[str, int] | None = None) -> None:
        self.events: list[tuple[str, str]] = []
        self.mon_log = folder / "mon"
        self.unknown: set[str] = set()
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
        if "weighbridge.gateways.verify" in line:
            return self.verified
        if "ask_daemon" in line:
            return json.dumps([self.option(command) for _, command in json.loads(stdin)])
        if "make_rings" in line:
            return json.dumps(dict.fromkeys(json.loads(stdin)["rings"], "cmluZw=="))
        return "[]" if "gc list" in line else "0"

    def option(self, command: Mapping[str, str]) -> str:
        if command["prefix"] != "config get":
            return ""
        return (
            '{"error": "no"}'
            if command["var"] in self.unknown
            else json.dumps({command["var"]: "1"})
        )

    def when(self, pattern: str) -> list[int]:
        """Places, in the order of events, of those that match."""
        return [
            index
            for index, (host, what) in enumerate(self.events)
            if re.search(pattern, f"{host} {what}")
        ]

    def rgw(self, settings: RgwSettings | None = None, release: str = "ceph-16") -> Standing:
        place = RgwPlace(mon="store-1", osd=STORES, radosgw=("gateway-1",))
        return Rgw(release, place, settings or RgwSettings()).bring_up(
            self.hosts, self.hosts["client-1"], print
        )

    def swift(self, settings: SwiftSettings | None = None) -> Standing:
        place = SwiftPlace(proxy=("gateway-1",), storage=STORES)
        return Swift("swift-2.30", place, settings or SwiftSettings()).bring_up(
            self.hosts, self.hosts["client-1"], print
        )


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_whose_reads_each_osd_answers_is_told_and_so_are_writes_that_it_puts_off(
    stage: Stage,
) -> None:
    facts = stage.rgw().facts
    assert facts["reads by OSD"].startswith(
        "osd.0 17 %, osd.1 17 %, osd.2 17 %, osd.3 17 %, osd.4 16 %, osd.5 16 %: "
    )
    assert facts["reads by OSD"].endswith("of the 64 placement groups of objects' data")
    assert {
        "osd: bluestore_prefer_deferred_size_ssd",
        "osd: bluestore_debug_enforce_settings",
    } <= set(facts)


def test_reads_that_one_osd_answers_half_of_are_told_as_uneven() -> None:
    assert uneven({0: 20, 1: 25, 2: 19}) == ()
    assert uneven({0: 64}) == ()
    (told,) = uneven({0: 16, 1: 9, 2: 6})
    assert told == "osd.0 answers 52 % of the reads, where 3 OSDs alike would answer 33 % each"


def test_a_release_is_not_asked_for_options_that_it_lacks(stage: Stage) -> None:
    stage.unknown = {"bluestore_debug_enforce_settings"}
    assert "osd: bluestore_debug_enforce_settings" not in stage.rgw(release="ceph-14").facts


def test_ceph_comes_up_in_the_order_that_makes_it_short(stage: Stage) -> None:
    stage.rgw()
    mkfs, osds = stage.when("ceph-osd --mkfs"), stage.when(r"start osd\.")
    assert stage.when("start mon") < osds
    assert max(mkfs) < min(osds)
    assert len(osds) == 6
    order = [
        max(osds),
        *stage.when("start radosgw"),
        *stage.when("radosgw-admin metadata put"),
        *stage.when("weighbridge.gateways.verify"),
    ]
    order += stage.when("start mgr")
    assert order == sorted(order)
    assert len(order) == 5


def test_an_osd_for_every_disk_and_every_pool_before_radosgw_wants_it(stage: Stage) -> None:
    stage.rgw()
    commands = [json.loads(line) for line in stage.mon_log.read_text().splitlines()]
    assert [one["id"] for one in commands if one["prefix"] == "osd new"] == [0, 1, 2, 3, 4, 5]
    made = {one["pool"] for one in commands if one["prefix"] == "osd pool create"}
    assert made == {
        one["pool"] for one in commands if one["prefix"] == "osd pool application enable"
    }
    assert len(made) == 7
    assert {one["name"]: one["value"] for one in commands if one["prefix"] == "config set"}[
        "mgr/balancer/active"
    ] == "false"


def test_only_the_disks_that_the_layout_wants_get_an_osd(stage: Stage) -> None:
    stage.rgw(RgwSettings.model_validate({"osd": {"disks": 1}}))
    assert len(stage.when(r"start osd\.")) == 3


def test_replicas_without_osds_for_them_are_refused_before_anything_is_started(
    stage: Stage,
) -> None:
    few = RgwSettings.model_validate({"pools": {"replicas": 7, "failure_domain": "osd"}})
    with pytest.raises(
        UsageError, match="7 replicas need as many OSDs; the disks of the osd hosts make 6"
    ):
        stage.rgw(few)
    assert stage.events == []


def test_no_secret_is_on_any_command_line(stage: Stage) -> None:
    for standing in (stage.rgw(), stage.swift(SwiftSettings(s3api=True))):
        secrets = [endpoint.key.get_secret_value() for endpoint in standing.endpoints]
        assert not [what for _, what in stage.events for secret in secrets if secret in what]


def test_what_is_rendered_is_what_was_written_with_its_secrets_masked(stage: Stage) -> None:
    for standing in (stage.rgw(), stage.swift(SwiftSettings(s3api=True))):
        secrets = [endpoint.key.get_secret_value() for endpoint in standing.endpoints]
        assert standing.rendered
        for one in standing.rendered:
            written = stage.hosts[one.host].files[one.path]
            assert isinstance(written, str)
            assert len(written.splitlines()) == len(one.text.splitlines())
            assert not [secret for secret in secrets if secret in one.text]


def test_the_keyring_is_for_root_alone(stage: Stage) -> None:
    standing = stage.rgw()
    shown = next(one for one in standing.rendered if one.path == "/etc/ceph/keyring")
    assert "key = ***" in shown.text
    assert "==" not in shown.text


def test_an_option_that_ceph_does_not_know_is_an_error_not_a_silence(stage: Stage) -> None:
    stage.unknown.add("osd_op_num_shard")
    with pytest.raises(ServiceFailed, match=r"osd\.0: does not know the option 'osd_op_num_shard'"):
        stage.rgw(RgwSettings.model_validate({"options": {"osd": {"osd_op_num_shard": 3}}}))


def test_a_command_that_the_mon_refuses_ends_the_bring_up_with_its_words(tmp_path: Path) -> None:
    stage = Stage(tmp_path, refused={"osd pool create": -34})
    with pytest.raises(CommandFailed, match=r"(?s)osd pool create.*ended with -34\nno"):
        stage.rgw()
    assert not stage.when("start radosgw")


def test_a_refused_drop_of_caches_is_an_error(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    standing = stage.rgw()
    assert any("6 OSDs" in line for line in standing.drop_caches())
    monkeypatch.setattr(
        stage,
        "option",
        lambda command: "unknown command" if command["prefix"] == "cache drop" else "",
    )
    with pytest.raises(ServiceFailed, match="caches not dropped: unknown command"):
        standing.drop_caches()


def test_swifts_servers_start_when_rings_and_disks_are_ready(stage: Stage) -> None:
    stage.swift()
    servers = stage.when(r"start (proxy|account|container|object)-server")
    assert len(servers) == 10
    assert max([*stage.when("make_rings"), *stage.when("mkfs.xfs")]) < min(servers)
    assert max(servers) < stage.when("weighbridge.gateways.verify")[0]
    assert all(
        f"/etc/swift/{kind}.ring.gz" in stage.hosts[name].files
        for name in NAMES[1:]
        for kind in ("account", "container", "object")
    )


def test_each_host_has_a_reader_of_its_log_before_any_server(stage: Stage) -> None:
    stage.swift()
    assert max(stage.when("start syslog")) < min(stage.when("start account-server"))
    assert len(stage.when("start syslog")) == 4


def test_databases_get_a_disk_of_their_own_where_there_are_two(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, list[dict[str, object]]]] = []
    answer = stage.answer

    def listen(argv: Sequence[str], stdin: str) -> str:
        if "make_rings" in " ".join(argv):
            asked.append(json.loads(stdin)["rings"])
        return answer(argv, stdin)

    for host in stage.hosts.values():
        monkeypatch.setattr(host, "_answer", listen)
    stage.swift()
    stage.swift(SwiftSettings(disks=1))
    two, one = asked
    for rings in (two, one):
        assert {place["device"] for place in rings["object"]} == {"d0"}
        assert {place["device"] for place in rings["account"]} == {"db0"}
        assert [place["zone"] for place in rings["container"]] == [1, 2, 3]
    mounts = [what for host, what in stage.events if host == "store-1" and "mkfs.xfs" in what]
    assert "/dev/wb0 /srv/database/db0" in mounts[0]
    assert "/dev/wb1 /srv/node/d0" in mounts[0]
    assert "/dev/wb0 /srv/node/d0" in mounts[1]
    assert "mount --bind /srv/node/d0 /srv/database/db0" in mounts[1]


def test_background_daemons_start_after_verification_and_only_when_wanted(stage: Stage) -> None:
    stage.swift()
    assert not stage.when("start object-replicator")
    standing = stage.swift(SwiftSettings(background=True))
    replicators = stage.when("start object-replicator")
    assert len(replicators) == 3
    assert min(replicators) > stage.when("weighbridge.gateways.verify")[1]
    assert (
        standing.facts["background: repair of replicas"]
        == "replicators run, at Swift's own intervals"
    )


def test_the_pipeline_that_runs_comes_from_the_proxys_log(stage: Stage) -> None:
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


def test_facts_say_which_pipeline_it_is_and_what_the_bare_one_does_not_do(stage: Stage) -> None:
    assert stage.swift().facts["pipeline kind"].startswith("standard: ")
    assert "proxies and storage servers off" in stage.swift().facts["logging"]
    bare = stage.swift(SwiftSettings(pipeline="study-2014")).facts
    assert bare["pipeline kind"].startswith("study-2014: ")
    assert "without doing what they ask" in bare["pipeline kind"]
    assert "of proxies none" in bare["logging"]


def test_a_wrong_answer_is_told_as_it_is_when_every_daemon_lives(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weighbridge.gateways.daemon._DIES_WITHIN_S", 0.2)
    failed = {
        "api": "swift",
        "url": "http://u",
        "operation": "GET",
        "what": "200 was expected",
        "status": 503,
        "body": "busy",
    }
    stage.verified = json.dumps({"failed": failed})
    with pytest.raises(
        VerificationFailed, match=r"swift GET at http://u: 200 was expected \(status 503\)\nbusy"
    ):
        stage.swift()


def test_a_dead_daemon_is_blamed_for_a_wrong_answer(stage: Stage) -> None:
    failed = {
        "api": "swift",
        "url": "http://u",
        "operation": "GET",
        "what": "200 was expected",
        "status": 503,
        "body": "busy",
    }
    stage.verified = json.dumps({"failed": failed})
    stage.hosts["store-2"].dead.add("object-server")
    with pytest.raises(ServiceFailed, match="store-2: object-server: died"):
        stage.swift()


def test_files_with_secrets_are_for_their_daemons_alone_and_no_two_deployments_share_one(
    tmp_path: Path,
) -> None:
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
