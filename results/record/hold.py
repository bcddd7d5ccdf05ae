"""The hold on a run folder: one process appends to it at a time, and who ever did can be told after
any kill.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from weighbridge.common import inside
from weighbridge.common.errors import UsageError
from weighbridge.common.locks import open_lock
from weighbridge.common.record import Record
from weighbridge.results.record.reading import read_whole
from weighbridge.results.record.store import StoreError

FILE: Final = "holders.jsonl"
"""In the run folder: who writes to it (its last line), and who did before, so that what a killed
one left is known.
"""


DERIVED: Final = "derived/"


class Holder(Record):
    """A process that writes to a run folder, or did. `since` is UTC, ISO 8601."""

    pid: int
    since: str


@contextmanager
def holding(folder: Path) -> Iterator[tuple[Holder, ...]]:
    """Be the only process that writes to a run folder; yields who were before.

    The kernel lets go of it with this process, however that ends. Raises UsageError naming the
    process that has it, or what in the folder is no plain file; StoreError.
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
            raise _busy(folder, _told(path)) from None
        _see_plain(folder)
        before = _told(path)
        now = Holder(pid=os.getpid(), since=datetime.now(UTC).isoformat(timespec="seconds"))
        try:
            # Behind what one who was killed while writing has left, a line begins with a new one.
            end = os.fstat(descriptor).st_size
            torn = end > 0 and os.pread(descriptor, 1, end - 1) != b"\n"
            line = f"{now.model_dump_json()}\n".encode()
            os.write(descriptor, b"\n" + line if torn else line)
        except OSError as error:
            raise StoreError(path, error) from error
        yield before
    finally:
        os.close(descriptor)


def _see_plain(folder: Path) -> None:
    """Refuse a folder through which programs that are given a path in it, as for their logs, would
    write elsewhere.

    Drafts of files whose writer was killed are removed; reports are made without holding the
    folder, and may be at work at theirs.
    """
    odd = None
    try:
        for entry in inside.entries(folder):
            if entry.otherwise:
                odd = odd or entry
            elif entry.name.endswith(inside.DRAFT) and not entry.name.startswith(DERIVED):
                inside.remove(folder, entry.name)
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}") from error
    if odd is not None:
        advice = "Whoever made the folder put it there; take it out to go on with the run."
        raise UsageError(
            f"{folder / odd.name}: is {odd.otherwise}; a run is written to plain files",
            advice=advice,
        )


def _busy(folder: Path, holders: tuple[Holder, ...]) -> UsageError:
    who = f"process {holders[-1].pid}, since {holders[-1].since}," if holders else "another process"
    advice = "Wait until it has ended, or end it; `weighbridge report` can be asked for meanwhile."
    return UsageError(f"{folder}: {who} is writing to this run", advice=advice)


def _told(path: Path) -> tuple[Holder, ...]:
    """Who wrote down that they hold it; one who was killed while writing had not begun anything."""
    found = []
    for line in read_whole(path).splitlines():
        with suppress(ValidationError):
            found.append(Holder.model_validate_json(line))
    return tuple(found)
