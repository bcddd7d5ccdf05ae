"""Objects of both APIs: copies, metadata, tags, ranges and conditions; and Swift's /info."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from weighbridge.common.exchange import HttpAnswer
from weighbridge.gateways.capabilities.capability import (
    BOTH,
    Answer,
    Unknown,
    Wrong,
    both,
    capability,
    works,
)
from weighbridge.gateways.capabilities.digests import md5_of
from weighbridge.gateways.capabilities.session import (
    S3Session,
    StoreSession,
    SwiftSession,
    accepted,
    expect_part,
)

SIZE_BYTES: Final = 1000
_FALSE: Final = 412
_UNCHANGED: Final = 304
_PAST: Final = "Mon, 01 Jan 2001 00:00:00 GMT"
_OLD: Final = b"the old content"
_NEW: Final = b"the new content!"
_OTHER_MD5: Final = "00000000000000000000000000000000"
_GONE_WITHIN_S: Final = 15.0

_s3 = partial(capability, "s3", "objects")
_swift = partial(capability, "swift", "objects")


@_s3("boto3's default PUT", "put_object of boto3 as it is set up")
def _put_default(store: S3Session) -> Answer:
    """As applications write; boto3 adds a CRC32, over https as a trailer of aws-chunked."""
    body, key = os.urandom(SIZE_BYTES), store.new()
    answer = store.ask("put_object", Bucket=store.bucket, Key=key, Body=body)
    store.expect(key, body, 200)
    if answer.get("ETag", "").strip('"') != md5_of(body):
        raise Wrong(f"the ETag {answer.get('ETag')} is not the MD5 of what was sent", status=200)
    return works(status=200)


@_s3("DELETE", "DELETE of an object, then GET")
def _delete(store: S3Session) -> Answer:
    key = store.put(b"to be deleted")
    answer = accepted(store.send("DELETE", key))
    gone = store.gone((key,), answer.status)
    accepted(store.send("DELETE", key))
    return gone


@_s3("User metadata and headers", "PUT with x-amz-meta-*, HEAD")
def _metadata(store: S3Session) -> Answer:
    sent = {"x-amz-meta-colour": "dark red", "content-type": "text/x-wb", "cache-control": "no-wb"}
    key, _ = store.write(b"body", sent)
    return _has(accepted(store.send("HEAD", key)), sent)


@_s3("response-content-type", "GET with ?response-content-type=")
def _response_headers(store: S3Session) -> Answer:
    """A signed GET may say with which headers it is answered."""
    key = store.put(b"body")
    answer = accepted(store.send("GET", key, "response-content-type=text%2Fx-wb"))
    return _has(answer, {"content-type": "text/x-wb"})


@_s3("Copy", "copy_object of boto3, then GET")
def _copy(store: S3Session) -> Answer:
    body, target = os.urandom(SIZE_BYTES), store.new()
    source = {"Bucket": store.bucket, "Key": store.put(body, {"x-amz-meta-colour": "red"})}
    store.ask("copy_object", Bucket=store.bucket, Key=target, CopySource=source)
    store.expect(target, body, 200)
    return _has(store.send("HEAD", target), {"x-amz-meta-colour": "red"})


@_s3("Copy onto itself, new metadata", "copy_object, MetadataDirective=REPLACE")
def _copy_replace(store: S3Session) -> Answer:
    """The usual way of changing an object's metadata."""
    key = store.put(b"body", {"x-amz-meta-colour": "red", "x-amz-meta-old": "1"})
    at = {"Bucket": store.bucket, "Key": key}
    new = {"MetadataDirective": "REPLACE", "Metadata": {"colour": "blue"}}
    store.ask("copy_object", **at, CopySource=at, **new)
    store.expect(key, b"body", 200)
    answer = store.send("HEAD", key)
    if "x-amz-meta-old" in answer.headers:
        raise Wrong("metadata that was to be replaced is still there", status=200)
    return _has(answer, {"x-amz-meta-colour": "blue"})


@_s3("Tags of an object", "put_object_tagging, get_object_tagging")
def _object_tags(store: S3Session) -> Answer:
    at = {"Bucket": store.bucket, "Key": store.put(b"body")}
    tags = [{"Key": "colour", "Value": "red"}, {"Key": "size", "Value": "1"}]
    store.ask("put_object_tagging", **at, Tagging={"TagSet": tags})
    kept = store.ask_back("get_object_tagging", **at)["TagSet"]
    if sorted(kept, key=str) != sorted(tags, key=str):
        raise Wrong(f"accepted, but {kept} is read", status=200)
    store.ask("delete_object_tagging", **at)
    if store.ask_back("get_object_tagging", **at)["TagSet"]:
        raise Wrong("tags that were deleted are still there", status=200)
    return works(status=200)


@_s3("GetObjectAttributes", "GET ?attributes")
def _attributes(store: S3Session) -> Answer:
    body = os.urandom(SIZE_BYTES)
    wanted = {"x-amz-object-attributes": "ETag,ObjectSize"}
    answer = accepted(store.send("GET", store.put(body), "attributes", headers=wanted))
    if answer.body == body:
        raise Wrong("ignored: the object itself came", status=answer.status)
    if f"<ObjectSize>{SIZE_BYTES}</ObjectSize>".encode() not in answer.body:
        raise Wrong("the size of the object is not in the answer", status=answer.status)
    return works(status=answer.status)


@_swift("PUT and GET", "PUT with its MD5 as ETag, GET")
def _put(store: SwiftSession) -> Answer:
    body = os.urandom(SIZE_BYTES)
    _, answer = store.write(body, {"ETag": md5_of(body)})
    if answer.headers.get("etag", "").strip('"') != md5_of(body):
        raise Wrong("its ETag is not the MD5 of what was sent", status=answer.status)
    return works(status=answer.status)


@_swift("A wrong ETag is refused", "PUT with another MD5 as ETag")
def _wrong_etag(store: SwiftSession) -> Answer:
    key = store.new()
    answer = store.send("PUT", key, "", b"body", {"ETag": _OTHER_MD5})
    return store.refused(answer, key, None, "a wrong ETag")


def http_chunks(store: StoreSession) -> Answer:
    """HTTP's own way of a body of unknown length, over either API."""
    body, key = os.urandom(SIZE_BYTES), store.new()
    framed = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    chunked = {"Transfer-Encoding": "chunked"}
    answer = store.send("PUT", key, "", framed, chunked, payload="UNSIGNED-PAYLOAD")
    return works(status=store.stored(answer, key, body).status)


CHUNKED_PUT: Final = _swift(
    "Chunked PUT", "PUT with Transfer-Encoding: chunked", key="chunked-put"
)(http_chunks)


@_swift("POST metadata", "POST with X-Object-Meta-*, HEAD")
def _post_metadata(store: SwiftSession) -> Answer:
    key = store.put(_OLD, {"X-Object-Meta-Old": "1"})
    answer = accepted(store.send("POST", key, headers={"X-Object-Meta-Colour": "red"}))
    headers = accepted(store.send("HEAD", key)).headers
    if headers.get("x-object-meta-colour") != "red" or "x-object-meta-old" in headers:
        raise Wrong("accepted, but other metadata is read", status=answer.status)
    return store.expect(key, _OLD, answer.status)


@_swift("Metadata of a container", "POST X-Container-Meta-*, HEAD")
def _container_metadata(store: SwiftSession) -> Answer:
    """It is read back; what the container had before does not count."""
    colour = store.new()
    answer = accepted(store.send("POST", "", headers={"X-Container-Meta-Colour": colour}))
    kept = accepted(store.send("HEAD", "")).headers.get("x-container-meta-colour")
    if kept != colour:
        raise Wrong(f"accepted, but HEAD says {kept}", status=answer.status)
    return works(status=answer.status)


def _copied(method: str, store: SwiftSession) -> Answer:
    source, target = store.put(_OLD, {"X-Object-Meta-Colour": "red"}), store.new()
    if method == "COPY":
        answer = store.send(method, source, headers={"Destination": f"{store.bucket}/{target}"})
    else:
        answer = store.send(method, target, headers={"X-Copy-From": f"/{store.bucket}/{source}"})
    store.expect(target, _OLD, accepted(answer).status)
    if store.send("HEAD", target).headers.get("x-object-meta-colour") != "red":
        raise Wrong("the copy lacks the metadata", status=answer.status)
    return works(status=answer.status)


COPIES: Final = (
    _swift("COPY", "COPY with Destination, GET", key="copy")(partial(_copied, "COPY")),
    _swift("PUT with X-Copy-From", "PUT with X-Copy-From, GET", key="copy-from")(
        partial(_copied, "PUT")
    ),
)


@_swift("X-Delete-After", "PUT with X-Delete-After: 1, GET until 404")
def _delete_after(store: SwiftSession) -> Answer:
    lasting = store.put(_OLD, {"X-Delete-After": "86400"})
    if "x-delete-at" not in accepted(store.send("HEAD", lasting)).headers:
        raise Wrong("accepted, but HEAD says no X-Delete-At", status=200)
    key = store.put(_OLD, {"X-Delete-After": "1"})
    deadline = time.monotonic() + _GONE_WITHIN_S
    while store.read(key) is not None:
        if time.monotonic() > deadline:
            raise Wrong(f"it can be read after {_GONE_WITHIN_S:.0f} s", status=200)
        time.sleep(0.2)
    return works(status=200)


def one_range(answer: HttpAnswer, body: bytes, *, first: int, end: int) -> Answer:
    """Judge the answer to a GET of the bytes from `first` to before `end`."""
    expect_part(answer, body, body[first:end])
    content_range = answer.headers.get("content-range")
    if answer.status != 206 or content_range != f"bytes {first}-{end - 1}/{len(body)}":
        raise Wrong(f"the right bytes, but Content-Range {content_range}", status=answer.status)
    return works(status=206)


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
    ranges: str, judge: Callable[[HttpAnswer, bytes], Answer], store: StoreSession
) -> Answer:
    body = os.urandom(SIZE_BYTES)
    return judge(store.send("GET", store.put(body), headers={"Range": ranges}), body)


RANGES: Final = tuple(
    capability(api, "ranges", title, f"GET with Range: {ranges}", key=f"range-{key}")(
        partial(_ranged, ranges, judge)
    )
    for api in BOTH
    for key, title, ranges, judge in (
        ("single", "One range", "bytes=100-199", partial(one_range, first=100, end=200)),
        ("suffix", "The last bytes", "bytes=-100", partial(one_range, first=900, end=1000)),
        ("beyond", "A range beyond the end", "bytes=5000-6000", _beyond),
        ("many", "Two ranges", "bytes=0-9,500-509", _both),
    )
)


@both("conditions", "Conditional reads", "GET with If-Match, If-None-Match, If-(Un)modified-Since")
def _get_conditions(store: StoreSession) -> Answer:
    key, etag, other = store.put(_OLD), f'"{md5_of(_OLD)}"', f'"{_OTHER_MD5}"'
    for name, value, status in (
        ("If-None-Match", etag, _UNCHANGED),
        ("If-None-Match", other, 200),
        ("If-Match", other, _FALSE),
        ("If-Match", etag, 200),
        ("If-Unmodified-Since", _PAST, _FALSE),
        ("If-Modified-Since", _PAST, 200),
    ):
        answer = store.send("GET", key, headers={name: value})
        if answer.status != status:
            if answer.status not in (_FALSE, _UNCHANGED):
                accepted(answer)
            raise Wrong(f"{name}: {value}: {status} was expected", status=answer.status)
    return works()


@both("conditions", "Create only: If-None-Match: *", "PUT with If-None-Match: *")
def _put_if_none_match(store: StoreSession) -> Answer:
    only_new = {"If-None-Match": "*"}
    key, _ = store.write(_OLD, only_new)
    answer = store.send("PUT", key, "", _NEW, only_new)
    return store.refused(answer, key, _OLD, "onto an object that is there")


@both("conditions", 'Replace only: If-Match: "etag"', 'PUT with If-Match: "etag"')
def _put_if_match(store: StoreSession) -> Answer:
    key, answer = _if_match(store, "PUT", _NEW)
    return store.expect(key, _NEW, answer.status)


@capability("s3", "conditions", "DELETE with If-Match", 'DELETE with If-Match: "etag"')
def _delete_if_match(store: S3Session) -> Answer:
    key, answer = _if_match(store, "DELETE", b"")
    return store.gone((key,), answer.status)


def _if_match(store: StoreSession, method: str, body: bytes) -> tuple[str, HttpAnswer]:
    key = store.put(_OLD)
    other = store.send(method, key, "", body, {"If-Match": f'"{_OTHER_MD5}"'})
    store.refused(other, key, _OLD, "a wrong ETag")
    answer = store.send(method, key, "", body, {"If-Match": f'"{md5_of(_OLD)}"'})
    if answer.status == _FALSE:
        raise Wrong("its own ETag, in quotes, is said not to match", status=_FALSE)
    return key, accepted(answer)


@capability("swift", "account", "/info", "GET /info")
def _info(store: SwiftSession) -> Answer:
    """A JSON object that names what the store can do; RGW has it at /swift/info."""
    place = urlsplit(store.access[0])
    host, before = f"{place.scheme}://{place.netloc}", place.path.partition("/v1")[0]
    urls = dict.fromkeys((f"{host}{before}/info", f"{host}/info"))
    tried = [store.deliver("GET", url) for url in urls]
    answer = next((each for each in tried if each.status == HTTPStatus.OK), tried[0])
    accepted(answer)
    try:
        names = json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        raise Unknown(f"its answer is not JSON: {error}", status=answer.status) from None
    if not isinstance(names, dict) or not names:
        raise Wrong("it names nothing", status=answer.status)
    return works(", ".join(sorted(map(str, names))), status=answer.status)


def _has(answer: HttpAnswer, headers: dict[str, str]) -> Answer:
    for name, value in headers.items():
        if answer.headers.get(name) != value:
            raise Wrong(f"{name}: {answer.headers.get(name)}, not {value}", status=answer.status)
    return works(status=answer.status)
