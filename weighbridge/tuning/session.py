"""A tuning from its folder to its report: trials, winner, confirmation; begun, or gone on with
after it was ended or killed.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from weighbridge import resumption, run
from weighbridge.common.errors import UsageError
from weighbridge.conclusion import draw
from weighbridge.conductor.conductor import BUDGET, RESUMED
from weighbridge.conductor.facts import facts_of_machine
from weighbridge.conductor.interruption import Interrupted, interruptible
from weighbridge.conductor.measuring import Measuring
from weighbridge.conductor.pace import TimeAllowance, show_duration
from weighbridge.conductor.passes import passes_of
from weighbridge.conductor.plan import make_plan
from weighbridge.means import require
from weighbridge.results import derive
from weighbridge.results.analysis.steps.visit import (
    JudgedStep,
    closed_loops,
    read_visit,
    read_visits,
)
from weighbridge.results.analysis.tuning.confirmation import confirmation_folder
from weighbridge.results.analysis.tuning.ledger import Ledger
from weighbridge.results.derivation import Derived
from weighbridge.results.record.hold import holding
from weighbridge.results.record.manifest import Sheet
from weighbridge.results.record.step import StepKey, StepResult
from weighbridge.results.record.store import RunStore
from weighbridge.results.record.trial import CONFIRMATION, TrialBook, Winner
from weighbridge.run import Doing, alone
from weighbridge.screen.display import display_for
from weighbridge.suites.tuning import Tuning
from weighbridge.topologies.deployment import preflight_all
from weighbridge.tuning import preparation
from weighbridge.tuning.choosing import choose
from weighbridge.tuning.course import Course
from weighbridge.tuning.preparation import PreparedTuning
from weighbridge.tuning.space import Candidate
from weighbridge.tuning.trial_deployment import TrialDeployment
from weighbridge.tuning.tuner import LEFT_OUT, Tuner

_LEAST_TRIALS: Final = 3
"""One setting, and the baseline on both sides of it."""


@dataclass(frozen=True)
class TuningOutcome:
    """What a tuning came to.

    `ledger` is that of its trials, None where nothing was left to be done.
    """

    derived: Derived
    ledger: Ledger | None = None


def tune(ready: PreparedTuning, doing: Doing, *, out: Path, attest: bool) -> TuningOutcome:
    """Do a tuning in a new folder below `out` and derive its report.

    Raises UsageError before anything is started when something cannot be done; any other
    WeighbridgeError when the baseline could not be stood up or measured, all of it then being taken
    away again.
    """
    doing = doing.told(passes_of(ready.suite, ()), ready.hardware)
    require(ready.hardware, doing.where)
    allowance = None if ready.tuning.budget is None else TimeAllowance(ready.tuning.budget)
    for sentence in sentences(ready, Course(ready, attest=attest, allowance=allowance)):
        doing.say(sentence)
    with interruptible(), alone(ready.hardware, doing.where) as tell:
        # Before the folder is made: what the last arm gets wrong would else be found when all
        # others have been tried.
        preparation.check(ready, doing.where, doing.say, attest=attest)
        store = RunStore.create(
            out,
            plan_yaml=ready.text,
            plan=ready.plan(ready.arms, attest=attest),
            suite=ready.suite.name,
            command=("weighbridge", *sys.argv[1:]),
            weighbridge_version=version("weighbridge"),
            sheets=[Sheet(title="machine", facts=facts_of_machine(ready.hardware))],
        )
        with holding(store.folder):
            tell(str(store.folder))
            TrialBook(store.folder).begin(ready.run())
            for remark in ready.remarks:
                store.event(LEFT_OUT, remark)
            found = _conduct(ready, store, doing, allowance, attest=attest)
    return TuningOutcome(derive(store.folder, pictures=False), found)


def resume(
    folder: Path, doing: Doing, *, despite: Collection[str] = (), budget_s: float | None = None
) -> TuningOutcome:
    """Go on with the tuning of a run folder: with the trial that was being made, its winner, or its
    confirmation.

    `despite` names facts that may differ from when it was begun; `budget_s` is what the rest may
    take instead of what the tuning was given. Raises UsageError before anything is started when it
    cannot be gone on with; else as `tune`.
    """
    RunStore.open(folder)  # no lock is left in a folder that is no run's
    with interruptible(), holding(folder) as holders, ExitStack() as stack:
        left = resumption.begun(folder)
        store, begun = left.store, TrialBook(folder).run()
        if begun is None:
            raise UsageError(
                f"{folder}: is the run of no tuning",
                advice=f"To go on with it: weighbridge resume {folder}",
            )
        if store.manifest.state == "done" and (budget_s is None or not _ended_by_budget(store)):
            more = "; --budget TIME gives its trials more" if _ended_by_budget(store) else ""
            doing.say(f"{folder}: it is done; nothing is left to be done{more}")
            return TuningOutcome(derive(folder, pictures=False))
        ready = preparation.again(store, begun, left.plan, doing.say)
        doing = doing.told(passes_of(ready.suite, ()), ready.hardware)
        require(ready.hardware, doing.where)
        stack.enter_context(alone(ready.hardware, doing.where))(str(folder))
        passed_over = resumption.refuse_unlike(left, doing.where, despite)
        if ready.hardware.of.by_ssh:
            resumption.take_away_from_real_hosts(holders, ready.hardware, doing.say)
        if ready.hardware.of.contained:
            resumption.take_away_leftovers(holders, doing.where, doing.say)
        preparation.check(ready, doing.where, doing.say, attest=left.plan.attest)
        was = "killed" if store.manifest.state == "running" else store.manifest.state
        why = f" ({store.manifest.error})" if store.manifest.error else ""
        many = len(TrialBook(folder).trials())
        store.event(
            RESUMED, f"{many} trials are made; the run was {was}{why}; now process {os.getpid()}"
        )
        for one in passed_over:
            store.event("unlike", f"gone on with although {one}")
        given_s = ready.tuning.budget if budget_s is None else budget_s
        spent_s = 0.0 if budget_s is not None else resumption.spent_s(store)
        allowance = None if given_s is None else TimeAllowance(given_s, spent_s=spent_s)
        store.set_state("running")
        doing.say(f"going on with {folder}: {many} trials are made")
        found = _conduct(ready, store, doing, allowance, attest=left.plan.attest, despite=despite)
    return TuningOutcome(derive(folder, pictures=False), found)


def unfinished(tuning: Tuning, out: Path) -> Path:
    """The newest unfinished run of a tuning below `out`.

    Raises UsageError when there is none, or it is of another tuning.
    """
    found = []
    for path in sorted(out.glob("*/tuning.json"), reverse=True):
        begun = TrialBook(path.parent).run()
        if (
            begun is not None
            and begun.tuning.name == tuning.name
            and RunStore.open(path.parent).manifest.state != "done"
        ):
            found.append((path.parent, begun.tuning))
    if not found:
        advice = (
            "Without --resume it is begun; a run that is done is told by its folder: "
            "weighbridge tune RUN --resume --budget TIME."
        )
        raise UsageError(f"{out}: has no unfinished run of tuning {tuning.name}", advice=advice)
    folder, begun_with = found[0]
    other = [
        name for name in Tuning.model_fields if getattr(tuning, name) != getattr(begun_with, name)
    ]
    if other:
        raise UsageError(
            f"{folder}: was begun with another tuning of this name: {', '.join(other)} "
            f"differ{'s' * (len(other) == 1)}",
            advice=f"To go on with it as it was begun: weighbridge tune {folder} --resume",
        )
    return folder


def sentences(ready: PreparedTuning, course: Course) -> tuple[str, ...]:
    """What is going to be done, and whether its budget holds it, in plain words.

    Raises UsageError when it holds no round.
    """
    tuning = ready.tuning
    least, most = course.least, course.most
    arms = (
        f"{len(ready.arms)} settings"
        if tuning.strategy != "search"
        else f"{tuning.search.proposals} proposals"
    )
    confirmed = f", confirmation by {tuning.confirm} visits each" if tuning.confirm else ""
    least_s = show_duration(course.least_s())
    guess = f"about {least_s} where each is clear at once"
    plan = (
        f"{tuning.name}: {tuning.strategy} of {arms}, {least} to {most} trials{confirmed}: {guess}"
    )
    found = [*ready.remarks, plan]
    room_s = course.room_s()
    if tuning.budget is None or room_s is None:
        return tuple(found)
    trials = int(room_s / course.trial_s("restart"))
    budget = show_duration(tuning.budget)
    if trials < _LEAST_TRIALS:
        needed_s = tuning.budget - room_s + _LEAST_TRIALS * course.trial_s("restart")
        what = "one setting between two trials of the baseline, and the confirmation"
        raise UsageError(
            f"a budget of {budget} does not hold {what}: that takes about {show_duration(needed_s)}",
            advice="Give more time, shorter windows, or fewer visits of the confirmation "
            "(--confirm).",
        )
    if trials < least:
        judged = f"not every setting will be judged, which takes {tuning.trials.least} trials of it"
        found.append(f"a budget of {budget} holds about {trials} trials: {judged}")
    return tuple(found)


def _conduct(
    ready: PreparedTuning,
    store: RunStore,
    doing: Doing,
    allowance: TimeAllowance | None,
    *,
    attest: bool,
    despite: Collection[str] = (),
) -> Ledger:
    """Make what is lacking; however that ends, the folder says how."""
    try:
        found = _tried(ready, store, doing, allowance, attest=attest, despite=despite)
    except BaseException as error:
        run.ended(store, "interrupted" if isinstance(error, Interrupted) else "failed", str(error))
        doing.say(f"what was measured is kept; to go on: weighbridge tune {store.folder} --resume")
        raise
    store.event("ended", "done")
    store.set_state("done")
    return found


def _tried(
    ready: PreparedTuning,
    store: RunStore,
    doing: Doing,
    allowance: TimeAllowance | None,
    *,
    attest: bool,
    despite: Collection[str],
) -> Ledger:
    book, plan = TrialBook(store.folder), store.plan()
    closed = closed_loops(plan)
    visits: dict[StepKey, JudgedStep] = read_visits(store, plan)
    before = book.trials()
    course = Course(ready, attest=attest, allowance=allowance, made=len(before))

    def written(step: StepResult) -> None:
        visits[step.key] = read_visit(store, step, closed)

    with display_for(course, doing.screen, course) as display:
        display.say(f"writing to {store.folder}")
        measuring = Measuring(ready.suite, store, display, written=written)
        number = max((trial.deployment for trial in before), default=-1) + 1
        with TrialDeployment(
            ready,
            store,
            display,
            doing.where,
            measuring,
            number=number,
            attest=attest,
            settings=doing.settings,
        ) as bench:
            tuner = Tuner(ready, store, display, bench, course, visits, attest=attest)
            why = tuner.run()
    if why:
        doing.say(why)
    found = tuner.judge()
    chosen = _chosen(ready, tuner, found, doing)
    if chosen is None:
        doing.say("no setting was shown to be better: there is no winner to be confirmed")
        book.forget()
        return found
    one, winner = chosen
    book.choose(winner)
    doing.say(f"winner: {winner.reason}")
    if ready.tuning.confirm:
        confirm(ready, one, store.folder, doing, attest=attest, despite=despite)
    return found


def _chosen(
    ready: PreparedTuning, tuner: Tuner, found: Ledger, doing: Doing
) -> tuple[Candidate, Winner] | None:
    def refusal(one: Candidate) -> str:
        refused = preflight_all([one.planned], ready.hardware, doing.where, doing.say)
        return refused.get(one.arm.name, "")

    return choose(ready, tuner.candidates, found, refusal)


def confirm(
    ready: PreparedTuning,
    winner: Candidate,
    folder: Path,
    doing: Doing,
    *,
    attest: bool,
    despite: Collection[str] = (),
) -> None:
    """Weigh the winner against the baseline on fresh deployments: an ordinary run below the
    tuning's folder, gone on with where one was begun for the same winner. Raises as
    `weighbridge.run.run` does.
    """
    arms = (ready.baseline.planned, winner.planned)
    begun = confirmation_folder(folder / CONFIRMATION)
    if begun is not None:
        layouts = RunStore.open(begun).plan().layouts
        if [(one.name, one.settings) for one in layouts] == [
            (one.layout.name, one.layout.settings) for one in arms
        ]:
            derived, *_ = run.resume(begun, doing, despite=despite)
            _draw(derived, doing)
            return
    doing.say(
        f"confirming {winner.arm.name} against {ready.baseline.arm.name}, {ready.tuning.confirm} "
        "visits each"
    )
    suite = ready.suite.changed(repeats=ready.tuning.confirm)
    plan = make_plan(suite, ready.hardware, arms, order_seed=secrets.randbelow(2**32))
    derived, _ = run.run(
        plan, arms, doing, out=folder / CONFIRMATION, text=ready.text, attest=attest
    )
    _draw(derived, doing)


def _draw(derived: Derived, doing: Doing) -> None:
    if doing.pictures:
        draw(
            derived.gallery.figures,
            derived.charts_folder,
            doing.say,
            again=f"weighbridge charts {derived.folder.parent}",
        )


def _ended_by_budget(store: RunStore) -> bool:
    return any(event.kind == BUDGET for event in store.events())
