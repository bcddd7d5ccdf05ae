"""The run folder: everything that a run gave, appended as it comes, readable after any kill.

    RUNS/<UTC>-<suite>-<shortid>/
      plan.yaml             as given
      plan.resolved.json    as resolved, before anything starts
      manifest.json         state and facts
      steps.jsonl           one StepResult a line, fsync'd: the truth
      events.jsonl          what was done when
      telemetry/*.jsonl     what hosts used every second, one file a step
      logs/                 logs of hosts, drivers and probes
      attestation.jsonl     what the hosts of each deployment could do
      machine.jsonl         what earlier runs showed of the machine
      tuning.json, trials.jsonl, winner.json, confirmation/    of a tuning: its configuration,
                            trials and winner, and the run that confirms it
      derived/              tables, charts and the report: can be rebuilt from the rest

A line is one write(). Readers drop a torn last line; appending removes it first.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

from pydantic import BaseModel, ValidationError

from weighbridge.common import safe_files
from weighbridge.common.errors import InvalidMeasurement, UsageError
from weighbridge.common.record import Record
from weighbridge.common.safe_files import open_lock
from weighbridge.results.run.reading import (
    StoreError,
    append_line,
    read_bounded,
    read_lines,
    read_record,
    torn,
    write_all,
    write_atomically,
)
from weighbridge.results.run.resolved import (
    ConfigFile,
    Manifest,
    ResolvedPlan,
    RunEvent,
    Sheet,
    State,
)
from weighbridge.results.run.step import StepKey, StepResult, counting
from weighbridge.results.run.telemetry import (
    LINE,
    Attested,
    Head,
    HostSecond,
    ProbeSecond,
    Tail,
    Telemetry,
    TelemetryLine,
)
from weighbridge.results.run.trial import TRIALS, TuningStore


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
        """Create a folder below `runs`, with its plan. Raises StoreError or UsageError."""
        now = datetime.now(UTC)
        run_id = f"{now:%Y%m%dT%H%M%SZ}-{suite}-{secrets.token_hex(4)}"
        folder = runs / run_id
        try:
            folder.mkdir(parents=True)
            for part in ("telemetry", "logs", "derived"):
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
                # What is not UTF-8 on a command line is escaped.
                command=tuple(one.encode(errors="backslashreplace").decode() for one in command),
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
        """Open a run folder. Raises UsageError if it is none, or of an unknown version."""
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
        """Add facts and files; those of the same title, layout, host and path are replaced."""
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
        """Write a step's line to disk. Raises StoreError: what was there before still counts."""
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
        event = RunEvent(at=_now(), kind=kind, text=text, layout=layout, repeat=repeat, share=share)
        append_line(self.folder / "events.jsonl", event.model_dump_json(exclude_none=True))

    def steps(self) -> tuple[StepResult, ...]:
        """All results as appended, those of a repeated step included. A torn last line is dropped.
        Raises InvalidMeasurement with file:line on others.
        """
        path, advice = self.folder / "steps.jsonl", "Remove the line to go on without its step."
        return tuple(read_lines(path, StepResult.model_validate_json, advice=advice))

    def latest(self) -> dict[StepKey, StepResult]:
        """The result of each step that counts, in the order the steps were first appended."""
        return counting(self.steps())

    def events(self) -> tuple[RunEvent, ...]:
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
        """What all hosts could do, in order. Raises InvalidMeasurement with file:line."""
        return tuple(read_lines(self.folder / "attestation.jsonl", Attested.model_validate_json))

    # ---- telemetry

    def record_telemetry(self, head: Head, time: int = 0) -> TelemetryFile:
        """Start a step's telemetry file, discarding an earlier one. Raises StoreError."""
        return TelemetryFile(self.telemetry_file(head.key, time), head, folder=self.folder)

    def telemetry(self, key: StepKey, time: int = 0) -> Telemetry | None:
        """The telemetry of a result of a step, if any. Raises InvalidMeasurement with file:line."""
        path = self.telemetry_file(key, time)
        advice = "Move the file away to go on without this step's telemetry."
        lines = tuple(read_lines(path, LINE.validate_json, advice=advice, folder=self.folder))
        if not lines:
            return None
        if not isinstance(lines[0], Head):
            raise InvalidMeasurement(f"{path}:1: is not a head line: the step is unknown")
        return Telemetry(
            head=lines[0],
            hosts=tuple(line for line in lines if isinstance(line, HostSecond)),
            probes=tuple(line for line in lines if isinstance(line, ProbeSecond)),
            tail=next((line for line in lines if isinstance(line, Tail)), None),
        )

    def telemetry_file(self, key: StepKey, time: int) -> Path:
        return self.folder / "telemetry" / f"{key.files_of(time)}.jsonl"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def derived(self) -> Path:
        return self.folder / "derived"

    def make_derived(self, name: str = "") -> Path:
        """Create `derived`, or a folder in it. Raises StoreError, also if it is a link."""
        path = self.derived / name
        try:
            return safe_files.make_folder(self.folder, path.relative_to(self.folder).as_posix())
        except OSError as error:
            raise StoreError(path, error) from error


class TelemetryFile:
    """A step's telemetry while it is recorded: on disk when closed. Not thread-safe."""

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
        """Append lines by one write, without fsync, which would disturb. Raises StoreError."""
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


FILE: Final = "holders.jsonl"
"""In the run folder: a line for each process that wrote to it; the last is that of the latest."""

DERIVED: Final = "derived/"


class Holder(Record):
    """A process that writes, or wrote, to a run folder. `since` is UTC, ISO 8601."""

    pid: int
    since: str


@contextmanager
def lock_run_folder(folder: Path) -> Iterator[tuple[Holder, ...]]:
    """Be the only process that writes to a run folder; yields the processes that wrote before.

    The kernel releases the lock when this process ends, however it ends. Raises UsageError naming
    the process that holds it, or an entry of the folder that is not a plain file; StoreError.
    """
    path = folder / FILE
    try:
        descriptor = open_lock(path, os.O_APPEND)
    except OSError as error:
        raise StoreError(path, error) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holders, who = _holders(path), "another process"
            if holders:
                who = f"process {holders[-1].pid}, since {holders[-1].since},"
            advice = "Wait for it to end, or stop it; `weighbridge report` works in the meantime."
            raise UsageError(f"{folder}: {who} is writing to this run", advice=advice) from None
        _check_files(folder)
        before = _holders(path)
        now = Holder(pid=os.getpid(), since=datetime.now(UTC).isoformat(timespec="seconds"))
        try:
            # A writer that was killed may have left half a line: begin a new one.
            end = os.fstat(descriptor).st_size
            torn = end > 0 and os.pread(descriptor, 1, end - 1) != b"\n"
            line = f"{now.model_dump_json()}\n".encode()
            os.write(descriptor, b"\n" + line if torn else line)
        except OSError as error:
            raise StoreError(path, error) from error
        yield before
    finally:
        os.close(descriptor)


def is_locked(folder: Path) -> bool:
    """Whether a process holds the lock; True if that cannot be found out."""
    try:
        descriptor = os.open(folder / FILE, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


def _check_files(folder: Path) -> None:
    """Remove killed writers' drafts; refuse links. Drafts in `derived/` stay: reports take no lock
    and may be at work.
    """
    odd = None
    try:
        for entry in safe_files.entries(folder):
            if entry.otherwise:
                odd = odd or entry
            elif entry.name.endswith(safe_files.DRAFT) and not entry.name.startswith(DERIVED):
                safe_files.remove(folder, entry.name)
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}") from error
    if odd is not None:
        advice = "This suite did not make it; remove it to continue the run."
        raise UsageError(
            f"{folder / odd.name}: is {odd.otherwise}; a run is written to plain files",
            advice=advice,
        )


def _holders(path: Path) -> tuple[Holder, ...]:
    """The recorded holders; one that was killed while writing its line had not started anything."""
    found = []
    for line in read_bounded(path).splitlines():
        with suppress(ValidationError):
            found.append(Holder.model_validate_json(line))
    return tuple(found)


# What a run folder lacks, as sentences: unmeasured steps, torn lines, missing files.
#
# None of it is an error: what is there is used, and what is missing is unknown, never zero. A run
# that is still in progress has gaps.


BUDGET: Final = "budget"
"""The kind of event that the conductor logs when the run's budget ends it."""


def gaps(store: RunStore, plan: ResolvedPlan, steps: Iterable[StepResult]) -> tuple[str, ...]:
    """All gaps, by the latest result of each step. Raises UsageError on unreadable files."""
    results = list(steps)
    return (*_ended(store, plan, results), *_torn(store), *_missing(store, results))


def _ended(store: RunStore, plan: ResolvedPlan, steps: Sequence[StepResult]) -> Iterator[str]:
    """How the run ended, if not well, and how much of it has a result."""
    tuning = TuningStore(store.folder)
    what, missing = "the run", 0
    if tuning.run() is None:
        planned = plan.suite.repeats * sum(
            len(workload.workers)
            for layout in plan.layouts
            for one_pass in plan.passes_of(layout.name)
            for workload in one_pass.workloads
        )
        many = sum(step.key.rate_per_s is None for step in steps)
        there, missing = f"{many} of {planned} steps have a result", planned - many
    else:
        # How many trials a tuning needs is not known beforehand.
        what, there = "the tuning", f"{len(tuning.trials())} trials were made"
    state, why = store.manifest.state, store.manifest.error.partition("\n")[0]
    by_budget = any(event.kind == BUDGET for event in store.events())
    if state == "running":
        yield f"{what} is still running, or was killed: {there}"
    elif state != "done":
        ended = "failed" if state == "failed" else "was interrupted"
        yield f"{what} {ended}{f' ({why})' if why else ''}: {there}"
    elif by_budget and (missing > 0 or what == "the tuning"):
        yield f"{what}'s budget ended it: {there}"
    elif missing > 0:
        yield f"the run is done, but {there}"


def _torn(store: RunStore) -> Iterator[str]:
    for name in ("steps.jsonl", "events.jsonl", "attestation.jsonl", TRIALS):
        if torn(store.folder / name):
            yield f"{name}: the last line is incomplete and was ignored"


def _missing(store: RunStore, steps: Sequence[StepResult]) -> Iterator[str]:
    """Missing files of measured steps, if some step has one, since telemetry is optional."""
    folder = store.folder / "telemetry"
    measured = [step for step in steps if step.measurement is not None]
    paths = [store.telemetry_file(step.key, step.time) for step in measured]
    missing = [path for path in paths if not path.exists()]
    cut = [path for path in paths if torn(path, folder=store.folder)]
    missing = missing if len(missing) < len(paths) else []
    for files, state, meaning in (
        (missing, "missing", "what the hosts used in these steps is unknown"),
        (cut, "torn", "their last lines were ignored"),
    ):
        if files:
            many = (
                f"{len(files)} of {len(paths)} files {'is' if len(files) == 1 else 'are'} {state}"
            )
            yield f"{folder.name}: {many} (the first: {folder.name}/{files[0].name}): {meaning}"
