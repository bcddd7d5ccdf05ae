"""HTTP over raw sockets, so that every byte is as it was said; nothing of the suite is imported."""

from __future__ import annotations

import socket
from typing import Any

WITHIN_S = 20.0


class Answer:
    """An answer: `whole` is whether its body came to its end, `interim` the statuses before it."""

    def __init__(self, interim: list[int], status: int, fields: list[tuple[str, str]]) -> None:
        self.interim, self.status, self.fields = interim, status, fields
        self.by_name = {name.lower(): value for name, value in fields}
        self.body = b""
        self.whole = True


class Wire:
    """A connection; requests are sent as they are given."""

    def __init__(self, place: tuple[str, int]) -> None:
        self.socket = socket.create_connection(place, timeout=WITHIN_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def send(
        self,
        method: str,
        target: str,
        fields: dict[str, str] | list[tuple[str, str]] | None = None,
        body: bytes = b"",
    ) -> None:
        pairs = list(fields.items() if isinstance(fields, dict) else fields or ())
        if not any(name.lower() == "host" for name, _ in pairs):
            pairs.insert(0, ("Host", "b.s3.example.com"))
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in pairs)]
        self.socket.sendall("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)

    def more(self) -> None:
        got = self.socket.recv(1 << 18)
        if not got:
            raise EOFError
        self.buffer += got

    def upto(self, mark: bytes) -> bytes:
        while mark not in self.buffer:
            self.more()
        found, self.buffer = self.buffer.split(mark, 1)
        return found

    def exactly(self, length: int) -> bytes:
        while len(self.buffer) < length:
            self.more()
        found, self.buffer = self.buffer[:length], self.buffer[length:]
        return found

    def head(self) -> Answer:
        interim: list[int] = []
        while True:
            first, *lines = self.upto(b"\r\n\r\n").decode("latin-1").split("\r\n")
            status = int(first.split(" ")[1])
            if status >= 200:
                fields = [
                    (name, value.strip())
                    for name, _, value in (line.partition(":") for line in lines)
                ]
                return Answer(interim, status, fields)
            interim.append(status)

    def answer(self, method: str = "GET") -> Answer:
        answer = self.head()
        if method == "HEAD" or answer.status in {204, 304}:
            return answer
        try:
            if answer.by_name.get("transfer-encoding", "").lower() == "chunked":
                while length := int(self.upto(b"\r\n").split(b";")[0], 16):
                    answer.body += self.exactly(length)
                    self.upto(b"\r\n")
                self.upto(b"\r\n")
            else:
                answer.body = self.exactly(int(answer.by_name["content-length"]))
        except (EOFError, ConnectionResetError):
            answer.body += self.buffer
            answer.whole = False
        return answer

    def ask(self, method: str, target: str, fields: Any = None, body: bytes = b"") -> Answer:
        pairs = list(fields.items() if isinstance(fields, dict) else fields or ())
        if body or method in {"PUT", "POST"}:
            pairs.append(("Content-Length", str(len(body))))
        self.send(method, target, pairs, body)
        return self.answer(method)

    def close(self) -> None:
        self.socket.close()


def once(
    place: tuple[str, int], method: str, target: str, fields: Any = None, body: bytes = b""
) -> Answer:
    """One request on a connection of its own."""
    wire = Wire(place)
    try:
        return wire.ask(method, target, fields, body)
    finally:
        wire.close()


def chunks(body: bytes, size: int = 65536) -> bytes:
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
