"""How long the rest of a run takes, by its plan and by how long similar work has taken so far.

A run is a list of work units: start a layout, age it, prepare a workload, a step, the search of a
rate after it, clean up, stop.
What a unit takes beyond its warm-up and window is guessed first, from times seen on a machine with
two cores, and then known: best from the same unit of an earlier repeat, less well from the same
one of another layout, and least from any unit of its kind; these correct the guess by a factor.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final, Literal

from weighbridge.conductor.durability import cuts_of
from weighbridge.conductor.passes import asked_of_hosts
from weighbridge.conductor.plan import Plan, StepTurn, Visit, step_seconds
from weighbridge.results.features.rate_search import MOST_AT_A_RATE, SHORTEST_S
from weighbridge.results.run.step import Pass, StepKey
from weighbridge.suites import TRAITS, Suite, Workload, continues
from weighbridge.topologies.hardware import Hardware

WorkKind = Literal["start", "age", "prepare", "step", "search", "clean", "stop", "cut power"]

STARTING_S: Final = 7.0
"""Starting, verifying and limiting a lab layout: 6 s for Ceph and its fronts, 8 s for Swift."""
ATTESTING_S: Final = 19.0
STOPPING_S: Final = 3.0
DRIVER_S: Final = 1.5
"""Starting a driver, with what a pass does around it."""
PREPARED_PER_S: Final = 90
"""Objects written, or deleted, per second, besides the time for their bytes."""
PREPARED_BYTES_PER_S: Final = 60e6
STEP_S: Final = 1.5
"""Caches, settling, cleaning and checking around a step that writes nothing."""
LEFT_STEP_S: Final = 1.3
"""The same if what was written is not deleted."""
DELETING: Final = 0.9
"""Deleting what a step wrote, as a share of the time that writing it took."""
CUT_S: Final = 45.0
"""A power cut, a store that starts again after it, and reading everything."""
ASKING_S: Final = 0.3
"""Asking a store for a capability: all of them take half a minute (docs/capabilities.md)."""
REPORTING_S: Final = 20.0
"""Table, charts and report after the last step."""


@dataclass(frozen=True)
class WorkUnit:
    """One unit of work: `planned_s` is warm-up and window, `guess_s` the guess beyond that."""

    kind: WorkKind
    visit: Visit
    work: str = ""
    """The workload and pass, if it is about one."""
    workers: int = 0
    planned_s: float = 0.0
    guess_s: float = 0.0

    @property
    def name(self) -> tuple[WorkKind, Visit, str, int]:
        """Unique within a run."""
        return (self.kind, self.visit, self.work, self.workers)

    @property
    def groups(self) -> tuple[tuple[str | int, ...], ...]:
        """Groups of similar units, the most similar first."""
        layout = self.visit.layout
        return (
            (self.kind, layout, self.work, self.workers),
            (self.kind, layout, self.work),
            (self.kind, self.work),
            (self.kind,),
        )


@dataclass
class _GroupTime:
    """Time of a group's units beyond what was planned, and what was guessed, in seconds."""

    took_s: float = 0.0
    guess_s: float = 0.0
    count: int = 0


class TimeEstimate:
    """Estimates the time left; the conductor reports each unit that it works on."""

    def __init__(self, units: Sequence[WorkUnit]) -> None:
        self._left = {unit.name: unit for unit in units}
        self._groups: dict[tuple[str | int, ...], _GroupTime] = {}
        self._current: tuple[WorkUnit, float] | None = None

    @classmethod
    def of(cls, plan: Plan, complete: Collection[StepKey] = ()) -> TimeEstimate:
        """For a plan of which the steps `complete` are measured."""
        return cls(units(plan, complete))

    def add(self, more: Sequence[WorkUnit]) -> None:
        """Add units behind all others, except those that are left anyway."""
        self._left |= {unit.name: unit for unit in more if unit.name not in self._left}

    def again(self, visit: Visit, turn: StepTurn, *, leaves: bool) -> None:
        """A step of a visit is measured again, before all that is left."""
        unit = _step(visit, turn, leaves=leaves)
        self._left = {unit.name: unit} | self._left

    def drop(self, repeat: int) -> None:
        """Drop all units of a repeat (from 0)."""
        self._left = {
            name: unit for name, unit in self._left.items() if unit.visit.repeat != repeat
        }

    @contextmanager
    def doing(
        self, kind: WorkKind, visit: Visit, work: str = "", workers: int = 0
    ) -> Iterator[None]:
        """The block works on this unit. Earlier units of the plan that were skipped are dropped."""
        asked = WorkUnit(kind, visit, work, workers)
        unit = self._left.get(asked.name, asked)
        while unit.name in self._left and next(iter(self._left)) != unit.name:
            del self._left[next(iter(self._left))]
        began = time.monotonic()
        self._current = (unit, began)
        try:
            yield
        finally:
            self._current = None
            self._left.pop(unit.name, None)
        # Only units that came to their end show how long similar ones take.
        for name in unit.groups:
            group = self._groups.setdefault(name, _GroupTime())
            group.took_s += max(0.0, time.monotonic() - began - unit.planned_s)
            group.guess_s += unit.guess_s
            group.count += 1

    def left_s(self) -> float:
        """Seconds that are probably left."""
        total_s = sum(map(self.expected_s, self._left.values()))
        if self._current is None:
            return total_s
        unit, began = self._current
        expected_s = self.expected_s(unit) if unit.name in self._left else 0.0
        return total_s - min(time.monotonic() - began, expected_s)

    def repeat_s(self, repeat: int) -> float:
        """Seconds that the rest of a repeat (from 0) probably takes."""
        return sum(
            self.expected_s(unit) for unit in self._left.values() if unit.visit.repeat == repeat
        )

    def expected_s(self, unit: WorkUnit) -> float:
        """Seconds that a unit probably takes."""
        group = next((self._groups[name] for name in unit.groups if name in self._groups), None)
        if group is None:
            return unit.planned_s + unit.guess_s
        if not group.guess_s:
            return unit.planned_s + group.took_s / group.count
        # The mean for the same unit; for others the guess, with the correction that those needed.
        return unit.planned_s + unit.guess_s * group.took_s / group.guess_s


def units(plan: Plan, complete: Collection[StepKey] = ()) -> list[WorkUnit]:
    """The work that a plan still needs if the steps `complete` are measured, in order."""
    found = [unit for visit in plan.visits for unit in _of_visit(plan, visit, complete)]
    durability = plan.suite.durability
    if durability is None:
        return found
    tried = [Visit(layout=one.name, repeat=0) for one in plan.layouts if one.name not in plan.twins]
    cuts, _ = cuts_of(durability, control=False)
    if durability.control:
        cuts += cuts_of(durability, control=True)[0]
    guess_s = cuts * CUT_S
    return [
        *found,
        *(WorkUnit("cut power", one, planned_s=durability.load, guess_s=guess_s) for one in tried),
    ]


def work_of(way: Pass, workload: Workload) -> str:
    """The name of a workload of a pass among the units."""
    return " ".join(word for word in (workload.name, way.api, way.driver, way.layer or "") if word)


def show_duration(seconds: float) -> str:
    """As `7:05` or `1:07:05`."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02}"
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def _of_visit(plan: Plan, visit: Visit, complete: Collection[StepKey]) -> list[WorkUnit]:
    # What is written is lost with the deployment, except on a gateway that already runs.
    leaves = plan.suite.cleanup == "with-deployment" and not plan.hardware.of.for_running_gateways
    work: list[WorkUnit] = []
    for ways in plan.groups(visit.layout):
        turns = [turn for turn in plan.turns(visit, ways) if turn.key not in complete]
        only = plan.prepared(visit, ways) if turns and leaves else ()
        work += _of_turns(visit, turns, only, leaves=leaves, searched=plan.searched(visit))
    if not work and plan.keys(visit):
        return []
    start_s = starting_s(plan.hardware, plan.suite, attest=plan.attested(visit))
    # How long aging takes is not known before the first time.
    aging = [WorkUnit("age", visit)] if plan.suite.age is not None else []
    return [
        WorkUnit("start", visit, guess_s=start_s),
        *aging,
        *work,
        WorkUnit("stop", visit, guess_s=stopping_s(plan.hardware)),
    ]


def starting_s(hardware: Hardware, suite: Suite | None = None, *, attest: bool = False) -> float:
    """A guess of the time to start a layout, in seconds; None: for no suite."""
    if not hardware.of.measurable:
        return 0.5
    asked = suite is not None and asked_of_hosts(suite, sameness=attest)
    return STARTING_S + (ATTESTING_S if asked else 0.0)


def stopping_s(hardware: Hardware) -> float:
    """A guess of the time to stop a layout, in seconds."""
    return STOPPING_S if hardware.of.measurable else 0.1


def _of_turns(
    visit: Visit,
    turns: Sequence[StepTurn],
    only_prepared: Sequence[StepTurn],
    *,
    leaves: bool,
    searched: Collection[StepKey],
) -> list[WorkUnit]:
    """Units of steps in turn. `leaves`: nothing is deleted; `searched`: a search follows."""
    pairs = {work_of(turn.way, turn.workload): turn.workload for turn in (*turns, *only_prepared)}
    prepare = {
        work: WorkUnit("prepare", visit, work, guess_s=DRIVER_S + _writing_s(one))
        for work, one in pairs.items()
    }
    first = [prepare[work] for work, one in pairs.items() if leaves and not continues(one)]
    found = list(first)
    for _, some in groupby(turns, key=lambda turn: turn.workload.name):
        these = list(some)
        works = list(dict.fromkeys(work_of(turn.way, turn.workload) for turn in these))
        found += [prepare[work] for work in works if prepare[work] not in first]
        found += _steps(visit, these, searched, leaves=leaves)
        found += [
            WorkUnit("clean", visit, work, guess_s=0.1 + _objects(pairs[work]) / PREPARED_PER_S)
            for work in works
            if not leaves
        ]
    return found


def _steps(
    visit: Visit, turns: Sequence[StepTurn], searched: Collection[StepKey], *, leaves: bool
) -> list[WorkUnit]:
    steps = [_step(visit, turn, leaves=leaves) for turn in turns]
    searches = []
    for one, turn in zip(steps, turns, strict=True):
        if turn.key in searched:
            step_s = turn.workload.warmup + max(turn.workload.runtime, SHORTEST_S)
            guess_s = MOST_AT_A_RATE * one.guess_s
            planned_s = MOST_AT_A_RATE * step_s
            searches.append(replace(one, kind="search", planned_s=planned_s, guess_s=guess_s))
    return [*steps, *searches]


def _step(visit: Visit, turn: StepTurn, *, leaves: bool) -> WorkUnit:
    workload = turn.workload
    made = sum(weight for one, weight in workload.operations.items() if TRAITS[one].makes)
    writes = made / sum(workload.operations.values())
    beside_s = LEFT_STEP_S if leaves else STEP_S + writes * DELETING * step_seconds(workload)
    if workload.deletes:
        beside_s += _writing_s(workload)  # what a step deleted is written again before the next
    return WorkUnit(
        "step",
        visit,
        work_of(turn.way, workload),
        turn.key.workers,
        planned_s=step_seconds(workload),
        guess_s=beside_s,
    )


def _objects(workload: Workload) -> int:
    if workload.listed is not None and workload.listed.of is not None:
        return workload.listed.gone(workload.objects.per_container) * workload.objects.containers
    return workload.objects.count * (workload.versions or 1) if workload.needs_objects else 0


def _writing_s(workload: Workload) -> float:
    objects = _objects(workload)
    return objects / PREPARED_PER_S + objects * workload.objects.mean_bytes / PREPARED_BYTES_PER_S


class TimeAllowance:
    """The time that a run may still take, from when this is made; `spent_s` had passed before."""

    def __init__(self, budget_s: float, *, spent_s: float = 0.0) -> None:
        self._ends = time.monotonic() + budget_s - spent_s

    def left_s(self) -> float:
        """Seconds left for measuring; below 0 if it is used up."""
        return self._ends - time.monotonic() - REPORTING_S
