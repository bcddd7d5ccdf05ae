"""Objects of several parts: S3's uploads, Swift's large objects; many objects in one request, and
listings of many.
"""

from __future__ import annotations

import base64
import io
import json
import os
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, Self

from weighbridge.common import plain_xml
from weighbridge.common.exchange import HttpAnswer
from weighbridge.gateways.capabilities.capability import Refused, Unknown, Wrong, capability
from weighbridge.gateways.capabilities.objects import one_range
from weighbridge.gateways.capabilities.session import (
    FOLDERS,
    NAMES,
    SIZE_BYTES,
    Session,
    accepted,
    checksum,
    md5_of,
    preparing,
)

SMALLEST_PART_BYTES: Final = 5 * 1024 * 1024
"""All parts but the last must be at least so large (S3 User Guide, multipart upload limits)."""
_MOST_PAGES: Final = 500

_multipart = partial(capability, "s3", "multipart")
_large = partial(capability, "swift", "large objects")
_bulk = partial(capability, "swift", "bulk")
_s3_listing = partial(capability, "s3", "listing")
_swift_listing = partial(capability, "swift", "listing")


class Upload:
    """An upload in parts, begun; as a context manager it is given up if it is still there."""

    def __init__(self, store: Session, **parameters: Any) -> None:
        self._store = store
        self.key = store.new()
        begun = store.boto("create_multipart_upload", self.key, **parameters)
        self.ask = partial(store.boto, key=self.key, UploadId=begun["UploadId"])
        """An operation of boto3 on this upload."""
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


@_multipart("Upload in parts", "two parts of 5 MiB and 1000 bytes, complete, GET", key="multipart")
def _in_parts(store: Session) -> None:
    parts = _two_parts()
    with Upload(store) as upload:
        for part in parts:
            upload.part(part)
        upload.complete()
        store.expect(upload.key, b"".join(parts))


@_multipart("List parts", "two parts, list_parts")
def _list_parts(store: Session) -> None:
    with Upload(store) as upload:
        upload.prepare(b"a" * 20, b"b" * 30)
        parts = upload.ask("list_parts").get("Parts", ())
    sizes = [(part["PartNumber"], part["Size"]) for part in parts]
    if sizes != [(1, 20), (2, 30)]:
        raise Wrong(f"the parts (number, size) {sizes}")


@_multipart("List uploads", "create_multipart_upload, list uploads")
def _list_uploads(store: Session) -> None:
    with Upload(store) as upload:
        page = store.boto("list_multipart_uploads", Prefix=upload.key)
        if upload.key not in [begun["Key"] for begun in page.get("Uploads", ())]:
            raise Wrong("an upload that has begun is not listed")


@_multipart("Abort", "a part, abort, list_parts")
def _abort(store: Session) -> None:
    with Upload(store) as upload:
        upload.prepare(b"a" * 20)
        upload.ask("abort_multipart_upload")
        store.denied("its parts are still listed", partial(upload.ask, "list_parts"))


@_multipart("A part too small is refused", "two parts of 1000 bytes, complete")
def _part_too_small(store: Session) -> str:
    with Upload(store) as upload:
        upload.prepare(b"a" * 1000, b"b" * 1000)
        code = store.denied("taken", upload.complete)
        if store.read(upload.key) is not None:
            raise Wrong("refused, but stored")
    return code


@_multipart("Part by copy", "upload_part_copy with a range, complete, GET")
def _part_copy(store: Session) -> None:
    body = os.urandom(SIZE_BYTES)
    source, part = store.at(store.put(body)), "bytes=100-299"
    with Upload(store) as upload:
        answer = upload.ask(
            "upload_part_copy", PartNumber=1, CopySource=source, CopySourceRange=part
        )
        upload.parts.append({"PartNumber": 1, "ETag": answer["CopyPartResult"]["ETag"]})
        upload.complete()
        store.expect(upload.key, body[100:300])


@_multipart("Checksum of an upload", "create with ChecksumAlgorithm=CRC32, HEAD")
def _multipart_checksum(store: Session) -> None:
    body = os.urandom(SIZE_BYTES)
    with Upload(store, ChecksumAlgorithm="CRC32") as upload:
        answer = upload.part(body, ChecksumAlgorithm="CRC32")
        if answer.get("ChecksumCRC32"):
            upload.parts[0]["ChecksumCRC32"] = answer["ChecksumCRC32"]
        upload.complete()
        store.expect(upload.key, body)
        head = store.boto_back("head_object", upload.key, ChecksumMode="ENABLED")
    kept = head.get("ChecksumCRC32")
    whole = checksum("crc32", body)
    if kept not in (whole, f"{checksum('crc32', base64.b64decode(whole))}-1"):
        raise Wrong(f"not kept: HEAD says {kept or 'nothing'}")


@_multipart("partNumber", "GET ?partNumber=2 of an object of two parts")
def _part_number(store: Session) -> str:
    parts = _two_parts()
    with Upload(store) as upload:
        upload.prepare(*parts)
        with preparing():
            upload.complete()
        answer = store.send("GET", upload.key, "partNumber=2")
    store.part(answer, b"".join(parts), parts[1])
    return answer.headers.get("content-range", "no Content-Range")


def _two_parts() -> tuple[bytes, bytes]:
    return os.urandom(SMALLEST_PART_BYTES), os.urandom(SIZE_BYTES)


LargeObject = tuple[str, bytes, list[str]]
"""Name, content and segments of a large object that was accepted. Segments are objects, too."""


def _manifest(store: Session) -> tuple[list[dict[str, Any]], LargeObject]:
    rows, whole, names = [], b"", []
    for _ in range(2):
        segment = os.urandom(SIZE_BYTES)
        whole += segment
        names.append(store.put(segment))
        path = f"/{store.bucket}/{names[-1]}"
        rows.append({"path": path, "etag": md5_of(segment), "size_bytes": SIZE_BYTES})
    return rows, (store.new(), whole, names)


def _slo(store: Session) -> LargeObject:
    rows, large = _manifest(store)
    manifest = json.dumps(rows).encode()
    store.ask("PUT", large[0], "multipart-manifest=put", manifest)
    if store.read(large[0]) == manifest:
        raise Wrong("ignored: the manifest was stored as the object")
    return large


def _dlo(store: Session) -> LargeObject:
    """Its segments' names are those of runs, with a prefix of their own."""
    prefix = f"written-{store.new()}-"
    key, whole = store.new(), os.urandom(2 * SIZE_BYTES)
    names = [f"{prefix}0", f"{prefix}1"]
    with preparing():
        accepted(store.send("PUT", names[0], "", whole[:SIZE_BYTES]))
        accepted(store.send("PUT", names[1], "", whole[SIZE_BYTES:]))
    store.ask("PUT", key, headers={"X-Object-Manifest": f"{store.bucket}/{prefix}"})
    if store.read(key) == b"":
        raise Wrong("ignored: the object is empty")
    return key, whole, names


def _whole(write: Callable[[Session], LargeObject], store: Session) -> None:
    key, whole, _ = write(store)
    store.expect(key, whole)


def _range(write: Callable[[Session], LargeObject], store: Session) -> None:
    key, whole, _ = write(store)
    answer = store.send("GET", key, headers={"Range": "bytes=900-1099"})
    one_range(store, answer, whole, 900, 1100)


_OVER_BOTH: Final = "GET with Range over both segments"
SLO: Final = (
    _large("SLO", "PUT ?multipart-manifest=put, GET", key="slo")(partial(_whole, _slo)),
    _large("SLO by range", _OVER_BOTH, key="slo-range")(partial(_range, _slo)),
)


@_large("A wrong segment ETag is refused", "the same with a wrong etag")
def _slo_wrong_etag(store: Session) -> None:
    _slo(store)
    rows, (key, _, _) = _manifest(store)
    rows[1]["etag"] = md5_of(b"other")
    answer = store.send("PUT", key, "multipart-manifest=put", json.dumps(rows).encode())
    store.refused(answer, key, None, "a wrong segment ETag")


@_large("SLO manifest", "GET ?multipart-manifest=get")
def _slo_manifest(store: Session) -> None:
    key, whole, names = _slo(store)
    body = store.ask("GET", key, "multipart-manifest=get").body
    if body == whole:
        raise Wrong("ignored: the object came")
    if body.count(b'"name"') != len(names):
        raise Wrong(f"it does not name the segments: {body[:40].decode(errors='replace')!r}")


@_large("SLO by part number", "GET ?part-number=2")
def _slo_part_number(store: Session) -> None:
    key, whole, _ = _slo(store)
    store.part(store.send("GET", key, "part-number=2"), whole, whole[SIZE_BYTES:])


@_large("Delete an SLO's segments", "DELETE ?multipart-manifest=delete")
def _slo_delete(store: Session) -> None:
    key, _, names = _slo(store)
    store.ask("DELETE", key, "multipart-manifest=delete")
    store.gone(key, *names)


DLO: Final = (
    _large("DLO", "PUT with X-Object-Manifest, GET", key="dlo")(partial(_whole, _dlo)),
    _large("DLO by range", _OVER_BOTH, key="dlo-range")(partial(_range, _dlo)),
)


@_bulk("Bulk delete", "POST ?bulk-delete to the account")
def _bulk_delete(store: Session) -> None:
    """The objects are gone. Without `bulk` in its pipeline Swift answers 2xx and does nothing."""
    names = [store.put(b"1"), store.put(b"2")]
    body = "".join(f"{store.bucket}/{name}\n" for name in names).encode()
    kind = {"Content-Type": "text/plain", "Accept": "application/json"}
    store.ask("POST", "", "bulk-delete", body, kind, bucket="")
    store.gone(*names)


@_bulk("Archive of objects", "PUT ?extract-archive=tar, GET")
def _extract_archive(store: Session) -> None:
    body, names, tar = os.urandom(SIZE_BYTES), [store.new(), store.new()], io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body))
    store.ask("PUT", "", "extract-archive=tar", tar.getvalue())
    there = sum(store.read(name) == body for name in names)
    if there < len(names):
        raise Wrong(f"{there} of {len(names)} members are objects")


_PREFIX: Final = f"written-{FOLDERS[2]}-"
_WITH_PREFIX: Final = tuple(name for name in NAMES if name.startswith(_PREFIX))
_ALL_FOLDERS: Final = tuple(f"written-{folder}-" for folder in FOLDERS)


def _complete(pages: Sequence[Sequence[str]], wanted: Sequence[str]) -> str:
    names = [name for page in pages for name in page]
    sizes = ", ".join(str(len(page)) for page in pages[:6])
    if len(pages) > 6:
        sizes += " ..."
    if names == list(wanted):
        return f"pages of {sizes}"
    if len(names) < len(wanted):
        raise Wrong(f"cut short: {len(names)} of {len(wanted)} names; pages of {sizes}")
    raise Wrong(f"not the names that were written: {len(names)}; pages of {sizes}")


def _s3_pages(store: Session, operation: str, **parameters: Any) -> Iterator[list[str]]:
    for _ in range(_MOST_PAGES):
        page = store.boto(operation, bucket=store.full_bucket, **parameters)
        names = [row["Key"] for row in page.get("Contents", ())]
        yield [*(row["Prefix"] for row in page.get("CommonPrefixes", ())), *names]
        if not page.get("IsTruncated"):
            return
        if operation == "list_objects_v2":
            marker, following = "ContinuationToken", page.get("NextContinuationToken")
        else:
            marker, following = "Marker", page.get("NextMarker") or "".join(names[-1:])
        if not following or parameters.get(marker) == following:
            raise Wrong("truncated, but it does not say how to go on")
        parameters[marker] = following
    raise Wrong(f"a listing of more than {_MOST_PAGES} pages")


def _s3_listed(
    operation: str, parameters: Mapping[str, Any], wanted: Sequence[str], store: Session
) -> str:
    """Each name or folder once; pages may be shorter than asked for."""
    return _complete(list(_s3_pages(store, operation, **parameters)), wanted)


def _s3_hundreds(store: Session) -> str:
    pages = list(_s3_pages(store, "list_objects_v2", MaxKeys=100))
    longest = max(map(len, pages))
    if longest > 100:
        raise Wrong(f"a page of {longest} names")
    return _complete(pages, NAMES)


_V1, _V2 = partial(_s3_listed, "list_objects"), partial(_s3_listed, "list_objects_v2")
_FIVE_FOLDERS: Final = {"Prefix": "written-", "Delimiter": "-", "MaxKeys": 5}
_THIRTY: Final = {"Prefix": _PREFIX, "MaxKeys": 30}
S3_LISTINGS: Final = tuple(
    _s3_listing(title, asks, key=f"list-{key}")(probe)
    for key, title, asks, probe in (
        ("v1", "List v1, page by page", "list_objects until not truncated",
         partial(_V1, {}, NAMES)),
        ("v2", "List v2, page by page", "list_objects_v2 until not truncated",
         partial(_V2, {}, NAMES)),
        ("max-keys", "List v2 in pages of 100", "list_objects_v2, MaxKeys=100", _s3_hundreds),
        ("prefix", "List v2 with a prefix", "list_objects_v2, Prefix=",
         partial(_V2, _THIRTY, _WITH_PREFIX)),
        ("delimiter", "List v2 with a delimiter", "list_objects_v2, Delimiter, MaxKeys=5",
         partial(_V2, _FIVE_FOLDERS, _ALL_FOLDERS)),
        ("v1-delimiter", "List v1 with a delimiter", "list_objects, Delimiter, MaxKeys=5",
         partial(_V1, _FIVE_FOLDERS, _ALL_FOLDERS)),
        ("start-after", "StartAfter", "list_objects_v2, StartAfter=",
         partial(_V2, {"StartAfter": NAMES[-21]}, NAMES[-20:])),
    )
)  # fmt: skip


@_s3_listing("Multi-delete by boto3", "delete_objects of boto3")
def _multi_delete(store: Session) -> None:
    """Objects are gone; one that was not there is no error. boto3 sends a CRC32."""
    keys = [store.put(b"1"), store.put(b"2")]
    objects = [{"Key": key} for key in (*keys, "object-0")]
    answer = store.boto("delete_objects", Delete={"Objects": objects})
    if answer.get("Errors"):
        raise Unknown(f"errors in the answer: {answer['Errors']}", status=200)
    store.gone(*keys)


@_s3_listing("Multi-delete with Content-MD5", "POST ?delete with Content-MD5")
def _multi_delete_md5(store: Session) -> None:
    keys = [store.put(b"1"), store.put(b"2")]
    answer = store.decide(_deleted(store, keys))
    try:
        plain_xml.parse(answer.body)
    except ValueError as error:
        raise Unknown(f"its answer is not XML: {error}", status=answer.status) from None
    store.gone(*keys)


@_s3_listing("Multi-delete of 1001 is refused", "POST ?delete with 1001 names")
def _multi_delete_too_many(store: Session) -> None:
    """400: 1000 are allowed (S3 API reference, DeleteObjects)."""
    key = store.put(b"1")
    answer = _deleted(store, [key, *(f"object-{number}" for number in range(10_000, 11_000))])
    store.refused(answer, key, b"1", "1001 names")


def _deleted(store: Session, keys: Sequence[str]) -> HttpAnswer:
    objects = "".join(f"<Object><Key>{key}</Key></Object>" for key in keys)
    body = f"<Delete>{objects}</Delete>".encode()
    return store.send("POST", "", "delete", body, {"Content-MD5": checksum("md5", body)})


def _swift_page(store: Session, query: str) -> list[str]:
    answer = store.ask("GET", "", f"format=json&{query}", bucket=store.full_bucket)
    try:
        page = json.loads(answer.body or b"[]")
        if not isinstance(page, list) or not all(isinstance(row, dict) for row in page):
            raise ValueError("no list of objects")  # noqa: TRY301 - as what cannot be read at all
    except (ValueError, RecursionError) as error:
        raise Unknown(f"its listing cannot be read: {error}", status=answer.status) from None
    return [str(row.get("subdir", row.get("name"))) for row in page]


def _swift_pages(query: str, store: Session) -> Iterator[list[str]]:
    marker = ""
    for _ in range(_MOST_PAGES):
        names = _swift_page(store, f"{query}&marker={marker}")
        if not names:
            return
        yield names
        if names[-1] <= marker:
            raise Wrong("a page does not begin behind its marker")
        marker = names[-1]
    raise Wrong(f"a listing of more than {_MOST_PAGES} pages")


def _swift_joined(query: str, wanted: Sequence[str], store: Session) -> str:
    return _complete(list(_swift_pages(query, store)), wanted)


def _swift_once(query: str, wanted: Sequence[str], store: Session) -> str:
    names = _swift_page(store, query)
    if "reverse" in query and names == list(NAMES[:20]):
        raise Wrong("ignored: the first names came")
    return _complete([names], wanted)


def _swift_full_pages(store: Session) -> str:
    """A page below its limit means the end: the API has no other sign of it."""
    pages = list(_swift_pages("limit=1000", store))
    if pages and len(pages[0]) < 1000:
        names = f"{len(pages[0])} names of {len(NAMES)}"
        raise Wrong(f"cut short: {names} though limit=1000; go on until a page is empty")
    return _complete(pages, NAMES)


_BETWEEN: Final = f"marker={NAMES[100]}&end_marker={NAMES[121]}"
SWIFT_LISTINGS: Final = tuple(
    _swift_listing(title, f"GET ?{asks}", key=key)(probe)
    for key, title, asks, probe in (
        ("list-all", "List until a page is empty", "marker=, pages of 1000",
         partial(_swift_joined, "limit=1000", NAMES)),
        ("full-pages", "Pages are full", "limit=1000 of 1300 objects", _swift_full_pages),
        ("list-large", "Limit of 10,000", "limit=10000 of 1300 objects",
         partial(_swift_once, "limit=10000", NAMES)),
        ("list-prefix", "Prefix", "prefix=",
         partial(_swift_joined, f"prefix={_PREFIX}&limit=30", _WITH_PREFIX)),
        ("list-delimiter", "Delimiter", "prefix=&delimiter=",
         partial(_swift_once, "prefix=written-&delimiter=-", _ALL_FOLDERS)),
        ("list-between", "marker and end_marker", "marker=&end_marker=",
         partial(_swift_once, _BETWEEN, NAMES[101:121])),
        ("list-reverse", "reverse", "reverse=true&limit=20",
         partial(_swift_once, "reverse=true&limit=20", NAMES[:-21:-1])),
    )
)  # fmt: skip
