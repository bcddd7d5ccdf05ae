"""Latency bands: four per octave, in integer arithmetic, so that every driver bins alike.

Band n holds latencies from 2^(n // 4) x (1 + n % 4 / 4) us up to the start of the next band. Each
is 19 to 25 % wide: fine enough to plot latency over time, and 30 times smaller than a histogram per
second.
"""

from __future__ import annotations

from typing import Final

BANDS: Final = 128
"""Enough to reach 2^32 us, beyond a histogram's hour; higher latencies count in the last band."""


def band_of(latency_us: int) -> int:
    """The band of a latency in whole microseconds; less than 1 us counts as 1."""
    value = max(1, latency_us)
    octave = value.bit_length() - 1
    quarter = (value << (2 - octave) if octave < 2 else value >> (octave - 2)) & 3
    return min(octave * 4 + quarter, BANDS - 1)


def low_us(band: int) -> float:
    """The lower edge of a band in microseconds; `low_us(band + 1)` is its upper edge."""
    return float(2 ** (band // 4) * (1 + band % 4 / 4))
