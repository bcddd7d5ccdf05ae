"""Listings: how many names they have, which, and where they end."""

from __future__ import annotations

import math
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.conftest import SEED, Reply, Served, always, shape, until
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
from tls_proxy import authority
from weighbridge.drivers.engine import _native
from weighbridge.suites import TRAITS

Make = Callable[..., Any]
STRANGE = [f"zzz-of-somebody-else-{index}" for index in range(5)]


def sent_page(api: str, keys: list[str], token: str = "") -> bytes:
    if api == "s3":
        return answer("200 OK", page(keys, token))
    return answer("200 OK", "\n".join(keys).encode(), "Content-Type: text/plain")


def paged(page_of: int, total: int) -> Reply:
    """A container of Swift with so many objects, in pages of so many."""

    def answered(connection: socket.socket, head: bytes) -> bool:
        first = int(head.split(b"marker=object-")[1][:10]) + 1 if b"marker=" in head else 0
        connection.sendall(sent_page("swift", names(first, max(0, min(page_of, total - first)))))
        return True

    return answered


@pytest.mark.parametrize("api", ["s3", "swift"])
@pytest.mark.parametrize(
    ("at", "keys", "why"),
    [
        (0, [*names(2, 1) * 3, *names(3, 2)], "not after the one before it"),
        (0, names(0, 5)[::-1], "not after the one before it"),
        (0, STRANGE, "without the prefix"),
        (1, [*names(4, 1), *names(6, 4)], "listed before"),
    ],
    ids=["duplicates", "backwards", "strange", "repeated from the last page"],
)
def test_a_page_of_as_many_but_other_names_is_a_bad_listing(
    scripted: Make, bench: Make, api: str, at: int, keys: list[str], why: str
) -> None:
    engines: list[Any] = []

    def kept(*given: Any, **more: Any) -> Any:
        engines.append(bench(*given, **more))
        return engines[-1]

    spoilt = sent_page(api, keys, "" if at else TOKEN)
    tally, errors = failing(scripted, kept, "list-all", api, at, lambda _: spoilt)
    assert set(errors) == {"bad-list"}
    assert (tally["count"], tally["latency"]) == (0, None)
    assert why in engines[0].progress["last_error"]


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_a_name_that_is_listed_twelve_times_is_a_bad_listing(
    scripted: Make, bench: Make, api: str
) -> None:
    spoilt = sent_page(api, names(0, 1) * 12)
    _, errors = failing(scripted, bench, "list", api, 0, lambda _: spoilt)
    assert set(errors) == {"bad-list"}


@pytest.mark.parametrize(
    "keys", [names(0, 1) * 3, [*names(0, 2), *names(3, 1)], STRANGE[:3]], ids=repr
)
def test_a_deletion_of_as_many_but_other_keys_is_a_bad_result(
    scripted: Make, bench: Make, keys: list[str]
) -> None:
    inside = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
    spoilt = answer("200 OK", xml("DeleteResult", inside))
    _, errors = failing(scripted, bench, "delete-many", "s3", 0, lambda _: spoilt)
    assert set(errors) == {"bad-result"}


def test_a_listing_whose_pages_never_hold_a_name_ends(scripted: Make, bench: Make) -> None:
    turns = iter(range(10_000))

    def endless(connection: socket.socket, head: bytes) -> bool:
        connection.sendall(answer("200 OK", page([], f"t{next(turns)}")))
        return True

    engine = bench(scripted(endless), workload_of("list-all"))
    engine.alone("failed", 2)
    assert set(engine.progress["errors"]) == {"bad-list"}
    assert "pages without a name" in engine.progress["last_error"]


@pytest.mark.parametrize(("given", "wrong"), [({}, False), ({"listed": {"deleted": 0.0}}, True)])
def test_objects_that_are_only_listed_are_as_many_as_are_left(
    scripted: Make, bench: Make, given: dict[str, Any], *, wrong: bool
) -> None:
    workload = workload_of("list-all", **given)
    engine = bench(scripted(paged(5, 11)), workload, **of_api("swift"))
    engine.alone("failed" if wrong else "done", 2)
    if wrong:
        assert engine.progress["last_error"].endswith("11 keys or more where only 10 exist")


def test_short_pages_do_not_end_a_listing(scripted: Make, bench: Make) -> None:
    """Pages of Ceph's Swift API are shorter than asked for: only an empty one is the last."""
    engine = bench(scripted(paged(1, 10)), workload_of("list-all"), **of_api("swift"))
    by = engine.alone("done", 2, leaves=True)["by"]
    assert engine.progress["errors"] == {}
    listings, pages = by["list-all"]["count"], by["list-page"]["count"]
    assert 11 * listings <= pages < 11 * (listings + 1)


def test_a_worker_that_is_to_end_does_not_list_the_pages_that_are_left(
    scripted: Make, bench: Make
) -> None:
    """A complete listing may take minutes, and is outstanding at the end of most windows."""
    workload = workload_of("list-all", per_container=10_000_000)
    engine = bench(scripted(paged(1, 10_000_000)), workload, **of_api("swift"))
    by = engine.alone("bytes", 1000)["by"]
    assert engine.engine.stop(5.0) == 0
    assert (by["list-all"]["count"], by["list-all"]["errors"]) == (0, {})
    assert by["list-all"]["outstanding_us"] > 0
    assert by["list-page"]["count"] > 0


ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + _native.content(SEED, 1000, 0, 1000)
CLOSE = b"\r\nConnection: close\r\n"

KEPT = [("keep-alive", None), ("per-request", 1), ({"reconnect_every": 5}, 5)]


def polite(connection: socket.socket, head: bytes) -> bool:
    """Answer, and close the connection when the request asks for it."""
    connection.sendall(ANSWER)
    return CLOSE not in head


stubborn = always(ANSWER)


def replayed(served: Served, make: Make, kept: Any, **config: Any) -> int:
    """Replay reads by one worker, and let it end; how many there were."""
    engine = make(served, shape(connections=kept, verify=True), **config)
    engine.start(1)
    until(lambda: engine.progress["done"] >= 23, "reads")
    engine.engine.stop(5.0)
    assert engine.progress["errors"] == {}
    return int(engine.progress["done"])


@pytest.mark.parametrize(("kept", "most"), KEPT)
@pytest.mark.parametrize("answer", [polite, stubborn])
@pytest.mark.parametrize("api", ["s3", "swift"])
def test_a_connection_serves_as_many_requests_as_the_workload_says(
    scripted: Make, bench: Make, api: str, answer: Any, kept: Any, most: int | None
) -> None:
    served = scripted(answer)
    done = replayed(served, bench, kept, api=api)
    assert served.accepted == (1 if most is None else math.ceil(done / most))
    closing = [CLOSE in head for head in served.asked]
    assert closing == [most is not None and (at + 1) % most == 0 for at in range(done)]


@pytest.mark.parametrize(("kept", "most"), KEPT)
def test_so_does_a_connection_over_tls(
    scripted: Make, bench: Make, tmp_path: Path, kept: Any, most: int | None
) -> None:
    ca, certificate = authority(tmp_path, ["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    served = scripted(polite, context)
    done = replayed(served, bench, kept, tls=True, ca_file=str(ca))
    assert served.accepted == (1 if most is None else math.ceil(done / most))


@pytest.mark.parametrize(("kept", "most"), KEPT)
@pytest.mark.long
def test_connections_made_inside_the_window_are_counted(
    null: Make, bench: Make, kept: Any, most: int | None
) -> None:
    served = null()
    engine = bench(served, shape(connections=kept, operations={"write": 1.0}))
    engine.start(4)
    snapshot = engine.window(lambda since: since["done"] + since["failed"] >= 400)
    ended = sum(one["count"] + sum(one["errors"].values()) for one in snapshot["tallies"])
    # At its edges the window cuts through the requests of each of the four workers.
    wanted = 0 if most is None else ended / most
    assert abs(snapshot["connections"] - wanted) <= (0 if most is None else 4)


@pytest.mark.parametrize("kept", ["sometimes", {"reconnect_every": 0}, 5, None])
def test_connections_that_do_not_exist_are_refused(bench: Make, kept: Any) -> None:
    with pytest.raises(ValueError, match="engine config"):
        bench(Served(1), shape(connections=kept))


def test_options_of_sockets_are_as_the_kernel_returns_them() -> None:
    with socket.socket() as plain:
        usual = {
            "SO_SNDBUF": plain.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF),
            "SO_RCVBUF": plain.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF),
            "SO_KEEPALIVE": 0,
        }
    found = dict(_native.socket_options())
    assert (
        found.pop("TCP_CONGESTION")
        in Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    )
    assert found == {"TCP_NODELAY": "1", **{name: str(value) for name, value in usual.items()}}


# Answers to the requests that are more than a GET or PUT of an object: right ones are successes of
# the right size, and hostile ones are failures of a named class, and never a latency.

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
        (lambda _: answer("200 OK", b"", f'ETag: "{"0" * 32}"'), "wrong-etag")
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
    ("list-versions", "swift", 1): [listed_versions("swift", 6, 7), listed_versions("swift", 0, 0)],
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
