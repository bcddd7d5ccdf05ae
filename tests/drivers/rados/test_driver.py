from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.drivers.rados.conftest import DATA, StubMachine, one_kind
from weighbridge.common.errors import DriverError
from weighbridge.drivers.protocol import Cleanup, DriverFailure, Prepare, Progress, Step
from weighbridge.drivers.rados import RadosBench, RadosCluster
from weighbridge.results.analysis.steps.validity import judge
from weighbridge.suites import Bounds, Workload
from weighbridge.suites import RadosBenchOptions as Settings

ANSWERS = DATA / "rados" / "ceph-16"
RADOS = rf"""
answers={ANSWERS}
case "$*" in
*" cleanup "*) echo "Removed 1468 objects" ;;
*max-objects*)
  for last; do :; done
  sed "s/made\":\"40\"/made\":\"$last\"/" $answers/write-40-objects.json ;;
*write*) cat $answers/write.json ;;
*seq*) cat $answers/seq.json ;;
*rand*) cat $answers/rand.json ;;
esac
"""


def workload(operation: str = "read", count: int = 7, **changed: object) -> Workload:
    return one_kind(operation, objects={"size": 65536, "per_container": count}, **changed)


@pytest.fixture
def driver(machine: StubMachine, cluster: RadosCluster, tmp_path: Path) -> RadosBench:
    machine.script("rados", RADOS)
    return RadosBench(
        cluster,
        prefix="wb-1",
        log=tmp_path / "log",
        settings=Settings(instances=2, pg_num=16),
        cpus=2.0,
    )


def test_reads_are_of_prepared_objects_and_each_instance_has_its_own_pool(
    driver: RadosBench, machine: StubMachine
) -> None:
    machine.unclean = 2
    heard: list[Progress] = []
    with driver:
        prepared = driver.prepare(Prepare(workload=workload()), heard.append)
        assert machine.pools == {"wb-1-rados-0": 8, "wb-1-rados-1": 8}
        assert "ceph osd pool application enable wb-1-rados-1 rados" in machine.asked
        assert (prepared.objects, prepared.bytes) == (7, 7 * 65536)
        measured = driver.step(Step(workload=workload(), workers=5))
        made = measured.measurement
        assert {call.split(" --format")[0] for call in machine.calls if "rand" in call} == {
            "rados --pool wb-1-rados-0 bench 3 rand -t 3 --run-name wb-1-some",
            "rados --pool wb-1-rados-1 bench 3 rand -t 2 --run-name wb-1-some",
        }
        assert (made.api, made.driver, made.workers) == ("rados", "rados-bench", 5)
        assert made.tallies[0].latency is None
        assert made.load is not None
        assert "hints = 1" in measured.kept[1].text
        driver.cleanup(Cleanup(workload=workload(), what="written"))
        assert machine.pools
        driver.cleanup(Cleanup(workload=workload(), what="all"))
        assert machine.pools, "the next workload uses them as well"
    assert machine.pools == {}
    sizes = [call.rpartition(" ")[2] for call in machine.calls if "max-objects" in call]
    assert sorted(sizes) == ["3", "4"]


def test_writes_make_new_objects_each_time_and_are_deleted_by_the_names_of_their_runs(
    driver: RadosBench, machine: StubMachine
) -> None:
    written = workload("write", warmup="1s")
    with driver:
        assert driver.prepare(Prepare(workload=written)).objects == 0
        driver.step(Step(workload=written, workers=8))
        assert driver.cleanup(Cleanup(workload=written)).deleted == 4 * 1468
    runs = re.findall(r"(\S+) -t 4 --run-name (\S+)", "\n".join(machine.calls))
    assert sorted(runs) == [("write", "wb-1-some-1")] * 2 + [("write", "wb-1-some-2")] * 2
    assert sum("bench 1 write" in call for call in machine.calls) == 2  # the warm-up
    assert machine.pools == {}


def test_sequential_reads_that_run_out_of_objects_are_noted_and_count_by_their_real_time(
    driver: RadosBench,
) -> None:
    in_order = workload(pick="sequential")
    with driver:
        driver.prepare(Prepare(workload=in_order))
        made = driver.step(Step(workload=in_order, workers=8)).measurement
    assert made.window_s < 0.2
    assert any("ran out after" in note for note in made.notes)


def test_with_fewer_workers_than_instances_fewer_run_with_a_note(
    driver: RadosBench, machine: StubMachine
) -> None:
    with driver:
        with pytest.raises(DriverError, match="was not prepared"):
            driver.step(Step(workload=workload(), workers=1))
        driver.prepare(Prepare(workload=workload()))
        made = driver.step(Step(workload=workload(), workers=1)).measurement
    assert sum("rand" in call for call in machine.calls) == 1
    assert made.notes == ("1 of 2 instances: there are no workers or objects for more",)


def test_a_bench_beside_the_gateway_that_used_all_cpu_is_noted_and_valid(
    driver: RadosBench,
) -> None:
    with driver:
        driver.prepare(Prepare(workload=workload()))
        made = driver.step(Step(workload=workload(), workers=8)).measurement
    assert made.load is not None
    used = made.load.model_copy(update={"cpu_s": made.load.cpu_limit * made.load.window_s})
    verdict = judge(made.model_copy(update={"load": used}), Bounds())
    assert verdict.valid
    assert any("rados-bench used 100% of its CPU limit" in note for note in verdict.notes)


def test_an_instance_that_fails_fails_the_step_with_its_output_and_leaves_no_pool(
    driver: RadosBench, machine: StubMachine
) -> None:
    with driver:
        driver.prepare(Prepare(workload=workload()))
        machine.script(
            "rados", "echo 'error during benchmark: (28) No space left on device' >&2; exit 1"
        )
        with pytest.raises(DriverFailure, match="No space left") as caught:
            driver.step(Step(workload=workload(), workers=8))
        assert len(caught.value.kept) == 2
    assert machine.pools == {}


def test_fewer_objects_than_requested_fail_the_preparation(
    driver: RadosBench, machine: StubMachine
) -> None:
    machine.script("rados", f"cat {ANSWERS}/write-40-objects.json")
    with (
        driver,
        pytest.raises(DriverFailure, match="wrote 40 objects into wb-1-rados-0 instead of 4"),
    ):
        driver.prepare(Prepare(workload=workload()))


def test_pools_with_other_replicas_than_the_layout_are_not_measured(
    driver: RadosBench, machine: StubMachine
) -> None:
    machine.size = 2
    with driver, pytest.raises(DriverFailure, match="has 2 replicas, the layout 3"):
        driver.prepare(Prepare(workload=workload()))
    assert machine.pools == {}
