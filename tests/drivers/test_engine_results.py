"""Answers to the requests that are more than a GET or PUT of an object: right ones are successes of
the right size, and hostile ones are failures of a named class, and never a latency.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest

from tests.drivers.good_answers import (
    BODY,
    GOOD,
    MD5,
    PART,
    PARTS_OF,
    REQUESTS,
    SENT,
    SIZE,
    TOKEN,
    answer,
    bulk,
    names,
    of_api,
    page,
    version_body,
    versions,
    versions_page,
    well,
    workload_of,
    xml,
)
from weighbridge.suites import TRAITS

Make = Callable[..., Any]
Spoil = Callable[[bytes], bytes]
NEW = [one for one in SENT if one[0] not in ("read", "write", "delete", "list", "head")]
INTERNAL = b'<?xml version="1.0"?><Error><Code>InternalError</Code></Error>'
RESULTS = [
    ("copy", "s3", 0),
    ("update-metadata", "s3", 0),
    ("delete-many", "s3", 0),
    ("delete-many", "swift", 0),
    ("write-multipart", "s3", 0),
    ("write-multipart", "s3", 4),
    ("list-all", "s3", 0),
    ("list-versions", "s3", 0),
    ("list-versions", "s3", 2),
    ("list-versions", "swift", 0),
    ("list-versions", "swift", 3),
]
"""Operation, API and request whose answer says in its body what was done."""


def body_of(sent: bytes) -> bytes:
    return sent.partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize(("operation", "api"), NEW)
def test_right_answers_are_successes_and_counted_by_operation_and_by_part(
    scripted: Make, bench: Make, operation: str, api: str
) -> None:
    served = scripted(well(operation, api))
    engine = bench(served, workload_of(operation, verify=True), **of_api(api))
    by = engine.alone("done", 3, leaves=True)["by"]
    assert engine.progress["errors"] == {}
    count = by[operation]["count"]
    assert count >= 3
    if operation == "read-part":  # 400, 400 or 200 bytes, as the number is drawn
        assert count * 200 <= by[operation]["bytes"] <= count * PART
        assert by[operation]["bytes"] % 200 == 0
        return
    moved = SIZE if TRAITS[operation].moves_bodies else 0  # type: ignore[index]
    if operation == "read-range":  # 400, 400 and 200 bytes of each object
        assert by[operation]["bytes"] == sum((PART, PART, 200)[at % 3] for at in range(count))
    elif operation not in ("list-all", "list-versions"):
        assert by[operation]["bytes"] == moved * count
    if operation in PARTS_OF:
        name, each = PARTS_OF[operation]
        each = each or REQUESTS[operation][api]
        # Some of the last operation, which ended when the worker had left.
        assert each * count <= by[name]["count"] <= each * (count + 1)
        assert by[name]["bytes"] >= by[operation]["bytes"] > 0
    else:
        assert set(by) == {operation}


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_a_part_that_is_sent_as_if_it_was_an_object_is_a_success(
    scripted: Make, bench: Make, api: str
) -> None:
    """Of radosgw 20: 200, and no Content-Range."""

    def plain(connection: socket.socket, head: bytes) -> bool:
        connection.sendall(answer("200 OK", body_of(GOOD["read-part"](api, head.decode()))))
        return True

    engine = bench(scripted(plain), workload_of("read-part", verify=True), **of_api(api))
    engine.start(1)
    by = engine.window(lambda since: since["done"] >= 20)["by"]
    assert engine.progress["errors"] == {}
    assert by["read-part"]["bytes"] % 200 == 0
    assert by["read-part"]["first_byte"] is not None


def failing(
    scripted: Make, bench: Make, operation: str, api: str, at: int, spoil: Spoil
) -> tuple[dict[str, Any], dict[str, int]]:
    """The tally and the errors, with the answer to request number `at` of an operation spoilt."""
    asked = 0

    def spoilt(connection: socket.socket, head: bytes) -> bool:
        nonlocal asked
        good = GOOD[operation](api, head.decode())
        sent = spoil(good) if asked == at else good
        asked = 0 if asked == at else asked + 1
        if sent == good:
            connection.sendall(sent)
            return True
        # It is not used again, and its end comes with the answer: never after the next request.
        connection.sendall(sent, socket.MSG_MORE)
        connection.shutdown(socket.SHUT_WR)
        return False

    # Whatever a worker asks for before the window is closed, its answer can be spoilt alike.
    same = {"range": {"bytes": PART, "at": "start"}} if operation == "read-range" else {}
    workload = {**workload_of(operation, verify=True), **same}
    engine = bench(scripted(spoilt), workload, **of_api(api))
    tally = engine.alone("failed", 1)["by"][operation]
    return tally, engine.progress["errors"]


ANY = {
    "busy": (lambda _: answer("503 Slow Down", b"busy"), "http-503"),
    "missing": (lambda _: answer("404 Not Found", b"<Error/>"), "http-404"),
    "redirect": (lambda _: answer("307 Moved", b"", "Location: http://evil/"), "http-307"),
    "denied": (lambda _: answer("403 Forbidden", INTERNAL), "http-403"),
    "precondition": (lambda _: answer("412 Precondition Failed"), "http-412"),
    "nothing": (lambda _: b"", "reset"),
    "half a head": (lambda sent: sent[:14], "reset"),
    "other protocol": (lambda _: b"SSH-2.0-OpenSSH_9.2\r\n", "protocol"),
    "endless head": (lambda _: b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000, "protocol"),
    "length": (lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", "protocol"),
    "two lengths": (
        lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        "protocol",
    ),
    "chunks": (
        lambda _: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "protocol",
    ),
    "switching": (lambda _: b"HTTP/1.1 101 Switching\r\n\r\n", "protocol"),
    "error body": (lambda _: answer("200 OK", INTERNAL), "error-body"),
    "late error": (lambda _: answer("200 OK", b"\n \n" + INTERNAL), "error-body"),
    "cut off": (lambda _: answer("200 OK", b"x" * 100)[:-1], "short-body"),
}
"""What any request may be answered with, and the class of error that it is."""


@pytest.mark.parametrize("spoiler", ANY)
@pytest.mark.parametrize(("operation", "api"), NEW)
def test_a_hostile_answer_to_any_request_is_a_failure_of_its_class(
    scripted: Make, bench: Make, operation: str, api: str, spoiler: str
) -> None:
    spoil, error = ANY[spoiler]
    if (operation, spoiler) == ("rewrite-if-none-match", "precondition"):
        spoil, error = (lambda _: answer("201 Created")), "ignored-condition"  # 412 is right
    last = REQUESTS.get(operation, {}).get(api, 1) - 1
    for at in dict.fromkeys((0, last)):
        tally, errors = failing(scripted, bench, operation, api, at, spoil)
        assert set(errors) == set(tally["errors"]) == {error}, at
        assert (tally["count"], tally["bytes"], tally["latency"]) == (0, 0, None)


def rewritten(old: bytes, new: bytes) -> Spoil:
    """An answer in which something is replaced, with the right length."""

    def spoil(sent: bytes) -> bytes:
        head, _, body = sent.partition(b"\r\n\r\n")
        assert old in head + b"\r\n\r\n" + body
        lines = [line for line in head.split(b"\r\n") if not line.startswith(b"Content-Length")]
        body = body.replace(old, new)
        lines = [line.replace(old, new) for line in lines]
        return b"\r\n".join([*lines, b"Content-Length: %d" % len(body), b"", b""]) + body

    return spoil


BODIES: dict[str, Spoil] = {
    "empty": lambda _: answer("200 OK"),
    "no content": lambda _: b"HTTP/1.1 204 No Content\r\n\r\n",
    "html": lambda _: answer("200 OK", b"<html><body>It works!</body></html>"),
    "text": lambda _: answer("200 OK", b"ok"),
    "other root": lambda _: answer("200 OK", xml("ListAllMyBucketsResult", "<Owner></Owner>")),
    "truncated": lambda sent: answer("200 OK", body_of(sent)[:-4]),
    "unclosed": lambda _: answer("200 OK", b"<DeleteResult><Deleted><Key>a</Deleted>"),
    "not UTF-8": lambda sent: answer("200 OK", body_of(sent)[:-1] + b"\xff\xfe>"),
    "document type": lambda sent: answer(
        "200 OK", b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]>' + body_of(sent)
    ),
    "deep": lambda _: answer("200 OK", b"<a>" * 100_000),
    "zeros": lambda _: answer("200 OK", bytes(1000)),
    "twice": lambda sent: answer("200 OK", body_of(sent) * 2),
}
"""Bodies that do not say what was done."""


@pytest.mark.parametrize("spoiler", BODIES)
@pytest.mark.parametrize(("operation", "api", "at"), RESULTS)
def test_a_success_that_does_not_say_what_was_done_is_a_failure(
    scripted: Make, bench: Make, operation: str, api: str, at: int, spoiler: str
) -> None:
    tally, errors = failing(scripted, bench, operation, api, at, BODIES[spoiler])
    error = "bad-list" if operation.startswith("list-") else "bad-result"
    assert set(errors) == {error}
    assert (tally["count"], tally["latency"]) == (0, None)


def chunked(status: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\nTransfer-Encoding: chunked\r\n\r\n{len(body):x}\r\n"
    return head.encode() + body + b"\r\n0\r\n\r\n"


def listed(*keys: str, token: str = "") -> Spoil:
    return lambda _: answer("200 OK", page(list(keys), token))


def listed_versions(
    api: str, first: int, count: int, marker: tuple[str, str] | None = None
) -> Spoil:
    return lambda _: versions_page(api, versions(first, count), marker)


def version_as(version: str) -> Spoil:
    """The content of the version that was asked for, and the ID of another one."""
    return lambda sent: answer("200 OK", body_of(sent), f"x-amz-version-id: {version}")


def deleted_and(more: bytes) -> Spoil:
    return rewritten(b"</DeleteResult>", more + b"</DeleteResult>")


def part_as(status: str, *headers: str, change: Spoil = bytes) -> Spoil:
    """The part that was asked for, whichever it is, with another head, or changed."""
    return lambda sent: answer(status, change(body_of(sent)), *headers)


LAST = ("object-0000000009", "v0-18")
OTHER_MD5 = (rewritten(MD5.encode(), b"0" * 32), "wrong-etag")
UNCHANGED = (lambda _: answer("304 N"), "http-304")
CONFLICT = (lambda _: answer("409 Conflict"), "http-409")
COMPLETE = f"Content-Range: bytes 0-{SIZE - 1}/{SIZE}"
PARTS: list[tuple[Spoil, str]] = [
    (lambda _: answer("200 OK", BODY), "ignored-part"),
    (lambda _: answer("206 P", BODY), "ignored-part"),
    (lambda _: answer("206 P", BODY, COMPLETE), "ignored-part"),
    (lambda _: chunked("200 OK", BODY), "ignored-part"),
    (lambda _: answer("200 OK", BODY[::-1]), "ignored-part"),
    (lambda _: answer("200 OK", BODY[:-1]), "wrong-content"),
    (lambda _: answer("200 OK", BODY + b"x"), "wrong-content"),
    (lambda _: answer("200 OK"), "short-body"),
    (part_as("200 OK", change=lambda body: body[:-1]), "short-body"),
    (part_as("200 OK", change=lambda body: bytes(len(body))), "wrong-content"),
    (part_as("200 OK", change=lambda body: body[1:] + body[:1]), "wrong-content"),
    (part_as("200 OK", COMPLETE), "wrong-range"),
    (part_as("206 P"), "wrong-range"),
    (part_as("206 P", COMPLETE), "wrong-range"),
    (part_as("206 P", "Content-Range: bytes 1-400/1000"), "wrong-range"),
    (part_as("206 P", "Content-Range: bytes 0-399/1001"), "wrong-range"),
    (part_as("206 P", "Content-Range: octets 0-399/1000"), "wrong-range"),
    (part_as("206 P", f"Content-Range: bytes 0-{2**64 - 1}/1000"), "wrong-range"),
    (part_as("206 P", f"Content-Range: bytes 0-{2**64}/1000"), "wrong-range"),
    (lambda _: answer("204 No Content"), "http-204"),
    (lambda _: answer("304 N"), "http-304"),
    (lambda _: answer("405 Method Not Allowed", b"no"), "http-405"),
    (lambda _: answer("416 Range", b"no such part"), "http-416"),
    (part_as("201 Created"), "http-201"),
    (lambda _: answer("206 P", INTERNAL), "error-body"),
]
"""Spoilt answers to `read-part`, and what each is."""

BAD: dict[tuple[str, str, int], list[tuple[Spoil, str]]] = {
    ("read-range", "s3", 0): [
        (lambda _: answer("200 OK", BODY), "ignored-range"),
        (lambda _: answer("206 P", BODY[:PART]), "wrong-range"),
        (rewritten(b"bytes 0-399/1000", b"bytes 1-400/1000"), "wrong-range"),
        (rewritten(b"0-399/1000", b"0-398/1000"), "wrong-range"),
        (rewritten(b"/1000", b"/1001"), "wrong-range"),
        (rewritten(b"bytes 0", b"octets 0"), "wrong-range"),
        (rewritten(b"0-399/1000", b"0-18446744073709551615/1000"), "wrong-range"),
        (rewritten(b"0-399/1000", b"0-99999999999999999999/9"), "wrong-range"),
        (rewritten(BODY[:PART], BODY[1 : PART + 1]), "wrong-content"),
        (rewritten(BODY[:PART], BODY[: PART - 1]), "short-body"),
        (rewritten(BODY[:PART], BODY[: PART + 1]), "wrong-content"),
    ],
    ("read-range", "swift", 0): [(lambda _: answer("200 OK", BODY[:PART]), "ignored-range")],
    ("read-part", "s3", 0): PARTS,
    ("read-part", "swift", 0): PARTS,
    ("read-if-none-match", "s3", 0): [
        (lambda _: answer("200 OK", BODY), "ignored-condition"),
        (lambda _: answer("204 No Content"), "http-204"),
    ],
    ("read-if-none-match", "swift", 0): [(lambda _: answer("200 OK"), "ignored-condition")],
    ("read-if-match", "s3", 0): [
        (lambda _: b"HTTP/1.1 304 N\r\n\r\n", "http-304"),
        (lambda _: answer("206 P", BODY), "http-206"),
        (lambda _: answer("200 OK", BODY[:-1]), "short-body"),
        (lambda _: answer("200 OK", BODY[::-1]), "wrong-content"),
    ],
    ("write-if-none-match", "s3", 0): [OTHER_MD5],
    ("rewrite-if-none-match", "s3", 0): [(lambda _: answer("200 OK"), "ignored-condition")],
    ("rewrite-if-none-match", "swift", 0): [CONFLICT, UNCHANGED],
    ("update-metadata", "s3", 0): [OTHER_MD5],
    ("update-metadata", "swift", 0): [UNCHANGED],
    ("tag", "s3", 0): [(lambda _: answer("501 Not Implemented"), "http-501")],
    ("copy", "swift", 0): [OTHER_MD5],
    ("copy", "s3", 0): [OTHER_MD5],
    ("delete-many", "s3", 0): [
        (lambda _: answer("200 OK", xml("DeleteResult", "")), "not-deleted"),
        (rewritten(b"Deleted>", b"Ignored>"), "not-deleted"),
        (deleted_and(b"<Error><Code>AccessDenied</Code></Error>"), "not-deleted"),
        (deleted_and(b"<Deleted><Key>a</Key></Deleted>"), "bad-result"),
    ],
    ("delete-many", "swift", 0): [
        (lambda _: answer("200 OK", bulk(2)), "not-deleted"),
        (lambda _: answer("200 OK", bulk(4)), "bad-result"),
        (lambda _: answer("200 OK", bulk(-1)), "bad-result"),
        (lambda _: answer("200 OK", bulk(3, Errors=[["/w/o", "409 Conflict"]])), "not-deleted"),
        (lambda _: answer("200 OK", bulk(3, **{"Response Status": "400 Bad"})), "not-deleted"),
        (lambda _: answer("200 OK", b"Number Deleted: 3\nResponse Status: 502 B\n"), "not-deleted"),
    ],
    ("write-multipart", "s3", 0): [
        (rewritten(b"2~u/1", b""), "bad-result"),
        (rewritten(b"2~u/1", b"u" * 2000), "bad-result"),
    ],
    ("write-multipart", "s3", 1): [(lambda _: answer("200 OK"), "wrong-etag")],
    ("write-multipart", "swift", 1): [(lambda _: answer("201 C", b"", "ETag: "), "wrong-etag")],
    ("write-multipart", "s3", 2): [
        (lambda _: answer("200 OK", b"", f'ETag: "{"0" * 32}"'), "wrong-etag"),
    ],
    ("write-multipart", "s3", 4): [(rewritten(b"-3&", b"-2&"), "bad-result")],
    ("read-version", "s3", 0): [
        (version_as("v7-7"), "wrong-content"),
        (version_as(""), "wrong-content"),
        (version_as("V0-0"), "wrong-content"),
        (rewritten(b"x-amz-version-id", b"x-amz-request-id"), "wrong-content"),
        (lambda sent: sent.replace(b"200 OK", b"206 P"), "http-206"),
        (lambda sent: sent[:-1] + b"\0", "wrong-content"),
        (lambda sent: sent[:-1], "short-body"),
    ],
    ("read-version", "swift", 0): [
        (rewritten(b"X-Object-Version-Id", b"X-Id"), "wrong-content"),
        (lambda sent: sent[:-SIZE] + version_body(3), "wrong-content"),
    ],
    ("overwrite", "s3", 0): [OTHER_MD5, UNCHANGED],
    ("overwrite", "swift", 0): [OTHER_MD5, CONFLICT],
}
BAD_LISTS: dict[tuple[str, str, int], list[Spoil]] = {
    ("list-all", "s3", 0): [
        listed(*names(0, 6), token="t"),
        listed(*names(0, 5)),
        rewritten(TOKEN.encode(), b""),
    ],
    ("list-all", "s3", 1): [
        listed(*names(5, 4)),
        listed(*names(0, 5)),
        listed(*names(5, 5), token=TOKEN),
    ],
    ("list-all", "swift", 0): [lambda _: answer("200 OK", b"a\n\nb\n")],
    ("list-all", "swift", 1): [
        lambda _: answer("200 OK", "\n".join(names(0, 5)).encode()),
        lambda _: answer("204 No Content"),
    ],
    ("list-versions", "s3", 0): [
        listed_versions("s3", 0, 8, ("object-0000000003", "v0-6")),
        listed_versions("s3", 0, 7),
        listed_versions("s3", 0, 0, LAST),
        rewritten(b"v1-1", b"v0-0"),
        rewritten(b"<VersionId>v1-1</VersionId>", b""),
        rewritten(b"object-0000000002", b"object-0000000000"),
        rewritten(b"<Key>object", b"<Key>abject"),
    ],
    ("list-versions", "s3", 1): [listed_versions("s3", first, 7, LAST) for first in (0, 6, 8)],
    ("list-versions", "s3", 2): [
        listed_versions("s3", 0, 0, LAST),
        listed_versions("s3", 14, 5),
        listed_versions("s3", 15, 5),
    ],
    ("list-versions", "swift", 0): [
        rewritten(b'"v1-1"', b"11"),
        rewritten(b"version_id", b"version"),
    ],
    ("list-versions", "swift", 1): [
        listed_versions("swift", 6, 7),
        listed_versions("swift", 0, 0),
    ],
    ("list-versions", "swift", 3): [lambda _: answer("204 No Content")],
}
FAULTS = [
    *((*what, spoil, error) for what, some in BAD.items() for spoil, error in some),
    *((*what, spoil, "bad-list") for what, some in BAD_LISTS.items() for spoil in some),
]


@pytest.mark.parametrize(("operation", "api", "at", "spoil", "error"), FAULTS)
def test_an_answer_that_is_not_what_was_asked_for_is_named(
    scripted: Make, bench: Make, operation: str, api: str, at: int, spoil: Spoil, error: str
) -> None:
    tally, errors = failing(scripted, bench, operation, api, at, spoil)
    assert set(errors) == {error}
    assert (tally["count"], tally["latency"]) == (0, None)
