"""Percentiles with requests not seen to end, and of few samples, vs their definitions and numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weighbridge.results.analysis.steps.visit import (
    bounded,
    highest_ms,
    order_statistic_interval,
)
from weighbridge.results.record.histogram import Histogram

SMALL_US = st.integers(1, 1000)
"""Latencies that a histogram represents exactly."""


def product_limit(
    latencies: list[int], ages: list[int], percent: float
) -> tuple[float, float | None]:
    """The estimate by definition: at each time, the share of those at risk that continue."""
    longer = 1.0
    for time in sorted(set(latencies)):
        at_risk = sum(one >= time for one in latencies) + sum(one >= time for one in ages)
        longer *= 1 - latencies.count(time) / at_risk
        if longer <= 1 - percent / 100 + 1e-9:
            return time / 1000, time / 1000
    return max(latencies + ages) / 1000, None


@settings(deadline=None, max_examples=300)
@given(
    st.lists(SMALL_US, max_size=60),
    st.lists(SMALL_US, max_size=20),
    st.sampled_from([1, 25, 50, 90, 99, 100]),
)
def test_a_percentile_is_the_product_limit_estimate(
    latencies: list[int], ages: list[int], percent: float
) -> None:
    found = bounded(Histogram.of(latencies), Histogram.of(ages), percent)
    assert found == (product_limit(latencies, ages, percent) if latencies or ages else None)


@settings(deadline=None)
@given(st.lists(SMALL_US, min_size=1, max_size=200), st.sampled_from([1, 50, 90, 99, 99.9, 100]))
def test_without_requests_in_flight_it_is_the_plain_percentile(
    latencies: list[int], percent: float
) -> None:
    wanted_ms = float(np.percentile(latencies, percent, method="inverted_cdf")) / 1000
    for none in (None, Histogram()):
        assert bounded(Histogram.of(latencies), none, percent) == (wanted_ms, wanted_ms)


def test_a_stall_before_the_end_shows_in_the_percentiles() -> None:
    # 16 workers, 10 ms a request for 9.5 s, then nothing: 16 are outstanding for half a second.
    seen, stalled = Histogram.counted([(10_000, 16 * 950)]), Histogram.counted([(500_000, 16)])
    low_ms, high_ms = bounded(seen, stalled, 99.95) or (0.0, None)
    assert (low_ms, high_ms) == (pytest.approx(500, rel=1e-3), None)
    assert bounded(seen, stalled, 99) == (pytest.approx(10, rel=1e-3), pytest.approx(10, rel=1e-3))
    assert highest_ms(10_400, 500_123) == (500.123, None)


def test_when_most_are_in_flight_even_the_median_is_only_a_lower_bound() -> None:
    assert bounded(Histogram.of([10, 20]), Histogram.of([500] * 10), 50) == (0.5, None)
    assert bounded(None, Histogram.of([400, 500]), 50) == (0.5, None)
    assert bounded(None, None, 50) is None


def test_a_maximum_is_known_unless_something_older_is_in_flight() -> None:
    assert highest_ms(5000, 3000) == (5.0, 5.0)
    assert highest_ms(5000, None) == (5.0, 5.0)
    assert highest_ms(None, 3000) == (3.0, None)
    assert highest_ms(None, None) is None


def below(count: int, share: float, k: int) -> float:
    """P(B < k) of a binomial, term by term."""
    return math.fsum(math.comb(count, i) * share**i * (1 - share) ** (count - i) for i in range(k))


@settings(deadline=None, max_examples=200)
@given(
    st.lists(SMALL_US, min_size=1, max_size=120),
    st.sampled_from([50, 90, 99]),
    st.sampled_from([0.83, 0.95, 0.99]),
)
def test_an_interval_lies_between_the_binomial_ranks(
    values: list[int], percent: float, confidence: float
) -> None:
    low_ms, high_ms = order_statistic_interval(Histogram.of(values), percent, confidence)
    ordered, tail, share = sorted(values), (1 - confidence) / 2, percent / 100
    ranks = range(len(values) + 2)
    low = max(k for k in ranks if below(len(values), share, k) <= tail)
    high = min(k for k in ranks if 1 - below(len(values), share, k) <= tail)
    assert low_ms == (ordered[low - 1] / 1000 if low else 0)
    assert high_ms == (ordered[high - 1] / 1000 if high <= len(values) else None)


def test_intervals_of_60_samples_hold_the_90th_percentile_95_times_in_100_or_more() -> None:
    draw = np.random.default_rng(2014)
    true_ms = float(np.exp(1.2815515655446004))
    held = 0
    for _ in range(1000):
        values = np.maximum(1, np.rint(np.exp(draw.standard_normal(60)) * 1000)).astype(int)
        low_ms, high_ms = order_statistic_interval(Histogram.of(values.tolist()), 90)
        held += low_ms <= true_ms and (high_ms is None or true_ms <= high_ms * 1.001)
    assert 945 <= held <= 990


def test_few_samples_have_no_upper_end_and_requests_in_flight_widen_the_interval() -> None:
    values = list(range(1, 61))
    low_ms, high_ms = order_statistic_interval(Histogram.of(values), 90)
    assert (low_ms, high_ms) == (0.049, 0.059)
    assert order_statistic_interval(Histogram.of(values[:20]), 90)[1] is None
    stalled = order_statistic_interval(Histogram.of(values), 90, in_flight=Histogram.of([900] * 8))
    assert (stalled[0] >= low_ms, stalled[1]) == (True, None)


@pytest.mark.parametrize(
    ("samples", "percent", "confidence", "why"),
    [
        ([1], 0, 0.95, "no interval"),
        ([1], 100, 0.95, "no interval"),
        ([1], 90, 0, "no interval"),
        ([1], 90, 1, "no interval"),
        ([], 90, 0.95, "no samples"),
    ],
)
def test_no_samples_and_what_is_impossible_are_refused(
    samples: list[int], percent: float, confidence: float, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        order_statistic_interval(Histogram.of(samples), percent, confidence)
    if percent == 0:
        for wrong in (0, 101):
            with pytest.raises(ValueError, match="not a percentage"):
                bounded(None, None, wrong)
