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
from weighbridge.gateways.capabilities.capability import Wrong, capability
from weighbridge.gateways.capabilities.objects import http_chunks
from weighbridge.gateways.capabilities.session import (
    ALGORITHMS,
    SIZE_BYTES,
    Session,
    accepted,
    checksum,
)

STREAM_BYTES: Final = 100_000
CHUNK_BYTES: Final = 65536
"""Chunks but the last have at least 8 KiB (S3 API reference, SigV4 streaming)."""
SIGNED: Final = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
_NOTHING: Final = hashlib.sha256(b"").hexdigest()

_checksums = partial(capability, "s3", "checksums")
_chunked = partial(capability, "s3", "aws-chunked")


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
        url, size = store.url_of(key), str(len(body))
        headers = {"Content-Encoding": "aws-chunked", "X-Amz-Decoded-Content-Length": size}
        payload = SIGNED if self.signed else "STREAMING-UNSIGNED-PAYLOAD"
        if self.trailer:
            headers["X-Amz-Trailer"] = f"x-amz-checksum-{self.trailer}"
            payload += "-TRAILER"
        request = AWSRequest("PUT", url, headers=headers)
        request.context["payload"] = payload
        store.signer.add_auth(request)
        framed = self._framed(store, request, body)
        return store.deliver("PUT", url, framed, dict(request.headers.items()))

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
