"""The plan of a run: which layout is stood up when, and which steps are measured on it, in which order."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from types import MappingProxyType
from typing import Annotated, Final

from pydantic import Field

from gateways.structure import Structure
from ground.errors import UsageError
from ground.record import Record
from results.profile import Chosen
from results.step import Pass, StepKey
from suites import Suite, Workload
from topologies.hardware import Hardware
from topologies.layout import Layout
from topologies.loader import Planned
from weighbridge import aging
from weighbridge.passes import left_out, passes_of

AGAIN: Final = "-again"
"""What the name of a layout's twin ends with."""
NAME_LENGTH: Final = 40
"""The longest name of a layout, as `results.step.Slug` has it."""
NO_TWINS: Final[Mapping[str, str]] = MappingProxyType({})


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
    passes: dict[str, tuple[Pass, ...]]
    """What is replayed on each layout, in order."""
    left_out: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Which of the suite's layers are not measured on each layout, or not with all workloads, and why."""
    structures: dict[str, Structure] = Field(default_factory=dict)
    """What each layout is made of, of those of which it is known."""
    twins: dict[str, str] = Field(default_factory=dict)
    """Layouts that are another one once more, under a name of their own, and which: what differs between the two is noise."""
    attest: bool = False
    """Whether hosts are measured before each visit."""
    profile: Chosen | None = None
    """The step that is profiled once on every layout."""
    budget_s: Annotated[float, Field(gt=0)] | None = None
    """What the whole run may take, in seconds; None: as long as it takes."""

    @property
    def steps(self) -> int:
        """How many steps are measured in all."""
        return sum(len(workload.workers) for workload in self._replayed())

    @property
    def seconds(self) -> float:
        """Warm-ups and windows of all steps, in seconds: what the run takes at the very least."""
        return sum(step_seconds(workload) * len(workload.workers) for workload in self._replayed())

    def blocks(self) -> tuple[tuple[Visit, ...], ...]:
        """The visits of each repeat, in order."""
        return tuple(tuple(block) for _, block in groupby(self.visits, key=lambda visit: visit.repeat))

    def keys(self, visit: Visit) -> tuple[StepKey, ...]:
        """The steps of a visit, in the order in which they are measured."""
        ways = self.passes[visit.layout]
        return tuple(key for way in ways for workload in way.workloads for key in keys_of(visit, way, workload))

    def _replayed(self) -> list[Workload]:
        return [workload for visit in self.visits for one in self.passes[visit.layout] for workload in one.workloads]


def keys_of(visit: Visit, way: Pass, workload: Workload) -> tuple[StepKey, ...]:
    """The steps of one workload of a pass of a visit, in order."""
    return tuple(
        StepKey(
            layout=visit.layout,
            api=way.api,
            workload=workload.name,
            workers=workers,
            repeat=visit.repeat,
            driver=way.driver,
            layer=way.layer,
        )
        for workers in workload.workers
    )


def step_seconds(workload: Workload) -> float:
    """Warm-up and window of one step, in seconds."""
    return workload.warmup + workload.runtime


def twin_of(one: Planned) -> Planned:
    """A layout once more, as an arm of its own: whatever differs between the two is the noise of the rig (an A/A trial)."""
    name = f"{one.layout.name[: NAME_LENGTH - len(AGAIN)]}{AGAIN}"
    return replace(one, layout=one.layout.model_copy(update={"name": name}))


def make_plan(suite: Suite, hardware: Hardware, planned: Sequence[Planned], *, twins: Mapping[str, str] = NO_TWINS) -> Plan:
    """The plan of a suite over checked layouts, `twins` of them being others once more.

    Each repeat is a block that visits every layout once, in an order drawn by the suite's seed: randomized interleaved trials,
    so that a drift of the machine falls on all of them (Abedi and Brecht 2017). A run of one repeat keeps the order asked for.
    Raises UsageError when a layout lacks an API, or a driver cannot do what a workload says.
    """
    names = [one.layout.name for one in planned]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"two layouts are named {', '.join(twice)}", advice="Results could not be told apart: rename one of them.")
    lacking = [
        f"{one.layout.name} does not answer the {api} API"
        for one in planned
        for api in suite.api
        if api not in (*one.gateway.apis(), *one.gateway.layers())
    ]
    if lacking:
        raise UsageError(
            "; ".join(lacking), advice="Never compare across unequal interfaces: choose an API that all layouts answer."
        )
    unfit = aging.unfit(suite, planned)
    if unfit:
        raise UsageError("\n".join(unfit), advice="Change `age` of the suite, or leave those layouts out.")
    passes = {one.layout.name: passes_of(suite, one.gateway.layers()) for one in planned}
    order = random.Random(suite.seed)  # noqa: S311 - a seeded order is wanted, not a secret
    visits = []
    for repeat in range(suite.repeats):
        block = list(names)
        if suite.repeats > 1:
            order.shuffle(block)
        visits += [Visit(layout=name, repeat=repeat) for name in block]
    layouts = tuple(one.layout for one in planned)
    disks = {name: len(spec.disks) for name, spec in hardware.hosts.items()}
    known = {one.layout.name: one.gateway.structure(disks) for one in planned}
    return Plan(
        suite=suite,
        hardware=hardware,
        layouts=layouts,
        visits=tuple(visits),
        passes=passes,
        left_out={one.layout.name: left_out(suite, one.gateway.layers()) for one in planned},
        structures={name: structure for name, structure in known.items() if structure is not None},
        twins=dict(twins),
    )
