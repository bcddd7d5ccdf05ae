"""The pace of a run: how long what is left of it takes, by what is planned, and by how long the
like of it took so far.

A run is a row of units: standing a layout up, aging it, preparing a workload, a step, cleaning up,
taking down. What a unit takes beyond its warm-up and window is guessed first, from times seen on a
machine of two cores, and then known: the same unit of an earlier repeat tells most, the same of
another layout less, any unit of its kind least; the guess says how far they differ.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Literal

from weighbridge.conductor.passes import asked_of_hosts
from weighbridge.conductor.plan import Plan, StepTurn, Visit, step_seconds
from weighbridge.results.record.step import Pass, StepKey
from weighbridge.suites import Suite, Workload
from weighbridge.topologies.hardware import Hardware

Kind = Literal["stand", "age", "prepare", "step", "clean", "down"]

STANDING_S: Final = 7.0
"""Standing a layout up in the lab, verified and limited: 6 s for Ceph and its fronts, 8 s for
Swift.
"""
ATTESTING_S: Final = 17.0
"""Measuring what the lab's hosts can do."""
DOWN_S: Final = 3.0
DRIVER_S: Final = 1.5
"""Starting a driver, with what a pass does around it."""
PREPARED_PER_S: Final = 200
"""Objects that are written, or deleted, a second, besides the time that their bytes take."""
PREPARED_BYTES_PER_S: Final = 100e6
STEP_S: Final = 1.5
"""Caches, settling, cleaning and checking around a step that writes nothing."""
LEFT_STEP_S: Final = 0.4
"""The same where what was written is left where it is."""
DELETING: Final = 0.9
"""What is written in a step is deleted after it, in this share of the time that it took to write.
"""
REPORTING_S: Final = 20.0
"""What table, charts and report take after the last step."""


@dataclass(frozen=True)
class Unit:
    """One thing that is done.

    `planned_s` is warm-up and window, `guess_s` what it may take beyond that, in seconds.
    """

    kind: Kind
    visit: Visit
    work: str = ""
    """Which workload of which pass, where it is about one."""
    workers: int = 0
    planned_s: float = 0.0
    guess_s: float = 0.0

    @property
    def name(self) -> tuple[Kind, Visit, str, int]:
        """What tells it from every other unit of its run."""
        return (self.kind, self.visit, self.work, self.workers)

    @property
    def likes(self) -> tuple[tuple[str | int, ...], ...]:
        """Groups of units that are like it, the most alike first."""
        layout = self.visit.layout
        return (
            (self.kind, layout, self.work, self.workers),
            (self.kind, layout, self.work),
            (self.kind, self.work),
            (self.kind,),
        )


@dataclass
class _Seen:
    """What units of a group took beyond what was planned, and what had been guessed, in seconds."""

    took_s: float = 0.0
    guess_s: float = 0.0
    count: int = 0


class Pace:
    """Told by the conductor what is being done; tells how long the rest takes."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self._left = {unit.name: unit for unit in units}
        self._seen: dict[tuple[str | int, ...], _Seen] = {}
        self._current: tuple[Unit, float] | None = None

    @classmethod
    def of(cls, plan: Plan, whole: Collection[StepKey] = ()) -> Pace:
        """The pace of a plan of which the steps `whole` are measured."""
        return cls(units(plan, whole))

    def add(self, more: Sequence[Unit]) -> None:
        """Have these be done as well, behind all others, those of them that are not to be done
        anyway.
        """
        self._left |= {unit.name: unit for unit in more if unit.name not in self._left}

    def drop(self, repeat: int) -> None:
        """Have nothing of a repeat (from 0) be done."""
        self._left = {
            name: unit for name, unit in self._left.items() if unit.visit.repeat != repeat
        }

    @contextmanager
    def doing(self, kind: Kind, visit: Visit, work: str = "", workers: int = 0) -> Iterator[None]:
        """While the block runs, this unit is being done.

        What stood before it in the plan and was not done never will be.
        """
        asked = Unit(kind, visit, work, workers)
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
        # Only what came to its end tells how long the like of it takes.
        for like in unit.likes:
            seen = self._seen.setdefault(like, _Seen())
            seen.took_s += max(0.0, time.monotonic() - began - unit.planned_s)
            seen.guess_s += unit.guess_s
            seen.count += 1

    def left_s(self) -> float:
        """Seconds that are probably left."""
        whole_s = sum(self.expected_s(unit) for unit in self._left.values())
        if self._current is None:
            return whole_s
        unit, began = self._current
        return whole_s - min(
            time.monotonic() - began, self.expected_s(unit) if unit.name in self._left else 0.0
        )

    def repeat_s(self, repeat: int) -> float:
        """Seconds that what is left of a repeat (from 0) probably takes."""
        return sum(
            self.expected_s(unit) for unit in self._left.values() if unit.visit.repeat == repeat
        )

    def expected_s(self, unit: Unit) -> float:
        """Seconds that a unit probably takes."""
        for like in unit.likes:
            seen = self._seen.get(like)
            if seen is not None:
                # Of the same unit this is the mean; of others it is the guess, corrected as those
                # had to be.
                beyond_s = (
                    unit.guess_s * seen.took_s / seen.guess_s
                    if seen.guess_s
                    else seen.took_s / seen.count
                )
                return unit.planned_s + beyond_s
        return unit.planned_s + unit.guess_s


def units(plan: Plan, whole: Collection[StepKey] = ()) -> list[Unit]:
    """All that is to be done of a plan of which the steps `whole` are measured, in order."""
    return [unit for visit in plan.visits for unit in _of_visit(plan, visit, whole)]


def work_of(way: Pass, workload: Workload) -> str:
    """What a workload of a pass is called among the units."""
    return " ".join(word for word in (workload.name, way.api, way.driver, way.layer or "") if word)


def show_duration(seconds: float) -> str:
    """As `7:05` or `1:07:05`."""
    minutes, rest = divmod(round(seconds), 60)
    return (
        f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
    )


def _of_visit(plan: Plan, visit: Visit, whole: Collection[StepKey]) -> list[Unit]:
    work: list[Unit] = []
    for ways in plan.groups(visit.layout):
        turns = [turn for turn in plan.turns(visit, ways) if turn.key not in whole]
        work += _of_turns(
            visit, turns, leaves=plan.suite.cleanup == "with-deployment" and _goes(plan)
        )
    if not work and plan.keys(visit):
        return []
    first = Unit(
        "stand", visit, guess_s=standing_s(plan.hardware, plan.suite, attest=plan.attested(visit))
    )
    # How long aging takes is not known before it was done once.
    aging = [Unit("age", visit)] if plan.suite.age is not None else []
    return [
        first,
        *aging,
        *work,
        Unit("down", visit, guess_s=DOWN_S if plan.hardware.of.measurable else 0.1),
    ]


def standing_s(hardware: Hardware, suite: Suite, *, attest: bool) -> float:
    """What standing a layout up takes at a guess, in seconds."""
    if not hardware.of.measurable:
        return 0.5
    return STANDING_S + (ATTESTING_S if asked_of_hosts(suite, sameness=attest) else 0.0)


def _goes(plan: Plan) -> bool:
    """Whether what is written goes with the deployment: what runs already outlives it."""
    return not plan.hardware.of.of_what_runs


def _of_turns(visit: Visit, turns: Sequence[StepTurn], *, leaves: bool) -> list[Unit]:
    """The units of steps that take turns. `leaves`: what they write is left where it is."""
    pairs = {work_of(turn.way, turn.workload): turn.workload for turn in turns}
    prepare = {
        work: Unit("prepare", visit, work, guess_s=DRIVER_S + _writing_s(one))
        for work, one in pairs.items()
    }
    clean = {
        work: Unit("clean", visit, work, guess_s=0.1 + _objects(one) / PREPARED_PER_S)
        for work, one in pairs.items()
    }
    found = list(prepare.values()) if leaves else []
    for _, some in groupby(turns, key=lambda turn: turn.workload.name):
        these = list(some)
        works = list(dict.fromkeys(work_of(turn.way, turn.workload) for turn in these))
        found += [] if leaves else [prepare[work] for work in works]
        found += [_step(visit, turn, leaves=leaves) for turn in these]
        found += [] if leaves else [clean[work] for work in works]
    return found


def _step(visit: Visit, turn: StepTurn, *, leaves: bool) -> Unit:
    workload = turn.workload
    writes = workload.operations.get("write", 0.0) / sum(workload.operations.values())
    beside_s = LEFT_STEP_S if leaves else STEP_S + writes * DELETING * step_seconds(workload)
    if "delete" in workload.operations:
        beside_s += _writing_s(workload)  # what a step deleted is there again before the next
    return Unit(
        "step",
        visit,
        work_of(turn.way, workload),
        turn.key.workers,
        planned_s=step_seconds(workload),
        guess_s=beside_s,
    )


def _objects(workload: Workload) -> int:
    return workload.objects.count if workload.needs_objects else 0


def _writing_s(workload: Workload) -> float:
    objects = _objects(workload)
    return objects / PREPARED_PER_S + objects * workload.objects.mean_bytes / PREPARED_BYTES_PER_S


class TimeAllowance:
    """The time that a run may still take.

    It passes from the moment this is made; `spent_s` had passed before.
    """

    def __init__(self, budget_s: float, *, spent_s: float = 0.0) -> None:
        self._ends = time.monotonic() + budget_s - spent_s

    def left_s(self) -> float:
        """Seconds that are left for measuring; below 0 when it has been used up."""
        return self._ends - time.monotonic() - REPORTING_S
