"""How the engine counts a target's faults: a failure is never a success and never a latency."""

from __future__ import annotations

import hashlib
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from pydantic import SecretStr

from tests.drivers.conftest import Bench, Served, always, shape, until
from tests.drivers.good_answers import BODY, of_api
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import DriverError
from weighbridge.common.exchange import HttpAnswer, WrongAnswer
from weighbridge.drivers.locust import account
from weighbridge.drivers.locust.account import Account
from weighbridge.gateways.verify import listed

Make = Callable[..., Any]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def failing(engine: Bench, times: int = 3) -> tuple[dict[str, Any], dict[str, int]]:
    """Fail this often inside the window: the tally of reads, and the errors since the start."""
    return engine.alone("failed", times)["by"]["read"], engine.progress["errors"]


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (b"HTTP/1.1 503 Slow Down\r\nContent-Length: 4\r\n\r\nbusy", "http-503"),
        (
            b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
            "http-404",
        ),
        (b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", "http-302"),
        (b"HTTP/1.1 206 Partial\r\nContent-Length: 1000\r\n\r\n" + BODY, "http-206"),
        (b"", "reset"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", "reset"),
        (OK + BODY[:999], "short-body"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" + BODY[:999], "short-body"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + BODY[:500], "short-body"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n" + BODY[:10], "short-body"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n" + BODY + b"x", "wrong-content"),
        (OK + BODY[:-1] + bytes([BODY[-1] ^ 1]), "wrong-content"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "protocol"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", "protocol"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "protocol"),
        (b"HTTP/1.1 200 OK\r\nX-Endless: " + b"y" * 100_000, "protocol"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_bad_answer_is_counted_by_its_class(
    scripted: Make, bench: Make, sent: bytes, error: str
) -> None:
    # After a status the engine keeps the connection: it must not find it closed.
    served = scripted(always(sent, keep=error.startswith("http-")))
    tally, errors = failing(bench(served, verify=True))
    assert set(errors) == {error}
    assert set(tally["errors"]) == {error}
    assert (tally["count"], tally["bytes"], tally["latency"], tally["max_us"]) == (0, 0, None, None)


KEYS = b"".join(b"<Contents><Key>k%d</Key></Contents>" % index for index in range(10))
NAMED = [b'{"name":"k%d"}' % index for index in range(10)]
LISTING = b"<ListBucketResult>" + KEYS + b"</ListBucketResult>"
INTERNAL = b'<?xml version="1.0"?><Error><Code>InternalError</Code></Error>'
MD5 = hashlib.md5(BODY).hexdigest().encode()


def succeeded(body: bytes, headers: bytes = b"") -> bytes:
    return b"HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n" % (headers, len(body)) + body


@pytest.mark.parametrize(
    ("operation", "sent", "error"),
    [
        ("write", succeeded(b"", b'ETag: "%s"\r\n' % MD5), None),
        ("write", succeeded(b"", b"Etag: %s\r\n" % MD5.upper()), None),
        ("write", succeeded(b"", b'ETag: "%s-2"\r\n' % MD5), None),
        ("write", succeeded(b""), None),
        ("write", succeeded(b"", b'ETag: "%s"\r\n' % MD5[::-1]), "wrong-etag"),
        (
            "write",
            succeeded(b"", b'ETag: "%s"\r\nx-amz-server-side-encryption: aws:kms\r\n' % MD5[::-1]),
            None,
        ),
        ("write", succeeded(INTERNAL, b'ETag: "%s"\r\n' % MD5), "error-body"),
        ("delete", succeeded(INTERNAL), "error-body"),
        ("read", succeeded(INTERNAL), "error-body"),
        ("list", succeeded(INTERNAL), "error-body"),
        ("list", succeeded(LISTING), None),
        ("list", succeeded(LISTING.replace(b"</Contents>", b"", 1)), "bad-list"),
        ("list", succeeded(LISTING.replace(b"k0", b"k1")), "bad-list"),
        ("list", succeeded(b"<ListBucketResult></ListBucketResult>"), "bad-list"),
        ("list", succeeded(b"k\n" * 10), "bad-list"),
        ("head", b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", None),
        ("head", b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n", "wrong-length"),
        ("head", b"HTTP/1.1 200 OK\r\n\r\n", "wrong-length"),
    ],
)
def test_a_success_must_have_the_expected_content(
    scripted: Make, bench: Make, operation: str, sent: bytes, error: str | None
) -> None:
    engine = bench(scripted(always(sent)), shape(operations={operation: 1.0}))
    engine.alone("failed" if error else "done", 3)
    assert set(engine.progress["errors"]) == ({error} if error else set())


@pytest.mark.parametrize(
    ("body", "kind", "error"),
    [
        (b"0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n", b"text/plain; charset=utf-8", None),
        (b"[%s]" % b",".join(NAMED), b"application/json; charset=utf-8", None),
        (b"0\n1\n2\n3\n4\n5\n6\n7\n8\n", b"text/plain", "bad-list"),
        (b"[{}]", b"application/json", "bad-list"),
    ],
)
def test_a_listing_of_swift_is_read_in_its_format(
    scripted: Make, bench: Make, body: bytes, kind: bytes, error: str | None
) -> None:
    served = scripted(always(succeeded(body, b"Content-Type: %s\r\n" % kind)))
    engine = bench(served, shape(operations={"list": 1.0}), **of_api("swift"))
    engine.alone("failed" if error else "done", 3)
    assert set(engine.progress["errors"]) == ({error} if error else set())


def test_a_seeded_share_of_reads_is_verified(scripted: Make, bench: Make) -> None:
    wrong = always(OK + BODY[:-1] + bytes([BODY[-1] ^ 1]))

    def found(share: float) -> tuple[int, int]:
        engine = bench(scripted(wrong), shape(verify=share))
        engine.engine.add_worker(0, 1, 0)
        until(lambda: engine.progress["done"] + engine.progress["failed"] >= 600, "reads")
        engine.engine.stop(5.0)
        assert set(engine.progress["errors"]) <= {"wrong-content"}
        return engine.progress["failed"], engine.progress["done"] + engine.progress["failed"]

    assert found(0)[0] == 0
    failed, asked = found(0.1)
    assert 0.05 < failed / asked < 0.16


@pytest.mark.parametrize(
    "parts",
    [
        [OK + BODY],
        [OK, BODY[:1], BODY[1:600], BODY[600:]],
        [bytes([byte]) for byte in OK] + [BODY],
        [b"HTTP/1.1 100 Continue\r\n\r\n", OK + BODY],
        [b"HTTP/1.1 100 Continue\r\n\r\n" + OK[:20], OK[20:] + BODY],
        [
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1f4\r\n",
            BODY[:500],
            b"\r\n1f4;x=y\r\n" + BODY[500:] + b"\r\n0\r\n\r\n",
        ],
    ],
)
def test_a_good_answer_is_understood_in_any_pieces(
    scripted: Make, bench: Make, parts: list[bytes]
) -> None:
    def answer(connection: socket.socket, head: bytes) -> bool:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in parts:
            connection.sendall(part)
            if len(parts) > 1:
                time.sleep(0.0005)  # so that parts arrive separately
        return True

    for verify in (True, False):
        engine = bench(scripted(answer), verify=verify)
        engine.start(1)
        tally = engine.window(lambda since: since["done"] >= 20)["by"]["read"]
        assert engine.progress["errors"] == {}
        assert tally["bytes"] == 1000 * tally["count"]


@pytest.mark.parametrize(
    "sent",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\n",
    ],
)
def test_a_target_that_closes_after_its_answer_is_connected_to_again_and_that_is_counted(
    scripted: Make, bench: Make, sent: bytes
) -> None:
    engine = bench(scripted(always(sent + BODY, keep=False)), verify=True)
    engine.start(2)
    snapshot = engine.window(lambda since: since["done"] >= 50)
    assert engine.progress["errors"] == {}
    # At its edges the window cuts through the requests of each of the two workers.
    assert abs(snapshot["connections"] - snapshot["by"]["read"]["count"]) <= 2


def test_a_connection_that_is_closed_while_idle_is_not_an_error(
    scripted: Make, bench: Make
) -> None:
    late = 0

    def answer(connection: socket.socket, head: bytes) -> bool:
        nonlocal late
        connection.sendall(OK + BODY)
        connection.shutdown(socket.SHUT_WR)
        late += bool(connection.recv(1))  # on a busy machine: sent before the end was seen
        return False

    # 0.1 s from one request to the next.
    served: Served = scripted(answer)
    engine = bench(served, shape(rate_per_s=10.0))
    engine.start(1)
    engine.window(lambda since: since["done"] >= 20)
    engine.engine.stop(5.0)
    until(lambda: sum(engine.progress["errors"].values()) <= late, "only late ones fail")
    assert set(engine.progress["errors"]) <= {"reset"}
    assert len(served.asked) - late >= 5


def test_a_connection_reset_during_a_request_is_a_reset(scripted: Make, bench: Make) -> None:
    def answer(connection: socket.socket, head: bytes) -> bool:
        reset(connection)
        return False

    assert set(failing(bench(scripted(answer)))[1]) == {"reset"}


def test_an_answer_that_does_not_come_is_a_timeout(scripted: Make, bench: Make) -> None:
    done = threading.Event()

    def answer(connection: socket.socket, head: bytes) -> bool:
        connection.sendall(OK + BODY[:10])
        done.wait(20)
        return False

    started_s = time.monotonic()
    tally, errors = failing(bench(scripted(answer), request_timeout_s=0.2), times=2)
    passed_s = time.monotonic() - started_s
    done.set()
    # On a busy machine there may be a third.
    assert set(errors) == set(tally["errors"]) == {"timeout"}
    assert tally["errors"]["timeout"] >= 2
    assert 0.4 <= passed_s < 5


def test_an_early_refusal_of_a_large_write_is_its_status_not_a_reset(
    scripted: Make, bench: Make
) -> None:
    closed = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            # Ends when the listener is shut down, or the engine hangs up during a body.
            while not closed.is_set():
                with suppress(OSError), listener.accept()[0] as connection:
                    connection.recv(2000)
                    connection.sendall(b"HTTP/1.1 507 Full\r\nContent-Length: 4\r\n\r\nfull")
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(1 << 20):
                        pass

        thread = threading.Thread(target=refuse, daemon=True)
        thread.start()
        engine = bench(
            Served(listener.getsockname()[1]), shape(size=50_000_000, operations={"write": 1.0})
        )
        engine.engine.add_worker(0, 1, 0)
        until(lambda: engine.progress["failed"] >= 2, "refusals")
        assert set(engine.progress["errors"]) == {"http-507"}
        assert "full" in engine.progress["last_error"]
        engine.engine.stop(0.0)
        closed.set()
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def test_stop_returns_how_many_requests_it_cut_off(scripted: Make, bench: Make) -> None:
    done = threading.Event()

    def answer(connection: socket.socket, head: bytes) -> bool:
        done.wait(20)
        return False

    served = scripted(answer)
    engine = bench(served)
    for index in range(3):
        engine.engine.add_worker(index, 3, 0)
    until(lambda: len(served.asked) == 3, "outstanding requests")
    assert engine.engine.stop(0.2) == 3
    assert engine.progress["running"] == 0
    assert engine.engine.stop(0.2) == 0
    done.set()


def test_what_a_failed_cleanup_left_is_deleted_by_the_next(scripted: Make, bench: Make) -> None:
    refusing = threading.Event()
    deleted = set()

    def answer(connection: socket.socket, head: bytes) -> bool:
        status = 200
        if head.startswith(b"DELETE"):
            status = 503 if refusing.is_set() else 204
            if not refusing.is_set():
                deleted.add(head.split()[1])
        connection.sendall(b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % status)
        return True

    served = scripted(answer)
    engine = bench(served, shape(operations={"write": 1.0}))
    engine.start(2)
    engine.engine.stop(5.0)
    written = {head.split()[1] for head in served.asked}
    refusing.set()
    engine.engine.delete("written", 2)
    engine.finish()
    refusing.clear()
    engine.engine.delete("written", 2)
    engine.finish()
    assert deleted == written


ENTITY = (
    b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
    b"<ListBucketResult><Contents><Key>&e;</Key></Contents></ListBucketResult>"
)
DEEP = b"[" * 200_000
LONG = b"x" * 1001


def listing_at(served: Served) -> list[str]:
    target = Endpoint(api="s3", url=served.url, user="u", key=SecretStr("k"))
    return list(Account(target, 5).objects("b"))


def test_a_list_with_entities_or_endlessly_nested_is_refused_by_its_readers(scripted: Make) -> None:
    with pytest.raises(DriverError, match="a document type or an entity"):
        listing_at(scripted(always(succeeded(ENTITY))))
    with pytest.raises(WrongAnswer, match="a document type or an entity"):
        listed(HttpAnswer(200, {}, ENTITY), "s3")
    with pytest.raises(WrongAnswer, match="cannot be read"):
        listed(HttpAnswer(200, {}, DEEP), "swift")


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (succeeded(LONG), "an answer of 1001 bytes: more than 1000 are not read"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + LONG, "an answer of more than 1000 bytes"),
        (succeeded(LONG + b"x")[:-1], "1002 bytes"),
        (succeeded(b"<ListBucketResult/>")[:-1], "what it sends ends early"),
    ],
    ids=["complete", "without length", "cut off", "short and cut off"],
)
def test_an_answer_is_read_to_its_end_but_not_beyond_the_limit(
    scripted: Make, monkeypatch: pytest.MonkeyPatch, sent: bytes, why: str
) -> None:
    monkeypatch.setattr(account, "LARGEST_ANSWER_BYTES", 1000)
    with pytest.raises(DriverError, match=why):
        listing_at(scripted(always(sent, keep=False)))
