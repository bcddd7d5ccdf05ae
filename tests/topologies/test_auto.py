from __future__ import annotations

from pathlib import Path

import pytest

from weighbridge.common.errors import UsageError
from weighbridge.topologies import auto, loader
from weighbridge.topologies.auto import Machine, cores_of, made_for
from weighbridge.topologies.disk_models import SpinningDisk
from weighbridge.topologies.hardware import Hardware, HostSpec

GIB = 2**30
TEMPLATE = loader.load_hardware(loader.shipped_hardware()["lab-disks"])
STORES = ("store-1", "store-2", "store-3")


def machine(
    cores: int | tuple[tuple[int, ...], ...], *, gib: float = 1000, **more: object
) -> Machine:
    """With one CPU a core, or the CPUs of each."""
    usable = tuple((cpu,) for cpu in range(cores)) if isinstance(cores, int) else cores
    facts = {"cores": usable, "memory_bytes": int(gib * GIB), "free_bytes": 1000 * GIB, **more}
    return Machine.model_validate(facts)


def memory_of(hardware: Hardware) -> int:
    return sum(host.memory or 0 for host in hardware.hosts.values())


def test_a_machine_of_two_cores_gets_the_hosts_of_lab_disks() -> None:
    made = made_for(machine(2, gib=24), TEMPLATE)
    assert made.name == "auto-2"
    assert made.hosts == TEMPLATE.hosts
    assert (made.clients, made.kind, made.cpu_period) == (("client-1",), "lab", 0.01)
    assert made.about == (
        "1 client, 1 gateway and 3 storage hosts in 2 CPUs (0.4, 0.7 and 0.3 each), disks of "
        "20 GiB, spinning-7200 in use: this machine has 2 cores, 24 GiB of memory and FUSE"
    )


@pytest.mark.parametrize(
    ("cores", "client", "gateway", "store"),
    [(1, 0.2, 0.35, 0.15), (2, 0.4, 0.7, 0.3), (4, 0.8, 1.4, 0.6), (7, 1.4, 2.45, 1.05)],
)
def test_below_eight_cores_hosts_share_all_cpus_by_quota(
    cores: int, client: float, gateway: float, store: float
) -> None:
    made = made_for(machine(cores), TEMPLATE)
    assert made.name == f"auto-{cores}"
    found = {name: host.cpus for name, host in made.hosts.items()}
    assert found == {"client-1": client, "gateway-1": gateway, **dict.fromkeys(STORES, store)}
    assert all(host.cpuset is None for host in made.hosts.values())
    assert sum(host.cpus or 0 for host in made.hosts.values()) == pytest.approx(cores)


@pytest.mark.parametrize(("cores", "each"), [(8, 1), (10, 1), (11, 2), (16, 3), (64, 12)])
def test_from_eight_cores_on_every_host_has_as_many_of_its_own(cores: int, each: int) -> None:
    made = made_for(machine(cores), TEMPLATE)
    assert made.name == f"auto-{cores}"
    owned = [host.own_cpus for host in made.hosts.values()]
    assert {len(own) for own in owned} == {each}
    assert all(host.cpus is None for host in made.hosts.values())
    taken = {cpu for own in owned for cpu in own}
    assert len(taken) == 5 * each
    # The first is left to the kernel and the conductor.
    assert taken <= set(range(1, cores))
    assert f"with {each} CPU{'s' * (each > 1)} each of their own, disks" in made.about


def test_no_two_hosts_share_a_core_of_several_threads() -> None:
    cores = tuple((cpu, cpu + 16) for cpu in range(16))
    made = made_for(machine(cores), TEMPLATE)
    assert made.name == "auto-32"
    assert {name: host.cpuset for name, host in made.hosts.items()} == {
        "client-1": "1-3,17-19",
        "gateway-1": "4-6,20-22",
        "store-1": "7-9,23-25",
        "store-2": "10-12,26-28",
        "store-3": "13-15,29-31",
    }


def test_hosts_stay_equal_where_some_cores_have_one_thread() -> None:
    cores = (*((cpu, cpu + 16) for cpu in range(8)), *((cpu,) for cpu in range(8, 16)))
    made = made_for(machine(cores), TEMPLATE)
    assert {len(host.own_cpus) for host in made.hosts.values()} == {3}


def test_four_cores_of_two_threads_are_too_few_for_cores_of_their_own() -> None:
    made = made_for(machine(((0, 4), (1, 5), (2, 6), (3, 7))), TEMPLATE)
    assert made.name == "auto-8"
    assert made.hosts["gateway-1"].cpus == 2.8
    assert made.about.endswith("this machine has 4 cores, 1000 GiB of memory and FUSE")


def test_without_cpusets_many_cores_are_shared_by_quota() -> None:
    made = made_for(machine(16, cpusets=False), TEMPLATE)
    assert made.hosts["gateway-1"].cpus == 5.6
    assert made.hosts["gateway-1"].cpuset is None


def test_memory_grows_with_the_cpus_up_to_70_percent_of_the_machines() -> None:
    assert made_for(machine(8), TEMPLATE).hosts["store-1"].memory == 10 * GIB
    assert made_for(machine(1), TEMPLATE).hosts["store-1"].memory == 2560 * 2**20
    for cores, gib in ((2, 9), (2, 12), (16, 64), (64, 256)):
        made = made_for(machine(cores, gib=gib), TEMPLATE)
        assert 0.65 * gib * GIB < memory_of(made) <= 0.7 * gib * GIB
        assert len({made.hosts[name].memory for name in STORES}) == 1


def test_a_machine_with_too_little_memory_is_refused_with_what_is_needed() -> None:
    enough = made_for(machine(2, gib=8.2), TEMPLATE)
    assert enough.hosts["store-1"].memory == 1536 * 2**20
    with pytest.raises(UsageError, match=r"a machine with 8\.2 GiB of memory.* has 8\.0 GiB"):
        made_for(machine(2, gib=8), TEMPLATE)


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


@pytest.mark.parametrize(("free_gib", "size_gib"), [(63, 20), (62, 10), (33, 10), (32, 5), (18, 5)])
def test_disks_are_smaller_where_not_all_would_fit(free_gib: int, size_gib: int) -> None:
    made = made_for(machine(2, free_bytes=free_gib * GIB), TEMPLATE)
    assert {made.hosts[name].disks[0].size for name in STORES} == {size_gib * GIB}
    assert f"disks of {size_gib} GiB" in made.about


def test_a_machine_with_too_little_disk_is_refused_with_what_is_needed() -> None:
    with pytest.raises(UsageError, match=r"needs 18 GiB of disk.* 17\.0 GiB are free"):
        made_for(machine(2, free_bytes=17 * GIB), TEMPLATE)


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
