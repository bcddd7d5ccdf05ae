"""`rados bench` in a pool that exists, with programs that keep objects as files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fake_ceph import STORE, FakeCeph, detail
from tests.drivers.rados.given_pools import NAMESPACE, Seen, ours, untouched
from tests.drivers.rados.test_driver import workload
from weighbridge.common.errors import ObjectsLeft, TargetError
from weighbridge.drivers.protocol import Cleanup, Prepare, Step
from weighbridge.drivers.rados import GivenPool, RadosBench
from weighbridge.drivers.rados.given_pool import last_written
from weighbridge.suites import RadosBenchOptions


def bench(given: GivenPool, tmp_path: Path, instances: int = 2) -> RadosBench:
    options = RadosBenchOptions(instances=instances)
    return RadosBench(given, prefix=NAMESPACE, log=tmp_path / "log", settings=options)


def test_all_is_written_in_a_namespace_of_the_run_and_nothing_is_left(
    ceph: FakeCeph, given: GivenPool, tmp_path: Path
) -> None:
    with bench(given, tmp_path) as driver:
        prepared = driver.prepare(Prepare(workload=workload()))
        assert prepared.objects == 7
        assert len(ours(ceph)) == 7 + 2
        made = driver.step(Step(workload=workload(), workers=4)).measurement
        driver.step(Step(workload=workload("write"), workers=4))
        assert len(ours(ceph)) == 7 + 2 + 2 * (4 + 1)
        driver.cleanup(Cleanup(workload=workload("write"), what="all"))
        assert ours(ceph) == []
        driver.quit()
    assert (made.api, made.tallies[0].count) == ("rados", 800)
    assert made.notes == ("2 rados bench in parallel, in the pool bench, which existed before",)
    assert untouched(ceph)
    asked = [one for one in ceph.calls if " bench 3 " in one]
    start = f"rados --name client.bench --namespace {NAMESPACE} --pool bench bench "
    assert asked
    assert all(one.startswith(start) for one in asked)
    assert not [one for one in ceph.calls if "pool create" in one or "pool rm" in one]


def test_what_a_failed_bench_left_is_swept_though_its_run_has_no_metadata(
    ceph: FakeCeph, given: GivenPool
) -> None:
    for name in ("benchmark_data_gateway-1_9_object0", "benchmark_data_other_3_object1"):
        ceph.put(NAMESPACE, name)
    ceph.put(NAMESPACE, "wb-0123abcd-some-1")
    assert given.sweep() == 3
    assert ours(ceph) == []
    assert untouched(ceph)
    assert given.sweep() == 0


def test_somebody_elses_object_in_the_namespace_is_left_and_named(
    ceph: FakeCeph, given: GivenPool
) -> None:
    ceph.put(NAMESPACE, "their own")
    ceph.put(NAMESPACE, "wb-0123abcd-some-1")
    with pytest.raises(ObjectsLeft, match="someone else's object, 'their own': nothing deleted"):
        given.sweep()
    assert len(ours(ceph)) == 2


def test_what_cannot_be_deleted_is_named_with_its_place_and_the_reason(
    ceph: FakeCeph, given: GivenPool
) -> None:
    ceph.put(NAMESPACE, "wb-0123abcd-some-1")
    ceph.say("denied", "error: (1) Operation not permitted")
    with pytest.raises(ObjectsLeft) as error:
        given.sweep()
    assert error.value.words == (
        "objects that may be left: pool bench, namespace wb-0123abcd, by gateway-1"
    )
    assert "rados ls: error: (1) Operation not permitted" in error.value.message


def test_groups_that_are_not_clean_are_a_remark_and_a_note_of_every_step(
    ceph: FakeCeph, seen: Seen, given: GivenPool, tmp_path: Path
) -> None:
    ceph.say("states", {"active+clean": 60, "active+undersized+degraded": 5})
    words = (
        "of 65 placement groups of the cluster not all are active and clean: 5 "
        "active+undersized+degraded"
    )
    assert seen().remark == words
    with bench(given, tmp_path, 1) as driver:
        driver.prepare(Prepare(workload=workload("write")))
        made = driver.step(Step(workload=workload("write"), workers=4)).measurement
    assert made.notes == (words,)


@pytest.mark.parametrize(
    ("pools", "words"),
    [
        (
            [detail(flags_names="hashpspool,nearfull")],
            r"gateway-1: pool bench: it is full \(nearfull\): writes would wait for ever",
        ),
        ([detail(STORE)], "gateway-1: pool bench: the cluster has it no longer"),
    ],
)
def test_a_pool_that_fills_up_during_a_run_is_refused_for_the_next_workload(
    ceph: FakeCeph, given: GivenPool, tmp_path: Path, pools: list[object], words: str
) -> None:
    with bench(given, tmp_path) as driver:
        driver.prepare(Prepare(workload=workload()))
        there = ours(ceph)
        ceph.say("pools", pools)
        with pytest.raises(TargetError, match=words):
            driver.prepare(Prepare(workload=workload("write")))
        assert ours(ceph) == there
        ceph.say("pools", [detail()])
        ceph.say("no-caps", "Error EACCES: access denied")
        driver.prepare(Prepare(workload=workload("write")))


def test_without_the_program_ceph_steps_are_measured_and_say_what_is_not_known(
    ceph: FakeCeph, given: GivenPool, tmp_path: Path
) -> None:
    (ceph.bin / "ceph").unlink()
    with bench(given, tmp_path, 1) as driver:
        driver.prepare(Prepare(workload=workload("write")))
        made = driver.step(Step(workload=workload("write"), workers=4)).measurement
    (note,) = made.notes
    assert re.search(r"active and clean is not known: env: .*ceph.*No such file", note)


def test_of_objects_that_runs_left_those_count_that_were_written_last() -> None:
    one, other = (f"benchmark_data_gateway-1_{pid}_object" for pid in (7, 70))
    names = [f"{one}9", f"{one}10", f"{one}2", f"{other}0", "wb-1-get", "theirs", f"{one}x"]
    assert sorted(last_written(names)) == sorted((f"{one}10", f"{other}0", "wb-1-get", f"{one}x"))
