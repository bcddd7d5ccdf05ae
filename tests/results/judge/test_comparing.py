"""Verdicts and their sentences, on cases that can be computed on paper, and error rates."""

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from compared_rows import FIVE, GRAVE, MILD, WIDE, cell, row, times
from made_rows import altered, changed, made_point, made_points, present
from weighbridge.results.features.conclusions import judged_pairs
from weighbridge.results.figures.doubt import Doubt, PairDoubt, beside
from weighbridge.results.figures.metrics import METRICS
from weighbridge.results.figures.reading import MetricFigure
from weighbridge.results.figures.summary import Row
from weighbridge.results.figures.use import Resource
from weighbridge.results.judge.comparing import (
    TOGETHER,
    compare,
    contrasts,
    correlation,
    judge,
)
from weighbridge.results.judge.comparison import Comparison, Verdict
from weighbridge.results.run.machine import ControlRatio, MachineRun
from weighbridge.results.run.step import UNLIKE
from weighbridge.suites import Bounds, Fault


@pytest.mark.parametrize(
    ("subject", "verdict", "of_p90"),
    [
        (row("b", rates=times(2.0)), "better", "better"),
        (row("b", rates=times(0.5)), "worse", "worse"),
        (row("b", rates=times(1.03)), "too small to matter", "too small to matter"),
        (row("b", rates=times(1.05)), "not significant", "too small to matter"),
        (row("b", rates=times(1.07)), "better", "too small to matter"),
        (row("b", rates=times(1.1, WIDE)), "not significant", "not significant"),
        (row("b", rates=times(1.01, WIDE)), "not significant", "not significant"),
        (row("b", rates=times(2.0)[:4]), "provisional", "provisional"),
        (row("b", rates=()), "not comparable", "not comparable"),
        (row("b", rates=times(2.0), valid=False), "not comparable", "not comparable"),
        (row("b", rates=times(2.0), steady=False), "not comparable", "not comparable"),
        (row("b", rates=times(2.0), doubts=(GRAVE,)), "not comparable", "not comparable"),
        (row("b", rates=times(2.0), p90s=[None] * 5), "better", "not comparable"),
        (row("b", rates=times(2.0), p90s=[5, 5, 5, 5, None], p90_ms=5), "better", "not comparable"),
    ],
)
def test_every_verdict_is_that_documented(subject: Row, verdict: Verdict, of_p90: Verdict) -> None:
    found = compare([row("a"), subject])
    assert (cell(found).verdict, cell(found, "p90").verdict) == (verdict, of_p90)
    assert cell(found, workers=None).verdict == verdict
    assert cell(found, "p90", None).verdict == of_p90
    assert (cell(found).ratio is None) == (verdict == "not comparable")
    assert (" of each other" in cell(found).text) == (verdict == "too small to matter")


def test_practical_thresholds_are_the_suites() -> None:
    rows = [row("a"), row("b", rates=times(1.2))]
    assert cell(compare(rows)).verdict == "better"
    strict = compare(rows, bounds=Bounds(throughput_ratio=1.3, p90_ratio=1.1))
    assert (cell(strict).verdict, cell(strict, "p90").verdict) == ("too small to matter", "better")
    assert "equivalent: the difference is below the 30 % that matter" in cell(strict).text


def test_a_claim_is_one_sentence_with_interval_latencies_and_repeats() -> None:
    pair = [row("swift", p90s=times(34)), row("rgw-beast", rates=times(1.8), p90s=times(20))]
    found = compare(pair)
    reads = "1 MB reads with 8 workers"
    assert cell(found).text == (
        f"rgw-beast is 1.8× (1.8 to 1.8) as fast as swift at {reads}, p90 20 ms vs 34 ms; n = 5."
    )
    assert cell(found, "p90").text == (
        f"swift’s p90 of {reads} is 1.7× (1.7 to 1.7) rgw-beast’s: 34 ms vs 20 ms; n = 5."
    )


def test_latencies_that_look_equal_get_another_digit() -> None:
    pair = [row("a", p90s=times(20.4)), row("b", rates=times(2), p90s=times(20.1))]
    assert "p90 20.1 ms vs 20.4 ms" in cell(compare(pair)).text


def test_no_difference_found_says_what_could_have_been_found() -> None:
    found = cell(compare([row("a", rates=WIDE), row("b", rates=times(1.1, WIDE[::-1]))]))
    assert found.smallest is not None
    assert 1.5 < found.smallest < 2.5
    start = f"No difference found (could have found {found.smallest:.1f}×): b was 1.1×"
    assert found.text.startswith(start)


def test_a_difference_lost_by_correction_is_not_claimed() -> None:
    draw = random.Random(5)
    rows = [
        row(name, workers, [math.exp(draw.gauss(0, 0.05)) for _ in FIVE])
        for workers in range(1, 25)
        for name in "ab"
    ]
    rows[0], rows[1] = row("a", 1, FIVE), row("b", 1, times(1.12, (0.97, 1.02, 1.0, 0.98, 1.04)))
    found = cell(compare(rows), workers=1)
    assert present(found.p) < 0.05 < present(found.q)
    assert found.verdict == "not significant"
    assert "No difference found after correction for 48 comparisons: " in found.text
    assert cell(compare(rows[:2]), workers=1).verdict == "better"
    assert compare(rows).tests == 48


def test_the_interval_over_counts_is_around_the_ratio_of_all_repeats() -> None:
    """Also of one that lacks a count, and is in no test."""
    at_one, at_two = (FIVE, [*times(2.0)[:4], 3.0]), (FIVE, FIVE[:4])
    found = cell(compare(two_layouts(at_one, at_two)), workers=None)
    middle = math.sqrt(math.prod(ratio for _, ratio in found.by_count))
    ratio = present(found.ratio)
    assert middle > 1.03 * math.sqrt(2)
    ends = math.sqrt(present(ratio.low) * present(ratio.high))
    assert (ratio.value, ends) == pytest.approx((middle, middle))


def test_rank_statistics_are_reported_and_decide_nothing() -> None:
    found = compare([row("a"), row("b", rates=times(2.0))])
    assert cell(found).rank_p == pytest.approx(0.0109, abs=2e-3)  # ties: normal approximation
    assert (cell(found).delta, cell(found, "p90").delta) == (1.0, -1.0)


def test_a_single_repeat_has_a_ratio_and_nothing_else() -> None:
    found = cell(compare([row("a", rates=[100.0]), row("b", rates=[180.0])]))
    assert present(found.ratio).low is None
    assert (found.p, found.q, found.smallest, found.verdict) == (None, None, None, "provisional")
    with pytest.raises(ValueError, match="no rows to compare"):
        compare([])


@pytest.mark.parametrize("side", [0, 1])
def test_mild_doubts_make_cells_provisional_and_grave_not_comparable_on_any_side(side: int) -> None:
    def rows(doubt: Doubt) -> list[Row]:
        return [
            row(name, rates=times(rate), doubts=(doubt,) * (place == side))
            for place, (name, rate) in enumerate((("a", 1), ("b", 2)))
        ]

    mild, grave = compare(rows(MILD)), compare(rows(GRAVE))
    sides = (cell(mild), cell(mild, workers=None), cell(mild, "p90"))
    assert {one.verdict for one in sides} == {"provisional"}
    assert cell(mild).doubts == (MILD,)
    assert cell(mild).text.endswith("; caveat: other programs used 14 % of this machine’s CPUs.")
    assert cell(grave).verdict == "not comparable"
    assert (cell(grave, workers=None).verdict, cell(grave).ratio) == ("not comparable", None)


def test_a_doubt_about_one_metric_leaves_the_others_alone() -> None:
    limit = {"what": "set by the CPU limit", "words": "throttled for 50 ms each time"}
    doubt = altered(GRAVE, **limit, metrics=("p90", "max"))
    found = compare([row("a"), row("b", rates=times(2.0), doubts=(doubt,))])
    assert (cell(found).verdict, cell(found, "p90").verdict) == ("better", "not comparable")
    assert "b: throttled for 50 ms each time" in cell(found, "p90").text


def test_different_hosts_make_only_those_two_layouts_not_comparable() -> None:
    differ = Doubt(what="hosts differ", grade="grave", words="CPU of gateway-1")
    rows = [row("a"), row("b", rates=times(2.0)), row("c", rates=times(3.0))]
    found = compare(rows, between=[PairDoubt(layouts=("b", "a"), doubt=differ)])
    verdicts = {(one.subject, one.verdict) for one in found.effects}
    assert verdicts == {("b", "not comparable"), ("c", "better")}


def test_every_known_metric_is_compared_by_its_repeats() -> None:
    def timed(layout: str, factor: float) -> Row:
        def figures(value: float) -> dict[str, float]:
            slower = {"p99_ms": 20.0 * factor * value, "max_ms": 90.0 * factor * value}
            return {"p90_ms": 10.0, "first_byte_ms": 4.0 * value, **slower}

        points = tuple(
            changed(point, **figures(value))
            for point, value in zip(made_points([100.0] * 5), FIVE, strict=True)
        )
        return row(layout, points=points, **{**figures(1.0), "max_ms": 91.0 * factor})

    found = compare([timed("a", 1.0), timed("b", 1.5)])
    verdicts = {one.metric: one.verdict for one in found.effects if one.workers == 8}
    assert verdicts == {
        "throughput": "too small to matter",
        "p90": "too small to matter",
        "p99": "worse",
        "max": "worse",
        "first-byte": "too small to matter",
    }
    said = cell(found, "max").text
    assert " is 1.5× (1.5 to 1.5) a’s: 135 ms vs 90 ms; n = 5; secondary." in said
    assert cell(found, "max").subject_value == pytest.approx(135, rel=1e-3)


def test_others_metrics_are_corrected_by_themselves() -> None:
    """However many p99s are compared, a throughput is claimed as without them."""
    rates = times(1.13, WIDE)
    pair = [row("a"), row("b", rates=rates)]

    def timed(layout: str, workers: int) -> Row:
        points = tuple(changed(point, p99_ms=20.0) for point in made_points(FIVE))
        return row(layout, workers, points=points, p99_ms=20.0)

    lone = cell(compare(pair))
    among = compare([*pair, *(timed(name, count) for name in "ab" for count in range(20, 40))])
    primaries = [e for e in among.effects if e.metric == "throughput" and e.workers]
    assert lone.q is not None
    assert cell(among).q == pytest.approx(min(1.0, lone.q * 2 * len(primaries) / lone.tests))


def disturbed(layout: str, factor: float, lost: float, *spoilt: int) -> Row:
    """Repeats of which some were beside programs that used half of the CPUs, at a loss."""
    rates = [100 * factor * rate * (1 - lost * (n in spoilt)) for n, rate in enumerate(FIVE)]
    others = [0.5 if n in spoilt else 0.01 for n in range(len(FIVE))]
    each = zip(made_points(rates), others, strict=True)
    points = tuple(altered(point, others=share) for point, share in each)
    return row(layout, points=points, doubts=tuple(beside(others)))


@pytest.mark.parametrize(
    ("spoilt", "lost", "verdict", "value", "adjusted"),
    [
        # A neighbour that costs nothing spoils nothing; what one costs is taken out.
        ((1,), 0.0, "better", 1.5, 1.0),
        ((1, 3), 0.4, "better", 1.5, 1.2),
        # More than half of a side is a caveat.
        ((0, 1, 3), 0.4, "provisional", 1.5, 1.35),
    ],
)
def test_what_other_programs_cost_is_estimated_and_taken_out(
    spoilt: tuple[int, ...], lost: float, verdict: str, value: float, adjusted: float
) -> None:
    quiet = [row(name, n, times(of)) for name, of in (("a", 1.0), ("b", 1.5)) for n in (1, 2)]
    found = cell(compare([*quiet, disturbed("a", 1.0, 0.0), disturbed("b", 1.5, lost, *spoilt)]))
    assert found.verdict == verdict
    assert present(found.ratio).value == pytest.approx(value, rel=0.06)
    assert found.adjusted == pytest.approx(adjusted, rel=0.1)
    assert ("for what other programs used" in found.text) == (adjusted > 1.01)


@pytest.mark.parametrize(
    ("quiet", "verdict"), [(1.02, "provisional"), (0.5, "provisional"), (1.4, "better")]
)
def test_a_claim_that_rests_on_disturbed_windows_is_provisional(quiet: float, verdict: str) -> None:
    claimed = cell(compare([row("a"), row("b", rates=times(1.5))]))
    (effect,), _ = judge([altered(claimed, quiet=quiet)], Bounds())
    assert effect.verdict == verdict
    assert any("without them" in doubt.words for doubt in effect.doubts) == (quiet != 1.4)


def limited(row: Row, *kinds: tuple[str, str]) -> Row:
    found = [
        {"what": what, "host": "h", "tier": tier, "share": 0.9, "limit": "1"}
        for what, tier in kinds
    ]
    idle = {"what": "memory", "host": "h", "tier": "gateway", "share": 0.1, "limit": "1"}
    resources = tuple(Resource.model_validate(one) for one in (*found, idle))
    return altered(row, resources=resources)


def test_a_verdict_says_what_limited_each_side_where_that_is_known() -> None:
    a, b, disk = row("a"), row("b", rates=times(2.0)), ("disk", "storage")
    said = [
        cell(compare(rows)).text.split("; n = 5.")[1]
        for rows in (
            [a, b],
            [limited(a), limited(b)],
            [limited(a, disk), limited(b, disk)],
            [limited(a, disk), limited(b, ("CPU", "gateway"))],
            [limited(a, disk), limited(b)],
            [a, limited(b)],
        )
    ]
    assert said == [
        "",
        " No resource was seen at its limit.",
        " Both were limited by the stores’ disks.",
        " Limited by the stores’ disks (a), the gateway’s CPU (b).",
        " Limited by the stores’ disks (a), nothing seen (b).",
        " No resource was seen at its limit (b).",
    ]
    # Over all worker counts they are those at the highest.
    cpu, few = ("CPU", "gateway"), [row(name, workers=2) for name in "ab"]
    rows = [few[0], limited(a, cpu), few[1], limited(b, cpu)]
    text = cell(compare(rows), workers=None).text
    assert text.endswith(" With 8 workers both were limited by the gateway’s CPU.")


READ = "Bytes read from the measured disks, relative to those answered"


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ((98.4, 2.0), f" {READ}: 98 % (a), 2 % (b)."),
        ((0.0, 131.0), f" {READ}: 0 % (a), 131 % (b)."),
        ((50.0, 10.0), f" {READ}: 50 % (a), 10 % (b)."),
        ((49.0, 2.0), ""),
        ((98.0, 11.0), ""),
        ((98.0, 97.0), ""),
        ((98.0, None), ""),
        ((None, None), ""),
    ],
)
def test_a_verdict_says_where_reads_came_from_if_one_side_reads_from_disk_and_the_other_does_not(
    shares: tuple[float | None, float | None], said: str
) -> None:
    rows = [
        of_disk(one, share)
        for one, share in zip((row("a"), row("b", rates=times(2.0))), shares, strict=True)
    ]
    assert cell(compare(rows)).text.split("; n = 5.")[1] == said


def of_disk(one: Row, share: float | None) -> Row:
    figures = {} if share is None else {"from-disk": MetricFigure(value=share)}
    return altered(one, figures={**one.figures, **figures})


@pytest.mark.parametrize(
    ("times_s", "verdict"),
    [
        ((0.99, 1.0), "not comparable"),
        ((1.9, 2.0), "not comparable"),
        ((2.0, 3.0), "not comparable"),
        ((2.0, 4.0), "worse"),
        ((1.0, 29.0), "worse"),
        ((29.0, 1.0), "better"),
        ((20.0, 20.5), "too small to matter"),
    ],
)
def test_times_of_whole_seconds_differ_or_are_alike_only_if_a_second_less_changes_nothing(
    times_s: tuple[float, float], verdict: str
) -> None:
    rows = [detected(name, at) for name, at in zip("ab", times_s, strict=True)]
    found = compare(rows)
    assert cell(found, "detect").verdict == verdict
    known = "resolution: time to detect is known to 1 s only"
    assert (known in cell(found, "detect").text) == (verdict == "not comparable")


def detected(layout: str, detect_s: float) -> Row:
    """A row of repeats of a fault that was detected after about so long."""
    points = tuple(
        made_point(repeat=number, valid=True, detect_s=detect_s * factor)
        for number, factor in enumerate(FIVE)
    )
    fault = Fault(at=10.0, kill="gateway-daemon")
    return row(layout, points=points, detect_s=detect_s, fault=fault)


def earlier(*offsets: float, error: float = 0.0) -> list[MachineRun]:
    ratios = [ControlRatio(metric="throughput", difference=one, error=error) for one in offsets]
    return [MachineRun(run_id=str(n), machine="m", controls=(r,)) for n, r in enumerate(ratios)]


def test_a_control_is_compared_with_its_layout_alone_and_shows_what_it_differs_by() -> None:
    rows = [
        row(name, workers, times(factor))
        for name, factors in {"a": (1, 1), "b": (1.15, 1.15), "t": (1.1, 0.95)}.items()
        for workers, factor in zip((1, 8), factors, strict=True)
    ]
    found = compare(rows, {"t": "a"})
    assert found.subjects == ("b",)
    assert {one.subject for one in found.effects} == {"b"}
    throughput, p90 = found.noise
    assert (throughput.metric, throughput.layout, throughput.control) == ("throughput", "a", "t")
    # The cells of a repeat share a deployment: one mean each.
    assert (throughput.cells, throughput.ratio.repeats, throughput.runs) == (2, 5, 1)
    assert throughput.ratio.value == pytest.approx(math.sqrt(1.1 * 0.95))
    assert p90.ratio.value == pytest.approx(1 / throughput.ratio.value)
    assert (throughput.floor, cell(found).noise) == (None, None)
    assert throughput.words.endswith("is not known yet: 2 more runs show it.")
    assert cell(found).verdict == "better"


@pytest.mark.parametrize(
    ("offsets", "error", "floor"),
    [
        # t(0.975, 4) times the root mean square, of which the repeats' own errors are no part.
        ((0.05, -0.05, 0.05), 0.0, math.exp(2.776 * 0.05 * math.sqrt(3 / 4))),
        ((0.05, -0.05, 0.05), 0.05, 1.0),
        ((0.05,), 0.0, None),
    ],
)
def test_what_runs_of_a_machine_differ_by_is_in_every_interval(
    offsets: tuple[float, ...], error: float, floor: float | None
) -> None:
    rows = [row("a"), row("b", rates=times(1.15)), row("t", rates=times(1.0))]
    found = compare(rows, {"t": "a"}, earlier=earlier(*offsets, error=error))
    noise = found.noise[0]
    assert noise.runs == len(offsets) + 1
    assert (noise.floor is None) == (floor is None)
    effect, alone = cell(found), cell(compare(rows[:2]))
    if floor is not None:
        assert noise.floor == pytest.approx(floor, rel=2e-3)
    wider = present(present(effect.ratio).high) / present(present(alone.ratio).high)
    assert (wider > 1.05) == (floor is not None and floor > 1)
    assert effect.verdict == ("not significant" if wider > 1.05 else "better")


def test_an_unmeasured_control_gives_nothing_and_one_of_a_single_layout_is_no_finding() -> None:
    found = compare([row("a"), row("t", rates=times(1.02, FIVE[::-1]))], {"t": "a"})
    assert (found.subjects, found.effects) == ((), ())
    assert [floor.shown for floor in found.noise] == [True, True]
    found = compare([row("a"), row("b", rates=times(2.0)), row("t", rates=())], {"t": "a"})
    assert (found.noise, cell(found).noise) == ((), None)
    assert "noise floor" not in cell(found).text


def test_repeats_of_a_control_that_was_unlike_its_layout_are_no_pairs() -> None:
    note = f"{UNLIKE}: no objects of mixed"
    control = row("t", rates=times(1.02, FIVE[::-1]))

    def unlike(count: int) -> Comparison:
        first = tuple(changed(one, notes=(note,)) for one in control.points[:count])
        points = (*first, *control.points[count:])
        return compare([row("a"), row("b"), changed(control, points=points)], {"t": "a"})

    assert {floor.ratio.repeats for floor in unlike(2).noise} == {3}
    none = unlike(5)
    assert none.noise == ()
    (why,) = none.unused
    assert why.endswith(f": t, the A/A control of a, could not be used ({note}).")


Sides = tuple[Sequence[float], Sequence[float]]


def two_layouts(*cells: Sides) -> list[Row]:
    """Two layouts, a cell for each worker count."""
    return [
        row(name, workers, rates=rates)
        for workers, sides in enumerate(cells, start=1)
        for name, rates in zip("ab", sides, strict=True)
    ]


def test_comparing_within_blocks_is_students_paired_test(stats: Any) -> None:
    one, other = [110.0, 95.0, 130.0, 120.0, 100.0], [100.0, 90.0, 115.0, 118.0, 93.0]
    theirs = stats.ttest_rel(np.log(one), np.log(other))
    before, after = rows = two_layouts((other, one))
    (pair,) = judged_pairs([("throughput", before, after)], rows, Bounds())
    for effect in (cell(compare(rows), workers=1), pair):
        assert (effect.p, present(effect.tested).freedom) == (pytest.approx(theirs.pvalue), 4.0)
        ratio, ends = present(effect.ratio), np.exp(theirs.confidence_interval(0.95))
        assert ratio.repeats == 5
        assert (ratio.low, ratio.high) == pytest.approx(tuple(ends))


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [
        ([([1, 2, 4], [10, 20, 40])], 1.0),
        ([([1, 2, 4], [4, 2, 1])], -1.0),
        # A second cell with the opposite correlation cancels it; levels do not matter.
        ([([1, 2], [1, 2]), ([70, 140], [2, 1])], 0.0),
        ([([5, 5], [7, 9])], 0.0),
        ([([5], [7])], 0.0),
        ([], 0.0),
    ],
)
def test_the_correlation_is_that_within_blocks_over_all_cells(
    cells: list[Sides], wanted: float
) -> None:
    assert correlation(two_layouts(*cells), "a", "b") == pytest.approx(wanted)
    logs = np.random.default_rng(3).normal(size=(2, 9))
    rows = two_layouts((list(np.exp(logs[0])), list(np.exp(logs[1]))))
    assert correlation(rows, "a", "b") == pytest.approx(np.corrcoef(logs)[0, 1])


def drawn(seed: tuple[int, int], blocks: float) -> list[Row]:
    """Twelve cells of a layout vs itself, with block effects and 5 % scatter of each step."""
    draw = np.random.default_rng(seed)
    common = blocks * draw.normal(size=5)
    logs = 0.05 * draw.normal(size=(12, 2, 5))
    return two_layouts(*((list(np.exp(a + common)), list(np.exp(b + common))) for a, b in logs))


@pytest.mark.parametrize("blocks", [0.0, 0.05, 0.1])
def test_intervals_by_the_rule_hold_truth_in_95_of_100_whatever_blocks_do(
    blocks: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The rank test decides nothing, and takes most of the time.
    monkeypatch.setattr("weighbridge.results.judge.comparing.rank_p", lambda _a, _b: 1.0)
    held = [
        present(effect.ratio).open
        for run in range(150)
        for effect in contrasts(
            drawn((4, run), blocks), [("a", "b")], in_blocks=True, metrics=[METRICS["throughput"]]
        )
        if effect.workers is not None
    ]
    assert len(held) == 150 * 12
    assert 0.93 <= sum(held) / len(held) <= 0.985


def test_the_rule_pairs_where_the_machine_drifts_and_does_not_where_it_is_quiet() -> None:
    def share(blocks: float) -> float:
        found = [correlation(drawn((5, run), blocks), "a", "b") for run in range(150)]
        return sum(one >= TOGETHER for one in found) / 150

    assert share(0.0) <= 0.01
    assert share(0.1) >= 0.85
