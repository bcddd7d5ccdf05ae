from __future__ import annotations

import json
from typing import Any

import pytest

from tests.drivers.rados.conftest import DATA
from weighbridge.common.errors import DriverError
from weighbridge.drivers.fio.tool import tally_of
from weighbridge.results.record.histogram import Histogram


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


def test_jobs_reported_as_a_group_are_one_tally_that_obeys_littles_law() -> None:
    text, _ = recorded("fio-cephfs-3.33")
    tally, window_s = tally_of(text, "write", 65536)
    assert tally.sum_us is not None
    # Recorded with eight workers.
    assert tally.sum_us / 1e6 / window_s == pytest.approx(8, rel=0.02)


def test_an_operation_that_was_not_done_has_no_latency() -> None:
    text, _ = recorded("fio-rbd-3.33")
    tally, _ = tally_of(text, "write", 65536)
    assert (tally.count, tally.latency, tally.max_us) == (0, None, None)


def test_warnings_before_the_result_are_skipped() -> None:
    text, _ = recorded("fio-rbd-3.33")
    warned = "note: both iodepth >= 1 and synchronous I/O engine\n" + text
    assert tally_of(warned, "read", 65536) == tally_of(text, "read", 65536)


def test_an_error_of_a_job_fails_whatever_was_counted() -> None:
    text, _ = recorded("fio-rbd-3.33")
    with pytest.raises(DriverError, match=r"fio: error 22: .*no such pool"):
        tally_of("rbd: no such pool\n" + text.replace('"error" : 0', '"error" : 22'), "read", 65536)


def test_bins_with_another_sum_than_the_total_are_an_error() -> None:
    text, job = recorded("fio-rbd-3.33")
    count = job["read"]["lat_ns"]["N"]
    match = f"bins have {count} requests, its total is {count + 1}"
    with pytest.raises(DriverError, match=match):
        tally_of(text.replace(f'"N" : {count}', f'"N" : {count + 1}'), "read", 65536)


@pytest.mark.parametrize(
    "text", ["", "fio: pid=1, got signal=9", "[]", '{"jobs": []}', '{"jobs": [{"error": 0}]}']
)
def test_an_incomplete_result_is_an_error(text: str) -> None:
    with pytest.raises(DriverError, match="fio"):
        tally_of(text, "read", 65536)
