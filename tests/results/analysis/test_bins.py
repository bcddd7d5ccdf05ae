"""Comparing latencies that are known as bins."""

from __future__ import annotations

import pytest

from compared_rows import cell, row
from made_rows import made_point
from weighbridge.results.analysis.comparing import compare
from weighbridge.results.analysis.comparison import Verdict
from weighbridge.results.analysis.steps.summary import Row


def binned(layout: str, *bins: tuple[float, float | None]) -> Row:
    within = [{"low_ms": low, "high_ms": high} for low, high in bins]
    points = tuple(
        made_point(repeat=number, valid=True, throughput_ops_s=100.0 + number, p90_in=one)
        for number, one in enumerate(within)
    )
    middle = within[len(bins) // 2]
    return row(
        layout, driver="cosbench", points=points, repeats=len(points), p90_ms=None, p90_in=middle
    )


@pytest.mark.parametrize(
    ("other", "verdict", "text"),
    [
        ([(30, 40)] * 5, "worse", "in (10, 20] vs (30, 40] ms; n = 5."),
        ([(20, 30)] * 5, "not significant", "not distinguishable: in (10, 20] and (20, 30] ms"),
        ([(10, 20)] * 5, "not significant", "not distinguishable: both in (10, 20] ms; n = 5."),
        ([(30, 40)] * 4, "provisional", "n = 4: a claim needs 5 repeats"),
        ([(20, 30)] * 2 + [(30, 40)] * 3, "not significant", "in (10, 20] vs (30, 40] ms; n = 5."),
        ([(30, None)] * 5, "not comparable", "(beyond the last bin)"),
    ],
)
def test_latencies_in_bins_are_ranked_only_if_the_bins_do_not_touch(
    other: list[tuple[float, float | None]], verdict: Verdict, text: str
) -> None:
    found = cell(compare([binned("a", *[(10, 20)] * 5), binned("b", *other)]), "p90")
    assert found.verdict == verdict
    assert text in found.text
    assert found.text.startswith("No difference found: ") == (verdict == "not significant")
    assert (found.baseline_value, found.subject_value) == (None, None)


def test_the_test_of_bins_is_the_worst_that_latencies_within_them_allow() -> None:
    apart = cell(compare([binned("a", *[(10, 20)] * 5), binned("b", *[(30, 40)] * 5)]), "p90")
    assert apart.p == pytest.approx(2 / 252)
    # One of five touches all of a: of 25 pairs 20 are text apart, 5 may be lost. P(U <= 5) = 19/252
    # by counting, two-sided.
    near = cell(
        compare([binned("a", *[(10, 20)] * 5), binned("b", (20, 30), *[(30, 40)] * 4)]), "p90"
    )
    assert near.p == pytest.approx(2 * 19 / 252)
    assert near.delta == pytest.approx(0.8)


def test_a_gap_between_bins_that_may_be_too_small_to_matter_is_not_claimed() -> None:
    found = cell(compare([binned("a", *[(500, 510)] * 5), binned("b", *[(520, 530)] * 5)]), "p90")
    assert found.verdict == "not significant"
    assert found.ratio is not None
    assert (found.ratio.low, found.ratio.high) == pytest.approx((520 / 510, 530 / 500))


def test_bins_are_not_merged_over_worker_counts() -> None:
    found = compare([binned("a", *[(10, 20)] * 5), binned("b", *[(30, 40)] * 5)])
    assert cell(found, "p90", None).verdict == "not comparable"
    assert "reported in bins" in cell(found, "p90", None).text
