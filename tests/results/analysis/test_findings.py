from __future__ import annotations

from collections.abc import Sequence

import pytest

from made_rows import made_points, made_row
from weighbridge.results.analysis.cards import card_words
from weighbridge.results.analysis.findings import Finding, find, headline, overall
from weighbridge.results.analysis.steps.summary import Row, summarize
from weighbridge.results.doubt import Doubt
from weighbridge.results.record.store import RunStore


def row(
    layout: str,
    workers: int,
    rates: Sequence[float],
    *,
    valid: bool = True,
    p90_ms: float | None = 20.0,
    **more: object,
) -> Row:
    given: dict[str, object] = {
        "layout": layout,
        "workers": workers,
        "repeats": len(rates),
        "throughput_ops_s": rates[0] if rates else None,
        "p90_ms": p90_ms,
        "valid": valid and bool(rates),
        "points": made_points(rates, valid=valid),
    }
    return made_row(**{**given, **more})


FEW = " (a claim needs 5 repeats of each side)"


def overalls(found: Sequence[Finding]) -> list[Finding]:
    return [finding for pairs in overall(found).values() for finding in pairs]


def test_one_repeat_gives_a_ratio_and_says_that_it_makes_no_claim() -> None:
    _, cell = find([row("rgw-beast", 8, [180.0], p90_ms=20), row("swift", 8, [100.0], p90_ms=34)])
    assert cell.text == (
        "Provisional: rgw-beast served 1.8× swift’s 1 MB reads at 8 workers, p90 20 ms vs 34 ms; "
        "n = 1: a claim needs 5 repeats of each side."
    )
    _, cell = find([row("rgw-beast", 8, [50.0]), row("swift", 8, [100.0])])
    assert (cell.faster, cell.slower, cell.baseline) == ("swift", "rgw-beast", "rgw-beast")
    assert cell.text.startswith("Provisional: swift served 2.0× rgw-beast’s 1 MB reads")


def test_five_repeats_give_an_interval_and_a_verdict() -> None:
    rates = [100.0, 103.0, 99.0, 101.0, 98.0]
    wide = [100.0, 112.0, 93.0, 104.0, 94.0]
    _, apart = find([row("a", 8, [2 * rate for rate in rates[::-1]]), row("b", 8, rates)])
    _, near = find([row("a", 8, wide), row("b", 8, wide[::-1])])
    _, same = find([row("a", 8, rates), row("b", 8, rates[::-1])])
    assert apart.text.startswith("a serves 2.0× (1.9–2.1) b’s 1 MB reads at 8 workers")
    assert apart.text.endswith("; n = 5.")
    assert "within 1 % of each other" in near.text
    assert near.text.startswith("No difference found (could have found 1.")
    assert ": a and b served 1 MB reads within 1 %" in near.text
    assert near.brief.startswith("a, b: no difference found (0.")
    assert same.brief == "a and b within 1 %"
    assert "n = 5: equivalent, the difference is below the 5 % that matter" in same.text


def test_a_p90_set_by_a_cpu_limit_is_not_compared_and_lower_bounds_have_a_sign() -> None:
    held = Doubt(what="set by the CPU limit", grade="grave", words="held", metrics=("p90",))
    _, limited = find(
        [row("a", 8, [180.0], p90_ms=11), row("b", 8, [100.0], p90_ms=17, doubts=(held,))]
    )
    assert limited.text.startswith("Provisional: a served 1.8× b’s 1 MB reads at 8 workers;")
    _, stalled = find(
        [row("a", 8, [180.0], p90_ms=11), row("b", 8, [100.0], p90_ms=5000, at_least=("p90",))]
    )
    assert "p90 11 ms vs ≥ 5,000 ms" in stalled.text


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (
            row("b", 8, [50.0], valid=False, notes=("not valid", "the driver used 95%")),
            "at 8 workers (b: the driver used 95%).",
        ),
        (row("b", 8, [0.0]), "b: nothing succeeded"),
        # The first line of an error.
        (
            row("b", 8, [], notes=("no COSBench there\nName its folder.",)),
            "(b: no COSBench there).",
        ),
    ],
)
def test_a_cell_without_a_figure_has_no_ratio_and_says_why(other: Row, why: str) -> None:
    total, cell = find([row("a", 8, [100.0]), other])
    assert total.ratio is cell.ratio is None
    assert why in cell.text
    assert headline([total]) == "Nothing could be compared"


def test_over_worker_counts_the_ratio_is_the_geometric_mean_of_the_comparable_ones() -> None:
    few = [row("a", 1, [100.0]), row("b", 1, [50.0]), row("a", 4, [800.0]), row("b", 4, [100.0])]
    total = find([*few, row("a", 8, [9.0]), row("b", 8, [])])[0]
    assert total.ratio is not None
    assert total.ratio.value == pytest.approx(4)
    assert "at 1 to 4 workers (2.0× to 8.0× by worker count)" in total.text
    assert total.text.endswith("; not comparable at 8 workers.")
    assert total.text.count("not comparable") == 1


def test_the_worker_counts_where_the_slower_one_is_ahead_are_named() -> None:
    total = find(
        [row("a", 1, [100.0]), row("b", 1, [200.0]), row("a", 4, [900.0]), row("b", 4, [100.0])]
    )[0]
    assert total.faster == "a"
    assert "but b was ahead at 1" in total.text


def test_every_layout_is_compared_with_the_first() -> None:
    findings = find([row("a", 1, [100.0]), row("b", 1, [200.0]), row("c", 1, [300.0])])
    found = overalls(findings)
    assert [(one.faster, one.slower) for one in found] == [("b", "a"), ("c", "a")]
    assert headline(findings) == f"Provisional: c does more in the requests replayed, by 1.5×{FEW}"


def test_the_headline_counts_kinds_of_requests_and_hides_none() -> None:
    rows = [
        row(name, 1, [rate], workload=str(kind))
        for kind, pair in enumerate(((200.0, 100.0), (100.0, 300.0), (100.0, 101.0), (100.0, 0.0)))
        for name, rate in zip("ab", pair, strict=True)
    ]
    assert headline(find(rows)) == (
        f"Provisional: a does more in 1 of 4 kinds of requests, b in 1{FEW}, 1 too close to "
        "call, 1 could not be compared"
    )


def test_an_insignificant_lead_is_too_close_to_call() -> None:
    noisy = [
        row("a", 1, [100.0, 300.0, 80.0, 250.0, 90.0]),
        row("b", 1, [100.0, 90.0, 110.0, 200.0, 95.0]),
    ]
    assert headline(find(noisy)) == "No layout leads: 1 too close to call"


def test_a_provisional_difference_whose_interval_includes_one_puts_nobody_ahead() -> None:
    doubt = Doubt(what="not steady", grade="mild", words="throughput fell by 30 %")
    for rates, words in (
        ([100.0, 300.0, 80.0, 250.0, 90.0], "1 too close to call"),
        ([300.0, 310.0, 290.0, 305.0, 295.0], "a does more in the requests replayed, by 2.6×"),
    ):
        other = row("b", 1, [100.0, 90.0, 110.0, 200.0, 95.0])
        found = find([row("a", 1, rates, doubts=(doubt,)), other])
        (finding,) = overalls(found)
        assert finding.verdict == "provisional"
        assert headline(found).startswith(
            f"No layout leads: {words}" if "close" in words else f"Provisional: {words}"
        )
        is_open = "close" in words
        assert ("no difference found" in card_words(finding).text) == is_open
        assert ("no difference found" in finding.brief) == is_open


def test_one_layout_alone_has_no_findings() -> None:
    assert find([row("a", 1, [100.0])]) == ()
    assert headline(()) == "Only one layout was measured: there is nothing to compare it with"


def test_two_apis_and_two_workloads_of_equal_requests_are_named() -> None:
    rows = [row(name, 1, [100.0], api=api) for api in ("swift", "s3") for name in "ab"]
    assert ["Swift API" in one.text for one in overalls(find(rows))] == [True, False]
    assert ["S3 API" in one.text for one in overalls(find(rows))] == [False, True]
    rows = [row(name, 1, [100.0], workload=kind) for kind in ("hot", "cold") for name in "ab"]
    assert ["1 MB reads of hot" in one.text for one in overalls(find(rows))] == [True, False]


def test_a_run_with_missing_steps_gives_findings_for_the_rest(run: RunStore) -> None:
    found = find(summarize(run.plan(), run.steps()))
    assert len(overalls(found)) == 3
    assert all(one.ratio is not None for one in overalls(found))
    assert [one.text for one in found if one.ratio is None] == [
        "64 MB reads: rgw-beast and swift cannot be compared at 8 workers (swift: not measured)."
    ]


def binned(low_ms: float, high_ms: float) -> dict[str, object]:
    return {"p90_ms": None, "p90_in": {"low_ms": low_ms, "high_ms": high_ms}, "driver": "cosbench"}


@pytest.mark.parametrize(
    ("fast", "slow", "text"),
    [
        ((10, 20), (30, 40), "p90 in (10, 20] vs (30, 40] ms"),
        ((10, 20), (10, 20), "p90 not distinguishable: both in (10, 20] ms"),
        ((10, 20), (20, 30), "p90 not distinguishable: in (10, 20] and (20, 30] ms"),
        ((15, 25), (20, 30), "p90 not distinguishable: in (15, 25] and (20, 30] ms"),
    ],
)
def test_latencies_reported_in_bins_are_ranked_only_if_the_bins_do_not_touch(
    fast: tuple[int, int], slow: tuple[int, int], text: str
) -> None:
    _, cell = find([row("a", 8, [180.0], **binned(*fast)), row("b", 8, [100.0], **binned(*slow))])
    assert f"at 8 workers, {text}; n = 1" in cell.text


def test_layouts_are_compared_within_a_driver_and_kinds_are_named_by_it() -> None:
    rows = [
        row(name, 1, [rate], driver=driver)
        for driver, rates in (("locust", (200.0, 100.0)), ("cosbench", (90.0, 100.0)))
        for name, rate in zip("ab", rates, strict=True)
    ]
    assert [one.text.split(" at ")[0] for one in overalls(find(rows))] == [
        "Provisional: a served 2.0× b’s 1 MB reads by Locust",
        "Provisional: b served 1.1× a’s 1 MB reads by COSBench",
    ]


def test_a_kind_of_two_drivers_counts_once_and_only_for_what_both_agree_on() -> None:
    kinds = {
        "alike": ((200.0, 100.0), (300.0, 100.0)),
        "apart": ((200.0, 100.0), (100.0, 200.0)),
        "one-close": ((200.0, 100.0), (101.0, 100.0)),
        "close": ((100.0, 101.0), (100.0, 99.0)),
        "lost": ((200.0, 100.0), (100.0, 0.0)),
    }
    rows = [
        row(name, 1, [rate], workload=kind, driver=driver)
        for kind, both in kinds.items()
        for driver, rates in zip(("locust", "cosbench"), both, strict=True)
        for name, rate in zip("ab", rates, strict=True)
    ]
    assert headline(find(rows)) == (
        f"Provisional: a does more in 1 of 5 kinds of requests{FEW}, 1 too close to call, in 2 "
        "the drivers do not agree, 1 could not be compared"
    )
    assert (
        headline(find(rows[:4]))
        == f"Provisional: a does more in the requests replayed, by 2.0× to 3.0×{FEW}"
    )
    assert headline(find(rows[4:8])) == "No layout leads: in 1 the drivers do not agree"
