"""The tuner: drives the turns of a strategy, each a trial on the bench, written down when all its
steps are.

Trials that the run folder holds already are told to the strategy as they were, so that it comes to
where it was: a run that is killed loses the trial that was being made, and no other.
"""

from __future__ import annotations

import time
from collections import deque
from datetime import UTC, datetime
from typing import Final

from weighbridge.common.errors import DriverError, TargetError, UsageError, WeighbridgeError
from weighbridge.conductor.conductor import BUDGET
from weighbridge.conductor.measuring import Display
from weighbridge.conductor.pace import show_duration
from weighbridge.results.analysis.steps.visit import JudgedStep
from weighbridge.results.analysis.tuning.ledger import Ledger, ledger
from weighbridge.results.record.step import StepKey
from weighbridge.results.record.store import RunStore
from weighbridge.results.record.trial import Trial, TrialBook
from weighbridge.tuning.course import Course
from weighbridge.tuning.preparation import PreparedTuning
from weighbridge.tuning.proposals import OptunaSearch
from weighbridge.tuning.space import Candidate, scope_between
from weighbridge.tuning.trial_deployment import Brought, TrialDeployment
from weighbridge.tuning.turns import TrialTurn, Tried, Turns, rounds

LEFT_OUT: Final = "left out"
"""The kind of event that tells what is not tried."""


class Tuner:
    """Makes the trials of a tuning, or those that its run folder lacks.

    `visits` are what is kept of the steps so far: whoever writes a step down puts it there before
    the trial's end.
    """

    def __init__(
        self,
        ready: PreparedTuning,
        store: RunStore,
        display: Display,
        bench: TrialDeployment,
        course: Course,
        visits: dict[StepKey, JudgedStep],
        *,
        attest: bool = False,
    ) -> None:
        self._ready = ready
        self._run = ready.run()
        self._store = store
        self._book = TrialBook(store.folder)
        self._display = display
        self._bench = bench
        self._course = course
        self._visits = visits
        self._attest = attest
        self._candidates = {one.arm.name: one for one in (ready.baseline, *ready.arms)}
        self._planned = {layout.name for layout in store.plan().layouts}
        self._before = deque(self._book.trials())
        self._told: list[Trial] = []
        self._began: float | None = None

    @property
    def candidates(self) -> dict[str, Candidate]:
        """All arms that are known, by name."""
        return dict(self._candidates)

    def judge(self) -> Ledger:
        """The ledger of all trials so far."""
        return ledger(self._run, self._told, self._visits)

    def run(self) -> str:
        """Make all trials, or as many as the budget holds; returns why not all of them, empty when
        all were made.

        Raises UsageError when the trials of the folder are not those of this tuning; what the
        baseline fails with; StoreError.
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
                    self._store.event(BUDGET, why)
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
        ready = self._ready
        if ready.tuning.strategy == "search":
            return OptunaSearch(ready.space, self.judge, self._learn, self._note).turns()
        return rounds(
            [Tried(one.arm) for one in ready.arms], ready.tuning, ready.baseline.arm, self.judge
        )

    def _learn(self, one: Candidate) -> None:
        self._candidates[one.arm.name] = one
        if one.arm.name not in self._planned:
            arms = tuple(known for known in self._candidates.values() if not known.arm.is_baseline)
            self._book.replan(self._ready.plan(arms, attest=self._attest))
            self._planned.add(one.arm.name)

    def _note(self, text: str) -> None:
        if not self._before:  # of what is led through again it was noted
            self._display.say(text)
            self._store.event(LEFT_OUT, text)

    # ---- trials that were made before

    def _recorded(self, turn: TrialTurn) -> Trial | None:
        """The trial that a turn came to before; None where it is still to be made."""
        while self._before:
            trial = self._before.popleft()
            self._told.append(trial)
            if (trial.arm, trial.round) == (turn.arm, turn.round):
                return trial
            # One of the baseline that no strategy asked for: a deployment began with it, or a
            # budget ended with it.
            if not trial.arm.is_baseline or trial.round != turn.round:
                raise self._other(trial, turn)
        return None

    def _other(self, trial: Trial, turn: TrialTurn | None) -> UsageError:
        now = "none" if turn is None else f"{turn.arm.name} in round {turn.round + 1}"
        was = f"trial {trial.number + 1} was of {trial.arm.name} in round {trial.round + 1}"
        message = f"{self._store.folder}: {was}, and now it would be {now}"
        made_by = self._store.manifest.weighbridge_version or "of an unknown version"
        return UsageError(
            message,
            advice=f"Its trials are not those of this tuning, or weighbridge {made_by} chose "
            "otherwise.",
        )

    # ---- trials that are made now

    def _made(self, turn: TrialTurn) -> Trial:
        one = self._candidates[turn.arm.name]
        if not turn.arm.is_baseline and not self._anchored(turn):
            self._try(self._ready.baseline, turn.round)
        return self._try(one, turn.round)

    def _anchored(self, turn: TrialTurn) -> bool:
        """Whether the baseline was tried in this round on what stands; an arm that wants a cluster
        of its own has none.
        """
        if self._bench.scope_to(turn.arm) == "cluster":
            return (
                scope_between(self._ready.baseline.arm, turn.arm, self._ready.scopes) == "cluster"
            )
        return any(
            trial.arm.is_baseline
            and not trial.failed
            and (trial.round, trial.deployment) == (turn.round, self._bench.number)
            for trial in self._told
        )

    def _try(self, one: Candidate, number: int) -> Trial:
        """One trial, from changing what stands to its line on the disk."""
        repeat = sum(trial.arm.name == one.arm.name for trial in self._told)
        what = (
            ", ".join(f"{key}={value}" for key, value in one.arm.settings.items()) or "the baseline"
        )
        self._store.event(
            "trial", f"trial {len(self._told) + 1}: round {number + 1}: {what}", layout=one.arm.name
        )
        at, began = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
        brought, error, stood = self._brought(one)
        if not self._told:
            self._rehearse()
        changed_s = time.monotonic() - began
        started = time.monotonic()
        if error is not None:
            self._bench.not_measured(one.arm, repeat, error)
        else:
            try:
                started = self._bench.measure(one, repeat)
            except (DriverError, TargetError) as failed:
                error = failed
        if self._began is None:
            self._began = started
        trial = Trial(
            number=len(self._told),
            arm=one.arm,
            repeat=repeat,
            round=number,
            scope=brought.scope,
            changed=brought.done,
            changed_s=changed_s,
            started_s=started - self._began,
            deployment=self._bench.number,
            at=at,
            stood=stood,
            failed="" if error is None else error.message,
        )
        self._book.add(trial)
        self._told.append(trial)
        if error is None:
            self._course.made(brought.scope, time.monotonic() - began)
        elif one.arm.is_baseline:
            raise error
        else:
            self._bench.mend()
        return trial

    def _rehearse(self) -> None:
        """Before the first trial: what running daemons would refuse, of all arms at once.

        Raises UsageError.
        """
        refused = self._bench.refused(self._ready.arms or self._ready.singles)
        if refused:
            advice = (
                "Give these parameters a wider scope, or leave it out: the gateway knows "
                "what is enough."
            )
            raise UsageError("\n".join(refused), advice=advice)

    def _brought(self, one: Candidate) -> tuple[Brought, WeighbridgeError | None, bool]:
        """Have an arm stand: what was done, why it could not be, and whether the gateway came up.

        One that does not come up from where another arm stood is tried from the baseline once more,
        and the baseline on a new deployment: it may be what the arm before has left.
        """
        try:
            return self._bench.bring(one), None, True
        except (TargetError, DriverError, UsageError) as error:
            self._store.event("failed", str(error), layout=one.arm.name)
            self._display.say(error.message)
        if one.arm.is_baseline:
            self._bench.take_down()
        else:
            self._bench.mend()
        scope = self._bench.scope_to(one.arm)
        try:
            return self._bench.bring(one), None, True
        except (TargetError, DriverError, UsageError) as error:
            if one.arm.is_baseline:
                raise
            self._store.event("failed", str(error), layout=one.arm.name)
            return Brought(scope), error, False

    # ---- the budget

    def _too_late(self, turn: TrialTurn) -> str:
        """Why the budget does not hold a further turn with the trial of the baseline that closes
        its round; empty where it does.
        """
        room_s = self._course.room_s()
        needed_s = self._needed_s(turn)
        if room_s is None or needed_s <= room_s:
            return ""
        kept_s = self._course.confirm_s()
        kept = f", with {show_duration(kept_s)} kept for the confirmation" if kept_s else ""
        return (
            f"the budget ends the trials after {len(self._told)}, in round {turn.round + 1}: "
            "going on takes about "
            f"{show_duration(needed_s)}, and {show_duration(max(0.0, room_s))} is left{kept}"
        )

    def _needed_s(self, turn: TrialTurn) -> float:
        """Seconds that a turn takes with what must follow it; 0 of the baseline's within a round,
        which is never left out.
        """
        there_s, back_s = (
            self._course.trial_s(self._bench.scope_to(arm))
            for arm in (turn.arm, self._ready.baseline.arm)
        )
        if not turn.arm.is_baseline:
            return there_s + back_s
        opens = not self._told or self._told[-1].round != turn.round
        # A round is begun for one arm at least.
        return there_s + 2 * self._course.trial_s("restart") if opens else 0.0

    def _close(self, number: int) -> None:
        """End a round with the baseline, so that what was tried last has it on both sides."""
        if self._told and not self._told[-1].arm.is_baseline and self._told[-1].round == number:
            self._try(self._ready.baseline, number)
