"""Servers in threads, and an HTTP server of functions, with something between that may lie."""

from __future__ import annotations

import http.server
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from email import message_from_bytes
from typing import TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

Served = TypeVar("Served", bound=socketserver.BaseServer)


@contextmanager
def served(server: Served) -> Iterator[Served]:
    """A server that answers in a thread, until the end."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@dataclass(frozen=True)
class Request:
    """A request as it came; header names are in lower case."""

    method: str
    target: str
    """Path and query as they were sent."""
    headers: Mapping[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return unquote(urlsplit(self.target).path)

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))

    @property
    def parts(self) -> tuple[str, str]:
        bucket, _, key = self.path.lstrip("/").partition("/")
        return bucket, key

    @property
    def form(self) -> dict[str, bytes]:
        head = f"Content-Type: {self.headers['content-type']}\r\n\r\n".encode()
        fields: dict[str, bytes] = {}
        for part in message_from_bytes(head + self.body).get_payload():
            name = part.get_param("name", header="content-disposition")  # type: ignore[union-attr]
            fields[str(name)] = part.get_payload(decode=True)  # type: ignore[union-attr,assignment]
        return fields

    def without(self, *names: str) -> Request:
        """The request without headers whose names begin so."""
        kept = {name: value for name, value in self.headers.items() if not name.startswith(names)}
        return replace(self, headers=kept)


@dataclass(frozen=True)
class Response:
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


Respond = Callable[[Request], Response]
Between = Callable[[Request, Respond], Response]
"""What is between the client and the store: it may change requests and responses."""


class Closed(Exception):
    """Raised by what is between to close the connection without a response."""


def honest(request: Request, respond: Respond) -> Response:
    return respond(request)


class Server:
    """A server on loopback; `between` can be replaced at any time."""

    def __init__(self, respond: Respond) -> None:
        self.between: Between = honest
        self.released = threading.Event()
        """Set at the end, so that nothing waits for ever."""
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002

            def serve(self) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Request(self.command, self.path, headers, self.body(headers))
                try:
                    response = outer.between(request, respond)
                except Closed:
                    self.close_connection = True
                    return
                self.send_response(response.status)
                given = {"Content-Length": str(len(response.body)), **response.headers}
                for name, value in given.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(response.body)

            def body(self, headers: Mapping[str, str]) -> bytes:
                if headers.get("transfer-encoding") != "chunked":
                    return self.rfile.read(int(headers.get("content-length", 0)))
                found = b""
                while size := int(self.rfile.readline(), 16):
                    found += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return found

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_OPTIONS = do_COPY = serve  # noqa: N815

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None: ...  # clients may close in the middle

        self._server = Quiet(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"

    @contextmanager
    def serving(self) -> Iterator[Server]:
        with served(self._server):
            try:
                yield self
            finally:
                self.released.set()
