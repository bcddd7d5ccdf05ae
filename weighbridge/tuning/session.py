"""A tuning from its folder to its report: trials, winner, confirmation; new, or resumed."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from weighbridge import resumption, run
from weighbridge.common.document import DocumentError
from weighbridge.common.errors import UsageError
from weighbridge.conductor.conductor import BUDGET
from weighbridge.conductor.interruption import interruptible
from weighbridge.conductor.passes import passes_of
from weighbridge.conductor.plan import make_plan
from weighbridge.conductor.step_runner import StepRunner
from weighbridge.conductor.time_estimate import TimeAllowance, show_duration
from weighbridge.display import display_for
from weighbridge.environment import require
from weighbridge.gateways.fragments import fragments, without_addresses
from weighbridge.results import derive
from weighbridge.results.derivation import Derived
from weighbridge.results.features.tuning.setting_table import SettingEntry, SettingTable
from weighbridge.results.features.tuning.tuning_result import confirmation_folder
from weighbridge.results.figures.summary import JudgedStep, read_visit, read_visits, workloads_of
from weighbridge.results.run.step import StepKey, StepResult
from weighbridge.results.run.store import RunStore, lock_run_folder
from weighbridge.results.run.trial import CONFIRMATION, Fragment, TuningStore, Winner
from weighbridge.results_output import draw_run
from weighbridge.run import Doing, alone
from weighbridge.suites.tuning import Tuning
from weighbridge.topologies.deployment import preflight_all
from weighbridge.topologies.loader import LONGEST_NAME
from weighbridge.tuning import preparation
from weighbridge.tuning.course import Course
from weighbridge.tuning.preparation import PreparedTuning
from weighbridge.tuning.space import Candidate, Choice
from weighbridge.tuning.trial_deployment import TrialDeployment
from weighbridge.tuning.tuner import LEFT_OUT, Tuner

# Choosing a winner: the settings that are better, together if possible, and what to paste.


Refusal = Callable[[Candidate], str]
"""Why the programs of the release refuse a candidate; empty if they do not."""
TUNED = "-tuned"


def choose(
    prepared: PreparedTuning,
    candidates: Mapping[str, Candidate],
    table: SettingTable,
    refusal: Refusal,
) -> tuple[Candidate, Winner] | None:
    """The winner of a tuning with its layout; None if nothing is better.

    For a screen, the best better level of each parameter, all together: they were tried one at a
    time, and the confirmation shows whether their effects add up. For a grid or a search, the best
    candidate.
    """
    better = sorted(
        (
            entry
            for entry in table.entries
            if entry.verdict == "better"
            and entry.gain is not None
            and entry.variant.name in candidates
        ),
        key=lambda entry: entry.gain or 0.0,
        reverse=True,
    )
    if not better:
        return None
    if prepared.tuning.strategy == "screen":
        one, chosen, reason = _together(prepared, candidates, better, refusal)
    else:
        one, chosen = candidates[better[0].variant.name], better[:1]
        others = f" of the {len(better)} that were better" if len(better) > 1 else ""
        reason = f"{better[0].name}: the largest gain{others}"
    evidence = [effect.text for entry in chosen for effect in entry.effects]
    where, before, after = prepared.hardware.sites, prepared.baseline.planned, one.planned
    pasted = fragments(before.gateway.render(where), after.gateway.render(where), evidence)
    lab = {} if prepared.hardware.of.by_ssh else where
    return one, Winner(
        arm=one.variant,
        reason=reason,
        fragments=tuple(
            Fragment(name=part.name, text=without_addresses(part.text, lab)) for part in pasted
        ),
    )


def _together(
    prepared: PreparedTuning,
    candidates: Mapping[str, Candidate],
    better: Sequence[SettingEntry],
    refusal: Refusal,
) -> tuple[Candidate, list[SettingEntry], str]:
    """The best better level of each parameter, the largest gain first."""
    best: dict[int, tuple[SettingEntry, Choice]] = {}
    weaker = []
    for entry in better:
        choice = candidates[entry.variant.name].choices[0]
        if choice.parameter in best:
            weaker.append(entry.name)
        else:
            best[choice.parameter] = (entry, choice)
    entries = [entry for entry, _ in best.values()]
    others = f"; {', '.join(weaker)} gained less" if weaker else ""
    if len(best) == 1:
        return (
            candidates[entries[0].variant.name],
            entries,
            f"{entries[0].name}: the only setting that was better{others}",
        )
    why = ""
    try:
        name = f"{prepared.baseline.variant.name[: LONGEST_NAME - len(TUNED)]}{TUNED}"
        one = prepared.space.candidate([choice for _, choice in best.values()], name=name)
        why = refusal(one)
    except DocumentError as error:
        why = "; ".join(dict.fromkeys(fault.message for fault in error.faults))
    if why:
        with_ = ", ".join(entry.name for entry in entries[1:])
        text = f"{entries[0].name}: the largest gain; it cannot be combined with {with_}"
        return candidates[entries[0].variant.name], entries[:1], f"{text} ({why.splitlines()[0]})"
    names = ", ".join(entry.name for entry in entries)
    return (one, entries, f"{names}: each was better alone, and the best of its parameter{others}")


_LEAST_TRIALS: Final = 3
"""One setting, with the baseline before and after it."""


@dataclass(frozen=True)
class TuningOutcome:
    """The results of a tuning; `table` is None if nothing was left to do."""

    derived: Derived
    table: SettingTable | None = None


def tune(prepared: PreparedTuning, doing: Doing, *, out: Path, attest: bool) -> TuningOutcome:
    """Run a tuning in a new folder below `out` and derive its report.

    Raises UsageError before anything is started if something cannot be done; any other
    WeighbridgeError if the baseline could not be started or measured, after all is torn down.
    """
    doing = doing.with_settings(passes_of(prepared.suite, ()), prepared.hardware)
    require(prepared.hardware, doing.where)
    allowance = None if prepared.tuning.budget is None else TimeAllowance(prepared.tuning.budget)
    for sentence in sentences(prepared, Course(prepared, attest=attest, allowance=allowance)):
        doing.say(sentence)
    with interruptible(), alone(prepared.hardware, doing.where) as register:
        # Before the folder is made: otherwise faults of the last candidate would be found only
        # after all others were tried.
        preparation.check(prepared, doing.where, doing.say, attest=attest)
        plan = prepared.plan(prepared.candidates, attest=attest)
        store = run.new_folder(out, plan, prepared.text)
        with lock_run_folder(store.folder):
            register(str(store.folder))
            TuningStore(store.folder).begin(prepared.run())
            for remark in prepared.remarks:
                store.event(LEFT_OUT, remark)
            with run.recorded(store, doing.say, f"tune {store.folder} --resume"):
                table = _run_trials(prepared, store, doing, allowance, attest=attest)
    return TuningOutcome(derive(store.folder, pictures=False), table)


def resume(
    folder: Path, doing: Doing, *, despite: Collection[str] = (), budget_s: float | None = None
) -> TuningOutcome:
    """Resume the tuning of a run folder: the trial that was being made, winner or confirmation.

    `despite` names facts that may have changed since it began; `budget_s` is the time for the rest,
    instead of the tuning's own. Raises UsageError before anything is started if it cannot be
    resumed; else as `tune`.
    """
    RunStore.open(folder)  # leave no lock in a folder that is not a run's
    with interruptible(), lock_run_folder(folder) as holders, ExitStack() as stack:
        left = resumption.load_run(folder)
        store, begun = left.store, TuningStore(folder).run()
        if begun is None:
            raise UsageError(
                f"{folder}: is not the run of a tuning",
                advice=f"To resume it: weighbridge resume {folder}",
            )
        cut = any(event.kind == BUDGET for event in store.events())
        if store.manifest.state == "done" and (budget_s is None or not cut):
            more = "; --budget TIME allows more trials" if cut else ""
            doing.say(f"{folder}: nothing is left to do{more}")
            return TuningOutcome(derive(folder, pictures=False))
        prepared = preparation.prepare_again(store, begun, left.plan, doing.say)
        doing = doing.with_settings(passes_of(prepared.suite, ()), prepared.hardware)
        words = f"{len(TuningStore(folder).trials())} trials are made"
        check = partial(
            preparation.check, prepared, doing.where, doing.say, attest=left.plan.attest
        )
        stack.enter_context(run.take_over(left, holders, doing, despite, words, check))
        given_s = prepared.tuning.budget if budget_s is None else budget_s
        spent_s = 0.0 if budget_s is not None else resumption.spent_s(store)
        allowance = None if given_s is None else TimeAllowance(given_s, spent_s=spent_s)
        doing.say(f"resuming {folder}: {words}")
        with run.recorded(store, doing.say, f"tune {folder} --resume"):
            table = _run_trials(
                prepared, store, doing, allowance, attest=left.plan.attest, despite=despite
            )
    return TuningOutcome(derive(folder, pictures=False), table)


def unfinished(tuning: Tuning, out: Path) -> Path:
    """A tuning's newest unfinished run. Raises UsageError without one, or about another tuning."""
    found = []
    for path in sorted(out.glob("*/tuning.json"), reverse=True):
        begun = TuningStore(path.parent).run()
        if (
            begun is not None
            and begun.tuning.name == tuning.name
            and RunStore.open(path.parent).manifest.state != "done"
        ):
            found.append((path.parent, begun.tuning))
    if not found:
        advice = (
            "Start one without --resume; to continue a run that is done, name its folder: "
            "weighbridge tune RUN --resume --budget TIME."
        )
        raise UsageError(f"{out}: has no unfinished run of tuning {tuning.name}", advice=advice)
    folder, begun_with = found[0]
    other = [
        name for name in Tuning.model_fields if getattr(tuning, name) != getattr(begun_with, name)
    ]
    if other:
        raise UsageError(
            f"{folder}: began with another tuning of this name: {', '.join(other)} "
            f"differ{'s' * (len(other) == 1)}",
            advice=f"To resume it as it began: weighbridge tune {folder} --resume",
        )
    return folder


def sentences(prepared: PreparedTuning, course: Course) -> tuple[str, ...]:
    """What will be done. Raises UsageError if the budget is too short for one round."""
    tuning = prepared.tuning
    what = f"{len(prepared.candidates)} settings"
    if tuning.strategy == "search":
        what = f"{tuning.search.proposals} proposals"
    trials_words = f"{course.least} to {course.most} trials"
    confirmed = f", confirmation by {tuning.confirm} repeats each" if tuning.confirm else ""
    time = f"about {show_duration(course.least_s())} if each is clear at once"
    plan = f"{tuning.name}: {tuning.strategy} of {what}, {trials_words}{confirmed}: {time}"
    found = [*prepared.remarks, plan]
    room_s = course.room_s()
    if tuning.budget is None or room_s is None:
        return tuple(found)
    trials = int(room_s / course.trial_s("restart"))
    budget = show_duration(tuning.budget)
    if trials < _LEAST_TRIALS:
        needed_s = tuning.budget - room_s + _LEAST_TRIALS * course.trial_s("restart")
        raise UsageError(
            f"a budget of {budget} is too short for one setting between two trials of the baseline "
            f"and the confirmation, which take about {show_duration(needed_s)}",
            advice="Give more time, shorter windows, or fewer repeats of the confirmation "
            "(--confirm).",
        )
    if trials < course.least:
        judged = f"not every setting will be judged, which needs {tuning.trials.least} trials"
        found.append(f"a budget of {budget} is enough for about {trials} trials: {judged}")
    return tuple(found)


def _run_trials(
    prepared: PreparedTuning,
    store: RunStore,
    doing: Doing,
    allowance: TimeAllowance | None,
    *,
    attest: bool,
    despite: Collection[str] = (),
) -> SettingTable:
    book, plan = TuningStore(store.folder), store.plan()
    workloads = workloads_of(plan)
    visits: dict[StepKey, JudgedStep] = read_visits(store, plan, store.steps())
    before = book.trials()
    course = Course(prepared, attest=attest, allowance=allowance, made=len(before))

    def written(step: StepResult) -> None:
        visits[step.key] = read_visit(store, step, workloads)

    with display_for(course, doing.screen, course) as display:
        display.say(f"writing to {store.folder}")
        runner = StepRunner(prepared.suite, store, display, written=written)
        number = max((trial.deployment for trial in before), default=-1) + 1
        with TrialDeployment(
            prepared,
            store,
            display,
            doing.where,
            runner,
            next=number,
            attest=attest,
            settings=doing.settings,
        ) as deployment:
            tuner = Tuner(prepared, store, display, deployment, course, visits, attest=attest)
            why = tuner.run()
    if why:
        doing.say(why)

    def refusal(one: Candidate) -> str:
        refused = preflight_all([one.planned], prepared.hardware, doing.where, doing.say)
        return refused.get(one.variant.name, "")

    found = tuner.judge()
    chosen = choose(prepared, tuner.candidates, found, refusal)
    if chosen is None:
        doing.say("no setting is better: there is no winner to confirm")
        book.forget()
        return found
    one, winner = chosen
    book.choose(winner)
    doing.say(f"winner: {winner.reason}")
    if prepared.tuning.confirm:
        confirm(prepared, one, store.folder, doing, attest=attest, despite=despite)
    return found


def confirm(
    prepared: PreparedTuning,
    winner: Candidate,
    folder: Path,
    doing: Doing,
    *,
    attest: bool,
    despite: Collection[str] = (),
) -> None:
    """Compare the winner with the baseline on fresh deployments, as an ordinary run below the
    tuning's folder; resumes one that began for the same winner. Raises as `weighbridge.run.run`.
    """
    planned = (prepared.baseline.planned, winner.planned)
    begun, layouts = confirmation_folder(folder / CONFIRMATION), []
    if begun is not None:
        layouts = [(one.name, one.settings) for one in RunStore.open(begun).plan().layouts]
    if begun is not None and layouts == [(one.layout.name, one.layout.settings) for one in planned]:
        ran = run.resume(begun, doing, despite=despite)
    else:
        repeats, baseline = prepared.tuning.confirm, prepared.baseline.variant.name
        doing.say(f"confirming {winner.variant.name} vs {baseline}, {repeats} repeats each")
        suite = prepared.tuning.confirming(prepared.suite)
        plan = make_plan(suite, prepared.hardware, planned, order_seed=secrets.randbelow(2**32))
        out = folder / CONFIRMATION
        ran = run.run(plan, planned, doing, out=out, text=prepared.text, attest=attest)
    if doing.pictures:
        draw_run(ran.derived, doing.say)
