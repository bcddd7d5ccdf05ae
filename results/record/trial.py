"""Trials of a tuning: one line of `trials.jsonl` each, the file that says which tuning a run is,
and what was chosen.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, Field, NonNegativeFloat, NonNegativeInt

from weighbridge.common.record import Record
from weighbridge.common.scope import Scope
from weighbridge.results.record.reading import read_lines, read_record
from weighbridge.results.record.step import Slug
from weighbridge.results.record.store import StoreError, append_line, write_whole
from weighbridge.suites import Suite
from weighbridge.suites.tuning import Objective, Setting, Tuning

TRIALS: Final = "trials.jsonl"
TUNING: Final = "tuning.json"
WINNER: Final = "winner.json"
CONFIRMATION: Final = "confirmation"
"""Folder of a tuning's run in which the run is that confirms its winner."""

Settings = dict[str, Setting]
"""What an arm sets otherwise than the baseline, by dotted key; nothing of the baseline itself."""


class Arm(Record):
    """One way to set the layout: a layout of the run's plan, by its name there."""

    name: Slug
    settings: Settings = Field(default_factory=dict)

    @property
    def is_baseline(self) -> bool:
        """Whether it is the layout as it was given."""
        return not self.settings


class TuningRun(Record):
    """Which tuning a run is:

    `suite` is what is replayed, `objectives` are resolved, `arms` are those known before any trial.
    """

    tuning: Tuning
    suite: Suite
    objectives: tuple[Objective, ...]
    baseline: Slug
    """The layout as it was given, by its name in the plan."""
    arms: tuple[Arm, ...] = ()
    """Without the baseline. Of a search more become known with each proposal."""
    scopes: dict[str, Scope] = Field(default_factory=dict)
    """What must be started anew when a setting changes, by key."""
    layout_settings: dict[str, Setting | None] = Field(default_factory=dict)
    """What the baseline has of each key that is tried; None: unset."""
    release: str = ""


class Trial(Record):
    """One visit of one arm, with what was done to get there.

    It is written when all its steps are, and only then counts.
    """

    number: NonNegativeInt
    """Counts from 0 over the whole run, in the order of time."""
    arm: Arm
    repeat: NonNegativeInt
    """Which trial of this arm, from 0: the repeat of its steps' keys."""
    round: NonNegativeInt
    """Rounds of a strategy, from 0. A trial is set against the baseline's trials of its own round.
    """
    scope: Scope
    """What was started anew before it."""
    changed: tuple[str, ...] = ()
    """What was done, in words: `radosgw on gateway-1 restarted`."""
    changed_s: NonNegativeFloat = 0.0
    started_s: NonNegativeFloat = 0.0
    """When its first step began, in seconds of a monotonic clock from the first trial of its
    deployment's process on.
    """
    deployment: NonNegativeInt = 0
    """Which standing of the layout it was made on, from 0: trials on either side of a new one are
    not neighbours.
    """
    at: str = ""
    """UTC, ISO 8601; for people."""
    stood: bool = True
    """Whether the gateway came up with it; if not, it is not tried again."""
    failed: str = ""
    """Why it could not be made (the gateway did not come up with it, a step failed); empty where it
    was.
    """


class Fragment(Record):
    """What of one configuration file the winner has otherwise, ready to be pasted, with the
    evidence in comments.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$")]
    """What its file is called: `ceph.conf`, `apache.conf`, `haproxy.cfg`, `proxy-server.conf`."""
    text: str


class Winner(Record):
    """The configuration that a tuning chose, before it was confirmed."""

    arm: Arm
    reason: str
    """Why these settings, in a sentence; and why others that were better are not among them."""
    fragments: tuple[Fragment, ...] = ()


EntryVerdict = Literal[
    "better",
    "worse",
    "trade-off",
    "too small to matter",
    "no effect shown",
    "provisional",
    "not allowed",
    "failed",
    "not comparable",
]
"""Of a setting over all objectives. `better`: in one at least, worse in none. `trade-off`: better
in one, worse in another. `too small to matter`: shown to be within the threshold, or shown but
within it. `no effect shown`: this many trials show none. `no claim`: fewer than 5 trials (a pruned
proposal). `not allowed`: it breaks a constraint. `failed`: it could not be tried.
"""


_WITHOUT_TRIAL: Final = "Take it out to go on without its trial."


class TrialBook:
    """What a tuning keeps in a run folder beside what every run keeps."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def begin(self, run: TuningRun) -> None:
        """Say which tuning the run is. Raises StoreError."""
        write_whole(self.folder / TUNING, run.model_dump_json(indent=2) + "\n")

    def run(self) -> TuningRun | None:
        """Which tuning the run is; None where it is none.

        Raises UsageError when its file cannot be read.
        """
        path = self.folder / TUNING
        return read_record(path, TuningRun) if path.exists() else None

    def add(self, trial: Trial) -> None:
        """Keep a trial, whose steps are there already: with its line it counts.

        Raises StoreError.
        """
        append_line(self.folder / TRIALS, trial.model_dump_json())

    def trials(self) -> tuple[Trial, ...]:
        """All trials, in order.

        Raises InvalidMeasurement with file:line about a line that cannot be read.
        """
        return tuple(
            read_lines(self.folder / TRIALS, Trial.model_validate_json, advice=_WITHOUT_TRIAL)
        )

    def choose(self, winner: Winner) -> None:
        """Say what was chosen. Raises StoreError."""
        write_whole(self.folder / WINNER, winner.model_dump_json(indent=2) + "\n")

    def forget(self) -> None:
        """Say that nothing was chosen, whatever fewer trials said. Raises StoreError."""
        path = self.folder / WINNER
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(path, error) from error

    def winner(self) -> Winner | None:
        """What was chosen; None where nothing was yet, or nothing was better. Raises UsageError."""
        path = self.folder / WINNER
        return read_record(path, Winner) if path.exists() else None

    def replan(self, plan: BaseModel) -> None:
        """Replace the plan by one that holds more: a search learns of its arms as it goes.

        Raises StoreError.
        """
        write_whole(self.folder / "plan.resolved.json", plan.model_dump_json(indent=2) + "\n")
