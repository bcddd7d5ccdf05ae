"""Whether a setting keeps to what a tuning demands of every step, whatever it gains: failures, and a longest p90."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from weighbridge.results.analysis.contrast import workers_words
from weighbridge.results.analysis.steps.visit import JudgedStep, Point
from weighbridge.results.analysis.tuning.readings import step_of, steps
from weighbridge.results.record.step import StepKey
from weighbridge.results.record.trial import Trial, TuningRun


def breaches(run: TuningRun, trials: Sequence[Trial], visits: Mapping[StepKey, JudgedStep]) -> tuple[str, ...]:
    """What an arm breaks by its trials, in words, step by step; empty where it keeps to all. Steps that are not valid count too.

    Of failures the share is that of all operations of a step over all trials; of p90 it is the median over the trials.
    """
    found: list[str] = []
    share = run.tuning.constraints.error_share
    bound = run.suite.bounds.error_share if share is None else share
    p90_s = run.tuning.constraints.p90
    for workload, workers in steps(run):
        keys = dict.fromkeys(step_of(run, trial, workload, workers) for trial in trials)
        points = [visits[key].points for key in keys if key in visits]
        at = f"{workload} at {workers_words(workers)}"
        found += _failures(at, [point for each in points for point in each.values()], bound)
        if p90_s is not None:
            for operation in dict.fromkeys(name for each in points for name in each):
                found += _slow(f"{operation} of {at}", [each[operation] for each in points if operation in each], p90_s * 1000)
    return tuple(found)


def _failures(at: str, points: Sequence[Point], bound: float) -> list[str]:
    failed, done = (sum(point.count(one) or 0 for point in points) for one in ("errors", "samples"))
    if not failed or failed / (failed + done) <= bound:
        return []
    return [f"{at}: {failed / (failed + done):.2%} of operations failed, beyond the bound of {bound:.2%}"]


def _slow(what: str, points: Sequence[Point], bound_ms: float) -> list[str]:
    known = [p90_ms for point in points if (p90_ms := point.value("p90")) is not None]
    if not known or median(known) <= bound_ms:
        return []
    return [f"p90 of {what}: {median(known):.3g} ms (median of its trials), beyond the bound of {bound_ms:g} ms"]
