"""Measuring the passes of a visit on its deployment: drivers, preparation, steps, clean-up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from weighbridge.common.errors import DriverError, ServiceFailed, TargetError
from weighbridge.conductor.opening import DriverSettings, opened
from weighbridge.conductor.plan import Plan, StepTurn, Visit
from weighbridge.conductor.step_runner import Display, StepRunner, gateway_fault
from weighbridge.conductor.telemetry import Watch
from weighbridge.conductor.time_estimate import TimeEstimate, work_of
from weighbridge.drivers.kind import KINDS
from weighbridge.drivers.protocol import Driver, DriverFailure
from weighbridge.results.features.rate_search import RateStep, Searches
from weighbridge.results.numbers import show_share
from weighbridge.results.run.resolved import Sheet
from weighbridge.results.run.step import UNLIKE, Pass, StepKey
from weighbridge.results.run.store import RunStore
from weighbridge.suites import DEFAULT_DRIVER, continues
from weighbridge.topologies.deployment import Deployment
from weighbridge.topologies.loader import Planned

# What other programs disturbed is measured again at the end of its pass, when a burst may be over:
# on the same deployment, and in time that is left. Which measurement counts is decided by the
# neighbours' load alone, so that no figure is selected by what it is.


MOST_TIMES: Final = 2
"""How often a step is measured again."""
AGAIN: Final = "again"
"""The kind of event for a step that is measured again."""
SHARE: Final = 0.5
"""Of the time of a visit's steps, what measuring again may take if the run has no bound."""


@dataclass
class PassRunner:
    """Measures what is left of a visit on one deployment. `given_up`: steps not to try again."""

    plan: Plan
    visit: Visit
    planned: Planned
    deployment: Deployment
    watch: Watch
    runner: StepRunner
    store: RunStore
    display: Display
    estimate: TimeEstimate
    settings: DriverSettings
    prefix: str
    given_up: set[StepKey]
    searches: Searches | None = None
    at: StepTurn | None = None
    """The step that is measured or prepared."""
    tried: set[StepKey] = field(default_factory=set)
    """Steps that were started; they are recorded whatever happens."""
    spare_s: Callable[[], float | None] = lambda: None
    """The time that the rest of the run leaves; None: it has no bound."""
    took_s: dict[StepKey, float] = field(default_factory=dict)
    """How long each step of the visit took."""
    windows: list[bool] = field(default_factory=list)
    """Of each window of the visit, whether other programs spoilt it."""

    def measure(self, ways: Sequence[Pass]) -> bool:
        """Measure all steps of passes that take turns, each by the driver of its pass.

        If a driver fails, the rest of its current workload is given up, and the others get new
        drivers. Returns False if a daemon has died; its workload is then given up, too.
        """
        while turns := [turn for turn in self.plan.turns(self.visit, ways) if self._left(turn)]:
            self.at, self.tried = turns[0], set()
            only_prepared = self._only_prepared(ways)
            try:
                with ExitStack() as stack:
                    drivers: dict[str, Driver] = {}
                    # A driver may have nothing left but to write objects, as its layout has them.
                    every = (*turns, *only_prepared)
                    for turn in {turn.way.driver: turn for turn in reversed(every)}.values():
                        self.at = turn
                        # With a client's 0.4 CPU, Python takes 3 s to start.
                        sized = KINDS.get_or_refuse(turn.way.driver).sized_at_start
                        with nullcontext() if sized else self.deployment.unlimited():
                            drivers[turn.way.driver] = stack.enter_context(self._driving(turn.way))
                    self._measure_turns(drivers, turns, only_prepared)
            except (DriverError, TargetError) as error:
                if not self._failed(self.at, ways, error):
                    return False
        return True

    def _left(self, turn: StepTurn) -> bool:
        if turn.key in self.given_up:
            return False
        return turn.key not in self.runner.complete or self._next_of(turn) is not None

    def _only_prepared(self, ways: Sequence[Pass]) -> list[StepTurn]:
        turns = self.plan.prepared(self.visit, ways)
        return [turn for turn in turns if turn.key not in self.given_up]

    def _unlike(self) -> tuple[str, ...]:
        lacking = (
            turn.workload.name
            for ways in self.plan.groups(self.visit.layout)
            for turn in self.plan.prepared(self.visit, ways)
            if turn.key in self.given_up
        )
        return tuple(f"{UNLIKE}: no objects of {name}" for name in dict.fromkeys(lacking))

    def _next_of(self, turn: StepTurn) -> RateStep | None:
        return None if self.searches is None else self.searches.next_of(turn.key)

    def _failed(self, at: StepTurn, ways: Sequence[Pass], error: DriverError | TargetError) -> bool:
        """Record that a driver failed, and give up its workload; False if a daemon has died."""
        # If a driver fails because its gateway has died, report the gateway first.
        died = error if isinstance(error, ServiceFailed) else self._fault()
        first = error if died is None else died
        self.display.say(first.message)
        self.store.event("failed", str(first), layout=self.visit.layout)
        if first is not error:
            self.store.event("failed", str(error), layout=self.visit.layout)
        for gave_up in (error, error.__cause__):
            if isinstance(gave_up, DriverFailure):
                folder = f"{_file_name(self.visit, at.way)}-failed-{self.runner.order}"
                self.runner.keep(folder, gave_up.kept)
        lost = [
            turn.key
            for turn in self.plan.turns(self.visit, ways)
            if turn.way == at.way and turn.workload == at.workload and self._left(turn)
        ]
        why = "its workload was given up" if died is None else "the gateway had failed"
        untried = [key for key in lost if key not in {*self.tried, *self.runner.complete}]
        self.runner.not_measured(untried, first, why=why)
        unwritten = [turn.key for turn in self._only_prepared(ways) if turn == at]
        self.given_up.update(lost, unwritten)
        return not isinstance(died, ServiceFailed)

    def _fault(self) -> TargetError | None:
        """What is wrong with a gateway of ours; one that already runs was checked by its step."""
        if self.planned.gateway.already_runs:
            return None
        return gateway_fault(self.deployment, doubted=True)

    @contextmanager
    def _driving(self, way: Pass) -> Iterator[Driver]:
        with opened(
            self.deployment,
            self.plan.suite,
            way,
            prefix=self.prefix,
            log=self.store.logs / f"driver-{_file_name(self.visit, way)}.log",
            settings=self.settings,
        ) as ready:
            self.store.add_facts([Sheet(title="driver", facts=dict(ready.versions))])
            yield ready.driver

    def _measure_turns(
        self,
        drivers: Mapping[str, Driver],
        turns: Sequence[StepTurn],
        only_prepared: Sequence[StepTurn],
    ) -> None:
        """Measure steps in turn.

        Each driver prepares a workload before its first step and cleans up after the last. If what
        was written is deleted with the deployment, all are prepared first, and none is cleaned up;
        those that delete objects of others only after the steps of these.
        """
        suite = self.plan.suite
        leave = suite.cleanup == "with-deployment" and not self.planned.gateway.already_runs
        if leave:
            with self.deployment.unlimited():
                first = [one for one in turns if not continues(one.workload)]
                self._prepare(drivers, [*first, *only_prepared])
        for _, some in groupby(turns, key=lambda turn: turn.workload.name):
            these = list(some)
            if not leave:
                self._prepare(drivers, these)
            elif continues(these[0].workload):
                with self.deployment.unlimited():
                    self._prepare(drivers, these)
            begun: set[str] = set()
            for turn in these:
                driver = turn.way.driver
                if turn.key not in self.runner.complete:
                    self._measure_turn(drivers[driver], turn, again=driver in begun, leave=leave)
                begun.add(driver)
            for turn in these:
                self._search(drivers[turn.way.driver], turn, leave=leave)
            for turn in () if leave else _first_of_each(these):
                self.at = turn
                with self.estimate.doing("clean", self.visit, work_of(turn.way, turn.workload)):
                    self.runner.clean(self.deployment, drivers[turn.way.driver], turn.workload)
        self._repair(drivers, turns, leave=leave)
        # Once: it takes half a second of each host.
        self.runner.read_memory(self.deployment, turns[-1].workload, self.visit.repeat)

    def _prepare(self, drivers: Mapping[str, Driver], turns: Sequence[StepTurn]) -> None:
        for turn in _first_of_each(turns):
            self.at = turn
            with self.estimate.doing("prepare", self.visit, work_of(turn.way, turn.workload)):
                first = (self.visit.repeat, turn.way)
                driver = drivers[turn.way.driver]
                self.runner.prepare(self.deployment, driver, turn.workload, first)

    def _repair(
        self, drivers: Mapping[str, Driver], turns: Sequence[StepTurn], *, leave: bool
    ) -> None:
        """Measure steps again that other programs disturbed, while time lasts; not if they
        disturbed every window: that is load, and no burst.
        """
        repaired_s = 0.0
        disturbed = [turn for turn in turns if turn.key in self.runner.spoilt]
        plan = self.store.plan()
        for turn in [turn for turn in disturbed if plan.repairable(turn.key)] * MOST_TIMES:
            share = self.runner.spoilt.get(turn.key)
            if share is None:
                continue
            spare_s = self.spare_s()
            if spare_s is None:
                # A visit of one step has none to spare.
                whole_s = sum(self.took_s.values())
                spare_s = max(SHARE * whole_s, self.took_s[turn.key]) - repaired_s
            load = len(self.windows) > 1 and all(self.windows)
            if load or spare_s < self.took_s[turn.key]:
                why = "they disturb every window" if load else "there is no time"
                self._say_again(turn, share, f"not measured again: {why}")
                return
            self._say_again(turn, share, "measured again")
            self.estimate.again(self.visit, turn, leaves=leave)
            self.at, began = turn, time.monotonic()
            driver, workload = drivers[turn.way.driver], turn.workload
            if not leave or workload.deletes or workload.listed is not None:
                self.runner.prepare(self.deployment, driver, workload)
            self._measure_turn(driver, turn, again=False, leave=leave)
            if not leave:
                self.runner.clean(self.deployment, driver, workload)
            repaired_s += time.monotonic() - began

    def _say_again(self, turn: StepTurn, share: float, what: str) -> None:
        text = f"others used {show_share(share)} of this machine's CPUs in {turn.key}: {what}"
        self.display.say(text)
        layout, repeat = self.visit.layout, self.visit.repeat
        self.store.event(AGAIN, text, layout=layout, repeat=repeat, share=share)

    def _measure_turn(self, driver: Driver, turn: StepTurn, *, again: bool, leave: bool) -> None:
        self.at = turn
        began = time.monotonic()
        work = work_of(turn.way, turn.workload)
        with self.estimate.doing("step", self.visit, work, turn.key.workers):
            if again and turn.workload.deletes:
                # What the last step deleted must be there again.
                self.runner.prepare(self.deployment, driver, turn.workload)
            self.tried.add(turn.key)
            self.runner.step(
                self.planned,
                self.deployment,
                self.watch,
                driver,
                turn.workload,
                turn.key,
                leave=leave,
                also=self._unlike(),
            )
        self.took_s.setdefault(turn.key, time.monotonic() - began)
        self.windows.append(turn.key in self.runner.spoilt)

    def _search(self, driver: Driver, turn: StepTurn, *, leave: bool) -> None:
        """Measure the steps at a rate that the search after a step needs, one after the other."""
        if self._next_of(turn) is None:
            return
        self.at = turn
        self.display.say(f"searching the highest rate of {turn.workload.name}")
        work = work_of(turn.way, turn.workload)
        with self.estimate.doing("search", self.visit, work, turn.key.workers):
            while (asked := self._next_of(turn)) is not None:
                self.runner.step(
                    self.planned,
                    self.deployment,
                    self.watch,
                    driver,
                    asked.workload,
                    asked.key,
                    leave=leave,
                )


def _first_of_each(turns: Sequence[StepTurn]) -> list[StepTurn]:
    found: dict[tuple[str, str], StepTurn] = {}
    for turn in turns:
        found.setdefault((turn.way.driver, turn.workload.name), turn)
    return list(found.values())


def _file_name(visit: Visit, way: Pass) -> str:
    driver = way.driver if way.driver != DEFAULT_DRIVER else ""
    words = (visit.layout, way.api, way.layer, driver, str(visit.repeat))
    return "-".join(word for word in words if word)
