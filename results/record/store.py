"""The run folder: everything a run gave, appended as it comes, readable after any kill.

    RUNS/<UTC>-<suite>-<shortid>/ plan.yaml            as given             plan.resolved.json   as
      resolved, before anything starts manifest.json        state and facts      steps.jsonl
      one StepResult a line, fsync'd: the truth events.jsonl         what was done when
      latency/*.hlog       HdrHistogram interval logs, one file a step series/*.jsonl
      per-second series    telemetry/*.jsonl    what hosts used every second, one file a step logs/
      logs of hosts, drivers and probes attestation.jsonl    what the hosts of each deployment could
      do tuning.json, trials.jsonl, winner.json, confirmation/   of a tuning: which, its trials,
      what it chose, and a run to confirm it derived/             tables, charts and the report:
      rebuilt from the rest at any time

A line is one write(). A reader drops a torn last line; before anything is appended after one, it is
cut off.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from pydantic import BaseModel

from weighbridge.common import inside
from weighbridge.common.errors import DISK_FULL, InvalidMeasurement, UsageError, WeighbridgeError
from weighbridge.common.locks import open_lock
from weighbridge.results.record.attestation import Attested
from weighbridge.results.record.histogram import Histogram, log_header, log_line
from weighbridge.results.record.manifest import ConfigFile, Manifest, RunEvent, Sheet, State
from weighbridge.results.record.measurement import Measurement
from weighbridge.results.record.reading import read_lines, read_lines_from, read_record, read_whole
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

_WITHOUT_STEP: Final = "Take it out to go on without its step."
_WITHOUT_TELEMETRY: Final = "Move the file away to go on without what the hosts used in this step."


class StoreError(WeighbridgeError):
    """Something could not be written to the run folder.

    What was whole before stays readable. `path` is what was written to.
    """

    def __init__(self, path: Path, error: OSError) -> None:
        self.path = path
        full = error.errno in DISK_FULL
        super().__init__(
            f"{path}: {'the disk is full' if full else 'cannot be written'} ({error.strerror})",
            advice=f"Everything finished before is kept in {path.parent}. Make room, or choose "
            "another folder with --out."
            if full
            else f"Everything finished before is kept in {path.parent}.",
        )


class RunStore:
    """One run folder. Make it by `create` or `open`.

    Only one process may append to it at a time.
    """

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
        """A new folder below `runs`, which is made where it is missing. `plan` is written as JSON;
        its records are those that `results.record.resolved` reads. Raises StoreError, or UsageError
        when the folder cannot be made.
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
                f"{folder}: cannot be made: {error.strerror}",
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
        write_whole(folder / "plan.yaml", plan_yaml)
        write_whole(folder / "plan.resolved.json", plan.model_dump_json(indent=2) + "\n")
        store.write_manifest(store.manifest)
        return store

    @classmethod
    def open(cls, folder: Path) -> RunStore:
        """An existing run folder.

        Raises UsageError when it is none, or of a version this program does not know.
        """
        path = folder / "manifest.json"
        if not path.exists():
            raise UsageError(f"{folder}: is not the folder of a run: it has no manifest.json")
        return cls(folder, read_record(path, Manifest))

    # ---- the manifest

    def write_manifest(self, manifest: Manifest) -> None:
        """Replace the manifest: the old one or the new one is there, never half of one.

        Raises StoreError.
        """
        write_whole(self.folder / "manifest.json", manifest.model_dump_json(indent=2) + "\n")
        self.manifest = manifest

    def set_state(self, state: State, *, error: str = "") -> None:
        """Record how the run stands; all but `running` end it. Raises StoreError."""
        ended = None if state == "running" else _now()
        self.write_manifest(
            self.manifest.model_copy(update={"state": state, "error": error, "ended_at": ended})
        )

    def add_facts(self, sheets: Iterable[Sheet] = (), configs: Iterable[ConfigFile] = ()) -> None:
        """Add facts and configuration files; those of the same title and layout, or layout, host
        and path, are replaced.
        """
        kept_sheets = {(one.title, one.layout): one for one in (*self.manifest.sheets, *sheets)}
        kept_configs = {
            (one.layout, one.host, one.path): one for one in (*self.manifest.configs, *configs)
        }
        self.write_manifest(
            self.manifest.model_copy(
                update={
                    "sheets": tuple(kept_sheets.values()),
                    "configs": tuple(kept_configs.values()),
                }
            )
        )

    def plan(self) -> ResolvedPlan:
        """What was to be measured. Raises UsageError when the plan cannot be read."""
        made_by = self.manifest.weighbridge_version or "of an unknown version"
        advice = (
            f"The run was made by weighbridge {made_by}; without its plan nothing can be derived."
        )
        return read_record(self.folder / "plan.resolved.json", ResolvedPlan, advice=advice)

    def plan_yaml(self) -> str:
        """The plan as it was given. Raises UsageError when it cannot be read."""
        path = self.folder / "plan.yaml"
        try:
            return read_whole(path).decode("utf-8")
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise UsageError(f"{path}: byte {error.start}: not UTF-8 text") from error

    # ---- what is measured

    def append(self, step: StepResult) -> None:
        """Keep one step: its histograms and series in files of their own, then its line in
        `steps.jsonl`, which makes it count.

        It is on the disk when this returns. Raises StoreError; then the step does not count and
        what was there before does.
        """
        if step.measurement is not None:
            # Whole files, replaced as one: a step that is measured again after a kill leaves no
            # half and no double.
            name = step.key.file_name
            lines = "".join(second.model_dump_json() + "\n" for second in step.measurement.seconds)
            write_whole(
                self.folder / "latency" / f"{name}.hlog",
                _interval_log(step.measurement),
                folder=self.folder,
            )
            write_whole(self.folder / "series" / f"{name}.jsonl", lines, folder=self.folder)
        append_line(self.folder / "steps.jsonl", step.model_dump_json())

    def keep(self, folder: str, name: str, data: bytes) -> None:
        """Keep a file of a driver's tool as `logs/{folder}/{name}`. Raises StoreError."""
        write_whole(self.logs / folder / name, data, folder=self.folder)

    def event(
        self,
        kind: str,
        text: str,
        *,
        layout: str | None = None,
        repeat: int | None = None,
        share: float | None = None,
    ) -> None:
        """Note in `events.jsonl` what was done. Raises StoreError."""
        event = RunEvent(at=_now(), kind=kind, text=text, layout=layout, repeat=repeat, share=share)
        append_line(self.folder / "events.jsonl", event.model_dump_json(exclude_none=True))

    def steps(self) -> tuple[StepResult, ...]:
        """All steps in the order they were appended; of a step that was measured again, each time.

        A torn last line is dropped. Raises InvalidMeasurement with file:line about any other line
        that cannot be read.
        """
        return tuple(self.each_step())

    def each_step(self) -> Iterator[StepResult]:
        """The same one by one, for runs of thousands: no more of them is held than who asks keeps.

        Raises as `steps` does.
        """
        return (step for step, _ in self.steps_from(0))

    def steps_from(self, at_bytes: int) -> Iterator[tuple[StepResult, int]]:
        """Those from a place in `steps.jsonl` on, where 0 or an earlier one ended, each with the
        place where it ends itself.
        """
        path = self.folder / "steps.jsonl"
        return read_lines_from(path, StepResult.model_validate_json, at_bytes, advice=_WITHOUT_STEP)

    def latest(self) -> dict[StepKey, StepResult]:
        """The last result of each step, in the order the steps were first appended."""
        return {step.key: step for step in self.steps()}

    def events(self) -> tuple[RunEvent, ...]:
        """All events, in order."""
        return tuple(read_lines(self.folder / "events.jsonl", RunEvent.model_validate_json))

    # ---- attestation

    def attest(self, figures: Sequence[Attested]) -> None:
        """Keep what the hosts of a deployment could do, all of it or nothing. Raises StoreError."""
        if figures:
            append_line(
                self.folder / "attestation.jsonl",
                "\n".join(one.model_dump_json() for one in figures),
            )

    def attested(self) -> tuple[Attested, ...]:
        """What the hosts of all deployments could do, in order; empty where they were not attested.

        Raises InvalidMeasurement with file:line about a line that cannot be read.
        """
        return tuple(read_lines(self.folder / "attestation.jsonl", Attested.model_validate_json))

    # ---- telemetry

    def record_telemetry(self, head: Head) -> TelemetryFile:
        """The file of a step's telemetry, begun anew: of a step that is measured again nothing of
        the first time stays.

        Raises StoreError.
        """
        return TelemetryFile(self._telemetry(head.key), head, folder=self.folder)

    def telemetry(self, key: StepKey) -> Telemetry | None:
        """The telemetry of a step; None where none was recorded. A torn last line is dropped.

        Raises InvalidMeasurement with file:line about any other line that cannot be read.
        """
        path = self._telemetry(key)
        lines = tuple(
            read_lines(path, LINE.validate_json, advice=_WITHOUT_TELEMETRY, folder=self.folder)
        )
        if not lines:
            return None
        head, *rest = lines
        if not isinstance(head, Head):
            raise InvalidMeasurement(
                f"{path}:1: is no head: whose telemetry this is cannot be told"
            )
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
        """The folder for logs of hosts and drivers."""
        return self.folder / "logs"

    @property
    def derived(self) -> Path:
        """The folder for what can be rebuilt."""
        return self.folder / "derived"

    def make_derived(self, name: str = "") -> Path:
        """The same, or the folder of this name in it, made where it is missing.

        Raises StoreError, where one is a link as well.
        """
        path = self.derived / name
        try:
            return inside.make_folder(self.folder, path.relative_to(self.folder).as_posix())
        except OSError as error:
            raise StoreError(path, error) from error


class TelemetryFile:
    """Telemetry of one step as it is recorded: readable at any time, on the disk when it is closed.

    For one thread at a time.
    """

    def __init__(self, path: Path, head: Head, *, folder: Path) -> None:
        self._path = path
        name, flags = (
            path.relative_to(folder).as_posix(),
            os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND,
        )
        try:
            # Folders of runs made by older versions have none for it.
            self._descriptor = inside.opened(folder, name, flags, make_folders=True)
        except OSError as error:
            raise StoreError(path, error) from error
        try:
            self.write([head])
        except StoreError:
            os.close(self._descriptor)
            raise

    def write(self, lines: Iterable[TelemetryLine]) -> None:
        """Append lines by one write, without waiting for the disk: that would disturb what is
        measured. Raises StoreError.
        """
        data = b"".join(line.model_dump_json(exclude_none=True).encode() + b"\n" for line in lines)
        try:
            _write_all(self._descriptor, data)
        except OSError as error:
            raise StoreError(self._path, error) from error

    def close(self) -> None:
        """See everything to the disk. Raises StoreError."""
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise StoreError(self._path, error) from error
        finally:
            os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def make_folder(path: Path) -> Path:
    """A folder and those above it, made where they are missing. Raises StoreError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(path, error) from error
    return path


def write_whole(path: Path, content: str | bytes, *, folder: Path | None = None) -> None:
    """Write a file so that the old or the new one is there, never half of one; a link of its name
    gives way to it.

    `folder`: the run's, of a file that is deeper in it: folders between are made, and none may be a
    link. Raises StoreError.
    """
    folder = folder or path.parent
    try:
        inside.write(
            folder,
            path.relative_to(folder).as_posix(),
            content.encode() if isinstance(content, str) else content,
        )
    except OSError as error:
        raise StoreError(path, error) from error


def append_line(path: Path, line: str) -> None:
    """Append a line, or several, by one write behind the last whole one; it is on the disk when
    this returns. Raises StoreError.
    """
    data = line.encode() + b"\n"
    try:
        with _locked(path) as descriptor:
            whole = _whole_length(descriptor)
            os.ftruncate(descriptor, whole)
            try:
                _write_all(descriptor, data)
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, whole)
                raise
    except OSError as error:
        raise StoreError(path, error) from error


def _write_all(descriptor: int, data: bytes) -> None:
    if os.write(descriptor, data) != len(data):
        # A short write of a regular file means that its disk, quota or limit ends here.
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """A descriptor of a file that nobody else appends to.

    The lock is another file's: anybody may read the run.
    """
    lock = open_lock(path.with_name(".lock"))
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        descriptor = inside.opened(path.parent, path.name, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
    finally:
        os.close(lock)


def _whole_length(descriptor: int) -> int:
    """Length of the file up to and with its last newline."""
    end = os.fstat(descriptor).st_size
    while end:
        start = max(0, end - 65536)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _interval_log(measurement: Measurement) -> str:
    lines = [log_header(measurement.started_at)]
    for tally in measurement.tallies:
        if tally.latency is not None:
            lines.append(
                log_line(
                    tally.operation, 0.0, measurement.window_s, tally.max_us or 0, tally.latency
                )
            )
        if tally.first_byte is not None:
            max_us = _highest_us(tally.first_byte, tally.max_us or 0)
            lines.append(
                log_line(
                    f"{tally.operation}-first-byte",
                    0.0,
                    measurement.window_s,
                    max_us,
                    tally.first_byte,
                )
            )
    return "".join(lines)


def _highest_us(encoded: str, bound_us: int) -> int:
    """The highest latency of a histogram; of one that cannot be read its bound: the step is to be
    kept all the same.
    """
    try:
        return min(Histogram.decode(encoded).percentile_us(100), bound_us)
    except InvalidMeasurement:
        return bound_us


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
