"""The checksums that S3 knows, as they are sent: base64 of the big-endian value."""

from __future__ import annotations

import base64
import functools
import hashlib
import zlib
from typing import Final

ALGORITHMS: Final = ("crc32", "crc32c", "crc64nvme", "sha1", "sha256")
# Bit-reflected polynomials: RFC 3720 (Castagnoli) and the NVM command set specification 1.0.
_REFLECTED: Final = {"crc32c": (0x82F63B78, 4), "crc64nvme": (0x9A6C9329AC4BC9B5, 8)}


def checksum(algorithm: str, body: bytes) -> str:
    """The checksum of a body by one of ALGORITHMS, in base64."""
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
    table = _table(polynomial)
    for byte in body:
        value = table[(value ^ byte) & 0xFF] ^ (value >> 8)
    return value ^ ones


@functools.cache
def _table(polynomial: int) -> tuple[int, ...]:
    rows = []
    for row in range(256):
        value = row
        for _ in range(8):
            value = value >> 1 ^ polynomial if value & 1 else value >> 1
        rows.append(value)
    return tuple(rows)
