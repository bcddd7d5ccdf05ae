"""Objects of both APIs: copies, metadata, tags, ranges and conditions; checksums of S3 that are
kept, and wrong ones that must be refused; bodies in chunks; and Swift's /info.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from botocore.awsrequest import AWSRequest

from weighbridge.common.exchange import HttpAnswer
from weighbridge.gateways.capabilities.capability import Unknown, Wrong, both, capability
from weighbridge.gateways.capabilities.session import (
    ALGORITHMS,
    SIZE_BYTES,
    Session,
    accepted,
    checksum,
    md5_of,
)

_FALSE: Final = 412
_UNCHANGED: Final = 304
_PAST: Final = "Mon, 01 Jan 2001 00:00:00 GMT"
_OLD: Final = b"the old content"
_NEW: Final = b"the new content!"
_OTHER_MD5: Final = "00000000000000000000000000000000"
_GONE_WITHIN_S: Final = 15.0
STREAM_BYTES: Final = 100_000
CHUNK_BYTES: Final = 65536
"""Chunks but the last have at least 8 KiB (S3 API reference, SigV4 streaming)."""
SIGNED: Final = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
_NOTHING: Final = hashlib.sha256(b"").hexdigest()

_s3 = partial(capability, "s3", "objects")
_swift = partial(capability, "swift", "objects")
_checksums = partial(capability, "s3", "checksums")
_chunked = partial(capability, "s3", "aws-chunked")


@_s3("boto3's default PUT", "put_object of boto3 as it is set up")
def _put_default(store: Session) -> None:
    """As applications write; boto3 adds a CRC32, over https as a trailer of aws-chunked."""
    body, key = os.urandom(SIZE_BYTES), store.new()
    etag = store.boto("put_object", key, Body=body).get("ETag")
    store.expect(key, body)
    if (etag or "").strip('"') != md5_of(body):
        raise Wrong(f"the ETag {etag} is not the MD5 of what was sent")


@_s3("DELETE", "DELETE of an object, then GET")
def _delete(store: Session) -> None:
    key = store.put(b"to be deleted")
    store.ask("DELETE", key)
    store.gone(key)
    accepted(store.send("DELETE", key))


@_s3("User metadata and headers", "PUT with x-amz-meta-*, HEAD")
def _metadata(store: Session) -> None:
    sent = {"x-amz-meta-colour": "dark red", "content-type": "text/x-wb", "cache-control": "no-wb"}
    key, _ = store.write(b"body", sent)
    store.has(store.ask("HEAD", key), sent)


@_s3("response-content-type", "GET with ?response-content-type=")
def _response_headers(store: Session) -> None:
    answer = store.ask("GET", store.put(b"body"), "response-content-type=text%2Fx-wb")
    store.has(answer, {"content-type": "text/x-wb"})


@_s3("Copy", "copy_object of boto3, then GET")
def _copy(store: Session) -> None:
    body, target = os.urandom(SIZE_BYTES), store.new()
    source = store.at(store.put(body, {"x-amz-meta-colour": "red"}))
    store.boto("copy_object", target, CopySource=source)
    store.expect(target, body)
    store.has(store.send("HEAD", target), {"x-amz-meta-colour": "red"})


@_s3("Copy onto itself, new metadata", "copy_object, MetadataDirective=REPLACE")
def _copy_replace(store: Session) -> None:
    """The usual way of changing an object's metadata."""
    key = store.put(b"body", {"x-amz-meta-colour": "red", "x-amz-meta-old": "1"})
    source, new = store.at(key), {"colour": "blue"}
    store.boto("copy_object", key, CopySource=source, MetadataDirective="REPLACE", Metadata=new)
    store.expect(key, b"body")
    answer = store.send("HEAD", key)
    if "x-amz-meta-old" in answer.headers:
        raise Wrong("metadata that was to be replaced is still there")
    store.has(answer, {"x-amz-meta-colour": "blue"})


@_s3("Tags of an object", "put_object_tagging, get_object_tagging")
def _object_tags(store: Session) -> None:
    key = store.put(b"body")
    tags = [{"Key": "colour", "Value": "red"}, {"Key": "size", "Value": "1"}]
    store.boto("put_object_tagging", key, Tagging={"TagSet": tags})
    kept = store.boto_back("get_object_tagging", key)["TagSet"]
    if sorted(kept, key=str) != tags:
        raise Wrong(f"accepted, but {kept} is read")
    store.boto("delete_object_tagging", key)
    if store.boto_back("get_object_tagging", key)["TagSet"]:
        raise Wrong("tags that were deleted are still there")


@_s3("GetObjectAttributes", "GET ?attributes")
def _attributes(store: Session) -> None:
    body = os.urandom(SIZE_BYTES)
    wanted = {"x-amz-object-attributes": "ETag,ObjectSize"}
    answer = store.ask("GET", store.put(body), "attributes", headers=wanted)
    if answer.body == body:
        raise Wrong("ignored: the object itself came")
    if f"<ObjectSize>{SIZE_BYTES}</ObjectSize>".encode() not in answer.body:
        raise Wrong("the size of the object is not in the answer")


@_swift("PUT and GET", "PUT with its MD5 as ETag, GET")
def _put(store: Session) -> None:
    body = os.urandom(SIZE_BYTES)
    _, answer = store.write(body, {"ETag": md5_of(body)})
    if answer.headers.get("etag", "").strip('"') != md5_of(body):
        raise Wrong("its ETag is not the MD5 of what was sent")


@_swift("A wrong ETag is refused", "PUT with another MD5 as ETag")
def _wrong_etag(store: Session) -> None:
    key = store.new()
    answer = store.send("PUT", key, "", b"body", {"ETag": _OTHER_MD5})
    store.refused(answer, key, None, "a wrong ETag")


def http_chunks(store: Session) -> None:
    """HTTP's own way of a body of unknown length, over either API."""
    body, key = os.urandom(SIZE_BYTES), store.new()
    framed = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    chunked = {"Transfer-Encoding": "chunked"}
    answer = store.send("PUT", key, "", framed, chunked, payload="UNSIGNED-PAYLOAD")
    store.stored(answer, key, body)


_CHUNKED: Final = "PUT with Transfer-Encoding: chunked"
CHUNKED_PUT: Final = _swift("Chunked PUT", _CHUNKED, key="chunked-put")(http_chunks)


@_swift("POST metadata", "POST with X-Object-Meta-*, HEAD")
def _post_metadata(store: Session) -> None:
    key = store.put(_OLD, {"X-Object-Meta-Old": "1"})
    store.ask("POST", key, headers={"X-Object-Meta-Colour": "red"})
    headers = accepted(store.send("HEAD", key)).headers
    if headers.get("x-object-meta-colour") != "red" or "x-object-meta-old" in headers:
        raise Wrong("accepted, but other metadata is read")
    store.expect(key, _OLD)


@_swift("Metadata of a container", "POST X-Container-Meta-*, HEAD")
def _container_metadata(store: Session) -> None:
    """It is read back; what the container had before does not count."""
    colour = store.new()
    store.ask("POST", "", headers={"X-Container-Meta-Colour": colour})
    kept = accepted(store.send("HEAD", "")).headers.get("x-container-meta-colour")
    if kept != colour:
        raise Wrong(f"accepted, but HEAD says {kept}")


@_swift("COPY", "COPY with Destination, GET", key="copy")
def _copy_to(store: Session) -> None:
    source, target = store.put(_OLD, {"X-Object-Meta-Colour": "red"}), store.new()
    store.ask("COPY", source, headers={"Destination": f"{store.bucket}/{target}"})
    _is_copy(store, target)


@_swift("PUT with X-Copy-From", "PUT with X-Copy-From, GET")
def _copy_from(store: Session) -> None:
    source, target = store.put(_OLD, {"X-Object-Meta-Colour": "red"}), store.new()
    store.ask("PUT", target, headers={"X-Copy-From": f"/{store.bucket}/{source}"})
    _is_copy(store, target)


def _is_copy(store: Session, target: str) -> None:
    store.expect(target, _OLD)
    if store.send("HEAD", target).headers.get("x-object-meta-colour") != "red":
        raise Wrong("the copy lacks the metadata")


@_swift("X-Delete-After", "PUT with X-Delete-After: 1, GET until 404")
def _delete_after(store: Session) -> None:
    lasting = store.put(_OLD, {"X-Delete-After": "86400"})
    if "x-delete-at" not in store.ask("HEAD", lasting).headers:
        raise Wrong("accepted, but HEAD says no X-Delete-At")
    key = store.put(_OLD, {"X-Delete-After": "1"})
    deadline = time.monotonic() + _GONE_WITHIN_S
    while store.read(key) is not None:
        if time.monotonic() > deadline:
            raise Wrong(f"it can be read after {_GONE_WITHIN_S:.0f} s")
        time.sleep(0.2)


def one_range(store: Session, answer: HttpAnswer, body: bytes, first: int, end: int) -> None:
    """Judge the answer to a GET of the bytes from `first` to before `end`."""
    store.part(answer, body, body[first:end])
    content_range = answer.headers.get("content-range")
    if answer.status != 206 or content_range != f"bytes {first}-{end - 1}/{len(body)}":
        raise Wrong(f"the right bytes, but Content-Range {content_range}")


def _beyond(store: Session, answer: HttpAnswer, _body: bytes) -> None:
    store.status = answer.status
    if answer.status != 416:
        accepted(answer)
        raise Wrong("ignored: 416 was expected")


def _both(store: Session, answer: HttpAnswer, body: bytes) -> None:
    if store.decide(answer).body == body:
        raise Wrong("ignored: the complete object came")
    if answer.body == body[:10]:
        raise Wrong("only the first range came")
    kind = answer.headers.get("content-type", "")
    whole = body[:10] in answer.body and body[500:510] in answer.body
    if answer.status != 206 or not kind.startswith("multipart/byteranges") or not whole:
        raise Wrong(f"not both ranges: {len(answer.body)} bytes of {kind}")


def _ranged(
    ranges: str, judge: Callable[[Session, HttpAnswer, bytes], None], store: Session
) -> None:
    body = os.urandom(SIZE_BYTES)
    judge(store, store.send("GET", store.put(body), headers={"Range": ranges}), body)


RANGES: Final = tuple(
    both("ranges", title, f"GET with Range: {ranges}", key=f"range-{key}")(
        partial(_ranged, ranges, judge)
    )
    for key, title, ranges, judge in (
        ("single", "One range", "bytes=100-199", partial(one_range, first=100, end=200)),
        ("suffix", "The last bytes", "bytes=-100", partial(one_range, first=900, end=1000)),
        ("beyond", "A range beyond the end", "bytes=5000-6000", _beyond),
        ("many", "Two ranges", "bytes=0-9,500-509", _both),
    )
)


@both("conditions", "Conditional reads", "GET with If-Match, If-None-Match, If-(Un)modified-Since")
def _get_conditions(store: Session) -> None:
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


@both("conditions", "Create only: If-None-Match: *", "PUT with If-None-Match: *")
def _put_if_none_match(store: Session) -> None:
    only_new = {"If-None-Match": "*"}
    key, _ = store.write(_OLD, only_new)
    answer = store.send("PUT", key, "", _NEW, only_new)
    store.refused(answer, key, _OLD, "onto an object that is there")


@both("conditions", 'Replace only: If-Match: "etag"', 'PUT with If-Match: "etag"')
def _put_if_match(store: Session) -> None:
    store.expect(_if_match(store, "PUT", _NEW), _NEW)


@capability("s3", "conditions", "DELETE with If-Match", 'DELETE with If-Match: "etag"')
def _delete_if_match(store: Session) -> None:
    store.gone(_if_match(store, "DELETE", b""))


def _if_match(store: Session, method: str, body: bytes) -> str:
    key = store.put(_OLD)
    other = store.send(method, key, "", body, {"If-Match": f'"{_OTHER_MD5}"'})
    store.refused(other, key, _OLD, "a wrong ETag")
    answer = store.send(method, key, "", body, {"If-Match": f'"{md5_of(_OLD)}"'})
    if answer.status == _FALSE:
        raise Wrong("its own ETag, in quotes, is said not to match", status=_FALSE)
    store.decide(answer)
    return key


@capability("swift", "account", "/info", "GET /info")
def _info(store: Session) -> str:
    """A JSON object that names what the store can do; RGW has it at /swift/info."""
    place = urlsplit(store.url_of("", bucket=""))
    host, before = f"{place.scheme}://{place.netloc}", place.path.partition("/v1")[0]
    urls = dict.fromkeys((f"{host}{before}/info", f"{host}/info"))
    tried = [store.deliver("GET", url) for url in urls]
    answer = next((each for each in tried if each.status == HTTPStatus.OK), tried[0])
    store.decide(answer)
    try:
        names = json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        raise Unknown(f"its answer is not JSON: {error}", status=answer.status) from None
    if not isinstance(names, dict) or not names:
        raise Wrong("it names nothing")
    return ", ".join(sorted(map(str, names)))


# Checksums of S3, and bodies in chunks.


def _alone(header: str, algorithm: str, body: bytes) -> dict[str, str]:
    return {header: checksum(algorithm, body)}


def _named(algorithm: str, body: bytes) -> dict[str, str]:
    header = _alone(f"x-amz-checksum-{algorithm}", algorithm, body)
    return {**header, "x-amz-sdk-checksum-algorithm": algorithm.upper()}


def _kept(algorithm: str, store: Session) -> str:
    body = os.urandom(SIZE_BYTES)
    key, _ = store.write(body, _named(algorithm, body))
    head = accepted(store.send("HEAD", key, headers={"x-amz-checksum-mode": "ENABLED"}))
    kept = head.headers.get(f"x-amz-checksum-{algorithm}")
    if kept != checksum(algorithm, body):
        raise Wrong(f"not kept: HEAD says {kept or 'nothing'}")
    return head.headers.get("x-amz-checksum-type", "")


def _wrong(headers_of: Callable[[bytes], Mapping[str, str]], store: Session) -> None:
    """The right one is taken first: so it is the wrong one that is refused, by 400."""
    body = os.urandom(SIZE_BYTES)
    store.write(body, headers_of(body))
    key = store.new()
    answer = store.send("PUT", key, body=body, headers=headers_of(b"other"))
    store.refused(answer, key, None, "a wrong one")


KEPT: Final = tuple(
    _checksums(f"{name.upper()} kept", f"PUT with x-amz-checksum-{name}, HEAD", key=name)(
        partial(_kept, name)
    )
    for name in ALGORITHMS
)
REFUSED: Final = tuple(
    _checksums(f"A wrong {what} is refused", f"PUT with a wrong {asks}", key=f"wrong-{key}")(
        partial(_wrong, headers_of)
    )
    for key, what, asks, headers_of in (
        *(
            (name, name.upper(), f"{name.upper()}, named as boto3 does", partial(_named, name))
            for name in ALGORITHMS
        ),
        # 400: the header alone says all that is needed.
        ("crc32-alone", "CRC32 alone", "x-amz-checksum-crc32, without x-amz-sdk-checksum-algorithm",
         partial(_alone, "x-amz-checksum-crc32", "crc32")),
        ("md5", "Content-MD5", "one", partial(_alone, "Content-MD5", "md5")),
    )
)  # fmt: skip


@_checksums("A wrong signed SHA256 is refused", "PUT with x-amz-content-sha256")
def _wrong_payload_hash(store: Session) -> None:
    """400: the signature covers the body's hash, and the body is another."""
    body, key = os.urandom(SIZE_BYTES), store.new()
    store.write(body)
    payload = hashlib.sha256(b"other").hexdigest()
    answer = store.send("PUT", key, body=body, payload=payload)
    store.refused(answer, key, None, "another body than was signed")


@_checksums("UNSIGNED-PAYLOAD", "PUT whose signature leaves out the body")
def _unsigned_payload(store: Session) -> None:
    store.write(os.urandom(SIZE_BYTES), payload="UNSIGNED-PAYLOAD")


@dataclass(frozen=True)
class Stream:
    """How a body is streamed. `trailer`: the checksum's algorithm; empty: there is no trailer."""

    signed: bool
    trailer: str = ""
    right: bool = True
    """Whether the last chunk's signature, or the trailer, is right."""

    def ask(self, store: Session) -> None:
        """Stream what is right, and after it what is wrong, which is to be refused."""
        Stream(self.signed, self.trailer).write(store)
        if not self.right:
            body, key = os.urandom(STREAM_BYTES), store.new()
            store.refused(self.put(store, key, body), key, None, "a wrong one")

    def write(self, store: Session) -> str:
        """Stream a new object and read it back. Raises Refused, Wrong or Unknown."""
        body, key = os.urandom(STREAM_BYTES), store.new()
        store.stored(self.put(store, key, body), key, body)
        return key

    def put(self, store: Session, key: str, body: bytes) -> HttpAnswer:
        """Stream an object."""
        size, payload = str(len(body)), "STREAMING-UNSIGNED-PAYLOAD"
        headers = {"Content-Encoding": "aws-chunked", "X-Amz-Decoded-Content-Length": size}
        if self.signed:
            payload = SIGNED
        if self.trailer:
            headers["X-Amz-Trailer"] = f"x-amz-checksum-{self.trailer}"
            payload += "-TRAILER"
        framed = partial(self._framed, store)
        return store.send("PUT", key, "", body, headers, payload=payload, framed=framed)

    def _framed(self, store: Session, request: AWSRequest, body: bytes) -> bytes:
        """The body in chunks, with signatures and the trailer (S3 API reference, streaming)."""
        before = request.headers["Authorization"].rpartition("Signature=")[2]
        stamp = request.context["timestamp"]
        scope = f"{stamp[:8]}/{store.endpoint['region']}/s3/aws4_request"

        def sign(kind: str, *parts: str) -> str:
            text = "\n".join((f"AWS4-HMAC-SHA256-{kind}", stamp, scope, before, *parts))
            return str(store.signer.signature(text, request))

        framed = b""
        chunks = [body[at : at + CHUNK_BYTES] for at in range(0, len(body), CHUNK_BYTES)]
        for number, chunk in enumerate((*chunks, b"")):
            extension = ""
            if self.signed:
                before = sign("PAYLOAD", _NOTHING, hashlib.sha256(chunk).hexdigest())
                wrong = not self.right and not self.trailer and number == len(chunks) - 1
                extension = f";chunk-signature={flipped(before) if wrong else before}"
            framed += f"{len(chunk):x}{extension}\r\n".encode() + chunk
            framed += b"\r\n" if chunk or not self.trailer else b""
        if not self.trailer:
            return framed
        value = checksum(self.trailer, body if self.right else b"other")
        line = f"x-amz-checksum-{self.trailer}:{value}"
        framed += f"{line}\r\n".encode()
        if self.signed:
            signed = sign("TRAILER", hashlib.sha256(f"{line}\n".encode()).hexdigest())
            framed += f"x-amz-trailer-signature:{signed}\r\n".encode()
        return framed + b"\r\n"


def flipped(signature: str) -> str:
    """A wrong signature: its last digit is another."""
    return f"{signature[:-1]}{'0' if signature[-1] != '0' else '1'}"


_UNSIGNED: Final = "PUT with STREAMING-UNSIGNED-PAYLOAD-TRAILER, as boto3 over https"
STREAMS: Final = tuple(
    _chunked(title, asks, key=key)(Stream(signed, trailer, right).ask)
    for key, title, asks, signed, trailer, right in (
        ("signed-chunks", "Signed chunks", f"PUT with {SIGNED}", True, "", True),
        ("wrong-chunk-signature", "A wrong chunk signature is refused", "the same, the last bad",
         True, "", False),
        ("signed-trailer", "Signed chunks, trailer", "the same -TRAILER, x-amz-checksum-crc32",
         True, "crc32", True),
        ("unsigned-trailer", "Unsigned chunks, CRC32 trailer", _UNSIGNED, False, "crc32", True),
        ("unsigned-trailer-crc64nvme", "Unsigned chunks, CRC64NVME trailer",
         "the same with CRC64NVME", False, "crc64nvme", True),
        ("wrong-trailer", "A wrong trailer is refused", "the same, a wrong CRC32",
         False, "crc32", False),
    )
)  # fmt: skip


@_chunked("Content-Encoding is stripped", "PUT in signed chunks, then HEAD")
def _encoding_stripped(store: Session) -> None:
    """`aws-chunked` is how the body travelled, not what the object is."""
    head = store.ask("HEAD", Stream(signed=True).write(store))
    encoding = head.headers.get("content-encoding", "")
    if "aws-chunked" in encoding:
        raise Wrong(f"HEAD says Content-Encoding: {encoding}")


HTTP_CHUNKS: Final = _chunked("Transfer-Encoding: chunked", "PUT without Content-Length")(
    http_chunks
)
