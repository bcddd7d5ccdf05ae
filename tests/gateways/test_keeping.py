"""How stores keep objects: what hosts cannot carry is refused, and what is kept is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gateways.rgw.planned_rgw import rgw
from tests.gateways.stage import Stage
from weighbridge.common.document import DocumentError
from weighbridge.common.errors import TargetError
from weighbridge.common.structure import Fragments, Structure
from weighbridge.gateways.daemon_memory import matches, memory, processes
from weighbridge.gateways.gateway import Unfit
from weighbridge.gateways.rgw.settings import RgwSettings, plugin_faults
from weighbridge.gateways.swift import config
from weighbridge.gateways.swift.settings import EcSettings, SwiftPlacement, SwiftSettings
from weighbridge.gateways.swift.swift import Swift
from weighbridge.topologies.loader import load_hardware, load_layout, parse, shipped_hardware
from weighbridge.topologies.loader import shipped_layouts as layouts


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


STORAGE = ("store-1", "store-2", "store-3")


def swift(**ec: Any) -> Swift:
    place = SwiftPlacement(proxy=("gateway-1",), storage=STORAGE)
    return Swift("swift-2.30", place, SwiftSettings.model_validate({"ec": ec}))


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
    hardware = load_hardware(shipped_hardware()["lab-cpu"])
    reference = parse("rgw-beast-ec:pools.ec.k=4")
    with pytest.raises(DocumentError) as caught:
        load_layout(layouts()["rgw-beast-ec"], hardware, reference)
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
