from __future__ import annotations

from typing import Literal

import pytest

from tests.drivers.rados.conftest import DATA
from weighbridge.common.errors import DriverError
from weighbridge.drivers.rados.bench import Mode, RadosBenchCommand, RadosBenchResult, together
from weighbridge.drivers.rados.cluster import groups_each, shared_out

RELEASES = ("ceph-14", "ceph-16", "ceph-18")


def told(release: str, name: str) -> str:
    return (DATA / "rados" / release / f"{name}.json").read_text()


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("mode", ["write", "seq", "rand"])
def test_what_each_release_prints_is_read(release: str, mode: Mode) -> None:
    text = told(release, mode)
    assert text.startswith("hints = 1\n")
    answer = RadosBenchResult.of(mode, text)
    assert answer.object_bytes == 65536
    assert answer.count >= 100
    assert answer.min_s is not None
    assert answer.mean_s is not None
    assert answer.max_s is not None
    assert 0 < answer.min_s < answer.mean_s < answer.max_s < answer.seconds < 4
    # A closed loop of four: what it tells of itself keeps Little's law.
    assert answer.mean_s * answer.count / answer.seconds == pytest.approx(4, rel=0.1)


def test_a_write_of_so_many_objects_has_garbage_beside_what_is_read() -> None:
    text = told("ceph-16", "write-40-objects")
    assert '"min_bandwidth":"17976931' in text
    assert RadosBenchResult.of("write", text).count == 40


def test_several_at_once_add_up_and_share_the_longest_window() -> None:
    first = RadosBenchResult(
        seconds=3.0, count=100, object_bytes=10, mean_s=0.010, min_s=0.002, max_s=0.02
    )
    second = RadosBenchResult(
        seconds=4.0, count=300, object_bytes=10, mean_s=0.020, min_s=0.001, max_s=0.03
    )
    nothing = RadosBenchResult(seconds=3.5, count=0, object_bytes=10)
    tally, window_s = together([first, second, nothing], "read")
    assert (tally.count, tally.bytes, window_s) == (400, 4000, 4.0)
    assert (tally.min_us, tally.max_us, tally.sum_us) == (1000, 30000, 7_000_000)


def test_of_nothing_done_no_latency_is_told() -> None:
    text = told("ceph-16", "rand").replace(
        '"total_reads_made":"', '"total_reads_made":"0","other":"'
    )
    tally, _ = together([RadosBenchResult.of("rand", text)], "read")
    assert (tally.count, tally.min_us, tally.max_us) == (0, None, None)


@pytest.mark.parametrize(
    "text", ["hints = 1\n", "", '["a"]', '{"total_time_run": "1"}', told("ceph-16", "write")[:600]]
)
def test_an_answer_that_is_not_whole_is_an_error(text: str) -> None:
    with pytest.raises(DriverError, match="rados bench"):
        RadosBenchResult.of("write", text)


@pytest.mark.parametrize(("mode", "keeps"), [("write", True), ("seq", False), ("rand", False)])
def test_only_writes_are_told_sizes_and_to_leave_their_objects(mode: Mode, keeps: bool) -> None:
    argv = RadosBenchCommand(
        pool="p", mode=mode, seconds=3, workers=4, object_bytes=4096, run="r"
    ).argv()
    assert argv[:6] == ("rados", "--pool", "p", "bench", "3", mode)
    assert ("--no-cleanup" in argv, "-O" in argv, "--max-objects" in argv) == (keeps, keeps, False)


def test_workers_and_objects_are_shared_out_to_the_last_one() -> None:
    assert shared_out(10, 4) == [3, 3, 2, 2]
    assert shared_out(2, 4) == [1, 1, 0, 0]


@pytest.mark.parametrize(
    ("total", "parts", "each"),
    [(32, 1, 32), (32, 2, 16), (32, 3, 8), (8, 8, 1), (1, 8, 1), (1024, 8, 128)],
)
def test_placement_groups_of_each_pool_are_a_power_of_two(
    total: int, parts: int, each: Literal[1]
) -> None:
    assert groups_each(total, parts) == each
