"""The part of `plan.resolved.json` that results read.

The conductor writes the file and it holds more. Unknown keys are ignored, so that a plan can grow
without a change of reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, ConfigDict, Field, NonNegativeInt, PositiveInt, model_validator

from weighbridge.common.escaping import escape_controls
from weighbridge.common.quantities import CpuList
from weighbridge.common.record import Record
from weighbridge.common.structure import Redundancy, Structure
from weighbridge.results.run.step import Pass, Slug, StepKey
from weighbridge.suites import Suite

MANIFEST_VERSION: Final = 1
"""1: the first. The version of the run folder."""


Line = Annotated[str, AfterValidator(lambda text: escape_controls(text).replace("\n", "\\n"))]
"""A text in one line: a folder may come from anybody, and a line end in a name would forge one."""

State = Literal["running", "done", "failed", "interrupted"]


class Sheet(Record):
    """Facts under one title, in order: `machine`, `driver`, and those of layouts (`layout`)."""

    title: Line
    layout: Line | None = None
    facts: dict[Line, Line] = Field(default_factory=dict)


class ConfigFile(Record):
    """A configuration file as written to a host of a layout, secrets replaced by `***`."""

    layout: str
    host: str
    path: str
    text: str


class Manifest(Record):
    """What is known of a run apart from its steps. Times are UTC, ISO 8601, for people."""

    schema_version: Literal[1] = MANIFEST_VERSION
    run_id: Line
    suite: Line
    state: State
    created_at: Line
    ended_at: Line | None = None
    error: str = ""
    """Why it failed, in words; empty if it did not."""
    command: tuple[Line, ...] = ()
    """The command line that repeats the run."""
    weighbridge_version: Line = ""
    sheets: tuple[Sheet, ...] = ()
    configs: tuple[ConfigFile, ...] = ()


BUSY: Final = "busy"
"""Kind of event: a deployment was started on a busy machine."""


UNEVEN: Final = "uneven"
"""Kind of event: the storage hosts of a deployment do not share the reads evenly."""


class RunEvent(Record):
    """One line of `events.jsonl`: what the conductor did, and when."""

    at: Line
    kind: Line
    text: str
    layout: Line | None = None
    repeat: int | None = None
    """Which deployment of the layout, from 0, where it matters."""
    share: float | None = None
    """For `busy` events: the share, 0 to 1, of this machine's CPUs that others used."""


class BenchedPool(Record):
    """A pool when the run began; None: its user may not know. Unknown keys are ignored."""

    model_config = ConfigDict(extra="ignore")

    host: str
    """Where `rados bench` runs."""
    pool: str
    user: str
    kept: Redundancy | None = None
    """Its replicas or fragments."""
    pg_num: PositiveInt | None = None
    rule: NonNegativeInt | None = None
    """The number of its CRUSH rule, which says on which devices it is."""
    stores: tuple[str, ...] = ()
    """Pools in which gateways of this cluster keep objects, or may."""
    apart: str = ""
    """Why what gateways reach is no share of it; empty: objects are kept alike on the same devices.
    """
    remark: str = ""
    """What else to know of it, such as who uses it."""

    @property
    def words(self) -> str:
        """Such as `pool bench: 3 replicas, 32 placement groups, CRUSH rule 0`."""
        known = [] if self.kept is None else [kept_words(self.kept)]
        known += [] if self.pg_num is None else [f"{self.pg_num} placement groups"]
        known += [] if self.rule is None else [f"CRUSH rule {self.rule}"]
        return f"pool {self.pool}: {', '.join(known) or 'its replicas are not known'}"

    @property
    def facts(self) -> Mapping[str, str]:
        """The same for a table of a layout's facts."""
        unknown = "not known"
        return {
            "pool": f"{self.pool}, by {self.user} on {self.host}; it existed before",
            "pool: replicas": unknown if self.kept is None else kept_words(self.kept),
            "pool: placement groups": unknown if self.pg_num is None else str(self.pg_num),
            "pool: CRUSH rule": unknown if self.rule is None else str(self.rule),
            "pool: pools of gateways": ", ".join(self.stores) or unknown,
            "pool: shares of it": f"none: {self.apart}" if self.apart else "as of a layer below",
            **({"pool: remark": self.remark} if self.remark else {}),
        }


def kept_words(kept: Redundancy) -> str:
    """`3 replicas`, `1 replica` or `erasure coding 2+1`."""
    if kept.fragments is not None:
        return f"erasure coding {kept.fragments}"
    return f"{kept.replicas} replica{'s' * (kept.replicas != 1)}"


class LatencyBound(Record):
    """`p90 <= 50 ms`. The metric is a key of `weighbridge.results.figures.metrics`."""

    metric: Annotated[str, Field(pattern=r"^[a-z][a-z0-9.-]*$", max_length=80)]
    most_ms: Annotated[float, Field(gt=0)]

    def __str__(self) -> str:
        return f"{self.metric} <= {self.most_ms:g} ms"


class _Part(Record):
    model_config = ConfigDict(extra="ignore")


class PlannedLayout(_Part):
    """A planned layout."""

    name: Slug
    about: Line = ""
    gateway: Line
    release: Line = ""
    place: dict[str, Any] = Field(default_factory=dict)
    """Which hosts each service runs on, as in the layout file."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """The settings of each service, as the layout gives them."""
    by_size: dict[str, int] = Field(default_factory=dict)
    """Others by dotted key, which follow the size of its hosts; `ResolvedPlan` fills them in."""
    sizes: tuple[str, ...] = ()
    """Keys of those that are sizes in bytes; filled in with them."""


class SettingBySize(_Part):
    """A setting that follows the size of hosts."""

    key: Annotated[str, Field(max_length=200)]
    """Its dotted key."""
    value: int
    size: bool = False
    """Whether it is a size in bytes."""


class PlannedDisk(_Part):
    """A disk of a host."""

    bandwidth: float | None = None
    """Limit in bytes per second, each way."""
    iops: float | None = None
    """Limit in requests per second, each way."""
    model: dict[str, str | float | None] | None = None
    """The figures of a disk's model, its name as `base`; None: it has none."""


class PlannedNic(_Part):
    """The NIC of a host."""

    rate: float | None = None
    """Its limit in bit/s, each way."""
    delay: Annotated[float, Field(ge=0)] = 0.0
    """Seconds that what it sends takes to its peer."""


class PlannedHost(_Part):
    """A host of the hardware file. None: no limit."""

    cpus: float | None = None
    cpuset: CpuList | None = None
    """The CPUs of its own, such as `2-3,5`."""
    memory: float | None = None
    """In bytes."""
    nic: PlannedNic | None = None
    disks: tuple[PlannedDisk, ...] = ()

    def cpu_words(self, periods: str) -> str:
        """Such as `0.6 CPU in periods of 10 ms` or `CPUs 2-3`; `periods` follows a quota."""
        own = "" if self.cpuset is None else f"CPUs {self.cpuset}"
        if self.cpus is None:
            return own or "any CPU"
        return f"{self.cpus:g} CPU{periods}{own and f' of {own}'}"


class PlannedHardware(_Part):
    """The hardware file of the run."""

    name: Line
    about: Line = ""
    kind: Line = ""
    clients: tuple[Line, ...] = ()
    cpu_period: float | None = None
    """Period of the hosts' CPU quotas in seconds; None: the kernel's own."""
    hosts: dict[str, PlannedHost] = Field(default_factory=dict)

    @property
    def nics_bit_s(self) -> dict[str, float]:
        """NIC limits of the hosts that have one."""
        nics = {name: host.nic for name, host in self.hosts.items() if host.nic is not None}
        return {name: nic.rate for name, nic in nics.items() if nic.rate is not None}


class PlannedVisit(_Part):
    """One deployment of one layout, in the block of a repeat."""

    layout: str
    repeat: int


class ProfiledStep(_Part):
    """The step that was profiled."""

    workload: Line


class ResolvedPlan(_Part):
    """What was to be measured."""

    suite: Suite
    hardware: PlannedHardware
    layouts: Annotated[tuple[PlannedLayout, ...], Field(min_length=1)]
    by_size: dict[str, tuple[SettingBySize, ...]] = Field(default_factory=dict)
    """By layout."""
    visits: tuple[PlannedVisit, ...] = ()
    """In planned order."""
    passes: dict[str, tuple[Pass, ...]] = Field(default_factory=dict)
    """By layout; without any, all workloads are replayed on it over each API of the suite."""
    structures: dict[str, Structure] = Field(default_factory=dict)
    """By layout, where known."""
    pools: dict[str, BenchedPool] = Field(default_factory=dict)
    """By layout, pools that existed before, in which layer `rados` was measured."""
    order_seed: int | None = None
    """The seed of the order of visits, and of shuffled workloads and worker counts."""
    twins: dict[str, str] = Field(default_factory=dict)
    """A/A controls and the layouts that they repeat: they differ by the test bed's noise alone."""
    find: LatencyBound | None = None
    """The bound within which the highest rate is searched; None: none is."""
    profile: ProfiledStep | None = None

    @model_validator(mode="after")
    def _coherent(self) -> ResolvedPlan:
        known = {workload.name for workload in self.suite.workloads}
        for layout, passes in self.passes.items():
            names = (workload.name for one in passes for workload in one.workloads)
            for name in names:
                if name not in known:
                    why = f"{layout} replays {name!r}, which is not a workload of the suite"
                    raise ValueError(why)
        if not self.by_size:
            return self
        layouts = [
            one.model_copy(
                update={
                    "by_size": {each.key: each.value for each in own},
                    "sizes": tuple(each.key for each in own if each.size),
                }
            )
            for one in self.layouts
            for own in (self.by_size.get(one.name, ()),)
        ]
        return self.model_copy(update={"layouts": tuple(layouts)})

    @property
    def measured(self) -> tuple[str, ...]:
        """Names of the layouts in order, without A/A controls."""
        return tuple(layout.name for layout in self.layouts if layout.name not in self.twins)

    def repairable(self, key: StepKey) -> bool:
        """Whether a step may be measured again by itself. A search goes on from its steps; what
        died in one, or was profiled in it, is recorded with its first measurement.
        """
        broken = {one.name for one in self.suite.workloads if one.fault is not None}
        profiled = self.profile is not None and self.profile.workload == key.workload
        return self.find is None and key.workload not in broken and not profiled

    def passes_of(self, layout: str) -> tuple[Pass, ...]:
        if layout in self.passes:
            return self.passes[layout]
        return tuple(Pass(api=api, workloads=self.suite.workloads) for api in self.suite.api)
