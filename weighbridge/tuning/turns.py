"""Turns: which arm is tried next, in which round. A strategy is a generator of turns that is sent
the trial each of them came to.

It decides by these trials and the ledger so far alone, so that a run that is gone on with can be
led through what was measured before and comes to where it was.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from weighbridge.results.analysis.tuning.ledger import Ledger
from weighbridge.results.record.trial import Arm, Trial
from weighbridge.suites.tuning import Tuning

Judge = Callable[[], Ledger]
"""The ledger of all trials so far."""


@dataclass(frozen=True)
class TrialTurn:
    """An arm is to be tried in a round, counted from 0."""

    arm: Arm
    round: int


Turns = Generator[TrialTurn, Trial, None]

_FAILURES = 2
"""Trials in which a step failed after which an arm is given up: one may have been chance."""


@dataclass
class Tried:
    """What has become of an arm: how often it was tried, and in how many of these trials a step
    failed.
    """

    arm: Arm
    trials: int = 0
    failures: int = 0
    stood: bool = True

    def add(self, trial: Trial) -> None:
        """One more trial."""
        self.trials += 1
        self.failures += bool(trial.failed)
        self.stood = self.stood and trial.stood

    @property
    def hopeless(self) -> bool:
        """Whether the gateway does not run with it, or its steps fail."""
        return not self.stood or self.failures >= _FAILURES


def rounds(
    open_arms: Sequence[Tried], tuning: Tuning, baseline: Arm, judge: Judge, first: int = 0
) -> Turns:
    """Rounds over arms until each is clear, hopeless, or was tried `most` times; `first` is the
    number of the first round.

    In each the baseline is tried first, then at the most `baseline_every` arms between two trials
    of it, and it is tried last. The order of the arms is drawn anew in each round (randomized
    interleaved trials, Abedi and Brecht 2017).
    """
    trials = tuning.trials
    waiting = [one for one in open_arms if not one.hopeless and one.trials < trials.most]
    number = first
    while waiting:
        order = list(waiting)
        random.Random(f"{tuning.seed} {number}").shuffle(order)  # noqa: S311 - a seeded order is wanted, not a secret
        yield TrialTurn(baseline, number)
        for part in parts(order, trials.baseline_every):
            for one in part:
                one.add((yield TrialTurn(one.arm, number)))
            yield TrialTurn(baseline, number)
        number += 1
        waiting = [one for one in waiting if not one.hopeless and one.trials < trials.most]
        if any(one.trials >= trials.least for one in waiting):
            ledger = judge()
            waiting = [
                one for one in waiting if one.trials < trials.least or not settled(ledger, one.arm)
            ]


def settled(ledger: Ledger, arm: Arm) -> bool:
    """Whether no more is learnt of an arm: it is clear of the threshold, or it may not be chosen
    anyway.
    """
    entry = ledger.entry(arm)
    return entry is not None and (entry.clear or entry.verdict in ("not allowed", "failed"))


def parts(order: Sequence[Tried], most: int) -> list[Sequence[Tried]]:
    """The order in as few parts as hold at most so many each, as even as can be."""
    count = -(-len(order) // most)
    ends = [len(order) * number // count for number in range(count + 1)]
    return [order[begin:end] for begin, end in pairwise(ends)]


def turns_of_round(arms: int, every: int) -> int:
    """How many trials a round over so many arms has, the baseline's among them."""
    return arms + -(-arms // every) + 1 if arms else 0
