"""S3: checksums that are kept and given back, wrong ones that must be refused, and bodies in
chunks: signed by aws-chunked, with and without trailers, or by HTTP itself.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from botocore.awsrequest import AWSRequest

from weighbridge.common.exchange import HttpAnswer
from weighbridge.gateways.capabilities.capability import Answer, Wrong, capability, works
from weighbridge.gateways.capabilities.digests import ALGORITHMS, checksum
from weighbridge.gateways.capabilities.objects import http_chunks
from weighbridge.gateways.capabilities.session import S3Session, accepted

SIZE_BYTES: Final = 1000
STREAM_BYTES: Final = 100_000
CHUNK_BYTES: Final = 65536
"""Chunks but the last have at least 8 KiB (S3 API reference, SigV4 streaming)."""
SIGNED: Final = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
_NOTHING: Final = hashlib.sha256(b"").hexdigest()

_checksums = partial(capability, "s3", "checksums")
_chunked = partial(capability, "s3", "aws-chunked")


def _named(algorithm: str, body: bytes) -> dict[str, str]:
    header = {f"x-amz-checksum-{algorithm}": checksum(algorithm, body)}
    return {**header, "x-amz-sdk-checksum-algorithm": algorithm.upper()}


def _kept(algorithm: str, store: S3Session) -> Answer:
    body, name = os.urandom(SIZE_BYTES), f"x-amz-checksum-{algorithm}"
    key, answer = store.write(body, _named(algorithm, body))
    head = accepted(store.send("HEAD", key, headers={"x-amz-checksum-mode": "ENABLED"}))
    kept = head.headers.get(name)
    if kept != checksum(algorithm, body):
        raise Wrong(f"not kept: HEAD says {kept or 'nothing'}", status=answer.status)
    return works(head.headers.get("x-amz-checksum-type", ""), status=answer.status)


def _wrong(headers_of: Callable[[bytes], Mapping[str, str]], store: S3Session) -> Answer:
    """The right one is taken first: so it is the wrong one that is refused, by 400."""
    body = os.urandom(SIZE_BYTES)
    store.write(body, headers_of(body))
    key = store.new()
    answer = store.send("PUT", key, body=body, headers=headers_of(b"other"))
    return store.refused(answer, key, None, "a wrong one")


KEPT: Final = tuple(
    _checksums(f"{name.upper()} kept", f"PUT with x-amz-checksum-{name}, HEAD", key=name)(
        partial(_kept, name)
    )
    for name in ALGORITHMS
)
REFUSED: Final = tuple(
    _checksums(
        f"A wrong {name.upper()} is refused",
        f"PUT with a wrong {name.upper()}, named as boto3 does",
        key=f"wrong-{name}",
    )(partial(_wrong, partial(_named, name)))
    for name in ALGORITHMS
)


@_checksums(
    "A wrong CRC32 alone is refused",
    "PUT with a wrong x-amz-checksum-crc32, without x-amz-sdk-checksum-algorithm",
)
def _wrong_crc32_alone(store: S3Session) -> Answer:
    """400: the header alone says all that is needed."""
    return _wrong(lambda body: {"x-amz-checksum-crc32": checksum("crc32", body)}, store)


@_checksums("A wrong Content-MD5 is refused", "PUT with a wrong one")
def _wrong_md5(store: S3Session) -> Answer:
    return _wrong(lambda body: {"Content-MD5": checksum("md5", body)}, store)


@_checksums("A wrong signed SHA256 is refused", "PUT with x-amz-content-sha256")
def _wrong_payload_hash(store: S3Session) -> Answer:
    """400: the signature covers the body's hash, and the body is another."""
    body, key = os.urandom(SIZE_BYTES), store.new()
    store.write(body)
    payload = hashlib.sha256(b"other").hexdigest()
    answer = store.send("PUT", key, body=body, payload=payload)
    return store.refused(answer, key, None, "another body than was signed")


@_checksums("UNSIGNED-PAYLOAD", "PUT whose signature leaves out the body")
def _unsigned_payload(store: S3Session) -> Answer:
    _, answer = store.write(os.urandom(SIZE_BYTES), payload="UNSIGNED-PAYLOAD")
    return works(status=answer.status)


@dataclass(frozen=True)
class Stream:
    """How a body is streamed. `trailer`: the checksum's algorithm; empty: there is no trailer."""

    signed: bool
    trailer: str = ""
    right: bool = True
    """Whether the last chunk's signature, or the trailer, is right."""

    def ask(self, store: S3Session) -> Answer:
        """Stream what is right, and after it what is wrong, which is to be refused."""
        _, answer = Stream(self.signed, self.trailer).write(store)
        if self.right:
            return works(status=answer.status)
        body, key = os.urandom(STREAM_BYTES), store.new()
        return store.refused(self.put(store, key, body), key, None, "a wrong one")

    def write(self, store: S3Session) -> tuple[str, HttpAnswer]:
        """Stream a new object and read it back. Raises Refused, Wrong or Unknown."""
        body, key = os.urandom(STREAM_BYTES), store.new()
        return key, store.stored(self.put(store, key, body), key, body)

    def put(self, store: S3Session, key: str, body: bytes) -> HttpAnswer:
        """Stream an object."""
        url, size = store.url_of(key), str(len(body))
        headers = {"Content-Encoding": "aws-chunked", "X-Amz-Decoded-Content-Length": size}
        payload = SIGNED if self.signed else "STREAMING-UNSIGNED-PAYLOAD"
        if self.trailer:
            headers["X-Amz-Trailer"] = f"x-amz-checksum-{self.trailer}"
            payload += "-TRAILER"
        request = AWSRequest("PUT", url, headers=headers)
        request.context["payload"] = payload
        store.sign(request)
        framed = self._framed(store, request, body)
        return store.deliver("PUT", url, framed, dict(request.headers.items()))

    def _framed(self, store: S3Session, request: AWSRequest, body: bytes) -> bytes:
        """The body in chunks, with signatures and the trailer (S3 API reference, streaming)."""
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
def _encoding_stripped(store: S3Session) -> Answer:
    """`aws-chunked` is how the body travelled, not what the object is."""
    key, _ = Stream(signed=True).write(store)
    encoding = accepted(store.send("HEAD", key)).headers.get("content-encoding", "")
    if "aws-chunked" in encoding:
        raise Wrong(f"HEAD says Content-Encoding: {encoding}", status=200)
    return works(status=200)


HTTP_CHUNKS: Final = _chunked("Transfer-Encoding: chunked", "PUT without Content-Length")(
    http_chunks
)
