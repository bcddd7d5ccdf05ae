"""The manifest of a run: its state, and every fact that decides what its figures mean."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from weighbridge.common.record import Record

MANIFEST_VERSION: Final = 1
"""1: the first. Versions the whole run folder."""

State = Literal["running", "done", "failed", "interrupted"]


class Sheet(Record):
    """Facts under one title, in words:

    `machine`, `driver`, or those of a layout (`layout` names it). In the order given.
    """

    title: str
    layout: str | None = None
    facts: dict[str, str] = Field(default_factory=dict)


class ConfigFile(Record):
    """A configuration file as it was written to a host of a layout, secrets replaced by `***`."""

    layout: str
    host: str
    path: str
    text: str


class Manifest(Record):
    """What is known of a run beside its steps. Times are UTC, ISO 8601, for people."""

    schema_version: Literal[1] = MANIFEST_VERSION
    run_id: str
    suite: str
    state: State
    created_at: str
    ended_at: str | None = None
    error: str = ""
    """Why it failed, in words; empty when it did not."""
    command: tuple[str, ...] = ()
    """The argv that repeats the run."""
    weighbridge_version: str = ""
    sheets: tuple[Sheet, ...] = ()
    configs: tuple[ConfigFile, ...] = ()


BUSY: Final = "busy"
"""The kind of event that tells that a deployment came up on a busy machine."""
UNEVEN: Final = "uneven"
"""The same of one whose storage hosts do not share the reads."""


class RunEvent(Record):
    """One line of `events.jsonl`: what the conductor did, and when."""

    at: str
    kind: str
    text: str
    layout: str | None = None
    repeat: int | None = None
    """Which standing of the layout, from 0, where it matters."""
    share: float | None = None
    """Of an event `busy`: the share of this machine's CPUs, 0 to 1, that others used before a
    deployment.
    """
