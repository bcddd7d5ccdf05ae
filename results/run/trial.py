"""Trials of a tuning (a line each of `trials.jsonl`), its configuration, and what it chose."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, Field, NonNegativeFloat, NonNegativeInt

from weighbridge.common.record import Record
from weighbridge.common.structure import Scope
from weighbridge.results.run.reading import (
    StoreError,
    append_line,
    read_lines,
    read_record,
    write_atomically,
)
from weighbridge.results.run.step import Slug
from weighbridge.suites import Suite
from weighbridge.suites.tuning import Objective, Setting, Tuning

TRIALS: Final = "trials.jsonl"
TUNING: Final = "tuning.json"
WINNER: Final = "winner.json"
CONFIRMATION: Final = "confirmation"
"""Folder inside a tuning's run that holds the run which confirms its winner."""

Settings = dict[str, Setting]
"""What a variant changes of the baseline, by dotted key; only the changes."""


class LayoutVariant(Record):
    """One configuration of the tuned layout, under its layout name in the run's plan."""

    name: Slug
    settings: Settings = Field(default_factory=dict)

    @property
    def is_baseline(self) -> bool:
        """Whether it is the layout as given."""
        return not self.settings


class TuningRun(Record):
    """`suite` is replayed, `objectives` are resolved, `arms` were known before any trial."""

    tuning: Tuning
    suite: Suite
    objectives: tuple[Objective, ...]
    baseline: Slug
    """Name in the plan of the layout as given."""
    arms: tuple[LayoutVariant, ...] = ()
    """Without the baseline. A search adds one with each proposal."""
    scopes: dict[str, Scope] = Field(default_factory=dict)
    """What must be restarted when a setting changes, by key."""
    layout_settings: dict[str, Setting | None] = Field(default_factory=dict)
    """The baseline's value of each tried key; None: unset."""
    release: str = ""


class Trial(Record):
    """A visit of a variant, and what was done to set it up. Written after all its steps."""

    number: NonNegativeInt
    """Counts from 0 over the run, in order of time."""
    arm: LayoutVariant
    repeat: NonNegativeInt
    """Which trial of this variant, from 0: the repeat in its steps' keys."""
    round: NonNegativeInt
    """A strategy's round, from 0. A trial is compared with the baseline's trials of its own round.
    """
    scope: Scope
    """What was restarted before it."""
    changed: tuple[str, ...] = ()
    """What was done, in words: `radosgw on gateway-1 restarted`."""
    changed_s: NonNegativeFloat = 0.0
    started_s: NonNegativeFloat = 0.0
    """Seconds of a monotonic clock since the first trial of its deployment's process."""
    deployment: NonNegativeInt = 0
    """The deployment of the layout, from 0: trials of different deployments are not neighbours."""
    at: str = ""
    """UTC, ISO 8601; for people."""
    stood: bool = True
    """Whether the gateway started with it; if not, it is not tried again."""
    failed: str = ""
    """Why there is no result (the gateway did not start with it, a step failed); else empty."""


class Fragment(Record):
    """The winner's changes to one configuration file, ready to paste, with evidence in comments."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$")]
    """Name of the file: `ceph.conf`, `apache.conf`, `haproxy.cfg`, `proxy-server.conf`."""
    text: str


class Winner(Record):
    """The configuration that a tuning chose, before confirmation."""

    arm: LayoutVariant
    reason: str
    """Why these settings, and why others that were better are not among them, in sentences."""
    fragments: tuple[Fragment, ...] = ()


EntryVerdict = Literal[
    "better",
    "worse",
    "trade-off",
    "too small to matter",
    "not significant",
    "provisional",
    "not allowed",
    "failed",
    "not comparable",
]
"""The verdict on a setting over all objectives.

`better`: in at least one, worse in none. `trade-off`: better in one, worse in another. `too small
to matter`: shown to be within the threshold, or a significant difference within it. `not
significant`: no effect was found with this many trials. `not allowed`: it breaks a constraint.
`failed`: it could not be tried. `provisional`: fewer than 5 trials (a pruned proposal). `not
comparable`: an objective has no result.
"""


_WITHOUT_TRIAL: Final = "Remove the line to go on without its trial."


class TuningStore:
    """What a tuning keeps in its run folder in addition to what every run keeps."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def begin(self, run: TuningRun) -> None:
        """Record the tuning's configuration. Raises StoreError."""
        write_atomically(self.folder / TUNING, run.model_dump_json(indent=2) + "\n")

    def run(self) -> TuningRun | None:
        """The tuning's configuration, if it is one. Raises UsageError if unreadable."""
        path = self.folder / TUNING
        return read_record(path, TuningRun) if path.exists() else None

    def add(self, trial: Trial) -> None:
        """Record a trial whose steps are recorded: it counts from now on. Raises StoreError."""
        append_line(self.folder / TRIALS, trial.model_dump_json())

    def trials(self) -> tuple[Trial, ...]:
        """All trials, in order. Raises InvalidMeasurement with file:line on an unreadable line."""
        return tuple(
            read_lines(self.folder / TRIALS, Trial.model_validate_json, advice=_WITHOUT_TRIAL)
        )

    def choose(self, winner: Winner) -> None:
        """Record what was chosen. Raises StoreError."""
        write_atomically(self.folder / WINNER, winner.model_dump_json(indent=2) + "\n")

    def forget(self) -> None:
        """Remove an earlier choice, made from fewer trials. Raises StoreError."""
        path = self.folder / WINNER
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(path, error) from error

    def winner(self) -> Winner | None:
        """What was chosen; None if nothing was (yet), or nothing is better. Raises UsageError."""
        path = self.folder / WINNER
        return read_record(path, Winner) if path.exists() else None

    def replan(self, plan: BaseModel) -> None:
        """Replace the plan by a larger one: a search adds variants. Raises StoreError."""
        write_atomically(self.folder / "plan.resolved.json", plan.model_dump_json(indent=2) + "\n")
