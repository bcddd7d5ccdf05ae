"""Reading JSON records from a run folder, one a file or one a line. No unreadable line is skipped.

The folder may come from anybody: links are not followed, and only regular files are read, up to a
size. `folder` is the run folder for files deeper in it; by default the file's own folder.
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

from pydantic import BaseModel, ValidationError

from weighbridge.common import safe_files
from weighbridge.common.errors import DISK_FULL, InvalidMeasurement, UsageError, WeighbridgeError
from weighbridge.common.quantities import show_bytes
from weighbridge.common.safe_files import open_lock
from weighbridge.results.run.resolved import MANIFEST_VERSION

LARGEST_RECORD_BYTES: Final = 2**28
"""For a file of one record or text: the plan of a large study and a manifest have a few MB."""
LONGEST_LINE_BYTES: Final = 2**28
"""A step that takes a day has 40 MB of seconds."""
LARGEST_LINES_BYTES: Final = 2**36
"""For a file of lines, read line by line: thousands of steps, or days of per-second telemetry."""

Model = TypeVar("Model", bound=BaseModel)
Line = TypeVar("Line")


def read_lines(
    path: Path, read: Callable[[bytes], Line], *, advice: str = "", folder: Path | None = None
) -> Iterator[Line]:
    """The records of a file, one a line; a torn last one is dropped. Raises InvalidMeasurement with
    file:line and advice on another; UsageError if unreadable.
    """
    with _lines_of(path, folder) as file:
        lines = iter(lambda: file.readline(LONGEST_LINE_BYTES), b"")
        for number, line in enumerate(lines, start=1):
            if not line.endswith(b"\n"):
                if len(line) == LONGEST_LINE_BYTES:
                    raise InvalidMeasurement(
                        f"{path}:{number}: is longer than {show_bytes(LONGEST_LINE_BYTES)}"
                    )
                return  # torn by a kill or a full disk: it was never acknowledged
            try:
                found = read(line)
            except ValidationError as error:
                raise InvalidMeasurement(
                    f"{path}:{number}: {why(error)}",
                    advice=f"The line is kept as it is; nothing was left out. {advice}".rstrip(),
                ) from None
            yield found


def read_record(
    path: Path, model: type[Model], *, advice: str = "", folder: Path | None = None
) -> Model:
    """The record in a file. Raises UsageError, with this advice, if it is missing or unreadable."""
    try:
        return model.model_validate_json(read_bounded(path, folder=folder))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", advice=advice) from error
    except ValidationError as error:
        raise UsageError(f"{path}: {why(error)}", advice=advice) from None


def read_bounded(path: Path, *, folder: Path | None = None) -> bytes:
    """The content of a file of one record or text. Raises OSError."""
    folder = folder or path.parent
    return safe_files.read(
        folder, path.relative_to(folder).as_posix(), largest_bytes=LARGEST_RECORD_BYTES
    )


def torn(path: Path, *, folder: Path | None = None) -> bool:
    """Whether a file's last line is torn. Raises UsageError if it is unreadable."""
    with _lines_of(path, folder) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        return size > 0 and file.read(1) != b"\n"


@contextmanager
def _lines_of(path: Path, folder: Path | None) -> Iterator[BinaryIO]:
    """A file of lines, empty if it does not exist. Raises UsageError if it is unreadable."""
    folder = folder or path.parent
    name = path.relative_to(folder).as_posix()
    try:
        try:
            file = safe_files.open_to_read(folder, name, largest_bytes=LARGEST_LINES_BYTES)
        except FileNotFoundError:
            file = io.BytesIO()
        with file:
            yield file
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error


def why(error: ValidationError) -> str:
    """The first fault of a record, in words; an unknown version before all others."""
    faults = error.errors(include_url=False, include_context=False)
    for fault in faults:
        if fault["loc"] and fault["loc"][-1] == "schema_version":
            return (
                f"written in version {fault['input']!r} of its format; this program knows version "
                f"{MANIFEST_VERSION}: read it with the version that wrote it, or a newer one"
            )
    place = ".".join(str(part) for part in faults[0]["loc"])
    return f"{place}: {faults[0]['msg']}" if place else str(faults[0]["msg"])


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


def refuse_existing(paths: Iterable[Path], *, force: bool) -> None:
    """Raise UsageError if one of these files exists, unless it shall be replaced."""
    existing = [] if force else [path for path in paths if path.exists()]
    if existing:
        more = f" and {len(existing) - 1} more" if len(existing) > 1 else ""
        raise UsageError(
            f"{existing[0]}{more}: exists already",
            advice="It may have been edited: replace it with --force, or choose another place.",
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
    """Append in one synced write after the last complete line, or nothing. Raises StoreError."""
    try:
        with _locked(path) as descriptor:
            length = _length_of_lines(descriptor)
            os.ftruncate(descriptor, length)
            try:
                write_all(descriptor, line.encode() + b"\n")
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, length)
                raise
    except OSError as error:
        raise StoreError(path, error) from error


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
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
        descriptor = safe_files.open_descriptor(path.parent, path.name, flags)
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
