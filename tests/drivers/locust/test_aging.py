"""Aging, by the real driver process against the real null target."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.drivers.locust.local_driver import Kept, Null, fault_of, setup_for
from weighbridge import suites
from weighbridge.drivers.engine._native import object_sizes
from weighbridge.drivers.locust.aging import churned, fingerprint
from weighbridge.drivers.protocol import AgeBuckets, Aged, Progress

pytestmark = pytest.mark.long  # starts Locust

AGE = suites.Age.model_validate(
    {"fill": "1MB", "size": {"uniform": [100, 9000]}, "containers": 3, "churn": 2, "share": "25%"}
)


def aged(
    target: Null, kept: Kept, age: suites.Age = AGE, objects: int = 40
) -> tuple[Aged, list[Progress]]:
    heard: list[Progress] = []
    with kept() as running:
        running.setup(setup_for(target.target("s3")))
        answer = running.age(AgeBuckets(age=age, objects=objects), heard.append)
    return answer, heard


def test_a_store_is_filled_and_churned_and_holds_what_is_reported(
    null: Callable[..., Null], kept: Kept
) -> None:
    target = null()
    answer, heard = aged(target, kept)
    names = target.names("s3")
    assert answer.objects == len(names) == 40
    assert [(one.deleted, one.written) for one in answer.rounds] == [(10, 10), (10, 10)]
    assert {name.split("/")[0] for name in names} == {f"wb-test-age-{index}" for index in range(3)}
    # Numbers are never reused: of 60 objects ever written, the last ten all exist, and of the first
    # 40 some do not.
    numbers = sorted(
        int(name.rsplit("-", 1)[1]) * 3 + int(name.split("/")[0].rsplit("-", 1)[1])
        for name in names
    )
    assert numbers[-10:] == list(range(50, 60))
    assert 20 <= len([number for number in numbers if number < 40]) <= 30
    sizes = object_sizes(AGE.workload(40).model_dump_json(), 11, 0, 60)
    assert answer.bytes == sum(sizes[number] for number in numbers)
    assert answer.filled_bytes == sum(sizes[:40])
    assert answer.fingerprint == fingerprint(numbers, 3, sizes.__getitem__)
    assert {progress.phase for progress in heard} == {"prepare", "cleanup"}


def test_the_same_seed_gives_the_same_names_and_sizes_and_another_does_not(
    null: Callable[..., Null], kept: Kept
) -> None:
    one, two, three = null(), null(), null()
    first, second = aged(one, kept)[0], aged(two, kept)[0]
    assert first.model_copy(update={"seconds": 0.0}) == second.model_copy(update={"seconds": 0.0})
    assert one.names("s3") == two.names("s3")
    other = aged(three, kept, AGE.model_copy(update={"seed": 12}))[0]
    assert other.fingerprint != first.fingerprint
    assert three.names("s3") != one.names("s3")


def test_a_store_without_churn_is_only_filled(null: Callable[..., Null], kept: Kept) -> None:
    target = null()
    answer, _ = aged(target, kept, AGE.model_copy(update={"churn": 0}), objects=7)
    assert (answer.objects, answer.rounds) == (7, ())
    assert answer.bytes == answer.filled_bytes
    assert len(target.names("s3")) == 7


def test_what_cannot_be_written_fails_the_aging(null: Callable[..., Null]) -> None:
    refusing = setup_for(null(fail_share=1.0).target("s3"))
    fault = fault_of(refusing, AgeBuckets(age=AGE, objects=40))
    assert "of 40 objects of age could be written; errors: http-503" in fault


def test_objects_deleted_in_a_round_existed_before_it_and_not_after_it() -> None:
    alive = set(range(40))
    for gone, new, after in churned(AgeBuckets(age=AGE, objects=40), 11):
        assert set(gone) <= alive
        assert not alive & set(new)
        alive = (alive - set(gone)) | set(new)
        assert alive == set(after)
        assert len(after) == 40
