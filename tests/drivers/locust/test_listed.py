"""Objects that are only listed: written, deleted and found again by the real driver."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.drivers.locust.local_driver import Api, Kept, Null, by_operation, setup_for
from weighbridge.drivers.locust.prepared_objects import BATCH, MOST_PARALLEL, Pace
from weighbridge.drivers.protocol import Cleanup, Prepare, Step
from weighbridge.suites import Suite, Workload, deleted_indexes


def workloads(per_container: int = 40) -> tuple[Workload, ...]:
    given = {
        "name": "tried",
        "objects": {"size": 0, "containers": 2, "per_container": per_container},
        "operations": {"list-all": 1},
        "listing": {"page": 10},
        "listed": {"deleted": ["0%", "25%", "50%"]},
        "workers": [2],
        "runtime": 0.4,
        "warmup": 0.0,
    }
    suite = {"name": "s", "about": "a", "workloads": [given]}
    return Suite.model_validate(suite).workloads


@pytest.mark.long  # starts Locust
@pytest.mark.parametrize("api", ["s3", "swift"])
def test_each_share_is_deleted_once_and_the_others_are_all_listed(
    api: Api, null: Callable[..., Null], kept: Kept
) -> None:
    target = null()
    with kept() as running:
        running.setup(setup_for(target.target(api)))
        for one, left in zip(workloads(), (80, 60, 40), strict=True):
            assert running.prepare(Prepare(workload=one)).objects == left
            names = target.names(api)
            gone = deleted_indexes(one, 11)
            assert sorted(names) == [
                f"wb-test-tried-{container}/object-{index:010}"
                for container in range(2)
                for index in range(40)
                if index not in gone
            ]
            tallies = by_operation(running.step(Step(workload=one, workers=2)).measurement)
            assert tallies["list-all"].count > 0
            assert not tallies["list-all"].errors
        assert running.cleanup(Cleanup(workload=one, what="all")).failed == 0
        assert target.names(api) == []
        # A smaller share again: what was deleted is written again first.
        assert running.prepare(Prepare(workload=workloads()[1])).objects == 60
        assert running.prepare(Prepare(workload=workloads()[0])).objects == 80
        assert len(target.names(api)) == 80


@pytest.mark.long  # starts Locust
def test_more_objects_than_a_batch_all_exist(null: Callable[..., Null], kept: Kept) -> None:
    first = workloads(BATCH + 50)[0]
    target = null()
    with kept() as running:
        running.setup(setup_for(target.target("swift")))
        assert running.prepare(Prepare(workload=first)).objects == 2 * (BATCH + 50)
        assert len(target.names("swift")) == 2 * (BATCH + 50)


def rates(pace: Pace, per_s: dict[int, float]) -> list[int]:
    """The workers of each batch, where so many of them do so much per second."""
    used = []
    for _ in range(6):
        used.append(pace.workers)
        pace.took(BATCH, BATCH / per_s[pace.workers])
    return used


def test_workers_double_while_that_is_faster_and_stay_at_the_best() -> None:
    slow = {8: 100.0, 16: 180.0, 32: 190.0, 64: 400.0}
    assert rates(Pace(8), slow) == [8, 16, 32, 16, 16, 16]
    fast = {8: 100.0, 16: 200.0, 32: 400.0, 64: 800.0}
    assert rates(Pace(8), fast) == [8, 16, 32, 64, 64, 64]
    assert rates(Pace(MOST_PARALLEL), fast) == [MOST_PARALLEL] * 6


def test_a_short_batch_decides_nothing() -> None:
    pace = Pace(8)
    pace.took(BATCH - 1, 1.0)
    assert pace.workers == 8
