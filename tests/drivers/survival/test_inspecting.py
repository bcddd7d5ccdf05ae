"""What an inspection says of stores in which something is wrong. Its program is a real process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from survivor_store import SurvivorStore
from weighbridge.common.errors import DriverError
from weighbridge.drivers.survival import Expected, Inspection, InspectOrder, inspect
from weighbridge.drivers.survival.bodies import Bodies
from weighbridge.drivers.survival.operation import object_name
from weighbridge.results.record.durability import FINDINGS, FoundObjects
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
        """One whose deletion was acknowledged."""
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
    assert found.objects == (
        FoundObjects(
            api=api,
            size_bytes=SIZE,
            acknowledged=9,
            deleted=2,
            unacknowledged=3,
            in_flight=3,
            lost=1,
            torn=2,
            wrong=2,
            stale=1,
            undead=1,
        ),
    )
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
    """A body without an end, in chunks."""
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
    begun_s = time.monotonic()
    found = planted.inspect(endpoints=(endpoint,), within_s=0.5)
    assert set(findings(found).values()) == {"unreadable"}
    assert total(found.objects, "unreadable") == 5
    assert time.monotonic() - begun_s < 30


def _dripping(handler: Any) -> bool:
    """A body of which a byte comes from time to time."""
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
    """Half of version 2, and the connection ends."""
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
    begun_s = time.monotonic()
    found = planted.inspect(timeout_s=1.0)
    assert time.monotonic() - begun_s < 30
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
