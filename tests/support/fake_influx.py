"""For tests: an InfluxDB write API on loopback that records requests and sends scripted replies."""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class InfluxReply:
    """One reply. `how`: in full, `hang` until the server stops, `torn` in the status line, a field
    that `drip`s, or a body that is `endless`.
    """

    status: int = 204
    body: str | bytes = ""
    fields: tuple[tuple[str, str], ...] = ()
    how: str = "answer"


@dataclass(frozen=True)
class InfluxWrite:
    """One request as received."""

    path: str
    query: dict[str, str]
    token: str | None
    lines: list[str] = field(default_factory=list)


class FakeInflux:
    """A context manager that listens; it sends the `answers` in turn, and then `otherwise`."""

    def __init__(
        self,
        *answers: InfluxReply,
        otherwise: InfluxReply | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.answers = deque(answers)
        self.otherwise = otherwise or InfluxReply()
        self.writes: list[InfluxWrite] = []
        self.taken: list[str] = []
        """The lines of all writes that got a 204, in order."""
        self.asked = threading.Condition()
        self.ended = threading.Event()
        self._tls = tls
        self._server: _Server | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    def up(self) -> None:
        self.ended.clear()
        self._server = _Server(("127.0.0.1", self._port), self)
        self._port = int(self._server.server_address[1])
        if self._tls is not None:
            self._server.socket = self._tls.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()

    def down(self) -> None:
        if self._server is not None:
            self.ended.set()
            self._server.shutdown()
            self._server.server_close()
            self._server.cut()
            self._server = None

    def wait_for(self, writes: int) -> bool:
        """Wait for this many writes; whether they arrived in time."""
        with self.asked:
            return self.asked.wait_for(lambda: len(self.writes) >= writes, timeout=20)

    def took(self, write: InfluxWrite) -> InfluxReply:
        with self.asked:
            answer = self.answers.popleft() if self.answers else self.otherwise
            self.writes.append(write)
            if answer.status == 204 and answer.how == "answer":
                self.taken += write.lines
            self.asked.notify_all()
        return answer


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], fake: FakeInflux) -> None:
        super().__init__(address, _Handler)
        self.fake = fake
        self.open: list[socket.socket] = []

    def process_request(self, request: Any, client_address: Any) -> None:
        self.open.append(request)
        super().process_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing: broken connections are intended here."""

    def cut(self) -> None:
        for one in self.open:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # the client has closed it


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        parts = urlsplit(self.path)
        write = InfluxWrite(
            parts.path,
            dict(parse_qsl(parts.query)),
            self.headers.get("Authorization"),
            body.decode().split("\n"),
        )
        answer = self.server.fake.took(write)
        if answer.how == "hang":
            self.server.fake.ended.wait()
            self.close_connection = True
        elif answer.how == "torn":
            self.wfile.write(b"HTTP/1.1 20")
            self.close_connection = True
        elif answer.how in ("drip", "endless"):
            self.wfile.write(f"HTTP/1.1 {answer.status} X\r\nTransfer-Encoding: ".encode())
            self.wfile.write(b"chunked\r\n\r\n" if answer.how == "endless" else b"x")
            chunk = b"1000\r\n%b\r\n" % bytes(4096)
            while not self.server.fake.ended.wait(0.05 if answer.how == "drip" else 0):
                self.wfile.write(b"x" if answer.how == "drip" else chunk)
            self.close_connection = True
        else:
            self.send_response(answer.status)
            for name, value in answer.fields:
                self.send_header(name, value)
            body = answer.body if isinstance(answer.body, bytes) else answer.body.encode()
            if answer.status != 204:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Log nothing."""
