"""What each setting of a tuning does to each objective, with tests and verdicts.

An effect is the mean logarithm of a setting's trials relative to the baseline next to each. It is
judged after each round from `Trials.least` trials on, so its p-value is multiplied by the number of
possible looks, and its interval is that much wider (Bonferroni's inequality); then all effects are
corrected together. If a difference is not significant, an interval completely within the practical
threshold shows that it does not matter: two one-sided tests at half the level (D. J. Schuirmann,
Journal of Pharmacokinetics and Biopharmaceutics 15, 1987).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from weighbridge.results.analysis.comparison import Effect, Verdict
from weighbridge.results.analysis.tuning.readings import Reading
from weighbridge.results.analysis.tuning.setting_words import about, effect_words, variant_words
from weighbridge.results.metrics import METRICS, Metric
from weighbridge.results.rank_tests import signed_rank_p
from weighbridge.results.record import LayoutVariant, Trial, TuningRun
from weighbridge.results.statistics import (
    LEVEL,
    REPEATS_FOR_A_CLAIM,
    Ratio,
    TTest,
    corrected,
    one_sample,
)
from weighbridge.suites import Bounds


@dataclass(frozen=True)
class Pairs:
    """One variant's trials, each with the baseline next to it, for one objective."""

    variant: LayoutVariant
    objective: int
    found: tuple[Reading, ...]
    """Those that have both figures."""
    lacking: tuple[str, ...]
    """Why others do not."""
    failed: tuple[str, ...]
    """Why trials could not be made."""
    looks: int

    @property
    def logs(self) -> list[float]:
        """Logarithms of their ratios."""
        return [log for one in self.found if (log := one.log_ratio) is not None]

    @property
    def tested(self) -> TTest | None:
        """Their test; None for fewer than 2."""
        return one_sample(self.logs) if len(self.found) >= 2 else None

    @property
    def p(self) -> float | None:
        """The p-value, corrected for the number of looks."""
        tested = self.tested
        return None if tested is None else min(1.0, tested.p * self.looks)

    @property
    def ratio(self) -> Ratio | None:
        """The ratio, with the interval that holds at every look."""
        tested = self.tested
        if tested is not None:
            return tested.ratio_at(1 - LEVEL / self.looks)
        return Ratio(value=math.exp(self.logs[0]), repeats=1) if self.found else None


def pairs(run: TuningRun, trials: Sequence[Trial], found: Sequence[Reading]) -> tuple[Pairs, ...]:
    """A variant's pairs for each objective; `trials` are its own, at least one; `found` all
    readings.
    """
    numbers = {trial.number for trial in trials}
    made = []
    for objective in range(len(run.objectives)):
        own = [one for one in found if one.objective == objective and one.trial in numbers]
        made.append(
            Pairs(
                variant=trials[0].arm,
                objective=objective,
                found=tuple(one for one in own if one.log_ratio is not None),
                lacking=tuple(one.why for one in own if one.log_ratio is None),
                failed=tuple(trial.failed for trial in trials if trial.failed),
                looks=run.tuning.trials.looks,
            )
        )
    return tuple(made)


def effects(run: TuningRun, found: Sequence[Pairs]) -> tuple[Effect, ...]:
    """The effects, in order, corrected together.

    One with too few trials for a claim counts as a test, but helps no other.
    """
    tested = [number for number, one in enumerate(found) if one.p is not None]
    q_of: dict[int, float] = dict(
        zip(tested, corrected([_entered(found[number]) for number in tested]), strict=True)
    )
    shown = sum(q <= LEVEL for q in q_of.values())
    return tuple(
        _effect(run, one, q_of.get(number), shown, len(tested)) for number, one in enumerate(found)
    )


def is_clear(effect: Effect, bounds: Bounds) -> bool:
    """Whether more trials would add nothing: the interval is beyond the threshold, or within."""
    ratio = effect.ratio
    if (
        ratio is None
        or ratio.low is None
        or ratio.high is None
        or ratio.repeats < REPEATS_FOR_A_CLAIM
    ):
        return False
    bound = _bound(effect.metric, bounds)
    beyond = ratio.low > bound or ratio.high < 1 / bound
    return _within(ratio, bound) or (beyond and effect.verdict in ("better", "worse"))


def _entered(one: Pairs) -> float:
    return one.p if one.p is not None and len(one.found) >= REPEATS_FOR_A_CLAIM else 1.0


def _bound(metric: str, bounds: Bounds) -> float:
    return METRICS[metric].bound_of(bounds)


def _within(ratio: Ratio, bound: float) -> bool:
    return (
        ratio.low is not None
        and ratio.high is not None
        and 1 / bound <= ratio.low
        and ratio.high <= bound
    )


def _effect(run: TuningRun, one: Pairs, q: float | None, shown: int, tests: int) -> Effect:
    objective = run.objectives[one.objective]
    bound = _bound(objective.of, run.tuning.threshold)
    ratio, tested, logs = one.ratio, one.tested, one.logs
    enough = len(logs) >= REPEATS_FOR_A_CLAIM
    verdict = _verdict(ratio, q, bound, METRICS[objective.of])
    smallest = None
    if tested is not None:
        # What it takes to be significant beside the others: Benjamini and Hochberg's next level.
        rank = shown if q is not None and q <= LEVEL else min(shown + 1, tests)
        smallest = tested.smallest_seen(LEVEL * rank / tests / one.looks)
    q = q if enough else None
    if objective.operation is None:
        raise ValueError(f"objective {objective.words}: not resolved")
    made = Effect(
        workload=objective.workload,
        operation=objective.operation,
        api=run.suite.api[0],
        about=about(run, objective),
        workers=objective.workers,
        metric=objective.of,
        baseline=run.baseline,
        subject=one.variant.name,
        baseline_value=_median([pair.reference for pair in one.found]),
        subject_value=_median([pair.value for pair in one.found]),
        ratio=ratio,
        p=one.p,
        q=q,
        rank_p=signed_rank_p(logs) if len(logs) >= 2 else None,
        delta=sum((log > 0) - (log < 0) for log in logs) / len(logs) if logs else None,
        smallest=smallest,
        verdict=verdict,
        reasons=_most(one.lacking or one.failed),
        bound=bound,
        tests=tests,
    )
    return made.model_copy(
        update={"text": effect_words(variant_words(run, one.variant), objective, made)}
    )


def _verdict(ratio: Ratio | None, q: float | None, bound: float, metric: Metric) -> Verdict:
    if ratio is None:
        return "not comparable"
    if ratio.repeats < REPEATS_FOR_A_CLAIM:
        return "provisional"
    if _within(ratio, bound):
        return "too small to matter"
    if q is None or q > LEVEL:
        return "not significant"
    if ratio.either_way < bound:
        return "too small to matter"
    return "better" if metric.better_at(ratio.value) else "worse"


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _most(reasons: Sequence[str]) -> str:
    """The most frequent reason."""
    return Counter(reasons).most_common(1)[0][0] if reasons else ""


def gains(run: TuningRun, found: Mapping[int, Sequence[Reading]]) -> list[float]:
    """Logarithms of how many times better than the baseline each trial was, over all objectives."""
    signs = [1 if METRICS[one.of].better == "more" else -1 for one in run.objectives]
    by_trial: dict[int, list[float]] = {}
    for number, each in found.items():
        for one in each:
            if (log := one.log_ratio) is not None:
                by_trial.setdefault(one.trial, []).append(signs[number] * log)
    return [sum(logs) / len(logs) for logs in by_trial.values() if len(logs) == len(signs)]
