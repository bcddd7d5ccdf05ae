import csv
import io
import math
from pathlib import Path
from typing import Any

import pytest
import vl_convert as vlc

from chart_sources import fake_chart_source, texts_of
from fake_run import WORKLOADS, StepFaults, fake_run
from made_rows import altered, present
from weighbridge.common.structure import Level
from weighbridge.results.analysis.kinds import Kind
from weighbridge.results.analysis.layers.staircase import LayerStep, Staircase
from weighbridge.results.analysis.steps.summary import Row, summarize
from weighbridge.results.charts.bin_bars import (
    APART_PX,
    LEAST_PX,
    any_bins,
    bin_ends,
    bin_marks,
    height_of,
)
from weighbridge.results.charts.by_workers import throughput_by_workers, throughput_panel
from weighbridge.results.charts.ceiling_lines import CeilingLine, ceiling_lines, top_with_ceilings
from weighbridge.results.charts.chart_theme import DARK, LIGHT, Look, styles
from weighbridge.results.charts.composer import compose
from weighbridge.results.charts.grouped_bars import (
    Bars,
    LayoutBar,
    bar_groups,
    finding,
    grouped_bars,
)
from weighbridge.results.charts.latency.hockey_stick import hockey_data, hockey_stick
from weighbridge.results.charts.panels import Figure, Spot
from weighbridge.results.charts.worker_data import WorkerPanel, WorkerPoint, throughput_panels
from weighbridge.results.interval import Interval
from weighbridge.results.record.store import RunStore


def stair(layout: str, top: Level = "gateway", **rates: float) -> Staircase:
    steps = [
        LayerStep.model_validate(
            {"level": level.replace("_", "-"), "name": level, "throughput_ops_s": rate}
        )
        for level, rate in rates.items()
    ]
    steps.append(LayerStep(level=top, name="top", throughput_ops_s=1))
    kind = {"workload": "w", "operation": "read", "api": "swift", "driver": "locust"}
    about = {"layout": layout, "about": "1 MB reads", "object_size_bytes": 1e6}
    return Staircase.model_validate({**kind, **about, "steps": steps})


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
    gap = LayerStep(level="disk", name="disks", note="not measured")
    bare = altered(
        stair("a", top="rados"),
        steps=(gap, LayerStep(level="rados", name="RADOS", throughput_ops_s=9)),
    )
    assert ceiling_lines([bare]) == {"w-read-swift-locust": ()}


def test_a_near_ceiling_extends_the_scale_and_a_far_one_does_not() -> None:
    assert top_with_ceilings(100, [line(150), line(1000)]) == 150
    assert top_with_ceilings(100, [line(60)]) == 100


def test_near_ceilings_are_labelled_lines_and_far_ones_words_above_the_panel(run: RunStore) -> None:
    source = fake_chart_source(run)
    largest = max(
        row.value("throughput") or 0 for row in source.rows if row.workload == "small-read"
    )
    near = line(round(largest * 1.2))
    far = [line(largest * factor, "network") for factor in (20, 40)]
    panel = throughput_panels(
        source.rows, source.findings, {"small-read-read-swift-locust": (near, *far)}
    )[0]
    (chart,) = throughput_by_workers(source)
    words = texts_of(altered(chart, panels=(throughput_panel(panel),)))
    assert f"disks {near.value:,.0f}" in words
    assert f"↑ network {far[0].value:,.0f} to {far[1].value:,.0f}" in words
    words_of_ceilings = "Dashed: the ceilings of disks, network and store"
    assert words_of_ceilings not in chart.caption
    mine = altered(stair("rgw-beast", disk=100, rados=50), workload="small-read")
    (with_lines,) = throughput_by_workers(fake_chart_source(run, stairs=(mine,)))
    assert words_of_ceilings in with_lines.caption


def mark(layout: str, low_ms: float, high_ms: float | None, **more: Any) -> WorkerPoint:
    within = Interval(low_ms=low_ms, high_ms=high_ms)
    about = {"layout": layout, "workers": 4, "valid": True, "note": ""}
    figures = {"value": None, "stretch": None, "within": within}
    return WorkerPoint.model_validate({**about, **figures, **more})


def panel_of(*marks: WorkerPoint) -> WorkerPanel:
    return WorkerPanel(
        key="k", title="t", finding="", sentences=(), workers=(1, 4, 16), marks=marks
    )


def drawn(panel: WorkerPanel, ends: tuple[float, float]) -> list[tuple[Spot, ...]]:
    return [one.spots for one in bin_marks(panel, ends) if one.spots]


def test_a_bar_goes_from_end_to_end_of_its_bin_or_of_the_scale() -> None:
    ((bar,),) = drawn(panel_of(mark("a", 10, 20)), (1, 100))
    assert (bar.y, bar.y2, bar.tip) == (10, 20, "a, 4 workers: p90 in (10, 20] ms")
    edges = panel_of(mark("a", 0, 10), mark("b", 500_000, None))
    ((first, last),) = drawn(edges, (5, 1_000_000))
    assert (first.y, first.y2) == (5, 10)
    assert (last.y, last.y2) == (500_000, 1_000_000)
    assert bin_ends(edges) == [5, 10, 500_000, 500_000]


def test_bars_of_different_layouts_do_not_overlap() -> None:
    ((one, other),) = drawn(panel_of(mark("a", 10, 20), mark("b", 10, 20)), (1, 100))
    assert isinstance(one.x, float)
    assert isinstance(other.x, float)
    assert one.x < 4 < other.x
    # 440 px are four doublings of workers.
    assert math.log2(other.x / one.x) * 440 / 4 == pytest.approx(APART_PX)


def test_a_bin_that_is_narrow_on_the_scale_is_visible() -> None:
    ((bar,),) = drawn(panel_of(mark("a", 9990, 10_000)), (1, 10_000))
    assert isinstance(bar.y, float)
    assert math.log(present(bar.y2) / bar.y) / math.log(10_000) * 260 == pytest.approx(LEAST_PX)


def test_an_invalid_bar_is_not_drawn_and_maxima_are_a_separate_layer() -> None:
    longest = Interval(low_ms=90, high_ms=100)
    filled, hollow = drawn(
        panel_of(mark("a", 10, 20, top_within=longest), mark("b", 10, 20, valid=False)), (1, 100)
    )
    assert [bar.layout for bar in filled] == ["a"]
    assert hollow[0].tip.endswith("max in (90, 100] ms")


def test_a_label_is_at_the_top_of_a_bar_or_at_the_figure() -> None:
    assert height_of(mark("a", 10, 20)) == 20
    assert height_of(mark("a", 500_000, None)) == 500_000
    assert height_of(mark("a", 10, 20, value=12.0, within=None)) == 12.0
    assert height_of(mark("a", 10, 20, within=None, top=50.0)) == 50.0
    assert height_of(mark("a", 10, 20, within=None)) is None


def test_a_panel_of_figures_has_no_bars() -> None:
    panel = panel_of(mark("a", 10, 20, value=12.0, top=50.0, within=None))
    assert drawn(panel, (1, 100)) == []
    assert bin_ends(panel) == []
    assert not any_bins([panel])
    assert any_bins([panel_of(mark("a", 10, 20, top_within=Interval(low_ms=0, high_ms=10)))])


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


def test_what_is_not_ranked_has_a_reason_and_no_bar(rows: tuple[Row, ...], run: RunStore) -> None:
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


READS = altered(WORKLOADS[0], runtime=3.0)
FEW = altered(WORKLOADS[2], runtime=0.5, workers=(1,))
SPOILT = StepFaults(erring=(("swift", "small-read", 32),))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    """One repeat; swift has many errors at 32 workers, and large reads are too few for a p90."""
    return fake_run(
        tmp_path_factory.mktemp("hockey_data"),
        workloads=[READS, FEW],
        repeats=1,
        telemetry=False,
        spoilt=SPOILT,
    )


def hockey_drawn(store: RunStore, **options: object) -> Figure:
    (figure,) = hockey_stick(fake_chart_source(store, comparison=None, **options))
    return figure


def test_the_finding_is_what_two_layouts_serve_within_the_bound(store: RunStore) -> None:
    figure = hockey_drawn(store, slo_ms=15.0)
    source = fake_chart_source(store)
    most, least = (one for one in hockey_data(source.rows, source.kinds, 15.0)[0].served)
    assert figure.finding.startswith("Within a p90 of 15 ms for 1 MB reads rgw-beast serves ")
    assert most.words.removesuffix(" op/s") in figure.finding
    assert figure.finding.endswith(f"swift {least.words.removesuffix(' op/s')}")
    assert "chosen to" not in figure.caption
    found = texts_of(figure)
    assert {"rgw-beast", "swift", "p90 ≤ 15 ms", "1", "4", "16", "32"} <= set(found)
    assert sum(word.endswith(" op/s") for word in found) == 2
    served = {
        cell["layout"]: cell["bound_ms"]
        for cell in csv.DictReader(io.StringIO(figure.csv))
        if not cell["workers"] and cell["workload"] == "small-read"
    }
    assert served == {"rgw-beast": "15.0", "swift": "15.0"}


def test_a_bound_is_chosen_and_what_has_no_p90_or_is_invalid_is_named(store: RunStore) -> None:
    figure = hockey_drawn(store)
    assert "chosen to separate the layouts" in figure.caption
    assert [plot.title for plot in figure.panels] == ["1 MB reads"]
    assert "Left out because no p90 is known: 64 MB reads." in figure.caption
    assert "×: invalid." in figure.caption
    (line,) = [line for line in figure.panels[0].lines if line[:2] == ("swift", "32")]
    assert line[-1] == "no"
    cells = csv.DictReader(io.StringIO(figure.csv))
    wanted = ("swift", "32")
    assert [one["counts"] for one in cells if (one["layout"], one["workers"]) == wanted] == [
        "false"
    ]
    assert compose(figure, DARK)["config"]["background"] == DARK.background


def test_bins_are_bars_without_figures_and_without_a_p90_nothing_is_drawn(tmp_path: Path) -> None:
    binned = fake_run(tmp_path, workloads=[READS], repeats=1, telemetry=False, driver="cosbench")
    figure = hockey_drawn(binned)
    assert "the bin that holds p90" in figure.caption
    assert figure.finding == "How p90 rises with throughput"
    assert all(line[4].startswith("in ") and line[-1] == "no" for line in figure.panels[0].lines)
    few = fake_run(tmp_path / "few", workloads=[FEW], repeats=1, telemetry=False)
    assert hockey_stick(fake_chart_source(few, comparison=None)) == ()
