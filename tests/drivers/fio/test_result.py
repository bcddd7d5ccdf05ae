from __future__ import annotations

import json
import math
from typing import Any

import pytest

from tests.drivers.rados.conftest import DATA
from tests.mutation import Dice, cases, tried, wrong_json
from weighbridge.common.errors import DriverError
from weighbridge.drivers.fio.tool import tally_of
from weighbridge.results.run.histogram import Histogram
from weighbridge.results.run.step import Tally


def recorded(name: str) -> tuple[str, dict[str, Any]]:
    text = (DATA / f"{name}.json").read_text()
    (job,) = json.loads(text)["jobs"]
    return text, job


def test_figures_of_rbd_are_exact_except_for_the_bins() -> None:
    text, job = recorded("fio-rbd-3.33")
    tally, window_s = tally_of(text, "read", 65536)
    latencies = job["read"]["lat_ns"]
    assert (tally.count, window_s) == (latencies["N"], job["read"]["runtime"] / 1000)
    assert tally.min_us == round(latencies["min"] / 1000)
    assert tally.max_us == round(latencies["max"] / 1000)
    assert tally.sum_us == pytest.approx(latencies["mean"] * latencies["N"] / 1000, abs=1)
    assert tally.bytes == tally.count * 65536 == job["read"]["io_bytes"]
    assert tally.latency is not None
    kept = Histogram.decode(tally.latency)
    assert kept.count == tally.count
    for percent in (50, 90, 99):
        expected_us = latencies["percentile"][f"{percent:.6f}"] / 1000
        assert kept.percentile_us(percent) == pytest.approx(expected_us, rel=0.02)
    undone, _ = tally_of(text, "write", 65536)
    assert (undone.count, undone.latency, undone.max_us) == (0, None, None)


def test_jobs_reported_as_a_group_are_one_tally_that_obeys_littles_law() -> None:
    text, _ = recorded("fio-cephfs-3.33")
    tally, window_s = tally_of(text, "write", 65536)
    assert tally.sum_us is not None
    # Recorded with eight workers.
    assert tally.sum_us / 1e6 / window_s == pytest.approx(8, rel=0.02)


def test_warnings_are_skipped_and_an_error_of_a_job_fails_whatever_was_counted() -> None:
    text, _ = recorded("fio-rbd-3.33")
    warned = "note: both iodepth >= 1 and synchronous I/O engine\n" + text
    assert tally_of(warned, "read", 65536) == tally_of(text, "read", 65536)
    with pytest.raises(DriverError, match=r"fio: error 22: .*no such pool"):
        tally_of("rbd: no such pool\n" + text.replace('"error" : 0', '"error" : 22'), "read", 65536)


@pytest.mark.parametrize(
    "text", ["", "fio: pid=1, got signal=9", "[]", '{"jobs": []}', '{"jobs": [{"error": 0}]}']
)
def test_an_incomplete_result_is_an_error(text: str) -> None:
    with pytest.raises(DriverError, match="fio"):
        tally_of(text, "read", 65536)


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
    ("latencies", "runtime", "words"),
    [
        ({"max": 2, "bins": {"1000": 10, "2000": -1}}, 3002, "fio: "),
        ({"N": 1, "mean": float("inf"), "bins": {"1000": 1}}, 3002, "fio: "),
        ({"N": 1, "min": 10**16, "max": 10**16, "bins": {"1000": 1}}, 3002, "fio: "),
        ({"bins": {"1000": 8}}, 3002, "bins have 8 requests, its total is 9"),
        ({"bins": {"1000": 9}}, 0, r"9 requests in a window of 0\.0 s"),
    ],
)
def test_impossible_bins_latencies_and_windows_are_errors(
    latencies: dict[str, object], runtime: int, words: str
) -> None:
    side = {"lat_ns": {"N": 9, "min": 1, "max": 1, "mean": 1, **latencies}, "runtime": runtime}
    with pytest.raises(DriverError, match=words):
        tally_of(json.dumps({"jobs": [{"error": 0, "read": side}]}), "read", 65536)
