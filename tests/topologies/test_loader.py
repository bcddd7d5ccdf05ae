import re
import sys
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, Literal

import pytest
import yaml
from pydantic import Field

from tests.mutation import Dice, cases, hostile, tried, wrong_bytes, wrong_yaml
from weighbridge.common.document import Document, DocumentError, Fault
from weighbridge.common.endpoint import base_url, bracketed, host_port
from weighbridge.common.errors import CommandFailed, UsageError
from weighbridge.common.host import Service
from weighbridge.common.quantities import Bytes, Seconds
from weighbridge.common.record import Record
from weighbridge.gateways.gateway import STORES
from weighbridge.gateways.rgw.settings import RgwSettings
from weighbridge.gateways.swift.settings import SwiftSettings
from weighbridge.suites import loader as suite_loader
from weighbridge.suites.studies import loader as study_loader
from weighbridge.topologies import loader
from weighbridge.topologies.fake import FakeHosts
from weighbridge.topologies.hardware import Hardware, HostSpec, Nic
from weighbridge.topologies.loader import (
    LONGEST_NAME,
    LayoutParameter,
    load_layout,
    parameters,
    parse,
    path_of,
    shipped_layouts,
    split,
)

HARDWARE = Hardware.model_validate(
    {
        "name": "small",
        "kind": "fake",
        "hosts": {"client-1": {}, "gateway-1": {}, "store-1": {"disks": [{"size": "1GiB"}]}},
    }
)
LAB = loader.load_hardware(loader.shipped_hardware()["lab-cpu"])
LAYOUT = """name: trial
about: A trial
gateway: "null"
release: engine
place:
  target: gateway-1
"""


def test_every_shipped_layout_and_hardware_is_valid() -> None:
    hardware = {
        name: loader.load_hardware(path) for name, path in loader.shipped_hardware().items()
    }
    assert set(hardware) >= {"lab-cpu", "loopback", "this-machine"}
    for one in hardware.values():
        assert Hardware.model_validate_json(one.model_dump_json()) == one
    layouts = loader.shipped_layouts()
    assert set(layouts) >= {"rgw-beast", "swift", "null"}
    for name, path in layouts.items():
        for where in ("this-machine",) if name == "existing" else ("lab-cpu", "lab-disks"):
            assert loader.load_layout(path, hardware[where]).layout.name == name


@pytest.mark.parametrize("name", ["lab-cpu", "lab-disks"])
def test_the_lab_promises_no_more_cpu_than_two_cores_have(name: str) -> None:
    hosts = loader.load_hardware(loader.shipped_hardware()[name]).hosts.values()
    assert sum(host.cpus or 0 for host in hosts) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("kind", "hosts", "says"),
    [
        (
            "fakee",
            "{client-1: {}}",
            "h.yaml:2:7: kind: no kind of host 'fakee' (did you mean 'fake'?)",
        ),
        ("fake", "{client-1: {}}\nclients: [client-2]", "'client-2' is not one of the hosts"),
        ("existing", "{client-1: {cpus: 2}}", "one host without limits"),
        ("existing", "{client-1: {}, gateway-1: {}}", "one host without limits"),
        ("lab", "{client-1: {nic: 100000000000000000000Gbit}}", "or equal to 10000000000000"),
        ("lab", "{client-1: {disks: [{size: 1GiB, iops: 9000000000}]}}", "or equal to 1000000000"),
        ("lab", f"{{client-1: {{disks: {[{'size': '1GiB'}] * 101}}}}}", "at most 100 items"),
        ("fake", "{client-1: {cpus: 0}}", "h.yaml:3:"),
        ("fake", "{client-1: {cpus: .nan}}", "h.yaml:3:"),
        ("fake", "{client-1: {memory: 1MiB}}", "h.yaml:3:"),
        ("fake", "{client-1: {disks: [{size: 1MiB}]}}", "h.yaml:3:"),
        ("fake", "{client-1: {nic: 10}}", "h.yaml:3:"),
        ("fake", "{client-1: {nic: {delay: 1ms}}}", "is only for hosts of kind lab"),
        ("lab", "{client-1: {nic: {}}}", "needs a rate, a delay, or both"),
        ("lab", "{client-1: {nic: {rate: 1Gbit, delai: 1ms}}}", "'delai' (did you mean 'delay'?)"),
        ("lab", "{client-1: {nic: {delay: 11s}}}", "less than or equal to 10"),
        ("lab", "{client-1: {nic: {delay: 200}}}", "200 has no unit"),
        ("lab", "{client-1: {}}\ncpu_period: 10", "h.yaml:4:"),
        ("lab", "{client-1: {}}\ncpu_period: 0.5ms", "h.yaml:4:"),
        ("lab", "{client-1: {}}\ncpu_period: 2s", "h.yaml:4:"),
        ("fake", "{client-1: {cpuset: 0}}", "is only for hosts of kind lab"),
        ("lab", "{client-1: {cpuset: ''}}", "'' is not a list of CPUs such as 2-3,5"),
        ("lab", "{client-1: {cpuset: 3-2}}", "'3-2' is not a range of CPUs"),
        ("lab", "{client-1: {cpuset: 0-1}, b: {cpuset: '1,2'}}", "and 'b' both have CPU 1"),
        ("lab", "{client-1: {cpuset: 0, cpus: 1.5}}", "1.5 CPUs do not fit into its own CPUs, 0"),
    ],
)
def test_hosts_that_there_cannot_be_are_refused_at_their_place(
    tmp_path: Path, kind: str, hosts: str, says: str
) -> None:
    (tmp_path / "h.yaml").write_text(f"name: h\nkind: {kind}\nhosts: {hosts}\n")
    with pytest.raises(DocumentError) as error:
        loader.load_hardware(tmp_path / "h.yaml")
    assert "h.yaml:" in str(error.value)
    assert says in str(error.value)


def test_a_nic_has_a_rate_and_a_delay_and_its_rate_alone_may_be_written_short(
    tmp_path: Path,
) -> None:
    nics = "{a: {nic: 1Gbit}, client-1: {nic: {rate: 1Gbit, delay: 200us}}}"
    text = f"name: h\nkind: lab\nhosts: {nics}\n"
    (tmp_path / "h.yaml").write_text(text)
    hosts = loader.load_hardware(tmp_path / "h.yaml").hosts
    assert hosts["a"].nic == Nic.model_validate("1Gbit")
    nic = hosts["client-1"].nic
    assert nic is not None
    assert (nic.rate, nic.delay) == (10**9, pytest.approx(2e-4))


def test_a_host_has_as_much_cpu_as_its_quota_or_the_cpus_of_its_own() -> None:
    assert HostSpec().most_cpus is None
    assert HostSpec(cpuset="2-3,5").most_cpus == 3
    assert HostSpec(cpuset="2-3,5", cpus=1.5).most_cpus == 1.5


class Inner(Record):
    wait: Seconds = 1.5
    """How long one waits.

    And more."""


class Outer(Record):
    kind: Literal["a", "b"] = "a"
    size: Bytes = 65536
    """Size of a piece."""
    inner: Inner = Inner()
    count: int | None = None
    named: str
    many: tuple[Inner, ...] = ()
    by_name: dict[str, Inner] = Field(default_factory=dict)
    places: tuple[str, ...] = ("here", "there")


def test_every_setting_has_a_type_a_default_and_a_description() -> None:
    assert list(parameters(Outer)) == [
        LayoutParameter("kind", "a | b", "a", "kind"),
        LayoutParameter("size", "size", "64 KiB", "Size of a piece."),
        LayoutParameter("inner.wait", "time", "1.5s", "How long one waits. And more."),
        LayoutParameter("count", "number | none", "none", "count"),
        LayoutParameter("named", "text", "(must be given)", "named"),
        LayoutParameter("many[].wait", "time", "1.5s", "How long one waits. And more."),
        LayoutParameter("by_name.NAME.wait", "time", "1.5s", "How long one waits. And more."),
        LayoutParameter("places", "list", "here, there", "places"),
    ]


def test_every_gateway_lists_its_parameters() -> None:
    for kind in STORES.values():
        for one in parameters(kind.Settings):
            assert one.kind
            assert one.about not in {"", one.key.rpartition(".")[2]}, f"{one.key} of {kind.kind}"


POOLED = """name: mine
about: Runs already
gateway: existing
release: any
place: {}
settings:
  s3: {url: "http://127.0.0.1:1"}
  ceph:
    pool: bench
    host: gateway-2
"""
OBSERVING = """name: cluster
kind: existing
hosts: {client-1: {}}
observed: {gateway-1: {ssh: {host: a}}}
"""


UNPLACED = {f"{kind}-{n}": {} for kind in ("client", "gateway", "store") for n in (1, 2, 3)}
DISKLESS = Hardware.model_validate({"name": "diskless", "kind": "fake", "hosts": UNPLACED})
CLUSTER = Hardware.model_validate(yaml.safe_load(OBSERVING))
SWIFT = re.sub("(?m)^about: .*\n", "", shipped_layouts()["swift"].read_text())


@pytest.mark.parametrize(
    ("text", "hardware", "reference", "faults"),
    [
        # A file, as it is and with changes.
        (LAYOUT.replace('"null"', "nul"), HARDWARE, "", ["t.yaml:3:10: no gateway 'nul' ("]),
        (
            LAYOUT.replace("engine", "engin"),
            HARDWARE,
            "",
            ["t.yaml:4:10: no release 'engin' o"],
        ),
        (
            LAYOUT.replace("engine", "nosuch"),
            HARDWARE,
            "",
            ["no release 'nosuch' of null; kno"],
        ),
        (
            LAYOUT.replace("gateway-1", "gatway-1"),
            HARDWARE,
            "",
            ["t.yaml:6:11: hardware 'small' has no host 'gatway-1' (did you mean"],
        ),
        (
            LAYOUT.replace("target:", "targt:") + "settings: {delay_ms: -1}\n",
            HARDWARE,
            "",
            ["t.yaml:6:3: unknown key 'targt' (did you mean 'target'?)", "t.yaml:7:22: delay_ms"],
        ),
        (
            LAYOUT + "settings: {threads: 0}\n",
            HARDWARE,
            "t:delay_ms=-1",
            ["t.yaml:7:21: threads", "layout:1:3: delay_ms"],
        ),
        (
            SWIFT.replace("replicas: 3", "replicas: 4\n  replica: 4"),
            LAB,
            "own:proxy.worker=2:log_level.more=1",
            [
                "'about' is missing",
                "unknown key 'replica' (did you mean 'replicas'?)",
                "4 replicas, each in its own zone",
                "layout:1:5: unknown key 'worker' (did you mean 'workers'?)",
                "layout:1:20: settings.log_level.more: there is nothing of that name to change",
            ],
        ),
        # A pool of a cluster that runs.
        (
            POOLED,
            CLUSTER,
            "",
            [
                "t.yaml:10:11: hardware 'cluster' has no host 'gateway-2' among those that are ",
                "`observed` (did you mean 'gateway-1'?)",
            ],
        ),
        (POOLED.replace("pool: bench", 'pool: "--all"'), CLUSTER, "", ["t.yaml:9:11: ", "pool"]),
        *(
            (f'{POOLED}    {key}: "{value}"\n', CLUSTER, "", ["t.yaml:11:", key])
            for key, value in (
                ("user", "bench"),
                ("keyring", "here"),
                ("conf", "/a b"),
                ("cluster", "x"),
            )
        ),
        # Shipped layouts, and references to them.
        ("", DISKLESS, "rgw-beast", ["needs 1 disk(s); host 'store-1' of hardware 'diskless' has"]),
        ("", LAB, "existing", ["existing.yaml:7:10: hardware 'lab-cpu' has its own network"]),
        ("", CLUSTER, "null", ["gateways that already run, and null must be started"]),
        ("", LAB, "rgw-beats", ["no layout 'rgw-beats' (did you mean 'rgw-beast'?)"]),
        ("", LAB, "null@", ["layout:1:5: @ needs a release"]),
        ("", LAB, "null:delay_ms", ["layout:1:6: this is not KEY=VALUE"]),
        ("", LAB, "null:=3", ["is not KEY=VALUE"]),
        ("", LAB, "null:threads=1:delay=3", ["layout:1:16: unknown key 'delay'"]),
        ("", LAB, "null:delay_ms=soon", ["layout:1:6: delay_ms: Input should be a valid number"]),
        (
            "",
            LAB,
            "null@engin",
            ["layout:1:6: no release 'engin' of null (did you mean "],
        ),
        ("", LAB, "null:threads.more=3", ["threads.more: there is nothing of that name to change"]),
        ("", LAB, "null:delay_ms={", ["brackets are not closed"]),
        ("", LAB, "null:delay_ms=]", ["brackets are not closed"]),
        ("", LAB, 'null:delay_ms="', ["is not a value in YAML"]),
    ],
)
def test_all_faults_of_a_layout_are_said_at_once_at_their_places_in_file_or_reference(
    tmp_path: Path, text: str, hardware: Hardware, reference: str, faults: list[str]
) -> None:
    (tmp_path / "t.yaml").write_text(text)
    read = partial(base, reference, hardware)
    if text:
        given = parse(reference) if reference else None
        read = partial(loader.load_layout, tmp_path / "t.yaml", hardware, given)
    with pytest.raises(UsageError) as error:
        read()
    assert [fault for fault in faults if fault not in str(error.value)] == [], str(error.value)


def test_the_pool_of_an_observed_host_is_a_layer(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(POOLED.replace("gateway-2", "gateway-1"))
    assert loader.load_layout(tmp_path / "mine.yaml", CLUSTER).gateway.layers() == ("rados",)


DISKS = [{"id": "/dev/disk/by-id/example-0"}, {"id": "/dev/disk/by-id/example-1"}]
SIX_HOSTS: dict[str, Any] = {
    "client-1": {"address": "fd00::a:1"},
    "gateway-1": {"address": "fd00::a:2"},
    **{f"store-{number}": {"address": f"fd00::b:{number}", "disks": DISKS} for number in (1, 2, 3)},
}
SIX = Hardware.model_validate({"name": "six", "kind": "ssh", "hosts": SIX_HOSTS})
BARE = re.compile(r"(?<!\[)fd00::[ab]:[0-9]:[0-9]{2}")
"""An address with a port behind it, and without brackets."""


def test_only_addresses_of_ipv6_are_bracketed() -> None:
    assert (bracketed("10.0.0.1"), bracketed("fd00::1")) == ("10.0.0.1", "[fd00::1]")
    assert (host_port("a.example", 80), host_port("::1", 80)) == ("a.example:80", "[::1]:80")
    assert base_url("fd00::1", 80) == "http://[fd00::1]"
    assert base_url("fd00::1", 8443, tls=True) == "https://[fd00::1]:8443"


@pytest.mark.parametrize("name", sorted({*shipped_layouts()} - {"existing"}))
def test_files_have_brackets_around_addresses_with_a_port(name: str) -> None:
    gateway = load_layout(shipped_layouts()[name], SIX).gateway
    for one in gateway.render(SIX.sites):
        assert not BARE.search(one.text), one.path


def test_a_file_without_brackets_would_be_found() -> None:
    assert BARE.search("server a fd00::a:2:8000")
    assert not BARE.search("bind_ip = fd00::a:2\nserver a [fd00::a:2]:8000")


TUNING = """name: trial
parameters:
  - key: one
  - key: two
"""


def base(text: str, hardware: Hardware = LAB) -> loader.Planned:
    reference = parse(text)
    path = loader.find(reference.name, loader.shipped_layouts(), "layout")
    return loader.load_layout(path, hardware, reference)


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        (RgwSettings, "radosgw threads"),
        (RgwSettings, "log"),
        (RgwSettings, "options client rgw_x"),
        (RgwSettings, "options client.rgw.gateway-1 rgw_x"),
        (RgwSettings, "apache options clients LimitRequestBody"),
        (RgwSettings, "haproxy options global"),
        (RgwSettings, "nowhere at all"),
        (RgwSettings, "options client"),
        (SwiftSettings, "options object app:object-server keep_cache_size"),
        (SwiftSettings, "options proxy filter:my.own workers"),
        (SwiftSettings, "proxy error_suppression limit"),
        (SwiftSettings, "options object"),
    ],
)
def test_a_key_is_split_where_its_record_ends(settings: type[Record], path: str) -> None:
    assert path_of(path.replace(" ", "."), settings) == tuple(path.split())


def test_a_changed_layout_has_the_changes_of_its_base_and_further_ones() -> None:
    planned = changed(
        "swift@swift-2.35:replicas=2:object.eventlet_tpool_num_threads=3",
        {
            "object.keep_cache_private": True,
            "options.object.app:object-server.splice": True,
            # Swift's own name of `object.tpool_threads`.
            "object.eventlet_tpool_num_threads": 4,
        },
    )
    assert planned.layout.release == "swift-2.35"
    assert planned.layout.settings["replicas"] == 2
    assert planned.layout.settings["object"]["keep_cache_private"] is True
    assert planned.layout.settings["object"]["tpool_threads"] == 4
    assert planned.layout.settings["options"] == {"object": {"app:object-server": {"splice": True}}}
    assert planned.gateway.settings.object.keep_cache_private  # type: ignore[attr-defined]
    assert loader.checked_again(planned.layout, LAB, "plan.json").layout == planned.layout
    assert "keep_cache_private: true" in planned.text


WHERE = Fault("t", 1, 1, "", "")


def changed(text: str, changes: Mapping[str, object], **named: Any) -> loader.Planned:
    return loader.changed_layout(base(text), LAB, changes, WHERE, **named)


def test_the_base_is_unchanged() -> None:
    planned = base("null:threads=2")
    before = planned.layout.model_dump_json()
    loader.changed_layout(planned, LAB, {"threads": 4}, WHERE)
    assert planned.layout.model_dump_json() == before


def test_a_file_can_be_the_base() -> None:
    reference = parse("null:seed=3")
    path = loader.shipped_layouts()["null"]
    planned = loader.changed_layout(path, LAB, {"delay_ms": 5}, WHERE, reference=reference)
    assert (planned.layout.settings["seed"], planned.layout.settings["delay_ms"]) == (3, 5)
    assert planned.layout.name == "null-seed-3-delay-ms-5"


def test_each_changed_layout_has_its_own_name_and_long_ones_differ_by_a_hash() -> None:
    names = {
        changed("swift", {key: "20s"}).layout.name
        for key in ("proxy.node_timeout", "object.node_timeout")
    }
    assert names == {"swift-proxy-node-timeout-20s", "swift-object-node-timeout-20s"}
    long = {
        changed(
            "swift:replicas=2", {"object.keep_cache_size": size, "object.keep_cache_private": True}
        ).layout.name
        for size in (2**20, 2**21)
    }
    assert len(long) == 2
    long |= {
        base(f"null:delay_ms=1:threads=2:fail_status=503:seed={n}").layout.name for n in (1, 2)
    }
    assert len(long) == 4
    assert all(len(name) <= LONGEST_NAME for name in long)
    assert changed("null", {}, name="baseline").layout.name == "baseline"


QUANTITY = "is not a quantity such as 4KiB or 1MB (units: b, kb, mb, gb, tb, k, m, g, t, kib, "


@pytest.mark.parametrize(
    ("text", "changes", "faults"),
    [
        (
            "rgw-beast",
            {"radosgw.thread": 64, "radosgw.get_window": "16 apples"},
            [
                "tuning.yaml:3:10: unknown key 'thread' (did you mean 'threads'?)",
                f"tuning.yaml:4:10: radosgw.get_window: '16 apples' {QUANTITY}",
            ],
        ),
        # A key below a plain value, beside another fault.
        (
            "rgw-beast:radosgw.threads=64",
            {"radosgw.threads.more": 1, "radosgw.get_windw": 1},
            [
                "tuning.yaml:3:10: settings.radosgw.threads.more: there is nothing of that name to",
                "tuning.yaml:4:10: unknown key 'get_windw' (did you mean 'get_window'?)",
            ],
        ),
        # What a change breaks elsewhere.
        (
            "rgw-apache-proxy",
            {"radosgw.threads": 64, "apache.mpm.threads_per_child": 10_000},
            ["tuning.yaml:4:10: apache.mpm: "],
        ),
        ("swift", {"replicas": 4}, ["tuning.yaml:3:10: 4 replicas, each in its own zone"]),
        (
            "rgw-beast",
            {"osd.memory_target": "64GiB"},
            [
                "tuning.yaml:3:10: mon, osd may take 64 GiB of memory; host 'store-1'",
                *["tuning.yaml:3:10: osd may take 64 GiB of memory; host 'store-"] * 2,
            ],
        ),
    ],
)
def test_faults_of_all_changes_are_reported_at_once_at_the_changes(
    text: str, changes: Mapping[str, object], faults: list[str]
) -> None:
    document = Document("tuning.yaml", TUNING)
    places = {
        key: document.fault_at(("parameters", number, "key"), "")
        for number, key in enumerate(changes)
    }
    with pytest.raises(DocumentError) as caught:
        loader.changed_layout(base(text), LAB, changes, places.__getitem__)
    found = [str(fault).splitlines()[0] for fault in caught.value.faults]
    assert len(found) == len(faults)
    for fault, said in zip(faults, found, strict=True):
        assert said.startswith(fault)
    # One origin can serve all changes.
    with pytest.raises(DocumentError, match=r"^t:7:3: "):
        loader.changed_layout(base(text), LAB, changes, Fault("t", 7, 3, "", "x"))


def test_a_reference_is_a_shipped_layout_with_a_release_settings_and_placement() -> None:
    assert base("null").layout.name == "null"
    assert parse("a/file.yaml").name == "a/file.yaml"
    planned = base("null@engine:delay_ms=5:threads=2")
    assert planned.layout.name == "null-engine-delay-ms-5-threads-2"
    assert planned.layout.settings["delay_ms"] == 5
    assert planned.layout.settings["threads"] == 2
    assert base("null:place.target=client-1").layout.place == {"target": "client-1"}


def test_commas_within_brackets_do_not_separate_references() -> None:
    assert split("a, b:place.x=[c,d] ,e") == ["a", "b:place.x=[c,d]", "e"]
    assert split("") == []


def test_a_fake_host_runs_commands_and_services_in_a_folder_and_ends_them(tmp_path: Path) -> None:
    specs: dict[str, Any] = {"client-1": {}, "gateway-1": {}, "spare": {}}
    fake = Hardware.model_validate({"name": "small", "kind": "fake", "hosts": specs})
    with FakeHosts("trial", fake, tmp_path, ["client-1", "gateway-1"]) as hosts:
        assert list(hosts.hosts) == ["client-1", "gateway-1"]
        assert len({host.address for host in hosts.hosts.values()}) == 2
        assert all(host.address.startswith("127.") for host in hosts.hosts.values())
        host = hosts.hosts["gateway-1"]
        assert host.run(["cat"], stdin="hello").stdout == "hello"
        with pytest.raises(CommandFailed, match="ended with 7\nno luck") as error:
            host.run(["sh", "-c", "echo no luck >&2; exit 7"])
        assert error.value.code == 7
        with pytest.raises(CommandFailed, match="took too long"):
            host.run(["sleep", "60"], timeout_s=0.2)
        host.put("/etc/secret", "x", mode=0o600)
        path = tmp_path / "gateway-1" / "root" / "etc" / "secret"
        assert (path.read_text(), path.stat().st_mode & 0o777) == ("x", 0o600)
        says = "import time, os; print(os.environ['WORD']); time.sleep(600)"
        host.start([Service("talker", (sys.executable, "-uc", says), {"WORD": "hi"})])
        while not host.log_tail("talker.out"):
            assert host.alive("talker")
        assert host.log_tail("talker.out") == ["hi"]
        for _ in range(2):
            host.stop("talker")
            assert not host.alive("talker")
        host.start([Service("sleeper", ("sleep", "600"))])
        program = host.spawn(["cat"], stderr=tmp_path / "cat.log")
        hosts.close()
    assert not host.alive("sleeper")
    assert program.poll() is not None


# Corrupted layouts, hardware files and references to layouts.


REAL: Final = """name: real
about: Each key of hardware once
kind: ssh
ssh: {user: root, port: 22, key: FOLDER/key, known_hosts: FOLDER/key, folder: /opt/weighbridge,
  python: python3}
profile: study-2014
sysctl: {net.ipv4.tcp_sack: "0"}
network: {mtu: 9000, set: true}
clients: [client-1]
hosts:
  client-1: {cpus: 2, memory: 4GiB, nic: 10Gbit, address: 10.0.0.1,
    ssh: {host: a.example, port: 22, user: me}}
  store-1:
    address: "fd00::2"
    disks: [{id: /dev/disk/by-id/nvme-a, wipe: true, bandwidth: 200MB, iops: 100}]
"""
LAB_FILE: Final = """name: lab
kind: lab
clients: [client-1]
hosts:
  client-1: {cpus: 0.5, memory: 1GiB, nic: 10Gbit}
  gateway-1: {cpus: 0.6, memory: 1GiB}
  store-1: {memory: 2560MiB, disks: [{size: 20GiB, bandwidth: 200MB, iops: 500}]}
"""


@cases
def test_any_hardware_file_is_accepted_or_refused_with_its_place(dice: Dice, fuzzed: Path) -> None:
    text, document = dice.choice(seeds(fuzzed))
    path, wrong = fuzzed / "hardware.yaml", wrong_yaml(dice, text, document)
    path.write_bytes(wrong.encode(errors="surrogatepass"))
    found = tried(
        lambda: loader.load_hardware(path), UsageError, saying="hardware.yaml", text=_shown(path)
    )
    assert found is None or Hardware.model_validate_json(found.model_dump_json()) == found


@cache
def seeds(folder: Path) -> tuple[tuple[str, Any], ...]:
    """Hardware files and their content, as texts; the key that they name exists."""
    (folder / "key").touch(0o600)
    texts = [text.replace("FOLDER", str(folder)) for text in (REAL, LAB_FILE)]
    return tuple((text, yaml.load(text, Loader=yaml.BaseLoader)) for text in texts)


def test_the_unchanged_hardware_files_are_valid(fuzzed: Path) -> None:
    for text, _ in seeds(fuzzed):
        (fuzzed / "seed.yaml").write_text(text)
        assert loader.load_hardware(fuzzed / "seed.yaml")


def _shown(path: Path) -> str:
    return path.read_bytes().decode(errors="replace").replace("\r\n", "\n")


FUZZED_LAYOUTS: Final = ("rgw-haproxy", "rgw-apache-fastcgi", "swift-haproxy", "existing", "null")


@cache
def shipped() -> tuple[tuple[str, Any, Hardware], ...]:
    """Shipped layouts, without comments, and hardware that fits them."""
    found = []
    for name in FUZZED_LAYOUTS:
        text = loader.shipped_layouts()[name].read_text()
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        bare = "".join(f"{line.partition(' #')[0].rstrip()}\n" for line in lines)
        where = "this-machine" if name == "existing" else "lab-cpu"
        hardware = loader.load_hardware(loader.shipped_hardware()[where])
        found.append((bare, yaml.safe_load(bare), hardware))
    return tuple(found)


@cases
def test_any_layout_is_accepted_or_refused_with_its_place(dice: Dice, fuzzed: Path) -> None:
    text, document, hardware = dice.choice(shipped())
    path = fuzzed / "layout.yaml"
    path.write_bytes(wrong_yaml(dice, text, document).encode(errors="surrogatepass"))
    found = tried(
        lambda: loader.load_layout(path, hardware),
        UsageError,
        saying="layout.yaml",
        text=_shown(path),
    )
    if found is not None:
        assert loader.Layout.model_validate_json(found.layout.model_dump_json()) == found.layout
        if dice.random() < 0.1:
            again = tried(lambda: loader.checked_again(found.layout, hardware, "plan"))
            assert isinstance(again, loader.Planned)


REFERENCES: Final = (
    "rgw-beast",
    "rgw-beast@ceph-18:radosgw.threads=64",
    "rgw-haproxy:radosgw.daemons=2:haproxy.options.backend=[option http-no-delay, a: b]",
    "swift:replicas=2:proxy.workers=4:place.proxy=[gateway-1]",
    "rgw-beast:options.client.rgw.gateway-1.rgw_frontends={a: 1}",
)


def in_one_line(text: str) -> str:
    """A reference for places of faults in it: always one line."""
    return "".join(one if one.isprintable() else " " for one in text)


@cases
def test_any_reference_is_parsed_or_refused_within_it(dice: Dice) -> None:
    text = dice.choice(REFERENCES)
    text = (
        wrong_bytes(dice, text.encode()).decode(errors="replace")
        if dice.random() < 0.7
        else f"{text}={hostile(dice)}"
    )
    tried(lambda: loader.split(text), UsageError)
    found = tried(lambda: loader.parse(text), UsageError, text=in_one_line(text))
    if found is not None:
        tried(lambda: loader.find(found.name, loader.shipped_layouts(), "layout"), UsageError)
        assert len(found.renamed("rgw-beast")) <= LONGEST_NAME
        assert all(1 <= change.column <= len(text) for change in found.changes)


@cases
def test_any_change_is_applied_or_refused_within_the_reference(dice: Dice) -> None:
    text = wrong_bytes(dice, dice.choice(REFERENCES[1:4]).encode()).decode(errors="replace")
    reference = tried(lambda: loader.parse(text), UsageError, text=in_one_line(text))
    if reference is None or not reference.changes:
        return
    path, hardware = (
        loader.shipped_layouts()["null"],
        loader.load_hardware(loader.shipped_hardware()["lab-cpu"]),
    )
    tried(lambda: loader.load_layout(path, hardware, reference), UsageError)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzzed")


def test_a_name_too_long_for_a_path_is_no_layout_and_no_suite() -> None:
    with pytest.raises(UsageError, match="no layout"):
        loader.find("a" * 5000, loader.shipped_layouts(), "layout")
    with pytest.raises(UsageError, match="no suite"):
        suite_loader.find("a" * 5000)
    with pytest.raises(UsageError, match="no study"):
        study_loader.find("a" * 5000)


def test_files_in_the_home_of_an_unknown_user_are_reported_missing(tmp_path: Path) -> None:
    text = REAL.replace("key: FOLDER/key", "key: ~nobody-at-all/key").replace(
        "FOLDER", str(tmp_path)
    )
    (tmp_path / "hardware.yaml").write_text(text)
    with pytest.raises(UsageError, match="there is no file ~nobody-at-all/key"):
        loader.load_hardware(tmp_path / "hardware.yaml")
