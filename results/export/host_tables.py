"""The tables about runs themselves: runs, facts, events, what the hosts could do (attestation) and what they did (hosts)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.export.data_table import Column, DataTable, Shape, utc
from weighbridge.results.export.run_tables import KEY, OfStep
from weighbridge.results.record.attestation import Attested
from weighbridge.results.record.manifest import RunEvent
from weighbridge.results.record.telemetry import DiskSecond, HostLimits, HostSecond


@dataclass(frozen=True)
class FactLine:
    """One fact of one run."""

    data: RunData
    title: str
    layout: str | None
    name: str
    value: str


@dataclass(frozen=True)
class EventLine:
    """One event of one run."""

    data: RunData
    event: RunEvent


@dataclass(frozen=True)
class AttestedLine:
    """One figure of one host of one run."""

    data: RunData
    found: Attested


@dataclass(frozen=True)
class HostLine(OfStep):
    """One second of one host while a step ran."""

    second: HostSecond
    limits: HostLimits | None

    def disks(self, name: str) -> float | None:
        """What all disks of the host did; unknown where none was sampled."""
        found: tuple[DiskSecond, ...] | None = self.second.disks
        return None if found is None else sum(getattr(disk, name) for disk in found)


RUNS: Final[Shape[RunData]] = Shape(
    "runs",
    "A line for each run.",
    (
        Column("run", "text", "Name of the run.", lambda one: one.manifest.run_id),
        Column("suite", "text", "The suite that was replayed.", lambda one: one.manifest.suite),
        Column("state", "text", "running, done, failed or interrupted.", lambda one: one.manifest.state),
        Column("created_at", "time", "When it began, UTC.", lambda one: utc(one.manifest.created_at)),
        Column("ended_at", "time", "When it ended, UTC.", lambda one: utc(one.manifest.ended_at)),
        Column("error", "text", "Why it failed; unknown where it did not.", lambda one: one.manifest.error or None),
        Column(
            "layouts",
            "texts",
            "What was weighed, in the order asked for.",
            lambda one: tuple(each.name for each in one.plan.layouts),
        ),
        Column("hardware", "text", "The hardware file.", lambda one: one.plan.hardware.name),
        Column("repeats", "whole", "Visits of every step that were planned.", lambda one: one.plan.suite.repeats),
        Column("steps", "whole", "Steps that are there, those that gave nothing among them.", lambda one: len(one.steps)),
        Column("gaps", "texts", "What the folder lacks.", lambda one: one.gaps),
        Column("weighbridge", "text", "The version that made it.", lambda one: one.manifest.weighbridge_version or None),
        Column("command", "texts", "The command that repeats it, word by word.", lambda one: one.manifest.command),
        Column("folder", "text", "Where it is.", lambda one: str(one.store.folder)),
    ),
)

FACTS: Final[Shape[FactLine]] = Shape(
    "facts",
    "A line for each fact of the manifest: the machine, and the versions and settings of each layout.",
    (
        Column("run", "text", "Name of the run.", lambda one: one.data.manifest.run_id),
        Column("title", "text", "What the fact belongs to.", lambda one: one.title),
        Column("layout", "text", "The layout that it is about; unknown where it is about all.", lambda one: one.layout),
        Column("name", "text", "What it is called.", lambda one: one.name),
        Column("value", "text", "What it is, in words.", lambda one: one.value),
    ),
)

EVENTS: Final[Shape[EventLine]] = Shape(
    "events",
    "A line for each thing that was done beside measuring.",
    (
        Column("run", "text", "Name of the run.", lambda one: one.data.manifest.run_id),
        Column("at", "time", "When, UTC.", lambda one: utc(one.event.at)),
        Column("kind", "text", "What kind of thing.", lambda one: one.event.kind),
        Column("layout", "text", "The layout that it was done to, where it was one.", lambda one: one.event.layout),
        Column("text", "text", "What was done.", lambda one: one.event.text),
    ),
)

ATTESTATION: Final[Shape[AttestedLine]] = Shape(
    "attestation",
    "A line for each figure of what a host of a deployment could do before it was weighed.",
    (
        Column("run", "text", "Name of the run.", lambda one: one.data.manifest.run_id),
        Column("layout", "text", "Whose deployment.", lambda one: one.found.layout),
        Column("repeat", "whole", "Which standing of the layout, from 1.", lambda one: one.found.repeat + 1),
        Column("host", "text", "Which host.", lambda one: one.found.host),
        Column("kind", "text", "cpu, disk or network.", lambda one: one.found.kind),
        Column("what", "text", "What was measured, in words.", lambda one: one.found.what),
        Column("value", "number", "What it could do; more is better.", lambda one: one.found.value),
        Column("unit", "text", "The unit of value and promised.", lambda one: one.found.unit),
        Column("promised", "number", "What the hardware file promises.", lambda one: one.found.promised),
        Column("operation", "text", "read or write, of disks.", lambda one: one.found.operation),
        Column("pick", "text", "sequential or random, of disks.", lambda one: one.found.pick),
        Column("request_bytes", "whole", "Size of a request, of disks.", lambda one: one.found.request_bytes, "B"),
        Column("sender", "text", "Which host sent, of networks.", lambda one: one.found.sender),
        Column("receiver", "text", "Which host received, of networks.", lambda one: one.found.receiver),
    ),
)

HOSTS: Final[Shape[HostLine]] = Shape(
    "hosts",
    "A line for each host and second while a step ran: what was used between two samples, and what may be used.",
    (
        *KEY,
        Column("host", "text", "Which host.", lambda one: one.second.host),
        Column(
            "tier",
            "text",
            "client, gateway, storage, shared, or the machine that they are containers of.",
            lambda one: one.second.tier,
        ),
        Column("phase", "text", "warm-up, measure, drain or unplaced.", lambda one: one.second.phase),
        Column(
            "second", "whole", "Seconds since the window opened; less than 0 in the warm-up.", lambda one: one.second.second, "s"
        ),
        Column("at_s", "number", "The same, exactly, of the later sample.", lambda one: one.second.at_s, "s"),
        Column("span_s", "number", "How far apart the two samples were.", lambda one: one.second.span_s, "s"),
        Column("cpu_s", "number", "CPU seconds used.", lambda one: one.second.cpu_s, "s"),
        Column(
            "cpus",
            "number",
            "CPUs that may be used; unknown where not limited.",
            lambda one: one.limits.cpus if one.limits else None,
        ),
        Column("throttled_s", "number", "How long it was kept from the CPU by its limit.", lambda one: one.second.throttled_s, "s"),
        Column("memory_bytes", "whole", "Memory in use at the later sample.", lambda one: one.second.memory_bytes, "B"),
        Column("memory_held_bytes", "whole", "The same without page cache.", lambda one: one.second.memory_held_bytes, "B"),
        Column(
            "memory_limit_bytes", "whole", "What may be used.", lambda one: one.limits.memory_bytes if one.limits else None, "B"
        ),
        Column("received_bytes", "whole", "Received by its NIC.", lambda one: one.second.received_bytes, "B"),
        Column("sent_bytes", "whole", "Sent by its NIC.", lambda one: one.second.sent_bytes, "B"),
        Column("nic_bits_s", "number", "Limit of its NIC.", lambda one: one.limits.nic_bits_s if one.limits else None, "bit/s"),
        Column("disk_read_bytes", "whole", "Read from all its disks.", lambda one: one.disks("read_bytes"), "B"),
        Column("disk_written_bytes", "whole", "Written to all its disks.", lambda one: one.disks("written_bytes"), "B"),
        Column("disk_reads", "whole", "Requests to read.", lambda one: one.disks("reads")),
        Column("disk_writes", "whole", "Requests to write.", lambda one: one.disks("writes")),
        Column("disk_busy_s", "number", "Time with a request in hand, over all its disks.", lambda one: one.disks("busy_s"), "s"),
    ),
)


def runs_table(runs: Sequence[RunData]) -> DataTable:
    """These runs."""
    return RUNS.fill(runs)


def facts_table(runs: Sequence[RunData]) -> DataTable:
    """The facts of their manifests."""
    return FACTS.fill(
        FactLine(data, sheet.title, sheet.layout, name, value)
        for data in runs
        for sheet in data.manifest.sheets
        for name, value in sheet.facts.items()
    )


def events_table(runs: Sequence[RunData]) -> DataTable:
    """Their events."""
    return EVENTS.fill(EventLine(data, event) for data in runs for event in data.events)


def attestation_table(runs: Sequence[RunData]) -> DataTable:
    """What their hosts could do."""
    return ATTESTATION.fill(AttestedLine(data, found) for data in runs for found in data.attested)


def hosts_table(runs: Sequence[RunData]) -> DataTable:
    """What their hosts used, second by second."""
    return HOSTS.fill(
        HostLine(data, key, second, {one.host: one for one in telemetry.head.hosts}.get(second.host))
        for data in runs
        for key, telemetry in data.telemetry()
        for second in telemetry.hosts
    )
