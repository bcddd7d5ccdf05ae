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
from weighbridge.conductor import pass_runner
from weighbridge.conductor.conductor import Conductor
from weighbridge.drivers.kind import OpenedDriver
from weighbridge.drivers.protocol import Cleanup, DriverCommand, Prepare, Setup, Step
from weighbridge.results.record.measurement import Measurement
from weighbridge.results.record.step import Pass, StepResult
from weighbridge.suites import Suite

WORKLOAD = {**SUITE["workloads"][0], "workers": [1, 4]}


class QuietMachine:
    """A display that shows nothing."""

    def __getattr__(self, _name: str) -> Callable[..., None]:
        return lambda *_, **__: None


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
    store = run.store()
    Conductor(run.plan(), run.planned, store, QuietMachine(), run.place).run()
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
    store = run.store()
    Conductor(run.plan(), run.planned, store, QuietMachine(), run.place).run()
    assert drops[0] >= 3
    assert "drop" not in gateway.did[gateway.did.index("settle") :]
