from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import pytest

from tests.drivers.rados.conftest import DATA, StubMachine, one_kind
from weighbridge.common.errors import DriverError, TargetError
from weighbridge.drivers.protocol import Cleanup, DriverFailure, Prepare, Progress, Step
from weighbridge.drivers.rados import OsdFigure, RadosBench, RadosCluster, RbdBench, osd_figures
from weighbridge.drivers.rados.block import BlockProgress, image_of, progress_lines, window
from weighbridge.drivers.rados.cluster import (
    BenchPlace,
    Mode,
    RadosBenchCommand,
    RadosBenchResult,
    combined,
    pg_num_each,
)
from weighbridge.drivers.rados.host_commands import CommandOutput
from weighbridge.drivers.rados.osd_bench import total_bytes
from weighbridge.results.figures.validity import judge
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
    settings, log = Settings(instances=2, pg_num=16), tmp_path / "log"
    return RadosBench(cluster, prefix="wb-1", log=log, settings=settings, cpus=2.0)


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


@pytest.mark.parametrize(
    ("replicas", "words"),
    [(3, "wrote 40 objects into wb-1-rados-0 instead of 4"), (2, "has 2 replicas, the layout 3")],
)
def test_fewer_objects_than_requested_and_pools_with_other_replicas_are_not_measured(
    driver: RadosBench, machine: StubMachine, replicas: int, words: str
) -> None:
    machine.script("rados", f"cat {ANSWERS}/write-40-objects.json")
    machine.size = replicas
    with driver, pytest.raises(DriverFailure, match=words):
        driver.prepare(Prepare(workload=workload()))
    assert machine.pools == {}


RELEASES = ("ceph-14", "ceph-16", "ceph-18")


def printed(release: str, name: str) -> str:
    return (DATA / "rados" / release / f"{name}.json").read_text()


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("mode", ["write", "seq", "rand"])
def test_the_output_of_each_release_is_read(release: str, mode: Mode) -> None:
    text = printed(release, mode)
    assert text.startswith("hints = 1\n")
    result = RadosBenchResult.of(mode, text)
    assert result.object_bytes == 65536
    assert result.count >= 100
    assert result.min_s is not None
    assert result.mean_s is not None
    assert result.max_s is not None
    assert 0 < result.min_s < result.mean_s < result.max_s < result.seconds < 4
    # A closed loop of four: its figures obey Little's law.
    assert result.mean_s * result.count / result.seconds == pytest.approx(4, rel=0.1)


def test_a_write_of_a_number_of_objects_has_garbage_besides_what_is_read() -> None:
    text = printed("ceph-16", "write-40-objects")
    assert '"min_bandwidth":"17976931' in text
    assert RadosBenchResult.of("write", text).count == 40


def test_several_in_parallel_add_up_and_share_the_longest_window() -> None:
    first = RadosBenchResult(
        seconds=3.0, count=100, object_bytes=10, mean_s=0.010, min_s=0.002, max_s=0.02
    )
    second = RadosBenchResult(
        seconds=4.0, count=300, object_bytes=10, mean_s=0.020, min_s=0.001, max_s=0.03
    )
    nothing = RadosBenchResult(seconds=3.5, count=0, object_bytes=10)
    tally, window_s = combined([first, second, nothing], "read")
    assert (tally.count, tally.bytes, window_s) == (400, 4000, 4.0)
    assert (tally.min_us, tally.max_us, tally.sum_us) == (1000, 30000, 7_000_000)
    # Without operations there is no latency.
    text = printed("ceph-16", "rand")
    text = text.replace('"total_reads_made":"', '"total_reads_made":"0","other":"')
    tally, _ = combined([RadosBenchResult.of("rand", text)], "read")
    assert (tally.count, tally.min_us, tally.max_us) == (0, None, None)


@pytest.mark.parametrize(
    "text",
    ["hints = 1\n", "", '["a"]', '{"total_time_run": "1"}', printed("ceph-16", "write")[:600]],
)
def test_an_incomplete_result_is_an_error(text: str) -> None:
    with pytest.raises(DriverError, match="rados bench"):
        RadosBenchResult.of("write", text)


@pytest.mark.parametrize(("mode", "keeps"), [("write", True), ("seq", False), ("rand", False)])
def test_only_writes_have_sizes_and_leave_their_objects(mode: Mode, keeps: bool) -> None:
    argv = RadosBenchCommand(
        place=BenchPlace(pool="p"), mode=mode, seconds=3, workers=4, object_bytes=4096, run="r"
    ).argv()
    assert argv[:6] == ("rados", "--pool", "p", "bench", "3", mode)
    assert ("--no-cleanup" in argv, "-O" in argv, "--max-objects" in argv) == (keeps, keeps, False)


@pytest.mark.parametrize(
    ("total", "parts", "each"),
    [(32, 1, 32), (32, 2, 16), (32, 3, 8), (8, 8, 1), (1, 8, 1), (1024, 8, 128)],
)
def test_placement_groups_of_each_pool_are_a_power_of_two(
    total: int, parts: int, each: Literal[1]
) -> None:
    assert pg_num_each(total, parts) == each


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


def rbd_workload(operation: str = "read") -> Workload:
    objects = {"size": SIZE, "per_container": 300}
    return one_kind(operation, objects=objects, runtime="0.5s", warmup="0.2s")


@pytest.fixture
def rbd_driver(machine: StubMachine, cluster: RadosCluster, tmp_path: Path) -> RbdBench:
    machine.script("rbd", LOOP)
    return RbdBench(cluster, prefix="wb-1", log=tmp_path / "log", pg_num=16, cpus=1.0)


@pytest.mark.parametrize("release", RELEASES)
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
    counts = {1.1: 10, 2.1: 30, 3.0: 50, 4.2: 80, 5.2: 100}
    marked = [BlockProgress(at_s, count) for at_s, count in counts.items()]
    assert window(marked, 2.0, 2.0) == (BlockProgress(2.1, 30), BlockProgress(4.2, 80))
    assert window(marked[:3], 2.0, 2.0) is None
    assert window([], 0.0, 1.0) is None


def test_a_step_counts_between_two_lines_and_has_no_latency(
    rbd_driver: RbdBench, machine: StubMachine
) -> None:
    heard: list[Progress] = []
    # Complete objects with room for all of the workload.
    assert image_of(rbd_workload(), "pool").size_bytes == 2 * 16 * 2**20
    with rbd_driver:
        rbd_driver.prepare(Prepare(workload=rbd_workload()))
        assert machine.pools == {"wb-1-rbd": 16}
        assert "rbd config image set wb-1-rbd/some rbd_cache false" in machine.asked
        made = rbd_driver.step(Step(workload=rbd_workload(), workers=8), heard.append).measurement
        assert rbd_driver.cleanup(Cleanup(workload=rbd_workload(), what="all")).deleted == 1
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
    rbd_driver: RbdBench, machine: StubMachine
) -> None:
    with rbd_driver:
        rbd_driver.prepare(Prepare(workload=rbd_workload()))
        machine.script("rbd", "echo 'elapsed: 0   ops: 7'")
        with pytest.raises(DriverFailure, match="ended too early"):
            rbd_driver.step(Step(workload=rbd_workload(), workers=8))


LIMITS = {
    "osd_bench_duration": "30",
    "osd_bench_small_size_max_iops": "100",
    "osd_bench_large_size_max_throughput": "104857600",
    "osd_bench_max_block_size": "67108864",
}


@pytest.fixture
def answering(machine: StubMachine) -> StubMachine:
    for name in ("osd.0", "osd.1"):
        machine.answers |= {
            f"tell {name} config get {option}": {option: value} for option, value in LIMITS.items()
        }
        rate = 1e6 if name == "osd.0" else 2e6
        machine.answers[f"tell {name} bench"] = {"bytes_written": 1, "bytes_per_sec": rate}
    return machine


def test_every_osd_is_benchmarked_at_every_size_within_its_limits(
    answering: StubMachine, cluster: RadosCluster
) -> None:
    figures = osd_figures(cluster, {0: "store-1", 1: "store-2"}, [4096, 2**20, 2**30])
    assert figures[0] == OsdFigure(host="store-1", number=0, request_bytes=4096, bytes_per_s=1e6)
    assert [one.request_bytes for one in figures] == [4096, 2**20, 2**26] * 2
    assert [one.bytes_per_s for one in figures] == [1e6] * 3 + [2e6] * 3
    assert "ceph tell osd.1 bench 12288000 4096 --format json" in answering.asked


def test_a_limit_without_its_name_is_read_and_an_answer_without_a_figure_an_error(
    answering: StubMachine, cluster: RadosCluster
) -> None:
    answering.answers |= {
        f"tell osd.0 config get {option}": int(value) for option, value in LIMITS.items()
    }
    assert osd_figures(cluster, {0: "store-1"}, [4096])[0].bytes_per_s == 1e6
    answering.answers["tell osd.0 bench"] = {"bytes_written": 1}
    with pytest.raises(TargetError, match=r"osd\.0 on store-1: .* in the answer to bench"):
        osd_figures(cluster, {0: "store-1"}, [4096])


@pytest.mark.parametrize(
    ("size", "total"),
    [
        (4096, 3000 * 4096),
        (64_000, 3000 * 64_000),
        (3 * 2**19, 170 * 3 * 2**19),
        (4 * 2**20, 256 * 2**20),
        (2**26, 256 * 2**20),
    ],
)
def test_an_osd_gets_a_multiple_of_the_request_size_within_its_limits_and_ours(
    size: int, total: int
) -> None:
    assert total_bytes(size, {name: int(value) for name, value in LIMITS.items()}) == total
