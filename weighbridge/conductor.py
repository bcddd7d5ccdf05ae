"""The run loop: stand a layout up, have a driver measure its steps, write each down, take it away, go on to the next."""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Final

from drivers.driver import Driver, GaveUp
from drivers.order import CosbenchSite
from ground.errors import DriverError, ServiceFailed, TargetError
from results.attestation import Attested
from results.manifest import Sheet
from results.step import Pass, StepKey
from results.store import RunStore
from suites import Workload
from topologies.attestation import Attestation
from topologies.deployment import Deployment, Place, deploy
from topologies.loader import Planned
from weighbridge import aging
from weighbridge.asking import ask_osds
from weighbridge.budget import Allowance
from weighbridge.clearing import buckets_of, clearing
from weighbridge.display import Display
from weighbridge.measuring import Measuring, dead
from weighbridge.opening import LOCUST, opened
from weighbridge.pace import Pace, show_duration, work_of
from weighbridge.passes import asked_of_hosts, wants_tools
from weighbridge.plan import Plan, Visit, keys_of
from weighbridge.profiling import Profiler
from weighbridge.quiet import EVENT, Quiet
from weighbridge.telemetry import Watch

RESUMED: Final = "resumed"
"""The kind of event that tells that a run goes on after it was ended or killed."""
BUDGET: Final = "budget"
"""The kind of event that tells that a run ends before its plan does."""


class Conductor:
    """Runs a plan into a run folder, or what that folder lacks of it: steps that are whole there are not measured again.

    `driver` is the module that Locust's driver is, with its arguments; `attest`: measure the hosts too; `allowance` is the time
    the run may take; `quiet` waits before each deployment for the machine to be quiet.
    """

    def __init__(
        self,
        plan: Plan,
        planned: Sequence[Planned],
        store: RunStore,
        display: Display,
        place: Place,
        *,
        driver: Sequence[str] = LOCUST,
        cosbench: CosbenchSite | None = None,
        attest: bool = False,
        profiler: Profiler | None = None,
        pace: Pace | None = None,
        allowance: Allowance | None = None,
        quiet: Quiet | None = None,
    ) -> None:
        self._plan = plan
        self._suite = plan.suite
        self._planned: Mapping[str, Planned] = {one.layout.name: one for one in planned}
        self._store = store
        self._display = display
        self._place = place
        self._driver = tuple(driver)
        self._cosbench = cosbench
        self._attest = attest
        self._allowance = allowance
        self._quiet = quiet
        self._measuring = Measuring(plan.suite, store, display, profiler=profiler)
        self._whole = self._measuring.whole
        self._pace = Pace.of(plan, self._whole) if pace is None else pace
        self._given_up: set[StepKey] = set()
        """Steps that could not be measured, and are not tried again in this go."""
        self._tries = sum(event.kind == RESUMED for event in store.events())
        self._attested_before = store.attested()
        # Buckets carry the run's own id, so that nothing but what this run made is ever touched.
        self._prefix = f"wb-{store.manifest.run_id.rsplit('-', 1)[-1]}"
        self._buckets = buckets_of(plan, self._prefix)

    def run(self) -> str:
        """Do the whole plan, or as much of it as the allowance holds; returns why not all of it, empty when it is all.

        A step that cannot be measured is written down with its reason and the plan goes on, after the death of a daemon on a
        new deployment; a gateway that cannot be stood up ends the run with its error (ServiceFailed, CommandFailed,
        VerificationFailed), everything taken away.
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
        return ""

    def _missing(self, visit: Visit) -> bool:
        """Whether anything of a visit is still to be measured."""
        keys = self._plan.keys(visit)
        return not keys or any(key not in self._whole for key in keys)

    def _too_late(self, visits: Sequence[Visit]) -> str:
        """Why the allowance holds no such repeat any more; empty where it does. One that was begun is always finished."""
        if self._allowance is None or any(key in self._whole for visit in visits for key in self._plan.keys(visit)):
            return ""
        repeat = visits[0].repeat
        needed_s, left_s = self._pace.repeat_s(repeat), self._allowance.left_s()
        if needed_s <= left_s:
            return ""
        text = f"the budget ends the run before repeat {repeat + 1} of {self._plan.suite.repeats}: it would take about"
        return f"{text} {show_duration(needed_s)}, and {show_duration(max(0.0, left_s))} is left"

    def _clear_what_was_left(self) -> None:
        """Of a run that was killed, buckets may be left on gateways that outlive it and are not visited again."""
        again = {visit.layout for visit in self._plan.visits if self._missing(visit)}
        for name, planned in self._planned.items():
            if planned.gateway.already_runs and name not in again:
                with deploy(planned, self._plan.hardware, self._place, self._display.say) as deployment:
                    self._clear(deployment)

    def _clear(self, deployment: Deployment) -> None:
        for text in deployment.standing.clear(self._buckets):
            self._measuring.telling("cleared", deployment.layout.name)(text)

    def _visit(self, visit: Visit) -> None:
        """One deployment, and another one each time that a daemon died and something is left: each death costs a workload."""
        deployments = 1
        while self._measured_on_one(visit, deployments):
            deployments += 1

    def _measured_on_one(self, visit: Visit, nth: int) -> bool:
        """Measure what is left of a visit on its `nth` deployment; whether that did not last, and another one is wanted."""
        say = self._display.say
        number = self._plan.visits.index(visit) + 1
        say(f"standing up {visit.layout}{' again' if nth > 1 else ''}")
        text = f"visit {number} of {len(self._plan.visits)}: repeat {visit.repeat + 1} of {self._plan.suite.repeats}"
        self._store.event("visit", text if nth == 1 else f"{text}, on deployment {nth}", layout=visit.layout)
        again = False
        if self._quiet is not None and (busy := self._quiet.wait(say)) is not None:
            self._store.event(EVENT, busy.words, layout=visit.layout, repeat=visit.repeat, share=busy.share)
        with ExitStack() as stack:
            with self._pace.doing("stand", visit):
                deployment = stack.enter_context(self._stood_up(visit, nth))
            for text in self._plan.left_out.get(visit.layout, ()):
                say(text)
                self._store.event("left out", text, layout=visit.layout)
            if nth == 1:
                self._ask_osds(deployment, visit)
            if self._tries:
                self._clear(deployment)
            planned = self._planned[visit.layout]
            with (
                clearing(deployment, self._buckets, self._measuring.telling("cleared", visit.layout)),
                self._measuring.watching(planned, deployment) as watch,
            ):
                for one in self._plan.passes[visit.layout] if self._aged(deployment, visit) else ():
                    if not self._measure_pass(deployment, watch, visit, one):
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
        asked, tools = asked_of_hosts(self._suite, sameness=self._attest), wants_tools(self._suite)
        planned, say = self._planned[visit.layout], self._display.say
        with deploy(planned, self._plan.hardware, self._place, say, logs=logs, attest=asked, tools=tools) as deployment:
            say(f"{visit.layout} stands, verified, after {deployment.took_s:.1f} s")
            self._store.event("up", f"{deployment.label} stands after {deployment.took_s:.2f} s", layout=visit.layout)
            if deployment.attestation is not None:
                self._attested(visit, deployment.attestation)
            self._measuring.describe(deployment)
            yield deployment

    def _told_apart(self, name: str, nth: int) -> str:
        """The name of files about a visit; of a visit that an interruption or a death cut in two, those of each part are kept."""
        words = [name, *([f"resumed-{self._tries}"] if self._tries else []), *([f"again-{nth - 1}"] if nth > 1 else [])]
        return "-".join(words)

    def _ask_osds(self, deployment: Deployment, visit: Visit) -> None:
        """What each OSD does by itself, where the suite asks for it; a figure that cannot be had is a gap, and ends no run."""
        if any((one.kind, one.layout, one.repeat) == ("osd", visit.layout, visit.repeat) for one in self._attested_before):
            return  # known of the part of this visit that came before an interruption: they add up over OSDs, not over parts
        try:
            figures = ask_osds(deployment, self._suite, visit.repeat)
        except (DriverError, TargetError) as error:
            self._display.say(f"layer osd: {error.message}")
            self._store.event("left out", f"layer osd: {error}", layout=visit.layout)
            return
        self._store.attest(figures)

    def _attested(self, visit: Visit, attestation: Attestation) -> None:
        figures = [Attested(layout=visit.layout, repeat=visit.repeat, **dict(one)) for one in attestation.ceilings]
        self._store.attest(figures)
        self._store.add_facts([Sheet(title="attestation", facts=dict(attestation.tools))])

    def _aged(self, deployment: Deployment, visit: Visit) -> bool:
        """Age the store as the suite asks; whether it can be measured. When it could not be aged, its steps are written down so."""
        if self._suite.age is None:
            return True
        self._display.say(f"aging {visit.layout}")
        log = self._store.logs / f"driver-{visit.layout}-age-{visit.repeat}.log"
        keys = [key for key in self._plan.keys(visit) if key not in self._whole]
        try:
            room = deployment.standing.room()
            lab = deployment.hardware.kind == "lab"
            order = aging.order_of(self._suite, room, shutil.disk_usage(self._place.home).free if lab else None)
            heard = self._display.progress
            with self._pace.doing("age", visit):
                aged = aging.age(deployment, self._suite, order, prefix=self._prefix, log=log, heard=heard, command=self._driver)
            self._measuring.note("aged", deployment, aging.told(order, aged, room))
            self._measuring.note("settled", deployment, deployment.standing.settle())
            deployment.check()
        except (DriverError, TargetError) as error:
            self._display.say(error.message)
            self._store.event("failed", str(error), layout=visit.layout)
            self._measuring.not_measured(keys, error)
            return False
        self._store.add_facts([Sheet(title="age", layout=visit.layout, facts=aging.facts(order, aged, room))])
        return True

    def _measure_pass(self, deployment: Deployment, watch: Watch, visit: Visit, one: Pass) -> bool:
        """All workloads of a pass by one driver; one that fails loses the rest of its workload, and the next gets a new one.

        Returns False when a daemon has died, and with it the workload at hand is given up.
        """
        wanted = [(workload, self._wanted(visit, one, workload)) for workload in one.workloads]
        waiting = deque((workload, keys) for workload, keys in wanted if keys)
        while waiting:
            try:
                with self._driving(deployment, visit, one) as driver:
                    while waiting:
                        workload, keys = waiting[0]
                        self._measure_workload(deployment, watch, driver, visit, work_of(one, workload), workload, keys)
                        waiting.popleft()
            except (DriverError, TargetError) as error:
                # A driver that fails since its gateway has died is not what is to be told of first.
                died = error if isinstance(error, ServiceFailed) else self._dead(deployment, visit)
                told = error if died is None else died
                self._display.say(told.message)
                self._store.event("failed", str(told), layout=visit.layout)
                if told is not error:
                    self._store.event("failed", str(error), layout=visit.layout)
                for gave_up in (error, error.__cause__):
                    if isinstance(gave_up, GaveUp):
                        self._measuring.keep(f"{_called(visit, one)}-failed-{self._measuring.order}", gave_up.kept)
                if waiting:
                    # What was asked for and not measured is written down as just that: never lost, never a number.
                    workload, keys = waiting.popleft()
                    why = "an earlier step failed" if died is None else "the gateway was not whole any more"
                    self._measuring.not_measured(keys, told, why=why)
                    self._given_up.update(filter(self._left, keys_of(visit, one, workload)))
                if isinstance(died, ServiceFailed):
                    return False
        return True

    def _dead(self, deployment: Deployment, visit: Visit) -> TargetError | None:
        """What has died of a gateway that is ours to stand up again; of one that already runs the step has told what is amiss."""
        return None if self._planned[visit.layout].gateway.already_runs else dead(deployment, doubted=True)

    def _wanted(self, visit: Visit, one: Pass, workload: Workload) -> deque[StepKey]:
        """The steps of a workload that are still to be measured. Who measures one takes it away, so that what is left is left."""
        return deque(filter(self._left, keys_of(visit, one, workload)))

    @contextmanager
    def _driving(self, deployment: Deployment, visit: Visit, one: Pass) -> Iterator[Driver]:
        log = self._store.logs / f"driver-{_called(visit, one)}.log"
        opening = partial(opened, deployment, self._suite, one, prefix=self._prefix, log=log)
        with opening(locust=self._driver, cosbench=self._cosbench) as ready:
            self._store.add_facts([Sheet(title="driver", facts=dict(ready.versions))])
            yield ready.driver

    def _measure_workload(
        self,
        deployment: Deployment,
        watch: Watch,
        driver: Driver,
        visit: Visit,
        work: str,
        workload: Workload,
        keys: deque[StepKey],
    ) -> None:
        measuring, planned = self._measuring, self._planned[visit.layout]
        with self._pace.doing("prepare", visit, work):
            measuring.prepare(deployment, driver, workload)
        first = True
        while keys:
            with self._pace.doing("step", visit, work, keys[0].workers):
                if not first and "delete" in workload.operations:
                    measuring.prepare(deployment, driver, workload)  # what the last step deleted has to be there again
                first = False
                measuring.step(planned, deployment, watch, driver, workload, keys.popleft())
        with self._pace.doing("clean", visit, work):
            measuring.clean(deployment, driver, workload)


def _called(visit: Visit, one: Pass) -> str:
    """What files about a pass are called."""
    words = [visit.layout, one.api, one.layer or "", one.driver if one.driver != "locust" else "", str(visit.repeat)]
    return "-".join(word for word in words if word)
