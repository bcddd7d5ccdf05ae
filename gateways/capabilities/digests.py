"""Checksums as they are sent: MD5, and those that S3 knows (base64 of the big-endian value)."""

from __future__ import annotations

import base64
import hashlib
import zlib
from typing import Final

ALGORITHMS: Final = ("crc32", "crc32c", "crc64nvme", "sha1", "sha256")
# Bit-reflected polynomials: RFC 3720 (Castagnoli) and the NVM command set specification 1.0.
_REFLECTED: Final = {"crc32c": (0x82F63B78, 4), "crc64nvme": (0x9A6C9329AC4BC9B5, 8)}


def md5_of(body: bytes) -> str:
    """In hexadecimal: the ETag of a plain object."""
    return hashlib.md5(body, usedforsecurity=False).hexdigest()


def checksum(algorithm: str, body: bytes) -> str:
    """The checksum of a body by one of ALGORITHMS, or another of hashlib, in base64."""
    if algorithm == "crc32":
        raw = zlib.crc32(body).to_bytes(4, "big")
    elif algorithm in _REFLECTED:
        polynomial, width = _REFLECTED[algorithm]
        raw = _crc(body, polynomial, width).to_bytes(width, "big")
    else:
        raw = hashlib.new(algorithm, body, usedforsecurity=False).digest()
    return base64.b64encode(raw).decode()


def _crc(body: bytes, polynomial: int, width: int) -> int:
    ones = (1 << 8 * width) - 1
    value = ones
    for byte in body:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ polynomial if value & 1 else value >> 1
    return value ^ ones
