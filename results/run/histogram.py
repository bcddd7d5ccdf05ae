"""Latency histograms: HdrHistogram's counts and codec, with percentiles by rank.

The Python library hdrhistogram serves as container and codec only. Its percentiles use rank int(x +
0.5) where the definition has ceil (p90 of 10, 20, ... 60 would be 50 instead of 60).
"""

from __future__ import annotations

import base64
import math
import zlib
from bisect import bisect_left
from collections.abc import Iterable
from functools import cached_property
from itertools import accumulate, compress
from typing import Final

from hdrh.codec import HdrCookieException, HdrHistogramSettingsException, HdrLengthException
from hdrh.histogram import HdrHistogram

from weighbridge.common.errors import InvalidMeasurement

LOWEST_US: Final = 1
HIGHEST_US: Final = 3_600_000_000
DIGITS: Final = 3
LARGEST_BYTES: Final = 1_000_000
"""These bounds and digits give some 23,000 counts of at most nine bytes each."""
SHORT: Final = 4096
"""Texts of up to this many characters decompress to 3 MB at most."""


class Histogram:
    """Counts of latencies in whole microseconds, 1 us to 1 h, 3 significant digits; immutable."""

    def __init__(self, counts: HdrHistogram | None = None) -> None:
        self._counts = HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS) if counts is None else counts

    @classmethod
    def of(cls, values_us: Iterable[int]) -> Histogram:
        """The histogram of latencies. Raises InvalidMeasurement on one out of range."""
        return cls.counted((value, 1) for value in values_us)

    @classmethod
    def counted(cls, counts_us: Iterable[tuple[int, int]]) -> Histogram:
        """The histogram of (latency, count) pairs. Raises InvalidMeasurement as `of` does."""
        made = cls()
        for value, count in counts_us:
            if not made._counts.record_value(value, count):
                raise InvalidMeasurement(
                    f"a latency of {value} us is outside {LOWEST_US}..{HIGHEST_US} us and cannot "
                    "be counted"
                )
        return made

    @classmethod
    def decode(cls, text: str) -> Histogram:
        """From V2 deflate base64. Raises InvalidMeasurement if malformed or of other bounds."""
        try:
            _check_size(text)
            counts = HdrHistogram.decode(text.encode("ascii"))
        except (
            HdrCookieException,
            HdrHistogramSettingsException,
            HdrLengthException,
            zlib.error,
            TypeError,
            ValueError,
            IndexError,
            OverflowError,
        ) as error:
            raise InvalidMeasurement(
                f"a histogram cannot be decoded: {type(error).__name__}: {error}"
            ) from error
        have = (
            counts.lowest_trackable_value,
            counts.highest_trackable_value,
            counts.significant_figures,
        )
        if have != (LOWEST_US, HIGHEST_US, DIGITS):
            raise InvalidMeasurement(
                f"a histogram of {have[0]}..{have[1]} with {have[2]} digits; expected "
                f"{LOWEST_US}..{HIGHEST_US} us with {DIGITS} digits"
            )
        return cls(counts)

    @classmethod
    def merged(cls, histograms: Iterable[Histogram]) -> Histogram:
        """The sum of the counts: one histogram of all samples. Percentiles are never averaged."""
        made = cls()
        for one in histograms:
            if one.count:
                made._counts.add(one._counts)  # noqa: SLF001 - of this class
        return made

    def encode(self) -> str:
        """The V2 deflate base64 form, which HdrHistogram's tools in every language read."""
        return str(self._counts.encode().decode("ascii"))

    @property
    def count(self) -> int:
        return int(self._counts.get_total_count())

    @cached_property
    def _filled(self) -> tuple[list[int], list[int]]:
        """Indexes and counts of the non-empty buckets, ascending."""
        if not self.count:
            return [], []
        # Most of the 23,000 buckets are empty: those below the minimum and above the maximum.
        ends = (self._counts.get_min_value(), self._counts.get_max_value())
        first, last = (self._counts._counts_index_for(value) for value in ends)  # noqa: SLF001 - the library has no other way from a value to its bucket
        values = memoryview(self._counts.counts).cast("B").cast("Q")[first : last + 1].tolist()
        return list(compress(range(first, last + 1), values)), list(filter(None, values))

    @cached_property
    def _ranks(self) -> list[int]:
        return list(accumulate(self._filled[1]))

    def percentile_us(self, percent: float) -> int:
        """The latency at rank ceil(n * percent / 100): the top of its bucket, 0.1 % high at most.

        Raises InvalidMeasurement for an empty histogram, and ValueError outside 0 < percent <= 100.
        """
        rank = rank_of(self.count, percent)
        if not self.count:
            raise InvalidMeasurement("an empty histogram has no percentiles")
        return self.at_rank_us(rank)

    def at_rank_us(self, rank: int) -> int:
        """The top of the bucket of a rank from 1 to `count`. Raises ValueError for any other."""
        if not 1 <= rank <= self.count:
            raise ValueError(f"no rank {rank} among {self.count} samples")
        return self._top_us(self._filled[0][bisect_left(self._ranks, rank)])

    def buckets(self) -> tuple[tuple[int, int], ...]:
        """(top of the bucket in us, count) of every non-empty bucket, ascending."""
        return self._tops

    @cached_property
    def _tops(self) -> tuple[tuple[int, int], ...]:
        """`buckets`, computed once: each percentile of a step asks for them."""
        return tuple(
            (self._top_us(index), count) for index, count in zip(*self._filled, strict=True)
        )

    def _top_us(self, index: int) -> int:
        return int(
            self._counts.get_highest_equivalent_value(self._counts.get_value_from_index(index))
        )


def _check_size(text: str) -> None:
    """Refuse text that would fill the memory when it is decompressed. Raises ValueError."""
    if len(text) <= SHORT:
        return
    decompressor = zlib.decompressobj()
    # The deflated part follows eight bytes: a cookie and the length.
    decompressor.decompress(base64.b64decode(text)[8:], LARGEST_BYTES)
    if decompressor.unconsumed_tail:
        raise ValueError(f"it decompresses to more than {LARGEST_BYTES} bytes")


def rank_of(count: int, percent: float) -> int:
    """ceil(count * percent / 100). Raises ValueError outside 0 < percent <= 100."""
    if not 0 < percent <= 100:
        raise ValueError(f"{percent} is not a percentage above 0 and up to 100")
    # Dividing first would put 99.9 % of 200000 at rank 199800.00000000003: one sample too far.
    return max(1, math.ceil(round(count * percent / 100, 6)))


# Latency bands: four per octave, in integer arithmetic, so that every driver bins alike.
#
# Band n holds latencies from 2^(n // 4) x (1 + n % 4 / 4) us up to the start of the next band.
# Each is 19 to 25 % wide: fine enough to plot latency over time, and 30 times smaller than a
# histogram per second.


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
