"""The one deployment that trials run on, with its driver, changed from setting to setting."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass, field
from types import TracebackType
from typing import Self

from weighbridge.common.errors import DriverError, TargetError, UsageError, WeighbridgeError
from weighbridge.common.structure import Scope, widest
from weighbridge.conductor.opening import DriverSettings, opened
from weighbridge.conductor.passes import asked_of_hosts, passes_of, wants_tools
from weighbridge.conductor.plan import Visit, keys_of
from weighbridge.conductor.step_runner import Display, StepRunner
from weighbridge.drivers.protocol import Driver, DriverFailure
from weighbridge.results.run.resolved import Sheet
from weighbridge.results.run.step import Pass, StepKey
from weighbridge.results.run.store import RunStore
from weighbridge.results.run.trial import LayoutVariant
from weighbridge.suites import Workload
from weighbridge.topologies.deployment import Deployment, StateFolders, deploy
from weighbridge.tuning.preparation import PreparedTuning
from weighbridge.tuning.space import Candidate, scope_between


@dataclass(frozen=True)
class Switched:
    """What was restarted for a setting, and what was done, in words."""

    scope: Scope
    done: tuple[str, ...] = ()


@dataclass
class TrialDeployment:
    """Runs a candidate at a time and tears all down; `next`: the number of the next deployment."""

    prepared: PreparedTuning
    store: RunStore
    display: Display
    place: StateFolders
    runner: StepRunner
    _: KW_ONLY
    next: int = 0
    attest: bool = False
    settings: DriverSettings = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._way: Pass = passes_of(self.prepared.suite, ())[0]
        # Buckets carry the run's own id, as in every run.
        self._prefix = f"wb-{self.store.manifest.run_id.rsplit('-', 1)[-1]}"
        self._stack = ExitStack()
        self._deployment: Deployment | None = None
        self._variant: LayoutVariant | None = None
        self._doubt: tuple[Scope, ...] = ()
        """What must be restarted before the running settings are certain."""
        self._driving = ExitStack()
        self._driver: Driver | None = None
        self._opened = 0
        self._prepared: dict[str, Workload] = {}
        self._described: set[str] = set()

    @property
    def number(self) -> int:
        """The number of the running deployment, or of the next one."""
        return self.next - 1 if self._deployment is not None else self.next

    def scope_to(self, variant: LayoutVariant) -> Scope:
        """What must be restarted for a setting."""
        if self._variant is None:
            return "cluster"
        scope = widest([scope_between(self._variant, variant, self.prepared.scopes), *self._doubt])
        # Buckets that no driver knows any more cannot be emptied.
        return "cluster" if scope == "buckets" and self._driver is None and self._opened else scope

    def switch_to(self, wanted: Candidate) -> Switched:
        """Run a candidate. Raises as `deploy`, `change` or DriverError: its settings are uncertain
        then.
        """
        scope, deployment = self.scope_to(wanted.variant), self._deployment
        if deployment is None or scope == "cluster":
            self.tear_down()
            return Switched("cluster", (self._start(wanted),))
        if self._variant == wanted.variant and not self._doubt:
            return Switched("nothing")
        self.display.say(f"changing to {wanted.variant.name}")
        if scope == "buckets":
            if self._driver is not None:
                for workload in self._prepared.values():
                    self.runner.clean(deployment, self._driver, workload)
            self._prepared.clear()
        self._doubt = (*self._doubt, scope)
        done = deployment.change(wanted.planned, scope, self.display.say)
        self._variant, self._doubt = wanted.variant, ()
        self._describe(deployment)
        self.runner.note("changed", deployment, done)
        return Switched(scope, done)

    def refusals(self, candidates: Sequence[Candidate]) -> list[str]:
        """Why the deployment cannot be changed to these candidates, one line for each."""
        deployment, variant = self._deployment, self._variant
        assert deployment is not None  # noqa: S101 - `switch_to` was called
        assert variant is not None  # noqa: S101 - as above
        found = []
        for one in candidates:
            scope = scope_between(variant, one.variant, self.prepared.scopes)
            if scope != "cluster":  # which starts a new deployment
                try:
                    deployment.may_change(one.planned, scope)
                except UsageError as error:
                    found.append(f"{one.words}: {error.message}")
        return found

    def measure(self, one: Candidate, repeat: int) -> float:
        """All steps as one trial; returns its start on the monotonic clock. Raises DriverError or
        TargetError when all is recorded.
        """
        deployment = self._deployment
        assert deployment is not None  # noqa: S101 - `switch_to` was called
        assert self._variant == one.variant  # noqa: S101 - as above
        keys = [
            (workload, key)
            for workload in self._way.workloads
            for key in keys_of(Visit(layout=one.variant.name, repeat=repeat), self._way, workload)
        ]
        began: float | None = None
        try:
            driver = self._open(deployment)
            with self.runner.watching(one.planned, deployment) as watch:
                while keys:
                    workload, key = keys[0]
                    if workload.name not in self._prepared:
                        self.runner.prepare(deployment, driver, workload)
                        self._prepared[workload.name] = workload
                    began = time.monotonic() if began is None else began
                    if workload.deletes:
                        # What a step deletes must be there again before the next.
                        del self._prepared[workload.name]
                    keys.pop(0)
                    self.runner.step(one.planned, deployment, watch, driver, workload, key)
        except (DriverError, TargetError) as error:
            self._failed(deployment, error, [key for _, key in keys])
            raise
        assert began is not None  # noqa: S101 - a suite has steps
        return began

    def not_measured(self, variant: LayoutVariant, repeat: int, error: WeighbridgeError) -> None:
        """Record the steps of a trial for which the gateway did not start."""
        visit = Visit(layout=variant.name, repeat=repeat)
        keys = [
            key for workload in self._way.workloads for key in keys_of(visit, self._way, workload)
        ]
        self.runner.not_measured(keys, error, why="the gateway does not run with these settings")

    def recover(self) -> None:
        """After a failure: run the baseline again, or nothing (the next gets a new deployment)."""
        if self._deployment is None:
            return
        self.display.say("going back to the baseline")
        try:
            self.switch_to(self.prepared.baseline)
            self._deployment.check()
        except (TargetError, DriverError, UsageError) as error:
            self.store.event(
                "failed",
                f"the baseline did not start again: {error}",
                layout=self.prepared.baseline.variant.name,
            )
            self.tear_down()

    def tear_down(self) -> None:
        if self._deployment is not None:
            self.display.say(f"stopping {self._deployment.label}")
        self.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        deployment, self._deployment, self._variant, self._doubt = self._deployment, None, None, ()
        stack, self._stack = self._stack, ExitStack()
        with stack:
            self._close_driver(kind, error, trace)
        if deployment is not None:
            self.store.event(
                "down", f"{deployment.label} is torn down", layout=deployment.layout.name
            )

    def _start(self, wanted: Candidate) -> str:
        tuning, say, number = self.prepared, self.display.say, self.next
        say(f"starting {wanted.variant.name}")
        self.next += 1
        self._opened = 0
        deployment = self._stack.enter_context(
            deploy(
                wanted.planned,
                tuning.hardware,
                self.place,
                say,
                logs=self.store.logs / f"{tuning.baseline.variant.name}-{number}",
                attest=asked_of_hosts(tuning.suite, sameness=self.attest),
                tools=wants_tools(tuning.suite),
            )
        )
        text = f"{deployment.label} is running after {deployment.took_s:.2f} s"
        say(text)
        self.store.event("up", text, layout=wanted.variant.name)
        if deployment.attestation is not None:
            self.runner.attested(tuning.baseline.variant.name, number, deployment.attestation)
        self._deployment, self._variant = deployment, wanted.variant
        self._describe(deployment)
        return text

    def _describe(self, deployment: Deployment) -> None:
        if deployment.layout.name not in self._described:
            self._described.add(deployment.layout.name)
            self.runner.describe(deployment)

    def _open(self, deployment: Deployment) -> Driver:
        if self._driver is None:
            self._opened += 1
            baseline = self.prepared.baseline.variant.name
            log = f"driver-{baseline}-{self.next - 1}-{self._opened}.log"
            opening = opened(
                deployment,
                self.prepared.suite,
                self._way,
                prefix=self._prefix,
                log=self.store.logs / log,
                settings=self.settings,
            )
            found = self._driving.enter_context(opening)
            self.store.add_facts([Sheet(title="driver", facts=dict(found.versions))])
            self._driver = found.driver
        return self._driver

    def _failed(
        self, deployment: Deployment, error: WeighbridgeError, left: Sequence[StepKey]
    ) -> None:
        """Record what was not measured, and end the driver, which may be out of step."""
        self.display.say(error.message)
        self.store.event("failed", str(error), layout=deployment.layout.name)
        if isinstance(error, DriverFailure):
            self.runner.keep(f"{deployment.layout.name}-failed-{self.runner.order}", error.kept)
        self.runner.not_measured(left, error)
        self._doubt = ("restart",)
        self._close_driver(type(error), error, None)

    def _close_driver(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the driver: on request, at once after an error; a bad end is only recorded."""
        self._driver = None
        self._prepared.clear()
        driving, self._driving = self._driving, ExitStack()
        try:
            driving.__exit__(kind, error, trace)
        except DriverError as failed:
            self.store.event("failed", str(failed))
