"""Corrupted output of sysbench, fio and iperf3."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.mutation import Dice, cases, tried, wrong_json, wrong_text
from weighbridge.common.errors import TargetError
from weighbridge.topologies.ceilings import (
    DISK_JOBS,
    bits_per_s,
    disk_figures,
    events_per_s,
    piece_figures,
    pieces,
)

PIECES = pieces([65536])
SYSBENCH = """Number of threads: 1
CPU speed:
    events per second:   626.75
General statistics:
    total time:                          0.4770s
    total number of events:              300
"""


def job(name: str) -> dict[str, Any]:
    side = {
        "io_bytes": 733000,
        "bw_bytes": 244333,
        "iops": 2682.211859,
        "runtime": 3002,
        "total_ios": 8052,
    }
    return {"jobname": name, "error": 0, "read": side, "write": dict(side)}


FIO = {
    "fio version": "fio-3.33",
    "jobs": [*map(job, DISK_JOBS), *(job(piece.name) for piece in PIECES)],
}
RATES = {"bytes": 50069504, "seconds": 0.011471, "bits_per_second": 34919015953.273468}
IPERF = {
    "start": {"version": "iperf 3.12"},
    "end": {"streams": [], "sum_sent": RATES, "sum_received": dict(RATES)},
    "error": "busy",
}


def figures(read: Callable[[str], list[float]], printed: str) -> None:
    """A positive figure, or a TargetError."""
    found = tried(lambda: read(printed), TargetError)
    assert all(isinstance(one, float) and math.isfinite(one) and one > 0 for one in found or ())


@cases
def test_any_output_of_sysbench_is_a_figure_or_a_target_error(dice: Dice) -> None:
    figures(lambda printed: [events_per_s(printed)], wrong_text(dice, SYSBENCH))


@cases
def test_any_output_of_fio_is_figures_or_a_target_error(dice: Dice) -> None:
    printed = wrong_json(dice, FIO).decode(errors="replace")
    figures(lambda printed: [figure for figure, _ in disk_figures(printed).values()], printed)
    figures(lambda printed: list(piece_figures(printed, PIECES)), printed)


@cases
def test_any_output_of_iperf3_is_a_figure_or_a_target_error(dice: Dice) -> None:
    answer = (
        IPERF
        if dice.random() < 0.1
        else {name: value for name, value in IPERF.items() if name != "error"}
    )
    figures(
        lambda printed: [bits_per_s(printed)], wrong_json(dice, answer).decode(errors="replace")
    )


def test_json_without_valid_figures_is_an_error() -> None:
    for wrong in ([], [7], {"sum_received": 7}, {"sum_received": {"bits_per_second": 1e999}}):
        with pytest.raises(TargetError, match="iperf3: no end"):
            bits_per_s(json.dumps({"end": wrong}))
    for jobs in (7, [7]):
        with pytest.raises(TargetError, match="fio: `jobs` is not a list"):
            disk_figures(json.dumps({"jobs": jobs}))
