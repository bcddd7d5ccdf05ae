"""S3: checksums that are kept and given back, and wrong ones that must be refused."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping
from functools import partial
from typing import Final

from weighbridge.gateways.capabilities.capability import Answer, Wrong, capability, works
from weighbridge.gateways.capabilities.digests import ALGORITHMS, checksum
from weighbridge.gateways.capabilities.s3_session import S3Session
from weighbridge.gateways.capabilities.session import accepted

SIZE_BYTES: Final = 1000


def _named(algorithm: str, value: str) -> dict[str, str]:
    name = f"x-amz-checksum-{algorithm}"
    return {name: value, "x-amz-sdk-checksum-algorithm": algorithm.upper()}


def _kept(store: S3Session, algorithm: str) -> Answer:
    body = os.urandom(SIZE_BYTES)
    value = checksum(algorithm, body)
    key, answer = store.write(body, _named(algorithm, value))
    head = accepted(store.send("HEAD", key, headers={"x-amz-checksum-mode": "ENABLED"}))
    found = head.headers.get(f"x-amz-checksum-{algorithm}")
    if found != value:
        raise Wrong(f"not kept: HEAD says {found or 'nothing'}", status=answer.status)
    return works(head.headers.get("x-amz-checksum-type", ""), status=answer.status)


def _wrong(store: S3Session, algorithm: str) -> Answer:
    body = os.urandom(SIZE_BYTES)
    store.write(body, _named(algorithm, checksum(algorithm, body)))
    return _must_refuse(store, body, _named(algorithm, checksum(algorithm, b"other")))


KEPT: Final = tuple(
    capability(
        "s3",
        "checksums",
        f"{name.upper()} kept",
        asks=f"PUT with x-amz-checksum-{name}, HEAD",
        key=name,
    )(partial(_kept, algorithm=name))
    for name in ALGORITHMS
)
REFUSED: Final = tuple(
    capability(
        "s3",
        "checksums",
        f"A wrong {name.upper()} is refused",
        asks=f"PUT with a wrong {name.upper()}, named as boto3 does",
        key=f"wrong-{name}",
    )(partial(_wrong, algorithm=name))
    for name in ALGORITHMS
)
"""400."""


@capability(
    "s3",
    "checksums",
    "A wrong CRC32 alone is refused",
    asks="PUT with a wrong x-amz-checksum-crc32, without x-amz-sdk-checksum-algorithm",
)
def wrong_crc32_alone(store: S3Session) -> Answer:
    """400: the header alone says all that is needed."""
    body = os.urandom(SIZE_BYTES)
    store.write(body, {"x-amz-checksum-crc32": checksum("crc32", body)})
    return _must_refuse(store, body, {"x-amz-checksum-crc32": checksum("crc32", b"other")})


@capability("s3", "checksums", "A wrong Content-MD5 is refused", asks="PUT with a wrong one")
def wrong_md5(store: S3Session) -> Answer:
    """400 BadDigest."""
    body = os.urandom(SIZE_BYTES)
    store.write(body, {"Content-MD5": _md5(body)})
    return _must_refuse(store, body, {"Content-MD5": _md5(b"other")})


@capability(
    "s3", "checksums", "A wrong signed SHA256 is refused", asks="PUT with x-amz-content-sha256"
)
def wrong_payload_hash(store: S3Session) -> Answer:
    """400: the signature covers the body's hash, and the body is another."""
    body, key = os.urandom(SIZE_BYTES), store.new()
    store.write(body)
    payload = hashlib.sha256(b"other").hexdigest()
    answer = store.send("PUT", key, body=body, payload=payload)
    store.refused(answer, key, None, "another body than was signed")
    return works(status=answer.status)


@capability("s3", "checksums", "UNSIGNED-PAYLOAD", asks="PUT whose signature leaves out the body")
def unsigned_payload(store: S3Session) -> Answer:
    """As clients send over https."""
    _, answer = store.write(os.urandom(SIZE_BYTES), payload="UNSIGNED-PAYLOAD")
    return works(status=answer.status)


def _must_refuse(store: S3Session, body: bytes, headers: Mapping[str, str]) -> Answer:
    """The right one was taken before: so it is the wrong one that is refused."""
    key = store.new()
    answer = store.send("PUT", key, body=body, headers=headers)
    store.refused(answer, key, None, "a wrong one")
    return works(status=answer.status)


def _md5(body: bytes) -> str:
    return base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
