"""Bands of latencies: four an octave, by whole numbers alone, so that every driver counts a latency
in the same one.

Band n holds latencies of 2^(n // 4) x (1 + n % 4 / 4) us and more, up to where the next begins:
each is 19 to 25 % wide, which is fine enough for a picture of latencies over time and 30 times
smaller than a histogram every second.
"""

from __future__ import annotations

from typing import Final

BANDS: Final = 128
"""As many as reach 2^32 us, more than the hour that a histogram reaches; what is beyond counts in
the last.
"""


def band_of(latency_us: int) -> int:
    """The number of the band of a latency in whole microseconds; less than 1 us counts as 1."""
    value = max(1, latency_us)
    octave = value.bit_length() - 1
    quarter = (value << (2 - octave) if octave < 2 else value >> (octave - 2)) & 3
    return min(octave * 4 + quarter, BANDS - 1)


def low_us(band: int) -> float:
    """Where a band begins, in microseconds; `low_us(band + 1)` is where it ends."""
    return float(2 ** (band // 4) * (1 + band % 4 / 4))
