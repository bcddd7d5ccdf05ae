"""The course of a tuning: how many trials it has at the most, what each takes, and what is left of
its time.

What a trial takes beyond its warm-ups and windows is guessed first and then known, by what must be
started anew before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weighbridge.common.scope import Scope
from weighbridge.conductor.pace import DRIVER_S, REPORTING_S, Pace, TimeAllowance, units
from weighbridge.conductor.plan import Visit
from weighbridge.tuning.preparation import PreparedTuning
from weighbridge.tuning.space import scope_between
from weighbridge.tuning.turns import turns_of_round

CHANGING_S: Final[dict[Scope, float]] = {"nothing": 1.0, "reload": 3.0, "restart": 6.0}
"""Changing what stands, by what is started anew: guesses for the lab."""
_FAKE_S: Final = 0.5
"""The same where hosts are pretended."""


@dataclass
class _Seen:
    took_s: float = 0.0
    guess_s: float = 0.0

    @property
    def factor(self) -> float | None:
        return self.took_s / self.guess_s if self.guess_s else None


class Course:
    """Told of each trial what it took; tells how long the like of it and all that is left takes."""

    def __init__(
        self,
        ready: PreparedTuning,
        *,
        attest: bool,
        allowance: TimeAllowance | None = None,
        made: int = 0,
    ) -> None:
        self._ready = ready
        self._allowance = allowance
        self._made = made
        self._seen: dict[Scope, _Seen] = {}
        one = ready.plan((), attest=attest)
        # The first layout of one repeat tells what a trial, preparing, and standing up and taking
        # down take.
        visited = one.model_copy(update={"visits": _visits(ready, 1)})
        self._steps_of_trial = visited.steps
        self._planned_s = visited.seconds
        guess: dict[str, float] = {}
        for unit in units(visited):
            guess[unit.kind] = guess.get(unit.kind, 0.0) + unit.guess_s
        self._beside_s = guess.get("step", 0.0)
        self._preparing_s = guess.get("prepare", 0.0) + guess.get("clean", 0.0)
        self._standing_s = guess.get("stand", 0.0) + guess.get("down", 0.0)
        self._confirm_s = 0.0
        if ready.tuning.confirm:
            repeats = one.model_copy(update={"visits": _visits(ready, 2 * ready.tuning.confirm)})
            self._confirm_s = Pace.of(repeats).left_s() + REPORTING_S

    @property
    def steps(self) -> int:
        """How many steps are measured at the most."""
        return self.most * self._steps_of_trial

    @property
    def most(self) -> int:
        """How many trials there are at the most, the baseline's among them."""
        tuning = self._ready.tuning
        if tuning.strategy == "search":
            search = tuning.search
            finals = tuning.trials.most * turns_of_round(
                search.finalists, tuning.trials.baseline_every
            )
            return search.proposals * (1 + 2 * search.trials) + finals
        return tuning.trials.most * turns_of_round(
            len(self._ready.arms), tuning.trials.baseline_every
        )

    @property
    def least(self) -> int:
        """How many there are when each setting is clear as soon as it is judged, and each proposal
        given up at once.
        """
        tuning = self._ready.tuning
        if tuning.strategy == "search":
            return tuning.search.proposals * 5
        return tuning.trials.least * turns_of_round(
            len(self._ready.arms), tuning.trials.baseline_every
        )

    def least_s(self) -> float:
        """Seconds that all of it takes, at a guess: standing up, `least` trials, and the
        confirmation.
        """
        trials_s = self.least * (self._planned_s + self._beside_s) + self.changing_s()
        return self._standing_s + self._preparing_s + trials_s + self.confirm_s()

    def changing_s(self) -> float:
        """Seconds of changing in `least` trials: of each arm once a round, and of the baseline
        after each part of it.
        """
        ready = self._ready
        arms = ready.arms or ready.singles
        each = [
            self._guess_s(scope_between(ready.baseline.arm, one.arm, ready.scopes)) for one in arms
        ]
        return self.least * sum(each) / len(each) if each else 0.0

    def confirm_s(self) -> float:
        """Seconds that the confirmation probably takes."""
        return self._confirm_s

    def trial_s(self, scope: Scope) -> float:
        """Seconds that a trial before which so much is started anew probably takes."""
        own = self._seen.get(scope, _Seen()).factor
        return self._planned_s + (self._beside_s + self._guess_s(scope)) * (
            self._factor() if own is None else own
        )

    def made(self, scope: Scope, took_s: float) -> None:
        """A trial has come to its end."""
        self._made += 1
        seen = self._seen.setdefault(scope, _Seen())
        seen.took_s += max(0.0, took_s - self._planned_s)
        seen.guess_s += self._beside_s + self._guess_s(scope)

    def room_s(self) -> float | None:
        """Seconds that are left for trials when time for the confirmation is set aside; None: as
        long as it takes.
        """
        return None if self._allowance is None else self._allowance.left_s() - self.confirm_s()

    def left_s(self) -> float:
        """Seconds that are probably left, at the most."""
        whole_s = max(0, self.most - self._made) * self.trial_s("restart") + self.confirm_s()
        return (
            whole_s if self._allowance is None else max(0.0, min(whole_s, self._allowance.left_s()))
        )

    def _factor(self) -> float:
        took_s = sum(one.took_s for one in self._seen.values())
        guess_s = sum(one.guess_s for one in self._seen.values())
        return took_s / guess_s if guess_s else 1.0

    def _guess_s(self, scope: Scope) -> float:
        if not self._ready.hardware.of.measurable:
            return _FAKE_S
        if scope == "cluster":
            return self._standing_s + self._preparing_s + DRIVER_S
        return (
            CHANGING_S["restart"] + self._preparing_s if scope == "buckets" else CHANGING_S[scope]
        )


def _visits(ready: PreparedTuning, many: int) -> tuple[Visit, ...]:
    return tuple(Visit(layout=ready.baseline.arm.name, repeat=number) for number in range(many))
