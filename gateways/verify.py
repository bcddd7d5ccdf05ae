"""Verify PUT, HEAD, GET, LIST and DELETE over each API of a gateway, before anything is measured.

64 KiB of random bytes are written and read back byte for byte; lengths, and ETags that are MD5s,
must match, the bucket's list must contain the object, a deleted object must be gone, and the bucket
is deleted.

As a program (`python -m weighbridge.gateways.verify`, on the client host): reads `{"endpoints":
[...], "stores_bodies": bool, "bucket": name, "listed_within_s": s}` from stdin and prints one JSON
line, `{"checks": [...]}` with the milliseconds of each operation, or `{"failed": {...}}`.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from weighbridge.common import plain_xml
from weighbridge.common.errors import VerificationFailed
from weighbridge.common.exchange import (
    TIMEOUT_S,
    Exchange,
    HttpAnswer,
    WrongAnswer,
    ask,
    exchanging,
    skew,
)
from weighbridge.common.tool_output import shortened

if TYPE_CHECKING:
    from weighbridge.common.endpoint import Endpoint
    from weighbridge.common.host import Host

SIZE_BYTES = 65536
LISTED_WITHIN_S = 20.0
"""How long a bucket's list may lag behind: Swift updates containers after answering the client."""
_OPERATIONS = 9
_PAUSE_S = 0.05


class OperationFailed(VerificationFailed):
    """An operation failed over `api`, with `status` when there was an answer."""

    def __init__(
        self, message: str, *, api: str, operation: str, status: int | None, skewed: bool
    ) -> None:
        super().__init__(message)
        self.api = api
        self.operation = operation
        self.status = status
        self.skewed = skewed
        """Whether it was refused for this machine's clock."""

    @property
    def nothing_created(self) -> bool:
        """Whether no bucket can be left."""
        refused = self.status is not None and self.status < http.client.INTERNAL_SERVER_ERROR
        return self.operation in {"connect", "auth"} or (
            self.operation == "make bucket" and refused
        )


@dataclass(frozen=True)
class OperationCheck:
    """One operation that did what its API promises, and its duration."""

    api: str
    operation: str
    status: int
    took_ms: float


def verify(
    client: Host,
    endpoints: Sequence[Endpoint],
    *,
    stores_bodies: bool = True,
    bucket: str | None = None,
    listed_within_s: float = LISTED_WITHIN_S,
) -> tuple[OperationCheck, ...]:
    """Write, read, list and delete over every endpoint from `client`, over each of several by
    itself; returns the checks in order.

    With `stores_bodies` False (the null target) only the length of a read is checked. `bucket` is
    created and deleted over each endpoint; None: one with a random name. A failure leaves it.
    `listed_within_s` is how long a bucket's list may lag behind. Raises OperationFailed with API,
    operation, status and the start of the body; CommandFailed when the program itself fails.
    """
    from weighbridge.common.endpoint import singles  # noqa: PLC0415 - as below
    from weighbridge.gateways import program  # noqa: PLC0415 - keeps the program on the client host fast to start

    order = {
        "stores_bodies": stores_bodies,
        "bucket": bucket or f"wb-check-{os.urandom(8).hex()}",
        "listed_within_s": listed_within_s,
    }
    endpoints = singles(endpoints)
    timeout_s = TIMEOUT_S * _OPERATIONS * len(endpoints)
    answer = json.loads(
        program.run_with_endpoints(
            client, "weighbridge.gateways.verify", endpoints, order, timeout_s=timeout_s
        )
    )
    if "failed" in answer:
        failed = answer["failed"]
        message = f"{failed['api']} {failed['operation']} at {failed['url']}: {failed['what']}"
        if failed["status"] is not None:
            message += f" (status {failed['status']})"
        where = {name: failed[name] for name in ("api", "operation", "status", "skewed")}
        # They quote the server, which may repeat what it was sent. A secret is looked for before
        # words are cut.
        message = program.without_secrets(message, endpoints)
        body = program.without_secrets(failed["body"], endpoints)
        said = plain_xml.error_words(body.encode())
        raise OperationFailed(f"{shortened(message)}\n{said}".rstrip(), **where)
    return tuple(OperationCheck(**check) for check in answer["checks"])


def check_operations(
    exchange: Exchange, body: bytes, order: Mapping[str, Any], endpoint: Mapping[str, Any]
) -> list[tuple[str, int, float]]:
    """Run all operations on a bucket; (operation, status, ms) of each. Raises WrongAnswer."""
    done = []
    api, bucket, patience_s = endpoint["api"], order["bucket"], order["listed_within_s"]
    name = f"/{bucket}/check"

    def check(
        operation: str, method: str, path: str, wanted: Sequence[int], content: bytes = b""
    ) -> HttpAnswer:
        started = time.monotonic()
        # http.client sends Content-Length only for methods it expects a body of; an empty PUT needs
        # one too.
        headers = {"Content-Length": str(len(content))} if method == "PUT" else {}
        answer = ask(exchange, operation, method, path, wanted, content, headers)
        done.append((operation, answer.status, (time.monotonic() - started) * 1000))
        return answer

    check("make bucket", "PUT", f"/{bucket}", (200, 201, 202, 204), location(endpoint))
    written = check("PUT", "PUT", name, (200, 201), body)
    headed = check("HEAD", "HEAD", name, (200,))
    read = check("GET", "GET", name, (200,))
    _agree(body, written, headed, read, stores_bodies=order["stores_bodies"])
    query = "list-type=2&prefix=check" if api == "s3" else "format=json&prefix=check"
    deadline = time.monotonic() + patience_s
    while (
        names := listed(answer := check("LIST", "GET", f"/{bucket}?{query}", (200, 204)), api)
    ) != ["check"]:
        if time.monotonic() > deadline:
            raise WrongAnswer(
                "LIST", f"the names {names}, one object named 'check' was written", answer
            )
        done.pop()
        time.sleep(_PAUSE_S)
    check("DELETE", "DELETE", name, (200, 204))
    check("GET after DELETE", "GET", name, (404,))
    deadline = time.monotonic() + patience_s
    while True:
        try:
            check("delete bucket", "DELETE", f"/{bucket}", (200, 204))
        except WrongAnswer as wrong:
            # The container does not know yet that the object is gone: 409 until then.
            if (
                wrong.answer is None
                or wrong.answer.status != http.client.CONFLICT
                or time.monotonic() > deadline
            ):
                raise
            time.sleep(_PAUSE_S)
        else:
            return done


def location(endpoint: Mapping[str, Any]) -> bytes:
    """The region to create a bucket in; empty for us-east-1 (S3 API reference, CreateBucket)."""
    if endpoint["api"] != "s3" or endpoint["region"] == "us-east-1":
        return b""
    location = f"<LocationConstraint>{endpoint['region']}</LocationConstraint>"
    space = "http://s3.amazonaws.com/doc/2006-03-01/"
    document = f'<CreateBucketConfiguration xmlns="{space}">{location}</CreateBucketConfiguration>'
    return document.encode()


def listed(answer: HttpAnswer, api: str) -> list[str]:
    """Names in a bucket's list. Raises WrongAnswer when it is not as the API promises."""
    try:
        if api == "s3":
            root = plain_xml.parse(answer.body)
            return [key.text or "" for key in root.iterfind("./{*}Contents/{*}Key")]
        return [str(entry["name"]) for entry in json.loads(answer.body or b"[]")]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise WrongAnswer("LIST", f"the list cannot be read: {error}", answer) from error


def _agree(
    body: bytes, written: HttpAnswer, headed: HttpAnswer, read: HttpAnswer, *, stores_bodies: bool
) -> None:
    length = headed.headers.get("content-length")
    if length != str(len(body)):
        raise WrongAnswer(
            "HEAD",
            f"Content-Length {length}, but {len(body)} bytes were written",
            headed,
        )
    if len(read.body) != len(body):
        raise WrongAnswer("GET", f"{len(read.body)} bytes, but {len(body)} were written", read)
    if not stores_bodies:
        return
    digest = hashlib.md5(body, usedforsecurity=False).hexdigest()
    for operation, answer in (("PUT", written), ("HEAD", headed), ("GET", read)):
        etag = answer.headers.get("etag", "").strip('"')
        if etag != digest and (not etag or _is_md5(etag, answer)):
            raise WrongAnswer(
                operation,
                f"ETag {answer.headers.get('etag')}, the MD5 of what was written is {digest}",
                answer,
            )
    if read.body != body:
        first = next(
            index
            for index, (got, sent) in enumerate(zip(read.body, body, strict=True))
            if got != sent
        )
        raise WrongAnswer(
            "GET", f"content differs from what was written, first at byte {first}", read
        )


def _is_md5(etag: str, answer: HttpAnswer) -> bool:
    """Whether an ETag claims to be the MD5 of what was sent: not if a key of a KMS or the client's
    encrypted it (S3 API reference, Object).
    """
    encrypted = answer.headers.get("x-amz-server-side-encryption", "AES256") != "AES256"
    by_client = "x-amz-server-side-encryption-customer-algorithm" in answer.headers
    return not (encrypted or by_client) and re.fullmatch("[0-9a-fA-F]{32}", etag) is not None


def run_order(order: Mapping[str, Any]) -> dict[str, Any]:
    """The program's answer to an order: `{"checks": [...]}` or `{"failed": {...}}`."""
    body = os.urandom(SIZE_BYTES)
    checks: list[OperationCheck] = []
    for endpoint in order["endpoints"]:
        api = endpoint["api"]
        try:
            with exchanging(endpoint, order["bucket"]) as exchange:
                rows = check_operations(exchange, body, order, endpoint)
        except WrongAnswer as wrong:
            answer = wrong.answer
            head = answer.body[: plain_xml.LONGEST_ERROR_BYTES] if answer else b""
            failed = {
                "api": api,
                "url": endpoint["url"],
                "operation": wrong.operation,
                "what": wrong.what,
                "status": answer.status if answer else None,
                "body": head.decode(errors="replace"),
                "skewed": bool(answer and skew(answer)),
            }
            return {"failed": failed}
        checks += [
            OperationCheck(api, operation, status, round(took_ms, 3))
            for operation, status, took_ms in rows
        ]
    return {"checks": [asdict(check) for check in checks]}


def main() -> int:
    """Read the order from stdin, print one JSON line; exit status 0 even after a wrong answer."""
    sys.stdout.write(json.dumps(run_order(json.load(sys.stdin))) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
