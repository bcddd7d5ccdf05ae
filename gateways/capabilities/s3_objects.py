"""S3: objects, ranges, copies, metadata and tags."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from weighbridge.common.endpoint import ObjectApi
from weighbridge.common.exchange import HttpAnswer
from weighbridge.gateways.capabilities.capability import (
    Answer,
    Capability,
    Wrong,
    capability,
    works,
)
from weighbridge.gateways.capabilities.s3_session import S3Session
from weighbridge.gateways.capabilities.session import StoreSession, accepted, how_it_differs

SIZE_BYTES: Final = 1000


@capability("s3", "objects", "boto3's default PUT", asks="put_object of boto3 as it is set up")
def put_default(store: S3Session) -> Answer:
    """As applications write; boto3 adds a CRC32, over https as a trailer of aws-chunked."""
    body, key = os.urandom(SIZE_BYTES), store.new()
    answer = store.ask("put_object", Bucket=store.bucket, Key=key, Body=body)
    store.expect(key, body, 200)
    digest = hashlib.md5(body, usedforsecurity=False).hexdigest()
    if answer.get("ETag", "").strip('"') != digest:
        raise Wrong(f"the ETag {answer.get('ETag')} is not the MD5 of what was sent", status=200)
    return works(status=200)


@capability("s3", "objects", "DELETE", asks="DELETE of an object, then GET")
def delete(store: S3Session) -> Answer:
    """A deleted object is gone, and deleting again is no error."""
    key = store.put(b"to be deleted")
    answer = accepted(store.send("DELETE", key))
    if store.read(key) is not None:
        raise Wrong("the object can still be read", status=answer.status)
    accepted(store.send("DELETE", key))
    return works(status=answer.status)


@capability("s3", "objects", "User metadata and headers", asks="PUT with x-amz-meta-*, HEAD")
def metadata(store: S3Session) -> Answer:
    """Metadata, Content-Type and Cache-Control come back as they were sent."""
    sent = {"x-amz-meta-colour": "dark red", "content-type": "text/x-wb", "cache-control": "no-wb"}
    key, _ = store.write(b"body", sent)
    return _has(accepted(store.send("HEAD", key)), sent)


@capability("s3", "objects", "response-content-type", asks="GET with ?response-content-type=")
def response_headers(store: S3Session) -> Answer:
    """A signed GET may say with which headers it is answered."""
    key = store.put(b"body")
    answer = accepted(store.send("GET", key, "response-content-type=text%2Fx-wb"))
    return _has(answer, {"content-type": "text/x-wb"})


@capability("s3", "objects", "Copy", asks="copy_object of boto3, then GET")
def copy(store: S3Session) -> Answer:
    """The copy has the content and the metadata of the source."""
    body, target = os.urandom(SIZE_BYTES), store.new()
    source = {
        "Bucket": store.bucket,
        "Key": store.put(body, {"x-amz-meta-colour": "red"}),
    }
    store.ask("copy_object", Bucket=store.bucket, Key=target, CopySource=source)
    store.expect(target, body, 200)
    return _has(store.send("HEAD", target), {"x-amz-meta-colour": "red"})


@capability(
    "s3", "objects", "Copy onto itself, new metadata", asks="copy_object, MetadataDirective=REPLACE"
)
def copy_replace(store: S3Session) -> Answer:
    """The usual way of changing an object's metadata."""
    key = store.put(b"body", {"x-amz-meta-colour": "red", "x-amz-meta-old": "1"})
    store.ask(
        "copy_object",
        Bucket=store.bucket,
        Key=key,
        CopySource={"Bucket": store.bucket, "Key": key},
        MetadataDirective="REPLACE",
        Metadata={"colour": "blue"},
    )
    store.expect(key, b"body", 200)
    answer = store.send("HEAD", key)
    if "x-amz-meta-old" in answer.headers:
        raise Wrong("metadata that was to be replaced is still there", status=200)
    return _has(answer, {"x-amz-meta-colour": "blue"})


@capability("s3", "objects", "Tags of an object", asks="put_object_tagging, get_object_tagging")
def object_tags(store: S3Session) -> Answer:
    """Tags come back, and are gone after they were deleted."""
    at = {"Bucket": store.bucket, "Key": store.put(b"body")}
    tags = [{"Key": "colour", "Value": "red"}, {"Key": "size", "Value": "1"}]
    store.ask("put_object_tagging", **at, Tagging={"TagSet": tags})
    found = store.ask_back("get_object_tagging", **at)["TagSet"]
    if sorted(found, key=str) != sorted(tags, key=str):
        raise Wrong(f"accepted, but {found} is read", status=200)
    store.ask("delete_object_tagging", **at)
    if store.ask_back("get_object_tagging", **at)["TagSet"]:
        raise Wrong("tags that were deleted are still there", status=200)
    return works(status=200)


@capability("s3", "objects", "GetObjectAttributes", asks="GET ?attributes")
def attributes(store: S3Session) -> Answer:
    """The size and ETag of an object, as a document."""
    body = os.urandom(SIZE_BYTES)
    answer = accepted(
        store.send(
            "GET",
            store.put(body),
            "attributes",
            headers={"x-amz-object-attributes": "ETag,ObjectSize"},
        )
    )
    if answer.body == body:
        raise Wrong("ignored: the object itself came", status=answer.status)
    if f"<ObjectSize>{SIZE_BYTES}</ObjectSize>".encode() not in answer.body:
        raise Wrong("the size of the object is not in the answer", status=answer.status)
    return works(status=answer.status)


def one_range(answer: HttpAnswer, body: bytes, part: slice, content_range: str) -> Answer:
    """Judge the answer to a GET of one range."""
    if answer.body == body:
        raise Wrong("ignored: the complete object came", status=answer.status)
    if answer.body != body[part]:
        raise Wrong(how_it_differs(answer.body, body[part]), status=answer.status)
    if answer.status != 206 or answer.headers.get("content-range") != content_range:
        said = answer.headers.get("content-range")
        raise Wrong(f"the right bytes, but Content-Range {said}", status=answer.status)
    return works(status=206)


def _part(answer: HttpAnswer, body: bytes, part: slice) -> Answer:
    content_range = f"bytes {part.start}-{part.stop - 1}/{SIZE_BYTES}"
    return one_range(accepted(answer), body, part, content_range)


def _beyond(answer: HttpAnswer, _body: bytes) -> Answer:
    if answer.status == 416:
        return works(status=416)
    accepted(answer)
    raise Wrong("ignored: 416 was expected", status=answer.status)


def _both(answer: HttpAnswer, body: bytes) -> Answer:
    if accepted(answer).body == body:
        raise Wrong("ignored: the complete object came", status=answer.status)
    if answer.body == body[:10]:
        raise Wrong("only the first range came", status=answer.status)
    kind = answer.headers.get("content-type", "")
    whole = body[:10] in answer.body and body[500:510] in answer.body
    if answer.status != 206 or not kind.startswith("multipart/byteranges") or not whole:
        raise Wrong(f"not both ranges: {len(answer.body)} bytes of {kind}", status=answer.status)
    return works(status=206)


def _ranged(
    store: StoreSession, asked: str, judge: Callable[[HttpAnswer, bytes], Answer]
) -> Answer:
    body = os.urandom(SIZE_BYTES)
    return judge(store.send("GET", store.put(body), headers={"Range": asked}), body)


def ranges(api: ObjectApi) -> tuple[Capability, ...]:
    """What is asked of ranges over either API."""
    rows: Sequence[tuple[str, str, str, Callable[[HttpAnswer, bytes], Answer]]] = (
        ("single", "One range", "bytes=100-199", partial(_part, part=slice(100, 200))),
        ("suffix", "The last bytes", "bytes=-100", partial(_part, part=slice(900, 1000))),
        ("beyond", "A range beyond the end", "bytes=5000-6000", _beyond),
        ("many", "Two ranges", "bytes=0-9,500-509", _both),
    )
    return tuple(
        capability(api, "ranges", title, asks=f"GET with Range: {asked}", key=f"range-{key}")(
            partial(_ranged, asked=asked, judge=judge)
        )
        for key, title, asked, judge in rows
    )


RANGES: Final = ranges("s3")


def _has(answer: HttpAnswer, headers: dict[str, str]) -> Answer:
    """Works if the answer has these headers. Raises Wrong."""
    for name, value in headers.items():
        if answer.headers.get(name) != value:
            raise Wrong(f"{name}: {answer.headers.get(name)}, not {value}", status=answer.status)
    return works(status=answer.status)
