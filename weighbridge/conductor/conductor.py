"""The run loop: stand a layout up, have a driver measure its steps, write each down, take it away,
go on to the next.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Final

from weighbridge.common.errors import DriverError, ServiceFailed, TargetError
from weighbridge.conductor import aging
from weighbridge.conductor.ask_osds import ask_osds
from weighbridge.conductor.clearing import buckets_of, clearing
from weighbridge.conductor.further import next_block
from weighbridge.conductor.measuring import Display, Measuring, dead
from weighbridge.conductor.opening import NO_SETTINGS, DriverSettings, opened
from weighbridge.conductor.pace import Pace, TimeAllowance, show_duration, work_of
from weighbridge.conductor.passes import asked_of_hosts, wants_tools
from weighbridge.conductor.plan import Plan, StepTurn, Visit
from weighbridge.conductor.profiling import Profiler
from weighbridge.conductor.quiet import Quiet
from weighbridge.conductor.telemetry import Watch
from weighbridge.drivers.driver import Driver, GaveUp
from weighbridge.results.record.attestation import Attested
from weighbridge.results.record.manifest import BUSY, UNEVEN, Sheet
from weighbridge.results.record.step import Pass, StepKey
from weighbridge.results.record.store import RunStore
from weighbridge.suites import DEFAULT_DRIVER
from weighbridge.topologies.attestation import Attestation
from weighbridge.topologies.deployment import Deployment, StatePlace, deploy
from weighbridge.topologies.loader import Planned

RESUMED: Final = "resumed"
"""The kind of event that tells that a run goes on after it was ended or killed."""
BUDGET: Final = "budget"
"""The kind of event that tells that a run ends before its plan does."""
FURTHER: Final = "further"
"""The kind of event that tells why another block follows those of the suite's repeats, or why none
does.
"""


class Conductor:
    """Runs a plan into a run folder, or what that folder lacks of it: steps that are whole there
    are not measured again.

    `settings` are drivers' own; `attest`: measure the hosts too; `allowance` is the time the run
    may take; `quiet` waits before each deployment for the machine to be quiet; `further` is the
    time for blocks beyond the plan, and `grown` is told of a plan that has one more.
    """

    def __init__(
        self,
        plan: Plan,
        planned: Sequence[Planned],
        store: RunStore,
        display: Display,
        place: StatePlace,
        *,
        settings: DriverSettings = NO_SETTINGS,
        attest: bool = False,
        profiler: Profiler | None = None,
        pace: Pace | None = None,
        allowance: TimeAllowance | None = None,
        quiet: Quiet | None = None,
        further: TimeAllowance | None = None,
        grown: Callable[[Plan], None] = lambda _: None,
    ) -> None:
        self._plan = plan
        self._suite = plan.suite
        self._planned: Mapping[str, Planned] = {one.layout.name: one for one in planned}
        self._store = store
        self._display = display
        self._place = place
        self._settings = settings
        self._attest = attest
        self._allowance = allowance
        self._quiet = quiet
        self._further = further
        self._grown = grown
        self._measuring = Measuring(plan.suite, store, display, profiler=profiler)
        self._whole = self._measuring.whole
        self._pace = Pace.of(plan, self._whole) if pace is None else pace
        self._given_up: set[StepKey] = set()
        """Steps that could not be measured, and are not tried again in this go."""
        self._tries = sum(event.kind == RESUMED for event in store.events())
        self._attested_before = store.attested()
        self._attested_now: set[str] = set()
        """Layouts whose hosts were measured in this go."""
        # Buckets carry the run's own id, so that nothing but what this run made is ever touched.
        self._prefix = f"wb-{store.manifest.run_id.rsplit('-', 1)[-1]}"
        self._buckets = buckets_of(plan, self._prefix)

    def run(self) -> str:
        """Do the whole plan, or as much of it as the allowance holds; returns why not all of it,
        empty when it is all.

        A step that cannot be measured is written down with its reason and the plan goes on, after
        the death of a daemon on a new deployment; a gateway that cannot be stood up ends the run
        with its error (ServiceFailed, CommandFailed, VerificationFailed), everything taken away.
        """
        if self._tries:
            self._clear_what_was_left()
        begun = bool(self._whole)
        for visits in self._plan.blocks():
            if not any(map(self._missing, visits)):
                continue
            why = self._too_late(visits) if begun else ""
            if why:
                self._store.event(BUDGET, why)
                return why
            begun = True
            for visit in filter(self._missing, visits):
                self._visit(visit)
        while self._goes_further():
            for visit in self._plan.blocks()[-1]:
                self._visit(visit)
        return ""

    def _goes_further(self) -> bool:
        """Whether another block follows those of the plan, which then holds it as well."""
        if self._further is None:
            return False
        found = next_block(self._plan, self._store, self._pace, self._further.left_s())
        if found is None:
            return False
        self._store.event(FURTHER, found.why)
        if found.plan is None:
            return False
        self._display.say(found.why)
        self._plan = found.plan
        self._grown(found.plan)
        return True

    def _missing(self, visit: Visit) -> bool:
        """Whether anything of a visit is still to be measured."""
        keys = self._plan.keys(visit)
        return not keys or any(key not in self._whole for key in keys)

    def _too_late(self, visits: Sequence[Visit]) -> str:
        """Why the allowance holds no such repeat any more; empty where it does.

        One that was begun is always finished.
        """
        if self._allowance is None or any(
            key in self._whole for visit in visits for key in self._plan.keys(visit)
        ):
            return ""
        repeat = visits[0].repeat
        needed_s, left_s = self._pace.repeat_s(repeat), self._allowance.left_s()
        if needed_s <= left_s:
            return ""
        text = (
            f"the budget ends the run before repeat {repeat + 1} of "
            f"{self._plan.suite.repeats}: it would take about"
        )
        return f"{text} {show_duration(needed_s)}, and {show_duration(max(0.0, left_s))} is left"

    def _clear_what_was_left(self) -> None:
        """Of a run that was killed, buckets may be left on gateways that outlive it and are not
        visited again.
        """
        again = {visit.layout for visit in self._plan.visits if self._missing(visit)}
        for name, planned in self._planned.items():
            if planned.gateway.already_runs and name not in again:
                with deploy(
                    planned, self._plan.hardware, self._place, self._display.say
                ) as deployment:
                    self._clear(deployment)

    def _clear(self, deployment: Deployment) -> None:
        for text in deployment.standing.clear(self._buckets):
            self._measuring.telling("cleared", deployment.layout.name)(text)

    def _visit(self, visit: Visit) -> None:
        """One deployment, and another one each time that a daemon died and something is left: each
        death costs a workload.
        """
        deployments = 1
        while self._measured_on_one(visit, deployments):
            deployments += 1

    def _measured_on_one(self, visit: Visit, nth: int) -> bool:
        """Measure what is left of a visit on its `nth` deployment; whether that did not last, and
        another one is wanted.
        """
        say = self._display.say
        number = self._plan.visits.index(visit) + 1
        say(f"standing up {visit.layout}{' again' if nth > 1 else ''}")
        text = (
            f"visit {number} of {len(self._plan.visits)}: repeat {visit.repeat + 1} of "
            f"{self._plan.suite.repeats}"
        )
        self._store.event(
            "visit", text if nth == 1 else f"{text}, on deployment {nth}", layout=visit.layout
        )
        again = False
        if self._quiet is not None and (busy := self._quiet.wait(say)) is not None:
            self._store.event(
                BUSY, busy.words, layout=visit.layout, repeat=visit.repeat, share=busy.share
            )
        with ExitStack() as stack:
            with self._pace.doing("stand", visit):
                deployment = stack.enter_context(self._stood_up(visit, nth))
            stack.callback(
                deployment.close
            )  # should a signal come just before the one above is asked to
            for text in self._plan.left_out.get(visit.layout, ()):
                say(text)
                self._store.event("left out", text, layout=visit.layout)
            if nth == 1:
                self._ask_osds(deployment, visit)
            if self._tries:
                self._clear(deployment)
            planned = self._planned[visit.layout]
            with (
                clearing(
                    deployment, self._buckets, self._measuring.telling("cleared", visit.layout)
                ),
                self._measuring.watching(planned, deployment) as watch,
            ):
                for ways in (
                    self._plan.groups(visit.layout) if self._aged(deployment, visit) else ()
                ):
                    if not self._measure_group(deployment, watch, visit, ways):
                        again = any(map(self._left, self._plan.keys(visit)))
                        break
            say(f"taking {visit.layout} down")
            # In the plan a visit is taken down once: at its end.
            with nullcontext() if again else self._pace.doing("down", visit):
                stack.close()
        self._store.event("down", f"{deployment.label} is taken down", layout=visit.layout)
        return again

    def _left(self, key: StepKey) -> bool:
        """Whether a step is still to be tried in this go."""
        return key not in self._whole and key not in self._given_up

    @contextmanager
    def _stood_up(self, visit: Visit, nth: int) -> Iterator[Deployment]:
        """The layout of a visit, standing and attested, with what it is written down."""
        logs = self._store.logs / self._told_apart(f"{visit.layout}-{visit.repeat}", nth)
        # What the same hosts can do is measured once a layout; of a twin they are its layout's.
        sameness = self._attest and visit.layout not in {*self._attested_now, *self._plan.twins}
        asked, tools = asked_of_hosts(self._suite, sameness=sameness), wants_tools(self._suite)
        planned, say = self._planned[visit.layout], self._display.say
        with deploy(
            planned, self._plan.hardware, self._place, say, logs=logs, attest=asked, tools=tools
        ) as deployment:
            say(f"{visit.layout} stands, verified, after {deployment.took_s:.1f} s")
            self._store.event(
                "up",
                f"{deployment.label} stands after {deployment.took_s:.2f} s",
                layout=visit.layout,
            )
            if deployment.attestation is not None:
                self._attested(visit, deployment.attestation)
                self._attested_now.add(visit.layout)
            for text in deployment.standing.uneven:
                say(f"{visit.layout}: {text}: reads are provisional")
                self._store.event(UNEVEN, text, layout=visit.layout, repeat=visit.repeat)
            self._measuring.describe(deployment)
            yield deployment

    def _told_apart(self, name: str, nth: int) -> str:
        """The name of files about a visit; of a visit that an interruption or a death cut in two,
        those of each part are kept.
        """
        words = [
            name,
            *([f"resumed-{self._tries}"] if self._tries else []),
            *([f"again-{nth - 1}"] if nth > 1 else []),
        ]
        return "-".join(words)

    def _ask_osds(self, deployment: Deployment, visit: Visit) -> None:
        """What each OSD does by itself, where the suite asks for it; a figure that cannot be had is
        a gap, and ends no run.
        """
        if any(
            (one.kind, one.layout, one.repeat) == ("osd", visit.layout, visit.repeat)
            for one in self._attested_before
        ):
            # known of the part of this visit that came before an interruption: they add up over
            # OSDs, not over parts
            return
        try:
            figures = ask_osds(deployment, self._suite, visit.repeat)
        except (DriverError, TargetError) as error:
            self._display.say(f"layer osd: {error.message}")
            self._store.event("left out", f"layer osd: {error}", layout=visit.layout)
            return
        self._store.attest(figures)

    def _attested(self, visit: Visit, attestation: Attestation) -> None:
        figures = [
            Attested(layout=visit.layout, repeat=visit.repeat, **dict(one))
            for one in attestation.ceilings
        ]
        self._store.attest(figures)
        self._store.add_facts([Sheet(title="attestation", facts=dict(attestation.tools))])

    def _aged(self, deployment: Deployment, visit: Visit) -> bool:
        """Age the store as the suite asks; whether it can be measured.

        When it could not be aged, its steps are written down so.
        """
        if self._suite.age is None:
            return True
        self._display.say(f"aging {visit.layout}")
        log = self._store.logs / f"driver-{visit.layout}-age-{visit.repeat}.log"
        keys = [key for key in self._plan.keys(visit) if key not in self._whole]
        try:
            room = deployment.standing.room()
            lab = deployment.hardware.of.contained
            order = aging.order_of(
                self._suite, room, shutil.disk_usage(self._place.home).free if lab else None
            )
            heard = self._display.progress
            with self._pace.doing("age", visit):
                aged = aging.age(
                    deployment,
                    self._suite,
                    order,
                    prefix=self._prefix,
                    log=log,
                    heard=heard,
                    settings=self._settings,
                )
            self._measuring.note("aged", deployment, aging.told(order, aged, room))
            self._measuring.note("settled", deployment, deployment.standing.settle())
            deployment.check()
        except (DriverError, TargetError) as error:
            self._display.say(error.message)
            self._store.event("failed", str(error), layout=visit.layout)
            self._measuring.not_measured(keys, error)
            return False
        self._store.add_facts(
            [Sheet(title="age", layout=visit.layout, facts=aging.facts(order, aged, room))]
        )
        return True

    def _measure_group(
        self, deployment: Deployment, watch: Watch, visit: Visit, ways: Sequence[Pass]
    ) -> bool:
        """All steps of passes that take turns, each by the driver of its pass; a driver that fails
        loses the rest of the workload that it was at, and what is left gets new drivers.

        Returns False when a daemon has died, and with it the workload at hand is given up.
        """
        while turns := [turn for turn in self._plan.turns(visit, ways) if self._left(turn.key)]:
            group = _Group(deployment, watch, visit, turns[0])
            try:
                with ExitStack() as stack:
                    drivers: dict[str, Driver] = {}
                    for turn in {turn.way.driver: turn for turn in reversed(turns)}.values():
                        group.at = turn
                        drivers[turn.way.driver] = stack.enter_context(
                            self._driving(deployment, visit, turn.way)
                        )
                    self._measure_turns(group, drivers, turns)
            except (DriverError, TargetError) as error:
                if not self._failed(group, ways, error):
                    return False
        return True

    def _failed(
        self, group: _Group, ways: Sequence[Pass], error: DriverError | TargetError
    ) -> bool:
        """Write down that a driver failed, and give up what it was at; False when that is since a
        daemon has died.
        """
        visit, at = group.visit, group.at
        # A driver that fails since its gateway has died is not what is to be told of first.
        died = error if isinstance(error, ServiceFailed) else self._dead(group.deployment, visit)
        told = error if died is None else died
        self._display.say(told.message)
        self._store.event("failed", str(told), layout=visit.layout)
        if told is not error:
            self._store.event("failed", str(error), layout=visit.layout)
        for gave_up in (error, error.__cause__):
            if isinstance(gave_up, GaveUp):
                self._measuring.keep(
                    f"{_called(visit, at.way)}-failed-{self._measuring.order}", gave_up.kept
                )
        # What was asked for and not measured is written down as just that: never lost, never a
        # number.
        lost = [
            turn.key
            for turn in self._plan.turns(visit, ways)
            if turn.way == at.way and turn.workload == at.workload
        ]
        lost = [key for key in lost if self._left(key)]
        why = "an earlier step failed" if died is None else "the gateway was not whole any more"
        self._measuring.not_measured([key for key in lost if key not in group.tried], told, why=why)
        self._given_up.update(lost)
        return not isinstance(died, ServiceFailed)

    def _dead(self, deployment: Deployment, visit: Visit) -> TargetError | None:
        """What has died of a gateway that is ours to stand up again; of one that already runs the
        step has told what is amiss.
        """
        return (
            None
            if self._planned[visit.layout].gateway.already_runs
            else dead(deployment, doubted=True)
        )

    @contextmanager
    def _driving(self, deployment: Deployment, visit: Visit, one: Pass) -> Iterator[Driver]:
        log = self._store.logs / f"driver-{_called(visit, one)}.log"
        opening = partial(opened, deployment, self._suite, one, prefix=self._prefix, log=log)
        with opening(settings=self._settings) as ready:
            self._store.add_facts([Sheet(title="driver", facts=dict(ready.versions))])
            yield ready.driver

    def _measure_turns(
        self, group: _Group, drivers: Mapping[str, Driver], turns: Sequence[StepTurn]
    ) -> None:
        """Measure steps in turn. Before the first of a workload it is prepared by each driver that
        replays it, and cleaned up behind the last; where what was written goes with the deployment,
        all are prepared first, and none is cleaned up.
        """
        planned = self._planned[group.visit.layout]
        leave = self._suite.cleanup == "with-deployment" and not planned.gateway.already_runs
        if leave:
            with group.deployment.unlimited():
                self._prepare(group, drivers, turns)
        for _, some in groupby(turns, key=lambda turn: turn.workload.name):
            these = list(some)
            if not leave:
                self._prepare(group, drivers, these)
            begun: set[str] = set()
            for turn in these:
                group.at = turn
                self._measure_turn(
                    group,
                    drivers[turn.way.driver],
                    turn,
                    again=turn.way.driver in begun,
                    leave=leave,
                )
                begun.add(turn.way.driver)
            for turn in () if leave else _one_a_driver(these):
                group.at = turn
                with self._pace.doing("clean", group.visit, work_of(turn.way, turn.workload)):
                    self._measuring.clean(group.deployment, drivers[turn.way.driver], turn.workload)

    def _prepare(
        self, group: _Group, drivers: Mapping[str, Driver], turns: Sequence[StepTurn]
    ) -> None:
        """Make what these steps work on, once for each driver and workload."""
        for turn in _one_a_driver(turns):
            group.at = turn
            with self._pace.doing("prepare", group.visit, work_of(turn.way, turn.workload)):
                self._measuring.prepare(group.deployment, drivers[turn.way.driver], turn.workload)

    def _measure_turn(
        self, group: _Group, driver: Driver, turn: StepTurn, *, again: bool, leave: bool
    ) -> None:
        planned, deployment = self._planned[group.visit.layout], group.deployment
        with self._pace.doing(
            "step", group.visit, work_of(turn.way, turn.workload), turn.key.workers
        ):
            if again and "delete" in turn.workload.operations:
                self._measuring.prepare(
                    deployment, driver, turn.workload
                )  # what the last step deleted has to be there again
            group.tried.add(turn.key)
            self._measuring.step(
                planned, deployment, group.watch, driver, turn.workload, turn.key, leave=leave
            )


@dataclass
class _Group:
    """Passes that take turns on a deployment:

    `at` is the step at hand, or the one for which something is made ready.
    """

    deployment: Deployment
    watch: Watch
    visit: Visit
    at: StepTurn
    tried: set[StepKey] = field(default_factory=set)
    """Steps that were begun, and are written down whatever came of them."""


def _one_a_driver(turns: Sequence[StepTurn]) -> list[StepTurn]:
    """The first step of each driver and workload, in order."""
    found: dict[tuple[str, str], StepTurn] = {}
    for turn in turns:
        found.setdefault((turn.way.driver, turn.workload.name), turn)
    return list(found.values())


def _called(visit: Visit, one: Pass) -> str:
    """What files about a pass are called."""
    words = [
        visit.layout,
        one.api,
        one.layer or "",
        one.driver if one.driver != DEFAULT_DRIVER else "",
        str(visit.repeat),
    ]
    return "-".join(word for word in words if word)
