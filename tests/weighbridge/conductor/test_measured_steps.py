"""The commands of a step, how its measurement is judged, and what is deleted after it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import fake_driver
from made_up import fake_measurement
from stub_run import SUITE, Run
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import TargetError
from weighbridge.conductor import pass_runner
from weighbridge.conductor.step_runner import dropping
from weighbridge.conductor.time_estimate import DRIVER_S, PREPARED_PER_S, units
from weighbridge.drivers.kind import OpenedDriver
from weighbridge.drivers.protocol import Cleanup, DriverCommand, Prepare, Setup, Step
from weighbridge.results.record.measurement import Measurement
from weighbridge.results.record.step import Pass, StepResult
from weighbridge.suites import Every, Suite

WORKLOAD = {**SUITE["workloads"][0], "workers": [1, 4]}


class Asked:
    """A driver that remembers its commands; `give` returns a step's measurement, or None for the
    fake driver's.
    """

    def __init__(self, give: Callable[[Step], Measurement] | None = None) -> None:
        self.commands: list[DriverCommand] = []
        self._give = give
        self._setup: Setup | None = None

    @contextmanager
    def opened(
        self, _deployment: object, suite: Suite, _one: Pass, **_named: object
    ) -> Iterator[OpenedDriver]:
        target = Endpoint(api="swift", url="http://here", user="u", key="k")
        self._setup = Setup(target=target, bucket_prefix="wb-test", seed=suite.seed)
        yield OpenedDriver(self, {})  # type: ignore[arg-type]  # what the conductor does not ask of a driver that is open

    def _answer(self, command: Prepare | Step | Cleanup) -> Any:
        self.commands.append(command)
        made: Any = fake_driver.answer(self._setup, command, lambda event: None)
        if isinstance(command, Step) and self._give is not None:
            made = made.model_copy(update={"measurement": self._give(command)})
        return made

    def prepare(self, command: Prepare, on_progress: object = None) -> Any:
        return self._answer(command)

    def step(self, command: Step, on_progress: object = None) -> Any:
        return self._answer(command)

    def cleanup(self, command: Cleanup, on_progress: object = None) -> Any:
        return self._answer(command)


def measured(
    folder: Path, patch: pytest.MonkeyPatch, driver: Asked, **suite: Any
) -> tuple[StepResult, ...]:
    """The steps of a run with one workload on the first of two layouts, by this driver."""
    patch.setattr(pass_runner, "opened", driver.opened)
    run = Run(folder, **{"workloads": [WORKLOAD], **suite})
    store = run.conduct()
    return tuple(step for step in store.steps() if step.key.layout == "rgw-a")


def test_each_step_is_ordered_with_its_own_workers_and_the_number_of_its_repeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Asked()
    steps = measured(tmp_path, monkeypatch, driver, repeats=3)
    ordered = {
        (command.workers, command.repeat)
        for command in driver.commands
        if isinstance(command, Step)
    }
    assert ordered == {(step.key.workers, step.key.repeat) for step in steps}
    assert ordered == {(workers, repeat) for workers in (1, 4) for repeat in range(3)}


def test_what_a_step_wrote_is_deleted_after_it_and_all_objects_after_the_workload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Asked()
    measured(tmp_path, monkeypatch, driver)
    did = [
        command.what if isinstance(command, Cleanup) else command.kind
        for command in driver.commands
    ]
    assert did[: len(did) // 2] == ["prepare", "step", "written", "step", "written", "all"]


@pytest.mark.parametrize(("bound", "valid"), [(0.001, False), (0.5, True)])
def test_failures_are_judged_by_the_bound_of_the_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: float, valid: bool
) -> None:
    failing = Asked(
        lambda command: fake_measurement(
            workload="small", workers=command.workers, window_s=5, errors={"http-503": 50}
        )
    )
    steps = measured(tmp_path, monkeypatch, failing, bounds={"error_share": bound})
    assert [step.valid for step in steps] == [valid, valid]
    assert all(any("http-503: 50" in note for note in step.notes) for step in steps)


@pytest.mark.parametrize(("rate_per_s", "valid"), [(None, False), (200.0, True), (300.0, False)])
def test_idle_workers_are_a_fault_in_a_closed_loop_and_not_at_a_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rate_per_s: float | None, valid: bool
) -> None:
    """Four workers of which two are busy: 1000 requests of 10 ms in 5 s."""
    idle = Asked(
        lambda command: fake_measurement(workload="small", workers=2, window_s=5).model_copy(
            update={"workers": command.workers}
        )
    )
    steps = measured(
        tmp_path,
        monkeypatch,
        idle,
        workloads=[{**WORKLOAD, "workers": [4], "rate_per_s": rate_per_s}],
    )
    assert [step.valid for step in steps] == [valid], [step.notes for step in steps]


def test_repeated_cache_drops_happen_only_while_a_step_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step lasts until the third drop; if there are fewer, until its deadline."""
    run = Run(tmp_path, workloads=[{**WORKLOAD, "workers": [4]}], cache={"every": "1s"})
    gateway, never = run.gateways["rgw-a"], threading.Event()
    drops: list[int] = []

    def waiting(command: Step) -> Measurement:
        deadline = time.monotonic() + 60
        while gateway.did.count("drop") < 3 and time.monotonic() < deadline:
            never.wait(0.02)
        drops.append(gateway.did.count("drop"))
        return fake_measurement(workload="small", workers=command.workers, window_s=5)

    monkeypatch.setattr(pass_runner, "opened", Asked(waiting).opened)
    run.planned = run.planned[:1]
    run.conduct()
    assert drops[0] >= 3
    assert "drop" not in gateway.did[gateway.did.index("settle") :]


LISTED = {
    "name": "list-all",
    "objects": {"size": "0B", "containers": 2, "per_container": 8},
    "operations": {"list-all": 1},
    "workers": [1, 4],
    "runtime": "5s",
    "listed": {"deleted": ["0%", "25%"]},
}
PLAIN = {**LISTED, "name": "plain", "operations": {"head": 1}, "listed": None}


def test_what_deletes_anothers_objects_is_prepared_after_the_others_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Asked()
    run = Run(tmp_path, cleanup="with-deployment", workloads=[LISTED, PLAIN])
    del run.planned[1:]
    monkeypatch.setattr(pass_runner, "opened", driver.opened)
    run.conduct()
    asked = [
        (one.kind, one.workload.name) for one in driver.commands if isinstance(one, Prepare | Step)
    ]
    assert asked == [
        ("prepare", "list-all"),
        ("prepare", "plain"),
        *[("step", "list-all")] * 2,
        ("prepare", "list-all-25-deleted"),
        *[("step", "list-all-25-deleted")] * 2,
        *[("step", "plain")] * 2,
    ]
    planned = [
        (one.kind, one.work.split()[0])
        for one in units(run.plan())
        if one.kind in ("prepare", "step")
    ]
    assert planned == asked


def test_the_time_of_writing_and_of_deleting_a_share_is_expected(tmp_path: Path) -> None:
    many = {**LISTED, "objects": {"size": "0B", "containers": 1, "per_container": 100_000}}
    run = Run(tmp_path, cleanup="with-deployment", workloads=[many])
    del run.planned[1:]
    expected_s = [one.guess_s - DRIVER_S for one in units(run.plan()) if one.kind == "prepare"]
    assert expected_s == [100_000 / PREPARED_PER_S, 25_000 / PREPARED_PER_S]


LATE_S = 10.0
"""A drop that has not come by then does not come."""


class Hours:
    """A clock that advances while the dropper waits, and caches of which a drop takes `takes_s`."""

    def __init__(self, *, takes_s: float = 0.0, fails_at: int = -1) -> None:
        self.now_s = 100.0
        self.at: list[float] = []
        self.dropped = threading.Semaphore(0)
        self.allowed = threading.Semaphore(0)
        self._takes_s = takes_s
        self._fails_at = fails_at

    def drop(self) -> None:
        if len(self.at) == self._fails_at:
            self.dropped.release()
            raise TargetError("the store has gone")
        self.at.append(self.now_s - 100.0)
        self.now_s += self._takes_s
        self.dropped.release()

    def rest(self, done: threading.Event, seconds: float) -> None:
        while not done.is_set():
            if self.allowed.acquire(timeout=0.05):
                self.now_s += seconds
                return

    def run(self, cache: str | Every, times: int) -> list[float]:
        """Seconds from the start of so many drops, or of all if there are fewer."""
        with dropping(cache, self.drop, clock=lambda: self.now_s, rest=self.rest):
            for _ in range(times):
                if not self.dropped.acquire(timeout=LATE_S):
                    break
                self.allowed.release()
        return self.at[:times]


def test_caches_are_dropped_at_once_and_then_every_minute_of_a_step() -> None:
    assert Hours().run(Every(every=60.0), 5) == [0.0, 60.0, 120.0, 180.0, 240.0]


def test_a_slow_drop_does_not_delay_the_next_one() -> None:
    assert Hours(takes_s=7.0).run(Every(every=60.0), 4) == [0.0, 60.0, 120.0, 180.0]
    assert Hours(takes_s=90.0).run(Every(every=60.0), 3) == [0.0, 90.0, 180.0]


def test_nothing_is_dropped_in_a_step_unless_the_suite_asks_for_it() -> None:
    hours = Hours()
    with dropping("before-step", hours.drop):
        pass
    assert hours.at == []


def test_a_drop_that_fails_fails_the_step_when_it_ends() -> None:
    hours = Hours(fails_at=1)
    with pytest.raises(TargetError, match="the store has gone"):
        hours.run(Every(every=60.0), 2)
    assert hours.at == [0.0]
