"""Histograms and interval logs as other programs may supply them, corrupted on purpose."""

from __future__ import annotations

import base64
import zlib

import pytest

from tests.mutation import Dice, cases, tried, wrong_bytes, wrong_text
from weighbridge.common.errors import InvalidMeasurement
from weighbridge.results.record.histogram import Histogram
from weighbridge.results.record.store import log_header, log_line, read_log

PLAIN = Histogram.of([1, 5, 900, 12_345, 12_345, 3_000_000])
ENCODED = PLAIN.encode()
LOG = (
    log_header("2026-11-22T04:42:26+00:00")
    + log_line("read", 0.0, 1.0, 3_000_000, ENCODED)
    + log_line("list", 1.0, 1.0, 9, ENCODED)
)


def repacked(dice: Dice, text: str) -> str:
    """A histogram that decompresses, with wrong counts: otherwise no case gets past the packing."""
    packed = base64.b64decode(text)
    inner = wrong_bytes(dice, zlib.decompress(packed[8:]))
    again = zlib.compress(inner)
    return base64.b64encode(packed[:4] + len(again).to_bytes(4, "big") + again).decode()


@cases
def test_any_text_is_a_histogram_or_invalid_measurement(dice: Dice) -> None:
    text = (
        repacked(dice, ENCODED)
        if dice.random() < 0.5
        else wrong_bytes(dice, ENCODED.encode()).decode(errors="replace")
    )
    found = tried(lambda: Histogram.decode(text), InvalidMeasurement, saying="a histogram")
    if found is None:
        return
    assert found.count == sum(count for _, count in found.buckets())
    assert Histogram.decode(found.encode()).buckets() == found.buckets()
    assert not found.count or found.percentile_us(1) <= found.percentile_us(
        50
    ) <= found.percentile_us(100)


@cases
def test_any_interval_log_is_read_or_refused_with_a_line_number(dice: Dice) -> None:
    text = wrong_text(dice, LOG)
    for tag, start_s, length_s, histogram in (
        tried(lambda: read_log(text), InvalidMeasurement, saying="line ") or ()
    ):
        assert "," not in tag
        assert start_s >= 0
        assert length_s >= 0
        assert histogram.count >= 0


def test_a_malformed_line_of_an_interval_log_is_refused_with_its_number() -> None:
    with pytest.raises(InvalidMeasurement, match="line 5"):
        read_log(log_header("2026-11-22T04:42:26+00:00") + "Tag=read,0.000,nan,1.0,x\n")
