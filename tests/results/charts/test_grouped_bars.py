from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
import vl_convert as vlc

from chart_sources import fake_chart_source, texts_of
from fake_run import WORKLOADS, fake_run
from made_rows import altered
from weighbridge.results.analysis.kinds import Kind
from weighbridge.results.analysis.steps.summary import Row, summarize
from weighbridge.results.charts.chart_theme import DARK, LIGHT, Look, styles
from weighbridge.results.charts.composer import compose
from weighbridge.results.charts.grouped_bars import (
    Bars,
    LayoutBar,
    bar_groups,
    finding,
    grouped_bars,
)
from weighbridge.results.record.store import RunStore


@pytest.fixture(scope="module")
def rows(run: RunStore) -> tuple[Row, ...]:
    return summarize(run.plan(), run.steps())


def test_each_kind_of_requests_is_drawn_where_asked_or_where_most_layouts_can_be_ranked(
    rows: tuple[Row, ...],
) -> None:
    # swift was not measured at 8 workers of large reads, rgw-beast erred in one of two repeats of
    # small writes
    found = {group.about: group.workers for group in bar_groups(rows)}
    assert found == {"1 MB reads": 32, "1 MB writes": 32, "64 MB reads": 4}
    assert [group.workers for group in bar_groups(rows, 16)] == [16, 16, 4]


def test_what_is_not_ranked_has_a_reason_instead_of_a_bar(
    rows: tuple[Row, ...], run: RunStore
) -> None:
    (figure,) = grouped_bars(fake_chart_source(run, rows, workers=8))
    bars = {bar.layout: bar for bar in bar_groups(rows, 8)[2].bars}
    assert (bars["swift"].value, bars["swift"].why) == (None, "not measured")
    assert "× not measured" in texts_of(figure)


@pytest.mark.parametrize("look", [LIGHT, DARK], ids=["light", "dark"])
def test_bars_begin_at_0_and_have_the_colours_of_their_layouts(
    rows: tuple[Row, ...], run: RunStore, look: Look
) -> None:
    shown = styles(run.plan().layouts, look)
    (figure,) = grouped_bars(fake_chart_source(run, rows))
    drawn = vlc.vegalite_to_svg(compose(figure, look))
    for style in shown:
        assert drawn.count(f'fill="{style.colour}"') == 3
    for plot in compose(figure, look)["concat"]:
        bars = next(layer for layer in plot["layer"] if layer["mark"]["type"] == "bar")
        assert bars["encoding"]["x"]["scale"]["domain"][0] == 0
        assert bars["encoding"]["x2"]["datum"] == 0


def test_the_csv_has_a_line_for_each_bar(rows: tuple[Row, ...], run: RunStore) -> None:
    (figure,) = grouped_bars(fake_chart_source(run, rows))
    lines = list(csv.DictReader(io.StringIO(figure.csv)))
    assert len(lines) == 6
    assert {line["layout"] for line in lines} == {"rgw-beast", "swift"}
    assert all(
        float(line["low_ops_s"]) < float(line["throughput_ops_s"]) < float(line["high_ops_s"])
        for line in lines[:2]
    )


def test_one_repeat_has_no_whiskers_and_makes_no_claim(runs: Path) -> None:
    run = fake_run(runs, workloads=[altered(WORKLOADS[0], runtime=2.0)], repeats=1, telemetry=False)
    rows = summarize(run.plan(), run.steps())
    (figure,) = grouped_bars(fake_chart_source(run, rows))
    assert "whiskers" not in figure.caption
    assert "no claim" in figure.caption
    assert {bar.high for group in bar_groups(rows) for bar in group.bars} == {None}


def test_nothing_measured_is_no_figure(rows: tuple[Row, ...], run: RunStore) -> None:
    spoilt = [altered(row, valid=False) for row in rows]
    assert grouped_bars(fake_chart_source(run, spoilt)) == ()


def panel(workers: int, **bars: tuple[float | None, float | None, float | None]) -> Bars:
    """A panel of bars: value, and ends of the interval."""
    kind: Kind = ("small", "read", "swift", "locust")
    drawn = tuple(
        LayoutBar(layout=name, value=value, low=low, high=high, repeats=5)
        for name, (value, low, high) in bars.items()
    )
    return Bars(kind=kind, about="64 kB reads", workers=workers, bars=drawn)


def test_the_title_names_only_layouts_whose_intervals_are_apart_from_all_others() -> None:
    ahead = panel(16, a=(200, 190, 210), b=(100, 90, 110), c=(180, 170, 189))
    close = panel(4, a=(100, 90, 110), b=(90, 80, 99))
    once = panel(4, a=(100, None, None), b=(50, None, None))
    assert finding([ahead]) == "At 16 workers, a had the most op/s in the kind of requests"
    assert finding([ahead, close, once]) == (
        "At 4 or 16 workers, a had the most op/s in 1 of 3 kinds of requests, 2 too close to call"
    )
    assert finding([close, once]) == "At 4 workers, no layout had clearly the most op/s"
    unranked = panel(16, a=(200, 190, 210), b=(100, 90, 110), c=(None, None, None))
    assert finding([unranked]) == "What was measured at 16 workers"
    assert finding([ahead, unranked]) == (
        "At 16 workers, a had the most op/s in 1 of 2 kinds of requests, "
        "1 with a layout that is not ranked"
    )
