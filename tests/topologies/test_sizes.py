"""Settings of shipped layouts on hosts of several sizes, in the lab and real."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from weighbridge.common.document import DocumentError
from weighbridge.common.errors import TargetError
from weighbridge.selection import on_sized_hosts, size_remark
from weighbridge.topologies import auto
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import (
    Planned,
    load_hardware,
    load_layout,
    parse,
    shipped_hardware,
    shipped_layouts,
)
from weighbridge.topologies.ssh import kernel, leftovers, sizes

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
    """Real hosts; those of the store have twelve disks."""
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
    """What the gateway itself is given."""
    found = {}
    for key in keys:
        value: Any = one.gateway.settings  # type: ignore[attr-defined]
        for name in key.split("."):
            value = getattr(value, name)
        found[key] = value
    return found


def on_a_machine_of_two_cores() -> Hardware:
    machine = auto.Machine(cores=((0,), (1,)), memory_bytes=16 * 2**30, free_bytes=10**12)
    return auto.made_for(machine, load_hardware(shipped_hardware()["lab-disks"]))


@pytest.mark.parametrize("layout", IN_THE_LAB)
@pytest.mark.parametrize("name", ["lab-cpu", "lab-disks", "lab-disks-merged", "auto"])
def test_settings_of_lab_hosts_are_those_that_layouts_used_to_give(name: str, layout: str) -> None:
    hosts = (
        on_a_machine_of_two_cores() if name == "auto" else load_hardware(shipped_hardware()[name])
    )
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
    assert why["pools.data_pg_num"] == (
        512,
        "64 % of 100 per disk, of 36 disks, by 3 copies: 768, as a power of two",
    )
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
    assert settings_of(found, {"proxy.workers": 4, "object.workers": 4}) == {
        "proxy.workers": 4,
        "object.workers": 4,
    }


def test_a_host_whose_memory_is_too_little_for_its_osds_is_refused() -> None:
    with pytest.raises(DocumentError, match=r"may take 1 GiB .* host 'store-1' .* has 512"):
        planned("rgw-beast:osd.memory_target=1GiB", hardware(cpus=2, memory="512MiB"))


def test_a_machine_is_only_of_real_hosts() -> None:
    hosts = {"client-1": {"machine": {"cpus": 4, "memory": "8GiB"}}}
    with pytest.raises(ValueError, match=r"is only for real hosts \(kind: ssh\)"):
        Hardware.model_validate({"name": "lab", "kind": "lab", "hosts": hosts})


# asked of real hosts
# --------------------------------------------------------------------------------------------


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
        return kernel.KernelState(
            kernel="6.1",
            boot="b",
            cpu="a CPU",
            cpus=shell.cpus,
            memory_bytes=384 * 2**30 - 5_000_000,
            nic="eth1",
            sysctls={},
        )

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
    assert sizes.asked(hosts) is hosts


def test_hosts_that_do_not_answer_are_all_named(cpus: dict[str, int]) -> None:
    cpus.update({"store-1": 0, "store-3": 0})
    with pytest.raises(TargetError, match=r"store-1 does not answer\nstore-3 does not answer"):
        sizes.asked(hardware())


def test_hosts_with_less_than_the_file_says_are_refused(tmp_path: Path) -> None:
    hosts = hardware(cpus=64, memory="384GiB")

    class Shell:
        name, address = "store-1", "192.0.2.30"

    state = kernel.KernelState(
        kernel="6.1",
        boot="b",
        cpu="",
        cpus=40,
        memory_bytes=512 * 2**30,
        nic="eth1",
        mtu=1500,
        sysctls={},
    )
    (fault,) = kernel.faults(Shell(), hosts, state)  # type: ignore[arg-type]
    assert "it has 40 CPUs and 512 GiB of memory, not 64 and 384 GiB" in fault
