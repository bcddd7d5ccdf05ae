"""A keep-alive HTTP connection that costs little CPU and never waits beyond a deadline.

Python's own client takes six times the CPU for a small request, which the store would lack, and its
timeouts begin again with every byte. Servers are not trusted: everything is bounded.
"""

from __future__ import annotations

import math
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final, Literal
from urllib.parse import SplitResult, urlsplit

from weighbridge.common import bounded_http
from weighbridge.common.endpoint import USUAL_PORTS, Endpoint
from weighbridge.common.exchange import Wire, answered, log_in
from weighbridge.drivers.engine._native import signed_headers

_SLICE_S: Final = 0.25
"""How often a request that waits looks whether it is to be given up."""
_LARGEST_HEAD_BYTES: Final = 65536
_LONGEST_CHUNK_LINE: Final = 1024
_READ_BYTES: Final = 262144
_MOST_INTERIM: Final = 8
"""Answers 1xx before the final one."""


class NoAnswer(Exception):
    """A request has no answer, or none that is HTTP; the words say why."""


@dataclass(frozen=True)
class Answer:
    """An HTTP answer; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    end: Literal["complete", "cut off", "longer"]
    """`cut off`: the body ended before its end; `longer`: it is not read beyond the limit."""


@dataclass(frozen=True)
class Place:
    """Where to connect to. `context`: None for plain HTTP."""

    host: str
    port: int
    context: ssl.SSLContext | None = None


class Connection:
    """A connection, made again after a failure; `give_up_s` returns when requests are given up."""

    def __init__(
        self, place: Place, timeout_s: float, give_up_s: Callable[[], float] = lambda: math.inf
    ) -> None:
        self._place = place
        self._timeout_s = timeout_s
        self._give_up_s = give_up_s
        self._deadline_s = 0.0
        self._socket: socket.socket | None = None
        self._rest = b""

    def ask(self, head: str, body: Iterable[bytes], *, body_bytes: int, most_bytes: int) -> Answer:
        """The answer to a request. `head` has no Content-Length and ends with the last header line.

        `most_bytes`: of a longer body no more is read. Raises NoAnswer.
        """
        self._deadline_s = time.monotonic() + self._timeout_s
        try:
            if self._socket is None:
                self._connect()
            length = f"Content-Length: {body_bytes}\r\n" if body_bytes or head[0] == "P" else ""
            pending = f"{head}{length}\r\n".encode()
            for piece in body:
                self._send(pending + piece)
                pending = b""
            if pending:
                self._send(pending)
            answer, keep = self._read(head.startswith("HEAD "), most_bytes)
        except (OSError, ValueError) as error:
            self.close()
            raise NoAnswer(bounded_http.in_words(error)) from error
        except NoAnswer:
            self.close()
            raise
        if not keep or answer.end != "complete":
            self.close()
        return answer

    def close(self) -> None:
        """Close the connection; the next request makes a new one."""
        if self._socket is not None:
            self._socket.close()
        self._socket, self._rest = None, b""

    def _connect(self) -> None:
        left_s = self._left_s()
        made = socket.create_connection((self._place.host, self._place.port), min(left_s, 10.0))
        self._socket = made
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._place.context is not None:
            self._socket = self._place.context.wrap_socket(made, server_hostname=self._place.host)
        self._socket.settimeout(_SLICE_S)

    def _left_s(self) -> float:
        left_s = min(self._deadline_s, self._give_up_s()) - time.monotonic()
        if left_s <= 0:
            raise NoAnswer(f"no complete answer within {self._timeout_s:g} s")
        return left_s

    def _send(self, data: bytes) -> None:
        assert self._socket is not None  # noqa: S101 - `ask` has connected
        left = memoryview(data)
        while left:
            try:
                left = left[self._socket.send(left) :]
            except TimeoutError:
                self._left_s()

    def _receive(self) -> bytes:
        assert self._socket is not None  # noqa: S101 - `ask` has connected
        while True:
            self._left_s()  # also a server that sends a byte from time to time is given up
            try:
                return self._socket.recv(_READ_BYTES)
            except TimeoutError:
                continue

    def _until(self, mark: bytes, most_bytes: int, what: str) -> bytes:
        while (at := self._rest.find(mark)) < 0:
            if len(self._rest) > most_bytes:
                raise NoAnswer(f"{what} of more than {most_bytes} bytes")
            data = self._receive()
            if not data:
                raise NoAnswer(
                    f"the connection ended {'within' if self._rest else 'before'} {what}"
                )
            self._rest += data
        found, self._rest = self._rest[:at], self._rest[at + len(mark) :]
        return found

    def _read(self, is_head: bool, most_bytes: int) -> tuple[Answer, bool]:
        for _ in range(_MOST_INTERIM):
            status, version, headers = _parsed(
                self._until(b"\r\n\r\n", _LARGEST_HEAD_BYTES, "an answer's head")
            )
            if status >= 200:
                break
        else:
            raise NoAnswer("nothing but interim answers")
        keep = version == b"HTTP/1.1" and headers.get("connection", "").lower() != "close"
        if is_head or status in (204, 304):
            return Answer(status, headers, b"", "complete"), keep
        if "chunked" in headers.get("transfer-encoding", "").lower():
            body, end = self._read_chunks(most_bytes)
        elif (length := headers.get("content-length")) is not None:
            body, end = self._read_length(_number(length, 10), most_bytes)
        else:
            body, end = self._read_rest(most_bytes)
            keep = False
        return Answer(status, headers, body, end), keep

    def _read_length(
        self, length: int, most_bytes: int
    ) -> tuple[bytes, Literal["complete", "cut off", "longer"]]:
        body = self._take(min(length, most_bytes))
        if len(body) < min(length, most_bytes):
            return body, "cut off"
        return body, "complete" if length <= most_bytes else "longer"

    def _read_rest(self, most_bytes: int) -> tuple[bytes, Literal["complete", "cut off", "longer"]]:
        body = self._take(most_bytes + 1)
        return body[:most_bytes], "complete" if len(body) <= most_bytes else "longer"

    def _read_chunks(
        self, most_bytes: int
    ) -> tuple[bytes, Literal["complete", "cut off", "longer"]]:
        parts: list[bytes] = []
        left = most_bytes
        while True:
            try:
                line = self._until(b"\r\n", _LONGEST_CHUNK_LINE, "a chunk's length")
            except NoAnswer:
                self._left_s()
                return b"".join(parts), "cut off"
            length = _number(line.partition(b";")[0].decode("latin-1"), 16)
            if length == 0:
                break
            parts.append(self._take(min(length, left)))
            if len(parts[-1]) < min(length, left):
                return b"".join(parts), "cut off"
            left -= len(parts[-1])
            if length > len(parts[-1]):
                return b"".join(parts), "longer"
            self._take(2)
        while self._until(b"\r\n", _LARGEST_HEAD_BYTES, "a trailer"):
            pass
        return b"".join(parts), "complete"

    def _take(self, count: int) -> bytes:
        if len(self._rest) >= count:
            taken, self._rest = self._rest[:count], self._rest[count:]
            return taken
        parts, have = [self._rest], len(self._rest)
        while have < count:
            data = self._receive()
            if not data:
                break
            parts.append(data)
            have += len(data)
        data = b"".join(parts)
        self._rest = data[count:]
        return data[:count]


def _parsed(head: bytes) -> tuple[int, bytes, dict[str, str]]:
    first, *lines = head.split(b"\r\n")
    version, _, rest = first.partition(b" ")
    if not version.startswith(b"HTTP/1.") or not rest[:3].isdigit():
        raise NoAnswer("an answer that is not HTTP")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    return int(rest[:3]), version, headers


def _number(text: str, base: int) -> int:
    """A length that a server says: digits, and nothing else that `int` would take."""
    text = text.strip()
    allowed = "0123456789abcdefABCDEF"[: 10 if base == 10 else None]
    if not text or len(text) > 16 or any(digit not in allowed for digit in text):
        raise NoAnswer("a length that is not a number")
    return int(text, base)


LARGEST_ANSWER_BYTES: Final = 2**20
"""Of what is no object and no listing."""


@dataclass(frozen=True)
class Access:
    """An endpoint after login: what its requests need."""

    api: str
    place: Place
    host: str
    """As the Host header says it."""
    base_path: str
    region: str
    keys: tuple[str, str, str] = field(repr=False)
    """S3: access key, secret key, session token. Swift: two empty texts, token."""
    secrets: tuple[str, ...] = field(repr=False)
    """What no text may repeat."""

    def lines(self, method: str, path: str, query: str) -> str:
        if self.api == "swift":
            return f"X-Auth-Token: {self.keys[2]}\r\n"
        return signed_headers(
            self.keys, self.region, self.host, method, path, query, int(time.time())
        )


def log_in_at(endpoint: Endpoint, timeout_s: float) -> Access:
    """Log in at a single endpoint. Raises WrongAnswer."""
    token = "" if endpoint.token is None else endpoint.token.get_secret_value()
    keys = (endpoint.user, endpoint.key.get_secret_value(), token)
    storage = urlsplit(endpoint.storage_url or endpoint.url)
    if endpoint.api == "swift":
        if endpoint.token is None:
            storage, token = _swift_token(endpoint, timeout_s)
        keys = ("", "", token)
    tls = storage.scheme == "https"
    with answered("auth"):  # whatever storage URL an auth service answers
        port = storage.port or USUAL_PORTS["https" if tls else "http"]
    context = ssl.create_default_context(cafile=endpoint.ca_file) if tls else None
    return Access(
        api=endpoint.api,
        place=Place(storage.hostname or "", port, context),
        host=storage.netloc,
        base_path=storage.path.rstrip("/"),
        region=endpoint.region,
        keys=keys,
        secrets=(*endpoint.secrets, token),
    )


def _swift_token(endpoint: Endpoint, timeout_s: float) -> tuple[SplitResult, str]:
    with ExitStack() as stack:

        def wire(place: SplitResult) -> Wire:
            made = Wire(place.scheme, place.netloc, endpoint.ca_file, timeout_s)
            stack.callback(made.close)
            with answered("connect"):
                made.connect()
            return made

        storage, token, _ = log_in(endpoint.model_dump(mode="json"), wire)
        return storage, token


class Requests:
    """Requests over one connection, for one thread; all raise NoAnswer without an answer."""

    def __init__(self, access: Access, timeout_s: float, give_up_s: Callable[[], float]) -> None:
        self.access = access
        self._connection = Connection(access.place, timeout_s, give_up_s)

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: str = "",
        body: Iterable[bytes] = (),
        body_bytes: int = 0,
        more: str = "",
        most_bytes: int = LARGEST_ANSWER_BYTES,
    ) -> Answer:
        """The answer to a request for `/container/object`. `more`: further header lines."""
        access = self.access
        path = access.base_path + path
        target = f"{path}?{query}" if query else path
        head = (
            f"{method} {target} HTTP/1.1\r\nHost: {access.host}\r\n"
            f"{access.lines(method, path, query)}{more}"
        )
        return self._connection.ask(head, body, body_bytes=body_bytes, most_bytes=most_bytes)

    def close(self) -> None:
        self._connection.close()


def logged_in(endpoint: Endpoint, timeout_s: float) -> Iterator[Access]:
    """Each endpoint of several, after login. Raises WrongAnswer."""
    for one in endpoint.each():
        yield log_in_at(one, timeout_s)
