"""The program that prints counters of Ceph's daemons, with a stub of an admin socket."""

import base64
import json
import re
import socketserver
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self, TextIO

import pytest
from pydantic import ValidationError

from http_stub import served
from tests.gateways.rgw.planned_rgw import SITES, STORES, Spot, conf, rgw
from tests.gateways.stage import Stage
from tests.gateways.stub_host import StubHost, run_program
from weighbridge.common.document import DocumentError
from weighbridge.common.errors import CommandFailed
from weighbridge.common.host import Completed
from weighbridge.gateways.apache.front import STATS_PORT
from weighbridge.gateways.rgw import ask_daemon, facts, monitor
from weighbridge.gateways.rgw.monitor import OSD, RADOSGW
from weighbridge.gateways.rgw.plan import CONF, KEYRING, frontend, keyring, new_key
from weighbridge.gateways.rgw.pools import DATA_POOL
from weighbridge.gateways.rgw.rgw import Rgw
from weighbridge.gateways.rgw.settings import (
    PoolSettings,
    RadosgwSettings,
    RgwPlacement,
    RgwSettings,
)
from weighbridge.topologies.loader import (
    load_hardware,
    load_layout,
    shipped_hardware,
    shipped_layouts,
)

PROGRAM = ask_daemon.__file__
GROUPS = {
    "rgw": {"req": 7, "qlen": 0, "put_initial_lat": {"avgcount": 2, "sum": 0.5, "avgtime": 0.25}},
    "rgw_op": {"get_obj_ops": 4},
}


class Admin(socketserver.StreamRequestHandler):
    """A stub of an admin socket."""

    def handle(self) -> None:
        asked = b""
        while not asked.endswith(b"\0"):
            asked += self.rfile.read(1)
        command = json.loads(asked[:-1])
        assert command["prefix"] == "perf dump"
        group = command["logger"]
        text = json.dumps({group: GROUPS[group]} if group in GROUPS else {}).encode()
        self.wfile.write(len(text).to_bytes(4, "big") + text)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[str]:
    path = str(tmp_path / "asok")
    with served(socketserver.ThreadingUnixStreamServer(path, Admin)):
        yield path


def test_a_latency_is_printed_as_sum_and_count_and_missing_counters_are_left_out(
    daemon: str,
) -> None:
    wanted = ask_daemon.parse(
        ["req=rgw.req", "lat=rgw.put_initial_lat", "none=rgw.nothing", "gone=other.req"]
    )
    assert ask_daemon.counters(daemon, wanted) == {"req": 7, "lat_sum_s": 0.5, "lat_count": 2.0}


def test_a_counter_is_found_where_the_release_has_it(daemon: str) -> None:
    wanted = ask_daemon.parse(
        ["get=rgw.get,rgw_op.get_obj_ops", "qlen=rgw.qlen,rgw_op.get_obj_ops"]
    )
    assert ask_daemon.counters(daemon, wanted) == {"get": 4, "qlen": 0}


def test_lines_come_at_once_and_every_second_until_stdin_closes(daemon: str) -> None:
    argv = [sys.executable, "-I", PROGRAM, daemon, *RADOSGW]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        lines = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.stdin.close()
        assert process.wait(10) == 0
    latency = {"put_initial_lat_sum_s": 0.5, "put_initial_lat_count": 2.0}
    assert lines == [{"req": 7, "qlen": 0, "get": 4, **latency}] * 2


def test_a_second_without_an_answer_has_no_line_but_a_reason_on_stderr(tmp_path: Path) -> None:
    done = run_program(PROGRAM, str(tmp_path / "missing"), "req=rgw.req")
    assert done.stdout == ""
    assert "missing: [Errno 2]" in done.stderr


@pytest.mark.parametrize("counters", [RADOSGW, OSD])
def test_no_two_counters_have_the_same_name(counters: tuple[str, ...]) -> None:
    names = [one.partition("=")[0] for one in counters]
    assert names
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("kind", "length"), [(1, 16), (2, 32)])
def test_a_key_contains_its_kind_and_the_length_of_its_secret(kind: int, length: int) -> None:
    raw = base64.b64decode(new_key(kind))  # type: ignore[arg-type]
    found, seconds, nanoseconds, size = struct.unpack("<HIIH", raw[:12])
    assert (found, nanoseconds, size, len(raw)) == (kind, 0, length, 12 + length)
    assert abs(seconds - time.time()) < 60


def test_no_two_keys_are_equal() -> None:
    keys = [
        line for line in keyring(1, 3, ["client.rgw.g"]).splitlines() if line.startswith("key = ")
    ]
    assert len(keys) == 7
    assert len(set(keys)) == 7


def test_the_keyring_names_every_daemon_once() -> None:
    names = [line for line in keyring(1, 2, ["client.rgw.g"]).splitlines() if line.startswith("[")]
    assert names == ["[mon.]", "[client.admin]", "[mgr.a]", "[osd.0]", "[osd.1]", "[client.rgw.g]"]


RADOSGW_SECTION = "client.rgw.gateway-1"
TWO = {"radosgw": {"daemons": 2}}
HAPROXY, APACHE = {"haproxy": "gateway-1"}, {"apache": "gateway-1"}


@pytest.mark.parametrize(
    ("settings", "place", "section", "written"),
    [
        ({}, {}, RADOSGW_SECTION, {"rgw_frontends": "beast endpoint=10.0.0.9:8000 tcp_nodelay=1"}),
        (
            {"radosgw": {"tcp_nodelay": False}},
            {},
            RADOSGW_SECTION,
            {"rgw_frontends": "beast endpoint=10.0.0.9:8000 tcp_nodelay=0"},
        ),
        (
            {"radosgw": {"frontend": "civetweb", "threads": 100}},
            {},
            RADOSGW_SECTION,
            {"rgw_frontends": "civetweb port=10.0.0.9:8000 tcp_nodelay=1 num_threads=100"},
        ),
        # Hosts that share a kernel.
        ({}, {}, "osd.0", {"crush_location": "root=default host=store-1"}),
        ({}, {}, "osd.2", {"crush_location": "root=default host=store-2"}),
        ({}, {}, "osd.2", {"public_addr": "10.0.0.2"}),
        # Options of the layout go before ours.
        (
            {"options": {"osd": {"osd_memory_target": 2**30, "osd_op_num_shards": 1}}},
            {},
            "osd",
            {"osd_memory_target": str(2**30), "osd_op_num_shards": "1"},
        ),
        (
            {"options": {"client": {"rgw_frontends": "beast port=9"}}},
            {},
            "client",
            {"rgw_frontends": "beast port=9"},
        ),
        (
            {"options": {"client": {"rgw_frontends": "beast port=9"}}},
            {},
            RADOSGW_SECTION,
            {"rgw_frontends": None},
        ),
        # Scrubs are off without a flag that causes a warning.
        ({}, {}, "osd", {"osd_max_scrubs": "0"}),
        ({"osd": {"scrub": True}}, {}, "osd", {"osd_max_scrubs": None}),
        # A single replica does not make the cluster unhealthy.
        (
            {"pools": {"replicas": 1, "min_size": 1}},
            {},
            "mon",
            {"mon_allow_pool_size_one": "true", "mon_warn_on_pool_no_redundancy": "false"},
        ),
        # Clients of Swift get the address of the front.
        ({}, {}, "client", {"rgw_swift_url": None}),
        ({}, HAPROXY, "client", {"rgw_swift_url": "http://10.0.0.9"}),
        ({"apache": {"port": 81}}, APACHE, "client", {"rgw_swift_url": "http://10.0.0.9:81"}),
        # Sizes are in bytes.
        (
            {"radosgw": {"max_chunk_size": "8MiB", "get_window": "32MiB", "print_continue": False}},
            {},
            "client",
            {
                "rgw_max_chunk_size": str(8 << 20),
                "rgw_get_obj_window_size": str(32 << 20),
                "rgw_print_continue": "false",
            },
        ),
        ({}, {}, "global", {"debug_rgw": "0/0"}),
        ({"log": "default"}, {}, "global", {"debug_rgw": None, "debug_osd": None}),
    ],
)
def test_a_setting_is_written_as_ceph_reads_it(
    settings: dict[str, object],
    place: dict[str, object],
    section: str,
    written: dict[str, str | None],
) -> None:
    found = conf(settings, **place)[section]
    assert {name: found.get(name) for name in written} == written


def test_options_that_a_release_lacks_are_not_written() -> None:
    assert "mon_allow_pool_size_one" in conf({}, "ceph-16")["mon"]
    assert "mon_allow_pool_size_one" not in conf({}, "ceph-14")["mon"]


def test_a_radosgw_with_fastcgi_listens_on_the_fronts_backend_port() -> None:
    written = frontend(RadosgwSettings(), "10.0.0.1", 8001, native=True)
    assert written == "fastcgi socket_port=8001 socket_host=10.0.0.1"


def test_every_pool_has_the_layouts_number_of_placement_groups() -> None:
    wanted = PoolSettings(data_pg_num=64, index_pg_num=16, other_pg_num=4).groups
    assert wanted[DATA_POOL] == 64
    assert sorted(wanted.values()) == [4, 4, 4, 4, 4, 16, 64]


def test_replicas_may_share_a_host_if_the_layout_says_so() -> None:
    rgw({"pools": {"failure_domain": "osd"}}, osd=("store-1",))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pools": {"data_pg_num": 24}}, "not a power of two"),
        ({"pools": {"replicas": 2, "min_size": 3}}, "min_size 3 is above replicas 2"),
        ({"osd": {"memory_target": "512MiB"}}, "greater than or equal to"),
        ({"radosgw": {"tcp_no_delay": 1}}, "tcp_no_delay"),
        ({"options": {"osds": {}}}, "osds"),
        ({"options": {"osd": {"bad name": 1}}}, "pattern"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        RgwSettings.model_validate(settings)


def test_each_of_several_radosgw_has_a_name_a_section_and_a_port() -> None:
    settings = {"radosgw": {"daemons": 2, "port": 8100}}
    sections = conf(settings, haproxy="gateway-1")
    assert [name for name in sections if name.startswith("client.rgw")] == [
        "client.rgw.gateway-1.0",
        "client.rgw.gateway-1.1",
    ]
    assert (
        sections["client.rgw.gateway-1.1"]["rgw_frontends"]
        == f"beast endpoint={SITES['gateway-1'].address}:8101 tcp_nodelay=1"
    )
    keys = next(
        one.text for one in rgw(settings, haproxy="gateway-1").render(SITES) if one.path == KEYRING
    )
    assert keys.count("[client.rgw.gateway-1.") == 2


def test_the_fronts_files_are_rendered_for_its_host_with_every_radosgw() -> None:
    shown = rgw({"radosgw": {"daemons": 2}}, haproxy="gateway-1").render(SITES)
    text = next(one.text for one in shown if one.path.endswith("haproxy.cfg"))
    assert "10.0.0.9:8000" in text
    assert "10.0.0.9:8001" in text
    assert {one.host for one in shown if one.path == CONF} == set(SITES)
    assert all("key = ***" in one.text for one in shown if one.path == KEYRING)


def test_rendering_is_repeatable() -> None:
    assert rgw().render(SITES) == rgw().render(SITES)


@pytest.mark.parametrize(
    ("settings", "place", "message"),
    [
        ({"radosgw": {"daemons": 2}}, {}, "2 radosgw need a front, haproxy or apache"),
        ({}, {"radosgw": ("gateway-1", "store-1")}, "2 radosgw need a front"),
        ({"endpoints": {}}, {}, "without a front, but there is one"),
        ({"endpoints": {}, **TWO}, HAPROXY, "without a front, but clients use its front"),
        ({"haproxy": {"port": 80}}, {}, "of haproxy are given, but place names no host for it"),
        ({"apache": {"path": "http"}}, HAPROXY, "settings of apache are given"),
        ({"haproxy": {"port": 8000}}, HAPROXY, "8000 of haproxy is taken by radosgw"),
        ({"haproxy": {"port": 8001}, **TWO}, HAPROXY, "8001 of haproxy is taken by radosgw"),
        ({"radosgw": {"port": 3300}}, {"radosgw": ("store-1",)}, "radosgw is taken by the mon"),
        (
            {"radosgw": {"port": STATS_PORT}, "apache": {"path": "fastcgi"}},
            APACHE,
            f"port {STATS_PORT} of the FastCGI responder is taken by radosgw",
        ),
        ({}, {"osd": ("a", "a")}, "same host twice"),
        ({}, {"radosgw": ("gateway-1", "gateway-1")}, "radosgw names the same host twice"),
        ({}, HAPROXY | APACHE, "haproxy and apache are both placed"),
        ({}, {"osd": ("store-1",)}, "3 replicas on separate hosts need 3 osd hosts, not 1"),
    ],
)
def test_a_placement_that_cannot_work_is_refused_when_it_is_read(
    settings: dict[str, object], place: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        rgw(settings, **place)


def test_clients_may_use_several_radosgw_without_a_front() -> None:
    several = {"radosgw": {"daemons": 2}, "endpoints": {"spread": "round-robin"}}
    assert rgw(several).spreads()
    assert not rgw().spreads()
    assert {Rgw.scope(key) for key in ("endpoints", "endpoints.spread")} == {"cluster"}


@pytest.mark.parametrize("release", ["ceph-18", "ceph-20"])
@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"radosgw": {"frontend": "civetweb"}}, "no front end civetweb; ceph-14, ceph-16 have it"),
        ({"osd": {"objectstore": "filestore"}}, "no FileStore; ceph-14, ceph-16, ceph-17 have it"),
    ],
)
def test_features_that_a_release_dropped_are_refused_with_the_releases_that_have_them(
    settings: dict[str, object], why: str, release: str
) -> None:
    with pytest.raises(ValueError, match=f"of {release} ha(s|ve) {why}"):
        rgw(settings, release)


def test_hosts_have_the_tiers_roles_and_disks_of_their_daemons() -> None:
    needs = rgw({}, haproxy="gateway-1").needs()
    assert (needs["gateway-1"].roles, needs["store-1"].roles) == (
        ("radosgw", "haproxy"),
        ("mon", "osd"),
    )
    assert {name: (need.tier, need.disks) for name, need in needs.items()} == {
        **dict.fromkeys(STORES, ("storage", 1)),
        "gateway-1": ("gateway", 0),
    }
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
    vault = {"options": {"client": {"rgw_crypt_sse_s3_vault_addr": "http://10.0.0.7:8200"}}}
    assert "HashiCorp Vault" in rgw({}, "ceph-18").s3_lacks()["sse-s3"]
    assert "sse-s3" not in rgw(vault, "ceph-18").s3_lacks()
    assert "does not support SSE-S3" in rgw(vault, "ceph-16").s3_lacks()["sse-s3"]


def test_further_words_of_the_front_end_come_last() -> None:
    settings = {"frontend_options": {"request_timeout_ms": 0, "max_connection_backlog": 128}}
    assert frontend(RadosgwSettings.model_validate(settings), "10.0.0.1", 8000) == (
        "beast endpoint=10.0.0.1:8000 tcp_nodelay=1 request_timeout_ms=0 max_connection_backlog=128"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"request_timeot_ms": 0}, "no 'request_timeot_ms' .did you mean 'request_timeout_ms'"),
        ({"port": 80}, "beast has no 'port'"),
        ({"ssl_port": 443}, "beast has no 'ssl_port'"),
        ({"request_timeout_ms": "0, beast"}, "'0, beast' is not one word"),
        ({"request_timeout_ms": ""}, "'' is not one word"),
    ],
)
def test_words_that_the_front_end_does_not_know_are_refused(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        RadosgwSettings.model_validate({"frontend_options": options})


def test_each_front_end_has_its_own_words() -> None:
    with pytest.raises(ValidationError, match="civetweb has no 'max_connection_backlog'"):
        RadosgwSettings.model_validate(
            {"frontend": "civetweb", "frontend_options": {"max_connection_backlog": 1}}
        )


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
    kept = mine.settings.pools.model_copy(update={"ec": None})
    assert kept == beast.settings.pools
    assert (mine.settings.pools.ec is not None) == name.endswith("-ec")
    release = "ceph-16" if name == "rgw-civetweb" else "ceph-18"
    assert (mine.settings.log, mine.release) == (beast.settings.log, release)
    assert (mine.place.mon, mine.place.osd, mine.place.radosgw) == (
        beast.place.mon,
        beast.place.osd,
        beast.place.radosgw,
    )
    assert mine.place.front in (None, "gateway-1")
    assert mine.settings.options == {}


def test_every_untuned_layout_has_the_same_number_of_radosgw_threads() -> None:
    threads = {
        name: shipped(name).settings.radosgw for name in LAYOUTS if not name.endswith("-tuned")
    }
    assert {one.threads * one.daemons for one in threads.values()} == {512}


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


def test_every_layout_has_the_right_number_of_placement_groups_for_three_osds() -> None:
    """About 100 on each OSD, copies included: the target of Ceph's autoscaler."""
    for name in LAYOUTS:
        settings = shipped(name).settings.pools
        assert sum(settings.groups.values()) * settings.replicas / 3 == 100


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_can_be_rendered_without_any_host(name: str) -> None:
    shown = shipped(name).render(HARDWARE.sites)
    assert {one.host for one in shown} == {"gateway-1", "store-1", "store-2", "store-3"}
    assert not [one.path for one in shown if re.search(r"key = [^*]", one.text)]


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


def test_the_mon_gets_the_failure_domain_for_its_rule() -> None:
    for domain, kind in (("host", "1"), ("osd", "0")):
        settings = RgwSettings.model_validate({"pools": {"failure_domain": domain}})
        conf = Rgw("ceph-16", shipped("rgw-beast").place, settings).render(HARDWARE.sites)[0].text
        section = conf.split("[mon]")[1].split("\n[")[0]
        assert f"osd_crush_chooseleaf_type = {kind}" in section


def test_one_mon_needs_no_list() -> None:
    one = {"osd": STORES, "radosgw": ["gateway-1"]}
    assert RgwPlacement.model_validate({"mon": "store-1", **one}) == RgwPlacement.model_validate(
        {"mon": ["store-1"], **one}
    )
    with pytest.raises(ValidationError, match="mon names the same host twice"):
        RgwPlacement.model_validate({"mon": ["store-1", "store-1"], **one})


def test_every_daemon_knows_all_mons_and_each_has_a_mgr_beside_it() -> None:
    sections = conf({}, mon=STORES)
    assert sections["global"]["mon_host"] == ",".join(
        f"[v2:10.0.0.{number}:3300,v1:10.0.0.{number}:6789]" for number in (1, 2, 3)
    )
    assert sections["global"]["mon_initial_members"] == "a,b,c"
    assert [sections[f"mon.{one}"]["public_addr"] for one in "abc"] == [
        sections[f"mgr.{one}"]["public_addr"] for one in "abc"
    ]
    keys = keyring(1, 0, [], mgrs=["a", "b"]).splitlines()
    assert [line for line in keys if "mgr" in line and line.startswith("[")] == [
        "[mgr.a]",
        "[mgr.b]",
    ]


def test_a_cluster_of_several_mons_starts_when_all_are_in_the_quorum(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    rgw(mon=STORES).bring_up(stage.hosts, stage.hosts["client-1"], print)
    for name in STORES:
        assert len(stage.when(f"{name} start mon")) == len(stage.when(f"{name} start mgr")) == 1
    asked = [json.loads(line)["prefix"] for line in stage.mon_log.read_text().splitlines()]
    assert asked[:4] == ["quorum_status"] * 3 + ["osd new"]


@pytest.mark.parametrize(
    ("mons", "lone"),
    [(1, ["the only mon"]), (2, ["one of two mons, of which both are needed"] * 2), (3, [""] * 3)],
)
def test_a_mon_may_die_when_a_majority_is_left(mons: int, lone: list[str]) -> None:
    parts = rgw(mon=STORES[:mons]).parts(SITES)
    assert [one.lone for one in parts if one.service == "mon"] == lone
    assert [one.host for one in parts if one.service == "mgr"] == list(STORES[:mons])


def test_copies_may_have_a_network_of_their_own() -> None:
    sections = conf({"osd": {"cluster_network": "10.2.0.0/24"}})
    assert sections["osd"]["cluster_network"] == "10.2.0.0/24"
    assert "cluster_addr" not in sections["osd.0"]
    assert sections["osd.0"]["public_addr"] == "10.0.0.1"
    assert conf({})["osd.0"]["cluster_addr"] == "10.0.0.1"
    with pytest.raises(ValidationError, match="has host bits set"):
        RgwSettings.model_validate({"osd": {"cluster_network": "10.2.0.1/24"}})


def test_osd_hosts_without_an_address_in_that_network_are_refused_before_anything_starts() -> None:
    class Addressed:
        def __init__(self, words: str) -> None:
            self.words = words

        def run(self, argv: list[str]) -> Completed:
            assert argv == ["hostname", "-I"]
            return Completed(self.words, "")

    hosts = {name: Addressed("10.0.0.1 10.2.0.7 fe80::1%eth0\n") for name in STORES}
    hosts["store-2"] = Addressed("10.0.0.2 fd00::2\n")
    planned = rgw({"osd": {"cluster_network": "10.2.0.0/24"}})
    assert planned._network_faults(hosts) == [  # type: ignore[arg-type]
        "osd.cluster_network: store-2 has no address in 10.2.0.0/24, but 10.0.0.2, fd00::2"
    ]
    assert rgw()._network_faults({}) == []


def test_a_cluster_is_asked_from_another_mons_host_when_the_first_is_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Session:
        def __init__(self, host: Spot, _watch: object) -> None:
            self.host = host

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None: ...

        def status(self) -> dict[str, object]:
            if self.host.name in dead:
                raise CommandFailed(self.host.name, ["ask_mon"], 1, "it is gone")
            return {"osdmap": {"num_up_osds": 3}, "pgmap": {"num_pgs": 0}}

    class UpSpot(Spot):
        def is_up(self) -> bool:
            return self.name not in dead

    dead: set[str] = set()
    monkeypatch.setattr(facts, "Monitor", Session)
    hosts = [UpSpot(name, "") for name in STORES]
    with facts.asking(hosts, 3) as asked:  # type: ignore[arg-type]
        assert asked().whole
        dead |= {"store-1", "store-2"}
        assert asked().whole
        dead |= {"store-3"}
        with pytest.raises(CommandFailed, match="it is gone"):
            asked()


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("x" * 100, "a line of more than 64"),
        ("", "was silent for"),
        ("once upon a time\n", "no answers: once"),
        ('[[0, "quorum"]]\n', "no answers: "),
        ("[]\n", r"no answers: \[\]"),
    ],
)
def test_a_session_with_the_monitors_says_what_it_did_in_place_of_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str, said: str
) -> None:
    def stub(order: TextIO, found: TextIO) -> int:
        order.readline()
        found.write(printed)
        found.flush()
        order.read()
        return 0

    monkeypatch.setattr(monitor, "_LONGEST_ANSWER_BYTES", 64)
    monkeypatch.setattr(monitor, "_ANSWER_WITHIN_S", 0.2)
    host = StubHost("store-1", "10.0.0.1", tmp_path, [], lambda _a, _b: "", {"ask_mon": stub})
    with monitor.Monitor(host, lambda: None) as mon, pytest.raises(CommandFailed, match=said):
        mon.ask({"prefix": "status"})


@pytest.mark.parametrize(("gateway", "both"), [("fd00::9", "false"), ("10.0.0.9", "true")])
def test_ceph_binds_to_ipv6_where_hosts_have_it(gateway: str, both: str) -> None:
    sites = {name: Spot(name, f"fd00::{number}") for number, name in enumerate(STORES, 1)}
    sites["gateway-1"] = Spot("gateway-1", gateway)
    text = next(one.text for one in rgw().render(sites) if one.path == CONF)
    assert "mon_host = [v2:[fd00::1]:3300,v1:[fd00::1]:6789]\n" in text
    assert f"ms_bind_ipv4 = {both}\nms_bind_ipv6 = true\n" in text
    assert "ms_bind_ipv4" not in conf({})["global"]
