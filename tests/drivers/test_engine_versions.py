"""Versions: what the engine reads, overwrites and lists, and how it fails what is not as asked."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest

from tests.drivers.conftest import until
from tests.drivers.good_answers import (
    BODY,
    MD5,
    SIZE,
    answer,
    of_api,
    version_body,
    versions,
    versions_page,
    workload_of,
)
from tests.drivers.test_engine_results import BODIES, Spoil, failing, rewritten

Make = Callable[..., Any]
LAST = ("object-0000000009", "v0-18")


@pytest.mark.parametrize("spoiler", BODIES)
@pytest.mark.parametrize(("api", "at"), [("s3", 0), ("s3", 2), ("swift", 0), ("swift", 3)])
def test_a_listing_that_is_none_is_a_failure(
    scripted: Make, bench: Make, api: str, at: int, spoiler: str
) -> None:
    tally, errors = failing(scripted, bench, "list-versions", api, at, BODIES[spoiler])
    assert set(errors) == {"bad-list"}
    assert (tally["count"], tally["latency"]) == (0, None)


def page(api: str, first: int, count: int, marker: tuple[str, str] | None = None) -> Spoil:
    return lambda _: versions_page(api, versions(first, count), marker)


def named(version: str) -> Spoil:
    """The content of the version that was asked for, and the ID of another one."""
    return lambda sent: answer(
        "200 OK", sent.partition(b"\r\n\r\n")[2], f"x-amz-version-id: {version}"
    )


FAULTS = [
    ("read-version", "s3", 0, named("v7-7"), "wrong-content"),
    ("read-version", "s3", 0, named(""), "wrong-content"),
    ("read-version", "s3", 0, named("V0-0"), "wrong-content"),
    ("read-version", "s3", 0, rewritten(b"x-amz-version-id", b"x-amz-request-id"), "wrong-content"),
    ("read-version", "swift", 0, rewritten(b"X-Object-Version-Id", b"X-Id"), "wrong-content"),
    ("read-version", "s3", 0, lambda sent: sent.replace(b"200 OK", b"206 P"), "http-206"),
    ("read-version", "s3", 0, lambda sent: sent[:-1] + b"\0", "wrong-content"),
    ("read-version", "swift", 0, lambda sent: sent[:-SIZE] + version_body(3), "wrong-content"),
    ("read-version", "s3", 0, lambda sent: sent[:-1], "short-body"),
    ("overwrite", "s3", 0, rewritten(MD5.encode(), b"0" * 32), "wrong-etag"),
    ("overwrite", "swift", 0, rewritten(MD5.encode(), b"0" * 32), "wrong-etag"),
    ("overwrite", "s3", 0, lambda _: answer("304 N"), "http-304"),
    ("overwrite", "swift", 0, lambda _: answer("409 Conflict"), "http-409"),
    ("list-versions", "s3", 0, page("s3", 0, 8, ("object-0000000003", "v0-6")), "bad-list"),
    ("list-versions", "s3", 0, page("s3", 0, 7), "bad-list"),
    ("list-versions", "s3", 0, page("s3", 0, 0, LAST), "bad-list"),
    ("list-versions", "s3", 2, page("s3", 0, 0, LAST), "bad-list"),
    ("list-versions", "s3", 1, page("s3", 0, 7, LAST), "bad-list"),
    ("list-versions", "s3", 1, page("s3", 6, 7, LAST), "bad-list"),
    ("list-versions", "s3", 1, page("s3", 8, 7, LAST), "bad-list"),
    ("list-versions", "s3", 2, page("s3", 14, 5), "bad-list"),
    ("list-versions", "s3", 2, page("s3", 15, 5), "bad-list"),
    ("list-versions", "s3", 0, rewritten(b"v1-1", b"v0-0"), "bad-list"),
    ("list-versions", "s3", 0, rewritten(b"<VersionId>v1-1</VersionId>", b""), "bad-list"),
    ("list-versions", "s3", 0, rewritten(b"object-0000000002", b"object-0000000000"), "bad-list"),
    ("list-versions", "s3", 0, rewritten(b"<Key>object", b"<Key>abject"), "bad-list"),
    ("list-versions", "swift", 3, lambda _: answer("204 No Content"), "bad-list"),
    ("list-versions", "swift", 1, page("swift", 6, 7), "bad-list"),
    ("list-versions", "swift", 1, page("swift", 0, 0), "bad-list"),
    ("list-versions", "swift", 0, rewritten(b'"v1-1"', b"11"), "bad-list"),
    ("list-versions", "swift", 0, rewritten(b"version_id", b"version"), "bad-list"),
]


@pytest.mark.parametrize(("operation", "api", "at", "spoil", "error"), FAULTS)
def test_an_answer_that_is_not_what_was_asked_for_is_named(
    scripted: Make, bench: Make, operation: str, api: str, at: int, spoil: Spoil, error: str
) -> None:
    tally, errors = failing(scripted, bench, operation, api, at, spoil)
    assert set(errors) == {error}
    assert (tally["count"], tally["latency"]) == (0, None)


@pytest.mark.parametrize("mixed", [False, True])
def test_only_a_workload_that_changes_something_may_have_more_versions_than_were_prepared(
    scripted: Make, bench: Make, *, mixed: bool
) -> None:
    def one_more(connection: socket.socket, head: bytes) -> bool:
        if head.startswith(b"PUT"):
            connection.sendall(answer("200 OK", b"", "x-amz-version-id: new"))
            return True
        newest = ("object-0000000000", "v2-20")
        connection.sendall(versions_page("s3", [newest, *versions(0, 20)]))
        return True

    given = {**workload_of("list-versions"), "listing": {"page": 30, "prefix": "", "delimiter": ""}}
    given["operations"] |= {"overwrite": 1.0} if mixed else {}
    engine = bench(scripted(one_more), given)
    engine.engine.add_worker(0, 1, 0)
    which = "done" if mixed else "failed"
    until(lambda: engine.progress[which] >= 4, which)
    assert set(engine.progress["errors"]) == (set() if mixed else {"bad-list"})
    if not mixed:
        assert engine.progress["last_error"].endswith("21 versions or more where only 20 exist")


@pytest.mark.parametrize("api", ["s3", "swift"])
@pytest.mark.parametrize("named_id", [True, False])
def test_a_write_into_a_container_with_versions_must_make_one(
    scripted: Make, bench: Make, api: str, *, named_id: bool
) -> None:
    header = "x-amz-version-id" if api == "s3" else "X-Object-Version-Id"

    def put(connection: socket.socket, head: bytes) -> bool:
        more = (f"{header}: 17",) if named_id else ()
        connection.sendall(answer("201 Created", b"", *more))
        return True

    engine = bench(scripted(put), {**workload_of("overwrite"), "versions": 2}, **of_api(api))
    engine.engine.add_worker(0, 1, 0)
    until(lambda: engine.progress["done" if named_id else "failed"] >= 2, "writes")
    assert set(engine.progress["errors"]) == (set() if named_id else {"bad-result"})


def test_each_version_is_written_with_its_own_content_and_the_latest_is_written_again(
    scripted: Make, bench: Make
) -> None:
    def put(connection: socket.socket, head: bytes) -> bool:
        connection.sendall(answer("201 Created", b"", "x-amz-version-id: 17"))
        return True

    served = scripted(put)
    engine = bench(served, {**workload_of("overwrite"), "versions": 3})
    for version in range(3):
        engine.engine.prepare(0, 10, 1, 1, version)
        assert engine.finish()["errors"] == {}
    assert served.bodies == [version_body(version) for version in range(3) for _ in range(10)]
    engine.engine.add_worker(0, 1, 0)
    until(lambda: engine.progress["done"] >= 32, "overwrites")
    engine.engine.stop(5.0)
    assert served.bodies[30:32] == [version_body(2)] * 2
    assert len({version_body(0), version_body(1), version_body(2)}) == 3
    assert version_body(0) == BODY


def test_versions_and_ids_that_a_workload_has_not_are_refused(bench: Make, null: Make) -> None:
    engine = bench(null(), {**workload_of("overwrite"), "versions": 2}).engine
    with pytest.raises(ValueError, match="no such version among 2"):
        engine.prepare(0, 10, 1, 1, 2)
    with pytest.raises(ValueError, match="3 IDs of 20 versions"):
        engine.know_versions(["a", "b", "c"])
    with pytest.raises(ValueError, match="a version without an ID"):
        engine.know_versions([""] * 20)
    for wrong in ({"versions": 0}, {"versions": 101}):
        with pytest.raises(ValueError, match="not 1 to 100"):
            bench(null(), {**workload_of("overwrite"), **wrong})
