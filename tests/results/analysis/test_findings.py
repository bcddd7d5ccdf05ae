"""Findings over several layouts and worker counts: who leads, and effects as CSV."""

import math
from collections.abc import Collection, Sequence

import pytest

from compared_rows import FIVE, GRAVE, MILD, WIDE, cell, row, times
from fake_run import short_run
from made_rows import altered, made_point, made_points, made_row, present
from made_up import fake_measurement
from weighbridge.results.analysis.cards import card_words
from weighbridge.results.analysis.comparing import compare
from weighbridge.results.analysis.comparison import Comparison, Verdict
from weighbridge.results.analysis.factor_cost import FactorCost, factor_costs, variant_groups
from weighbridge.results.analysis.findings import Finding, find, headline, overall
from weighbridge.results.analysis.reasons import remedy
from weighbridge.results.analysis.steps.summary import Row, summarize
from weighbridge.results.analysis.steps.use import StepUse
from weighbridge.results.analysis.steps.visit import JudgedStep, Point
from weighbridge.results.doubt import Doubt, PairDoubt, What
from weighbridge.results.features.compare_runs import runs_effects
from weighbridge.results.record.measurement import RAN_OUT, Load
from weighbridge.results.record.resolved import ResolvedPlan
from weighbridge.results.record.step import StepKey, StepResult
from weighbridge.results.record.store import RunStore
from weighbridge.results.report.factor_table import factor_lines, factor_sections, factor_sentences
from weighbridge.results.statistics import Ratio
from weighbridge.suites import ENCRYPTION, SIGNING, Suite


def test_between_two_layouts_that_were_compared_with_a_third_a_lead_needs_their_own_test() -> None:
    rows = [
        row("a", rates=times(100)),
        row("b", rates=times(150, WIDE)),
        row("c", rates=times(165, WIDE[::-1])),
    ]
    assert headline(find(rows)) == "No layout leads: 1 too close to call"
    rows = [row("a", rates=times(100)), row("b", rates=times(150)), row("c", rates=times(165))]
    assert headline(find(rows)) == "c leads in the requests replayed, by 1.1×"


def test_the_csv_of_effects_has_empty_cells_for_unknowns() -> None:
    comparison = compare([row("a"), row("b", rates=times(2.0)), row("c", rates=())])
    lines = runs_effects(comparison, "day-1").csv.splitlines()
    assert len(lines) == 1 + 2 * 2, "those over all of one worker count are not there twice"
    head = lines[0].split(",")
    better, lost = (dict(zip(head, lines[number].split(","), strict=False)) for number in (1, 3))
    assert better["workers"] == "8"
    assert (better["ratio"], better["repeats"], better["verdict"]) == ("2.0", "5", "better")
    assert float(better["p"]) < 1e-6
    assert (lost["ratio"], lost["p"], lost["verdict"]) == ("", "", "not comparable")


def test_a_lead_over_a_runner_up_is_decided_by_those_two_layouts() -> None:
    differ = Doubt(what="hosts differ", grade="grave", words="CPU of gateway-1")
    rows = [row("a"), row("b", rates=times(1.5)), row("c", rates=times(2.1))]
    assert headline(find(rows)) == "c leads in the requests replayed, by 1.4×"
    apart = find(rows, between=[PairDoubt(layouts=("b", "c"), doubt=differ)])
    assert headline(apart) == "No layout leads: 1 too close to call"
    # A difference within the noise is no lead, between any two layouts.
    near = [row(name, rates=times(of)) for name, of in (("a", 1), ("b", 2), ("c", 2.2), ("t", 1.1))]
    assert headline(find(near, {"t": "a"})) == "No layout leads: 1 too close to call"


def test_an_incomparable_layout_is_named_and_leaves_others_alone() -> None:
    gone = [row("a"), row("b", rates=times(5.0), valid=False), row("c", rates=times(2.0))]
    assert (
        headline(find(gone)) == "c leads in the requests replayed, by 2.0×, b could not be compared"
    )
    doubted = [row("a"), row("b", doubts=(MILD,)), row("c", rates=times(2.0))]
    assert headline(find(doubted)) == "c leads in the requests replayed, by 2.0×"


def test_comparable_at_some_worker_counts_is_provisional_over_all() -> None:
    twice = row("b", 1, times(2.0))
    rows = [row("a", 1), twice, row("a", 8), row("b", 8, times(2.0), doubts=(GRAVE,))]
    found = compare(rows)
    assert cell(found, workers=1).verdict == "better"
    assert cell(found, workers=None).verdict == "provisional"
    assert headline(find(rows)).startswith("Provisional: b does more ")
    assert headline(find(rows)).endswith("by 2.0× (not comparable at 8 workers)")


def test_over_worker_counts_too_few_common_repeats_make_no_claim() -> None:
    complete = row("b", 1, [2.0, 2.02, 1.98, 2.01, 2.0, 1.99, 2.0, 2.0])
    rows = [row("a", 1, (*FIVE, 1.0, 1.01, 0.99)), row("a", 8, (*FIVE, 1.0, 1.01, 0.99)), complete]
    early, late = complete.points[:5], complete.points[3:]
    rows[2] = altered(complete, points=early)
    rows.append(altered(complete, points=late, workers=8))
    found = compare(rows)
    assert cell(found, workers=8).verdict == "better"
    assert cell(found, workers=None).verdict == "provisional"
    assert "a claim needs 5 repeats" in cell(found, workers=None).text


def row_of(
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
    _, cell = find(
        [row_of("rgw-beast", 8, [180.0], p90_ms=20), row_of("swift", 8, [100.0], p90_ms=34)]
    )
    assert cell.text == (
        "Provisional: rgw-beast served 1.8× swift’s 1 MB reads at 8 workers, p90 20 ms vs 34 ms; "
        "n = 1: a claim needs 5 repeats of each side."
    )
    _, cell = find([row_of("rgw-beast", 8, [50.0]), row_of("swift", 8, [100.0])])
    assert (cell.faster, cell.slower, cell.baseline) == ("swift", "rgw-beast", "rgw-beast")
    assert cell.text.startswith("Provisional: swift served 2.0× rgw-beast’s 1 MB reads")


def test_five_repeats_give_an_interval_and_a_verdict() -> None:
    rates = [100.0, 103.0, 99.0, 101.0, 98.0]
    wide = [100.0, 112.0, 93.0, 104.0, 94.0]
    _, apart = find([row_of("a", 8, [2 * rate for rate in rates[::-1]]), row_of("b", 8, rates)])
    _, near = find([row_of("a", 8, wide), row_of("b", 8, wide[::-1])])
    _, same = find([row_of("a", 8, rates), row_of("b", 8, rates[::-1])])
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
        [row_of("a", 8, [180.0], p90_ms=11), row_of("b", 8, [100.0], p90_ms=17, doubts=(held,))]
    )
    assert limited.text.startswith("Provisional: a served 1.8× b’s 1 MB reads at 8 workers;")
    _, stalled = find(
        [
            row_of("a", 8, [180.0], p90_ms=11),
            row_of("b", 8, [100.0], p90_ms=5000, at_least=("p90",)),
        ]
    )
    assert "p90 11 ms vs ≥ 5,000 ms" in stalled.text


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (
            row_of("b", 8, [50.0], valid=False, notes=("not valid", "the driver used 95%")),
            "at 8 workers (b: the driver used 95%).",
        ),
        (row_of("b", 8, [0.0]), "b: nothing succeeded"),
        # The first line of an error.
        (
            row_of("b", 8, [], notes=("no COSBench there\nName its folder.",)),
            "(b: no COSBench there).",
        ),
    ],
)
def test_a_cell_without_a_figure_has_no_ratio_and_says_why(other: Row, why: str) -> None:
    total, cell = find([row_of("a", 8, [100.0]), other])
    assert total.ratio is cell.ratio is None
    assert why in cell.text
    assert headline([total]) == "Nothing could be compared"


def test_over_worker_counts_the_ratio_is_the_geometric_mean_of_the_comparable_ones() -> None:
    few = [
        row_of("a", 1, [100.0]),
        row_of("b", 1, [50.0]),
        row_of("a", 4, [800.0]),
        row_of("b", 4, [100.0]),
    ]
    total = find([*few, row_of("a", 8, [9.0]), row_of("b", 8, [])])[0]
    assert present(total.ratio).value == pytest.approx(4)
    assert "at 1 to 4 workers (2.0× to 8.0× by worker count)" in total.text
    assert total.text.endswith("; not comparable at 8 workers.")
    assert total.text.count("not comparable") == 1


def test_the_worker_counts_where_the_slower_one_is_ahead_are_named() -> None:
    total = find(
        [
            row_of("a", 1, [100.0]),
            row_of("b", 1, [200.0]),
            row_of("a", 4, [900.0]),
            row_of("b", 4, [100.0]),
        ]
    )[0]
    assert total.faster == "a"
    assert "but b was ahead at 1" in total.text


def test_every_layout_is_compared_with_the_first() -> None:
    findings = find([row_of("a", 1, [100.0]), row_of("b", 1, [200.0]), row_of("c", 1, [300.0])])
    found = overalls(findings)
    assert [(one.faster, one.slower) for one in found] == [("b", "a"), ("c", "a")]
    assert headline(findings) == f"Provisional: c does more in the requests replayed, by 1.5×{FEW}"


def test_the_headline_counts_kinds_of_requests_and_hides_none() -> None:
    rows = [
        row_of(name, 1, [rate], workload=str(kind))
        for kind, pair in enumerate(((200.0, 100.0), (100.0, 300.0), (100.0, 101.0), (100.0, 0.0)))
        for name, rate in zip("ab", pair, strict=True)
    ]
    assert headline(find(rows)) == (
        f"Provisional: a does more in 1 of 4 kinds of requests, b in 1{FEW}, 1 too close to "
        "call, 1 could not be compared"
    )


def test_a_provisional_difference_whose_interval_includes_one_puts_nobody_ahead() -> None:
    doubt = Doubt(what="not steady", grade="mild", words="throughput fell by 30 %")
    for rates, words in (
        ([100.0, 300.0, 80.0, 250.0, 90.0], "1 too close to call"),
        ([300.0, 310.0, 290.0, 305.0, 295.0], "a does more in the requests replayed, by 2.6×"),
    ):
        other = row_of("b", 1, [100.0, 90.0, 110.0, 200.0, 95.0])
        found = find([row_of("a", 1, rates, doubts=(doubt,)), other])
        (finding,) = overalls(found)
        assert finding.verdict == "provisional"
        assert headline(found).startswith(
            f"No layout leads: {words}" if "close" in words else f"Provisional: {words}"
        )
        is_open = "close" in words
        assert ("no difference found" in card_words(finding).text) == is_open
        assert ("no difference found" in finding.brief) == is_open


def test_one_layout_alone_has_no_findings() -> None:
    assert find([row_of("a", 1, [100.0])]) == ()
    assert headline(()) == "Only one layout was measured: there is nothing to compare it with"


def test_two_apis_and_two_workloads_of_equal_requests_are_named() -> None:
    rows = [row_of(name, 1, [100.0], api=api) for api in ("swift", "s3") for name in "ab"]
    assert ["Swift API" in one.text for one in overalls(find(rows))] == [True, False]
    assert ["S3 API" in one.text for one in overalls(find(rows))] == [False, True]
    rows = [row_of(name, 1, [100.0], workload=kind) for kind in ("hot", "cold") for name in "ab"]
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
    _, cell = find(
        [row_of("a", 8, [180.0], **binned(*fast)), row_of("b", 8, [100.0], **binned(*slow))]
    )
    assert f"at 8 workers, {text}; n = 1" in cell.text


def test_layouts_are_compared_within_a_driver_and_kinds_are_named_by_it() -> None:
    rows = [
        row_of(name, 1, [rate], driver=driver)
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
        row_of(name, 1, [rate], workload=kind, driver=driver)
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


ARGV = ("weighbridge", "compare", "--layouts", "a,b", "--repeats", "2", "--budget=1h")


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> ResolvedPlan:
    return short_run(tmp_path_factory.mktemp("runs"), repeats=2, telemetry=False).plan()


def comparison(
    verdict: Verdict, *whats: What, ratio: Ratio | None = None, smallest: float | None = None
) -> Comparison:
    doubts = tuple(Doubt(what=one, grade="mild", words="so") for one in whats)
    compared = compare([row("a"), row("b")])
    effect = altered(
        cell(compared), ratio=ratio, smallest=smallest, verdict=verdict, doubts=doubts, sides=None
    )
    return Comparison(baseline="a", subjects=("b",), effects=(effect,), tests=1)


SHORT = comparison("provisional", "steadiness not known")
AGAIN = "weighbridge compare --layouts a,b"
RESUMED = "weighbridge compare --suite made-up --layouts rgw-beast,swift --hardware lab-made-up"
# The ratio is half as far beyond the threshold of 5 % as 5 repeats can find: it takes four times as
# many.
FOURFOLD = Ratio(value=1.05 * math.exp(0.05), low=0.99, high=1.24, repeats=5)
HARDLY = Ratio(value=1.0501, low=0.9, high=1.2, repeats=5)


@pytest.mark.parametrize(
    ("found", "argv", "says", "command"),
    [
        (
            comparison("provisional", "few repeats"),
            ARGV,
            "1 of 1 comparisons of throughput and p90 are inconclusive (1 provisional). They need ",
            f"{AGAIN} --repeats 5",
        ),
        (comparison("not comparable", "machine busy"), ARGV[:4], "need a quiet machine", AGAIN),
        (
            SHORT,
            ("weighbridge", "compare", "--suite=quick"),
            "",
            "weighbridge compare --suite gateways-lab",
        ),
        (
            SHORT,
            ("weighbridge", "study", "some-study", "--repeats", "5"),
            "need longer windows, which a copy of the study's file can have.",
            "",
        ),
        (
            comparison("not significant", ratio=FOURFOLD, smallest=1.05 * math.exp(0.1)),
            ARGV[:4],
            "",
            f"{AGAIN} --repeats 20",
        ),
        (
            comparison("not significant", ratio=HARDLY, smallest=1.3),
            ARGV[:4],
            "would take more than 30 repeats.",
            "",
        ),
        (
            comparison("not comparable", "set by the CPU limit"),
            ARGV[:4],
            "neither more repeats nor a quieter machine",
            "",
        ),
        (
            comparison("provisional", "few repeats"),  # of a resumed run, made from its plan
            ("weighbridge", "resume", "/runs/one"),
            "",
            f"{RESUMED} --repeats 5",
        ),
    ],
)
def test_what_is_inconclusive_needs_a_command_that_would_settle_it(
    plan: ResolvedPlan, found: Comparison, argv: tuple[str, ...], says: str, command: str
) -> None:
    advice = present(remedy(found, plan, argv))
    assert says in advice.says
    assert advice.command == command


def test_a_comparison_with_only_claims_needs_nothing(plan: ResolvedPlan) -> None:
    assert remedy(comparison("better"), plan, ARGV) is None


@pytest.mark.parametrize(
    ("notes", "says"),
    [
        (("4.0% of operations failed",), "neither more repeats nor a quieter machine"),
        ((f"{RAN_OUT} in the warm-up",), "They need more objects to delete (`per_container`"),
    ],
)
def test_steps_that_are_not_valid_are_not_repeated(
    plan: ResolvedPlan, notes: tuple[str, ...], says: str
) -> None:
    open_one = comparison("not comparable", "few repeats")
    sides = tuple(made_row(layout=one, repeats=1, valid=False, notes=notes) for one in "ab")
    effect = altered(open_one.effects[0], sides=sides)
    found = present(remedy(altered(open_one, effects=(effect,)), plan, ARGV[:4]))
    assert says in found.says
    assert found.command == ""


def test_windows_that_are_long_already_are_not_advised_to_be_longer(plan: ResolvedPlan) -> None:
    workload = altered(plan.suite.workloads[0], runtime=20.0)
    long = altered(plan, suite=altered(plan.suite, workloads=(workload,)))
    found = present(remedy(comparison("provisional", "repeats left out"), long, ARGV[:4]))
    assert "windows" not in found.says
    assert found.command == ""


def test_steps_that_were_still_warming_up_need_the_longest_warm_up_that_one_of_them_needed(
    plan: ResolvedPlan,
) -> None:
    open_one = comparison("not comparable")
    sides = tuple(
        made_row(
            layout=layout,
            repeats=2,
            valid=True,
            points=(
                made_point(repeat=0, valid=True, steady=False, warmup_s=warmup_s),
                made_point(repeat=1, valid=True, steady=True),
            ),
        )
        for layout, warmup_s in (("a", 14.0), ("b", 19.0))
    )
    effect = altered(open_one.effects[0], sides=sides)
    found = present(remedy(altered(open_one, effects=(effect,)), plan, ARGV[:4]))
    assert found.says.endswith("They need a warm-up of 19 s")
    assert found.command == "weighbridge compare --layouts a,b --warmup 19s"
    study = present(remedy(altered(open_one, effects=(effect,)), plan, ("w", "study", "x")))
    assert study.says.endswith("a longer warm-up, which a copy of the study's file can have.")


def test_a_line_with_short_windows_needs_longer_ones_by_its_own_option(plan: ResolvedPlan) -> None:
    line = ("weighbridge", "compare", "--s3", "a=http://a", "--s3", "b=http://b")
    short = comparison("provisional", "steadiness not known")
    for argv in (line, (*line, "--duration", "5s")):
        found = present(remedy(short, plan, argv))
        assert found.command == f"{' '.join(line)} --duration 20s"
    long = altered(plan.suite.workloads[0], runtime=20.0)
    suite = altered(plan.suite, workloads=(long,))
    again = present(remedy(short, altered(plan, suite=suite), line))
    assert again.command == ""


WORKLOAD = {"operations": {"write": 1}, "workers": [4], "runtime": "20s"}
SUITE = Suite.model_validate(
    {
        "name": "s",
        "about": "a",
        "api": ["s3"],
        "workloads": [
            {**WORKLOAD, "name": name, "objects": {"size": size}, "signing": signing}
            for name, size, signing in (
                ("write", "4KiB", [{}, {"payload": "signed"}, {"payload": "chunks"}]),
                ("alone", "8KiB", {"payload": "signed"}),
            )
        ],
    }
)
FACTORS = {"write-unsigned": 1.0, "write-signed": 2.0, "write-chunks": 1.0}


def costs(
    repeats: int, condemned: Sequence[str] = (), left_out: Collection[int] = ()
) -> tuple[FactorCost, ...]:
    """`left_out`: repeats that rows leave out. Each window moves, which the rows alone judge."""
    steps, visits, rows = {}, {}, []
    for name, factor in FACTORS.items():
        for repeat in range(repeats):
            key = StepKey(layout="rgw", api="s3", workload=name, workers=4, repeat=repeat)
            made = fake_measurement(api="s3", workload=name, operations={"write": 1.0})
            noise = 1 + 0.01 * repeat + (0.005 if name == "write-chunks" else 0)
            cpu_s = made.tallies[0].count * 50e-6 * factor * noise
            load = Load(cpu_s=cpu_s, cpu_limit=1, window_s=made.window_s)
            steps[key] = StepResult(
                key=key, order=repeat, valid=True, measurement=altered(made, load=load)
            )
            use = StepUse(gateway_cpu_s=cpu_s * 10)
            visits[key] = JudgedStep(key=key, valid=True, steady=False, use=use, points={})
        about = {"layout": "rgw", "api": "s3", "workload": name, "operation": "write", "workers": 4}
        points = tuple(
            Point(repeat=repeat, valid=True, steady=repeat not in left_out, figures={})
            for repeat in range(repeats)
        )
        valid = name not in condemned
        rows.append(made_row(**about, repeats=repeats, valid=valid, points=points))
    return factor_costs(SIGNING, SUITE, steps, visits, rows)


def test_workloads_that_differ_in_nothing_else_belong_together() -> None:
    assert [[one.name for one in group] for group in variant_groups(SUITE, SIGNING)] == [
        ["write-unsigned", "write-signed", "write-chunks"]
    ]


def test_each_factor_has_its_own_groups_and_section() -> None:
    given = SUITE.model_dump()
    both = {**given["workloads"][0], "name": "w", "signing": [{}, {"payload": "signed"}]}
    suite = Suite.model_validate(
        {**given, "workloads": [{**both, "encryption": ["none", "sse-c"]}]}
    )
    assert [[one.name for one in group] for group in variant_groups(suite, SIGNING)] == [
        ["w-unsigned-plain", "w-signed-plain"],
        ["w-unsigned-sse-c", "w-signed-sse-c"],
    ]
    assert [[one.name for one in group] for group in variant_groups(suite, ENCRYPTION)] == [
        ["w-unsigned-plain", "w-unsigned-sse-c"],
        ["w-signed-plain", "w-signed-sse-c"],
    ]
    assert not variant_groups(SUITE, ENCRYPTION)
    [section] = factor_sections(costs(5))
    assert (section.key, section.head[3], len(section.lines)) == ("signing", "Signing", 3)
    known = [altered(one, factor="encryption") for one in costs(5)]
    assert [one.key for one in factor_sections((*known, *costs(5)))] == ["signing", "encryption"]
    assert factor_sections(()) == ()


def test_each_way_is_compared_with_the_first_per_operation() -> None:
    first, signed, chunks = costs(5)
    assert first.client_us == pytest.approx(51, rel=0.01)
    assert first.gateway_us == pytest.approx(510, rel=0.01)
    assert (first.client, first.label, first.beside) == (None, "unsigned", "unsigned")
    assert present(signed.client).value == pytest.approx(2)
    assert present(signed.client).shown
    assert present(signed.gateway).value == pytest.approx(2)
    assert not present(chunks.client).shown
    lines = factor_lines((first, signed, chunks))
    assert [line[3] for line in lines] == ["unsigned", "signed", "chunks"]
    assert lines[0][5] == "1"
    assert [line[-1] for line in lines] == ["ranked"] * 3
    assert lines[1][5].startswith("2.00× (1.9")
    of_signed, of_chunks = factor_sentences((first, signed, chunks))
    assert of_signed.startswith("write-signed on rgw, 4 workers, beside unsigned: client CPU")
    assert of_signed.endswith("gateway CPU for an operation is 2.00 times (1.96 to 2.05).")
    assert "not significant" in of_chunks


def test_one_repeat_has_no_interval_and_what_is_not_ranked_no_factor() -> None:
    _, signed, _ = costs(1)
    assert present(signed.client).low is None
    assert "one repeat: no interval" in factor_sentences([signed])[0]
    few = factor_sentences(costs(3))[0]
    assert "; 3 repeats are too few for a claim)" in few
    _, signed, chunks = costs(5, ["write-signed"])
    assert signed.client is signed.gateway is None
    assert factor_lines([signed])[0][5] == "–"
    assert factor_lines([signed])[0][-1] == "not ranked"
    assert not factor_sentences([signed])
    assert chunks.client is not None


def test_the_repeats_of_the_rows_count_and_no_others() -> None:
    assert {one.repeats for one in costs(5)} == {5}
    assert {one.repeats for one in costs(5, left_out=(1, 3))} == {3}


def test_the_cpu_of_an_operation_counts_complete_ones_and_not_their_parts_again() -> None:
    made = fake_measurement(api="s3", operations={"list-all": 1.0})
    (whole,) = made.tallies
    pages = altered(whole, operation="list-page", count=whole.count * 10)
    load = Load(cpu_s=1.0, cpu_limit=1, window_s=made.window_s)
    measured = altered(made, tallies=(whole, pages), load=load)
    assert measured.done == whole.count
    assert measured.driver_cpu_us_per_op == pytest.approx(1e6 / whole.count)
    assert altered(made, load=None).driver_cpu_us_per_op is None
