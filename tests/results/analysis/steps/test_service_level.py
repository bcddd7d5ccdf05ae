from __future__ import annotations

import math
from pathlib import Path

import pytest

from fake_run import fake_run
from made_rows import altered, changed, made_workload
from weighbridge.results.analysis.steps.service_level import (
    Served,
    Stop,
    default_bound_ms,
    most_within,
    path,
    served,
    stretches,
)
from weighbridge.results.analysis.steps.summary import Row, summarize
from weighbridge.results.doubt import Doubt

READS = made_workload(name="reads", workers=(1, 4, 16), runtime=3.0)


def stop(workers: int, ops_s: float, p90_ms: float | None, *, ranked: bool = True) -> Stop:
    return Stop(
        workers=workers,
        throughput_ops_s=ops_s,
        low_ops_s=ops_s,
        high_ops_s=ops_s,
        p90_ms=p90_ms,
        low_ms=p90_ms,
        high_ms=p90_ms,
        valid=ranked,
        ranked=ranked,
        repeats=1,
    )


def rows_of(runs: Path, repeats: int = 3) -> list[Row]:
    store = fake_run(runs, workloads=[READS], repeats=repeats, telemetry=False)
    return list(summarize(store.plan(), store.steps()))


@pytest.mark.parametrize(
    ("points", "bound_ms", "ops_s", "more"),
    [
        ([(100.0, 10.0), (200.0, 30.0)], 15.0, 125.0, False),  # on the line between them
        ([(100.0, 10.0), (200.0, 30.0)], 50.0, 200.0, True),  # beyond the last nothing is known
        ([(300.0, 5.0), (290.0, 30.0)], 20.0, 300.0, False),  # falling: the most is at a point
        ([(100.0, 10.0), (150.0, None), (200.0, 30.0)], 20.0, 100.0, True),  # a break in the path
        # A break within the bound on both sides hides nothing.
        ([(100.0, 10.0), (150.0, None), (200.0, 15.0), (300.0, 25.0)], 20.0, 250.0, False),
        ([(100.0, 10.0), (200.0, 30.0)], 9.0, None, False),
        ([(100.0, None)], 10.0, None, False),
        ([], 10.0, None, False),
    ],
)
def test_the_most_within_a_bound_is_on_the_measured_path(
    points: list[tuple[float, float | None]], bound_ms: float, ops_s: float | None, more: bool
) -> None:
    found = most_within(points, bound_ms)
    assert (found.ops_s if found else None) == ops_s
    assert (found is not None and found.more) == more
    assert found is None or more or found.at_ms == (5.0 if ops_s == 300.0 else bound_ms)


def test_only_ranked_neighbours_are_joined() -> None:
    stops = [
        stop(1, 10, 1.0),
        stop(2, 20, 2.0),
        stop(4, 30, None),
        stop(8, 40, 9.0),
        stop(16, 50, 20.0, ranked=False),
    ]
    assert [[one.workers for one in part] for part in stretches(stops)] == [[1, 2], [8]]


def test_a_figure_has_a_range_over_repeats(tmp_path: Path) -> None:
    rows = [row for row in rows_of(tmp_path) if row.layout == "rgw-beast"]
    bound_ms = (rows[0].value("p90") or 0) * 1.2
    found = served("rgw-beast", rows, bound_ms)
    low, most, high = found.low_ops_s, found.ops_s, found.high_ops_s
    assert (low or math.inf) <= (most or 0) <= (high or 0)
    assert found.words in found.span
    alone = [row for row in rows_of(tmp_path, repeats=1) if row.layout == "swift"]
    found = served("swift", alone, 1000.0)
    assert (found.low_ops_s, found.high_ops_s, found.at_least) == (None, None, True)
    assert found.words.startswith("≥ ")


ABOVE = Doubt(what="above its ceiling", grade="grave", words="above its layer")


@pytest.mark.parametrize("metrics", [(), ("p90",)])
def test_a_row_that_is_not_ranked_or_whose_p90_is_not_comparable_serves_nothing(
    tmp_path: Path, metrics: tuple[str, ...]
) -> None:
    doubt = altered(ABOVE, metrics=metrics)
    rows = [altered(row, doubts=(doubt,)) for row in rows_of(tmp_path) if row.layout == "swift"]
    assert served("swift", rows, 1000.0) == Served(layout="swift", ops_s=None, known=False)
    assert not any(one.joined for one in path(rows))


def test_unmeasured_rows_are_not_on_the_path_and_without_all_p90s_there_is_no_figure(
    tmp_path: Path,
) -> None:
    row = rows_of(tmp_path)[0]
    gone = changed(row, points=(), throughput_ops_s=None, p90_ms=None, valid=False)
    assert path([gone]) == ()
    lacking = (changed(row.points[0], p90_ms=None), *row.points[1:])
    (one,) = path([changed(row, p90_ms=None, points=lacking)])
    assert (one.p90_ms, one.low_ms, one.high_ms, one.joined) == (None, None, None, False)


def test_the_default_bound_is_a_round_one_that_most_paths_cross() -> None:
    fast, slow = [stop(1, 10, 1.0), stop(8, 40, 30.0)], [stop(1, 8, 4.0), stop(8, 20, 90.0)]
    bound_ms = default_bound_ms([fast, slow])
    assert bound_ms in (5.0, 10.0, 20.0)


@pytest.mark.parametrize("stops", [[], [stop(1, 10, 3.0)], [stop(1, 10, None)]])
def test_there_is_no_bound_between_fewer_than_two_latencies(stops: list[Stop]) -> None:
    assert default_bound_ms([stops]) is None
