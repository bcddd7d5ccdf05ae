from pathlib import Path

import pytest

from stub_run import Run
from weighbridge.conductor.plan import Plan, Visit
from weighbridge.conductor.time_estimate import TimeEstimate, WorkUnit, show_duration, units
from weighbridge.results.record.step import StepKey
from weighbridge.topologies.hardware import Hardware

FIRST, SECOND = Visit(layout="rgw-a", repeat=0), Visit(layout="swift-b", repeat=0)
AGAIN = Visit(layout="rgw-a", repeat=1)


class Clock:
    """A clock that tests set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr("weighbridge.conductor.time_estimate.time.monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def do(one: TimeEstimate, clock: Clock, unit: WorkUnit, took_s: float) -> None:
    with one.doing(unit.kind, unit.visit, unit.work, unit.workers):
        clock.now += took_s


def test_a_unit_is_estimated_from_the_same_unit_of_the_last_repeat(clock: Clock) -> None:
    todo = [WorkUnit("start", visit, guess_s=10) for visit in (FIRST, SECOND, AGAIN)]
    one = TimeEstimate(todo)
    assert one.left_s() == 30
    do(one, clock, todo[0], 20)
    do(one, clock, todo[1], 40)
    assert one.left_s() == 20
    assert one.repeat_s(0) == 0
    assert one.repeat_s(1) == 20


def test_a_guess_is_corrected_by_the_error_of_similar_guesses(clock: Clock) -> None:
    todo = [
        WorkUnit("prepare", FIRST, "small", guess_s=2),
        WorkUnit("prepare", FIRST, "large", guess_s=50),
    ]
    one = TimeEstimate(todo)
    do(one, clock, todo[0], 6)
    assert one.left_s() == 150


def test_only_what_a_step_takes_beyond_its_window_is_learned(clock: Clock) -> None:
    todo = [
        WorkUnit("step", FIRST, "small", 1, planned_s=10, guess_s=2),
        WorkUnit("step", FIRST, "long", 1, planned_s=100, guess_s=2),
    ]
    one = TimeEstimate(todo)
    do(one, clock, todo[0], 13)
    assert one.left_s() == 103


def test_the_current_unit_counts_with_its_time_left_but_not_below_0(clock: Clock) -> None:
    one = TimeEstimate(
        [WorkUnit("step", FIRST, "small", 1, planned_s=10), WorkUnit("stop", FIRST, guess_s=3)]
    )
    with one.doing("step", FIRST, "small", 1):
        clock.now = 4
        assert one.left_s() == 9
        clock.now = 400
        assert one.left_s() == 3


def test_skipped_and_failed_units_are_dropped_and_not_learned_from(clock: Clock) -> None:
    todo = [WorkUnit("step", FIRST, "small", workers, planned_s=10) for workers in (1, 2, 3)]
    one = TimeEstimate([*todo, WorkUnit("stop", FIRST, guess_s=3)])

    def fail() -> None:
        with one.doing("step", FIRST, "small", 1):
            clock.now += 500
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert one.left_s() == 23
    do(one, clock, WorkUnit("stop", FIRST), 3)
    assert one.left_s() == 0


def test_a_plan_has_all_its_units_and_a_resumed_one_the_rest(tmp_path: Path) -> None:
    plan = Run(tmp_path, repeats=2).plan()
    everything = units(plan)
    assert sum(unit.kind == "step" for unit in everything) == plan.steps
    assert sum(unit.planned_s for unit in everything) == plan.seconds
    assert len({unit.name for unit in everything}) == len(everything)
    done = {key for visit in plan.visits[:2] for key in plan.keys(visit)} | {
        plan.keys(plan.visits[2])[0]
    }
    left = units(plan, done)
    assert {unit.visit for unit in left} == set(plan.visits[2:])
    assert sum(unit.kind == "step" for unit in left) == plan.steps - len(done)


def test_a_workload_whose_steps_are_all_measured_is_not_prepared(tmp_path: Path) -> None:
    plan = Run(tmp_path).plan()
    small: set[StepKey] = {key for key in plan.keys(plan.visits[0]) if key.workload == "small"}
    first = [unit for unit in units(plan, small) if unit.visit == plan.visits[0]]
    assert [(unit.kind, unit.work.split(" ")[0]) for unit in first if unit.work] == [
        ("prepare", "mixed"),
        ("step", "mixed"),
        ("clean", "mixed"),
    ]


def test_attested_hosts_take_longer_to_start_and_only_in_the_lab(tmp_path: Path) -> None:
    plan = Run(tmp_path).plan()
    lab = Hardware.model_validate(
        {"name": "lab", "kind": "lab", "hosts": {"client-1": {}, "gateway-1": {}}}
    )

    def starting_s(one: Plan, *, attest: bool) -> float:
        return units(one.model_copy(update={"attest": attest}))[0].guess_s

    real = plan.model_copy(update={"hardware": lab})
    assert (
        starting_s(real, attest=True)
        > starting_s(real, attest=False)
        > starting_s(plan, attest=True)
    )


@pytest.mark.parametrize(("seconds", "shown"), [(7, "0:07"), (425.4, "7:05"), (4025, "1:07:05")])
def test_a_duration_is_shown_like_a_clock(seconds: float, shown: str) -> None:
    assert show_duration(seconds) == shown
