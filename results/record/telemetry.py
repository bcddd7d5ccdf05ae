"""Telemetry: what every host of a deployment used, every second of a step, and what daemons told of
themselves.

A step has a file of its own, `telemetry/STEP.jsonl`, written as it goes: one `head` with the hosts
and their limits, then a `host` line for each host and second and a `probe` line for each line that
a probe told, and at last one `tail`. Seconds count from the start of the step's window, so those of
the warm-up are negative. What is unknown is None or absent, never a number.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, NonNegativeFloat, TypeAdapter

from weighbridge.common.counters import DaemonCounters
from weighbridge.common.quantities import Count
from weighbridge.common.record import Record
from weighbridge.results.record import earlier
from weighbridge.results.record.measurement import Cpus
from weighbridge.results.record.step import StepKey

TELEMETRY_VERSION: Final = 1
"""1: the first."""

Tier = Literal["client", "gateway", "storage", "shared", "machine"]
"""What a host is for: making the load, answering clients, keeping data, or the last two on one
host.

`machine` is the machine that all hosts of a lab are containers of: what it used beside them was not
theirs to use.
"""

Phase = Literal["warm-up", "measure", "drain", "unplaced"]
"""Where in a step a line falls; `unplaced` where the window never opened: its seconds count from
the start of the sampling.
"""

EDGE_S: Final = 0.1
"""A sample is due at the window's end and comes a little late: by so much it may be and still
belongs to the window.
"""

SpentSeconds = Annotated[float, Field(ge=0, le=1e12)]
"""Time that was used or waited between two samples, of all CPUs or requests together: what is more
was never counted.
"""


class DiskLimit(Record):
    """Limits of one disk; bytes and requests a second, each of reading and of writing.

    None: not limited.
    """

    bandwidth_bytes_s: Annotated[int, Field(gt=0)] | None = None
    iops: Annotated[int, Field(gt=0)] | None = None


class HostLimits(Record):
    """A host, what it is for, and what it may use. None: not limited."""

    host: str
    tier: Tier
    cpus: Cpus | None = None
    cpu_period_ms: Annotated[float, Field(gt=0)] | None = None
    """Period of its CPU quota. None: it has none, or it was not kept."""
    memory_bytes: Annotated[int, Field(gt=0)] | None = None
    nic_bits_s: Annotated[float, Field(ge=1)] | None = None
    disks: tuple[DiskLimit, ...] = ()


class Head(Record):
    """The first line: which step this is of, and on which hosts."""

    kind: Literal["head"] = "head"
    schema_version: Literal[1] = TELEMETRY_VERSION
    key: StepKey
    hosts: tuple[HostLimits, ...]
    daemons: tuple[DaemonCounters, ...] | None = None
    """What is shown of what daemons count, as their probes declare it.

    None: an earlier version's, see `earlier.DAEMONS`.
    """


class DiskSecond(Record):
    """What one disk did between two samples."""

    read_bytes: Count
    written_bytes: Count
    reads: Count
    writes: Count
    busy_s: SpentSeconds
    """Time with something in hand, in the kernel's ticks: too much where requests are short."""
    waited_s: SpentSeconds
    """What all requests took together."""


class HostSecond(Record):
    """What one host used between two samples, `span_s` apart; the later one was taken `at_s` after
    the window opened.

    Memory is as it was at the later sample, everything else what it grew by.
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
    """Of the machine: what of `cpu_s` the process used that conducts the run and takes the samples.
    """
    kernel_cpu_s: SpentSeconds | None = None
    """Of the machine: what of `cpu_s` its kernel used by itself, for the hosts' disks and network
    and for everybody else's.
    """


class ProbeSecond(Record):
    """One line that a probe told, as it told it: gauges as they were, counters as they had grown
    since the daemon began.
    """

    kind: Literal["probe"] = "probe"
    second: int
    at_s: float
    phase: Phase
    host: str
    probe: str
    values: dict[str, float]


class Tail(Record):
    """The last line. `opened_within_s`: how far apart the driver's messages put the start of its
    window; None: only one did.
    """

    kind: Literal["tail"] = "tail"
    opened_within_s: NonNegativeFloat | None = None
    gaps: tuple[str, ...] = ()
    """What could not be told, and why."""


TelemetryLine = Annotated[Head | HostSecond | ProbeSecond | Tail, Field(discriminator="kind")]
LINE: Final[TypeAdapter[TelemetryLine]] = TypeAdapter(TelemetryLine)


class Telemetry(Record):
    """All of one step. `tail` is None where the step was cut short, by a kill for one."""

    head: Head
    hosts: tuple[HostSecond, ...] = ()
    probes: tuple[ProbeSecond, ...] = ()
    tail: Tail | None = None

    @property
    def daemons(self) -> tuple[DaemonCounters, ...]:
        """What is shown of what daemons counted."""
        return earlier.DAEMONS if self.head.daemons is None else self.head.daemons

    def within(self, window_s: float) -> tuple[HostSecond, ...]:
        """The seconds of hosts that lie inside a window of this length."""
        return tuple(
            one
            for one in self.hosts
            if one.phase != "unplaced"
            and one.at_s - one.span_s >= -EDGE_S
            and one.at_s <= window_s + EDGE_S
        )

    def told_within(self, window_s: float) -> tuple[ProbeSecond, ...]:
        """The lines of probes that were told inside a window of this length."""
        return tuple(
            one
            for one in self.probes
            if one.phase != "unplaced" and 0 <= one.at_s <= window_s + EDGE_S
        )
