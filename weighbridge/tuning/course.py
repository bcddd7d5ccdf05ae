"""The course of a tuning: how many trials it has at most, how long each takes, and the time left.

The time of a trial beyond its warm-ups and windows is guessed first and then known, for each scope
of what must be restarted before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weighbridge.common.structure import Scope
from weighbridge.conductor.plan import Visit
from weighbridge.conductor.time_estimate import (
    DRIVER_S,
    REPORTING_S,
    TimeAllowance,
    TimeEstimate,
    units,
)
from weighbridge.tuning.preparation import PreparedTuning
from weighbridge.tuning.space import scope_between
from weighbridge.tuning.turns import turns_of_round

CHANGING_S: Final[dict[Scope, float]] = {"nothing": 1.0, "reload": 3.0, "restart": 6.0}
"""Changing a running deployment, by scope: guesses for the lab."""
_FAKE_S: Final = 0.5
"""The same for pretended hosts."""


@dataclass
class _ScopeTime:
    took_s: float = 0.0
    guess_s: float = 0.0


class Course:
    """Estimates the time of trials, and of all that is left, from those made so far."""

    def __init__(
        self,
        prepared: PreparedTuning,
        *,
        attest: bool,
        allowance: TimeAllowance | None = None,
        made: int = 0,
    ) -> None:
        self._prepared = prepared
        self._allowance = allowance
        self._made = made
        self._times: dict[Scope, _ScopeTime] = {}
        one = prepared.plan((), attest=attest)
        # One visit shows the time for a trial, for preparing, and for starting and stopping.
        visited = one.model_copy(update={"visits": _visits(prepared, 1)})
        self._steps_of_trial = visited.steps
        self._planned_s = visited.seconds
        guess: dict[str, float] = {}
        for unit in units(visited):
            guess[unit.kind] = guess.get(unit.kind, 0.0) + unit.guess_s
        self._beside_s = guess.get("step", 0.0)
        self._preparing_s = guess.get("prepare", 0.0) + guess.get("clean", 0.0)
        self._starting_s = guess.get("start", 0.0) + guess.get("stop", 0.0)
        self.confirm_s = 0.0
        if prepared.tuning.confirm:
            visits = _visits(prepared, 2 * prepared.tuning.confirm)
            confirming = prepared.tuning.confirming(prepared.suite)
            repeats = one.model_copy(update={"visits": visits, "suite": confirming})
            # Its plan has the baseline alone, whose power is cut as often as the winner's.
            cuts_s = sum(
                unit.planned_s + unit.guess_s for unit in units(repeats) if unit.kind == "cut power"
            )
            self.confirm_s = TimeEstimate.of(repeats).left_s() + cuts_s + REPORTING_S

    @property
    def steps(self) -> int:
        """How many steps are measured at most."""
        return self.most * self._steps_of_trial

    @property
    def most(self) -> int:
        """How many trials there are at most, including the baseline's."""
        tuning = self._prepared.tuning
        if tuning.strategy == "search":
            search = tuning.search
            finals = tuning.trials.most * turns_of_round(
                search.finalists, tuning.trials.baseline_every
            )
            return search.proposals * (1 + 2 * search.trials) + finals
        return tuning.trials.most * turns_of_round(
            len(self._prepared.candidates), tuning.trials.baseline_every
        )

    @property
    def least(self) -> int:
        """How many trials there are if each setting is clear, or given up, at once."""
        tuning = self._prepared.tuning
        if tuning.strategy == "search":
            return tuning.search.proposals * 5
        return tuning.trials.least * turns_of_round(
            len(self._prepared.candidates), tuning.trials.baseline_every
        )

    def least_s(self) -> float:
        """A guess of the time for all of it, in seconds, with `least` trials."""
        prepared = self._prepared
        changes_s = [
            self._guess_s(scope_between(prepared.baseline.variant, one.variant, prepared.scopes))
            for one in prepared.candidates or prepared.singles
        ]
        change_s = sum(changes_s) / len(changes_s) if changes_s else 0.0
        trials_s = self.least * (self._planned_s + self._beside_s + change_s)
        return self._starting_s + self._preparing_s + trials_s + self.confirm_s

    def trial_s(self, scope: Scope) -> float:
        """Seconds that a trial with this scope probably takes."""
        beside_s = self._beside_s + self._guess_s(scope)
        return self._planned_s + beside_s * self._factor(scope)

    def made(self, scope: Scope, took_s: float) -> None:
        """A trial has ended."""
        self._made += 1
        time = self._times.setdefault(scope, _ScopeTime())
        time.took_s += max(0.0, took_s - self._planned_s)
        time.guess_s += self._beside_s + self._guess_s(scope)

    def room_s(self) -> float | None:
        """Seconds left for trials, without those reserved for the confirmation; None: no limit."""
        return None if self._allowance is None else self._allowance.left_s() - self.confirm_s

    def left_s(self) -> float:
        """Seconds that are probably left at most."""
        most_s = max(0, self.most - self._made) * self.trial_s("restart") + self.confirm_s
        if self._allowance is None:
            return most_s
        return max(0.0, min(most_s, self._allowance.left_s()))

    def _factor(self, scope: Scope) -> float:
        """How much longer than guessed trials with this scope took; if there are none, all."""
        times = list(self._times.values())
        if scope in self._times and self._times[scope].guess_s:
            times = [self._times[scope]]
        guess_s = sum(one.guess_s for one in times)
        return sum(one.took_s for one in times) / guess_s if guess_s else 1.0

    def _guess_s(self, scope: Scope) -> float:
        if not self._prepared.hardware.of.measurable:
            return _FAKE_S
        if scope == "cluster":
            return self._starting_s + self._preparing_s + DRIVER_S
        if scope == "buckets":
            return CHANGING_S["restart"] + self._preparing_s
        return CHANGING_S[scope]


def _visits(prepared: PreparedTuning, many: int) -> tuple[Visit, ...]:
    return tuple(
        Visit(layout=prepared.baseline.variant.name, repeat=number) for number in range(many)
    )
