"""Charts by workers and bars: what is joined, hollow or a cross, and the ceilings around it."""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import vl_convert as vlc

from chart_sources import fake_chart_source
from compared_rows import MILD, times
from compared_rows import row as row_of
from fake_run import WORKLOADS, fake_run
from made_rows import altered, changed, made_row, summarize
from weighbridge.common.structure import Level
from weighbridge.results.features.layers import ceiling_lines
from weighbridge.results.features.staircase import LayerStep, Staircase
from weighbridge.results.figures.doubt import Doubt
from weighbridge.results.figures.reading import MetricFigure
from weighbridge.results.figures.summary import Row
from weighbridge.results.judge.comparing import compare
from weighbridge.results.numbers import show_figure
from weighbridge.results.run.store import RunStore
from weighbridge.results.show.chart import NOT_COMPARABLE, PROVISIONAL, Chart, Panel
from weighbridge.results.show.chart_source import CeilingLine
from weighbridge.results.show.charts.bars import ratio_chart, throughput_bars
from weighbridge.results.show.charts.by_workers import (
    first_byte_by_workers,
    latency_by_workers,
    throughput_by_workers,
)

HELD = Doubt(what="set by the CPU limit", grade="grave", words="throttled", metrics=("p90",))


@pytest.fixture(scope="module")
def rows(run: RunStore) -> tuple[Row, ...]:
    return summarize(run.plan(), run.steps())


def drawn(chart: Chart) -> dict[tuple[str, str, int], dict[str, Any]]:
    """The rows of a chart by workload, layout and worker count."""
    return {
        (row["workload"], row["layout"], row["workers"]): dict(row)
        for panel in chart.panels
        for row in panel.rows
    }


def throughput(run: RunStore, rows: tuple[Row, ...] | list[Row]) -> Chart:
    return throughput_by_workers(fake_chart_source(run, rows))[0]


def latency(run: RunStore, rows: tuple[Row, ...] | list[Row]) -> Chart:
    return latency_by_workers(fake_chart_source(run, rows))[0]


SWIFT = ("swift", "small-read", 4)


def with_one(rows: tuple[Row, ...], **update: object) -> list[Row]:
    """The rows, with that of small reads of swift at 4 workers changed."""
    return [
        altered(row, **update) if (row.layout, row.workload, row.workers) == SWIFT else row
        for row in rows
    ]


def test_a_panel_of_latency_omits_what_is_not_comparable_and_marks_lower_bounds(
    run: RunStore, rows: tuple[Row, ...]
) -> None:
    mine = [row for row in rows if row.workload == "small-read"]

    def said(**update: object) -> tuple[str, str]:
        cells = [changed(row, **update) if row.layout == "swift" else row for row in mine]
        chart = latency(run, cells)
        return chart.panels[0].finding, chart.finding

    assert said()[1].startswith("p90 differ")
    assert said(doubts=(HELD,)) == ("", "Latency by workers: p90 and max")
    assert "≥ 5,000 ms on swift" in said(p90_ms=5000.0, at_least=("p90",))[1]
    assert said(p90_ms=None)[0] == ""


def test_a_line_is_broken_where_a_step_is_missing_or_invalid(
    run: RunStore, rows: tuple[Row, ...]
) -> None:
    at = drawn(throughput(run, with_one(rows, valid=False)))
    swift = {count: at["small-read", "swift", count] for count in (1, 4, 16, 32)}
    assert swift[4]["_stretch"] is None
    assert swift[4]["standing"] == NOT_COMPARABLE
    assert swift[1]["_stretch"] != swift[16]["_stretch"] == swift[32]["_stretch"]
    beast = {at["small-read", "rgw-beast", count]["_stretch"] for count in (1, 4, 16, 32)}
    assert len(beast) == 1


def test_an_incomparable_figure_is_off_the_line_of_p90_and_not_of_throughput(
    run: RunStore, rows: tuple[Row, ...]
) -> None:
    place, cells = ("small-read", "swift", 4), with_one(rows, doubts=(HELD,))
    off = drawn(latency(run, cells))[place]
    assert (off["_stretch"], off["standing"]) == (None, NOT_COMPARABLE)
    assert off["notes"].startswith("throttled")
    assert drawn(throughput(run, cells))[place]["_stretch"] is not None


def test_a_doubt_makes_a_point_hollow_and_a_bar_pale(run: RunStore, rows: tuple[Row, ...]) -> None:
    place, mild = ("small-read", "swift", 32), altered(HELD, grade="mild", metrics=())
    doubted = [altered(row, doubts=(mild,)) if row.layout == "swift" else row for row in rows]
    source = fake_chart_source(run, doubted)
    (by_workers,), (bars,) = throughput_by_workers(source), throughput_bars(source)
    assert drawn(by_workers)[place]["standing"] == drawn(bars)[place]["standing"] == PROVISIONAL
    assert "Hollow: provisional." in by_workers.caption
    assert "Pale: provisional." in bars.caption


def test_repeats_are_dots_and_their_interval_is_that_of_the_table(
    run: RunStore, rows: tuple[Row, ...]
) -> None:
    at = drawn(throughput(run, rows))
    # one of two repeats erred beyond the bound
    assert len(at["small-write", "rgw-beast", 32]["each"]) == 1
    for row in rows:
        one, figure = at[row.workload, row.layout, row.workers], row.figure("throughput")
        low = one["throughput_over_repeats_low_ops_s"]
        assert low == (figure.low if one["_stretch"] else None)
    # one of two repeats failed, or erred beyond the bound, in two of the steps
    assert "Geometric mean of 1 to 2 repeats" in throughput(run, rows).caption


def test_a_p90_of_too_few_samples_has_no_mark_but_its_max_has(
    run: RunStore, rows: tuple[Row, ...]
) -> None:
    cells = [
        changed(row, p90_ms=None) if (row.workload, row.workers) == ("large-read", 1) else row
        for row in rows
    ]
    alone = drawn(latency(run, cells))["large-read", "swift", 1]
    assert (alone["p90_ms"], alone["_stretch"]) == (None, None)
    assert alone["max_ms"] is not None
    assert alone["standing"] != NOT_COMPARABLE


def test_every_repeat_lies_within_the_scale_of_latencies(
    run: RunStore, rows: tuple[Row, ...]
) -> None:
    first, *rest = rows
    low = min(point.value("p90") or 1.0 for point in first.points) / 50
    stray = altered(
        first.points[0], figures={**first.points[0].figures, "p90": MetricFigure(value=low)}
    )
    cells = [altered(first, points=(stray, *first.points[1:])), *rest]
    assert latency(run, cells).panels[0].spec["encoding"]["y"]["scale"]["domain"][0] <= low


def test_with_one_worker_count_layouts_are_rows_and_nothing_is_joined(
    run: RunStore, rows: tuple[Row, ...]
) -> None:
    cells = [row for row in rows if row.workers == 16]
    for chart in (throughput(run, cells), latency(run, cells)):
        for panel in chart.panels:
            assert panel.title.endswith("16 workers")
            assert panel.spec["encoding"]["y"]["scale"]["domain"] == ["rgw-beast", "swift"]
            assert not any(one["mark"]["type"] == "line" for one in panel.spec["layer"])


def test_a_latency_in_a_bin_is_a_bar_that_no_line_joins(runs: Path) -> None:
    small = altered(WORKLOADS[0], runtime=3.0)
    run = fake_run(runs, workloads=[small], repeats=1, driver="cosbench", telemetry=False)
    chart = latency(run, summarize(run.plan(), run.steps()))
    assert "Bars: the bin that holds the latency." in chart.caption
    assert re.search(r"at \d+ workers: in \(\d+, \d+\] vs \(", chart.finding)
    beast, swift = (drawn(chart)["small-read", name, 4] for name in ("rgw-beast", "swift"))
    assert beast["_x"] < 4 < swift["_x"], "bars of two layouts are side by side"
    for row in drawn(chart).values():
        assert (row["p90_ms"], row["_stretch"]) == (None, None)
        assert row["p90_high_ms"] - row["p90_low_ms"] == 10
        assert row["_low"] > 0
        assert "_high_max" in row
    assert vlc.vegalite_to_svg(next(spec for _, spec in chart.pictures()))


def test_first_bytes_have_a_chart_of_p90_and_median_only_where_timed(
    run: RunStore, rows: tuple[Row, ...]
) -> None:
    assert first_byte_by_workers(fake_chart_source(run, rows)) == ()

    def timed(row: Row) -> Row:
        found = {"first-byte-p50": 0.25, "first-byte": 0.5} if row.operation == "read" else {}
        figures = {
            key: MetricFigure(value=share * (row.value("p90") or 1.0))
            for key, share in found.items()
        }
        return altered(row, figures={**row.figures, **figures})

    (chart,) = first_byte_by_workers(fake_chart_source(run, [timed(row) for row in rows]))
    reads = {row.workload for row in rows if row.operation == "read"}
    assert len(chart.panels) == len(reads)
    assert all("reads" in panel.title for panel in chart.panels)
    assert "p90 of time to first byte differed most in" in chart.finding
    lines = chart.csv.splitlines()
    assert {"first_byte_ms", "first_byte_p50_ms", "samples"} < set(lines[0].split(","))
    assert len(lines) == 1 + sum(row.operation == "read" for row in rows)


# ---- ceilings


def stair(layout: str, top: Level = "gateway", **rates: float) -> Staircase:
    steps = [
        LayerStep(cast("Level", level.replace("_", "-")), throughput_ops_s=rate)
        for level, rate in rates.items()
    ]
    steps.append(LayerStep(level=top, throughput_ops_s=1))
    head = made_row(layout=layout, workload="w", valid=True)
    return Staircase(head, "1 MB reads", tuple(steps))


def line(value: float, layer: str = "disks") -> CeilingLine:
    return CeilingLine(layouts=("a",), layer=layer, label=layer, value=value)


def test_layouts_with_the_same_ceiling_have_one_line_and_others_have_their_own() -> None:
    lines = ceiling_lines(
        [
            stair("a", disk=100, rados=50),
            stair("b", disk=105, rados=30),
            stair("swift", disk=104, object_server=20),
        ]
    )
    assert [(one.label, one.layouts, one.value) for one in lines["w-read-swift-locust"]] == [
        ("disks", ("a", "swift", "b"), 104),
        ("RADOS (b)", ("b",), 30),
        ("RADOS (a)", ("a",), 50),
        ("object servers", ("swift",), 20),
    ]


def test_gaps_and_what_is_on_top_have_no_line() -> None:
    gap = LayerStep(level="disk", note="not measured")
    bare = replace(
        stair("a", top="rados"), steps=(gap, LayerStep(level="rados", throughput_ops_s=9))
    )
    assert ceiling_lines([bare]) == {"w-read-swift-locust": ()}


def test_near_ceilings_are_labelled_lines_and_far_ones_words(
    run: RunStore, rows: tuple[Row, ...]
) -> None:
    (bare, *_) = throughput(run, rows).panels
    top = bare.spec["encoding"]["y"]["scale"]["domain"][1]
    near = [line(1.2 * top), line(1.21 * top, "RADOS")]
    far = [line(value * top, "network") for value in (100, 200)]
    (chart,) = throughput_by_workers(
        fake_chart_source(run, rows, ceilings={bare.key: (*near, *far)})
    )
    panel = chart.panels[0]
    drawn = panel.spec["layer"][0]["data"]["values"]
    assert [row["text"].split()[0] for row in drawn] == ["disks", "RADOS"]
    assert 1.21 * top <= panel.spec["encoding"]["y"]["scale"]["domain"][1] < 2 * top
    assert drawn[1]["at"] - drawn[0]["at"] >= 0.05 * top, "texts are apart"
    assert "Dashed: the ceilings of the layers below." in chart.caption
    low, high = (show_figure(one.value) for one in far)
    assert panel.finding.endswith(f"; ↑ network {low} to {high}")
    assert "Dashed" not in throughput(run, rows).caption


# ---- bars


def shown_bars(run: RunStore, rows: Sequence[Row]) -> tuple[Panel, ...]:
    (chart,) = throughput_bars(fake_chart_source(run, rows))
    return chart.panels


def test_each_workload_is_drawn_where_most_layouts_can_be_ranked(
    run: RunStore, rows: tuple[Row, ...]
) -> None:
    # swift was not measured at 8 workers of large reads, rgw-beast erred in one of two repeats of
    # small writes
    titles = [panel.title for panel in shown_bars(run, rows)]
    assert titles == ["1 MB reads, 32 workers", "1 MB writes, 32 workers", "64 MB reads, 4 workers"]


def test_what_is_not_ranked_has_a_reason_and_no_bar(run: RunStore, rows: tuple[Row, ...]) -> None:
    (panel,) = shown_bars(run, [row for row in rows if row.workers == 8])
    swift = panel.rows[1]
    assert (swift["throughput_ops_s"], swift["why"]) == (None, "not measured")
    assert swift["_why"] == "× not measured"


def test_bars_begin_at_0_and_have_the_interval_of_the_table(
    run: RunStore, rows: tuple[Row, ...]
) -> None:
    by_place = {(row.workload, row.layout, row.workers): row for row in rows}
    for panel in shown_bars(run, rows):
        assert panel.spec["encoding"]["x"]["scale"]["domain"][0] == 0
        for bar in panel.rows:
            row = by_place[bar["workload"], bar["layout"], bar["workers"]]
            figure = row.figure("throughput")
            assert (bar["throughput_ops_s"], bar["low"], bar["high"]) == (
                figure.value,
                figure.low,
                figure.high,
            )
    (chart,) = throughput_bars(fake_chart_source(run, rows))
    assert "Geometric mean of 1 to 2 repeats" in chart.caption
    assert len(list(csv.DictReader(io.StringIO(chart.csv)))) == 6


@pytest.mark.parametrize(
    ("factor", "doubts", "faster", "standing", "text"),
    [
        (2.0, (), "b", "comparable", "2.0×"),
        (0.5, (), "a", "comparable", "2.0×"),
        (0.5, (MILD,), "a", "provisional", "2.0×"),
    ],
)
def test_a_ratio_is_drawn_on_the_side_of_the_faster_layout_with_its_interval(
    factor: float, doubts: tuple[Doubt, ...], faster: str, standing: str, text: str, run: RunStore
) -> None:
    rows = [row_of("a", rates=times(1.0)), row_of("b", rates=times(factor), doubts=doubts)]
    (chart,) = ratio_chart(fake_chart_source(run, comparison=compare(rows)))
    (shown,) = chart.panels[0].rows
    assert (shown["layout"], shown["standing"], shown["_text"]) == (faster, standing, text)
    assert shown["ratio"] == pytest.approx(factor)
    assert shown["low"] <= shown["ratio"] <= shown["high"]
    assert ("Hollow" in chart.caption) == bool(doubts)
    lost = compare([row_of("a"), row_of("b", rates=())])
    assert ratio_chart(fake_chart_source(run, comparison=lost)) == ()
