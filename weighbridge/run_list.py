"""The runs below a folder: what each compared, how it ended, and its answer."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from weighbridge.common.errors import UsageError, WeighbridgeError
from weighbridge.common.json_document import JsonDocument
from weighbridge.common.record import Record
from weighbridge.results.derivation import ANSWER
from weighbridge.results.record.reading import read_bounded
from weighbridge.results.record.run_lock import is_locked
from weighbridge.results.record.store import RunStore

MANIFEST = "manifest.json"
"""What makes a folder the folder of a run."""
REPORT = Path("derived", "report.html")
"""Of a run's folder."""


class ListedRun(Record):
    """A run, as far as its folder says without being analysed."""

    folder: str
    created_at: str
    suite: str
    layouts: tuple[str, ...]
    state: str
    """running, done, failed, interrupted, or killed: it ended without saying so."""
    answer: str
    """What came of it, in a sentence; empty if nothing was compared, or no report was made."""


class RunsDocument(JsonDocument):
    """What `runs` prints."""

    document: Literal["runs"] = "runs"
    runs: tuple[ListedRun, ...]
    """The newest first."""
    unreadable: tuple[str, ...] = ()
    """Folders of runs that cannot be read, and why."""


def runs_below(folder: Path) -> RunsDocument:
    """All runs whose folders are directly in `folder`. Raises UsageError without such a folder."""
    found, unreadable = [], []
    for one in sorted(run_folders(folder), reverse=True):
        try:
            found.append(_listed(one))
        except WeighbridgeError as error:
            unreadable.append(f"{one}: {error.message.splitlines()[0]}")
    found.sort(key=lambda one: one.created_at, reverse=True)
    return RunsDocument(runs=tuple(found), unreadable=tuple(unreadable))


def run_folders(folder: Path) -> tuple[Path, ...]:
    """The folders of runs directly in `folder`, or itself if it is one.

    Raises UsageError without such a folder.
    """
    if (folder / MANIFEST).exists():
        return (folder,)
    try:
        inside = sorted(one for one in folder.iterdir() if one.is_dir())
    except OSError as error:
        raise UsageError(
            f"{folder}: {error.strerror}", advice="Name the folder that --out of `compare` named."
        ) from error
    return tuple(one for one in inside if (one / MANIFEST).exists())


def newest_below(folder: Path) -> Path:
    """The newest run directly in `folder`. Raises UsageError if there is none."""
    found = runs_below(folder).runs
    if not found:
        raise UsageError(f"{folder}: there is no run", advice="Name the folder of a run.")
    return Path(found[0].folder)


def report_of(run: Path) -> Path:
    """The report in a run's folder. Raises UsageError if it has none."""
    RunStore.open(run)
    path = run / REPORT
    if not path.is_file():
        raise UsageError(f"{run}: has no report", advice=f"Make it: weighbridge report {run}")
    return path


def _listed(folder: Path) -> ListedRun:
    store = RunStore.open(folder)
    manifest, plan = store.manifest, store.plan()
    killed = manifest.state == "running" and not is_locked(folder)
    return ListedRun(
        folder=str(folder),
        created_at=manifest.created_at,
        suite=manifest.suite,
        layouts=plan.measured,
        state="killed" if killed else manifest.state,
        answer=_answer(folder),
    )


def _answer(folder: Path) -> str:
    try:
        return read_bounded(folder / "derived" / ANSWER).decode("utf-8", "replace").strip()
    except OSError:
        return ""
