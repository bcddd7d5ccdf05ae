"""Turns: what is tried next, in which round. A strategy is a generator of turns that is sent the
trial of each.

It decides only by these trials and the table so far, so that a resumed run can be replayed from
what was measured before to where it was.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from weighbridge.results.analysis.tuning.setting_table import SettingTable
from weighbridge.results.record.trial import LayoutVariant, Trial
from weighbridge.suites.tuning import Tuning

Judge = Callable[[], SettingTable]
"""The table of settings from all trials so far."""


@dataclass(frozen=True)
class TrialTurn:
    """A setting to try in a round, counted from 0."""

    variant: LayoutVariant
    round: int


Turns = Generator[TrialTurn, Trial, None]

_FAILURES = 2
"""Trials with a failed step after which a setting is given up: one may be chance."""


@dataclass
class TrialCount:
    """How often a setting was tried, and in how many of these trials a step failed."""

    variant: LayoutVariant
    trials: int = 0
    failures: int = 0
    started: bool = True

    def add(self, trial: Trial) -> None:
        self.trials += 1
        self.failures += bool(trial.failed)
        self.started = self.started and trial.stood

    @property
    def hopeless(self) -> bool:
        """Whether the gateway does not run with it, or its steps fail."""
        return not self.started or self.failures >= _FAILURES


def rounds(
    tried: Sequence[TrialCount],
    tuning: Tuning,
    baseline: LayoutVariant,
    judge: Judge,
    first: int = 0,
) -> Turns:
    """Rounds over settings until each is clear, hopeless, or was tried `most` times.

    `first` is the number of the first round. In each, the baseline is tried first and last, with at
    most `baseline_every` settings between two of its trials. The order of settings is drawn again
    in each round (randomized interleaved trials, Abedi and Brecht 2017).
    """
    trials = tuning.trials
    waiting = [one for one in tried if not one.hopeless and one.trials < trials.most]
    number = first
    while waiting:
        order = list(waiting)
        random.Random(f"{tuning.seed} {number}").shuffle(order)  # noqa: S311 - a seeded order, not a secret
        yield TrialTurn(baseline, number)
        for part in parts(order, trials.baseline_every):
            for one in part:
                one.add((yield TrialTurn(one.variant, number)))
            yield TrialTurn(baseline, number)
        number += 1
        waiting = [one for one in waiting if not one.hopeless and one.trials < trials.most]
        if any(one.trials >= trials.least for one in waiting):
            table = judge()
            waiting = [
                one
                for one in waiting
                if one.trials < trials.least or not settled(table, one.variant)
            ]


def settled(table: SettingTable, variant: LayoutVariant) -> bool:
    """Whether its interval is clear of the threshold, or it may not be chosen anyway."""
    entry = table.entry(variant)
    return entry is not None and (entry.clear or entry.verdict in ("not allowed", "failed"))


def parts(order: Sequence[TrialCount], most: int) -> list[Sequence[TrialCount]]:
    """The order in as few parts of at most this size as possible, as even as possible."""
    count = -(-len(order) // most)
    ends = [len(order) * number // count for number in range(count + 1)]
    return [order[begin:end] for begin, end in pairwise(ends)]


def turns_of_round(settings: int, every: int) -> int:
    """How many trials a round over so many settings has, including the baseline's."""
    return settings + -(-settings // every) + 1 if settings else 0
