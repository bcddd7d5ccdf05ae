"""Fuzz tests of the lines that probes print."""

from __future__ import annotations

import math

import pytest

from tests.mutation import Dice, cases, tried, wrong_json
from weighbridge.conductor.telemetry import _values

LINE = {
    "frontend.scur": 3,
    "frontend.bin": 1234567890,
    "gateway-1.up": 1,
    "qtime": 0.25,
    "op_latency_sum_s": 12.125,
}


@cases
def test_any_probe_output_is_finite_numbers_by_name_or_refused(dice: Dice) -> None:
    line = wrong_json(dice, LINE)
    found = tried(lambda: _values(line))
    assert all(
        isinstance(name, str) and math.isfinite(value) for name, value in (found or {}).items()
    )


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"a": NaN}',
        b'{"a": 1e999}',
        b'{"a": ' + b"9" * 400 + b"}",
        b"\xff{}",
    ],
)
def test_a_line_without_end_or_numbers_is_refused(line: bytes) -> None:
    assert _values(line) is None
