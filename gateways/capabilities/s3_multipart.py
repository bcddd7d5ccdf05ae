"""S3: uploads in parts."""

from __future__ import annotations

import base64
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from weighbridge.gateways.capabilities.capability import (
    Answer,
    Refused,
    Unknown,
    Wrong,
    capability,
    works,
)
from weighbridge.gateways.capabilities.s3_session import S3Session
from weighbridge.gateways.capabilities.session import accepted, how_it_differs, preparing

SMALLEST_PART_BYTES: Final = 5 * 1024 * 1024
"""All parts but the last must be at least so large (S3 User Guide, multipart upload limits)."""
_LAST_BYTES: Final = 1000


class Upload:
    """An upload in parts, begun."""

    def __init__(self, store: S3Session, **parameters: Any) -> None:
        self._store = store
        self.key = store.new()
        self._at: dict[str, Any] = {"Bucket": store.bucket, "Key": self.key}
        made = store.ask("create_multipart_upload", **self._at, **parameters)
        self._at["UploadId"] = made["UploadId"]
        self.parts: list[dict[str, Any]] = []

    def part(self, body: bytes, **parameters: Any) -> dict[str, Any]:
        """Upload the next part."""
        number = len(self.parts) + 1
        answer = self.ask("upload_part", PartNumber=number, Body=body, **parameters)
        self.parts.append({"PartNumber": number, "ETag": answer["ETag"]})
        return answer

    def complete(self) -> dict[str, Any]:
        """Make an object of the parts."""
        return self.ask("complete_multipart_upload", MultipartUpload={"Parts": self.parts})

    def ask(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """An operation of boto3 on this upload."""
        return self._store.ask(operation, **self._at, **parameters)


@contextmanager
def uploading(store: S3Session, **parameters: Any) -> Iterator[Upload]:
    """An upload that is given up at the end if it is still there."""
    upload = Upload(store, **parameters)
    try:
        yield upload
    finally:
        with suppress(Refused, Unknown):  # it is complete, or was given up
            upload.ask("abort_multipart_upload")


@capability(
    "s3", "multipart", "Upload in parts", asks="two parts of 5 MiB and 1000 bytes, complete, GET"
)
def multipart(store: S3Session) -> Answer:
    """The object is the parts, one after the other."""
    parts = _two_parts()
    with uploading(store) as upload:
        for part in parts:
            upload.part(part)
        upload.complete()
        store.expect(upload.key, b"".join(parts), 200)
    return works(status=200)


@capability("s3", "multipart", "List parts", asks="two parts, list_parts")
def list_parts(store: S3Session) -> Answer:
    """Both parts, with their sizes."""
    with uploading(store) as upload:
        with preparing():
            upload.part(b"a" * 20)
            upload.part(b"b" * 30)
        found = upload.ask("list_parts").get("Parts", ())
    sizes = [(one["PartNumber"], one["Size"]) for one in found]
    if sizes != [(1, 20), (2, 30)]:
        raise Wrong(f"the parts (number, size) {sizes}", status=200)
    return works(status=200)


@capability("s3", "multipart", "List uploads", asks="create_multipart_upload, list uploads")
def list_uploads(store: S3Session) -> Answer:
    """An upload that has begun is listed."""
    with uploading(store) as upload:
        found = store.ask("list_multipart_uploads", Bucket=store.bucket, Prefix=upload.key)
        if upload.key not in [one["Key"] for one in found.get("Uploads", ())]:
            raise Wrong("an upload that has begun is not listed", status=200)
    return works(status=200)


@capability("s3", "multipart", "Abort", asks="a part, abort, list_parts")
def abort(store: S3Session) -> Answer:
    """Nothing is left of the upload."""
    with uploading(store) as upload:
        with preparing():
            upload.part(b"a" * 20)
        upload.ask("abort_multipart_upload")
        try:
            upload.ask("list_parts")
        except Refused as gone:
            return works(status=gone.status)
    raise Wrong("its parts are still listed", status=200)


@capability(
    "s3", "multipart", "A part too small is refused", asks="two parts of 1000 bytes, complete"
)
def part_too_small(store: S3Session) -> Answer:
    """400 EntityTooSmall, and there is no object."""
    with uploading(store) as upload:
        with preparing():
            upload.part(b"a" * 1000)
            upload.part(b"b" * 1000)
        try:
            upload.complete()
        except Refused as refused:
            if store.read(upload.key) is not None:
                raise Wrong("refused, but stored", status=refused.status) from None
            return works(refused.code, status=refused.status)
    raise Wrong("taken", status=200)


@capability("s3", "multipart", "Part by copy", asks="upload_part_copy with a range, complete, GET")
def part_copy(store: S3Session) -> Answer:
    """A part is made of a range of another object."""
    body = os.urandom(_LAST_BYTES)
    source = {"Bucket": store.bucket, "Key": store.put(body)}
    with uploading(store) as upload:
        answer = upload.ask(
            "upload_part_copy", PartNumber=1, CopySource=source, CopySourceRange="bytes=100-299"
        )
        upload.parts.append({"PartNumber": 1, "ETag": answer["CopyPartResult"]["ETag"]})
        upload.complete()
        store.expect(upload.key, body[100:300], 200)
    return works(status=200)


@capability(
    "s3", "multipart", "Checksum of an upload", asks="create with ChecksumAlgorithm=CRC32, HEAD"
)
def multipart_checksum(store: S3Session) -> Answer:
    """The object's CRC32 is kept, of the whole or of the parts' checksums."""
    body = os.urandom(_LAST_BYTES)
    with uploading(store, ChecksumAlgorithm="CRC32") as upload:
        answer = upload.part(body, ChecksumAlgorithm="CRC32")
        if answer.get("ChecksumCRC32"):
            upload.parts[0]["ChecksumCRC32"] = answer["ChecksumCRC32"]
        upload.complete()
        store.expect(upload.key, body, 200)
        head = {"Bucket": store.bucket, "Key": upload.key, "ChecksumMode": "ENABLED"}
        found = store.ask_back("head_object", **head).get("ChecksumCRC32")
    if found not in (_crc(body), f"{_crc(base64.b64decode(_crc(body)))}-1"):
        raise Wrong(f"not kept: HEAD says {found or 'nothing'}", status=200)
    return works(status=200)


@capability("s3", "multipart", "partNumber", asks="GET ?partNumber=2 of an object of two parts")
def part_number(store: S3Session) -> Answer:
    """The bytes of one part."""
    parts = _two_parts()
    with uploading(store) as upload:
        with preparing():
            for part in parts:
                upload.part(part)
            upload.complete()
        answer = accepted(store.send("GET", upload.key, "partNumber=2"))
    if answer.body == b"".join(parts):
        raise Wrong("ignored: the complete object came", status=answer.status)
    if answer.body != parts[1]:
        raise Wrong(how_it_differs(answer.body, parts[1]), status=answer.status)
    return works(answer.headers.get("content-range", "no Content-Range"), status=answer.status)


def _two_parts() -> tuple[bytes, bytes]:
    return os.urandom(SMALLEST_PART_BYTES), os.urandom(_LAST_BYTES)


def _crc(body: bytes) -> str:
    return base64.b64encode(zlib.crc32(body).to_bytes(4, "big")).decode()
