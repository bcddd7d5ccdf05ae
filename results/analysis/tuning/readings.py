"""Each trial's figure for each objective, and the baseline's figure at that moment.

A test bed drifts: caches fill, disks age, a host's neighbours come and go. So a trial is not
compared with the mean of all baseline trials, but with those next to it in its own round: the one
before and the one after, interpolated in time on logarithms. A drift that is linear within a round
is removed completely, any other for the most part.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pydantic import NonNegativeInt, PositiveFloat

from weighbridge.common.record import Record
from weighbridge.results.analysis.steps.visit import JudgedStep, Point
from weighbridge.results.figures import counted
from weighbridge.results.metrics import METRICS
from weighbridge.results.record import StepKey, Trial, TuningRun
from weighbridge.suites.tuning import Objective

NO_BASELINE: Final = "the baseline has no trial that counts beside it"
_DIGITS: Final = 12
"""Digits beyond these are rounding errors of a logarithm: equal figures must have a ratio of 1, and
no spread.
"""


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
    """The baseline's figure at that moment, from its trials on both sides; None for the baseline
    itself, and if there is none.
    """

    @property
    def log_ratio(self) -> float | None:
        """Logarithm of the figure relative to the baseline's; None if either is missing."""
        if self.value is None or self.reference is None:
            return None
        return round(math.log(self.value / self.reference), _DIGITS)


def readings(
    run: TuningRun, trials: Sequence[Trial], visits: Mapping[StepKey, JudgedStep]
) -> tuple[Reading, ...]:
    """All readings, by objective and then by trial; failed trials have none. `visits` are their
    steps.
    """
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
    """Workload and worker count of each step of these objectives (None: all of the run's), each
    once.
    """
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
        return _within(objective, objective.p90_within * 1000, visits)
    (workers, visit), *_ = visits.items()
    point, why = _point(objective, workers, visit)
    if point is None or why:
        return None, why
    value, name = point.value(objective.of), METRICS.get_or_refuse(objective.of).name
    return (
        (value, "") if value else (None, f"{_at(objective, workers)}: too few samples for a {name}")
    )


def _within(
    objective: Objective, bound_ms: float, visits: Mapping[int, JudgedStep | None]
) -> tuple[float | None, str]:
    """The largest throughput with p90 within a bound; unknown if an unranked step might have been
    it.
    """
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
