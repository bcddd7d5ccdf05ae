"""A suite: named workloads and how they are replayed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, get_args

from pydantic import Field, ValidationInfo, field_validator, model_validator

from weighbridge.common.document import WRITTEN, did_you_mean
from weighbridge.common.endpoint import ObjectApi
from weighbridge.common.errors import UsageError
from weighbridge.common.layers import Layer
from weighbridge.common.quantities import Seconds, parse_seconds
from weighbridge.common.record import Record
from weighbridge.common.registry import Registry
from weighbridge.suites.age import Age
from weighbridge.suites.workload import Name, Workload

Api = Literal[ObjectApi, "rados", "object-server", "rbd", "cephfs"]
"""What requests are made by: an API of gateways, or one of what is below them (`rados`, Swift's
`object-server`) or beside them.
"""

DriverName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
"""What makes the load of a step, by its name among those that are installed (entry point group
`weighbridge.drivers`).
"""
DRIVER_NAMES: Registry[object] = Registry("weighbridge.drivers", "driver")
"""Asked for names alone: no driver is imported here."""
DEFAULT_DRIVER: DriverName = "locust"
BOTH = "both"
"""Two drivers as suites could name them before they could name any: locust,cosbench."""

ASKED_OF_HOSTS: tuple[Layer, ...] = ("disk", "network", "osd")


class Every(Record):
    """Caches dropped again and again while a step runs; the 2014 study did so every minute."""

    every: Annotated[Seconds, Field(ge=1)]


def every(value: object) -> object:
    """`every 60s` as what Every is made from; anything else as it is.

    Raises ValueError when its time is none.
    """
    if isinstance(value, str) and value.startswith("every "):
        return {"every": parse_seconds(value.removeprefix("every ").strip())}
    return value


class Bounds(Record):
    """What a step may show and still be valid, and by how much two must differ for it to matter."""

    error_share: Annotated[float, Field(ge=0, le=1)] = 0.001
    """Share of operations that may fail (0.1 %: design rule 20)."""
    throughput_ratio: Annotated[float, Field(ge=1)] = 1.05
    """Throughputs nearer to each other than this are of no practical weight, however sure the
    difference is (design rule 16).
    """
    p90_ratio: Annotated[float, Field(ge=1)] = 1.10
    """The same of 90th percentiles."""
    p99_ratio: Annotated[float, Field(ge=1)] = 1.10
    """The same of 99th percentiles."""
    max_ratio: Annotated[float, Field(ge=1)] = 1.25
    """The same of maxima: one request decides them."""
    first_byte_ratio: Annotated[float, Field(ge=1)] = 1.10
    """The same of times to first byte."""


class Further(Record):
    """Blocks beyond `repeats`: after each it is looked whether every cell is clear, and the run
    ends where all are.
    """

    blocks: Annotated[int, Field(ge=1, le=100)]
    """At most so many."""
    within: Annotated[Seconds, Field(gt=0)]
    """None is begun that would not end within this time of the run's beginning, in seconds, its
    report included.
    """


class RadosBenchOptions(Record):
    """How `rados bench` is run: so many at once, each with a pool of its own; the workers of a step
    are shared out to them.
    """

    instances: Annotated[int, Field(ge=1, le=64)] = 1
    pg_num: Annotated[int, Field(ge=1, le=32768)] = 32
    """Placement groups of all its pools together."""

    @model_validator(mode="after")
    def _powers(self) -> RadosBenchOptions:
        if self.pg_num & (self.pg_num - 1):
            raise ValueError(f"pg_num {self.pg_num} is not a power of two")
        return self


class Suite(Record):
    """What is replayed against every gateway of a run."""

    name: Name
    about: str
    api: Annotated[tuple[Api, ...], Field(min_length=1)] = ("swift",)
    workloads: Annotated[tuple[Workload, ...], Field(min_length=1, max_length=100)]
    layouts: tuple[str, ...] = ("rgw-beast", "swift")
    """Names of layouts compared when the command names none."""
    driver: str = DEFAULT_DRIVER
    """What makes the load on gateways: the name of a driver, or of two with a comma between for
    each step by the one and then by the other; `both` is locust,cosbench."""
    users: Literal["engine", "sdk"] = "engine"
    """Who makes the requests: the native engine, or boto3 / python-swiftclient as an application
    would.
    """
    processes: Annotated[int, Field(ge=1, le=64)] = 1
    """Locust worker processes a client host."""
    timeout: Annotated[Seconds, Field(ge=1, le=3600)] = 60.0
    """What a request may take until it is given up, in seconds. 1 h is the longest latency that
    histograms tell from others.
    """
    repeats: Annotated[int, Field(ge=1, le=1000)] = 1
    cache: Literal["none", "before-step"] | Every = "before-step"
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 2014
    """What the requests are drawn from: the same for every gateway, repeat by repeat."""
    order: Literal["ascending", "descending", "shuffle"] = "ascending"
    """In which order a workload's worker counts are measured; `shuffle`: drawn for each block, the
    same for all of its layouts.
    """
    order_seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    """What the order of layouts, and of shuffled worker counts, is drawn from; None: drawn for each
    run, and recorded.
    """
    cleanup: Literal["after-step", "with-deployment"] = "after-step"
    """When what was written goes: after the step or the workload that wrote it, or with the
    deployment at the end of a visit. All workloads of such a visit are prepared before its first
    step."""
    control: bool | tuple[Name, ...] = False
    """Whether the first layout is measured twice a block, as two layouts (an A/A control): what
    differs between them is noise. Names of workloads: with these alone."""
    further: Further | None = None
    """Blocks that follow those of `repeats` where a difference is not clear; None: none do."""
    bounds: Bounds = Bounds()
    layers: tuple[Layer, ...] = ()
    """Layers below and beside the gateways that are measured in the same deployments, each where a
    layout has it.
    """
    rados: RadosBenchOptions = RadosBenchOptions()
    age: Age | None = None
    """What each store is filled and churned with before it is measured; None: stores are fresh."""

    @property
    def drivers(self) -> tuple[DriverName, ...]:
        """The drivers of its gateways, in order."""
        return _named(self.driver)

    @property
    def sizes_bytes(self) -> tuple[int, ...]:
        """Sizes of the objects that are read or written, each once and in order; of drawn sizes it
        is their mean.
        """
        found = {
            round(one.objects.mean_bytes)
            for one in self.workloads
            if {"read", "write"} & set(one.operations)
        }
        return tuple(sorted(found))

    def changed(
        self,
        *,
        repeats: int | None = None,
        driver: str | None = None,
        layers: Sequence[str] | None = None,
    ) -> Suite:
        """The suite with what a command line says otherwise; None leaves what is there.

        Raises UsageError.
        """
        wanted = {"repeats": repeats, "driver": driver, "layers": layers}
        given = {name: value for name, value in wanted.items() if value is not None}
        strange = [name for name in layers or () if name not in get_args(Layer)]
        if strange:
            known = list(get_args(Layer))
            hints = ", ".join(f"no layer {name!r}{did_you_mean(name, known)}" for name in strange)
            raise UsageError(hints, advice=f"Layers are {', '.join(known)}.")
        if why := _strange(driver or DEFAULT_DRIVER):
            raise UsageError(why, advice=f"Drivers are {', '.join(DRIVER_NAMES)}.")
        return Suite.model_validate({**self.model_dump(), **given}) if given else self

    @field_validator("cache", mode="before")
    @classmethod
    def _every(cls, value: object) -> object:
        return every(value)

    @field_validator("driver")
    @classmethod
    def _installed(cls, value: str, info: ValidationInfo) -> str:
        # Of a run that is read it need not be installed: what it measured is there.
        if info.context == WRITTEN and (why := _strange(value)):
            raise ValueError(why)
        return value

    @field_validator("layouts", "api", "layers")
    @classmethod
    def _once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) != len(value):
            raise ValueError("the same name twice")
        return value

    @model_validator(mode="after")
    def _distinct(self) -> Suite:
        names = [workload.name for workload in self.workloads]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two workloads are named {', '.join(twice)}")
        if isinstance(self.control, tuple):
            strange = [name for name in self.control if name not in names]
            if strange or not self.control:
                raise ValueError(
                    f"control: no workload {strange[0]!r}"
                    if strange
                    else "control: no workload; say false or leave it out"
                )
        return self


def _named(drivers: str) -> tuple[DriverName, ...]:
    return tuple(
        name.strip() for name in ("locust,cosbench" if drivers == BOTH else drivers).split(",")
    )


def _strange(drivers: str) -> str:
    """Why a suite cannot be replayed by drivers of such names; empty where it can."""
    names, known = _named(drivers), list(DRIVER_NAMES)
    if len(set(names)) != len(names) or len(names) > 2:
        return "one driver or two are named, with a comma between"
    return ", ".join(
        f"no driver {name!r}{did_you_mean(name, [*known, BOTH])}"
        for name in names
        if name not in known
    )
