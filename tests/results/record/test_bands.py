from __future__ import annotations

import pytest

from weighbridge.results.record.histogram import BANDS, band_of, low_us


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
