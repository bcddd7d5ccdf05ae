"""A step at a rate, judged: whether the rate was served within a bound, or says nothing.

It is served if at least 99 % of it was reached, failures stay within the suite's bound, and the
worst end of every operation's figure is within the bound: of an interval the upper end; a lower
bound has none. What other doubts about the step make unusable (a driver, client or machine that may
have been the bottleneck, a histogram that cannot be read) says nothing.
"""

from __future__ import annotations

from typing import Final

from weighbridge.common.errors import InvalidMeasurement
from weighbridge.results.analysis.find.rate_search import RateTrial
from weighbridge.results.analysis.steps.use import full_nics, others, quota_touches
from weighbridge.results.analysis.steps.validity import judge, least_samples, samples_needed
from weighbridge.results.analysis.steps.visit import JudgedStep
from weighbridge.results.doubt import Doubt, beside, graves
from weighbridge.results.figures import show_ms
from weighbridge.results.metric_figure import MetricFigure
from weighbridge.results.metrics import METRICS, Metric
from weighbridge.results.record import LatencyBound, StepResult
from weighbridge.suites import Bounds, Workload

SHORTEST_S: Final = 10.0
"""The shortest window at a rate: 5 % more than is served delays p90 by 0.4 s in it. In windows of 5
s on `lab-cpu` the p90 of one rate near the bound was 22, 64 and 146 ms.
"""
LONGEST_S: Final = 60.0
"""The longest to which windows are stretched for a percentile's samples."""


def window_s(workload: Workload, metric: Metric, rate_per_s: float) -> float:
    """The window of a step at a rate, in seconds: long enough to give the metric without an
    interval.
    """
    percent = _percent(metric)
    samples = samples_needed(percent) if percent is not None else 0
    return max(workload.runtime, SHORTEST_S, min(samples / rate_per_s, LONGEST_S))


def least_per_s(workload: Workload, metric: Metric) -> float:
    """The lowest rate at which the metric can be known in the longest window."""
    percent = _percent(metric)
    samples = least_samples(percent) if percent is not None else 1
    return samples / max(workload.runtime, LONGEST_S)


def rate_trial(
    step: StepResult, judged: JudgedStep, bound: LatencyBound, bounds: Bounds
) -> RateTrial:
    """What a measured step at a rate says. Raises ValueError for any other step."""
    rate_per_s, measurement = step.key.rate_per_s, step.measurement
    if rate_per_s is None or measurement is None:
        raise ValueError(f"{step.key}: is not a measured step at a rate")
    metric = METRICS.get_or_refuse(bound.metric)
    figures = {operation: point.figure(metric.key) for operation, point in judged.points.items()}
    values = [one.value for one in figures.values() if one.value is not None]
    slowest = max(values, default=None)
    doubts = _doubts(judged, metric, slowest)

    def trial(verdict: str, why: str = "") -> RateTrial:
        return RateTrial.model_validate(
            {
                "rate_per_s": rate_per_s,
                "verdict": verdict,
                "why": why,
                "latency_ms": slowest,
                "doubts": doubts,
            }
        )

    try:
        verdict = judge(measurement, bounds, rate_per_s=rate_per_s)
    except InvalidMeasurement as error:
        return trial("cannot tell", str(error))
    spoils = [fault for fault in verdict.faults if fault not in verdict.unserved]
    spoils += [one.words for one in full_nics(judged.use.resources if judged.use else ())]
    spoils += [doubt.words for doubt in graves(doubts) if not doubt.metrics]
    if spoils:
        return trial("cannot tell", spoils[0])
    if verdict.unserved:
        return trial("not served", verdict.unserved[0])
    beyond = [
        f"{metric.name} of {operation}s is {_figure_words(one)} ms"
        for operation, one in figures.items()
        if one.known and _worst(one) > bound.most_ms
    ]
    unknown = [operation for operation, one in figures.items() if not one.known]
    if unknown and not beyond:
        return trial("cannot tell", f"{metric.name} of {unknown[0]}s is not known")
    return trial("not served", beyond[0]) if beyond else trial("served")


def _percent(metric: Metric) -> float | None:
    """The percentile of a metric; None for one without samples beyond it."""
    return metric.percent if metric.percent is not None and metric.percent < 100 else None


def _worst(figure: MetricFigure) -> float:
    """The worst end of a figure, infinite if it is not known; only a bin has no value."""
    if figure.within is not None:
        return figure.within.top_ms
    if figure.at_least or figure.value is None or (figure.low is not None and figure.high is None):
        return float("inf")
    return figure.value if figure.high is None else max(figure.value, figure.high)


def _figure_words(figure: MetricFigure) -> str:
    """`61.2`, `at least 61.2`, or with its interval `48.1 (44.0 to 55.2)`."""
    if figure.within is not None:
        return str(figure.within)
    words = f"{'at least ' if figure.at_least else ''}{show_ms(figure.value)}"
    if figure.low is None:
        return words
    high = show_ms(figure.high) if figure.high is not None else "an unknown end"
    return f"{words} ({show_ms(figure.low)} to {high})"


def _doubts(judged: JudgedStep, metric: Metric, value_ms: float | None) -> tuple[Doubt, ...]:
    """The doubts about one step: the machine, the CPU limit, steadiness."""
    found = list(beside(others([judged.use])))
    if judged.steady is False:
        words = next((note for note in judged.notes if note.startswith("not steady: ")), "")
        words = words.removeprefix("not steady: ")
        found.append(Doubt(what="not steady", grade="mild", words=words or "it moved"))
    limit = (
        quota_touches(judged.use, metric.percent, value_ms)
        if judged.use is not None and metric.percent is not None and value_ms is not None
        else None
    )
    if limit is not None:
        doubt = Doubt(what="set by the CPU limit", grade="mild", words=limit, metrics=(metric.key,))
        found.append(doubt)
    return tuple(found)
