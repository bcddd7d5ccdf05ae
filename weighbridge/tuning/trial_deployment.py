"""The bench: the one deployment that trials are made on, with its driver, changed from arm to
arm.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from weighbridge.common.errors import DriverError, TargetError, UsageError, WeighbridgeError
from weighbridge.common.scope import Scope, widest
from weighbridge.conductor.measuring import Display, Measuring
from weighbridge.conductor.opening import NO_SETTINGS, DriverSettings, opened
from weighbridge.conductor.passes import asked_of_hosts, passes_of, wants_tools
from weighbridge.conductor.plan import Visit, keys_of
from weighbridge.drivers.driver import Driver, GaveUp
from weighbridge.results.record.attestation import Attested
from weighbridge.results.record.manifest import Sheet
from weighbridge.results.record.step import Pass, StepKey
from weighbridge.results.record.store import RunStore
from weighbridge.results.record.trial import Arm
from weighbridge.suites import Workload
from weighbridge.topologies.deployment import Deployment, StatePlace, deploy
from weighbridge.tuning.preparation import PreparedTuning
from weighbridge.tuning.space import Candidate, scope_between


@dataclass(frozen=True)
class Brought:
    """What was started anew to have an arm stand, and what was done, in words."""

    scope: Scope
    done: tuple[str, ...] = ()


class TrialDeployment:
    """Has one arm stand at a time; a context manager that takes everything away. Nothing stands
    before the first arm is wanted.

    `number` is what the first deployment is called, counted from 0 over all of the run. `settings`
    are drivers' own.
    """

    def __init__(
        self,
        ready: PreparedTuning,
        store: RunStore,
        display: Display,
        place: StatePlace,
        measuring: Measuring,
        *,
        number: int = 0,
        attest: bool = False,
        settings: DriverSettings = NO_SETTINGS,
    ) -> None:
        self._ready = ready
        self._store = store
        self._display = display
        self._place = place
        self._measuring = measuring
        self._attest = attest
        self._settings = settings
        self._way: Pass = passes_of(ready.suite, ())[0]
        # Buckets carry the run's own id, as in every run.
        self._prefix = f"wb-{store.manifest.run_id.rsplit('-', 1)[-1]}"
        self._next = number
        self._stack = ExitStack()
        self._deployment: Deployment | None = None
        self._arm: Arm | None = None
        self._doubt: tuple[Scope, ...] = ()
        """What would have to be started anew for what stands to be what it is thought to be."""
        self._driving = ExitStack()
        self._driver: Driver | None = None
        self._opened = 0
        self._prepared: dict[str, Workload] = {}
        self._described: set[str] = set()

    @property
    def number(self) -> int:
        """Which deployment stands; where none does, the one that will."""
        return self._next - 1 if self._deployment is not None else self._next

    def scope_to(self, arm: Arm) -> Scope:
        """What has to be started anew to have an arm stand."""
        if self._arm is None:
            return "cluster"
        scope = widest([scope_between(self._arm, arm, self._ready.scopes), *self._doubt])
        # Buckets that no driver knows any more cannot be emptied.
        return "cluster" if scope == "buckets" and self._driver is None and self._opened else scope

    def bring(self, wanted: Candidate) -> Brought:
        """Have an arm stand.

        Raises what `deploy` and `Deployment.change` raise, and DriverError; then what stands is in
        doubt.
        """
        scope, deployment = self.scope_to(wanted.arm), self._deployment
        if deployment is None or scope == "cluster":
            self.take_down()
            return Brought("cluster", (self._stand_up(wanted),))
        if self._arm == wanted.arm and not self._doubt:
            return Brought("nothing")
        self._display.say(f"changing to {wanted.arm.name}")
        if scope == "buckets":
            self._empty(deployment)
        self._doubt = (*self._doubt, scope)
        done = deployment.change(wanted.planned, scope, self._display.say)
        self._arm, self._doubt = wanted.arm, ()
        self._describe(deployment)
        self._measuring.note("changed", deployment, done)
        return Brought(scope, done)

    def refused(self, arms: Sequence[Candidate]) -> list[str]:
        """Why what stands cannot be changed to these arms, a line for each that it cannot; empty
        where it can. Touches nothing.
        """
        deployment, arm = self._deployment, self._arm
        assert deployment is not None  # noqa: S101 - something was brought
        assert arm is not None  # noqa: S101
        found = []
        for one in arms:
            scope = scope_between(arm, one.arm, self._ready.scopes)
            if scope != "cluster":  # which changes nothing that stands
                try:
                    deployment.may_change(one.planned, scope)
                except UsageError as error:
                    settings = ", ".join(
                        f"{key}={value}" for key, value in one.arm.settings.items()
                    )
                    found.append(f"{settings}: {error.message}")
        return found

    def measure(self, one: Candidate, repeat: int) -> float:
        """All steps of an arm that stands, as this trial of it; returns when the first began, on
        the monotonic clock, in seconds.

        Raises DriverError or TargetError, when every step has been written down.
        """
        deployment = self._deployment
        assert deployment is not None  # noqa: S101 - it was brought
        assert self._arm == one.arm  # noqa: S101
        keys = [
            (workload, key)
            for workload in self._way.workloads
            for key in keys_of(Visit(layout=one.arm.name, repeat=repeat), self._way, workload)
        ]
        began: float | None = None
        try:
            driver = self._open(deployment)
            with self._measuring.watching(one.planned, deployment) as watch:
                while keys:
                    workload, key = keys[0]
                    self._prepare(deployment, driver, workload)
                    began = time.monotonic() if began is None else began
                    if "delete" in workload.operations:
                        del self._prepared[
                            workload.name
                        ]  # what a step deletes has to be there again before the next
                    keys.pop(0)
                    self._measuring.step(one.planned, deployment, watch, driver, workload, key)
        except (DriverError, TargetError) as error:
            self._failed(deployment, error, [key for _, key in keys])
            raise
        assert began is not None  # noqa: S101 - a suite has steps
        return began

    def not_measured(self, arm: Arm, repeat: int, error: WeighbridgeError) -> None:
        """Write the steps of a trial down that the gateway did not come up for."""
        visit = Visit(layout=arm.name, repeat=repeat)
        keys = [
            key for workload in self._way.workloads for key in keys_of(visit, self._way, workload)
        ]
        self._measuring.not_measured(
            keys, error, why="the gateway does not run with these settings"
        )

    def mend(self) -> None:
        """After a failure: have the baseline stand again, or nothing, so that the next arm gets a
        new deployment.
        """
        if self._deployment is None:
            return
        self._display.say("going back to the baseline")
        try:
            self.bring(self._ready.baseline)
            self._deployment.check()
        except (TargetError, DriverError, UsageError) as error:
            self._store.event(
                "failed",
                f"the baseline did not come back: {error}",
                layout=self._ready.baseline.arm.name,
            )
            self.take_down()

    def take_down(self) -> None:
        """Take everything away."""
        if self._deployment is not None:
            self._display.say(f"taking {self._deployment.label} down")
        self._take_down(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._take_down(kind, error, trace)

    def _take_down(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        deployment, self._deployment, self._arm, self._doubt = self._deployment, None, None, ()
        stack, self._stack = self._stack, ExitStack()
        with stack:
            self._close_driver(kind, error, trace)
        if deployment is not None:
            self._store.event(
                "down", f"{deployment.label} is taken down", layout=deployment.layout.name
            )

    def _stand_up(self, wanted: Candidate) -> str:
        ready, say, number = self._ready, self._display.say, self._next
        say(f"standing up {wanted.arm.name}")
        self._next += 1
        self._opened = 0
        deployment = self._stack.enter_context(
            deploy(
                wanted.planned,
                ready.hardware,
                self._place,
                say,
                logs=self._store.logs / f"{ready.baseline.arm.name}-{number}",
                attest=asked_of_hosts(ready.suite, sameness=self._attest),
                tools=wants_tools(ready.suite),
            )
        )
        text = f"{deployment.label} stands after {deployment.took_s:.2f} s"
        say(text)
        self._store.event("up", text, layout=wanted.arm.name)
        if deployment.attestation is not None:
            figures = deployment.attestation.ceilings
            self._store.attest(
                [
                    Attested(layout=ready.baseline.arm.name, repeat=number, **dict(one))
                    for one in figures
                ]
            )
            self._store.add_facts(
                [Sheet(title="attestation", facts=dict(deployment.attestation.tools))]
            )
        self._deployment, self._arm = deployment, wanted.arm
        self._describe(deployment)
        return text

    def _describe(self, deployment: Deployment) -> None:
        """Facts and configuration files of each arm, once."""
        if deployment.layout.name not in self._described:
            self._described.add(deployment.layout.name)
            self._measuring.describe(deployment)

    def _open(self, deployment: Deployment) -> Driver:
        if self._driver is None:
            self._opened += 1
            log = (
                self._store.logs
                / f"driver-{self._ready.baseline.arm.name}-{self._next - 1}-{self._opened}.log"
            )
            opening = opened(
                deployment,
                self._ready.suite,
                self._way,
                prefix=self._prefix,
                log=log,
                settings=self._settings,
            )
            found = self._driving.enter_context(opening)
            self._store.add_facts([Sheet(title="driver", facts=dict(found.versions))])
            self._driver = found.driver
        return self._driver

    def _prepare(self, deployment: Deployment, driver: Driver, workload: Workload) -> None:
        if workload.name not in self._prepared:
            self._measuring.prepare(deployment, driver, workload)
            self._prepared[workload.name] = workload

    def _empty(self, deployment: Deployment) -> None:
        """Delete what workloads work on, with its buckets: only new ones have what is going to be
        changed.
        """
        for workload in tuple(self._prepared.values()) if self._driver is not None else ():
            assert self._driver is not None  # noqa: S101
            self._measuring.clean(deployment, self._driver, workload)
        self._prepared.clear()

    def _failed(
        self, deployment: Deployment, error: WeighbridgeError, left: Sequence[StepKey]
    ) -> None:
        """Write down what was not measured; a driver that could not do what it was asked is of no
        more use.
        """
        self._display.say(error.message)
        self._store.event("failed", str(error), layout=deployment.layout.name)
        if isinstance(error, GaveUp):
            self._measuring.keep(
                f"{deployment.layout.name}-failed-{self._measuring.order}", error.kept
            )
        self._measuring.not_measured(left, error)
        self._doubt = ("restart",)
        self._close_driver(type(error), error, None)

    def _close_driver(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the driver: asked to when all is well, at once after an error.

        One that does not end well is told of, no more.
        """
        self._driver = None
        self._prepared.clear()
        driving, self._driving = self._driving, ExitStack()
        try:
            driving.__exit__(kind, error, trace)
        except DriverError as failed:
            self._store.event("failed", str(failed))
