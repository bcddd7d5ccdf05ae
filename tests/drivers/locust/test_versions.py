"""Versions of objects by the real driver: prepared, read, listed, made, and deleted to the last."""

from __future__ import annotations

import base64
import itertools
import json
import socket
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import SecretStr

from http_stub import Request, Response, Server
from tests.drivers.conftest import always
from tests.drivers.locust.local_driver import Api, Kept, Null, by_operation, setup_for, workload
from tests.gateways.capabilities.memory_store import MemoryStore, memory_store
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import DriverError
from weighbridge.drivers.locust.account import Account
from weighbridge.drivers.locust.prepared_objects import (
    BATCH,
    MOST_PARALLEL,
    Pace,
    PreparedObjects,
    VersionedBuckets,
)
from weighbridge.drivers.protocol import Cleanup, Prepare, Setup, Step
from weighbridge.suites import Objects, Suite, Workload, deleted_indexes

OBJECTS = Objects(size=4096, containers=2, per_container=8)
BUCKETS = ("wb-test-tried-0", "wb-test-tried-1")


def versioned(**operations: float) -> Workload:
    named: Any = {name.replace("_", "-"): weight for name, weight in operations.items()}
    return workload(named, objects=OBJECTS, versions=3, verify=1.0)


def seen(store: MemoryStore) -> list[tuple[int, int]]:
    """How many versions and delete markers each bucket has."""
    counts = []
    for bucket in BUCKETS:
        objects = store.s3.buckets[bucket].objects.values()
        markers = sum(version.deleted for versions in objects for version in versions)
        counts.append((sum(map(len, objects)) - markers, markers))
    return counts


@pytest.mark.long  # starts Locust
def test_each_step_begins_with_the_versions_that_were_prepared_and_all_are_deleted_in_the_end(
    kept: Kept,
) -> None:
    prepared = [(24, 0)] * 2
    reading = versioned(read_version=3, list_versions=1, read=1)
    writing = versioned(overwrite=3, write=2, delete=1, read=1, read_version=1, list_versions=1)
    deleting = versioned(delete=1)
    with memory_store() as store, kept() as running:
        running.setup(setup_for(store.endpoints[0]))
        ready = running.prepare(Prepare(workload=reading))
        assert (ready.objects, ready.bytes) == (48, 48 * 4096)
        assert seen(store) == prepared
        for one in (reading, writing, reading):
            running.prepare(Prepare(workload=one))
            assert seen(store) == prepared
            tallies = by_operation(running.step(Step(workload=one, workers=4)).measurement)
            assert {name for name, tally in tallies.items() if tally.errors} == set()
            assert all(tallies[name].count > 0 for name in (*one.operations, "versions-page"))
            assert tallies["read-version"].bytes == 4096 * tallies["read-version"].count
            after = seen(store)
            if one is writing:
                made = tallies["overwrite"].count + tallies["write"].count
                assert sum(versions for versions, _ in after) >= 48 + made
                assert sum(markers for _, markers in after) >= tallies["delete"].count
            else:
                assert after == prepared
            cleaned = running.cleanup(Cleanup(workload=one, what="written"))
            assert cleaned.failed == 0
            assert cleaned.deleted == sum(sum(pair) for pair in after) - 48
            assert seen(store) == prepared
        running.prepare(Prepare(workload=deleting))
        running.step(Step(workload=deleting, workers=1))
        assert seen(store) == [(24, 8)] * 2
        # What was deleted is written again, and is as it was.
        running.step(Step(workload=deleting, workers=1))
        assert seen(store) == [(24, 8)] * 2
        assert running.cleanup(Cleanup(workload=deleting, what="all")).failed == 0
        assert store.s3.buckets == {}


def buckets(url: str, api: Api = "s3") -> VersionedBuckets:
    target = Endpoint(api=api, url=url, user="AK", key=SecretStr("SK"))
    setup = Setup(target=target, bucket_prefix="wb-test", seed=1)
    return VersionedBuckets(setup, Account(target, 5), versioned(read_version=1))


@pytest.mark.parametrize(
    ("answers", "keeps"),
    [
        (["200 OK", "200 OK|<V><Status>Enabled</Status></V>"], True),
        (["200 OK", "200 OK|<V><Status>Suspended</Status></V>"], False),
        (["200 OK", "200 OK|<V></V>"], False),
        (["200 OK", "200 OK|<ListBucketResult><Name>b</Name></ListBucketResult>"], False),
        (["200 OK", "200 OK|Enabled"], False),
        (["501 Not Implemented", "200 OK|<V><Status>Enabled</Status></V>"], False),
        (["200 OK", "403 Forbidden|<V><Status>Enabled</Status></V>"], False),
    ],
)
def test_a_bucket_must_prove_that_it_keeps_versions(
    scripted: Callable[..., Any], answers: list[str], keeps: bool
) -> None:
    left = iter(answers)

    def answer(connection: socket.socket, head: bytes) -> bool:
        status, _, body = next(left).partition("|")
        text = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        connection.sendall((text + body).encode())
        return False

    made = buckets(scripted(answer).url)
    if keeps:
        made.keep("b")
        return
    with pytest.raises(DriverError, match="bucket b keeps no versions"):
        made.keep("b")


def listing(*entries: tuple[str, str]) -> str:
    return json.dumps([{"name": name, "version_id": version} for name, version in entries])


@pytest.mark.parametrize("beside", ["missing", "more", "unreadable", "refused"])
def test_prepared_versions_must_all_be_there_and_alone(
    scripted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, beside: str
) -> None:
    names = [f"object-{index:010}" for index in range(8)]
    right = [(name, f"{version}.0") for name in names for version in (3, 2, 1)]
    given = {"missing": right[:-1], "more": [(names[0], "4.0"), *right]}.get(beside, right)
    monkeypatch.setattr("gevent.sleep", lambda _: None)

    def answer(connection: socket.socket, head: bytes) -> bool:
        body = "[]" if b"marker=" in head else listing(*given)
        status = "200 OK"
        if beside == "unreadable":
            body = '[{"name": 7}]'
        if beside == "refused":
            status = "500 No"
        text = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        connection.sendall((text + body).encode())
        return False

    url = scripted(answer).url
    made = buckets(url, "swift")
    made._account._place = type(made._account._place).of(url)
    why = {
        "missing": "wb-test-tried-0/object-0000000007 has 2 of its 3 versions",
        "more": "50 versions in wb-test-tried-0 and the buckets after it instead of 48",
        "unreadable": "cannot be read",
        "refused": "cannot be listed: HTTP 500",
    }[beside]
    with pytest.raises(DriverError, match=why):
        made.prove()
    if beside == "more":
        # Of each the oldest are the prepared ones.
        ids = made.ids()
        assert ids[:6] == ["1.0", "2.0", "3.0"] * 2
        assert len(ids) == 48


# What is prepared for workloads: buckets open to everybody, stores that encrypt, objects in parts,
# objects that are only listed.

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
NO = b"HTTP/1.1 501 Not Implemented\r\nContent-Length: 2\r\n\r\nno"
OWN_KEY = OK.replace(b"\r\n\r\n", b"\r\nx-amz-server-side-encryption: AES256\r\n\r\n")
NO_KEY = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
GONE = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
BUCKET = "/wb-test-w-0"


def prepared(served: Any, operation: str = "write", **more: object) -> list[str]:
    workload = Workload.model_validate(
        {
            "name": "w",
            "objects": {"size": 10, "per_container": 2},
            "operations": {operation: 1},
            "workers": (1,),
            "runtime": 1.0,
            **more,
        }
    )
    target = Endpoint(api="s3", url=served.url, user="AK", key=SecretStr("SK"))
    made = PreparedObjects(setup_for(target))
    made.prepare(Prepare(workload=workload), lambda _: None)
    return [head.split(b" HTTP")[0].decode() for head in served.asked]


@pytest.mark.parametrize("auth", ["header", "query", "none"])
def test_everybody_may_use_the_bucket_only_if_requests_are_anonymous(
    scripted: Callable[..., Any], auth: str
) -> None:
    served = scripted(always(OK, keep=False))
    policy = [f"PUT {BUCKET}?policy="] if auth == "none" else []
    assert prepared(served, signing={"auth": auth}) == [f"PUT {BUCKET}", *policy]
    if policy:
        [rule] = json.loads(served.bodies[-1])["Statement"]
        assert rule["Resource"] == ["arn:aws:s3:::wb-test-w-0", "arn:aws:s3:::wb-test-w-0/*"]
        assert "s3:PutObject" in rule["Action"]


def test_a_store_that_does_not_open_it_is_reported(scripted: Callable[..., Any]) -> None:
    def answer(connection: socket.socket, head: bytes) -> bool:
        connection.sendall(NO if b"?policy=" in head else OK)
        return False

    with pytest.raises(DriverError, match="cannot be opened to anonymous requests: HTTP 501: no"):
        prepared(scripted(answer), signing={"auth": "none"})


@pytest.mark.parametrize(
    ("encryption", "answers", "proves"),
    [
        ("sse-c", {b"GET": NO_KEY, b"HEAD": NO_KEY}, True),
        ("sse-c", {}, False),
        ("sse-c", {b"HEAD": NO_KEY}, False),
        ("sse-c", {b"GET": GONE}, False),
        ("sse-s3", {b"HEAD": OWN_KEY}, True),
        ("sse-s3", {}, False),
        ("sse-s3", {b"HEAD": NO_KEY}, False),
    ],
)
@pytest.mark.parametrize("operation", ["read", "write"])
def test_a_store_that_keeps_objects_plain_is_refused(
    scripted: Callable[..., Any],
    encryption: str,
    answers: dict[bytes, bytes],
    proves: bool,
    operation: str,
) -> None:
    def answer(connection: socket.socket, head: bytes) -> bool:
        connection.sendall(answers.get(head.split(b" ")[0], OK))
        return True

    served, first = scripted(answer), f"{BUCKET}/object-0000000000"
    if not proves:
        with pytest.raises(DriverError, match=rf"does not encrypt as asked \({encryption}\)"):
            prepared(served, operation, encryption=encryption)
        return
    asked = prepared(served, operation, encryption=encryption)
    # What was written only for the proof is deleted.
    asks = f"{'GET' if encryption == 'sse-c' else 'HEAD'} {first}"
    own = [f"PUT {first}", asks, f"DELETE {first}"]
    assert operation == "read" or asked == [f"PUT {BUCKET}", *own]
    assert asks in asked
    assert (f"DELETE {first}" in asked) == (operation == "write")


def test_nothing_is_asked_where_objects_are_plain(scripted: Callable[..., Any]) -> None:
    assert prepared(scripted(always(OK)), encryption="none") == [f"PUT {BUCKET}"]


PART = 5 << 20
SEGMENTS = ("/00000001", "/00000002", "/00000003")


def test_segments_of_prepared_objects_are_no_strays_and_are_deleted_with_them() -> None:
    workload = Workload.model_validate(
        {
            "name": "parts",
            "objects": {"size": 2 * PART + 5, "per_container": 2},
            "operations": {"read-part": 1},
            "multipart": {"part": PART},
            "workers": [1],
            "runtime": 1.0,
        }
    )
    with memory_store() as store:
        setup = setup_for(store.endpoints[1])
        objects = PreparedObjects(setup)
        made = objects.prepare(Prepare(workload=workload), lambda _: None)
        assert (made.objects, made.bytes) == (2, 2 * (2 * PART + 5))
        wholes = [f"object-000000000{index}" for index in range(2)]
        wanted = [name + more for name in wholes for more in ("", *SEGMENTS)]
        container = store.swift.buckets[f"{setup.bucket_prefix}-parts-0"]
        assert container.names() == wanted
        assert objects.delete_strays(workload, lambda _: None) == (0, 0)
        assert container.names() == wanted
        assert objects.delete_all(workload, 2, lambda _: None) == (2, 0)
        assert store.swift.buckets == {}


TOKEN = "planted/token+of=a-session"


@pytest.mark.parametrize(
    "said", [TOKEN, base64.b64encode(TOKEN.encode()).decode(), TOKEN.replace("/", r"\/")]
)
def test_a_token_that_a_store_repeats_is_in_no_message(said: str) -> None:
    def answer(request: Request) -> Response:
        is_object = request.method == "PUT" and "object-" in request.path
        return Response(403 if is_object else 200, f"no: {said}.".encode())

    with Server(answer).serving() as server:
        keys = {"user": "AK", "key": SecretStr("SK"), "token": SecretStr(TOKEN)}
        objects = PreparedObjects(setup_for(Endpoint(api="s3", url=server.url, **keys)))
        with pytest.raises(DriverError, match=r"last error: .*no: \*\*\*\.$"):
            objects.prepare(Prepare(workload=workload({"read": 1})), lambda _: None)


@pytest.mark.parametrize("names", [["a", "b"], []], ids=["a page for ever", "names for ever"])
def test_a_list_without_an_end_is_read_no_further_than_what_it_has_is_deleted(
    names: list[str],
) -> None:
    """A store that takes no `start-after` repeats a page; what others write has new names."""
    numbers, deleted = itertools.count(), list[str]()

    def answer(request: Request) -> Response:
        if request.method == "DELETE":
            deleted.append(request.path)
            return Response(204)
        page = names or [f"n{next(numbers):09}" for _ in range(50)]
        page = [] if len(deleted) > 100 else page
        keys = "".join(f"<Contents><Key>{name}</Key></Contents>" for name in page)
        more = f"<IsTruncated>{str(bool(page)).lower()}</IsTruncated>"
        return Response(200, f"<ListBucketResult>{more}{keys}</ListBucketResult>".encode())

    with Server(answer).serving() as server:
        target = Endpoint(api="s3", url=server.url, user="AK", key=SecretStr("SK"))
        objects = PreparedObjects(setup_for(target))
        if names:
            with pytest.raises(DriverError, match="does not go on after 'b'"):
                objects.delete_strays(workload({"write": 1}), lambda _: None)
        else:
            count, failed = objects.delete_strays(workload({"write": 1}), lambda _: None)
            assert (count, failed) == (len(deleted), 0)
            assert 100 < count < 400, "no page is asked for before there is room"


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
