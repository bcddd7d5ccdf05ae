"""A run, from its folder to its report: what comparing layouts, replaying a study and going on with
either have in common.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Final

from rich.console import Console

from weighbridge import resumption, selection
from weighbridge.budget import claim
from weighbridge.common.errors import UsageError
from weighbridge.conductor.conductor import RESUMED, Conductor
from weighbridge.conductor.facts import facts_of_machine
from weighbridge.conductor.interruption import Interrupted, interruptible
from weighbridge.conductor.measuring import whole
from weighbridge.conductor.opening import DriverSettings, settings_of
from weighbridge.conductor.pace import Pace, TimeAllowance, show_duration
from weighbridge.conductor.passes import asked_of_hosts, wants_tools
from weighbridge.conductor.perf import able
from weighbridge.conductor.plan import Plan
from weighbridge.conductor.profiling import Profiler
from weighbridge.conductor.quiet import Quiet, see
from weighbridge.means import require
from weighbridge.results import derive
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.derivation import Derived
from weighbridge.results.influx.server import InfluxServer
from weighbridge.results.record.hold import holding
from weighbridge.results.record.manifest import Sheet, State
from weighbridge.results.record.profile import Chosen
from weighbridge.results.record.step import Pass, StepResult
from weighbridge.results.record.store import RunStore, StoreError
from weighbridge.resumption import Begun
from weighbridge.screen.display import display_for
from weighbridge.screen.influx_display import sending
from weighbridge.spread import spread_here, spread_of
from weighbridge.topologies.deployment import StatePlace
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import Planned

LOOK_S: Final = 0.5
"""How long it is looked before each deployment whether the machine is quiet: the default run has 15
of them.
"""


MOST_DAYS: Final = 366
"""What a run may take at a guess."""


@dataclass(frozen=True)
class Doing:
    """Where a run is done, who is told of it, where its InfluxDB is, if it has one, and what its
    drivers are told.
    """

    where: StatePlace
    screen: Console
    influx: InfluxServer | None = None
    """What is sent each step as it is measured, and is never a reason to fail."""
    pictures: bool = True
    """Whether charts are written as files once it was told what came out; the report has them
    either way.
    """
    own: Mapping[str, object] = field(default_factory=dict)
    """Options of the command that drivers have declared, as they were given."""
    settings: DriverSettings = field(default_factory=dict)
    """Drivers' own settings, for drivers that options say nothing of."""

    def say(self, words: str) -> None:
        """Tell the user."""
        self.screen.print(words, markup=False, highlight=False, soft_wrap=True)

    def told(self, ways: Iterable[Pass], hardware: Hardware) -> Doing:
        """The same, with the settings of the drivers of these passes. Raises UsageError."""
        made = settings_of([way.driver for way in ways], self.own, lab=hardware.of.contained)
        return replace(self, settings={**self.settings, **made})


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
) -> tuple[Derived, tuple[StepResult, ...]]:
    """Do a plan in a new folder below `out` and derive its report; returns that, and the last
    result of each step.

    `text` is the plan as it was given; `begun` is told of the folder before anything is measured;
    `profile` is the step that is profiled. Raises UsageError before anything is started when
    something cannot be done; any other WeighbridgeError when a gateway could not be stood up, all
    of it then being taken away again.
    """
    # What is needed to go on with the run is part of its plan.
    plan = plan.model_copy(update={"attest": attest, "profile": profile})
    allowance = None if plan.budget_s is None else TimeAllowance(plan.budget_s)
    further = None if plan.suite.further is None else TimeAllowance(plan.suite.further.within)
    _refuse_endless(plan)
    doing = doing.told(chain(*plan.passes.values()), plan.hardware)
    require(plan.hardware, doing.where)
    with interruptible(), alone(plan.hardware, doing.where) as tell:
        # Before the folder of the run is made: what the last layout gets wrong would else be found
        # when the first is measured.
        _check(plan, layouts, doing)
        store = RunStore.create(
            out,
            plan_yaml=text,
            plan=plan,
            suite=plan.suite.name,
            command=("weighbridge", *sys.argv[1:]),
            weighbridge_version=version("weighbridge"),
            sheets=[Sheet(title="machine", facts=facts_of_machine(plan.hardware))],
        )
        with holding(store.folder):
            tell(str(store.folder))
            _conduct(
                Begun(store, plan, tuple(layouts), frozenset()),
                doing,
                allowance,
                begun,
                further=further,
            )
    return derive(store.folder, pictures=False), tuple(store.latest().values())


def resume(
    folder: Path, doing: Doing, *, despite: Collection[str] = (), budget_s: float | None = None
) -> tuple[Derived, tuple[StepResult, ...], bool]:
    """Go on with the run of a folder at the first step that is not whole, and derive its report; as
    `run` returns, and whether anything was left to be done.

    `despite` names facts that may differ from when it was begun; `budget_s` is what the rest may
    take instead of what the run was given. Raises UsageError before anything is started when it
    cannot be gone on with; else as `run`.
    """
    RunStore.open(folder)  # no lock is left in a folder that is no run's
    with interruptible(), holding(folder) as holders, ExitStack() as stack:
        left = resumption.begun(folder)
        if budget_s is not None and left.done:
            left = left.with_further(budget_s)
        store, plan = left.store, left.plan
        nothing = _nothing_to_do(left, budget_s)
        if nothing:
            doing.say(f"{folder}: {nothing}")
            return derive(folder, pictures=False), tuple(store.latest().values()), False
        doing = doing.told(chain(*plan.passes.values()), plan.hardware)
        require(plan.hardware, doing.where)
        stack.enter_context(alone(plan.hardware, doing.where))(str(folder))
        # Of a run that was killed after its last step only what it left standing is wanted.
        over = left.done and plan.suite.further is None
        passed_over = () if over else resumption.refuse_unlike(left, doing.where, despite)
        if plan.hardware.of.by_ssh:
            resumption.take_away_from_real_hosts(holders, plan.hardware, doing.say)
        resumption.take_away_leftovers(
            holders, doing.where, doing.say, lab=plan.hardware.of.contained
        )
        if not over:
            _check(plan, left.planned, doing)
        was = (
            f"{store.manifest.state}: {store.manifest.error}"
            if store.manifest.error
            else store.manifest.state
        )
        if store.manifest.state == "running":
            was = "killed"
        store.event(
            RESUMED,
            f"{len(left.whole)} of {plan.steps} steps are whole; the run was {was}; now process "
            f"{os.getpid()}",
        )
        for one in passed_over:
            store.event("unlike", f"gone on with although {one}")
        spent_s = 0.0 if budget_s is not None else resumption.spent_s(store)
        given_s = plan.budget_s if budget_s is None else budget_s
        store.set_state("running")
        within_s = (
            budget_s
            if plan.suite.further is None or budget_s is not None
            else plan.suite.further.within
        )
        further = None if within_s is None else TimeAllowance(within_s, spent_s=spent_s)
        _conduct(
            left,
            doing,
            None if given_s is None else TimeAllowance(given_s, spent_s=spent_s),
            further=further,
        )
    return derive(folder, pictures=False), tuple(store.latest().values()), True


@contextmanager
def alone(hardware: Hardware, where: StatePlace) -> Iterator[Callable[[str], None]]:
    """Be the only run on this machine, where its hosts are lab hosts; yields what is told the
    folder of the run.

    A tuning's confirmation is a run within a run. Raises UsageError naming the run that is there.
    """
    if not hardware.of.contained:
        yield lambda _: None
        return
    from weighbridge.topologies.lab.claim import AtWork, MachineHold  # noqa: PLC0415 - the lab is wanted only where there is one

    try:
        running = MachineHold(where.state)
    except AtWork as busy:
        if busy.pid != str(os.getpid()):
            raise
        yield lambda _: None
        return
    try:
        yield running.tell
    finally:
        running.release()


def _refuse_endless(plan: Plan) -> None:
    """Raise UsageError of a plan that would not come to its end."""
    days = Pace.of(plan).left_s() / 86400
    if days > MOST_DAYS:
        advice = "Ask for fewer or smaller objects, shorter windows, or fewer repeats."
        raise UsageError(
            f"the run would probably take {days:,.0f} days; at most {MOST_DAYS} are planned",
            advice=advice,
        )


def _nothing_to_do(left: Begun, budget_s: float | None) -> str:
    """Why a run need not be gone on with; empty where it has to be."""
    if left.store.manifest.state == "done" and left.done:
        more = "; --budget TIME goes on with further repeats" if len(left.plan.layouts) > 1 else ""
        return (
            ""
            if budget_s is not None and more
            else f"every step is measured; nothing is left to be done{more}"
        )
    if budget_s is None and resumption.ended_by_budget(left.store):
        return "every step that its budget held is measured; --budget TIME gives the rest more"
    return ""


def _check(plan: Plan, layouts: Sequence[Planned], doing: Doing) -> None:
    tools = wants_tools(plan.suite) or bool(asked_of_hosts(plan.suite, sameness=plan.attest))
    # What its programs say of a twin's configuration they say of its layout's.
    own = [one for one in layouts if one.layout.name not in plan.twins]
    selection.check(own, plan.hardware, doing.where, doing.say, attest=tools)


class _Counted:
    """How many steps there are to be measured in all, as the plan is now: it may grow."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    @property
    def steps(self) -> int:
        return self.plan.steps

    def grown(self, plan: Plan) -> None:
        self.plan = plan


def _conduct(
    left: Begun,
    doing: Doing,
    allowance: TimeAllowance | None,
    begun: Callable[[RunStore], None] | None = None,
    *,
    further: TimeAllowance | None = None,
) -> None:
    """Measure what a run lacks; however that ends, the folder says how."""
    store, plan = left.store, left.plan
    pace, counted = Pace.of(plan, left.whole), _Counted(plan)
    try:
        if begun is not None:
            begun(store)
        with (
            sending(doing.influx, store, doing.say) as sent_too,
            display_for(counted, doing.screen, pace) as shown,
        ):
            display = sent_too(shown)
            lacking = plan.steps - len(left.whole)
            display.say(
                f"writing to {store.folder}: {lacking} steps, probably "
                f"{show_duration(pace.left_s())}"
            )
            profiler = (
                None
                if plan.profile is None
                else Profiler(plan.profile, store, able(), whole=left.whole)
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
                pace=pace,
                allowance=allowance,
                quiet=Quiet(look=partial(see, LOOK_S)) if plan.hardware.of.contained else None,
                further=further,
                grown=counted.grown,
            ).run()
        store.event("ended", "done")
        store.set_state("done")
    except BaseException as error:
        ended(store, "interrupted" if isinstance(error, Interrupted) else "failed", str(error))
        doing.say(f"what was measured is kept; to go on: weighbridge resume {store.folder}")
        raise
    latest = store.latest()
    if why:
        measured = whole(latest.values())
        repeats = sum(
            all(key in measured for visit in block for key in plan.keys(visit))
            for block in plan.blocks()
        )
        spread = spread_of(RunData(store.folder).rows, store.folder.name) or spread_here(
            store.folder.parent, plan.hardware
        )
        doing.say(f"{why}; {claim(plan, spread, repeats)}")
    lost = sum(step.measurement is None for step in latest.values())
    spoilt = sum(step.spoilt for step in latest.values())
    if lost or spoilt:
        told = (
            [f"{'1 step was' if lost == 1 else f'{lost} steps were'} not measured"] if lost else []
        )
        told += (
            [f"in {'1 step' if spoilt == 1 else f'{spoilt} steps'} the gateway did not stay whole"]
            if spoilt
            else []
        )
        doing.say(f"{', '.join(told)}; to try again: weighbridge resume {store.folder}")


def ended(store: RunStore, state: State, why: str) -> None:
    """Write down how a run ended.

    Where that cannot be written, what ended it is still what is told.
    """
    with suppress(StoreError):
        store.event("ended", f"{state}: {why}")
    with suppress(StoreError):
        store.set_state(state, error=why)
