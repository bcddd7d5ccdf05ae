"""The drift of a tuning's baseline over the run, for each objective: line, scatter and range."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from pydantic import NonNegativeFloat, NonNegativeInt

from weighbridge.common.record import Record
from weighbridge.results.analysis.tuning.readings import Reading
from weighbridge.results.analysis.tuning.setting_words import objective_words
from weighbridge.results.figures import show_p
from weighbridge.results.percent import show_percent
from weighbridge.results.probability import student_tail
from weighbridge.results.record import Trial, TuningRun
from weighbridge.results.statistics import LEVEL

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
    """The factor by which it changed per hour, by the line through the logarithms of its trials;
    None if unknown.
    """
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
    """Slope per second, and p, of a line through sets of (seconds, logarithm), each with its own
    height; None: unknown.
    """
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
