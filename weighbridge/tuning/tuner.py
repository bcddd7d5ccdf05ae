"""The tuner: follows the turns of a strategy; each is a trial, recorded when it is complete.

The strategy first gets the trials that the run folder holds, which brings it to where it was: a run
that is killed loses only its last trial.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime
from typing import Final

from weighbridge.common.errors import DriverError, TargetError, UsageError, WeighbridgeError
from weighbridge.conductor.conductor import BUDGET
from weighbridge.conductor.step_runner import Display
from weighbridge.conductor.time_estimate import show_duration
from weighbridge.results.features.tuning.setting_table import SettingTable, setting_table
from weighbridge.results.figures.summary import JudgedStep
from weighbridge.results.run.step import StepKey
from weighbridge.results.run.store import RunStore
from weighbridge.results.run.trial import Trial, TuningStore
from weighbridge.tuning.course import Course
from weighbridge.tuning.preparation import PreparedTuning
from weighbridge.tuning.space import Candidate, scope_between
from weighbridge.tuning.trial_deployment import Switched, TrialDeployment
from weighbridge.tuning.turns import OptunaSearch, TrialCount, TrialTurn, Turns, rounds

LEFT_OUT: Final = "left out"


@dataclass
class Tuner:
    """Runs what a tuning's folder lacks. `visits`: judged steps, added before a trial ends."""

    prepared: PreparedTuning
    store: RunStore
    display: Display
    deployment: TrialDeployment
    course: Course
    visits: dict[StepKey, JudgedStep]
    _: KW_ONLY
    attest: bool = False

    def __post_init__(self) -> None:
        prepared = self.prepared
        self._run = prepared.run()
        self._book = TuningStore(self.store.folder)
        self.candidates = {
            one.variant.name: one for one in (prepared.baseline, *prepared.candidates)
        }
        """All known candidates, by name."""
        self._planned = {layout.name for layout in self.store.plan().layouts}
        self._before = deque(self._book.trials())
        self._trials: list[Trial] = []
        self._began: float | None = None

    def judge(self) -> SettingTable:
        """The results of all trials so far."""
        return setting_table(self._run, self._trials, self.visits)

    def run(self) -> str:
        """Run trials that fit the budget; returns why not all. Raises UsageError if the folder has
        another tuning's, the baseline's error; StoreError.
        """
        turns = self._turns()
        turn = next(turns, None)
        while turn is not None:
            trial = self._recorded(turn)
            if trial is None:
                why = self._too_late(turn)
                if why:
                    turns.close()
                    self._close(turn.round)
                    self.store.event(BUDGET, why)
                    return why
                trial = self._made(turn)
            try:
                turn = turns.send(trial)
            except StopIteration:
                turn = None
        if self._before:
            raise self._other(self._before[0], None)
        return ""

    def _turns(self) -> Turns:
        prepared = self.prepared
        if prepared.tuning.strategy == "search":
            return OptunaSearch(prepared.space, self.judge, self._learn, self._note).turns()
        counts = [TrialCount(one.variant) for one in prepared.candidates]
        return rounds(counts, prepared.tuning, prepared.baseline.variant, self.judge)

    def _learn(self, one: Candidate) -> None:
        self.candidates[one.variant.name] = one
        if one.variant.name not in self._planned:
            known = tuple(one for one in self.candidates.values() if not one.variant.is_baseline)
            self._book.replan(self.prepared.plan(known, attest=self.attest))
            self._planned.add(one.variant.name)

    def _note(self, text: str) -> None:
        if not self._before:  # otherwise it was noted when it happened
            self.display.say(text)
            self.store.event(LEFT_OUT, text)

    # ---- trials from before

    def _recorded(self, turn: TrialTurn) -> Trial | None:
        while self._before:
            trial = self._before.popleft()
            self._trials.append(trial)
            if (trial.arm, trial.round) == (turn.variant, turn.round):
                return trial
            # A trial of the baseline that no strategy asked for: the first on a deployment, or the
            # last of a budget.
            if not trial.arm.is_baseline or trial.round != turn.round:
                raise self._other(trial, turn)
        return None

    def _other(self, trial: Trial, turn: TrialTurn | None) -> UsageError:
        now = "none" if turn is None else f"{turn.variant.name} in round {turn.round + 1}"
        was = f"trial {trial.number + 1} was of {trial.arm.name} in round {trial.round + 1}"
        made_by = self.store.manifest.weighbridge_version or "of an unknown version"
        return UsageError(
            f"{self.store.folder}: {was}, and now it would be {now}",
            advice=f"They are of another tuning, or weighbridge {made_by} chose differently.",
        )

    # ---- new trials

    def _made(self, turn: TrialTurn) -> Trial:
        one = self.candidates[turn.variant.name]
        if not turn.variant.is_baseline and not self._anchored(turn):
            self._try(self.prepared.baseline, turn.round)
        return self._try(one, turn.round)

    def _anchored(self, turn: TrialTurn) -> bool:
        if self.deployment.scope_to(turn.variant) == "cluster":
            return (
                scope_between(self.prepared.baseline.variant, turn.variant, self.prepared.scopes)
                == "cluster"
            )
        return any(
            trial.arm.is_baseline
            and not trial.failed
            and (trial.round, trial.deployment) == (turn.round, self.deployment.number)
            for trial in self._trials
        )

    def _try(self, one: Candidate, number: int) -> Trial:
        """One trial, from switching to the candidate to the record of the trial."""
        repeat = sum(trial.arm.name == one.variant.name for trial in self._trials)
        self.store.event(
            "trial",
            f"trial {len(self._trials) + 1}: round {number + 1}: {one.words}",
            layout=one.variant.name,
        )
        at, began = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
        switched, error, started_up = self._switched(one)
        if not self._trials:
            # Before the first trial, all changes that running daemons refuse.
            wanted = self.prepared.candidates or self.prepared.singles
            if refusals := self.deployment.refusals(wanted):
                advice = "Give these parameters a wider scope, or leave it out: the gateway knows "
                raise UsageError("\n".join(refusals), advice=f"{advice}what is enough.")
        changed_s = time.monotonic() - began
        started = time.monotonic()
        if error is not None:
            self.deployment.not_measured(one.variant, repeat, error)
        else:
            try:
                started = self.deployment.measure(one, repeat)
            except (DriverError, TargetError) as failed:
                error = failed
        if self._began is None:
            self._began = started
        trial = Trial(
            number=len(self._trials),
            arm=one.variant,
            repeat=repeat,
            round=number,
            scope=switched.scope,
            changed=switched.done,
            changed_s=changed_s,
            started_s=started - self._began,
            deployment=self.deployment.number,
            at=at,
            stood=started_up,
            failed="" if error is None else error.message,
        )
        self._book.add(trial)
        self._trials.append(trial)
        if error is None:
            self.course.made(switched.scope, time.monotonic() - began)
        elif one.variant.is_baseline:
            raise error
        else:
            self.deployment.recover()
        return trial

    def _switched(self, one: Candidate) -> tuple[Switched, WeighbridgeError | None, bool]:
        """Run a candidate: what was done, why it failed, and whether the gateway started.

        A candidate that does not start after another one is tried again after the baseline, and
        the baseline on a new deployment: the one before may be the cause.
        """
        try:
            return self.deployment.switch_to(one), None, True
        except (TargetError, DriverError, UsageError) as error:
            self.store.event("failed", str(error), layout=one.variant.name)
            self.display.say(error.message)
        if one.variant.is_baseline:
            self.deployment.tear_down()
        else:
            self.deployment.recover()
        scope = self.deployment.scope_to(one.variant)
        try:
            return self.deployment.switch_to(one), None, True
        except (TargetError, DriverError, UsageError) as error:
            if one.variant.is_baseline:
                raise
            self.store.event("failed", str(error), layout=one.variant.name)
            return Switched(scope), error, False

    # ---- the budget

    def _too_late(self, turn: TrialTurn) -> str:
        """Why the budget is too short for a turn and the end of its round; empty if it is not."""
        room_s = self.course.room_s()
        needed_s = self._needed_s(turn)
        if room_s is None or needed_s <= room_s:
            return ""
        kept_s = self.course.confirm_s
        kept = f", with {show_duration(kept_s)} reserved for the confirmation" if kept_s else ""
        return (
            f"the budget ends the trials after {len(self._trials)}, in round {turn.round + 1}: "
            "the next one takes about "
            f"{show_duration(needed_s)}, and {show_duration(max(0.0, room_s))} is left{kept}"
        )

    def _needed_s(self, turn: TrialTurn) -> float:
        """Seconds for a turn with what must follow it; 0 for the baseline within a round."""
        there_s, back_s = (
            self.course.trial_s(self.deployment.scope_to(variant))
            for variant in (turn.variant, self.prepared.baseline.variant)
        )
        if not turn.variant.is_baseline:
            return there_s + back_s
        opens = not self._trials or self._trials[-1].round != turn.round
        # A round has at least one setting.
        return there_s + 2 * self.course.trial_s("restart") if opens else 0.0

    def _close(self, number: int) -> None:
        if (
            self._trials
            and not self._trials[-1].arm.is_baseline
            and self._trials[-1].round == number
        ):
            self._try(self.prepared.baseline, number)
