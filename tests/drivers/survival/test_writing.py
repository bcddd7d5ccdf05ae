"""The load: what it does to a store, and what it says of it. Its program is a real process."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from load_history import operation
from survivor_store import SurvivorStore
from weighbridge.common.errors import DriverError
from weighbridge.drivers.survival import (
    Operation,
    WriteOrder,
    record_operations,
    writing,
)
from weighbridge.drivers.survival.bodies import Bodies
from weighbridge.drivers.survival.operation import object_name
from weighbridge.topologies.fake import FakeHost

pytestmark = pytest.mark.long  # starts programs in every test

Ordered = Callable[..., WriteOrder]


Load = Callable[[WriteOrder, Callable[[], bool]], tuple[Operation, ...]]


@pytest.fixture
def load(host: FakeHost, tmp_path: Path) -> Load:
    """Gives the operations of a load that ends when there is enough in the store."""

    def loaded(order: WriteOrder, enough: Callable[[], bool]) -> tuple[Operation, ...]:
        with writing(host, order, tmp_path / "log") as one:
            one.go()
            deadline_s = time.monotonic() + 60
            while not enough():
                one.check()
                assert time.monotonic() < deadline_s
                time.sleep(0.01)
            ended = one.stop()
            operations = one.operations()
        assert ended.operations == len(operations)
        return operations

    return loaded


def objects_in(store: SurvivorStore, api: str) -> dict[str, bytes]:
    """What the store has of an API, by the object's name over all."""
    found = {}
    for container, objects in store.objects.items():
        if container.startswith(f"wb-cut-{api}") and not container.endswith("-segments"):
            for name, body in objects.items():
                parts = store.manifests.get((container, name), ())
                segments = (path.split("/", 2)[1:] for path in parts)
                whole = body + b"".join(store.objects[where][part] for where, part in segments)
                found[object_name(api, container, name)] = whole
    return found


def test_the_store_has_the_last_acknowledged_state_of_every_object(
    load: Load, store: SurvivorStore, ordered: Ordered
) -> None:
    order = ordered(workers=6)
    operations = load(order, lambda: len(store.requests) > 600 and _has_both_ways(store))
    last: dict[str, Operation] = {}
    for one in operations:
        previous = last.get(one.object_name)
        assert one.version == (1 if previous is None else previous.version + 1)
        assert one.acknowledged, one.error
        assert one.answered_s is not None
        if previous is not None:
            assert previous.answered_s is not None
            assert previous.answered_s <= one.sent_s < one.answered_s
        last[one.object_name] = one
    bodies = Bodies(order.seed)
    wanted = {
        name: bodies.of(name, one.version, one.size_bytes)
        for name, one in last.items()
        if one.kind == "write"
    }
    assert wanted == objects_in(store, "s3") | objects_in(store, "swift")
    kinds = {(one.api, one.size_bytes, one.way) for one in operations}
    assert kinds == {
        *((api, size, "plain") for api in ("s3", "swift") for size in (4096, 70_000)),
        ("s3", 6 * 2**20, "multipart"),
        ("swift", 2**20 + 2**16, "multipart"),
    }


def _has_both_ways(store: SurvivorStore) -> bool:
    requests = list(store.requests)
    return any("uploadId=2" in one and "POST" in one for one in requests) and any(
        "multipart-manifest=put" in one for one in requests
    )


def test_objects_are_overwritten_deleted_and_written_again(
    load: Load, store: SurvivorStore, ordered: Ordered
) -> None:
    order = ordered(sizes=(64,), multipart=False, workers=2)
    operations = load(order, lambda: len(store.requests) > 1500)
    before: dict[str, str] = {}
    steps: dict[tuple[str, str], int] = defaultdict(int)
    for one in operations:
        steps[before.get(one.object_name, "nothing"), one.kind] += 1
        before[one.object_name] = one.kind
    count = len(operations)
    assert 0.2 < steps["write", "write"] / count < 0.4  # `overwrites` is 30 %
    assert 0.12 < steps["write", "delete"] / count < 0.28  # `deletes` is 20 %
    assert steps["delete", "write"] > 0
    assert steps["delete", "delete"] == 0


def test_an_object_whose_operation_failed_is_never_touched_again(
    load: Load, store: SurvivorStore, ordered: Ordered
) -> None:
    turn = iter(range(10**6))

    def refuse_every_tenth(handler: Any) -> bool:
        return next(turn) % 10 == 0 and bool(handler.answer(503, b"Slow Down AUTH_tk-secret"))

    store.writes = refuse_every_tenth
    operations = load(ordered(multipart=False), lambda: len(store.requests) > 400)
    failed = [one for one in operations if not one.acknowledged]
    assert {one.error for one in failed} == {"PUT: 503 Slow Down ***"}
    assert all(one.answered_s is not None for one in failed)
    last = {one.object_name: one for one in operations}
    assert all(last[one.object_name] is one for one in failed)


def completed(tag: str) -> bytes:
    root = "CompleteMultipartUploadResult"
    return f"<{root}><ETag>{tag}</ETag></{root}>".encode()


@pytest.mark.parametrize(
    ("way", "method", "lie", "why"),
    [
        ("plain", "PUT", {"etag": '"0123"'}, "the ETag"),
        ("multipart", "POST", {"body": completed(f"{'0' * 32}-2")}, "the ETag"),
        ("multipart", "POST", {"body": b"<Error><Code>InternalError</Code></Error>"}, "InternalE"),
    ],
)
def test_an_acknowledgement_with_a_wrong_etag_or_an_error_is_none(
    load: Load,
    store: SurvivorStore,
    ordered: Ordered,
    way: str,
    method: str,
    lie: dict[str, Any],
    why: str,
) -> None:
    store.writes = lambda handler: handler.command == method and bool(handler.answer(200, **lie))
    order = ordered(endpoints=store.endpoints()[:1], multipart=way == "multipart")
    operations = load(
        order, lambda: sum(one.startswith(method) for one in list(store.requests)) > 5
    )
    answered = [one for one in operations if one.way == way and one.answered_s is not None]
    assert answered
    assert not any(one.acknowledged for one in answered)
    assert all(why in one.error for one in answered)


def test_what_a_store_never_answers_is_given_up_when_the_load_ends(
    load: Load, store: SurvivorStore, ordered: Ordered
) -> None:
    asked, release = threading.Event(), threading.Event()

    def hang(_: Any) -> bool:
        asked.set()
        release.wait(60)
        return False

    store.writes = hang
    order = ordered(multipart=False, workers=2, timeout_s=600.0, drain_s=0.3)
    begun_s = time.monotonic()
    try:
        operations = load(order, asked.is_set)
    finally:
        release.set()
    assert time.monotonic() - begun_s < 30
    assert {one.answered_s for one in operations} == {None}
    assert not any(one.acknowledged for one in operations)


def test_a_load_whose_program_is_killed_is_noticed_and_says_no_operations(
    host: FakeHost, ordered: Ordered, tmp_path: Path
) -> None:
    with writing(host, ordered(multipart=False), tmp_path / "writer.log") as one:
        one.go()
        (program,) = host._programs
        os.kill(program.pid, signal.SIGKILL)
        program.wait()
        with pytest.raises(DriverError, match="write_objects was ended by SIGKILL"):
            one.check()
        with pytest.raises(DriverError, match="has not stopped"):
            one.operations()
        with pytest.raises(DriverError):
            one.stop()


def test_a_load_that_is_left_in_its_midst_ends_its_program(
    host: FakeHost, ordered: Ordered, tmp_path: Path
) -> None:
    with writing(host, ordered(multipart=False), tmp_path / "log") as one:
        one.go()
    (program,) = host._programs
    assert program.poll() is not None


def test_a_store_that_makes_no_container_is_an_error_without_its_secrets(
    host: FakeHost, ordered: Ordered, store: SurvivorStore, tmp_path: Path
) -> None:
    store.refuses_containers = True
    order = ordered(endpoints=store.endpoints()[1:])
    with (
        pytest.raises(DriverError, match="it failed: make container: 403") as raised,
        writing(host, order, tmp_path / "log"),
    ):
        pass
    assert "AUTH_tk-secret" not in str(raised.value)
    assert "***" in str(raised.value)


def test_operations_are_kept_in_a_file_of_the_run(tmp_path: Path) -> None:
    operations = [operation(1), operation(2, "delete", acknowledged=False, error="no answer")]
    record_operations(tmp_path / "operations.jsonl", operations[:1])
    record_operations(tmp_path / "operations.jsonl", operations)
    lines = (tmp_path / "operations.jsonl").read_text().splitlines()
    assert list(map(Operation.model_validate_json, lines)) == operations
