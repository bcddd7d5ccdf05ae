from __future__ import annotations

import math
from pathlib import Path

import pytest

from fake_run import WORKLOADS, fake_run
from made_rows import altered, made_point, made_row
from weighbridge.results.analysis.comparison import Comparison, Effect, Verdict
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
    effect = Effect(
        workload="small",
        operation="read",
        api="s3",
        about="64 kB reads",
        workers=4,
        metric="throughput",
        baseline="a",
        subject="b",
        ratio=ratio,
        smallest=smallest,
        verdict=verdict,
        doubts=doubts,
        text="",
    )
    return Comparison(baseline="a", subjects=("b",), effects=(effect,), tests=1)


def test_a_comparison_with_only_claims_needs_nothing(plan: ResolvedPlan) -> None:
    assert remedy(comparison("better"), plan, ARGV) is None


def test_few_repeats_need_the_same_command_with_five(plan: ResolvedPlan) -> None:
    found = remedy(comparison("provisional", "few repeats"), plan, ARGV)
    assert found is not None
    assert found.says.endswith(
        "1 of 1 comparisons of throughput and p90 are inconclusive (1 provisional). They need 5 "
        "repeats"
    )
    assert found.command == "weighbridge compare --layouts a,b --repeats 5"


def test_a_busy_machine_needs_the_same_command_on_a_quiet_one(plan: ResolvedPlan) -> None:
    found = remedy(comparison("not comparable", "machine busy"), plan, ARGV[:4])
    assert found is not None
    assert found.says.endswith("They need a quiet machine")
    assert found.command == "weighbridge compare --layouts a,b"


def test_unknown_steadiness_needs_longer_windows(plan: ResolvedPlan) -> None:
    found = remedy(
        comparison("provisional", "steadiness not known"),
        plan,
        ("weighbridge", "compare", "--suite=quick"),
    )
    assert found is not None
    assert found.command == "weighbridge compare --suite gateways-lab"


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
            api="s3",
            workload="small",
            operation="read",
            object_size_bytes=64e3,
            workers=4,
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


def test_a_study_has_no_option_for_longer_windows(plan: ResolvedPlan) -> None:
    argv = ("weighbridge", "study", "some-study", "--repeats", "5")
    found = remedy(comparison("provisional", "steadiness not known"), plan, argv)
    assert found is not None
    assert found.says.endswith("need longer windows, which a copy of the study's file can have.")
    assert found.command == ""


def test_an_insignificant_difference_needs_repeats_by_its_spread(plan: ResolvedPlan) -> None:
    # The ratio is half as far beyond the threshold of 5 % as 5 repeats can find: it takes four
    # times as many.
    ratio = Ratio(value=1.05 * math.exp(0.05), low=0.99, high=1.24, repeats=5)
    found = remedy(
        comparison("not significant", ratio=ratio, smallest=1.05 * math.exp(0.1)), plan, ARGV[:4]
    )
    assert found is not None
    assert found.command == "weighbridge compare --layouts a,b --repeats 20"


def test_a_difference_that_needs_too_many_repeats_is_not_chased(plan: ResolvedPlan) -> None:
    ratio = Ratio(value=1.0501, low=0.9, high=1.2, repeats=5)
    found = remedy(comparison("not significant", ratio=ratio, smallest=1.3), plan, ARGV[:4])
    assert found is not None
    assert not found.command
    assert found.says.endswith(
        "; settling those that are not significant would take more than 30 repeats."
    )


def test_without_an_interval_no_repeats_are_advised(plan: ResolvedPlan) -> None:
    found = remedy(comparison("not comparable", "set by the CPU limit"), plan, ARGV[:4])
    assert found is not None
    assert "neither more repeats nor a quieter machine" in found.says


def test_the_command_of_a_resumed_run_is_made_from_its_plan(
    plan: ResolvedPlan, tmp_path: Path
) -> None:
    found = remedy(
        comparison("provisional", "few repeats"), plan, ("weighbridge", "resume", str(tmp_path))
    )
    assert found is not None
    assert (
        found.command
        == "weighbridge compare --suite made-up --layouts rgw-beast,swift --hardware lab-made-up "
        "--repeats 5"
    )


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
