"""Right answers to every kind of request of the engine, as a store over either API gives them."""

from __future__ import annotations

import hashlib
import json
import re
import socket
from collections.abc import Callable
from typing import Any, Final

from tests.drivers.conftest import SEED, Reply, shape
from weighbridge.drivers.engine import _native

SIZE: Final = 1000
PART: Final = 400
BODY: Final = _native.content(SEED, SIZE, 0, SIZE)
MD5: Final = hashlib.md5(BODY).hexdigest()
TOKEN: Final = "a/b=+c"

SHAPES: Final[dict[str, dict[str, Any]]] = {
    "read": {},
    "write": {},
    "delete": {},
    "list": {},
    "head": {},
    "read-range": {"range": {"bytes": PART, "at": "sequential"}},
    "read-if-none-match": {},
    "read-if-match": {},
    "copy": {},
    # The same three keys in each request, of one container after the other.
    "delete-many": {"delete_many": 3, "per_container": 3, "containers": 3},
    "write-multipart": {"multipart": {"part": PART}},
    "list-all": {"listing": {"page": 5, "prefix": "object-", "delimiter": ""}},
    "write-if-none-match": {},
    "rewrite-if-none-match": {},
    "update-metadata": {},
    "tag": {},
    "read-part": {"multipart": {"part": PART}},
    "overwrite": {},
    "read-version": {"versions": 2},
    "list-versions": {"versions": 2, "listing": {"page": 7, "prefix": "object-", "delimiter": ""}},
}
"""The keys of a workload of each operation."""
REQUESTS: Final = {
    "write-multipart": {"s3": 5, "swift": 4},
    "list-all": {"s3": 2, "swift": 3},
    "list-versions": {"s3": 3, "swift": 4},
}
"""How many requests an operation of several is."""
PARTS_OF: Final[dict[str, tuple[str, int | None]]] = {
    "write-multipart": ("write-part", 3),
    "list-all": ("list-page", None),
    "list-versions": ("versions-page", None),
}
"""The row of its requests, and how many of these are in it; None: all."""


def workload_of(operation: str, **keys: Any) -> dict[str, Any]:
    own = {"containers": 1, **SHAPES[operation], **keys}
    return shape(operations={operation: 1.0}, pick="sequential", **{"size": SIZE, **own})


def answer(status: str, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def xml(root: str, inside: str) -> bytes:
    return f'<?xml version="1.0"?><{root} xmlns="http://s3/">{inside}</{root}>'.encode()


def names(first: int, count: int) -> list[str]:
    return [f"object-{index:010}" for index in range(first, first + count)]


def page(keys: list[str], token: str = "") -> bytes:
    more = f"<NextContinuationToken>{token}</NextContinuationToken>" if token else ""
    inside = "".join(f"<Contents><Key>{key}</Key></Contents>" for key in keys)
    truncated = f"<IsTruncated>{'true' if token else 'false'}</IsTruncated>"
    return xml("ListBucketResult", f"<KeyCount>{len(keys)}</KeyCount>{truncated}{more}{inside}")


def bulk(deleted: int, **more: Any) -> bytes:
    found = {"Number Deleted": deleted, "Number Not Found": 0, "Response Status": "200 OK"}
    return json.dumps(found | {"Response Body": "", "Errors": []} | more).encode()


def _range(api: str, head: str) -> bytes:
    found = re.search(r"Range: bytes=(\d+)-(\d+)", head)
    assert found is not None
    first, last = int(found[1]), int(found[2])
    part = BODY[first : last + 1]
    return answer("206 Partial Content", part, f"Content-Range: bytes {first}-{last}/{SIZE}")


def _read_part(api: str, head: str) -> bytes:
    found = re.search(r"[?&]partNumber=(\d+) " if api == "s3" else r"\?part-number=(\d+) ", head)
    assert found is not None
    return numbered(int(found[1]))


def numbered(number: int) -> bytes:
    first = (number - 1) * PART
    part = BODY[first : first + PART]
    last = first + len(part) - 1
    return answer("206 Partial Content", part, f"Content-Range: bytes {first}-{last}/{SIZE}")


def _copy(api: str, head: str) -> bytes:
    if api == "swift":
        return answer("201 Created", b"", f"Etag: {MD5}")
    return answer("200 OK", xml("CopyObjectResult", f"<ETag>&quot;{MD5}&quot;</ETag>"))


def _delete_many(api: str, head: str) -> bytes:
    if api == "swift":
        return answer("200 OK", bulk(3))
    keys = "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in names(0, 3))
    return answer("200 OK", xml("DeleteResult", keys))


def _multipart(api: str, head: str) -> bytes:
    if head.startswith("POST") and "?uploads " in head:
        upload = "<UploadId>2~u/1</UploadId>"
        return answer("200 OK", xml("InitiateMultipartUploadResult", upload))
    if head.startswith("POST"):
        etag = f"<ETag>&quot;{MD5}-3&quot;</ETag>"
        return answer("200 OK", xml("CompleteMultipartUploadResult", etag))
    found = re.search(r"partNumber=(\d+)|/0*(\d+) HTTP", head)
    number = int(found[1] or found[2]) if found else 0
    part = BODY[(number - 1) * PART : number * PART] if number else b""
    return answer("201 Created", b"", f'ETag: "{hashlib.md5(part).hexdigest()}"')


def _list_all(api: str, head: str) -> bytes:
    if api == "s3":
        second = "continuation-token=" in head
        token = "" if second else TOKEN
        return answer("200 OK", page(names(5 if second else 0, 5), token))
    marker = re.search(r"marker=object-0*(\d+)", head)
    first = int(marker[1]) + 1 if marker else 0
    listed = "\n".join(names(first, 5 if first < 10 else 0))
    return answer("200 OK", listed.encode(), "Content-Type: text/plain")


def version_body(version: int) -> bytes:
    return _native.content(SEED, SIZE, 0, SIZE, version=version)


def _read_version(api: str, head: str) -> bytes:
    found = re.search(r"version-?[iI]d=(v(\d)-\d+) ", head)
    assert found is not None
    header = "x-amz-version-id" if api == "s3" else "X-Object-Version-Id"
    return answer("200 OK", version_body(int(found[2])), f"{header}: {found[1]}")


def versions(first: int, count: int) -> list[tuple[str, str]]:
    """Names and IDs of the versions of ten objects of two each, as they are listed."""
    places = [(index, version) for index in range(10) for version in (1, 0)]
    return [
        (names(index, 1)[0], f"v{version}-{2 * index + version}")
        for index, version in places[first : first + count]
    ]


def versions_page(
    api: str, entries: list[tuple[str, str]], marker: tuple[str, str] | None = None
) -> bytes:
    """A page of them; `marker` is what it says of the next one (S3)."""
    if api == "swift":
        found = [{"name": name, "version_id": version} for name, version in entries]
        return answer("200 OK", json.dumps(found).encode(), "Content-Type: application/json")
    inside = "".join(
        f"<Version><Key>{name}</Key><VersionId>{version}</VersionId></Version>"
        for name, version in entries
    )
    if marker is not None:
        inside += f"<NextKeyMarker>{marker[0]}</NextKeyMarker>"
        inside += f"<NextVersionIdMarker>{marker[1]}</NextVersionIdMarker>"
    truncated = f"<IsTruncated>{'false' if marker is None else 'true'}</IsTruncated>"
    return answer("200 OK", xml("ListVersionsResult", truncated + inside))


def _list_versions(api: str, head: str) -> bytes:
    after = re.search(r"marker=v\d-(\d+)&", head)
    first = 0 if after is None else (int(after[1]) ^ 1) + 1
    entries = versions(first, 7)
    return versions_page(api, entries, entries[-1] if first + 7 < 20 else None)


GOOD: Final[dict[str, Callable[[str, str], bytes]]] = {
    "read": lambda _api, _head: answer("200 OK", BODY),
    "write": lambda _api, _head: answer("201 Created", b"", f"ETag: {MD5}"),
    "delete": lambda _api, _head: answer("200 OK"),
    "list": lambda api, _head: answer(
        "200 OK", page(names(0, 10)) if api == "s3" else "\n".join(names(0, 10)).encode()
    ),
    "head": lambda _api, _head: f"HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n".encode(),
    "read-range": _range,
    "read-if-none-match": lambda _api, _head: b"HTTP/1.1 304 Not Modified\r\n\r\n",
    "read-if-match": lambda _api, _head: answer("200 OK", BODY),
    "copy": _copy,
    "delete-many": _delete_many,
    "write-multipart": _multipart,
    "list-all": _list_all,
    "write-if-none-match": lambda _api, _head: answer("201 Created", b"", f"ETag: {MD5}"),
    "rewrite-if-none-match": lambda _api, _head: answer("412 Precondition Failed", b"exists"),
    "update-metadata": lambda api, head: (
        answer("202 Accepted", b"ok") if api == "swift" else _copy(api, head)
    ),
    "tag": lambda _api, _head: answer("200 OK"),
    "read-part": _read_part,
    "overwrite": lambda _api, _head: answer("201 Created", b"", f"ETag: {MD5}"),
    "read-version": _read_version,
    "list-versions": _list_versions,
}
"""The right answer to a request of an operation, by API and head."""


def well(operation: str, api: str = "s3") -> Reply:
    def answered(connection: socket.socket, head: bytes) -> bool:
        connection.sendall(GOOD[operation](api, head.decode()))
        return True

    return answered


LACKED: Final = {("tag", "swift")}
"""Operations that an API does not have."""
SENT: Final = [
    (name, api) for name in SHAPES for api in ("s3", "swift") if (name, api) not in LACKED
]
"""Every operation over every API that has it."""


def of_api(api: str) -> dict[str, Any]:
    own = {"api": api, "base_path": "/v1/AUTH_test", "token": "t"}
    return own if api == "swift" else {}
