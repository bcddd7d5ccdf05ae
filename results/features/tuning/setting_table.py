"""The table of trials of a tuning: what each setting does to each objective, and how sure that is.

An effect is the mean logarithm of a setting's trials relative to the baseline next to each. It is
judged after each round from `Trials.least` trials on, so its p-value is multiplied by the number of
possible looks, and its interval is that much wider (Bonferroni's inequality); then all effects are
corrected together. If a difference is not significant, an interval completely within the practical
threshold shows that it does not matter: two one-sided tests at half the level (D. J. Schuirmann,
Journal of Pharmacokinetics and Biopharmaceutics 15, 1987).

A test bed drifts: caches fill, disks age, a host's neighbours come and go. So a trial is not
compared with the mean of all baseline trials, but with those next to it in its own round: the one
before and the one after, interpolated in time on logarithms. A drift that is linear within a round
is removed completely, any other for the most part.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Final

from weighbridge.common.quantities import show_bytes
from weighbridge.results.figures.foreign_load import load_of, slope_of
from weighbridge.results.figures.metrics import METRICS, MetricKey
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
from weighbridge.results.figures.summary import JudgedStep, Point
from weighbridge.results.judge.comparison import Effect, Verdict, requests_of
from weighbridge.results.numbers import counted, grouped, show_figure, show_p, show_percent
from weighbridge.results.run import EntryVerdict, LayoutVariant, StepKey, Trial, TuningRun
from weighbridge.suites import Bounds
from weighbridge.suites.tuning import Objective, Setting, show_setting

JudgedSteps = Mapping[StepKey, JudgedStep]

NO_BASELINE: Final = "the baseline has no trial that counts beside it"
_DIGITS: Final = 12
"""Digits beyond these are rounding errors of a logarithm: equal figures have a ratio of 1."""
_NUMBER: Final = re.compile(r"\d+(\.\d+)?")
MANY: Final = 1000.0
"""No larger factor is said exactly."""


@dataclass(frozen=True)
class Reading:
    """The figure of one objective (by its number) in one trial: op/s, or ms of p90; `why` there is
    none, or no figure of the baseline at that moment, which is `reference`.
    """

    trial: int
    objective: int
    value: float | None
    why: str = ""
    reference: float | None = None
    """As on a quiet machine."""
    cost: float = 0.0
    """What other programs cost it, as a logarithm, and the standard error of that."""
    error: float = 0.0

    @property
    def log_ratio(self) -> float | None:
        """Logarithm of the figure relative to the baseline's; None if either is missing."""
        if self.value is None or self.reference is None:
            return None
        return round(math.log(self.value / self.reference) - self.cost, _DIGITS)


@dataclass(frozen=True)
class SettingEntry:
    """One variant: settings, trials and results; `effects` are in the objectives' order."""

    variant: LayoutVariant
    name: str
    """The settings in words: `radosgw.threads 512 → 64`."""
    trials: int
    """Those that count."""
    effects: tuple[Effect, ...]
    verdict: EntryVerdict
    clear: bool
    """Whether each interval is beyond its threshold, or within it: more trials add nothing."""
    gain: float | None
    """The geometric mean over the objectives: 1.1 is 10 % better. None: unknown."""
    gain_high: float | None = None
    """The upper end of its 95 % interval as of one look, to prune proposals; None for one trial."""
    gateway_cpu: Ratio | None = None
    storage_cpu: Ratio | None = None
    """CPU s per 1000 operations over the baseline's, over the objectives; None: not recorded."""
    notes: tuple[str, ...] = ()
    """Why it is not allowed or failed, and other remarks."""


@dataclass(frozen=True)
class SettingTable:
    """The table of trials: variants, better ones first, then by gain; and the baseline's drift."""

    baseline: LayoutVariant
    entries: tuple[SettingEntry, ...]
    readings: tuple[Reading, ...]
    drift: tuple[Drift, ...]
    trials: int
    """All that were made, including the baseline's and failed ones."""
    looks: int
    """How often a setting was judged at most; intervals are corrected for it."""

    @property
    def without_effect(self) -> tuple[SettingEntry, ...]:
        """Settings with enough trials, and no effect found or one that is too small to matter."""
        none = ("not significant", "too small to matter")
        return tuple(entry for entry in self.entries if entry.verdict in none)

    def entry(self, variant: LayoutVariant) -> SettingEntry | None:
        """The entry of a variant; None if it has no trial."""
        return next((one for one in self.entries if one.variant.name == variant.name), None)


def setting_table(run: TuningRun, trials: Sequence[Trial], visits: JudgedSteps) -> SettingTable:
    """The table of the trials so far; unknown gains come last, by first trial."""
    readings = tuple(
        reading
        for number in range(len(run.objectives))
        for reading in _readings(number, run, trials, visits)
    )
    tried = [trial for trial in trials if not trial.arm.is_baseline]
    by_variant = grouped(tried, lambda trial: trial.arm.name)
    pairs = {name: _pairs(run, own, readings) for name, own in by_variant.items()}
    effects = iter(_effects(run, [one for each in pairs.values() for one in each]))
    gateway, storage = (
        _cpu_logs(run, trials, visits, metric) for metric in ("gateway-cpu", "storage-cpu")
    )
    entries = [
        replace(
            _entry(run, own, pairs[name], tuple(next(effects) for _ in pairs[name]), visits),
            gateway_cpu=_mean_ratio([gateway[one.number] for one in own if one.number in gateway]),
            storage_cpu=_mean_ratio([storage[one.number] for one in own if one.number in storage]),
        )
        for name, own in by_variant.items()
    ]
    # Allowed choices first, then the largest gain: one's loss may hide in another's gain.
    # Gains are above 0.
    entries.sort(key=lambda entry: (entry.verdict == "better", entry.gain or 0.0), reverse=True)
    baselines = [trial.arm for trial in trials if trial.arm.is_baseline]
    return SettingTable(
        baseline=next(iter(baselines), LayoutVariant(name=run.baseline)),
        entries=tuple(entries),
        readings=readings,
        drift=tuple(_drifts(run, trials, readings)),
        trials=len(trials),
        looks=run.tuning.trials.looks,
    )


# Figures of trials, and of the baseline beside them.


def _step_of(run: TuningRun, trial: Trial, workload: str, workers: int) -> StepKey:
    return StepKey(
        layout=trial.arm.name,
        api=run.suite.api[0],
        workload=workload,
        workers=workers,
        repeat=trial.repeat,
    )


def _steps(run: TuningRun, objectives: Iterable[Objective]) -> list[tuple[str, int]]:
    """Workload and worker count of each step of these objectives."""
    workloads = {workload.name: workload for workload in run.suite.workloads}
    steps: dict[tuple[str, int], None] = {}
    for one in objectives:
        counts = one.counts(workloads[one.workload])
        steps |= dict.fromkeys((one.workload, count) for count in counts)
    return list(steps)


def _references(trials: Sequence[Trial], figures: Mapping[int, float]) -> dict[int, float]:
    """The baseline's figure at each trial of another variant, by trial number, if one is next to
    it.

    `figures` are positive, by trial number. The nearest before and after, of the same round and
    deployment, are interpolated by the times at which trials began; a single one is used as it is.
    A setting that needs its own cluster has no baseline on it: the nearest of its round are used,
    whatever their deployment.
    """
    baselines = [trial for trial in trials if trial.arm.is_baseline and trial.number in figures]
    references: dict[int, float] = {}
    for trial in trials:
        if trial.arm.is_baseline:
            continue
        of_round = [one for one in baselines if one.round == trial.round]
        beside = [one for one in of_round if one.deployment == trial.deployment]
        if not beside and trial.scope == "cluster":
            beside = of_round
        beside = sorted(beside, key=lambda one: one.number)
        before = [one for one in beside if one.number < trial.number]
        after = [one for one in beside if one.number > trial.number]
        nearest = [*before[-1:], *after[:1]]
        if nearest:
            references[trial.number] = _between(trial, nearest, figures)
    return references


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


def _readings(
    number: int, run: TuningRun, trials: Sequence[Trial], visits: JudgedSteps
) -> Iterator[Reading]:
    """By trial; failed ones have none."""
    objective = run.objectives[number]
    counts = [workers for _, workers in _steps(run, [objective])]
    figures, trials_by = {}, {trial.number: trial for trial in trials}
    for trial in trials:
        if not trial.failed:
            keys = {one: _step_of(run, trial, objective.workload, one) for one in counts}
            figures[trial.number] = _figure(
                objective, {workers: visits.get(key) for workers, key in keys.items()}
            )
    known = {trial: value for trial, (value, _) in figures.items() if value is not None}
    loads = {trial: _load(objective, run, trials_by[trial], counts, visits) for trial in known}
    slope, error = _slope(trials, known, loads)
    quiet = {trial: value / math.exp(slope * loads[trial]) for trial, value in known.items()}
    references = _references(trials, quiet)
    baselines = {trial.number for trial in trials if trial.arm.is_baseline}
    for trial_number, (value, why) in figures.items():
        reference = references.get(trial_number)
        lone = value is not None and reference is None and trial_number not in baselines
        load = loads.get(trial_number, 0.0)
        yield Reading(
            trial_number,
            number,
            value,
            NO_BASELINE if lone else why,
            reference,
            cost=slope * load,
            error=error * load,
        )


def _load(
    objective: Objective, run: TuningRun, trial: Trial, counts: Sequence[int], visits: JudgedSteps
) -> float:
    """What other programs used during a trial's windows of an objective, on average."""
    steps = (visits.get(_step_of(run, trial, objective.workload, one)) for one in counts)
    loads = [load_of(point) for step in steps if step for point in step.points.values()]
    return fmean(loads) if loads else 0.0


def _slope(
    trials: Sequence[Trial], figures: Mapping[int, float], loads: Mapping[int, float]
) -> tuple[float, float]:
    """What a share of the machine's CPUs costs, over the trials of each variant."""
    windows: dict[str, list[tuple[float, float]]] = {}
    for trial in trials:
        if trial.number in figures:
            window = (loads[trial.number], math.log(figures[trial.number]))
            windows.setdefault(trial.arm.name, []).append(window)
    return slope_of(windows.values()) or (0.0, 0.0)


def _figure(
    objective: Objective, visits: Mapping[int, JudgedStep | None]
) -> tuple[float | None, str]:
    """The figure of one trial from its steps by worker count, and why there is none."""
    if objective.p90_within is not None:
        return _within_p90(objective, objective.p90_within * 1000, visits)
    (workers, visit), *_ = visits.items()
    point, why = _point(objective, workers, visit)
    if point is None or why:
        return None, why
    value, name = point.value(objective.of), METRICS.get_or_refuse(objective.of).name
    at = _at(objective.workload, workers)
    return (value, "") if value else (None, f"{at}: too few samples for a {name}")


def _within_p90(
    objective: Objective, bound_ms: float, visits: Mapping[int, JudgedStep | None]
) -> tuple[float | None, str]:
    """The largest throughput with p90 in a bound; unknown if an unranked step might be it."""
    within: list[float] = []
    for workers, visit in visits.items():
        point, why = _point(objective, workers, visit)
        p90_ms = None if point is None else point.value("p90")
        beyond = p90_ms is not None and p90_ms > bound_ms
        if why and not beyond:
            return None, why
        if point is not None and p90_ms is not None and not beyond:
            within.append(point.ops_s)
    if within:
        return max(within), ""
    at = f"{bound_ms:g} ms at none of its worker counts"
    return None, f"{objective.workload}: p90 is known to be within {at}"


def _point(
    objective: Objective, workers: int, visit: JudgedStep | None
) -> tuple[Point | None, str]:
    """An operation's point, and why nothing may be concluded from it."""
    at = _at(objective.workload, workers)
    if visit is None:
        return None, f"{at}: not measured"
    point = None if objective.operation is None else visit.points.get(objective.operation)
    if not visit.ranked:
        note = next(iter(visit.notes), "not steady" if visit.valid else "not valid")
        return point, f"{at}: {note.splitlines()[0]}"
    if point is None:
        return None, f"{at}: no {objective.operation}"
    return point, "" if point.ops_s > 0 else f"{at}: nothing succeeded"


def _at(workload: str, workers: int) -> str:
    return f"{workload} at {counted(workers, 'worker')}"


# A setting's effect on one objective.


@dataclass(frozen=True)
class _Pairs:
    """One variant's trials, each with the baseline next to it, for one objective."""

    variant: LayoutVariant
    objective: int
    readings: tuple[Reading, ...]
    """Those that have both figures."""
    lacking: tuple[str, ...]
    """Why others do not."""
    failed: tuple[str, ...]

    @property
    def logs(self) -> list[float]:
        """Logarithms of their ratios."""
        return [log for one in self.readings if (log := one.log_ratio) is not None]

    @property
    def test(self) -> TTest | None:
        """None for fewer than 2."""
        if len(self.logs) < 2:
            return None
        return one_sample(self.logs).widened(fmean(one.error for one in self.readings))

    def p(self, looks: int) -> float | None:
        """The p-value, corrected for the number of looks; None for fewer than 2."""
        return None if self.test is None else min(1.0, self.test.p * looks)

    @property
    def claims(self) -> bool:
        return len(self.readings) >= REPEATS_FOR_A_CLAIM


def _pairs(run: TuningRun, trials: Sequence[Trial], readings: Sequence[Reading]) -> list[_Pairs]:
    """A variant's pairs for each objective; `trials` are its own."""
    numbers = {trial.number for trial in trials}
    failed = tuple(trial.failed for trial in trials if trial.failed)
    pairs = []
    for objective in range(len(run.objectives)):
        own = [one for one in readings if one.objective == objective and one.trial in numbers]
        known = tuple(one for one in own if one.log_ratio is not None)
        lacking = tuple(one.why for one in own if one.log_ratio is None)
        pairs.append(_Pairs(trials[0].arm, objective, known, lacking, failed))
    return pairs


def _effects(run: TuningRun, pairs: Sequence[_Pairs]) -> list[Effect]:
    """The effects, corrected together; one with too few trials for a claim counts as a test."""
    looks = run.tuning.trials.looks
    ps = {number: p for number, one in enumerate(pairs) if (p := one.p(looks)) is not None}
    entered = [p if pairs[number].claims else 1.0 for number, p in ps.items()]
    qs = dict(zip(ps, corrected(entered), strict=True))
    significant = sum(q <= LEVEL for q in qs.values())
    return [
        _effect(run, one, qs.get(number), significant, len(ps)) for number, one in enumerate(pairs)
    ]


def _effect(run: TuningRun, pairs: _Pairs, q: float | None, significant: int, tests: int) -> Effect:
    objective, logs, looks = run.objectives[pairs.objective], pairs.logs, run.tuning.trials.looks
    if objective.operation is None:
        raise ValueError(f"objective {objective.words}: not resolved")
    ratio = Ratio(value=math.exp(logs[0]), repeats=1) if logs else None
    smallest, test = None, pairs.test
    if test is not None:
        ratio = test.ratio_at(1 - LEVEL / looks)
        # What it takes to be significant beside the others: Benjamini and Hochberg's next level.
        rank = significant if q is not None and q <= LEVEL else min(significant + 1, tests)
        smallest = test.smallest(LEVEL * rank / tests / looks)
    lacking = Counter(pairs.lacking or pairs.failed).most_common(1)
    effect = Effect(
        workload=objective.workload,
        operation=objective.operation,
        api=run.suite.api[0],
        about=_about(run, objective),
        workers=objective.workers,
        metric=objective.of,
        baseline=run.baseline,
        subject=pairs.variant.name,
        baseline_value=_median([one.reference for one in pairs.readings]),
        subject_value=_median([one.value for one in pairs.readings]),
        ratio=ratio,
        p=pairs.p(looks),
        q=q if pairs.claims else None,
        rank_p=signed_rank_p(logs) if len(logs) >= 2 else None,
        delta=sum((log > 0) - (log < 0) for log in logs) / len(logs) if logs else None,
        smallest=smallest,
        verdict=_verdict(ratio, q, objective, run.tuning.threshold),
        reasons=lacking[0][0] if lacking else "",
        bound=METRICS[objective.of].bound_of(run.tuning.threshold),
        tests=tests,
    )
    name = _variant_words(run, pairs.variant)
    text = f"{name}: {effect_words(objective_words(run, objective), effect)}"
    return effect.model_copy(update={"text": text})


def _verdict(
    ratio: Ratio | None, q: float | None, objective: Objective, threshold: Bounds
) -> Verdict:
    metric = METRICS[objective.of]
    if ratio is None:
        return "not comparable"
    if ratio.repeats < REPEATS_FOR_A_CLAIM:
        return "provisional"
    bound = metric.bound_of(threshold)
    if _within(ratio, bound):
        return "too small to matter"
    if q is None or q > LEVEL:
        return "not significant"
    if ratio.either_way < bound:
        return "too small to matter"
    return "better" if metric.better_at(ratio.value) else "worse"


def _within(ratio: Ratio, bound: float) -> bool:
    low, high = ratio.low, ratio.high
    return low is not None and high is not None and 1 / bound <= low and high <= bound


def _is_clear(effect: Effect, bounds: Bounds) -> bool:
    """Whether more trials would add nothing: the interval is beyond the threshold, or within."""
    ratio, bound = effect.ratio, METRICS[effect.metric].bound_of(bounds)
    if ratio is None or ratio.low is None or ratio.high is None:
        return False
    if ratio.repeats < REPEATS_FOR_A_CLAIM:
        return False
    beyond = ratio.low > bound or ratio.high < 1 / bound
    return _within(ratio, bound) or (beyond and effect.verdict in ("better", "worse"))


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


# A setting over all objectives.


def _entry(
    run: TuningRun,
    trials: Sequence[Trial],
    pairs: Sequence[_Pairs],
    effects: tuple[Effect, ...],
    visits: JudgedSteps,
) -> SettingEntry:
    made = [trial for trial in trials if not trial.failed]
    gains = _gains(run, pairs)
    interval = _mean_ratio(gains)
    broken = _breaches(run, trials, visits)
    notes = [*broken]
    failures = Counter(trial.failed for trial in trials if trial.failed)
    if failures:
        notes.append(
            f"{failures.total()} of {len(trials)} trials could not be made: "
            f"{failures.most_common(1)[0][0]}"
        )
    for one in pairs:
        # Reasons that differ in a number alone count together.
        notes += [
            f"{len(group)} of {len(made)} trials have no figure: {group[0]}"
            for group in grouped(one.lacking, lambda why: _NUMBER.sub("0", why)).values()
        ]
    verdict = _over_all([effect.verdict for effect in effects], made=bool(made), allowed=not broken)
    unknown = [effect for effect in effects if effect.verdict in ("not comparable", "provisional")]
    if verdict == "not comparable" and len(unknown) < len(effects):
        notes.append("an objective cannot be judged, so the others claim nothing")
    return SettingEntry(
        variant=trials[0].arm,
        name=_variant_words(run, trials[0].arm),
        trials=len(made),
        effects=effects,
        verdict=verdict,
        clear=all(_is_clear(effect, run.tuning.threshold) for effect in effects),
        gain=None if interval is None else interval.value,
        gain_high=None if interval is None else interval.high,
        notes=tuple(dict.fromkeys(notes)),
    )


def _gains(run: TuningRun, pairs: Sequence[_Pairs]) -> list[float]:
    """Logarithms of how many times better than the baseline each trial was, over all objectives."""
    by_trial: dict[int, list[float]] = {}
    for one in pairs:
        sign = 1 if METRICS[run.objectives[one.objective].of].better == "more" else -1
        for reading, log in zip(one.readings, one.logs, strict=True):
            by_trial.setdefault(reading.trial, []).append(sign * log)
    return [sum(logs) / len(logs) for logs in by_trial.values() if len(logs) == len(run.objectives)]


def _mean_ratio(logs: Sequence[float]) -> Ratio | None:
    """Their geometric mean with the interval of one look; None if there is none."""
    if len(logs) < 2:
        return Ratio(value=math.exp(logs[0]), repeats=1) if logs else None
    return one_sample(logs).ratio


def _over_all(verdicts: Sequence[Verdict], *, made: bool, allowed: bool) -> EntryVerdict:
    """An objective without a result is no reason to call a setting better."""
    if not made:
        return "failed"
    if not allowed:
        return "not allowed"
    if "worse" in verdicts:
        return "trade-off" if "better" in verdicts else "worse"
    order: tuple[Verdict, ...] = ("not comparable", "provisional", "better", "not significant")
    return next((verdict for verdict in order if verdict in verdicts), "too small to matter")


def _breaches(run: TuningRun, trials: Sequence[Trial], visits: JudgedSteps) -> list[str]:
    """The constraints that a variant's trials break, in words, step by step; else empty. Invalid
    steps count too.

    For failures it is the share of all operations of a step over all trials; for p90 the median
    over the trials, for stalls the longest. Where something dies, failures are bounded only if the
    tuning says so.
    """
    texts: list[str] = []
    constraints = run.tuning.constraints
    p90_s, stall_s = constraints.p90, constraints.stall
    broken = {one.name for one in run.suite.workloads if one.fault is not None}
    for workload, workers in _steps(run, run.objectives):
        keys = dict.fromkeys(_step_of(run, trial, workload, workers) for trial in trials)
        by_operation: dict[str, list[Point]] = {}
        for each in [visits[key].points for key in keys if key in visits]:
            for name, point in each.items():
                by_operation.setdefault(name, []).append(point)
        points = [point for of_name in by_operation.values() for point in of_name]
        at = _at(workload, workers)
        failed = sum(point.count("errors") or 0 for point in points)
        done = sum(point.count("samples") or 0 for point in points)
        share, bound = failed / (failed + done or 1), constraints.error_share
        if bound is None:
            bound = math.inf if workload in broken else run.suite.bounds.error_share
        if failed and share > bound:
            texts.append(f"{at}: {share:.2%} of operations failed, beyond the bound of {bound:.2%}")
        longest_s = max((point.value("stall") or 0.0 for point in points), default=0.0)
        if stall_s is not None and longest_s > stall_s:
            beyond = f"{longest_s:.3g} s, beyond the bound of {stall_s:g} s"
            texts.append(f"longest stall of {at}: {beyond}")
        for operation, own in by_operation.items():
            p90_ms = _median([point.value("p90") for point in own])
            if p90_s is not None and p90_ms is not None and p90_ms > p90_s * 1000:
                beyond = f"(median of its trials), beyond the bound of {p90_s * 1000:g} ms"
                texts.append(f"p90 of {operation} of {at}: {p90_ms:.3g} ms {beyond}")
    return texts


def _cpu_logs(
    run: TuningRun, trials: Sequence[Trial], visits: JudgedSteps, metric: MetricKey
) -> dict[int, float]:
    """The logarithm of each trial's CPU per operation over the baseline's, by number, if known."""
    steps = _steps(run, run.objectives)
    logs: dict[int, list[float]] = {}
    for workload, workers in steps:
        figures: dict[int, float] = {}
        for trial in trials:
            visit = visits.get(_step_of(run, trial, workload, workers))
            if visit is not None and visit.ranked and not trial.failed:
                # It is equal for all operations of a step that have it.
                cpu = [point.value(metric) for point in visit.points.values()]
                if any(cpu):
                    figures[trial.number] = next(filter(None, cpu))
        for number, reference in _references(trials, figures).items():
            if number in figures:
                logs.setdefault(number, []).append(math.log(figures[number] / reference))
    complete = {number: each for number, each in logs.items() if len(each) == len(steps)}
    return {number: math.fsum(each) / len(each) for number, each in complete.items()}


# Names of settings and objectives, and the sentence of an effect.


def _variant_words(run: TuningRun, variant: LayoutVariant) -> str:
    """`radosgw.threads 512 → 64`; several joined by commas, with dependent ones in brackets."""
    if not variant.settings:
        return "baseline"
    own: list[str] = []
    dependent: list[str] = []
    for key, value in variant.settings.items():
        before = run.layout_settings.get(key)
        known = f" {_shown(run, key, before)}" if key in run.layout_settings else ""
        text = f"{key}{known} → {_shown(run, key, value)}"
        (dependent if run.tuning.parameter(key) is None else own).append(text)
    if not own or not dependent:
        return ", ".join(own or dependent)
    return f"{', '.join(own)} (with {', '.join(dependent)})"


def _shown(run: TuningRun, key: str, value: Setting | None) -> str:
    """As in a configuration file; sizes have units if their range has: 4096 may be a count."""
    if value is None or isinstance(value, (bool, str)):
        return show_setting(value)
    parameter = run.tuning.parameter(key)
    of_range = None if parameter is None or parameter.range is None else parameter.range.low
    if isinstance(of_range, str):
        return show_bytes(value).replace(" ", "")
    return f"{value:g}" if isinstance(value, float) else str(value)


def _about(run: TuningRun, objective: Objective) -> str:
    """Name of an objective's requests: `64 kB reads`; with the workload if two would be equal."""
    called = {(one.workload, one.operation): _requests(run, one) for one in run.objectives}
    name = called[objective.workload, objective.operation]
    return f"{name} of {objective.workload}" if list(called.values()).count(name) > 1 else name


def _requests(run: TuningRun, objective: Objective) -> str:
    workload = next(one for one in run.suite.workloads if one.name == objective.workload)
    if objective.operation is None:
        return f"operations of {workload.name}"
    words = requests_of(objective.operation, workload.request_bytes(objective.operation))
    return f"{words} at {workload.rate_per_s:g} op/s" if workload.rate_per_s is not None else words


def objective_words(run: TuningRun, objective: Objective) -> str:
    """`throughput of 64 kB reads at 16 workers`."""
    where = "at its worker counts"
    if objective.p90_within is not None:
        where = f"with p90 within {objective.p90_within * 1000:g} ms"
    elif objective.workers is not None:
        where = f"at {counted(objective.workers, 'worker')}"
    return f"{METRICS[objective.of].name} of {_about(run, objective)} {where}"


def effect_words(called: str, effect: Effect) -> str:
    """`throughput of 64 kB reads at 16 workers +12 % (+8 % to +16 %), n = 6`."""
    if effect.ratio is None:
        return f"{called} cannot be compared{f' ({effect.reasons})' if effect.reasons else ''}"
    repeats = f"n = {effect.ratio.repeats}"
    interval = interval_words(effect)
    if effect.verdict == "not significant":
        why = f" (could have found {could_be_shown(effect)})" if effect.smallest else ""
        if effect.p is not None and effect.q is not None and effect.p <= LEVEL < effect.q:
            why = f" after correction for {effect.tests} tests"
        ends = f": {interval}" if interval else ""
        return f"no effect on the {called} found{why}{ends}, {repeats}"
    text = f"{called} {capped_percent(effect.ratio.value)}{f' ({interval})' if interval else ''}"
    if effect.verdict == "too small to matter":
        text += f", within the {(effect.bound - 1) * 100:.3g} % that matter"
    if effect.verdict == "provisional":
        repeats += f": provisional with fewer than {REPEATS_FOR_A_CLAIM} trials"
    return f"{text}, {repeats}"


def capped_percent(ratio: float, *, signed: bool = True) -> str:
    """A ratio as a change; intervals of few trials may have any end."""
    return f"over {show_figure(MANY)}×" if ratio > MANY else show_percent(ratio, signed=signed)


def interval_words(effect: Effect) -> str:
    """`+15 % to +29 %`; empty without an interval."""
    ratio = effect.ratio
    if ratio is None or ratio.low is None or ratio.high is None:
        return ""
    return f"{capped_percent(ratio.low)} to {capped_percent(ratio.high)}"


def could_be_shown(effect: Effect) -> str:
    """The smallest effect that this many trials could have found: `6 %`; empty if unknown."""
    return "" if effect.smallest is None else capped_percent(effect.smallest, signed=False)


# The baseline's drift over the run.

HOUR_S: Final = 3600.0
SPAN_S: Final = 360.0
"""Trials over a shorter time say nothing about an hour."""
_FARTHEST: Final = 300.0


@dataclass(frozen=True)
class Drift:
    """The baseline's drift over the run, for one objective."""

    called: str
    trials: int = 0
    per_hour: float | None = None
    """The factor per hour, by the line through its trials' logarithms; None if unknown."""
    span_s: float = 0.0
    """The longest time in one deployment from the start of its first trial to that of its last."""
    p: float | None = None
    """The probability of such a line by chance, if trials scatter independently."""
    range: float = 1.0
    """Its highest trial over its lowest."""

    @property
    def words(self) -> str:
        """All of it in one sentence, and what trials were compared with."""
        trials = counted(self.trials, "trial")
        if not self.trials:
            return f"{self.called}: the baseline has no trial that counts"
        if self.trials == 1:
            return f"{self.called}: the baseline has {trials}, too few to show a drift"
        far = (
            f"{show_percent(self.range, signed=False)} from its lowest to its highest of {trials}; "
            "every trial is compared with the baseline trials next to it"
        )
        if self.per_hour is None or self.p is None:
            few = "the baseline has too few trials, or over too short a time, to show a drift"
            return f"{self.called}: {few}; {far}"
        p = show_p(self.p)
        if self.p > LEVEL:
            return f"{self.called}: no significant drift of the baseline (p = {p}); {far}"
        way = "rose" if self.per_hour > 1 else "fell"
        # Of a shorter time, in each deployment, no more is said than what was seen.
        hours = min(1.0, self.span_s / HOUR_S)
        by = show_percent(self.per_hour**hours, signed=False).lstrip("\N{MINUS SIGN}")
        time = "an hour" if hours == 1 else f"in {60 * hours:.0f} minutes"
        p = p if p.startswith("<") else f"= {p}"
        return f"{self.called}: the baseline {way} by {by} {time} (p {p}), {far}"


def _drifts(
    run: TuningRun, trials: Sequence[Trial], readings: Sequence[Reading]
) -> Iterator[Drift]:
    """The baseline's drift for each objective of a run.

    The least-squares line has one slope and, for each deployment, its own height; its p is
    Student's.
    """
    baselines = {trial.number: trial for trial in trials if trial.arm.is_baseline}
    for number, objective in enumerate(run.objectives):
        called = objective_words(run, objective)
        by_deployment: dict[int, list[tuple[float, float]]] = {}
        for one in readings:
            if one.objective == number and one.trial in baselines and one.value:
                trial = baselines[one.trial]
                at = (trial.started_s, math.log(one.value))
                by_deployment.setdefault(trial.deployment, []).append(at)
        if not by_deployment:
            yield Drift(called)
            continue
        heights = [log for each in by_deployment.values() for _, log in each]
        slope, p = _line(list(by_deployment.values()))
        hourly = None if slope is None else max(-_FARTHEST, min(slope * HOUR_S, _FARTHEST))
        yield Drift(
            called,
            trials=len(heights),
            per_hour=None if hourly is None else math.exp(hourly),
            span_s=max(max(each)[0] - min(each)[0] for each in by_deployment.values()),
            p=p,
            range=math.exp(min(max(heights) - min(heights), _FARTHEST)),
        )


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
