"""What a client sees through a front, over raw sockets, as a program on the client host; nothing of
the suite is imported.

Argument: `scripted` (scripted_origin.py is behind the front), `real` (a gateway; endpoints by API,
JSON on stdin), `interrupted` (the S3 endpoint as a line). Prints one JSON object of what was seen.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import socket
import sys
import threading
import time
from contextlib import suppress
from html import unescape
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from front_cases import FIELDS, ODD, STATUSES, TARGETS

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
    wire = Wire(place)
    try:
        return wire.ask(method, target, fields, body)
    finally:
        wire.close()


def chunks(body: bytes, size: int = 65536) -> bytes:
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def scripted(place: tuple[str, int]) -> dict[str, Any]:
    """What reaches a scripted origin, and what comes back of what it does."""
    seen: dict[str, Any] = {"targets": {}}
    wire = Wire(place)
    for target in TARGETS:
        # Nothing but an echo is at these targets.
        answer = wire.ask("GET", target)
        got = json.loads(answer.body)["target"] if answer.status == 200 else answer.status
        if got != target:
            seen["targets"][target] = got
        if answer.by_name.get("connection") == "close":
            wire.close()
            wire = Wire(place)
    wire.close()
    echoed = json.loads(once(place, "PUT", "/echo", [*FIELDS, ("Host", "h:1")], b"hello").body)
    got = {name.lower(): value for name, value in echoed["fields"]}
    seen["fields changed"] = {
        name: got.get(name.lower()) for name, value in FIELDS if got.get(name.lower()) != value
    }
    seen["fields added"] = sorted(set(got) - {name.lower() for name, _ in FIELDS})
    seen["host"], seen["version"] = got["host"], echoed["version"]
    seen["bare"] = sorted(
        name.lower() for name, _ in json.loads(once(place, "GET", "/echo").body)["fields"]
    )
    seen["methods"] = [
        json.loads(once(place, method, "/echo").body)["method"]
        for method in ("GET", "PUT", "POST", "DELETE", "OPTIONS", "COPY")
    ]
    answers = {status: once(place, "GET", f"/status/{status}") for status in STATUSES}
    seen["statuses"] = [answer.status for answer in answers.values()]
    bodies = {status: answer for status, answer in answers.items() if status not in {204, 304}}
    seen["bodies"] = all(
        answer.body == f"<Code>E{status}</Code>".encode() for status, answer in bodies.items()
    )
    seen["location"] = answers[307].by_name["location"]
    answer = once(place, "GET", "/fields")
    seen["answer"] = [
        list(field)
        for field in answer.fields
        if field[0].lower() not in {"date", "keep-alive", "connection"}
    ]
    for name, length in (("empty", 0), ("small", 5), ("large", 3_000_000)):
        body = os.urandom(length)
        wire = Wire(place)
        wire.send("PUT", "/echo", {"Transfer-Encoding": "chunked"}, chunks(body))
        echoed = json.loads(wire.answer().body)
        seen[f"chunked {name}"] = (
            echoed["length"] == length and echoed["md5"] == hashlib.md5(body).hexdigest()
        )
        wire.close()
    echoed = json.loads(once(place, "PUT", "/echo").body)
    seen["zero"] = [
        value
        for name, value in echoed["fields"]
        if name.lower() in {"content-length", "transfer-encoding"}
    ]
    seen |= expectations(place) | streams(place) | broken(place)
    return seen


def expectations(place: tuple[str, int]) -> dict[str, Any]:
    """100-continue, and answers that come before the body has been sent."""
    seen: dict[str, Any] = {}
    wire = Wire(place)
    wire.send("PUT", "/echo", {"Content-Length": "5", "Expect": "100-continue"})
    assert b"100" in wire.upto(b"\r\n\r\n")
    wire.socket.sendall(b"hello")
    answer = wire.answer()
    seen["continue"] = [answer.status, json.loads(answer.body)["length"]]
    wire.close()
    wire = Wire(place)
    wire.send("PUT", "/reject", {"Content-Length": "500000", "Expect": "100-continue"})
    first = wire.upto(b"\r\n\r\n").split(b" ")[1].decode()
    seen["rejected, 100 expected"] = [first]
    if first == "100":
        wire.socket.sendall(b"x" * 500000)
        seen["rejected, 100 expected"].append(str(wire.answer().status))
    wire.close()
    wire = Wire(place)
    with suppress(OSError):  # it may be answered before all has been sent
        wire.send("PUT", "/reject", {"Content-Length": "8000000"}, b"x" * 8_000_000)
    try:
        answer = wire.answer()
        seen["rejected"] = [answer.status, b"SignatureDoesNotMatch" in answer.body]
    except (EOFError, OSError) as error:
        seen["rejected"] = [repr(error)]
    wire.close()
    return seen


def streams(place: tuple[str, int]) -> dict[str, Any]:
    """Whether pieces pass before the rest is there.

    Each side waits for what the other has seen, so nothing is timed.
    """
    wire = Wire(place)
    wire.send("GET", "/held")
    wire.head()
    while b"first" not in wire.buffer:
        wire.more()
    first, wire.buffer = wire.buffer, b""
    once(place, "GET", "/release")
    rest = wire.upto(b"0\r\n\r\n")
    wire.close()
    seen: dict[str, Any] = {"held": b"second" not in first and b"second" in rest}
    wire = Wire(place)
    wire.send("PUT", "/count", {"Content-Length": "200000"}, b"x" * 100_000)
    seen["counted"] = until(lambda: once(place, "GET", "/counted").body == b"100000")
    wire.socket.sendall(b"x" * 100_000)
    seen["count"] = [wire.answer().status, once(place, "GET", "/counted").body == b"200000"]
    wire.close()
    return seen


def broken(place: tuple[str, int]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for way in ("length", "chunked"):
        answer = once(place, "GET", f"/broken?{way}")
        seen[f"broken {way}"] = [answer.whole or answer.status >= 500, len(answer.body)]
    fields = {"length": ("Content-Length", "3000000"), "chunked": ("Transfer-Encoding", "chunked")}
    for name, field in fields.items():
        wire = Wire(place)
        wire.send(
            "PUT",
            f"/upload/{name}",
            [field],
            (b"ffffff\r\n" if name == "chunked" else b"") + b"x" * 500_000,
        )

        def state(name: str = name) -> str | None:
            found: dict[str, str] = json.loads(once(place, "GET", "/uploads").body)
            return found.get(name)

        assert until(lambda state=state: state() == "begun")
        wire.close()
        until(lambda state=state: state() != "begun")
        seen[f"given up {name}"] = state()
    return seen


def until(true: Any) -> bool:
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.02)
    return False


class S3:
    """Requests signed by botocore over a raw connection: the target is signed as sent."""

    def __init__(self, endpoint: dict[str, str]) -> None:
        from botocore.auth import S3SigV4Auth  # noqa: PLC0415 - only a real gateway wants it
        from botocore.credentials import Credentials  # noqa: PLC0415

        parts = urlsplit(endpoint["url"])
        self.base = endpoint["url"].rstrip("/")
        self.place = (parts.hostname or "", parts.port or 80)
        self.signer = S3SigV4Auth(
            Credentials(endpoint["user"], endpoint["key"]), "s3", endpoint["region"]
        )
        self.wire = Wire(self.place)

    def fields(
        self, method: str, target: str, fields: dict[str, str], body: bytes = b""
    ) -> dict[str, str]:
        from botocore.awsrequest import AWSRequest  # noqa: PLC0415

        request = AWSRequest(
            method,
            self.base + target,
            data=body,
            headers={"Host": urlsplit(self.base).netloc, **fields},
        )
        request.context["payload_signing_enabled"] = True
        self.signer.add_auth(request)
        return dict(request.headers.items())

    def ask(
        self, method: str, target: str, fields: dict[str, str] | None = None, body: bytes = b""
    ) -> Answer:
        answer = self.wire.ask(
            method, target, self.fields(method, target, fields or {}, body), body
        )
        if answer.by_name.get("connection", "").lower() == "close":
            # Apache ends connections after some statuses, 400 among them.
            self.wire.close()
            self.wire = Wire(self.place)
        return answer


def real(endpoints: dict[str, dict[str, str]]) -> dict[str, Any]:
    s3 = S3(endpoints["s3"])
    seen: dict[str, Any] = {"odd": {}}
    assert s3.ask("PUT", "/odd").status == 200
    for name in ODD:
        body, target = os.urandom(1000), "/odd/" + quote(name, safe="/~")
        statuses = [s3.ask("PUT", target, body=body).status]
        answer = s3.ask("GET", target)
        statuses += [answer.status, s3.ask("HEAD", target).status]
        if answer.body != body:
            statuses.append(-1)
        seen["odd"][name] = statuses
    listed = s3.ask("GET", "/odd?encoding-type=url").body.decode()
    keys = {unquote(unescape(key.partition("</Key>")[0])) for key in listed.split("<Key>")[1:]}
    seen["unlisted"] = [name for name in ODD if name not in keys]
    data = os.urandom(1 << 20)
    digest = hashlib.md5(data).hexdigest()
    fields = {
        "Content-MD5": base64.b64encode(hashlib.md5(data).digest()).decode(),
        "x-amz-meta-fish": 'cod; "q"',
        "Content-Type": "a/b",
    }
    answer = s3.ask("PUT", "/odd/m", fields, data)
    seen["etag"] = answer.by_name["etag"] == f'"{digest}"'
    answer = s3.ask("HEAD", "/odd/m")
    seen["head"] = [
        answer.status,
        *(
            answer.by_name.get(name)
            for name in ("content-length", "x-amz-meta-fish", "content-type")
        ),
    ]
    seen["bad digest"] = s3.ask(
        "PUT", "/odd/bad", {"Content-MD5": base64.b64encode(b"0" * 16).decode()}, data
    ).status
    answer = s3.ask("GET", "/odd/m", {"Range": "bytes=1000-1999"})
    seen["range"] = [answer.status, answer.body == data[1000:2000], answer.by_name["content-range"]]
    seen["not modified"] = s3.ask("GET", "/odd/m", {"If-None-Match": f'"{digest}"'}).status
    seen["empty"] = [
        s3.ask("PUT", "/odd/empty").status,
        s3.ask("HEAD", "/odd/empty").by_name.get("content-length"),
    ]
    missing, anonymous = s3.ask("GET", "/odd/none"), once(s3.place, "GET", "/odd/m")
    forged = s3.fields("GET", "/odd/m", {})
    wrong = once(s3.place, "GET", "/odd/plain", forged)
    seen["refused"] = [[answer.status, code(answer)] for answer in (missing, anonymous, wrong)]
    seen["deleted"] = [s3.ask("DELETE", "/odd/m").status, s3.ask("HEAD", "/odd/m").status]
    seen["one connection"] = all(s3.ask("HEAD", "/odd/empty").status == 200 for _ in range(150))
    seen["concurrent"] = concurrent(s3)
    return seen | swift(endpoints["swift"])


def code(answer: Answer) -> str:
    text = answer.body.decode()
    return text.partition("<Code>")[2].partition("</Code>")[0]


def concurrent(s3: S3) -> int:
    bodies = {f"/odd/c{number}": os.urandom(4096 + number) for number in range(32)}
    for target, body in bodies.items():
        assert s3.ask("PUT", target, body=body).status == 200
    right: list[bool] = []

    def read(target: str) -> None:
        wire = Wire(s3.place)
        fields = s3.fields("GET", target, {})
        right.extend(wire.ask("GET", target, fields).body == bodies[target] for _ in range(10))
        wire.close()

    threads = [threading.Thread(target=read, args=(target,)) for target in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(right)


def swift(endpoint: dict[str, str]) -> dict[str, Any]:
    """Swift, whose uploads may be chunks without a length."""
    parts = urlsplit(endpoint["url"])
    place = (parts.hostname or "", parts.port or 80)
    host = parts.netloc
    answer = once(
        place,
        "GET",
        parts.path,
        {"Host": host, "X-Auth-User": endpoint["user"], "X-Auth-Key": endpoint["key"]},
    )
    url = urlsplit(answer.by_name["x-storage-url"])
    seen: dict[str, Any] = {"storage url": url.netloc == host}
    own = {"Host": host, "X-Auth-Token": answer.by_name["x-auth-token"]}
    assert once(place, "PUT", f"{url.path}/box", own).status == 201
    for name, length in (("small", 5), ("large", 3_000_000)):
        wire, body = Wire(place), os.urandom(length)
        wire.send(
            "PUT", f"{url.path}/box/{name}", {**own, "Transfer-Encoding": "chunked"}, chunks(body)
        )
        seen[f"chunked {name}"] = [
            wire.answer().status,
            wire.ask("GET", f"{url.path}/box/{name}", own).body == body,
        ]
        wire.close()
    wire, body = Wire(place), os.urandom(70_000)
    wire.send(
        "PUT",
        f"{url.path}/box/expected",
        {**own, "Content-Length": "70000", "Expect": "100-continue"},
    )
    interim = wire.upto(b"\r\n\r\n")
    wire.socket.sendall(body)
    seen["continue"] = [
        b" 100 " in interim,
        wire.answer().status,
        wire.ask("GET", f"{url.path}/box/expected", own).body == body,
    ]
    wire.close()
    for name, field in (
        ("length", ("Content-Length", "3000000")),
        ("chunked", ("Transfer-Encoding", "chunked")),
    ):
        wire = Wire(place)
        wire.send(
            "PUT",
            f"{url.path}/box/gave-{name}",
            [*own.items(), field],
            (b"ffffff\r\n" if name == "chunked" else b"") + b"x" * 500_000,
        )
        wire.close()
        # An upload that is taken for a whole one shows within this.
        looks = set()
        for _ in range(30):
            time.sleep(0.05)
            looks.add(once(place, "HEAD", f"{url.path}/box/gave-{name}", own).status)
        seen[f"given up {name}"] = sorted(looks)
    return seen


def interrupted(endpoint: dict[str, str]) -> None:
    """Begin to read a large object, say so, and tell how it ended when stdin has ended."""
    s3 = S3(endpoint)
    assert s3.ask("PUT", "/large").status == 200
    # Larger than all buffers in between. Apache ends the connection that is idle meanwhile.
    signed = s3.fields("PUT", "/large/o", {}, body := os.urandom(1 << 20) * 48)
    s3.wire.close()
    s3.wire = Wire(s3.place)
    s3.wire.socket.settimeout(6 * WITHIN_S)
    assert s3.wire.ask("PUT", "/large/o", signed, body).status == 200
    s3.wire.socket.settimeout(WITHIN_S)
    s3.wire.send("GET", "/large/o", s3.fields("GET", "/large/o", {}))
    answer = s3.wire.head()
    length = int(answer.by_name["content-length"])
    sys.stdout.write("reading\n")
    sys.stdout.flush()
    sys.stdin.read()
    got, how = len(s3.wire.buffer), "whole"
    while got < length:
        try:
            s3.wire.buffer = b""
            s3.wire.more()
        except (EOFError, OSError):
            how = "cut"
            break
        got += len(s3.wire.buffer)
    sys.stdout.write(json.dumps({"status": answer.status, "how": how}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1] == "interrupted":
        interrupted(json.loads(sys.stdin.readline()))
    else:
        given = json.load(sys.stdin)
        where = urlsplit(given["s3"]["url"])
        outcome = (
            scripted((where.hostname or "", where.port or 80))
            if sys.argv[1] == "scripted"
            else real(given)
        )
        json.dump(outcome, sys.stdout)
