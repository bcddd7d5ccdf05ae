"""The searches of a run, from its steps: what each knows, and which step it needs next.

A search belongs to an ordinary step, a closed loop at the largest worker count: the same workers
are its connections, and its throughput is where the search begins. Its steps have the key of that
step, and a rate and number in addition.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Literal

from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import InvalidMeasurement, UsageError
from weighbridge.common.quantities import parse_seconds
from weighbridge.results.figures.doubt import Doubt, beside, graves
from weighbridge.results.figures.metrics import METRICS, Metric
from weighbridge.results.figures.reading import MetricFigure
from weighbridge.results.figures.summary import JudgedStep, read_visit
from weighbridge.results.figures.use import full_nics, others, quota_touches
from weighbridge.results.figures.validity import judge, least_samples
from weighbridge.results.numbers import listed, show_ms
from weighbridge.results.run import LatencyBound, RunStore, StepKey, StepResult
from weighbridge.suites import Bounds, Suite, Workload

# The search for the highest rate that is served: which rate is measured next, and what is known.
#
# A bisection on a logarithmic scale. It begins below the throughput of a closed loop, goes down
# or up in growing factors until one rate is served and a higher one is not, and halves what lies
# between until the two are at most RESOLVED apart. The rate that is then the answer is measured
# again, and if a step is left the one above it, too: a rate whose steps disagree is measured a
# third time, and the majority decides. The last step is kept for an answer that was measured only
# once.
#
# What is next depends only on the steps so far, so a search that was killed goes on from its
# record. A step that says nothing about the rate (its driver was saturated, the machine busy) is
# repeated once; after a second one no higher rate is tried.


MOST_STEPS: Final = 8
"""Of a layout and workload in one repeat: the closed loop, and the steps at a rate."""
MOST_AT_A_RATE: Final = MOST_STEPS - 1
RESOLVED: Final = 1.05
"""A rate that is served and one that is not, so close, end the search."""
STEP: Final = 1.2
"""The first factor: its square root's square root is below RESOLVED, so two halvings are enough."""
LOWEST: Final = 0.01
"""The lowest rate that is tried, as a share of the closed loop's throughput."""
_TRIES: Final = 2
"""Steps at a rate that say nothing, after which it is given up."""
_DIGITS: Final = 4


@dataclass(frozen=True)
class RateTrial:
    """One step at a rate, as it counts in a search. `latency_ms` is the bound's metric, of the
    slowest operation; None: unknown.
    """

    rate_per_s: float
    verdict: Literal["served", "not served", "cannot tell"]
    why: str = ""
    """Why it was not served, or says nothing; empty if it was served."""
    latency_ms: float | None = None
    doubts: tuple[Doubt, ...] = ()


@dataclass(frozen=True)
class RateSearch:
    """One search. `start_per_s` is the closed loop's throughput, `least_per_s` the lowest rate that
    a step can judge. The majority of its steps decides whether a rate is served.
    """

    start_per_s: float
    least_per_s: float = 0.0
    trials: tuple[RateTrial, ...] = ()

    def heard(self, trial: RateTrial) -> RateSearch:
        return replace(self, trials=(*self.trials, trial))

    @property
    def tied(self) -> tuple[float, ...]:
        """Rates whose steps disagree, and which have no majority."""
        return tuple(rate for rate, balance in self._balance.items() if balance == 0)

    @property
    def low(self) -> float | None:
        """The highest rate that was served, below all that were not; None: none was."""
        high = math.inf if self.high is None else self.high
        served = [rate for rate, balance in self._balance.items() if balance > 0]
        return max((rate for rate in served if rate < high), default=None)

    @property
    def high(self) -> float | None:
        """The lowest rate that was not served; None: none was missed."""
        missed = [rate for rate, balance in self._balance.items() if balance < 0]
        return min(missed, default=None)

    @property
    def resolved(self) -> bool:
        """Whether the most that is served is known as exactly as a search tries to."""
        low, high = self.low, self.high
        return low is not None and high is not None and high <= RESOLVED * low

    @property
    def confirmed(self) -> bool:
        return self.low is not None and self._times(self.low) > 1

    @property
    def blocked(self) -> RateTrial | None:
        """The last step at a rate that cannot be judged: two steps said nothing, and none more."""
        silent = [trial for trial in self.trials if self._is_silent(trial.rate_per_s)]
        return next(
            (trial for trial in reversed(silent) if not self._times(trial.rate_per_s)), None
        )

    @property
    def next_per_s(self) -> float | None:
        """The rate to measure next; None: the search is over."""
        left = MOST_AT_A_RATE - len(self.trials)
        wanted = self._wanted(left) if left > 0 else None
        if wanted is None or not self._is_silent(wanted):
            return wanted
        low = self.low
        if low is None or self.confirmed or self._is_silent(low):
            return None
        return low

    def _wanted(self, left: int) -> float | None:
        """The rate that would say most, with so many steps left; None: enough is known."""
        low, high = self.low, self.high
        if self.tied:
            return self.tied[0]
        if low is not None and not self.confirmed and (left == 1 or self.resolved):
            return low
        if self.resolved:
            return high if high is not None and self._times(high) == 1 else None
        return self._between(low, high)

    def _between(self, low: float | None, high: float | None) -> float | None:
        """The next rate while what is searched lies between two rates, or beyond one.

        Beyond, each factor is that from the first rate to the next one: 1.2, 1.44, 2.07, 4.3 ...
        """
        if low is not None and high is not None:
            return _rounded(math.sqrt(low * high))
        begin = self.start_per_s / STEP
        if low is not None:
            return _rounded(low * STEP * max(1.0, low / begin))
        lowest = max(self.least_per_s, LOWEST * self.start_per_s)
        if high is None:
            return _rounded(max(lowest, begin))
        if high <= _rounded(lowest):
            return high if self._times(high) == 1 else None
        return _rounded(max(lowest, high / STEP / max(1.0, begin / high)))

    @cached_property
    def _balance(self) -> dict[float, int]:
        """For each rate: steps that were served minus those that were not, of those that tell."""
        balance: dict[float, int] = {}
        for trial in self.trials:
            if trial.verdict != "cannot tell":
                sign = 1 if trial.verdict == "served" else -1
                balance[trial.rate_per_s] = balance.get(trial.rate_per_s, 0) + sign
        return balance

    def _times(self, rate_per_s: float) -> int:
        """How many steps at a rate tell whether it is served."""
        telling = (trial for trial in self.trials if trial.verdict != "cannot tell")
        return sum(trial.rate_per_s == rate_per_s for trial in telling)

    def _is_silent(self, rate_per_s: float) -> bool:
        steps = sum(trial.rate_per_s == rate_per_s for trial in self.trials)
        return steps - self._times(rate_per_s) >= _TRIES


def _rounded(rate_per_s: float) -> float:
    """To four digits: shorter in texts, and far below RESOLVED."""
    return float(f"{rate_per_s:.{_DIGITS}g}")


# A step at a rate, judged: whether the rate was served within a bound, or says nothing.
#
# It is served if at least 99 % of it was reached, failures stay within the suite's bound, and the
# worst end of every operation's figure is within the bound: of an interval the upper end; a lower
# bound has none. What other doubts about the step make unusable (a driver, client or machine that
# may have been the bottleneck, a histogram that cannot be read) says nothing.


SHORTEST_S: Final = 10.0
"""The shortest window at a rate: 5 % more than is served delays p90 by 0.4 s in it. In windows of 5
s on `lab-cpu` the p90 of one rate near the bound was 22, 64 and 146 ms.
"""
SAMPLES_BEYOND: Final = 20
"""Samples beyond a percentile, which a window is long enough for: 200 requests for p90."""
LONGEST_S: Final = 60.0
"""The longest to which windows are stretched for a percentile's samples."""


def window_s(workload: Workload, metric: Metric, rate_per_s: float) -> float:
    """Seconds of a step at a rate: long enough for SAMPLES_BEYOND."""
    percent = _percent(metric)
    samples = 0.0 if percent is None else SAMPLES_BEYOND * 100 / (100 - percent)
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
    slowest = max((one.value for one in figures.values() if one.value is not None), default=None)
    doubts = _doubts(judged, metric, slowest)
    trial = RateTrial(rate_per_s, "served", "", slowest, doubts)
    try:
        verdict = judge(measurement, bounds, rate_per_s=rate_per_s)
    except InvalidMeasurement as error:
        return replace(trial, verdict="cannot tell", why=str(error))
    spoils = [fault for fault in verdict.faults if fault not in verdict.unserved]
    spoils += [doubt.words for doubt in full_nics(judged.use.resources if judged.use else ())]
    spoils += [doubt.words for doubt in graves(doubts) if not doubt.metrics]
    missed = [
        *verdict.unserved,
        *(
            f"{metric.name} of {operation}s is {_figure_words(figure)} ms"
            for operation, figure in figures.items()
            if figure.known and _worst(figure) > bound.most_ms
        ),
    ]
    unknown = [
        f"{metric.name} of {operation}s is not known"
        for operation, figure in figures.items()
        if not figure.known
    ]
    # A rate that was served beside other programs is served; one that was not might be without.
    busy = [doubt.words for doubt in doubts if doubt.what == "machine busy"] if missed else []
    if missed and not spoils and not busy:
        return replace(trial, verdict="not served", why=missed[0])
    if spoils or unknown or busy:
        return replace(trial, verdict="cannot tell", why=[*spoils, *busy, *unknown][0])
    return trial


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
    doubts = list(beside(others([judged.use])))
    if judged.steady is False:
        moved = [note for note in judged.notes if note.startswith("not steady: ")]
        words = moved[0].removeprefix("not steady: ") if moved else "it moved"
        doubts.append(Doubt(what="not steady", grade="mild", words=words))
    if judged.use is not None and metric.percent is not None and value_ms is not None:
        limit = quota_touches(judged.use, metric.percent, value_ms)
        if limit is not None:
            what = "set by the CPU limit"
            doubts.append(Doubt(what=what, grade="mild", words=limit, metrics=(metric.key,)))
    return tuple(doubts)


@dataclass(frozen=True)
class RateStep:
    """A step that a search needs: its key, and its workload with the rate and a window for it."""

    key: StepKey
    workload: Workload


@dataclass
class Searches:
    """The searches of a run folder within a bound; `add` each complete step."""

    bound: LatencyBound
    suite: Suite
    _starts: dict[StepKey, float] = field(default_factory=dict)
    _trials: dict[StepKey, RateTrial] = field(default_factory=dict)

    def add(self, step: StepResult, judged: JudgedStep) -> None:
        """Count a step that is complete; the last one with a key counts."""
        if not step.complete:
            return
        if step.key.rate_per_s is not None:
            self._trials[step.key] = rate_trial(step, judged, self.bound, self.suite.bounds)
        else:
            self._starts[step.key] = sum(point.ops_s for point in judged.points.values())

    def of(self, key: StepKey) -> RateSearch | None:
        """The search of an ordinary step, so far; None without that step's throughput."""
        start, workload = self._starts.get(key), self._workloads.get(key.workload)
        if not start or workload is None or key.layer is not None:
            return None
        metric = METRICS.get_or_refuse(self.bound.metric)
        search = RateSearch(start_per_s=start, least_per_s=least_per_s(workload, metric))
        while (rate := search.next_per_s) is not None:
            trial = self._trials.get(_key_at(key, search, rate))
            if trial is None:
                break
            search = search.heard(trial)
        return search

    def next_of(self, key: StepKey) -> RateStep | None:
        """What an ordinary step's search needs next; None: it is over, or cannot begin."""
        search = self.of(key)
        rate = None if search is None else search.next_per_s
        if search is None or rate is None:
            return None
        workload = self._workloads[key.workload]
        metric = METRICS.get_or_refuse(self.bound.metric)
        window = window_s(workload, metric, rate)
        update = {"rate_per_s": rate, "runtime": window}
        return RateStep(_key_at(key, search, rate), workload.model_copy(update=update))

    @property
    def _workloads(self) -> Mapping[str, Workload]:
        return {workload.name: workload for workload in self.suite.workloads}


def read_searches(store: RunStore, suite: Suite, bound: LatencyBound | None) -> Searches | None:
    """The searches of a run folder, if any. Raises InvalidMeasurement and UsageError."""
    if bound is None:
        return None
    searches = Searches(bound, suite)
    for step in store.steps():
        searches.add(step, judged(store, step))
    return searches


def judged(store: RunStore, step: StepResult) -> JudgedStep:
    """A step as a search judges it."""
    return read_visit(store, step, {})


def _key_at(key: StepKey, search: RateSearch, rate_per_s: float) -> StepKey:
    return key.model_copy(update={"rate_per_s": rate_per_s, "search_step": len(search.trials) + 1})


# What people write.


_BOUND: Final = re.compile(r"\s*([^<>=\s]+)\s*([<>=]*)\s*(.*?)\s*", re.DOTALL)
_EXAMPLE: Final = 'Give a metric and its largest value, in quotes: --find "p90<=50ms".'


def parse_bound(text: str) -> LatencyBound:
    """The bound of `p90<=50ms`. Raises UsageError."""
    found = _BOUND.fullmatch(text)
    if found is None or not found[3]:
        raise UsageError(f"{text[:100]!r} is not a bound", advice=_EXAMPLE)
    key, relation, value = found.groups()
    known = [
        name
        for name, metric in METRICS.items()
        if metric.unit == "ms" and (metric.better == "less" or metric.percent is not None)
    ]
    if key not in known:
        why = "is not a latency" if key in METRICS else "is not known"
        hint = did_you_mean(key, known, known=False)
        advice = f"Bounds are on {listed(known, 'or')}."
        raise UsageError(f"{text[:100]!r}: the metric {key[:80]!r} {why}{hint}", advice=advice)
    if relation != "<=":
        advice = f'Only "at most" can be a bound: --find "{key}<={value[:40]}".'
        raise UsageError(f"{text[:100]!r}: {relation or 'nothing'!r} is not <=", advice=advice)
    try:
        seconds = parse_seconds(value)
    except ValueError as error:
        raise UsageError(f"{text[:100]!r}: {error}", advice=_EXAMPLE) from None
    if not isinstance(seconds, float) or not 0 < seconds <= 3600:
        raise UsageError(f"{text[:100]!r}: a bound is above 0 and at most 1h", advice=_EXAMPLE)
    return LatencyBound(metric=key, most_ms=round(seconds * 1000, 6))
