"""The hold on a run folder: one process appends to it at a time, and who did last can be told after any kill."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from ground.errors import UsageError
from ground.record import Record
from results.store import StoreError

FILE: Final = "holder.json"
"""In the run folder: who writes to it, or did last. It stays, so that what a killed process left is known to be this run's."""


class Holder(Record):
    """A process that writes to a run folder, or did. `since` is UTC, ISO 8601."""

    pid: int
    since: str


@contextmanager
def holding(folder: Path) -> Iterator[Holder | None]:
    """Be the only process that writes to a run folder; yields who was before, None where nobody was.

    The kernel lets go of it with this process, however that ends. Raises UsageError naming the process that has it, StoreError.
    """
    path = folder / FILE
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StoreError(path, error) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _busy(folder, _told(descriptor)) from None
        before = _told(descriptor)
        now = Holder(pid=os.getpid(), since=datetime.now(UTC).isoformat(timespec="seconds"))
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, now.model_dump_json().encode(), 0)
        except OSError as error:
            raise StoreError(path, error) from error
        yield before
    finally:
        os.close(descriptor)


def _busy(folder: Path, holder: Holder | None) -> UsageError:
    who = f"process {holder.pid}, since {holder.since}," if holder is not None else "another process"
    advice = "Wait until it has ended, or end it; `weighbridge report` can be asked for meanwhile."
    return UsageError(f"{folder}: {who} is writing to this run", advice=advice)


def _told(descriptor: int) -> Holder | None:
    """What the holder wrote; None in the moment before it has, and where nobody ever did."""
    try:
        return Holder.model_validate_json(os.pread(descriptor, 4096, 0))
    except ValidationError:
        return None
