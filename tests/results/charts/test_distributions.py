import csv
import io
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

import pytest

from chart_sources import fake_chart_source, texts_of
from fake_run import WORKLOADS, StepFaults, fake_run
from made_rows import altered, present
from weighbridge.results.analysis.steps.summary import summarize
from weighbridge.results.charts.chart_source import ChartSource
from weighbridge.results.charts.latencies import KindLatencies, LayoutLatencies, RepeatLatencies
from weighbridge.results.charts.latency.distributions import percentile_chart, percentiles
from weighbridge.results.charts.latency.heat_map import (
    CELLS,
    LatencyMap,
    heat_maps,
    latency_map,
    latency_over_time,
)
from weighbridge.results.charts.latency.hockey_stick import hockey_stick
from weighbridge.results.charts.latency.share_chart import SHARES, gap, share_chart, shares
from weighbridge.results.charts.panels import Figure
from weighbridge.results.record.histogram import Histogram
from weighbridge.results.record.measurement import Second
from weighbridge.results.record.store import RunStore

SHORT = tuple(altered(workload, runtime=3.0, workers=(1, 8)) for workload in WORKLOADS[:2])
CHARTS = (hockey_stick, percentile_chart, share_chart, latency_over_time)


def all_of(source: ChartSource) -> tuple[Figure, ...]:
    return tuple(figure for chart in CHARTS for figure in chart(source))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    """Two repeats; the first of swift's writes at 8 workers failed."""
    spoilt = StepFaults(failed=(("swift", "small-write", 8),))
    return fake_run(
        tmp_path_factory.mktemp("runs"), workloads=SHORT, repeats=2, telemetry=False, spoilt=spoilt
    )


@pytest.fixture(scope="module")
def figures(store: RunStore) -> dict[str, Figure]:
    return {figure.name: figure for figure in all_of(fake_chart_source(store, comparison=None))}


def repeat_of(
    values_us: list[int], seconds: tuple[Second, ...] = (), window_s: float = 0.0
) -> RepeatLatencies:
    buckets = Histogram.of(values_us).buckets()
    return RepeatLatencies(
        repeat=0,
        ranked=True,
        tops_us=tuple(top for top, _ in buckets),
        reached=tuple(accumulate(count for _, count in buckets)),
        max_us=max(values_us),
        seconds=seconds,
        window_s=window_s,
    )


def kind_with(*repeats: RepeatLatencies) -> KindLatencies:
    layout = LayoutLatencies(layout="swift", repeats=repeats)
    return KindLatencies(
        kind=("reads", "read", "swift", "locust"),
        key="reads",
        about="64 kB reads",
        workers=32,
        layouts=(layout,),
    )


def second(number: int, count: int, *, errors: int = 0, band: int = 40) -> Second:
    bands = ((band, count),) if count else ()
    figures = {"count": count, "bytes": 0, "errors": errors, "max_us": 900 * count, "sum_us": 0}
    return Second.model_validate({"second": number, "operation": "read", **figures, "bands": bands})


def test_a_run_has_all_figures_and_a_map_for_each_kind(figures: dict[str, Figure]) -> None:
    maps = ["latency-over-time-small-read", "latency-over-time-small-write"]
    assert list(figures) == ["hockey-stick", "percentiles", "latency-shares", *maps]
    assert all(
        figure.finding and not figure.finding.endswith(".") and figure.caption.endswith(".")
        for figure in figures.values()
    )


@pytest.mark.parametrize(
    "name", ["hockey-stick", "percentiles", "latency-shares", "latency-over-time-small-write"]
)
def test_every_figure_has_the_names_of_all_layouts(figures: dict[str, Figure], name: str) -> None:
    assert {"rgw-beast", "swift"} <= set(texts_of(figures[name]))
    lines = list(csv.DictReader(io.StringIO(figures[name].csv)))
    assert {cell["layout"] for cell in lines} == {"rgw-beast", "swift"}
    failed = "in repeat 1 on swift: the gateway did not answer for 60 s."
    assert (failed in figures[name].caption) == (name != "hockey-stick")


def test_percentiles_are_solid_as_far_as_samples_lie_beyond_and_dashed_to_the_last() -> None:
    figure = present(percentiles([kind_with(repeat_of(list(range(1000, 3000))))]))
    drawn = {mark.kind: mark.traces for mark in figure.panels[0].marks}
    (solid,), (dashed,) = drawn["line"], drawn["dashed line"]
    assert solid.x[-1] == pytest.approx(100)
    assert (dashed.x[0], dashed.x[-1]) == (pytest.approx(100), 2000)


def test_the_table_gives_only_percentiles_with_enough_samples() -> None:
    figure = present(percentiles([kind_with(repeat_of([1000] * 300))]))
    (line,) = figure.panels[0].lines
    assert line[:2] == ("swift", "1")
    assert line[3:] == ("1.00", "1.00", "–", "–", "1.00")


def test_only_a_single_repeat_has_a_band_of_what_chance_explains() -> None:
    one = present(percentiles([kind_with(repeat_of(list(range(1000, 3000))))]))
    two = present(percentiles([kind_with(*[repeat_of(list(range(1000, 3000)))] * 2)]))
    assert "band: how far chance" in one.caption
    assert "Bold: the geometric mean of the repeats’ percentiles" in two.caption


def test_two_groups_of_requests_are_distinguished_from_a_wide_spread() -> None:
    grouped = kind_with(repeat_of([*range(1000, 1600), *range(40_000, 40_400)]))
    found = present(gap(grouped.layouts[0]))
    assert 56 <= found.percent <= 60
    assert found.low_us < 1700
    assert found.high_us >= 40_000
    wide = kind_with(repeat_of([round(1000 * 1.01**power) for power in range(800)]))
    assert gap(wide.layouts[0]) is None
    figure = present(shares([grouped]))
    assert figure.finding.startswith("64 kB reads on swift form two groups: ")
    medians = [cell for cell in csv.DictReader(io.StringIO(figure.csv)) if not cell["repeat"]]
    assert [int(cell["percent"]) for cell in medians] == list(SHARES)


def test_a_stall_is_found_and_shown() -> None:
    seconds = (second(0, 5), second(1, 5), second(4, 5), second(5, 1))
    (figure,) = heat_maps([kind_with(repeat_of([1000] * 16, seconds, 5.2))])
    assert "None of swift’s 64 kB reads ended for 2 s, from 2 s into the window" in figure.finding
    assert "no request ended" in figure.caption
    assert [line[2] for line in figure.panels[0].lines] == ["5", "5", "0", "0", "5"]


def test_a_stall_is_as_long_as_its_seconds_whatever_the_columns() -> None:
    def drawn(seconds: tuple[Second, ...], window_s: float, **more: int) -> LatencyMap:
        count = sum(one.count for one in seconds)
        kind = kind_with(repeat_of([1000] * count, seconds, window_s))
        return latency_map(kind.layouts[0], **more)

    seconds = (*(second(number, 5) for number in range(5)), second(8, 5), second(9, 5))
    found = drawn(seconds, 10.0, width_s=2)
    assert found.stall == (5, 8)
    assert [column.count for column in found.columns] == [10, 10, 5, 0, 10]
    # Where requests are rare, seconds without one are no stall.
    assert drawn(tuple(second(number, 1) for number in range(0, 20, 2)), 20.0).stall is None
    # A partial last second is left out.
    found = drawn((second(0, 5), second(1, 5), second(2, 1, band=60)), 2.3)
    assert found.length_s == 2
    assert sum(cell.count for cell in found.cells) == 10


def test_what_is_not_ranked_is_shown_with_the_reason() -> None:
    good = repeat_of([1000] * 10, (second(0, 5), second(1, 5)), 2.0)
    unsteady = altered(good, ranked=False, note="it drifted")
    (figure,) = heat_maps([kind_with(unsteady)])
    (plot,) = figure.panels
    assert plot.title == "swift (not ranked)"
    assert plot.finding.startswith("it drifted; slowest: ")
    both = kind_with(unsteady, altered(good, repeat=1))
    assert latency_map(both.layouts[0]).repeat == 1, "one that counts is shown first"


def test_failures_are_marked_over_their_second() -> None:
    seconds = (second(0, 5), second(1, 5, errors=3))
    (figure,) = heat_maps([kind_with(repeat_of([1000] * 10, seconds, 2.0))])
    assert "requests failed in that second" in figure.caption
    assert [line[3] for line in figure.panels[0].lines] == ["0", "3"]


def test_a_panel_without_latencies_by_the_second_says_so() -> None:
    bare = LayoutLatencies(layout="rgw-beast", repeats=(repeat_of([1000] * 10),))
    kind = kind_with(repeat_of([1000] * 10, (second(0, 5), second(1, 5)), 2.0))
    (figure,) = heat_maps([altered(kind, layouts=(bare, *kind.layouts))])
    assert figure.panels[0].finding == "the driver records no latencies by the second"
    assert "the driver records no latencies by the second" in texts_of(figure)
    assert heat_maps([kind_with(repeat_of([1000] * 10))]) == ()


def test_a_long_step_is_drawn_in_columns_of_several_seconds() -> None:
    bands = tuple((band, 2) for band in range(40, 80))
    seconds = tuple(altered(second(number, 80), bands=bands) for number in range(600))
    (figure,) = heat_maps([kind_with(repeat_of([1000] * 200, seconds, 600.0))])
    cells = list(csv.DictReader(io.StringIO(figure.csv)))
    assert len(cells) <= CELLS
    assert sum(int(cell["requests"]) for cell in cells) == 600 * 80
    assert {cell["requests_per_s"] for cell in cells} == {"2.0"}
    assert "A column is 10 s." in figure.caption


def test_histograms_that_cannot_be_read_leave_marked_gaps(store: RunStore, tmp_path: Path) -> None:
    steps = []
    for step in store.steps():
        measured = step.measurement
        if measured is not None and step.key.layout == "swift":
            tallies = tuple(altered(tally, latency="torn") for tally in measured.tallies)
            measured = altered(measured, tallies=tallies)
        steps.append(altered(step, measurement=measured))
    rows = summarize(store.plan(), steps)
    (figure,) = percentile_chart(fake_chart_source(store, rows, steps=tuple(steps)))
    gap = "Not known: no latencies of 1 MB reads at 8 workers in repeats 1, 2 on swift"
    assert gap in figure.caption
    assert any(line[0] == "swift (not known)" for line in figure.panels[0].lines)
    assert "swift" in texts_of(figure)


@pytest.mark.parametrize("chart", [percentiles, shares])
def test_captions_say_how_many_repeats_count(chart: Callable[..., Figure | None]) -> None:
    good = repeat_of(list(range(1000, 2000)))
    doubted = altered(good, ranked=False, note="machine busy")
    one, several, none = (
        chart([kind_with(*repeats)]) for repeats in ([good], [good, good], [doubted, doubted])
    )
    assert one is not None
    assert several is not None
    assert none is not None
    assert "One repeat" in one.caption
    assert "Bold: the geometric mean" in several.caption
    assert "One repeat" not in none.caption
    assert "Bold" not in none.caption
    assert [panel.finding for panel in none.panels] == ["nothing is ranked"]
    assert "Dotted: not ranked, because invalid, not steady or in grave doubt." in none.caption
