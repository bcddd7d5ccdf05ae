from __future__ import annotations

from typing import Literal

import pytest

from tests.drivers.rados.conftest import DATA
from weighbridge.common.errors import DriverError
from weighbridge.drivers.rados.cluster import (
    BenchPlace,
    Mode,
    RadosBenchCommand,
    RadosBenchResult,
    combined,
    pg_num_each,
    split_evenly,
)

RELEASES = ("ceph-14", "ceph-16", "ceph-18")


def printed(release: str, name: str) -> str:
    return (DATA / "rados" / release / f"{name}.json").read_text()


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("mode", ["write", "seq", "rand"])
def test_the_output_of_each_release_is_read(release: str, mode: Mode) -> None:
    text = printed(release, mode)
    assert text.startswith("hints = 1\n")
    result = RadosBenchResult.of(mode, text)
    assert result.object_bytes == 65536
    assert result.count >= 100
    assert result.min_s is not None
    assert result.mean_s is not None
    assert result.max_s is not None
    assert 0 < result.min_s < result.mean_s < result.max_s < result.seconds < 4
    # A closed loop of four: its figures obey Little's law.
    assert result.mean_s * result.count / result.seconds == pytest.approx(4, rel=0.1)


def test_a_write_of_a_number_of_objects_has_garbage_besides_what_is_read() -> None:
    text = printed("ceph-16", "write-40-objects")
    assert '"min_bandwidth":"17976931' in text
    assert RadosBenchResult.of("write", text).count == 40


def test_several_in_parallel_add_up_and_share_the_longest_window() -> None:
    first = RadosBenchResult(
        seconds=3.0, count=100, object_bytes=10, mean_s=0.010, min_s=0.002, max_s=0.02
    )
    second = RadosBenchResult(
        seconds=4.0, count=300, object_bytes=10, mean_s=0.020, min_s=0.001, max_s=0.03
    )
    nothing = RadosBenchResult(seconds=3.5, count=0, object_bytes=10)
    tally, window_s = combined([first, second, nothing], "read")
    assert (tally.count, tally.bytes, window_s) == (400, 4000, 4.0)
    assert (tally.min_us, tally.max_us, tally.sum_us) == (1000, 30000, 7_000_000)


def test_without_operations_there_is_no_latency() -> None:
    text = printed("ceph-16", "rand")
    text = text.replace('"total_reads_made":"', '"total_reads_made":"0","other":"')
    tally, _ = combined([RadosBenchResult.of("rand", text)], "read")
    assert (tally.count, tally.min_us, tally.max_us) == (0, None, None)


@pytest.mark.parametrize(
    "text",
    ["hints = 1\n", "", '["a"]', '{"total_time_run": "1"}', printed("ceph-16", "write")[:600]],
)
def test_an_incomplete_result_is_an_error(text: str) -> None:
    with pytest.raises(DriverError, match="rados bench"):
        RadosBenchResult.of("write", text)


@pytest.mark.parametrize(("mode", "keeps"), [("write", True), ("seq", False), ("rand", False)])
def test_only_writes_have_sizes_and_leave_their_objects(mode: Mode, keeps: bool) -> None:
    argv = RadosBenchCommand(
        place=BenchPlace(pool="p"), mode=mode, seconds=3, workers=4, object_bytes=4096, run="r"
    ).argv()
    assert argv[:6] == ("rados", "--pool", "p", "bench", "3", mode)
    assert ("--no-cleanup" in argv, "-O" in argv, "--max-objects" in argv) == (keeps, keeps, False)


def test_workers_and_objects_are_split_completely() -> None:
    assert split_evenly(10, 4) == [3, 3, 2, 2]
    assert split_evenly(2, 4) == [1, 1, 0, 0]


@pytest.mark.parametrize(
    ("total", "parts", "each"),
    [(32, 1, 32), (32, 2, 16), (32, 3, 8), (8, 8, 1), (1, 8, 1), (1024, 8, 128)],
)
def test_placement_groups_of_each_pool_are_a_power_of_two(
    total: int, parts: int, each: Literal[1]
) -> None:
    assert pg_num_each(total, parts) == each
