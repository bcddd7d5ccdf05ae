"""What a layout of RGW becomes: options, stores of OSDs, refusals, shipped layouts."""

import base64
import json
import re
import struct
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.gateways.rgw.planned_rgw import SITES, STORES, Spot, conf, rgw
from tests.gateways.stage import Stage
from weighbridge.common.document import DocumentError
from weighbridge.common.errors import UsageError
from weighbridge.common.host import Completed
from weighbridge.gateways.apache.front import STATS_PORT
from weighbridge.gateways.rgw.plan import CONF, KEYRING
from weighbridge.gateways.rgw.rgw import Rgw
from weighbridge.topologies.loader import (
    load_hardware,
    load_layout,
    shipped_hardware,
    shipped_layouts,
)

RADOSGW = "client.rgw.gateway-1"
BEAST = "beast endpoint=10.0.0.9:8000 tcp_nodelay="
HAPROXY, APACHE = {"haproxy": "gateway-1"}, {"apache": "gateway-1"}
VAULT = "options.client.rgw_crypt_sse_s3_vault_addr=http://10.0.0.7:8200"
FILES, BTRFS = (
    "osd.objectstore=filestore",
    "osd.filestore.filesystem=btrfs osd.filestore.raid0=true",
)
WORDS = "radosgw.frontend_options"
JOURNALS, MEMORY = "osd.filestore.journal=own", "osd.objectstore=memstore"
MONS = {"mon": STORES}


def given(changes: str) -> dict[str, Any]:
    """Settings of `KEY=VALUE KEY=VALUE`."""
    settings: dict[str, Any] = {}
    for change in changes.split():
        key, _, value = change.partition("=")
        *path, last = key.split(".")
        inner = settings
        for word in path:
            inner = inner.setdefault(word, {})
        inner[last] = yaml.safe_load(value)
    return settings


@pytest.mark.parametrize(
    ("changes", "place", "section", "name", "value"),
    [
        ("", {}, RADOSGW, "rgw_frontends", f"{BEAST}1"),
        ("radosgw.tcp_nodelay=false", {}, RADOSGW, "rgw_frontends", f"{BEAST}0"),
        (
            *("radosgw.frontend=civetweb radosgw.threads=100", {}, RADOSGW, "rgw_frontends"),
            "civetweb port=10.0.0.9:8000 tcp_nodelay=1 num_threads=100",
        ),
        (
            f"{WORDS}.request_timeout_ms=0 {WORDS}.max_header_size=9",
            *({}, RADOSGW, "rgw_frontends", f"{BEAST}1 request_timeout_ms=0 max_header_size=9"),
        ),
        # Hosts that share a kernel.
        ("", {}, "osd.0", "crush_location", "root=default host=store-1"),
        ("", {}, "osd.2", "crush_location", "root=default host=store-2"),
        ("", {}, "osd.2", "public_addr", "10.0.0.2"),
        # Options of the layout go before ours.
        ("options.osd.osd_memory_target=7", {}, "osd", "osd_memory_target", "7"),
        ("options.osd.osd_op_num_shards=1", {}, "osd", "osd_op_num_shards", "1"),
        ("options.client.rgw_frontends=b", {}, "client", "rgw_frontends", "b"),
        ("options.client.rgw_frontends=b", {}, RADOSGW, "rgw_frontends", None),
        # Scrubs are off without a flag that causes a warning.
        ("", {}, "osd", "osd_max_scrubs", "0"),
        ("osd.scrub=true", {}, "osd", "osd_max_scrubs", None),
        # A single replica does not make the cluster unhealthy.
        ("pools.replicas=1 pools.min_size=1", {}, "mon", "mon_allow_pool_size_one", "true"),
        ("pools.replicas=1 pools.min_size=1", {}, "mon", "mon_warn_on_pool_no_redundancy", "false"),
        # The rule for copies.
        ("", {}, "mon", "osd_crush_chooseleaf_type", "1"),
        (
            "pools.failure_domain=osd",
            *({"osd": ("store-1",)}, "mon", "osd_crush_chooseleaf_type", "0"),
        ),
        # Clients of Swift get the address of the front.
        ("", {}, "client", "rgw_swift_url", None),
        ("", HAPROXY, "client", "rgw_swift_url", "http://10.0.0.9"),
        ("apache.port=81", APACHE, "client", "rgw_swift_url", "http://10.0.0.9:81"),
        # Sizes are in bytes.
        ("radosgw.max_chunk_size=8MiB", {}, "client", "rgw_max_chunk_size", str(8 << 20)),
        ("radosgw.get_window=32MiB", {}, "client", "rgw_get_obj_window_size", str(32 << 20)),
        ("radosgw.print_continue=false", {}, "client", "rgw_print_continue", "false"),
        # By Ceph's own names.
        ("radosgw.rgw_thread_pool_size=64", {}, "client", "rgw_thread_pool_size", "64"),
        ("radosgw.rgw_gc_obj_min_wait=90s", {}, "client", "rgw_gc_obj_min_wait", "90"),
        ("", {}, "global", "debug_rgw", "0/0"),
        ("log=default", {}, "global", "debug_rgw", None),
        ("", {}, "global", "ms_bind_ipv4", None),
        # A network of their own.
        ("", {}, "osd.0", "cluster_addr", "10.0.0.1"),
        ("osd.cluster_network=10.2.0.0/24", {}, "osd", "cluster_network", "10.2.0.0/24"),
        ("osd.cluster_network=10.2.0.0/24", {}, "osd.0", "cluster_addr", None),
        ("osd.cluster_network=10.2.0.0/24", {}, "osd.0", "public_addr", "10.0.0.1"),
        # Stores of OSDs.
        (f"{FILES} {JOURNALS}", {}, "osd.1", "osd_journal", "/var/lib/ceph/journal/1"),
        (f"{FILES} osd.filestore.filesystem=ext4", {}, "osd", "osd_max_object_name_len", "256"),
        (f"{FILES} osd.filestore.filesystem=ext4", {}, "osd", "osd_max_object_namespace_len", "64"),
        (FILES, {}, "osd", "osd_max_object_name_len", None),
        (f"{MEMORY} osd.memstore.size=64MiB", {}, "osd", "memstore_device_bytes", str(64 << 20)),
        # Several radosgw, and several mons, each with a mgr.
        (
            *("radosgw.daemons=2 radosgw.port=8100", HAPROXY, f"{RADOSGW}.1", "rgw_frontends"),
            "beast endpoint=10.0.0.9:8101 tcp_nodelay=1",
        ),
        ("", MONS, "global", "mon_initial_members", "a,b,c"),
        (
            *("", MONS, "global", "mon_host"),
            ",".join(f"[v2:10.0.0.{number}:3300,v1:10.0.0.{number}:6789]" for number in (1, 2, 3)),
        ),
        ("", MONS, "mon.b", "public_addr", "10.0.0.2"),
        ("", MONS, "mgr.b", "public_addr", "10.0.0.2"),
    ],
)
def test_a_setting_is_written_as_ceph_reads_it(
    changes: str, place: dict[str, object], section: str, name: str, value: str | None
) -> None:
    assert conf(given(changes), **place)[section].get(name) == value


def test_options_that_a_release_lacks_are_not_written() -> None:
    assert "mon_allow_pool_size_one" in conf({}, "ceph-16")["mon"]
    assert "mon_allow_pool_size_one" not in conf({}, "ceph-14")["mon"]


@pytest.mark.parametrize(("gateway", "both"), [("fd00::9", "false"), ("10.0.0.9", "true")])
def test_ceph_binds_to_ipv6_where_hosts_have_it(gateway: str, both: str) -> None:
    sites = {name: Spot(name, f"fd00::{number}") for number, name in enumerate(STORES, 1)}
    sites["gateway-1"] = Spot("gateway-1", gateway)
    text = next(one.text for one in rgw().render(sites) if one.path == CONF)
    assert "mon_host = [v2:[fd00::1]:3300,v1:[fd00::1]:6789]\n" in text
    assert f"ms_bind_ipv4 = {both}\nms_bind_ipv6 = true\n" in text


@pytest.mark.parametrize(
    ("changes", "place", "message"),
    [
        ("pools.data_pg_num=24", {}, "not a power of two"),
        ("pools.replicas=2 pools.min_size=3", {}, "min_size 3 is above replicas 2"),
        ("osd.memory_target=512MiB", {}, "greater than or equal to"),
        ("radosgw.tcp_no_delay=1", {}, "tcp_no_delay"),
        ("radosgw.threads=1 radosgw.rgw_thread_pool_size=2", {}, "is threads, and both are given"),
        ("options.osds.a=1", {}, "osds"),
        ("options.osd.bad-name=1", {}, "pattern"),
        ("radosgw.daemons=2", {}, "2 radosgw need a front, haproxy or apache"),
        ("", {"radosgw": ("gateway-1", "store-1")}, "2 radosgw need a front"),
        ("endpoints={}", {}, "without a front, but there is one"),
        ("endpoints={} radosgw.daemons=2", HAPROXY, "without a front, but clients use its front"),
        ("haproxy.port=80", {}, "of haproxy are given, but place names no host for it"),
        ("apache.path=http", HAPROXY, "settings of apache are given"),
        ("haproxy.port=8000", HAPROXY, "8000 of haproxy is taken by radosgw"),
        ("haproxy.port=8001 radosgw.daemons=2", HAPROXY, "8001 of haproxy is taken by radosgw"),
        ("radosgw.port=3300", {"radosgw": ("store-1",)}, "radosgw is taken by the mon"),
        (
            f"radosgw.port={STATS_PORT} apache.path=fastcgi",
            *(APACHE, f"port {STATS_PORT} of the FastCGI responder is taken by radosgw"),
        ),
        ("", {"osd": ("a", "a")}, "same host twice"),
        ("", {"mon": ("store-1", "store-1")}, "mon names the same host twice"),
        ("", {"radosgw": ("a", "a")}, "radosgw names the same host twice"),
        ("", HAPROXY | APACHE, "haproxy and apache are both placed"),
        ("", {"osd": ("store-1",)}, "3 replicas on separate hosts need 3 osd hosts, not 1"),
        (
            "radosgw.frontend_options.request_timeot_ms=0",
            *({}, "no 'request_timeot_ms' .did you mean 'request_timeout_ms'"),
        ),
        ("radosgw.frontend_options.port=80", {}, "beast has no 'port'"),
        ("radosgw.frontend_options.ssl_port=443", {}, "beast has no 'ssl_port'"),
        ("radosgw.frontend_options.request_timeout_ms=0,b", {}, "'0,b' is not one word"),
        ("radosgw.frontend_options.request_timeout_ms=''", {}, "'' is not one word"),
        (
            "radosgw.frontend=civetweb radosgw.frontend_options.max_connection_backlog=1",
            *({}, "civetweb has no 'max_connection_backlog'"),
        ),
        ("osd.filestore.filesystem=xfs", {}, "filestore: given, but objectstore is bluestore"),
        (f"{MEMORY} osd.filestore={{}}", {}, "filestore: given, but objectstore is memstore"),
        (f"{MEMORY} osd.disks=1", {}, "disks: given, but memstore uses none"),
        (f"{FILES} {JOURNALS} osd.disks=1", {}, "needs another disk"),
        (f"{FILES} osd.filestore.filesystem=zfs", {}, "xfs"),
        (f"{FILES} osd.filestore.raid0=true", {}, "xfs cannot stripe over disks by itself"),
        ("osd.cluster_network=10.2.0.1/24", {}, "has host bits set"),
    ],
)
def test_what_cannot_work_is_refused_when_it_is_read(
    changes: str, place: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        rgw(given(changes), **place)


@pytest.mark.parametrize("release", ["ceph-18", "ceph-20"])
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ("radosgw.frontend=civetweb", "no front end civetweb; ceph-14, ceph-16 have it"),
        (FILES, "no FileStore; ceph-14, ceph-16, ceph-17 have it"),
    ],
)
def test_features_that_a_release_dropped_are_refused_with_the_releases_that_have_them(
    changes: str, why: str, release: str
) -> None:
    with pytest.raises(ValueError, match=f"of {release} ha(s|ve) {why}"):
        rgw(given(changes), release)


def test_files_are_rendered_alike_for_every_host_with_every_daemon_and_no_secret() -> None:
    planned = rgw({"radosgw": {"daemons": 2}}, haproxy="gateway-1", mon=STORES[:2])
    shown = planned.render(SITES)
    assert planned.render(SITES) == shown
    text = next(one.text for one in shown if one.path.endswith("haproxy.cfg"))
    assert "10.0.0.9:8000" in text
    assert "10.0.0.9:8001" in text
    for path in (CONF, KEYRING):
        assert {one.host for one in shown if one.path == path} == set(SITES)
    keys = next(one.text for one in shown if one.path == KEYRING)
    assert "key = ***" in keys
    assert re.findall(r"^\[(.*)\]$", keys, re.MULTILINE) == [
        *("mon.", "client.admin", "mgr.a", "mgr.b"),
        *(f"osd.{number}" for number in range(6)),
        *(f"{RADOSGW}.0", f"{RADOSGW}.1"),
    ]


@pytest.mark.parametrize(("release", "kind", "length"), [("ceph-16", 1, 16), ("ceph-20", 2, 32)])
def test_keys_have_their_kind_and_length_and_no_two_are_equal(
    tmp_path: Path, release: str, kind: int, length: int
) -> None:
    stage = Stage(tmp_path)
    stage.rgw(release=release)
    text = str(stage.hosts["gateway-1"].files[KEYRING])
    keys = re.findall(r"^key = (.*)$", text, re.MULTILINE)
    assert len(keys) == len(set(keys)) == 10
    for key in keys:
        raw = base64.b64decode(key)
        found, seconds, nanoseconds, size = struct.unpack("<HIIH", raw[:12])
        assert (found, nanoseconds, size, len(raw)) == (kind, 0, length, 12 + length)
        assert abs(seconds - time.time()) < 60


def test_clients_may_use_several_radosgw_without_a_front() -> None:
    several = {"radosgw": {"daemons": 2}, "endpoints": {"spread": "round-robin"}}
    assert rgw(several).spreads()
    assert not rgw().spreads()
    assert {Rgw.scope(key) for key in ("endpoints", "endpoints.spread")} == {"cluster"}


@pytest.mark.parametrize(
    ("changes", "disks", "memory_mib"),
    [
        ("", 1, 896),
        ("osd.disks=2 osd.memory_target=1GiB", 2, 2048),
        (f"{FILES} {JOURNALS}", 2, 896),
        (f"{FILES} {BTRFS}", 1, 896),
        (f"{MEMORY} osd.memstore.per_host=2 osd.memstore.size=1GiB", 0, 2048),
    ],
)
def test_hosts_need_the_roles_disks_and_memory_of_their_daemons(
    changes: str, disks: int, memory_mib: int
) -> None:
    needs = rgw(given(changes), haproxy="gateway-1").needs()
    assert {name: (one.roles, one.tier) for name, one in needs.items()} == {
        "store-1": (("mon", "osd"), "storage"),
        "store-2": (("osd",), "storage"),
        "store-3": (("osd",), "storage"),
        "gateway-1": (("radosgw", "haproxy"), "gateway"),
    }
    assert (needs["store-2"].disks, needs["store-2"].memory_bytes) == (disks, memory_mib << 20)
    assert (needs["gateway-1"].disks, needs["gateway-1"].memory_bytes) == (0, 0)
    assert rgw({}, radosgw=("store-1",)).needs()["store-1"].tier == "shared"


@pytest.mark.parametrize("release", ["ceph-14", "ceph-16", "ceph-18", "ceph-20"])
def test_parts_are_read_by_number_since_20_and_customers_keys_by_every_release(
    release: str,
) -> None:
    gateway = rgw({}, release)
    assert ("read-part" in gateway.operations_lacked("s3")) == (release != "ceph-20")
    assert "read-part" in gateway.operations_lacked("swift")
    assert "sse-c" not in gateway.s3_lacks()
    # Over plain HTTP, too.
    assert conf({}, release)["client"]["rgw_crypt_require_ssl"] == "false"


def test_its_own_keys_need_a_release_that_has_them_and_a_vault_that_is_named() -> None:
    assert "HashiCorp Vault" in rgw({}, "ceph-18").s3_lacks()["sse-s3"]
    assert "sse-s3" not in rgw(given(VAULT), "ceph-18").s3_lacks()
    assert "does not support SSE-S3" in rgw(given(VAULT), "ceph-16").s3_lacks()["sse-s3"]


@pytest.mark.parametrize(
    ("mons", "lone"),
    [(1, ["the only mon"]), (2, ["one of two mons, of which both are needed"] * 2), (3, [""] * 3)],
)
def test_a_mon_may_die_when_a_majority_is_left(mons: int, lone: list[str]) -> None:
    parts = rgw(mon=STORES[:mons]).parts(SITES)
    assert [one.lone for one in parts if one.service == "mon"] == lone
    assert [one.host for one in parts if one.service == "mgr"] == list(STORES[:mons])
    assert rgw(mon="store-1").place == rgw(mon=["store-1"]).place


@pytest.mark.parametrize(
    ("changes", "osds", "made", "disk", "remounted"),
    [
        ("", 6, ["ln -s /dev/wb0 .*block", "ln -s /dev/wb1"], "/dev/wb0", ""),
        (
            *(FILES, 6, [r"mkfs\.xfs -q -f -K /dev/wb0", "-o noatime,.*/dev/wb1 .*osd/1"]),
            *("/dev/wb1", "/var/lib/ceph/osd/1"),
        ),
        (
            *(f"{FILES} osd.filestore.filesystem=ext4", 6),
            [r"mkfs\.ext4 -q -F -E nodiscard,", "mount -t ext4 -o noatime,"],
            *("/dev/wb0", "/var/lib/ceph/osd/0"),
        ),
        (
            *(f"{FILES} {BTRFS}", 3),
            [
                r"mkfs\.btrfs -q -f -K -d raid0 -m raid0 /dev/wb0 /dev/wb1 ",
                "noatime,.*,device=/dev/wb0,device=/dev/wb1 /dev/wb0 /var/lib/ceph/osd/0",
            ],
            *("/dev/wb1", "/var/lib/ceph/osd/0"),
        ),
        # The last disk is for journals.
        (
            *(f"{FILES} {JOURNALS}", 3),
            [r"(?s)mkfs\.xfs -q -f -K /dev/wb1.*/dev/wb0.*ceph-osd --mkfs", "/dev/wb1 .*/journal"],
            *("/dev/wb1", "/var/lib/ceph/journal"),
        ),
    ],
)
def test_the_stores_of_osds_are_made_on_their_disks_and_mounted_again_when_one_is_back(
    tmp_path: Path, changes: str, osds: int, made: list[str], disk: str, remounted: str
) -> None:
    stage = Stage(tmp_path)
    running = rgw(given(changes)).bring_up(stage.hosts, stage.hosts["client-1"], print)
    assert len(stage.when(r"start osd\.")) == osds
    (place,) = stage.when("store-1 sh -ec (?s:.*)ceph-osd --mkfs")
    for pattern in made:
        assert re.search(pattern, stage.events[place][1])
    assert ("RAID 0" in running.facts["object store"]) == (BTRFS in changes)
    before = len(stage.events)
    running.mend_disk("store-1", disk)
    lines = [what for _, what in stage.events[before:] if what.startswith("sh -ec umount")]
    assert len(lines) == bool(remounted)
    for line in lines:
        assert re.fullmatch(rf"sh -ec umount {remounted}\nmount .* {remounted}", line)
    assert all(one.startswith("store-1 osd.") for one in stage.started(before))


def test_memstore_gets_the_layouts_number_of_osds_without_disks(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    settings = given(f"{MEMORY} osd.memstore.per_host=2 osd.memstore.size=64MiB")
    rgw(settings).bring_up(stage.hosts, stage.hosts["client-1"], print)
    started = [one for one in stage.started() if "store-2 osd" in one]
    assert started == ["store-2 osd.2", "store-2 osd.3"]
    scripts = [what for _, what in stage.events if "ceph-osd --mkfs" in what]
    assert len(scripts) == 3
    assert "/dev/" not in str(scripts)


def test_a_cluster_of_several_mons_starts_when_all_are_in_the_quorum(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    rgw(mon=STORES).bring_up(stage.hosts, stage.hosts["client-1"], print)
    for name in STORES:
        assert len(stage.when(f"{name} start mon")) == len(stage.when(f"{name} start mgr")) == 1
    asked = [json.loads(line)["prefix"] for line in stage.mon_log.read_text().splitlines()]
    assert asked[:4] == ["quorum_status"] * 3 + ["osd new"]


def test_osd_hosts_without_an_address_in_their_network_are_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path)
    stage.known = "\n".join(f"{name} = 1" for own in conf({}).values() for name in own)
    for name, host in stage.hosts.items():
        words = "10.0.0.2 fd00::2" if name == "store-2" else "10.0.0.1 10.2.0.7 fe80::1%eth0"
        run = host.run

        def answering(argv: Any, run: Any = run, words: str = words, **more: Any) -> Completed:
            done: Completed = run(argv, **more)
            return Completed(words, "") if argv == ["hostname", "-I"] else done

        monkeypatch.setattr(host, "run", answering)
    with pytest.raises(UsageError) as caught:
        rgw(given("osd.cluster_network=10.2.0.0/24")).preflight(stage.hosts, print)
    assert "store-2 has no address in 10.2.0.0/24, but 10.0.0.2, fd00::2" in str(caught.value)
    assert "store-1 has" not in str(caught.value)
    assert not stage.started()


LAYOUTS = [name for name in shipped_layouts() if name.startswith("rgw-")]
HARDWARE = load_hardware(shipped_hardware()["lab-cpu"])


def shipped(name: str) -> Rgw:
    gateway = load_layout(shipped_layouts()[name], HARDWARE).gateway
    assert isinstance(gateway, Rgw)
    return gateway


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_differ_only_in_their_gateway_not_in_their_store(name: str) -> None:
    mine, beast = shipped(name), shipped("rgw-beast")
    assert mine.settings.osd == beast.settings.osd
    pools = mine.settings.pools
    assert pools.model_copy(update={"ec": None}) == beast.settings.pools
    assert (pools.ec is not None) == name.endswith("-ec")
    release = "ceph-16" if name == "rgw-civetweb" else "ceph-18"
    assert (mine.settings.log, mine.release) == (beast.settings.log, release)
    assert (mine.place.mon, mine.place.osd, mine.place.radosgw) == (
        beast.place.mon,
        beast.place.osd,
        beast.place.radosgw,
    )
    assert mine.place.front in (None, "gateway-1")
    assert mine.settings.options == {}
    # About 100 on each OSD, copies included: the target of Ceph's autoscaler.
    assert sum(pools.groups.values()) * pools.replicas / 3 == 100
    assert sorted(pools.groups.values()) == [4, 4, 4, 4, 4, 16, 64]
    if not name.endswith("-tuned"):
        assert mine.settings.radosgw.threads * mine.settings.radosgw.daemons == 512
    shown = mine.render(HARDWARE.sites)
    assert {one.host for one in shown} == {"gateway-1", "store-1", "store-2", "store-3"}
    assert not [one.path for one in shown if re.search(r"key = [^*]", one.text)]


def test_a_tuned_layout_differs_only_in_its_tuned_settings() -> None:
    tuned, beast = (
        load_layout(shipped_layouts()[name], HARDWARE).layout
        for name in ("rgw-beast-tuned", "rgw-beast")
    )
    assert (beast.tuned, tuned.place, tuned.release) == ("", beast.place, beast.release)
    assert tuned.tuned.startswith("for lab-cpu with Ceph 16.2 by `weighbridge tune rgw-beast`")
    one, other = shipped("rgw-beast-tuned").settings, shipped("rgw-beast").settings
    winner = {"frontend_options": {"request_timeout_ms": 0}}
    assert one == other.model_copy(update={"radosgw": other.radosgw.model_copy(update=winner)})


BIG = "objectstore: memstore\n    memstore: {per_host: 3, size: 1GiB}"


@pytest.mark.parametrize(
    ("layout", "old", "new", "words"),
    [
        ("rgw-beast", "objectstore: bluestore", BIG, "mon, osd may take 3 GiB of memory; host '"),
        ("rgw-beast", "scrub: false", "memory_target: 512MiB", "or equal to 939524096"),
        ("rgw-civetweb", "ceph-16", "ceph-18", "of ceph-18 has no front end civetweb"),
        ("rgw-haproxy", "    http_reuse", "    port: 8001\n    http_reuse", "taken by radosgw"),
    ],
)
def test_what_cannot_be_is_refused_when_the_layout_is_read(
    tmp_path: Path, layout: str, old: str, new: str, words: str
) -> None:
    path = tmp_path / "layout.yaml"
    path.write_text(shipped_layouts()[layout].read_text().replace(old, new))
    with pytest.raises(DocumentError) as error:
        load_layout(path, HARDWARE)
    assert words in str(error.value)
