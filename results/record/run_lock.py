"""The lock on a run folder: one process writes to it at a time, and who did is on record."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from weighbridge.common import safe_files
from weighbridge.common.errors import UsageError
from weighbridge.common.locks import open_lock
from weighbridge.common.record import Record
from weighbridge.results.record.reading import read_bounded
from weighbridge.results.record.writing import StoreError

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
            raise _busy(folder, _holders(path)) from None
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
    """Remove drafts of killed writers; refuse links, through which programs would write elsewhere.

    Drafts below `derived/` stay: reports are made without this lock and may be at work.
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


def _busy(folder: Path, holders: tuple[Holder, ...]) -> UsageError:
    who = f"process {holders[-1].pid}, since {holders[-1].since}," if holders else "another process"
    advice = "Wait for it to end, or stop it; `weighbridge report` works in the meantime."
    return UsageError(f"{folder}: {who} is writing to this run", advice=advice)


def _holders(path: Path) -> tuple[Holder, ...]:
    """The recorded holders; one that was killed while writing its line had not started anything."""
    found = []
    for line in read_bounded(path).splitlines():
        with suppress(ValidationError):
            found.append(Holder.model_validate_json(line))
    return tuple(found)
