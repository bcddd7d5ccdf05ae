"""Telemetry: what every host of a deployment used, and its daemons reported, in each second.

Each step has its own file, `telemetry/STEP.jsonl`, written as it goes: a `head` line with the hosts
and their limits, a `host` line for each host and second, a `probe` line for each line that a probe
reported, and finally a `tail`. Seconds count from the start of the step's window, so the warm-up
has negative ones. What is unknown is None or absent, never a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal

from pydantic import Field, NonNegativeFloat, PositiveInt, TypeAdapter

from weighbridge.common.quantities import Count
from weighbridge.common.record import Record
from weighbridge.common.structure import DaemonCounters
from weighbridge.results.run.step import Cpus, StepKey

TELEMETRY_VERSION: Final = 1

Tier = Literal["client", "gateway", "storage", "shared", "machine"]
"""What a host does: makes load, answers clients, keeps data, or the last two on one host.

`machine` is the machine that runs a lab's hosts as containers: what it used apart from them.
"""

Phase = Literal["warm-up", "measure", "drain", "unplaced"]
"""Where in a step a line falls; `unplaced`: the window never opened."""

EDGE_S: Final = 0.1
"""A sample due at the window's end may be this late and still belongs to the window."""

SpentSeconds = Annotated[float, Field(ge=0, le=1e12)]
"""Time used or waited for between two samples, over all CPUs or requests; more is a bad reading."""


class DiskLimit(Record):
    """Limits of a disk in bytes and requests a second, each way; None: unlimited."""

    bandwidth_bytes_s: Annotated[Count, Field(gt=0)] | None = None
    iops: Annotated[Count, Field(gt=0)] | None = None
    model: str | None = None
    """The model of a lab's disk and its figures, in words; None: it has none."""


class HostLimits(Record):
    """A host, its tier and its limits. None: unlimited."""

    host: str
    tier: Tier
    cpus: Cpus | None = None
    cores: Annotated[int, Field(ge=1, le=10**6)] | None = None
    """The CPUs of a machine that is this host's alone; None: shared."""
    cpu_period_ms: Annotated[float, Field(gt=0)] | None = None
    """Period of its CPU quota. None: it has none, or the kernel's own period."""
    memory_bytes: Annotated[Count, Field(gt=0)] | None = None
    nic_bits_s: Annotated[float, Field(ge=1)] | None = None
    disks: tuple[DiskLimit, ...] = ()


class Head(Record):
    """The first line: the step and its hosts."""

    kind: Literal["head"] = "head"
    schema_version: Literal[1] = TELEMETRY_VERSION
    key: StepKey
    hosts: tuple[HostLimits, ...]
    daemons: tuple[DaemonCounters, ...] = ()
    """Which of the daemons' counters to show, as their probes declare it."""


class ModelDiskSecond(Record):
    """What a disk with a model counted of itself between two samples, beside the kernel."""

    reads: Count
    writes: Count
    read_bytes: Count
    written_bytes: Count
    flushes: Count
    destages: Count
    """Runs of bytes that went from its volatile cache to the media."""
    destaged_bytes: Count
    busy_s: SpentSeconds
    """How long the head, or a flash channel on average, worked."""
    waited_s: SpentSeconds
    """Sum over all requests: per second, the mean number in flight."""
    late_s: SpentSeconds
    """How much later than its model says it answered, in sum: what the machine added."""
    cached_bytes: Count
    """In its volatile cache at the later sample."""


class DiskSecond(Record):
    """What one disk did between two samples."""

    read_bytes: Count
    written_bytes: Count
    reads: Count
    writes: Count
    busy_s: SpentSeconds
    """Time with requests in progress, in kernel ticks: too high when requests are short."""
    waited_s: SpentSeconds
    """Sum over all requests."""
    model: ModelDiskSecond | None = None
    """What a disk with a model says itself; None: it has none."""


class HostSecond(Record):
    """What one host used between two samples `span_s` apart; `at_s` is the time of the later one.

    Memory is as of the later sample, everything else the increase since the earlier one.
    """

    kind: Literal["host"] = "host"
    second: int
    at_s: float
    span_s: Annotated[float, Field(gt=0)]
    phase: Phase
    host: str
    tier: Tier
    cpu_s: SpentSeconds | None = None
    throttled_s: SpentSeconds | None = None
    cpu_periods: Count | None = None
    throttled_periods: Count | None = None
    memory_bytes: Count | None = None
    memory_held_bytes: Count | None = None
    """Without the page cache of files."""
    oom_kills: Count | None = None
    disks: tuple[DiskSecond, ...] | None = None
    received_bytes: Count | None = None
    sent_bytes: Count | None = None
    network_faults: Count | None = None
    conductor_cpu_s: SpentSeconds | None = None
    """For `machine`: the part of `cpu_s` of this suite, and of the program of modelled disks."""
    kernel_cpu_s: SpentSeconds | None = None
    """For `machine`: the part of `cpu_s` used by the kernel, for the hosts' disks and network too.
    """


class ProbeSecond(Record):
    """One line of a probe: gauges as they were, counters since the daemon started."""

    kind: Literal["probe"] = "probe"
    second: int
    at_s: float
    phase: Phase
    host: str
    probe: str
    values: dict[str, float]


class Tail(Record):
    """The last line. Older runs have `opened_within_s`, which nobody read."""

    kind: Literal["tail"] = "tail"
    opened_within_s: NonNegativeFloat | None = None
    gaps: tuple[str, ...] = ()
    """What could not be sampled, and why."""


TelemetryLine = Annotated[Head | HostSecond | ProbeSecond | Tail, Field(discriminator="kind")]
LINE: Final[TypeAdapter[TelemetryLine]] = TypeAdapter(TelemetryLine)


class Telemetry(Record):
    """The telemetry of one step. `tail` is None if the step was cut short, as by a kill."""

    head: Head
    hosts: tuple[HostSecond, ...] = ()
    probes: tuple[ProbeSecond, ...] = ()
    tail: Tail | None = None

    def within(self, window_s: float) -> tuple[HostSecond, ...]:
        """The hosts' seconds inside a window of this length."""
        return tuple(
            one
            for one in self.hosts
            if one.phase != "unplaced"
            and one.at_s - one.span_s >= -EDGE_S
            and one.at_s <= window_s + EDGE_S
        )

    def probes_within(self, window_s: float) -> tuple[ProbeSecond, ...]:
        """The probes' lines inside a window of this length."""
        return tuple(
            one
            for one in self.probes
            if one.phase != "unplaced" and 0 <= one.at_s <= window_s + EDGE_S
        )


def mean_rate(seconds: Sequence[HostSecond], name: str) -> float | None:
    """The mean increase per second of a counter of HostSecond; None if a sample lacks it."""
    values = [getattr(one, name) for one in seconds]
    if not values or any(value is None for value in values):
        return None
    return float(sum(values)) / sum(one.span_s for one in seconds)


Kind = Literal["cpu", "disk", "network", "osd"]
Unit = Literal["events/s", "B/s", "1/s", "bit/s"]


class Attested(Record):
    """One line of `attestation.jsonl`: one figure of one host of one deployment; higher is better.

    `promised` is the limit in the hardware file, in the same unit, if there is one. For a CPU quota
    it is derived from what the same CPU did without the quota, so it differs between deployments.
    """

    layout: str
    repeat: int
    host: str
    kind: Kind
    what: str
    """For example `CPU`, `disk wb0 random read` or `network to client-1`."""
    value: Annotated[float, Field(gt=0)]
    unit: Unit
    promised: Annotated[float, Field(gt=0)] | None = None
    operation: Literal["read", "write"] | None = None
    pick: Literal["sequential", "random"] | None = None
    request_bytes: PositiveInt | None = None
    """Set with `operation` for figures used by a staircase: the request size; `unit` is then B/s.
    """
    sender: str | None = None
    receiver: str | None = None
    """Set for network figures: which host sent to which."""
