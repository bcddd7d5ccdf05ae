"""The searches of a run, from its steps: what each knows, and which step it needs next.

A search belongs to an ordinary step, a closed loop at the largest worker count: the same workers
are its connections, and its throughput is where the search begins. Its steps have the key of that
step, and a rate and number in addition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from weighbridge.results.analysis.find.judged_rate import least_per_s, rate_trial, window_s
from weighbridge.results.analysis.find.rate_search import RateSearch, RateTrial
from weighbridge.results.analysis.steps.visit import JudgedStep, read_visit
from weighbridge.results.metrics import METRICS
from weighbridge.results.record import LatencyBound, RunStore, StepKey, StepResult
from weighbridge.suites import Suite, Workload


class FindingPlan(Protocol):
    """The part of a plan that searches need."""

    @property
    def suite(self) -> Suite:
        """What is replayed."""

    @property
    def find(self) -> LatencyBound | None:
        """The bound; None: nothing is searched."""


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
        """The step that the search of an ordinary step needs next; None if it is over, or cannot
        begin.
        """
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


def read_searches(store: RunStore, plan: FindingPlan) -> Searches | None:
    """The searches of a run folder; None if it has none.

    Raises InvalidMeasurement and UsageError as `read_visits` does.
    """
    if plan.find is None:
        return None
    searches = Searches(plan.find, plan.suite)
    for step in store.each_step():
        searches.add(step, judged(store, step))
    return searches


def judged(store: RunStore, step: StepResult) -> JudgedStep:
    """A step as a search judges it."""
    return read_visit(store, step, {}, closed_loop=step.key.rate_per_s is None)


def _key_at(key: StepKey, search: RateSearch, rate_per_s: float) -> StepKey:
    """The key of the next step of a search."""
    return key.model_copy(update={"rate_per_s": rate_per_s, "search_step": len(search.trials) + 1})
