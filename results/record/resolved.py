"""What the results read of `plan.resolved.json`: the suite, the layouts in the order asked for, and
the hardware's name.

The file is written by the conductor and holds more; what is not named here is passed over, not
refused, so that a plan can grow without making older reports unreadable.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from weighbridge.common.structure import Structure
from weighbridge.results.record.step import Pass, Slug
from weighbridge.suites import Suite


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class PlannedLayout(_Part):
    """A layout as it was planned."""

    name: Slug
    about: str = ""
    gateway: str
    release: str = ""
    place: dict[str, Any] = Field(default_factory=dict)
    """Which hosts each service sits on, as the layout's file says it."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """What is set of each service, defaults filled in."""


class PlannedDisk(_Part):
    """A disk of a host."""

    bandwidth: float | None = None
    """Limit in bytes a second, each way."""
    iops: float | None = None
    """Limit in requests a second, each way."""


class PlannedHost(_Part):
    """A host of the hardware file. None: no limit."""

    cpus: float | None = None
    memory: float | None = None
    """In bytes."""
    nic: float | None = None
    """Limit of its NIC in bit/s."""
    disks: tuple[PlannedDisk, ...] = ()


class PlannedHardware(_Part):
    """The hardware file of the run."""

    name: str
    about: str = ""
    kind: str = ""
    clients: tuple[str, ...] = ()
    cpu_period: float | None = None
    """Period of the hosts' CPU quotas in seconds; None: the plan does not tell it."""
    hosts: dict[str, PlannedHost] = Field(default_factory=dict)

    @property
    def nics_bit_s(self) -> dict[str, float]:
        """Limits of the NICs of those hosts that have one."""
        return {name: host.nic for name, host in self.hosts.items() if host.nic is not None}


class PlannedVisit(_Part):
    """One standing of one layout, in the block of a repeat."""

    layout: str
    repeat: int


class ResolvedPlan(_Part):
    """What was to be measured."""

    suite: Suite
    hardware: PlannedHardware
    layouts: Annotated[tuple[PlannedLayout, ...], Field(min_length=1)]
    visits: tuple[PlannedVisit, ...] = ()
    """In the order in which they were to be made; empty in plans that do not tell it."""
    passes: dict[str, tuple[Pass, ...]] = Field(default_factory=dict)
    """By layout; empty in runs that were made before there was more than one driver."""
    structures: dict[str, Structure] = Field(default_factory=dict)
    """By layout, of those of which it is known."""
    order_seed: int | None = None
    """What the order of visits and of shuffled worker counts was drawn from; None where the plan
    does not tell.
    """
    twins: dict[str, str] = Field(default_factory=dict)
    """Layouts that are another one once more, and which: what differs between the two is the noise
    of the rig.
    """

    @model_validator(mode="after")
    def _coherent(self) -> ResolvedPlan:
        known = {workload.name for workload in self.suite.workloads}
        for layout, passes in self.passes.items():
            strange = [
                workload.name
                for one in passes
                for workload in one.workloads
                if workload.name not in known
            ]
            if strange:
                raise ValueError(
                    f"on {layout} {strange[0]!r} is replayed, which is no workload of the suite"
                )
        return self

    @property
    def own(self) -> tuple[str, ...]:
        """Names of the layouts without controls, in order."""
        return tuple(layout.name for layout in self.layouts if layout.name not in self.twins)

    @property
    def balanced(self) -> bool:
        """Whether each of several layouts was to stand at each place of a block equally often, but
        for once; no where not told.
        """
        blocks: dict[int, list[str]] = {}
        for one in self.visits:
            blocks.setdefault(one.repeat, []).append(one.layout)
        names = {one.layout for one in self.visits}
        if len(names) < 2 or len(blocks) < 2:
            return False
        for at_place in zip(*blocks.values(), strict=False):
            counts = [at_place.count(name) for name in names]
            if max(counts) - min(counts) > 1:
                return False
        return True

    def passes_of(self, layout: str) -> tuple[Pass, ...]:
        """What was to be replayed on a layout, in order."""
        return self.passes.get(layout) or tuple(
            Pass(api=api, workloads=self.suite.workloads) for api in self.suite.api
        )
