"""Single runs far outside their neighbours, which no change is made of."""

from __future__ import annotations

import numpy as np
import pytest

from series_rows import made_run, scattered
from weighbridge.results.analysis.history.change_points import change_points
from weighbridge.results.analysis.history.history import History, history_of
from weighbridge.results.analysis.history.run_outliers import OUTLIER_RULE, outlying
from weighbridge.results.charts.history_chart import history_charts
from weighbridge.results.doubt import Doubt
from weighbridge.results.export.history_tables import history_tables
from weighbridge.results.report.history_page import history_page

BUSY = Doubt(what="machine busy", grade="mild", words="other programs used 12 %")


def history(off: dict[int, float], count: int = 30, **more: object) -> History:
    """Quiet runs, of which some are off by a factor."""
    return history_of(
        [
            made_run(day, {"rgw-beast": rate * off.get(day, 1.0)}, **more)  # type: ignore[arg-type]
            for day, rate in enumerate(scattered(count, 5))
        ]
    )


def found(history: History) -> list[tuple[str, str, str, str]]:
    return [(one.run, one.metric, one.words, one.direction) for one in history.outliers]


def test_one_bad_run_is_an_outlier_and_no_change() -> None:
    told = history({20: 0.6})
    assert told.changes == ()
    assert found(told) == [
        ("day-020", "throughput", "outlier, one run", "worse"),
        ("day-020", "p90", "outlier, one run", "worse"),
    ]
    (words,) = told.outlier_words
    assert "day-020 (2026-01-21): outlier, one run: throughput " in words
    assert "change" in told.headline


def test_it_is_said_in_the_table_the_chart_the_page_and_the_export() -> None:
    told = history({20: 0.6})
    (throughput, _) = charts = history_charts(told)
    (panel,) = throughput.panels
    texts = [spot.text for mark in panel.marks if mark.kind == "beside" for spot in mark.spots]
    assert texts == ["outlier, one run"]
    assert [line[-1] for line in panel.lines if line[1] == "day-020"] == ["outlier, one run"]
    figures, changes = history_tables(told)
    assert figures.column("outlier").count("outlier, one run") == 2
    assert changes.column("run") == ()
    page = history_page(told, charts, version="1")
    assert '<section id="outliers"' in page
    assert "day-020 (2026-01-21): outlier, one run" in page
    assert '<section id="outliers"' not in history_page(history({}), charts, version="1")


def test_quiet_runs_and_the_edges_of_a_lasting_step_have_none() -> None:
    assert history({}, count=60).outliers == ()
    told = history(dict.fromkeys(range(20, 40), 0.6), count=40)
    assert [one.run for one in told.changes] == ["day-020"]
    assert told.outliers == ()


def test_several_in_a_row_are_not_called_one_run_and_doubts_stand_beside_it() -> None:
    told = history({20: 0.6, 21: 0.6, 25: 1.8})
    row = "outlier, one of 2 runs in a row"
    words = {one.run: one.words for one in told.outliers}
    assert words == {"day-020": row, "day-021": row, "day-025": "outlier, one run"}
    doubtful = history({20: 0.6}, doubts=(BUSY,)).outliers
    assert all("machine busy" in one.words for one in doubtful)
    assert doubtful


def test_below_the_practical_threshold_there_is_none() -> None:
    steady = [100 * (1 + 1e-4 * (at % 3)) for at in range(30)]
    steady[20] = 104.0
    assert outlying(steady, 0.05) == ()
    assert [one.at for one in outlying(steady, 0.03)] == [20]
    assert outlying([100.0] * 30, 0.0) == ()
    (lone,) = outlying([100.0] * 20 + [90.0] + [100.0] * 9, 0.05)
    assert (lone.at, lone.z) == (20, None)


def test_few_neighbours_ask_for_more() -> None:
    values = (100 * np.exp(0.02 * np.random.default_rng(3).normal(size=60))).tolist()
    assert OUTLIER_RULE.bound(50) < OUTLIER_RULE.bound(20) < OUTLIER_RULE.bound(10)
    assert outlying([*values[: OUTLIER_RULE.least - 1], 10.0], 0.05) == ()
    values[40] = 100 * np.exp(0.13)
    assert [one.at for one in outlying(values, 0.05)] == [40]
    assert outlying(values[28:45], 0.05) == ()


def test_neighbours_are_of_the_same_level() -> None:
    levels = [100.0 + at % 3 for at in range(20)] + [50.0 + at % 3 for at in range(20)]
    changes = change_points(levels, 0.05)
    assert [one.at for one in changes] == [20]
    assert outlying(levels, 0.05, changes) == ()
    levels[30] = 100.0
    assert [one.at for one in outlying(levels, 0.05, changes)] == [30]


@pytest.mark.parametrize("seed", range(3))
def test_an_outlier_hides_no_other(seed: int) -> None:
    values = scattered(40, seed, 0.01)
    values[10] *= 5
    values[12] *= 0.5
    assert [one.at for one in outlying(values, 0.05)] == [10, 12]
