"""HTTP as good and as hostile servers speak it, over our own small client."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from weighbridge.drivers.survival.connection import Answer, Connection, NoAnswer, Place

Serve = Callable[..., Any]


def ask(served: Any, most_bytes: int = 1000, **given: Any) -> Answer:
    connection = Connection(Place("127.0.0.1", served.port), 2.0)
    try:
        return connection.ask("GET / HTTP/1.1\r\n", (), body_bytes=0, most_bytes=most_bytes)
    finally:
        connection.close()


def sending(data: bytes, *, keep: bool = False) -> Callable[[socket.socket, bytes], bool]:
    def answer(connection: socket.socket, _: bytes) -> bool:
        connection.sendall(data)
        if not keep:
            connection.shutdown(socket.SHUT_RDWR)
        return keep

    return answer


@pytest.mark.parametrize(
    ("raw", "body", "end"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"hello", "complete"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", b"hello", "cut off"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + b"x" * 2000, b"x" * 1000, "longer"),
        (b"HTTP/1.1 200 OK\r\n\r\nhello", b"hello", "complete"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 2000, b"x" * 1000, "longer"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\n\r\n", b"", "complete"),
    ],
)
def test_a_body_is_complete_or_cut_off_or_longer_than_the_limit(
    scripted: Serve, raw: bytes, body: bytes, end: str
) -> None:
    found = ask(scripted(sending(raw)))
    assert (found.body, found.end) == (body, end)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("chunks", "body", "end"),
    [
        (b"5;x=y\r\nhello\r\n1\r\n!\r\n0\r\nTrailer: a\r\n\r\n", b"hello!", "complete"),
        (b"5\r\nhello\r\n", b"hello", "cut off"),
        (b"5\r\nhel", b"hel", "cut off"),
        (b"3E8\r\n" + b"x" * 1000 + b"\r\n0\r\n\r\n", b"x" * 1000, "complete"),
        (b"300\r\n" + b"x" * 768 + b"\r\n300\r\n" + b"x" * 768, b"x" * 1000, "longer"),
        (b"3E9\r\n" + b"x" * 1001 + b"\r\n0\r\n\r\n", b"x" * 1000, "longer"),
    ],
)
def test_chunks_are_put_together_up_to_the_limit(
    scripted: Serve, chunks: bytes, body: bytes, end: str
) -> None:
    found = ask(scripted(sending(CHUNKED + chunks)))
    assert (found.body, found.end) == (body, end)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 abc\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", "not a number"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1_0\r\n\r\n", "not a number"),
        (CHUNKED + b"0x5\r\nhello\r\n", "not a number"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000, "head of more than 65536 bytes"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 20, "nothing but interim answers"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", "ended within an answer's head"),
        (b"", "ended before an answer's head"),
    ],
)
def test_what_is_no_answer_is_none_and_says_why(scripted: Serve, raw: bytes, why: str) -> None:
    with pytest.raises(NoAnswer, match=why):
        ask(scripted(sending(raw)))


def test_an_endless_line_before_a_chunk_is_not_read(scripted: Serve) -> None:
    found = ask(scripted(sending(CHUNKED + b"5" * 200_000)))
    assert (found.body, found.end) == (b"", "cut off")


def test_a_server_that_sends_a_byte_from_time_to_time_is_given_up(scripted: Serve) -> None:
    def drip(connection: socket.socket, _: bytes) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n")
        for _ in range(100):
            connection.sendall(b"x")
            time.sleep(0.05)
        return False

    begun_s = time.monotonic()
    with pytest.raises(NoAnswer, match="no complete answer within 2 s"):
        ask(scripted(drip))
    assert time.monotonic() - begun_s < 4


def test_a_request_is_given_up_when_all_are(scripted: Serve) -> None:
    served = scripted(lambda connection, head: bool(connection.recv(1)))
    end_s = time.monotonic() + 0.3
    connection = Connection(Place("127.0.0.1", served.port), 600.0, lambda: end_s)
    with pytest.raises(NoAnswer):
        connection.ask("GET / HTTP/1.1\r\n", (), body_bytes=0, most_bytes=10)


@pytest.mark.parametrize("header", [b"", b"Connection: close\r\n"])
def test_a_connection_is_kept_unless_the_server_closes_it(scripted: Serve, header: bytes) -> None:
    served = scripted(
        sending(b"HTTP/1.1 200 OK\r\n" + header + b"Content-Length: 2\r\n\r\nok", keep=True)
    )
    connection = Connection(Place("127.0.0.1", served.port), 5.0)
    for _ in range(3):
        connection.ask("GET / HTTP/1.1\r\n", (), body_bytes=0, most_bytes=10)
    connection.close()
    assert served.accepted == (3 if header else 1)


def test_a_body_is_sent_in_pieces_with_its_length(scripted: Serve) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"a" * 600_000
        yield b"b" * 400_000

    served = scripted(sending(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", keep=True))
    connection = Connection(Place("127.0.0.1", served.port), 5.0)
    connection.ask("PUT /x HTTP/1.1\r\n", pieces(), body_bytes=1_000_000, most_bytes=10)
    connection.ask("PUT /y HTTP/1.1\r\n", (), body_bytes=0, most_bytes=10)
    connection.close()
    assert served.bodies == [b"a" * 600_000 + b"b" * 400_000, b""]
    assert [b"Content-Length: 0" in head for head in served.asked] == [False, True]
