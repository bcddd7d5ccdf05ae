"""A verified PUT, HEAD, GET, DELETE over each API of a gateway, from the client host, before anything is measured.

64 KiB of random bytes are written and read back byte for byte; lengths and ETags must agree, a deleted object must be
gone, and the bucket is removed again. S3 requests are signed by botocore; otherwise only the standard library is used,
so that the program starts fast and shares no code with the drivers that are checked by it.

As a program (`python -m gateways.verify`, on the client host): reads `{"endpoints": [...], "stores_bodies": bool}` from
stdin and prints one JSON line, `{"checks": [...]}` with the milliseconds of each operation, or `{"failed": {...}}`.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from gateways import program
from ground.errors import VerificationFailed

if TYPE_CHECKING:
    from gateways.gateway import Endpoint
    from gateways.host import Host

SIZE_BYTES = 65536
_TIMEOUT_S = 60.0
_GONE_WITHIN_S = 20.0
_OPERATIONS = 8
_HEAD_OF_BODY = 300


@dataclass(frozen=True)
class Check:
    """One operation that did what its API promises, and how long it took."""

    api: str
    operation: str
    status: int
    took_ms: float


def verify(client: Host, endpoints: Sequence[Endpoint], *, stores_bodies: bool = True) -> tuple[Check, ...]:
    """Write, read and delete over every endpoint from `client`; returns what was checked, in order.

    With `stores_bodies` False (the null target) a read is checked by its length alone.
    Raises VerificationFailed with API, operation, status and the start of the body; CommandFailed when the program itself fails.
    """
    order = {
        "endpoints": [json.loads(endpoint.model_dump_json()) for endpoint in endpoints],
        "stores_bodies": stores_bodies,
    }
    timeout_s = _TIMEOUT_S * _OPERATIONS * len(endpoints)
    done = client.run(program.argv("gateways.verify"), stdin=json.dumps(order), env=program.environment(), timeout_s=timeout_s)
    answer = json.loads(done.stdout)
    if "failed" in answer:
        failed = answer["failed"]
        message = f"{failed['api']} {failed['operation']} at {failed['url']}: {failed['what']}"
        if failed["status"] is not None:
            message += f" (status {failed['status']})"
        raise VerificationFailed(f"{message}\n{failed['body']}".rstrip())
    return tuple(Check(**check) for check in answer["checks"])


@dataclass(frozen=True)
class Answer:
    """An HTTP answer; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class WrongAnswer(Exception):
    """What an operation gave is not what its API promises. `answer` is None when there was none."""

    def __init__(self, operation: str, what: str, answer: Answer | None) -> None:
        super().__init__(what)
        self.operation = operation
        self.what = what
        self.answer = answer


Exchange = Callable[[str, str, bytes, Mapping[str, str]], Answer]
"""Method, path, body, extra headers -> answer."""


class Wire:
    """One connection, kept alive, to the host and port of a URL."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.netloc, timeout=_TIMEOUT_S)

    def __call__(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Send one request and read its whole answer. Raises OSError or HTTPException."""
        self._connection.request(method, path, body, dict(headers))
        response = self._connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, found, response.read())

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def s3_exchange(wire: Exchange, url: str, user: str, key: str, region: str) -> Exchange:
    """Requests signed with AWS signature version 4, path style."""
    from botocore.auth import S3SigV4Auth  # noqa: PLC0415 - a quarter of a second of imports that Swift alone does not need
    from botocore.awsrequest import AWSRequest  # noqa: PLC0415
    from botocore.credentials import Credentials  # noqa: PLC0415

    signer = S3SigV4Auth(Credentials(user, key), "s3", region)

    def exchange(method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        request = AWSRequest(method, url.rstrip("/") + path, data=body, headers=dict(headers))
        # Plain HTTP: the digest of the body is part of the signature, so the gateway checks the body as well.
        request.context["payload_signing_enabled"] = True
        signer.add_auth(request)
        return wire(method, path, body, dict(request.headers.items()))

    return exchange


def swift_exchange(wire: Exchange, auth_path: str, user: str, key: str) -> Exchange:
    """Requests with the token that the v1 auth URL gives; paths are below the storage URL's."""
    answer = expect("auth", (200, 204), wire("GET", auth_path, b"", {"X-Auth-User": user, "X-Auth-Key": key}))
    if "x-storage-url" not in answer.headers or "x-auth-token" not in answer.headers:
        raise WrongAnswer("auth", "no X-Storage-Url or no X-Auth-Token in the answer", answer)
    base = urlsplit(answer.headers["x-storage-url"]).path.rstrip("/")
    token = answer.headers["x-auth-token"]

    def exchange(method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        return wire(method, base + path, body, {**headers, "X-Auth-Token": token})

    return exchange


def expect(operation: str, wanted: Sequence[int], answer: Answer) -> Answer:
    """The answer, when its status is one of those wanted. Raises WrongAnswer."""
    if answer.status not in wanted:
        raise WrongAnswer(operation, f"{' or '.join(map(str, wanted))} was expected", answer)
    return answer


def tour(exchange: Exchange, body: bytes, bucket: str, *, stores_bodies: bool) -> list[tuple[str, int, float]]:
    """The round of operations on one bucket of one API: (operation, status, ms) of each. Raises WrongAnswer."""
    done = []
    name = f"/{bucket}/check"

    def ask(operation: str, method: str, path: str, wanted: Sequence[int], content: bytes = b"") -> Answer:
        started = time.monotonic()
        # http.client only writes a length for methods it expects a body of; an empty PUT needs one too.
        headers = {"Content-Length": str(len(content))} if method == "PUT" else {}
        try:
            answer = exchange(method, path, content, headers)
        except (OSError, http.client.HTTPException) as error:
            raise WrongAnswer(operation, f"no answer: {error!r}", None) from error
        expect(operation, wanted, answer)
        done.append((operation, answer.status, (time.monotonic() - started) * 1000))
        return answer

    ask("make bucket", "PUT", f"/{bucket}", (200, 201, 202, 204))
    written = ask("PUT", "PUT", name, (200, 201), body)
    headed = ask("HEAD", "HEAD", name, (200,))
    read = ask("GET", "GET", name, (200,))
    _agree(body, written, headed, read, stores_bodies=stores_bodies)
    ask("DELETE", "DELETE", name, (200, 204))
    ask("GET after DELETE", "GET", name, (404,))
    deadline = time.monotonic() + _GONE_WITHIN_S
    while True:
        try:
            ask("delete bucket", "DELETE", f"/{bucket}", (200, 204))
        except WrongAnswer as wrong:
            # Swift's container may hear of the object's end a little later than its client: 409 until then.
            if wrong.answer is None or wrong.answer.status != http.client.CONFLICT or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return done


def _agree(body: bytes, written: Answer, headed: Answer, read: Answer, *, stores_bodies: bool) -> None:
    if headed.headers.get("content-length") != str(len(body)):
        raise WrongAnswer("HEAD", f"Content-Length {headed.headers.get('content-length')}, {len(body)} were written", headed)
    if len(read.body) != len(body):
        raise WrongAnswer("GET", f"{len(read.body)} bytes, {len(body)} were written", read)
    if not stores_bodies:
        return
    digest = hashlib.md5(body, usedforsecurity=False).hexdigest()
    for operation, answer in (("PUT", written), ("HEAD", headed), ("GET", read)):
        if answer.headers.get("etag", "").strip('"') != digest:
            raise WrongAnswer(operation, f"ETag {answer.headers.get('etag')}, the MD5 of what was written is {digest}", answer)
    if read.body != body:
        first = next(index for index, (got, sent) in enumerate(zip(read.body, body, strict=True)) if got != sent)
        raise WrongAnswer("GET", f"content differs from what was written, first at byte {first}", read)


def _one(endpoint: Mapping[str, Any], body: bytes, *, stores_bodies: bool) -> list[Check]:
    url = str(endpoint["url"])
    wire = Wire(url)
    try:
        if endpoint["api"] == "s3":
            exchange = s3_exchange(wire, url, endpoint["user"], endpoint["key"], endpoint["region"])
        else:
            try:
                exchange = swift_exchange(wire, urlsplit(url).path, endpoint["user"], endpoint["key"])
            except (OSError, http.client.HTTPException) as error:
                raise WrongAnswer("auth", f"no answer: {error!r}", None) from error
        rows = tour(exchange, body, f"weighbridge-check-{os.urandom(4).hex()}", stores_bodies=stores_bodies)
        return [Check(endpoint["api"], operation, status, round(took_ms, 3)) for operation, status, took_ms in rows]
    finally:
        wire.close()


def main() -> int:
    """Read the order from stdin, print one JSON line; exit status 0 also when a gateway answered wrongly."""
    order = json.load(sys.stdin)
    body = os.urandom(SIZE_BYTES)
    checks: list[Check] = []
    answer: dict[str, Any] = {}
    for endpoint in order["endpoints"]:
        try:
            checks += _one(endpoint, body, stores_bodies=order["stores_bodies"])
        except WrongAnswer as wrong:
            start = wrong.answer.body[:_HEAD_OF_BODY].decode(errors="replace") if wrong.answer else ""
            status = wrong.answer.status if wrong.answer else None
            where = {"api": endpoint["api"], "url": endpoint["url"], "operation": wrong.operation}
            answer = {"failed": {**where, "what": wrong.what, "status": status, "body": start}}
            break
    sys.stdout.write(json.dumps(answer or {"checks": [asdict(check) for check in checks]}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
