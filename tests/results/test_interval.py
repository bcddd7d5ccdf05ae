from __future__ import annotations

import math
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from made_up import BEYOND_US, BIN_US, binned
from weighbridge.common.errors import InvalidMeasurement
from weighbridge.results.interval import Interval, highest, middle, percentile, show_latency, summed
from weighbridge.results.record.measurement import Bins
from weighbridge.results.report.study_section import study_2014

latencies_us = st.lists(st.integers(0, 600_000_000), min_size=1, max_size=60)
ends = st.integers(0, 50).map(lambda number: Interval(low_ms=10 * number, high_ms=10 * number + 10))


def within(low_ms: float, high_ms: float | None) -> Interval:
    return Interval(low_ms=low_ms, high_ms=high_ms)


@given(latencies_us, st.floats(0.5, 100))
def test_a_percentiles_interval_contains_the_exact_percentile(
    values_us: list[int], percent: float
) -> None:
    exact_us = sorted(values_us)[max(1, math.ceil(round(len(values_us) * percent / 100, 6))) - 1]
    found = percentile(binned(values_us), percent)
    assert found.low_ms * 1000 <= exact_us <= found.top_ms * 1000
    assert found.high_ms is None or found.high_ms - found.low_ms == BIN_US / 1000


@given(st.lists(st.tuples(st.integers(0, 50), st.floats(0.001, 10)), min_size=1, max_size=9))
def test_the_interval_over_repeats_contains_their_median_and_maximum(
    repeats: list[tuple[int, float]],
) -> None:
    exact_ms = [10 * number + beside for number, beside in repeats]
    found = [within(10 * number, 10 * number + 10) for number, _ in repeats]
    assert middle(found).low_ms <= median(exact_ms) <= middle(found).top_ms
    assert highest(found).low_ms <= max(exact_ms) <= highest(found).top_ms


@given(ends, st.floats(0.001, 600))
def test_bins_off_says_in_which_bin_a_latency_lies(found: Interval, value_ms: float) -> None:
    off = found.bins_off(value_ms)
    assert off is not None
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


def test_the_study_of_2014_printed_the_upper_edge_of_the_bin() -> None:
    printed = study_2014()[0]  # 90 % response time < 20 ms
    found = percentile(binned([12_345] * 199 + [1_440_001]), 90)
    assert (str(found), found.high_ms) == ("(10, 20]", printed.p90_upper_ms)
    assert percentile(binned([12_345] * 199 + [1_440_001]), 100).high_ms == printed.max_ms


def test_the_last_bin_has_no_upper_edge() -> None:
    found = percentile(binned([BEYOND_US]), 90)
    assert (str(found), found.high_ms, found.top_ms) == ("(500000, ∞)", None, math.inf)
    assert found.holds(1e9)
    assert found.bins_off(20.0) is None
    assert middle([found, within(0, 10)]).high_ms is None
    assert highest([found, within(0, 10)]) == found
    assert middle([found, within(0, 10), within(10, 20)]) == within(10, 20)


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
