from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pytest

from made_rows import altered
from series_rows import made_run, scattered
from weighbridge.common.errors import (
    EXIT_DIFFERENCE,
    EXIT_FINE,
    EXIT_INVALID,
    InvalidMeasurement,
    UsageError,
)
from weighbridge.results.features.compare_runs import RunsVerdict
from weighbridge.results.features.history import (
    History,
    history_charts,
    history_of,
    history_page,
    history_tables,
    latest_verdict,
)
from weighbridge.results.features.run_guard import ComparedRun
from weighbridge.results.features.run_series import (
    OUTLIER_RULE,
    RULE,
    break_words,
    change_points,
    outlying,
)
from weighbridge.results.figures.doubt import Doubt
from weighbridge.results.run.telemetry import Attested
from weighbridge.suites import Bounds

BUSY = Doubt(what="machine busy", grade="mild", words="other programs used 12 %")
DIFFER = Doubt(what="hosts differ", grade="grave", words="one host was slower")


def of_rates(rates: Iterable[float], **more: Any) -> list[ComparedRun]:
    return [made_run(day, {"rgw-beast": rate}, **more) for day, rate in enumerate(rates)]


def quiet(count: int, **more: Any) -> list[ComparedRun]:
    return stepped(count, count, 1.0, **more)


def at_levels(*levels: tuple[int, float]) -> list[ComparedRun]:
    """Runs at these levels: so many, at this share of the first throughput."""
    shares = [share for count, share in levels for _ in range(count)]
    return of_rates([1000 * share + day % 3 for day, share in enumerate(shares)])


def stepped(
    count: int, at: int, ratio: float, *, since: Mapping[str, Any] | None = None, **more: Any
) -> list[ComparedRun]:
    """From run `at` on rates are `ratio` times as high, and runs are as `since` says."""
    return [
        made_run(day, {"rgw-beast": rate * ratio}, **{**more, **(since or {})})
        if day >= at
        else made_run(day, {"rgw-beast": rate}, **more)
        for day, rate in enumerate(scattered(count, 1))
    ]


def told(history: History) -> list[tuple[str, str, str]]:
    """Each change: the run from which on, its metric, and its standing."""
    return [
        (change.run, change.metric, change.standing)
        for one in history.changes
        for change in one.changes
    ]


def test_fifty_runs_with_one_planted_step_are_told_rightly() -> None:
    rates = {"rgw-beast": scattered(50, 22), "swift": scattered(50, 23)}
    runs = [
        made_run(day, {"rgw-beast": beast * (0.9 if day >= 30 else 1.0), "swift": swift / 2})
        for day, (beast, swift) in enumerate(zip(*rates.values(), strict=True))
    ]
    history = history_of(runs)
    # The practical threshold of p90 is 10 %, which this step is not clearly beyond.
    assert told(history) == [("day-030", "throughput", "worse")]
    (change,) = history.changes
    assert change.label == "rgw-beast@ceph-16"
    (throughput,) = change.changes
    assert throughput.previous == "day-029"
    assert throughput.ratio == pytest.approx(0.9, abs=0.02)
    assert (throughput.runs_before, throughput.runs_after) == (30, 20)
    assert "day-030 on (2026-01-31): throughput −9 % in 1 cell, worse" in change.text
    assert history.headline.startswith("1 change in 4 cells of 50 runs; ")
    assert "rgw-beast@ceph-16 −9 % from 2026-01-31 on" in history.headline


def test_fifty_quiet_runs_have_no_change() -> None:
    history = history_of(quiet(50))
    assert told(history) == []
    assert history.headline == "No lasting change found in 2 cells of 50 runs."


def test_runs_are_put_in_order_of_time() -> None:
    runs = stepped(30, 15, 0.8)
    assert told(history_of(runs[::-1])) == told(history_of(runs))
    assert [one.run for one in history_of(runs[::-1]).runs][:2] == ["day-000", "day-001"]


def test_an_improvement_is_told_as_one() -> None:
    assert told(history_of(stepped(30, 20, 1.2))) == [
        ("day-020", "throughput", "better"),
        ("day-020", "p90", "better"),
    ]


def test_a_step_below_the_practical_threshold_and_one_odd_run_are_no_change() -> None:
    ratio = 0.97
    assert 1 / ratio < Bounds().throughput_ratio
    rates = [(1000.0 + 0.01 * day) * (ratio if day >= 15 else 1.0) for day in range(30)]
    assert told(history_of(of_rates(rates))) == []
    for odd in (3, 15, 29):
        runs = quiet(30)
        runs[odd] = made_run(odd, {"rgw-beast": 500})
        assert told(history_of(runs)) == []


def test_after_a_passing_gain_the_newest_level_is_what_counts() -> None:
    history = history_of(at_levels((10, 1.0), (3, 1.25), (10, 0.8)))
    assert told(history) == [("day-013", "throughput", "worse"), ("day-013", "p90", "worse")]
    change = history.changes[0].changes[0]
    assert (change.previous, change.passing) == ("day-009", 3)
    assert "10 runs before, 10 since, 3 between at levels that did not last; p " in change.text
    both_ways = history_of(at_levels((10, 1.0), (3, 1.25), (3, 0.6), (10, 0.8)))
    assert told(both_ways)[0] == ("day-016", "throughput", "worse")
    assert both_ways.changes[0].changes[0].passing == 6


def test_cells_with_too_few_runs_are_not_counted_as_searched() -> None:
    runs = quiet(9)
    fewer = [
        made_run(day, {"rgw-beast": 1000, **({"swift": 500} if day < RULE.runs - 1 else {})})
        for day in range(9)
    ]
    for history in (history_of(runs), history_of(fewer)):
        assert history.headline == "No lasting change found in 2 cells of 9 runs."
        findings = {chart.finding for chart in history_charts(history)}
        assert findings == {
            f"No lasting change of {name} found in 1 cell of 9 runs"
            for name in ("throughput", "p90")
        }
    early = history_charts(history_of(runs[: RULE.runs - 1]))
    assert all("can be found yet: that needs 7 comparable runs" in one.finding for one in early)


def test_a_change_among_provisional_figures_is_provisional_with_their_doubt() -> None:
    runs = stepped(30, 20, 0.8, doubts=[BUSY])
    (change,) = history_of(runs).changes
    assert not change.is_sure
    assert {one.standing for one in change.changes} == {"provisional: machine busy"}
    assert "provisional: throughput −20 %" in change.text
    assert history_of(runs).headline.endswith("; 1 provisional.")


def test_a_few_provisional_figures_leave_a_change_certain() -> None:
    sure, busy = stepped(30, 20, 0.8), stepped(30, 20, 0.8, doubts=[BUSY])
    runs = [busy[day] if day % 3 == 0 else sure[day] for day in range(30)]
    assert [one.is_sure for one in history_of(runs).changes] == [True]
    standings = [one.standing for one in history_of(runs).series[0].points]
    assert standings.count("provisional") == 10


def test_a_change_that_rests_on_provisional_figures_is_provisional() -> None:
    def doubted(sure_before: int, sure_after: int) -> list[str]:
        """Standings of a step after 10 of 20 runs, of which so many of each side are sure."""
        runs = [
            made_run(
                day,
                {"rgw-beast": 1000 * (0.8 if day >= 10 else 1.0) + day % 3},
                doubts=[] if day % 10 < (sure_after if day >= 10 else sure_before) else [BUSY],
            )
            for day in range(20)
        ]
        return [standing for _, _, standing in told(history_of(runs))]

    doubtful = ["provisional: machine busy"] * 2
    assert doubted(RULE.before - 1, 10) == doubtful
    assert doubted(10, RULE.after - 1) == doubtful
    assert doubted(RULE.before, RULE.after) == ["worse"] * 2


def test_too_few_repeats_make_a_figure_provisional() -> None:
    (point,) = history_of(quiet(1, repeats=2)).series[0].points
    assert (point.standing, point.doubts[0].what) == ("provisional", "few repeats")


@pytest.mark.parametrize("spoil", [{"doubts": [DIFFER]}, {"valid": False}])
def test_what_is_not_comparable_is_shown_and_not_searched(spoil: dict[str, object]) -> None:
    runs = stepped(30, 20, 0.5, since=spoil)
    history = history_of(runs)
    assert told(history) == []
    series = history.series[0]
    assert (len(series.points), len(series.searched)) == (30, 20)
    assert {one.standing for one in series.points[20:]} == {"not comparable"}
    assert all(one.why for one in series.points[20:])


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"release": "ceph-18"}, "layout release: ceph-16 before, ceph-18 now"),
        ({"seed": 7}, "seed: 2014 before, 7 now"),
        ({"cache": "none"}, "cache: "),
    ],
)
def test_a_change_is_told_only_among_comparable_runs(changed: dict[str, object], why: str) -> None:
    runs = stepped(30, 20, 0.8, seed=2014, since=changed)
    history = history_of(runs)
    assert told(history) == []
    (broken,) = history.breaks
    assert (broken.run, broken.layout) == ("day-020", "rgw-beast")
    (words,) = break_words(history.breaks)
    assert words.startswith("rgw-beast@ceph-1")
    assert why in words
    throughput = [one for one in history.series if one.metric == "throughput"]
    assert [(one.group, len(one.points)) for one in throughput] == [(1, 20), (2, 10)]


def test_what_parts_runs_of_several_layouts_is_said_once() -> None:
    runs = [
        made_run(day, {"rgw-beast": 1000, "rgw-haproxy": 900}, seed=int(day >= 1))
        for day in range(2)
    ]
    history = history_of(runs)
    assert len(history.breaks) == 2
    (words,) = break_words(history.breaks)
    assert words.startswith("rgw-beast@ceph-16 and rgw-haproxy@ceph-16, small-read of made-up: ")
    assert words.endswith("seed: 0 before, 1 now")


def test_runs_that_differ_in_a_fact_can_be_compared_despite_it() -> None:
    runs = stepped(30, 20, 0.8, seed=0, since={"seed": 1})
    assert told(history_of(runs)) == []
    for despite in ("seed", "all"):
        assert [run for run, _, _ in told(history_of(runs, [despite]))] == ["day-020"] * 2
    with pytest.raises(UsageError, match=r"no guard fact 'seeds'.*'seed'"):
        history_of(runs, ["seeds"])


@pytest.mark.parametrize(
    ("despite", "words"), [("seed", "differ in seed."), ("all", "differ in any guard fact.")]
)
def test_what_may_differ_is_named_beside_the_change_and_in_charts(despite: str, words: str) -> None:
    runs = stepped(30, 20, 0.8, seed=0, since={"seed": 1})
    history = history_of(runs, [despite])
    assert [one.differs_words for one in history.changes] == ["seed: 0 before, 1 now"]
    assert history.despite == (despite,)
    assert history.despite_words.endswith(words)
    assert all(history.despite_words in one.caption for one in history_charts(history))
    assert history_of(runs).despite_words == ""


def test_runs_on_slower_hosts_are_a_series_of_their_own() -> None:
    def attested(run: ComparedRun, rate: float) -> ComparedRun:
        about = {"layout": "rgw-beast", "repeat": 0, "host": "gateway-1"}
        figure = {"kind": "cpu", "what": "CPU", "value": rate, "unit": "events/s"}
        return altered(run, attested=(Attested.model_validate({**about, **figure}),))

    runs = [
        attested(run, 1000 if day < 20 else 300) for day, run in enumerate(stepped(30, 20, 0.5))
    ]
    history = history_of(runs)
    assert told(history) == []
    assert "hosts differ: CPU of gateway-1 gave 300 events/s" in break_words(history.breaks)[0]
    same = [attested(run, 1000) for run in stepped(30, 20, 0.5)]
    assert len(told(history_of(same))) == 2


def test_what_changed_with_a_change_is_named() -> None:
    runs = [
        altered(run, manifest=altered(run.manifest, weighbridge_version=version))
        for day, run in enumerate(stepped(30, 20, 0.8))
        for version in ["0.2" if day >= 20 else "0.1"]
    ]
    (change,) = history_of(runs).changes
    assert change.differs_words == "weighbridge: 0.1 before, 0.2 now"


@pytest.mark.parametrize("rate", [1e-200, 1e200])
def test_a_figure_that_no_gateway_has_is_not_searched(rate: float) -> None:
    runs = [*stepped(30, 20, 0.8), made_run(30, {"rgw-beast": rate})]
    assert told(history_of(runs)) == told(history_of(runs[:-1])) != []


def test_a_run_without_a_time_is_refused() -> None:
    (run,) = quiet(1)
    manifest = altered(run.manifest, created_at="soon")
    with pytest.raises(InvalidMeasurement, match="'soon' is not a time"):
        history_of([altered(run, manifest=manifest)])


def verdict(*levels: tuple[int, float], **more: Any) -> RunsVerdict:
    """On runs at these levels: so many, at this share of the first throughput."""
    shares = [share for count, share in levels for _ in range(count)]
    rates = scattered(len(shares), 5)
    rates = [rate * share for rate, share in zip(rates, shares, strict=True)]
    return latest_verdict(history_of(of_rates(rates, **more)))


def test_quiet_runs_an_improvement_and_one_slow_run_pass() -> None:
    assert verdict((20, 1.0)) == RunsVerdict(exit_code=EXIT_FINE)
    assert verdict((20, 1.0), (10, 1.4)).exit_code == EXIT_FINE
    assert verdict((20, 1.0), (1, 0.5)).exit_code == EXIT_FINE


@pytest.mark.parametrize("since", [2, 3, 10])
def test_a_lasting_worsening_fails_until_it_is_over(since: int) -> None:
    found = verdict((20, 1.0), (since, 0.7))
    assert found.exit_code == EXIT_DIFFERENCE
    assert found.answer == f"day-{19 + since:03} is worse than the runs before it: 2 of 2 figures."
    assert [one.partition(" of ")[0] for one in found.details] == ["throughput", "p90"]
    assert verdict((20, 1.0), (since, 0.7), (10, 1.0)).exit_code == EXIT_FINE


def test_what_cannot_be_judged_has_not_passed() -> None:
    few = verdict((6, 1.0))
    assert few.exit_code == EXIT_INVALID
    assert few.answer.endswith("cannot be judged: 2 of 2 figures.")
    assert few.details[0].endswith("6 comparable runs of the 7 that are needed")
    busy = verdict((20, 1.0), (10, 0.7), doubts=(BUSY,))
    assert busy.exit_code == EXIT_INVALID
    assert "machine busy" in busy.details[0]
    spoilt = verdict((20, 1.0), valid=False)
    assert spoilt.exit_code == EXIT_INVALID
    assert "not valid" in spoilt.details[0]


def test_a_run_that_begins_a_new_series_is_not_judged_by_the_old_one() -> None:
    runs = of_rates(scattered(20, 5))
    runs += [made_run(20, {"rgw-beast": 500.0}, release="ceph-18")]
    found = latest_verdict(history_of(runs))
    assert found.exit_code == EXIT_INVALID
    assert "1 comparable run of the 7 that are needed" in found.details[0]


def run(
    day: int, given: Mapping[str, int], computed: Mapping[str, int], **more: object
) -> ComparedRun:
    """A run whose layout's file gives some settings of radosgw, while others are computed."""
    found = made_run(day, {"rgw-beast": 1000.0}, **more)  # type: ignore[arg-type]
    plan = found.plan.model_dump()
    plan["layouts"][0]["settings"] = {"radosgw": dict(given)}
    plan["by_size"] = {
        "rgw-beast": [{"key": f"radosgw.{key}", "value": value} for key, value in computed.items()]
    }
    return altered(found, plan=type(found.plan).model_validate(plan))


def groups(history: History) -> list[int]:
    return [len(one.points) for one in history.series if one.metric == "throughput"]


def test_runs_whose_files_gave_what_is_now_computed_are_one_series_with_later_ones() -> None:
    sizes = {"threads": 512, "max_concurrent_requests": 1024}
    history = history_of([run(0, sizes, {}), run(1, {}, sizes), run(2, {"threads": 512}, sizes)])
    assert groups(history) == [3]
    assert history.breaks == ()


def test_a_real_difference_comes_before_what_only_moved_to_the_sizing_rule() -> None:
    many = dict.fromkeys("abcdef", 1)
    before = run(0, {"tcp_nodelay": 1, "gone": 1, **many}, {})
    after = run(1, {"tcp_nodelay": 0}, dict.fromkeys(many, 2))
    (words,) = break_words(history_of([before, after]).breaks)
    assert words.endswith(
        ": layout radosgw.tcp_nodelay: 1 before, 0 now; in a layout's file and computed from the "
        "hosts' size: layout radosgw.a: 1 before, 2 now; layout radosgw.b: 1 before, 2 now; "
        "layout radosgw.c: 1 before, 2 now; 3 more; recorded in one run only: "
        "layout radosgw.gone"
    )


Level = tuple[int, float]
"""So many runs at this figure."""


def leveled(*levels: Level) -> list[float]:
    """Levels one after another, scattered by up to 0.2 %."""
    figures = [figure for count, figure in levels for _ in range(count)]
    return [figure * (1 + 0.001 * (at % 3)) for at, figure in enumerate(figures)]


def test_series_are_searched_as_otava_does_and_short_sides_are_left_out() -> None:
    level = [100.0 + 0.1 * (number % 3) for number in range(20)]
    halved = [value / 2 for value in level]
    ((at, found),) = change_points([*level, *halved], 0.05).items()
    assert (at, found.runs_before, found.runs_after) == (20, 20, 20)
    assert found.after / found.before == pytest.approx(0.5)
    assert found.p < 1e-9
    for series, changes in (
        ([*level, *([50.0] * (RULE.after - 1))], 0),
        ([*level, *([50.0] * RULE.after)], 1),
        ([*level[: RULE.before - 1], *halved], 0),
        ([*level[: RULE.before], *halved], 1),
        ([1.0] * 50, 0),
        ([], 0),
    ):
        assert len(change_points(series, 0.05)) == changes
    assert not change_points(leveled((40, 100)), 0.0)


@pytest.mark.parametrize("figure", [70, 140])
def test_a_passing_level_after_which_all_is_as_before_is_no_change(figure: float) -> None:
    passed = leveled((20, 100), (4, figure), (5, 100))
    assert list(change_points(passed[:24], 0.05)) == [20]
    assert change_points(passed, 0.05) == {}
    constant = [100.0] * 20 + [figure] * 4 + [100.0] * 5
    assert change_points(constant, 0.05) == {}


def test_a_newest_level_is_a_change_until_it_is_known_to_pass() -> None:
    up = leveled((20, 100), (4, 125))
    assert list(change_points(up, 0.05)) == [20]
    ((at, found),) = change_points([*up, 80.0], 0.05).items()
    assert (at, found.runs_after, found.after > found.before) == (20, 4, True)


def test_a_level_that_lasts_is_two_changes() -> None:
    found = change_points(leveled((10, 100), (RULE.before, 125), (10, 80)), 0.05)
    assert [(at, one.passing) for at, one in found.items()] == [(10, 0), (15, 0)]


def test_a_change_over_a_passing_level_must_be_larger_than_the_threshold() -> None:
    figures = leveled((20, 100), (4, 70), (5, 91))
    assert change_points(figures, 0.15) == {}
    assert list(change_points(figures, 0.05)) == [24]


def history(off: dict[int, float], count: int = 30, **more: Any) -> History:
    rates = [rate * off.get(day, 1.0) for day, rate in enumerate(scattered(count, 5))]
    return history_of(of_rates(rates, **more))


def found(history: History) -> list[tuple[str, str, str, str]]:
    return [(one.run, one.metric, one.brief, one.direction) for one in history.outliers]


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
    named = {row["run"]: row["_outlier"] for row in panel.rows if row["_outlier"]}
    assert named == {"day-020": "outlier, one run"}
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
    words = {one.run: one.brief for one in told.outliers}
    assert words == {"day-020": row, "day-021": row, "day-025": "outlier, one run"}
    doubtful = history({20: 0.6}, doubts=(BUSY,)).outliers
    assert all("machine busy" in one.brief for one in doubtful)
    assert doubtful


def test_below_the_practical_threshold_there_is_none() -> None:
    steady = [100 * (1 + 1e-4 * (at % 3)) for at in range(30)]
    steady[20] = 104.0
    assert outlying(steady, 0.05) == {}
    assert list(outlying(steady, 0.03)) == [20]
    assert outlying([100.0] * 30, 0.0) == {}
    lone = outlying([100.0] * 20 + [90.0] + [100.0] * 9, 0.05)
    assert {at: one.z for at, one in lone.items()} == {20: None}


def test_few_neighbours_ask_for_more() -> None:
    values = (100 * np.exp(0.02 * np.random.default_rng(3).normal(size=60))).tolist()
    assert OUTLIER_RULE.bound(50) < OUTLIER_RULE.bound(20) < OUTLIER_RULE.bound(10)
    assert outlying([*values[: OUTLIER_RULE.least - 1], 10.0], 0.05) == {}
    values[40] = 100 * np.exp(0.13)
    assert list(outlying(values, 0.05)) == [40]
    assert outlying(values[28:45], 0.05) == {}


def test_neighbours_are_of_the_same_level() -> None:
    levels = [100.0 + at % 3 for at in range(20)] + [50.0 + at % 3 for at in range(20)]
    changes = change_points(levels, 0.05)
    assert list(changes) == [20]
    assert outlying(levels, 0.05, changes) == {}
    levels[30] = 100.0
    assert list(outlying(levels, 0.05, changes)) == [30]


@pytest.mark.parametrize("seed", range(3))
def test_an_outlier_hides_no_other(seed: int) -> None:
    values = scattered(40, seed, 0.01)
    values[10] *= 5
    values[12] *= 0.5
    assert list(outlying(values, 0.05)) == [10, 12]
