from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from weighbridge.common.record import Record

MANIFEST_VERSION: Final = 1
"""1: the first. The version of the run folder."""

State = Literal["running", "done", "failed", "interrupted"]


class Sheet(Record):
    """Facts under one title, in order: `machine`, `driver`, and those of layouts (`layout`)."""

    title: str
    layout: str | None = None
    facts: dict[str, str] = Field(default_factory=dict)


class ConfigFile(Record):
    """A configuration file as written to a host of a layout, secrets replaced by `***`."""

    layout: str
    host: str
    path: str
    text: str


class Manifest(Record):
    """What is known of a run apart from its steps. Times are UTC, ISO 8601, for people."""

    schema_version: Literal[1] = MANIFEST_VERSION
    run_id: str
    suite: str
    state: State
    created_at: str
    ended_at: str | None = None
    error: str = ""
    """Why it failed, in words; empty if it did not."""
    command: tuple[str, ...] = ()
    """The command line that repeats the run."""
    weighbridge_version: str = ""
    sheets: tuple[Sheet, ...] = ()
    configs: tuple[ConfigFile, ...] = ()


BUSY: Final = "busy"
"""Kind of event: a deployment was started on a busy machine."""
UNEVEN: Final = "uneven"
"""Kind of event: the storage hosts of a deployment do not share the reads evenly."""


class RunEvent(Record):
    """One line of `events.jsonl`: what the conductor did, and when."""

    at: str
    kind: str
    text: str
    layout: str | None = None
    repeat: int | None = None
    """Which deployment of the layout, from 0, where it matters."""
    share: float | None = None
    """For `busy` events: the share, 0 to 1, of this machine's CPUs that others used."""
