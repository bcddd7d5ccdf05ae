"""Settings of shipped layouts on hosts of several sizes, in the lab and real."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from weighbridge.common.document import DocumentError
from weighbridge.common.errors import TargetError, UsageError
from weighbridge.selection import on_sized_hosts, size_remark
from weighbridge.topologies import auto, loader
from weighbridge.topologies.auto import Machine, cores_of, made_for
from weighbridge.topologies.disk_models import SpinningDisk
from weighbridge.topologies.hardware import Hardware, HostSpec
from weighbridge.topologies.loader import (
    Planned,
    load_hardware,
    load_layout,
    parse,
    shipped_hardware,
    shipped_layouts,
)
from weighbridge.topologies.ssh import kernel, leftovers, requirements

STORES = ("store-1", "store-2", "store-3")
DISKS = [{"id": f"/dev/disk/by-id/example-{number}"} for number in range(12)]
RGW = {
    "radosgw.max_concurrent_requests": 1024,
    "osd.memory_target": 1536 * 2**20,
    "pools.data_pg_num": 64,
    "pools.index_pg_num": 16,
    "pools.other_pg_num": 4,
}
HAPROXY = {"haproxy.threads": 1, "haproxy.maxconn": 4096}
WORKERS = {f"{server}.workers": 1 for server in ("proxy", "account", "container", "object")}
IN_THE_LAB: Mapping[str, Mapping[str, object]] = {
    "rgw-beast": {**RGW, "radosgw.threads": 512},
    "rgw-haproxy": {**RGW, "radosgw.threads": 256, **HAPROXY},
    "swift-haproxy": {**WORKERS, "part_power": 10, **HAPROXY},
}


def hardware(**machine: Any) -> Hardware:
    size = {"machine": machine} if machine else {}
    hosts: dict[str, Any] = {"client-1": {"address": "192.0.2.10"}}
    hosts["gateway-1"] = {"address": "192.0.2.20", **size}
    for number, name in enumerate(STORES):
        hosts[name] = {"address": f"192.0.2.3{number}", "disks": DISKS, **size}
    return Hardware.model_validate({"name": "real", "kind": "ssh", "hosts": hosts})


def planned(reference: str, hosts: Hardware) -> Planned:
    read = parse(reference)
    return load_layout(shipped_layouts()[read.name], hosts, read)


def settings_of(one: Planned, keys: Mapping[str, object]) -> dict[str, object]:
    found = {}
    for key in keys:
        value: Any = one.gateway.settings  # type: ignore[attr-defined]
        for name in key.split("."):
            value = getattr(value, name)
        found[key] = value
    return found


@pytest.mark.parametrize("layout", IN_THE_LAB)
@pytest.mark.parametrize("name", ["lab-cpu", "lab-disks", "lab-disks-merged", "auto"])
def test_settings_of_lab_hosts_are_those_that_layouts_used_to_give(name: str, layout: str) -> None:
    two_cores = made_for(machine(2, gib=16), TEMPLATE)
    hosts = two_cores if name == "auto" else load_hardware(shipped_hardware()[name])
    found = planned(layout, hosts)
    wanted = IN_THE_LAB[layout]
    assert settings_of(found, wanted) == wanted
    assert {one.key: one.value for one in found.sizing} == wanted


def test_a_host_of_forty_cpus_gets_the_settings_of_its_size_in_both_stores() -> None:
    hosts = hardware(cpus=40, memory="384GiB")
    ceph, swift = planned("rgw-haproxy", hosts), planned("swift-haproxy", hosts)
    texts = {
        (one.host, one.path.rpartition("/")[2]): one.text.splitlines()
        for one in (*ceph.gateway.render(hosts.sites), *swift.gateway.render(hosts.sites))
    }
    conf = texts["gateway-1", "ceph.conf"]
    assert {"rgw_thread_pool_size = 640", "rgw_max_concurrent_requests = 2560"} <= set(conf)
    assert f"osd_memory_target = {19660 * 2**20}" in conf
    assert "workers = 20" in texts["gateway-1", "proxy-server-0.conf"]
    for server in ("account", "container", "object"):
        assert "workers = 40" in texts["store-1", f"{server}-server.conf"]
    assert {"    nbthread 40", "    maxconn 40960"} <= set(texts["gateway-1", "haproxy.cfg"])
    why = {one.key: (one.value, one.why) for one in (*ceph.sizing, *swift.sizing)}
    words = "64 % of 100 per disk, of 36 disks, by 3 copies: 768, as a power of two"
    assert why["pools.data_pg_num"] == (512, words)
    assert why["part_power"] == (12, "2^12 is at least 100 for each of 36 disks")
    assert why["proxy.workers"] == (20, "one per CPU: gateway-1 has 40, for 2 daemons")
    assert size_remark(hosts) == ""


def test_what_a_layout_or_its_reference_gives_stays_and_is_not_listed() -> None:
    hosts = hardware(cpus=40, memory="384GiB")
    found = planned("rgw-beast:radosgw.threads=512:pools.data_pg_num=64", hosts)
    wanted = {"radosgw.threads": 512, "pools.data_pg_num": 64, "pools.index_pg_num": 128}
    assert settings_of(found, wanted) == wanted
    listed = {one.key for one in found.sizing}
    assert listed & set(wanted) == {"pools.index_pg_num"}


def test_limits_of_a_host_go_before_what_its_machine_has() -> None:
    hosts = hardware(cpus=40, memory="384GiB").model_dump(mode="json", exclude_unset=True)
    for name in (*STORES, "gateway-1"):
        hosts["hosts"][name] |= {"cpus": 4, "memory": "64GiB"}
    found = planned("swift", Hardware.model_validate(hosts))
    wanted = {"proxy.workers": 4, "object.workers": 4}
    assert settings_of(found, wanted) == wanted


def test_a_host_whose_memory_is_too_little_for_its_osds_is_refused() -> None:
    with pytest.raises(DocumentError, match=r"may take 1 GiB .* host 'store-1' .* has 512"):
        planned("rgw-beast:osd.memory_target=1GiB", hardware(cpus=2, memory="512MiB"))


def test_a_machine_is_only_of_real_hosts() -> None:
    hosts = {"client-1": {"machine": {"cpus": 4, "memory": "8GiB"}}}
    with pytest.raises(ValueError, match=r"is only for real hosts \(kind: ssh\)"):
        Hardware.model_validate({"name": "lab", "kind": "lab", "hosts": hosts})


KERNEL = kernel.KernelState(
    kernel="6.1",
    boot="b",
    cpu="a CPU",
    cpus=40,
    memory_bytes=384 * 2**30 - 5_000_000,
    nic="eth1",
    sysctls={},
)


@dataclasses.dataclass
class Answering:
    """A host that has a size, or does not answer."""

    name: str
    cpus: int = 40

    def open(self) -> None:
        if not self.cpus:
            raise TargetError(f"{self.name} does not answer")


@pytest.fixture
def cpus(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """CPUs of real hosts that answer otherwise than with 40; 0: it does not answer."""
    found: dict[str, int] = {}

    def look(shell: Answering, _hardware: Hardware) -> kernel.KernelState:
        return KERNEL.model_copy(update={"cpus": shell.cpus})

    class Shells:
        def __init__(self, hosts: Hardware) -> None:
            self.all = {name: Answering(name, found.get(name, 40)) for name in hosts.hosts}

        def __enter__(self) -> dict[str, Answering]:
            return self.all

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(leftovers, "shells", Shells)
    monkeypatch.setattr(kernel, "look", look)
    return found


@pytest.mark.usefixtures("cpus")
def test_real_hosts_are_asked_their_size_before_anything_starts() -> None:
    hosts = hardware()
    before = planned("swift", hosts)
    assert {one.value for one in before.sizing if one.key.endswith("workers")} == {1}
    assert "gateway-1, store-1, store-2, store-3 is not known" in size_remark(hosts)
    known, (after,) = on_sized_hosts([before], hosts)
    assert {one.value for one in after.sizing if one.key.endswith("workers")} == {40}
    assert after.text == before.text
    assert known.hosts["store-1"].size.memory_bytes == 383 * 2**30
    assert known.hosts["client-1"].machine is None


def test_hosts_whose_size_the_file_gives_are_not_asked(cpus: dict[str, int]) -> None:
    cpus.update(dict.fromkeys(("gateway-1", *STORES), 0))
    hosts = hardware(cpus=8, memory="64GiB")
    assert requirements.asked(hosts) is hosts


def test_hosts_that_do_not_answer_are_all_named(cpus: dict[str, int]) -> None:
    cpus.update({"store-1": 0, "store-3": 0})
    with pytest.raises(TargetError, match=r"store-1 does not answer\nstore-3 does not answer"):
        requirements.asked(hardware())


def test_hosts_with_less_than_the_file_says_are_refused(tmp_path: Path) -> None:
    hosts = hardware(cpus=64, memory="384GiB")

    class Shell:
        name, address = "store-1", "192.0.2.30"

    state = KERNEL.model_copy(update={"cpu": "", "memory_bytes": 512 * 2**30, "mtu": 1500})
    (fault,) = kernel.faults(Shell(), hosts, state)  # type: ignore[arg-type]
    assert "it has 40 CPUs and 512 GiB of memory, not 64 and 384 GiB" in fault


GIB = 2**30
TEMPLATE = loader.load_hardware(loader.shipped_hardware()["lab-disks"])


def machine(
    cores: int | tuple[tuple[int, ...], ...], *, gib: float = 1000, **more: object
) -> Machine:
    usable = tuple((cpu,) for cpu in range(cores)) if isinstance(cores, int) else cores
    facts = {"cores": usable, "memory_bytes": int(gib * GIB), "free_bytes": 1000 * GIB, **more}
    return Machine.model_validate(facts)


def test_a_machine_of_two_cores_gets_the_hosts_of_lab_disks() -> None:
    made = made_for(machine(2, gib=24), TEMPLATE)
    assert made.name == "auto-2"
    assert made.hosts == TEMPLATE.hosts
    assert (made.clients, made.kind, made.cpu_period) == (("client-1",), "lab", 0.01)
    assert made.about == (
        "1 client, 1 gateway and 3 storage hosts in 2 CPUs (0.4, 0.7 and 0.3 each), disks of "
        "20 GiB, spinning-7200 in use: this machine has 2 cores, 24 GiB of memory and FUSE"
    )


FOUR_OF_TWO = ((0, 4), (1, 5), (2, 6), (3, 7))


@pytest.mark.parametrize(
    ("given", "name", "shares"),
    [
        (machine(1), "auto-1", (0.2, 0.35, 0.15)),
        (machine(2), "auto-2", (0.4, 0.7, 0.3)),
        (machine(4), "auto-4", (0.8, 1.4, 0.6)),
        (machine(7), "auto-7", (1.4, 2.45, 1.05)),
        # Too few cores for some of its own, and no cpusets.
        (machine(FOUR_OF_TWO), "auto-8", (1.6, 2.8, 1.2)),
        (machine(16, cpusets=False), "auto-16", (3.2, 5.6, 2.4)),
    ],
)
def test_below_eight_cores_hosts_share_all_cpus_by_quota(
    given: Machine, name: str, shares: tuple[float, float, float]
) -> None:
    made = made_for(given, TEMPLATE)
    assert made.name == name
    found = {host: spec.cpus for host, spec in made.hosts.items()}
    client, gateway, store = shares
    assert found == {"client-1": client, "gateway-1": gateway, **dict.fromkeys(STORES, store)}
    assert all(spec.cpuset is None for spec in made.hosts.values())
    assert sum(spec.cpus or 0 for spec in made.hosts.values()) == pytest.approx(given.cpus)
    has = f"{len(given.cores)} core{'s' * (len(given.cores) > 1)}, 1000 GiB of memory and FUSE"
    assert made.about.endswith(f"this machine has {has}")


PAIRS = tuple((cpu, cpu + 16) for cpu in range(16))
MIXED = (*PAIRS[:8], *((cpu,) for cpu in range(8, 16)))


@pytest.mark.parametrize(
    ("cores", "each"),
    [(8, 1), (10, 1), (11, 2), (16, 3), (64, 12), (PAIRS, 6), (MIXED, 3)],
)
def test_from_eight_cores_on_every_host_has_as_many_of_its_own(
    cores: int | tuple[tuple[int, ...], ...], each: int
) -> None:
    given = machine(cores)
    made = made_for(given, TEMPLATE)
    assert made.name == f"auto-{given.cpus}"
    owned = [{*host.own_cpus} for host in made.hosts.values()]
    assert {len(own) for own in owned} == {each}
    assert all(host.cpus is None for host in made.hosts.values())
    core_of = {cpu: number for number, core in enumerate(given.cores) for cpu in core}
    taken = [core for own in owned for core in {core_of[cpu] for cpu in own}]
    assert len(taken) == len({*taken}), "no two hosts share a core"
    # The first is left to the kernel and the conductor.
    assert 0 not in taken
    assert f"with {each} CPU{'s' * (each > 1)} each of their own, disks" in made.about


def test_memory_grows_with_the_cpus_up_to_70_percent_of_the_machines() -> None:
    assert made_for(machine(8), TEMPLATE).hosts["store-1"].memory == 10 * GIB
    assert made_for(machine(1), TEMPLATE).hosts["store-1"].memory == 2560 * 2**20
    for cores, gib in ((2, 9), (2, 12), (16, 64), (64, 256)):
        hosts = made_for(machine(cores, gib=gib), TEMPLATE).hosts
        assert 0.65 * gib < sum(host.memory or 0 for host in hosts.values()) / GIB <= 0.7 * gib
        assert len({hosts[name].memory for name in STORES}) == 1
    assert made_for(machine(2, gib=8.2), TEMPLATE).hosts["store-1"].memory == 1536 * 2**20


@pytest.mark.parametrize(("free_gib", "size_gib"), [(63, 20), (62, 10), (33, 10), (32, 5), (18, 5)])
def test_disks_are_smaller_where_not_all_would_fit(free_gib: int, size_gib: int) -> None:
    made = made_for(machine(2, free_bytes=free_gib * GIB), TEMPLATE)
    assert {made.hosts[name].disks[0].size for name in STORES} == {size_gib * GIB}
    assert f"disks of {size_gib} GiB" in made.about


def test_a_machine_with_too_little_is_refused_with_what_is_needed() -> None:
    for given, why in (
        (machine(2, gib=8), r"a machine with 8\.2 GiB of memory.* has 8\.0 GiB"),
        (machine(2, free_bytes=17 * GIB), r"needs 18 GiB of disk.* 17\.0 GiB are free"),
    ):
        with pytest.raises(UsageError, match=why):
            made_for(given, TEMPLATE)


def test_disks_have_no_model_but_limits_where_fuse_does_not_work() -> None:
    made = made_for(machine(2, gib=24, no_models="there is no /dev/fuse"), TEMPLATE)
    (disk,) = made.hosts["store-2"].disks
    assert (disk.model, disk.iops, disk.bandwidth) == (None, 120, 150_000_000)
    assert made.about.endswith(
        "disks of 20 GiB limited to 120 IOPS and 150 MB/s: this machine has 2 cores and 24 GiB of "
        "memory, but no disk models (there is no /dev/fuse)"
    )
    (modelled,) = made_for(machine(2), TEMPLATE).hosts["store-2"].disks
    assert isinstance(modelled.model, SpinningDisk)
    assert modelled.model.scatter == 4 * 2**20


@pytest.mark.parametrize("cores", [1, 2, 4, 8, 16, 64])
def test_every_shipped_layout_fits_and_the_hardware_survives_a_plan(cores: int) -> None:
    made = made_for(machine(cores, gib=8.2), TEMPLATE)
    for name, path in loader.shipped_layouts().items():
        if name != "existing":
            assert loader.load_layout(path, made).layout.name == name
    assert Hardware.model_validate_json(made.model_dump_json()) == made


def test_cpus_are_grouped_by_the_cores_that_the_kernel_reports(tmp_path: Path) -> None:
    for cpu in range(6):
        folder = tmp_path / f"cpu{cpu}/topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{cpu % 3},{cpu % 3 + 3}\n")
    assert cores_of(set(range(6)), tmp_path) == ((0, 3), (1, 4), (2, 5))
    # Only those on which this command may run count.
    assert cores_of({1, 3, 4}, tmp_path) == ((1, 4), (3,))
    assert cores_of({7, 9}, tmp_path) == ((7,), (9,))


def test_this_machine_has_the_cpus_on_which_the_command_may_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0})
    monkeypatch.setattr(auto.model_disks, "lacking", lambda: "there is no /dev/fuse")
    found = auto.this_machine(tmp_path / "not/there/yet")
    assert (found.cores, found.cpus) == (((0,),), 1)
    assert found.no_models == "there is no /dev/fuse"
    assert found.memory_bytes > 2**28
    assert found.free_bytes > 0
    assert HostSpec(cpuset="0").own_cpus == found.cores[0]
