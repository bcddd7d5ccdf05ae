"""The run folder: everything that a run gave, appended as it comes, readable after any kill.

    RUNS/<UTC>-<suite>-<shortid>/
      plan.yaml             as given
      plan.resolved.json    as resolved, before anything starts
      manifest.json         state and facts
      steps.jsonl           one StepResult a line, fsync'd: the truth
      events.jsonl          what was done when
      latency/*.hlog        HdrHistogram interval logs, one file a step
      series/*.jsonl        per-second series
      telemetry/*.jsonl     what hosts used every second, one file a step
      logs/                 logs of hosts, drivers and probes
      attestation.jsonl     what the hosts of each deployment could do
      tuning.json, trials.jsonl, winner.json, confirmation/    of a tuning: its configuration,
                            trials and winner, and the run that confirms it
      derived/              tables, charts and the report: can be rebuilt from the rest

A line is one write(). Readers drop a torn last line; appending removes it first.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

from pydantic import BaseModel

from weighbridge.common import safe_files
from weighbridge.common.errors import InvalidMeasurement, UsageError
from weighbridge.results.record.appending import write_all
from weighbridge.results.record.attestation import Attested
from weighbridge.results.record.interval_log import interval_log
from weighbridge.results.record.manifest import ConfigFile, Manifest, RunEvent, Sheet, State
from weighbridge.results.record.reading import (
    read_bounded,
    read_lines,
    read_record,
)
from weighbridge.results.record.resolved import ResolvedPlan
from weighbridge.results.record.step import StepKey, StepResult
from weighbridge.results.record.telemetry import (
    LINE,
    Head,
    HostSecond,
    ProbeSecond,
    Tail,
    Telemetry,
    TelemetryLine,
)
from weighbridge.results.record.writing import StoreError, append_line, write_atomically

_WITHOUT_STEP: Final = "Remove the line to go on without its step."
_WITHOUT_TELEMETRY: Final = "Move the file away to go on without this step's telemetry."


class RunStore:
    """One run folder, from `create` or `open`. Only one process may append to it at a time."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest

    @classmethod
    def create(
        cls,
        runs: Path,
        *,
        plan_yaml: str,
        plan: BaseModel,
        suite: str,
        command: Sequence[str] = (),
        weighbridge_version: str = "",
        sheets: Sequence[Sheet] = (),
    ) -> RunStore:
        """Create a folder below `runs`, which is created too if missing.

        `plan` is written as JSON, as `results.record.resolved` reads it. Raises StoreError, or
        UsageError if the folder cannot be created.
        """
        now = datetime.now(UTC)
        run_id = f"{now:%Y%m%dT%H%M%SZ}-{suite}-{secrets.token_hex(4)}"
        folder = runs / run_id
        try:
            folder.mkdir(parents=True)
            for part in ("latency", "series", "telemetry", "logs", "derived"):
                (folder / part).mkdir()
        except OSError as error:
            raise UsageError(
                f"{folder}: cannot be created: {error.strerror}",
                advice="Choose another folder with --out.",
            ) from error
        store = cls(
            folder,
            Manifest(
                run_id=run_id,
                suite=suite,
                state="running",
                created_at=now.isoformat(timespec="seconds"),
                command=tuple(command),
                weighbridge_version=weighbridge_version,
                sheets=tuple(sheets),
            ),
        )
        write_atomically(folder / "plan.yaml", plan_yaml)
        write_atomically(folder / "plan.resolved.json", plan.model_dump_json(indent=2) + "\n")
        store.write_manifest(store.manifest)
        return store

    @classmethod
    def open(cls, folder: Path) -> RunStore:
        """Open an existing run folder.

        Raises UsageError if it is not one, or is of a version that this program does not know.
        """
        path = folder / "manifest.json"
        if not path.exists():
            raise UsageError(f"{folder}: is not the folder of a run: it has no manifest.json")
        return cls(folder, read_record(path, Manifest))

    # ---- the manifest

    def write_manifest(self, manifest: Manifest) -> None:
        """Replace the manifest atomically. Raises StoreError."""
        write_atomically(self.folder / "manifest.json", manifest.model_dump_json(indent=2) + "\n")
        self.manifest = manifest

    def set_state(self, state: State, *, error: str = "") -> None:
        """Record the run's state; all but `running` end it. Raises StoreError."""
        ended = None if state == "running" else _now()
        self.write_manifest(
            self.manifest.model_copy(update={"state": state, "error": error, "ended_at": ended})
        )

    def add_facts(self, sheets: Iterable[Sheet] = (), configs: Iterable[ConfigFile] = ()) -> None:
        """Add facts and files; those of the same title and layout, or layout, host and path, are
        replaced.
        """
        manifest = self.manifest
        facts = {(one.title, one.layout): one for one in (*manifest.sheets, *sheets)}
        files = {(one.layout, one.host, one.path): one for one in (*manifest.configs, *configs)}
        update = {"sheets": tuple(facts.values()), "configs": tuple(files.values())}
        self.write_manifest(manifest.model_copy(update=update))

    def plan(self) -> ResolvedPlan:
        """What was to be measured. Raises UsageError if the plan cannot be read."""
        made_by = self.manifest.weighbridge_version or "of an unknown version"
        advice = (
            f"The run was made by weighbridge {made_by}; without its plan nothing can be derived."
        )
        return read_record(self.folder / "plan.resolved.json", ResolvedPlan, advice=advice)

    def plan_yaml(self) -> str:
        """The plan as given. Raises UsageError if it cannot be read."""
        path = self.folder / "plan.yaml"
        try:
            return read_bounded(path).decode("utf-8")
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise UsageError(f"{path}: byte {error.start}: not UTF-8 text") from error

    # ---- measurements

    def append(self, step: StepResult) -> None:
        """Write a step's histograms and series, then its line in `steps.jsonl`, which makes it
        count.

        It is on disk when this returns. Raises StoreError; the step then does not count, and what
        was there before still does.
        """
        if step.measurement is not None:
            # Written atomically: a step measured again after a kill leaves no half or double files.
            name = step.key.file_name
            lines = "".join(second.model_dump_json() + "\n" for second in step.measurement.seconds)
            write_atomically(
                self.folder / "latency" / f"{name}.hlog",
                interval_log(step.measurement),
                folder=self.folder,
            )
            write_atomically(self.folder / "series" / f"{name}.jsonl", lines, folder=self.folder)
        append_line(self.folder / "steps.jsonl", step.model_dump_json())

    def keep(self, folder: str, name: str, data: bytes) -> None:
        """Keep a file of a driver's tool as `logs/{folder}/{name}`. Raises StoreError."""
        write_atomically(self.logs / folder / name, data, folder=self.folder)

    def event(
        self,
        kind: str,
        text: str,
        *,
        layout: str | None = None,
        repeat: int | None = None,
        share: float | None = None,
    ) -> None:
        """Log an event in `events.jsonl`. Raises StoreError."""
        event = RunEvent(
            at=_now(),
            kind=kind,
            text=text,
            layout=layout,
            repeat=repeat,
            share=share,
        )
        append_line(self.folder / "events.jsonl", event.model_dump_json(exclude_none=True))

    def steps(self) -> tuple[StepResult, ...]:
        """All results in the order they were appended, every result of a step measured again
        included.

        A torn last line is dropped. Raises InvalidMeasurement with file:line on any other
        unreadable line.
        """
        return tuple(self.each_step())

    def each_step(self) -> Iterator[StepResult]:
        """The same as an iterator, for runs of thousands of steps. Raises as `steps` does."""
        path = self.folder / "steps.jsonl"
        return read_lines(path, StepResult.model_validate_json, advice=_WITHOUT_STEP)

    def latest(self) -> dict[StepKey, StepResult]:
        """The latest result of each step, in the order the steps were first appended."""
        return {step.key: step for step in self.steps()}

    def events(self) -> tuple[RunEvent, ...]:
        """All events, in order."""
        return tuple(read_lines(self.folder / "events.jsonl", RunEvent.model_validate_json))

    # ---- attestation

    def attest(self, figures: Sequence[Attested]) -> None:
        """Record what a deployment's hosts could do, all of it or nothing. Raises StoreError."""
        if figures:
            append_line(
                self.folder / "attestation.jsonl",
                "\n".join(one.model_dump_json() for one in figures),
            )

    def attested(self) -> tuple[Attested, ...]:
        """What the hosts of all deployments could do, in order; empty if they were not attested.

        Raises InvalidMeasurement with file:line on an unreadable line.
        """
        return tuple(read_lines(self.folder / "attestation.jsonl", Attested.model_validate_json))

    # ---- telemetry

    def record_telemetry(self, head: Head) -> TelemetryFile:
        """Start the telemetry file of a step; that of an earlier attempt is discarded.

        Raises StoreError.
        """
        return TelemetryFile(self._telemetry(head.key), head, folder=self.folder)

    def telemetry(self, key: StepKey) -> Telemetry | None:
        """The telemetry of a step; None if none was recorded. A torn last line is dropped.

        Raises InvalidMeasurement with file:line on any other unreadable line.
        """
        path = self._telemetry(key)
        lines = tuple(
            read_lines(path, LINE.validate_json, advice=_WITHOUT_TELEMETRY, folder=self.folder)
        )
        if not lines:
            return None
        head, *rest = lines
        if not isinstance(head, Head):
            raise InvalidMeasurement(f"{path}:1: is not a head line: the step is unknown")
        return Telemetry(
            head=head,
            hosts=tuple(line for line in rest if isinstance(line, HostSecond)),
            probes=tuple(line for line in rest if isinstance(line, ProbeSecond)),
            tail=next((line for line in rest if isinstance(line, Tail)), None),
        )

    def _telemetry(self, key: StepKey) -> Path:
        return self.folder / "telemetry" / f"{key.file_name}.jsonl"

    @property
    def logs(self) -> Path:
        """The folder of logs of hosts and drivers."""
        return self.folder / "logs"

    @property
    def derived(self) -> Path:
        """The folder of what can be rebuilt."""
        return self.folder / "derived"

    def make_derived(self, name: str = "") -> Path:
        """Create `derived`, or the folder of this name in it. Raises StoreError, also if it is a
        link.
        """
        path = self.derived / name
        try:
            return safe_files.make_folder(self.folder, path.relative_to(self.folder).as_posix())
        except OSError as error:
            raise StoreError(path, error) from error


class TelemetryFile:
    """Telemetry of one step while it is recorded: readable at any time, on disk when closed.

    Not thread-safe.
    """

    def __init__(self, path: Path, head: Head, *, folder: Path) -> None:
        self._path = path
        name = path.relative_to(folder).as_posix()
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        try:
            self._descriptor = safe_files.open_descriptor(folder, name, flags)
        except OSError as error:
            raise StoreError(path, error) from error
        try:
            self.write([head])
        except StoreError:
            os.close(self._descriptor)
            raise

    def write(self, lines: Iterable[TelemetryLine]) -> None:
        """Append lines by one write. No fsync: that would disturb what is measured.

        Raises StoreError.
        """
        data = b"".join(line.model_dump_json(exclude_none=True).encode() + b"\n" for line in lines)
        try:
            write_all(self._descriptor, data)
        except OSError as error:
            raise StoreError(self._path, error) from error

    def close(self) -> None:
        """Sync to disk and close. Raises StoreError."""
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise StoreError(self._path, error) from error
        finally:
            os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
