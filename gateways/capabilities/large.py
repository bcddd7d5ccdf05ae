"""Objects of several parts: S3's uploads, Swift's large objects; many objects in one request."""

from __future__ import annotations

import base64
import io
import json
import os
import tarfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple, Self

from weighbridge.gateways.capabilities.capability import (
    Answer,
    Refused,
    Unknown,
    Wrong,
    capability,
    works,
)
from weighbridge.gateways.capabilities.digests import checksum, md5_of
from weighbridge.gateways.capabilities.objects import one_range
from weighbridge.gateways.capabilities.session import (
    S3Session,
    SwiftSession,
    accepted,
    expect_part,
    preparing,
)

SMALLEST_PART_BYTES: Final = 5 * 1024 * 1024
"""All parts but the last must be at least so large (S3 User Guide, multipart upload limits)."""
_BYTES: Final = 1000
"""Of a last part, a segment, a member."""

_multipart = partial(capability, "s3", "multipart")
_large = partial(capability, "swift", "large objects")
_bulk = partial(capability, "swift", "bulk")


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


@_multipart("Upload in parts", "two parts of 5 MiB and 1000 bytes, complete, GET", key="multipart")
def _in_parts(store: S3Session) -> Answer:
    parts = _two_parts()
    with Upload(store) as upload:
        for part in parts:
            upload.part(part)
        upload.complete()
        return store.expect(upload.key, b"".join(parts), 200)


@_multipart("List parts", "two parts, list_parts")
def _list_parts(store: S3Session) -> Answer:
    with Upload(store) as upload:
        upload.prepare(b"a" * 20, b"b" * 30)
        parts = upload.ask("list_parts").get("Parts", ())
    sizes = [(part["PartNumber"], part["Size"]) for part in parts]
    if sizes != [(1, 20), (2, 30)]:
        raise Wrong(f"the parts (number, size) {sizes}", status=200)
    return works(status=200)


@_multipart("List uploads", "create_multipart_upload, list uploads")
def _list_uploads(store: S3Session) -> Answer:
    with Upload(store) as upload:
        page = store.ask("list_multipart_uploads", Bucket=store.bucket, Prefix=upload.key)
        if upload.key not in [begun["Key"] for begun in page.get("Uploads", ())]:
            raise Wrong("an upload that has begun is not listed", status=200)
    return works(status=200)


@_multipart("Abort", "a part, abort, list_parts")
def _abort(store: S3Session) -> Answer:
    with Upload(store) as upload:
        upload.prepare(b"a" * 20)
        upload.ask("abort_multipart_upload")
        try:
            upload.ask("list_parts")
        except Refused as gone:
            return works(status=gone.status)
    raise Wrong("its parts are still listed", status=200)


@_multipart("A part too small is refused", "two parts of 1000 bytes, complete")
def _part_too_small(store: S3Session) -> Answer:
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
def _part_copy(store: S3Session) -> Answer:
    body = os.urandom(_BYTES)
    source = {"Bucket": store.bucket, "Key": store.put(body)}
    copied = {"CopySource": source, "CopySourceRange": "bytes=100-299"}
    with Upload(store) as upload:
        answer = upload.ask("upload_part_copy", PartNumber=1, **copied)
        upload.parts.append({"PartNumber": 1, "ETag": answer["CopyPartResult"]["ETag"]})
        upload.complete()
        return store.expect(upload.key, body[100:300], 200)


@_multipart("Checksum of an upload", "create with ChecksumAlgorithm=CRC32, HEAD")
def _multipart_checksum(store: S3Session) -> Answer:
    body = os.urandom(_BYTES)
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
def _part_number(store: S3Session) -> Answer:
    parts = _two_parts()
    with Upload(store) as upload:
        upload.prepare(*parts)
        with preparing():
            upload.complete()
        answer = store.send("GET", upload.key, "partNumber=2")
    expect_part(answer, b"".join(parts), parts[1])
    return works(answer.headers.get("content-range", "no Content-Range"), status=answer.status)


def _two_parts() -> tuple[bytes, bytes]:
    return os.urandom(SMALLEST_PART_BYTES), os.urandom(_BYTES)


class LargeObject(NamedTuple):
    """A large object that was accepted with `status`; its segments are objects, too."""

    key: str
    segments: dict[str, bytes]
    status: int

    @property
    def whole(self) -> bytes:
        """Its content."""
        return b"".join(self.segments.values())


def _segments(store: SwiftSession) -> dict[str, bytes]:
    segments = (os.urandom(_BYTES), os.urandom(_BYTES))
    return {store.put(segment): segment for segment in segments}


def _manifest(store: SwiftSession, segments: Mapping[str, bytes]) -> list[dict[str, Any]]:
    return [
        {"path": f"/{store.bucket}/{name}", "etag": md5_of(segment), "size_bytes": len(segment)}
        for name, segment in segments.items()
    ]


def _slo(store: SwiftSession) -> LargeObject:
    segments = _segments(store)
    key, manifest = store.new(), json.dumps(_manifest(store, segments)).encode()
    answer = accepted(store.send("PUT", key, "multipart-manifest=put", manifest))
    if store.read(key) == manifest:
        raise Wrong("ignored: the manifest was stored as the object", status=answer.status)
    return LargeObject(key, segments, answer.status)


def _dlo(store: SwiftSession) -> LargeObject:
    """A dynamic large object. Its segments' names are those of runs, with a prefix of their own.
    Raises Refused, Wrong or Unknown.
    """
    prefix = f"written-{store.new()}-"
    segments = {f"{prefix}{number}": os.urandom(_BYTES) for number in range(2)}
    with preparing():
        for name, segment in segments.items():
            accepted(store.send("PUT", name, "", segment))
    key, manifest = store.new(), {"X-Object-Manifest": f"{store.bucket}/{prefix}"}
    answer = accepted(store.send("PUT", key, headers=manifest))
    if store.read(key) == b"":
        raise Wrong("ignored: the object is empty", status=answer.status)
    return LargeObject(key, segments, answer.status)


def _whole(write: Callable[[SwiftSession], LargeObject], store: SwiftSession) -> Answer:
    large = write(store)
    return store.expect(large.key, large.whole, large.status)


def _range(write: Callable[[SwiftSession], LargeObject], store: SwiftSession) -> Answer:
    large = write(store)
    answer = store.send("GET", large.key, headers={"Range": "bytes=900-1099"})
    return one_range(answer, large.whole, first=900, end=1100)


_OVER_BOTH: Final = "GET with Range over both segments"
SLO: Final = (
    _large("SLO", "PUT ?multipart-manifest=put, GET", key="slo")(partial(_whole, _slo)),
    _large("SLO by range", _OVER_BOTH, key="slo-range")(partial(_range, _slo)),
)


@_large("A wrong segment ETag is refused", "the same with a wrong etag")
def _slo_wrong_etag(store: SwiftSession) -> Answer:
    _slo(store)
    rows = _manifest(store, _segments(store))
    rows[1]["etag"] = md5_of(b"other")
    key = store.new()
    answer = store.send("PUT", key, "multipart-manifest=put", json.dumps(rows).encode())
    return store.refused(answer, key, None, "a wrong segment ETag")


@_large("SLO manifest", "GET ?multipart-manifest=get")
def _slo_manifest(store: SwiftSession) -> Answer:
    large = _slo(store)
    answer = accepted(store.send("GET", large.key, "multipart-manifest=get"))
    if answer.body == large.whole:
        raise Wrong("ignored: the object came", status=answer.status)
    if answer.body.count(b'"name"') != len(large.segments):
        text = answer.body[:40].decode(errors="replace")
        raise Wrong(f"it does not name the segments: {text!r}", status=answer.status)
    return works(status=answer.status)


@_large("SLO by part number", "GET ?part-number=2")
def _slo_part_number(store: SwiftSession) -> Answer:
    large = _slo(store)
    answer = store.send("GET", large.key, "part-number=2")
    expect_part(answer, large.whole, large.whole[_BYTES:])
    return works(status=answer.status)


@_large("Delete an SLO's segments", "DELETE ?multipart-manifest=delete")
def _slo_delete(store: SwiftSession) -> Answer:
    large = _slo(store)
    answer = accepted(store.send("DELETE", large.key, "multipart-manifest=delete"))
    return store.gone((large.key, *large.segments), answer.status)


DLO: Final = (
    _large("DLO", "PUT with X-Object-Manifest, GET", key="dlo")(partial(_whole, _dlo)),
    _large("DLO by range", _OVER_BOTH, key="dlo-range")(partial(_range, _dlo)),
)


@_bulk("Bulk delete", "POST ?bulk-delete to the account")
def _bulk_delete(store: SwiftSession) -> Answer:
    """The objects are gone. Without `bulk` in its pipeline Swift answers 2xx and does nothing."""
    names = [store.put(b"1"), store.put(b"2")]
    body = "".join(f"{store.bucket}/{name}\n" for name in names).encode()
    kind = {"Content-Type": "text/plain", "Accept": "application/json"}
    answer = accepted(store.account("POST", "bulk-delete", body, kind))
    return store.gone(names, answer.status)


@_bulk("Archive of objects", "PUT ?extract-archive=tar, GET")
def _extract_archive(store: SwiftSession) -> Answer:
    body, names, tar = os.urandom(_BYTES), [store.new(), store.new()], io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body))
    answer = accepted(store.send("PUT", "", "extract-archive=tar", tar.getvalue()))
    there = sum(store.read(name) == body for name in names)
    if there < len(names):
        raise Wrong(f"{there} of {len(names)} members are objects", status=answer.status)
    return works(status=answer.status)
