"""The trials of a tuning in its run folder: which tuning it is, its trials as they come, and what it chose."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pydantic import BaseModel

from weighbridge.results.record.reading import read_lines, read_record
from weighbridge.results.record.store import StoreError, append_line, write_whole
from weighbridge.results.record.trial import TRIALS, TUNING, WINNER, Trial, TuningRun, Winner

_WITHOUT_TRIAL: Final = "Take it out to go on without its trial."


class TrialBook:
    """What a tuning keeps in a run folder beside what every run keeps."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def begin(self, run: TuningRun) -> None:
        """Say which tuning the run is. Raises StoreError."""
        write_whole(self.folder / TUNING, run.model_dump_json(indent=2) + "\n")

    def run(self) -> TuningRun | None:
        """Which tuning the run is; None where it is none. Raises UsageError when its file cannot be read."""
        path = self.folder / TUNING
        return read_record(path, TuningRun) if path.exists() else None

    def add(self, trial: Trial) -> None:
        """Keep a trial, whose steps are there already: with its line it counts. Raises StoreError."""
        append_line(self.folder / TRIALS, trial.model_dump_json())

    def trials(self) -> tuple[Trial, ...]:
        """All trials, in order. Raises InvalidMeasurement with file:line about a line that cannot be read."""
        return tuple(read_lines(self.folder / TRIALS, Trial.model_validate_json, advice=_WITHOUT_TRIAL))

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
        """Replace the plan by one that holds more: a search learns of its arms as it goes. Raises StoreError."""
        write_whole(self.folder / "plan.resolved.json", plan.model_dump_json(indent=2) + "\n")
