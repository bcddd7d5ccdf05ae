from __future__ import annotations

from pathlib import Path

import pytest

from tests.drivers.rados.conftest import DATA, StubMachine, one_kind
from weighbridge.drivers.protocol import Cleanup, DriverFailure, Prepare, Progress, Step
from weighbridge.drivers.rados import RadosCluster, RbdBench
from weighbridge.drivers.rados.block import BlockProgress, image_of, progress_lines, window
from weighbridge.drivers.rados.host_commands import CommandOutput
from weighbridge.suites import Workload

SIZE = 64000
LOOP = """
case "$*" in
*"--io-type write"*"--io-pattern seq"*) echo "elapsed: 1   ops: 4" ;;
*) echo "bench  type read io_size 64000 io_threads 8 bytes 1099511627776 pattern random"
   echo "  SEC       OPS   OPS/SEC   BYTES/SEC"
   n=1
   while :; do sleep 0.05; echo "    $n      ${n}00   2000.5   122 MiB/s"; n=$((n+1)); done ;;
esac
"""


def workload(operation: str = "read") -> Workload:
    objects = {"size": SIZE, "per_container": 300}
    return one_kind(operation, objects=objects, runtime="0.5s", warmup="0.2s")


@pytest.fixture
def driver(machine: StubMachine, cluster: RadosCluster, tmp_path: Path) -> RbdBench:
    machine.script("rbd", LOOP)
    return RbdBench(cluster, prefix="wb-1", log=tmp_path / "log", pg_num=16, cpus=1.0)


@pytest.mark.parametrize("release", ["ceph-14", "ceph-16", "ceph-18"])
def test_operations_are_read_from_the_lines_that_each_release_prints_every_second(
    release: str,
) -> None:
    lines = (DATA / "rados" / release / "rbd-write.txt").read_text().splitlines()
    ran = CommandOutput((), [(float(number), line) for number, line in enumerate(lines)])
    found = progress_lines(ran)
    assert len(found) >= 4
    assert found == sorted(found, key=lambda one: one.count)
    assert found[0].count > 0


def test_the_window_is_from_the_first_line_after_the_warm_up_for_at_least_the_runtime() -> None:
    marked = [
        BlockProgress(1.1, 10),
        BlockProgress(2.1, 30),
        BlockProgress(3.0, 50),
        BlockProgress(4.2, 80),
        BlockProgress(5.2, 100),
    ]
    assert window(marked, 2.0, 2.0) == (BlockProgress(2.1, 30), BlockProgress(4.2, 80))
    assert window(marked[:3], 2.0, 2.0) is None
    assert window([], 0.0, 1.0) is None


def test_an_image_is_complete_objects_and_has_room_for_all_of_the_workload() -> None:
    assert image_of(workload(), "pool").size_bytes == 2 * 16 * 2**20


def test_a_step_counts_between_two_lines_and_has_no_latency(
    driver: RbdBench, machine: StubMachine
) -> None:
    heard: list[Progress] = []
    with driver:
        driver.prepare(Prepare(workload=workload()))
        assert machine.pools == {"wb-1-rbd": 16}
        assert "rbd config image set wb-1-rbd/some rbd_cache false" in machine.asked
        made = driver.step(Step(workload=workload(), workers=8), heard.append).measurement
        assert driver.cleanup(Cleanup(workload=workload(), what="all")).deleted == 1
        assert machine.pools == {}
    (tally,) = made.tallies
    assert made.driver == "rbd-bench"
    assert made.window_s >= 0.5
    assert tally.count > 0
    assert tally.count % 100 == 0
    assert tally.bytes == tally.count * SIZE
    assert (tally.latency, tally.min_us, tally.max_us, tally.sum_us) == (None, None, None, None)
    assert heard
    assert any(
        call.startswith("rbd bench --io-type read --io-pattern rand --io-size 64000 --io-threads 8")
        for call in machine.calls
    )


def test_a_bench_that_ends_by_itself_is_not_a_measurement(
    driver: RbdBench, machine: StubMachine
) -> None:
    with driver:
        driver.prepare(Prepare(workload=workload()))
        machine.script("rbd", "echo 'elapsed: 0   ops: 7'")
        with pytest.raises(DriverFailure, match="ended too early"):
            driver.step(Step(workload=workload(), workers=8))
