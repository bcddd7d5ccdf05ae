from __future__ import annotations

import math

import pytest

from compared_rows import cell, row
from fake_run import WORKLOADS, fake_run
from made_rows import altered, made_point, made_row
from weighbridge.results.analysis.comparing import compare
from weighbridge.results.analysis.comparison import Comparison, Verdict
from weighbridge.results.analysis.reasons import remedy
from weighbridge.results.doubt import Doubt, What
from weighbridge.results.record.resolved import ResolvedPlan
from weighbridge.results.statistics import Ratio

ARGV = ("weighbridge", "compare", "--layouts", "a,b", "--repeats", "2", "--budget=1h")


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> ResolvedPlan:
    workload = altered(WORKLOADS[0], workers=(1,), runtime=1.0)
    return fake_run(
        tmp_path_factory.mktemp("runs"), workloads=[workload], repeats=2, telemetry=False
    ).plan()


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
    advice = remedy(found, plan, argv)
    assert advice is not None
    assert says in advice.says
    assert advice.command == command


def test_a_comparison_with_only_claims_needs_nothing(plan: ResolvedPlan) -> None:
    assert remedy(comparison("better"), plan, ARGV) is None


def test_windows_that_are_long_already_are_not_advised_to_be_longer(plan: ResolvedPlan) -> None:
    workload = altered(plan.suite.workloads[0], runtime=20.0)
    long = altered(plan, suite=altered(plan.suite, workloads=(workload,)))
    found = remedy(comparison("provisional", "repeats left out"), long, ARGV[:4])
    assert found is not None
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
    found = remedy(altered(open_one, effects=(effect,)), plan, ARGV[:4])
    assert found is not None
    assert found.says.endswith("They need a warm-up of 19 s")
    assert found.command == "weighbridge compare --layouts a,b --warmup 19s"
    study = remedy(altered(open_one, effects=(effect,)), plan, ("w", "study", "x"))
    assert study is not None
    assert study.says.endswith("a longer warm-up, which a copy of the study's file can have.")


def test_a_line_with_short_windows_needs_longer_ones_by_its_own_option(plan: ResolvedPlan) -> None:
    line = ("weighbridge", "compare", "--s3", "a=http://a", "--s3", "b=http://b")
    short = comparison("provisional", "steadiness not known")
    for argv in (line, (*line, "--duration", "5s")):
        found = remedy(short, plan, argv)
        assert found is not None
        assert found.command == f"{' '.join(line)} --duration 20s"
    long = altered(plan.suite.workloads[0], runtime=20.0)
    suite = altered(plan.suite, workloads=(long,))
    again = remedy(short, altered(plan, suite=suite), line)
    assert again is not None
    assert again.command == ""
