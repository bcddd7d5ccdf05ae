"""S3: checksums that are kept and given back, and wrong ones that must be refused."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping
from typing import Final

from weighbridge.gateways.capabilities.capability import Answer, Wrong, capability, works
from weighbridge.gateways.capabilities.digests import checksum
from weighbridge.gateways.capabilities.s3_session import S3Session
from weighbridge.gateways.capabilities.session import accepted

SIZE_BYTES: Final = 1000


@capability("s3", "checksums", "CRC32 kept", asks="PUT with x-amz-checksum-crc32, HEAD")
def crc32(store: S3Session) -> Answer:
    """The checksum that was sent is kept."""
    return _kept(store, "crc32")


@capability("s3", "checksums", "CRC32C kept", asks="PUT with x-amz-checksum-crc32c, HEAD")
def crc32c(store: S3Session) -> Answer:
    """The checksum that was sent is kept."""
    return _kept(store, "crc32c")


@capability("s3", "checksums", "CRC64NVME kept", asks="PUT with x-amz-checksum-crc64nvme, HEAD")
def crc64nvme(store: S3Session) -> Answer:
    """The checksum that was sent is kept."""
    return _kept(store, "crc64nvme")


@capability("s3", "checksums", "SHA1 kept", asks="PUT with x-amz-checksum-sha1, HEAD")
def sha1(store: S3Session) -> Answer:
    """The checksum that was sent is kept."""
    return _kept(store, "sha1")


@capability("s3", "checksums", "SHA256 kept", asks="PUT with x-amz-checksum-sha256, HEAD")
def sha256(store: S3Session) -> Answer:
    """The checksum that was sent is kept."""
    return _kept(store, "sha256")


@capability(
    "s3",
    "checksums",
    "A wrong CRC32 is refused",
    asks="PUT with a wrong CRC32, named as boto3 does",
)
def wrong_crc32(store: S3Session) -> Answer:
    """400."""
    return _wrong(store, "crc32")


@capability(
    "s3", "checksums", "A wrong CRC32C is refused", asks="PUT with a wrong CRC32C, named likewise"
)
def wrong_crc32c(store: S3Session) -> Answer:
    """400."""
    return _wrong(store, "crc32c")


@capability(
    "s3", "checksums", "A wrong CRC64NVME is refused", asks="PUT with a wrong CRC64NVME, likewise"
)
def wrong_crc64nvme(store: S3Session) -> Answer:
    """400."""
    return _wrong(store, "crc64nvme")


@capability(
    "s3", "checksums", "A wrong SHA1 is refused", asks="PUT with a wrong SHA1, named likewise"
)
def wrong_sha1(store: S3Session) -> Answer:
    """400."""
    return _wrong(store, "sha1")


@capability(
    "s3", "checksums", "A wrong SHA256 is refused", asks="PUT with a wrong SHA256, named likewise"
)
def wrong_sha256(store: S3Session) -> Answer:
    """400."""
    return _wrong(store, "sha256")


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


def _must_refuse(store: S3Session, body: bytes, headers: Mapping[str, str]) -> Answer:
    """The right one was taken before: so it is the wrong one that is refused."""
    key = store.new()
    answer = store.send("PUT", key, body=body, headers=headers)
    store.refused(answer, key, None, "a wrong one")
    return works(status=answer.status)


def _md5(body: bytes) -> str:
    return base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
