from pathlib import Path
from typing import Any

import pytest

from stub_run import SUITE, Run
from weighbridge.common.errors import TargetError, UsageError
from weighbridge.common.structure import Fragments, Redundancy
from weighbridge.conductor import aging
from weighbridge.drivers.protocol import Aged, AgeRound
from weighbridge.gateways.gateway import DiskSpace
from weighbridge.results.record.store import RunStore
from weighbridge.suites import Suite

COPIES = Redundancy(replicas=3)
ROOM = DiskSpace(bytes=3_000_000, free_bytes=2_900_000, kept=COPIES)


def suite(**age: Any) -> Suite:
    return Suite.model_validate(
        {**SUITE, "age": {"fill": "10%", "size": 1000, "churn": 2, "share": "50%", **age}}
    )


def test_a_share_of_the_disks_is_filled_with_replicas() -> None:
    assert aging.order_of(suite(), ROOM).objects == 100


@pytest.mark.parametrize(
    ("free", "lab_free", "whose"),
    [(500_000, None, "on its disks"), (2_900_000, 500_000, "on this machine")],
)
def test_aging_that_does_not_fit_is_refused_with_the_free_space(
    free: int, lab_free: int | None, whose: str
) -> None:
    # 100 objects of 1 kB and twice 50 more, three times each: 600 kB.
    room = DiskSpace(bytes=ROOM.bytes, free_bytes=free, kept=COPIES)
    with pytest.raises(TargetError, match=f"600 kB in 3 replicas; 500 kB {whose}"):
        aging.order_of(suite(), room, lab_free)
    assert aging.order_of(suite(churn=1), room, lab_free).objects == 100


def test_fragments_are_not_called_replicas_whatever_they_add_up_to() -> None:
    kept = Redundancy(replicas=1, fragments=Fragments(data=2, parity=2))
    room = DiskSpace(bytes=ROOM.bytes, free_bytes=300_000, kept=kept)
    with pytest.raises(TargetError, match=r"600 kB in 2\+2 fragments; 300 kB on its disks"):
        aging.order_of(suite(), room)


def test_too_many_objects_are_refused_with_the_limit() -> None:
    room = DiskSpace(bytes=3 * 10**15, free_bytes=3 * 10**15, kept=COPIES)
    with pytest.raises(
        TargetError,
        match="aging: these are 200,000,000,000 objects; at most 100,000,000 are written",
    ):
        aging.order_of(suite(), room)


def test_what_was_done_is_described_with_the_fill() -> None:
    order = aging.order_of(suite(), ROOM)
    rounds = (
        AgeRound(number=0, deleted=50, deleted_bytes=50_000, written=50, written_bytes=50_000),
    )
    aged = Aged(
        objects=100,
        bytes=100_000,
        filled_bytes=100_000,
        rounds=rounds,
        seconds=1.5,
        fingerprint="f00",
    )
    assert aging.describe(order, aged, ROOM) == [
        "filled with 100 objects, 100 kB, 10.00% of 3 MB with 3 replicas",
        "round 1 of churn: 50 objects deleted (50 kB), 50 written (50 kB)",
        "100 objects, 100 kB, after 1.5 s; checksum f00",
    ]
    assert "1.5" not in str(aging.facts(order, aged, ROOM))


def test_a_layout_that_cannot_be_filled_is_refused_before_anything_starts(tmp_path: Path) -> None:
    run = Run(tmp_path, age={"fill": "5%"})
    with pytest.raises(UsageError, match="the disk space of rgw-a is not known"):
        run.plan()
    run = Run(tmp_path, age={"fill": "1MB"}, api=["rados"])
    for gateway in run.gateways.values():
        gateway.answers = ()
        gateway.layers = lambda: ("rados",)  # type: ignore[method-assign]
    with pytest.raises(UsageError, match="rgw-a has neither a Swift nor an S3 API"):
        run.plan()


def test_each_deployment_is_aged_before_its_first_step_and_records_that(tmp_path: Path) -> None:
    store = Run(tmp_path, age={"fill": "1MB", "size": 1000}).conduct()
    for layout in ("rgw-a", "swift-b"):
        kinds = [event.kind for event in store.events() if event.layout == layout]
        assert kinds.index("aged") < kinds.index("prepared")
    sheets = RunStore.open(store.folder).manifest.sheets
    facts = [
        sheet.facts["age"] for sheet in sheets if sheet.layout is not None and "age" in sheet.facts
    ]
    assert facts == ["filled with 1000 objects, 1 MB"] * 2
    assert all(step.valid for step in store.steps())


def test_a_store_that_could_not_be_aged_is_not_measured_and_every_step_says_why(
    tmp_path: Path,
) -> None:
    steps = Run(tmp_path, age={"fill": "1MB"}).conduct("--fail", "age").steps()
    assert len({step.key for step in steps}) == 6
    assert not any(step.valid or step.measurement for step in steps)
    assert all("'age' fails as asked" in step.notes[0] for step in steps)


def test_the_buckets_that_aging_makes_are_among_those_that_are_cleared() -> None:
    assert aging.buckets(suite(containers=2), "wb-1f") == ["wb-1fa-age-0", "wb-1fa-age-1"]
    assert aging.buckets(Suite.model_validate(SUITE), "wb-1f") == []
