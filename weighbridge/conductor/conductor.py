"""The run loop: start a layout, measure its steps, record each, tear it down, and so on."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Final

from weighbridge.common.errors import DriverError, TargetError
from weighbridge.common.quantities import show_bytes
from weighbridge.conductor import aging
from weighbridge.conductor.capable import SHEET, ask_for_run, sheet_of
from weighbridge.conductor.clearing import Sweep, buckets_of, clear, clearing, sheets, sweep_of
from weighbridge.conductor.durability import DurabilityPass
from weighbridge.conductor.opening import DriverSettings
from weighbridge.conductor.pass_runner import PassRunner
from weighbridge.conductor.passes import asked_of_hosts, wants_tools
from weighbridge.conductor.plan import Plan, Visit
from weighbridge.conductor.profiling import Profiler
from weighbridge.conductor.quiet import QuietMachine
from weighbridge.conductor.step_runner import Display, StepRunner
from weighbridge.conductor.telemetry import Watch
from weighbridge.conductor.time_estimate import TimeAllowance, TimeEstimate, show_duration, units
from weighbridge.drivers.rados import RadosCluster, osd_figures
from weighbridge.gateways.gateway import Say
from weighbridge.results.features.open_run import open_run
from weighbridge.results.features.rate_search import judged, read_searches
from weighbridge.results.figures.metrics import PRIMARY
from weighbridge.results.judge.comparison import Comparison, Effect
from weighbridge.results.judge.host_equality import MEDIAN_FROM, host_doubts, odd_layouts
from weighbridge.results.numbers import counted
from weighbridge.results.run.resolved import BUSY, UNEVEN, Sheet
from weighbridge.results.run.step import StepKey, StepResult
from weighbridge.results.run.store import RunStore
from weighbridge.results.run.telemetry import Attested
from weighbridge.results.run.trial import TuningStore
from weighbridge.suites import Suite
from weighbridge.topologies.attestation import HostCeiling
from weighbridge.topologies.deployment import Deployment, StateFolders, deploy
from weighbridge.topologies.loader import Planned


def ask_osds(deployment: Deployment, suite: Suite, repeat: int) -> list[Attested]:
    """Each OSD's write rate at the suite's sizes, if asked. Raises CommandFailed, TargetError."""
    # Asking what is below a gateway may run programs on its hosts.
    below = deployment.running_gateway.below().ceph if "osd" in suite.layers else None
    if below is None:
        return []
    cluster = RadosCluster(below.host, replicas=below.replicas)
    return [
        Attested(
            layout=deployment.layout.name,
            repeat=repeat,
            host=one.host,
            kind="osd",
            what=f"osd.{one.number} write of {show_bytes(one.request_bytes)}",
            value=one.bytes_per_s,
            unit="B/s",
            operation="write",
            request_bytes=one.request_bytes,
        )
        for one in osd_figures(cluster, below.osds, [size for size in suite.sizes_bytes if size])
    ]


# Which visits' hosts are attested: the first of each layout, and later ones where hosts seem to
# differ.
#
# A program that disturbs the machine for the seconds of one attestation would otherwise make all
# results of a layout not comparable. The median of MEDIAN_FROM deployments counts
# (`results.judge.host_equality.host_doubts`): hosts that really differ do so in most of them.


class HostChecks:
    """Attestations of one session of a run; without `wanted`, none."""

    def __init__(self, plan: Plan, store: RunStore, *, wanted: bool) -> None:
        self._plan, self._store, self._wanted = plan, store, wanted
        self._attested: set[str] = set()

    def due(self, visit: Visit) -> bool:
        """Whether the hosts of a visit are to be attested."""
        # An A/A control has its layout's hosts.
        if not self._wanted or visit.layout in self._plan.twins:
            return False
        if visit.layout not in self._attested:
            return True
        return visit.layout in self._odd()

    def apart(self, visit: Visit, more: Sequence[HostCeiling]) -> bool:
        """Whether these figures of a visit's hosts would make its results not comparable."""
        found = [*self._store.attested()]
        found += [Attested(layout=visit.layout, repeat=visit.repeat, **dict(one)) for one in more]
        doubts = [one for one in host_doubts(found) if visit.layout in one.layouts]
        return any(one.doubt.grade == "grave" for one in doubts)

    def attested(self, visit: Visit, say: Say) -> None:
        """Note that a visit's hosts were attested and their figures kept; `say` if they differ."""
        self._attested.add(visit.layout)
        found = self._store.attested()
        doubts = [one.doubt for one in host_doubts(found) if visit.layout in one.layouts]
        if not doubts:
            return
        # Blocks may follow that the plan did not have.
        last = visit.repeat + 1 == self._plan.suite.repeats and self._plan.suite.further is None
        later = [] if last else self._odd()
        again = f"; to be attested again: {', '.join(later)}" if later else ""
        say(f"{doubts[0].what} so far: {doubts[0].words}{again}")

    def _odd(self) -> list[str]:
        """Layouts that seem to have other hosts, by fewer deployments than a median needs."""
        found = self._store.attested()
        deployments = {(one.layout, one.repeat) for one in found}
        seen = Counter(layout for layout, _ in deployments)
        return [name for name in sorted(odd_layouts(found)) if seen[name] < MEDIAN_FROM]


# Further blocks: whether a run goes on after all repeats of its suite to settle a difference.
#
# Looking at the data after every block and stopping at will would find differences that do not
# exist in more than 5 of 100 cases. So the looks before the last are strict, by the rule of
# Haybittle and Peto (J. L. Haybittle, Br. J. Radiol. 44, 1971; R. Peto et al., Br. J. Cancer 34,
# 1976): a run ends early only if every cell of throughput and p90 is significant at `STRICT`
# after correction, and only the last look claims at the usual level. The time limit, which does
# not depend on the results, may end a run after any block. The resulting error rate:
# benchmarks/claims.py, table in docs/first-run.md.


STRICT: Final = 0.001
"""The largest corrected p-value of a cell with which a run ends before its last look."""


def unclear(comparison: Comparison) -> tuple[Effect, ...]:
    """The comparable cells of throughput and p90, at one worker count each, that are not clear."""
    cells = (one for one in comparison.effects if one.workers is not None and one.metric in PRIMARY)
    return tuple(one for one in cells if one.ratio is not None and not _clear(one))


def _clear(one: Effect) -> bool:
    return one.verdict in ("better", "worse") and one.q is not None and one.q <= STRICT


def is_clear(comparison: Comparison) -> bool:
    """Whether a run may end before its last look: something is compared, and all of it is clear."""
    tested = any(one.workers is not None and one.q is not None for one in comparison.effects)
    return tested and not unclear(comparison)


RESUMED: Final = "resumed"
"""The kind of event for a run that is resumed."""
BUDGET: Final = "budget"
"""The kind of event for a run that ends before its plan does."""
FURTHER: Final = "further"
"""The kind of event for why another block follows the suite's repeats, or why none does."""


@dataclass
class Conductor:
    """Runs a plan into a run folder, or what that folder lacks: complete steps are not repeated.

    `settings` are drivers' own; `attest`: measure the hosts, too; `allowance` is the time the run
    may take; `quiet` waits before each deployment for the machine to be quiet; `further` is the
    time for blocks beyond the plan, and `grown` is called with a plan that has one more; `again`
    are steps to measure again, as of a StepRunner.
    """

    plan: Plan
    planned: Sequence[Planned]
    store: RunStore
    display: Display
    place: StateFolders
    _: KW_ONLY
    settings: DriverSettings = field(default_factory=dict)
    attest: bool = False
    profiler: Profiler | None = None
    estimate: TimeEstimate | None = None
    allowance: TimeAllowance | None = None
    quiet: QuietMachine | None = None
    further: TimeAllowance | None = None
    grown: Callable[[Plan], None] = lambda _: None
    again: Mapping[StepKey, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        plan, store = self.plan, self.store
        self._suite = plan.suite
        self._planned = {one.layout.name: one for one in self.planned}
        self._searches = read_searches(store, plan.suite, plan.find)
        self._runner = StepRunner(
            plan.suite,
            store,
            self.display,
            profiler=self.profiler,
            written=self._written,
            again=self.again,
        )
        self._complete = self._runner.complete
        self._estimate = self.estimate or TimeEstimate.of(plan, self._complete)
        self._given_up: set[StepKey] = set()
        """Steps that could not be measured, and are not tried again in this session."""
        self._resumed = sum(event.kind == RESUMED for event in store.events())
        self._attested_before = store.attested()
        self._hosts = HostChecks(plan, store, wanted=self.attest)
        # Buckets carry the run's own id, so that nothing but what this run made is ever touched.
        self._prefix = f"wb-{store.manifest.run_id.rsplit('-', 1)[-1]}"
        self._buckets = buckets_of(plan, self._prefix)

    def run(self) -> str:
        """Run the whole plan, or as much as the allowance permits; returns why not all of it.

        A step that cannot be measured is recorded with its reason and the plan goes on, after the
        death of a daemon on a new deployment; a gateway that cannot be started ends the run with
        its error (ServiceFailed, CommandFailed, VerificationFailed), after all is torn down.
        """
        self.store.add_facts(sheets(self.plan.pools))
        again = {visit.layout for visit in self.plan.visits if self._missing(visit)}
        for name, planned in self._planned.items():
            if self._resumed and planned.gateway.already_runs and name not in again:
                with deploy(planned, self.plan.hardware, self.place, self.display.say) as left:
                    self._clear(left)
        begun = bool(self._complete)
        for visits in self.plan.blocks():
            if not any(map(self._missing, visits)):
                continue
            why = self._too_late(visits) if begun else ""
            if why:
                self.store.event(BUDGET, why)
                return why
            begun = True
            for visit in filter(self._missing, visits):
                self._visit(visit)
        while self._has_further_block():
            for visit in self.plan.blocks()[-1]:
                self._visit(visit)
        self._cut_power()
        return ""

    def _cut_power(self) -> None:
        """Cut each layout's power under load, if asked; one that fails has fewer cuts."""
        wanted = self._suite.durability
        if wanted is None:
            return
        for name, control in self.plan.cuts_missing(self.store.folder):
            durability = DurabilityPass(
                self._planned[name],
                self.plan.hardware,
                self.place,
                self.display.say,
                wanted=wanted,
                seed=self._suite.seed,
                folder=self.store.folder,
                control=control,
            )
            visit = Visit(layout=name, repeat=0)
            try:
                with nullcontext() if control else self._estimate.doing("cut power", visit):
                    durability.run()
            except (DriverError, TargetError) as error:
                self.display.say(error.message)
                self.store.event("failed", f"power cuts: {error}", layout=name)

    def _has_further_block(self) -> bool:
        """Whether another block follows those of the plan, which then has it, in its folder, too:
        if the suite allows one, something is compared and not yet clear, and there is time.
        """
        grown = None if self.further is None else self.plan.grown()
        compared = len(self.plan.layouts) - len(self.plan.twins)
        if self.further is None or grown is None or compared < 2:
            return False
        repeat, estimate = grown.suite.repeats, self._estimate
        estimate.add([unit for unit in units(grown) if unit.visit.repeat == repeat - 1])
        needed_s, left_s = estimate.repeat_s(repeat - 1), self.further.left_s()
        comparison = open_run(self.store.folder).comparison if needed_s <= left_s else None
        after = f"clear after {repeat - 1} repeats"
        if comparison is None:
            needed, left = show_duration(needed_s), show_duration(max(0.0, left_s))
            why = f"no time for repeat {repeat}: it would take about {needed}, and {left} is left"
        elif is_clear(comparison):
            why = f"every comparable difference of throughput and p90 is {after}"
        else:
            count = len(unclear(comparison))
            cells = f"{counted(count, 'cell')} of throughput and p90 not {after}"
            why = f"{cells}: repeat {repeat} follows"
            TuningStore(self.store.folder).replan(grown)
            self.display.say(why)
            self.plan = grown
            self.grown(grown)
        self.store.event(FURTHER, why)
        if self.plan is not grown:
            estimate.drop(repeat - 1)
        return self.plan is grown

    def _missing(self, visit: Visit) -> bool:
        return not self.plan.keys(visit) or bool(self._left(visit))

    def _left(self, visit: Visit) -> list[StepKey]:
        searched = set(self.plan.searched(visit))
        return [
            key
            for key in self.plan.keys(visit)
            if key not in self._complete or (key in searched and self._searching(key))
        ]

    def _searching(self, key: StepKey) -> bool:
        return self._searches is not None and self._searches.next_of(key) is not None

    def _written(self, step: StepResult) -> None:
        if self._searches is not None:
            self._searches.add(step, judged(self.store, step))

    def _too_late(self, visits: Sequence[Visit]) -> str:
        """Why the allowance is too short for a repeat; empty if it is not, or if it has begun."""
        keys = (key for visit in visits for key in self.plan.keys(visit))
        if self.allowance is None or not self._complete.isdisjoint(keys):
            return ""
        repeat = visits[0].repeat
        needed_s, left_s = self._estimate.repeat_s(repeat), self.allowance.left_s()
        if needed_s <= left_s:
            return ""
        return (
            f"the budget ends the run before repeat {repeat + 1} of {self.plan.suite.repeats}: it "
            f"would take about {show_duration(needed_s)}, and {show_duration(max(0.0, left_s))} is "
            "left"
        )

    def _clear(self, deployment: Deployment) -> None:
        say = self._runner.announcing("cleared", deployment.layout.name)
        clear(deployment, self._buckets, say, self._sweep(deployment))

    def _sweep(self, deployment: Deployment) -> Sweep:
        log = self.store.logs / f"pool-{deployment.layout.name}.log"
        return sweep_of(self.plan, deployment, namespace=self._prefix, log=log)

    def _visit(self, visit: Visit) -> None:
        deployments = 1
        while self._measure_on_one(visit, deployments):
            deployments += 1

    def _measure_on_one(self, visit: Visit, nth: int) -> bool:
        """Measure what is left of a visit on its `nth` deployment; whether it needs another one."""
        say = self.display.say
        number = self.plan.visits.index(visit) + 1
        planned = self._planned[visit.layout]
        runs = planned.gateway.already_runs
        say(f"{'checking' if runs else 'starting'} {visit.layout}{' again' if nth > 1 else ''}")
        text = (
            f"visit {number} of {len(self.plan.visits)}: repeat {visit.repeat + 1} of "
            f"{self.plan.suite.repeats}"
        )
        self.store.event(
            "visit", text if nth == 1 else f"{text}, on deployment {nth}", layout=visit.layout
        )
        if self.quiet is not None and (busy := self.quiet.wait(say)) is not None:
            self.store.event(
                BUSY, busy.words, layout=visit.layout, repeat=visit.repeat, share=busy.share
            )
        with ExitStack() as stack:
            with self._estimate.doing("start", visit):
                deployment = stack.enter_context(self._started(visit, nth))
            # Should a signal come just before the context above is left.
            stack.callback(deployment.close)
            for text in self.plan.left_out.get(visit.layout, ()):
                say(text)
                self.store.event("left out", text, layout=visit.layout)
            if nth == 1:
                self._ask_osds(deployment, visit)
            if self._resumed:
                self._clear(deployment)
            say_cleared = self._runner.announcing("cleared", visit.layout)
            cleared = clearing(deployment, self._buckets, say_cleared, self._sweep(deployment))
            with cleared, self._runner.watching(planned, deployment) as watch:
                again = self._aged(deployment, visit) and self._measure(visit, deployment, watch)
            if not again:
                self._ask_capabilities(visit, deployment)
            say(f"{'leaving' if runs else 'stopping'} {visit.layout}")
            # In the plan a visit is stopped once: at its end.
            with nullcontext() if again else self._estimate.doing("stop", visit):
                stack.close()
        gone = "left running" if runs else "torn down"
        self.store.event("down", f"{deployment.label} is {gone}", layout=visit.layout)
        return again

    def _measure(self, visit: Visit, deployment: Deployment, watch: Watch) -> bool:
        """Measure all passes of a visit; whether steps are left for another deployment."""
        passes = PassRunner(
            plan=self.plan,
            visit=visit,
            planned=self._planned[visit.layout],
            deployment=deployment,
            watch=watch,
            runner=self._runner,
            store=self.store,
            display=self.display,
            estimate=self._estimate,
            settings=self.settings,
            prefix=self._prefix,
            given_up=self._given_up,
            searches=self._searches,
            spare_s=self._spare_s,
        )
        if all(map(passes.measure, self.plan.groups(visit.layout))):
            return False
        return any(key not in self._given_up for key in self._left(visit))

    def _spare_s(self) -> float | None:
        """Seconds that the rest of the plan leaves; None: the run has no budget."""
        bound = self.allowance
        return None if bound is None else bound.left_s() - self._estimate.left_s()

    @contextmanager
    def _started(self, visit: Visit, nth: int) -> Iterator[Deployment]:
        """The layout of a visit, running and attested, with its records."""
        # A visit that was interrupted, or in which a daemon died, keeps the logs of each part.
        resumed = f"-resumed-{self._resumed}" if self._resumed else ""
        again = f"-again-{nth - 1}" if nth > 1 else ""
        logs = self.store.logs / f"{visit.layout}-{visit.repeat}{resumed}{again}"
        asked = asked_of_hosts(self._suite, sameness=self._hosts.due(visit))
        tools = wants_tools(self._suite, self.plan.passes[visit.layout])
        planned, say = self._planned[visit.layout], self.display.say
        with deploy(
            planned,
            self.plan.hardware,
            self.place,
            say,
            logs=logs,
            attest=asked,
            apart=partial(self._hosts.apart, visit),
            tools=tools,
        ) as deployment:
            does = (
                "answers, verified" if planned.gateway.already_runs else "is running and verified"
            )
            say(f"{visit.layout} {does} after {deployment.took_s:.1f} s")
            self.store.event(
                "up",
                f"{deployment.label} is running after {deployment.took_s:.2f} s",
                layout=visit.layout,
            )
            if deployment.attestation is not None:
                self._runner.attested(visit.layout, visit.repeat, deployment.attestation)
                self._hosts.attested(visit, say)
            for text in deployment.running_gateway.uneven:
                say(f"{visit.layout}: {text}: reads are provisional")
                self.store.event(UNEVEN, text, layout=visit.layout, repeat=visit.repeat)
            self._runner.describe(deployment)
            yield deployment

    def _ask_capabilities(self, visit: Visit, deployment: Deployment) -> None:
        """Ask a layout once what it is capable of, if wanted; a failure changes no step."""
        sheets = self.store.manifest.sheets
        if not self.plan.asked(visit) or (SHEET, visit.layout) in [
            (one.title, one.layout) for one in sheets
        ]:
            return
        log = self.store.logs / f"capabilities-{visit.layout}.log"
        found = ask_for_run(self._planned[visit.layout], deployment, self.display.say, log=log)
        self.store.add_facts([sheet_of(found)])
        for text in (found.died, *found.left):
            if text:
                self.display.say(f"capabilities of {visit.layout}: {text}")
                self.store.event("failed", f"capabilities: {text}", layout=visit.layout)

    def _ask_osds(self, deployment: Deployment, visit: Visit) -> None:
        """Measure each OSD alone, if the suite asks for it; a missing result ends no run."""
        if any(
            (one.kind, one.layout, one.repeat) == ("osd", visit.layout, visit.repeat)
            for one in self._attested_before
        ):
            # Known from before an interruption; results are summed over OSDs, not over parts.
            return
        try:
            figures = ask_osds(deployment, self._suite, visit.repeat)
        except (DriverError, TargetError) as error:
            self.display.say(f"layer osd: {error.message}")
            self.store.event("left out", f"layer osd: {error}", layout=visit.layout)
            return
        self.store.attest(figures)

    def _aged(self, deployment: Deployment, visit: Visit) -> bool:
        """Whether the store is aged, if asked; else its steps are recorded as not measured."""
        if self._suite.age is None:
            return True
        self.display.say(f"aging {visit.layout}")
        log = self.store.logs / f"driver-{visit.layout}-age-{visit.repeat}.log"
        keys = [key for key in self.plan.keys(visit) if key not in self._complete]
        try:
            room = deployment.running_gateway.disk_space()
            lab = deployment.hardware.of.contained
            order = aging.order_of(
                self._suite, room, shutil.disk_usage(self.place.home).free if lab else None
            )
            with self._estimate.doing("age", visit):
                aged = aging.age(
                    deployment,
                    self._suite,
                    order,
                    prefix=self._prefix,
                    log=log,
                    on_progress=self.display.progress,
                    settings=self.settings,
                )
            self._runner.note("aged", deployment, aging.describe(order, aged, room))
            self._runner.note("settled", deployment, deployment.running_gateway.settle())
            deployment.check()
        except (DriverError, TargetError) as error:
            self.display.say(error.message)
            self.store.event("failed", str(error), layout=visit.layout)
            self._runner.not_measured(keys, error)
            return False
        self.store.add_facts(
            [Sheet(title="age", layout=visit.layout, facts=aging.facts(order, aged, room))]
        )
        return True
