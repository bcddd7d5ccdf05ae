"""HTTP with one deadline: Python's timeouts begin again with every byte that a server drips."""

from __future__ import annotations

import http.client
import io
import socket
import time
from collections.abc import Mapping
from typing import Any, Final


def read_limited(answer: http.client.HTTPResponse, most_bytes: int) -> bytes:
    """A response's body. Raises HTTPException if it ends early or beyond `most_bytes`; OSError."""
    if answer.length is not None and answer.length > most_bytes:
        raise http.client.HTTPException(
            f"an answer of {answer.length} bytes: more than {most_bytes} are not read"
        )
    if answer.length is not None:
        return answer.read()  # given a size, it would not raise for a body that ends early
    body = answer.read(most_bytes + 1)
    if len(body) > most_bytes:
        raise http.client.HTTPException(
            f"an answer of more than {most_bytes} bytes: more are not read"
        )
    return body


_LEAST_S: Final = 0.001
"""A timeout of 0 would mean not to wait at all."""


class _UntilDeadline(io.RawIOBase):
    """What a socket receives before a moment of the monotonic clock."""

    def __init__(self, sock: socket.socket, deadline_s: float) -> None:
        self._sock, self._deadline_s = sock, deadline_s
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(_left_s(self._deadline_s))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def exchanged(
    connection: http.client.HTTPConnection,
    within_s: float,
    method: str,
    path: str,
    body: bytes | None,
    headers: Mapping[str, str],
    most_bytes: int,
) -> tuple[http.client.HTTPResponse, bytes]:
    """The response to a request and its complete body, connecting first where that is needed.

    Raises TimeoutError `within_s` after the call, whatever has arrived by then; HTTPException, also
    for a longer body than `most_bytes`; OSError; ValueError for what HTTP cannot carry.
    """
    deadline_s = time.monotonic() + within_s

    class Response(http.client.HTTPResponse):
        def __init__(self, sock: socket.socket, *of: Any, **more: Any) -> None:
            super().__init__(sock, *of, **more)
            self.fp.close()
            self.fp = io.BufferedReader(_UntilDeadline(sock, deadline_s))

    connection.response_class = Response
    try:
        # It connects by itself, after it has refused what HTTP cannot carry.
        if connection.sock is None:
            connection.timeout = _each_s(connection, within_s)
        else:
            connection.sock.settimeout(_left_s(deadline_s))
        connection.request(method, path, body, dict(headers))
        response = connection.getresponse()
        return response, read_limited(response, most_bytes)
    except TimeoutError:
        what = "connection" if connection.sock is None else "complete answer"
        # What is still to come must not be taken for the next answer.
        connection.close()
        raise TimeoutError(f"no {what} within {within_s:.3g} s") from None


def connect(connection: http.client.HTTPConnection, within_s: float) -> None:
    """Connect now. Raises OSError, TimeoutError after that time."""
    try:
        connection.timeout = _each_s(connection, within_s)
        connection.connect()
    except TimeoutError:
        raise TimeoutError(f"no connection within {within_s:.3g} s") from None


def _each_s(connection: http.client.HTTPConnection, within_s: float) -> float:
    """An equal part of the time for each address of its name. Raises OSError."""
    found = socket.getaddrinfo(connection.host, connection.port, type=socket.SOCK_STREAM)
    return max(within_s, _LEAST_S) / len(found)


def _left_s(deadline_s: float) -> float:
    left_s = deadline_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s
