"""Latency histograms: HdrHistogram's counts and codec, with percentiles by rank and log lines of
our own.

The Python library hdrhistogram is used as container and codec only. Its percentiles take rank int(x
+ 0.5) where the definition has ceil (p90 of 10, 20, ... 60 would be 50 instead of 60), and its log
writer drops tags and floors maxima.
"""

from __future__ import annotations

import base64
import math
import zlib
from bisect import bisect_left
from collections.abc import Iterable
from datetime import datetime
from functools import cached_property
from itertools import accumulate
from typing import Final

from hdrh.codec import HdrCookieException, HdrHistogramSettingsException, HdrLengthException
from hdrh.histogram import HdrHistogram

from weighbridge.common.errors import InvalidMeasurement

LOWEST_US: Final = 1
HIGHEST_US: Final = 3_600_000_000
DIGITS: Final = 3
LARGEST_BYTES: Final = 1_000_000
"""Of these bounds and digits there are some 23,000 counts, of nine bytes at most each."""
SHORT: Final = 4096
"""Texts of so few characters unfold to three MB at most."""
UNREADABLE: Final = (
    HdrCookieException,
    HdrHistogramSettingsException,
    HdrLengthException,
    zlib.error,
    TypeError,
    ValueError,
)
"""What decoding raises of what is no histogram."""


class Histogram:
    """Counts of latencies in whole microseconds, 1 us to 1 h, to 3 significant digits.

    Not changed once made.
    """

    def __init__(self, counts: HdrHistogram | None = None) -> None:
        self._counts = HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS) if counts is None else counts

    @classmethod
    def of(cls, values_us: Iterable[int]) -> Histogram:
        """The histogram of single latencies.

        Raises InvalidMeasurement on one that cannot be counted, never drops it.
        """
        made = cls()
        for value in values_us:
            if not made._counts.record_value(value):
                raise InvalidMeasurement(
                    f"a latency of {value} us is outside {LOWEST_US}..{HIGHEST_US} us and cannot "
                    "be counted"
                )
        return made

    @classmethod
    def counted(cls, counts_us: Iterable[tuple[int, int]]) -> Histogram:
        """The histogram of latencies that come with how often they were there.

        Raises InvalidMeasurement as `of` does.
        """
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
        """From the V2 deflate base64 form.

        Raises InvalidMeasurement when it is not one, or not of these bounds and digits.
        """
        try:
            _see_how_large(text)
            counts = HdrHistogram.decode(text.encode("ascii"))
        except (*UNREADABLE, IndexError, OverflowError) as error:
            raise InvalidMeasurement(
                f"a histogram cannot be decoded: {type(error).__name__}: {error}"
            ) from error
        have = (
            counts.lowest_trackable_value,
            counts.highest_trackable_value,
            counts.significant_figures,
        )
        if have != (LOWEST_US, HIGHEST_US, DIGITS):
            wanted = f"{LOWEST_US}..{HIGHEST_US} us with {DIGITS} digits is wanted"
            raise InvalidMeasurement(
                f"a histogram of {have[0]}..{have[1]} with {have[2]} digits, where {wanted}"
            )
        return cls(counts)

    @classmethod
    def merged(cls, histograms: Iterable[Histogram]) -> Histogram:
        """The sum of counts: what one histogram of all the samples would be.

        Percentiles are never averaged.
        """
        made = cls()
        for one in histograms:
            if one.count:
                made._counts.add(one._counts)  # noqa: SLF001 - of this very class
        return made

    def encode(self) -> str:
        """The V2 deflate base64 form that HdrHistogram's tools of every language read."""
        return str(self._counts.encode().decode("ascii"))

    @property
    def count(self) -> int:
        """How many latencies were counted."""
        return int(self._counts.get_total_count())

    @cached_property
    def _filled(self) -> tuple[list[int], list[int]]:
        """The buckets that are not empty by their index, and their counts, ascending."""
        if not self.count:
            return [], []
        import numpy as np  # noqa: PLC0415 - takes its time to load, and drivers have no need of it

        counts = np.frombuffer(self._counts.counts, np.uint64)
        (filled,) = counts.nonzero()
        return filled.tolist(), counts[filled].tolist()

    @cached_property
    def _ranks(self) -> list[int]:
        """How many samples lie at or below each of those."""
        return list(accumulate(self._filled[1]))

    def percentile_us(self, percent: float) -> int:
        """The latency at rank ceil(n * percent / 100), as the top of its bucket (at most 0.1 %
        above the sample).

        Raises InvalidMeasurement when nothing was counted, and ValueError outside 0 < percent <=
        100.
        """
        rank = rank_of(self.count, percent)
        if not self.count:
            raise InvalidMeasurement("a percentile of no samples was asked for")
        return self.at_rank_us(rank)

    def at_rank_us(self, rank: int) -> int:
        """The latency at a rank, 1 to `count`, as the top of its bucket.

        Raises ValueError for a rank outside of that.
        """
        if not 1 <= rank <= self.count:
            raise ValueError(f"no rank {rank} among {self.count} samples")
        return self._top_us(self._filled[0][bisect_left(self._ranks, rank)])

    def buckets(self) -> tuple[tuple[int, int], ...]:
        """(top of the bucket in us, count) of every bucket that is not empty, ascending."""
        return self._tops

    @cached_property
    def _tops(self) -> tuple[tuple[int, int], ...]:
        """The same, made once: each percentile of a step asks for them."""
        return tuple(
            (self._top_us(index), count) for index, count in zip(*self._filled, strict=True)
        )

    def _top_us(self, index: int) -> int:
        return int(
            self._counts.get_highest_equivalent_value(self._counts.get_value_from_index(index))
        )


def _see_how_large(text: str) -> None:
    """Refuse what unfolds to more than any histogram has: some kB may be made that take all memory.

    Raises ValueError.
    """
    if len(text) <= SHORT:
        return
    unfolding = zlib.decompressobj()
    # Eight bytes stand before what is deflated: what follows, and how long it is.
    unfolding.decompress(base64.b64decode(text)[8:], LARGEST_BYTES)
    if unfolding.unconsumed_tail:
        raise ValueError(f"it unfolds to more than {LARGEST_BYTES} bytes")


def rank_of(count: int, percent: float) -> int:
    """The rank, from 1, of a percentile among so many samples: ceil(count * percent / 100).

    Raises ValueError outside 0 < percent <= 100.
    """
    if not 0 < percent <= 100:
        raise ValueError(f"{percent} is not a percentage above 0 and up to 100")
    # percent / 100 first would turn 99.9 % of 200000 into rank 199800.00000000003 and so one sample
    # too far.
    return max(1, math.ceil(round(count * percent / 100, 6)))


def log_header(started_at: str) -> str:
    """The head of an HdrHistogram interval log (version 1.3). Starts of its lines count from
    `started_at`, UTC in ISO 8601.

    Raises InvalidMeasurement when that is not a time.
    """
    try:
        start = datetime.fromisoformat(started_at).timestamp()
    except ValueError as error:
        raise InvalidMeasurement(f"{started_at!r} is not a time in ISO 8601") from error
    return (
        "#[Latencies in microseconds, Interval_Max in milliseconds, times in seconds]\n"
        "#[Histogram log format version 1.3]\n"
        f"#[StartTime: {start:.3f} (seconds since epoch), {started_at}]\n"
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'
    )


def log_line(tag: str, start_s: float, length_s: float, max_us: int, encoded: str) -> str:
    """One interval of such a log. Raises ValueError on a tag that the format cannot hold."""
    if not tag or any(letter in tag for letter in ", \r\n\t"):
        raise ValueError(f"{tag!r} cannot be a tag: it must have no comma and no blank")
    return f"Tag={tag},{start_s:.3f},{length_s:.3f},{max_us / 1000:.3f},{encoded}\n"


def read_log(text: str) -> tuple[tuple[str, float, float, Histogram], ...]:
    """(tag, start in s, length in s, histogram) of each whole line of an interval log; a torn last
    line is dropped.

    Raises InvalidMeasurement with the number of a line that is none.
    """
    *lines, _ = text.split("\n")
    found = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith(("#", '"')):
            continue
        tag, _, rest = (
            line.removeprefix("Tag=").partition(",") if line.startswith("Tag=") else ("", "", line)
        )
        try:
            start, length, _, payload = rest.strip().split(",")
            at_s, for_s = float(start), float(length)
            if not (0 <= at_s < math.inf and 0 <= for_s < math.inf):
                raise ValueError(f"{start} and {length} are no start and length in seconds")  # noqa: TRY301 - told as any other
            found.append((tag, at_s, for_s, Histogram.decode(payload)))
        except (ValueError, InvalidMeasurement) as error:
            raise InvalidMeasurement(
                f"line {number} of an interval log: {error}: {line[:100]!r}"
            ) from error
    return tuple(found)
