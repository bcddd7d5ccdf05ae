"""Effects as CSV, what would settle an answer, and what factors cost."""

import math
from collections.abc import Collection, Sequence
from types import SimpleNamespace
from typing import cast

import pytest

from compared_rows import cell, row, times
from fake_run import short_run
from made_rows import altered, made_point, made_row, present
from made_up import fake_measurement
from weighbridge.results.features.compare_runs import runs_effects
from weighbridge.results.features.variants import Way, factor_section, variant_groups, ways_of
from weighbridge.results.figures.doubt import Doubt, What
from weighbridge.results.figures.statistics import Ratio
from weighbridge.results.figures.summary import JudgedStep, Point
from weighbridge.results.figures.use import StepUse
from weighbridge.results.judge.comparing import compare
from weighbridge.results.judge.comparison import Comparison, Verdict
from weighbridge.results.judge.reasons import remedy
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.run.resolved import ResolvedPlan
from weighbridge.results.run.step import RAN_OUT, Load, StepKey, StepResult
from weighbridge.suites import ENCRYPTION, SIGNING, Suite


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


ARGV = ("weighbridge", "compare", "--layouts", "a,b", "--repeats", "2")


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


AGAIN = "weighbridge compare --layouts a,b"
MORE = "weighbridge resume /runs/1 --budget"
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
            f"{MORE} 4m",
        ),
        (comparison("not comparable", "machine busy"), ARGV[:4], "need a quiet machine", AGAIN),
        (
            comparison("provisional", "repeats left out"),
            ("weighbridge", "compare", "--suite=quick"),
            "need repeats that all count",
            "weighbridge compare --suite=quick",
        ),
        (
            comparison("not significant", ratio=FOURFOLD, smallest=1.05 * math.exp(0.1)),
            ARGV[:4],
            "",
            f"{MORE} 20m",
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
            comparison("provisional", "hosts differ"),  # of a resumed run, made from its plan
            ("weighbridge", "resume", "/runs/one"),
            "",
            RESUMED,
        ),
    ],
)
def test_what_is_inconclusive_needs_a_command_that_would_settle_it(
    plan: ResolvedPlan, found: Comparison, argv: tuple[str, ...], says: str, command: str
) -> None:
    advice = present(remedy(found, plan, argv, "/runs/1", repeat_s=60.0))
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
) -> tuple[Way, ...]:
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
    data = SimpleNamespace(plan=SimpleNamespace(suite=SUITE), steps=steps, visits=visits, rows=rows)
    return ways_of(SIGNING, cast("RunData", data))


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
    for key, head in (("signing", "Signing"), ("encryption", "Encryption")):
        section = factor_section(key, costs(5))
        (grid,) = section.parts[0].grids
        assert (section.key, grid.head[3], len(grid.lines)) == (key, head, 3)


def test_each_way_is_compared_with_the_first_per_operation() -> None:
    first, signed, chunks = costs(5)
    assert (first.client, first.label, first.cells[4:8]) == (
        *(None, "unsigned"),
        ("51.0", "1", "510", "1"),
    )
    assert present(signed.client).value == pytest.approx(2)
    assert present(signed.client).shown
    assert present(signed.gateway).value == pytest.approx(2)
    assert not present(chunks.client).shown
    assert [(way.cells[3], way.cells[-1]) for way in (first, signed, chunks)] == [
        ("unsigned", "ranked"),
        ("signed", "ranked"),
        ("chunks", "ranked"),
    ]
    assert signed.cells[5].startswith("2.00× (1.9")
    assert signed.cells[7] == "2.00× (1.96 to 2.05)"
    assert "× ~ (" in chunks.cells[5]


def test_one_repeat_has_no_interval_and_what_is_not_ranked_no_factor() -> None:
    _, signed, _ = costs(1)
    assert present(signed.client).low is None
    assert (signed.cells[5], signed.cells[-1]) == ("2.00×", "provisional: few repeats")
    assert costs(3)[1].cells[-1] == "provisional: few repeats"
    _, signed, chunks = costs(5, ["write-signed"])
    assert signed.client is signed.gateway is None
    assert (signed.cells[5], signed.cells[-1]) == ("–", "not ranked")
    assert chunks.client is not None


def test_the_repeats_of_the_rows_count_and_no_others() -> None:
    assert {len(way.ops_s) for way in costs(5)} == {5}
    assert {len(way.ops_s) for way in costs(5, left_out=(1, 3))} == {3}


def test_the_cpu_of_an_operation_counts_complete_ones_and_not_their_parts_again() -> None:
    made = fake_measurement(api="s3", operations={"list-all": 1.0})
    (whole,) = made.tallies
    pages = altered(whole, operation="list-page", count=whole.count * 10)
    load = Load(cpu_s=1.0, cpu_limit=1, window_s=made.window_s)
    measured = altered(made, tallies=(whole, pages), load=load)
    assert measured.done == whole.count
    assert measured.driver_cpu_us_per_op == pytest.approx(1e6 / whole.count)
    assert altered(made, load=None).driver_cpu_us_per_op is None
