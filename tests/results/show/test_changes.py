"""Maps of change, tornados: what is claimed has a colour, everything else is grey or empty."""

import csv
import io
from typing import Any

import pytest

from chart_sources import texts_of
from compared_rows import made_effect
from made_rows import altered, present
from weighbridge.results.features.tuning.charts import MAX_SETTINGS, tornados
from weighbridge.results.features.tuning.tuning_result import tuned
from weighbridge.results.figures.doubt import Doubt
from weighbridge.results.figures.statistics import Ratio
from weighbridge.results.judge.comparison import Comparison, Effect, NoiseFloor, Verdict
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.numbers import show_percent
from weighbridge.results.show.chart import Chart
from weighbridge.results.show.charts.change_map import WIDEST, cell_text, change_maps


def effect(
    ratio: float | None,
    verdict: Verdict,
    *,
    workers: int | None = 8,
    metric: str = "throughput",
    subject: str = "swift",
    about: str = "64 kB reads",
    repeats: int = 5,
) -> Effect:
    found = made_effect(
        subject, ratio, verdict, workers=workers, metric=metric, about=about, repeats=repeats
    )
    return altered(
        found,
        workload=about.replace(" ", "-"),
        baseline_value=100.0,
        subject_value=None if ratio is None else 100.0 * ratio,
    )


def comparison(*effects: Effect, noise: tuple[NoiseFloor, ...] = ()) -> Comparison:
    subjects = tuple(dict.fromkeys(one.subject for one in effects))
    return Comparison(
        baseline="rgw-beast", subjects=subjects, effects=effects, noise=noise, tests=len(effects)
    )


def rows_of(*effects: Effect, **more: Any) -> list[dict[str, Any]]:
    (chart,) = change_maps(comparison(*effects, **more))
    return [dict(row) for panel in chart.panels for row in panel.rows]


@pytest.mark.parametrize(("metric", "good"), [("throughput", 1.7), ("p90", 0.4)])
def test_better_has_one_colour_whatever_is_measured(metric: str, good: float) -> None:
    rows = rows_of(
        effect(good, "better", metric=metric, workers=1),
        effect(2 - good, "worse", metric=metric, workers=2),
    )
    assert [row["_tone"] for row in rows] == [1, -1]


def test_only_significant_changes_have_a_colour() -> None:
    rows = rows_of(
        effect(1.4, "better", workers=1),
        effect(1.4, "not significant", workers=2),
        effect(1.03, "too small to matter", workers=4),
        effect(1.4, "provisional", workers=8, repeats=2),
    )
    assert [row["_tone"] for row in rows] == [pytest.approx(0.8), None, None, None]
    assert [row["_text"] for row in rows] == ["+40 %", "~", "+3 %", "(+40 %)"]


def test_what_is_not_comparable_is_an_empty_frame_and_not_a_0() -> None:
    (chart,) = change_maps(
        comparison(effect(None, "not comparable", workers=1), effect(1.4, "better", workers=2))
    )
    assert [row["_text"] for row in chart.panels[0].rows] == ["×", "+40 %"]
    assert next(csv.DictReader(io.StringIO(chart.csv)))["change_percent"] == ""


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [(1.25, 4.0, "(≥ +25 %)"), (0.2, 0.8, "(≤ −20 %)"), (0.5, 2.0, "(~)"), (1.0, 3.0, "(~)")],
)
def test_bins_show_only_the_change_that_they_allow(low: float, high: float, words: str) -> None:
    binned = altered(
        effect(1.7, "provisional", metric="p90"),
        ratio=Ratio(value=1.7, low=low, high=high, repeats=1),
        baseline_value=None,
        subject_value=None,
    )
    (row,) = rows_of(binned)
    assert row["_text"] == words
    assert (row["change_percent"], row["_ratio"]) == (None, None)


def test_a_change_over_all_worker_counts_is_shown_without_two_figures() -> None:
    binned = altered(effect(1.7, "better", workers=None), baseline_value=None, subject_value=None)
    assert cell_text(binned) == "+70 %"


def test_worker_counts_ascend_and_end_with_all_if_there_are_several() -> None:
    (chart,) = change_maps(
        comparison(*(effect(1.2, "better", workers=count) for count in (None, 32, 4, 128)))
    )
    columns = chart.panels[0].spec["encoding"]["x"]["scale"]["domain"]
    assert columns == ["4", "32", "128", "all"]


def test_with_one_worker_count_changes_have_their_intervals_instead_of_one_column() -> None:
    wide = Ratio(value=1.2, low=1e-6, high=1.3, repeats=5)
    one = (effect(1.2, "better", workers=None), altered(effect(1.2, "better"), ratio=wide))
    rows = rows_of(*one)
    (chart,) = change_maps(comparison(*one))
    assert chart.panels[0].spec["encoding"]["x"]["scale"]["type"] == "log"
    assert "at 8 workers" in chart.panels[0].title
    assert [row["_x"] for row in rows] == [None, "8"]
    assert (rows[1]["_low"], rows[1]["_high"]) == (1 / WIDEST, 1.3)


def test_with_several_layouts_each_kind_of_requests_is_a_panel_with_a_row_for_each() -> None:
    effects = [
        effect(1.2, "better", subject=name, about=about)
        for about in ("reads", "writes")
        for name in ("a", "b", "c")
    ]
    (chart,) = change_maps(comparison(*effects))
    titles = ["Reads, throughput", "Writes, throughput"]
    assert [panel.title for panel in chart.panels] == titles
    assert [[row["_y"] for row in panel.rows] for panel in chart.panels] == [["a", "b", "c"]] * 2


def test_the_title_counts_cells_and_claims_only_significant_changes() -> None:
    def title(*effects: Effect) -> str:
        return change_maps(comparison(*effects))[0].finding

    many = (
        effect(1.5, "better", workers=1),
        effect(0.5, "worse", workers=2),
        effect(1.5, "not significant", workers=4),
    )
    assert "swift is faster in 1 of 3 cells and slower in 1 of 3 cells" in title(*many)
    assert title(effect(1.5, "not significant")).startswith("No significant difference of through")
    doubt = Doubt(what="few repeats", grade="mild", words="a claim needs 5 repeats of each side")
    few = altered(effect(1.5, "provisional", repeats=2), doubts=(doubt, doubt))
    assert title(few) == "Throughput is provisional in the only comparable cell: few repeats"
    assert "a shorter p90 in 1 of 1 cell" in title(effect(0.5, "better", metric="p90"))


def test_two_runs_are_compared_by_run_and_their_guard_facts_are_counted() -> None:
    effects = tuple(
        altered(effect(1.5, "better", subject=f"{name} (B)"), baseline=f"{name} (A)")
        for name in ("rgw-beast", "swift")
    )
    two = Comparison(
        baseline="A",
        subjects=("rgw-beast (B)", "swift (B)"),
        effects=effects,
        tests=2,
        unlike=("kernel", "cores"),
    )
    (chart,) = change_maps(two)
    assert "layouts of the other run are faster in 2 of 2 cells" in chart.finding
    assert chart.caption.endswith("The runs differ in 2 guard facts.")


def test_without_anything_to_compare_there_is_no_map() -> None:
    assert change_maps(comparison(effect(None, "not comparable"))) == ()


def test_the_noise_floor_of_the_test_bed_is_in_the_caption() -> None:
    floor = NoiseFloor(
        metric="throughput",
        layout="a",
        control="a-again",
        ratio=Ratio(value=1.01, repeats=5),
        cells=8,
        runs=4,
        floor=1.043,
    )
    (chart,) = change_maps(comparison(effect(1.5, "better"), noise=(floor,)))
    assert "noise floor of this test bed is 4 %" in chart.caption


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (1.344, "+34 %"),
        (0.95, "−5 %"),
        (1.004, "+0.4 %"),
        (1.0, "0 %"),
        (3.2, "3.2×"),
        (120.4, "120×"),
        (0.004, "−99.6 %"),
        (0.0003, "−99.970 %"),
        (0.006, "−99 %"),
    ],
)
def test_a_change_is_shown_in_per_cent_or_as_a_multiple(ratio: float, words: str) -> None:
    assert show_percent(ratio) == words


# ---- settings


def rows_by_setting(chart: Chart) -> dict[str, dict[str, Any]]:
    return {row["setting"]: dict(row) for row in chart.panels[0].rows}


def tornado(data: RunData, *effects: Effect) -> Chart:
    """Of a tuning with these effects on its first objective, of settings called `setting 0`."""
    result = present(tuned(data))
    entry = result.table.entries[0]
    entries = tuple(
        altered(entry, name=f"setting {number}", effects=(one, *entry.effects[1:]))
        for number, one in enumerate(effects)
    )
    return tornados(altered(result, table=altered(result.table, entries=entries)))[0]


def test_the_largest_change_is_on_top_whichever_way_it_goes_and_only_claims_have_a_colour(
    tuned_data: RunData,
) -> None:
    worse, better = made_effect("a", 0.5, "worse"), made_effect("c", 1.9, "better")
    open_one = made_effect("b", 1.01, "not significant")
    chart = tornado(tuned_data, open_one, better, made_effect("d", None, "not comparable"), worse)
    rows = rows_by_setting(chart)
    # A half is as far from no change as a double.
    assert list(rows) == ["setting 3", "setting 1", "setting 0", "setting 2"]
    assert chart.finding.startswith("setting 3 changes the throughput of 64 kB reads")
    assert chart.finding.endswith("most: \N{MINUS SIGN}50 %")
    assert rows["setting 3"]["_tone"] < 0 < rows["setting 1"]["_tone"]
    assert rows["setting 0"]["_tone"] is None
    lost = rows["setting 2"]
    assert (lost["change_percent"], lost["_text"], "_name" in lost) == (
        *(None, "× not comparable"),
        False,
    )


@pytest.mark.parametrize("ratio", [0.62, 0.05])
def test_an_axis_holds_nothing_that_cannot_be_and_no_infinite_interval(
    tuned_data: RunData, ratio: float
) -> None:
    wide = altered(
        made_effect("w", ratio, "provisional"),
        ratio=Ratio(value=ratio, low=1e-6, high=1e6, repeats=2),
    )
    chart = tornado(tuned_data, made_effect("a", 0.62, "worse"), wide)
    low, high = chart.panels[0].spec["encoding"]["x"]["scale"]["domain"]
    assert -100 <= low < 0 < high < 400
    row = rows_by_setting(chart)["setting 1"]
    assert low <= row["_low"] < row["_high"] < high


@pytest.mark.long
def test_a_tuning_has_a_chart_for_each_objective_with_colours_by_its_direction(
    tuned_data: RunData,
) -> None:
    result = present(tuned(tuned_data))
    throughput, p90 = tornados(result)
    assert [one.key for one in (throughput, p90)] == ["tornado", "tornado-p90"]
    best = result.table.entries[0].name
    for chart in (throughput, p90):
        row = rows_by_setting(chart)[best]
        assert row["_tone"] > 0
        assert (row["change_percent"] > 0) == (chart is throughput)
    assert "widened for 4 looks" in throughput.caption


def test_with_many_settings_a_chart_has_the_largest_and_its_data_all(tuned_data: RunData) -> None:
    result = present(tuned(tuned_data))
    entries = [one for one in result.table.entries if one.effects[0].ratio is not None]
    many = [altered(entry, name=f"{entry.name} {turn}") for turn in range(3) for entry in entries]
    chart = tornados(altered(result, table=altered(result.table, entries=tuple(many))))[0]
    rows = rows_by_setting(chart).values()
    assert sum("_name" in row for row in rows) == MAX_SETTINGS
    assert f"{len(many) - MAX_SETTINGS} with smaller effects are only in the table" in chart.caption
    assert len(rows) == len(many)


def test_combinations_with_long_names_have_shortened_keys(tuned_data: RunData) -> None:
    result = present(tuned(tuned_data))
    name = (
        "options.client.rgw_max_concurrent_requests 1024 → 64, "
        "options.client.objecter_inflight_ops unset → 4096"
    )
    first = altered(result.table.entries[0], name=name)
    chart = tornados(altered(result, table=altered(result.table, entries=(first,))))[0]
    row = rows_by_setting(chart)[name]
    short = "rgw_max_concurrent_requests 1024 → 64, objecter_inflight_ops unset → 4096"
    assert row["_name"] == short
    assert short in texts_of(chart)
