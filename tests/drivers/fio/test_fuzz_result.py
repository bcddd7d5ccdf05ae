"""Malformed output of fio."""

from __future__ import annotations

import json
import math

import pytest

from tests.mutation import Dice, cases, tried, wrong_json
from weighbridge.common.errors import DriverError
from weighbridge.drivers.fio.tool import tally_of
from weighbridge.results.record.histogram import Histogram
from weighbridge.results.record.measurement import Tally

LATENCIES = {
    "min": 130000,
    "max": 6725945,
    "mean": 152200.716094,
    "N": 9,
    "bins": {"130560": 4, "152576": 4, "6717440": 1},
}
SIDE = {"io_bytes": 589824, "iops": 2682.21, "runtime": 3002, "total_ios": 9, "lat_ns": LATENCIES}
FIO = {
    "fio version": "fio-3.33",
    "jobs": [{"jobname": "weighbridge", "error": 0, "read": SIDE, "elapsed": 4}],
}


@cases
def test_any_output_of_fio_is_a_tally_or_a_driver_error(dice: Dice) -> None:
    output = wrong_json(dice, FIO).decode(errors="replace")
    found = tried(lambda: tally_of(output, "read", 65536), DriverError, saying="fio")
    if found is None:
        return
    tally, window_s = found
    assert math.isfinite(window_s)
    assert window_s > 0 or not tally.count
    assert Tally.model_validate_json(tally.model_dump_json()) == tally
    if tally.latency is not None:
        assert Histogram.decode(tally.latency).count == tally.count


@pytest.mark.parametrize(
    "latencies",
    [
        {"N": 9, "min": 1, "max": 2, "mean": 1, "bins": {"1000": 10, "2000": -1}},
        {"N": 1, "min": 1, "max": 1, "mean": float("inf"), "bins": {"1000": 1}},
        {"N": 1, "min": 10**16, "max": 10**16, "mean": 1, "bins": {"1000": 1}},
    ],
)
def test_impossible_bins_and_latencies_are_errors(latencies: dict[str, object]) -> None:
    job = {"error": 0, "read": {"runtime": 3002, "lat_ns": latencies}}
    with pytest.raises(DriverError, match="fio: "):
        tally_of(json.dumps({"jobs": [job]}), "read", 65536)


def test_a_window_without_length_is_an_error() -> None:
    job = {"error": 0, "read": {**SIDE, "runtime": 0}}
    with pytest.raises(DriverError, match=r"9 requests in a window of 0\.0 s"):
        tally_of(json.dumps({"jobs": [job]}), "read", 65536)
