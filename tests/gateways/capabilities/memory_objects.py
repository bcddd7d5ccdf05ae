"""What stores in memory of both APIs have in common: objects, ranges, conditions and listings."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

from http_stub import Request, Response

MODIFIED = "Wed, 25 Nov 2026 12:00:00 GMT"


@dataclass
class Stored:
    """One version of an object."""

    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    parts: Sequence[bytes] = ()
    version: str = "null"
    deleted: bool = False
    sub: dict[str, bytes] = field(default_factory=dict)
    """Tags, retention ... as they were sent."""
    secret: str = ""

    @property
    def etag(self) -> str:
        digest = hashlib.md5(self.body).hexdigest()
        return f"{digest}-{len(self.parts)}" if self.parts else digest


@dataclass
class Bucket:
    objects: dict[str, list[Stored]] = field(default_factory=dict)
    sub: dict[str, bytes] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    locked: bool = False

    def now(self, key: str) -> Stored | None:
        """The current version; None if there is none, or it is deleted."""
        versions = self.objects.get(key)
        return versions[-1] if versions and not versions[-1].deleted else None

    def names(self) -> list[str]:
        return sorted(key for key in list(self.objects) if self.now(key))


NUMBERS = itertools.count(1)


def false_condition(headers: Mapping[str, str], found: Stored | None) -> int:
    """412 or 304 if a condition of the request is false, else 0."""
    etag = f'"{found.etag}"' if found else ""
    if "if-match" in headers and headers["if-match"] not in (etag, "*" if found else ""):
        return 412
    if found and headers.get("if-none-match") in (etag, "*"):
        return 412 if headers["if-none-match"] == "*" else 304
    modified = parsedate_to_datetime(MODIFIED)
    for name, late in (("if-unmodified-since", True), ("if-modified-since", False)):
        if name in headers and (modified > parsedate_to_datetime(headers[name])) is late:
            return 412 if late else 304
    return 0


def ranged(request: Request, body: bytes, headers: Mapping[str, str]) -> Response:
    asked = request.headers.get("range", "").removeprefix("bytes=")
    if not asked:
        return Response(200, body, headers)
    spans = []
    for one in asked.split(","):
        first, _, last = one.partition("-")
        begin = int(first) if first else len(body) - int(last)
        until = min(int(last) + 1 if first and last else len(body), len(body))
        spans.append((begin, until))
    if all(begin >= len(body) for begin, _ in spans):
        return Response(416)
    if len(spans) == 1:
        begin, until = spans[0]
        said = {"Content-Range": f"bytes {begin}-{until - 1}/{len(body)}"}
        return Response(206, body[begin:until], {**headers, **said})
    pieces = [b"--b\r\n\r\n" + body[begin:until] + b"\r\n" for begin, until in spans]
    kind = {"Content-Type": "multipart/byteranges; boundary=b"}
    return Response(206, b"".join(pieces) + b"--b--", {**headers, **kind})


def listing(
    names: Sequence[str], prefix: str, delimiter: str, after: str, most: int
) -> tuple[list[str], list[str], bool]:
    rows: dict[str, bool] = {}
    for name in names:
        if name.startswith(prefix):
            rest = name[len(prefix) :]
            inside = bool(delimiter) and delimiter in rest
            folder = prefix + rest.partition(delimiter or "/")[0] + delimiter
            rows[folder if inside else name] = inside
    left = [row for row in rows if row > after]
    page = left[:most]
    return (
        [row for row in page if not rows[row]],
        [row for row in page if rows[row]],
        len(left) > most,
    )
