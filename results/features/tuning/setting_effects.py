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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat

from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.results.figures.metrics import METRICS, Metric
from weighbridge.results.figures.statistics import (
    LEVEL,
    REPEATS_FOR_A_CLAIM,
    Ratio,
    TTest,
    corrected,
    one_sample,
    signed_rank_p,
    student_tail,
)
from weighbridge.results.figures.visit import JudgedStep, Point
from weighbridge.results.judge.comparison import Effect, Verdict, requests_of
from weighbridge.results.numbers import TIMES, counted, show_p, show_percent, show_ratio
from weighbridge.results.run import LayoutVariant, StepKey, Trial, TuningRun
from weighbridge.suites import Bounds
from weighbridge.suites.tuning import Objective, Setting, show_setting

# Each trial's figure for each objective, and the baseline's figure at that moment.
#
# A test bed drifts: caches fill, disks age, a host's neighbours come and go. So a trial is not
# compared with the mean of all baseline trials, but with those next to it in its own round: the
# one before and the one after, interpolated in time on logarithms. A drift that is linear within
# a round is removed completely, any other for the most part.


NO_BASELINE: Final = "the baseline has no trial that counts beside it"
_DIGITS: Final = 12
"""Digits beyond these are rounding errors of a logarithm: equal figures have a ratio of 1."""


class Reading(Record):
    """The figure of one objective in one trial: op/s, or ms of p90."""

    trial: NonNegativeInt
    objective: NonNegativeInt
    """Its index in the run's objectives."""
    value: PositiveFloat | None
    """None: there is none, and `why` says so."""
    why: str = ""
    """Why there is no value, or no reference."""
    reference: PositiveFloat | None = None
    """The baseline's figure at that moment; None for the baseline itself, and if there is none."""

    @property
    def log_ratio(self) -> float | None:
        """Logarithm of the figure relative to the baseline's; None if either is missing."""
        if self.value is None or self.reference is None:
            return None
        return round(math.log(self.value / self.reference), _DIGITS)


def readings(
    run: TuningRun, trials: Sequence[Trial], visits: Mapping[StepKey, JudgedStep]
) -> tuple[Reading, ...]:
    """All readings, by objective and then by trial; failed trials have none."""
    return tuple(
        one for number in range(len(run.objectives)) for one in _of(number, run, trials, visits)
    )


def step_of(run: TuningRun, trial: Trial, workload: str, workers: int) -> StepKey:
    """The key of a trial's step."""
    return StepKey(
        layout=trial.arm.name,
        api=run.suite.api[0],
        workload=workload,
        workers=workers,
        repeat=trial.repeat,
    )


def steps(
    run: TuningRun, objectives: Iterable[Objective] | None = None
) -> tuple[tuple[str, int], ...]:
    """Workload and worker count of each step of these objectives (None: all of the run's)."""
    wanted = run.objectives if objectives is None else objectives
    by_name = {workload.name: workload for workload in run.suite.workloads}
    return tuple(
        dict.fromkeys(
            (one.workload, count) for one in wanted for count in one.counts(by_name[one.workload])
        )
    )


def references(trials: Sequence[Trial], figures: Mapping[int, float]) -> dict[int, float]:
    """The baseline's figure at each trial of another variant, by trial number, if one is next to
    it.

    `figures` are positive, by trial number. The nearest before and after, of the same round and
    deployment, are interpolated by the times at which trials began; a single one is used as it is.
    A setting that needs its own cluster has no baseline on it: the nearest of its round are used,
    whatever their deployment.
    """
    own: dict[tuple[int, int], list[Trial]] = {}
    for trial in trials:
        if trial.arm.is_baseline and trial.number in figures:
            own.setdefault((trial.deployment, trial.round), []).append(trial)
    found: dict[int, float] = {}
    for trial in trials:
        if trial.arm.is_baseline:
            continue
        beside = own.get((trial.deployment, trial.round), [])
        if not beside and trial.scope == "cluster":
            beside = [
                one for (_, number), some in own.items() if number == trial.round for one in some
            ]
        beside = sorted(beside, key=lambda one: one.number)
        before = [one for one in beside if one.number < trial.number]
        after = [one for one in beside if one.number > trial.number]
        known = [*before[-1:], *after[:1]]
        if known:
            found[trial.number] = _between(trial, known, figures)
    return found


def _between(trial: Trial, beside: Sequence[Trial], figures: Mapping[int, float]) -> float:
    if len(beside) == 1:
        return figures[beside[0].number]
    before, after = beside
    span_s = after.started_s - before.started_s
    # By count if the clock does not tell.
    share = (trial.started_s - before.started_s) / span_s if span_s > 0 else -1.0
    if not 0 <= share <= 1:
        share = (trial.number - before.number) / (after.number - before.number)
    return math.exp(
        (1 - share) * math.log(figures[before.number]) + share * math.log(figures[after.number])
    )


def _of(
    number: int, run: TuningRun, trials: Sequence[Trial], visits: Mapping[StepKey, JudgedStep]
) -> list[Reading]:
    objective = run.objectives[number]
    counts = [workers for _, workers in steps(run, [objective])]
    read = {
        trial.number: _figure(
            objective,
            {count: visits.get(step_of(run, trial, objective.workload, count)) for count in counts},
        )
        for trial in trials
        if not trial.failed
    }
    beside = references(
        trials, {trial: value for trial, (value, _) in read.items() if value is not None}
    )
    made = []
    for trial in trials:
        if trial.failed:
            continue
        value, why = read[trial.number]
        reference = beside.get(trial.number)
        if value is not None and reference is None and not trial.arm.is_baseline:
            why = NO_BASELINE
        made.append(
            Reading(trial=trial.number, objective=number, value=value, why=why, reference=reference)
        )
    return made


def _figure(
    objective: Objective, visits: Mapping[int, JudgedStep | None]
) -> tuple[float | None, str]:
    """The figure of one trial from its steps by worker count, and why there is none."""
    if objective.p90_within is not None:
        return _within_repeats(objective, objective.p90_within * 1000, visits)
    (workers, visit), *_ = visits.items()
    point, why = _point(objective, workers, visit)
    if point is None or why:
        return None, why
    value, name = point.value(objective.of), METRICS.get_or_refuse(objective.of).name
    return (
        (value, "") if value else (None, f"{_at(objective, workers)}: too few samples for a {name}")
    )


def _within_repeats(
    objective: Objective, bound_ms: float, visits: Mapping[int, JudgedStep | None]
) -> tuple[float | None, str]:
    """The largest throughput with p90 in a bound; unknown if an unranked step might be it."""
    found: list[float] = []
    for workers, visit in visits.items():
        point, why = _point(objective, workers, visit)
        p90_ms = None if point is None else point.value("p90")
        beyond = p90_ms is not None and p90_ms > bound_ms
        if why and not beyond:
            return None, why
        if point is not None and p90_ms is not None and not beyond:
            found.append(point.ops_s)
    if found:
        return max(found), ""
    at = f"{bound_ms:g} ms at none of its worker counts"
    return None, f"{objective.workload}: p90 is known to be within {at}"


def _point(
    objective: Objective, workers: int, visit: JudgedStep | None
) -> tuple[Point | None, str]:
    """An operation's point, and why nothing may be concluded from it."""
    at = _at(objective, workers)
    if visit is None:
        return None, f"{at}: not measured"
    point = None if objective.operation is None else visit.points.get(objective.operation)
    if not visit.ranked:
        note = next(iter(visit.notes), "not steady" if visit.valid else "not valid")
        return point, f"{at}: {note.splitlines()[0]}"
    if point is None:
        return None, f"{at}: no {objective.operation}"
    return point, "" if point.ops_s > 0 else f"{at}: nothing succeeded"


def _at(objective: Objective, workers: int) -> str:
    return f"{objective.workload} at {counted(workers, 'worker')}"


_MORE: Final = ("more", "fewer", "as many")
_LESS: Final = ("longer", "shorter", "as long")
"""Words for changes of metrics of which more is better, and less."""
_MANY: Final = 1000.0


def variant_words(run: TuningRun, variant: LayoutVariant) -> str:
    """`radosgw.threads 512 → 64`; several joined by commas, with dependent ones in brackets."""
    if not variant.settings:
        return "baseline"
    own = {
        key: value
        for key, value in variant.settings.items()
        if run.tuning.parameter(key) is not None
    }
    beside = {key: value for key, value in variant.settings.items() if key not in own}
    if not own:
        own, beside = beside, {}
    text = ", ".join(_set(run, key, value) for key, value in own.items())
    return (
        f"{text} (with {', '.join(_set(run, key, value) for key, value in beside.items())})"
        if beside
        else text
    )


def about(run: TuningRun, objective: Objective) -> str:
    """Name of an objective's requests: `64 kB reads`; with the workload if two would be equal."""
    called = {(one.workload, one.operation): _requests(run, one) for one in run.objectives}
    name = called[objective.workload, objective.operation]
    return f"{name} of {objective.workload}" if list(called.values()).count(name) > 1 else name


def objective_words(run: TuningRun, objective: Objective) -> str:
    """`throughput of 64 kB reads at 16 workers`."""
    return f"{METRICS[objective.of].name} of {about(run, objective)} {_where(objective)}"


def effect_words(name: str, objective: Objective, one: Effect) -> str:
    """`radosgw.threads 512 → 64: 12 % more 64 kB reads at 16 workers (8 % to 16 % more), n = 6`."""
    where, metric = _where(objective), METRICS[objective.of]
    of = "" if metric.better == "more" else f"{metric.name} of "
    if one.ratio is None:
        return (
            f"{name}: {of}{one.about} {where} cannot be "
            f"compared{f' ({one.reasons})' if one.reasons else ''}"
        )
    ends = _ends(metric, one.ratio)
    repeats = f"n = {one.ratio.repeats}"
    if one.verdict == "not significant":
        kind = f"the {of}{one.about}" if of else one.about
        found = f"{_why(one)}{f': {ends}' if ends else ''}"
        return f"{name}: no effect on {kind} {where} found{found}, {repeats}"
    change = _change(metric, one.ratio.value)
    text = f"{of}{one.about} {where} {change}" if of else f"{change} {one.about} {where}"
    text = f"{name}: {text}{f' ({ends})' if ends else ''}"
    if one.verdict == "too small to matter":
        text += f", within the {(one.bound - 1) * 100:.3g} % that matter"
    if one.verdict == "provisional":
        repeats += f": provisional with fewer than {REPEATS_FOR_A_CLAIM} trials"
    return f"{text}, {repeats}"


def _set(run: TuningRun, key: str, value: Setting) -> str:
    before = f" {_shown(run, key, run.layout_settings[key])}" if key in run.layout_settings else ""
    return f"{key}{before} → {_shown(run, key, value)}"


def _shown(run: TuningRun, key: str, value: Setting | None) -> str:
    """As in a configuration file; sizes have units if their range has: 4096 may be a count."""
    if value is None or isinstance(value, (bool, str)):
        return show_setting(value)
    parameter = run.tuning.parameter(key)
    of_sizes = (
        parameter is not None
        and parameter.range is not None
        and isinstance(parameter.range.low, str)
    )
    if of_sizes:
        return show_bytes(value).replace(" ", "")
    return f"{value:g}" if isinstance(value, float) else str(value)


def _requests(run: TuningRun, objective: Objective) -> str:
    workload = next(one for one in run.suite.workloads if one.name == objective.workload)
    if objective.operation is None:
        return f"operations of {workload.name}"
    words = requests_of(objective.operation, workload.request_bytes(objective.operation))
    return f"{words} at {workload.rate_per_s:g} op/s" if workload.rate_per_s is not None else words


def _where(objective: Objective) -> str:
    if objective.p90_within is not None:
        return f"with p90 within {objective.p90_within * 1000:g} ms"
    return (
        f"at {counted(objective.workers, 'worker')}"
        if objective.workers is not None
        else "at its worker counts"
    )


def _why(one: Effect) -> str:
    if one.p is not None and one.p <= LEVEL and one.q is not None and one.q > LEVEL:
        return f" after correction for {one.tests} tests"
    if one.smallest is None:
        return ""
    could = (
        f"{_digits((one.smallest - 1) * 100)} %"
        if one.smallest < TIMES
        else show_ratio(min(one.smallest, _MANY))
    )
    return f" (could have found {could})"


def _change(metric: Metric, ratio: float) -> str:
    more, fewer, alike = _MORE if metric.better == "more" else _LESS
    if ratio >= TIMES:
        times = f"over {_MANY:,.0f}" if ratio > _MANY else show_ratio(ratio).removesuffix("×")
        return f"{times} times {alike}"
    return f"{_digits(abs(ratio - 1) * 100)} % {more if ratio >= 1 else fewer}"


def _ends(metric: Metric, ratio: Ratio) -> str:
    """`8 % to 16 % more`, `3 % fewer to 8 % more`; empty without an interval."""
    if ratio.low is None or ratio.high is None:
        return ""
    ends = [
        _change(metric, end)
        for end in sorted(
            (ratio.low, ratio.high), key=lambda end: abs(end - 1) if ratio.shown else end
        )
    ]
    first, second = (
        end.partition(" times ") if " times " in end else end.partition(" % ") for end in ends
    )
    if first[1:] != second[1:]:
        return " to ".join(ends)
    return (
        f"{first[0]} to {second[0]} times {first[2]}"
        if first[1] == " times "
        else f"{first[0]} % to {second[0]} % {first[2]}"
    )


def _digits(percent: float) -> str:
    return f"{percent:.0f}" if percent >= 0.95 else f"{percent:.1f}".replace("0.0", "0")


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
    """A variant's pairs for each objective; `trials` are its own, `found` all readings."""
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
    """The effects, corrected together; one with too few trials for a claim counts as a test."""
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


HOUR_S: Final = 3600.0
SPAN_S: Final = 360.0
"""Trials over a shorter time say nothing about an hour."""
_FARTHEST: Final = 300.0
_BESIDE: Final = "every trial is compared with the baseline trials next to it"


class Drift(Record):
    """The baseline's drift over the run, for one objective."""

    objective: NonNegativeInt
    trials: NonNegativeInt
    per_hour: float | None = None
    """The factor per hour, by the line through its trials' logarithms; None if unknown."""
    span_s: NonNegativeFloat = 0.0
    """The longest time in one deployment from the start of its first trial to that of its last."""
    p: float | None = None
    """The probability of such a line by chance, if trials scatter independently."""
    spread: NonNegativeFloat | None = None
    """Standard deviation of its logarithms: the relative scatter of equal trials."""
    range: NonNegativeFloat | None = None
    """Its highest trial over its lowest."""
    words: str
    """All of that in one sentence, and that trials were compared with the baseline next to them."""


def drifts(run: TuningRun, trials: Sequence[Trial], found: Sequence[Reading]) -> tuple[Drift, ...]:
    """The baseline's drift for each objective of a run, from all readings of it.

    The least-squares line has one slope and, for each deployment, its own height; its p is
    Student's. The spread is that of neighbours, which a slow drift hardly affects (J. von Neumann
    and others, Annals of Mathematical Statistics 12, 1941).
    """
    own = {trial.number: trial for trial in trials if trial.arm.is_baseline}
    return tuple(
        _drift(
            number,
            objective_words(run, objective),
            own,
            [one for one in found if one.objective == number and one.trial in own],
        )
        for number, objective in enumerate(run.objectives)
    )


def _drift(number: int, what: str, trials: Mapping[int, Trial], found: Sequence[Reading]) -> Drift:
    known = [(trials[one.trial], math.log(one.value)) for one in found if one.value]
    if not known:
        return Drift(
            objective=number, trials=0, words=f"{what}: the baseline has no trial that counts"
        )
    by_deployment: dict[int, list[tuple[float, float]]] = {}
    for trial, log in known:
        by_deployment.setdefault(trial.deployment, []).append((trial.started_s, log))
    steps = [
        after - before
        for each in by_deployment.values()
        for (_, before), (_, after) in pairwise(each)
    ]
    spread = math.sqrt(math.fsum(step**2 for step in steps) / len(steps) / 2) if steps else None
    logs = [log for _, log in known]
    far = math.exp(min(max(logs) - min(logs), _FARTHEST))
    slope, p = _line(list(by_deployment.values()))
    drift = Drift(
        objective=number,
        trials=len(known),
        per_hour=None
        if slope is None
        else math.exp(max(-_FARTHEST, min(slope * HOUR_S, _FARTHEST))),
        span_s=max(max(at)[0] - min(at)[0] for at in by_deployment.values()),
        p=p,
        spread=spread,
        range=far,
        words="",
    )
    return drift.model_copy(update={"words": _words(what, drift)})


def _line(sets: Sequence[Sequence[tuple[float, float]]]) -> tuple[float | None, float | None]:
    """Slope per second and p of a line through sets, each with its own height; None: unknown."""
    freedom = sum(map(len, sets)) - len(sets) - 1
    if freedom < 1 or sum(max(at)[0] - min(at)[0] for at in sets) < SPAN_S:
        return None, None
    centred = []
    for each in sets:
        middle_s, middle = (math.fsum(column) / len(each) for column in zip(*each, strict=True))
        centred += [(at_s - middle_s, log - middle) for at_s, log in each]
    across = math.fsum(at_s**2 for at_s, _ in centred)
    slope = math.fsum(at_s * log for at_s, log in centred) / across
    error = math.sqrt(
        math.fsum((log - slope * at_s) ** 2 for at_s, log in centred) / freedom / across
    )
    if error == 0:
        return slope, float(slope == 0)
    return slope, min(1.0, 2 * student_tail(freedom, abs(slope) / error))


def _words(what: str, drift: Drift) -> str:
    head = f"{what}: "
    trials = f"{drift.trials} trial{'s' * (drift.trials > 1)}"
    if drift.trials == 1 or drift.range is None:
        return f"{head}the baseline has {trials}, too few to show a drift"
    far = (
        f"{show_percent(drift.range, signed=False)} from its lowest to its highest of {trials}; "
        f"{_BESIDE}"
    )
    if drift.per_hour is None or drift.p is None:
        few = "the baseline has too few trials, or over too short a time, to show a drift"
        return f"{head}{few}; {far}"
    if drift.p > LEVEL:
        return f"{head}no significant drift of the baseline (p = {show_p(drift.p)}); {far}"
    way = "rose" if drift.per_hour > 1 else "fell"
    # Of a shorter time, in each deployment, no more is said than what was seen.
    hours = min(1.0, drift.span_s / HOUR_S)
    by = show_percent(drift.per_hour**hours, signed=False).lstrip("\N{MINUS SIGN}")
    time = "an hour" if hours == 1 else f"in {60 * hours:.0f} minutes"
    p = show_p(drift.p)
    return (
        f"{head}the baseline {way} by {by} {time} (p {p if p.startswith('<') else f'= {p}'}), {far}"
    )
