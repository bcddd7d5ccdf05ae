"""What an inspection says of stores in which something is wrong. Its program is a real process."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from load_history import operation
from survivor_store import SurvivorStore
from weighbridge.common.errors import DriverError
from weighbridge.drivers.survival import (
    Expected,
    Inspection,
    InspectOrder,
    Operation,
    WriteOrder,
    inspect,
    record_operations,
    writing,
)
from weighbridge.drivers.survival.bodies import Bodies
from weighbridge.drivers.survival.operation import object_name
from weighbridge.results.run.durability import FINDINGS, FoundObjects
from weighbridge.topologies.fake import FakeHost

pytestmark = pytest.mark.long  # starts programs in every test

SEED = 11
SIZE = 4096
BODIES = Bodies(SEED)


class Planted:
    """Objects of a store, each with what is expected of it."""

    def __init__(self, store: SurvivorStore, host: FakeHost, log: Path) -> None:
        self.store, self.host, self.log = store, host, log
        self.expected: list[Expected] = []

    def body(self, api: str, name: str, version: int, size: int = SIZE) -> bytes:
        return BODIES.of(object_name(api, f"wb-{api}-0", name), version, size)

    def add(self, name: str, api: str = "s3", *, there: bytes | int | None, **given: Any) -> None:
        """An object of which version 2 was acknowledged after version 1, if not said otherwise.

        `there`: what the store has, as bytes or as a version; None: nothing.
        """
        usual: dict[str, Any] = {
            "api": api,
            "container": f"wb-{api}-0",
            "name": name,
            "size_bytes": SIZE,
            "acknowledged": "written",
            "allowed": (2,),
            "may_be_absent": False,
            "older": (1,),
        }
        one = Expected.model_validate(usual | given)
        self.expected.append(one)
        objects = self.store.objects.setdefault(one.container, {})
        if isinstance(there, int):
            there = self.body(api, name, there, one.size_bytes)
        if there is not None:
            objects[name] = there

    def deleted(self, name: str, api: str = "s3", *, there: bytes | int | None = None) -> None:
        state = {"acknowledged": "deleted", "allowed": (), "may_be_absent": True, "older": (1,)}
        self.add(name, api, there=there, **state)

    def inspect(self, **given: Any) -> Inspection:
        usual: dict[str, Any] = {
            "endpoints": self.store.endpoints(),
            "seed": SEED,
            "threads": 4,
            "within_s": 1.0,
            "timeout_s": 5.0,
            "list_again_s": 0.05,
        }
        order = InspectOrder.model_validate(usual | given)
        return inspect(self.host, order, self.expected, self.log)


@pytest.fixture
def planted(store: SurvivorStore, host: FakeHost, tmp_path: Path) -> Planted:
    return Planted(store, host, tmp_path / "log")


def findings(found: Inspection) -> dict[str, str]:
    """Finding by name; of several, joined in the order of the record."""
    by_name: dict[str, list[str]] = {}
    for one in sorted(found.examples, key=lambda one: FINDINGS.index(one.finding)):
        by_name.setdefault(one.name, []).append(one.finding)
    return {name: " ".join(some) for name, some in by_name.items()}


def words(found: Inspection, name: str) -> str:
    return next(one.what for one in found.examples if one.name == name)


def total(found: Sequence[FoundObjects], count: str) -> int:
    return sum(getattr(one, count) for one in found)


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_every_kind_of_damage_is_found_as_what_it_is_and_nothing_else_is(
    planted: Planted, api: str
) -> None:
    p = planted
    p.add("good", api, there=2)
    p.add("in-flight-old", api, there=2, allowed=(2, 3), in_flight=True)
    p.add("in-flight-new", api, there=3, allowed=(2, 3), in_flight=True)
    p.add("in-flight-gone", api, there=None, may_be_absent=True, in_flight=True)
    p.deleted("deleted", api)
    p.add("lost", api, there=None)
    halves = p.body(api, "torn", 2)[:2048] + p.body(api, "torn", 1)[2048:]
    p.add("torn", api, there=halves)
    p.add("short", api, there=p.body(api, "short", 2)[:512])
    p.add("wrong", api, there=p.body(api, "other", 2))
    p.add("stale", api, there=1)
    p.deleted("undead", api, there=1)
    p.add("unborn-good", api, there=1, acknowledged="nothing", allowed=(1,), may_be_absent=True)
    nothing = {"acknowledged": "nothing", "allowed": (1,), "may_be_absent": True, "older": ()}
    p.add("unborn-gone", api, there=None, **nothing)
    p.add("unborn-wrong", api, there=b"x" * SIZE, **nothing)
    found = p.inspect()
    assert findings(found) == {
        "lost": "lost",
        "torn": "torn",
        "short": "torn",
        "wrong": "wrong",
        "stale": "stale",
        "undead": "undead",
        "unborn-wrong": "wrong",
    }
    counts = {"acknowledged": 9, "deleted": 2, "unacknowledged": 3, "in_flight": 3}
    damage = {"lost": 1, "torn": 2, "wrong": 2, "stale": 1, "undead": 1}
    objects = {"api": api, "size_bytes": SIZE, **counts, **damage}
    assert found.objects == (FoundObjects.model_validate(objects),)
    assert words(found, "torn") == (
        "acknowledged: version 2; found: 4096 of 4096 bytes; sectors: 4 of version 2, "
        "4 of version 1"
    )
    assert words(found, "lost").startswith("acknowledged: version 2; found: nothing")
    assert words(found, "undead").startswith("acknowledged: a deletion; found: version 1")
    assert found.notes == ()


def test_listings_are_judged_by_themselves(planted: Planted) -> None:
    for api in ("s3", "swift"):
        planted.add(f"{api}-good", api, there=2)
        planted.add(f"{api}-unlisted", api, there=2)
        planted.add(f"{api}-lost", api, there=None)
        planted.add(f"{api}-lost-too", api, there=None)
        planted.deleted(f"{api}-deleted", api)
        planted.deleted(f"{api}-shown", api)
        unsure = {"may_be_absent": True, "in_flight": True}
        planted.add(f"{api}-unsure", api, there=2, **unsure)
    hidden, shown = ("-unlisted", "-unsure"), ("-lost", "-shown")

    def listed(container: str, names: list[str]) -> list[str]:
        api = container.split("-")[1]
        names = [name for name in names if not name.endswith(hidden)]
        return sorted([*names, *(api + name for name in shown)])

    planted.store.listed = listed
    found = planted.inspect()
    assert findings(found) == {
        name: finding
        for api in ("s3", "swift")
        for name, finding in (
            (f"{api}-unlisted", "not-listed"),
            (f"{api}-lost", "lost listed-lost"),
            (f"{api}-lost-too", "lost"),
            (f"{api}-shown", "listed-deleted"),
        )
    }
    assert words(found, "s3-shown") == "acknowledged: a deletion; found: nothing, yet listed"
    assert [one.not_listed for one in found.objects] == [1, 1]


def test_a_listing_that_is_late_is_not_a_finding(planted: Planted) -> None:
    planted.add("late", "swift", there=2)
    planted.add("good", "swift", there=2)
    asked = []

    def listed(_: str, names: list[str]) -> list[str]:
        asked.append(time.monotonic())
        return names if len(asked) > 2 else [name for name in names if name != "late"]

    planted.store.listed = listed
    assert not findings(planted.inspect())
    assert len(asked) > 2


def test_listings_of_many_pages_are_read_completely(planted: Planted) -> None:
    for number in range(1100):
        planted.add(f"k{number:04d}", there=2, size_bytes=64)
    assert not findings(planted.inspect())
    pages = [one for one in planted.store.requests if "list-type" in one]
    assert [one.rpartition("start-after=")[2] for one in pages] == ["", "k0999"]


def _in_a_circle(handler: Any) -> bool:
    row = "<Contents><Key>good</Key></Contents>"
    page = f"<ListBucketResult><IsTruncated>true</IsTruncated>{row}</ListBucketResult>"
    return bool(handler.answer(200, page.encode()))


@pytest.mark.parametrize(
    ("api", "listing", "note"),
    [
        ("s3", "endless", "more than 10000 names that were never written"),
        ("swift", "endless", "more than 10000 names that were never written"),
        ("s3", _in_a_circle, "its names are not in order"),
    ],
)
def test_a_listing_that_goes_on_for_ever_is_ended(
    planted: Planted, api: str, listing: Any, note: str
) -> None:
    planted.add("good", api, there=2)
    if listing == "endless":
        planted.store.listed = lambda _, names: [*names, *(f"x{at:07d}" for at in range(200_000))]
    else:
        planted.store.list_answer = listing
    found = planted.inspect()
    assert found.notes == (f"wb-{api}-0: no complete listing: {note}",)
    assert not findings(found)


def _endless(handler: Any) -> bool:
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b"1000\r\n" + b"x" * 4096 + b"\r\n")
    except OSError:
        handler.close_connection = True
    return True


@pytest.mark.parametrize(
    ("api", "answer", "why"),
    [
        ("swift", _endless, "200, longer: xxx"),
        ("s3", lambda handler: bool(handler.answer(503, b"busy")), "503, complete: busy"),
    ],
)
def test_objects_of_a_container_that_cannot_be_listed_are_not_listed(
    planted: Planted, api: str, answer: Any, why: str
) -> None:
    planted.add("good", api, there=2)
    planted.store.list_answer = answer
    found = planted.inspect(within_s=0.5)
    assert findings(found) == {"good": "not-listed"}
    assert found.notes[0].startswith(f"wb-{api}-0: no complete listing: {why}")


def test_errors_until_the_end_are_unreadable_and_errors_at_first_are_not(planted: Planted) -> None:
    tries = iter(range(3))
    for name in ("always", "at-first", "gone-always"):
        planted.store.reads[name] = lambda handler: bool(handler.answer(503, b"AUTH_tk-secret"))
    planted.store.reads["at-first"] = lambda handler: (
        next(tries, None) is not None and bool(handler.answer(500))
    )
    planted.add("always", "swift", there=2)
    planted.add("at-first", "swift", there=2)
    planted.deleted("gone-always", "swift")
    found = planted.inspect(within_s=3.0)
    assert findings(found) == {"always": "unreadable", "gone-always": "unreadable"}
    assert words(found, "always") == "acknowledged: version 2; found: 503 ***"
    assert (total(found.objects, "acknowledged"), total(found.objects, "deleted")) == (2, 1)


def test_a_store_that_refuses_connections_leaves_all_unreadable(planted: Planted) -> None:
    endpoint = planted.store.endpoints()[0].model_copy(update={"url": "http://127.0.0.1:1"})
    for number in range(5):
        planted.add(f"k{number}", there=2)
    found = planted.inspect(endpoints=(endpoint,), within_s=0.5)
    assert set(findings(found).values()) == {"unreadable"}
    assert total(found.objects, "unreadable") == 5


def _dripping(handler: Any) -> bool:
    handler.send_response(200)
    handler.send_header("Content-Length", "4096")
    handler.end_headers()
    try:
        for _ in range(600):
            handler.wfile.write(b"x")
            handler.wfile.flush()
            time.sleep(0.1)
    except OSError:
        handler.close_connection = True
    return True


def _cut_off(handler: Any) -> bool:
    handler.send_response(200)
    handler.send_header("Content-Length", "4096")
    handler.end_headers()
    handler.wfile.write(BODIES.of(object_name("s3", "wb-s3-0", "cut-off"), 2, SIZE)[:2048])
    handler.close_connection = True
    return True


def test_bodies_without_an_end_are_not_waited_for(planted: Planted) -> None:
    planted.store.reads |= {"endless": _endless, "dripping": _dripping, "cut-off": _cut_off}
    for name in ("endless", "dripping", "cut-off", "good"):
        planted.add(name, there=2)
    found = planted.inspect(timeout_s=1.0)
    assert findings(found) == {"endless": "wrong", "dripping": "unreadable", "cut-off": "torn"}
    assert "no complete answer within 1 s" in words(found, "dripping")
    assert "more than the 4096 bytes that were written" in words(found, "endless")
    assert "every read is cut off, the last after 2048 bytes" in words(found, "cut-off")


def test_what_swift_has_in_its_newest_copy_alone_is_stale_and_not_lost(planted: Planted) -> None:
    planted.add("behind", "swift", there=1)
    planted.add("elsewhere", "swift", there=None)
    planted.add("older-elsewhere", "swift", there=None)
    planted.store.newest = {
        "behind": planted.body("swift", "behind", 2),
        "elsewhere": planted.body("swift", "elsewhere", 2),
        "older-elsewhere": planted.body("swift", "older-elsewhere", 1),
    }
    found = planted.inspect()
    assert findings(found) == dict.fromkeys(("behind", "elsewhere", "older-elsewhere"), "stale")
    assert words(found, "behind").endswith("found: version 1; with X-Newest: version 2")
    assert words(found, "elsewhere").endswith("found: nothing; with X-Newest: version 2")


def test_a_large_object_without_one_of_its_segments_is_torn(planted: Planted) -> None:
    size = 2**20 + 2**16
    planted.add("slo", "swift", there=b"", size_bytes=size, way="multipart")
    planted.add("whole", "swift", there=b"", size_bytes=size, way="multipart")
    segments = planted.store.objects["wb-swift-0-segments"] = {}
    for name in ("slo", "whole"):
        body = planted.body("swift", name, 2, size)
        segments |= {f"{name}-2-0": body[: 2**20], f"{name}-2-1": body[2**20 :]}
        planted.store.manifests["wb-swift-0", name] = [
            f"/wb-swift-0-segments/{name}-2-{number}" for number in range(2)
        ]
    del segments["slo-2-1"]
    found = planted.inspect()
    assert findings(found) == {"slo": "torn"}
    assert words(found, "slo").endswith("409: a segment is missing")
    assert found.objects[0].way == "multipart"


def test_examples_are_few_and_of_every_finding(planted: Planted) -> None:
    for number in range(50):
        planted.add(f"lost-{number:02d}", there=None)
    planted.add("stale", there=1)
    found = planted.inspect()
    assert len(found.examples) == 20
    assert {one.finding for one in found.examples} == {"lost", "stale"}
    assert total(found.objects, "lost") == 50


def test_an_inspection_that_cannot_log_in_is_an_error_without_secrets(planted: Planted) -> None:
    endpoint = planted.store.endpoints()[1]
    wrong = endpoint.model_copy(update={"url": f"{planted.store.url}/auth/elsewhere"})
    with pytest.raises(DriverError, match="it failed") as raised:
        planted.inspect(endpoints=(wrong,), within_s=0.2)
    assert "secret" not in str(raised.value)


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
        release.wait(600)
        return False

    store.writes = hang
    order = ordered(multipart=False, workers=2, timeout_s=600.0, drain_s=0.3)
    try:
        operations = load(order, asked.is_set)
    finally:
        release.set()
    assert {one.answered_s for one in operations} == {None}
    assert not any(one.acknowledged for one in operations)


def test_a_load_ends_its_program_when_left_and_one_that_is_killed_says_no_operations(
    host: FakeHost, ordered: Ordered, tmp_path: Path
) -> None:
    with writing(host, ordered(multipart=False), tmp_path / "log") as one:
        one.go()
        (left,) = host._programs
    assert left.poll() is not None
    with writing(host, ordered(multipart=False), tmp_path / "writer.log") as one:
        one.go()
        program = host._programs[-1]
        os.kill(program.pid, signal.SIGKILL)
        program.wait()
        with pytest.raises(DriverError, match="write_objects was ended by SIGKILL"):
            one.check()
        with pytest.raises(DriverError, match="has not stopped"):
            one.operations()
        with pytest.raises(DriverError):
            one.stop()


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
