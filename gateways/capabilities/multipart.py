"""S3: uploads in parts."""

from __future__ import annotations

import base64
import os
from contextlib import suppress
from functools import partial
from typing import Any, Final, Self

from weighbridge.gateways.capabilities.capability import (
    Answer,
    Refused,
    Unknown,
    Wrong,
    capability,
    works,
)
from weighbridge.gateways.capabilities.digests import checksum
from weighbridge.gateways.capabilities.session import S3Session, expect_part, preparing

SMALLEST_PART_BYTES: Final = 5 * 1024 * 1024
"""All parts but the last must be at least so large (S3 User Guide, multipart upload limits)."""
_LAST_BYTES: Final = 1000

_multipart = partial(capability, "s3", "multipart")


class Upload:
    """An upload in parts, begun; as a context manager it is given up if it is still there."""

    def __init__(self, store: S3Session, **parameters: Any) -> None:
        self._store = store
        self.key = store.new()
        self._at: dict[str, Any] = {"Bucket": store.bucket, "Key": self.key}
        self._at["UploadId"] = self.ask("create_multipart_upload", **parameters)["UploadId"]
        self.parts: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Refused, Unknown):  # it is complete, or was given up
            self.ask("abort_multipart_upload")

    def part(self, body: bytes, **parameters: Any) -> dict[str, Any]:
        """Upload the next part."""
        number = len(self.parts) + 1
        answer = self.ask("upload_part", PartNumber=number, Body=body, **parameters)
        self.parts.append({"PartNumber": number, "ETag": answer["ETag"]})
        return answer

    def prepare(self, *bodies: bytes) -> None:
        """Upload parts that a capability needs first. Raises Unknown."""
        with preparing():
            for body in bodies:
                self.part(body)

    def complete(self) -> None:
        """Make an object of the parts."""
        self.ask("complete_multipart_upload", MultipartUpload={"Parts": self.parts})

    def ask(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """An operation of boto3 on this upload."""
        return self._store.ask(operation, **self._at, **parameters)


@_multipart("Upload in parts", "two parts of 5 MiB and 1000 bytes, complete, GET")
def multipart(store: S3Session) -> Answer:
    """The object is the parts, one after the other."""
    parts = _two_parts()
    with Upload(store) as upload:
        for part in parts:
            upload.part(part)
        upload.complete()
        return store.expect(upload.key, b"".join(parts), 200)


@_multipart("List parts", "two parts, list_parts")
def list_parts(store: S3Session) -> Answer:
    """Both parts, with their sizes."""
    with Upload(store) as upload:
        upload.prepare(b"a" * 20, b"b" * 30)
        parts = upload.ask("list_parts").get("Parts", ())
    sizes = [(part["PartNumber"], part["Size"]) for part in parts]
    if sizes != [(1, 20), (2, 30)]:
        raise Wrong(f"the parts (number, size) {sizes}", status=200)
    return works(status=200)


@_multipart("List uploads", "create_multipart_upload, list uploads")
def list_uploads(store: S3Session) -> Answer:
    """An upload that has begun is listed."""
    with Upload(store) as upload:
        page = store.ask("list_multipart_uploads", Bucket=store.bucket, Prefix=upload.key)
        if upload.key not in [begun["Key"] for begun in page.get("Uploads", ())]:
            raise Wrong("an upload that has begun is not listed", status=200)
    return works(status=200)


@_multipart("Abort", "a part, abort, list_parts")
def abort(store: S3Session) -> Answer:
    """Nothing is left of the upload."""
    with Upload(store) as upload:
        upload.prepare(b"a" * 20)
        upload.ask("abort_multipart_upload")
        try:
            upload.ask("list_parts")
        except Refused as gone:
            return works(status=gone.status)
    raise Wrong("its parts are still listed", status=200)


@_multipart("A part too small is refused", "two parts of 1000 bytes, complete")
def part_too_small(store: S3Session) -> Answer:
    """400 EntityTooSmall, and there is no object."""
    with Upload(store) as upload:
        upload.prepare(b"a" * 1000, b"b" * 1000)
        try:
            upload.complete()
        except Refused as refused:
            if store.read(upload.key) is not None:
                raise Wrong("refused, but stored", status=refused.status) from None
            return works(refused.code, status=refused.status)
    raise Wrong("taken", status=200)


@_multipart("Part by copy", "upload_part_copy with a range, complete, GET")
def part_copy(store: S3Session) -> Answer:
    """A part is made of a range of another object."""
    body = os.urandom(_LAST_BYTES)
    source = {"Bucket": store.bucket, "Key": store.put(body)}
    copied = {"CopySource": source, "CopySourceRange": "bytes=100-299"}
    with Upload(store) as upload:
        answer = upload.ask("upload_part_copy", PartNumber=1, **copied)
        upload.parts.append({"PartNumber": 1, "ETag": answer["CopyPartResult"]["ETag"]})
        upload.complete()
        return store.expect(upload.key, body[100:300], 200)


@_multipart("Checksum of an upload", "create with ChecksumAlgorithm=CRC32, HEAD")
def multipart_checksum(store: S3Session) -> Answer:
    """The object's CRC32 is kept, of the whole or of the parts' checksums."""
    body = os.urandom(_LAST_BYTES)
    with Upload(store, ChecksumAlgorithm="CRC32") as upload:
        answer = upload.part(body, ChecksumAlgorithm="CRC32")
        if answer.get("ChecksumCRC32"):
            upload.parts[0]["ChecksumCRC32"] = answer["ChecksumCRC32"]
        upload.complete()
        store.expect(upload.key, body, 200)
        head = {"Bucket": store.bucket, "Key": upload.key, "ChecksumMode": "ENABLED"}
        kept = store.ask_back("head_object", **head).get("ChecksumCRC32")
    whole = checksum("crc32", body)
    if kept not in (whole, f"{checksum('crc32', base64.b64decode(whole))}-1"):
        raise Wrong(f"not kept: HEAD says {kept or 'nothing'}", status=200)
    return works(status=200)


@_multipart("partNumber", "GET ?partNumber=2 of an object of two parts")
def part_number(store: S3Session) -> Answer:
    """The bytes of one part."""
    parts = _two_parts()
    with Upload(store) as upload:
        upload.prepare(*parts)
        with preparing():
            upload.complete()
        answer = store.send("GET", upload.key, "partNumber=2")
    expect_part(answer, b"".join(parts), parts[1])
    return works(answer.headers.get("content-range", "no Content-Range"), status=answer.status)


def _two_parts() -> tuple[bytes, bytes]:
    return os.urandom(SMALLEST_PART_BYTES), os.urandom(_LAST_BYTES)
