from __future__ import annotations

import base64
import math
import struct
import tracemalloc
import zlib

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.common.errors import InvalidMeasurement
from weighbridge.results.record.histogram import BANDS, HIGHEST_US, Histogram, band_of, low_us
from weighbridge.results.record.store import log_header, log_line, read_log

latencies = st.lists(st.integers(1, 10_000_000), min_size=1, max_size=60)


@given(latencies, st.floats(0.5, 100))
def test_a_percentile_is_the_sample_at_rank_ceil(values: list[int], percent: float) -> None:
    exact = sorted(values)[max(1, math.ceil(round(len(values) * percent / 100, 6))) - 1]
    found = Histogram.of(values).percentile_us(percent)
    assert exact <= found <= exact * 1.001 + 1


def test_p90_of_six_samples_is_the_sixth_and_no_rank_is_raised_by_binary_fractions() -> None:
    assert Histogram.of([10, 20, 30, 40, 50, 60]).percentile_us(90) == 60
    assert Histogram.of([1] * 999 + [2]).percentile_us(99.9) == 1


@given(latencies, latencies)
def test_merging_equals_counting_all_samples_together(a: list[int], b: list[int]) -> None:
    merged = Histogram.merged([Histogram.of(a), Histogram.of(b)])
    assert merged.buckets() == Histogram.of(a + b).buckets()
    assert merged.count == len(a) + len(b)


@given(st.lists(st.integers(1, HIGHEST_US), max_size=60))
def test_an_encoded_histogram_is_decoded_unchanged(values: list[int]) -> None:
    histogram = Histogram.of(values)
    again = Histogram.decode(histogram.encode())
    assert again.buckets() == histogram.buckets()
    assert again.count == len(values)


def test_a_latency_that_cannot_be_counted_is_an_error_and_not_dropped() -> None:
    with pytest.raises(InvalidMeasurement, match="outside"):
        Histogram.of([5, 2**40])


def test_malformed_torn_and_foreign_histograms_are_refused() -> None:
    for text in ("", "xx", "HISTFAAA", "AAAA" * 40):
        with pytest.raises(InvalidMeasurement, match="cannot be decoded"):
            Histogram.decode(text)
    with pytest.raises(InvalidMeasurement):
        Histogram.decode(Histogram.of(range(1, 3000)).encode()[:-40])
    other = HdrHistogram(1, 1000, 2)
    other.record_value(5)
    with pytest.raises(InvalidMeasurement, match=r"1\.\.1000 with 2 digits"):
        Histogram.decode(other.encode().decode())


def test_an_impossible_percentage_and_one_of_an_empty_histogram_are_refused() -> None:
    for percent in (0, -1, 100.1):
        with pytest.raises(ValueError, match="percentage"):
            Histogram.of([1]).percentile_us(percent)
    with pytest.raises(InvalidMeasurement, match="empty histogram"):
        Histogram().percentile_us(50)


def test_an_interval_log_is_read_back_without_its_torn_last_line() -> None:
    histogram = Histogram.of([100, 200, 300])
    line = log_line("read", 0.0, 20.0, 300, histogram.encode())
    log = log_header("2014-11-04T12:00:00Z") + line
    ((tag, start, length, again),) = read_log(log + line[:-9])
    assert (tag, start, length, again.buckets()) == ("read", 0.0, 20.0, histogram.buckets())
    assert "#[StartTime: 1415102400.000 (seconds since epoch)" in log
    assert ",0.300," in line


@pytest.mark.parametrize("tag", ["", "a,b", "a b", "a\nb"])
def test_a_tag_that_the_log_format_cannot_hold_is_refused(tag: str) -> None:
    with pytest.raises(ValueError, match="tag"):
        log_line(tag, 0, 1, 1, "x")


def test_a_decompression_bomb_is_refused_before_it_expands() -> None:
    bomb = base64.b64encode(
        struct.pack(">ii", 0x1C849304 | 0x10, 100_000) + zlib.compress(bytes(100_000_000))
    ).decode()
    assert len(bomb) < 200_000
    tracemalloc.start()
    try:
        with pytest.raises(InvalidMeasurement, match="decompresses to more than"):
            Histogram.decode(bomb)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_the_largest_possible_histogram_is_read() -> None:
    full = Histogram.counted(
        (min(HIGHEST_US, int(1.0005**n) + 1), 2**40 + n) for n in range(40_000)
    )
    assert len(full.encode()) > 20_000
    assert Histogram.decode(full.encode()).count == full.count


@pytest.mark.parametrize(
    ("latency_us", "band"),
    [(0, 0), (1, 0), (2, 4), (3, 6), (4, 8), (5, 9), (7, 11), (8, 12), (1000, 39), (1024, 40)],
)
def test_a_latency_is_in_the_same_band_as_in_the_engine(latency_us: int, band: int) -> None:
    assert band_of(latency_us) == band


def test_every_latency_lies_between_the_edges_of_its_band() -> None:
    for latency_us in [*range(1, 5000), 10**6, 3_600_000_000]:
        band = band_of(latency_us)
        assert low_us(band) <= latency_us < low_us(band + 1)


def test_a_latency_beyond_the_last_band_counts_in_it() -> None:
    assert band_of(2**40) == BANDS - 1
