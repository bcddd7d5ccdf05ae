"""How stores keep objects: what hosts cannot carry is refused, and what is kept is read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.gateways.rgw.planned_rgw import rgw
from tests.gateways.stage import Stage
from tests.gateways.stage import swift as planned_swift
from weighbridge.common.document import DocumentError, Fault
from weighbridge.common.errors import TargetError
from weighbridge.common.structure import Fragments, Structure
from weighbridge.gateways.daemon_memory import matches, memory, processes
from weighbridge.gateways.fragments import FragmentPart, fragments
from weighbridge.gateways.gateway import Rendered, Unfit
from weighbridge.gateways.rgw.rgw import plugin_faults
from weighbridge.gateways.rgw.settings import RgwSettings
from weighbridge.gateways.swift import config
from weighbridge.gateways.swift.settings import EcSettings, SwiftSettings
from weighbridge.gateways.swift.swift import Swift
from weighbridge.topologies.loader import (
    changed_layout,
    load_hardware,
    load_layout,
    parse,
    shipped_hardware,
    shipped_layouts,
)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


STORAGE = ("store-1", "store-2", "store-3")


def swift(**ec: Any) -> Swift:
    return planned_swift({"ec": ec})


def test_fragments_on_separate_hosts_need_as_many_hosts() -> None:
    for plan, at in (
        (lambda: rgw({"pools": {"ec": {"k": 3, "m": 1}}}), ("settings", "pools", "ec")),
        (lambda: swift(k=3, m=1), ("settings", "ec")),
    ):
        with pytest.raises(
            Unfit, match=r"4 fragments .* need 4 .* hosts, not 3: lower k"
        ) as caught:
            plan()
        assert caught.value.at == at
    rgw({"pools": {"ec": {"k": 2, "m": 1}}})
    swift(k=2, m=1)


def test_fragments_on_separate_disks_need_as_many_disks() -> None:
    apart = {"k": 4, "m": 2}
    coded = rgw({"pools": {"ec": apart, "failure_domain": "osd"}})
    (found,) = coded.lacks(dict.fromkeys(STORAGE, 1))
    assert "6 fragments (k 4, m 2) need 6 OSDs" in str(found)
    assert not coded.lacks(dict.fromkeys(STORAGE, 2))
    # The first of several disks has Swift's databases.
    other = swift(**apart, failure_domain="disk")
    assert "have 3" in str(other.lacks(dict.fromkeys(STORAGE, 2))[0])
    assert not other.lacks(dict.fromkeys(STORAGE, 3))


def test_what_hosts_cannot_carry_is_shown_where_the_command_line_asks_for_it() -> None:
    reference = parse("rgw-beast-ec:pools.ec.k=4")
    with pytest.raises(DocumentError) as caught:
        load_layout(shipped_layouts()["rgw-beast-ec"], LAB, reference)
    (fault,) = caught.value.faults
    assert "5 fragments (k 4, m 1) on separate hosts need 5 osd hosts, not 3" in fault.message


def test_a_release_without_a_plugin_is_refused_with_those_it_has(stage: Stage) -> None:
    host = stage.hosts["gateway-1"]
    host._answer = lambda argv, stdin: (
        "libceph_zlib.so\nlibec_jerasure.so\nlibec_jerasure_sse4.so\n"
    )
    wanted = {"radosgw": {"compression": "zstd"}, "pools": {"ec": {"k": 2, "m": 1}}}
    assert plugin_faults(host, "ceph-16", RgwSettings.model_validate(wanted)) == [
        "settings.radosgw.compression: ceph-16 has no zstd (known: zlib)"
    ]
    assert not plugin_faults(host, "ceph-16", RgwSettings())


def test_only_the_default_policy_of_swift_is_coded() -> None:
    text = config.swift_conf("a", "b", EcSettings(k=2, m=1))
    old, new = text.split("[storage-policy:1]")
    assert "default" not in old
    assert "default = yes" in new
    assert "ec_num_data_fragments = 2" in new
    assert "default = yes" in config.swift_conf("a", "b")
    assert "reconstructor" in config.daemons_of(SwiftSettings(ec=EcSettings(k=2, m=1)))["object"]
    assert "reconstructor" not in config.daemons_of(SwiftSettings())["object"]


def test_structures_of_fragments_know_what_a_byte_costs() -> None:
    disks = dict.fromkeys(STORAGE, 1)
    ceph, other = rgw({"pools": {"ec": {"k": 2, "m": 1}}}).structure(disks), swift(k=2, m=1)
    assert (ceph.times_kept, ceph.redundancy, ceph.times_received) == (1.5, "2+1", 2.0)
    kept = other.structure(disks)
    assert (kept.times_kept, kept.times_received, kept.layer) == (1.5, 1.5, None)
    assert other.layers() == ()
    copies = rgw().structure(disks)
    assert (copies.times_kept, copies.redundancy, copies.times_received) == (3, "3", 3)
    old = ceph.model_dump(exclude={"fragments"}) | {"replicas": 3}
    assert Structure.model_validate(old).fragments is None
    assert Fragments(data=4, parity=2).times == 1.5


def test_what_osds_allocated_is_added_up_and_databases_beside_it(stage: Stage) -> None:
    running = stage.rgw()
    dump = {"bluestore": {"bluestore_allocated": 1000}, "bluefs": {"db_used_bytes": 7}}
    stage.dump = json.dumps(dump)
    found = running.kept_bytes()
    assert found is not None
    assert (found.data_bytes, found.beside_bytes) == (6000, 42)
    stage.dump = json.dumps({"bluestore": {"allocated": 1000}})
    newer = running.kept_bytes()
    assert newer is not None
    assert (newer.data_bytes, newer.beside_bytes) == (6000, None)
    stage.dump = json.dumps({"bluefs": {"db_used_bytes": 7}})
    assert running.kept_bytes() is None


@pytest.mark.parametrize(
    "dump",
    ["", "[]", "no JSON", '{"bluestore": {"bluestore_allocated": -1}}', '{"bluestore": {"a": 1}'],
)
def test_counters_that_are_none_are_an_error_that_names_the_osd(stage: Stage, dump: str) -> None:
    running = stage.rgw()
    stage.dump = dump
    with pytest.raises(TargetError, match=r"osd\.\d: no counters"):
        running.kept_bytes()


@pytest.mark.parametrize("counter", [None, "1", True, 1.5, {"sum": 1}, []])
def test_a_counter_that_is_no_whole_number_is_unknown(stage: Stage, counter: object) -> None:
    running = stage.rgw()
    stage.dump = json.dumps({"bluestore": {"bluestore_allocated": counter}})
    assert running.kept_bytes() is None
    stage.dump = json.dumps({"bluestore": counter})
    assert running.kept_bytes() is None


def made_process(proc: Path, pid: int, parent: int, words: list[str], pss_kb: int | None) -> None:
    folder = proc / str(pid)
    folder.mkdir()
    (folder / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in words))
    (folder / "stat").write_text(f"{pid} (odd ) name) S {parent} 0")
    peak = f"VmPeak:\t900 kB\nVmHWM:\t{(pss_kb or 0) * 2} kB\nRssFile:\t  {100 + pid} kB\n"
    (folder / "status").write_text(peak)
    if pss_kb is not None:
        (folder / "smaps_rollup").write_text(
            f"x\nPss: 9 kB\nPss_Anon: {pss_kb - 1} kB\nPss_Shmem: 1 kB\n"
        )


def test_the_memory_of_a_daemon_is_that_of_all_its_processes(tmp_path: Path) -> None:
    server = ["/usr/bin/python3", "/usr/bin/swift-object-server", "/etc/o.conf"]
    made_process(tmp_path, 2, 1, server, 10)
    made_process(tmp_path, 3, 2, ["worker"], 4)
    made_process(tmp_path, 4, 3, ["worker of worker"], 1)
    made_process(tmp_path, 5, 1, ["/usr/bin/ceph-osd", "-f", "-i", "1"], 100)
    made_process(tmp_path, 6, 1, ["/usr/bin/ceph-osd", "-f", "-i", "10"], 1000)
    made_process(tmp_path, 7, 1, ["secret", "kept"], None)
    every = processes(tmp_path)
    assert memory(every, ["swift-object-server", "/etc/o.conf"]) == {
        "processes": 3,
        "resident_bytes": (15 + 104) * 1024,
        "peak_bytes": None,
    }
    alone = memory(every, ["ceph-osd", "-f", "-i", "1"])
    assert alone == {"processes": 1, "resident_bytes": 205 * 1024, "peak_bytes": 204800}
    assert memory(every, ["secret", "kept"]) is None
    assert memory(every, ["ceph-mon"]) is None
    assert not matches(["sh", "-c", "ceph-osd -f -i 1"], ["ceph-osd", "-f", "-i", "1"])


LAB = load_hardware(shipped_hardware()["lab-cpu"])
CEPH = "/etc/ceph/ceph.conf"
APACHE = "/etc/weighbridge/apache/apache.conf"


def rendered(
    layout: str, changes: Mapping[str, object]
) -> tuple[tuple[Rendered, ...], tuple[Rendered, ...]]:
    base = load_layout(shipped_layouts()[layout], LAB)
    changed = changed_layout(base, LAB, changes, Fault("test", 1, 1, "", ""))
    return base.gateway.render(LAB.sites), changed.gateway.render(LAB.sites)


def lines_of(piece: FragmentPart) -> list[str]:
    return piece.text.partition("\n\n")[2].splitlines()


def kind_of(piece: FragmentPart) -> str:
    return {"haproxy.cfg": "haproxy", "apache.conf": "apache"}.get(piece.name, "ini")


def by_place(text: str, kind: str) -> dict[tuple[str, ...], list[str]]:
    """Lines by container, parsed in the simplest way, comments included."""
    found: dict[tuple[str, ...], list[str]] = {}
    path: tuple[str, ...] = ()
    for raw in text.splitlines():
        line = raw.strip()
        if not line or "IfDefine" in line:
            continue
        if kind == "apache" and line.startswith("</"):
            path = path[:-1]
        elif kind == "apache" and line.startswith("<"):
            path = (*path, line)
        elif (kind == "haproxy" and not raw.startswith(" ") and line[0] != "#") or (
            kind != "apache" and line.startswith("[")
        ):
            path = (line,)
        else:
            found.setdefault(path, []).append(line)
    return found


def pasted(text: str, piece: FragmentPart) -> dict[tuple[str, ...], list[str]]:
    """The sorted lines of a file by container after a user has applied a fragment."""
    lines = by_place(text, kind_of(piece))
    head = "\n".join(lines_of(piece))
    for path, some in by_place(head, kind_of(piece)).items():
        place = lines.setdefault(path, [])
        for line in some:
            change = re.match(r"# (replaces|remove): (.*)", line)
            if change:
                place.remove(change[2])
            elif not line.startswith("#"):
                place.append(line)
    return {path: sorted(some) for path, some in lines.items() if some}


CASES: list[tuple[str, dict[str, object], set[str]]] = [
    (
        "rgw-beast",
        {"radosgw.rgw_thread_pool_size": 64, "options.client.rgw_list_buckets_max_chunk": 10},
        {"ceph.conf"},
    ),
    (
        "rgw-haproxy",
        {
            "radosgw.tcp_nodelay": False,
            "haproxy.timeouts.connect": "1s",
            "haproxy.options.backend": "option http-no-delay",
        },
        {"ceph.conf", "haproxy.cfg"},
    ),
    (
        "rgw-apache-proxy",
        {
            "apache.mpm.kind": "event",
            "apache.reuse": False,
            "apache.access_log": True,
            "apache.options": {
                "server": {"ListenBacklog": 100},
                "location": {"LimitRequestBody": 5},
            },
        },
        {"apache.conf"},
    ),
    ("rgw-apache-fastcgi", {"apache.flush": "auto", "apache.keep_alive": False}, {"apache.conf"}),
    (
        "swift-haproxy",
        {
            "proxy.workers": 2,
            "object.disk_chunk_size": "1MiB",
            "options.object.object-auditor.files_per_second": 3,
        },
        {"proxy-server.conf", "object-server.conf"},
    ),
]


@pytest.mark.parametrize(("layout", "changes", "names"), CASES)
def test_pasting_the_fragments_turns_each_file_into_the_other_and_back_in_the_same_places(
    layout: str, changes: dict[str, object], names: set[str]
) -> None:
    before, after = rendered(layout, changes)
    pieces = {piece.name: piece for piece in fragments(before, after)}
    back = {piece.name: piece for piece in fragments(after, before)}
    assert set(pieces) == set(back) == names
    for old, new in zip(before, after, strict=True):
        name = re.sub(r"-\d\.conf", ".conf", old.path.rpartition("/")[2])
        if name not in pieces:
            assert old.text == new.text
            continue
        kind = kind_of(pieces[name])
        assert pasted(old.text, pieces[name]) == {
            path: sorted(lines) for path, lines in by_place(new.text, kind).items()
        }
        assert {*pasted(new.text, back[name])} == {*by_place(old.text, kind)}


def test_a_change_shared_by_several_hosts_is_shown_once_under_its_section() -> None:
    before, after = rendered("rgw-beast", {"radosgw.threads": 64})
    assert sum(one.path == CEPH for one in before) > 1
    (piece,) = fragments(before, after)
    assert piece.name == "ceph.conf"
    assert "# Where: at the end of ceph.conf" in piece.text
    assert lines_of(piece) == [
        "[client]",
        "# replaces: rgw_thread_pool_size = 512",
        "rgw_thread_pool_size = 64",
    ]


OBJECTS = "/etc/swift/object-server.conf"
VHOST = "<VirtualHost *:80>"
NAMED = f"{VHOST}\n  ServerName {{}}\n</VirtualHost>\n"


@pytest.mark.parametrize(
    ("path", "before", "after", "lines"),
    [
        # A change of some hosts names them.
        (
            *(OBJECTS, ["[DEFAULT]\nworkers = 1\n"] * 2),
            ["[DEFAULT]\nworkers = 1\n", "[DEFAULT]\nworkers = 2\n"],
            f"[DEFAULT]\n# only b:{OBJECTS}:\n# replaces: workers = 1\nworkers = 2",
        ),
        # A radosgw's name is that of this layout.
        (
            *(CEPH, ["[client.rgw.gateway-1]\nx = 1\n"], ["[client.rgw.gateway-1]\nx = 2\n"]),
            (
                "[client.rgw.gateway-1]\n# a radosgw of this layout: use the name of yours\n"
                "# replaces: x = 1\nx = 2"
            ),
        ),
        # Lines stay in their containers, and removed containers are named.
        (
            APACHE,
            [f"A 1\n{VHOST}\n  B 1\n  <Proxy x>\n    C 1\n  </Proxy>\n</VirtualHost>\n"],
            [f"A 1\n{VHOST}\n  B 2\n  <Location />\n    D 1\n  </Location>\n</VirtualHost>\n"],
            (
                f"{VHOST}\n  # replaces: B 1\n  B 2\n  # remove: <Proxy x> and everything in it\n"
                "  <Location />\n    D 1\n  </Location>\n</VirtualHost>"
            ),
        ),
        # Of two containers with equal first lines only the changed one is shown.
        (
            APACHE,
            [NAMED.format("a") + NAMED.format("b")],
            [NAMED.format("a") + NAMED.format("c")],
            f"{VHOST}\n  # replaces: ServerName b\n  ServerName c\n</VirtualHost>",
        ),
        # Lines with a secret are left out, and so are keyrings.
        (
            CEPH,
            ["[a]\nkey = ***\nb = 1\n"],
            ["[a]\nb = 2\nuser = *** .admin\n"],
            "[a]\n# replaces: b = 1\nb = 2",
        ),
        ("/etc/ceph/keyring", ["[x]\n"], ["[y]\n"], None),
    ],
)
def test_lines_that_differ_are_shown_in_their_place(
    path: str, before: list[str], after: list[str], lines: str | None
) -> None:
    old, new = (
        [Rendered(host=host, path=path, text=text) for host, text in zip("ab", side, strict=False)]
        for side in (before, after)
    )
    shown = [piece.text.partition("\n\n")[2].strip("\n") for piece in fragments(old, new)]
    assert shown == ([] if lines is None else [lines])


def test_evidence_is_shown_first_as_comment_lines() -> None:
    before, after = rendered("rgw-beast", {"radosgw.threads": 64})
    (piece,) = fragments(before, after, ["throughput +12 %\np = 0.002", "a path C:\\"])
    lines = piece.text.splitlines()
    assert lines[:4] == ["# ceph.conf", "# throughput +12 %", "# p = 0.002", "# a path C:"]
    assert all(line.startswith("#") for line in lines[: lines.index("")])


def test_equal_configurations_have_no_fragments() -> None:
    before, after = rendered("swift-haproxy", {})
    assert fragments(before, after, ["evidence"]) == ()


def test_a_file_of_only_one_configuration_is_shown_completely() -> None:
    before, after = rendered("rgw-apache-fastcgi", {"apache.path": "http"})
    pieces = {piece.name: piece for piece in fragments(before, after)}
    assert "# remove: listen /run/weighbridge-responder.sock" in lines_of(pieces["responder.conf"])
    back = {piece.name: piece for piece in fragments(after, before)}
    assert "listen /run/weighbridge-responder.sock" in lines_of(back["responder.conf"])
