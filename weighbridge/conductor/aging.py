"""Aging the stores of a run before they are measured: how much, whether it fits, and what is said
of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from weighbridge.common.errors import TargetError
from weighbridge.common.quantities import show_bytes
from weighbridge.conductor.opening import NO_SETTINGS, DriverSettings, opened
from weighbridge.drivers.driver import Heard
from weighbridge.drivers.order import AgeBuckets, Aged
from weighbridge.drivers.process import DriverProcess
from weighbridge.gateways.gateway import Room
from weighbridge.results.record.step import Pass
from weighbridge.suites import Suite
from weighbridge.topologies.deployment import Deployment
from weighbridge.topologies.loader import Planned

MARK = "a"
"""What a run's prefix ends with for buckets that only age a store."""


def unfit(suite: Suite, planned: Sequence[Planned]) -> list[str]:
    """Why layouts cannot be aged as the suite asks, in words."""
    if suite.age is None:
        return []
    mute = [one.layout.name for one in planned if not one.gateway.apis()]
    found = [f"age: {name} has neither a Swift nor an S3 API to be filled over" for name in mute]
    if isinstance(suite.age.fill, float):
        unknown = [
            one.layout.name
            for one in planned
            if not {"rados", "object-server"} & set(one.gateway.layers())
        ]
        found += [
            f"age: nobody can tell what the disks of {name} hold: give fill in bytes, such as 2GB"
            for name in unknown
        ]
    return found


def buckets(suite: Suite, prefix: str) -> list[str]:
    """The buckets that aging makes."""
    if suite.age is None:
        return []
    name = suite.age.workload(1).name
    return [f"{prefix}{MARK}-{name}-{index}" for index in range(suite.age.containers)]


def order_of(suite: Suite, room: Room | None, lab_free_bytes: int | None = None) -> AgeBuckets:
    """What the driver is told. `lab_free_bytes`: what is left for the files that lab disks are.

    Raises TargetError when it does not fit: all that is ever written must, since what is deleted
    may be freed later; and when it is more than is ever written.
    """
    age = suite.age
    assert age is not None  # noqa: S101 - asked only then
    count = age.count(None if room is None else room.bytes / room.replicas)
    too_much = age.excess(count)
    if too_much:
        raise TargetError(
            f"aging: {too_much}",
            advice="Give age a smaller fill, larger objects, or fewer rounds of churn.",
        )
    if room is not None:
        mean_bytes = age.objects(count).mean_bytes
        ever_bytes = (count + age.churn * age.turnover(count)) * mean_bytes * room.replicas
        free = {"of its disks": room.free_bytes}
        if lab_free_bytes is not None:
            free["of this machine, in whose files its disks lie,"] = lab_free_bytes
        for whose, free_bytes in free.items():
            if ever_bytes > free_bytes:
                raise TargetError(
                    f"aging writes {show_bytes(ever_bytes)} in {room.replicas} replicas; "
                    f"{show_bytes(free_bytes)} {whose} are free",
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
    heard: Heard,
    settings: DriverSettings = NO_SETTINGS,
) -> Aged:
    """Have a driver do it, over the first API that the suite and the gateway both have.

    Raises DriverError.
    """
    known = [endpoint.api for endpoint in deployment.endpoints]
    api = next((api for api in suite.api if api in known), known[0])
    way = Pass(api=api, workloads=())
    with opened(
        deployment, suite, way, prefix=prefix + MARK, log=log, settings=settings, alone=True
    ) as ready:
        assert isinstance(ready.driver, DriverProcess)  # noqa: S101 - the default driver is a process
        return ready.driver.age(order, heard)


def told(order: AgeBuckets, aged: Aged, room: Room | None) -> list[str]:
    """What was done, a line for each part of it."""
    share = ""
    if room is not None:
        share = (
            f", {aged.filled_bytes * room.replicas / room.bytes:.2%} of "
            f"{show_bytes(room.bytes)} with {room.replicas} replicas"
        )
    lines = [f"filled with {order.objects} objects, {show_bytes(aged.filled_bytes)}{share}"]
    lines += [
        f"round {one.number + 1} of churn: {one.deleted} objects deleted "
        f"({show_bytes(one.deleted_bytes)}), "
        f"{one.written} written ({show_bytes(one.written_bytes)})"
        for one in aged.rounds
    ]
    return [
        *lines,
        (
            f"{aged.objects} objects, {show_bytes(aged.bytes)}, are there after {aged.seconds:.1f} s; "
            f"sum {aged.fingerprint}"
        ),
    ]


def facts(order: AgeBuckets, aged: Aged, room: Room | None) -> dict[str, str]:
    """As facts of the layout. How long it took is none: facts of two visits must be the same."""
    filled, *_ = told(order, aged, room)
    seed = "the suite's" if order.age.seed is None else str(order.age.seed)
    return {
        "age": filled,
        "age churn": f"{order.age.churn} rounds, in each {order.age.share:.0%} of the objects "
        "deleted and as many written",
        "age left": f"{aged.objects} objects, {show_bytes(aged.bytes)}; seed {seed}; sum over "
        f"names and sizes {aged.fingerprint}",
    }
