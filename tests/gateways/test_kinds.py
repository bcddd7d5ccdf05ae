from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gateways.rgw.planned_rgw import rgw as planned_rgw
from tests.gateways.stage import Stage, swift
from weighbridge.common.document import DocumentError
from weighbridge.common.errors import ServiceFailed, TargetError, UsageError
from weighbridge.common.host import Host
from weighbridge.common.record import Record
from weighbridge.common.structure import Scope, Structure, targets
from weighbridge.gateways.front import FRONTS
from weighbridge.gateways.gateway import STORES, Gateway, Standing
from weighbridge.gateways.null.null import Null, NullPlacement, NullSettings
from weighbridge.gateways.rgw.facts import standing
from weighbridge.gateways.sizing import HostSize, Role, Sized, bits, left_open, pieces, with_sizes
from weighbridge.gateways.verify import verify
from weighbridge.selection import hardware_named, layout_named
from weighbridge.suites import OPERATIONS, VERSIONS
from weighbridge.topologies import loader
from weighbridge.topologies.fake import FakeHost
from weighbridge.topologies.loader import (
    load_hardware,
    load_layout,
    parse,
    shipped_hardware,
    shipped_layouts,
)


def test_stores_that_ship_are_found_by_their_names_and_fronts_are_none() -> None:
    assert {"rgw", "swift", "garage", "versitygw"} <= {*STORES}
    assert not {*FRONTS, "capabilities"} & {*STORES}
    assert [name for name, one in STORES.items() if one.kind != name or not one.releases] == []


def test_small_programs_start_without_pydantic_and_botocore() -> None:
    program = (
        "import sys, weighbridge.gateways.await_answers, weighbridge.gateways.verify\n"
        "sys.exit('pydantic' in sys.modules or 'botocore' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_both_stores_use_the_same_hosts_and_disks() -> None:
    hardware = load_hardware(shipped_hardware()["lab-cpu"])
    rgw, swift = (
        load_layout(shipped_layouts()[name], hardware).gateway.needs()
        for name in ("rgw-beast", "swift")
    )
    assert {name: need.disks for name, need in rgw.items()} == {
        name: need.disks for name, need in swift.items()
    }


DISKS = {"client-1": 0, "gateway-1": 0, "store-1": 3, "store-2": 3, "store-3": 3}
STORE_HOSTS = ("store-1", "store-2", "store-3")


def rgw(settings: dict[str, object] | None = None, **place: object) -> Structure:
    return planned_rgw(settings, **place).structure(DISKS)


def test_osds_store_objects_on_all_disks_and_copy_replicas_to_each_other() -> None:
    found = rgw()
    assert found.disks == dict.fromkeys(STORE_HOSTS, (0, 1, 2))
    assert (found.replicas, found.copied_by, found.writes, found.journals) == (3, "store", 1, {})
    assert (found.front, found.daemons, found.entrances) == (None, 1, ("gateway-1",))


def test_filestore_writes_everything_twice_with_journals_on_the_same_disks() -> None:
    assert rgw({"osd": {"objectstore": "filestore"}}).writes == 2


def test_separate_journals_are_on_a_hosts_last_disk_which_may_be_a_faster_one() -> None:
    found = rgw({"osd": {"objectstore": "filestore", "disks": 2, "filestore": {"journal": "own"}}})
    assert (found.writes, found.disks["store-2"], found.journals["store-2"]) == (1, (0,), (2,))
    found = rgw({"osd": {"objectstore": "filestore", "filestore": {"journal": "own"}}})
    assert (found.disks["store-2"], found.journals["store-2"]) == ((0, 1), (2,))


def test_memstore_uses_no_disk() -> None:
    assert rgw({"osd": {"objectstore": "memstore"}}).disks == {}


def test_a_front_is_what_clients_talk_to() -> None:
    found = rgw(
        {"radosgw": {"daemons": 2}}, radosgw=["gateway-1", "gateway-2"], haproxy="balancer-1"
    )
    assert (found.front, found.daemons) == ("HAProxy", 4)
    assert (found.entrances, found.gateways) == (("balancer-1",), ("gateway-1", "gateway-2"))
    assert rgw(apache="gateway-1").front == "Apache"


def test_swift_stores_objects_on_all_disks_but_one_and_its_proxy_sends_each_replica() -> None:
    found = swift({"replicas": 2}).structure(DISKS)
    assert found.disks == dict.fromkeys(STORE_HOSTS, (1, 2))
    assert (found.replicas, found.copied_by, found.front) == (2, "gateway", None)
    assert swift({"disks": 1}).structure(DISKS).disks == dict.fromkeys(STORE_HOSTS, (0,))


def test_a_gateway_without_a_store_has_no_structure() -> None:
    place, settings = Null.Placement.model_validate({"target": "gateway-1"}), Null.Settings()
    assert Null(next(iter(Null.releases)), place, settings).structure(DISKS) is None


@pytest.mark.parametrize("kind", ["rgw", "swift"])
def test_each_release_that_has_another_ones_settings_names_one_that_has_its_own(kind: str) -> None:
    store = STORES[kind]
    others = {name: store.settings_elsewhere(name) for name in store.releases}
    assert {others[other] for other in others.values() if other} == {None}
    suites = {image.suite for image in store.releases.values() if image.distribution == "Ubuntu"}
    assert suites == {"jammy", "noble"}


LAB = loader.load_hardware(loader.shipped_hardware()["lab-cpu"])


def planned(reference: str) -> Gateway:
    wanted = parse(reference)
    path = loader.find(wanted.name, loader.shipped_layouts(), "layout")
    return loader.load_layout(path, LAB, wanted).gateway


@pytest.mark.parametrize(
    ("reference", "known"),
    [("rgw-beast@ceph-21", "ceph-20"), ("swift@swift-2.99", "swift-2.38"), ("null@2", "engine")],
)
def test_an_unknown_release_is_refused_with_the_known_ones(reference: str, known: str) -> None:
    with pytest.raises(DocumentError, match=f"no release .*known: .*{known}"):
        planned(reference)


@pytest.mark.parametrize(
    ("reference", "key", "value"),
    [
        ("rgw-apache-proxy:apache.KeepAlive=false", "keep_alive", False),  # the layout has it, too
        ("rgw-apache-proxy:apache.keep_alive=false", "keep_alive", False),
        ("rgw-haproxy:haproxy.nbthread=4", "threads", 4),
    ],
)
def test_a_reference_may_name_a_setting_as_the_daemon_does(
    reference: str, key: str, value: object
) -> None:
    gateway = planned(reference)
    assert getattr(gateway.settings.of_front(gateway.place.front_name), key) == value


@pytest.mark.parametrize(
    ("layout", "release", "other"),
    [("rgw-beast", "ceph-19", "ceph-18"), ("swift", "swift-2.33", "swift-2.30")],
)
def test_a_release_with_packages_and_another_ones_settings_can_be_planned_on_lab_hosts(
    layout: str, release: str, other: str
) -> None:
    gateway, before = planned(f"{layout}@{release}"), planned(f"{layout}@{other}")
    assert gateway.image.suite == "noble"
    sites = LAB.sites
    assert {one.path for one in gateway.render(sites)} == {one.path for one in before.render(sites)}


def test_facts_of_ceph_say_whose_settings_it_has_and_what_it_ignores(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.known = "fsid = 0\nosd_op_queue = wpq\n"
    facts = stage.rgw(release="ceph-17").facts
    said = facts["release settings"]
    assert said.startswith("those of ceph-16, as")
    assert "ceph-17 has no option 'mon_allow_pool_size_one' in [mon]" in said
    assert "ceph-17 has no option 'fsid'" not in said
    assert facts["osd: osd_op_queue"] == "1"
    assert "osd: osd_max_scrubs" not in facts
    assert "release settings" not in Stage(tmp_path).rgw(release="ceph-16").facts


def test_facts_of_swift_say_whose_settings_it_has_and_what_it_ignores(tmp_path: Path) -> None:
    facts = Stage(tmp_path).swift(release="swift-2.33").facts
    said = facts["release settings"]
    assert said.startswith("those of swift-2.30, as")
    assert "object-server.conf [DEFAULT]: Swift does not know the option 'bind_ip'" in said


GIB = 2**30
SIZES = {
    "small": HostSize(cpus=0.6, memory_bytes=2560 * 2**20, disks=1),
    "middle": HostSize(cpus=8, memory_bytes=64 * GIB, disks=4),
    "large": HostSize(cpus=40, memory_bytes=384 * GIB, disks=12),
    "unknown": HostSize(disks=2),
}


class Inner(Record):
    given: int = 1
    open: int = 1


class Outer(Record):
    inner: Inner = Inner()
    other: int = 1


@pytest.mark.parametrize(
    ("names", "shared_by", "processes"),
    [
        (["small"], 1, 1),
        (["middle"], 1, 8),
        (["large"], 1, 40),
        (["large"], 2, 20),
        (["large"], 100, 1),
        (["large", "middle"], 1, 8),
        (["large", "unknown"], 1, 1),
    ],
)
def test_a_program_has_a_process_for_each_cpu_of_the_smallest_host(
    names: list[str], shared_by: int, processes: int
) -> None:
    assert Role(names, SIZES).processes("workers", shared_by=shared_by).value == processes


def test_why_a_setting_is_as_it_is_names_the_host_and_its_figures() -> None:
    two = Role(["large", "middle"], SIZES).processes("workers", shared_by=2)
    assert two.why == "one per CPU: middle has 8, for 2 daemons"
    bound = Role(["large"], SIZES).processes("threads", most=32)
    assert (bound.value, bound.why) == (32, "one per CPU: large has 40, at most 32")
    unknown = Role(["large", "unknown"], SIZES).processes("workers")
    assert unknown.why == "one per CPU: those of unknown are not known"


@pytest.mark.parametrize(
    ("name", "shared_by", "threads"),
    [("small", 1, 512), ("small", 2, 256), ("middle", 1, 512), ("large", 1, 1280)],
)
def test_threads_that_wait_are_never_fewer_than_on_a_host_of_one_cpu(
    name: str, shared_by: int, threads: int
) -> None:
    found = Role([name], SIZES).waiting("threads", per_cpu=32, least=512, shared_by=shared_by)
    assert found.value == threads


def test_caches_are_equal_parts_of_the_hosts_memory_by_disk() -> None:
    found = Role(["large"], SIZES).cache("cache", {"large": 12}, least_bytes=GIB)
    assert found is not None
    assert (found.value, found.shown) == (19660 * 2**20, "19660 MiB")
    assert found.why == "60 % of large's 384 GiB for 12 disks"
    least = Role(["small", "large"], SIZES).cache(
        "cache", {"small": 2, "large": 12}, least_bytes=896 * 2**20
    )
    assert least is not None
    assert (least.value, least.why) == (
        896 * 2**20,
        "60 % of small's 2560 MiB for 2 disks, at least 896 MiB",
    )


def test_caches_stay_as_they_are_where_memory_or_disks_are_not_known() -> None:
    assert Role(["unknown"], SIZES).cache("cache", {"unknown": 2}, least_bytes=1) is None
    assert Role(["large"], SIZES).cache("cache", {"large": 0}, least_bytes=1) is None


@pytest.mark.parametrize(
    ("disks", "copies", "percent", "found"),
    [
        (3, 3, 64, 64),
        (3, 3, 16, 16),
        (3, 3, 4, 4),
        (36, 3, 64, 512),  # 768 is as near to 1024
        (37, 3, 64, 1024),
        (1, 3, 4, 1),
        (10**6, 1, 100, 32768),
    ],
)
def test_pieces_are_the_nearest_power_of_two_of_a_hundred_a_disk(
    disks: int, copies: int, percent: int, found: int
) -> None:
    assert pieces("pg_num", disks, copies, percent=percent, most=32768).value == found


@pytest.mark.parametrize(("disks", "power"), [(3, 10), (10, 10), (11, 11), (36, 12), (10**9, 32)])
def test_partitions_are_at_least_a_hundred_for_each_disk(disks: int, power: int) -> None:
    assert bits("part_power", disks, least=10, most=32).value == power


def test_what_a_layout_gives_itself_stays_also_where_it_gives_the_default() -> None:
    settings = Outer.model_validate({"inner": {"given": 1}})
    found = [Sized(key=key, value=7, why="") for key in ("inner.given", "inner.open", "other")]
    kept = left_open(settings, found)
    assert [one.key for one in kept] == ["inner.open", "other"]
    assert with_sizes(settings, kept) == Outer(inner=Inner(given=1, open=7), other=7)


def named(layout: str, what: str) -> list[str]:
    hardware = hardware_named("lab-cpu")
    gateway = layout_named(layout, hardware).gateway
    return [str(one) for one in targets(gateway.parts(hardware.sites), what)]


@pytest.mark.parametrize(
    ("layout", "what", "found"),
    [
        ("rgw-haproxy", "gateway-daemon", ["gateway-1/radosgw.0", "gateway-1/radosgw.1"]),
        (
            "swift-haproxy",
            "gateway-daemon",
            ["gateway-1/proxy-server-0", "gateway-1/proxy-server-1"],
        ),
        ("rgw-beast", "storage-host", ["store-2", "store-3"]),
        ("swift", "storage-host", ["store-1", "store-2", "store-3"]),
        ("rgw-beast", "storage-daemon", ["store-1/osd.0", "store-2/osd.1", "store-3/osd.2"]),
        ("swift", "store-2/container-server", ["store-2/container-server"]),
        ("swift", "gateway-1/memcached", ["gateway-1/memcached"]),
    ],
)
def test_each_layout_resolves_a_role(layout: str, what: str, found: list[str]) -> None:
    assert named(layout, what) == found


@pytest.mark.parametrize(
    ("layout", "what", "why"),
    [
        ("rgw-beast", "gateway-daemon", "it is the only radosgw"),
        ("swift", "gateway-daemon", "it is the only proxy"),
        ("rgw-beast", "store-1", "the only mon is there"),
        ("rgw-haproxy", "gateway-1/haproxy", "it is the only haproxy"),
        ("swift", "gateway-1", "the only proxy is there"),
        ("rgw-beast", "client-1", "it has no service on 'client-1'"),
    ],
)
def test_what_a_layout_has_once_may_not_die(layout: str, what: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        named(layout, what)


def status(up: int, states: dict[str, int], *, nested: bool = False) -> dict[str, Any]:
    osdmap = {"num_up_osds": up}
    by_state = [{"state_name": name, "count": count} for name, count in states.items()]
    return {
        "osdmap": {"osdmap": osdmap} if nested else osdmap,
        "pgmap": {"num_pgs": sum(states.values()), "pgs_by_state": by_state},
    }


@pytest.mark.parametrize("nested", [False, True])
def test_a_cluster_is_whole_with_all_osds_and_all_groups_clean(*, nested: bool) -> None:
    clean = {"active+clean": 90, "active+clean+scrubbing": 6}
    assert standing(status(3, clean, nested=nested), 3) == Standing(
        whole=True, words="3 of 3 OSDs up, 96 of 96 placement groups clean"
    )
    assert not standing(status(2, clean, nested=nested), 3).whole
    assert standing(status(3, {"active+clean": 95, "active+undersized": 1}), 3) == Standing(
        whole=False, words="3 of 3 OSDs up, 95 of 96 placement groups clean"
    )


@pytest.mark.parametrize("answer", [{}, {"osdmap": {}, "pgmap": {}}, {"osdmap": [], "pgmap": 1}])
def test_a_status_that_does_not_say_it_is_refused(answer: dict[str, Any]) -> None:
    with pytest.raises(TargetError, match="has no OSDs or groups"):
        standing(answer, 3)


PLACE = NullPlacement(target="gateway-1")
UNCHANGED = ("nothing: it already runs with these settings",)


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[dict[str, Host]]:
    # Its port is fixed: no two processes of tests have the same addresses.
    net = f"127.{os.getpid() >> 8 & 0x7F}.{os.getpid() & 0xFF}"
    both = {
        name: FakeHost(name, f"{net}.{len(name)}", tmp_path / name)
        for name in ("client-1", "gateway-1")
    }
    yield dict(both)
    for host in both.values():
        host.close()


def null(**settings: object) -> Null:
    return Null("engine", PLACE, NullSettings.model_validate(settings))


def test_a_null_target_restarts_with_other_options_on_the_same_port_and_key(
    hosts: dict[str, Host],
) -> None:
    running = null().bring_up(hosts, hosts["client-1"], print)
    before = running.endpoints
    assert running.change(null(delay_ms=20), "buckets", print) == (
        "restarted null-target on gateway-1",
    )
    assert running.endpoints == before
    assert running.facts["delay"] == "20 ms before each answer"
    assert running.facts["verified"].startswith("16 operations")
    checks = verify(hosts["client-1"], before, stores_bodies=False)
    assert min(check.took_ms for check in checks) >= 20
    running.check()


def test_a_null_target_serves_both_apis_and_an_unchanged_one_is_left_alone(
    hosts: dict[str, Host],
) -> None:
    given = {"threads": 2, "delay_ms": 2, "delay_spread": 0.5}
    planned = null(**given)
    running = planned.bring_up(hosts, hosts["client-1"], print)
    assert tuple(one.api for one in running.endpoints) == planned.apis()
    assert running.facts["delay"] == "1 to 3 ms, drawn by the seed, before each answer"
    key = running.endpoints[0].key.get_secret_value()
    lines = [_command_line(path) for path in Path("/proc").glob("[0-9]*/cmdline")]
    assert not [line for line in lines if key.encode() in line]
    assert any(b"null-target" in line for line in lines)
    assert running.change(null(**given), "nothing", print) == UNCHANGED


def _command_line(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""  # it ended meanwhile


def test_one_that_is_meant_to_fail_is_not_verified_and_can_be_changed_back(
    hosts: dict[str, Host],
) -> None:
    running = null(fail_share=1).bring_up(hosts, hosts["client-1"], print)
    assert running.facts["verified"] == "no: it is meant to fail or to stall"
    running.change(null(), "buckets", print)
    assert running.facts["verified"].startswith("16 operations")
    running.change(null(fail_share=1), "buckets", print)
    assert running.facts["verified"] == "no: it is meant to fail or to stall"


def test_one_that_fails_to_start_is_an_error_and_can_be_changed_back(
    hosts: dict[str, Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    running = null().bring_up(hosts, hosts["client-1"], print)
    broken = null(seed=1)
    monkeypatch.setattr(broken, "arguments", lambda _: ("no-such-verb",))
    with pytest.raises(ServiceFailed, match="null-target: died"):
        running.change(broken, "buckets", print)
    with pytest.raises(ServiceFailed, match="null-target: died"):
        running.check()
    running.change(null(), "restart", print)
    running.check()


def test_another_port_or_less_than_a_restart_is_refused_while_it_keeps_running(
    hosts: dict[str, Host],
) -> None:
    running = null().bring_up(hosts, hosts["client-1"], print)
    refused: list[tuple[Null, Scope, str]] = [
        (null(port=8081), "restart", "port cannot be changed"),
        (null(seed=1), "nothing", "seed: this needs at least `buckets`, not `nothing`"),
    ]
    for changed, scope, message in refused:
        with pytest.raises(UsageError, match=message):
            running.change(changed, scope, print)
    running.check()


def test_every_setting_of_the_null_target_but_its_port_loses_its_objects() -> None:
    assert {key: Null.scope(key) for key in ("delay_ms", "seed", "port", "nonsense")} == {
        "delay_ms": "buckets",
        "seed": "buckets",
        "port": "cluster",
        "nonsense": "cluster",
    }


def test_a_suite_is_told_before_it_starts_what_the_null_target_does_not_do() -> None:
    for api in ("s3", "swift"):
        done = {*OPERATIONS, VERSIONS} - {*null().operations_lacked(api)}
        # Two of them need `versions`.
        assert done == {
            *("read", "write", "overwrite", "delete", "head", "list", "list-all"),
            *("read-version", "list-versions"),
        }
