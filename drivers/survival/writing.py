"""Writing and deleting objects: what a store says of it, and whether that is right."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Final

from weighbridge.common import plain_xml
from weighbridge.drivers.survival.bodies import PIECE_BYTES, Bodies
from weighbridge.drivers.survival.connection import Answer, Requests
from weighbridge.drivers.survival.operation import object_name
from weighbridge.results.run.durability import Way

S3_PARTS: Final = (5 * 2**20, 2**20)
"""Bytes of the parts of an upload: all but the last have at least 5 MiB."""
SWIFT_SEGMENTS: Final = (2**20, 2**16)
"""Bytes of the segments of a static large object."""
_WORDS: Final = 200


def parts_of(api: str) -> tuple[int, ...]:
    """How an object is written in parts, in bytes."""
    return S3_PARTS if api == "s3" else SWIFT_SEGMENTS


def segments_container(container: str) -> str:
    """Where the segments of a Swift container's large objects are."""
    return f"{container}-segments"


class NotDone(Exception):
    """A store answered that it has not done something, or what it answered is wrong."""


class ObjectWriter:
    """Writes over one connection; returns on an acknowledgement. Raises NotDone or NoAnswer."""

    def __init__(self, requests: Requests, bodies: Bodies) -> None:
        self._requests = requests
        self._bodies = bodies
        self._is_s3 = requests.access.api == "s3"

    def make_container(self, container: str) -> None:
        access = self._requests.access
        body = plain_xml.bucket_body(access.api, access.region)
        answer = self._requests.ask(
            "PUT", f"/{container}", body=[body] if body else (), body_bytes=len(body)
        )
        if b"BucketAlreadyOwnedByYou" not in answer.body:
            _done(answer, "make container", (200, 201, 202, 204))

    def write(self, container: str, name: str, version: int, size_bytes: int, way: Way) -> None:
        pieces = self._bodies.pieces(
            object_name(self._requests.access.api, container, name), version, size_bytes
        )
        if way == "plain":
            self._put(f"/{container}/{name}", pieces, size_bytes)
        elif self._is_s3:
            self._upload(f"/{container}/{name}", pieces)
        else:
            self._write_segments(container, name, version, pieces)

    def delete(self, container: str, name: str) -> None:
        """Delete an object; the segments of a large one stay."""
        answer = self._requests.ask("DELETE", f"/{container}/{name}")
        _done(answer, "DELETE", (200, 204))

    def _put(self, path: str, pieces: Iterator[bytes], size_bytes: int, query: str = "") -> str:
        digest = hashlib.md5(usedforsecurity=False)

        def hashed() -> Iterator[bytes]:
            left = size_bytes
            while left > 0:
                piece = next(pieces)
                digest.update(piece)
                left -= len(piece)
                yield piece

        answer = self._requests.ask("PUT", path, query=query, body=hashed(), body_bytes=size_bytes)
        _done(answer, "PUT", (200, 201))
        _agree(answer.headers.get("etag", ""), digest.hexdigest())
        return digest.hexdigest()

    def _upload(self, path: str, pieces: Iterator[bytes]) -> None:
        begun = self._requests.ask("POST", path, query="uploads=")
        _done(begun, "create upload", (200,))
        number = _text(begun, "InitiateMultipartUploadResult", "UploadId")
        if not number.isascii() or not all(c.isalnum() or c in "-._~" for c in number):
            raise NotDone("create upload: an UploadId that needs quoting")
        tags = [
            self._put(path, pieces, size_bytes, f"partNumber={part}&uploadId={number}")
            for part, size_bytes in enumerate(S3_PARTS, 1)
        ]
        rows = "".join(
            f"<Part><PartNumber>{part}</PartNumber><ETag>{tag}</ETag></Part>"
            for part, tag in enumerate(tags, 1)
        )
        body = f"<CompleteMultipartUpload>{rows}</CompleteMultipartUpload>".encode()
        ended = self._requests.ask(
            "POST", path, query=f"uploadId={number}", body=[body], body_bytes=len(body)
        )
        _done(ended, "complete upload", (200,))
        digests = b"".join(bytes.fromhex(tag) for tag in tags)
        wanted = f"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(tags)}"
        if tag := _text(ended, "CompleteMultipartUploadResult", "ETag"):  # Ceph 16 gives none
            _agree(tag, wanted)

    def _write_segments(
        self, container: str, name: str, version: int, pieces: Iterator[bytes]
    ) -> None:
        rows = []
        for number, size_bytes in enumerate(SWIFT_SEGMENTS):
            # A new name for each version: an older one keeps what it consists of.
            path = f"/{segments_container(container)}/{name}-{version}-{number}"
            rows.append(
                {
                    "path": path,
                    "etag": self._put(path, pieces, size_bytes),
                    "size_bytes": size_bytes,
                }
            )
        body = json.dumps(rows).encode()
        answer = self._requests.ask(
            "PUT",
            f"/{container}/{name}",
            query="multipart-manifest=put",
            body=[body],
            body_bytes=len(body),
        )
        _done(answer, "PUT manifest", (201,))


# Parts and segments are taken from an object's pieces as they are.
assert all(size % PIECE_BYTES == 0 for size in (*S3_PARTS, SWIFT_SEGMENTS[0]))  # noqa: S101


def _done(answer: Answer, operation: str, wanted: tuple[int, ...]) -> None:
    if answer.end != "complete":
        raise NotDone(f"{operation}: {answer.status}, and an answer that is {answer.end}")
    if answer.status not in wanted:
        said = answer.body[:_WORDS].decode(errors="replace")
        raise NotDone(f"{operation}: {answer.status} {said}".rstrip())


def _agree(found: str, wanted: str) -> None:
    if found.strip().strip('"') != wanted:
        raise NotDone(f"the ETag {found[:_WORDS]}, of what was sent it is {wanted}")


def _text(answer: Answer, root: str, field: str) -> str:
    """A field of an answer in XML with this root, which an error has not."""
    try:
        found = plain_xml.parse(answer.body.strip())
    except plain_xml.NotPlain as error:
        raise NotDone(f"{root} was expected: {error}") from None
    if found.tag.rpartition("}")[2] != root:
        said = answer.body[:_WORDS].decode(errors="replace")
        raise NotDone(f"{answer.status}, and no {root}: {said}")
    return (found.findtext(f"{{*}}{field}") or "").strip()
