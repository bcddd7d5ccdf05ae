"""Tables about runs: runs, facts, events, and the capacity (attestation) and use of hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.export.data_table import DataColumn, DataTable, TableSchema, attribute, utc
from weighbridge.results.export.step_columns import KEY, OfStep
from weighbridge.results.record.manifest import RunEvent
from weighbridge.results.record.telemetry import Attested, DiskSecond, HostLimits, HostSecond


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
        """The sum over all disks of the host; unknown where none was sampled."""
        found: tuple[DiskSecond, ...] | None = self.second.disks
        return None if found is None else sum(getattr(disk, name) for disk in found)

    def models(self, name: str) -> float | None:
        """The sum over its disks that have a model; unknown where none has."""
        said = [disk.model for disk in self.second.disks or () if disk.model is not None]
        return sum(getattr(one, name) for one in said) if said else None


RUNS: Final[TableSchema[RunData]] = TableSchema(
    "runs",
    "A line for each run.",
    (
        attribute("run", "text", "Name of the run.", "manifest.run_id"),
        attribute("suite", "text", "The suite that was replayed.", "manifest.suite"),
        attribute("state", "text", "running, done, failed or interrupted.", "manifest.state"),
        DataColumn(
            "created_at", "time", "When it started, UTC.", lambda one: utc(one.manifest.created_at)
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
            "The layouts that were measured, in the requested order.",
            lambda one: tuple(each.name for each in one.plan.layouts),
        ),
        attribute("hardware", "text", "The hardware file.", "plan.hardware.name"),
        attribute("repeats", "integer", "Planned visits of every step.", "plan.suite.repeats"),
        DataColumn(
            "steps",
            "integer",
            "Recorded steps, including those without a measurement.",
            lambda one: len(one.steps),
        ),
        attribute("gaps", "texts", "What the folder lacks."),
        DataColumn(
            "weighbridge",
            "text",
            "The version of Weighbridge that made it.",
            lambda one: one.manifest.weighbridge_version or None,
        ),
        attribute(
            "command",
            "texts",
            "The command that repeats it, as separate words.",
            "manifest.command",
        ),
        DataColumn("folder", "text", "Its path.", lambda one: str(one.store.folder)),
    ),
)

FACTS: Final[TableSchema[FactLine]] = TableSchema(
    "facts",
    "A line for each fact of the manifest: the machine, and the versions and settings of each "
    "layout.",
    (
        attribute("run", "text", "Name of the run.", "data.manifest.run_id"),
        attribute("title", "text", "What the fact belongs to."),
        attribute("layout", "text", "The layout that it is about; unknown where it is about all."),
        attribute("name", "text", "Name of the fact."),
        attribute("value", "text", "Its value as text."),
    ),
)

EVENTS: Final[TableSchema[EventLine]] = TableSchema(
    "events",
    "A line for each event of the run apart from measurements.",
    (
        attribute("run", "text", "Name of the run.", "data.manifest.run_id"),
        DataColumn("at", "time", "When, UTC.", lambda one: utc(one.event.at)),
        attribute("kind", "text", "Kind of event.", "event.kind"),
        attribute("layout", "text", "The layout that it is about, if one.", "event.layout"),
        attribute("text", "text", "What happened.", "event.text"),
    ),
)

ATTESTATION: Final[TableSchema[AttestedLine]] = TableSchema(
    "attestation",
    "A line for each capacity of a deployment's host, before it was measured.",
    (
        attribute("run", "text", "Name of the run.", "data.manifest.run_id"),
        attribute("layout", "text", "The layout that was deployed.", "found.layout"),
        DataColumn(
            "repeat",
            "integer",
            "Which deployment of the layout, from 1.",
            lambda one: one.found.repeat + 1,
        ),
        attribute("host", "text", "Which host.", "found.host"),
        attribute("kind", "text", "cpu, disk or network.", "found.kind"),
        attribute("what", "text", "What was measured, in words.", "found.what"),
        attribute("value", "number", "Capacity; more is better.", "found.value"),
        attribute("unit", "text", "The unit of value and promised.", "found.unit"),
        attribute("promised", "number", "What the hardware file promises.", "found.promised"),
        attribute("operation", "text", "read or write, of disks.", "found.operation"),
        attribute("pick", "text", "sequential or random, of disks.", "found.pick"),
        attribute(
            "request_bytes", "integer", "Size of a request, of disks.", "found.request_bytes", "B"
        ),
        attribute("sender", "text", "Which host sent, of networks.", "found.sender"),
        attribute("receiver", "text", "Which host received, of networks.", "found.receiver"),
    ),
)

HOSTS: Final[TableSchema[HostLine]] = TableSchema(
    "hosts",
    "A line for each host and second while a step ran: use between two samples, and limits.",
    (
        *KEY,
        attribute("host", "text", "Which host.", "second.host"),
        attribute(
            "tier",
            "text",
            "client, gateway, storage, shared, or the machine that runs them as containers.",
            "second.tier",
        ),
        attribute("phase", "text", "warm-up, measure, drain or unplaced.", "second.phase"),
        attribute(
            "second",
            "integer",
            "Seconds since the start of the window; negative in the warm-up.",
            "second.second",
            "s",
        ),
        attribute("at_s", "number", "The exact time of the later sample.", "second.at_s", "s"),
        attribute("span_s", "number", "Time between the two samples.", "second.span_s", "s"),
        attribute("cpu_s", "number", "CPU seconds used.", "second.cpu_s", "s"),
        DataColumn(
            "cpus",
            "number",
            "CPUs that may be used; unknown where not limited.",
            lambda one: one.limits.cpus if one.limits else None,
        ),
        attribute(
            "throttled_s",
            "number",
            "How long it was throttled by its CPU limit.",
            "second.throttled_s",
            "s",
        ),
        attribute(
            "memory_bytes",
            "integer",
            "Memory in use at the later sample.",
            "second.memory_bytes",
            "B",
        ),
        attribute(
            "memory_held_bytes",
            "integer",
            "The same without page cache.",
            "second.memory_held_bytes",
            "B",
        ),
        DataColumn(
            "memory_limit_bytes",
            "integer",
            "Memory limit.",
            lambda one: one.limits.memory_bytes if one.limits else None,
            "B",
        ),
        attribute(
            "received_bytes", "integer", "Received by its NIC.", "second.received_bytes", "B"
        ),
        attribute("sent_bytes", "integer", "Sent by its NIC.", "second.sent_bytes", "B"),
        DataColumn(
            "nic_bits_s",
            "number",
            "Limit of its NIC.",
            lambda one: one.limits.nic_bits_s if one.limits else None,
            "bit/s",
        ),
        DataColumn(
            "disk_read_bytes",
            "integer",
            "Read from all its disks.",
            lambda one: one.disks("read_bytes"),
            "B",
        ),
        DataColumn(
            "disk_written_bytes",
            "integer",
            "Written to all its disks.",
            lambda one: one.disks("written_bytes"),
            "B",
        ),
        DataColumn("disk_reads", "integer", "Requests to read.", lambda one: one.disks("reads")),
        DataColumn("disk_writes", "integer", "Requests to write.", lambda one: one.disks("writes")),
        DataColumn(
            "disk_busy_s",
            "number",
            "Time with requests in progress, summed over its disks.",
            lambda one: one.disks("busy_s"),
            "s",
        ),
        DataColumn(
            "model_disk_busy_s",
            "number",
            "Time that the media of its disks with a model worked, summed over them.",
            lambda one: one.models("busy_s"),
            "s",
        ),
        DataColumn(
            "model_disk_flushes",
            "integer",
            "Flushes of the caches of its disks with a model.",
            lambda one: one.models("flushes"),
        ),
        DataColumn(
            "model_disk_destaged_bytes",
            "integer",
            "Bytes that went from these caches to the media.",
            lambda one: one.models("destaged_bytes"),
            "B",
        ),
        DataColumn(
            "model_disk_late_s",
            "number",
            "How much later than their models say these disks answered, summed over requests.",
            lambda one: one.models("late_s"),
            "s",
        ),
    ),
)


def runs_table(runs: Sequence[RunData]) -> DataTable:
    """The runs."""
    return RUNS.fill(runs)


def facts_table(runs: Sequence[RunData]) -> DataTable:
    """The facts of the runs' manifests."""
    return FACTS.fill(
        FactLine(data, sheet.title, sheet.layout, name, value)
        for data in runs
        for sheet in data.manifest.sheets
        for name, value in sheet.facts.items()
    )


def events_table(runs: Sequence[RunData]) -> DataTable:
    """The events of the runs."""
    return EVENTS.fill(EventLine(data, event) for data in runs for event in data.events)


def attestation_table(runs: Sequence[RunData]) -> DataTable:
    """The capacities of the runs' hosts."""
    return ATTESTATION.fill(AttestedLine(data, found) for data in runs for found in data.attested)


def hosts_table(runs: Sequence[RunData]) -> DataTable:
    """What the runs' hosts used, second by second."""
    return HOSTS.fill(
        HostLine(
            data, key, second, {one.host: one for one in telemetry.head.hosts}.get(second.host)
        )
        for data in runs
        for key, telemetry in data.telemetry()
        for second in telemetry.hosts
    )
