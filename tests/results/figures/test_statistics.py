"""The statistics vs published values, and by simulation with fixed seeds."""

import csv
import itertools
import math
import random
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy import special

from fake_run import WORKLOADS, fake_run
from made_rows import altered, present
from made_up import BEYOND_US, BIN_US, binned
from recompute import counting, differences
from weighbridge.common.errors import InvalidMeasurement
from weighbridge.results.derivation import derive
from weighbridge.results.features.open_run import open_run
from weighbridge.results.figures import statistics as probability
from weighbridge.results.figures.reading import (
    Interval,
    Merge,
    MetricFigure,
    largest,
    percentile,
    show_latency,
    summed,
)
from weighbridge.results.figures.reading import geometric_mean as of_repeats
from weighbridge.results.figures.statistics import (
    TTest,
    cliffs_delta,
    corrected,
    geometric_mean,
    next_level,
    one_sample,
    rank_p,
    rank_p_of,
    ratio,
    signed_rank_p,
    smallest_ratio,
    welch,
)
from weighbridge.results.numbers import show_figure, show_ratio
from weighbridge.results.run.step import Bins
from weighbridge.results.show.tables import STEPS

SLEEP = (
    (0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0),
    (1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4),
)
"""Student's sleep data, as R has them (`datasets::sleep`)."""


def exp(values: Sequence[float]) -> list[float]:
    return [math.exp(value) for value in values]


@pytest.mark.parametrize(("of_a", "of_b"), [(2, 2), (2, 9), (5, 5), (8, 6)])
def test_welchs_test_and_its_intervals_match_scipy(stats: Any, of_a: int, of_b: int) -> None:
    draw = random.Random(of_a)
    a = [draw.gauss(0.05, 0.05) for _ in range(of_a)]
    b = [draw.gauss(0.0, 0.1) for _ in range(of_b)]
    tested, theirs = welch(exp(a), exp(b)), stats.ttest_ind(a, b, equal_var=False)
    assert_matches(tested, theirs)
    assert (tested.freedom, tested.repeats) == (pytest.approx(float(theirs.df)), min(of_a, of_b))
    assert tested.ratio.shown == (tested.p < 0.05)


@pytest.mark.parametrize("repeats", [2, 3, 5, 8, 20])
def test_the_one_sample_test_and_its_intervals_match_scipy(stats: Any, repeats: int) -> None:
    draw = random.Random(repeats)
    logs = [draw.gauss(0.03, 0.05) for _ in range(repeats)]
    tested = one_sample(logs)
    assert_matches(tested, stats.ttest_1samp(logs, 0.0))
    assert tested.repeats == repeats


def assert_matches(tested: TTest, theirs: Any) -> None:
    assert tested.p == pytest.approx(float(theirs.pvalue))
    assert tested.difference / tested.error == pytest.approx(float(theirs.statistic))
    for confidence in (0.90, 0.95, 0.9875):
        measure, interval = tested.ratio_at(confidence), theirs.confidence_interval(confidence)
        assert (measure.low, measure.high) == pytest.approx(
            (math.exp(interval.low), math.exp(interval.high))
        )


def test_welchs_test_matches_r_on_the_sleep_data() -> None:
    # R, t.test(extra ~ group, data = sleep): t = -1.8608, df = 17.776, p-value = 0.07939, interval
    # -3.3654832 to 0.2054832
    tested = welch(exp(SLEEP[0]), exp(SLEEP[1]))
    assert tested.freedom == pytest.approx(17.776, abs=5e-4)
    assert tested.p == pytest.approx(0.07939, abs=5e-6)
    low, high = present(tested.ratio.low), present(tested.ratio.high)
    assert (math.log(low), math.log(high)) == pytest.approx((-3.3654832, 0.2054832), abs=1e-6)


def test_the_rank_test_matches_r_and_scipys_manual() -> None:
    # R, example(wilcox.test): Hollander and Wolfe 1973, 69f, W = 35, one-sided p-value = 0.1272
    at_term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]
    early = [1.15, 0.88, 0.90, 0.74, 1.21]
    assert rank_p(at_term, early) == pytest.approx(2 * 0.1272, abs=1e-4)
    assert rank_p_of(35, 10, 5) == pytest.approx(2 * 0.1272, abs=1e-4)
    # scipy.stats.mannwhitneyu, examples: onset of diabetes, U = 17, exact p = 0.1111
    assert rank_p([19, 22, 16, 29, 24], [20, 11, 17, 12]) == pytest.approx(0.1111111, abs=1e-6)
    assert rank_p_of(17, 5, 4) == pytest.approx(0.1111111, abs=1e-6)
    # Five repeats can reach 1 %, three not 10.
    assert rank_p([6, 7, 8, 9, 10], [1, 2, 3, 4, 5]) == pytest.approx(2 / 252)
    assert rank_p([4, 5, 6], [1, 2, 3]) == pytest.approx(0.1)
    assert rank_p([1.0, 1.0], [1.0, 1.0, 1.0]) == 1.0


def test_the_exact_rank_test_counts_every_order() -> None:
    for wins in range(10):
        counts = [
            sum(one > other for one in chosen for other in {*range(6)} - {*chosen})
            for chosen in itertools.combinations(range(6), 3)
        ]
        assert rank_p_of(wins, 3, 3) == pytest.approx(
            min(1.0, 2 * sum(count <= min(wins, 9 - wins) for count in counts) / 20)
        )


def test_many_values_or_equal_ones_are_ranked_by_approximation(stats: Any) -> None:
    many = [one * 1.001**one for one in range(1, 61)]
    assert rank_p(many[::2], many[1::2]) == pytest.approx(
        rank_p([*many[::2], 99.5], [*many[1::2], 99.5]), abs=0.02
    )
    # By hand: U = 1 of a mean of 4.5; variance 9/12 (7 - 24/30), three being equal; z = 3 / 2.15639
    # with the correction by 1/2
    assert rank_p([1.0, 2.0, 2.0], [2.0, 3.0, 4.0]) == pytest.approx(
        math.erfc(3 / math.sqrt(4.65) / math.sqrt(2)), rel=1e-9
    )
    draw = random.Random(4)
    one, other = ([float(draw.randint(low, 40)) for _ in range(40)] for low in (1, 8))
    theirs = stats.mannwhitneyu(one, other, alternative="two-sided")
    assert rank_p(one, other) == pytest.approx(float(theirs.pvalue))


def test_cliffs_delta_matches_the_effsize_package() -> None:
    # R package effsize, example(cliff.delta): delta estimate -0.25
    treatment, control = [10, 10, 20, 20, 20, 30, 30, 30, 40, 50], [10, 20, 30, 40, 40, 50]
    assert cliffs_delta(treatment, control) == pytest.approx(-0.25)
    assert cliffs_delta(control, treatment) == pytest.approx(0.25)
    assert cliffs_delta([2, 3], [0, 1]) == 1.0


def test_the_correction_matches_benjamini_and_hochbergs_example(stats: Any) -> None:
    # Their table of 15 treatments (1995, section 4), adjusted as in the manual of
    # scipy.stats.false_discovery_control
    p_values = [
        *(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344),
        *(0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0),
    ]
    q_values = corrected(p_values)
    assert q_values[:6] == pytest.approx(
        [0.0015, 0.003, 0.0095, 0.035625, 0.0603, 0.06385714], abs=1e-7
    )
    assert sum(q <= 0.05 for q in q_values) == 4
    assert corrected(p_values[::-1]) == q_values[::-1]
    assert corrected([0.03]) == pytest.approx((0.03,))
    assert corrected([]) == ()
    draw = random.Random(1)
    many = [draw.random() ** 3 for _ in range(100)] + [0.5, 0.5]
    assert corrected(many) == pytest.approx(stats.false_discovery_control(many))


@pytest.mark.parametrize(
    ("repeats", "spreads"), [(25.52458, 0.8), (63.76561, 0.5), (393.4057, 0.2)]
)
def test_the_smallest_ratio_has_a_power_of_eight_in_ten(repeats: float, spreads: float) -> None:
    # R, power.t.test(delta = 0.8, power = 0.8): n = 25.52458; 0.5: n = 63.76561; 0.2: n = 393.4057
    # (sd = 1, two-sided, 5 %)
    assert (
        math.log(smallest_ratio(1.0, math.floor(repeats)))
        > spreads
        > math.log(smallest_ratio(1.0, math.ceil(repeats)))
    )


@pytest.mark.parametrize(("level", "bound"), [(0.05, 1.05), (0.05 / 14, 1.0), (0.05 / 48, 1.10)])
def test_the_smallest_ratio_at_a_corrected_level_beyond_a_bound_is_found_about_8_times_in_10(
    level: float, bound: float
) -> None:
    draw, apart = random.Random(12), math.log(smallest_ratio(0.05, 5, level=level, bound=bound))
    tested = (
        welch(
            exp([draw.gauss(apart, 0.05) for _ in range(5)]),
            exp([draw.gauss(0, 0.05) for _ in range(5)]),
        )
        for _ in range(2000)
    )
    assert 0.75 <= sum(one.p_beyond(bound) <= level for one in tested) / 2000 <= 0.83


@pytest.mark.parametrize(
    ("one", "other"), [(0.03, 0.20), pytest.param(0.05, 0.05, marks=pytest.mark.test_all)]
)
@pytest.mark.parametrize("level", [0.05, 0.05 / 14, 0.05 / 48])
@pytest.mark.long
def test_the_smallest_ratio_of_a_run_is_found_8_times_in_10_by_another(
    one: float, other: float, level: float
) -> None:
    draw, shown = random.Random(13), 0
    for _ in range(2000):
        tested = welch(
            exp([draw.gauss(0, one) for _ in range(5)]),
            exp([draw.gauss(0, other) for _ in range(5)]),
        )
        apart = math.log(tested.smallest(level, 1.05))
        again = welch(
            exp([draw.gauss(apart, one) for _ in range(5)]),
            exp([draw.gauss(0, other) for _ in range(5)]),
        )
        shown += again.difference > 0 and again.p_beyond(1.05) <= level
    assert 0.75 <= shown / 2000 <= 0.85


@pytest.mark.parametrize("apart", [-0.3, -0.1, 0.0, 0.02, 0.1, 0.3])
@pytest.mark.parametrize("level", [0.05, 0.004])
def test_a_p_value_beyond_a_bound_agrees_with_the_interval(apart: float, level: float) -> None:
    tested = welch(
        exp([apart + step for step in (-0.02, 0.0, 0.01, 0.03, -0.02)]),
        exp([-0.01, 0.0, 0.02, -0.02, 0.01]),
    )
    for bound in (1.0, 1.02, 1.05, 1.2, 1.4):
        wide = tested.ratio_at(1 - level)
        assert (tested.p_beyond(bound) <= level) == (
            present(wide.low) > bound or present(wide.high) < 1 / bound
        )
    assert tested.p_beyond() == pytest.approx(tested.p)
    assert tested.ratio == tested.ratio_at(0.95)


def test_repeats_without_spread_have_an_interval_of_one_value_and_find_any_difference() -> None:
    apart, alike = welch([2.0, 2.0], [1.0, 1.0]), welch([1.0, 1.0], [1.0, 1.0])
    measure = apart.ratio
    assert (measure.low, measure.value, measure.high) == pytest.approx((2, 2, 2))
    assert (apart.p, alike.p, smallest_ratio(0.0, 5)) == (0.0, 1.0, 1.0)
    assert (apart.p_beyond(1.5), apart.p_beyond(2.5)) == (0.0, 1.0)
    assert (alike.p_beyond(), alike.smallest(0.01, 1.05)) == pytest.approx((1.0, 1.05))


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (lambda tested: tested.p_beyond(0.9), "not a practical threshold"),
        (lambda tested: tested.p_beyond(math.nan), "not a practical threshold"),
        (lambda tested: tested.smallest(0.05, 0.5), "not a practical threshold"),
        (lambda tested: tested.smallest(0), "no test at a level of 0"),
        (lambda _: smallest_ratio(0.05, 5, level=2), "no test at a level of 2"),
        (lambda _: smallest_ratio(0.05, 1), "1 repeats"),
        (lambda _: one_sample([0.1]), "no spread"),
        (lambda _: signed_rank_p([]), "at least one"),
        (lambda _: next_level(0, 0), "claims of"),
        (lambda _: next_level(5, 6), "claims of"),
        (lambda _: next_level(5, -1), "claims of"),
        (lambda _: geometric_mean([]), "above 0"),
        (lambda _: geometric_mean([0.0]), "above 0"),
        (lambda _: geometric_mean([1.0, -1.0]), "above 0"),
    ],
)
def test_what_cannot_be_tested_is_refused(asked: Callable[[TTest], object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        asked(welch([2.0, 2.0], [1.0, 1.0]))


def test_the_next_claim_needs_the_level_of_its_rank_and_no_less() -> None:
    assert (next_level(1), next_level(20), next_level(20, 3), next_level(20, 20)) == pytest.approx(
        (0.05, 0.0025, 0.01, 0.05)
    )
    # `corrected` accepts exactly those that reach the level of their rank.
    p_values = [0.0001, 0.004, 0.019, 0.0201, 0.5]
    assert [q <= 0.05 for q in corrected(p_values)] == [
        p <= next_level(5, rank) for rank, p in enumerate(p_values)
    ]


def test_a_ratio_is_of_geometric_means_with_welchs_interval() -> None:
    assert geometric_mean([1.0, 100.0]) == pytest.approx(10.0)
    assert geometric_mean([7.0, 7.0]) == 7.0
    measure = ratio([10, 12, 11], [5, 5.5, 6])
    # By hand: logs of a have mean 2.395263, variance 0.008319; those of b 1.702116, 0.008318; 4
    # degrees of freedom.
    assert measure.value == pytest.approx(2.0, rel=1e-3)
    reach = 2.77645 * math.sqrt(2 * 0.0083138 / 3)
    assert measure.low == pytest.approx(measure.value * math.exp(-reach), rel=2e-3)
    assert measure.high == pytest.approx(measure.value * math.exp(reach), rel=2e-3)
    assert measure.shown
    assert not measure.claim
    # An inverted ratio is that of swapped sides.
    a, b = [10, 12, 11], [5, 5.5, 7]
    turned, other = ratio(a, b).inverted, ratio(b, a)
    assert (turned.value, turned.low, turned.high) == pytest.approx(
        (other.value, other.low, other.high)
    )
    assert ratio(b, a).either_way == pytest.approx(ratio(a, b).value)


def test_a_claim_needs_a_difference_and_a_single_repeat_has_no_interval_and_none() -> None:
    measure = ratio([20], [10, 11])
    assert measure.low is None
    assert (measure.high, measure.repeats, measure.shown, measure.claim) == (None, 1, False, False)
    assert ratio([20, 21, 20, 22, 21], [10, 11, 10, 10, 11]).claim
    assert not ratio([20, 21, 20, 22, 21], [21, 20, 22, 20, 21]).claim


def test_a_huge_spread_gives_a_wide_interval_and_no_overflow() -> None:
    measure = ratio([1, 1e9], [1, 1])
    assert present(measure.low) < 1e-3
    assert present(measure.high) > 1e6
    assert not measure.shown
    assert not ratio([1e9, 1e18], [1, 1]).shown
    assert smallest_ratio(1e3, 5) < math.inf
    wild = one_sample([-600.0, 600.0])
    assert wild.ratio.high == pytest.approx(math.exp(300))
    assert wild.smallest() < math.inf


@pytest.mark.parametrize("repeats", [5, 6, 8, 12])
def test_the_signed_rank_test_matches_scipy(stats: Any, repeats: int) -> None:
    draw = random.Random(repeats)
    logs = [draw.gauss(0.02, 0.05) for _ in range(repeats)]
    assert signed_rank_p(logs) == pytest.approx(float(stats.wilcoxon(logs, method="exact").pvalue))


def test_the_signed_rank_test_leaves_zeros_out_and_takes_equal_values(stats: Any) -> None:
    # Five trials cannot reach 5 %, six can.
    assert signed_rank_p([0.1, 0.2, 0.3, 0.4, 0.5]) == pytest.approx(2 / 32)
    assert signed_rank_p([-0.1, -0.2, -0.3, -0.4, -0.5, -0.6]) == pytest.approx(2 / 64)
    assert signed_rank_p([0.0, 0.0]) == 1.0
    assert signed_rank_p([0.0, 0.1, 0.2, 0.3, 0.4, 0.5]) == signed_rank_p([0.1, 0.2, 0.3, 0.4, 0.5])
    # By hand: the ranks are all 3.5, so the sum is as far out if no sign differs, or one.
    assert signed_rank_p([0.1, 0.1, 0.1, 0.1, 0.1, -0.1]) == pytest.approx(2 * 7 / 64)
    draw = random.Random(3)
    many = [draw.gauss(0.02, 0.05) for _ in range(80)]
    theirs = stats.wilcoxon(many, method="asymptotic", correction=False)
    assert signed_rank_p(many) == pytest.approx(float(theirs.pvalue))


@pytest.mark.parametrize(("trials", "level"), [(5, 0.05), (8, 0.05 / 4)])
def test_the_smallest_effect_of_trials_is_found_8_times_in_10_by_as_many_others(
    trials: int, level: float
) -> None:
    draw, shown = random.Random(12), 0
    for _ in range(2000):
        tested = one_sample([draw.gauss(0, 0.05) for _ in range(trials)])
        apart = math.log(tested.smallest(level))
        again = one_sample([draw.gauss(apart, 0.05) for _ in range(trials)])
        shown += again.difference > 0 and again.p <= level
    assert 0.77 <= shown / 2000 <= 0.83


def test_ratios_without_spread_have_an_interval_of_one_value() -> None:
    apart, alike = one_sample([0.5, 0.5, 0.5]), one_sample([0.0, 0.0])
    assert (apart.p, alike.p, apart.smallest()) == (0.0, 1.0, 1.0)
    assert (apart.ratio.low, apart.ratio.high) == pytest.approx((math.exp(0.5), math.exp(0.5)))


latencies_us = st.lists(st.integers(0, 600_000_000), min_size=1, max_size=60)
ends = st.integers(0, 50).map(lambda number: Interval(low_ms=10 * number, high_ms=10 * number + 10))


def within(low_ms: float, high_ms: float | None) -> Interval:
    return Interval(low_ms=low_ms, high_ms=high_ms)


def merged_bins(merge: Merge, *bins: Interval) -> Interval:
    return present(merge([MetricFigure(within=each) for each in bins]).within)


@given(latencies_us, st.floats(0.5, 100))
def test_an_interval_holds_the_exact_percentile(values_us: list[int], percent: float) -> None:
    exact_us = sorted(values_us)[max(1, math.ceil(round(len(values_us) * percent / 100, 6))) - 1]
    found = percentile(binned(values_us), percent)
    assert found.low_ms * 1000 <= exact_us <= found.top_ms * 1000
    assert found.high_ms is None or found.high_ms - found.low_ms == BIN_US / 1000


@given(st.lists(st.tuples(st.integers(0, 50), st.floats(0.001, 10)), min_size=1, max_size=9))
def test_intervals_over_repeats_hold_median_and_maximum(repeats: list[tuple[int, float]]) -> None:
    exact_ms = [10 * number + beside for number, beside in repeats]
    found = [within(10 * number, 10 * number + 10) for number, _ in repeats]
    for merge, exact in ((of_repeats, median(exact_ms)), (largest, max(exact_ms))):
        merged = merged_bins(merge, *found)
        assert merged.low_ms <= exact <= merged.top_ms


@given(ends, st.floats(0.001, 600))
def test_bins_off_says_in_which_bin_a_latency_lies(found: Interval, value_ms: float) -> None:
    off = present(found.bins_off(value_ms))
    assert within(found.low_ms + 10 * off, found.top_ms + 10 * off).holds(value_ms)
    assert (off == 0) is found.holds(value_ms)


def test_percentiles_equal_those_that_cosbench_printed_for_the_bins() -> None:
    # Reads by one worker of COSBench's mock storage: 807 samples, for which it printed 20, 40 (99
    # %) and 90 (100 %).
    bins = Bins(
        width_us=10_000,
        counts=((1, 774), (2, 22), (3, 5), (4, 3), (5, 1), (6, 1), (8, 1)),
        beyond_us=BEYOND_US,
    )
    printed = {50: "(10, 20]", 90: "(10, 20]", 99: "(30, 40]", 100: "(80, 90]"}
    assert {percent: str(percentile(bins, percent)) for percent in printed} == printed


PUBLISHED = ("published", "swift-vs-rgw-read-2014-response-times.csv")


def test_the_study_of_2014_printed_the_upper_edge_of_the_bin() -> None:
    text = files("weighbridge.results").joinpath(*PUBLISHED).read_text("utf-8")
    printed = next(csv.DictReader(text.splitlines()))  # 90 % response time < 20 ms
    found = percentile(binned([12_345] * 199 + [1_440_001]), 90)
    assert (str(found), found.high_ms) == ("(10, 20]", float(printed["p90_upper_ms"]))
    assert percentile(binned([12_345] * 199 + [1_440_001]), 100).high_ms == float(printed["max_ms"])


def test_the_last_bin_has_no_upper_edge() -> None:
    found = percentile(binned([BEYOND_US]), 90)
    assert (str(found), found.high_ms, found.top_ms) == ("(500000, ∞)", None, math.inf)
    assert found.holds(1e9)
    assert found.bins_off(20.0) is None
    assert merged_bins(of_repeats, found, within(0, 10)).high_ms is None
    assert merged_bins(largest, found, within(0, 10)) == found
    assert merged_bins(of_repeats, found, within(0, 10), within(10, 20)) == within(10, 20)


def test_intervals_that_share_an_edge_touch() -> None:
    assert within(10, 20).touches(within(20, 30))
    assert within(20, 30).touches(within(10, 20))
    assert within(10, 20).touches(within(10, 20))
    assert not within(10, 20).touches(within(30, 40))
    assert within(500_000, None).touches(within(500_010, None))
    assert not within(10, 20).touches(within(500_000, None))


def test_an_interval_is_shown_in_place_of_a_figure_and_an_empty_one_is_refused() -> None:
    assert show_latency(None, within(1450, 1460)) == "(1450, 1460]"
    assert show_latency(12.34, None) == "12.3"
    assert show_latency(None, None) == "–"
    assert str(within(12.5, 22.5)) == "(12.5, 22.5]"
    with pytest.raises(ValidationError, match="is empty"):
        within(20, 20)


@given(latencies_us, latencies_us)
def test_adding_bins_equals_counting_all_samples_together(a: list[int], b: list[int]) -> None:
    assert summed([binned(a), binned(b)]) == binned(a + b)


def test_bins_of_different_widths_are_not_added_and_empty_ones_have_no_percentile() -> None:
    with pytest.raises(InvalidMeasurement, match="different widths"):
        summed([binned([1]), Bins(width_us=1000, counts=((0, 1),), beyond_us=BEYOND_US)])
    with pytest.raises(InvalidMeasurement, match="empty bins"):
        percentile(Bins(width_us=1000, counts=(), beyond_us=BEYOND_US), 90)
    with pytest.raises(ValueError, match="percentage"):
        percentile(binned([1]), 0)


CASES = 300


def spread(draw: random.Random, low: float, high: float) -> float:
    return math.exp(draw.uniform(math.log(low), math.log(high)))


@pytest.mark.parametrize(
    ("ours", "theirs", "names"),
    [
        (probability.beta_share, special.betainc, "a b share"),
        (probability.beta_quantile, special.betaincinv, "a b share"),
        (probability.chi_square_quantile, lambda n, p: special.chdtri(n, 1 - p), "freedom share"),
        (probability.student_tail, lambda freedom, t: special.stdtr(freedom, -t), "freedom t"),
        (probability.student_quantile, special.stdtrit, "freedom high"),
        (probability.noncentral_student, special.nctdtr, "few shift at"),
    ],
)
def test_a_distribution_function_is_scipys(
    ours: Callable[..., float], theirs: Callable[..., float], names: str
) -> None:
    draw = random.Random(1)
    for _ in range(CASES):
        drawn = {"a": spread(draw, 0.5, 500), "b": spread(draw, 0.5, 500)}
        drawn |= {"share": draw.uniform(0.001, 0.999), "t": spread(draw, 1e-3, 60)}
        drawn |= {"freedom": spread(draw, 1, 400), "high": 1 - spread(draw, 1e-7, 0.5)}
        drawn |= {"few": spread(draw, 1, 100), "shift": spread(draw, 1e-3, 200)}
        drawn |= {"at": 1 + drawn["shift"] * draw.uniform(0.5, 2.0)}
        asked = [drawn[name] for name in names.split()]
        assert ours(*asked) == pytest.approx(float(theirs(*asked)), rel=1e-10, abs=1e-12), asked


def test_a_quantile_of_a_binomial_number_is_the_least_that_reaches_the_share(stats: Any) -> None:
    draw = random.Random(2)
    for _ in range(CASES):
        samples, p = round(spread(draw, 1, 1e6)), draw.choice([0.5, 0.9, 0.99, 0.999])
        share = draw.choice([0.025, 0.975])
        k = probability.binomial_quantile(samples, p, share)
        cdf = stats.binom.cdf
        assert cdf(k, samples, p) >= share > (cdf(k - 1, samples, p) if k else 0.0)


def test_the_middle_of_student_is_zero_and_far_tails_are_found() -> None:
    assert probability.student_quantile(3.0, 0.5) == 0.0
    assert probability.student_quantile(1.0, 1 - 1e-9) == pytest.approx(1e9 / math.pi, rel=1e-6)
    assert (probability.beta_share(2, 3, 0.0), probability.beta_share(2, 3, 1.0)) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (0, "0"),
        (0.4123, "0.412"),
        (0.00456, "0.00456"),
        (4.8, "4.80"),
        (20.06, "20.1"),
        (99.96, "100"),
        (999.6, "1,000"),
        (1450.2, "1,450"),
    ],
)
def test_figures_have_three_digits_and_never_an_exponent(value: float | None, shown: str) -> None:
    assert show_figure(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.0, "1.00×"),
        (1.04, "1.04×"),
        (1.84, "1.8×"),
        (2.0, "2.0×"),
        (0.93, "0.93×"),
        (12.4, "12×"),
        (1234.0, "1,234×"),
    ],
)
def test_ratios_near_one_keep_another_digit(value: float, shown: str) -> None:
    assert show_ratio(value) == shown


def test_other_code_computes_the_same_figures_intervals_and_ratios(tmp_path: Path) -> None:
    short = altered(WORKLOADS[0], workers=(1, 8), runtime=2.0)
    folder = fake_run(tmp_path, workloads=[short], telemetry=False).folder
    derived = derive(folder, pictures=False)
    repeats = counting(folder, STEPS.of_runs([open_run(folder)]).csv)
    assert differences(folder, repeats) == []
    summary = derived.summary.read_text().splitlines()
    column = summary[0].split(",").index("p90_ms")
    cells = summary[1].split(",")
    cells[column] = str(float(cells[column]) * 1.001)
    derived.summary.write_text("\n".join((summary[0], ",".join(cells), *summary[2:])))
    (wrong,) = differences(folder, repeats)
    assert "p90_ms" in wrong
