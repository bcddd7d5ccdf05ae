"""Malformed output of `rados bench`, `rbd bench`, OSDs and the program that starts them."""

from __future__ import annotations

import json
import math
from typing import Any, cast

import pytest

from fake_ceph import STORE, detail
from tests.mutation import Dice, cases, tried, wrong_json, wrong_text
from weighbridge.common.errors import DriverError, TargetError
from weighbridge.drivers.rados.block import progress_lines, window
from weighbridge.drivers.rados.cluster import Mode, RadosBenchResult, RadosCluster, combined
from weighbridge.drivers.rados.given_pool import (
    apart,
    details,
    fragments,
    kept_by,
    mtime_of,
    unclean,
)
from weighbridge.drivers.rados.host_commands import CommandOutput, _handle
from weighbridge.drivers.rados.osd_bench import osd_figures

TIMES = {"average_latency": "0.001482", "max_latency": "0.068732", "min_latency": "0.000164"}
BENCH = {
    "datas": [{"sec": "0", "cur_ops": "0", "started": "0", "finished": "0"}],
    "total_time_run": "3.000398",
    "total_reads_made": "7965",
    "read_size": "65536",
    "total_writes_made": "41",
    "write_size": "65536",
    **TIMES,
}
RBD = """bench  type write io_size 65536 io_threads 4 bytes 1073741824 pattern sequential
  SEC       OPS   OPS/SEC   BYTES/SEC
    1      1248      1251    78 MiB/s
    2      2560   1280.37    80 MiB/s
    3      3808   1269.55    79 MiB/s
    4      5072    1.2e+3    79 MiB/s
"""
EVENTS = [
    ["line", 0, 0.51, "    1      1248      1251    78 MiB/s"],
    ["end", 0, 3.1, 0, 1.25, "its stderr"],
]


@cases
def test_any_output_of_rados_bench_is_a_result_or_a_driver_error(dice: Dice) -> None:
    mode = cast("Mode", dice.choice(("write", "seq", "rand")))
    output = "hints = 1\n" + wrong_json(dice, BENCH).decode(errors="replace")
    result = tried(lambda: RadosBenchResult.of(mode, output), DriverError, saying="rados bench")
    if result is None:
        return
    made = tried(
        lambda: combined([result, result], "write" if mode == "write" else "read"),
        DriverError,
        saying="rados bench",
    )
    if made is None:
        return
    tally, window_s = made
    assert RadosBenchResult.model_validate_json(result.model_dump_json()) == result
    assert type(tally).model_validate_json(tally.model_dump_json()) == tally
    assert window_s > 0


@cases
def test_any_output_of_rbd_bench_gives_a_window_or_a_driver_error(dice: Dice) -> None:
    lines = wrong_text(dice, RBD).splitlines()
    ran = CommandOutput(
        ("rbd", "bench"), [(number + 0.5, line) for number, line in enumerate(lines)]
    )
    ends = tried(lambda: window(progress_lines(ran), 1.0, 2.0), DriverError, saying="rbd bench")
    if ends is not None:
        assert ends[1].seconds - ends[0].seconds >= 2.0
        assert ends[1].count >= ends[0].count


def test_an_rbd_bench_that_counts_backwards_is_an_error() -> None:
    ran = CommandOutput(
        ("rbd", "bench"),
        [
            (1.0, "    1      2560      1251    78 MiB/s"),
            (3.0, "    3      1248      1251    78 MiB/s"),
        ],
    )
    with pytest.raises(DriverError, match="2560 operations, and 1248 later"):
        window(progress_lines(ran), 1.0, 2.0)


class AnsweringCluster:
    """A cluster with the given answers."""

    def __init__(self, answers: dict[str, str]) -> None:
        self.answers = answers

    def run(self, argv: list[str], *, timeout_s: float = 60) -> Any:
        return type(
            "Done", (), {"stdout": self.answers[argv[4] if argv[3] == "config" else argv[3]]}
        )

    name = "store-1"


@cases
def test_any_answer_of_an_osd_is_a_figure_or_a_target_error(dice: Dice) -> None:
    limits = {
        "osd_bench_duration": "30",
        "osd_bench_small_size_max_iops": "100",
        "osd_bench_max_block_size": "67108864",
    }
    limits["osd_bench_large_size_max_throughput"] = "104857600"
    given = {
        "config get": limits,
        "bench": {
            "bytes_written": 1,
            "blocksize": 4096,
            "elapsed_sec": 0.1,
            "bytes_per_sec": 53214.7,
        },
    }
    which = dice.choice(tuple(given))
    answer = wrong_json(dice, given[which]).decode(errors="replace")
    answers = {name: json.dumps(one) for name, one in given.items()} | {which: answer}
    machine = AnsweringCluster({"get": answers["config get"], "bench": answers["bench"]})
    cluster = RadosCluster(cast("Any", machine), replicas=1)
    found = tried(
        lambda: osd_figures(cluster, {0: "store-1"}, (4096, 2**22)), TargetError, saying="osd.0"
    )
    assert all(math.isfinite(one.bytes_per_s) and one.bytes_per_s > 0 for one in found or ())


@cases
def test_any_line_of_run_parallel_is_handled_or_a_driver_error(dice: Dice) -> None:
    ran = [CommandOutput(("rbd", "bench"))]
    line = wrong_json(dice, dice.choice(EVENTS))
    tried(lambda: _handle(ran, line), DriverError, saying="run_parallel.py")
    assert math.isfinite(ran[0].seconds)
    assert math.isfinite(ran[0].cpu_s)


def test_deeply_nested_results_and_infinite_figures_are_errors() -> None:
    with pytest.raises(DriverError, match="not JSON"):
        RadosBenchResult.of("write", '{"datas":' * 100_000)
    with pytest.raises(DriverError, match="rados bench write"):
        RadosBenchResult.of("write", json.dumps({**BENCH, "total_writes_made": float("inf")}))


def test_an_osd_that_allows_no_bench_is_an_error_that_names_its_option() -> None:
    machine = AnsweringCluster({"get": '{"osd_bench_duration": 0}', "bench": "{}"})
    cluster = RadosCluster(cast("Any", machine), replicas=1)
    with pytest.raises(TargetError, match="osd_bench_duration is 0"):
        osd_figures(cluster, {0: "store-1"}, (4096,))


@pytest.mark.parametrize(
    "line", [b"[]", b'["end", 0]', b'["line", 7, 0.1, "of nobody"]', b"42", b"[" * 100_000]
)
def test_an_unknown_line_of_run_parallel_is_an_error_that_shows_it(line: bytes) -> None:
    with pytest.raises(DriverError, match=r"run_parallel\.py"):
        _handle([CommandOutput(("rbd", "bench"))], line)


@cases
def test_any_list_of_pools_is_one_that_can_be_compared_or_a_target_error(dice: Dice) -> None:
    printed = wrong_json(dice, [detail(), detail(STORE)]).decode(errors="replace")
    pools = tried(lambda: details(printed, "gateway-1"), TargetError, saying="gateway-1: ceph osd")
    profile = CommandOutput(("ceph",), [(0.0, '{"k": "2", "m": "1"}')], code=0)
    for one in pools or ():
        assert all(isinstance(fault, str) for fault in (*one.faults, one.remark))
        kept = {each.pool_name: kept_by(each, lambda _: profile) for each in pools or ()}
        assert isinstance(apart(one, pools or (), kept), str)


@cases
def test_any_profile_of_erasure_coding_is_fragments_or_a_target_error(dice: Dice) -> None:
    printed = wrong_json(dice, {"k": "2", "m": "1"}).decode(errors="replace")
    found = tried(lambda: fragments(printed, "gateway-1"), TargetError, saying="gateway-1: ceph")
    assert found is None or found.times > 1


@cases
def test_any_status_of_a_cluster_gives_words(dice: Dice) -> None:
    groups = [{"state_name": "active+clean", "count": 5}, {"state_name": "peering", "count": 1}]
    printed = wrong_json(dice, {"pgmap": {"pgs_by_state": groups}}).decode(errors="replace")
    words = unclean(CommandOutput(("ceph",), [(0.0, printed)], code=0))
    assert words.isprintable()


@cases
def test_any_time_of_an_object_is_read_or_counts_as_new(dice: Dice) -> None:
    line = wrong_text(dice, "bench/x mtime 2026-11-27T20:10:00.000000+0000, size 0")
    assert mtime_of(CommandOutput(("rados",), [(0.0, line)], code=0)).tzinfo is not None
