from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weighbridge.common import safe_files
from weighbridge.common.errors import DISK_FULL, WeighbridgeError
from weighbridge.common.safe_files import open_lock


def append(path: Path, data: bytes) -> None:
    """Append lines in one synced write after the last complete one. Raises OSError, and leaves what
    was there.
    """
    with _locked(path) as descriptor:
        length = _length_of_lines(descriptor)
        os.ftruncate(descriptor, length)
        try:
            write_all(descriptor, data)
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, length)
            raise


def write_all(descriptor: int, data: bytes) -> None:
    """Write data completely. Raises OSError."""
    if os.write(descriptor, data) != len(data):
        # A short write of a regular file means that its disk, quota or limit ends here.
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """A file's descriptor under a lock on `.lock`: who may read the run could lock this one."""
    lock = open_lock(path.with_name(".lock"))
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        descriptor = safe_files.open_descriptor(
            path.parent, path.name, os.O_RDWR | os.O_APPEND | os.O_CREAT
        )
        try:
            yield descriptor
        finally:
            os.close(descriptor)
    finally:
        os.close(lock)


def _length_of_lines(descriptor: int) -> int:
    end = os.fstat(descriptor).st_size
    while end:
        start = max(0, end - 65536)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


class StoreError(WeighbridgeError):
    """The run folder could not be written to (`path`). What was complete before stays readable."""

    def __init__(self, path: Path, error: OSError) -> None:
        self.path = path
        full = error.errno in DISK_FULL
        advice = f"Everything finished before is kept in {path.parent}."
        super().__init__(
            f"{path}: {'the disk is full' if full else 'cannot be written'} ({error.strerror})",
            advice=f"{advice} Make room, or choose another folder with --out." if full else advice,
        )


def make_folder(path: Path) -> Path:
    """Create a folder and its parents if missing. Raises StoreError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(path, error) from error
    return path


def write_atomically(path: Path, content: str | bytes, *, folder: Path | None = None) -> None:
    """Write atomically, replacing also a link of that name. `folder`: the run folder of a deeper
    file; folders between are created, none may be a link. Raises StoreError.
    """
    folder = folder or path.parent
    data = content.encode() if isinstance(content, str) else content
    try:
        safe_files.write(folder, path.relative_to(folder).as_posix(), data)
    except OSError as error:
        raise StoreError(path, error) from error


def append_line(path: Path, line: str) -> None:
    """Append in one synced write after the last complete line. Raises StoreError."""
    try:
        append(path, line.encode() + b"\n")
    except OSError as error:
        raise StoreError(path, error) from error
