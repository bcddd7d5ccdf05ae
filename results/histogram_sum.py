"""Adding many encoded histograms up: hundreds of driver processes make one step, and a library's own object for each is slow.

Each is inflated and decoded by the library's C code into one array that is used again and again, and only the part of it that has
counts is added and wiped, by numpy. What comes out is the same as of adding one decoded histogram after another.
"""

from __future__ import annotations

import ctypes
import struct
import zlib
from binascii import a2b_base64
from collections.abc import Iterable
from typing import Final

import numpy as np
from hdrh.codec import decode
from hdrh.histogram import HdrHistogram

from ground.errors import InvalidMeasurement
from results.histogram import DIGITS, HIGHEST_US, LOWEST_US, UNREADABLE

_OUTER: Final = struct.Struct(">II")
"""A cookie, and the length of what follows, deflated."""
_INNER: Final = struct.Struct(">IIIIQQd")
"""A cookie, the length of the counts, an offset, digits, lowest, highest, and a ratio."""
_KIND: Final = 0xFFFFFF0F
"""What of a cookie tells the format; the rest is the size of a word, which version 2 does not use."""
_DEFLATED, _COUNTS = 0x1C849304, 0x1C849303
_WORD: Final = 8


def summed(encoded: Iterable[str]) -> str:
    """The histogram of all samples of these, encoded as they are. Percentiles are never averaged.

    Raises InvalidMeasurement when one of them is no histogram, or not of our bounds and digits: a sum without it would be wrong.
    """
    whole, one = HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS), HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)
    room, scratch = one.counts_len, ctypes.addressof(one.counts)
    sums, counts = np.frombuffer(whole.counts, np.uint64), np.frombuffer(one.counts, np.uint64)
    total, lowest, highest = 0, room, -1
    for text in encoded:
        try:
            payload = _payload(text)
            found = decode(payload, _INNER.size, scratch, room, _WORD)
        except (*UNREADABLE, struct.error, IndexError, OverflowError) as error:
            raise InvalidMeasurement(f"a histogram cannot be decoded: {type(error).__name__}: {error}") from error
        if found["total"]:
            low, high = found["min_nonzero_index"], found["max_nonzero_index"]
            filled = slice(low, high + 1)
            sums[filled] += counts[filled]
            counts[filled] = 0
            total, lowest, highest = total + found["total"], min(lowest, low), max(highest, high)
    if total:
        whole.set_internal_tacking_values(lowest, highest, total)
    return str(whole.encode().decode("ascii"))


def _payload(text: str) -> bytes:
    raw = a2b_base64(text)
    cookie, length = _OUTER.unpack_from(raw)
    if cookie & _KIND != _DEFLATED or length != len(raw) - _OUTER.size:
        raise ValueError("not the V2 deflate form")
    payload = zlib.decompress(memoryview(raw)[_OUTER.size :])
    cookie, _, _, digits, low, high, _ = _INNER.unpack_from(payload)
    if cookie & _KIND != _COUNTS:
        raise ValueError("not the V2 form")
    if (low, high, digits) != (LOWEST_US, HIGHEST_US, DIGITS):
        raise ValueError(f"{low}..{high} with {digits} digits, where {LOWEST_US}..{HIGHEST_US} us with {DIGITS} is wanted")
    return payload
