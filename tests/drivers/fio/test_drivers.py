from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.drivers.rados.conftest import DATA, StubMachine, file_system, one_kind
from weighbridge.drivers.fio.tool import FioCephFs, FioRbd
from weighbridge.drivers.protocol import Cleanup, DriverFailure, Prepare, Progress, Step
from weighbridge.drivers.rados import RadosCluster, host_commands
from weighbridge.suites import Workload

FIO = f"""
case "$*" in
*filename_format*) cat {DATA}/fio-cephfs-3.33.json ;;
*) cat {DATA}/fio-rbd-3.33.json ;;
esac
"""


def workload(operation: str = "read", pick: str = "uniform") -> Workload:
    return one_kind(operation, pick=pick, workers=[4, 8], warmup="1.5s")


@pytest.fixture(autouse=True)
def tools(machine: StubMachine) -> None:
    machine.script("fio", FIO)
    machine.script("rbd", "echo elapsed: 1")
    machine.answers["fs dump"] = file_system("wb-1-fs")


@pytest.fixture
def cephfs(machine: StubMachine, cluster: RadosCluster, tmp_path: Path) -> FioCephFs:
    return FioCephFs(cluster, machine, prefix="wb-1", log=tmp_path / "log", pg_num=16)


def test_rbd_is_read_with_one_outstanding_request_for_each_worker(
    machine: StubMachine, cluster: RadosCluster, tmp_path: Path
) -> None:
    with FioRbd(cluster, prefix="wb-1", log=tmp_path / "log", pg_num=16, cpus=1.0) as driver:
        driver.prepare(Prepare(workload=workload()))
        assert machine.pools == {"wb-1-fio": 16}
        made = driver.step(Step(workload=workload(), workers=8)).measurement
        driver.quit()
    assert machine.pools == {}
    (call,) = (call for call in machine.calls if call.startswith("fio"))
    words = {*call.split()}
    assert {"--rw=randread", "--bs=65536", "--ramp_time=1500ms", "--runtime=3000ms"} < words
    assert {"--ioengine=rbd", "--iodepth=8", "--pool=wb-1-fio", "--rbdname=some"} < words
    assert (made.api, made.driver, made.warmup_s) == ("rbd", "fio-rbd", 1.5)
    assert made.tallies[0].count > 0
    assert made.load is not None


def test_cephfs_runs_while_it_is_measured_and_leaves_nothing(
    cephfs: FioCephFs, machine: StubMachine
) -> None:
    with cephfs as driver:
        driver.prepare(Prepare(workload=workload("write")))
        assert machine.pools == {"wb-1-fs-metadata": 8, "wb-1-fs-data": 16}
        assert [daemon.poll() for daemon in machine.daemons] == [None, None]
        made = driver.step(Step(workload=workload("write"), workers=4)).measurement
        assert driver.cleanup(Cleanup(workload=workload("write"), what="all")).deleted == 8
    assert all(daemon.poll() is not None for daemon in machine.daemons)
    assert machine.pools == {}
    asked = [
        one for one in machine.asked if one.startswith(("start", "sh", "ceph fs", "ceph auth"))
    ]
    assert [" ".join(one.split()[:3]) for one in asked if "fs dump" not in one] == [
        "ceph fs new",
        "ceph auth get-or-create",
        "start ceph-mds -f",
        "start ceph-fuse -f",
        "sh -c umount",
        "ceph fs fail",
        "ceph fs rm",
        "ceph auth rm",
    ]
    assert made.load is None
    assert "4 of 8 files were used: each worker has its own" in made.notes


def test_the_warm_up_that_fio_excludes_is_reported_separately_from_the_window(
    cephfs: FioCephFs, machine: StubMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Twice as fast as time.
    clock = SimpleNamespace(monotonic=lambda: 2 * time.monotonic())
    monkeypatch.setattr(host_commands, "time", clock)
    machine.script("fio", f"sleep 1.2; cat {DATA}/fio-cephfs-3.33.json")
    heard: list[Progress] = []
    with cephfs as driver:
        driver.prepare(Prepare(workload=workload("write")))
        driver.step(Step(workload=workload("write"), workers=4), heard.append)
    phases = [one.phase for one in heard]
    assert phases == sorted(phases, reverse=True)  # "warm-up" is only before "measure"
    assert set(phases) == {"warm-up", "measure"}


def test_cephfs_has_a_file_for_each_worker_and_bypasses_caches(
    cephfs: FioCephFs, machine: StubMachine
) -> None:
    with cephfs as driver:
        driver.prepare(Prepare(workload=workload("write", "sequential")))
        driver.step(Step(workload=workload("write", "sequential"), workers=8))
    fill, step = (call.split() for call in machine.calls if call.startswith("fio"))
    # 20 objects over 8 workers: three complete ones each.
    common = {"--size=196608", "--numjobs=8", "--rw=write", "--filename_format=$jobnum"}
    assert common | {"--direct=1"} < set(fill)
    assert common | {"--direct=1", "--thread"} < set(step)


def test_a_metadata_server_that_does_not_start_is_reported_and_nothing_is_left(
    cephfs: FioCephFs, machine: StubMachine
) -> None:
    machine.broken = ("ceph-mds",)
    machine.answers["fs dump"] = file_system("wb-1-fs", "up:creating")
    with (
        cephfs as driver,
        pytest.raises(DriverFailure, match="gateway-1: ceph-mds has ended with 1"),
    ):
        driver.prepare(Prepare(workload=workload()))
    assert machine.pools == {}
    assert "ceph fs rm wb-1-fs --yes-i-really-mean-it" in machine.asked


def test_a_mount_that_is_lost_fails_the_next_step(cephfs: FioCephFs, machine: StubMachine) -> None:
    with cephfs as driver:
        driver.prepare(Prepare(workload=workload()))
        machine.daemons[-1].kill()
        machine.daemons[-1].wait()
        with pytest.raises(DriverFailure, match="gateway-1: ceph-fuse has ended with -9"):
            driver.step(Step(workload=workload(), workers=4))
    assert all(one.poll() is not None for one in machine.daemons)
    assert machine.pools == {}
