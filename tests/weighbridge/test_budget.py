import math
import statistics
from pathlib import Path

import pytest
from click.testing import CliRunner

from stub_run import SUITE, Run
from weighbridge.budget import (
    ASSUMED,
    SHORTEST_WINDOW_S,
    Budgeted,
    RepeatScatter,
    claim,
    comparisons_of,
    fit,
    sentences,
    spread_here,
)
from weighbridge.command import weighbridge
from weighbridge.common.errors import UsageError
from weighbridge.conductor.facts import facts_of_machine
from weighbridge.conductor.plan import Plan
from weighbridge.conductor.time_estimate import (
    REPORTING_S,
    TimeAllowance,
    TimeEstimate,
    show_duration,
)
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.metrics import compared
from weighbridge.results.record.manifest import Sheet
from weighbridge.results.record.step import Pass
from weighbridge.results.record.store import RunStore
from weighbridge.results.statistics import LEVEL, smallest_ratio
from weighbridge.suites import Overload

ASSUME = RepeatScatter(share=ASSUMED)

LONG = [{**workload, "runtime": "60s", "warmup": "1s"} for workload in SUITE["workloads"]]


def fitted(run: Run, budget_s: float) -> Budgeted:
    return fit(run.suite, run.hardware, run.planned, budget_s)


def repeat_s(run: Run) -> float:
    return TimeEstimate.of(run.plan()).left_s()


def test_as_many_repeats_are_planned_as_fit_whatever_the_suite_says(tmp_path: Path) -> None:
    run = Run(tmp_path)
    for repeats in (5, 7):
        found = fitted(run, REPORTING_S + repeats * repeat_s(run) + 1)
        assert found.plan.suite.repeats == repeats
        assert len(found.plan.visits) == repeats * 2
        assert found.seconds <= found.plan.budget_s  # type: ignore[operator]
        assert not found.shortened


def test_windows_are_shortened_if_too_few_repeats_for_a_claim_would_fit(tmp_path: Path) -> None:
    run = Run(tmp_path, workloads=LONG)
    found = fitted(run, REPORTING_S + 3 * repeat_s(run))
    assert found.plan.suite.repeats == 5
    windows = {workload.name: workload.runtime for workload in found.plan.suite.workloads}
    assert all(SHORTEST_WINDOW_S < window < 60 for window in windows.values())
    assert found.seconds <= REPORTING_S + 3 * repeat_s(run)
    lines = sentences(found, 600, ASSUME)
    assert any("small from 60 s to" in text for text in lines)
    assert any("200 requests" in text for text in lines)
    assert {key.workload for visit in found.plan.visits for key in found.plan.keys(visit)} == set(
        windows
    )
    assert all(
        one.runtime == windows[one.name]
        for ways in found.plan.passes.values()
        for way in ways
        for one in way.workloads
    )


def test_windows_keep_their_length_if_shortening_them_allows_no_claim(tmp_path: Path) -> None:
    run = Run(tmp_path)
    found = fitted(run, REPORTING_S + 3.5 * repeat_s(run))
    assert found.plan.suite.repeats == 3
    assert not found.shortened
    longer = show_duration(REPORTING_S + 5 * repeat_s(run))
    assert (
        sentences(found, 600, ASSUME)[-1]
        == f"n = 3: no difference can be claimed, which needs 5 repeats: about {longer}"
    )


def test_one_repeat_gets_the_longest_windows_that_fit(tmp_path: Path) -> None:
    run = Run(tmp_path, workloads=LONG)
    found = fitted(run, REPORTING_S + 0.5 * repeat_s(run))
    assert found.plan.suite.repeats == 1
    assert all(SHORTEST_WINDOW_S <= one.runtime < 60 for one in found.plan.suite.workloads)
    assert found.seconds <= REPORTING_S + 0.5 * repeat_s(run)


def test_a_budget_too_short_for_one_repeat_is_refused_with_its_time(tmp_path: Path) -> None:
    run = Run(tmp_path, workloads=LONG)
    with pytest.raises(
        UsageError,
        match=r"too short for one repeat, which takes about .* even with windows of 10 s",
    ):
        fitted(run, 30)


def overloaded(plan: Plan) -> dict[str, tuple[Pass, ...]]:
    """The passes of a plan, with all workloads beyond capacity."""
    beyond = {"overload": Overload(within=1.0), "rate_per_s": 10.0}
    return {
        name: tuple(
            way.model_copy(
                update={"workloads": tuple(one.model_copy(update=beyond) for one in way.workloads)}
            )
            for way in passes
        )
        for name, passes in plan.passes.items()
    }


def test_claims_depend_on_repeats_scatter_and_the_number_of_tests(tmp_path: Path) -> None:
    plan = Run(tmp_path, repeats=7).plan()
    tests = comparisons_of(plan)
    # For each metric 2 and 1 cells of reads, and 1 of writes; goodput is of overload alone, and
    # stalls of steps in which something dies.
    assert tests == 4 * sum(not (metric.of_overload or metric.of_outage) for metric in compared())
    beyond = plan.model_copy(update={"passes": overloaded(plan)})
    assert comparisons_of(beyond) == 4 * sum(not metric.of_outage for metric in compared())
    assert "no difference can be claimed" in claim(plan, ASSUME, 4)
    least = (smallest_ratio(0.14, 7, level=LEVEL / tests, bound=1.1) - 1) * 100
    sentence = claim(plan, RepeatScatter(share=0.14, cells=24, run="earlier"))
    shown = (
        f"differences of about {math.ceil(least)} % would be found 8 times in 10 in each of "
        f"{tests} tests"
    )
    assert (
        sentence == f"n = 7: if repeats scatter by 14 % as in earlier (median of 24 cells), {shown}"
    )
    assert least > (smallest_ratio(0.14, 7) - 1) * 100 + 10
    assert "if repeats scatter by 15 % (assumed: no earlier run on this machine)" in claim(
        plan, ASSUME
    )


@pytest.mark.long
def test_the_scatter_is_that_of_the_newest_run_that_has_one(tmp_path: Path) -> None:
    here, run = tmp_path / "runs", Run(tmp_path, repeats=3)
    assert spread_here(here, run.hardware) == ASSUME
    (here / "9-no-run").mkdir(parents=True)
    (here / "9-no-run" / "manifest.json").write_text("{}")
    sheet = Sheet(title="machine", facts=facts_of_machine(run.hardware))
    made = []
    for repeats, facts in (
        (3, sheet),
        (1, sheet),
        (3, sheet.model_copy(update={"facts": {**sheet.facts, "cpu": "another"}})),
    ):
        one = Run(tmp_path / str(len(made)), repeats=repeats)
        store = RunStore.create(here, plan_yaml="", plan=one.plan(), suite="trial", sheets=[facts])
        one.into(store)
        made.append(store.folder.rename(here / f"{len(made)}-run"))
    found = spread_here(here, run.hardware)
    rows = RunData(made[0]).rows
    scatter = [
        statistics.stdev(math.log(point.value("throughput")) for point in row.used) for row in rows
    ]
    tails = [
        statistics.stdev(math.log(point.value("p90")) for point in row.used if point.value("p90"))
        for row in rows
    ]
    assert (found.run, found.cells) == ("0-run", 2 * len(rows))
    assert found.share == pytest.approx(statistics.median([*scatter, *tails]))


def test_an_allowance_reserves_time_for_the_report_and_subtracts_time_spent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr("weighbridge.conductor.time_estimate.time.monotonic", lambda: now[0])
    one = TimeAllowance(600, spent_s=200)
    now[0] = 150.0
    assert one.left_s() == 600 - 200 - 50 - REPORTING_S


def test_a_budget_with_a_number_of_repeats_is_refused() -> None:
    done = CliRunner().invoke(
        weighbridge, ["compare", "--budget", "2h", "--repeats", "5"], standalone_mode=False
    )
    assert isinstance(done.exception, UsageError)
    assert "--budget and --repeats both set" in str(done.exception)


@pytest.mark.parametrize(
    ("text", "why"), [("2", "not a quantity"), ("soon", "not a quantity"), ("0s", "above 0")]
)
@pytest.mark.parametrize("verb", [["compare"], ["resume", "."]])
def test_a_budget_that_is_not_a_time_is_refused(verb: list[str], text: str, why: str) -> None:
    done = CliRunner().invoke(weighbridge, [*verb, "--budget", text])
    assert done.exit_code == 2
    assert why in done.output
