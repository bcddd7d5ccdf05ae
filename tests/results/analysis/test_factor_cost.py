"""What ways to sign and to encrypt cost: grouped by workload, beside the first, per operation."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest

from made_rows import altered, made_row
from made_up import fake_measurement
from weighbridge.results.analysis.factor_cost import FactorCost, factor_costs, variant_groups
from weighbridge.results.analysis.steps.use import StepUse
from weighbridge.results.analysis.steps.visit import JudgedStep, Point
from weighbridge.results.record.measurement import Load
from weighbridge.results.record.step import StepKey, StepResult
from weighbridge.results.report.factor_table import factor_lines, factor_sections, factor_sentences
from weighbridge.suites import ENCRYPTION, SIGNING, Suite

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
    assert signed.client is not None
    assert signed.client.value == pytest.approx(2)
    assert signed.client.shown
    assert signed.gateway is not None
    assert signed.gateway.value == pytest.approx(2)
    assert chunks.client is not None
    assert not chunks.client.shown
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
    assert signed.client is not None
    assert signed.client.low is None
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
