"""An HTTP origin that does what its paths say, as a program on gateway hosts of any release.

Arguments: address and port. One thread per connection and plain sockets, so that every byte is
reported as it arrived.

/echo...        what arrived, as JSON: method, target, fields in order, bytes of the body and their
                MD5, and whether it was complete
/status/N       that status, with fields and a body
/fields         a response with fields that are easily changed on the way
/reject         403 at once, and the end, without reading the body
/held           one piece; the other when /release was requested
/count          reads a body, and reports its length so far under /counted
/broken?WAY     a quarter of a response, and the end; WAY is length or chunked
/upload/NAME    reads a body; /uploads reports whether it was complete or cut
"""

from __future__ import annotations

import hashlib
import json
import socket
import sys
import threading
from collections.abc import Iterator

released = threading.Event()
counted = [0]
uploads: dict[str, str] = {}


class Request:
    def __init__(self, wire: socket.socket) -> None:
        self.wire = wire
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            self.more()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        first, *lines = head.decode("latin-1").split("\r\n")
        self.method, self.target, self.version = first.split(" ")
        self.fields = [
            (name, value.strip()) for name, _, value in (line.partition(":") for line in lines)
        ]
        self.by_name = {name.lower(): value for name, value in self.fields}

    def more(self) -> None:
        got = self.wire.recv(65536)
        if not got:
            raise EOFError
        self.buffer += got

    def line(self) -> bytes:
        while b"\r\n" not in self.buffer:
            self.more()
        found, self.buffer = self.buffer.split(b"\r\n", 1)
        return found

    def exactly(self, length: int) -> Iterator[bytes]:
        while length:
            if not self.buffer:
                self.more()
            piece, self.buffer = self.buffer[:length], self.buffer[length:]
            length -= len(piece)
            yield piece

    def body(self) -> Iterator[bytes]:
        """Pieces of the body, asked for when the other side waits for that.

        Raises EOFError when it breaks off.
        """
        if self.by_name.get("expect", "").lower() == "100-continue":
            self.wire.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if self.by_name.get("transfer-encoding", "").lower() == "chunked":
            while True:
                length = int(self.line().split(b";")[0], 16)
                yield from self.exactly(length)
                self.line()
                if not length:
                    return
        yield from self.exactly(int(self.by_name.get("content-length", "0")))

    def answer(self, status: str, body: bytes = b"", fields: str = "") -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{fields}\r\n"
        self.wire.sendall(head.encode("latin-1") + (b"" if self.method == "HEAD" else body))

    def serve(self) -> bool:
        path, _, query = self.target.partition("?")
        if path == "/reject":
            self.answer(
                "403 Forbidden", b"<Code>SignatureDoesNotMatch</Code>", "Connection: close\r\n"
            )
            return False
        if path == "/held":
            self.wire.sendall(
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n"
            )
            released.wait(20)
            released.clear()
            self.wire.sendall(b"6\r\nsecond\r\n0\r\n\r\n")
        elif path == "/release":
            released.set()
            self.answer("204 No Content")
        elif path == "/count":
            counted[0] = 0
            for piece in self.body():
                counted[0] += len(piece)
            self.answer("200 OK")
        elif path == "/counted":
            self.answer("200 OK", str(counted[0]).encode())
        elif path == "/broken":
            framing = (
                b"Transfer-Encoding: chunked\r\n\r\n30d40\r\n"
                if query == "chunked"
                else b"Content-Length: 200000\r\n\r\n"
            )
            self.wire.sendall(b"HTTP/1.1 200 OK\r\n" + framing + b"x" * 50000)
            return False
        elif path.startswith("/upload/"):
            uploads[path[8:]] = "begun"
            try:
                for _ in self.body():
                    pass
            except (EOFError, OSError):
                uploads[path[8:]] = "cut"
                raise
            uploads[path[8:]] = "whole"
            self.answer("201 Created")
        elif path == "/uploads":
            self.answer("200 OK", json.dumps(uploads).encode())
        elif path.startswith("/status/"):
            code = path[8:]
            body = b"" if code in ("204", "304") else f"<Code>E{code}</Code>".encode()
            self.answer(
                code + " Word",
                body,
                'Location: http://other.example:1234/x%2Fy?a=b\r\nETag: "abc"\r\n',
            )
        elif path == "/fields":
            fields = [
                ("ETag", '"d41d8cd98f00b204e9800998ecf8427e"'),
                ("x-amz-meta-foo", 'bar; baz="q"'),
                ("x-amz-meta-utf8", "caf\u00c3\u00a9"),
                ("Set-Cookie", "a=1"),
                ("Set-Cookie", "b=2"),
                ("x-amz-empty", ""),
                ("X-Long", "y" * 3000),
                ("Last-Modified", "Wed, 01 Jan 2014 00:00:00 GMT"),
                ("Accept-Ranges", "bytes"),
                ("Server", "scripted"),
            ]
            self.answer(
                "200 OK", b"hello", "".join("{}: {}\r\n".format(*field) for field in fields)
            )
        else:
            found = hashlib.md5()
            length = 0
            for piece in self.body():
                found.update(piece)
                length += len(piece)
            echoed = {
                "method": self.method,
                "target": self.target,
                "version": self.version,
                "fields": self.fields,
            }
            self.answer(
                "200 OK",
                json.dumps({**echoed, "length": length, "md5": found.hexdigest()}).encode(),
            )
        return True


def talk(wire: socket.socket) -> None:
    with wire:
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while Request(wire).serve():
                pass
        except (EOFError, OSError):
            # the other side has ended the connection, or given up an upload, which `uploads` tells
            pass


def main() -> None:
    listener = socket.create_server((sys.argv[1], int(sys.argv[2])), backlog=128)
    while True:
        wire, _ = listener.accept()
        threading.Thread(target=talk, args=(wire,), daemon=True).start()


if __name__ == "__main__":
    main()
