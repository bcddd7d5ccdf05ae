"""Verdicts and their sentences, on cases that can be computed on paper, and error rates by
simulation.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import pytest

from made_rows import made_point, made_row
from weighbridge.results.analysis.comparing import compare, judge
from weighbridge.results.analysis.comparison import Comparison, Effect, Verdict
from weighbridge.results.analysis.contrast import at_workers, over_all
from weighbridge.results.analysis.findings import find, headline
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.doubt import Doubt, PairDoubt
from weighbridge.results.export.effects import effects_csv
from weighbridge.results.metrics import METRICS
from weighbridge.suites import Bounds

FIVE = (0.99, 1.0, 1.01, 1.0, 1.0)
ABOVE = Doubt(what="above its ceiling", grade="grave", words="more than the disks can do")
WIDE = (0.7, 1.4, 0.9, 1.2, 0.8)


def row(
    layout: str,
    workers: int = 8,
    rates: Sequence[float] = FIVE,
    p90s: Sequence[float | None] | None = None,
    **more: Any,
) -> Row:
    """A row with these repeats; latencies follow from the rates unless given."""
    latencies = [1000 / rate for rate in rates] if p90s is None else list(p90s)
    points = tuple(
        made_point(
            repeat=number, valid=True, throughput_ops_s=rate, p90_ms=p90, samples=1, errors=0
        )
        for number, (rate, p90) in enumerate(zip(rates, latencies, strict=True))
    )
    given = {
        "layout": layout,
        "api": "swift",
        "workload": "small-read",
        "operation": "read",
        "object_size_bytes": 1e6,
        "workers": workers,
        "repeats": len(points),
        "throughput_ops_s": sorted(rates)[len(rates) // 2] if points else None,
        "p90_ms": None
        if not points or None in latencies
        else sorted(value for value in latencies if value)[len(latencies) // 2],
        "valid": bool(points),
        "points": points,
    }
    return made_row(**{**given, **more})


def times(factor: float, values: Sequence[float] = FIVE) -> list[float]:
    return [factor * value for value in values]


def cell(comparison: Comparison, metric: str = "throughput", workers: int | None = 8) -> Effect:
    (found,) = [
        one for one in comparison.effects if one.metric == metric and one.workers == workers
    ]
    return found


@pytest.mark.parametrize(
    ("subject", "verdict", "of_p90"),
    [
        (row("b", rates=times(2.0)), "better", "better"),
        (row("b", rates=times(0.5)), "worse", "worse"),
        (row("b", rates=times(1.03)), "too small to matter", "too small to matter"),
        (row("b", rates=times(1.05)), "not shown", "too small to matter"),
        (row("b", rates=times(1.07)), "better", "too small to matter"),
        (row("b", rates=times(1.1, WIDE)), "not shown", "not shown"),
        (row("b", rates=times(2.0)[:4]), "provisional", "provisional"),
        (row("b", rates=()), "not comparable", "not comparable"),
        (row("b", rates=times(2.0), valid=False), "not comparable", "not comparable"),
        (row("b", rates=times(2.0), steady=False), "not comparable", "not comparable"),
        (row("b", rates=times(2.0), doubts=(ABOVE,)), "not comparable", "not comparable"),
        (row("b", rates=times(2.0), p90s=[None] * 5), "better", "not comparable"),
    ],
)
def test_every_verdict_is_reached_as_documented(
    subject: Row, verdict: Verdict, of_p90: Verdict
) -> None:
    found = compare([row("a"), subject])
    assert (cell(found).verdict, cell(found, "p90").verdict) == (verdict, of_p90)
    assert (cell(found, workers=None).verdict, cell(found, "p90", None).verdict) == (
        verdict,
        of_p90,
    )
    assert (cell(found).ratio is None) == (verdict == "not comparable")


def test_practical_thresholds_are_the_suites() -> None:
    rows = [row("a"), row("b", rates=times(1.2))]
    assert cell(compare(rows)).verdict == "better"
    strict = compare(rows, bounds=Bounds(throughput_ratio=1.3, p90_ratio=1.1))
    assert (cell(strict).verdict, cell(strict, "p90").verdict) == ("too small to matter", "better")
    assert "equivalent, the difference is below the 30 % that matter" in cell(strict).text


def test_a_claim_is_one_sentence_with_interval_latencies_and_repeats() -> None:
    rows = [
        row("swift", rates=times(100), p90s=times(34)),
        row("rgw-beast", rates=times(180), p90s=times(20)),
    ]
    found = compare(rows)
    assert (
        cell(found).text
        == "rgw-beast serves 1.8× (1.8–1.8) swift’s 1 MB reads at 8 workers, p90 20 against 34 "
        "ms; n = 5."
    )
    assert (
        cell(found, "p90").text
        == "swift’s p90 of 1 MB reads at 8 workers is 1.7× (1.7–1.7) rgw-beast’s: 34 against 20 "
        "ms; n = 5."
    )


def test_latencies_that_look_equal_get_another_digit() -> None:
    rows = [
        row("a", rates=times(100), p90s=times(20.4)),
        row("b", rates=times(200), p90s=times(20.1)),
    ]
    assert "p90 20.1 against 20.4 ms" in cell(compare(rows)).text


def test_no_difference_found_says_what_could_have_been_found() -> None:
    found = cell(
        compare([row("a", rates=times(100, WIDE)), row("b", rates=times(110, WIDE[::-1]))])
    )
    assert found.smallest is not None
    assert 1.5 < found.smallest < 2.5
    assert found.text.endswith(
        f"n = 5: no difference found (could have found {found.smallest:.1f}×)."
    )


def test_a_difference_lost_by_correction_is_not_claimed() -> None:
    draw = random.Random(5)
    rows = [
        row(name, workers, [math.exp(draw.gauss(0, 0.05)) for _ in FIVE])
        for workers in range(1, 25)
        for name in "ab"
    ]
    rows[0], rows[1] = row("a", 1, FIVE), row("b", 1, times(1.12, (0.97, 1.02, 1.0, 0.98, 1.04)))
    found = cell(compare(rows), workers=1)
    assert found.p is not None
    assert found.q is not None
    assert found.p < 0.05 < found.q
    assert found.verdict == "not shown"
    assert "no difference found after correction for 48 comparisons" in found.text
    assert cell(compare(rows[:2]), workers=1).verdict == "better"
    assert compare(rows).tests == 48


def test_rank_statistics_are_reported_and_decide_nothing() -> None:
    found = cell(compare([row("a"), row("b", rates=times(2.0))]))
    assert found.rank_p == pytest.approx(0.0109, abs=2e-3)  # ties: by the normal approximation
    assert found.delta == 1.0
    assert cell(compare([row("a"), row("b", rates=times(2.0))]), "p90").delta == -1.0


def test_a_single_repeat_has_a_ratio_and_nothing_else() -> None:
    found = cell(compare([row("a", rates=[100.0]), row("b", rates=[180.0])]))
    assert found.ratio is not None
    assert (found.ratio.low, found.p, found.q, found.smallest, found.verdict) == (
        None,
        None,
        None,
        None,
        "provisional",
    )


# ---- latencies in bins


def binned(layout: str, *bins: tuple[float, float | None]) -> Row:
    points = tuple(
        made_point(
            repeat=number,
            valid=True,
            throughput_ops_s=100.0 + number,
            p90_in={"low_ms": low, "high_ms": high},
        )
        for number, (low, high) in enumerate(bins)
    )
    middle = {"low_ms": bins[len(bins) // 2][0], "high_ms": bins[len(bins) // 2][1]}
    return row(
        layout, driver="cosbench", points=points, repeats=len(points), p90_ms=None, p90_in=middle
    )


@pytest.mark.parametrize(
    ("other", "verdict", "text"),
    [
        (
            [(30, 40)] * 5,
            "worse",
            "p90 of 1 MB reads at 8 workers, a and b: in (10, 20] against (30, 40] ms; n = 5.",
        ),
        (
            [(20, 30)] * 5,
            "not shown",
            "not distinguishable: in (10, 20] and (20, 30] ms; n = 5: no difference found.",
        ),
        (
            [(10, 20)] * 5,
            "not shown",
            "not distinguishable: both in (10, 20] ms; n = 5: no difference found.",
        ),
        (
            [(30, 40)] * 4,
            "provisional",
            "n = 4: provisional, a claim needs 5 repeats of each side.",
        ),
        (
            [(20, 30), (20, 30), (30, 40), (30, 40), (30, 40)],
            "not shown",
            "in (10, 20] against (30, 40] ms; n = 5: no difference found.",
        ),
        (
            [(30, None)] * 5,
            "not comparable",
            "cannot be compared at 8 workers (beyond the last bin).",
        ),
    ],
)
def test_latencies_in_bins_are_ranked_only_if_the_bins_do_not_touch(
    other: list[tuple[float, float | None]], verdict: Verdict, text: str
) -> None:
    found = cell(compare([binned("a", *[(10, 20)] * 5), binned("b", *other)]), "p90")
    assert found.verdict == verdict
    assert text in found.text
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
    assert found.verdict == "not shown"
    assert found.ratio is not None
    assert (found.ratio.low, found.ratio.high) == pytest.approx((520 / 510, 530 / 500))


def test_bins_are_not_merged_over_worker_counts() -> None:
    found = compare([binned("a", *[(10, 20)] * 5), binned("b", *[(30, 40)] * 5)])
    assert cell(found, "p90", None).verdict == "not comparable"
    assert "told in bins" in cell(found, "p90", None).text


# ---- the noise floor


def test_a_control_gives_the_noise_floor_and_is_never_compared_with_others() -> None:
    rows = [
        row("a", 1),
        row("a", 8),
        row("b", 1, times(1.15)),
        row("b", 8, times(1.15)),
        row("t", 1, times(1.1)),
        row("t", 8, times(0.95)),
    ]
    found = compare(rows, {"t": "a"})
    assert found.subjects == ("b",)
    assert {one.subject for one in found.effects} == {"b"}
    throughput, p90 = found.noise
    assert (
        throughput.metric,
        throughput.layout,
        throughput.twin,
        throughput.cells,
        throughput.repeats,
    ) == (
        "throughput",
        "a",
        "t",
        2,
        5,
    )
    # All pairs of a cell are equal: a mean's error is the root mean square of the two cells' means,
    # times t(0.975, 10).
    assert throughput.ratio == pytest.approx(
        math.exp(2.2281 * math.sqrt((math.log(1.1) ** 2 + math.log(0.95) ** 2) / 2)), rel=1e-4
    )
    assert throughput.low < throughput.ratio < throughput.high
    assert (throughput.pairs, throughput.shown) == (10, 2)
    assert p90.ratio == pytest.approx(throughput.ratio)
    assert cell(found).noise == cell(found, workers=None).noise == throughput.ratio
    assert cell(found).text.endswith(
        "; n = 5: no difference found beyond the noise floor of this machine; "
        "the noise floor of this machine is 1.2×."
    )


def test_a_difference_within_the_noise_floor_is_no_claim() -> None:
    found = cell(
        compare([row("a"), row("b", rates=times(1.2)), row("t", rates=times(1.3))], {"t": "a"})
    )
    assert found.verdict == "not shown"
    assert (
        "no difference found beyond the rig’s noise floor; the noise floor of this machine is 2.0×"
        in found.text
    )
    assert headline(
        find([row("a"), row("b", rates=times(1.2)), row("t", rates=times(1.3))], {"t": "a"})
    ).startswith("No layout leads")


def test_the_noise_floor_is_an_estimate_over_all_pairs_and_does_not_grow_with_every_cell() -> None:
    draw = random.Random(7)
    few, many = (
        compare(
            [
                row(name, cell, [math.exp(draw.gauss(0, 0.05)) for _ in FIVE])
                for cell in range(1, cells + 1)
                for name in "at"
            ],
            {"t": "a"},
        ).noise[0]
        for cells in (2, 40)
    )
    # Two sides that scatter by 5 % differ by 7 %; means of five stay within 1.96 times a root of
    # five of that.
    assert many.ratio == pytest.approx(math.exp(1.96 * 0.05 * math.sqrt(2 / 5)), rel=0.015)
    assert many.high / many.low < few.high / few.low
    assert few.low < many.ratio < few.high


def test_an_aa_control_of_a_single_layout_gives_a_noise_floor_and_no_effects() -> None:
    found = compare([row("a"), row("t", rates=times(1.02, FIVE[::-1]))], {"t": "a"})
    assert (found.subjects, found.effects) == ((), ())
    assert [floor.shown for floor in found.noise] == [1, 1]
    assert 1.02 < found.noise[0].ratio < 1.06


def test_an_unmeasured_control_gives_no_noise_floor() -> None:
    found = compare([row("a"), row("b", rates=times(2.0)), row("t", rates=())], {"t": "a"})
    assert found.noise == ()
    assert cell(found).noise is None
    assert "noise floor" not in cell(found).text


def test_without_rows_there_is_nothing_to_compare() -> None:
    with pytest.raises(ValueError, match="without rows"):
        compare([])
    assert find([]) == ()


# ---- findings over several layouts


def test_between_two_layouts_that_were_both_compared_with_a_third_a_lead_needs_their_own_test() -> (
    None
):
    rows = [
        row("a", rates=times(100)),
        row("b", rates=times(150, WIDE)),
        row("c", rates=times(165, WIDE[::-1])),
    ]
    assert headline(find(rows)) == "No layout leads: 1 too close to call"
    rows = [row("a", rates=times(100)), row("b", rates=times(150)), row("c", rates=times(165))]
    assert headline(find(rows)) == "c leads in the requests replayed, by 1.1×"


def test_the_csv_of_effects_has_empty_cells_for_unknowns() -> None:
    lines = effects_csv(
        compare([row("a"), row("b", rates=times(2.0)), row("c", rates=())])
    ).splitlines()
    assert len(lines) == 1 + 2 * 2 * 2
    head = lines[0].split(",")
    better, lost = (dict(zip(head, lines[number].split(","), strict=False)) for number in (2, 6))
    assert (better["workers"], better["ratio"], better["repeats"], better["verdict"]) == (
        "8",
        "2",
        "5",
        "better",
    )
    assert float(better["p"]) < 1e-6
    assert (lost["ratio"], lost["p"], lost["verdict"]) == ("", "", "not comparable")


# ---- doubts


MILD = Doubt(
    what="machine busy", grade="mild", words="other programs used 14 % of this machine’s CPUs"
)
GRAVE = MILD.model_copy(update={"grade": "grave"})


@pytest.mark.parametrize("side", [0, 1])
def test_mild_doubts_make_cells_provisional_and_grave_ones_not_comparable_on_either_side(
    side: int,
) -> None:
    def rows(doubt: Doubt) -> list[Row]:
        return [
            row(name, rates=times(rate), doubts=(doubt,) * (place == side))
            for place, (name, rate) in enumerate((("a", 1), ("b", 2)))
        ]

    mild, grave = compare(rows(MILD)), compare(rows(GRAVE))
    assert (cell(mild).verdict, cell(mild, workers=None).verdict, cell(mild, "p90").verdict) == (
        "provisional",
    ) * 3
    assert cell(mild).doubts == (MILD,)
    assert cell(mild).text.endswith(
        "n = 5: provisional, other programs used 14 % of this machine’s CPUs."
    )
    assert (cell(grave).verdict, cell(grave, workers=None).verdict, cell(grave).ratio) == (
        "not comparable",
        "not comparable",
        None,
    )
    assert headline(find(rows(MILD))) == (
        "Provisional: b does more in the requests replayed, by 2.0× (other programs used 14 % of "
        "this machine’s CPUs)"
    )
    assert (
        headline(find(rows(GRAVE))) == f"Nothing may be ranked, since machine busy: {GRAVE.words}"
    )


def test_a_doubt_about_one_metric_leaves_the_others_alone() -> None:
    doubt = Doubt(
        what="set by the CPU limit",
        grade="grave",
        words="throttled for 50 ms each time",
        metrics=("p90", "max"),
    )
    found = compare([row("a"), row("b", rates=times(2.0), doubts=(doubt,))])
    assert (cell(found).verdict, cell(found, "p90").verdict) == ("better", "not comparable")
    assert "b: throttled for 50 ms each time" in cell(found, "p90").text


def test_different_hosts_make_only_those_two_layouts_not_comparable() -> None:
    differ = Doubt(
        what="hosts differ",
        grade="grave",
        words="CPU of gateway-1 gave 245 events/s under b and 1,395 under a",
    )
    rows = [row("a"), row("b", rates=times(2.0)), row("c", rates=times(3.0))]
    found = compare(rows, between=[PairDoubt(layouts=("b", "a"), doubt=differ)])
    assert {(one.subject, one.verdict) for one in found.effects} == {
        ("b", "not comparable"),
        ("c", "better"),
    }
    lone = find(rows[:2], between=[PairDoubt(layouts=("a", "b"), doubt=differ)])
    assert headline(lone) == f"Nothing may be ranked, since hosts differ: {differ.words}"


def test_every_known_metric_is_compared_by_its_repeats() -> None:
    def timed(layout: str, factor: float) -> Row:
        points = tuple(
            made_point(
                repeat=number,
                valid=True,
                throughput_ops_s=100.0,
                p90_ms=10.0,
                p99_ms=20.0 * factor * value,
                max_ms=90.0 * factor * value,
                first_byte_ms=4.0 * value,
            )
            for number, value in enumerate(FIVE)
        )
        return row(
            layout,
            points=points,
            p90_ms=10.0,
            p99_ms=20.0 * factor,
            max_ms=91.0 * factor,
            first_byte_ms=4.0,
        )

    found = compare([timed("a", 1.0), timed("b", 1.5)])
    verdicts = {one.metric: one.verdict for one in found.effects if one.workers == 8}
    assert verdicts == {
        "throughput": "too small to matter",
        "p90": "too small to matter",
        "p99": "worse",
        "max": "worse",
        "first-byte": "too small to matter",
    }
    assert (
        cell(found, "max").text
        == "b’s max of 1 MB reads at 8 workers is 1.5× (1.5–1.5) a’s: 135 against 90 ms; n = 5."
    )
    assert cell(found, "max").subject_value == pytest.approx(135, rel=1e-3)


def test_a_lead_over_a_runner_up_is_decided_by_those_two_layouts() -> None:
    differ = Doubt(
        what="hosts differ",
        grade="grave",
        words="CPU of gateway-1 gave 780 events/s under b and 1,250 under c",
    )
    rows = [row("a"), row("b", rates=times(1.5)), row("c", rates=times(2.1))]
    assert headline(find(rows)) == "c leads in the requests replayed, by 1.4×"
    apart = find(rows, between=[PairDoubt(layouts=("b", "c"), doubt=differ)])
    assert headline(apart) == "No layout leads: 1 too close to call"
    # A difference within the noise is no lead, between any two layouts.
    near = [
        row("a"),
        row("b", rates=times(2.0)),
        row("c", rates=times(2.2)),
        row("t", rates=times(1.1)),
    ]
    assert headline(find(near, {"t": "a"})) == "No layout leads: 1 too close to call"


def test_an_incomparable_layout_is_named_and_leaves_others_alone() -> None:
    gone = [row("a"), row("b", rates=times(5.0), valid=False), row("c", rates=times(2.0))]
    assert (
        headline(find(gone)) == "c leads in the requests replayed, by 2.0×, b could not be compared"
    )
    doubted = [row("a"), row("b", doubts=(MILD,)), row("c", rates=times(2.0))]
    assert headline(find(doubted)) == "c leads in the requests replayed, by 2.0×"


def test_comparable_at_some_worker_counts_is_provisional_over_all() -> None:
    rows = [
        row("a", 1),
        row("b", 1, times(2.0)),
        row("a", 8),
        row("b", 8, times(2.0), doubts=(GRAVE,)),
    ]
    found = compare(rows)
    assert (cell(found, workers=1).verdict, cell(found, workers=None).verdict) == (
        "better",
        "provisional",
    )
    assert (
        headline(find(rows))
        == "Provisional: b does more in the requests replayed, by 2.0× (not comparable at 8 "
        "workers)"
    )


def test_over_worker_counts_too_few_common_repeats_make_no_claim() -> None:
    complete = row("b", 1, [2.0, 2.02, 1.98, 2.01, 2.0, 1.99, 2.0, 2.0])
    rows = [row("a", 1, (*FIVE, 1.0, 1.01, 0.99)), row("a", 8, (*FIVE, 1.0, 1.01, 0.99)), complete]
    early, late = complete.points[:5], complete.points[3:]
    rows[2] = complete.model_copy(update={"points": early})
    rows.append(complete.model_copy(update={"points": late, "workers": 8}))
    found = compare(rows)
    assert cell(found, workers=8).verdict == "better"
    assert cell(found, workers=None).verdict == "provisional"
    assert "a claim needs 5 repeats" in cell(found, workers=None).text


def test_a_drift_not_ruled_out_raises_the_bar_for_a_claim() -> None:
    # Windows that move by half of their mean, one up and one down, may put a ratio off by 1.25 /
    # 0.75.
    rows = [row("a", drift=0.5), row("b", rates=times(1.7), drift=0.5)]
    open_one = cell(compare(rows))
    assert open_one.verdict == "not shown"
    assert (
        "no difference found (drifts within the windows that are not ruled out could make 1.7× of "
        "it)" in open_one.text
    )
    assert cell(compare([rows[0], row("b", rates=times(1.8), drift=0.5)])).verdict == "better"


# ---- how often it is wrong


@pytest.mark.parametrize("repeats", [5, 6])
def test_at_most_6_in_100_runs_of_a_layout_vs_itself_make_any_claim(
    repeats: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The rank test decides nothing, and takes most of the time.
    monkeypatch.setattr("weighbridge.results.analysis.contrast.rank_p", lambda _a, _b: 1.0)
    draw, claims = random.Random(2014), 0
    for _ in range(1000):
        # Throughput and p90 with independent noise: together they claim more often than with shared
        # noise.
        pairs = [
            (arm("a", workers, repeats, draw), arm("b", workers, repeats, draw))
            for workers in (1, 8)
        ]
        found: list[Effect] = []
        for metric in (METRICS["throughput"], METRICS["p90"]):
            each = [at_workers(metric, *pair) for pair in pairs]
            found += [over_all(each), *each]
        judged, _ = judge(found, Bounds())
        claims += any(one.verdict in ("better", "worse") for one in judged)
    assert claims / 1000 <= 0.06


def arm(layout: str, workers: int, repeats: int, draw: random.Random) -> Row:
    """A row of repeats whose throughput and p90 scatter independently."""
    both = [[math.exp(draw.gauss(0, 0.05)) for _ in ("rate", "p90")] for _ in range(repeats)]
    return row(layout, workers, [rate for rate, _ in both], [p90 for _, p90 in both])
