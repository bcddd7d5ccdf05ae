"""Versions of objects by the real driver: prepared, read, listed, made, and deleted to the last."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import SecretStr
from swiftclient.client import Connection

from null_process import s3_client
from tests.drivers.locust.local_driver import (
    KEY,
    Api,
    Kept,
    Null,
    by_operation,
    setup_for,
    workload,
)
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import DriverError
from weighbridge.drivers.locust.account import Account
from weighbridge.drivers.locust.prepared_objects import VersionedBuckets
from weighbridge.drivers.protocol import Cleanup, Prepare, Setup, Step
from weighbridge.suites import Objects, Workload

OBJECTS = Objects(size=4096, containers=2, per_container=8)
BUCKETS = ("wb-test-tried-0", "wb-test-tried-1")


def versioned(**operations: float) -> Workload:
    named: Any = {name.replace("_", "-"): weight for name, weight in operations.items()}
    return workload(named, objects=OBJECTS, versions=3, verify=1.0)


def seen(target: Null, api: Api) -> list[tuple[int, int]]:
    """How many versions and delete markers each bucket has, as boto3 or swiftclient lists them."""
    if api == "swift":
        swift: Any = Connection(authurl=f"{target.url}/auth/v1.0", user="bench", key=KEY)
        found = [
            [
                "swift_versions_deleted" in one["content_type"]
                for one in swift.get_container(bucket, query_string="versions=", limit=9999)[1]
            ]
            for bucket in BUCKETS
        ]
        swift.close()
        return [(markers.count(False), markers.count(True)) for markers in found]
    client = s3_client(target.url, "bench", KEY)
    pages = [
        list(client.get_paginator("list_object_versions").paginate(Bucket=bucket))
        for bucket in BUCKETS
    ]
    client.close()
    return [
        tuple(sum(len(page.get(key, [])) for page in one) for key in ("Versions", "DeleteMarkers"))
        for one in pages
    ]


@pytest.mark.long  # starts Locust
@pytest.mark.parametrize("api", ["s3", "swift"])
def test_each_step_begins_with_the_versions_that_were_prepared_and_all_are_deleted_in_the_end(
    api: Api, null: Callable[..., Null], kept: Kept
) -> None:
    target, prepared = null(), [(24, 0)] * 2
    reading = versioned(read_version=3, list_versions=1, read=1)
    writing = versioned(overwrite=3, write=2, delete=1, read=1, read_version=1, list_versions=1)
    deleting = versioned(delete=1)
    with kept() as running:
        running.setup(setup_for(target.target(api)))
        ready = running.prepare(Prepare(workload=reading))
        assert (ready.objects, ready.bytes) == (48, 48 * 4096)
        assert seen(target, api) == prepared
        for one in (reading, writing, reading):
            running.prepare(Prepare(workload=one))
            assert seen(target, api) == prepared
            tallies = by_operation(running.step(Step(workload=one, workers=4)).measurement)
            assert {name for name, tally in tallies.items() if tally.errors} == set()
            assert all(tallies[name].count > 0 for name in (*one.operations, "versions-page"))
            assert tallies["read-version"].bytes == 4096 * tallies["read-version"].count
            after = seen(target, api)
            if one is writing:
                made = tallies["overwrite"].count + tallies["write"].count
                assert sum(versions for versions, _ in after) >= 48 + made
                assert sum(markers for _, markers in after) >= tallies["delete"].count
            else:
                assert after == prepared
            cleaned = running.cleanup(Cleanup(workload=one, what="written"))
            assert cleaned.failed == 0
            assert cleaned.deleted == sum(sum(pair) for pair in after) - 48
            assert seen(target, api) == prepared
        running.prepare(Prepare(workload=deleting))
        running.step(Step(workload=deleting, workers=1))
        assert seen(target, api) == [(24, 8)] * 2
        # What was deleted is written again, and is as it was.
        running.step(Step(workload=deleting, workers=1))
        assert seen(target, api) == [(24, 8)] * 2
        assert running.cleanup(Cleanup(workload=deleting, what="all")).failed == 0
        assert target.names(api) == []


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
