"""The table of trials of a tuning: each tried setting, its effects, and whether they are real.

It also has the CPU cost relative to the baseline, and the tuning's constraints on every step that
the setting breaks: share of failures, and bound on p90.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final, Literal

from pydantic import NonNegativeInt

from weighbridge.common.record import Record
from weighbridge.results.features.tuning.setting_effects import (
    Drift,
    Pairs,
    Reading,
    drifts,
    effects,
    gains,
    is_clear,
    pairs,
    readings,
    references,
    step_of,
    steps,
    variant_words,
)
from weighbridge.results.figures.statistics import Ratio, one_sample
from weighbridge.results.figures.visit import JudgedStep, Point
from weighbridge.results.judge.comparison import Effect, Verdict
from weighbridge.results.numbers import counted
from weighbridge.results.run import EntryVerdict, LayoutVariant, StepKey, Trial, TuningRun
from weighbridge.suites.tuning import Objective

_NUMBER: Final = re.compile(r"\d+(\.\d+)?")


class SettingEntry(Record):
    """One variant: settings, trials and results; `effects` are in the objectives' order."""

    variant: LayoutVariant
    name: str
    """The settings in words: `radosgw.threads 512 → 64`."""
    trials: NonNegativeInt
    """Those that count."""
    effects: tuple[Effect, ...]
    verdict: EntryVerdict
    clear: bool
    """Whether each interval is beyond its threshold, or within it: more trials add nothing."""
    gain: float | None
    """The geometric mean over the objectives: 1.1 is 10 % better. None: unknown."""
    gain_low: float | None = None
    gain_high: float | None = None
    """Its running 95 % interval as of one look, to prune proposals; None with fewer than 2 trials.
    """
    gateway_cpu: Ratio | None = None
    storage_cpu: Ratio | None = None
    """CPU s per 1000 operations over the baseline's, over the objectives; None: not recorded."""
    notes: tuple[str, ...] = ()
    """Why it is not allowed or failed, and other remarks."""


class SettingTable(Record):
    """The table of trials: variants, better ones first, then by gain; and the baseline's drift."""

    baseline: LayoutVariant
    objectives: tuple[Objective, ...]
    entries: tuple[SettingEntry, ...]
    readings: tuple[Reading, ...]
    drift: tuple[Drift, ...]
    trials: NonNegativeInt
    """All that were made, including the baseline's and failed ones."""
    looks: NonNegativeInt
    """How often a setting was judged at most; intervals are corrected for it."""

    @property
    def without_effect(self) -> tuple[SettingEntry, ...]:
        """Settings with enough trials, and no effect found or one that is too small to matter."""
        return tuple(
            one for one in self.entries if one.verdict in ("not significant", "too small to matter")
        )

    def entry(self, variant: LayoutVariant) -> SettingEntry | None:
        """The entry of a variant; None if it has no trial."""
        return next((one for one in self.entries if one.variant.name == variant.name), None)


def setting_table(
    run: TuningRun, trials: Sequence[Trial], visits: Mapping[StepKey, JudgedStep]
) -> SettingTable:
    """The table of the trials so far; unknown gains come last, by first trial."""
    found = readings(run, trials, visits)
    by_variant: dict[str, list[Trial]] = {}
    for trial in trials:
        if not trial.arm.is_baseline:
            by_variant.setdefault(trial.arm.name, []).append(trial)
    paired = {name: pairs(run, own, found) for name, own in by_variant.items()}
    judged = iter(effects(run, [one for each in paired.values() for one in each]))
    gateway, storage = costs(run, trials, visits, "gateway"), costs(run, trials, visits, "storage")
    entries = []
    for name, own in by_variant.items():
        entry = _entry(
            run,
            own,
            paired[name],
            tuple(next(judged) for _ in paired[name]),
            breaches(run, own, visits),
        )
        variant = entry.variant
        entries.append(
            entry.model_copy(
                update={
                    "gateway_cpu": cost_ratio(variant, own, gateway),
                    "storage_cpu": cost_ratio(variant, own, storage),
                },
            )
        )
    return SettingTable(
        baseline=next(
            (trial.arm for trial in trials if trial.arm.is_baseline),
            LayoutVariant(name=run.baseline),
        ),
        objectives=run.objectives,
        entries=tuple(sorted(entries, key=_rank, reverse=True)),
        readings=found,
        drift=drifts(run, trials, found),
        trials=len(trials),
        looks=run.tuning.trials.looks,
    )


def _entry(
    run: TuningRun,
    trials: Sequence[Trial],
    paired: Sequence[Pairs],
    own: tuple[Effect, ...],
    broken: tuple[str, ...],
) -> SettingEntry:
    variant = trials[0].arm
    counted = [trial for trial in trials if not trial.failed]
    better = gains(run, {one.objective: one.found for one in paired})
    tested = one_sample(better).ratio if len(better) >= 2 else None
    failures = [trial.failed for trial in trials if trial.failed]
    notes = [*broken]
    if failures:
        notes.append(
            f"{len(failures)} of {len(trials)} trials could not be made: "
            f"{Counter(failures).most_common(1)[0][0]}"
        )
    for one in paired:
        notes += [
            f"{count} of {len(counted)} trials have no figure: {why}"
            for why, count in _grouped(one.lacking).items()
        ]
    unknown = [effect for effect in own if effect.verdict in ("not comparable", "provisional")]
    verdict = _verdict(
        [effect.verdict for effect in own], counted=bool(counted), allowed=not broken
    )
    if verdict == "not comparable" and len(unknown) < len(own):
        notes.append("an objective cannot be judged, so the others claim nothing")
    return SettingEntry(
        variant=variant,
        name=variant_words(run, variant),
        trials=len(counted),
        effects=own,
        verdict=verdict,
        clear=all(is_clear(effect, run.tuning.threshold) for effect in own),
        gain=math.exp(sum(better) / len(better)) if better else None,
        gain_low=tested.low if tested is not None else None,
        gain_high=tested.high if tested is not None else None,
        notes=tuple(dict.fromkeys(notes)),
    )


def _grouped(reasons: Sequence[str]) -> dict[str, int]:
    """How often each reason is given; reasons that differ in a number alone count together."""
    groups: dict[str, list[str]] = {}
    for reason in reasons:
        groups.setdefault(_NUMBER.sub("0", reason), []).append(reason)
    return {group[0]: len(group) for group in groups.values()}


def _verdict(found: Sequence[Verdict], *, counted: bool, allowed: bool) -> EntryVerdict:
    """Over all objectives. An objective without a result is no reason to call a setting better."""
    has = frozenset(found)
    if not counted:
        return "failed"
    if not allowed:
        return "not allowed"
    if "worse" in has:
        return "trade-off" if "better" in has else "worse"
    if "not comparable" in has:
        return "not comparable"
    if "provisional" in has:
        return "provisional"
    if "better" in has:
        return "better"
    return "not significant" if "not significant" in has else "too small to matter"


def _rank(one: SettingEntry) -> tuple[bool, float]:
    """Allowed choices first, then the largest gain: one's loss may hide in another's gain."""
    return one.verdict == "better", -math.inf if one.gain is None else one.gain


def breaches(
    run: TuningRun, trials: Sequence[Trial], visits: Mapping[StepKey, JudgedStep]
) -> tuple[str, ...]:
    """The constraints that a variant's trials break, in words, step by step; else empty. Invalid
    steps count too.

    For failures it is the share of all operations of a step over all trials; for p90 the median
    over the trials, for stalls the longest. Where something dies, failures are bounded only if the
    tuning says so.
    """
    found: list[str] = []
    share = run.tuning.constraints.error_share
    p90_s, stall_s = run.tuning.constraints.p90, run.tuning.constraints.stall
    broken = {one.name for one in run.suite.workloads if one.fault is not None}
    for workload, workers in steps(run):
        keys = dict.fromkeys(step_of(run, trial, workload, workers) for trial in trials)
        points = [visits[key].points for key in keys if key in visits]
        at = f"{workload} at {counted(workers, 'worker')}"
        every = [point for each in points for point in each.values()]
        if share is not None or workload not in broken:
            found += _failures(at, every, run.suite.bounds.error_share if share is None else share)
        if stall_s is not None:
            found += _stalled(at, every, stall_s)
        if p90_s is not None:
            for operation in dict.fromkeys(name for each in points for name in each):
                found += _slow(
                    f"{operation} of {at}",
                    [each[operation] for each in points if operation in each],
                    p90_s * 1000,
                )
    return tuple(found)


def _failures(at: str, points: Sequence[Point], bound: float) -> list[str]:
    failed, done = (sum(point.count(one) or 0 for point in points) for one in ("errors", "samples"))
    if not failed or failed / (failed + done) <= bound:
        return []
    share = failed / (failed + done)
    return [f"{at}: {share:.2%} of operations failed, beyond the bound of {bound:.2%}"]


def _stalled(at: str, points: Sequence[Point], bound_s: float) -> list[str]:
    longest_s = max((point.value("stall") or 0.0 for point in points), default=0.0)
    if longest_s <= bound_s:
        return []
    return [f"longest stall of {at}: {longest_s:.3g} s, beyond the bound of {bound_s:g} s"]


def _slow(what: str, points: Sequence[Point], bound_ms: float) -> list[str]:
    known = [p90_ms for point in points if (p90_ms := point.value("p90")) is not None]
    if not known or median(known) <= bound_ms:
        return []
    found = f"{median(known):.3g} ms (median of its trials)"
    return [f"p90 of {what}: {found}, beyond the bound of {bound_ms:g} ms"]


Tier = Literal["gateway", "storage"]


def costs(
    run: TuningRun, trials: Sequence[Trial], visits: Mapping[StepKey, JudgedStep], tier: Tier
) -> dict[int, float]:
    """The logarithm of each trial's CPU over the baseline's, by number, if known."""
    wanted = steps(run)
    logs: dict[int, list[float]] = {}
    for workload, workers in wanted:
        figures = {
            trial.number: figure
            for trial in trials
            if not trial.failed
            and (figure := _figure(visits.get(step_of(run, trial, workload, workers)), tier))
        }
        for number, reference in references(trials, figures).items():
            if number in figures:
                logs.setdefault(number, []).append(math.log(figures[number] / reference))
    return {
        number: math.fsum(each) / len(each)
        for number, each in logs.items()
        if len(each) == len(wanted)
    }


def cost_ratio(
    variant: LayoutVariant, trials: Sequence[Trial], found: Mapping[int, float]
) -> Ratio | None:
    """A variant's CPU over the baseline's with the interval of one look; None if unknown."""
    logs = [
        found[trial.number]
        for trial in trials
        if trial.arm.name == variant.name and trial.number in found
    ]
    if len(logs) < 2:
        return Ratio(value=math.exp(logs[0]), repeats=1) if logs else None
    return one_sample(logs).ratio


def _figure(visit: JudgedStep | None, tier: Tier) -> float | None:
    if visit is None or not visit.ranked:
        return None
    known = [figure for point in visit.points.values() if (figure := point.value(f"{tier}-cpu"))]
    return known[0] if known else None  # it is equal for all operations of a step that have it
