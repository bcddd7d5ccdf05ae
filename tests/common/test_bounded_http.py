"""Requests whose complete answer has one deadline."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from dripping import dripping
from weighbridge.common.bounded_http import connect, exchanged
from weighbridge.common.exchange import Wire, WrongAnswer, exchanging


class Echo(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def echo() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_connection_is_kept_for_the_next_request(echo: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", echo)
    ports = set()
    for body in (b"a" * 300_000, b"b"):
        response, found = exchanged(connection, 5.0, "PUT", "/", body, {}, 1_000_000)
        assert (response.status, found) == (200, body)
        ports.add(connection.sock.getsockname())
    connection.close()
    assert len(ports) == 1


@pytest.mark.parametrize(
    "begin", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n"]
)
def test_a_server_that_drips_its_answer_has_no_more_time_than_a_silent_one(begin: bytes) -> None:
    with dripping(begin) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        began_s = time.monotonic()
        with pytest.raises(TimeoutError, match=r"no complete answer within 0\.3 s"):
            exchanged(connection, 0.3, "GET", "/", None, {}, 1_000_000)
        assert time.monotonic() - began_s < 2
        assert connection.sock is None


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize("more", [{}, {"keystone": {"username": "u", "project_name": "p"}}])
def test_programs_on_client_hosts_give_up_an_auth_server_and_say_so(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, object], silent: bool
) -> None:
    monkeypatch.setattr(Wire.__init__, "__defaults__", (0.3,))
    with dripping(silent=silent) as port:
        endpoint = {"api": "swift", "url": f"http://127.0.0.1:{port}/v3", "user": "u", "key": "k"}
        with pytest.raises(WrongAnswer) as wrong, exchanging({**endpoint, **more}, "wb-check"):
            pass
    assert (wrong.value.operation, wrong.value.what) == ("auth", "no complete answer within 0.3 s")


def test_a_name_of_several_addresses_has_no_more_time_than_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """None of them answers: a backlog that is full."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        filling = [socket.socket() for _ in range(4)]
        for one in filling:
            one.settimeout(0.0)
            one.connect_ex(full.getsockname())
        address = (socket.AF_INET, socket.SOCK_STREAM, 6, "", full.getsockname())
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [address] * 4)
        began_s = time.monotonic()
        with pytest.raises(TimeoutError, match=r"no connection within 0\.4 s"):
            connect(http.client.HTTPConnection("store.example", 80), 0.4)
        assert time.monotonic() - began_s < 1
        for one in filling:
            one.close()
