"""Dynamic large objects of Swift's: what is sent of them, and how they are deleted."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest
import swiftclient

from tests.drivers.conftest import SEED, Served, until
from tests.drivers.good_answers import GOOD, PART, SIZE, answer, bulk, of_api, workload_of, xml
from weighbridge.drivers.engine import _native

Make = Callable[..., Any]
Respond = Callable[[str], bytes]
DYNAMIC = {"part": PART, "manifest": "dynamic"}
NAMES = [_native.written_name(1, 0, 0, index) for index in range(10)]


def large(index: int) -> list[str]:
    """The paths of an object and its segments."""
    return [f"/wb-w-0/{NAMES[index]}{part}" for part in ("", *(f"/{at:08}" for at in (1, 2, 3)))]


def work(**operations: float) -> dict[str, Any]:
    found = {**workload_of("write-multipart"), "multipart": DYNAMIC}
    return {**found, "operations": {"write-multipart": 1.0, **operations}}


def answering(deleted: Respond) -> Callable[[socket.socket, bytes], bool]:
    def respond(connection: socket.socket, head: bytes) -> bool:
        text = head.decode()
        is_delete = text.startswith("POST")
        connection.sendall(deleted(text) if is_delete else GOOD["write-multipart"]("swift", text))
        return True

    return respond


def all_gone(_head: str) -> bytes:
    return answer("200 OK", bulk(4))


def test_the_last_request_says_what_the_names_of_segments_begin_with_and_has_no_body(
    scripted: Make, bench: Make
) -> None:
    served: Served = scripted(answering(all_gone))
    engine = bench(served, work(), **of_api("swift"))
    engine.start(1)
    until(lambda: engine.progress["done"] >= 2, "objects")
    engine.engine.stop(5.0)
    own, *segments = large(0)
    asked = [head.decode() for head in served.asked[:4]]
    assert [head.split(" ")[:2] for head in asked] == [
        ["PUT", f"/v1/AUTH_test{path}"] for path in (*segments, own)
    ]
    assert b"".join(served.bodies[:3]) == _native.content(SEED, SIZE, 0, SIZE)
    assert f"\r\nX-Object-Manifest: {own.removeprefix('/')}/\r\n" in asked[3]
    assert served.bodies[3] == b""
    assert "X-Object-Manifest" not in "".join(asked[:3])


@pytest.mark.parametrize("in_step", [True, False])
def test_it_is_deleted_with_its_segments_by_one_request(
    scripted: Make, bench: Make, in_step: bool
) -> None:
    served: Served = scripted(answering(all_gone))
    engine = bench(served, work(**({"delete": 1.0} if in_step else {})), **of_api("swift"))
    engine.start(1)
    until(lambda: engine.progress["done"] >= 6, "operations")
    engine.engine.stop(5.0)
    engine.engine.delete("written", 1)
    assert engine.finish()["errors"] == {}
    pairs = zip(served.asked, served.bodies, strict=True)
    deletes = [(head.decode(), body) for head, body in pairs if head.startswith(b"POST")]
    assert deletes
    for head, _ in deletes:
        assert head.startswith("POST /v1/AUTH_test/?bulk-delete HTTP/1.1\r\n")
        assert "\r\nAccept: application/json\r\nContent-Type: text/plain\r\n" in head
    assert "\n".join([*large(0), ""]).encode() in [body for _, body in deletes]


@pytest.mark.parametrize(
    ("deleted", "error"),
    [
        (answer("200 OK"), "bad-result"),
        (answer("204 No Content"), "bad-result"),
        (answer("200 OK", b"ok"), "bad-result"),
        (answer("200 OK", bulk(3)), "not-deleted"),
        (answer("200 OK", bulk(0)), "not-deleted"),
        (answer("200 OK", bulk(-4)), "bad-result"),
        (answer("200 OK", bulk(4)[:-2]), "bad-result"),
        (answer("200 OK", bulk(4, **{"Number Deleted": "4"})), "bad-result"),
        (answer("200 OK", bulk(4, **{"Response Status": ""})), "bad-result"),
        (answer("200 OK", bulk(4, **{"Response Status": "400 Bad Request"})), "not-deleted"),
        (answer("200 OK", bulk(4, Errors=[["/w/o", "409 Conflict"]])), "not-deleted"),
        (answer("200 OK", json.dumps([1, 2]).encode()), "bad-result"),
        (answer("200 OK", b"\xff\xfe" * 50), "bad-result"),
        (answer("200 OK", bytes(1000)), "bad-result"),
        (answer("200 OK", b"Number Deleted: 4\n"), "bad-result"),
        (answer("200 OK", b"Number Deleted: many\nResponse Status: 200 OK\n"), "bad-result"),
        (answer("200 OK", b"<html><body>It works!</body></html>"), "bad-result"),
        (answer("200 OK", xml("DeleteResult", "")), "bad-result"),
        (answer("200 OK", xml("Error", "<Code>No</Code>")), "error-body"),
        (answer("404 Not Found"), "http-404"),
        (answer("413 Request Entity Too Large"), "http-413"),
        (answer("502 Bad Gateway", b"x" * 5000), "http-502"),
    ],
)
def test_a_delete_that_does_not_say_that_all_are_gone_is_a_failure(
    scripted: Make, bench: Make, deleted: bytes, error: str
) -> None:
    mixed = work(delete=1.0)
    engine = bench(scripted(answering(lambda _: deleted)), mixed, **of_api("swift"))
    engine.engine.open_window()
    engine.engine.add_worker(0, 1, 0)
    until(lambda: engine.progress["failed"] >= 2, "failures")
    engine.engine.close_window()
    tally = engine.snapshot()["by"]["delete"]
    assert set(engine.progress["errors"]) == set(tally["errors"]) == {error}
    assert (tally["count"], tally["latency"]) == (0, None)


def test_python_swiftclient_reads_it_from_the_null_target_and_nothing_is_left(
    null: Make, bench: Make
) -> None:
    served = null()
    client = swiftclient.Connection(
        authurl=f"{served.url}/auth/v1.0", user="test:tester", key="testing", retries=0
    )
    client.put_container("wb-w-0")
    reached = {**of_api("swift"), "token": client.get_auth()[1]}
    engine = bench(served, {**work(), "multipart": {**DYNAMIC, "at_once": 2}}, **reached)
    engine.start(1)
    until(lambda: engine.progress["done"] >= 2, "objects")
    engine.engine.stop(5.0)
    assert client.get_object("wb-w-0", NAMES[0])[1] == _native.content(SEED, SIZE, 0, SIZE)
    engine.engine.delete("written", 2)
    assert engine.finish()["errors"] == {}
    assert client.get_container("wb-w-0")[1] == []
    client.close()


def test_only_swift_has_them(bench: Make) -> None:
    with pytest.raises(ValueError, match="manifest: only Swift has dynamic large objects"):
        bench(Served(1), work())
