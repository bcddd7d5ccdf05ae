"""Charts of latency: what is drawn of histograms and of seconds, and with which marks and words."""

import csv
import io
from itertools import accumulate
from pathlib import Path

import pytest

from chart_sources import fake_chart_source, texts_of
from fake_run import WORKLOADS, StepFaults, fake_run
from made_rows import altered, changed, present, summarize
from weighbridge.results.figures.doubt import Doubt
from weighbridge.results.judge.comparison import Kind
from weighbridge.results.run.histogram import Histogram
from weighbridge.results.run.step import Second, StepResult
from weighbridge.results.run.store import RunStore
from weighbridge.results.show.chart import NOT_COMPARABLE, Chart
from weighbridge.results.show.charts.distributions import (
    LISTED,
    SHARES,
    gap,
    percentile_chart,
    share_chart,
    shares,
)
from weighbridge.results.show.charts.over_time import (
    MAX_CELLS,
    LatencyMap,
    heat_maps,
    latency_over_time,
)
from weighbridge.results.show.charts.within_bound import bound_panels, hockey_stick
from weighbridge.results.show.latencies import KindLatencies, LayoutLatencies, RepeatLatencies

SHORT = tuple(altered(workload, runtime=6.0, workers=(1, 8)) for workload in WORKLOADS[:2])
KIND: Kind = ("reads", "read", "swift", "locust")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    """Two repeats; the first of swift's writes at 8 workers failed."""
    spoilt = StepFaults(failed=(("swift", "small-write", 8),))
    return fake_run(
        tmp_path_factory.mktemp("runs"), workloads=SHORT, repeats=2, telemetry=False, spoilt=spoilt
    )


@pytest.fixture(scope="module")
def charts(store: RunStore) -> dict[str, Chart]:
    source = fake_chart_source(store, comparison=None)
    kinds = (hockey_stick, percentile_chart, share_chart, latency_over_time)
    return {chart.key: chart for draw in kinds for chart in draw(source)}


def repeat_of(
    values_us: list[int],
    seconds: tuple[Second, ...] = (),
    window_s: float = 0.0,
    repeat: int = 0,
    *,
    ranked: bool = True,
    note: str = "",
) -> RepeatLatencies:
    buckets = Histogram.of(values_us).buckets()
    return RepeatLatencies(
        repeat=repeat,
        ranked=ranked,
        note=note,
        count=len(values_us),
        tops_us=tuple(top for top, _ in buckets),
        shares=tuple(n / len(values_us) for n in accumulate(count for _, count in buckets)),
        seconds=seconds,
        window_s=window_s,
    )


def layout_of(*repeats: RepeatLatencies, name: str = "swift") -> LayoutLatencies:
    return LayoutLatencies(layout=name, repeats=repeats)


def kind_with(*repeats: RepeatLatencies, others: tuple[LayoutLatencies, ...] = ()) -> KindLatencies:
    layouts = (*others, layout_of(*repeats))
    return KindLatencies(kind=KIND, key="reads", about="64 kB reads", workers=32, layouts=layouts)


def second(number: int, count: int, *, errors: int = 0, band: int = 40) -> Second:
    bands = ((band, count),) if count else ()
    figures = {"count": count, "bytes": 0, "errors": errors, "max_us": 900 * count, "sum_us": 0}
    return Second.model_validate({"second": number, "operation": "read", **figures, "bands": bands})


def test_a_run_has_all_charts_and_a_map_for_each_kind(charts: dict[str, Chart]) -> None:
    maps = ["latency-over-time-small-read", "latency-over-time-small-write"]
    assert list(charts) == ["hockey-stick", "percentiles", "latency-shares", *maps]


@pytest.mark.parametrize("key", ["latency-shares", "latency-over-time-small-write"])
def test_a_failed_step_is_a_gap_with_its_reason(charts: dict[str, Chart], key: str) -> None:
    shown = texts_of(charts[key])
    assert all(any(text.startswith(name) for text in shown) for name in ("rgw-beast", "swift"))
    lines = list(csv.DictReader(io.StringIO(charts[key].csv)))
    assert {cell["layout"] for cell in lines} == {"rgw-beast", "swift"}
    assert "in repeat 1 on swift: the gateway did not answer for 60 s." in charts[key].caption


def test_a_percentile_is_that_of_the_table_everywhere(store: RunStore) -> None:
    source = fake_chart_source(store, comparison=None)
    drawn = [
        row for chart in percentile_chart(source) for panel in chart.panels for row in panel.rows
    ]
    at = {(row["layout"], row["workload"]): row for row in drawn if row["percentile"] == "p90"}
    halves = {
        (row["layout"], row["workload"]): row["latency_ms"]
        for chart in share_chart(source)
        for panel in chart.panels
        for row in panel.rows
        if row["repeat"] is None and row["percent"] == 90
    }
    paths = {
        (row["layout"], row["workload"]): row["p90_ms"]
        for chart in hockey_stick(source)
        for panel in chart.panels
        for row in panel.rows
        if row.get("workers") == 8
    }
    assert len(at) == 4
    for row in source.rows:
        if row.workers == 8:
            place = row.layout, row.workload
            assert at[place]["latency_ms"] == row.value("p90") == paths[place]
            assert halves[place] == pytest.approx(row.value("p90"), rel=2e-3)


def test_requests_in_flight_at_the_end_count_with_their_age(store: RunStore) -> None:
    def held(step: StepResult) -> StepResult:
        measured = present(step.measurement)
        ages = Histogram.of([5_000_000] * measured.tallies[0].count).encode()
        tallies = tuple(altered(one, in_flight=ages) for one in measured.tallies)
        return altered(step, measurement=altered(measured, tallies=tallies))

    steps = tuple(held(step) if step.measurement is not None else step for step in store.steps())
    source = fake_chart_source(store, steps=steps)
    (kind, _) = source.latencies
    (one, *_) = kind.layouts[0].repeats
    assert one.within_us(40) is not None
    assert one.within_us(90) is None
    assert kind.layouts[0].middle_us(90) is None


def test_percentiles_that_are_not_comparable_are_crosses(store: RunStore) -> None:
    held = Doubt(what="set by the CPU limit", grade="grave", words="throttled", metrics=("p90",))
    rows = [changed(row, doubts=(held,)) for row in summarize(store.plan(), store.steps())]
    (chart,) = percentile_chart(fake_chart_source(store, rows, comparison=None))
    rows_at = {row["percentile"]: row["standing"] for row in chart.panels[0].rows}
    assert rows_at["p90"] == NOT_COMPARABLE != rows_at["p50"]


def test_percentiles_of_repeats_are_averaged_geometrically_and_not_pooled() -> None:
    repeats = (
        repeat_of([1000] * 99 + [9000]),
        repeat_of([2000] * 100, repeat=1),
        repeat_of([3000] * 100, repeat=2),
        repeat_of([70_000] * 100, repeat=3, ranked=False),
    )
    one = layout_of(*repeats)
    assert one.middle_us(50) == pytest.approx((1000 * 2000 * 3000) ** (1 / 3), rel=2e-3)
    assert one.middle_us(100) == pytest.approx((9000 * 2000 * 3000) ** (1 / 3), rel=2e-3)
    assert (len(one.known), len(one.ranked)) == (4, 3)


def test_latencies_are_read_at_the_most_workers_at_which_most_layouts_count(tmp_path: Path) -> None:
    absent = StepFaults(absent=(("swift", "small-read", 8),))
    lacking = fake_run(tmp_path, workloads=SHORT[:1], repeats=1, telemetry=False, spoilt=absent)
    assert [kind.workers for kind in fake_chart_source(lacking).latencies] == [1]


@pytest.mark.parametrize(
    ("latency", "why"),
    [
        ("HISTnot", "a histogram cannot be decoded"),
        (Histogram.of([1000, 2000]).encode(), "counts 2 samples, but"),
    ],
)
def test_a_histogram_that_cannot_be_used_is_a_gap_that_says_why(
    store: RunStore, latency: str, why: str
) -> None:
    def spoilt(step: StepResult) -> StepResult:
        measured = step.measurement
        if measured is None or (step.key.layout, step.key.repeat) != ("swift", 0):
            return step
        tallies = tuple(altered(tally, latency=latency) for tally in measured.tallies)
        return altered(step, measurement=altered(measured, tallies=tallies))

    steps = tuple(map(spoilt, store.steps()))
    rows = summarize(store.plan(), store.steps())
    source = fake_chart_source(store, rows, steps=steps)
    (kind, _) = source.latencies
    beast, swift = kind.layouts
    assert [one.count > 0 for one in swift.repeats] == [False, True]
    assert len(beast.ranked) == 2
    assert f"repeat 1 on swift: a histogram {why.removeprefix('a histogram ')}" in kind.gaps[0]
    (chart,) = share_chart(source)
    assert kind.gaps[0] in chart.caption


def test_latencies_in_bins_are_a_gap_with_that_reason(tmp_path: Path) -> None:
    run = fake_run(tmp_path, workloads=SHORT, repeats=1, telemetry=False, driver="cosbench")
    (kind, *_) = fake_chart_source(run).latencies
    assert all("the driver reports latencies only in bins" in one for one in kind.gaps)
    assert share_chart(fake_chart_source(run)) == percentile_chart(fake_chart_source(run)) == ()


def test_two_groups_of_requests_are_distinguished_from_a_wide_spread() -> None:
    grouped = kind_with(repeat_of([*range(1000, 1600), *range(40_000, 40_400)]))
    found = present(gap(grouped.layouts[0]))
    assert 56 <= found.percent <= 60
    assert found.low_us < 1700
    assert found.high_us >= 40_000
    wide = kind_with(repeat_of([round(1000 * 1.01**power) for power in range(800)]))
    assert gap(wide.layouts[0]) is None
    (chart,) = shares([grouped])
    assert chart.finding.startswith("64 kB reads on swift form two groups: ")
    medians = [cell for cell in csv.DictReader(io.StringIO(chart.csv)) if not cell["repeat"]]
    assert [int(cell["percent"]) for cell in medians] == list(SHARES)
    head, *lines = chart.panels[0].table
    listed = [int(line[head.index("percent")]) for line in lines]
    assert listed == list(LISTED), "a page lists what can be read"


def test_captions_say_how_many_repeats_count() -> None:
    good = repeat_of(list(range(1000, 2000)))
    doubted = repeat_of(list(range(1000, 2000)), ranked=False, note="machine busy")
    kinds = (kind_with(good), kind_with(good, good), kind_with(doubted, doubted))
    one, several, none = (chart for kind in kinds for chart in shares([kind]))
    assert "One repeat" in one.caption
    assert "Bold: the geometric mean" in several.caption
    assert "One repeat" not in none.caption
    assert "Bold" not in none.caption
    assert "Dotted: not ranked." in none.caption


def test_a_stall_is_found_and_shown() -> None:
    seconds = (second(0, 5), second(1, 5), second(4, 5), second(5, 1))
    (chart,) = heat_maps([kind_with(repeat_of([1000] * 16, seconds, 5.2))])
    assert "None of swift’s 64 kB reads ended for 2 s, from 2 s into the window" in chart.finding
    assert "no request ended" in chart.caption
    assert heat_maps([kind_with(repeat_of([1000] * 16, seconds, 4.2))]) == (), "few columns"


def test_a_stall_is_as_long_as_its_seconds_whatever_the_columns() -> None:
    def drawn(seconds: tuple[Second, ...], window_s: float, **more: int) -> LatencyMap:
        count = sum(one.count for one in seconds)
        return LatencyMap(layout_of(repeat_of([1000] * count, seconds, window_s)), **more)

    seconds = (*(second(number, 5) for number in range(5)), second(8, 5), second(9, 5))
    found = drawn(seconds, 10.0, width_s=2)
    assert found.stalls == [(5, 8)]
    assert {cell["from_s"]: cell["requests"] for cell in found.cells} == {0: 10, 2: 10, 4: 5, 8: 10}
    # Where requests are rare, seconds without one are no stall.
    assert drawn(tuple(second(number, 1) for number in range(0, 20, 2)), 20.0).stalls == []
    # A partial last second is left out.
    found = drawn((second(0, 5), second(1, 5), second(2, 1, band=60)), 2.3)
    assert found.length_s == 2
    assert sum(cell["requests"] for cell in found.cells) == 10


LATER = tuple(second(number, 5) for number in range(6))


def test_what_is_not_ranked_is_shown_with_the_reason() -> None:
    unsteady = repeat_of([1000] * 30, LATER, 6.0, ranked=False, note="it drifted")
    (chart,) = heat_maps([kind_with(unsteady)])
    (panel,) = chart.panels
    assert panel.title == "swift (not ranked)"
    assert panel.finding.startswith("it drifted; slowest: ")
    both = layout_of(unsteady, repeat_of([1000] * 30, LATER, 6.0, repeat=1))
    shown = present(LatencyMap(both).repeat)
    assert shown.repeat == 1, "one that counts is shown first"


def test_failures_are_marked_over_their_second() -> None:
    seconds = (*LATER[:5], second(5, 5, errors=3))
    (chart,) = heat_maps([kind_with(repeat_of([1000] * 30, seconds, 6.0))])
    assert "requests failed in that second" in chart.caption
    crosses = [one for one in chart.panels[0].spec["layer"] if one["mark"]["type"] == "point"]
    assert [one["data"]["values"] for one in crosses] == [[{"at": 5.5, "failed": 3}]]


def test_a_panel_without_latencies_by_the_second_says_so() -> None:
    bare = layout_of(repeat_of([1000] * 10), name="rgw-beast")
    kind = kind_with(repeat_of([1000] * 30, LATER, 6.0), others=(bare,))
    (chart,) = heat_maps([kind])
    assert chart.panels[0].finding == "the driver records no latencies by the second"
    assert "the driver records no latencies by the second" in texts_of(chart)
    assert heat_maps([kind_with(repeat_of([1000] * 10))]) == ()


def test_a_long_step_is_drawn_in_columns_of_several_seconds() -> None:
    bands = tuple((band, 2) for band in range(40, 80))
    seconds = tuple(altered(second(number, 80), bands=bands) for number in range(600))
    (chart,) = heat_maps([kind_with(repeat_of([1000] * 200, seconds, 600.0))])
    cells = list(csv.DictReader(io.StringIO(chart.csv)))
    assert len(cells) <= MAX_CELLS
    assert sum(int(cell["requests"]) for cell in cells) == 600 * 80
    assert {cell["requests_per_s"] for cell in cells} == {"2.0"}
    assert "A column is 10 s." in chart.caption


# ---- within a bound

READS = altered(WORKLOADS[0], runtime=3.0)
FEW = altered(WORKLOADS[2], runtime=0.5, workers=(1,))
SPOILT = StepFaults(erring=(("swift", "small-read", 32),))


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    """One repeat; swift has many errors at 32 workers, and large reads are too few for a p90."""
    return fake_run(
        tmp_path_factory.mktemp("bound"),
        workloads=[READS, FEW],
        repeats=1,
        telemetry=False,
        spoilt=SPOILT,
    )


def hockey_drawn(store: RunStore, **options: object) -> Chart:
    (chart,) = hockey_stick(fake_chart_source(store, comparison=None, **options))
    return chart


def test_the_finding_is_what_two_layouts_serve_within_the_bound(once: RunStore) -> None:
    chart = hockey_drawn(once, slo_ms=15.0)
    most, least = bound_panels(fake_chart_source(once, slo_ms=15.0))[0].served
    assert chart.finding.startswith("Within a p90 of 15 ms for 1 MB reads rgw-beast serves ")
    assert most.words.removesuffix(" op/s") in chart.finding
    assert chart.finding.endswith(f"swift {least.words.removesuffix(' op/s')}")
    assert "chosen to" not in chart.caption
    assert {"rgw-beast", "swift", most.words, least.words} <= set(texts_of(chart))
    served = {
        cell["layout"]: cell["bound_ms"]
        for cell in csv.DictReader(io.StringIO(chart.csv))
        if not cell["workers"]
    }
    assert served == {"rgw-beast": "15.0", "swift": "15.0"}


def test_a_bound_is_chosen_and_what_has_no_path_or_is_invalid_is_named(once: RunStore) -> None:
    chart = hockey_drawn(once)
    assert "chosen to separate the layouts" in chart.caption
    assert [panel.title for panel in chart.panels] == ["1 MB reads"]
    assert "Left out, without a path: 64 MB reads." in chart.caption
    assert "×: not comparable." in chart.caption
    cells = csv.DictReader(io.StringIO(chart.csv))
    (standing,) = (
        one["standing"] for one in cells if (one["layout"], one["workers"]) == ("swift", "32")
    )
    assert standing == NOT_COMPARABLE


def test_bins_are_bars_without_figures_and_without_a_p90_nothing_is_drawn(tmp_path: Path) -> None:
    binned = fake_run(tmp_path, workloads=[READS], repeats=1, telemetry=False, driver="cosbench")
    chart = hockey_drawn(binned)
    assert "the bin that holds p90" in chart.caption
    assert chart.finding == "How p90 rises with throughput"
    assert all(row["p90_ms"] is None and row["p90_high_ms"] for row in chart.panels[0].rows)
    few = fake_run(tmp_path / "few", workloads=[FEW], repeats=1, telemetry=False)
    assert hockey_stick(fake_chart_source(few, comparison=None)) == ()
