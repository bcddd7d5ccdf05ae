"""S3: bodies in signed chunks (aws-chunked), with and without trailers, and HTTP's own chunks."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import partial
from typing import Final

from botocore.awsrequest import AWSRequest

from weighbridge.common.exchange import HttpAnswer
from weighbridge.gateways.capabilities.capability import Answer, Wrong, capability, works
from weighbridge.gateways.capabilities.digests import checksum
from weighbridge.gateways.capabilities.s3_session import S3Session
from weighbridge.gateways.capabilities.session import accepted

SIZE_BYTES: Final = 100_000
CHUNK_BYTES: Final = 65536
"""Chunks but the last have at least 8 KiB (S3 API reference, SigV4 streaming)."""
SIGNED: Final = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
_NOTHING: Final = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True)
class Streamed:
    """How a body is streamed. `trailer`: the checksum's algorithm; empty: there is no trailer."""

    signed: bool
    trailer: str = ""
    right: bool = True
    """Whether the last chunk's signature, or the trailer, is right."""

    @property
    def payload(self) -> str:
        """What the request's signature says of the body."""
        signed = SIGNED if self.signed else "STREAMING-UNSIGNED-PAYLOAD"
        return f"{signed}-TRAILER" if self.trailer else signed


def _taken(store: S3Session, how: Streamed) -> Answer:
    _, answer = _stream(store, how)
    return works(status=answer.status)


def _stream(store: S3Session, how: Streamed) -> tuple[str, HttpAnswer]:
    """Stream a new object and read it back. Raises Refused, Wrong or Unknown."""
    body, key = os.urandom(SIZE_BYTES), store.new()
    return key, store.stored(_sent(store, key, body, how), key, body)


def _refused(store: S3Session, how: Streamed) -> Answer:
    _stream(store, Streamed(how.signed, how.trailer))
    body, key = os.urandom(SIZE_BYTES), store.new()
    answer = _sent(store, key, body, how)
    store.refused(answer, key, None, "a wrong one")
    return works(status=answer.status)


STREAMS: Final = tuple(
    capability("s3", "aws-chunked", title, asks=asks, key=key)(
        partial(_taken if how.right else _refused, how=how)
    )
    for key, title, asks, how in (
        ("signed-chunks", "Signed chunks", f"PUT with {SIGNED}", Streamed(signed=True)),
        (
            "wrong-chunk-signature",
            "A wrong chunk signature is refused",
            "the same, the last bad",
            Streamed(signed=True, right=False),
        ),
        (
            "signed-trailer",
            "Signed chunks, trailer",
            "the same -TRAILER, x-amz-checksum-crc32",
            Streamed(signed=True, trailer="crc32"),
        ),
        (
            "unsigned-trailer",
            "Unsigned chunks, CRC32 trailer",
            "PUT with STREAMING-UNSIGNED-PAYLOAD-TRAILER, as boto3 over https",
            Streamed(signed=False, trailer="crc32"),
        ),
        (
            "unsigned-trailer-crc64nvme",
            "Unsigned chunks, CRC64NVME trailer",
            "the same with CRC64NVME",
            Streamed(signed=False, trailer="crc64nvme"),
        ),
        (
            "wrong-trailer",
            "A wrong trailer is refused",
            "the same, a wrong CRC32",
            Streamed(signed=False, trailer="crc32", right=False),
        ),
    )
)


@capability(
    "s3", "aws-chunked", "Content-Encoding is stripped", asks="PUT in signed chunks, then HEAD"
)
def encoding_stripped(store: S3Session) -> Answer:
    """`aws-chunked` is how the body travelled, not what the object is."""
    key, _ = _stream(store, Streamed(signed=True))
    found = accepted(store.send("HEAD", key)).headers.get("content-encoding", "")
    if "aws-chunked" in found:
        raise Wrong(f"HEAD says Content-Encoding: {found}", status=200)
    return works(status=200)


@capability("s3", "aws-chunked", "Transfer-Encoding: chunked", asks="PUT without Content-Length")
def http_chunks(store: S3Session) -> Answer:
    """HTTP's own way of a body of unknown length."""
    body = os.urandom(1000)
    _, answer = store.write(
        body,
        {"Transfer-Encoding": "chunked"},
        encoded=b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body),
        payload="UNSIGNED-PAYLOAD",
    )
    return works(status=answer.status)


def _sent(store: S3Session, key: str, body: bytes, how: Streamed) -> HttpAnswer:
    url, path = store.url_of(key)
    headers = {"Content-Encoding": "aws-chunked", "X-Amz-Decoded-Content-Length": str(len(body))}
    if how.trailer:
        headers["X-Amz-Trailer"] = f"x-amz-checksum-{how.trailer}"
    request = AWSRequest("PUT", url, headers=headers)
    request.context["payload"] = how.payload
    store.signer.add_auth(request)
    framed = _framed(store, request, body, how)
    return store.deliver("PUT", url, path, framed, dict(request.headers.items()))


def _framed(store: S3Session, request: AWSRequest, body: bytes, how: Streamed) -> bytes:
    """The body in chunks, with signatures and the trailer (S3 API reference, SigV4 streaming)."""
    before = request.headers["Authorization"].rpartition("Signature=")[2]
    stamp = request.context["timestamp"]
    scope = f"{stamp[:8]}/{store.region}/s3/aws4_request"

    def sign(kind: str, *parts: str) -> str:
        text = "\n".join((f"AWS4-HMAC-SHA256-{kind}", stamp, scope, before, *parts))
        return str(store.signer.signature(text, request))

    framed = b""
    chunks = [body[at : at + CHUNK_BYTES] for at in range(0, len(body), CHUNK_BYTES)]
    for number, chunk in enumerate((*chunks, b"")):
        extension = ""
        if how.signed:
            before = sign("PAYLOAD", _NOTHING, hashlib.sha256(chunk).hexdigest())
            wrong = not how.right and not how.trailer and number == len(chunks) - 1
            extension = f";chunk-signature={_flipped(before) if wrong else before}"
        framed += f"{len(chunk):x}{extension}\r\n".encode() + chunk
        framed += b"\r\n" if chunk or not how.trailer else b""
    if not how.trailer:
        return framed
    value = checksum(how.trailer, body if how.right else b"other")
    line = f"x-amz-checksum-{how.trailer}:{value}"
    framed += f"{line}\r\n".encode()
    if how.signed:
        signed = sign("TRAILER", hashlib.sha256(f"{line}\n".encode()).hexdigest())
        framed += f"x-amz-trailer-signature:{signed}\r\n".encode()
    return framed + b"\r\n"


def _flipped(signature: str) -> str:
    return f"{signature[:-1]}{'0' if signature[-1] != '0' else '1'}"
