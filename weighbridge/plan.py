"""The plan of a run: which layout is stood up when, and which steps are measured on it, in which order."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ground.errors import UsageError
from ground.record import Record
from suites import Suite, Workload
from topologies.hardware import Hardware
from topologies.layout import Layout
from topologies.loader import Planned


class Visit(Record):
    """One standing of one layout: all steps of the suite, once."""

    layout: str
    repeat: int
    """Counts from 0."""


class Plan(Record):
    """Everything a run does, resolved: written to the run folder before anything starts."""

    suite: Suite
    hardware: Hardware
    layouts: tuple[Layout, ...]
    visits: tuple[Visit, ...]

    @property
    def steps(self) -> int:
        """How many steps are measured in all."""
        return len(self.visits) * self.suite.steps

    @property
    def seconds(self) -> float:
        """Warm-ups and windows of all steps, in seconds: what the run takes at the very least."""
        return len(self.visits) * len(self.suite.api) * sum(step_seconds(w) * len(w.workers) for w in self.suite.workloads)


def step_seconds(workload: Workload) -> float:
    """Warm-up and window of one step, in seconds."""
    return workload.warmup + workload.runtime


def make_plan(suite: Suite, hardware: Hardware, planned: Sequence[Planned]) -> Plan:
    """The plan of a suite over checked layouts.

    Each repeat visits every layout once, in an order drawn by the suite's seed: randomized interleaved trials, so that a
    drift of the machine falls on all of them (Abedi and Brecht 2017). Raises UsageError when a layout lacks an API.
    """
    names = [one.layout.name for one in planned]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"two layouts are named {', '.join(twice)}", advice="Results could not be told apart: rename one of them.")
    lacking = [
        f"{one.layout.name} does not answer the {api} API" for one in planned for api in suite.api if api not in one.gateway.apis()
    ]
    if lacking:
        raise UsageError(
            "; ".join(lacking), advice="Never compare across unequal interfaces: choose an API that all layouts answer."
        )
    order = random.Random(suite.seed)  # noqa: S311 - a seeded order is wanted, not a secret
    visits = []
    for repeat in range(suite.repeats):
        block = list(names)
        if repeat:  # the first block keeps the order asked for: a run of one repeat has no order to be drawn
            order.shuffle(block)
        visits += [Visit(layout=name, repeat=repeat) for name in block]
    return Plan(suite=suite, hardware=hardware, layouts=tuple(one.layout for one in planned), visits=tuple(visits))
