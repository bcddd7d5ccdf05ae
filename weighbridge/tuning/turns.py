"""Turns: what is tried next, in which round. A strategy is a generator of turns that is sent the
trial of each.

It decides only by these trials and the table so far, so that a resumed run can be replayed from
what was measured before to where it was.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from weighbridge.common.document import DocumentError
from weighbridge.results.features.tuning.setting_table import SettingEntry, SettingTable
from weighbridge.results.run.trial import LayoutVariant, Trial
from weighbridge.suites.tuning import Level, Tuning
from weighbridge.tuning.space import Candidate, Choice, Space

if TYPE_CHECKING:
    import optuna

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


Learn = Callable[[Candidate], None]
"""Called with a candidate before it is tried for the first time."""
Note = Callable[[str], None]


class OptunaSearch:
    """The strategy `search`: Optuna proposes combinations, each is tried a few times, and rounds
    over the best follow. `learn` gets each new candidate, `note` why one is not tried.

    A proposal is given up as soon as its interval shows that it is no better than the best so far,
    or than the baseline. The sampler is TPE (Bergstra et al. 2011), seeded and multivariate:
    parameters are modelled together, since the best value of one (threads) may depend on another
    (the front's connections).
    """

    def __init__(self, space: Space, judge: Judge, learn: Learn, note: Note) -> None:
        self._space = space
        self._tuning = space.tuning
        self._judge = judge
        self._learn = learn
        self._note = note
        self._tried: dict[str, TrialCount] = {}
        self._gains: dict[str, float | None] = {space.baseline.variant.name: 1.0}
        """How many times better than the baseline each candidate was; None if it may not be chosen.
        """

    def turns(self) -> Turns:
        """All turns of the search, and then those of its finalists."""
        from optuna.trial import TrialState  # noqa: PLC0415 - only for searches, and slow to import

        study = self._study()
        number = 0
        for count in range(1, self._tuning.search.proposals + 1):
            asked = study.ask()
            try:
                one = self._space.candidate(self._suggested(asked))
            except DocumentError as error:
                faults = "; ".join(dict.fromkeys(fault.message for fault in error.faults))
                self._note(f"proposal {count} is not tried: {faults}")
                study.tell(asked, state=TrialState.FAIL)
                continue
            name = one.variant.name
            if name in self._gains:
                self._note(f"proposal {count} is {name}, which was tried before")
            else:
                self._learn(one)
                self._gains[name] = yield from self._proposal(one.variant, number)
                number += 1
            gain = self._gains[name]
            if gain is None:
                study.tell(asked, state=TrialState.FAIL)
            else:
                study.tell(asked, math.log(gain))
        yield from rounds(
            self._finalists(), self._tuning, self._space.baseline.variant, self._judge, number
        )

    def _proposal(
        self, variant: LayoutVariant, number: int
    ) -> Generator[TrialTurn, Trial, float | None]:
        """Try one in its own round; returns its gain, None if it may not be chosen."""
        baseline = self._space.baseline.variant
        found = self._tried[variant.name] = TrialCount(variant)
        entry: SettingEntry | None = None
        yield TrialTurn(baseline, number)
        for _ in range(self._tuning.search.trials):
            found.add((yield TrialTurn(variant, number)))
            if not found.started:
                return None
            yield TrialTurn(baseline, number)
            table = self._judge()
            entry = table.entry(variant)
            if found.hopeless or (
                entry is not None
                and entry.verdict in ("not allowed", "failed")
                and found.trials > 1
            ):
                return None
            best = max((gain for gain in self._gains.values() if gain is not None), default=0.0)
            if entry is not None and entry.gain_high is not None and entry.gain_high < best:
                break
        if entry is None or entry.verdict in ("not allowed", "failed"):
            return None
        return entry.gain

    def _finalists(self) -> Sequence[TrialCount]:
        better = {
            name: gain
            for name, gain in self._gains.items()
            if gain is not None and gain > 1 and name in self._tried
        }
        best = sorted(better, key=lambda name: better[name], reverse=True)
        chosen = [self._tried[name] for name in best[: self._tuning.search.finalists]]
        if not any(one.trials >= self._tuning.trials.least for one in chosen):
            return chosen
        table = self._judge()
        return [
            one
            for one in chosen
            if one.trials < self._tuning.trials.least or not settled(table, one.variant)
        ]

    def _suggested(self, asked: optuna.Trial) -> list[Choice]:
        """What the sampler proposes for each parameter; for values also what the layout has."""
        found = []
        for number, parameter in enumerate(self._tuning.parameters):
            ways = self._space.choices(number)
            if parameter.range is None:
                index = asked.suggest_categorical(parameter.key, [-1, *range(len(ways))])
                if index >= 0:
                    found.append(ways[index])
                continue
            low, high = parameter.range.ends
            log = parameter.range.scale == "log"
            value: int | float
            if parameter.range.is_integral:
                value = asked.suggest_int(parameter.key, round(low), round(high), log=log)
            else:
                value = asked.suggest_float(parameter.key, low, high, log=log)
            found.append(Choice(number, Level(value=value), ways[0].place))
        return found

    def _study(self) -> optuna.Study:
        import optuna  # noqa: PLC0415 - as above

        said = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        try:
            with warnings.catch_warnings():
                # Modelling parameters together may change with a version; the version is fixed by
                # what is installed.
                warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
                sampler = optuna.samplers.TPESampler(
                    seed=self._tuning.seed % 2**32,
                    n_startup_trials=self._tuning.search.startup,
                    multivariate=True,
                )
            return optuna.create_study(sampler=sampler, direction="maximize")
        finally:
            optuna.logging.set_verbosity(said)
