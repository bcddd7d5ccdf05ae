"""Blocks beyond a suite's repeats: when they follow, and what a run leaves open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stub_run import SUITE, Run
from weighbridge.conductor import conductor
from weighbridge.conductor.conductor import FURTHER, STRICT, is_clear, unclear
from weighbridge.conductor.plan import Plan
from weighbridge.conductor.time_estimate import TimeAllowance
from weighbridge.results.analysis.comparison import Comparison, Effect
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.record.resolved import ResolvedPlan
from weighbridge.results.record.store import RunStore
from weighbridge.results.statistics import Ratio


def effect(q: float | None, **changes: Any) -> Effect:
    known = {
        "workload": "small",
        "operation": "read",
        "api": "swift",
        "about": "4 KiB reads",
        "workers": 4,
        "metric": "throughput",
        "baseline": "rgw-a",
        "subject": "swift-b",
        "ratio": Ratio(value=1.5, low=1.2, high=1.9, repeats=5),
        "p": q,
        "q": q,
        "verdict": "better",
        "text": "",
    }
    return Effect.model_validate({**known, **changes})


def comparison(*effects: Effect) -> Comparison:
    return Comparison(baseline="rgw-a", subjects=("swift-b",), effects=effects, tests=len(effects))


def test_a_run_is_clear_if_every_cell_is_significant_at_the_strict_level() -> None:
    shown, almost = effect(STRICT), effect(STRICT * 1.01, metric="p90")
    assert is_clear(comparison(shown))
    assert not is_clear(comparison(shown, almost))
    assert unclear(comparison(shown, almost)) == (almost,)
    # Effects over all worker counts, other metrics and incomparable cells do not prolong a run.
    beside = (
        effect(0.5, workers=None),
        effect(0.5, metric="max"),
        effect(None, ratio=None, verdict="not comparable"),
    )
    assert is_clear(comparison(shown, *beside))
    assert not is_clear(comparison(*beside[:1]))
    assert not is_clear(comparison())


def conduct(run: Run, within_s: float = 3600) -> tuple[RunStore, list[Plan]]:
    """The run, and its plans as they grew."""
    plans: list[Plan] = []
    return run.conduct(further=TimeAllowance(within_s), grown=plans.append), plans


FURTHER_BLOCKS = {"blocks": 2, "within": "1h"}
SMALL = [SUITE["workloads"][0]]


def test_blocks_follow_until_all_is_clear_and_are_in_the_plan_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[bool] = [False, True]
    monkeypatch.setattr(conductor, "is_clear", lambda _: looks.pop(0))
    run = Run(tmp_path, repeats=2, further={"blocks": 5, "within": "1h"}, workloads=SMALL)
    store, grown = conduct(run)
    assert sorted({step.key.repeat for step in store.steps()}) == [0, 1, 2]
    assert len(store.steps()) == 3 * 2 * 2
    plan = Plan.model_validate_json((store.folder / "plan.resolved.json").read_bytes())
    assert (plan.suite.repeats, plan.suite.further.blocks) == (3, 4)  # type: ignore[union-attr]
    assert plan.visits[: len(run.plan().visits)] == run.plan().visits
    assert grown == [plan]
    assert isinstance(store.plan(), ResolvedPlan)
    texts = [event.text for event in store.events() if event.kind == FURTHER]
    assert texts[0].endswith("not clear after 2 repeats: repeat 3 follows")
    assert texts[1] == "every comparable difference of throughput and p90 is clear after 3 repeats"


def test_no_more_blocks_follow_than_the_suite_allows_in_the_order_of_a_longer_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conductor, "is_clear", lambda _: False)
    run = Run(tmp_path, repeats=2, further=FURTHER_BLOCKS, workloads=SMALL)
    store, grown = conduct(run)
    assert len(store.steps()) == 4 * 2 * 2
    assert grown[-1].suite.further is None
    assert grown[-1].visits == Run(tmp_path / "longer", repeats=4, workloads=SMALL).plan().visits


def test_no_block_follows_without_time_for_it_and_the_run_reports_that(tmp_path: Path) -> None:
    store, grown = conduct(Run(tmp_path, repeats=2, further=FURTHER_BLOCKS, workloads=SMALL), 1)
    assert grown == []
    assert len(store.steps()) == 2 * 2 * 2
    (texts,) = (event.text for event in store.events() if event.kind == FURTHER)
    assert texts.startswith("no time for repeat 3: it would take about")


def test_no_block_follows_if_the_suite_allows_none_or_nothing_is_compared(tmp_path: Path) -> None:
    for name, run in (
        ("none", Run(tmp_path / "none", repeats=2, workloads=SMALL)),
        ("alone", Run(tmp_path / "alone", repeats=2, further=FURTHER_BLOCKS, workloads=SMALL)),
    ):
        if name == "alone":
            del run.planned[1]
        store, grown = conduct(run)
        assert grown == []
        assert not [event for event in store.events() if event.kind == FURTHER]


def test_the_looks_use_the_comparison_of_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Comparison] = []
    monkeypatch.setattr(conductor, "is_clear", lambda one: seen.append(one) is None)
    store, _ = conduct(Run(tmp_path, repeats=2, further=FURTHER_BLOCKS, workloads=SMALL))
    assert seen == [RunData(store.folder).comparison]
