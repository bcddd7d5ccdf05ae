"""The plan of a run: when each layout is started, and which steps are measured on it."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final

from pydantic import Field

from weighbridge.common.errors import UsageError
from weighbridge.common.record import Record
from weighbridge.common.structure import Structure
from weighbridge.conductor import aging, durability
from weighbridge.conductor.outage import faults_left_out
from weighbridge.conductor.passes import left_out, passes_of, refuse, together
from weighbridge.drivers.kind import KINDS
from weighbridge.gateways.sizing import Sized
from weighbridge.results.features.rate_search import MOST_AT_A_RATE
from weighbridge.results.run.profile import Chosen
from weighbridge.results.run.resolved import BenchedPool, LatencyBound
from weighbridge.results.run.step import Pass, StepKey
from weighbridge.suites import (
    VERSIONS,
    Suite,
    Workload,
    continues,
    encryption_needs,
    signing_needs,
    whole,
)
from weighbridge.suites.workload import REPEATED_AFTER_BYTES
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import Layout, Planned

# The order in which the blocks of a run visit its layouts, balanced by position and predecessor.
#
# The design is E. J. Williams' (Australian Journal of Scientific Research A 2, 1949): a Latin
# square in which each layout has every position once and follows every other layout once. For an
# even number of layouts it is one square; for an odd number, a square and its mirror image, in
# which each has every position twice and follows every other twice. Which layout is which letter
# of the square, and the order of its rows, is drawn again for every design; the number of blocks
# may cut the last short.


def blocks(names: Sequence[str], count: int, seed: int) -> tuple[tuple[str, ...], ...]:
    """`count` blocks of all names, balanced over each `design_length` of them; fixed by `seed`."""
    drawn = random.Random(seed)  # noqa: S311 - this is a seeded order, not a secret
    found: list[tuple[str, ...]] = []
    while len(found) < count:
        found += _design(names, drawn)
    return tuple(found[:count])


def design_length(layouts: int) -> int:
    """The number of blocks after which the order of so many layouts is balanced."""
    return layouts if layouts % 2 == 0 or layouts == 1 else 2 * layouts


def _design(names: Sequence[str], drawn: random.Random) -> list[tuple[str, ...]]:
    size = len(names)
    letters = drawn.sample(names, size)
    # 0, 1, size - 1, 2, size - 2 ...: the steps from each to the next are all different, in every
    # row.
    zigzag = [(place + 1) // 2 if place % 2 else -place // 2 for place in range(size)]
    square = [tuple(letters[(start + step) % size] for step in zigzag) for start in range(size)]
    squares = [square] if design_length(size) == size else [square, [row[::-1] for row in square]]
    drawn.shuffle(squares)
    return [row for one in squares for row in drawn.sample(one, size)]


def refuse_what_layouts_lack(suite: Suite, planned: Sequence[Planned]) -> None:
    """Raise UsageError for what a layout is known not to do, or a driver not on it."""
    _refuse_lone_drivers(suite, planned)
    _refuse_repeated_content(suite, planned)
    _refuse_ways(suite, planned)
    _refuse_lacking(suite, planned)


def _refuse_lone_drivers(suite: Suite, planned: Sequence[Planned]) -> None:
    """Raise UsageError when clients use several endpoints of a layout and a driver cannot."""
    spread = [one.layout.name for one in planned if one.gateway.spreads()]
    lone = [name for name in suite.drivers if not KINDS.get_or_refuse(name).spreads]
    lone += ["users: sdk"] if suite.users == "sdk" else []
    if spread and lone:
        what = f"{', '.join(spread)}: several endpoints, but {', '.join(lone)} would use only one"
        refuse([what], "Use Locust with the engine, or a layout with one endpoint or a front.")


def _refuse_repeated_content(suite: Suite, planned: Sequence[Planned]) -> None:
    """Raise UsageError where objects would be compressed as their content repeats itself."""
    packed = [
        f"{one.layout.name} ({one.gateway.compresses})" for one in planned if one.gateway.compresses
    ]
    unsaid = [
        one.name
        for one in suite.workloads
        if one.objects.compressible is None and one.objects.largest_bytes > REPEATED_AFTER_BYTES
    ]
    if packed and unsaid:
        raise UsageError(
            f"{', '.join(packed)} compresses objects, and those of {', '.join(unsaid)} repeat "
            f"themselves after {REPEATED_AFTER_BYTES:,} bytes",
            advice="Set in the suite how well they compress, as in `objects: {compressible: 50%}`.",
        )


def _refuse_ways(suite: Suite, planned: Sequence[Planned]) -> None:
    faults = [
        f"{workload.name}: {one.layout.name} ({one.layout.release}): {lacked[way]}"
        for one in planned
        if "s3" in suite.api and (lacked := one.gateway.s3_lacks())
        for workload in suite.workloads
        for way in (
            *signing_needs(workload.signed, tls=one.gateway.own_ca),
            *encryption_needs(workload.encrypted),
        )
        if way in lacked
    ]
    refuse(
        faults,
        "Leave that `signing` or `encryption` out, or choose another release; see docs/signing.md "
        "and docs/keeping.md.",
    )


def _refuse_lacking(suite: Suite, planned: Sequence[Planned]) -> None:
    faults = [
        f"{workload.name}: {one.layout.name} ({one.layout.release}) has no {operation} over {api}: "
        f"{lacked[operation]}"
        for one in planned
        for api in one.gateway.apis()
        if api in suite.api and (lacked := one.gateway.operations_lacked(api))
        for workload in suite.workloads
        for operation in (*workload.operations, *((VERSIONS,) if workload.versions else ()))
        if operation in lacked
    ]
    refuse(
        faults,
        "Leave that operation or API out, or choose another layout or release; see "
        "docs/what-is-sent.md.",
    )


AGAIN: Final = "-again"
"""Ends the name of a layout's A/A control."""
NAME_LENGTH: Final = 40
"""The longest name of a layout, as `results.run.step.Slug` has it."""
MOST_STEPS: Final = 100_000
"""Ten times as many as any run had; with one second each they take a day."""
NO_CONTROLS: Final[Mapping[str, str]] = MappingProxyType({})


class Visit(Record):
    """One deployment of one layout: all steps of the suite, once."""

    layout: str
    repeat: int
    """Counts from 0."""


@dataclass(frozen=True)
class StepTurn:
    """One step of a visit, with its pass and workload."""

    way: Pass
    workload: Workload
    key: StepKey


class Plan(Record):
    """All that a run does, resolved: written to the run folder before anything starts."""

    suite: Suite
    hardware: Hardware
    layouts: tuple[Layout, ...]
    visits: tuple[Visit, ...]
    passes: dict[str, tuple[Pass, ...]]
    left_out: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Layers of the suite not measured on each layout, or not with all workloads, and why."""
    structures: dict[str, Structure] = Field(default_factory=dict)
    """The structure of each layout for which it is known."""
    by_size: dict[str, tuple[Sized, ...]] = Field(default_factory=dict)
    """The settings of each layout that follow the size of its hosts."""
    twins: dict[str, str] = Field(default_factory=dict)
    """A/A controls and the layouts that they repeat: their differences are noise."""
    attest: bool = False
    """Whether hosts are measured before the first visit of each layout that is not a control."""
    pools: dict[str, BenchedPool] = Field(default_factory=dict)
    """Pools that existed before, by the layouts whose layer `rados` is measured in them."""
    profile: Chosen | None = None
    """The step that is profiled once on every layout."""
    capabilities: bool = False
    """Whether each layout is asked what it is capable of, after its last step."""
    budget_s: Annotated[float, Field(gt=0)] | None = None
    """Time for the whole run, in seconds; None: as long as it takes."""
    order_seed: Annotated[int, Field(ge=0)]
    """Seed of the order of visits, and of shuffled workloads and worker counts."""
    find: LatencyBound | None = None
    """The bound in which each gateway's highest rate is searched; None: none is."""

    @property
    def steps(self) -> int:
        """How many steps are measured in all; with searches, at most."""
        ordinary = sum(len(workload.workers) for workload in self._replayed())
        searched = sum(len(self.searched(visit)) for visit in self.visits)
        return ordinary + MOST_AT_A_RATE * searched

    @property
    def seconds(self) -> float:
        """Warm-ups and windows of all steps, in seconds: the least time that the run takes."""
        return sum(step_seconds(workload) * len(workload.workers) for workload in self._replayed())

    def blocks(self) -> tuple[tuple[Visit, ...], ...]:
        """The visits of each repeat, in order."""
        return tuple(
            tuple(block) for _, block in groupby(self.visits, key=lambda visit: visit.repeat)
        )

    def groups(self, layout: str) -> tuple[tuple[Pass, ...], ...]:
        """The passes of a layout, in groups whose steps take turns."""
        return together(self.passes[layout])

    def turns(self, visit: Visit, ways: Sequence[Pass]) -> tuple[StepTurn, ...]:
        """Steps of passes in turn: workload by workload, count by count. The first of two drivers
        changes from count to count and repeat to repeat.
        """
        found = []
        for number, workload in enumerate(self._ordered(visit, ways[0].workloads)):
            for place, workers in enumerate(self._counts(visit, workload)):
                found += _turned(visit, ways, workload, workers, number + place)
        return tuple(found)

    def prepared(self, visit: Visit, ways: Sequence[Pass]) -> tuple[StepTurn, ...]:
        """Workloads that are prepared, not measured, each at its first count; as `turns`."""
        found = []
        prepared = self._ordered(visit, ways[0].prepared)
        for number, workload in enumerate(prepared, len(ways[0].workloads)):
            if not continues(workload):
                found += _turned(visit, ways, workload, workload.workers[0], number)
        return tuple(found)

    def keys(self, visit: Visit) -> tuple[StepKey, ...]:
        """The steps of a visit, in order."""
        return tuple(
            turn.key for ways in self.groups(visit.layout) for turn in self.turns(visit, ways)
        )

    def searched(self, visit: Visit) -> tuple[StepKey, ...]:
        """The steps of a visit after which a rate is searched."""
        if self.find is None:
            return ()
        faulted = {one.name for one in self.suite.workloads if one.fault is not None}
        return tuple(
            key for key in self.keys(visit) if key.layer is None and key.workload not in faulted
        )

    def cuts_missing(self, folder: Path) -> tuple[tuple[str, bool], ...]:
        """Missing passes of cuts: layout, and whether its control's. Raises InvalidMeasurement."""
        wanted = self.suite.durability
        names = [one.name for one in self.layouts if one.name not in self.twins]
        return () if wanted is None else durability.missing(folder, names, wanted)

    def grown(self) -> Plan | None:
        """The plan with the next of the further blocks; None if there are no more."""
        further = self.suite.further
        if further is None:
            return None
        repeat = self.suite.repeats
        fewer = None
        if further.blocks > 1:
            fewer = further.model_copy(update={"blocks": further.blocks - 1})
        suite = self.suite.model_copy(update={"repeats": repeat + 1, "further": fewer})
        names = [layout.name for layout in self.layouts]
        block = blocks(names, repeat + 1, self.order_seed)[repeat]
        more = tuple(Visit(layout=name, repeat=repeat) for name in block)
        return self.model_copy(update={"suite": suite, "visits": (*self.visits, *more)})

    def asked(self, visit: Visit) -> bool:
        """Whether a layout is asked at the end of this visit what it is capable of."""
        last = [one for one in self.visits if one.layout == visit.layout][-1]
        return self.capabilities and visit.layout not in self.twins and visit == last

    def attested(self, visit: Visit) -> bool:
        """Whether the hosts of a visit are measured."""
        first = next(one for one in self.visits if one.layout == visit.layout)
        return self.attest and visit.layout not in self.twins and visit == first

    def _ordered(self, visit: Visit, workloads: Sequence[Workload]) -> Sequence[Workload]:
        """Workloads of a pass in their order; shuffled, in that of the block, alike on all layouts.

        What a control measures leads: it must have done all that its layout did before. What
        deletes objects of others comes after these.
        """
        suite = self.suite
        if suite.order != "shuffle":
            return workloads
        lead = _end(suite.workloads, suite.control) if isinstance(suite.control, tuple) else 0
        drawn = random.Random(f"{self.order_seed} {visit.repeat}")  # noqa: S311 - as in `balance`
        place: dict[str, tuple[bool, float]] = {}
        for number, one in enumerate(suite.workloads):
            drawn_at = drawn.random()
            place[one.name] = place.get(whole(one).name, (number >= lead, drawn_at))
        return sorted(workloads, key=lambda one: place[one.name])

    def _counts(self, visit: Visit, workload: Workload) -> Sequence[int]:
        order = self.suite.order
        if order == "shuffle":
            drawn = random.Random(f"{self.order_seed} {visit.repeat} {workload.name}")  # noqa: S311 - as in `balance`
            return drawn.sample(workload.workers, len(workload.workers))
        return sorted(workload.workers, reverse=order == "descending")

    def _replayed(self) -> list[Workload]:
        return [
            workload
            for visit in self.visits
            for one in self.passes[visit.layout]
            for workload in one.workloads
        ]


def keys_of(visit: Visit, way: Pass, workload: Workload) -> tuple[StepKey, ...]:
    """The steps of a workload in a pass of a visit, in the order of the workload."""
    return tuple(_key(visit, way, workload, workers) for workers in workload.workers)


def _control(suite: Suite, passes: Sequence[Pass]) -> tuple[Pass, ...]:
    """An A/A control's passes: nothing before the last named workload is left out, as that changes
    steps; of later ones objects are written as elsewhere.
    """
    named = suite.control
    if not isinstance(named, tuple):
        return tuple(passes)
    groups = list(together(passes))
    while groups and not _end(groups[-1][0].workloads, named):
        groups.pop()
    if not groups:
        return ()
    *whole, last = groups
    found = [one for ways in whole for one in ways]
    for one in last:
        end = _end(one.workloads, named)
        rest = one.workloads[end:] if suite.cleanup == "with-deployment" else ()
        found.append(one.model_copy(update={"workloads": one.workloads[:end], "prepared": rest}))
    return tuple(found)


def _end(workloads: Sequence[Workload], named: Collection[str]) -> int:
    return max((place for place, one in enumerate(workloads, 1) if one.name in named), default=0)


def _turned(
    visit: Visit, ways: Sequence[Pass], workload: Workload, workers: int, number: int
) -> list[StepTurn]:
    """A step of each pass, of which another one is the first each time."""
    first = (visit.repeat + number) % len(ways)
    turned = (*ways[first:], *ways[:first])
    return [StepTurn(way, workload, _key(visit, way, workload, workers)) for way in turned]


def _key(visit: Visit, way: Pass, workload: Workload, workers: int) -> StepKey:
    return StepKey(
        layout=visit.layout,
        api=way.api,
        workload=workload.name,
        workers=workers,
        repeat=visit.repeat,
        driver=way.driver,
        layer=way.layer,
    )


def step_seconds(workload: Workload) -> float:
    """Warm-up and window of one step, in seconds."""
    return workload.warmup + workload.runtime


def control_of(one: Planned) -> Planned:
    """The A/A control of a layout: the same again; any difference is noise of the test bed."""
    name = f"{one.layout.name[: NAME_LENGTH - len(AGAIN)]}{AGAIN}"
    return replace(one, layout=one.layout.model_copy(update={"name": name}))


def refuse_same_names(planned: Sequence[Planned]) -> None:
    """Raise UsageError if two layouts have one name."""
    names = [one.layout.name for one in planned]
    twice = sorted({name for name in names if names.count(name) > 1})
    what = [f"two layouts are named {', '.join(twice)}"] if twice else []
    refuse(what, "Their results would look alike: rename one of them.")


def make_plan(
    suite: Suite,
    hardware: Hardware,
    planned: Sequence[Planned],
    *,
    controls: Mapping[str, str] = NO_CONTROLS,
    order_seed: int | None = None,
    find: LatencyBound | None = None,
) -> Plan:
    """The plan of a suite over checked layouts; `controls` names A/A controls and their layouts.
    With `find`, rates are searched within that bound (`weighbridge.conductor.passes`).

    Each repeat is a block that visits every layout once: interleaved trials, so that a drift of the
    machine affects all of them (Abedi and Brecht 2017), in an order that is balanced (see
    `weighbridge.conductor.plan`) and drawn from the suite's `order_seed`, else from the given
    one, else from the suite's seed. A run of one repeat keeps the given order. Raises UsageError if
    a layout lacks an API, a driver cannot do a workload or verify TLS, or there are too many steps.
    """
    refuse_same_names(planned)
    lacking = [
        f"{one.layout.name} does not have the {api} API"
        for one in planned
        for api in suite.api
        if api not in (*one.gateway.apis(), *one.gateway.layers())
    ]
    advice = "Different interfaces cannot be compared: give an --api that all layouts have."
    refuse(lacking, advice, "; ")
    refuse_what_layouts_lack(suite, planned)
    lone = faults_left_out(suite, hardware, planned)
    unfit = aging.unfit(suite, planned)
    refuse(unfit, "Change `age` of the suite, or leave those layouts out.")
    durability.refuse_unfit(suite.durability, planned, hardware)
    unverified = [
        f"{driver} cannot use the CA of {one.layout.name}, so it cannot verify its TLS"
        for one in planned
        if one.gateway.own_ca
        for driver in suite.drivers
        if not KINDS.get_or_refuse(driver).takes_ca_file
    ]
    refuse(unverified, "Use --driver locust, or those layouts without TLS.")
    disks = {name: len(spec.disks) for name, spec in hardware.hosts.items()}
    structures = {one.layout.name: one.gateway.structure(disks) for one in planned}
    passes = {}
    for one in planned:
        left = lone.get(one.layout.name, {})
        kept = tuple(workload for workload in suite.workloads if workload.name not in left)
        own = suite.model_copy(update={"workloads": kept})
        structure = structures[one.layout.name]
        replicas = 1 if structure is None else structure.replicas
        passes[one.layout.name] = passes_of(own, one.gateway.layers(), replicas)
    passes |= {name: _control(suite, passes[name]) for name in controls}
    idle = {name: one for name, one in controls.items() if passes[one] and not passes[name]}
    planned = [one for one in planned if one.layout.name not in idle]
    steps = suite.repeats * sum(
        len(workload.workers)
        for one in planned
        for way in passes[one.layout.name]
        for workload in way.workloads
    )
    many = [f"the plan has {steps:,} steps; the limit is {MOST_STEPS:,}"]
    advice = "Ask for fewer repeats, worker counts, workloads or layouts."
    refuse(many if steps > MOST_STEPS else (), advice)
    given = [one for one in (suite.order_seed, order_seed, suite.seed) if one is not None]
    names = [one.layout.name for one in planned]
    row = blocks(names, suite.repeats, given[0]) if suite.repeats > 1 else (tuple(names),)
    visits = [
        Visit(layout=name, repeat=repeat) for repeat, block in enumerate(row) for name in block
    ]
    layouts = tuple(one.layout for one in planned)
    return Plan(
        suite=suite,
        hardware=hardware,
        layouts=layouts,
        visits=tuple(visits),
        passes={name: passes[name] for name in names},
        left_out={
            one.layout.name: (
                *(f"{name}: {why}" for name, why in lone.get(one.layout.name, {}).items()),
                *left_out(suite, one.gateway.layers(), one.gateway.no_layer),
                *(
                    ["A/A control: no workload that it names runs here"]
                    * (one.layout.name in idle.values())
                ),
            )
            for one in planned
        },
        structures={name: one for name, one in structures.items() if one and name in names},
        by_size={one.layout.name: one.sizing for one in planned if one.sizing},
        twins={name: controls[name] for name in controls if name not in idle},
        order_seed=given[0],
        find=find,
    )
