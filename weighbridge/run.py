"""A run from its folder to its report, for comparisons, studies and resuming either."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Final

from rich.console import Console

from weighbridge import resumption, selection
from weighbridge.budget import claim, spread_here, spread_of
from weighbridge.common.errors import InvalidMeasurement, UsageError
from weighbridge.conductor.clearing import PoolCheck, with_pools
from weighbridge.conductor.conductor import RESUMED, Conductor
from weighbridge.conductor.facts import facts_of_machine
from weighbridge.conductor.interruption import Interrupted, interruptible
from weighbridge.conductor.opening import DriverSettings, settings_of
from weighbridge.conductor.passes import asked_of_hosts, wants_tools
from weighbridge.conductor.plan import Plan
from weighbridge.conductor.profiling import Profiler, able
from weighbridge.conductor.quiet import QuietMachine, background_load
from weighbridge.conductor.step_runner import complete_steps
from weighbridge.conductor.time_estimate import TimeAllowance, TimeEstimate, show_duration
from weighbridge.display import display_for, sending
from weighbridge.environment import patience_s, require
from weighbridge.gateways.gateway import Say
from weighbridge.live_page import watching
from weighbridge.results import derive
from weighbridge.results.derivation import Derived
from weighbridge.results.features.open_run import open_run
from weighbridge.results.numbers import counted
from weighbridge.results.run.machine import add_run, earlier_runs, keep_runs
from weighbridge.results.run.profile import Chosen
from weighbridge.results.run.reading import StoreError
from weighbridge.results.run.resolved import Sheet, State
from weighbridge.results.run.step import Pass, StepResult
from weighbridge.results.run.store import Holder, RunStore, lock_run_folder
from weighbridge.results.show.influx import InfluxServer
from weighbridge.results.show.terminal import print_line
from weighbridge.resumption import ResumableRun
from weighbridge.suites import Further
from weighbridge.topologies.deployment import StateFolders
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import Planned


def refuse_ending_keys(layouts: Iterable[Planned], needed_s: float) -> None:
    """Raise UsageError naming layouts whose keys end in this time, and cannot be renewed."""
    faults = []
    for one in layouts:
        end_at = one.gateway.keys_end_at()
        if end_at is None:
            continue
        left_s = (end_at - datetime.now(UTC)).total_seconds()
        if left_s < needed_s:
            faults.append(
                f"{one.layout.name}: its keys expire in {show_duration(max(0.0, left_s))}, at "
                f"{end_at:%H:%M:%S} UTC; the run needs an estimated {show_duration(needed_s)}"
            )
    if faults:
        raise UsageError(
            "\n".join(faults),
            advice="Shorten the run, or use keys that can be renewed: a profile with "
            "`credential_process` or `role_arn`.",
        )


LOOK_S: Final = 0.5
"""How long to check for a quiet machine before each deployment; a run has some 15."""
MOST_FURTHER: Final = 100
"""Further repeats that a resumed run may have."""
MOST_DAYS: Final = 366
"""A run with a longer estimated time is refused."""


@dataclass(frozen=True)
class Doing:
    """What a run needs besides its plan: folders, console, InfluxDB and drivers' settings."""

    where: StateFolders
    screen: Console
    influx: InfluxServer | None = None
    """Gets each step as it is measured; never makes a run fail."""
    ui: bool = False
    """Whether to serve a page of the run while it runs."""
    pictures: bool = True
    """Whether to write charts as files; the report has them either way."""
    own: Mapping[str, object] = field(default_factory=dict)
    """The command's options that drivers declare, as they were given."""
    settings: DriverSettings = field(default_factory=dict)
    """Drivers' own settings, for drivers without options."""

    def say(self, text: str) -> None:
        print_line(self.screen, text)

    def with_settings(self, ways: Iterable[Pass], hardware: Hardware) -> Doing:
        """The same, with the settings of the drivers of these passes. Raises UsageError."""
        made = settings_of([way.driver for way in ways], self.own, lab=hardware.of.contained)
        return replace(self, settings={**self.settings, **made})


@dataclass(frozen=True)
class Ran:
    """What a run came to, with the last result of each step."""

    derived: Derived
    steps: tuple[StepResult, ...]
    uncut: tuple[str, ...] = ()
    """Layouts whose power was not cut as often as asked."""
    measured: bool = True
    """Whether anything was left to do."""

    @classmethod
    def of(cls, store: RunStore, plan: Plan, *, measured: bool = True) -> Ran:
        """That of a run's folder, with its report derived."""
        return cls(
            derive(store.folder, pictures=False),
            tuple(store.latest().values()),
            resumption.uncut(plan, store),
            measured,
        )


def run(
    plan: Plan,
    layouts: Sequence[Planned],
    doing: Doing,
    *,
    out: Path,
    text: str,
    attest: bool,
    begun: Callable[[RunStore], None] | None = None,
    profile: Chosen | None = None,
    capabilities: bool = False,
) -> Ran:
    """Run a plan in a new folder below `out` and derive its report.

    `text` is the plan as it was given; `begun` is called with the folder before anything is
    measured; `profile` is the step to profile; with `capabilities`, each layout is asked what it is
    capable of. Raises UsageError before anything is started if something cannot be done; any other
    WeighbridgeError if a gateway could not be started, after all of it is torn down.
    """
    # What resuming the run needs is part of its plan.
    plan = plan.model_copy(
        update={"attest": attest, "profile": profile, "capabilities": capabilities}
    )
    allowance = None if plan.budget_s is None else TimeAllowance(plan.budget_s)
    further = None if plan.suite.further is None else TimeAllowance(plan.suite.further.within)
    needed_s = TimeEstimate.of(plan).left_s()
    if needed_s > MOST_DAYS * 86400:
        raise UsageError(
            f"the run would take an estimated {needed_s / 86400:,.0f} days; the limit is "
            f"{MOST_DAYS}",
            advice="Ask for fewer or smaller objects, shorter windows, or fewer repeats.",
        )
    doing = doing.with_settings(chain(*plan.passes.values()), plan.hardware)
    require(plan.hardware, doing.where)
    with interruptible(), alone(plan.hardware, doing.where) as register:
        # Before the run's folder is made: otherwise faults of the last layout would be found only
        # after the first is measured.
        refuse_ending_keys(layouts, min(needed_s, plan.budget_s or needed_s))
        plan = _checked(plan, layouts, doing)
        store = new_folder(out, plan, text)
        with lock_run_folder(store.folder):
            register(str(store.folder))
            _remember(store, doing)
            _conduct(
                ResumableRun(store, plan, tuple(layouts), frozenset()),
                doing,
                allowance,
                begun,
                further=further,
            )
    return Ran.of(store, plan)


def resume(
    folder: Path,
    doing: Doing,
    *,
    despite: Collection[str] = (),
    budget_s: float | None = None,
    repair: bool = False,
) -> Ran:
    """Resume a run at the first missing step and derive its report.

    `despite` names facts that may have changed since it began; `budget_s` is the time for the rest,
    instead of the run's own; `repair`: what other programs spoilt is missing, too. Raises
    UsageError before anything is started if it cannot be resumed; else as `run`.
    """
    RunStore.open(folder)  # leave no lock in a folder that is not a run's
    with interruptible(), lock_run_folder(folder) as holders, ExitStack() as stack:
        left = resumption.load_run(folder)
        if repair:
            again = open_run(folder).spoilt
            if not again:
                raise UsageError(f"{folder}: no window is known to have been disturbed")
            left = replace(left, complete=left.complete - again.keys(), again=again)
        elif budget_s is not None and left.done:
            # Further repeats in this time, until every difference is clear.
            longer = Further(blocks=MOST_FURTHER, within=float(budget_s))
            suite = left.plan.suite.model_copy(update={"further": longer})
            left = replace(left, plan=left.plan.model_copy(update={"suite": suite}))
        store, plan = left.store, left.plan
        nothing = "" if repair else _nothing_to_do(left, budget_s)
        if nothing:
            doing.say(f"{folder}: {nothing}")
            return Ran.of(store, plan, measured=False)
        doing = doing.with_settings(chain(*plan.passes.values()), plan.hardware)
        # For a run that was killed after its last step, only what it left running is removed.
        over = left.done and plan.suite.further is None

        def check() -> None:
            needed_s = TimeEstimate.of(plan, left.complete).left_s()
            refuse_ending_keys(left.planned, min(needed_s, budget_s or needed_s))
            _checked(plan, left.planned, doing)

        spoilt = f", {len(left.again)} were disturbed and are measured again" if left.again else ""
        words = f"{len(left.complete)} of {plan.steps} steps are complete{spoilt}"
        stack.enter_context(
            take_over(left, holders, doing, despite, words, None if over else check)
        )
        spent_s = 0.0 if budget_s is not None else resumption.spent_s(store)
        given_s = within_s = budget_s
        if budget_s is None:
            given_s = plan.budget_s
            within_s = None if plan.suite.further is None else plan.suite.further.within
        allowance = None if given_s is None else TimeAllowance(given_s, spent_s=spent_s)
        further = None if within_s is None else TimeAllowance(within_s, spent_s=spent_s)
        _conduct(left, doing, allowance, further=further)
    return Ran.of(store, plan)


def new_folder(out: Path, plan: Plan, text: str) -> RunStore:
    """A new run folder below `out`; `text` is the plan as it was given."""
    return RunStore.create(
        out,
        plan_yaml=text,
        plan=plan,
        suite=plan.suite.name,
        command=("weighbridge", *sys.argv[1:]),
        weighbridge_version=version("weighbridge"),
        sheets=[Sheet(title="machine", facts=facts_of_machine(plan.hardware))],
    )


@contextmanager
def take_over(
    left: ResumableRun,
    holders: Collection[Holder],
    doing: Doing,
    despite: Collection[str],
    words: str,
    check: Callable[[], None] | None,
) -> Iterator[None]:
    """Be the process that goes on with a run, of which `words` say how far it is. Raises as
    `resume` before the run's state is changed; without a `check`, nothing is to be measured.
    """
    hardware, store, where = left.plan.hardware, left.store, doing.where
    require(hardware, where)
    with alone(hardware, where) as register:
        register(str(store.folder))
        accepted = () if check is None else resumption.refuse_changed(left, where, despite)
        if hardware.of.by_ssh:
            resumption.remove_ssh_leftovers(holders, hardware, doing.say)
        resumption.remove_leftovers(holders, where, doing.say, lab=hardware.of.contained)
        if check is not None:
            check()
        state, error = store.manifest.state, store.manifest.error
        was = "killed" if state == "running" else f"{state}: {error}" if error else state
        store.event(RESUMED, f"{words}; the run was {was}; now process {os.getpid()}")
        for one in accepted:
            store.event("unlike", f"resumed although {one}")
        store.set_state("running")
        yield


def _remember(store: RunStore, doing: Doing) -> None:
    """Copy what earlier runs showed of the machine into a run's folder."""
    try:
        keep_runs(store.folder, earlier_runs(doing.where.home, store.manifest))
    except InvalidMeasurement as error:
        doing.say(f"earlier runs of this machine do not count: {error}")


@contextmanager
def alone(hardware: Hardware, where: StateFolders) -> Iterator[Callable[[str], None]]:
    """Be the only run on this machine's lab hosts; yields a function that registers the folder. A
    confirmation is a run within a run. Raises UsageError naming another.
    """
    if not hardware.of.contained:
        yield lambda _: None
        return
    from weighbridge.topologies.lab.claim import MachineHold, MachineInUse  # noqa: PLC0415 - only for lab hosts

    try:
        running = MachineHold(where.state)
    except MachineInUse as busy:
        if busy.pid != str(os.getpid()):
            raise
        yield lambda _: None
        return
    try:
        yield running.describe
    finally:
        running.release()


def _nothing_to_do(left: ResumableRun, budget_s: float | None) -> str:
    """Why a run need not be resumed; empty if it must be."""
    if left.store.manifest.state == "done" and left.done:
        more = "; --budget TIME adds further repeats" if len(left.plan.layouts) > 1 else ""
        if budget_s is not None and more:
            return ""
        return f"every step is measured; nothing is left to do{more}"
    if budget_s is None and resumption.ended_by_budget(left.store):
        return "every step that fits into its budget is measured; --budget TIME allows more"
    return ""


def _checked(plan: Plan, layouts: Sequence[Planned], doing: Doing) -> Plan:
    tools = wants_tools(plan.suite, [*chain(*plan.passes.values())]) or bool(
        asked_of_hosts(plan.suite, sameness=plan.attest)
    )
    own = [one for one in layouts if one.layout.name not in plan.twins]  # controls are the same
    pools = PoolCheck(plan, doing.say, doing.where.home / "logs" / "pools.log")
    selection.check(own, plan.hardware, doing.where, doing.say, attest=tools, look=pools)
    return with_pools(plan, pools.found)


@dataclass
class _StepCount:
    """The number of steps to measure in all, as the plan is now: it may grow."""

    steps: int

    def grown(self, plan: Plan) -> None:
        self.steps = plan.steps


def _conduct(
    left: ResumableRun,
    doing: Doing,
    allowance: TimeAllowance | None,
    begun: Callable[[RunStore], None] | None = None,
    *,
    further: TimeAllowance | None = None,
) -> None:
    """Measure what a run lacks; the folder records how that ended."""
    store, plan = left.store, left.plan
    first = len(store.steps())
    estimate = TimeEstimate.of(plan, left.complete - left.searching)
    growing = _StepCount(plan.steps)
    with recorded(store, doing.say, f"resume {store.folder}"):
        if begun is not None:
            begun(store)
        with (
            sending(doing.influx, store, doing.say) as with_influx,
            display_for(growing, doing.screen, estimate) as shown,
            watching(
                with_influx(shown), store.folder, growing, estimate, wanted=doing.ui
            ) as display,
        ):
            most = "" if plan.find is None else "at most "
            display.say(
                f"writing to {store.folder}: {most}{plan.steps - len(left.complete)} steps, "
                f"estimated time {show_duration(estimate.left_s())}"
            )
            profiler = (
                None
                if plan.profile is None
                else Profiler(plan.profile, store, able(), complete=left.complete)
            )
            why = Conductor(
                plan,
                left.planned,
                store,
                display,
                doing.where,
                settings=doing.settings,
                attest=plan.attest,
                profiler=profiler,
                estimate=estimate,
                allowance=allowance,
                quiet=QuietMachine(look=partial(background_load, LOOK_S), patience_s=patience_s())
                if plan.hardware.of.contained
                else None,
                further=further,
                grown=growing.grown,
                again=left.again,
            ).run()
    latest, data = store.latest(), open_run(store.folder)
    known = data.machine_run
    if known.controls or known.slopes:
        add_run(doing.where.home, known)
    if why:
        measured = complete_steps(latest.values())
        repeats = sum(
            all(key in measured for visit in block for key in plan.keys(visit))
            for block in plan.blocks()
        )
        spread = spread_of(data.rows, store.folder.name) or spread_here(
            store.folder.parent, plan.hardware
        )
        doing.say(f"{why}; {claim(plan, spread, repeats)}")
    lost = sum(step.measurement is None for step in latest.values())
    spoilt = sum(step.spoilt for step in latest.values())
    failures = []
    if left.again:
        calmer = sum(latest[key].order >= first for key in left.again)
        doing.say(
            f"{counted(len(left.again), 'window')} measured again; {calmer} of these measurements "
            "were disturbed less, and count now"
        )
    if lost:
        failures.append(f"{'1 step was' if lost == 1 else f'{lost} steps were'} not measured")
    if spoilt:
        failures.append(f"in {counted(spoilt, 'step')} a part of the gateway failed")
    if uncut := resumption.uncut(plan, store):
        failures.append(f"not all power cuts of {', '.join(uncut)} were made")
    if failures:
        doing.say(f"{', '.join(failures)}; to try again: weighbridge resume {store.folder}")


@contextmanager
def recorded(store: RunStore, say: Say, command: str) -> Iterator[None]:
    """Record how a run ends in the block; `command` goes on with it after a failure."""
    try:
        yield
        store.event("ended", "done")
        store.set_state("done")
    except BaseException as error:
        state: State = "interrupted" if isinstance(error, Interrupted) else "failed"
        # If that cannot be written: the error that ended the run comes first.
        with suppress(StoreError):
            store.event("ended", f"{state}: {error}")
        with suppress(StoreError):
            store.set_state(state, error=str(error))
        say(f"what was measured is kept; to resume: weighbridge {command}")
        raise
