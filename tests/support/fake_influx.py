"""For tests: an InfluxDB write API on loopback that records requests and sends scripted replies."""

from __future__ import annotations

import gzip
import re
import socket
import ssl
import threading
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Self
from urllib.parse import parse_qsl, urlsplit

from tests.drivers.conftest import NOW, serving
from tests.drivers.good_answers import answer


@dataclass(frozen=True)
class InfluxReply:
    """One reply. `how`: in full, `hang` until the server stops, or `torn` in the status line."""

    status: int = 204
    body: str = ""
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
        self._listening = ExitStack()
        self._port = 0

    @property
    def url(self) -> str:
        """Its address, also while it is stopped."""
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    def up(self) -> None:
        """Listen, always on the same port."""
        self.ended.clear()
        place = ("127.0.0.1", self._port)
        self._port = self._listening.enter_context(serving(self._reply, self._tls, place)).port

    def down(self) -> None:
        """Refuse new connections and close the open ones."""
        self.ended.set()
        self._listening.close()

    def wait_for(self, writes: int) -> bool:
        """Wait for this many writes; whether they arrived in time."""
        with self.asked:
            return self.asked.wait_for(lambda: len(self.writes) >= writes, timeout=20)

    def took(self, write: InfluxWrite) -> InfluxReply:
        """Record a request and return its reply."""
        with self.asked:
            reply = self.answers.popleft() if self.answers else self.otherwise
            self.writes.append(write)
            if reply.status == 204 and reply.how == "answer":
                self.taken += write.lines
            self.asked.notify_all()
        return reply

    def _reply(self, connection: socket.socket, head: bytes) -> bool:
        text, body = head.decode(), NOW.body
        if re.search("(?im)^content-encoding: gzip", text):
            body = gzip.decompress(body)
        parts = urlsplit(text.split(" ")[1])
        token = re.search(r"(?im)^authorization: (.*)\r$", text)
        lines = body.decode().split("\n")
        reply = self.took(
            InfluxWrite(parts.path, dict(parse_qsl(parts.query)), token and token[1], lines)
        )
        if reply.how == "hang":
            self.ended.wait()
        elif reply.how == "torn":
            connection.sendall(b"HTTP/1.1 20")
        else:
            fields = [f"{name}: {value}" for name, value in reply.fields]
            status = f"{reply.status} {HTTPStatus(reply.status).phrase}"
            sent = answer(status, reply.body.encode(), *fields)
            if reply.status == 204:
                sent = sent.replace(b"Content-Length: 0\r\n", b"")
            connection.sendall(sent)
        return reply.how == "answer"
