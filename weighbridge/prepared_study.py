"""A study prepared for a run: variants as checked layouts, its suite and its plan.

All faults are reported at once.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from weighbridge.common.document import Document, DocumentError, Fault, did_you_mean
from weighbridge.common.errors import UsageError
from weighbridge.conductor.plan import Plan, make_plan
from weighbridge.conductor.time_estimate import TimeEstimate
from weighbridge.drivers.kind import KINDS, loading
from weighbridge.results.figures.metrics import METRICS, compared
from weighbridge.results.run.step import Pass
from weighbridge.selection import hardware_named, layout_named
from weighbridge.suites import Suite
from weighbridge.suites.studies import (
    BANDWIDTH,
    HostNeed,
    HostRole,
    ScaleName,
    Study,
    StudyScale,
    Variant,
    loader,
)
from weighbridge.topologies.hardware import Disk, Hardware
from weighbridge.topologies.loader import Planned


def refuse_unmet(
    study: Study,
    scale: ScaleName,
    hardware: Hardware,
    planned: Sequence[Planned],
    despite: Sequence[str],
) -> tuple[str, ...]:
    """What hosts lack and `despite` accepts. Raises UsageError about all else that is lacking."""
    needs = study.scales[scale].needs
    known = [one.id for one in needs]
    strange = [name for name in despite if name not in known]
    if strange:
        hints = ", ".join(f"nothing named {name!r}{did_you_mean(name, known)}" for name in strange)
        which = f"It needs {', '.join(known)}." if known else "It needs nothing of its hosts."
        raise UsageError(f"study {study.name} at scale {scale} needs {hints}", advice=which)
    unmet = {
        one.id: f"{one.says} ({one.where}): {why}"
        for one in needs
        if (why := "; ".join(_lacking(one, hardware, planned)))
    }
    refused = [name for name in unmet if name not in despite]
    if refused:
        lines = [f"  {name}: {unmet[name]}" for name in refused]
        raise UsageError(
            f"study {study.name} at scale {scale}: hardware {hardware.name!r} lacks what its hosts "
            "had\n" + "\n".join(lines),
            advice="Use hosts that have it, or accept the difference by name, which the report "
            f"then says: --despite {','.join([*despite, *refused])}",
        )
    return tuple(unmet.values())


def _lacking(need: HostNeed, hardware: Hardware, planned: Sequence[Planned]) -> Iterator[str]:
    names = _named(need.of, hardware, planned)
    if need.hosts is not None and len(names) < need.hosts:
        yield f"{len(names)} of {need.hosts} hosts"
    for name in names:
        spec = hardware.hosts[name]
        if need.disks is not None and len(spec.disks) < need.disks:
            yield f"{name} has {len(spec.disks)}"
        if need.nic is not None and (spec.nic is None or spec.nic.rate is None):
            yield f"the rate of {name}’s NIC is not in the hardware file"
        elif need.nic is not None and spec.nic is not None and (spec.nic.rate or 0) < need.nic:
            yield f"{name}’s NIC has {(spec.nic.rate or 0) / 1e9:g} Gbit/s"
        if need.journal and (len(spec.disks) < 2 or _kind(spec.disks[-1]) == _kind(spec.disks[0])):
            yield f"{name}’s last disk is like its first"
    if need.mtu is not None and hardware.network.mtu < need.mtu:
        yield f"the MTU is {hardware.network.mtu}"
    if need.profile is not None and hardware.profile != need.profile:
        only = "" if hardware.of.by_ssh else ", which only real hosts can have"
        yield f"the hardware file has no `profile: {need.profile}`{only}"


def _kind(disk: Disk) -> tuple[object, ...]:
    return (disk.id, disk.bandwidth, disk.iops, None if disk.model is None else disk.model.base)


def _named(role: HostRole, hardware: Hardware, planned: Sequence[Planned]) -> list[str]:
    if role == "clients":
        return list(hardware.clients)
    if role == "all":
        roles: tuple[HostRole, ...] = ("clients", "gateways", "stores")
        return list(dict.fromkeys(host for one in roles for host in _named(one, hardware, planned)))
    disks = {name: len(spec.disks) for name, spec in hardware.hosts.items()}
    found: list[str] = []
    for one in planned:
        structure = one.gateway.structure(disks)
        if structure is not None:
            found += structure.stores if role == "stores" else structure.gateways
    return list(dict.fromkeys(found))


DEPLOYMENT_S: Final = 12.0
"""Time to start, verify and tear down a deployment on two cores, for estimates."""


@dataclass(frozen=True)
class PreparedStudy:
    """A study at one scale, checked. `text` is its file."""

    study: Study
    scale_name: ScaleName
    scale: StudyScale
    text: str
    planned: tuple[Planned, ...]
    plan: Plan
    lacking: tuple[str, ...] = ()
    """What the study's hosts had and these lack, as was accepted, in sentences."""

    @property
    def least_s(self) -> float:
        """Warm-ups, windows and deployments, without writing the objects to be read."""
        return self.plan.seconds + DEPLOYMENT_S * len(self.plan.visits)

    @property
    def least(self) -> str:
        return _duration(self.least_s)

    @property
    def brief(self) -> str:
        """What its run does, in one line."""
        counts = f"{len(self.plan.visits)} deployments, {self.plan.steps} steps"
        about = _duration(TimeEstimate.of(self.plan).left_s())
        return (
            f"{counts}, at least {self.least}; with the time to write the objects to be read about "
            f"{about} on two cores"
        )


def _duration(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 7200 else f"{seconds / 60:.0f} min"


def prepare(
    name: str,
    scale: ScaleName = "lab",
    *,
    hardware: str | None = None,
    only: Sequence[str] = (),
    repeats: int | None = None,
    driver: str | None = None,
    despite: Sequence[str] = (),
    ask: bool = False,
) -> PreparedStudy:
    """The study of a name or file, ready to run; `only`: these variants, without the others.

    `driver` replays its gateways instead of the suite's; `despite` names what the study's hosts had
    and these need not have; `ask`: real hosts are asked their size. Raises UsageError, or
    DocumentError with the faults of all variants; TargetError for hosts that do not answer.
    """
    path = loader.find(name)
    document, study = loader.load(path)
    if scale not in study.scales:
        raise UsageError(
            f"study {study.name} has no scale {scale}", advice=f"It has {', '.join(study.scales)}."
        )
    _check_metrics(document, study)
    chosen = study.scales[scale]
    variants = _chosen(study, chosen, only)
    named = hardware or chosen.hardware
    if named is None:
        raise UsageError(
            f"no hardware that ships is large enough for study {study.name} at scale {scale}",
            advice="Use --hardware FILE with the hosts that its layouts name: weighbridge "
            "topologies lists them.",
        )
    hosts = hardware_named(named)
    ends = {
        one.name: study.common + "".join(one.set for one in chosen.of_variant(one.name))
        for one in variants
    }
    planned = _layouts(document, variants, ends, hosts)
    if ask and (known := hosts.of.sized(hosts)) is not hosts:
        hosts, planned = known, _layouts(document, variants, ends, known)
    lacking = refuse_unmet(study, scale, hosts, planned, despite)
    suite = loader.suite_of(study, scale).changed(repeats=repeats, driver=driver)
    return PreparedStudy(
        study=study,
        scale_name=scale,
        scale=chosen,
        text=path.read_text(encoding="utf-8"),
        planned=planned,
        plan=_plan(chosen, suite, hosts, variants, planned),
        lacking=lacking,
    )


def _check_metrics(document: Document, study: Study) -> None:
    """Raises DocumentError if the study names metrics or columns that do not exist, with all."""
    columns = [metric.column for metric in METRICS.values()]
    keys = [*(metric.key for metric in compared()), BANDWIDTH]
    named: list[tuple[tuple[str | int, ...], str, list[str]]] = [
        (("conclusions", number, "checks", place, "metric"), check.metric, keys)
        for number, conclusion in enumerate(study.conclusions)
        for place, check in enumerate(conclusion.checks)
    ]
    named += [
        (("published", number, "figures", place, "ours"), figure.ours, columns)
        for number, published in enumerate(study.published)
        for place, figure in enumerate(published.figures)
        if figure.ours is not None
    ]
    named += [
        (("tables", number, "cells", column), column, columns)
        for number, table in enumerate(study.tables)
        for column in table.cells
    ]
    faults = [
        document.fault_at(at, f"no metric {name!r}{did_you_mean(name, known)}", key="cells" in at)
        for at, name, known in named
        if name not in known
    ]
    if faults:
        raise DocumentError(sorted(faults, key=lambda fault: (fault.line, fault.column)))


def _chosen(study: Study, scale: StudyScale, only: Sequence[str]) -> tuple[Variant, ...]:
    """The named variants of a scale, or all. Raises UsageError."""
    here = [
        variant
        for variant in study.variants
        if not scale.variants or variant.name in scale.variants
    ]
    known = [variant.name for variant in here]
    strange = [name for name in only if name not in known]
    if strange:
        hints = ", ".join(f"no variant {name!r}{did_you_mean(name, known)}" for name in strange)
        raise UsageError(f"study {study.name}: {hints} at this scale")
    return tuple(variant for variant in here if not only or variant.name in only)


def _layouts(
    document: Document, variants: Sequence[Variant], ends: Mapping[str, str], hardware: Hardware
) -> tuple[Planned, ...]:
    """The variants as layouts; `ends` are of references. Raises DocumentError with all faults."""
    faults: list[Fault] = []
    planned = []
    places = {one["name"]: number for number, one in enumerate(document.data["variants"])}
    for variant in variants:
        try:
            one = layout_named(variant.layout + ends[variant.name], hardware)
            named = one.layout.model_copy(update={"name": variant.name})
            planned.append(replace(one, layout=named))
        except DocumentError as error:
            # A fault points into the reference or the layout's file, which several variants use.
            faults += [
                replace(fault, message=f"variant {variant.name}: {fault.message}")
                for fault in error.faults
            ]
        except UsageError as error:
            place = ("variants", places[variant.name], "layout")
            faults.append(document.fault_at(place, error.message))
    if faults:
        raise DocumentError(faults)
    return tuple(planned)


def _plan(
    chosen: StudyScale,
    suite: Suite,
    hardware: Hardware,
    variants: Sequence[Variant],
    planned: Sequence[Planned],
) -> Plan:
    """The plan, with the layer below and the study's tools for variants that have them."""
    suite = suite.model_copy(update={"layouts": tuple(variant.name for variant in variants)})
    plan = make_plan(suite, hardware, planned, order_seed=secrets.randbelow(2**32))
    passes = {}
    for variant, one in zip(variants, planned, strict=True):
        ways = plan.passes[variant.name]
        if chosen.beneath and "rados" in one.gateway.layers():
            driver = loading("rados")[0]
            below = Pass(api="rados", driver=driver, layer="rados", workloads=chosen.beneath)
            ways = (*ways, below)
        ways = (*ways, *_beside(chosen, variant, one))
        passes[variant.name] = tuple(_by_variant(chosen, variant, way, suite) for way in ways)
    more = (*chosen.beneath, *chosen.tools)
    complete = Suite.model_validate({**suite.model_dump(), "workloads": [*suite.workloads, *more]})
    return plan.model_copy(update={"suite": complete, "passes": passes})


def _beside(chosen: StudyScale, variant: Variant, planned: Planned) -> tuple[Pass, ...]:
    """The passes of the study's tools on a variant. Raises UsageError for what one cannot do."""
    found = [
        Pass(
            api=one.api,
            driver=one.driver,
            layer=one.api,
            workloads=tuple(work for work in chosen.tools if work.name in one.workloads),
        )
        for one in chosen.beside
        if one.api in planned.gateway.layers()
        and (not one.variants or variant.name in one.variants)
    ]
    faults = [
        f"{work.name}: {why}"
        for one in found
        for work in one.workloads
        for why in KINDS.get_or_refuse(one.driver).unfit(work, one.api)
    ]
    if faults:
        raise UsageError("\n".join(faults), advice="Change the workload, or its driver.")
    return tuple(found)


def _by_variant(chosen: StudyScale, variant: Variant, way: Pass, suite: Suite) -> Pass:
    """A pass with the variant's own options of `rados bench`, and those of the scale."""
    own = [variant.rados, *(one.rados for one in chosen.of_variant(variant.name))]
    given = [one.model_dump(exclude_unset=True) for one in own if one is not None]
    if not given or way.api != "rados":
        return way
    options = suite.rados.model_dump()
    for one in given:
        options |= one
    return way.model_copy(update={"rados": type(suite.rados).model_validate(options)})
