"""The tables about runs themselves: runs, facts, events, what the hosts could do (attestation) and
what they did (hosts).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.export.data_table import DataColumn, DataTable, TableSchema, utc
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


RUNS: Final[TableSchema[RunData]] = TableSchema(
    "runs",
    "A line for each run.",
    (
        DataColumn("run", "text", "Name of the run.", lambda one: one.manifest.run_id),
        DataColumn("suite", "text", "The suite that was replayed.", lambda one: one.manifest.suite),
        DataColumn(
            "state", "text", "running, done, failed or interrupted.", lambda one: one.manifest.state
        ),
        DataColumn(
            "created_at", "time", "When it began, UTC.", lambda one: utc(one.manifest.created_at)
        ),
        DataColumn(
            "ended_at", "time", "When it ended, UTC.", lambda one: utc(one.manifest.ended_at)
        ),
        DataColumn(
            "error",
            "text",
            "Why it failed; unknown where it did not.",
            lambda one: one.manifest.error or None,
        ),
        DataColumn(
            "layouts",
            "texts",
            "What was weighed, in the order asked for.",
            lambda one: tuple(each.name for each in one.plan.layouts),
        ),
        DataColumn("hardware", "text", "The hardware file.", lambda one: one.plan.hardware.name),
        DataColumn(
            "repeats",
            "whole",
            "Visits of every step that were planned.",
            lambda one: one.plan.suite.repeats,
        ),
        DataColumn(
            "steps",
            "whole",
            "Steps that are there, those that gave nothing among them.",
            lambda one: len(one.steps),
        ),
        DataColumn("gaps", "texts", "What the folder lacks.", lambda one: one.gaps),
        DataColumn(
            "weighbridge",
            "text",
            "The version that made it.",
            lambda one: one.manifest.weighbridge_version or None,
        ),
        DataColumn(
            "command",
            "texts",
            "The command that repeats it, word by word.",
            lambda one: one.manifest.command,
        ),
        DataColumn("folder", "text", "Where it is.", lambda one: str(one.store.folder)),
    ),
)

FACTS: Final[TableSchema[FactLine]] = TableSchema(
    "facts",
    "A line for each fact of the manifest: the machine, and the versions and settings of each "
    "layout.",
    (
        DataColumn("run", "text", "Name of the run.", lambda one: one.data.manifest.run_id),
        DataColumn("title", "text", "What the fact belongs to.", lambda one: one.title),
        DataColumn(
            "layout",
            "text",
            "The layout that it is about; unknown where it is about all.",
            lambda one: one.layout,
        ),
        DataColumn("name", "text", "What it is called.", lambda one: one.name),
        DataColumn("value", "text", "What it is, in words.", lambda one: one.value),
    ),
)

EVENTS: Final[TableSchema[EventLine]] = TableSchema(
    "events",
    "A line for each thing that was done beside measuring.",
    (
        DataColumn("run", "text", "Name of the run.", lambda one: one.data.manifest.run_id),
        DataColumn("at", "time", "When, UTC.", lambda one: utc(one.event.at)),
        DataColumn("kind", "text", "What kind of thing.", lambda one: one.event.kind),
        DataColumn(
            "layout",
            "text",
            "The layout that it was done to, where it was one.",
            lambda one: one.event.layout,
        ),
        DataColumn("text", "text", "What was done.", lambda one: one.event.text),
    ),
)

ATTESTATION: Final[TableSchema[AttestedLine]] = TableSchema(
    "attestation",
    "A line for each figure of what a host of a deployment could do before it was weighed.",
    (
        DataColumn("run", "text", "Name of the run.", lambda one: one.data.manifest.run_id),
        DataColumn("layout", "text", "Whose deployment.", lambda one: one.found.layout),
        DataColumn(
            "repeat",
            "whole",
            "Which standing of the layout, from 1.",
            lambda one: one.found.repeat + 1,
        ),
        DataColumn("host", "text", "Which host.", lambda one: one.found.host),
        DataColumn("kind", "text", "cpu, disk or network.", lambda one: one.found.kind),
        DataColumn("what", "text", "What was measured, in words.", lambda one: one.found.what),
        DataColumn(
            "value", "number", "What it could do; more is better.", lambda one: one.found.value
        ),
        DataColumn("unit", "text", "The unit of value and promised.", lambda one: one.found.unit),
        DataColumn(
            "promised", "number", "What the hardware file promises.", lambda one: one.found.promised
        ),
        DataColumn(
            "operation", "text", "read or write, of disks.", lambda one: one.found.operation
        ),
        DataColumn("pick", "text", "sequential or random, of disks.", lambda one: one.found.pick),
        DataColumn(
            "request_bytes",
            "whole",
            "Size of a request, of disks.",
            lambda one: one.found.request_bytes,
            "B",
        ),
        DataColumn("sender", "text", "Which host sent, of networks.", lambda one: one.found.sender),
        DataColumn(
            "receiver", "text", "Which host received, of networks.", lambda one: one.found.receiver
        ),
    ),
)

HOSTS: Final[TableSchema[HostLine]] = TableSchema(
    "hosts",
    "A line for each host and second while a step ran: what was used between two samples, and "
    "what may be used.",
    (
        *KEY,
        DataColumn("host", "text", "Which host.", lambda one: one.second.host),
        DataColumn(
            "tier",
            "text",
            "client, gateway, storage, shared, or the machine that they are containers of.",
            lambda one: one.second.tier,
        ),
        DataColumn(
            "phase", "text", "warm-up, measure, drain or unplaced.", lambda one: one.second.phase
        ),
        DataColumn(
            "second",
            "whole",
            "Seconds since the window opened; less than 0 in the warm-up.",
            lambda one: one.second.second,
            "s",
        ),
        DataColumn(
            "at_s",
            "number",
            "The same, exactly, of the later sample.",
            lambda one: one.second.at_s,
            "s",
        ),
        DataColumn(
            "span_s",
            "number",
            "How far apart the two samples were.",
            lambda one: one.second.span_s,
            "s",
        ),
        DataColumn("cpu_s", "number", "CPU seconds used.", lambda one: one.second.cpu_s, "s"),
        DataColumn(
            "cpus",
            "number",
            "CPUs that may be used; unknown where not limited.",
            lambda one: one.limits.cpus if one.limits else None,
        ),
        DataColumn(
            "throttled_s",
            "number",
            "How long it was kept from the CPU by its limit.",
            lambda one: one.second.throttled_s,
            "s",
        ),
        DataColumn(
            "memory_bytes",
            "whole",
            "Memory in use at the later sample.",
            lambda one: one.second.memory_bytes,
            "B",
        ),
        DataColumn(
            "memory_held_bytes",
            "whole",
            "The same without page cache.",
            lambda one: one.second.memory_held_bytes,
            "B",
        ),
        DataColumn(
            "memory_limit_bytes",
            "whole",
            "What may be used.",
            lambda one: one.limits.memory_bytes if one.limits else None,
            "B",
        ),
        DataColumn(
            "received_bytes",
            "whole",
            "Received by its NIC.",
            lambda one: one.second.received_bytes,
            "B",
        ),
        DataColumn(
            "sent_bytes", "whole", "Sent by its NIC.", lambda one: one.second.sent_bytes, "B"
        ),
        DataColumn(
            "nic_bits_s",
            "number",
            "Limit of its NIC.",
            lambda one: one.limits.nic_bits_s if one.limits else None,
            "bit/s",
        ),
        DataColumn(
            "disk_read_bytes",
            "whole",
            "Read from all its disks.",
            lambda one: one.disks("read_bytes"),
            "B",
        ),
        DataColumn(
            "disk_written_bytes",
            "whole",
            "Written to all its disks.",
            lambda one: one.disks("written_bytes"),
            "B",
        ),
        DataColumn("disk_reads", "whole", "Requests to read.", lambda one: one.disks("reads")),
        DataColumn("disk_writes", "whole", "Requests to write.", lambda one: one.disks("writes")),
        DataColumn(
            "disk_busy_s",
            "number",
            "Time with a request in hand, over all its disks.",
            lambda one: one.disks("busy_s"),
            "s",
        ),
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
        HostLine(
            data, key, second, {one.host: one for one in telemetry.head.hosts}.get(second.host)
        )
        for data in runs
        for key, telemetry in data.telemetry()
        for second in telemetry.hosts
    )
