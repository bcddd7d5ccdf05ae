"""What settings cost: CPU seconds for 1000 operations, of the gateway's hosts and of the store's, as times the baseline's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from weighbridge.results.analysis.steps.visit import JudgedStep
from weighbridge.results.analysis.tuning.readings import references, step_of, steps
from weighbridge.results.record.step import StepKey
from weighbridge.results.record.trial import Arm, Trial, TuningRun
from weighbridge.results.statistics import Ratio, one_sample

Tier = Literal["gateway", "storage"]


def costs(run: TuningRun, trials: Sequence[Trial], visits: Mapping[StepKey, JudgedStep], tier: Tier) -> dict[int, float]:
    """Logarithm of how many times the baseline's CPU each trial took, by its number: the mean over the objectives' steps.

    Only trials that have it of every step, and a baseline beside each.
    """
    wanted = steps(run)
    logs: dict[int, list[float]] = {}
    for workload, workers in wanted:
        figures = {
            trial.number: figure
            for trial in trials
            if not trial.failed and (figure := _figure(visits.get(step_of(run, trial, workload, workers)), tier))
        }
        for number, reference in references(trials, figures).items():
            if number in figures:
                logs.setdefault(number, []).append(math.log(figures[number] / reference))
    return {number: math.fsum(each) / len(each) for number, each in logs.items() if len(each) == len(wanted)}


def cost_ratio(arm: Arm, trials: Sequence[Trial], found: Mapping[int, float]) -> Ratio | None:
    """What an arm takes, with the 95 % interval of one look; None where nothing is known."""
    logs = [found[trial.number] for trial in trials if trial.arm.name == arm.name and trial.number in found]
    if len(logs) < 2:
        return Ratio(value=math.exp(logs[0]), repeats=1) if logs else None
    return one_sample(logs).ratio()


def _figure(visit: JudgedStep | None, tier: Tier) -> float | None:
    if visit is None or not visit.ranked:
        return None
    known = [figure for point in visit.points.values() if (figure := point.value(f"{tier}-cpu"))]
    return known[0] if known else None  # of all operations of the step, whichever tells it
