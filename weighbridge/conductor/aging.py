"""Aging the stores of a run before they are measured: how much, whether it fits, what was done."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from weighbridge.common.errors import TargetError
from weighbridge.common.quantities import show_bytes
from weighbridge.common.structure import Redundancy
from weighbridge.conductor.opening import NO_SETTINGS, DriverSettings, opened
from weighbridge.drivers.process import DriverProcess
from weighbridge.drivers.protocol import AgeBuckets, Aged, OnProgress
from weighbridge.gateways.gateway import DiskSpace
from weighbridge.results.run.step import Pass
from weighbridge.suites import Suite
from weighbridge.topologies.deployment import Deployment
from weighbridge.topologies.loader import Planned

MARK = "a"
"""Ends a run's prefix for buckets that only age a store."""


def unfit(suite: Suite, planned: Sequence[Planned]) -> list[str]:
    """Why layouts cannot be aged as the suite asks, in words."""
    if suite.age is None:
        return []
    found = [
        f"age: {one.layout.name} has neither a Swift nor an S3 API to write to"
        for one in planned
        if not one.gateway.apis()
    ]
    if isinstance(suite.age.fill, float):
        found += [
            f"age: the disk space of {one.layout.name} is not known: give fill in bytes, such as "
            "2GB"
            for one in planned
            if not _knows_space(one)
        ]
    return found


def _knows_space(one: Planned) -> bool:
    structure = one.gateway.structure({})
    coded = structure is not None and structure.fragments is not None
    ours = not one.gateway.already_runs
    return coded or (ours and bool({"rados", "object-server"} & set(one.gateway.layers())))


def _parts(kept: Redundancy) -> str:
    if kept.fragments is not None:
        return f"{kept.redundancy} fragments"
    return "1 replica" if kept.redundancy == "1" else f"{kept.redundancy} replicas"


def buckets(suite: Suite, prefix: str) -> list[str]:
    """The buckets that aging makes."""
    if suite.age is None:
        return []
    name = suite.age.workload(1).name
    return [f"{prefix}{MARK}-{name}-{index}" for index in range(suite.age.containers)]


def order_of(suite: Suite, room: DiskSpace | None, lab_free_bytes: int | None = None) -> AgeBuckets:
    """The order for the driver. `lab_free_bytes`: free space for the files behind lab disks.

    Raises TargetError if it does not fit: there must be room for all that is ever written, since
    what is deleted may be freed later; and if it is more than a driver writes.
    """
    age = suite.age
    assert age is not None  # noqa: S101 - called only then
    count = age.count(None if room is None else room.bytes / room.kept.times_kept)
    too_much = age.excess(count)
    if too_much:
        raise TargetError(
            f"aging: {too_much}",
            advice="Give age a smaller fill, larger objects, or fewer rounds of churn.",
        )
    if room is not None:
        mean_bytes = age.objects(count).mean_bytes
        ever_bytes = (count + age.churn * age.turnover(count)) * mean_bytes * room.kept.times_kept
        free = {"on its disks": room.free_bytes}
        if lab_free_bytes is not None:
            free["on this machine, whose files are its disks,"] = lab_free_bytes
        for where, free_bytes in free.items():
            if ever_bytes > free_bytes:
                raise TargetError(
                    f"aging writes {show_bytes(ever_bytes)} in {_parts(room.kept)}; "
                    f"{show_bytes(free_bytes)} {where} are free",
                    advice="Give age a smaller fill, or fewer rounds of churn.",
                )
    return AgeBuckets(age=age, objects=count)


def age(
    deployment: Deployment,
    suite: Suite,
    order: AgeBuckets,
    *,
    prefix: str,
    log: Path,
    on_progress: OnProgress,
    settings: DriverSettings = NO_SETTINGS,
) -> Aged:
    """Age a store over the first API that the suite and the gateway share. Raises DriverError."""
    known = [endpoint.api for endpoint in deployment.endpoints]
    api = next((api for api in suite.api if api in known), known[0])
    way = Pass(api=api, workloads=())
    with opened(
        deployment, suite, way, prefix=prefix + MARK, log=log, settings=settings, alone=True
    ) as ready:
        assert isinstance(ready.driver, DriverProcess)  # noqa: S101 - the default driver is a process
        return ready.driver.age(order, on_progress)


def describe(order: AgeBuckets, aged: Aged, room: DiskSpace | None) -> list[str]:
    """What was done, a line for each part."""
    share = ""
    if room is not None:
        percent = f"{aged.filled_bytes * room.kept.times_kept / room.bytes:.2%}"
        share = f", {percent} of {show_bytes(room.bytes)} with {_parts(room.kept)}"
    filled = f"filled with {order.objects} objects, {show_bytes(aged.filled_bytes)}{share}"
    rounds = (
        f"round {one.number + 1} of churn: {one.deleted} objects deleted "
        f"({show_bytes(one.deleted_bytes)}), {one.written} written "
        f"({show_bytes(one.written_bytes)})"
        for one in aged.rounds
    )
    left = f"{aged.objects} objects, {show_bytes(aged.bytes)}, after {aged.seconds:.1f} s"
    return [filled, *rounds, f"{left}; checksum {aged.fingerprint}"]


def facts(order: AgeBuckets, aged: Aged, room: DiskSpace | None) -> dict[str, str]:
    """The facts of the layout, without the time it took: those of two visits must be the same."""
    filled, *_ = describe(order, aged, room)
    seed = "the suite's" if order.age.seed is None else str(order.age.seed)
    return {
        "age": filled,
        "age churn": f"{order.age.churn} rounds, in each {order.age.share:.0%} of the objects "
        "deleted and as many written",
        "age left": f"{aged.objects} objects, {show_bytes(aged.bytes)}; seed {seed}; sum over "
        f"names and sizes {aged.fingerprint}",
    }
