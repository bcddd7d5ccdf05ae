"""The real driver process against the real null target, on loopback."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import psutil
import pytest

from tests.drivers.locust.local_driver import (
    Api,
    Kept,
    Null,
    by_operation,
    check_consistent,
    driver,
    setup_for,
    stepped,
    workload,
)
from tests.gateways.capabilities.memory_store import memory_store
from weighbridge.common.errors import DriverError
from weighbridge.drivers.protocol import Cleanup, Prepare, Progress, Step
from weighbridge.suites import OPERATIONS, TRAITS, Objects

pytestmark = pytest.mark.long  # starts Locust


@pytest.mark.parametrize(
    ("api", "users"),
    [
        ("s3", "engine"),
        ("swift", "sdk"),
        pytest.param("s3", "sdk", marks=pytest.mark.test_all),
        pytest.param("swift", "engine", marks=pytest.mark.test_all),
    ],
)
def test_a_mix_of_all_operations_is_prepared_measured_and_cleaned_up(
    api: Api, users: Literal["engine", "sdk"], null: Callable[..., Null], kept: Kept
) -> None:
    mix = workload({"read": 4, "write": 3, "head": 1, "list": 1, "delete": 1}, runtime=2.0)
    target, heard = null(), list[Progress]()
    with kept() as running:
        ready = running.setup(setup_for(target.target(api), users=users))
        assert "locust" in ready.versions
        prepared = running.prepare(Prepare(workload=mix), heard.append)
        assert (prepared.objects, prepared.bytes) == (40, 40 * 4096)
        assert len(target.names(api)) == 40
        measurement = running.step(Step(workload=mix, workers=3), heard.append).measurement
        check_consistent(measurement)
        tallies = by_operation(measurement)
        assert set(tallies) == {"read", "write", "head", "list", "delete"}
        assert all(tally.count > 0 and not tally.errors for tally in tallies.values())
        assert tallies["read"].bytes == tallies["read"].count * 4096
        assert tallies["read"].first_byte is not None
        assert tallies["head"].first_byte is None
        assert measurement.driver == f"locust-{users}"
        assert measurement.workers == 3
        assert 2.0 <= measurement.window_s < 30
        assert 0 < measurement.load.cpu_s < 20
        left = len(target.names(api))
        cleaned = running.cleanup(Cleanup(workload=mix), heard.append)
        assert (cleaned.deleted, cleaned.failed) == (left - 40, 0)
        assert len(target.names(api)) == 40
        assert running.cleanup(Cleanup(workload=mix, what="all"), heard.append).deleted == 40
        assert target.names(api) == []
    assert {progress.phase for progress in heard} >= {"prepare", "warm-up", "measure", "cleanup"}
    assert any(progress.operations_per_s > 0 for progress in heard if progress.phase == "measure")


def test_a_window_that_waits_for_its_store_opens_when_the_conductor_says_so(
    null: Callable[..., Null], kept: Kept
) -> None:
    reads = workload({"read": 1})
    with kept() as running:
        running.setup(setup_for(null().target("s3")))
        running.prepare(Prepare(workload=reads))
        warmups = []
        # What is said too often, or too late, concerns no later step.
        for said, settle_s in ((True, 60.0), (False, 1.5)):
            order = Step(workload=reads, workers=1, settle_s=settle_s)
            measurement = running.step(order, lambda _, said=said: said).measurement
            warmups.append(measurement.warmup_s)
            assert any("still fell" in note for note in measurement.notes) is not said
        assert 1.5 <= warmups[0] < 30
        assert warmups[1] >= 3


def test_what_any_operation_makes_is_deleted_after_its_step(kept: Kept) -> None:
    with memory_store() as store, kept() as running:
        running.setup(setup_for(store.endpoints[0]))
        for operation in (one for one in OPERATIONS if TRAITS[one].makes):
            parts = {"multipart": {"part": "5MiB"}} if operation == "write-multipart" else {}
            one = workload({operation: 1, "read": 1}, rate_per_s=100.0, **parts)
            running.prepare(Prepare(workload=one))
            made = by_operation(running.step(Step(workload=one, workers=2)).measurement)
            assert made[operation].count > 0, operation
            assert sum(len(one.names()) for one in store.s3.buckets.values()) > 40, operation
            cleaned = running.cleanup(Cleanup(workload=one, what="written"))
            assert cleaned.deleted >= made[operation].count, operation
            assert sum(len(one.names()) for one in store.s3.buckets.values()) == 40, operation


def test_both_kinds_of_user_make_the_same_objects(null: Callable[..., Null], kept: Kept) -> None:
    writes = workload(
        {"write": 1}, runtime=0.4, warmup=0.0, objects=Objects(size=1000, containers=3)
    )
    seen: dict[str, list[str]] = {}
    for users in ("engine", "sdk"):
        target = null(delay_ms=20.0)
        with kept() as running:
            stepped(running, setup_for(target.target("s3"), users=users), writes, 2)
        seen[users] = target.names("s3")
    both = min(len(names) for names in seen.values()) // 2
    common = set(seen["engine"]) & set(seen["sdk"])
    # One gets a few requests further than the other in the same time; up to there they agree.
    assert len(common) >= both > 0


@pytest.mark.parametrize("processes", [1, 2])
def test_every_object_is_deleted_once_and_counted_once(
    processes: int, null: Callable[..., Null], kept: Kept
) -> None:
    deletes = workload(
        {"delete": 1},
        runtime=20.0,
        warmup=0.0,
        objects=Objects(size=10, containers=3, per_container=111),
    )
    target = null(delay_ms=2.0)
    setup = setup_for(target.target("s3"), processes=processes)
    with kept() as running:
        measurement = stepped(running, setup, deletes, 5)
        check_consistent(measurement)
        tally = by_operation(measurement)["delete"]
        assert (tally.count, tally.errors) == (333, {})
        assert not [name for name in target.names("s3") if not name.endswith("/")]
        assert any("ran out" in note for note in measurement.notes)
        assert measurement.window_s < 20
        # The next repeat finds them again.
        again = running.step(Step(workload=deletes, workers=2, repeat=1)).measurement
        assert by_operation(again)["delete"].count == 333
        assert any("written again" in note for note in again.notes)


def test_two_processes_share_the_workers_and_write_what_one_would(
    null: Callable[..., Null], kept: Kept
) -> None:
    writes = workload({"write": 1}, runtime=2.5, warmup=0.2)
    target = null(delay_ms=5.0)
    setup = setup_for(target.target("swift"), processes=2)
    with kept() as running:
        measurement = stepped(running, setup, writes, 5)
        check_consistent(measurement)
        tally = by_operation(measurement)["write"]
        names = [name.split("/")[1] for name in target.names("swift")]
        # What was recorded exists, and so does what was written before and after the window.
        assert 0 < tally.count < len(names) < tally.count * 2
        assert len(set(names)) == len(names)
        cleaned = running.cleanup(Cleanup(workload=writes))
        assert cleaned.deleted == len(names)
        more = running.step(Step(workload=writes, workers=1)).measurement
        assert by_operation(more)["write"].count > 0


def test_a_worker_process_that_dies_fails_the_step_and_is_named(
    null: Callable[..., Null], tmp_path: Path
) -> None:
    reads = workload({"read": 1}, runtime=60.0)
    target = null(delay_ms=5.0)
    killed_s = []
    ended_s = 0.0
    with driver(tmp_path) as running:
        running.setup(setup_for(target.target("s3"), processes=2))
        running.prepare(Prepare(workload=reads))
        children = psutil.Process(running.process.pid).children()
        assert len(children) == 2

        def kill_one(progress: Progress) -> None:
            if progress.phase == "measure" and children[1].is_running():
                children[1].kill()
                killed_s.append(time.monotonic())

        with pytest.raises(DriverError, match="worker process 2 of 2 was ended by SIGKILL"):
            running.step(Step(workload=reads, workers=4), kill_one)
        ended_s = time.monotonic()
        assert running.process.wait(10) == 3
    assert ended_s - killed_s[0] < 5
    assert not [
        child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE
    ]


def test_worker_processes_that_are_held_up_for_seconds_are_waited_for(
    null: Callable[..., Null], kept: Kept
) -> None:
    reads = workload({"read": 1}, runtime=8.0)
    held: list[threading.Timer] = []
    with kept() as running:
        running.setup(setup_for(null(delay_ms=5.0).target("s3"), processes=2))
        running.prepare(Prepare(workload=reads))
        children = psutil.Process(running.process.pid).children()

        def hold_up(progress: Progress) -> None:
            if progress.phase == "measure" and not held:
                for child in children:
                    child.suspend()
                    # Longer than Locust's three heartbeats of a second.
                    held.append(threading.Timer(5.5, child.resume))
                    held[-1].start()

        measurement = running.step(Step(workload=reads, workers=4), hold_up).measurement
    for timer in held:
        timer.join()
    check_consistent(measurement)
    # They worked on until the end of the window.
    assert max(second.second for second in measurement.seconds if second.count) >= 7


def test_worker_processes_do_not_outlive_a_driver_that_is_killed(
    null: Callable[..., Null], tmp_path: Path
) -> None:
    with driver(tmp_path) as running:
        running.setup(setup_for(null().target("s3"), processes=2))
        children = psutil.Process(running.process.pid).children()
        os.kill(running.process.pid, signal.SIGKILL)
        gone, alive = psutil.wait_procs(children, timeout=10)
    assert (len(gone), alive) == (2, [])


@pytest.mark.parametrize(
    "ending",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGINT, marks=pytest.mark.test_all),
        pytest.param("end of stdin", marks=pytest.mark.test_all),
    ],
)
def test_a_driver_that_is_ended_during_a_step_ends_with_its_workers(
    ending: signal.Signals | str, null: Callable[..., Null], tmp_path: Path
) -> None:
    reads = workload({"read": 1}, runtime=60.0)
    target = null()
    with driver(tmp_path) as running:
        running.setup(setup_for(target.target("s3"), processes=2))
        running.prepare(Prepare(workload=reads))
        children = psutil.Process(running.process.pid).children()

        def end(progress: Progress) -> None:
            if progress.phase == "measure":
                if isinstance(ending, signal.Signals):
                    running.process.send_signal(ending)
                elif running.process.stdin is not None:
                    running.process.stdin.close()

        with pytest.raises(DriverError, match="ended with exit status"):
            running.step(Step(workload=reads, workers=2), end)
        code = running.process.wait(20)
        assert code == (128 + ending if isinstance(ending, signal.Signals) else 0)
        assert psutil.wait_procs(children, timeout=5)[1] == []
