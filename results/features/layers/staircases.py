"""Making staircases: the steps of a layout for a kind of requests, and what each is a share of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast

from weighbridge.common.structure import Level, StoreLayer, Structure
from weighbridge.results.features.layers.staircase import (
    HARDWARE,
    NAMES,
    Ceiling,
    CeilingGap,
    CeilingQuery,
    HardwareKind,
    LayerDoubt,
    LayerStep,
    Staircase,
    Transfer,
    above,
    ceiling,
)
from weighbridge.results.figures import doubt as doubts
from weighbridge.results.figures.steadiness import NOT_STEADY
from weighbridge.results.figures.summary import NOT_VALID, Row
from weighbridge.results.figures.use import UTILIZED, What, limit_brief
from weighbridge.results.judge.comparison import kind_of, subjects
from weighbridge.results.judge.run_data import RunData, of_run
from weighbridge.results.numbers import show_figure
from weighbridge.results.run import Attested, ResolvedPlan
from weighbridge.results.run.resolved import BenchedPool
from weighbridge.suites import Api, Operation


def in_pool(step: LayerStep, row: Row, pool: BenchedPool) -> LayerStep:
    """The step in a pool. No layer is a share of it unless gateways keep objects alike on the same
    devices. How many hosts those are is not known: one that does more is no error.
    """
    if step.throughput_ops_s is None:
        return step
    full = [
        one.words
        for one in row.resources
        if one.what == "CPU" and one.saturated and one.host == pool.host
    ]
    notes = (step.note, f"{pool.words}; from {pool.host}", pool.remark)
    return step.model_copy(
        update={
            "note": "; ".join(note for note in notes if note),
            "held": step.held or ", ".join(full),
            "lone_host": pool.host,
            "doubt": LayerDoubt(verdict="not below", text=pool.apart) if pool.apart else step.doubt,
        }
    )


BENCHED: Final[tuple[Level, ...]] = ("rados", "rbd", "cephfs")
"""What Ceph's benchmarks and fio load, from the gateway's host."""


def staircases(
    plan: ResolvedPlan, rows: Sequence[Row], layers: Sequence[Row], attested: Sequence[Attested]
) -> tuple[Staircase, ...]:
    """A staircase for each layout and kind of requests with bodies, of `rows` and `layers` by
    `rows_of`.
    """
    if not plan.suite.layers:
        return ()
    names = subjects(rows)
    heads = dict.fromkeys(
        (*kind_of(row), row.layout) for row in rows if row.operation in ("read", "write")
    )
    made = []
    for *kind, name in heads:
        mine = [row for row in rows if (*kind_of(row), row.layout) == (*kind, name)]
        if mine[0].object_size_bytes:
            own = [
                row
                for row in layers
                if (row.layout, row.workload, row.operation)
                == (name, mine[0].workload, mine[0].operation)
            ]
            made.append(
                _staircase(
                    plan,
                    mine,
                    own,
                    [one for one in attested if one.layout == name],
                    names[kind_of(mine[0])],
                )
            )
    return tuple(made)


def beside(layers: Sequence[Row]) -> tuple[Row, ...]:
    """What uses the same store beside the gateways: RBD and CephFS."""
    return tuple(row for row in layers if row.layer in ("rbd", "cephfs"))


@of_run
def stairs_of(data: RunData) -> tuple[Staircase, ...] | None:
    """The layers' staircases; None if the suite asks for none."""
    if not data.plan.suite.layers:
        return None
    return staircases(data.plan, data.every_row, data.layers, data.attested)


def own_stairs(data: RunData) -> tuple[Staircase, ...]:
    """The staircases without those of A/A controls; none where the suite asks for none."""
    return tuple(stair for stair in stairs_of(data) or () if stair.layout not in data.plan.twins)


def with_ceilings(rows: Sequence[Row], stairs: Iterable[Staircase]) -> tuple[Row, ...]:
    """The rows, with the ceilings of disks and network that each came close to, and a note on each
    that is above a layer below it; unbelievable ones are not ranked.
    """
    known = {(stair.kind, stair.layout): stair for stair in stairs}
    made = []
    for row in rows:
        stair = known.get((kind_of(row), row.layout))
        doubt = None
        ops_s = row.value("throughput")
        if stair is not None and row.ranked and ops_s:
            doubt = above(ops_s, stair.steps[:-1], row.operation, stair.daemons)
        if stair is not None and ops_s:
            row = row.model_copy(update={"reached": _reached(ops_s, stair)})  # noqa: PLW2901 - as below
        if doubt is not None:
            notes = {"notes": (*row.notes, f"{doubt.verdict}: {doubt.text}")}
            above_it = doubts.Doubt(
                what="above its ceiling", grade="grave", words=f"not believable: {doubt.text}"
            )
            more = {"doubts": (*row.doubts, above_it)} if doubt.verdict == "not believable" else {}
            row = row.model_copy(update=notes | more)  # noqa: PLW2901 - the same row with more known of it
        made.append(row)
    return tuple(made)


def _reached(ops_s: float, stair: Staircase) -> tuple[What, ...]:
    """Of disks and network those whose ceiling is used up to the share that counts as full."""
    steps: dict[What, LayerStep | None] = {
        "disk": stair.step("disk"),
        "network": stair.step("network"),
    }
    return tuple(
        what
        for what, step in steps.items()
        if step is not None
        and step.believable
        and step.throughput_ops_s
        and ops_s >= UTILIZED * step.throughput_ops_s
    )


def _staircase(
    plan: ResolvedPlan,
    rows: Sequence[Row],
    layers: Sequence[Row],
    attested: Sequence[Attested],
    about: str,
) -> Staircase:
    head = rows[0]
    layout = next(one for one in plan.layouts if one.name == head.layout)
    (workload,) = (one for one in plan.suite.workloads if one.name == head.workload)
    structure, pool = plan.structures.get(layout.name), plan.pools.get(layout.name)
    size = head.object_size_bytes or 0.0
    asked = CeilingQuery(
        operation=cast("Transfer", head.operation),
        size_bytes=size,
        in_order=workload.pick == "sequential",
        clients=plan.hardware.clients,
        nics_bit_s=plan.hardware.nics_bit_s,
    )
    store: StoreLayer | None = None if structure is None else structure.layer
    store = "rados" if pool is not None else store
    benched = store == "rados" and "osd" in plan.suite.layers and head.operation == "write"
    wanted = [one for one in HARDWARE if one != "osd" or benched]
    steps = [
        _hardware(kind, ceiling(kind, attested, structure, asked), size, plan) for kind in wanted
    ]
    mix = len(workload.operations) > 1
    for level in _levels(store, structure, head.api):
        if level == _top(structure, head.api):
            step = _best(rows, level, structure)
        else:
            own = [
                row
                for row in layers
                if row.layer == level and (level != "gateway" or row.api == head.api)
            ]
            step = _layer(plan, own, level, structure)
            if pool is not None and level == "rados" and own:
                step = in_pool(step, own[0], pool)
        steps.append(
            step.model_copy(
                update={"note": _joined(step.note, "a mix: other operations shared it")}
            )
            if mix
            else step
        )
    daemons = structure.daemons if structure is not None else 1
    return Staircase(
        layout=head.layout,
        workload=head.workload,
        operation=head.operation,
        api=head.api,
        driver=head.driver,
        about=about,
        object_size_bytes=size,
        daemons=daemons,
        steps=_shared(steps, head.operation, daemons, _beneath(structure, attested, asked)),
    )


def _top(structure: Structure | None, api: Api) -> Level:
    if api in ("swift", "s3"):
        return "front" if structure is not None and structure.front is not None else "gateway"
    return cast("Level", api)


def _levels(store: StoreLayer | None, structure: Structure | None, api: Api) -> list[Level]:
    top = _top(structure, api)
    levels: list[Level] = [] if store is None or store == top else [store]
    levels += ["gateway"] if top == "front" else []
    return [*levels, top]


def _hardware(
    kind: HardwareKind, found: Ceiling | CeilingGap, size_bytes: float, plan: ResolvedPlan
) -> LayerStep:
    if isinstance(found, CeilingGap):
        # The network is always attested, with one figure per pair of hosts that communicate.
        why = (
            found.why
            if kind == "network" or kind not in plan.suite.layers
            else found.why.replace(f": --layers {kind}", "")
        )
        return LayerStep(level=kind, name=NAMES[kind], note=why)
    return _rated(kind, found, size_bytes)


def _rated(kind: HardwareKind, found: Ceiling, size_bytes: float) -> LayerStep:
    return LayerStep(
        level=kind,
        name=NAMES[kind],
        throughput_ops_s=found.bytes_s / size_bytes,
        bandwidth_mb_s=found.bytes_s / 1e6,
        bound=found.bound,
        note=found.how,
    )


def _best(rows: Sequence[Row], level: Level, structure: Structure | None) -> LayerStep:
    """The suite's own steps: the best over the worker counts."""
    name = (
        structure.front
        if level == "front" and structure is not None and structure.front
        else NAMES[level]
    )
    ranked = [row for row in rows if row.ranked and row.value("throughput")]
    if not ranked:
        return LayerStep(level=level, name=name, note=_why_not(rows))
    best = max(ranked, key=lambda row: row.value("throughput") or 0.0)
    return _measured(best, level, name, structure, 1)


def _layer(
    plan: ResolvedPlan, rows: Sequence[Row], level: Level, structure: Structure | None
) -> LayerStep:
    ranked = [row for row in rows if row.ranked and row.value("throughput")]
    if not ranked:
        unasked = (
            "not possible for these requests"
            if level in plan.suite.layers
            else f"not measured: --layers {level}"
        )
        why = _why_not(rows) if rows else unasked
        return LayerStep(level=level, name=NAMES[level], note=why)
    times = 1
    if level == "object-server" and ranked[0].operation == "write":
        if structure is None:
            return LayerStep(
                level=level, name=NAMES[level], note="the number of replicas is unknown"
            )
        times = structure.replicas
    step = _measured(ranked[0], level, NAMES[level], structure, times)
    if level == "gateway" and structure is not None and structure.daemons > 1:
        return step.model_copy(
            update={"note": _joined(step.note, f"one of {structure.daemons} daemons")}
        )
    return step


def _measured(
    row: Row, level: Level, name: str, structure: Structure | None, times: int
) -> LayerStep:
    ops_s = row.value("throughput")
    assert ops_s is not None  # noqa: S101 - rows without it are gaps
    mb_s = row.value("bandwidth")
    replicas = (
        f"{show_figure(ops_s)} writes/s to single disks, divided by {times} replicas"
        if times > 1
        else ""
    )
    return LayerStep(
        level=level,
        name=name,
        throughput_ops_s=ops_s / times,
        bandwidth_mb_s=None if mb_s is None else mb_s / times,
        workers=row.workers,
        saturated=limit_brief(row.resources),
        held=_held(row, level, structure),
        note=replicas,
    )


def _held(row: Row, level: Level, structure: Structure | None) -> str:
    """The CPU that ran out on the load generator: the gateway's host, else a client."""
    hosts = structure.gateways if level in BENCHED and structure is not None else ()
    full = [
        one
        for one in row.resources
        if one.what == "CPU" and one.saturated and (one.tier == "client" or one.host in hosts)
    ]
    return ", ".join(one.words for one in full)


def _why_not(rows: Sequence[Row]) -> str:
    notes = [
        next((note for note in row.notes if note not in (NOT_VALID, NOT_STEADY)), NOT_VALID)
        for row in rows
    ]
    return notes[0] if notes else "not measured"


def _beneath(
    structure: Structure | None, attested: Sequence[Attested], asked: CeilingQuery
) -> dict[Level, LayerStep]:
    """The network, by layer, for layers that are not loaded from where the gateway is, if known."""
    if structure is None:
        return {}
    nearby = structure.model_copy(update={"entrances": structure.gateways})
    benches = ceiling(
        "network", attested, nearby, asked.model_copy(update={"clients": structure.gateways})
    )
    direct = structure.model_copy(
        update={"entrances": asked.clients, "gateways": asked.clients, "copied_by": "gateway"}
    )
    engine = ceiling("network", attested, direct, asked)
    found = {**dict.fromkeys(BENCHED, benches), "object-server": engine}
    return {
        level: _rated("network", one, asked.size_bytes)
        for level, one in found.items()
        if isinstance(one, Ceiling)
    }


def _shared(
    steps: Sequence[LayerStep],
    operation: Operation,
    daemons: int,
    beneath: Mapping[Level, LayerStep],
) -> tuple[LayerStep, ...]:
    """The steps with their shares of what is below them, and remarks."""
    made: list[LayerStep] = []
    for step in steps:
        rate = step.throughput_ops_s
        if rate is not None:
            below = list(made)
            if step.level in (*BENCHED, "object-server"):
                own = beneath.get(step.level)
                below = [one for one in made if one.level != "network"] + (
                    [] if own is None else [own]
                )
            lower = _under(step, below)
            disks = next((one.throughput_ops_s for one in made if one.level == "disk"), None)
            doubt = None if step.level == "network" else above(rate, below, operation, daemons)
            doubt = step.doubt or doubt
            if step.held and (doubt is None or doubt.verdict != "not believable"):
                where = f"{step.held} ran out on its load generator: the layer can do more"
                doubt = doubt or LayerDoubt(verdict="at least", text=where)
            step = step.model_copy(  # noqa: PLW2901 - the same step with more known of it
                update={
                    "below": None if lower is None else lower.level,
                    "of_below": None
                    if lower is None or not lower.throughput_ops_s
                    else rate / lower.throughput_ops_s,
                    "of_disks": rate / disks if disks and step.level != "disk" else None,
                    "doubt": doubt,
                }
            )
        made.append(step)
    return tuple(made)


def _under(step: LayerStep, made: Sequence[LayerStep]) -> LayerStep | None:
    """What a step is a share of: the next known layer below; of the hardware the smallest."""
    if step.level in ("disk", "network"):
        return None
    known = [one for one in made if one.throughput_ops_s is not None and one.carries]
    layers = [one for one in known if one.level not in HARDWARE]
    return (
        layers[-1]
        if layers
        else min(known, key=lambda one: one.throughput_ops_s or 0.0, default=None)
    )


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)
