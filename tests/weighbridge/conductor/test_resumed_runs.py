"""Runs that are killed at any point and resumed: nothing is lost or measured twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from stub_run import Run, StubGateway
from tests.weighbridge.killed_runs import Watched, conduct, go_on, killed, opened, planned_keys
from weighbridge.conductor import conductor, pass_runner
from weighbridge.conductor.time_estimate import TimeAllowance
from weighbridge.results.run.telemetry import Attested
from weighbridge.suites import Suite
from weighbridge.topologies.deployment import Deployment


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pass_runner, "opened", opened)


@pytest.mark.parametrize(
    ("what", "at", "complete"),
    [
        ("starting", 1, 0),  # before anything
        ("preparing", 1, 0),
        ("begins", 1, 0),  # before the first step
        ("measure", 2, 0),  # in the first step
        ("ended", 1, 1),  # between two steps of a workload
        ("measure", 5, 1),  # in the second step
        ("preparing", 2, 2),  # between two workloads
        ("stopping", 1, 3),  # at the end of a visit
        ("starting", 2, 3),  # between two visits
        ("begins", 5, 4),
        ("starting", 3, 6),  # between two repeats
        ("ended", 12, 12),  # after the last step
    ],
)
@pytest.mark.long
def test_a_run_that_is_killed_anywhere_resumes_without_losing_or_repeating_a_step(
    tmp_path: Path, what: str, at: int, complete: int
) -> None:
    run = Run(tmp_path, repeats=2)
    store = killed(run, what, at)
    before = store.steps()
    assert len(before) == complete
    seen = go_on(store, run)
    after = store.steps()
    assert after[:complete] == before
    assert [step.key for step in after] == planned_keys(run.plan())
    assert [step.order for step in after] == list(range(12))
    assert all(step.valid for step in after)
    assert [key for key, _ in seen.begun] == planned_keys(run.plan())[complete:]
    assert [number for _, number in seen.begun] == list(range(complete + 1, 13))


def test_a_resumed_run_makes_the_same_load_as_an_uninterrupted_one(tmp_path: Path) -> None:
    complete, cut = Run(tmp_path / "complete"), Run(tmp_path / "cut")
    store, again = complete.store(), killed(cut, "begins", 3)
    conduct(complete, store, Watched())
    go_on(again, cut)
    assert [step.measurement for step in again.steps()] == [
        step.measurement for step in store.steps()
    ]


def test_complete_visits_are_not_started_and_complete_workloads_not_prepared(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path)
    # All of the first layout, and the first workload of the second.
    store = killed(run, "begins", 6)
    seen = go_on(store, run)
    assert run.gateways["rgw-a"].did == []
    assert run.gateways["swift-b"].did.count("up") == 1
    begun = [text for text in seen.said if text.startswith(("starting", "preparing"))]
    assert begun == ["starting swift-b", "preparing mixed"]


def test_osds_that_were_measured_before_an_interruption_are_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path)
    what = {"host": "gateway-1", "kind": "osd", "what": "osd.0 write"}
    asked: list[str] = []

    def ask(deployment: Deployment, _suite: Suite, repeat: int) -> list[Attested]:
        asked.append(deployment.layout.name)
        figure = {"value": 1e8, "unit": "B/s", "layout": asked[-1], "repeat": repeat}
        return [Attested.model_validate({**what, **figure})]

    monkeypatch.setattr(conductor, "ask_osds", ask)
    store = killed(run, "begins", 2)
    go_on(store, run)
    assert asked == ["swift-b"]
    assert [one.layout for one in store.attested()] == ["rgw-a", "swift-b"]


def test_steps_that_were_not_measured_are_tried_again_and_the_order_continues(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path)
    run.gateways["rgw-a"].dies_at = 2  # in the first step
    store = run.store()
    conduct(run, store, Watched())
    lines = (store.folder / "steps.jsonl").read_bytes()
    spoilt, lost, *_ = store.steps()
    assert spoilt.spoilt
    assert spoilt.measurement is not None
    assert lost.measurement is None
    seen = go_on(store, run)
    assert [key for key, _ in seen.begun] == [spoilt.key, lost.key]
    assert [number for _, number in seen.begun] == [5, 6]
    latest = store.latest()
    assert all(step.valid for step in latest.values())
    assert (latest[spoilt.key].order, latest[lost.key].order) == (6, 7)
    assert len(store.steps()) == 8
    kept = (store.folder / "steps.jsonl").read_bytes()
    assert kept.startswith(lines)  # also what the spoilt one gave


def test_an_invalid_step_is_not_measured_again(tmp_path: Path) -> None:
    run = Run(tmp_path)
    store = killed(run, "ended", 2)
    first, second = store.steps()
    store.append(first.model_copy(update={"valid": False, "notes": ("busy",)}))
    seen = go_on(store, run)
    assert not {first.key, second.key} & {key for key, _ in seen.begun}


def test_a_torn_line_is_cut_off_and_its_step_measured(tmp_path: Path) -> None:
    run = Run(tmp_path)
    store = killed(run, "ended", 2)
    path = store.folder / "steps.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    go_on(store, run)
    assert [step.key for step in store.steps()] == planned_keys(run.plan())


def test_buckets_of_a_resumed_run_keep_their_names_and_are_cleared_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path)
    store = killed(run, "begins", 5)
    cleared: list[tuple[str, ...]] = []

    def clear(
        _standing: object, buckets: list[str], *, within_s: float | None = None
    ) -> tuple[str, ...]:
        cleared.append(tuple(buckets))
        return ()

    monkeypatch.setattr("stub_run.StubRunning.clear", clear, raising=False)
    monkeypatch.setattr(StubGateway, "already_runs", True)
    go_on(store, run)
    assert len(cleared) == 3  # what rgw-a was left with, and swift-b before and after
    assert len(set(cleared)) == 1
    assert all(name.startswith(f"wb-{store.manifest.run_id[-8:]}") for name in cleared[0])


def test_a_repeat_that_no_longer_fits_the_budget_is_not_started_and_a_started_one_is_finished(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path, repeats=3)
    store = killed(run, "begins", 8)
    seen = Watched()
    conduct(run, store, seen, allowance=TimeAllowance(1))
    assert len(store.steps()) == 12
    assert {step.key.repeat for step in store.steps()} == {0, 1}
    [event] = [event for event in store.events() if event.kind == conductor.BUDGET]
    assert "before repeat 3 of 3" in event.text


def test_events_record_what_was_visited_when_and_in_which_repeat(tmp_path: Path) -> None:
    run = Run(tmp_path, repeats=2)
    store = killed(run, "begins", 5)
    go_on(store, run)
    kinds = ("visit", "up", "down", conductor.RESUMED)
    events = [(event.kind, event.layout) for event in store.events() if event.kind in kinds]
    names = [visit.layout for visit in run.plan().visits]
    visits = [[("visit", name), ("up", name), ("down", name)] for name in names]
    again = [step for visit in visits[1:] for step in visit]
    assert events == [*visits[0], *visits[1][:2], (conductor.RESUMED, None), *again]
    assert sorted(event.at for event in store.events()) == [event.at for event in store.events()]
