"""Searches of the highest rate within a run: their steps, their ends, and kills in between."""

from __future__ import annotations

from pathlib import Path

import pytest

import fake_driver
from stub_run import SUITE, Run
from tests.weighbridge.killed_runs import Answering, Watched, conduct, go_on, killed, opened
from weighbridge.common.errors import DriverError
from weighbridge.conductor import pass_runner
from weighbridge.conductor.time_estimate import units
from weighbridge.drivers.protocol import Measured, OnProgress, Step
from weighbridge.results.features.find import Found, FoundRate, highest_rates
from weighbridge.results.features.open_run import open_run
from weighbridge.results.features.rate_search import MOST_AT_A_RATE, RESOLVED
from weighbridge.results.run import LatencyBound, StepResult
from weighbridge.results.run.store import RunStore

BOUND = LatencyBound(metric="p90", most_ms=20.0)
ONE = [{**SUITE["workloads"][0], "workers": [4]}]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pass_runner, "opened", opened)


def searching(folder: Path, **more: object) -> Run:
    return Run(folder, **{"find": BOUND, "workloads": ONE, **more})


def searched(run: Run) -> RunStore:
    store = run.store()
    conduct(run, store, Watched())
    return store


def at_rates(store: RunStore, layout: str = "rgw-a") -> list[StepResult]:
    steps = [step for step in store.steps() if step.key.layout == layout]
    return [step for step in steps if step.key.rate_per_s is not None]


def found_in(store: RunStore) -> Found:
    found = highest_rates(open_run(store.folder))
    assert found is not None
    return found


def answer(store: RunStore, layout: str = "rgw-a") -> FoundRate:
    (kind,) = found_in(store).kinds
    return next(rate for rate in kind.rates if rate.layout == layout)


def test_each_layout_is_searched_after_its_closed_loop_and_what_it_serves_is_found(
    tmp_path: Path,
) -> None:
    store = searched(searching(tmp_path))
    for layout in ("rgw-a", "swift-b"):
        steps = [step for step in store.steps() if step.key.layout == layout]
        closed, *others = steps
        assert closed.key.rate_per_s is None
        assert 0 < len(others) <= MOST_AT_A_RATE
        assert [step.key.search_step for step in others] == list(range(1, len(others) + 1))
        found = answer(store, layout)
        assert found.rate_per_s is not None
        assert found.high_per_s is not None
        assert found.rate_per_s < found.high_per_s <= RESOLVED * found.rate_per_s
        assert found.latency_ms is not None
        assert found.latency_ms <= BOUND.most_ms
        assert found.steps == len(others)
        assert len({step.key.file_name for step in steps}) == len(steps)
    assert {step.order for step in store.steps()} == set(range(len(store.steps())))


def test_what_is_found_is_what_the_driver_can_be_seen_to_serve(tmp_path: Path) -> None:
    """The fake driver serves 90 % of a closed loop, and its p90 grows as load nears that."""
    store = searched(searching(tmp_path, find=LatencyBound(metric="p90", most_ms=1000.0)))
    closed = next(step for step in store.steps() if step.key.rate_per_s is None)
    assert closed.measurement is not None
    ops_s = closed.measurement.tallies[0].count / closed.measurement.window_s
    found = answer(store)
    assert found.rate_per_s is not None
    assert found.high_per_s is not None
    assert found.rate_per_s <= fake_driver.CAPACITY * ops_s * 1.01
    assert found.high_per_s >= fake_driver.CAPACITY * ops_s * 0.98


def test_steps_at_a_rate_leave_the_table_of_ordinary_steps_as_it_is(tmp_path: Path) -> None:
    with_search, without = searching(tmp_path / "a"), searching(tmp_path / "b", find=None)
    stores = searched(with_search), searched(without)
    tables = [open_run(store.folder).rows for store in stores]
    assert tables[0] == tables[1]
    assert highest_rates(open_run(stores[1].folder)) is None


def test_a_bound_that_no_rate_meets_says_which_was_the_lowest(tmp_path: Path) -> None:
    store = searched(searching(tmp_path, find=LatencyBound(metric="p90", most_ms=0.5)))
    found = answer(store)
    assert (found.rate_per_s, found.high_per_s) == (None, None)
    assert found.words.startswith("not even ")
    assert found.lowest_per_s == min(step.key.rate_per_s or 0 for step in at_rates(store))
    assert "serves not even" in found_in(store).sentences[0]


def test_an_answer_of_one_repeat_is_provisional_and_that_of_five_has_an_interval(
    tmp_path: Path,
) -> None:
    once, often = searching(tmp_path / "a"), searching(tmp_path / "b", repeats=5)
    stores = searched(once), searched(often)
    assert "provisional: few repeats" in found_in(stores[0]).sentences[0]
    assert "provisional" not in found_in(stores[1]).sentences[0]
    found = answer(stores[1])
    assert found.repeats == 5
    assert found.low_per_s is not None
    assert found.rate_per_s is not None
    assert found.high_per_s is not None
    assert found.low_per_s <= found.rate_per_s <= found.high_per_s


@pytest.mark.parametrize(
    ("what", "at"), [("begins", 2), ("ended", 3), ("begins", 6), ("begins", 9)]
)
def test_a_killed_search_goes_on_with_the_step_that_was_next(
    tmp_path: Path, what: str, at: int
) -> None:
    whole, cut = searching(tmp_path / "whole"), searching(tmp_path / "cut")
    expected = searched(whole)
    store = killed(cut, what, at)
    before = store.steps()
    go_on(store, cut)
    assert store.steps()[: len(before)] == before
    assert [step.key for step in store.steps()] == [step.key for step in expected.steps()]
    assert found_in(store) == found_in(expected)


def test_a_search_whose_driver_fails_is_given_up_and_goes_on_when_the_run_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, failing = Answering.step, True

    def step(self: Answering, order: Step, heard: OnProgress | None = None) -> Measured:
        if failing and order.workload.rate_per_s is not None and order.repeat > 2000:
            raise DriverError("out of file descriptors")
        return real(self, order, heard)

    monkeypatch.setattr(Answering, "step", step)
    run = searching(tmp_path)
    store = searched(run)
    lost, lost_too = (one for one in store.steps() if one.measurement is None)
    assert at_rates(store)[0].complete
    assert (lost.key.layout, lost_too.key.layout) == ("rgw-a", "swift-b")
    assert "the search is not finished: out of file descriptors" in found_in(store).sentences[0]
    closed = [step for step in store.steps() if step.key.rate_per_s is None]
    assert all(step.complete for step in closed)
    failing = False
    go_on(store, run)
    assert answer(store).high_per_s is not None
    assert "not over" not in found_in(store).sentences[0]
    assert len([step for step in store.steps() if step.key.rate_per_s is None]) == len(closed)


def test_a_step_in_which_a_daemon_died_is_no_evidence_and_is_measured_again(tmp_path: Path) -> None:
    run = searching(tmp_path)
    run.gateways["rgw-a"].dies_at = 6  # two checks a step: after the second step at a rate
    store = searched(run)
    spoilt = next(step for step in store.steps() if step.spoilt)
    assert spoilt.key.search_step == 2
    go_on(store, run)
    again = [step for step in at_rates(store) if step.key == spoilt.key]
    assert [step.spoilt for step in again] == [True, False]
    assert answer(store).rate_per_s is not None


def test_mixes_are_judged_by_their_slowest_operation(tmp_path: Path) -> None:
    mixed = [{**ONE[0], "operations": {"read": 1, "write": 1}}]
    store = searched(searching(tmp_path, workloads=mixed))
    (kind,) = found_in(store).kinds
    assert kind.about == "4 KiB reads and 4 KiB writes"
    assert all(rate.rate_per_s is not None for rate in kind.rates)


def test_windows_are_long_enough_for_the_percentile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Step] = []
    real = Answering.step

    def step(self: Answering, order: Step, heard: OnProgress | None = None) -> Measured:
        seen.append(order)
        return real(self, order, heard)

    monkeypatch.setattr(Answering, "step", step)
    large = [{**ONE[0], "objects": {"size": "64MB"}, "runtime": "2s", "workers": [1]}]
    run = searching(tmp_path, workloads=large, find=LatencyBound(metric="p90", most_ms=3000.0))
    searched(run)
    rated = [order.workload for order in seen if order.workload.rate_per_s is not None]
    assert rated
    for workload in rated:
        rate = workload.rate_per_s
        assert rate is not None
        assert workload.runtime == pytest.approx(max(10.0, min(60.0, 200 / rate)))


def test_time_and_number_of_steps_include_the_searches_at_most(tmp_path: Path) -> None:
    run, plain = searching(tmp_path / "a"), searching(tmp_path / "b", find=None)
    assert run.plan().steps == 8 * plain.plan().steps
    kinds = [unit.kind for unit in units(run.plan())]
    assert kinds.count("search") == plain.plan().steps
    with_s, without_s = (sum(one.planned_s for one in units(each.plan())) for each in (run, plain))
    assert with_s > without_s
