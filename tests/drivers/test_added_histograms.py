"""Adding histograms in the engine, with the library's own histograms as witnesses."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.drivers.engine._native import added_histograms
from weighbridge.results.record.histogram import Histogram

latencies = st.lists(st.integers(1, 10_000_000), max_size=60)


@given(st.lists(latencies, max_size=5))
def test_the_sum_of_encoded_histograms_is_the_histogram_of_all_samples(
    parts: list[list[int]],
) -> None:
    expected = Histogram.of([value for part in parts for value in part])
    found = Histogram.decode(added_histograms([Histogram.of(part).encode() for part in parts]))
    assert (found.count, found.buckets()) == (expected.count, expected.buckets())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text[:-9],
        lambda text: "A" + text[1:],
        lambda text: text[:60],
        lambda _: "",
        lambda _: "ä",
    ],
)
def test_no_sum_is_made_if_one_histogram_cannot_be_read(spoil: Callable[[str], str]) -> None:
    good = Histogram.of([10, 2000, 300_000]).encode()
    with pytest.raises(ValueError, match="cannot be decoded"):
        added_histograms([good, spoil(good)])


def test_no_sum_is_made_of_histograms_with_other_bounds() -> None:
    other = HdrHistogram(1, 1000, 2)
    other.record_value(5)
    with pytest.raises(ValueError, match=r"1\.\.1000"):
        added_histograms([str(other.encode().decode("ascii"))])
